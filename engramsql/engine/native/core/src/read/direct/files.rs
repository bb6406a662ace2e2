//! How the files of a table can be read: around the page cache where their file system allows it.

use super::super::{FileWatch, ReadError};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// What direct reads align to where the system does not say: a page suits every file system and disk.
#[cfg(target_os = "linux")]
const ASSUMED_ALIGNMENT: u32 = 4096;

/// How one file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    /// Offsets and lengths of reads are multiples of this power of two: 1 through the page cache.
    alignment: u32,
}

/// The files of one table, with what direct reads of them need.
pub struct DirectFiles {
    watch: Arc<FileWatch>,
    access: Vec<Access>,
}

impl DirectFiles {
    /// Asks the system about each file, which takes about a microsecond, and opens one file per file system for a moment.
    pub fn look(watch: Arc<FileWatch>) -> DirectFiles {
        DirectFiles { access: look(&watch), watch }
    }

    /// The same files, read through the page cache a page of `bytes` bytes at a time.
    pub(super) fn paged(&self, bytes: u32) -> DirectFiles {
        let access = vec![Access { alignment: bytes }; self.access.len()];
        DirectFiles { watch: self.watch.clone(), access }
    }

    /// Number of files.
    #[cfg(target_os = "linux")]
    pub(super) fn len(&self) -> usize {
        self.watch.len()
    }

    pub(super) fn path(&self, index: usize) -> &Path {
        self.watch.path(index)
    }

    /// An error if file `index` is not the one that was opened.
    pub(super) fn check(&self, index: usize) -> Result<(), ReadError> {
        self.watch.check_file(index)
    }

    /// What reads of file `index` align to: a power of two, 1 through the page cache.
    #[inline]
    pub(super) fn alignment(&self, index: usize) -> u64 {
        self.access[index].alignment.into()
    }

    /// The largest alignment of all files.
    pub(super) fn most_alignment(&self) -> usize {
        self.access.iter().map(|access| access.alignment as usize).max().unwrap_or(1)
    }

    /// The first file that can only be read through the page cache.
    pub(super) fn first_buffered(&self) -> Option<&Path> {
        self.access.iter().position(|access| access.alignment == 1).map(|index| self.path(index))
    }

    /// Opens file `index`, proven to be the one that was stamped, for reads of its alignment. `scattered`: rows are
    /// read from it here and there, so reading ahead would be in vain.
    pub(super) fn open(&self, index: usize, scattered: bool) -> Result<File, ReadError> {
        if self.alignment(index) > 1 {
            return self.watch.open_direct(index);
        }
        let file = self.watch.open(index)?;
        #[cfg(target_os = "linux")]
        if scattered {
            // Only a hint: where it is refused, rows are read all the same.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = scattered;
        Ok(file)
    }
}

/// Asks the system how each file can be read. What cannot be found out is read through the page cache, where a file that
/// is gone or was replaced is reported when it is opened.
#[cfg(target_os = "linux")]
fn look(watch: &FileWatch) -> Vec<Access> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    // Whether a file system takes O_DIRECT at all is asked once for each, by opening a file.
    let mut systems: Vec<((u32, u32), bool)> = Vec::new();
    let mut alignment_of = |index: usize| {
        let said =
            statx(CWD, watch.path(index), AtFlags::empty(), StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN).ok()?;
        let system = (said.stx_dev_major, said.stx_dev_minor);
        let direct = match systems.iter().find(|(known, _)| *known == system) {
            Some(&(_, direct)) => direct,
            None => {
                let direct = watch.open_direct(index).is_ok();
                systems.push((system, direct));
                direct
            }
        };
        if !direct {
            return None;
        }
        let alignment = match said.stx_mask & StatxFlags::DIOALIGN.bits() != 0 {
            // This file (encrypted, say) takes no direct reads.
            true if said.stx_dio_offset_align == 0 => return None,
            true => said.stx_dio_offset_align.max(said.stx_dio_mem_align),
            false => ASSUMED_ALIGNMENT,
        };
        (alignment > 1 && alignment.is_power_of_two()).then_some(alignment)
    };
    (0..watch.len()).map(|index| Access { alignment: alignment_of(index).unwrap_or(1) }).collect()
}

#[cfg(not(target_os = "linux"))]
fn look(watch: &FileWatch) -> Vec<Access> {
    vec![Access { alignment: 1 }; watch.len()]
}
