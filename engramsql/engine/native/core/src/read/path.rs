//! The code paths that a row can take into memory.

use std::fmt;

/// A code path; its name is what settings accept and reports show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodePath {
    /// Memory maps of the files: rows come from the page cache.
    Mapped,
    /// io_uring with many reads in flight, around the page cache.
    IoUring,
    /// A pool of threads with one positional read each, where io_uring is refused.
    Pread,
    /// Whole blocks in file order, for batches that touch much of a table.
    Sequential,
    /// The row cache: rows that were read before, kept within the RAM budget.
    Cache,
}

impl CodePath {
    /// All of them.
    pub const ALL: [CodePath; 5] =
        [CodePath::Mapped, CodePath::IoUring, CodePath::Pread, CodePath::Sequential, CodePath::Cache];
    /// Those that a [`super::Reader`] stands for and a setting can force.
    pub const READERS: [CodePath; 4] = [CodePath::Mapped, CodePath::IoUring, CodePath::Pread, CodePath::Sequential];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            CodePath::Mapped => "mapped",
            CodePath::IoUring => "io_uring",
            CodePath::Pread => "pread",
            CodePath::Sequential => "sequential",
            CodePath::Cache => "cache",
        }
    }
}

impl fmt::Display for CodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
