//! What reading cost: counters per table and code path.

use super::{CodePath, Tally};
use crate::source::Layout;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Counters of one code path of one table, since the table was first opened in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct PathStats {
    /// The code path.
    pub path: CodePath,
    /// Batches that took it, at least in part.
    pub batches: u64,
    /// Rows that came by it.
    pub rows: u64,
    /// Reads; see [`Tally::reads`]. None from the row cache.
    pub reads: u64,
    /// Bytes that these reads brought.
    pub bytes_read: u64,
    /// Bytes of the rows handed over.
    pub bytes_used: u64,
    /// Time spent, of all threads together.
    pub time: Duration,
    /// Time that a batch took: half of them at most this.
    pub p50: Duration,
    /// Nine tenths.
    pub p90: Duration,
    /// Ninety-nine of a hundred.
    pub p99: Duration,
}

/// The counters of one table. Sessions that open the same files share them.
#[derive(Default)]
pub struct Stats {
    paths: [Counters; CodePath::ALL.len()],
}

impl Stats {
    /// The counters of `layout`.
    pub fn of(layout: &Layout) -> Arc<Stats> {
        static KNOWN: Mutex<Vec<(Layout, Weak<Stats>)>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, stats)| stats.strong_count() > 0);
        if let Some(stats) = known.iter().find(|(of, _)| of == layout).and_then(|(_, stats)| stats.upgrade()) {
            return stats;
        }
        let stats = Arc::new(Stats::default());
        known.push((layout.clone(), Arc::downgrade(&stats)));
        stats
    }

    /// Adds a batch, or the part of one that took `path`.
    pub fn add(&self, path: CodePath, rows: usize, row_bytes: usize, tally: Tally, time: Duration) {
        let counters = &self.paths[path as usize];
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let add = |counter: &AtomicU64, by: u64| counter.fetch_add(by, Ordering::Relaxed);
        add(&counters.rows, rows as u64);
        add(&counters.reads, tally.reads);
        add(&counters.bytes_read, tally.bytes_read);
        add(&counters.bytes_used, rows as u64 * row_bytes as u64);
        add(&counters.nanos, nanos);
        add(&counters.waits.0[Histogram::bucket(nanos)], 1);
    }

    /// The code paths that were taken.
    pub fn paths(&self) -> Vec<PathStats> {
        CodePath::ALL
            .into_iter()
            .zip(&self.paths)
            .filter_map(|(path, counters)| {
                let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                let waits = counters.waits.0.each_ref().map(load);
                let batches = waits.iter().sum();
                let quantile = |part: f64| Duration::from_nanos(Histogram::quantile(&waits, batches, part));
                (batches > 0).then(|| PathStats {
                    path,
                    batches,
                    rows: load(&counters.rows),
                    reads: load(&counters.reads),
                    bytes_read: load(&counters.bytes_read),
                    bytes_used: load(&counters.bytes_used),
                    time: Duration::from_nanos(load(&counters.nanos)),
                    p50: quantile(0.5),
                    p90: quantile(0.9),
                    p99: quantile(0.99),
                })
            })
            .collect()
    }
}

#[derive(Default)]
struct Counters {
    rows: AtomicU64,
    reads: AtomicU64,
    bytes_read: AtomicU64,
    bytes_used: AtomicU64,
    nanos: AtomicU64,
    waits: Histogram,
}

/// Batches by nanoseconds: four buckets for each power of two, so a quantile is right within a quarter.
struct Histogram([AtomicU64; Histogram::BUCKETS]);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Histogram {
    const BUCKETS: usize = 4 * 64;

    fn bucket(nanos: u64) -> usize {
        if nanos < 4 {
            return nanos as usize;
        }
        let power = nanos.ilog2();
        // The two bits below the highest.
        (4 * (power - 1)) as usize + (nanos >> (power - 2)) as usize % 4
    }

    /// The largest value of a bucket.
    fn top(bucket: usize) -> u64 {
        if bucket < 4 {
            return bucket as u64;
        }
        let (power, quarter) = (bucket as u32 / 4 + 1, bucket as u64 % 4);
        (1 << power) + ((quarter + 1) << (power - 2)) - 1
    }

    fn quantile(counts: &[u64; Histogram::BUCKETS], total: u64, part: f64) -> u64 {
        let wanted = ((total as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Histogram::top(bucket);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_lies_below_its_top_and_above_the_one_before() {
        for nanos in (0..4096).chain([u64::from(u32::MAX), 1 << 40, (1 << 62) + 12_345]) {
            let bucket = Histogram::bucket(nanos);
            assert!(nanos <= Histogram::top(bucket), "{nanos}");
            assert!(bucket == 0 || nanos > Histogram::top(bucket - 1), "{nanos}");
        }
        assert!(Histogram::bucket(u64::MAX) < Histogram::BUCKETS);
    }

    #[test]
    fn quantiles_are_right_within_a_quarter() {
        let stats = Stats::default();
        let tally = Tally { reads: 2, bytes_read: 1024 };
        for micros in 1..=100 {
            stats.add(CodePath::IoUring, 2, 160, tally, Duration::from_micros(micros));
        }
        let paths = stats.paths();
        let [path] = &paths[..] else { panic!("{paths:?}") };
        assert_eq!((path.path, path.batches, path.rows, path.reads), (CodePath::IoUring, 100, 200, 200));
        assert_eq!((path.bytes_read, path.bytes_used), (102_400, 32_000));
        for (found, expected) in [(path.p50, 50), (path.p90, 90), (path.p99, 99)] {
            let ratio = found.as_secs_f64() / Duration::from_micros(expected).as_secs_f64();
            assert!((1.0..=1.25).contains(&ratio), "{found:?} for {expected} us");
        }
    }
}
