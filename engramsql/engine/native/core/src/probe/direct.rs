//! The disk's limits: random sectors and sequential blocks around the page cache.

use super::extents::Extents;
use super::ring::Ring;
use super::{ProbeError, Reading, workers};
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Who keeps reads outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// io_uring from one thread.
    IoUring,
    /// One positional read per thread.
    Threads,
}

/// One read: whole sectors, of which `take` bytes after `skip` go to `out_at` of the output.
#[derive(Debug, Clone, Copy)]
pub(super) struct SectorRead {
    pub(super) file: u32,
    pub(super) skip: u32,
    pub(super) take: u32,
    pub(super) len: u32,
    pub(super) offset: u64,
    pub(super) out_at: usize,
}

impl SectorRead {
    /// Bytes that have to come: a read across the end of a file is short, and that is fine.
    pub(super) fn needed(&self) -> usize {
        (self.skip + self.take) as usize
    }
}

/// Threads that a kernel without io_uring needs for the same disk; more gain nothing.
const MOST_THREADS: usize = 64;

/// Files of a table opened around the page cache.
#[derive(Debug)]
pub struct Direct {
    extents: Extents,
    files: Vec<File>,
    sector: u64,
}

impl Direct {
    /// Opens every file with O_DIRECT and finds the smallest sector (512 or 4096 bytes) that all of them read.
    pub fn open(extents: Extents) -> Result<Direct, ProbeError> {
        let mut files = Vec::with_capacity(extents.files.len());
        let mut sector = 512;
        for path in &extents.files {
            let mut options = std::fs::OpenOptions::new();
            options.read(true).custom_flags(libc::O_DIRECT);
            let refused = |error: std::io::Error| match error.raw_os_error() {
                Some(libc::EINVAL) => ProbeError::NoDirect { path: path.clone(), error },
                _ => ProbeError::io(path, error),
            };
            let file = options.open(path).map_err(refused)?;
            let mut buffer = super::aligned::AlignedBytes::new(4096);
            if sector == 512 && file.read_at(&mut buffer.as_mut_slice()[..512], 0).is_err() {
                sector = 4096;
            }
            file.read_at(buffer.as_mut_slice(), 0).map_err(refused)?;
            files.push(file);
        }
        Ok(Direct { extents, files, sector })
    }

    /// Smallest read that the disk takes, bytes.
    pub fn sector(&self) -> u64 {
        self.sector
    }

    /// Where the rows lie.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    /// Reads the rows of `ids` one by one, sorted by offset, `depth` reads outstanding, into `out` in the order of `ids`.
    ///
    /// A read covers the `sector`-byte sectors that hold a row (or a part of it); none serves two rows. `executor`: io_uring,
    /// and threads where it is refused, if `None`.
    pub fn random(
        &self,
        ids: &[i64],
        out: &mut [u8],
        sector: u64,
        depth: usize,
        executor: Option<Executor>,
    ) -> Result<Reading, ProbeError> {
        self.extents.check(ids, out)?;
        check_depth(depth)?;
        if sector < self.sector || !sector.is_power_of_two() || sector > 1 << 20 {
            let what = format!("sectors of {sector} bytes: give a power of two from {} to 1048576", self.sector);
            return Err(ProbeError::argument(what));
        }
        let start = Instant::now();
        let reads = self.plan(ids, sector);
        let planning = start.elapsed();
        let what = format!("{sector}-byte sectors");
        self.run(&reads, out, depth, executor, planning, &what)
    }

    /// Reads about `bytes` of the extents in file order in blocks, from `start` bytes into them, around the end if need be.
    pub fn sequential(
        &self,
        start: u64,
        bytes: u64,
        block: u32,
        depth: usize,
        executor: Option<Executor>,
    ) -> Result<Reading, ProbeError> {
        check_depth(depth)?;
        if block < 4096 || !block.is_power_of_two() || block > 1 << 26 {
            let what = format!("blocks of {block} bytes: give a power of two from 4096 to 67108864");
            return Err(ProbeError::argument(what));
        }
        let blocks = self.blocks(block);
        if blocks.is_empty() {
            return Err(ProbeError::argument(format!("the table is smaller than one block of {block} bytes")));
        }
        let count = (bytes.div_ceil(u64::from(block)).max(1) as usize).min(blocks.len());
        let first = (start / u64::from(block)) as usize % blocks.len();
        let chosen = blocks.iter().cycle().skip(first).take(count);
        let reads: Vec<SectorRead> = chosen
            .map(|&(file, offset)| SectorRead { file, skip: block, take: 0, len: block, offset, out_at: 0 })
            .collect();
        let what = format!("{} KiB blocks", block >> 10);
        self.run(&reads, &mut [], depth, executor, Duration::ZERO, &what)
    }

    /// (file, offset) of every whole block of the extents, in file order.
    pub(super) fn blocks(&self, block: u32) -> Vec<(u32, u64)> {
        let mut blocks = Vec::new();
        for (file, offset, bytes) in self.extents.ranges() {
            let first = offset.next_multiple_of(4096);
            for at in (first..(offset + bytes).saturating_sub(u64::from(block) - 1)).step_by(block as usize) {
                blocks.push((file as u32, at));
            }
        }
        blocks
    }

    pub(super) fn file(&self, index: u32) -> &File {
        &self.files[index as usize]
    }

    pub(super) fn path(&self, index: u32) -> &Path {
        &self.extents.files[index as usize]
    }

    fn plan(&self, ids: &[i64], sector: u64) -> Vec<SectorRead> {
        let row_bytes = self.extents.row_bytes();
        let mut reads = Vec::with_capacity(ids.len() * self.extents.parts.len());
        let mut column = 0;
        for part in &self.extents.parts {
            for (position, &id) in ids.iter().enumerate() {
                let (file, at) = part.address(id as u64);
                let offset = at / sector * sector;
                let end = (at + part.width as u64).next_multiple_of(sector);
                reads.push(SectorRead {
                    file: file as u32,
                    skip: (at - offset) as u32,
                    take: part.width as u32,
                    len: (end - offset) as u32,
                    offset,
                    out_at: position * row_bytes + column,
                });
            }
            column += part.width;
        }
        reads.sort_unstable_by_key(|read| (read.file, read.offset));
        reads
    }

    fn run(
        &self,
        reads: &[SectorRead],
        out: &mut [u8],
        depth: usize,
        executor: Option<Executor>,
        planning: Duration,
        what: &str,
    ) -> Result<Reading, ProbeError> {
        let slot = reads.iter().map(|read| read.len).max().unwrap_or(0) as usize;
        let failed = |(file, error): (u32, std::io::Error)| ProbeError::io(&self.extents.files[file as usize], error);
        let threads = depth.min(MOST_THREADS);
        let with_threads = || format!("{threads} pread threads direct, {what}");
        let (elapsed, path) = match executor {
            Some(Executor::Threads) => {
                (workers::run(&self.files, reads, threads, slot, out).map_err(failed)?, with_threads())
            }
            None | Some(Executor::IoUring) => match Ring::new(&self.files, depth, slot) {
                Ok(ring) => {
                    let setup = ring.setup();
                    let elapsed = ring.run(reads, out).map_err(failed)?;
                    (elapsed, format!("io_uring direct ({setup}), {what}, depth {depth}"))
                }
                Err(error) if executor.is_some() => return Err(ProbeError::NoRing { error }),
                Err(error) => {
                    let elapsed = workers::run(&self.files, reads, threads, slot, out).map_err(failed)?;
                    (elapsed, format!("{} (io_uring refused: {error})", with_threads()))
                }
            },
        };
        Ok(Reading {
            elapsed: planning + elapsed,
            reads: reads.len() as u64,
            bytes: reads.iter().map(|read| u64::from(read.len)).sum(),
            path,
        })
    }
}

fn check_depth(depth: usize) -> Result<(), ProbeError> {
    if (1..=4096).contains(&depth) {
        return Ok(());
    }
    Err(ProbeError::argument(format!("{depth} outstanding reads: give 1 to 4096")))
}
