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
}

impl CodePath {
    /// All of them.
    pub const ALL: [CodePath; 4] = [CodePath::Mapped, CodePath::IoUring, CodePath::Pread, CodePath::Sequential];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            CodePath::Mapped => "mapped",
            CodePath::IoUring => "io_uring",
            CodePath::Pread => "pread",
            CodePath::Sequential => "sequential",
        }
    }

    /// The path of that name.
    pub fn from_name(name: &str) -> Option<CodePath> {
        CodePath::ALL.into_iter().find(|path| path.name() == name)
    }
}

impl fmt::Display for CodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
