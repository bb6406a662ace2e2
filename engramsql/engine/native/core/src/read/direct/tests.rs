//! All readers against the bytes that were written, on layouts nobody would think of; faults that no disk delivers on demand.

use super::files::DirectFiles;
use super::handover::Handover;
use super::order::Order;
use super::planner::{Planner, Shape};
use super::queue::{Completion, Queue, Request, drive};
use super::stream::RowStream;
use crate::read::tests::readers;
use crate::read::{FileWatch, ReadError, ReadPlan, Row, Tally, stream_file};
use crate::source::{Extent, FileStamp, Layout, Part};
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

/// Random numbers of a seed (xorshift64; Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A random layout in `directory` and, per part, all rows back to back: up to 5 files, 1 or 2 parts, 1 to 700 bytes a row,
/// extents of different lengths at odd offsets, several in one file.
fn random_layout(random: &mut Random, directory: &Path) -> (Layout, Vec<Vec<u8>>) {
    let rows = 1 + random.below(3000);
    let mut contents: Vec<Vec<u8>> = vec![Vec::new(); 1 + random.below(5) as usize];
    let mut parts = Vec::new();
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(2) {
        let widest = [30, 700][random.below(2) as usize];
        let width = 1 + random.below(widest) as usize;
        let data: Vec<u8> = (0..rows as usize * width).map(|_| random.next() as u8).collect();
        let (mut first_row, mut extents) = (0, Vec::new());
        while first_row < rows {
            let count = (1 + random.below(1 + rows / 3)).min(rows - first_row);
            let file = random.below(contents.len() as u64) as usize;
            let gap = random.below(1500);
            contents[file].extend((0..gap).map(|_| 0xEE));
            let (shard, offset) = (extents.len() as u32, contents[file].len() as u64);
            extents.push(Extent { shard, file, first_row, rows: count, offset });
            contents[file].extend(&data[first_row as usize * width..(first_row + count) as usize * width]);
            first_row += count;
        }
        parts.push(Part::new(width, extents));
        bytes.push(data);
    }
    let write = |(index, content): (usize, &Vec<u8>)| {
        let path = directory.join(format!("file{index}"));
        fs::write(&path, content).unwrap();
        (path.clone(), FileStamp::of(&path).unwrap())
    };
    (Layout { files: contents.iter().enumerate().map(write).collect(), rows, parts }, bytes)
}

fn random_ids(random: &mut Random, rows: u64) -> Vec<i64> {
    let count = [0, 1, 2, 16, 300, 5000][random.below(6) as usize];
    // All over the table, or in a corner of it with many duplicates.
    let range = if random.below(2) == 0 { rows } else { 1 + random.below(rows.min(40)) };
    let first = random.below(rows - range + 1);
    (0..count).map(|_| (first + random.below(range)) as i64).collect()
}

/// Reads `ids` and compares every byte with what was written.
fn compare(layout: &Layout, bytes: &[Vec<u8>], ids: &[i64], read: impl FnOnce(&ReadPlan<'_>, &mut dyn FnMut(Row<'_>))) {
    let mut came = vec![false; ids.len()];
    read(&ReadPlan::new(layout, ids).unwrap(), &mut |row| {
        assert!(!std::mem::replace(&mut came[row.position], true), "a position came twice");
        let id = ids[row.position] as usize;
        for (part, (bytes, found)) in layout.parts.iter().zip(bytes.iter().zip([row.values, row.scales])) {
            assert!(found == &bytes[id * part.width()..][..part.width()], "row {id}");
        }
        assert!(layout.parts.len() == 2 || row.scales.is_empty());
    });
    assert!(came.into_iter().all(|came| came), "a position is missing");
}

#[test]
fn all_readers_agree_on_random_layouts() {
    let random = &mut Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..40 {
        let directory = tempfile::tempdir().unwrap();
        let (layout, bytes) = random_layout(random, directory.path());
        for readers in readers(&layout) {
            for _ in 0..3 {
                let ids = random_ids(random, layout.rows);
                compare(&layout, &bytes, &ids, |plan, mut sink| readers.read(plan, &mut sink).unwrap());
            }
        }
    }
}

#[test]
fn four_threads_share_one_reader() {
    let directory = tempfile::tempdir().unwrap();
    let (layout, bytes) = random_layout(&mut Random(7), directory.path());
    for readers in readers(&layout) {
        std::thread::scope(|scope| {
            for seed in 1..5 {
                let (layout, bytes, readers) = (&layout, &bytes, &readers);
                scope.spawn(move || {
                    let random = &mut Random(seed);
                    for _ in 0..30 {
                        let ids = random_ids(random, layout.rows);
                        compare(layout, bytes, &ids, |plan, mut sink| readers.read(plan, &mut sink).unwrap());
                    }
                });
            }
        });
    }
}

#[test]
fn a_panic_of_the_sink_leaves_a_reader_that_works() {
    let directory = tempfile::tempdir().unwrap();
    let random = &mut Random(3);
    let (layout, bytes) = random_layout(random, directory.path());
    let ids: Vec<i64> = (0..layout.rows as i64).collect();
    for readers in readers(&layout) {
        let panics = std::panic::AssertUnwindSafe(|| {
            let plan = ReadPlan::new(&layout, &ids).unwrap();
            readers.read(&plan, &mut |_: Row<'_>| std::panic::resume_unwind(Box::new("the sink")))
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        compare(&layout, &bytes, &ids, |plan, mut sink| readers.read(plan, &mut sink).unwrap());
    }
}

#[test]
fn a_layout_beyond_the_end_of_its_file_is_an_error_that_names_it() {
    // The stamp is right and the extent is not: as if the file had been shortened unseen.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("short");
    fs::write(&path, vec![1; 1000]).unwrap();
    let extent = Extent { shard: 0, file: 0, first_row: 0, rows: 100, offset: 0 };
    let files = vec![(path.clone(), FileStamp::of(&path).unwrap())];
    let layout = Layout { files, rows: 100, parts: vec![Part::new(16, vec![extent])] };
    let files = Arc::new(DirectFiles::look(Arc::new(FileWatch::new(&layout.files).unwrap())));
    let readers: Vec<Box<dyn crate::read::Reader>> =
        vec![Box::new(super::PreadReader::open(files.clone())), Box::new(super::SequentialReader::open(files.clone()))];
    let ring = super::IoUringReader::open(files).ok().map(|reader| Box::new(reader) as Box<dyn crate::read::Reader>);
    for reader in readers.into_iter().chain(ring) {
        let read = |ids: &[i64]| {
            let plan = ReadPlan::new(&layout, ids).unwrap();
            reader.read(&plan, &mut |row: Row<'_>| assert_eq!(row.values, [1; 16]), &mut Tally::default())
        };
        assert!(read(&[0, 61]).is_ok());
        for ids in [&[62][..], &[99], &[0, 1, 99, 5]] {
            let error = read(ids).unwrap_err().to_string();
            assert!(error.contains("short' failed: the file ends before byte"), "{error}");
        }
    }
}

/// Reads files in memory with every fault that a system may show: short reads, interruptions, any order, late answers,
/// refused starts, and after `left` reads an error.
struct Unreliable<'a> {
    random: Random,
    contents: &'a [Vec<u8>],
    alignment: usize,
    buffers: Vec<Vec<u8>>,
    flying: Vec<Request>,
    left: usize,
}

impl Queue for Unreliable<'_> {
    fn slots(&self) -> usize {
        self.buffers.len()
    }

    fn push(&mut self, request: Request) -> std::result::Result<bool, ReadError> {
        assert!(self.flying.iter().all(|other| other.slot != request.slot), "a busy slot");
        assert_eq!([request.at, request.offset as usize, request.bytes].map(|n| n % self.alignment), [0; 3]);
        assert!(request.bytes > 0 && request.at + request.bytes <= self.buffers[request.slot].len());
        if !self.flying.is_empty() && self.random.below(4) == 0 {
            return Ok(false);
        }
        self.flying.push(request);
        Ok(true)
    }

    fn wait(&mut self, _: usize, done: &mut Vec<Completion>) -> Result<()> {
        for _ in 0..1 + self.random.below(self.flying.len() as u64) {
            let Request { slot, at, file, offset, bytes } =
                self.flying.swap_remove(self.random.below(self.flying.len() as u64) as usize);
            let result = if self.left == 0 {
                Err(Error::other("the disk is broken"))
            } else if self.random.below(5) == 0 {
                Err([ErrorKind::Interrupted, ErrorKind::WouldBlock][self.random.below(2) as usize].into())
            } else {
                let content = self.contents[file].get(offset as usize..).unwrap_or(&[]);
                let all = bytes.min(content.len());
                let some = if self.random.below(3) == 0 { self.alignment.min(all) } else { all };
                self.buffers[slot][at..at + some].copy_from_slice(&content[..some]);
                self.left -= 1;
                Ok(some)
            };
            done.push(Completion { slot, result });
        }
        Ok(())
    }

    fn buffer(&self, slot: usize) -> &[u8] {
        assert!(self.flying.iter().all(|other| other.slot != slot), "the buffer of a busy slot");
        &self.buffers[slot]
    }
}

#[test]
fn no_fault_of_the_system_reaches_a_row() {
    let random = &mut Random(11);
    for round in 0..60 {
        let directory = tempfile::tempdir().unwrap();
        let (layout, bytes) = random_layout(random, directory.path());
        let contents: Vec<Vec<u8>> = layout.files.iter().map(|(path, _)| fs::read(path).unwrap()).collect();
        let files = DirectFiles::look(Arc::new(FileWatch::new(&layout.files).unwrap()));
        let shape = Shape { merge: 1 << random.below(16), gap: random.below(3000), depth: 40, memory: 1 << 20 };
        let (buffer_bytes, buffers) = shape.buffers(&layout, &files);
        let window = if layout.parts.len() == 1 { usize::MAX } else { 1 + random.below(200) as usize };
        let ids = random_ids(random, layout.rows);
        let left = if round % 3 == 0 { random.below(20) as usize } else { usize::MAX };
        let mut queue = Unreliable {
            random: Random(random.next()),
            contents: &contents,
            alignment: files.most_alignment(),
            buffers: vec![vec![0; buffer_bytes]; buffers],
            flying: Vec::new(),
            left,
        };
        let mut run = |plan: &ReadPlan<'_>, mut sink: &mut dyn FnMut(Row<'_>)| {
            Order::pieces(plan.ids(), layout.rows).try_for_each(|order| {
                let planner = Planner::new(&files, &layout.parts, &order, shape, buffer_bytes, window);
                let handover = Handover::new(&mut sink, &layout.parts, &order, window);
                drive(&mut queue, &files, planner, handover, &mut Tally::default())
            })
        };
        if left == usize::MAX {
            compare(&layout, &bytes, &ids, |plan, sink| run(plan, sink).unwrap());
        } else if let Err(error) = run(&ReadPlan::new(&layout, &ids).unwrap(), &mut |_| ()) {
            assert!(error.to_string().contains("the disk is broken"), "{error}");
        }
    }
}

#[test]
fn neighbours_share_reads_and_duplicates_cost_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    fs::write(&path, vec![0; 160 * 10_000]).unwrap();
    let extent = Extent { shard: 0, file: 0, first_row: 0, rows: 10_000, offset: 0 };
    let files = vec![(path.clone(), FileStamp::of(&path).unwrap())];
    let layout = Layout { files, rows: 10_000, parts: vec![Part::new(160, vec![extent])] };
    let files = Arc::new(DirectFiles::look(Arc::new(FileWatch::new(&layout.files).unwrap())));
    let alignment = files.most_alignment() as u64;
    let tally = |reader: &dyn crate::read::Reader, ids: &[i64]| {
        let mut tally = Tally::default();
        reader.read(&ReadPlan::new(&layout, ids).unwrap(), &mut |_: Row<'_>| (), &mut tally).unwrap();
        (tally.reads, tally.bytes_read)
    };
    let pread = super::PreadReader::open(files.clone());
    let (reads, bytes) = tally(&pread, &[5, 5, 5, 5]);
    assert!(reads == 1 && bytes <= 2 * alignment.max(160), "{reads} reads of {bytes} bytes");
    // 16 rows of 160 bytes lie within a page.
    assert_eq!(tally(&pread, &(0..16).collect::<Vec<_>>()).0, 1);
    // A row in a far place is a read of its own; nothing in between is read.
    let (reads, bytes) = tally(&pread, &[0, 5000, 9999]);
    assert!(reads == 3 && bytes <= 3 * 2 * alignment.max(160), "{reads} reads of {bytes} bytes");
    let (reads, bytes) = tally(&super::SequentialReader::open(files), &(0..10_000).step_by(3).collect::<Vec<_>>());
    assert!(reads <= 4 && bytes <= 1_600_000 + 4 * alignment, "{reads} reads of {bytes} bytes");
}

/// Every stretch of rows, whole rows with their parts side by side, through the queue that the system allows and through
/// threads.
#[test]
fn a_stream_hands_over_every_row_once_and_in_order() {
    let mut random = Random(0x5EED_0006);
    for round in 0..60 {
        let directory = tempfile::tempdir().unwrap();
        let (layout, bytes) = random_layout(&mut random, directory.path());
        let watch = Arc::new(FileWatch::new(&layout.files).unwrap());
        let stream = RowStream::open(Arc::new(DirectFiles::look(watch)));
        let width = layout.row_bytes();
        let first = random.below(layout.rows);
        let rows = first..first + random.below(layout.rows - first + 1);
        let mut expected: Vec<u8> = Vec::new();
        for row in rows.clone() {
            for (part, bytes) in layout.parts.iter().zip(&bytes) {
                expected.extend(&bytes[row as usize * part.width()..][..part.width()]);
            }
        }
        let (mut next, mut found) = (rows.start, Vec::<u8>::new());
        stream
            .read::<ReadError>(&layout, rows.clone(), &mut |first, bytes| {
                assert_eq!(first, next);
                assert_eq!(bytes.len() % width, 0);
                next += (bytes.len() / width) as u64;
                found.extend(bytes);
                Ok(())
            })
            .unwrap();
        assert!(found == expected, "round {round}: rows {rows:?}");
    }
}

#[test]
fn a_stream_ends_with_the_error_of_whoever_takes_its_rows_and_can_be_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let (layout, _) = random_layout(&mut Random(0x5EED_0007), directory.path());
    let watch = Arc::new(FileWatch::new(&layout.files).unwrap());
    let stream = RowStream::open(Arc::new(DirectFiles::look(watch)));
    let stop = || ReadError::io(directory.path(), Error::other("enough"));
    let error = stream.read::<ReadError>(&layout, 0..layout.rows, &mut |_, _| Err(stop())).unwrap_err();
    assert!(error.to_string().contains("enough"));
    let mut rows = 0;
    stream
        .read::<ReadError>(&layout, 0..layout.rows, &mut |_, bytes| {
            rows += bytes.len() / layout.row_bytes();
            Ok(())
        })
        .unwrap();
    assert_eq!(rows as u64, layout.rows);
}

#[test]
fn a_shortened_file_ends_a_stream_with_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, vec![7u8; 3 << 20]).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    let mut taken = 0;
    let error = stream_file::<ReadError>(&path, &mut |offset, bytes| {
        if offset == 0 {
            file.set_len(1 << 20).unwrap();
        }
        taken += bytes.len();
        Ok(())
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("truncated") || error.contains("ends before"), "{error}");
    assert!(taken < 3 << 20 || error.contains("truncated"));
}
