//! What is in a table.

use crate::running;
use engram_engine::Table;
use engram_engine::inspect;
use pyo3::prelude::*;

record! {
    /// What the rows of one head are, or those that no head reaches.
    HeadProfile from inspect::HeadProfile {
        /// Head, 0-based; None: rows that no head reaches, or of a table without a spec.
        head: Option<u32>,
        /// n-gram order of the head.
        ngram_order: Option<u32>,
        /// Its rows.
        rows: u64,
        /// Rows of which every value is zero, of either sign.
        dead: u64,
        /// Rows whose values are all equal, none of them NaN, and not dead.
        constant: u64,
        /// Values that are NaN.
        nans: u64,
        /// Values that are infinite.
        infs: u64,
        /// Values that are zero, of either sign.
        zeros: u64,
        /// Smallest finite value; this and the next three are None if no value is finite.
        min: Option<f32>,
        /// Largest finite value.
        max: Option<f32>,
        /// Mean of the finite values.
        mean: Option<f64>,
        /// Their population standard deviation.
        stddev: Option<f64>,
        /// Smallest Euclidean norm of the rows whose values are all finite; this and the next two are None without any.
        norm_min: Option<f64>,
        /// Largest.
        norm_max: Option<f64>,
        /// Their mean.
        norm_mean: Option<f64>,
        /// Smallest block scale that the rows store, decoded, without the scale of the table; None if they store none.
        scale_min: Option<f32>,
        /// Largest.
        scale_max: Option<f32>,
        /// Rows with a NaN.
        nan_rows: u64,
        /// Rows with an infinite value.
        inf_rows: u64,
    }
}

/// Profiles the heads of a table; the arguments are those of `Table.profile`.
pub fn profile(py: Python<'_>, table: &Table, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<HeadProfile>> {
    let found = running::run(py, progress, |progress| inspect::profile(table, progress))?;
    Ok(found.into_iter().map(HeadProfile::from).collect())
}
