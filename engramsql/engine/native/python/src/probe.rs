//! The limit probes of this machine, for `engramsql bench`.

use crate::errors;
use crate::guard::guard;
use engram_engine::format::{Decoder, ValueFormat};
use engram_engine::probe;
use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::OnceLock;

/// One measurement of a probe.
#[pyclass(frozen, get_all, module = "engramsql.engine")]
pub struct ProbeReading {
    /// Time from the first read to the last row.
    seconds: f64,
    /// Reads: submissions or system calls; copies for memory.
    reads: u64,
    /// Bytes asked for by these reads; for decoding, values.
    bytes: u64,
    /// The code path really taken.
    path: String,
}

impl From<probe::Reading> for ProbeReading {
    fn from(reading: probe::Reading) -> ProbeReading {
        ProbeReading {
            seconds: reading.elapsed.as_secs_f64(),
            reads: reading.reads,
            bytes: reading.bytes,
            path: reading.path,
        }
    }
}

/// What is asked of a shard: a ShardInfo, or any object with these attributes.
#[derive(FromPyObject)]
struct Extent {
    shard: u32,
    file: PathBuf,
    first_row: u64,
    rows: u64,
    offset: u64,
    bytes: u64,
}

/// Limits of the disk and of memory for the rows of one table. Files are opened when they are first needed.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct Probe {
    extents: Vec<probe::ProbeExtent>,
    hot_rows: u64,
    direct: OnceLock<probe::Direct>,
    mapped: OnceLock<probe::MappedRows>,
}

fn raise(py: Python<'_>, error: &probe::ProbeError) -> PyErr {
    let class = match error {
        probe::ProbeError::Argument { .. } => "ArgumentError",
        _ => "ReadError",
    };
    errors::raise(py, class, error.to_string())
}

impl Probe {
    fn extents(&self) -> Result<probe::Extents, probe::ProbeError> {
        probe::Extents::new(&self.extents)
    }

    fn direct(&self) -> Result<&probe::Direct, probe::ProbeError> {
        if self.direct.get().is_none() {
            // A second thread that opens them too loses its own.
            let _ = self.direct.set(probe::Direct::open(self.extents()?)?);
        }
        self.direct.get().ok_or_else(unreachable)
    }

    fn mapped(&self) -> Result<&probe::MappedRows, probe::ProbeError> {
        if self.mapped.get().is_none() {
            let _ = self.mapped.set(probe::MappedRows::open(self.extents()?, self.hot_rows)?);
        }
        self.mapped.get().ok_or_else(unreachable)
    }

    /// Runs `work` on the bytes of `out`, an exclusive uint8 array.
    fn filled(
        py: Python<'_>,
        out: &Bound<'_, PyArrayDyn<u8>>,
        work: impl FnOnce(&mut [u8]) -> Result<probe::Reading, probe::ProbeError> + Send,
    ) -> PyResult<ProbeReading> {
        let mut target = out
            .try_readwrite()
            .map_err(|_| errors::argument(py, "out is read-only or the output of a running call".to_owned()))?;
        let out = target.as_slice_mut()?;
        py.detach(|| work(out)).map(ProbeReading::from).map_err(|error| raise(py, &error))
    }
}

/// Never built: both cells are set before they are asked.
fn unreachable() -> probe::ProbeError {
    probe::ProbeError::Argument { what: "the probe has no files".to_owned() }
}

fn executor(py: Python<'_>, name: Option<&str>) -> PyResult<Option<probe::Executor>> {
    match name {
        None => Ok(None),
        Some("io_uring") => Ok(Some(probe::Executor::IoUring)),
        Some("threads") => Ok(Some(probe::Executor::Threads)),
        Some(other) => {
            let message = format!("executor must be 'io_uring', 'threads' or None, got '{other}'");
            Err(errors::argument(py, message))
        }
    }
}

#[pymethods]
impl Probe {
    /// A probe of the extents that Table.shards() reports; gather brings rows 0 to hot_rows - 1 into memory first.
    #[new]
    #[pyo3(signature = (shards, hot_rows = u64::MAX))]
    fn new(py: Python<'_>, shards: Vec<Extent>, hot_rows: u64) -> PyResult<Probe> {
        guard(py, || {
            let extents = shards
                .into_iter()
                .map(|s| probe::ProbeExtent {
                    file: s.file,
                    shard: s.shard,
                    first_row: s.first_row,
                    rows: s.rows,
                    offset: s.offset,
                    bytes: s.bytes,
                })
                .collect();
            let made = Probe { extents, hot_rows, direct: OnceLock::new(), mapped: OnceLock::new() };
            made.extents().map_err(|error| raise(py, &error))?;
            Ok(made)
        })
    }

    /// Smallest read that the disk takes around the page cache, bytes.
    #[getter]
    fn sector(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || Ok(self.direct().map_err(|error| raise(py, &error))?.sector()))
    }

    /// Reads the rows of ids one by one around the page cache, sorted, depth reads outstanding, into out: uint8.
    ///
    /// executor: "io_uring", "threads", or None for io_uring and threads where it is refused. Raises ReadError where the file
    /// system has no reads around the page cache.
    #[pyo3(signature = (ids, out, *, depth = 128, sector = None, executor = None))]
    fn random(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray1<'_, i64>,
        out: &Bound<'_, PyArrayDyn<u8>>,
        depth: usize,
        sector: Option<u64>,
        executor: Option<&str>,
    ) -> PyResult<ProbeReading> {
        guard(py, || {
            let executor = self::executor(py, executor)?;
            // A copy: the caller's array may change while the interpreter is released.
            let ids = ids.as_slice()?.to_vec();
            Probe::filled(py, out, |out| {
                let direct = self.direct()?;
                direct.random(&ids, out, sector.unwrap_or(direct.sector()), depth, executor)
            })
        })
    }

    /// Reads about length bytes in blocks around the page cache, from start bytes into the table, depth blocks outstanding.
    #[pyo3(signature = (start, length, *, block, depth, executor = None))]
    fn sequential(
        &self,
        py: Python<'_>,
        start: u64,
        length: u64,
        block: u32,
        depth: usize,
        executor: Option<&str>,
    ) -> PyResult<ProbeReading> {
        guard(py, || {
            let executor = self::executor(py, executor)?;
            let done = py.detach(|| self.direct()?.sequential(start, length, block, depth, executor));
            done.map(ProbeReading::from).map_err(|error| raise(py, &error))
        })
    }

    /// Copies about length bytes of the table to the file target, in blocks around the page cache; the file stays.
    ///
    /// If written is given, blocks are written several times or left out, so that about so many bytes are written.
    #[pyo3(signature = (target, length, *, block, written = None))]
    fn copy(
        &self,
        py: Python<'_>,
        target: PathBuf,
        length: u64,
        block: u32,
        written: Option<u64>,
    ) -> PyResult<ProbeReading> {
        guard(py, || {
            let done = py.detach(|| self.direct()?.copy(&target, length, written, block));
            done.map(ProbeReading::from).map_err(|error| raise(py, &error))
        })
    }

    /// Copies the rows of ids out of memory in a tight loop into out: uint8.
    #[pyo3(signature = (ids, out, *, threads = 1))]
    fn gather(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray1<'_, i64>,
        out: &Bound<'_, PyArrayDyn<u8>>,
        threads: usize,
    ) -> PyResult<ProbeReading> {
        guard(py, || {
            // A copy: the caller's array may change while the interpreter is released.
            let ids = ids.as_slice()?.to_vec();
            Probe::filled(py, out, |out| self.mapped()?.gather(&ids, out, threads))
        })
    }
}

/// Rate of one thread: kind "copy" (memcpy), "widen" (byte to float32, the least a decoder does) or a value format.
///
/// place: "cache" or "memory". For a value format, row_bytes and its scale are needed and bytes counts values.
#[pyfunction]
#[pyo3(signature = (kind, place, *, row_bytes = 160, scale = None))]
pub fn probe_rate(
    py: Python<'_>,
    kind: &str,
    place: &str,
    row_bytes: usize,
    scale: Option<f32>,
) -> PyResult<ProbeReading> {
    guard(py, || {
        let memory = match place {
            "cache" => probe::Memory::Cache,
            "memory" => probe::Memory::Main,
            other => return Err(errors::argument(py, format!("place must be 'cache' or 'memory', got '{other}'"))),
        };
        let reading = match kind {
            "copy" => py.detach(|| probe::copy_rate(memory)),
            "widen" => py.detach(|| probe::widen_rate(memory)),
            format => {
                let format =
                    ValueFormat::from_name(format, scale).map_err(|error| errors::from_engine(py, &error.into()))?;
                let decoder = Decoder::new(format);
                py.detach(|| probe::decode_rate(&decoder, row_bytes, memory)).ok_or_else(|| {
                    let message = format!("format '{kind}' has no rows of {row_bytes} bytes");
                    errors::raise(py, "FormatError", message)
                })?
            }
        };
        Ok(reading.into())
    })
}
