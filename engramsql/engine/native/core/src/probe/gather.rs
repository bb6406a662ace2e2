//! The memory's limit for rows: a tight loop that copies them out of mapped files. Unsafe code lives here.

use super::clock::together;
use super::extents::Extents;
use super::{ProbeError, Reading};
use memmap2::{Advice, Mmap};
use std::collections::HashMap;
use std::fs::File;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Rows between the one that is prefetched and the one that is copied, where rows are prefetched.
const AHEAD: usize = 12;

/// Mapped files of a table, for rows that are in memory.
pub struct MappedRows {
    extents: Extents,
    maps: Vec<Mmap>,
    /// The fastest loop for an output of so many bytes and so many threads, found by trial.
    fastest: Mutex<HashMap<(usize, usize), Loop>>,
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
            // Only a hint: where the system takes it, pages come in by the 2 MiB. Random advice would be a disaster: a cold
            // file is then populated with one read per page (400 MB in 158 s instead of 0.3).
            #[cfg(target_os = "linux")]
            let _ = map.advise(Advice::HugePage);
            maps.push(map);
        }
        for (file, offset, bytes) in extents.ranges() {
            if offset.checked_add(bytes).is_none_or(|end| end > maps[file].len() as u64) {
                let what = format!("'{}' is shorter than its rows", extents.files[file].display());
                return Err(ProbeError::argument(what));
            }
        }
        let probe = MappedRows { extents, maps, fastest: Mutex::default() };
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
    ///
    /// Which loop is fastest differs between CPUs and sizes, so the first call for a size tries all of them.
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
        let candidates = Loop::candidates(&widths, out);
        let key = (out.len(), threads);
        let known = self.fastest.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        // A loop for an aligned output does not serve one that is not.
        let chosen = match known.filter(|known| candidates.contains(known)) {
            Some(known) => known,
            None => {
                let mut times = vec![Duration::MAX; candidates.len()];
                for position in (0..candidates.len()).chain((0..candidates.len()).rev()) {
                    let (time, _) = self.copy(candidates[position], &sources, &widths, out, threads);
                    times[position] = times[position].min(time);
                }
                let best = (0..candidates.len()).min_by_key(|&position| times[position]).unwrap_or(0);
                self.fastest.lock().unwrap_or_else(PoisonError::into_inner).insert(key, candidates[best]);
                candidates[best]
            }
        };
        let (elapsed, used) = self.copy(chosen, &sources, &widths, out, threads);
        let unit = if used == 1 { "thread" } else { "threads" };
        Ok(Reading {
            elapsed,
            reads: sources.len() as u64,
            bytes: out.len() as u64,
            path: format!("mapped copy loop, {}, {used} {unit}", chosen.name()),
        })
    }

    /// Time of one loop, and the threads that had work.
    fn copy(
        &self,
        chosen: Loop,
        sources: &[Source],
        widths: &[usize],
        out: &mut [u8],
        threads: usize,
    ) -> (Duration, usize) {
        let each = (sources.len() / widths.len()).div_ceil(threads).max(1);
        let row_bytes: usize = widths.iter().sum();
        let chunks = sources.chunks(each * widths.len()).zip(out.chunks_mut(each * row_bytes));
        let workers: Vec<_> = chunks
            .map(|(sources, out)| {
                // SAFETY: every source was taken from a slice of its part's width in a map that `self` keeps, and a loop was
                // chosen for these widths and this output; a chunk starts at a whole row of it.
                move || unsafe { chosen.copy(sources, widths, out) }
            })
            .collect();
        let used = workers.len().max(1);
        (together(workers).0, used)
    }
}

/// How bytes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    /// As the system library copies; any width, any address.
    Bytes,
    /// Vectors of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    Avx,
    /// Vectors of 32 bytes around the caches.
    #[cfg(target_arch = "x86_64")]
    AvxStreaming,
}

/// A way to copy rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Loop {
    store: Store,
    prefetch: bool,
}

impl Loop {
    /// The loops that the CPU, the widths and the address of the output allow.
    fn candidates(widths: &[usize], out: &[u8]) -> Vec<Loop> {
        let mut stores = vec![Store::Bytes];
        #[cfg(target_arch = "x86_64")]
        if widths.iter().all(|width| width % 32 == 0)
            && out.as_ptr().align_offset(32) == 0
            && std::arch::is_x86_feature_detected!("avx")
        {
            stores.extend([Store::Avx, Store::AvxStreaming]);
        }
        let _ = (widths, out);
        stores.into_iter().flat_map(|store| [true, false].map(|prefetch| Loop { store, prefetch })).collect()
    }

    fn name(self) -> String {
        let store = match self.store {
            Store::Bytes => "memcpy",
            #[cfg(target_arch = "x86_64")]
            Store::Avx => "32-byte stores",
            #[cfg(target_arch = "x86_64")]
            Store::AvxStreaming => "32-byte streaming stores",
        };
        if self.prefetch { format!("{store}, prefetch {AHEAD} ahead") } else { store.to_owned() }
    }

    /// # Safety
    /// Source number `i` must be readable for `widths[i % widths.len()]` bytes, and `candidates` must have offered this loop for
    /// the widths and for an output in which `out` starts at a whole row.
    unsafe fn copy(self, sources: &[Source], widths: &[usize], out: &mut [u8]) {
        match self.store {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: AVX was detected; 32 divides every width and the output's address (`candidates`), and so the address of
            // every row and part in it. The sources are the caller's part.
            Store::AvxStreaming => unsafe { copy_avx::<true>(sources, widths, out, self.prefetch) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Store::Avx => unsafe { copy_avx::<false>(sources, widths, out, self.prefetch) },
            Store::Bytes => {
                let mut rest = out;
                let mut part = 0;
                for (position, source) in sources.iter().enumerate() {
                    if self.prefetch {
                        prefetch(sources, widths, position);
                    }
                    let (target, after) = rest.split_at_mut(widths[part]);
                    part = if part + 1 == widths.len() { 0 } else { part + 1 };
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
unsafe fn copy_avx<const STREAM: bool>(sources: &[Source], widths: &[usize], out: &mut [u8], ahead: bool) {
    use std::arch::x86_64::{_mm_sfence, _mm256_loadu_si256, _mm256_store_si256, _mm256_stream_si256};
    let mut at = 0;
    let mut part = 0;
    for (position, source) in sources.iter().enumerate() {
        if ahead {
            prefetch(sources, widths, position);
        }
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
