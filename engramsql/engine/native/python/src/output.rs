//! Result arrays: fresh ones, or memory of the caller's that is filled in place.

use crate::errors;
use crate::guard::detached;
use crate::ids::numpy_function;
use crate::lent::{self, Lent};
use engram_engine::Error;
use numpy::{Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// An element type of results.
pub trait Value: Element + Copy + Send {
    /// Names of the types that `out` may have, the one NumPy uses first.
    const NAMES: &'static [&'static str];
}

impl Value for u8 {
    const NAMES: &'static [&'static str] = &["uint8"];
}

impl Value for f32 {
    const NAMES: &'static [&'static str] = &["float32"];
}

/// Bit patterns of bfloat16: NumPy has no such type, tensor libraries and ml_dtypes do.
impl Value for u16 {
    const NAMES: &'static [&'static str] = &["uint16", "bfloat16"];
}

impl Value for i64 {
    const NAMES: &'static [&'static str] = &["int64"];
}

/// A fresh array of `shape` after `work` has filled it with the interpreter released.
///
/// The memory is NumPy's `empty`: `work` writes every value or fails, and then the array is dropped unseen.
pub fn fresh<'py, T: Value, E: Into<Error> + Send>(
    py: Python<'py>,
    shape: &[usize],
    work: impl FnOnce(&mut [T]) -> Result<(), E> + Send,
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let array = numpy_function(py, "empty")?.call1((PyTuple::new(py, shape)?, numpy::dtype::<T>(py)))?;
    let array = array.cast_into::<PyArrayDyn<T>>()?;
    fill(&array, work)?;
    Ok(array)
}

/// `out` itself, or without one a fresh array of `shape`, after `work` has filled it with the interpreter released.
///
/// `out` is a NumPy array, a DLPack tensor on the CPU or an object with a writable buffer, of this shape and type, in C
/// order. Access is exclusive meanwhile: a second call with the same memory is refused, not raced.
pub fn filled<'py, T: Value, E: Into<Error> + Send>(
    py: Python<'py>,
    out: Option<&Bound<'py, PyAny>>,
    shape: &[usize],
    work: impl FnOnce(&mut [T]) -> Result<(), E> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(out) = out else {
        return Ok(fresh(py, shape, work)?.into_any());
    };
    if let Some(mut lent) = Lent::<T>::of_tensor(out, shape)? {
        lent.fill(py, work)?;
    } else {
        let array = given_array::<T>(out, shape)?;
        let _claim = lent::claim_array(&array)?;
        fill(&array, work)?;
    }
    Ok(out.clone())
}

fn fill<T: Value, E: Into<Error> + Send>(
    array: &Bound<'_, PyArrayDyn<T>>,
    work: impl FnOnce(&mut [T]) -> Result<(), E> + Send,
) -> PyResult<()> {
    let mut target = array.try_readwrite().map_err(|_| lent::shared(array.py()))?;
    let values = target.as_slice_mut()?;
    detached(array.py(), || work(values))
}

/// `out` as an array to write to, if it fits exactly: a NumPy array, or one over the buffer of another object.
fn given_array<'py, T: Value>(out: &Bound<'py, PyAny>, shape: &[usize]) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let py = out.py();
    let refuse = |what: String| Err(errors::argument(py, format!("out must be {what}")));
    let array = match out.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => array_over_buffer::<T>(out, shape)?,
    };
    let dtype = numpy::dtype::<T>(py);
    let array = if array.dtype().is_equiv_to(&dtype) {
        array
    } else {
        let found = array.dtype().to_string();
        if !T::NAMES.contains(&found.as_str()) {
            return Err(wrong_type::<T>(py, &found));
        }
        // A type that NumPy learned from another package, of the same width.
        array.call_method1("view", (dtype,))?.cast_into::<PyUntypedArray>()?
    };
    check_shape(py, shape, array.shape())?;
    let flags = array.getattr("flags")?;
    if !array.is_c_contiguous() || !flags.getattr("aligned")?.extract::<bool>()? {
        return refuse("C-contiguous and aligned; pass numpy.empty(...) or a slice of whole rows".to_owned());
    }
    if !flags.getattr("writeable")?.extract::<bool>()? {
        return refuse("writable, got a read-only array".to_owned());
    }
    Ok(array.into_any().cast_into::<PyArrayDyn<T>>()?)
}

/// An array over the memory of an object with a buffer. One dimension of bytes is plain memory: it takes the shape that
/// is wanted.
fn array_over_buffer<'py, T: Value>(out: &Bound<'py, PyAny>, shape: &[usize]) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = out.py();
    let kind = || out.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let Ok(view) = py.import("builtins")?.getattr("memoryview")?.call1((out,)) else {
        let message =
            format!("out must be a numpy array, got {}; a CPU tensor or a writable buffer will do too", kind());
        return Err(errors::argument_type(py, message));
    };
    if view.getattr("readonly")?.extract::<bool>()? {
        return Err(errors::argument(py, format!("out must be writable, got a read-only {}", kind())));
    }
    let format: String = view.getattr("format")?.extract()?;
    let plain = view.getattr("ndim")?.extract::<usize>()? == 1
        && matches!(format.trim_start_matches(['<', '>', '=', '@', '!']), "B" | "b" | "c");
    let array = if plain && view.getattr("c_contiguous")?.extract::<bool>()? {
        let (expected, found) =
            (shape.iter().product::<usize>() * size_of::<T>(), view.getattr("nbytes")?.extract::<usize>()?);
        if expected != found {
            return Err(errors::argument(py, format!("out must be {expected} bytes long, got {found}")));
        }
        // NumPy makes no array over an empty buffer.
        if expected == 0 {
            numpy_function(py, "empty")?.call1((PyTuple::new(py, shape)?, numpy::dtype::<T>(py)))?
        } else {
            let flat = numpy_function(py, "frombuffer")?.call1((view, numpy::dtype::<T>(py)))?;
            flat.call_method1("reshape", (PyTuple::new(py, shape)?,))?
        }
    } else {
        numpy_function(py, "asarray")?.call1((view,)).map_err(|error| {
            errors::argument(py, format!("out must be a buffer that numpy understands: {}", error.value(py)))
        })?
    };
    Ok(array.cast_into::<PyUntypedArray>()?)
}

/// The refusal of an `out` whose elements are of type `found`.
pub fn wrong_type<T: Value>(py: Python<'_>, found: &str) -> PyErr {
    let hint = if (T::NAMES, found) == (f32::NAMES, "bfloat16") { "; pass dtype=\"bfloat16\"" } else { "" };
    errors::argument(py, format!("out must be of dtype {}, got {found}{hint}", T::NAMES.join(" or ")))
}

/// Whether `out` has the shape of the result.
///
/// # Errors
/// The refusal that names both.
pub fn check_shape(py: Python<'_>, expected: &[usize], found: &[usize]) -> PyResult<()> {
    if expected == found {
        return Ok(());
    }
    Err(errors::argument(py, format!("out must be of shape {}, got {}", tuple(expected), tuple(found))))
}

/// A shape as Python writes it.
fn tuple(shape: &[usize]) -> String {
    match shape {
        [only] => format!("({only},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
