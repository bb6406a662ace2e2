//! Result arrays: fresh ones, or the caller's `out`.

use crate::errors;
use crate::guard::detached;
use crate::ids::numpy_function;
use engram_engine::Error;
use numpy::{Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A C-contiguous array of `shape` to write to: `out` if it fits exactly, else a fresh one.
///
/// Fresh memory is NumPy's `empty`: the engine writes every value or fails, and then the array is dropped unseen.
fn array<'py, T: Element>(
    py: Python<'py>,
    out: Option<&Bound<'py, PyAny>>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let dtype = numpy::dtype::<T>(py);
    let Some(out) = out else {
        let shape = PyTuple::new(py, shape)?;
        let array = numpy_function(py, "empty")?.call1((shape, dtype))?;
        return Ok(array.cast_into::<PyArrayDyn<T>>()?);
    };
    let Ok(array) = out.cast::<PyUntypedArray>() else {
        let found = out.get_type().name()?;
        return Err(errors::argument_type(py, format!("out must be a numpy array, got {found}")));
    };
    let refuse = |what: String| Err(errors::argument(py, format!("out must be {what}")));
    if !array.dtype().is_equiv_to(&dtype) {
        return refuse(format!("of dtype {dtype}, got {}", array.dtype()));
    }
    if array.shape() != shape {
        return refuse(format!("of shape {}, got {}", tuple(shape), tuple(array.shape())));
    }
    let flags = array.getattr("flags")?;
    if !array.is_c_contiguous() || !flags.getattr("aligned")?.extract::<bool>()? {
        return refuse("C-contiguous and aligned; pass numpy.empty(...) or a slice of whole rows".to_owned());
    }
    if !flags.getattr("writeable")?.extract::<bool>()? {
        return refuse("writable, got a read-only array".to_owned());
    }
    Ok(array.clone().into_any().cast_into::<PyArrayDyn<T>>()?)
}

/// An array of `shape` (`out`, or a fresh one) after `work` has filled it with the interpreter released.
///
/// Access is exclusive meanwhile: a second call with the same `out` is refused, not raced.
pub fn filled<'py, T: Element, E: Into<Error> + Send>(
    py: Python<'py>,
    out: Option<&Bound<'py, PyAny>>,
    shape: &[usize],
    work: impl FnOnce(&mut [T]) -> Result<(), E> + Send,
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let array = array::<T>(py, out, shape)?;
    {
        let mut target = array.try_readwrite().map_err(|_| {
            let message = "out shares memory with the ids or with the output of a running call";
            errors::argument(py, message.to_owned())
        })?;
        let values = target.as_slice_mut()?;
        detached(py, || work(values))?;
    }
    Ok(array)
}

/// A shape as Python writes it.
fn tuple(shape: &[usize]) -> String {
    match shape {
        [only] => format!("({only},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
