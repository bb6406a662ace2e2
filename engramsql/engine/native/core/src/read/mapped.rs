//! Rows from memory maps: the fast path while the page cache holds the rows, correct always.

use super::{FileWatch, Locator, ReadError, ReadPlan, Reader, RowBytes, RowSink};
use crate::source::Layout;
use std::fs::File;
use std::path::Path;

/// Rows whose bytes are located and prefetched together before the first is used; 32 is enough to cover a cache miss
/// and small enough to stay in registers and L1.
const GROUP: usize = 32;

/// Reads rows through private read-only maps of the table's files. Holds no file descriptors.
pub struct MappedReader {
    watch: FileWatch,
    maps: Vec<map::FileMap>,
    parts: Vec<MappedPart>,
}

struct MappedPart {
    width: usize,
    locator: Locator,
}

impl MappedReader {
    /// Maps every file of `layout`.
    pub fn open(layout: &Layout) -> Result<MappedReader, ReadError> {
        let watch = FileWatch::new(&layout.files)?;
        let maps = layout.files.iter().map(|path| map_file(path)).collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<_> =
            layout.parts.iter().map(|part| MappedPart { width: part.width, locator: Locator::new(part) }).collect();
        // Every extent is proven to lie inside its map once, here; afterwards slicing cannot fail.
        for part in &parts {
            for segment in part.locator.segments() {
                let end = segment.offset + segment.rows * part.width as u64;
                let (path, _) = &watch.files()[segment.file];
                if (maps[segment.file].bytes().len() as u64) < end {
                    let missing = end - maps[segment.file].bytes().len() as u64;
                    let what = format!("was truncated ({missing} bytes missing)");
                    return Err(ReadError::FileChanged { path: path.clone(), what });
                }
            }
        }
        Ok(MappedReader { watch, maps, parts })
    }

    #[inline]
    fn row(&self, part: &MappedPart, id: u64) -> &[u8] {
        let segment = &part.locator.segments()[part.locator.segment(id)];
        let start = (segment.offset + (id - segment.first_row) * part.width as u64) as usize;
        &self.maps[segment.file].bytes()[start..start + part.width]
    }
}

impl Reader for MappedReader {
    fn name(&self) -> &'static str {
        "mapped"
    }

    fn read(&self, plan: &ReadPlan<'_>, sink: RowSink<'_>) -> Result<(), ReadError> {
        self.watch.check()?;
        let empty: &[u8] = &[];
        let mut group = [RowBytes { values: empty, scales: empty }; GROUP];
        for (index, ids) in plan.ids().chunks(GROUP).enumerate() {
            for (row, &id) in group.iter_mut().zip(ids) {
                row.values = self.row(&self.parts[0], id as u64);
                map::prefetch(row.values);
                if let Some(scales) = self.parts.get(1) {
                    row.scales = self.row(scales, id as u64);
                    map::prefetch(row.scales);
                }
            }
            for (offset, row) in group[..ids.len()].iter().enumerate() {
                sink(index * GROUP + offset, *row);
            }
        }
        Ok(())
    }

    fn resident_bytes(&self, file: usize, offset: u64, bytes: u64) -> Option<u64> {
        self.maps[file].resident_bytes(offset, bytes)
    }
}

fn map_file(path: &Path) -> Result<map::FileMap, ReadError> {
    let io = |e| ReadError::io(path, e);
    map::FileMap::open(&File::open(path).map_err(io)?).map_err(io)
}

/// The unsafe part: creating maps, and prefetching from them.
mod map {
    use std::fs::File;

    /// A read-only map of a whole file.
    pub(super) struct FileMap(memmap2::Mmap);

    impl FileMap {
        pub(super) fn open(file: &File) -> std::io::Result<FileMap> {
            // SAFETY: the map is read only and never written through. Its length is the file's at this moment; a file
            // that is shortened afterwards is noticed by FileWatch before a batch touches the map. What remains is a
            // file shortened while a batch is being copied, which the system answers with SIGBUS; see
            // docs/decisions.md, "Mapped files".
            let map = unsafe { memmap2::MmapOptions::new().map(file)? };
            // Rows are scattered: readahead would read megabytes for each (4-7 ms per cold row instead of 0.1).
            #[cfg(unix)]
            map.advise(memmap2::Advice::Random)?;
            Ok(FileMap(map))
        }

        #[inline]
        pub(super) fn bytes(&self) -> &[u8] {
            &self.0
        }
    }

    impl FileMap {
        /// Bytes of `offset..offset + bytes` in the page cache, by `mincore`; `None` where the system does not tell.
        #[cfg(target_os = "linux")]
        pub(super) fn resident_bytes(&self, offset: u64, bytes: u64) -> Option<u64> {
            const PAGES: usize = 1 << 16;
            let page = rustix::param::page_size() as u64;
            let (begin, end) = (offset, (offset + bytes).min(self.0.len() as u64));
            let mut resident = 0;
            let mut flags = vec![0u8; PAGES];
            let mut at = begin / page * page;
            while at < end {
                let length = (end - at).min(PAGES as u64 * page);
                // SAFETY: `at..at + length` lies inside the map and begins on a page; `flags` has a byte for each page
                // of it. The call reads page tables, never the mapped bytes.
                let result = unsafe {
                    libc::mincore(
                        self.0.as_ptr().add(at as usize).cast_mut().cast(),
                        length as usize,
                        flags.as_mut_ptr(),
                    )
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
    #[inline]
    pub(super) fn prefetch(row: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        for line in row.chunks(64) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: prefetching needs no valid address, and this one is valid; SSE is part of x86_64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = row;
    }
}
