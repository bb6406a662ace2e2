//! Readers that go to the disk, around the page cache where the file system allows it.
//!
//! All of them sort a batch by row id, turn it into aligned reads in file order, keep many reads in flight, and hand over
//! rows as reads finish. They differ in who carries the reads out ([`IoUringReader`]: the kernel; [`PreadReader`]: a pool
//! of threads) and in how rows are gathered into reads ([`SequentialReader`]: whole blocks). Between batches nothing is
//! held but idle rings and idle threads.

mod files;
mod handover;
mod look;
mod memory;
#[cfg(not(target_os = "linux"))]
mod no_ring;
mod order;
mod planner;
mod queue;
mod readers;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(not(target_os = "linux"))]
use no_ring as ring;
mod stream;
mod threads;

pub use files::DirectFiles;
pub(super) use look::look;
pub(crate) use memory::Memory as AlignedMemory;
pub use readers::{IoUringReader, PreadReader, SequentialReader, Unavailable};
pub use stream::{RowStream, TakeBytes};

#[cfg(test)]
mod tests;
