//! A database directory's catalog.

use crate::building::{self, ViewBuilder};
use crate::entries::{Orphan, SqlViewEntry, TableEntry, ViewEntry};
use crate::errors;
use crate::guard::{detached, guard};
use crate::reading::size;
use crate::running;
use crate::table::Table;
use crate::verification::{self, Finding};
use crate::view::View;
use engram_engine::build::BuildSource;
use engram_engine::catalog::{self, RegisterOptions};
use engram_engine::source::{self, Checkpoint, SourceError, SourceKind};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// The catalog of one database directory. Safe to share between threads.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct Session {
    inner: Arc<catalog::Session>,
}

#[pymethods]
impl Session {
    /// Opens a database directory; with create, a missing or empty one becomes a database at the first change.
    #[staticmethod]
    #[pyo3(signature = (directory, *, read_only = false, create = false))]
    fn open(py: Python<'_>, directory: PathBuf, read_only: bool, create: bool) -> PyResult<Session> {
        guard(py, || {
            let inner = detached(py, || catalog::Session::open(&directory, read_only, create))?;
            Ok(Session { inner: Arc::new(inner) })
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

    /// Copies the rows of a source, or of a registered table of that name, into a store of the database.
    ///
    /// unfinished: "refuse", "resume" or "discard" an unfinished build of that name. progress: called now and then with the
    /// stage, bytes done and bytes to do. The options of register belong to a path.
    #[pyo3(signature = (name, source, *, shard_size = None, jobs = None, unfinished = "refuse", replace = false,
                        sample_rows = None, progress = None, spec = None, format = None, scale = None, width = None,
                        rows_per_shard = None, layer = None, tokenizer = None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python method")]
    fn build(
        &self,
        py: Python<'_>,
        name: &str,
        source: PathBuf,
        shard_size: Option<&Bound<'_, PyAny>>,
        jobs: Option<usize>,
        unfinished: &str,
        replace: bool,
        sample_rows: Option<u64>,
        progress: Option<&Bound<'_, PyAny>>,
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
            let table = source.to_str().filter(|name| !name.contains('/')).map(str::to_owned);
            let registered = match &table {
                Some(name) => detached(py, || self.inner.contains(name))?,
                None => false,
            };
            let source = match table {
                Some(name) if registered && options == RegisterOptions::default() => BuildSource::Table(name),
                Some(name) if registered => {
                    let message = format!("table '{name}' knows what it is; leave the options of registration out");
                    return Err(errors::argument(py, message));
                }
                _ => BuildSource::Path(source, options),
            };
            let options = building::build_options(py, shard_size, jobs, unfinished, replace, sample_rows)?;
            building::build(py, &self.inner, name, &source, &options, progress)
        })
    }

    /// Begins a view of a table; see ViewBuilder.
    ///
    /// top, budget: only the keys that the corpus needs most often, so many or so many bytes of records. heads: row ids per
    /// key, for tables without a spec. records, slot_bytes: a file of records that is there already, and the bytes from
    /// one to the next. corpus: what tells the tokens or keys from others; a build goes on only with the same. unfinished: as
    /// for build.
    #[pyo3(signature = (name, table, *, order = "key", form = "rows", top = None, budget = None, shard_size = None,
                        memory = None, unfinished = "refuse", replace = false, heads = None, records = None,
                        slot_bytes = None, corpus = None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python method")]
    fn view_builder(
        &self,
        py: Python<'_>,
        name: &str,
        table: &str,
        order: &str,
        form: &str,
        top: Option<u64>,
        budget: Option<&Bound<'_, PyAny>>,
        shard_size: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
        unfinished: &str,
        replace: bool,
        heads: Option<usize>,
        records: Option<PathBuf>,
        slot_bytes: Option<u64>,
        corpus: Option<String>,
    ) -> PyResult<ViewBuilder> {
        guard(py, || {
            if records.is_some() != slot_bytes.is_some() {
                return Err(errors::argument(py, "records and slot_bytes belong together".to_owned()));
            }
            let options = building::view_options(
                py,
                order,
                form,
                top,
                budget,
                shard_size,
                memory,
                unfinished,
                replace,
                heads,
                records.zip(slot_bytes),
                corpus,
            )?;
            // Begun with the interpreter released, by detached().
            ViewBuilder::begin(py, self.inner.clone(), name, table, options)
        })
    }

    /// The open view of that name.
    fn view(&self, py: Python<'_>, name: &str) -> PyResult<View> {
        guard(py, || Ok(View::new(detached(py, || self.inner.view(name))?)))
    }

    /// Builds the slot index of a view anew; memory: bytes for sorting, a number or a text.
    #[pyo3(signature = (view, *, memory = None, progress = None))]
    fn build_index(
        &self,
        py: Python<'_>,
        view: &str,
        memory: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        guard(py, || {
            let memory = memory.map(|memory| size(py, memory)).transpose()?;
            running::run(py, progress, |progress| engram_engine::view::build_index(&self.inner, view, memory, progress))
        })
    }

    /// Verifies a table or view of that name, or the table at that path (anything with a path separator).
    ///
    /// level: "headers", "sample" or "full". Returns whether all is well, and the findings. progress: as for build.
    #[pyo3(signature = (name, level = "full", *, resume = false, progress = None))]
    fn verify(
        &self,
        py: Python<'_>,
        name: &str,
        level: &str,
        resume: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(bool, Vec<Finding>)> {
        // Runs with the interpreter released, by running::run.
        guard(py, || verification::verify(py, &self.inner, name, level, resume, progress))
    }

    /// Points a table to the place where its files are now; headers there must say what was registered.
    fn relocate(&self, py: Python<'_>, name: &str, source: PathBuf) -> PyResult<TableEntry> {
        guard(py, || Ok(detached(py, || self.inner.relocate(name, &source))?.into()))
    }

    /// Forgets a table, view or SQL view; with data, the directory that it has inside the database goes too.
    #[pyo3(signature = (name, *, data = false))]
    fn drop(&self, py: Python<'_>, name: &str, data: bool) -> PyResult<()> {
        guard(py, || detached(py, || catalog::Session::drop(&self.inner, name, data).map(|_| ())))
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
    fn record_views(&self, py: Python<'_>) -> PyResult<Vec<ViewEntry>> {
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
