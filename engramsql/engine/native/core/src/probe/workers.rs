//! Positional reads from many threads, for kernels that refuse io_uring.

use super::aligned::AlignedBytes;
use super::clock::together;
use super::direct::SectorRead;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// (file, error) of the read that failed.
pub(super) type Failure = (u32, std::io::Error);

/// Carries out `reads` with `threads` outstanding; the rows reach `out` after the clock has stopped.
pub(super) fn run(
    files: &[File],
    reads: &[SectorRead],
    threads: usize,
    slot: usize,
    out: &mut [u8],
) -> Result<Duration, Failure> {
    let next = AtomicUsize::new(0);
    let threads = threads.min(reads.len()).max(1);
    let buffers: Vec<AlignedBytes> = (0..threads).map(|_| AlignedBytes::new(slot)).collect();
    let work = buffers.into_iter().map(|mut buffer| {
        let next = &next;
        move || -> Result<Vec<(usize, Vec<u8>)>, Failure> {
            let mut rows = Vec::new();
            while let Some(read) = reads.get(next.fetch_add(1, Ordering::Relaxed)) {
                let bytes = &mut buffer.as_mut_slice()[..read.len as usize];
                read_sectors(&files[read.file as usize], bytes, read).map_err(|error| (read.file, error))?;
                if read.take > 0 {
                    rows.push((read.out_at, bytes[read.skip as usize..read.needed()].to_vec()));
                }
            }
            Ok(rows)
        }
    });
    let (elapsed, results) = together(work.collect());
    for rows in results {
        for (at, row) in rows? {
            out[at..at + row.len()].copy_from_slice(&row);
        }
    }
    Ok(elapsed)
}

fn read_sectors(file: &File, bytes: &mut [u8], read: &SectorRead) -> std::io::Result<()> {
    loop {
        match file.read_at(bytes, read.offset) {
            Ok(found) if found >= read.needed() => return Ok(()),
            Ok(_) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
