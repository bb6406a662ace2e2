//! What a batch would read, on which path, and what of it is in memory.

use super::super::direct::look;
use super::{Readers, SAMPLE};
use crate::read::{CodePath, ReadError, ReadPlan};
use std::sync::atomic::Ordering;

/// One read that a batch would take, or the rows of it that the row cache would hand over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRead {
    /// The code path.
    pub path: CodePath,
    /// Where it reads; `None` from the row cache.
    pub place: Option<Place>,
    /// Bytes that it brings; 0 from the row cache. Mapped rows: bytes of the pages they lie on.
    pub bytes: u64,
    /// Rows of the batch that it serves, duplicates counted. A row of two parts is served by a read of each.
    pub rows: u64,
    /// Bytes of those rows that it hands over.
    pub bytes_used: u64,
    /// Whether the page cache holds all of it now; `None` where the system does not tell.
    pub resident: Option<bool>,
}

/// Where a read begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Shard of its rows.
    pub shard: u32,
    /// Index of the file in the layout.
    pub file: usize,
    /// Byte offset in the file.
    pub offset: u64,
}

impl Readers {
    /// The reads that [`Readers::read`] would take for `plan` now: first what the row cache has, then the reads in file
    /// order within each part of the rows. Reads no row and changes nothing.
    ///
    /// # Errors
    /// A file that changed; a reader that a setting names and that is not available here.
    pub fn plan(&self, plan: &ReadPlan<'_>) -> Result<Vec<PlannedRead>, ReadError> {
        self.watch.check(|| plan.touched_files())?;
        if let Some(path) = self.forced_path() {
            // Refused here as it would be there.
            self.reader(path)?;
            return Ok(self.reads(path, plan));
        }
        if self.comes_from_pages(plan) {
            return Ok(self.reads(CodePath::Mapped, plan));
        }
        let mut missing = Vec::new();
        self.cache.find_missing(plan.ids(), &mut missing);
        let cached = (plan.ids().len() - missing.len()) as u64;
        let mut reads = Vec::new();
        if cached > 0 {
            let bytes_used = cached * plan.layout().row_bytes() as u64;
            let resident = Some(true);
            reads.push(PlannedRead {
                path: CodePath::Cache,
                place: None,
                bytes: 0,
                rows: cached,
                bytes_used,
                resident,
            });
        }
        if !missing.is_empty() {
            let ids: Vec<i64> = missing.iter().map(|&position| plan.ids()[position]).collect();
            let plan = ReadPlan::proven(plan.layout(), &ids);
            reads.extend(self.reads(self.look(&plan).0, &plan));
        }
        Ok(reads)
    }

    /// Whether the rows would be copied from the maps before the row cache is asked.
    fn comes_from_pages(&self, plan: &ReadPlan<'_>) -> bool {
        self.resident.load(Ordering::Relaxed)
            && !self.cache.budget_is_explicit()
            && self.mapped.resident_of(plan.ids(), SAMPLE) == Some(SAMPLE)
    }

    fn reads(&self, path: CodePath, plan: &ReadPlan<'_>) -> Vec<PlannedRead> {
        let planned = look(plan, &self.files, path);
        let reads = planned.into_iter().map(|read| {
            let file = read.extent.file;
            let resident = self.mapped.resident_bytes(file, read.offset, read.bytes);
            PlannedRead {
                path,
                place: Some(Place { shard: read.extent.shard, file, offset: read.offset }),
                bytes: read.bytes,
                rows: read.rows,
                bytes_used: read.used,
                resident: resident.map(|resident| resident == read.bytes),
            }
        });
        reads.collect()
    }
}
