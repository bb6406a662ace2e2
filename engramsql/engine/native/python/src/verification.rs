//! Verification and comparison.

use crate::guard::guard;
use crate::running;
use crate::table::Table;
use engram_engine::catalog;
use engram_engine::verify::{self, Level};
use pyo3::prelude::*;

record! {
    /// One thing that was checked.
    Finding from verify::Finding {
        /// Kind of check: "manifest", "files", "size", "stray", "block", "rows", "token_map", "records", "keys", "index".
        check: &'static str,
        /// Shard, 0-based, if it is about one.
        shard: Option<u32>,
        /// Whether all is well.
        ok: bool,
        /// What should be, if that is one value.
        expected: Option<String>,
        /// What is.
        found: Option<String>,
        /// The thing, and what is wrong with it.
        detail: String,
    }
}

record! {
    /// A row in which two tables differ.
    Difference from verify::Difference {
        /// Its row id.
        rowid: u64,
        /// Its first byte that differs, counted from 0.
        byte: u64,
        /// That byte in the first table.
        a: u8,
        /// And in the second.
        b: u8,
    }
}

record! {
    /// What a comparison of two tables found.
    Comparison {
        /// Rows compared: all rows.
        rows: u64,
        /// Rows whose bytes are all equal.
        equal: u64,
        /// The others.
        different: u64,
        /// The first of those, in row order.
        first: Vec<Difference>,
    }
}

impl From<verify::Comparison> for Comparison {
    fn from(comparison: verify::Comparison) -> Comparison {
        Comparison {
            rows: comparison.rows,
            equal: comparison.equal,
            different: comparison.different,
            first: comparison.first.into_iter().map(Difference::from).collect(),
        }
    }
}

/// Verifies a table, view or path; the arguments are those of `Session.verify`.
pub fn verify(
    py: Python<'_>,
    session: &catalog::Session,
    name: &str,
    level: &str,
    resume: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(bool, Vec<Finding>)> {
    running::run(py, progress, |progress| {
        let mut findings = Vec::new();
        let level = Level::from_name(level)?;
        let mut report = |finding| findings.push(Finding::from(finding));
        let good = verify::verify(session, name, level, resume, progress, &mut report)?;
        Ok((good, findings))
    })
}

/// Compares every row of two tables, byte by byte; keep: how many of the differences to return, the first ones.
///
/// progress: called now and then with the stage, bytes done and bytes to do. Raises ArgumentError for tables of different
/// shape, ReadError if a row cannot be read.
#[pyfunction]
#[pyo3(signature = (a, b, *, keep = 100, progress = None))]
pub fn compare(
    py: Python<'_>,
    a: &Bound<'_, Table>,
    b: &Bound<'_, Table>,
    keep: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    guard(py, || {
        let (a, b) = (a.get().engine(), b.get().engine());
        let found = running::run(py, progress, |progress| verify::compare(a, b, keep, progress, None))?;
        Ok(found.into())
    })
}
