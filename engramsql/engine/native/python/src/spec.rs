//! Hash specs: constants, and row ids without a table.

use crate::errors;
use crate::guard::{detached, guard};
use crate::ids::{Ids, Meaning};
use crate::output;
use engram_engine::spec::{self, PackedSequences, Sequence, SpecFile, TokenMap};
use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::path::PathBuf;
use std::sync::Arc;

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
    /// The spec of one hash layer of a model, from its whole config.json: a dict, or the JSON text.
    ///
    /// layer is 0-based and may be left out where the model has one table. token_map: one compressed id per token id, for
    /// the families that hash compressed ids. Raises SpecError for an unknown family or layer, or an impossible field.
    #[staticmethod]
    #[pyo3(signature = (family, config, layer = None, token_map = None))]
    fn from_config(
        py: Python<'_>,
        family: &str,
        config: &Bound<'_, PyAny>,
        layer: Option<u32>,
        token_map: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Spec> {
        guard(py, || {
            let text: String = if config.is_instance_of::<PyString>() {
                config.extract()?
            } else {
                PyModule::import(py, "json")?.call_method1("dumps", (config,))?.extract()?
            };
            let config: serde_json::Value = serde_json::from_str(&text)
                .map_err(|error| errors::argument(py, format!("config is no JSON: {error}")))?;
            let token_map = token_map.map(|map| read_token_map(map)).transpose()?;
            detached(py, || spec::Spec::from_config(family, &config, layer, token_map)).map(Spec::new)
        })
    }

    /// The spec that ships under this name, or that a spec file (TOML) at this path describes.
    #[staticmethod]
    #[pyo3(signature = (name, layer = None, token_map = None))]
    fn named(py: Python<'_>, name: &str, layer: Option<u32>, token_map: Option<&Bound<'_, PyAny>>) -> PyResult<Spec> {
        guard(py, || {
            let token_map = token_map.map(|map| read_token_map(map)).transpose()?;
            detached(py, || {
                let is_path = name.contains('/') || name.ends_with(".toml");
                let file = if is_path { SpecFile::read(name) } else { SpecFile::released(name) };
                file?.spec(layer, token_map)
            })
            .map(Spec::new)
        })
    }

    /// Names of the specs that ship.
    #[staticmethod]
    fn released_names() -> Vec<&'static str> {
        SpecFile::released_names()
    }

    /// The released reference spec behind rowids_for_seq(tokens): Qwen3.8-Flash-Next's PLE.
    #[staticmethod]
    fn released_qwen_ple(py: Python<'_>) -> PyResult<Spec> {
        guard(py, || detached(py, spec::Spec::released_qwen_ple).map(Spec::new))
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

    /// Token id that bounds segments (qwen_ple_v1, longcat), or None.
    #[getter]
    fn eos_token(&self) -> Option<u64> {
        self.inner.eos_token()
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

    /// Whether token ids can be hashed; not without a token map, for some families.
    #[getter]
    fn can_hash(&self) -> bool {
        self.inner.can_hash()
    }

    /// Row ids of one sequence: int64 [tokens, heads]. history: tokens before, newest last.
    ///
    /// dead, history_dead: one flag per token, for families with dead positions (image tokens). Raises TokenIdError for a
    /// token outside the vocabulary, SpecError for a spec that needs a token map and has none.
    #[pyo3(signature = (tokens, history = None, *, dead = None, history_dead = None))]
    fn rowids<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        history: Option<&Bound<'py, PyAny>>,
        dead: Option<&Bound<'py, PyAny>>,
        history_dead: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        guard(py, || {
            let mut tokens = Tokens::read(&self.inner, tokens, history)?;
            (tokens.dead, tokens.history_dead) = (flags(dead)?, flags(history_dead)?);
            rowids_array(py, &self.inner, &tokens)
        })
    }

    /// Row ids of a packed batch: int64 [all tokens, heads], in the order of tokens.
    ///
    /// Sequence i is tokens[starts[i]:starts[i + 1]]; its history likewise. Raises what rowids raises.
    #[pyo3(signature = (tokens, starts, history = None, history_starts = None))]
    fn rowids_packed<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        starts: Vec<i64>,
        history: Option<&Bound<'py, PyAny>>,
        history_starts: Option<Vec<i64>>,
    ) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        guard(py, || {
            let tokens = Tokens::read(&self.inner, tokens, history)?;
            let Sequence { tokens, history, .. } = tokens.sequence()?;
            let history_starts = history_starts.unwrap_or_default();
            let batch = PackedSequences {
                tokens,
                starts: &starts,
                history,
                history_starts: &history_starts,
                ..PackedSequences::default()
            };
            let shape = [tokens.len(), self.inner.heads()];
            output::fresh(py, &shape, |out| self.inner.rowids_packed_into(batch, out))
        })
    }

    fn __repr__(&self) -> String {
        format!("<Spec '{}': {} heads, {} rows>", self.inner.name(), self.inner.heads(), self.inner.table_rows())
    }
}

/// Tokens and history of one sequence, or of a packed batch.
pub struct Tokens<'py> {
    tokens: Ids<'py>,
    history: Ids<'py>,
    dead: Vec<bool>,
    history_dead: Vec<bool>,
}

impl<'py> Tokens<'py> {
    /// Tokens and history as the spec wants them; whether they are in the vocabulary is the engine's to say.
    pub fn read(
        spec: &spec::Spec,
        tokens: &Bound<'py, PyAny>,
        history: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Tokens<'py>> {
        let vocab_size = spec.vocab_size();
        let tokens = Ids::read_flat(tokens, Meaning::Token(vocab_size))?;
        let history = match history {
            Some(history) => Ids::read_flat(history, Meaning::History(vocab_size))?,
            None => Ids::none(),
        };
        Ok(Tokens { tokens, history, dead: Vec::new(), history_dead: Vec::new() })
    }

    /// The engine's view of them.
    pub fn sequence(&self) -> PyResult<Sequence<'_>> {
        let sequence = Sequence::new(self.tokens.as_slice()?).with_history(self.history.as_slice()?);
        Ok(sequence.with_dead(&self.dead, &self.history_dead))
    }
}

/// Row ids of one sequence as a fresh array.
pub fn rowids_array<'py>(
    py: Python<'py>,
    spec: &spec::Spec,
    tokens: &Tokens<'py>,
) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
    let sequence = tokens.sequence()?;
    let shape = [sequence.tokens.len(), spec.heads()];
    output::fresh(py, &shape, |out| spec.rowids_into(sequence, out))
}

fn read_token_map(given: &Bound<'_, PyAny>) -> PyResult<Arc<TokenMap>> {
    let py = given.py();
    let map: Vec<u32> = as_list(given)?.extract().map_err(|_| {
        let message = "token_map must hold one compressed id (0 to 2^32 - 1) per token id";
        errors::argument_type(py, message.to_owned())
    })?;
    TokenMap::from_vec(map).map(Arc::new).map_err(|error| errors::from_engine(py, &error.into()))
}

/// Flags as a list or a bool array; none if not given.
fn flags(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<bool>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    as_list(given)?
        .extract()
        .map_err(|_| errors::argument_type(given.py(), "a dead mask must be a list or an array of bool".to_owned()))
}

/// An array as a list; anything else as it is.
fn as_list<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if given.hasattr("tolist")? { given.call_method0("tolist") } else { Ok(given.clone()) }
}

/// Compressed token map of a Hugging Face tokenizer.json: uint32, one compressed id per token id.
///
/// Raises SpecError for a file that is missing or no tokenizer. Takes a second or two for a large vocabulary.
#[pyfunction]
pub fn token_map(py: Python<'_>, tokenizer: PathBuf) -> PyResult<Bound<'_, PyArray1<u32>>> {
    guard(py, || {
        let map = detached(py, || TokenMap::from_tokenizer_json(&tokenizer))?;
        Ok(PyArray1::from_slice(py, map.map()))
    })
}
