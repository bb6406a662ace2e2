//! Building tables and views.

use crate::entries::{TableEntry, ViewEntry};
use crate::errors;
use crate::guard::{detached, guard};
use crate::ids::{Ids, Meaning};
use crate::reading::size;
use crate::running;
use engram_engine::build::{BuildOptions, BuildSource};
use engram_engine::catalog;
use engram_engine::storage::Unfinished;
use engram_engine::view::{self, Form, Order, RecordFile, ViewOptions};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The word of the Python signature for what becomes of an unfinished build.
pub fn unfinished(py: Python<'_>, word: &str) -> PyResult<Unfinished> {
    match word {
        "refuse" => Ok(Unfinished::Refuse),
        "resume" => Ok(Unfinished::Resume),
        "discard" => Ok(Unfinished::Discard),
        _ => Err(errors::argument(py, format!("unfinished must be 'refuse', 'resume' or 'discard', got '{word}'"))),
    }
}

/// Bytes, or the engine's own choice.
fn size_or(py: Python<'_>, given: Option<&Bound<'_, PyAny>>, default: u64) -> PyResult<u64> {
    given.map_or(Ok(default), |given| size(py, given))
}

/// Runs a build; the arguments are those of `Session.build`.
pub fn build(
    py: Python<'_>,
    session: &catalog::Session,
    name: &str,
    source: &BuildSource,
    options: &BuildOptions,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<TableEntry>> {
    let entries =
        running::run(py, progress, |progress| engram_engine::build::build(session, name, source, options, progress))?;
    Ok(entries.into_iter().map(TableEntry::from).collect())
}

/// The engine's options for a table, from those of the Python signature.
pub fn build_options(
    py: Python<'_>,
    shard_size: Option<&Bound<'_, PyAny>>,
    jobs: Option<usize>,
    unfinished: &str,
    replace: bool,
    sample_rows: Option<u64>,
) -> PyResult<BuildOptions> {
    let usual = BuildOptions::default();
    Ok(BuildOptions {
        shard_bytes: size_or(py, shard_size, usual.shard_bytes)?,
        jobs: jobs.unwrap_or(usual.jobs),
        unfinished: self::unfinished(py, unfinished)?,
        replace,
        sample_rows: sample_rows.unwrap_or(usual.sample_rows),
    })
}

/// The engine's options for a view, from those of the Python signature.
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python method")]
pub fn view_options(
    py: Python<'_>,
    order: &str,
    form: &str,
    top: Option<u64>,
    budget: Option<&Bound<'_, PyAny>>,
    shard_size: Option<&Bound<'_, PyAny>>,
    memory: Option<&Bound<'_, PyAny>>,
    unfinished: &str,
    replace: bool,
    heads: Option<usize>,
    records: Option<(PathBuf, u64)>,
    corpus: Option<String>,
) -> PyResult<ViewOptions> {
    let usual = ViewOptions::default();
    let order = Order::from_name(order)
        .ok_or_else(|| errors::argument(py, format!("order must be 'key' or 'access', got '{order}'")))?;
    let form = Form::from_name(form)
        .ok_or_else(|| errors::argument(py, format!("form must be 'rows' or 'float32', got '{form}'")))?;
    Ok(ViewOptions {
        form,
        order,
        top,
        budget: budget.map(|budget| size(py, budget)).transpose()?,
        shard_bytes: size_or(py, shard_size, usual.shard_bytes)?,
        memory: size_or(py, memory, usual.memory)?,
        unfinished: self::unfinished(py, unfinished)?,
        replace,
        heads,
        corpus,
        records: records.map(|(path, slot_bytes)| RecordFile { path, slot_bytes }),
    })
}

/// A view that is being built: add a corpus or its keys, then finish. One call at a time. Dropped before its keys are
/// complete it leaves nothing; later, what a build with resume goes on with.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct ViewBuilder {
    session: Arc<catalog::Session>,
    vocab_size: u64,
    heads: usize,
    keys_are_complete: bool,
    /// None once it is finished.
    inner: Mutex<Option<view::ViewBuilder>>,
}

impl ViewBuilder {
    /// Begins a view of `table`.
    pub fn begin(
        py: Python<'_>,
        session: Arc<catalog::Session>,
        name: &str,
        table: &str,
        options: ViewOptions,
    ) -> PyResult<ViewBuilder> {
        let (inner, vocab_size) = detached(py, || {
            let vocab_size = session.table(table)?.spec().map_or(0, |spec| spec.vocab_size());
            Ok::<_, engram_engine::Error>((view::ViewBuilder::begin(&session, name, table, options)?, vocab_size))
        })?;
        let (heads, keys_are_complete) = (inner.heads(), inner.keys_are_complete());
        Ok(ViewBuilder { session, vocab_size, heads, keys_are_complete, inner: Mutex::new(Some(inner)) })
    }

    fn lock(&self) -> MutexGuard<'_, Option<view::ViewBuilder>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the builder, with the interpreter released.
    fn with(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut view::ViewBuilder) -> engram_engine::Result<()> + Send,
    ) -> PyResult<()> {
        let outcome = py.detach(|| self.lock().as_mut().map(work));
        match outcome {
            Some(result) => result.map_err(|error| errors::from_engine(py, &error)),
            None => Err(finished(py)),
        }
    }
}

fn finished(py: Python<'_>) -> PyErr {
    errors::argument(py, "the view was finished already; begin another one".to_owned())
}

#[pymethods]
impl ViewBuilder {
    /// Row ids per key.
    #[getter]
    fn heads(&self) -> usize {
        self.heads
    }

    /// Whether the keys are complete already, because the build goes on where another one ended: add nothing then.
    #[getter]
    fn keys_are_complete(&self) -> bool {
        self.keys_are_complete
    }

    /// Adds token sequences: int64 [n], of which sequence i is tokens[starts[i]:starts[i + 1]]; the first start is 0.
    ///
    /// history: tokens before the first sequence, newest last, if it goes on with the last one that was added. Raises
    /// TokenIdError for a token outside the vocabulary, with its place.
    #[pyo3(signature = (tokens, starts, history = None))]
    fn add(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        starts: Vec<usize>,
        history: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        guard(py, || {
            let tokens = Ids::read_flat(tokens, Meaning::Token(self.vocab_size))?;
            let history = match history {
                Some(history) => Ids::read_flat(history, Meaning::History(self.vocab_size))?,
                None => Ids::none(),
            };
            let (tokens, history) = (tokens.as_slice()?, history.as_slice()?);
            self.with(py, |builder| builder.add(tokens, &starts, history))
        })
    }

    /// Adds keys: integers [n, heads]; they become the next slots, in this order.
    ///
    /// Raises RowIdError for a row id that the table does not have.
    fn add_keys(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(py, || {
            let keys = Ids::read(keys, Meaning::Key(self.heads))?;
            let keys = keys.as_slice()?;
            self.with(py, |builder| builder.add_keys(keys))
        })
    }

    /// Writes keys, records and index, and names the view in the catalog.
    ///
    /// progress: called now and then with the stage, bytes done and bytes to do.
    #[pyo3(signature = (progress = None))]
    fn finish(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<ViewEntry> {
        guard(py, || {
            let builder = py.detach(|| self.lock().take()).ok_or_else(|| finished(py))?;
            let entry = running::run(py, progress, |progress| builder.finish(&self.session, progress))?;
            Ok(entry.into())
        })
    }
}
