//! Slot indexes on disk as engramdb-python reads and writes them.

use crate::errors;
use crate::guard::{detached, guard};
use crate::ids::{Ids, Meaning};
use crate::output;
use crate::reading::size;
use crate::running;
use engram_engine::Error;
use engram_engine::slot_index::peer::{self, DEFAULT_BUCKETS, PeerHash, PeerOptions, PeerWriter};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Memory for sorting unless somebody asks for another: what a block of builders takes.
const MEMORY: u64 = 64 << 20;

/// The engine's options, from those of the Python signatures.
pub fn options(
    py: Python<'_>,
    heads: usize,
    expected: u64,
    version: u32,
    hash: Option<&str>,
    buckets: Option<u64>,
    memory: Option<&Bound<'_, PyAny>>,
) -> PyResult<PeerOptions> {
    let hash = match hash {
        // What engramdb's own builders choose.
        None if version == 1 => PeerHash::Blake2b,
        None => PeerHash::Fnv1a64,
        Some(name) => PeerHash::from_name(name)
            .ok_or_else(|| errors::argument(py, format!("hash must be 'fnv1a-64' or 'blake2b', got '{name}'")))?,
    };
    let memory = memory.map_or(Ok(MEMORY), |memory| size(py, memory))?;
    Ok(PeerOptions { version, hash, heads, num_buckets: buckets.unwrap_or(DEFAULT_BUCKETS), expected, memory })
}

/// A slot index of engramdb-python on disk, version 1 to 3. Safe to share between threads.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct PeerIndex {
    inner: peer::PeerIndex,
}

#[pymethods]
impl PeerIndex {
    /// Opens the index in a directory: its manifest, and the sizes of its files against it.
    ///
    /// Raises SourceError for files that are missing or contradict each other.
    #[staticmethod]
    fn open(py: Python<'_>, directory: PathBuf) -> PyResult<PeerIndex> {
        guard(py, || Ok(PeerIndex { inner: detached(py, || peer::PeerIndex::open(&directory))? }))
    }

    /// Writes an index at directory, where nothing is yet: keys are integers [n, heads], slots integers [n].
    ///
    /// version: 1 to 3. hash: "blake2b" (version 1) or "fnv1a-64" (version 2; 3 takes either). Raises ArgumentError for
    /// what the format cannot hold.
    #[staticmethod]
    #[pyo3(signature = (directory, keys, slots, *, version = 2, hash = None, buckets = None, memory = None,
                        progress = None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python method")]
    fn write(
        py: Python<'_>,
        directory: PathBuf,
        keys: &Bound<'_, PyAny>,
        slots: &Bound<'_, PyAny>,
        version: u32,
        hash: Option<&str>,
        buckets: Option<u64>,
        memory: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        guard(py, || {
            let keys = Ids::read(keys, Meaning::Key(0))?;
            let &[count, heads] = keys.shape() else {
                let message = format!("keys must have two dimensions, a row per key; got {}", keys.shape().len());
                return Err(errors::argument(py, message));
            };
            let slots = Ids::read_flat(slots, Meaning::Key(heads))?;
            let (keys, slots) = (keys.as_slice()?, slots.as_slice()?);
            if slots.len() != count || slots.iter().any(|&slot| slot < 0) {
                let message = format!("slots must be {count} numbers of at least 0, one per key");
                return Err(errors::argument(py, message));
            }
            let options = options(py, heads, count as u64, version, hash, buckets, memory)?;
            running::run(py, progress, |progress| {
                let mut writer = PeerWriter::create(&directory, &options)?;
                for (key, &slot) in keys.chunks_exact(heads.max(1)).zip(slots) {
                    writer.push(key, slot as u64)?;
                }
                writer.finish(progress)
            })
        })
    }

    /// Version of the format, 1 to 3.
    #[getter]
    fn version(&self) -> u32 {
        self.inner.version()
    }

    /// How keys choose buckets: "fnv1a-64" or "blake2b".
    #[getter]
    fn hash(&self) -> &'static str {
        self.inner.hash().name()
    }

    /// Row ids per key.
    #[getter]
    fn heads(&self) -> usize {
        self.inner.heads()
    }

    /// Buckets, with and without records.
    #[getter]
    fn buckets(&self) -> u64 {
        self.inner.num_buckets()
    }

    /// Records.
    #[getter]
    fn count(&self) -> u64 {
        self.inner.count()
    }

    /// The slot of each key as engramdb-python gives it: int64, -1 for a key that is not there.
    ///
    /// keys: integers [..., heads]. Of several slots the first in file order, which need not be the lowest. Raises
    /// SourceError for a bucket that is damaged.
    fn lookup<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let heads = self.inner.heads();
            let (keys, shape) = whole_keys(keys, heads)?;
            let keys = keys.as_slice()?;
            let found = output::fresh(py, &shape, |slots: &mut [i64]| {
                for (key, slot) in keys.chunks_exact(heads).zip(slots) {
                    *slot = self.inner.lookup(key)?.map_or(-1, |slot| slot as i64);
                }
                Ok::<_, Error>(())
            })?;
            Ok(found.into_any())
        })
    }

    /// Every slot of one key, in file order: int64 [n].
    fn lookup_all<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        guard(py, || {
            let key = Ids::read_flat(key, Meaning::Key(self.inner.heads()))?;
            let key = key.as_slice()?;
            let slots = detached(py, || self.inner.lookup_all(key))?;
            Ok(PyArray1::from_vec(py, slots.into_iter().map(|slot| slot as i64).collect()))
        })
    }

    /// Hands over all records in file order: take(keys, slots) is called with int64 [n, heads] and int64 [n].
    ///
    /// Raises what take raises, SourceError for a bucket that is damaged.
    #[pyo3(signature = (take, progress = None))]
    fn entries(&self, py: Python<'_>, take: &Bound<'_, PyAny>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(py, || {
            let (take, heads) = (take.clone().unbind(), self.inner.heads());
            let failure = Mutex::new(None);
            let outcome = running::run(py, progress, |progress| {
                self.inner.entries(progress, &mut |keys, slots| {
                    Python::attach(|py| hand_over(py, &take, heads, keys, slots)).map_err(|error| {
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        Error::Cancelled
                    })
                })
            });
            match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
                Some(error) => Err(error),
                None => outcome,
            }
        })
    }

    fn __repr__(&self) -> String {
        format!("<PeerIndex v{}: {} keys, {}>", self.inner.version(), self.inner.count(), self.inner.hash().name())
    }
}

fn hand_over(py: Python<'_>, take: &Py<PyAny>, heads: usize, keys: &[i64], slots: &[u64]) -> PyResult<()> {
    let keys = PyArray1::from_slice(py, keys).reshape([slots.len(), heads])?;
    let slots = PyArray1::from_vec(py, slots.iter().map(|&slot| slot as i64).collect());
    take.call1(py, (keys, slots)).map(drop)
}

/// Keys of `heads` row ids each, and the shape of what there is one of per key.
pub fn whole_keys<'py>(keys: &Bound<'py, PyAny>, heads: usize) -> PyResult<(Ids<'py>, Vec<usize>)> {
    let py = keys.py();
    let keys = Ids::read(keys, Meaning::Key(heads))?;
    match keys.shape().split_last() {
        Some((&last, front)) if last == heads => {
            let front = front.to_vec();
            Ok((keys, front))
        }
        _ => {
            let found = keys.shape();
            Err(errors::argument(py, format!("keys must be of shape [..., {heads}], a row id per head; got {found:?}")))
        }
    }
}

/// Writes the index of a view's keys; the arguments are those of `View.write_peer_index`.
pub fn write_keys(
    py: Python<'_>,
    directory: &Path,
    options: &PeerOptions,
    keys: &engram_engine::slot_index::Keys,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    running::run(py, progress, |progress| peer::write_keys(directory, options, keys, progress))
}
