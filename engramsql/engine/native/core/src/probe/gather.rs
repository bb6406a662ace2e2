//! The memory's limit for rows: a tight loop that copies them out of mapped files. Unsafe code lives here.

use super::clock::together;
use super::extents::Extents;
use super::{ProbeError, Reading};
use memmap2::{Advice, Mmap};
use std::fs::File;

/// Rows between the one that is prefetched and the one that is copied.
const AHEAD: usize = 12;
/// Outputs beyond this are written around the caches: they would not stay in them anyway.
const STREAM_FROM: usize = 1 << 20;

/// Mapped files of a table, for rows that are in memory.
pub struct MappedRows {
    extents: Extents,
    maps: Vec<Mmap>,
}

/// One copy: a source address within a live map, and nothing else.
#[derive(Clone, Copy)]
struct Source(*const u8);

// SAFETY: a Source is only read through, and only while `MappedRows` keeps its map.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

impl MappedRows {
    /// Maps every file and brings rows `0..rows` into memory.
    ///
    /// The files must not be shortened while the probe lives: a page that is gone would end the process.
    pub fn open(extents: Extents, rows: u64) -> Result<MappedRows, ProbeError> {
        let mut maps = Vec::with_capacity(extents.files.len());
        for path in &extents.files {
            let file = File::open(path).map_err(|error| ProbeError::io(path, error))?;
            // SAFETY: read only; rows are bytes without invariants. That nobody shortens the file is the caller's part, see above.
            let map = unsafe { Mmap::map(&file) }.map_err(|error| ProbeError::io(path, error))?;
            // Only a hint.
            let _ = map.advise(Advice::Random);
            maps.push(map);
        }
        for (file, offset, bytes) in extents.ranges() {
            if offset.checked_add(bytes).is_none_or(|end| end > maps[file].len() as u64) {
                let what = format!("'{}' is shorter than its rows", extents.files[file].display());
                return Err(ProbeError::argument(what));
            }
        }
        let probe = MappedRows { extents, maps };
        probe.populate(rows.min(probe.extents.rows()))?;
        Ok(probe)
    }

    /// Where the rows lie.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    fn populate(&self, rows: u64) -> Result<(), ProbeError> {
        for part in &self.extents.parts {
            let mut row = 0;
            while row < rows {
                // Megabytes at a time, within one extent: the next row that lies elsewhere begins the next range.
                let (file, offset) = part.address(row);
                let mut count = (rows - row).min(1 << 16);
                while count > 1 && part.address(row + count - 1) != (file, offset + (count - 1) * part.width as u64) {
                    count /= 2;
                }
                let (offset, bytes) = (offset as usize, count as usize * part.width);
                if self.maps[file].advise_range(Advice::PopulateRead, offset, bytes).is_err() {
                    // Kernels before 5.14.
                    let touched = self.maps[file][offset..offset + bytes].iter().step_by(4096);
                    std::hint::black_box(touched.fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
                }
                row += count;
            }
        }
        Ok(())
    }

    /// Copies the rows of `ids` to `out` with `threads` threads; finding their addresses is not in the time.
    pub fn gather(&self, ids: &[i64], out: &mut [u8], threads: usize) -> Result<Reading, ProbeError> {
        self.extents.check(ids, out)?;
        if !(1..=1024).contains(&threads) {
            return Err(ProbeError::argument(format!("{threads} threads: give 1 to 1024")));
        }
        let widths: Vec<usize> = self.extents.parts.iter().map(|part| part.width).collect();
        // Row-major: the parts of a row lie side by side in the output.
        let mut sources = Vec::with_capacity(ids.len() * widths.len());
        for &id in ids {
            for part in &self.extents.parts {
                let (file, offset) = part.address(id as u64);
                sources.push(Source(self.maps[file][offset as usize..][..part.width].as_ptr()));
            }
        }
        let row_bytes = self.extents.row_bytes();
        let stream = out.len() >= STREAM_FROM;
        let kernel = Kernel::choose(&widths, out, stream);
        let each = ids.len().div_ceil(threads).max(1);
        let chunks = sources.chunks(each * widths.len()).zip(out.chunks_mut(each * row_bytes));
        let workers: Vec<_> = chunks
            .map(|(sources, out)| {
                let widths = &widths;
                // SAFETY: every source was taken from a slice of its part's width in a map that `self` keeps.
                move || unsafe { kernel.copy(sources, widths, out) }
            })
            .collect();
        let used = workers.len().max(1);
        let (elapsed, _) = together(workers);
        let store = if kernel.streams() { "streaming stores" } else { "plain stores" };
        let unit = if used == 1 { "thread" } else { "threads" };
        Ok(Reading {
            elapsed,
            reads: sources.len() as u64,
            bytes: (ids.len() * row_bytes) as u64,
            path: format!("mapped copy loop, {} {store}, {used} {unit}", kernel.name()),
        })
    }
}

/// How bytes are copied.
#[derive(Clone, Copy)]
enum Kernel {
    /// Whole vectors of 32 bytes, aligned in the output.
    #[cfg(target_arch = "x86_64")]
    Avx { stream: bool },
    /// Any width.
    Bytes,
}

impl Kernel {
    fn choose(widths: &[usize], out: &[u8], stream: bool) -> Kernel {
        #[cfg(target_arch = "x86_64")]
        if widths.iter().all(|width| width % 32 == 0)
            && out.as_ptr().align_offset(32) == 0
            && std::arch::is_x86_feature_detected!("avx")
        {
            return Kernel::Avx { stream };
        }
        let _ = (widths, out, stream);
        Kernel::Bytes
    }

    fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx { .. } => "32-byte",
            Kernel::Bytes => "memcpy",
        }
    }

    fn streams(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx { stream } => stream,
            Kernel::Bytes => false,
        }
    }

    /// # Safety
    /// Source number `i` must be readable for `widths[i % widths.len()]` bytes.
    unsafe fn copy(self, sources: &[Source], widths: &[usize], out: &mut [u8]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: AVX was detected; 32 divides every width and the output's address (`choose`), and so the address of every
            // row and part in it. The sources are the caller's part.
            Kernel::Avx { stream: true } => unsafe { copy_avx::<true>(sources, widths, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kernel::Avx { stream: false } => unsafe { copy_avx::<false>(sources, widths, out) },
            Kernel::Bytes => {
                let mut rest = out;
                for (position, source) in sources.iter().enumerate() {
                    prefetch(sources, widths, position);
                    let (target, after) = rest.split_at_mut(widths[position % widths.len()]);
                    // SAFETY: readable for the part's width, by this function's contract.
                    target.copy_from_slice(unsafe { std::slice::from_raw_parts(source.0, target.len()) });
                    rest = after;
                }
            }
        }
    }
}

#[inline(always)]
fn prefetch(sources: &[Source], widths: &[usize], position: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(source) = sources.get(position + AHEAD) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let width = widths[(position + AHEAD) % widths.len()];
        for at in (0..width + 63).step_by(64) {
            // SAFETY: prefetching needs no valid address; SSE is part of x86_64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(source.0.wrapping_add(at).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (sources, widths, position);
}

/// # Safety
/// The CPU has AVX; source `i` is readable for its width; 32 divides every width and the address of `out`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_avx<const STREAM: bool>(sources: &[Source], widths: &[usize], out: &mut [u8]) {
    use std::arch::x86_64::{_mm_sfence, _mm256_loadu_si256, _mm256_store_si256, _mm256_stream_si256};
    let mut at = 0;
    let mut part = 0;
    for (position, source) in sources.iter().enumerate() {
        prefetch(sources, widths, position);
        let width = widths[part];
        part = if part + 1 == widths.len() { 0 } else { part + 1 };
        let target = &mut out[at..at + width];
        at += width;
        for offset in (0..width).step_by(32) {
            // SAFETY: offset + 32 <= width on both sides, the load takes any alignment, and the target is aligned to 32 by
            // this function's contract.
            unsafe {
                let bytes = _mm256_loadu_si256(source.0.add(offset).cast());
                let target = target.as_mut_ptr().add(offset).cast();
                if STREAM { _mm256_stream_si256(target, bytes) } else { _mm256_store_si256(target, bytes) }
            }
        }
    }
    if STREAM {
        // Streaming stores are not ordered with what follows.
        _mm_sfence();
    }
}
