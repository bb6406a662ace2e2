//! Is an index what its keys give? What its checksums cannot tell: they only say that it is what was written.

use super::entry::BUCKET_BYTES;
use super::{SlotIndex, build};
use crate::error::Result;
use crate::progress::Progress;
use std::path::Path;

impl SlotIndex {
    /// What is wrong with the index, if anything: makes its buckets once more from its keys and compares them, with about
    /// `memory` bytes for sorting and the rest in `directory`.
    ///
    /// # Errors
    /// Files that changed or cannot be read, too little memory, a full disk, cancellation.
    pub fn damage(&self, directory: &Path, memory: u64, progress: &Progress) -> Result<Option<String>> {
        self.inspect(|found| {
            let (mut at, mut wrong) = (0, None);
            let homes = self.manifest().homes;
            if homes != super::entry::homes(self.keys().slots()) {
                return Ok(Some(format!("{homes} homes are not the number for {} slots", self.keys().slots())));
            }
            build::buckets(self.keys(), homes, directory, memory, progress, &mut |piece| {
                let stored = found.get(at..).unwrap_or_default();
                let buckets = piece.chunks_exact(BUCKET_BYTES).zip(stored.chunks_exact(BUCKET_BYTES));
                let different = buckets.enumerate().find(|(_, (made, stored))| made != stored);
                let bucket = different.map(|(index, _)| at / BUCKET_BYTES + index);
                wrong = wrong.take().or(bucket.map(|bucket| format!("bucket {bucket} is not what the keys give")));
                at += piece.len();
                Ok(())
            })?;
            if wrong.is_none() && at != found.len() {
                wrong = Some(format!("it has {} buckets, the keys give {}", self.buckets(), at / BUCKET_BYTES));
            }
            Ok(wrong)
        })
    }
}
