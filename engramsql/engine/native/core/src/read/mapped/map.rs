//! Maps of whole files: creating them, asking what is resident, prefetching from them. Unsafe code lives here.

use super::bus_error::{self, Guarded};
use std::fs::File;

/// What any device reads for one hint: Linux's default readahead.
const HINT_BYTES: u64 = 128 << 10;

/// A read-only map of a whole file, registered with the bus error handler for as long as it lives.
pub(crate) struct FileMap {
    // Before the map: a range is withdrawn from the handler before its addresses can belong to anyone else.
    guard: Guarded,
    map: memmap2::Mmap,
}

impl FileMap {
    /// Maps `file` as long as it is now.
    pub(crate) fn open(file: &File) -> std::io::Result<FileMap> {
        // SAFETY: the map is read only and never written through. Its length is the file's at this moment; a file that
        // is shortened afterwards is noticed by FileWatch before a batch touches the map, or else by the bus error
        // handler, which keeps the addresses valid and marks the map as failed. A file that is written to in place
        // can change under a shared slice; rows are bytes without invariants, and FileWatch refuses the next batch.
        let map = unsafe { memmap2::MmapOptions::new().map(file)? };
        // Rows are scattered: readahead would read megabytes for each (4-7 ms per cold row instead of 0.1).
        // Only a hint: where it is refused, rows are read all the same.
        let _ = map.advise(memmap2::Advice::Random);
        let guard = Guarded::new(&map);
        Ok(FileMap { guard, map })
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Asks the system to read `bytes` from `offset` ahead; a hint, so what it answers does not matter.
    ///
    /// Linux reads no more for one hint than the larger of the device's readahead and its largest transfer, 128 KiB to
    /// some MiB, and forgets the rest, which would come page by page (force_page_cache_ra in its mm/readahead.c).
    pub(crate) fn announce(&self, offset: u64, bytes: u64) {
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let next = end.min((at / HINT_BYTES + 1) * HINT_BYTES);
            let _ = self.map.advise_range(memmap2::Advice::WillNeed, at as usize, (next - at) as usize);
            at = next;
        }
    }

    /// Whether a page of the map could not be read; its bytes are then not all the file's.
    pub(super) fn failed(&self) -> bool {
        self.guard.failed()
    }

    /// Whether every byte that was read from the map so far was the file's.
    pub(crate) fn is_whole(&self) -> bool {
        // Asked first: it orders the reads of mapped bytes before the question.
        !bus_error::any() || !self.failed()
    }

    /// Bytes of `offset..offset + bytes` in the page cache, by `mincore`; `None` where the system does not tell.
    #[cfg(target_os = "linux")]
    pub(super) fn resident_bytes(&self, offset: u64, bytes: u64) -> Option<u64> {
        const PAGES: u64 = 1 << 16;
        let page = rustix::param::page_size() as u64;
        let (begin, end) = (offset, (offset + bytes).min(self.map.len() as u64));
        let mut resident = 0;
        let mut at = begin / page * page;
        // No longer than needed: this is asked for single rows too.
        let mut flags = vec![0u8; end.saturating_sub(at).div_ceil(page).min(PAGES) as usize];
        while at < end {
            let length = (end - at).min(PAGES * page);
            // SAFETY: `at..at + length` lies inside the map and begins on a page; `flags` has a byte for each page of
            // it. The call reads page tables, never the mapped bytes.
            let result = unsafe {
                let address = self.map.as_ptr().add(at as usize).cast_mut().cast();
                libc::mincore(address, length as usize, flags.as_mut_ptr())
            };
            if result != 0 {
                return None;
            }
            for (index, flag) in flags[..length.div_ceil(page) as usize].iter().enumerate() {
                if flag & 1 == 1 {
                    let first = at + index as u64 * page;
                    resident += (first + page).min(end) - first.max(begin);
                }
            }
            at += length;
        }
        Some(resident)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn resident_bytes(&self, _offset: u64, _bytes: u64) -> Option<u64> {
        None
    }
}

/// Asks for every cache line of `row`; a hint without effect on results.
#[inline(always)]
pub(crate) fn prefetch(row: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching needs no valid address, and these are valid; SSE is part of x86_64.
        let prefetch = |byte: &u8| unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
        row.iter().step_by(64).for_each(prefetch);
        // Rows are not aligned: the last byte may lie one line further.
        row.last().into_iter().for_each(prefetch);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

#[cfg(test)]
mod tests {
    use super::super::bus_error::any;
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_file_shortened_under_its_map_marks_the_map_and_spares_the_process() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 << 10).unwrap();
        let (lost, kept) = (FileMap::open(&file).unwrap(), FileMap::open(&file).unwrap());
        let sum = |map: &FileMap| map.bytes().iter().map(|&byte| u64::from(byte)).sum::<u64>();
        assert_eq!((sum(&lost), lost.failed()), (0, false));
        file.set_len(0).unwrap();
        assert_eq!(std::hint::black_box(sum(&lost)), 0);
        assert!(lost.failed());
        // Only the map that was touched.
        assert!(!kept.failed());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn all_that_is_announced_is_read_ahead() {
        let file = tempfile::tempfile().unwrap();
        let bytes = 40 << 20;
        std::io::Write::write_all(&mut &file, &vec![1; bytes as usize]).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let map = FileMap::open(&file).unwrap();
        // From the middle of a hint to the middle of another.
        map.announce(4096, bytes - 8192);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while map.resident_bytes(4096, bytes - 8192) != Some(bytes - 8192) {
            assert!(std::time::Instant::now() < deadline, "only {:?} of {bytes} bytes", map.resident_bytes(0, bytes));
            std::thread::yield_now();
        }
    }

    #[test]
    fn readers_survive_a_file_that_shrinks_while_they_read() {
        for _ in 0..20 {
            let file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut &file, &vec![1; 1 << 20]).unwrap();
            let map = Arc::new(FileMap::open(&file).unwrap());
            let stop = Arc::new(AtomicBool::new(false));
            let readers: Vec<_> = (0..3)
                .map(|_| {
                    let (map, stop) = (map.clone(), stop.clone());
                    std::thread::spawn(move || {
                        while !stop.load(Ordering::Relaxed) {
                            let whole = map.bytes().iter().step_by(64).all(|&byte| byte == 1);
                            // Whoever sees a byte that is not the file's is told.
                            assert!(whole || (any() && map.failed()));
                        }
                    })
                })
                .collect();
            // On a page border: the rest of a page that is partly gone reads as zeros without a fault, which only the file
            // itself can tell.
            file.set_len(64 << 10).unwrap();
            while !map.failed() {
                std::hint::spin_loop();
            }
            stop.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        }
    }
}
