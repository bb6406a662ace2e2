//! What reading costs, what is in memory, and settings of the engine.

use crate::errors;
use crate::guard::{detached, guard};
use engram_engine::cache::{self, RowCache};
use engram_engine::settings;
use pyo3::prelude::*;
use std::time::Duration;

record! {
    /// What one code path of one table did since the table was first opened in this process.
    PathStats {
        /// Code path: "mapped", "io_uring", "pread", "sequential" or "cache".
        path: &'static str,
        /// Batches that took it, at least in part.
        batches: u64,
        /// Rows that came by it.
        rows: u64,
        /// Reads, of the disk or the page cache.
        reads: u64,
        /// Bytes that these reads brought.
        bytes_read: u64,
        /// Bytes of the rows handed over.
        bytes_used: u64,
        /// Seconds spent, of all threads together.
        seconds: f64,
        /// Microseconds that a batch took: half of them at most this.
        p50_us: f64,
        /// Nine tenths.
        p90_us: f64,
        /// Ninety-nine of a hundred.
        p99_us: f64,
    }
}

impl From<engram_engine::read::PathStats> for PathStats {
    fn from(stats: engram_engine::read::PathStats) -> PathStats {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        PathStats {
            path: stats.path.name(),
            batches: stats.batches,
            rows: stats.rows,
            reads: stats.reads,
            bytes_read: stats.bytes_read,
            bytes_used: stats.bytes_used,
            seconds: stats.time.as_secs_f64(),
            p50_us: micros(stats.p50),
            p90_us: micros(stats.p90),
            p99_us: micros(stats.p99),
        }
    }
}

record! {
    /// What the row cache of this process holds and did.
    CacheUsage {
        /// Bytes that it may hold; 0: off.
        budget: u64,
        /// Whether somebody asked for that budget.
        explicit: bool,
        /// Bytes that it holds, index included.
        bytes: u64,
        /// Rows that it holds.
        rows: u64,
        /// Rows that were found.
        hits: u64,
        /// Rows that were not.
        misses: u64,
    }
}

/// What the row cache of this process holds and did.
#[pyfunction]
pub fn cache_usage(py: Python<'_>) -> PyResult<CacheUsage> {
    guard(py, || {
        let usage = detached(py, || RowCache::global().map(RowCache::usage))?;
        let cache::CacheUsage { budget, explicit, bytes, rows, hits, misses, .. } = usage;
        Ok(CacheUsage { budget, explicit, bytes, rows, hits, misses })
    })
}

/// Sets the bytes that the row cache of this process may hold: a number, a text like "8GB", or None for the default.
///
/// Raises ArgumentError for what is no size, or too small to keep rows.
#[pyfunction]
#[pyo3(signature = (budget))]
pub fn set_ram_budget(py: Python<'_>, budget: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    guard(py, || {
        let bytes = budget.map(|budget| size(py, budget)).transpose()?;
        detached(py, || RowCache::global()?.set_budget(bytes.map(cache::check_budget).transpose()?))
    })
}

/// Bytes, as a number or as a text with a unit.
pub fn size(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(text) = value.extract::<String>() {
        return cache::parse_bytes(&text).map_err(|error| errors::from_engine(py, &error.into()));
    }
    value.extract::<u64>().map_err(|_| {
        let found = value.repr().map_or_else(|_| "something else".to_owned(), |repr| repr.to_string());
        errors::argument(py, format!("a size is a number of bytes or a text like '8GB', got {found}"))
    })
}

/// Forces the code path of every batch of this process by its name; "auto" leaves the choice to each batch, and "" is
/// what ENGRAMSQL_READER says.
///
/// Raises ReadError for a name that is none.
#[pyfunction]
pub fn set_reader(py: Python<'_>, name: &str) -> PyResult<()> {
    guard(py, || detached(py, || settings::set_reader(name)))
}

/// Threads that one call may use for rows in memory.
#[pyfunction]
pub fn threads() -> usize {
    settings::threads()
}

/// Sets threads(); None means as many as the process may use.
///
/// Raises ArgumentError for what is no number of threads.
#[pyfunction]
#[pyo3(signature = (count))]
pub fn set_threads(py: Python<'_>, count: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let refused = |count: &Bound<'_, PyAny>| {
        let found = count.repr().map_or_else(|_| "something else".to_owned(), |repr| repr.to_string());
        errors::argument(py, format!("threads must be a number from 1 to {MOST_THREADS}, got {found}"))
    };
    let count = match count {
        None => None,
        Some(count) => match count.extract::<usize>() {
            Ok(threads @ 1..=MOST_THREADS) => Some(threads),
            _ => return Err(refused(count)),
        },
    };
    settings::set_threads(count);
    Ok(())
}

/// More than any machine has; a number beyond it is no number of threads.
const MOST_THREADS: usize = 65_536;

/// Name of the kernels that decode and hash: "avx512", "avx2", "neon" or "portable".
///
/// Raises ArgumentError if ENGRAMSQL_KERNEL asks for one that this processor does not have.
#[pyfunction]
pub fn kernel(py: Python<'_>) -> PyResult<&'static str> {
    guard(py, || Ok(detached(py, engram_engine::cpu::level)?.name()))
}

/// Rows that are being read ahead; see Table.prefetch.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct Prefetch {
    inner: engram_engine::Prefetch,
}

impl Prefetch {
    pub fn new(inner: engram_engine::Prefetch) -> Prefetch {
        Prefetch { inner }
    }
}

#[pymethods]
impl Prefetch {
    /// Rows asked for.
    #[getter]
    fn rows(&self) -> usize {
        self.inner.rows()
    }

    /// Their bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    /// Whether it has ended: read, failed or cancelled.
    #[getter]
    fn done(&self) -> bool {
        self.inner.is_done()
    }

    /// Whether it was cancelled before it ended.
    #[getter]
    fn cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    /// Waits until it has ended, at most timeout seconds; whether it has.
    ///
    /// Raises ReadError, once, if a row could not be read.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        /// Between two looks at whether somebody has pressed Ctrl-C.
        const LOOK: Duration = Duration::from_millis(100);
        let timeout = match timeout.map(Duration::try_from_secs_f64) {
            None => None,
            Some(Ok(timeout)) => Some(timeout),
            Some(Err(_)) => {
                return Err(errors::argument(py, "timeout must be a number of seconds, 0 or more".to_owned()));
            }
        };
        guard(py, || {
            let mut left = timeout;
            loop {
                let step = left.map_or(LOOK, |left| left.min(LOOK));
                if detached(py, || self.inner.wait(Some(step)))? {
                    return Ok(true);
                }
                py.check_signals()?;
                left = left.map(|left| left.saturating_sub(step));
                if left == Some(Duration::ZERO) {
                    return Ok(false);
                }
            }
        })
    }

    /// Ends it early; what was read stays. Returns at once.
    fn cancel(&self) {
        self.inner.cancel();
    }

    fn __repr__(&self) -> String {
        let state = match (self.inner.is_done(), self.inner.is_cancelled()) {
            (_, true) => "cancelled",
            (true, false) => "done",
            (false, false) => "reading",
        };
        format!("<Prefetch of {} rows, {state}>", self.inner.rows())
    }
}
