use super::*;
use crate::source::{Extent, FileStamp, Layout, Part};
use std::fs;

/// Two files, two parts: rows of 5 + 2 bytes, three shards of 4, 4 and 3 rows at odd offsets. Byte = f(row, column).
fn fixture(directory: &Path) -> Layout {
    let byte = |row: u64, column: usize, part: u8| (row * 7 + column as u64) as u8 ^ part << 7;
    let rows_of = |rows: std::ops::Range<u64>, width: usize, part: u8| -> Vec<u8> {
        rows.flat_map(|row| (0..width).map(move |column| byte(row, column, part))).collect()
    };
    let first = [&b"xyz"[..], &rows_of(0..4, 5, 0), &rows_of(8..11, 5, 0), &rows_of(0..4, 2, 1)].concat();
    let second = [&b"q"[..], &rows_of(4..11, 2, 1), &rows_of(4..8, 5, 0)].concat();
    let files = vec![directory.join("a"), directory.join("b")];
    fs::write(&files[0], first).unwrap();
    fs::write(&files[1], second).unwrap();
    // Long ago: a change within one tick of the file system's clock would go unnoticed.
    for file in &files {
        let file = fs::OpenOptions::new().write(true).open(file).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000)).unwrap();
    }
    let extent = |shard, file, first_row, rows, offset| Extent { shard, file, first_row, rows, offset };
    let values = vec![extent(0, 0, 0, 4, 3), extent(1, 1, 4, 4, 15), extent(2, 0, 8, 3, 23)];
    let scales = vec![extent(0, 0, 0, 4, 38), extent(1, 1, 4, 4, 1), extent(2, 1, 8, 3, 9)];
    let files = files.into_iter().map(|path| (path.clone(), FileStamp::of(&path).unwrap())).collect();
    Layout { files, rows: 11, parts: vec![Part::new(5, values), Part::new(2, scales)] }
}

fn collect(readers: &Readers, layout: &Layout, ids: &[i64]) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut rows = vec![Vec::new(); ids.len()];
    readers.read(&ReadPlan::new(layout, ids).unwrap(), &mut |row: Row<'_>| {
        assert!(rows[row.position].is_empty(), "a position came twice");
        rows[row.position] = [row.values, row.scales].concat();
    })?;
    Ok(rows)
}

/// Readers of `layout` on every code path that this system offers; says which it does not.
pub(super) fn readers(layout: &Layout) -> Vec<Readers> {
    let open = |path| {
        let readers = Readers::forced(layout, Some(path)).unwrap();
        // Opening tells nothing; the first read does, even of no rows.
        match collect(&readers, layout, &[]) {
            Err(error @ ReadError::ReaderUnavailable { .. }) => {
                // Written to the stream itself: a skipped test has to say so even where lints forbid printing.
                let text = format!("not tested: {error}\n");
                std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
                None
            }
            none => none.map(|_| Some(readers)).unwrap(),
        }
    };
    CodePath::READERS.into_iter().filter_map(open).collect()
}

#[test]
fn every_reader_returns_every_row_in_the_order_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let layout = fixture(directory.path());
    let ids: Vec<i64> = (0..11).rev().chain([3, 3, 10, 0]).cycle().take(101).collect();
    for reader in readers(&layout) {
        let rows = collect(&reader, &layout, &ids).unwrap();
        for (&id, row) in ids.iter().zip(rows) {
            let expected: Vec<u8> = (0..5u64)
                .map(|column| (id as u64 * 7 + column) as u8)
                .chain((0..2u64).map(|column| (id as u64 * 7 + column) as u8 ^ 0x80))
                .collect();
            assert_eq!(row, expected, "row {id} by {}", reader.forced_path().unwrap());
        }
    }
}

#[test]
fn ids_out_of_range_never_reach_a_reader() {
    let directory = tempfile::tempdir().unwrap();
    let layout = fixture(directory.path());
    for id in [-1, 11, i64::MIN, i64::MAX] {
        assert_eq!(ReadPlan::new(&layout, &[0, id, 1]).unwrap_err(), id);
    }
}

#[test]
fn a_truncated_file_fails_every_batch_until_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let layout = fixture(directory.path());
    let readers = readers(&layout);
    let whole = fs::read(&layout.files[1].0).unwrap();
    fs::OpenOptions::new().write(true).open(&layout.files[1].0).unwrap().set_len(0).unwrap();
    for reader in &readers {
        for _ in 0..2 {
            let error = collect(reader, &layout, &[0, 5]).unwrap_err();
            assert!(error.to_string().contains("b' was truncated (35 bytes missing)"), "{error}");
        }
    }
    // Whoever stays clear of the damage is served.
    assert!(readers.iter().all(|reader| collect(reader, &layout, &[0, 3]).is_ok()));
    // Written again it is another content, even at the old length.
    fs::write(&layout.files[1].0, whole).unwrap();
    assert!(collect(&readers[0], &layout, &[5]).unwrap_err().to_string().contains("was modified"));
}

#[test]
fn a_replaced_or_removed_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let layout = fixture(directory.path());
    let readers = readers(&layout);
    let other = directory.path().join("other");
    fs::copy(&layout.files[0].0, &other).unwrap();
    fs::rename(&other, &layout.files[0].0).unwrap();
    for reader in &readers {
        let error = collect(reader, &layout, &[2]).unwrap_err();
        assert!(error.to_string().contains("a' was replaced"), "{error}");
    }
    fs::remove_file(&layout.files[0].0).unwrap();
    for reader in &readers {
        assert!(collect(reader, &layout, &[2]).unwrap_err().to_string().contains("has disappeared"));
    }
}

#[test]
fn reading_does_not_count_as_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let layout = fixture(directory.path());
    for reader in readers(&layout) {
        fs::read(&layout.files[0].0).unwrap();
        assert!(collect(&reader, &layout, &[1, 2]).is_ok());
    }
}

#[test]
fn a_file_replaced_between_header_and_opening_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let layout = fixture(directory.path());
    let other = directory.path().join("other");
    fs::copy(&layout.files[1].0, &other).unwrap();
    fs::rename(&other, &layout.files[1].0).unwrap();
    assert!(Readers::open(&layout).err().unwrap().to_string().contains("b' was replaced"));
}

#[test]
fn no_thread_misses_a_change_that_another_one_noticed() {
    for _ in 0..50 {
        let directory = tempfile::tempdir().unwrap();
        let layout = fixture(directory.path());
        let reader = Readers::open(&layout).unwrap();
        let replaced = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        // Asked before: a batch that begins afterwards must fail.
                        let gone = replaced.load(std::sync::atomic::Ordering::SeqCst);
                        let read = collect(&reader, &layout, &[5]);
                        if gone {
                            assert!(read.is_err());
                            break;
                        }
                    }
                });
            }
            // A change that does no harm, then one that does: the first must not vouch for the second.
            let harmless = fs::File::open(&layout.files[0].0).unwrap();
            harmless.set_permissions(harmless.metadata().unwrap().permissions()).unwrap();
            let other = directory.path().join("other");
            fs::copy(&layout.files[1].0, &other).unwrap();
            fs::rename(&other, &layout.files[1].0).unwrap();
            replaced.store(true, std::sync::atomic::Ordering::SeqCst);
        });
    }
}
