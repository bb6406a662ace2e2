//! The disk's limit for a copy: blocks read and written around the page cache.

use super::aligned::{ALIGNMENT, AlignedBytes};
use super::clock::together;
use super::direct::Direct;
use super::{ProbeError, Reading};
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Workers that read and write: more gain nothing.
const WORKERS: usize = 4;

impl Direct {
    /// Copies about `bytes` of the extents, in file order, to the file `target` in blocks of `block` bytes: workers read a
    /// block and write it, and in the end all of it is on the disk. The copy is of no use to anybody and stays.
    ///
    /// If about `written` bytes are to be written, blocks are written several times side by side, or left out: what the
    /// disk has to do for somebody who makes so many bytes of the table's.
    ///
    /// The reading counts reads and writes, and the bytes that were written.
    pub fn copy(&self, target: &Path, bytes: u64, written: Option<u64>, block: u32) -> Result<Reading, ProbeError> {
        if (block as usize) < ALIGNMENT || !block.is_power_of_two() || block > 1 << 26 {
            let what = format!("blocks of {block} bytes: give a power of two from {ALIGNMENT} to 67108864");
            return Err(ProbeError::argument(what));
        }
        let blocks = self.blocks(block);
        let count = (bytes / u64::from(block)).clamp(1, blocks.len().max(1) as u64) as usize;
        let Some(blocks) = blocks.get(..count) else {
            return Err(ProbeError::argument(format!("the table is smaller than one block of {block} bytes")));
        };
        let failed = |error| ProbeError::io(target, error);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(libc::O_DIRECT)
            .open(target)
            .map_err(failed)?;
        let writes = written.map_or(count as u64, |bytes| (bytes / u64::from(block)).max(1));
        // The first of the blocks written that are copies of a block read.
        let first = |index: usize| (index as u128 * u128::from(writes) / count as u128) as u64;
        // As whoever writes a file of known size would.
        let size = writes * u64::from(block);
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size).map_err(|e| failed(e.into()))?;
        let next = AtomicUsize::new(0);
        let work = (0..WORKERS).map(|_| AlignedBytes::new(block as usize)).map(|mut buffer| {
            let (next, file, first) = (&next, &file, &first);
            move || -> Result<(), ProbeError> {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(from, offset)) = blocks.get(index) else { return Ok(()) };
                    let read = self.file(from).read_exact_at(buffer.as_mut_slice(), offset);
                    read.map_err(|error| ProbeError::io(self.path(from), error))?;
                    for copy in first(index)..first(index + 1) {
                        file.write_all_at(buffer.as_mut_slice(), copy * u64::from(block)).map_err(failed)?;
                    }
                }
            }
        });
        let (mut elapsed, results) = together(work.collect());
        results.into_iter().collect::<Result<(), _>>()?;
        let started = Instant::now();
        file.sync_all().map_err(failed)?;
        elapsed += started.elapsed();
        Ok(Reading {
            elapsed,
            reads: count as u64 + writes,
            bytes: size,
            path: format!("{WORKERS} threads direct, {count} blocks of {} KiB read, {writes} written", block >> 10),
        })
    }
}
