//! Which way rows take: real files, whose pages are in memory or were dropped.

#![expect(clippy::print_stdout, reason = "a skipped test says why")]

use engram_engine::Table;
use engram_engine::cache::RowCache;
use engram_engine::catalog::{RegisterOptions, Session};
use engram_engine::read::CodePath;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const WIDTH: usize = 160;
const ROWS: usize = 60_000;

/// The row cache and its budget are the process's, so one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn byte(row: usize, column: usize) -> u8 {
    (row.wrapping_mul(0x9E37_79B1) >> 7) as u8 ^ column as u8
}

/// A store of known rows.
struct Store {
    directory: tempfile::TempDir,
}

impl Store {
    fn new() -> Store {
        // Beside the build's files: a temporary directory is often in memory and knows no direct reads.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let bytes: Vec<u8> = (0..ROWS).flat_map(|row| (0..WIDTH).map(move |column| byte(row, column))).collect();
        let path = directory.path().join("shard_000.bin");
        std::fs::write(&path, bytes).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        Store { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Drops the file's pages; those that nobody has touched through a map go.
    fn drop_pages(&self) {
        let file = std::fs::File::open(self.path().join("shard_000.bin")).unwrap();
        // SAFETY: a hint on an open descriptor.
        assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    }

    fn read_pages(&self) {
        std::fs::read(self.path().join("shard_000.bin")).unwrap();
    }

    fn open(&self) -> Arc<Table> {
        let session = Session::in_memory();
        session
            .register("t", self.path(), &RegisterOptions { width: Some(WIDTH as u64), ..Default::default() })
            .unwrap();
        session.table("t").unwrap()
    }
}

fn check(table: &Table, ids: &[i64]) {
    let mut out = vec![0; ids.len() * WIDTH];
    table.fetch_into(ids, &mut out).unwrap();
    for (&id, row) in ids.iter().zip(out.chunks_exact(WIDTH)) {
        assert!(row.iter().enumerate().all(|(column, &found)| found == byte(id as usize, column)), "row {id}");
    }
}

/// Rows by code path.
fn rows_by_path(table: &Table) -> Vec<(CodePath, u64)> {
    table.stats().into_iter().map(|stats| (stats.path, stats.rows)).collect()
}

/// The path that cold rows take here.
fn from_disk(table: &Table) -> CodePath {
    if table.reads_directly() { CodePath::IoUring } else { CodePath::Mapped }
}

fn set_budget(bytes: Option<u64>) {
    RowCache::global().unwrap().set_budget(bytes).unwrap();
}

#[test]
fn cold_rows_come_from_the_disk_once_and_then_from_the_cache() {
    let _alone = alone();
    set_budget(Some(64 << 20));
    let store = Store::new();
    store.drop_pages();
    let table = store.open();
    let ids: Vec<i64> = (0..200).map(|n| (n * 7919) % ROWS as i64).collect();
    check(&table, &ids);
    let path = from_disk(&table);
    assert_eq!(rows_by_path(&table), [(path, 200)]);
    check(&table, &ids);
    assert_eq!(rows_by_path(&table), [(path, 200), (CodePath::Cache, 200)]);
    // Half of the next batch is known.
    let more: Vec<i64> = ids[..100].iter().map(|id| (id + 1) % ROWS as i64).chain(ids[..100].iter().copied()).collect();
    check(&table, &more);
    assert_eq!(rows_by_path(&table), [(path, 300), (CodePath::Cache, 300)]);
    assert_eq!((table.cached().hits, table.cached().misses), (300, 300));
}

#[test]
fn resident_rows_are_copied_from_the_maps() {
    let _alone = alone();
    set_budget(None);
    let store = Store::new();
    store.read_pages();
    let table = store.open();
    for first in [0, 5, 1000] {
        check(&table, &(first..first + 300).collect::<Vec<i64>>());
    }
    assert_eq!(rows_by_path(&table), [(CodePath::Mapped, 900)]);
}

#[test]
fn with_a_budget_resident_rows_enter_the_cache_too() {
    let _alone = alone();
    set_budget(Some(64 << 20));
    let store = Store::new();
    store.read_pages();
    let table = store.open();
    let ids: Vec<i64> = (0..9000).collect();
    check(&table, &ids);
    check(&table, &ids);
    assert_eq!(rows_by_path(&table), [(CodePath::Mapped, 9000), (CodePath::Cache, 9000)]);
}

#[test]
fn without_a_cache_every_batch_goes_to_the_disk() {
    let _alone = alone();
    set_budget(Some(0));
    let store = Store::new();
    store.drop_pages();
    let table = store.open();
    if from_disk(&table) == CodePath::Mapped {
        println!("skipped: no direct reads here");
        return;
    }
    for _ in 0..2 {
        check(&table, &[5, 50_000, 31_000, 5]);
    }
    assert_eq!(rows_by_path(&table), [(CodePath::IoUring, 8)]);
}

#[test]
fn a_dense_cold_batch_is_read_in_blocks() {
    let _alone = alone();
    set_budget(Some(64 << 20));
    let store = Store::new();
    store.drop_pages();
    let table = store.open();
    if from_disk(&table) == CodePath::Mapped {
        println!("skipped: no direct reads here");
        return;
    }
    let ids: Vec<i64> = (0..ROWS as i64).rev().step_by(3).collect();
    check(&table, &ids);
    let stats = table.stats();
    assert_eq!((stats.len(), stats[0].path, stats[0].rows), (1, CodePath::Sequential, ids.len() as u64));
    assert!(stats[0].reads < 200 && stats[0].bytes_read <= (ROWS * WIDTH) as u64 + 8192, "{stats:?}");
}

#[test]
fn rows_that_were_evicted_are_noticed_in_the_middle_of_a_batch() {
    let _alone = alone();
    set_budget(None);
    let store = Store::new();
    store.read_pages();
    let table = store.open();
    // A few rows at the start of the file make the table look resident; their pages stay, because they are mapped.
    check(&table, &(0..64).collect::<Vec<i64>>());
    store.drop_pages();
    let ids: Vec<i64> = (0..5000).map(|n| (n * 11) % ROWS as i64).collect();
    check(&table, &ids);
    check(&table, &ids);
    let rows: u64 = rows_by_path(&table).iter().map(|(_, rows)| rows).sum();
    assert_eq!(rows, 64 + 2 * 5000);
    // Where rows are read directly, their path shows that the map was left.
    let directly: u64 =
        rows_by_path(&table).iter().filter(|(path, _)| *path != CodePath::Mapped).map(|(_, rows)| rows).sum();
    assert!(!table.reads_directly() || directly > 5000, "{:?}", rows_by_path(&table));
}

#[test]
fn prefetched_rows_are_found() {
    let _alone = alone();
    set_budget(Some(64 << 20));
    let store = Store::new();
    store.drop_pages();
    let table = store.open();
    let ids: Vec<i64> = (0..20_000).map(|n| (n * 7) % ROWS as i64).collect();
    let prefetch = table.prefetch(ids.clone()).unwrap();
    assert_eq!((prefetch.rows(), prefetch.bytes()), (20_000, 20_000 * WIDTH as u64));
    assert!(prefetch.wait(None).unwrap() && prefetch.is_done() && !prefetch.is_cancelled());
    let before = table.cached();
    check(&table, &ids);
    let after = table.cached();
    assert_eq!((after.hits - before.hits, after.misses - before.misses), (20_000, 0));
    // An id out of range is told at once.
    assert!(table.prefetch(vec![ROWS as i64]).is_err_and(|error| error.to_string().contains("out of range")));
}

#[test]
fn a_prefetch_can_be_cancelled_and_its_failure_is_told_once() {
    let _alone = alone();
    set_budget(Some(64 << 20));
    let store = Store::new();
    store.drop_pages();
    let table = store.open();
    let all: Vec<i64> = (0..ROWS as i64).cycle().take(5_000_000).collect();
    let (running, waiting) = (table.prefetch(all.clone()).unwrap(), table.prefetch(all).unwrap());
    table.cancel_prefetches();
    for prefetch in [&running, &waiting] {
        assert!(prefetch.wait(Some(Duration::from_secs(60))).unwrap());
        assert!(prefetch.is_cancelled());
    }
    std::fs::File::options().write(true).open(store.path().join("shard_000.bin")).unwrap().set_len(0).unwrap();
    set_budget(Some(0));
    set_budget(Some(64 << 20));
    let failing = table.prefetch(vec![1, 2, 3]).unwrap();
    let error = failing.wait(None).unwrap_err();
    assert!(error.to_string().contains("was truncated"), "{error}");
    assert!(failing.wait(None).unwrap());
}

#[test]
fn warming_fills_what_the_budget_says() {
    let _alone = alone();
    let bytes = (ROWS * WIDTH) as u64;
    let store = Store::new();
    // Into the page cache.
    set_budget(None);
    store.drop_pages();
    let table = store.open();
    assert_eq!(table.rows_within(None), ROWS as u64);
    assert_eq!(table.rows_within(Some(1000)), 1000 / WIDTH as u64);
    assert_eq!(table.warm(0..ROWS as u64).unwrap(), bytes);
    assert_eq!(table.shards()[0].resident_bytes, Some(bytes));
    drop(table);
    // Into the row cache.
    set_budget(Some(64 << 20));
    store.drop_pages();
    let table = store.open();
    assert_eq!(table.warm(0..ROWS as u64).unwrap(), bytes);
    let ids: Vec<i64> = (0..ROWS as i64).collect();
    check(&table, &ids);
    assert_eq!(table.cached().misses, 0);
    // As much as there is room for, and no more.
    set_budget(Some(8 << 20));
    let rows = table.rows_within(None);
    assert!(rows > 15_000 && rows < ROWS as u64, "{rows}");
    assert_eq!(table.rows_within(Some(1 << 40)), rows);
    assert_eq!(table.warm(0..rows).unwrap(), rows * WIDTH as u64);
    // All of them are there still, not only when each was brought.
    assert_eq!(table.warm(0..rows).unwrap(), rows * WIDTH as u64);
    assert!(RowCache::global().unwrap().usage().bytes <= 8 << 20);
}

#[test]
fn four_threads_share_the_budget_and_get_their_rows() {
    let _alone = alone();
    set_budget(Some(8 << 20));
    let store = Store::new();
    store.drop_pages();
    let table = store.open();
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let table = &table;
            scope.spawn(move || {
                for round in 0..20 {
                    let ids: Vec<i64> =
                        (0..1500).map(|n| (n * 13 + round * 1009 + thread * 17_001) % ROWS as i64).collect();
                    check(table, &ids);
                    assert!(RowCache::global().unwrap().usage().bytes <= 8 << 20);
                }
            });
        }
    });
}
