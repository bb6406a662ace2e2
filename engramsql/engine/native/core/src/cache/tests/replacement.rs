//! Which rows stay.

use super::*;

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
