//! Hash specs: constants, and row ids without a table.

use crate::guard::{detached, guard};
use crate::ids::{Ids, Meaning};
use crate::output;
use engram_engine::spec::{self, Sequence};
use numpy::PyArrayDyn;
use pyo3::prelude::*;

/// A hash family with its constants for one table. Immutable.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct Spec {
    inner: spec::Spec,
}

impl Spec {
    pub fn new(inner: spec::Spec) -> Spec {
        Spec { inner }
    }
}

#[pymethods]
impl Spec {
    /// The released reference spec behind rowids_for_seq(tokens): Qwen3.8-Flash-Next's PLE.
    #[staticmethod]
    fn released_qwen_ple(py: Python<'_>) -> PyResult<Spec> {
        guard(py, || {
            detached(py, spec::Spec::released_qwen_ple).map(Spec::new)
        })
    }

    /// Family name.
    #[getter]
    fn family(&self) -> &'static str {
        self.inner.family()
    }

    /// Name of the released spec that these constants equal, else the family name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Row ids per token.
    #[getter]
    fn heads(&self) -> usize {
        self.inner.heads()
    }

    /// n-gram order of each head.
    #[getter]
    fn ngram_orders(&self) -> Vec<u32> {
        self.inner.ngram_orders().to_vec()
    }

    /// Buckets of each head.
    #[getter]
    fn head_sizes(&self) -> Vec<u64> {
        self.inner.head_sizes().to_vec()
    }

    /// First row id of each head.
    #[getter]
    fn head_offsets(&self) -> Vec<u64> {
        self.inner.head_offsets().to_vec()
    }

    /// Odd multipliers, one per window position.
    #[getter]
    fn multipliers(&self) -> Vec<i64> {
        self.inner.multipliers().to_vec()
    }

    /// Rows that hashes can reach.
    #[getter]
    fn reachable_rows(&self) -> u64 {
        self.inner.reachable_rows()
    }

    /// Rows of the table, padding included.
    #[getter]
    fn table_rows(&self) -> u64 {
        self.inner.table_rows()
    }

    /// Valid token ids are 0 to vocab_size - 1.
    #[getter]
    fn vocab_size(&self) -> u64 {
        self.inner.vocab_size()
    }

    /// Decoder layer (0-based), or None.
    #[getter]
    fn layer(&self) -> Option<u32> {
        self.inner.layer()
    }

    /// Tokens of history that matter.
    #[getter]
    fn history_len(&self) -> usize {
        self.inner.history_len()
    }

    /// Row ids of one sequence: int64 [tokens, heads]. history: tokens before, newest last.
    ///
    /// Raises TokenIdError for a token outside the vocabulary.
    #[pyo3(signature = (tokens, history = None))]
    fn rowids<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        history: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        guard(py, || rowids_array(py, &self.inner, tokens, history))
    }

    fn __repr__(&self) -> String {
        format!(
            "<Spec '{}': {} heads, {} rows>",
            self.inner.name(),
            self.inner.heads(),
            self.inner.table_rows()
        )
    }
}

/// Tokens and history as the spec wants them.
pub fn history_of<'py>(
    spec: &spec::Spec,
    tokens: &Bound<'py, PyAny>,
    history: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Ids<'py>, Ids<'py>)> {
    let vocab_size = spec.vocab_size();
    let tokens = Ids::read_flat(
        tokens,
        Meaning::Token {
            noun: "token id",
            vocab_size,
        },
    )?;
    let meaning = Meaning::Token {
        noun: "history token id",
        vocab_size,
    };
    let history = history.map_or_else(
        || Ok(Ids::none()),
        |history| Ids::read_flat(history, meaning),
    )?;
    Ok((tokens, history))
}

/// Row ids of one sequence as a fresh array.
pub fn rowids_array<'py>(
    py: Python<'py>,
    spec: &spec::Spec,
    tokens: &Bound<'py, PyAny>,
    history: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
    let (tokens, history) = history_of(spec, tokens, history)?;
    let (tokens, history) = (tokens.as_slice()?, history.as_slice()?);
    let array = output::array::<i64>(py, None, &[tokens.len(), spec.heads()])?;
    let mut target = output::exclusive(&array)?;
    let rowids = target.as_slice_mut()?;
    detached(py, || {
        spec.rowids_into(Sequence { tokens, history }, rowids)
    })?;
    Ok(array)
}
