//! An open table: rows, vectors and row ids as NumPy arrays.

use crate::arrow::ArrowIds;
use crate::entries::{HeadInfo, ShardInfo};
use crate::errors;
use crate::guard::{detached, guard};
use crate::ids::{Ids, Meaning};
use crate::inspection::{self, HeadProfile};
use crate::output;
use crate::reading::{self, PathStats, Prefetch};
use crate::spec::{Spec, Tokens, rowids_array};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// An open table. Safe to share between threads; the interpreter is released while rows are read.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct Table {
    inner: Arc<engram_engine::Table>,
}

/// Element type of decoded vectors.
#[derive(Clone, Copy)]
enum VectorType {
    Float32,
    Bfloat16,
}

impl VectorType {
    fn read(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<VectorType> {
        let Some(dtype) = dtype else {
            return Ok(VectorType::Float32);
        };
        // Accepts "float32", numpy.float32, numpy.dtype("float32"), ml_dtypes.bfloat16 and torch.bfloat16 alike, without
        // importing them.
        let name = ["name", "__name__"]
            .iter()
            .find_map(|attribute| dtype.getattr(*attribute).ok()?.extract::<String>().ok())
            .map_or_else(|| dtype.str().map(|text| text.to_string()), Ok)?;
        match name.strip_prefix("torch.").unwrap_or(&name) {
            "float32" => Ok(VectorType::Float32),
            "bfloat16" => Ok(VectorType::Bfloat16),
            _ => Err(errors::argument(
                dtype.py(),
                format!("dtype must be 'float32' or 'bfloat16' (uint16 bit patterns), got '{name}'"),
            )),
        }
    }
}

impl Table {
    pub fn new(inner: Arc<engram_engine::Table>) -> Table {
        Table { inner }
    }

    pub fn engine(&self) -> &engram_engine::Table {
        &self.inner
    }

    fn row_meaning(&self) -> Meaning<'_> {
        Meaning::Row(&self.inner)
    }

    fn require_spec(&self, py: Python<'_>) -> PyResult<&engram_engine::spec::Spec> {
        self.inner.require_spec().map_err(|error| errors::from_engine(py, &error))
    }

    fn require_dim(&self, py: Python<'_>) -> PyResult<usize> {
        self.inner.require_dim().map_err(|error| errors::from_engine(py, &error))
    }

    /// Says that the rows of a scan will be read, and those after them: maps are set for scattered rows.
    fn announce(&self, first: u64, count: usize) {
        let count = count as u64;
        self.inner.announce(first..first.saturating_add(2 * count));
    }

    /// Vectors of `ids` in an array of `shape`, which holds `ids.len() * dim` values.
    fn vectors_array<'py>(
        &self,
        py: Python<'py>,
        ids: &[i64],
        shape: &[usize],
        out: Option<&Bound<'py, PyAny>>,
        dtype: VectorType,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = &self.inner;
        Ok(match dtype {
            VectorType::Float32 => output::filled(py, out, shape, |out| table.vectors_into(ids, out))?,
            VectorType::Bfloat16 => output::filled(py, out, shape, |out| table.vectors_bf16_into(ids, out))?,
        })
    }
}

#[pymethods]
impl Table {
    /// Catalog name, or the path it was opened from.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Number of rows; valid row ids are 0 to rows - 1.
    #[getter]
    fn rows(&self) -> u64 {
        self.inner.rows()
    }

    /// Bytes of one row.
    #[getter]
    fn row_bytes(&self) -> usize {
        self.inner.row_bytes()
    }

    /// Values per row, or None if the value format is not known.
    #[getter]
    fn dim(&self) -> Option<usize> {
        self.inner.dim()
    }

    /// Name of the value format, or None.
    #[getter]
    fn format(&self) -> Option<&'static str> {
        self.inner.format().map(engram_engine::format::ValueFormat::name)
    }

    /// Scale of the value format, or None.
    #[getter]
    fn scale(&self) -> Option<f32> {
        self.inner.format()?.scale()
    }

    /// The hash spec, or None.
    #[getter]
    fn spec(&self) -> Option<Spec> {
        self.inner.spec().cloned().map(Spec::new)
    }

    /// Decoder layer (0-based), or None.
    #[getter]
    fn layer(&self) -> Option<u32> {
        self.inner.layer()
    }

    /// Bytes of all rows on disk.
    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    /// Path of the source.
    #[getter]
    fn source(&self) -> PathBuf {
        self.inner.source().to_path_buf()
    }

    /// One record per extent: where the rows lie, and how much of it the page cache holds.
    fn shards(&self, py: Python<'_>) -> PyResult<Vec<ShardInfo>> {
        guard(py, || Ok(py.detach(|| self.inner.shards()).into_iter().map(ShardInfo::from).collect()))
    }

    /// One record per head; empty without a spec.
    fn heads(&self, py: Python<'_>) -> PyResult<Vec<HeadInfo>> {
        guard(py, || Ok(self.inner.heads().into_iter().map(HeadInfo::from).collect()))
    }

    /// What the rows of each head are, and those that no head reaches, from one pass over the table in bounded memory.
    ///
    /// progress: called now and then with the stage, bytes done and bytes to do. Raises FormatError if the table has no value
    /// format, ReadError if a row cannot be read.
    #[pyo3(signature = (*, progress = None))]
    fn profile(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<HeadProfile>> {
        // Runs with the interpreter released, by running::run.
        guard(py, || inspection::profile(py, &self.inner, progress))
    }

    /// Bytes of the rows of ids: uint8, shape of ids + (row_bytes,), order and duplicates kept.
    ///
    /// out: memory to fill and return, of the result's shape and dtype, C-contiguous and writable: a numpy array, a DLPack
    /// tensor on the CPU (torch), or an object with a buffer, where one dimension of bytes is taken as plain memory.
    /// Fresh memory costs more than reading rows into it: reuse out. Raises RowIdError for an id outside the table, ReadError
    /// if a byte of a row cannot be read, ArgumentError if out does not fit.
    #[pyo3(signature = (ids, out = None))]
    fn fetch<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let ids = Ids::read(ids, self.row_meaning())?;
            let shape = [ids.shape(), &[self.inner.row_bytes()]].concat();
            let ids = ids.as_slice()?;
            output::filled(py, out, &shape, |out| self.inner.fetch_into(ids, out))
        })
    }

    /// Decoded rows of ids: float32, shape of ids + (dim,); with dtype "bfloat16" uint16 bit patterns, rounded once.
    ///
    /// out: as for fetch; with dtype "bfloat16" also tensors of bfloat16. Raises FormatError if the table has no value format,
    /// and what fetch raises.
    #[pyo3(signature = (ids, out = None, dtype = None))]
    fn vectors<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let dtype = VectorType::read(dtype)?;
            let dim = self.require_dim(py)?;
            let ids = Ids::read(ids, self.row_meaning())?;
            let shape = [ids.shape(), &[dim]].concat();
            self.vectors_array(py, ids.as_slice()?, &shape, out, dtype)
        })
    }

    /// Rows from first on, count of them, read in order and past the row cache: what a pass over a whole table reads with.
    /// The system is told to read as many again ahead. uint8 [count, row_bytes]; with dtype "float32" or "bfloat16" as
    /// vectors.
    ///
    /// out: as for fetch. Raises RowIdError for rows outside the table, and what fetch and vectors raise.
    #[pyo3(signature = (first, count, out = None, dtype = None))]
    fn scan<'py>(
        &self,
        py: Python<'py>,
        first: i64,
        count: i64,
        out: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let table = &self.inner;
            let (begin, end) = (i128::from(first), i128::from(first) + i128::from(count));
            let rows = i128::from(table.rows());
            let (Ok(first), Ok(count)) = (u64::try_from(first), usize::try_from(count)) else {
                return Err(errors::from_engine(py, &table.out_of_range(begin.min(end))));
            };
            if end > rows {
                return Err(errors::from_engine(py, &table.out_of_range(end - 1)));
            }
            let Some(dtype) = dtype else {
                self.announce(first, count);
                return output::filled(py, out, &[count, table.row_bytes()], |out| table.scan_into(first, out));
            };
            let (dtype, dim) = (VectorType::read(Some(dtype))?, self.require_dim(py)?);
            self.announce(first, count);
            match dtype {
                VectorType::Float32 => {
                    output::filled(py, out, &[count, dim], |out| table.scan_vectors_into(first, out))
                }
                VectorType::Bfloat16 => {
                    output::filled(py, out, &[count, dim], |out| table.scan_vectors_bf16_into(first, out))
                }
            }
        })
    }

    /// Bytes of the rows of ids as a pyarrow.FixedSizeBinaryArray over the memory they were read into.
    ///
    /// ids: one dimension; an Arrow array may have NULLs, whose rows are NULL. Raises ArgumentError for more values than one
    /// Arrow array may hold (2^31 - 1), and what fetch raises.
    fn fetch_arrow<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let ids = ArrowIds::read(ids, self.row_meaning())?;
            ids.binary(py, self.inner.row_bytes(), |ids, out| self.inner.fetch_into(ids, out))
        })
    }

    /// Decoded rows of ids as a pyarrow.FixedSizeListArray of float32; with dtype "bfloat16" of uint16 bit patterns.
    ///
    /// ids: as for fetch_arrow. Raises what fetch_arrow and vectors raise.
    #[pyo3(signature = (ids, dtype = None))]
    fn vectors_arrow<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let (table, dtype) = (&self.inner, VectorType::read(dtype)?);
            let dim = self.require_dim(py)?;
            let ids = ArrowIds::read(ids, self.row_meaning())?;
            match dtype {
                VectorType::Float32 => ids.lists(py, dim, "float32", |ids, out| table.vectors_into(ids, out)),
                VectorType::Bfloat16 => ids.lists(py, dim, "uint16", |ids, out| table.vectors_bf16_into(ids, out)),
            }
        })
    }

    /// Row ids of one sequence: int64 [tokens, heads]. history: tokens before, newest last.
    ///
    /// Raises SpecError if the table has no spec, TokenIdError for a token outside the vocabulary.
    #[pyo3(signature = (tokens, history = None))]
    fn rowids<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        history: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        guard(py, || {
            let spec = self.require_spec(py)?;
            rowids_array(py, spec, &Tokens::read(spec, tokens, history)?)
        })
    }

    /// e_t of every token of one sequence: float32 [tokens, heads * dim]; with dtype "bfloat16" uint16 bit patterns.
    ///
    /// Tokens that a view of the table holds are read there, one read each; the values are the same.
    /// out: as for vectors. Raises what rowids and vectors raise.
    #[pyo3(signature = (tokens, history = None, out = None, dtype = None))]
    fn e_t<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        history: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let dtype = VectorType::read(dtype)?;
            let dim = self.require_dim(py)?;
            let spec = self.require_spec(py)?;
            let tokens = Tokens::read(spec, tokens, history)?;
            let sequence = tokens.sequence()?;
            let ids = detached(py, || spec.rowids(sequence))?;
            let shape = [sequence.tokens.len(), spec.heads() * dim];
            let table = &self.inner;
            match dtype {
                VectorType::Float32 => output::filled(py, out, &shape, |out| table.e_t_into(&ids, out)),
                VectorType::Bfloat16 => output::filled(py, out, &shape, |out| table.e_t_bf16_into(&ids, out)),
            }
        })
    }

    /// What reading this table cost so far in this process, one record per code path that was taken.
    fn stats(&self) -> Vec<PathStats> {
        self.inner.stats().into_iter().map(PathStats::from).collect()
    }

    /// Reads rows ahead into the row cache and returns at once; a later call for the same ids finds them there. Where the
    /// row cache is off, the system is asked to bring them into the page cache.
    ///
    /// Raises RowIdError for an id outside the table.
    fn prefetch(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<Prefetch> {
        guard(py, || {
            let ids = Ids::read(ids, self.row_meaning())?;
            let ids = ids.as_slice()?;
            Ok(Prefetch::new(detached(py, || self.inner.prefetch(ids.to_vec()))?))
        })
    }

    /// Brings rows, from the first on, into memory: into the row cache if a RAM budget was set, else into the page cache.
    /// Returns the bytes of rows that are there then.
    ///
    /// budget: bytes of rows at most, a number or a text like "8GB"; by default the RAM budget, or half of the memory.
    /// progress: called now and then with the bytes done and the bytes to do. Raises ArgumentError for what is no size,
    /// ReadError if a row cannot be read.
    #[pyo3(signature = (budget = None, progress = None))]
    fn warm(
        &self,
        py: Python<'_>,
        budget: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        /// Bytes between two looks at whether somebody has pressed Ctrl-C.
        const STRETCH: u64 = 64 << 20;
        guard(py, || {
            let budget = budget.map(|budget| reading::size(py, budget)).transpose()?;
            let (table, rows) = (&self.inner, self.inner.rows_within(budget));
            let bytes = |rows: u64| rows * table.row_bytes() as u64;
            let (mut done, mut resident) = (0, 0);
            while done < rows {
                let end = rows.min(done + table.rows_of_stretch(STRETCH));
                resident += detached(py, || table.warm(done..end))?;
                done = end;
                py.check_signals()?;
                if let Some(progress) = progress {
                    progress.call1((bytes(done), bytes(rows)))?;
                }
            }
            Ok(resident)
        })
    }

    fn __repr__(&self) -> String {
        let format = self.format().unwrap_or("no format");
        format!(
            "<Table '{}': {} rows x {} bytes, {format}>",
            self.inner.name(),
            self.inner.rows(),
            self.inner.row_bytes()
        )
    }
}
