//! Results as Arrow arrays, built over the memory that the rows were read into.

use crate::errors;
use crate::ids::{Ids, Meaning, numpy_function};
use crate::output::{self, Value};
use engram_engine::Error;
use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

/// Values that one Arrow array may have: the index of a fixed-size list's first value has 32 bits in several readers.
const MOST_VALUES: usize = i32::MAX as usize;

/// Row ids of which some may be NULL.
pub struct ArrowIds<'py> {
    /// The ids that are there, in order.
    ids: Ids<'py>,
    /// Which ids are there; None if all are.
    valid: Option<PyReadonlyArrayDyn<'py, bool>>,
}

impl<'py> ArrowIds<'py> {
    /// Reads whatever [`Ids`] reads, and Arrow arrays with NULLs. One dimension only, as Arrow arrays have.
    pub fn read(object: &Bound<'py, PyAny>, meaning: Meaning<'_>) -> PyResult<ArrowIds<'py>> {
        let nulls = object.getattr("null_count").and_then(|count| count.extract::<usize>()).unwrap_or(0);
        if nulls == 0 {
            return Ok(ArrowIds { ids: Ids::read_flat(object, meaning)?, valid: None });
        }
        let valid = numpy_function(object.py(), "asarray")?.call1((object.call_method0("is_valid")?,))?;
        let valid = valid.cast_into::<PyArrayDyn<bool>>()?;
        let ids = Ids::read_flat(&object.call_method0("drop_null")?, meaning)?;
        Ok(ArrowIds { ids, valid: Some(valid.readonly()) })
    }

    /// Rows of the result: one per id, NULL or not.
    fn rows(&self) -> PyResult<usize> {
        match &self.valid {
            Some(valid) => Ok(valid.as_slice()?.len()),
            None => Ok(self.ids.as_slice()?.len()),
        }
    }

    /// An array of `width` values per id, and its validity as an Arrow buffer. `work` reads the ids that are there.
    fn gathered<T: Value + Default, E: Into<Error> + Send>(
        &self,
        py: Python<'py>,
        width: usize,
        work: impl FnOnce(&[i64], &mut [T]) -> Result<(), E> + Send,
    ) -> PyResult<Gathered<'py>> {
        let rows = self.rows()?;
        let most = MOST_VALUES / width.max(1);
        if rows > most {
            let message = format!(
                "{rows} rows of {width} are more than one Arrow array may hold; ask for at most {most} ids at a time"
            );
            return Err(errors::argument(py, message));
        }
        let ids = self.ids.as_slice()?;
        let valid = self.valid.as_ref().map(PyReadonlyArrayDyn::as_slice).transpose()?;
        let values = output::fresh(py, &[rows * width], |values: &mut [T]| {
            work(ids, &mut values[..ids.len() * width])?;
            if let Some(valid) = valid {
                spread(values, width, valid);
            }
            Ok::<(), E>(())
        })?;
        let validity = match &self.valid {
            // The second buffer of an Arrow array of booleans is the bitmap that a validity is.
            Some(valid) => {
                let bits = pyarrow(py, "array")?.call1((valid.as_any(),))?;
                bits.call_method0("buffers")?.get_item(1)?
            }
            None => py.None().into_bound(py),
        };
        Ok(Gathered { rows, nulls: rows - ids.len(), validity, values: values.into_any() })
    }

    /// The rows that `work` reads, as a FixedSizeBinaryArray.
    pub fn binary<E: Into<Error> + Send>(
        &self,
        py: Python<'py>,
        row_bytes: usize,
        work: impl FnOnce(&[i64], &mut [u8]) -> Result<(), E> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Gathered { rows, nulls, validity, values } = self.gathered(py, row_bytes, work)?;
        let buffers = PyList::new(py, [validity, pyarrow(py, "py_buffer")?.call1((values,))?])?;
        from_buffers(py)?.call1((pyarrow(py, "binary")?.call1((row_bytes,))?, rows, buffers, nulls))
    }

    /// The vectors that `work` decodes, as a FixedSizeListArray of the Arrow type named `element`.
    pub fn lists<T: Value + Default, E: Into<Error> + Send>(
        &self,
        py: Python<'py>,
        dim: usize,
        element: &str,
        work: impl FnOnce(&[i64], &mut [T]) -> Result<(), E> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Gathered { rows, nulls, validity, values } = self.gathered(py, dim, work)?;
        let element = pyarrow(py, element)?.call0()?;
        let buffers = PyList::new(py, [py.None().into_bound(py), pyarrow(py, "py_buffer")?.call1((values,))?])?;
        let values = from_buffers(py)?.call1((&element, rows * dim, buffers, 0))?;
        let list = pyarrow(py, "list_")?.call1((element, dim))?;
        let (buffers, children) = (PyList::new(py, [validity])?, PyList::new(py, [values])?);
        from_buffers(py)?.call1((list, rows, buffers, nulls, 0, children))
    }
}

struct Gathered<'py> {
    rows: usize,
    nulls: usize,
    validity: Bound<'py, PyAny>,
    values: Bound<'py, PyAny>,
}

/// Moves the rows, packed at the front, to the places of the ids that are there. The places of NULLs are zeroed: Arrow
/// writes them to files as they are, and they would show whatever was in the memory before.
fn spread<T: Copy + Default>(values: &mut [T], width: usize, valid: &[bool]) {
    let mut packed = valid.iter().filter(|&&valid| valid).count();
    // From the end: the place of a row is never before the row.
    for (place, &valid) in valid.iter().enumerate().rev() {
        let to = place * width;
        if valid {
            packed -= 1;
            values.copy_within(packed * width..(packed + 1) * width, to);
        } else {
            values[to..to + width].fill(T::default());
        }
    }
}

fn from_buffers(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    pyarrow(py, "Array")?.getattr("from_buffers")
}

/// A member of the pyarrow module, which is imported on first use.
fn pyarrow<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static PYARROW: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    PYARROW.get_or_try_init(py, || PyModule::import(py, "pyarrow").map(Bound::unbind))?.bind(py).getattr(name)
}
