//! Result arrays: fresh ones, or the caller's `out`.

use crate::errors;
use crate::ids::numpy_function;
use numpy::{
    Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadwriteArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A C-contiguous array of `shape` to write to: `out` if it fits exactly, else a fresh one.
///
/// Fresh memory is NumPy's `empty`: the engine writes every value or fails, and then the array is dropped unseen.
pub fn array<'py, T: Element>(
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

/// Exclusive access for the time of one call: a second call with the same `out` is refused, not raced.
pub fn exclusive<'py, T: Element>(array: &Bound<'py, PyArrayDyn<T>>) -> PyResult<PyReadwriteArrayDyn<'py, T>> {
    array.try_readwrite().map_err(|_| {
        let message = "out shares memory with the ids or with the output of a running call";
        errors::argument(array.py(), message.to_owned())
    })
}

/// A shape as Python writes it.
fn tuple(shape: &[usize]) -> String {
    match shape {
        [only] => format!("({only},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
