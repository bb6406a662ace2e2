//! The SQL functions inside this module: DuckDB runs them on the engine that Python uses.

use crate::errors;
use crate::guard::guard;
use pyo3::prelude::*;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Makes the SQL functions part of the DuckDB library at this path, for every database opened afterwards.
///
/// The library must be loaded, and export static registration (DuckDB 2.0 on). None, or why not; then LOAD remains.
#[pyfunction]
pub fn register_static(py: Python<'_>, library: PathBuf) -> PyResult<Option<String>> {
    guard(py, || {
        let path = CString::new(library.as_os_str().as_bytes())
            .map_err(|_| errors::argument(py, format!("library {} has a NUL byte in its path", library.display())))?;
        Ok(py.detach(|| engramsql::register_static(&path)).err())
    })
}
