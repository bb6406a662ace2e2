//! An open view: records, keys and slots as NumPy arrays.

use crate::entries::ShardInfo;
use crate::errors;
use crate::guard::{detached, guard};
use crate::ids::{Ids, Meaning};
use crate::output;
use crate::peer_index::{self, whole_keys};
use crate::reading::PathStats;
use engram_engine::view::ViewError;
use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// An open materialised view. Safe to share between threads; the interpreter is released while records are read.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct View {
    inner: Arc<engram_engine::view::View>,
}

impl View {
    pub fn new(inner: Arc<engram_engine::view::View>) -> View {
        View { inner }
    }
}

#[pymethods]
impl View {
    /// Name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Name of the table whose rows it holds.
    #[getter]
    fn table(&self) -> &str {
        self.inner.table()
    }

    /// Records; valid slots are 0 to slots - 1.
    #[getter]
    fn slots(&self) -> u64 {
        self.inner.slots()
    }

    /// Row ids per key.
    #[getter]
    fn heads(&self) -> usize {
        self.inner.heads()
    }

    /// Bytes per record.
    #[getter]
    fn record_bytes(&self) -> usize {
        self.inner.record_bytes()
    }

    /// What a record holds: "rows" (their stored bytes) or "float32" (e_t).
    #[getter]
    fn form(&self) -> &'static str {
        self.inner.form().name()
    }

    /// Order of the records: "key", or "access": as the corpus first needs them.
    #[getter]
    fn order(&self) -> &'static str {
        self.inner.order().name()
    }

    /// Bytes of all records.
    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.slots() * self.inner.record_bytes() as u64
    }

    /// Values of e_t, or None if the table's value format is not known.
    #[getter]
    fn dim(&self) -> Option<usize> {
        self.inner.values()
    }

    /// Why its table may not answer from it, as what the view is or did ("was built from ..."); None if it may.
    #[getter]
    fn why(&self) -> Option<&str> {
        self.inner.why()
    }

    /// Whether its table may answer from it.
    #[getter]
    fn usable(&self) -> bool {
        self.inner.is_usable()
    }

    /// Records of slots: uint8, shape of slots + (record_bytes,), order and duplicates kept.
    ///
    /// out: memory to fill and return, as for Table.fetch. Raises RowIdError for a slot outside the view, ReadError if a
    /// byte of a record cannot be read.
    #[pyo3(signature = (slots, out = None))]
    fn records<'py>(
        &self,
        py: Python<'py>,
        slots: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let slots = Ids::read(slots, Meaning::Slot(&self.inner))?;
            let shape = [slots.shape(), &[self.inner.record_bytes()]].concat();
            let slots = slots.as_slice()?;
            output::filled(py, out, &shape, |out| self.inner.records_into(slots, out))
        })
    }

    /// e_t of slots: float32, shape of slots + (dim,): what Table.e_t gives for tokens with these keys.
    ///
    /// out: as for Table.vectors. Raises FormatError if the table has no value format, and what records raises.
    #[pyo3(signature = (slots, out = None))]
    fn e_t<'py>(
        &self,
        py: Python<'py>,
        slots: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let Some(dim) = self.inner.values() else {
                let table = self.inner.table().to_owned();
                return Err(errors::from_engine(py, &engram_engine::Error::NoFormat { table }));
            };
            let slots = Ids::read(slots, Meaning::Slot(&self.inner))?;
            let shape = [slots.shape(), &[dim]].concat();
            let slots = slots.as_slice()?;
            output::filled(py, out, &shape, |out| self.inner.e_t_into(slots, out))
        })
    }

    /// Keys of slots: int64, shape of slots + (heads,), a row id per head.
    ///
    /// Raises RowIdError for a slot outside the view.
    fn keys<'py>(&self, py: Python<'py>, slots: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        guard(py, || {
            let slots = Ids::read(slots, Meaning::Slot(&self.inner))?;
            let shape = [slots.shape(), &[self.inner.heads()]].concat();
            let slots = slots.as_slice()?;
            let valid = 0..self.inner.slots() as i64;
            if let Some(&slot) = slots.iter().find(|slot| !valid.contains(slot)) {
                let (name, slots) = (self.inner.name().to_owned(), self.inner.slots());
                let error = ViewError::SlotOutOfRange { name, slots, slot: slot.into() };
                return Err(errors::from_engine(py, &error.into()));
            }
            output::fresh(py, &shape, |out| self.inner.keys().keys_into(slots, out))
        })
    }

    /// The slot of each key: int64, the lowest if it has several, -1 if the view does not hold it.
    ///
    /// keys: integers [..., heads], as Table.rowids gives them. Raises StorageError if the index is damaged.
    fn lookup<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        guard(py, || {
            let (keys, shape) = whole_keys(keys, self.inner.heads())?;
            let keys = keys.as_slice()?;
            output::fresh(py, &shape, |out| self.inner.lookup_many(keys, out))
        })
    }

    /// Every slot of one key, ascending: int64 [n].
    fn lookup_all<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        guard(py, || {
            let key = Ids::read_flat(key, Meaning::Key(self.inner.heads()))?;
            let key = key.as_slice()?;
            let slots = detached(py, || self.inner.lookup_all(key))?;
            Ok(PyArray1::from_vec(py, slots.into_iter().map(|slot| slot as i64).collect()))
        })
    }

    /// One record per file of records; a slot is a row of it.
    fn shards(&self, py: Python<'_>) -> PyResult<Vec<ShardInfo>> {
        guard(py, || Ok(py.detach(|| self.inner.shards()).into_iter().map(ShardInfo::from).collect()))
    }

    /// What reading this view cost so far in this process, one record per code path that was taken.
    fn stats(&self) -> Vec<PathStats> {
        self.inner.stats().into_iter().map(PathStats::from).collect()
    }

    /// Writes a slot index as engramdb-python reads it at directory, where nothing is yet.
    ///
    /// version: 1 to 3; the rest as for PeerIndex.write.
    #[pyo3(signature = (directory, version, *, hash = None, buckets = None, memory = None, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python method")]
    fn write_peer_index(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        version: u32,
        hash: Option<&str>,
        buckets: Option<u64>,
        memory: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        guard(py, || {
            let (view, heads) = (&self.inner, self.inner.heads());
            let options = peer_index::options(py, heads, view.slots(), version, hash, buckets, memory)?;
            peer_index::write_keys(py, &directory, &options, view.keys(), progress)
        })
    }

    fn __repr__(&self) -> String {
        let view = &self.inner;
        format!(
            "<View '{}' of '{}': {} records x {} bytes, {}>",
            view.name(),
            view.table(),
            view.slots(),
            view.record_bytes(),
            view.form().name()
        )
    }
}
