//! A database directory's catalog.

use crate::entries::{Orphan, SqlViewEntry, TableEntry, ViewEntry};
use crate::guard::{detached, guard};
use crate::table::Table;
use engram_engine::catalog::{self, RegisterOptions};
use engram_engine::source::{self, Checkpoint, SourceError, SourceKind};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The catalog of one database directory. Safe to share between threads.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct Session {
    inner: catalog::Session,
}

#[pymethods]
impl Session {
    /// Opens a database directory; with create, a missing or empty one becomes a database at the first change.
    #[staticmethod]
    #[pyo3(signature = (directory, *, read_only = false, create = false))]
    fn open(py: Python<'_>, directory: PathBuf, read_only: bool, create: bool) -> PyResult<Session> {
        guard(py, || {
            let inner = detached(py, || catalog::Session::open(&directory, read_only, create))?;
            Ok(Session { inner })
        })
    }

    /// The database directory.
    #[getter]
    fn directory(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        // Detached: the catalog's lock is waited for, and its holder may be waiting for the interpreter.
        guard(py, || Ok(py.detach(|| self.inner.directory())))
    }

    /// Reads a source's headers and remembers it under name; several hash layers make several tables.
    #[pyo3(signature = (name, source, *, spec = None, format = None, scale = None, width = None,
                        rows_per_shard = None, layer = None, tokenizer = None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python method")]
    fn register(
        &self,
        py: Python<'_>,
        name: &str,
        source: PathBuf,
        spec: Option<String>,
        format: Option<String>,
        scale: Option<f32>,
        width: Option<u64>,
        rows_per_shard: Option<u64>,
        layer: Option<u32>,
        tokenizer: Option<PathBuf>,
    ) -> PyResult<Vec<TableEntry>> {
        let options = RegisterOptions { spec, format, scale, width, rows_per_shard, tokenizer, layer };
        guard(py, || {
            let entries = detached(py, || self.inner.register(name, &source, &options))?;
            Ok(entries.into_iter().map(TableEntry::from).collect())
        })
    }

    /// Points a table to the place where its files are now; headers there must say what was registered.
    fn relocate(&self, py: Python<'_>, name: &str, source: PathBuf) -> PyResult<TableEntry> {
        guard(py, || Ok(detached(py, || self.inner.relocate(name, &source))?.into()))
    }

    /// Forgets a table, view or SQL view; with data, the directory that it has inside the database goes too.
    #[pyo3(signature = (name, *, data = false))]
    fn drop(&self, py: Python<'_>, name: &str, data: bool) -> PyResult<()> {
        guard(py, || detached(py, || self.inner.drop(name, data).map(|_| ())))
    }

    /// Everything below the database directory that no entry names.
    fn orphans(&self, py: Python<'_>) -> PyResult<Vec<Orphan>> {
        guard(py, || {
            let found = detached(py, || self.inner.orphans())?;
            Ok(found.into_iter().map(Orphan::from).collect())
        })
    }

    /// Removes the orphans, but for what is foreign or being written, and returns those removed.
    fn remove_orphans(&self, py: Python<'_>) -> PyResult<Vec<Orphan>> {
        guard(py, || {
            let removed = detached(py, || self.inner.remove_orphans())?;
            Ok(removed.into_iter().map(Orphan::from).collect())
        })
    }

    /// All tables, in registration order.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<TableEntry>> {
        guard(py, || {
            let entries = detached(py, || self.inner.tables())?;
            Ok(entries.into_iter().map(TableEntry::from).collect())
        })
    }

    /// All SQL views, in creation order.
    fn views(&self, py: Python<'_>) -> PyResult<Vec<SqlViewEntry>> {
        guard(py, || {
            let entries = detached(py, || self.inner.sql_views())?;
            Ok(entries.into_iter().map(SqlViewEntry::from).collect())
        })
    }

    /// All materialised views, in the order of their first publication.
    fn materialised_views(&self, py: Python<'_>) -> PyResult<Vec<ViewEntry>> {
        guard(py, || {
            let entries = detached(py, || self.inner.views())?;
            Ok(entries.into_iter().map(ViewEntry::from).collect())
        })
    }

    /// Keeps a SQL view; one of that name is replaced if replace.
    #[pyo3(signature = (name, sql, *, replace = false))]
    fn create_view(&self, py: Python<'_>, name: &str, sql: &str, replace: bool) -> PyResult<()> {
        guard(py, || detached(py, || self.inner.create_sql_view(name, sql, replace)))
    }

    /// Forgets a SQL view.
    fn drop_view(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        guard(py, || detached(py, || self.inner.drop_sql_view(name)))
    }

    /// The open table of that name, or of that path (anything with a path separator).
    fn table(&self, py: Python<'_>, name_or_path: &str) -> PyResult<Table> {
        guard(py, || {
            let inner = detached(py, || self.inner.table(name_or_path))?;
            Ok(Table::new(inner))
        })
    }

    /// Cancels what is being prefetched from tables that this session has open.
    fn cancel_prefetches(&self, py: Python<'_>) -> PyResult<()> {
        guard(py, || {
            py.detach(|| self.inner.cancel_prefetches());
            Ok(())
        })
    }

    /// Whether name is a registered table; no file of a source is opened.
    fn contains(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        guard(py, || detached(py, || self.inner.contains(name)))
    }
}

/// The table name for a source that is opened without one: "ple", "engram", "rows".
///
/// Raises SourceError if path is neither a checkpoint nor a store.
#[pyfunction]
pub fn default_name(py: Python<'_>, path: PathBuf) -> PyResult<&'static str> {
    guard(py, || detached(py, || source::default_name(&path)))
}

/// Files of a checkpoint that its index does not name and that are therefore ignored; none for a store.
///
/// Raises SourceError if path is neither a checkpoint nor a store.
#[pyfunction]
pub fn stray_files(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    guard(py, || {
        detached(py, || match source::kind_of(&path)? {
            SourceKind::Checkpoint => Ok(Checkpoint::open(&path)?.files()?.1),
            SourceKind::Store => Ok::<_, SourceError>(Vec::new()),
        })
    })
}
