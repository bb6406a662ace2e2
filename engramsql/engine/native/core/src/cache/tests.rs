use super::memory::SLAB_BYTES;
use super::*;
use crate::read::Row;
use crate::source::{Extent, Part};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SLAB: u64 = SLAB_BYTES as u64;

/// A table of `rows` rows; no file is opened.
fn layout(widths: &[usize], rows: u64) -> Layout {
    let part = |&width: &usize| Part::new(width, vec![Extent { shard: 0, file: 0, first_row: 0, rows, offset: 0 }]);
    Layout { files: Vec::new(), rows, parts: widths.iter().map(part).collect() }
}

/// The bytes of row `id` in its version `version`.
fn content(id: i64, version: u8, width: usize) -> Vec<u8> {
    let word = (id as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..width).map(|column| word[column % 8] ^ (column as u8) ^ version).collect()
}

fn insert(table: &CachedTable, widths: &[usize], ids: &[i64], version: u8, stay: Stay) {
    let bytes: Vec<Vec<u8>> = ids.iter().map(|&id| content(id, version, widths.iter().sum())).collect();
    let rows: Vec<NewRow<'_>> = ids
        .iter()
        .zip(&bytes)
        .map(|(&id, bytes)| {
            let (values, scales) = bytes.split_at(widths[0]);
            NewRow { id, values, scales }
        })
        .collect();
    table.insert(&rows, stay);
}

/// Looks `ids` up, checks that every position comes once and every hit has the right bytes, and returns the missed ids.
fn missed(table: &CachedTable, widths: &[usize], ids: &[i64], version: u8) -> Vec<i64> {
    let (mut seen, mut misses) = (vec![false; ids.len()], Vec::new());
    let mut sink = |row: Row<'_>| {
        assert!(!std::mem::replace(&mut seen[row.position], true), "position {} came twice", row.position);
        assert_eq!(row.values.len(), widths[0]);
        let expected = content(ids[row.position], version, widths.iter().sum());
        assert!([row.values, row.scales].concat() == expected, "row {} has other bytes", ids[row.position]);
    };
    let hits = table.lookup(ids, &mut sink, &mut misses);
    assert_eq!(hits + misses.len(), ids.len());
    assert!(misses.iter().all(|&position| !seen[position]));
    assert_eq!(seen.iter().filter(|&&seen| seen).count(), hits);
    misses.into_iter().map(|position| ids[position]).collect()
}

/// Looks up, inserts what was missed, returns the number of hits.
fn access(table: &CachedTable, widths: &[usize], ids: &[i64]) -> usize {
    let missed = missed(table, widths, ids, 0);
    insert(table, widths, &missed, 0, Stay::Normal);
    ids.len() - missed.len()
}

/// A generator of fixed sequences (xorshift64*: Vigna, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Row ids whose frequency falls with their rank to the power `exponent`; ranks are scattered over the ids.
struct Zipf(Vec<f64>, Random);

impl Zipf {
    fn new(rows: u64, exponent: f64, seed: u64) -> Zipf {
        let mut sum = 0.0;
        let weights = (1..=rows).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Zipf(weights.collect(), Random(seed))
    }

    fn take(&mut self, count: usize) -> Vec<i64> {
        let (rows, total) = (self.0.len() as u64, self.0[self.0.len() - 1]);
        let ids = (0..count).map(|_| {
            let at = self.1.next() as f64 / u64::MAX as f64 * total;
            let rank = (self.0.partition_point(|&sum| sum < at) as u64).min(rows - 1);
            // An odd step that shares no factor with the row counts used here.
            (rank * 7_919 % rows) as i64
        });
        ids.collect()
    }
}

fn hit_rate(table: &CachedTable, ids: &[i64]) -> f64 {
    let hits: usize = ids.chunks(64).map(|ids| access(table, &[160], ids)).sum();
    hits as f64 / ids.len() as f64
}

#[test]
fn a_hit_is_always_the_inserted_row() {
    // Narrow and wide, one part and two, fitting a slab 2 to 300,000 times; memory for a fraction of the rows.
    for (widths, rows, slabs) in
        [(&[160][..], 60_000, 4), (&[256, 8], 40_000, 5), (&[1], 900_000, 3), (&[700_000, 50_000], 40, 9)]
    {
        let cache = RowCache::new(slabs * SLAB);
        let table = cache.table(&layout(widths, rows));
        let mut random = Random(7);
        let mut inserted: HashSet<i64> = HashSet::new();
        let mut hits = 0;
        for round in 0..120 {
            let few = (rows as usize / 25).clamp(4, 3000) as u64;
            // Clustered, so that rows come again.
            let base = random.below(rows);
            let count = 1 + random.below(few);
            let ids: Vec<i64> = (0..count).map(|_| ((base + random.below(few)) % rows) as i64).collect();
            if round % 3 == 0 {
                let missed = missed(&table, widths, &ids, 0);
                // What never went in never comes out.
                assert!(ids.iter().all(|id| inserted.contains(id) || missed.contains(id)));
                hits += ids.len() - missed.len();
            }
            let stay = if round % 5 == 0 { Stay::UntilUsed } else { Stay::Normal };
            insert(&table, widths, &ids, 0, stay);
            inserted.extend(&ids);
            let usage = cache.usage();
            assert!(usage.bytes <= slabs * SLAB && usage.rows == table.usage().rows);
        }
        assert!(hits > 0, "no hit with rows of {widths:?}");
        assert_eq!(cache.usage().hits as usize, hits);
    }
}

#[test]
fn what_fits_stays() {
    let cache = RowCache::new(64 * SLAB);
    let table = cache.table(&layout(&[160], 1 << 40));
    // Ids on both sides of 32 bits, and one that is beyond what is kept.
    let ids: Vec<i64> = (0..200_000).map(|n| n * 600_011).collect();
    let mut inserter = table.inserter(Stay::Normal);
    for &id in ids.iter().chain([&(1 << 39), &-1, &(1 << 41), &5]) {
        inserter.push(NewRow { id, values: &content(id, 0, 160), scales: &[] });
    }
    drop(inserter);
    assert!(missed(&table, &[160], &ids, 0).is_empty());
    assert_eq!(missed(&table, &[160], &[1 << 39, -1, 5, 1 << 41, i64::MIN], 0), [1 << 39, -1, 1 << 41, i64::MIN]);
    assert_eq!(table.usage().rows, 200_001);
    // As many slabs as that takes: 17 for rows, 2 for the index.
    assert_eq!(cache.usage().bytes, 18 * SLAB);
    // Duplicates change nothing.
    insert(&table, &[160], &ids[..100], 9, Stay::Normal);
    assert!(missed(&table, &[160], &ids[..100], 0).is_empty());
    assert_eq!(table.usage().rows, 200_001);
}

#[test]
fn a_scan_does_not_flush_rows_that_are_used_again() {
    let cache = RowCache::new(8 * SLAB);
    let table = cache.table(&layout(&[160], 1 << 32));
    let mut zipf = Zipf::new(400_000, 1.0, 11);
    hit_rate(&table, &zipf.take(600_000));
    let before = hit_rate(&table, &zipf.take(100_000));
    let held = table.usage().rows as i64;
    // The best that any cache of that size could do on average: the most frequent rows.
    let best = zipf.0[held as usize - 1] / zipf.0[399_999];
    assert!(before > 0.93 * best, "{before:.3} of at most {best:.3}");

    for scan in (1 << 31..(1 << 31) + 10 * held).collect::<Vec<i64>>().chunks(64) {
        access(&table, &[160], scan);
    }
    let after = hit_rate(&table, &zipf.take(50_000));
    assert!(after > 0.97 * before, "{after:.3} after a scan, {before:.3} before");

    // A scan that goes on between the lookups.
    let mut next = 1 << 30;
    let mut hits = 0;
    for ids in zipf.take(100_000).chunks(64) {
        hits += access(&table, &[160], ids);
        let scan: Vec<i64> = (next..next + 256).collect();
        access(&table, &[160], &scan);
        next += 256;
    }
    let during = hits as f64 / 100_000.0;
    assert!(during > 0.9 * before, "{during:.3} during a scan, {before:.3} before");
}

#[test]
fn prefetched_rows_outlive_a_scan_until_they_are_used() {
    let cache = RowCache::new(8 * SLAB);
    let table = cache.table(&layout(&[160], 1 << 32));
    let scan = |first: i64| {
        for ids in (first..first + 200_000).collect::<Vec<i64>>().chunks(64) {
            access(&table, &[160], ids);
        }
    };
    scan(1 << 30);
    let (prefetched, normal): (Vec<i64>, Vec<i64>) = ((0..10_000).collect(), (20_000..30_000).collect());
    insert(&table, &[160], &prefetched, 0, Stay::UntilUsed);
    insert(&table, &[160], &normal, 0, Stay::Normal);
    scan(2 << 30);
    assert!(missed(&table, &[160], &prefetched, 0).is_empty());
    assert_eq!(missed(&table, &[160], &normal, 0).len(), normal.len());
}

#[test]
fn a_table_without_memory_takes_a_slab_and_one_that_needs_more_gets_more() {
    let cache = RowCache::new(20 * SLAB);
    let first = cache.table(&layout(&[160], 1 << 32));
    let second = cache.table(&layout(&[256, 8], 1 << 32));
    for ids in (0..400_000).collect::<Vec<i64>>().chunks(64) {
        access(&first, &[160], ids);
    }
    assert_eq!(cache.usage().bytes, 20 * SLAB);
    insert(&second, &[256, 8], &[1, 2, 3], 0, Stay::Normal);
    assert_eq!(missed(&second, &[256, 8], &[1, 2, 3, 4], 0), [4]);
    assert_eq!(second.usage().bytes, 2 * SLAB);
    // New rows alone are no reason to take from another table.
    for ids in (1000..100_000).collect::<Vec<i64>>().chunks(64) {
        access(&second, &[256, 8], ids);
    }
    assert_eq!(second.usage().bytes, 2 * SLAB);
    let mut zipf = Zipf::new(100_000, 0.9, 3);
    for ids in zipf.take(500_000).chunks(64) {
        access(&second, &[256, 8], ids);
    }
    let (first, second) = (first.usage(), second.usage());
    assert!(first.bytes <= 2 * second.bytes && second.bytes <= 2 * first.bytes, "{first:?} {second:?}");
    assert_eq!((first.key, second.key), (TableKey(0), TableKey(1)));
}

#[test]
fn a_lowered_budget_is_kept_at_once() {
    let cache = RowCache::new(60 * SLAB + 5);
    let table = cache.table(&layout(&[160], 1 << 32));
    let ids: Vec<i64> = (0..600_000).collect();
    insert(&table, &[160], &ids, 0, Stay::Normal);
    assert_eq!((cache.usage().bytes, cache.budget()), (52 * SLAB, 60 * SLAB + 5));
    let mut rows = table.usage().rows;
    assert_eq!(rows, 600_000);
    for slabs in [40, 12, 5, 2] {
        cache.set_budget(Some(slabs * SLAB)).unwrap();
        assert!(cache.usage().bytes <= slabs * SLAB);
        let left = ids.len() - missed(&table, &[160], &ids, 0).len();
        let other = 1 - missed(&table, &[160], &[700_000], 0).len();
        assert_eq!((left + other) as u64, table.usage().rows);
        // Only what had to go went; the slab that stays last may be the one that was being filled.
        assert!(left as u64 + 12_000 >= slabs / 2 * 12_000, "{left} rows left in {slabs} slabs");
        assert!((left as u64) < rows);
        rows = left as u64;
        insert(&table, &[160], &[-1, 700_000], 0, Stay::Normal);
        assert!(missed(&table, &[160], &[700_000], 0).is_empty());
    }
    cache.set_budget(Some(0)).unwrap();
    assert_eq!((cache.usage().bytes, cache.usage().rows), (0, 0));
    insert(&table, &[160], &ids[..1000], 0, Stay::Normal);
    assert_eq!(missed(&table, &[160], &ids[..1000], 0), ids[..1000]);
    cache.set_budget(Some(3 * SLAB)).unwrap();
    assert_eq!(access(&table, &[160], &ids[..1000]) + access(&table, &[160], &ids[..1000]), 1000);
}

#[test]
fn a_table_opened_again_has_its_rows_and_a_new_one_has_none() {
    let cache = RowCache::new(8 * SLAB);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    let stamped = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let files = vec![(path.clone(), crate::source::FileStamp::of(&path).unwrap())];
        Layout { files, ..layout(&[16], 1000) }
    };
    let old = stamped(b"old");
    let table = cache.table(&old);
    insert(&table, &[16], &[1, 2], 0, Stay::Normal);
    assert_eq!(missed(&cache.table(&old), &[16], &[1, 2, 3], 0), [3]);
    assert_eq!(cache.table(&old).key(), table.key());

    let changed = cache.table(&stamped(b"changed"));
    assert_ne!(changed.key(), table.key());
    assert_eq!(missed(&changed, &[16], &[1, 2], 1), [1, 2]);
    insert(&changed, &[16], &[1, 2], 1, Stay::Normal);
    assert_eq!((missed(&table, &[16], &[1, 2], 0), missed(&changed, &[16], &[1, 2], 1)), (vec![], vec![]));

    let key = table.key();
    drop(table);
    assert_eq!(cache.usage().tables.len(), 1);
    assert_eq!(cache.usage().bytes, 2 * SLAB);
    // The key is used again, the rows are not.
    let again = cache.table(&old);
    assert_eq!(again.key(), key);
    assert_eq!(missed(&again, &[16], &[1, 2], 0), [1, 2]);
}

#[test]
fn threads_never_exceed_the_budget_nor_see_other_bytes() {
    let cache = RowCache::new(14 * SLAB);
    let widths: [&[usize]; 2] = [&[160], &[2000, 48]];
    let tables: Vec<CachedTable> = widths.map(|widths| cache.table(&layout(widths, 1 << 20))).into();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (cache, tables) = (&cache, &tables);
            scope.spawn(move || {
                let mut random = Random(thread + 1);
                for round in 0..150u64 {
                    let which = random.below(2) as usize;
                    let spread = [90_000, 9_000][which];
                    let ids: Vec<i64> = (0..400).map(|_| random.below(random_spread(spread, round)) as i64).collect();
                    access(&tables[which], widths[which], &ids);
                    if round % 50 == 49 {
                        cache.set_budget(Some((3 + random.below(12)) * SLAB)).unwrap();
                    }
                    if round % 60 == 59 {
                        drop(cache.table(&layout(&[4], 77)));
                    }
                }
            });
        }
        let (cache, done) = (&cache, &done);
        let watch = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                assert!(cache.usage().bytes <= 14 * SLAB);
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(1500));
            done.store(true, Ordering::Relaxed);
            watch.join().unwrap();
        });
    });
    cache.set_budget(Some(5 * SLAB)).unwrap();
    assert!(cache.usage().bytes <= 5 * SLAB);
    assert!(cache.usage().hits > 0);
}

/// Every other round looks at a tenth of the ids, so that some are hot.
fn random_spread(spread: u64, round: u64) -> u64 {
    if round.is_multiple_of(2) { spread } else { spread / 10 }
}

#[test]
fn budgets_know_who_asked_for_them() {
    let cache = RowCache::with_budget(3 * SLAB, false);
    assert!(!cache.is_explicit() && !cache.usage().explicit);
    cache.set_budget(Some(2 * SLAB)).unwrap();
    assert!(cache.is_explicit());
    // The variable is not set in tests.
    if std::env::var_os(BUDGET_VARIABLE).is_none() {
        cache.set_budget(None).unwrap();
        assert_eq!((cache.is_explicit(), cache.budget()), (false, default_budget()));
        assert_eq!(RowCache::global().unwrap().budget(), default_budget());
    }
}

#[test]
fn a_row_of_another_width_is_refused() {
    let cache = RowCache::new(4 * SLAB);
    for (widths, values, scales) in [(&[160][..], 159, 0), (&[160], 160, 1), (&[8, 2], 8, 0), (&[8, 2], 10, 0)] {
        let table = cache.table(&layout(widths, 10));
        let (values, scales) = (vec![0; values], vec![0; scales]);
        let row = NewRow { id: 1, values: &values, scales: &scales };
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| table.insert(&[row], Stay::Normal)));
        assert!(refused.is_err());
    }
    // Wider than a slab: never kept, never an error.
    let table = cache.table(&layout(&[SLAB_BYTES], 10));
    insert(&table, &[SLAB_BYTES], &[1], 0, Stay::Normal);
    assert_eq!(missed(&table, &[SLAB_BYTES], &[1], 0), [1]);
    assert_eq!(cache.usage().bytes, 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_forked_child_has_an_empty_cache_whatever_its_parent_was_doing() {
    let cache = RowCache::new(6 * SLAB);
    let table = cache.table(&layout(&[160], 1 << 32));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2i64 {
            let (table, done) = (&table, &done);
            scope.spawn(move || {
                let mut first = thread << 30;
                while !done.load(Ordering::Relaxed) {
                    insert(table, &[160], &(first..first + 200).collect::<Vec<i64>>(), 0, Stay::Normal);
                    first += 200;
                }
            });
        }
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(2));
            // SAFETY: the child calls nothing but the cache and the allocator, which glibc makes usable after a fork,
            // and ends without running anything of the test harness. The alarm ends it if it waits for a lock.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: as above.
                unsafe { libc::alarm(20) };
                let (mut misses, row) = (Vec::new(), [7; 160]);
                let empty = table.lookup(&[1, 2], &mut |_: Row<'_>| (), &mut misses) == 0 && cache.usage().rows == 0;
                table.insert(&[NewRow { id: 2, values: &row, scales: &[] }], Stay::Normal);
                let mut right = false;
                let hits = table.lookup(&[2], &mut |found: Row<'_>| right = found.values == row, &mut misses);
                let kept = cache.set_budget(Some(0)).is_ok() && cache.usage().bytes == 0;
                // SAFETY: as above.
                unsafe { libc::_exit(i32::from(!(empty && right && hits == 1 && kept))) };
            }
            let mut status = -1;
            // SAFETY: waits for the child made above; the status is ours.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "the child failed or hung");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(cache.budget(), 6 * SLAB);
}

#[test]
fn neither_readers_nor_writers_starve() {
    let cache = RowCache::new(8 * SLAB);
    let table = cache.table(&layout(&[160], 1 << 20));
    insert(&table, &[160], &(0..4000).collect::<Vec<i64>>(), 0, Stay::UntilUsed);
    let done = AtomicBool::new(false);
    let rounds = std::thread::scope(|scope| {
        let (table, done) = (&table, &done);
        let work = |writes: bool, first: i64| {
            scope.spawn(move || {
                let ids: Vec<i64> = (first..first + 500).collect();
                let mut rounds = 0;
                while !done.load(Ordering::Relaxed) {
                    match writes {
                        true => insert(table, &[160], &ids, 0, Stay::Normal),
                        false => drop(missed(table, &[160], &ids, 0)),
                    }
                    rounds += 1;
                }
                rounds
            })
        };
        let threads: Vec<_> = [false, false, false, false, true, true].map(|writes| work(writes, 100)).into();
        std::thread::sleep(Duration::from_millis(500));
        done.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<usize>>()
    });
    assert!(rounds.iter().all(|&rounds| rounds > 5), "{rounds:?}");
}
