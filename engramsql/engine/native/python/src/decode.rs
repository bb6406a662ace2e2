//! Decoding bytes that are already in memory.

use crate::errors;
use crate::guard::guard;
use crate::ids::numpy_function;
use crate::output;
use engram_engine::format::{Decoder, ValueFormat};
use numpy::{PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// Decodes packed rows: bytes or uint8 [..., row_bytes] to float32 [..., dim].
///
/// A row is its values followed by its block scales, if the format has any. Raises FormatError for an unknown format, a
/// scale that is missing or meaningless, and bytes that are no whole row.
#[pyfunction]
#[pyo3(signature = (data, format, scale = None))]
pub fn decode<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    format: &str,
    scale: Option<f32>,
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    guard(py, || {
        let format = ValueFormat::from_name(format, scale).map_err(|error| errors::from_engine(py, &error.into()))?;
        let bytes = bytes_of(data)?;
        let bytes = bytes
            .try_readonly()
            .map_err(|_| errors::argument(py, "data is the output of a running call".to_owned()))?;
        let (row_bytes, outer) = match bytes.shape() {
            [outer @ .., row_bytes] => (*row_bytes, outer),
            [] => (1, [].as_slice()),
        };
        let dim = format.dim_of_bytes(row_bytes).map_err(|error| errors::from_engine(py, &error.into()))?;
        let rows = bytes.as_slice()?;
        let shape = [outer, &[dim]].concat();
        output::fresh::<_, engram_engine::Error>(py, &shape, |out| {
            let decoder = Decoder::new(format);
            for (row, out) in rows.chunks_exact(row_bytes).zip(out.chunks_exact_mut(dim)) {
                let (values, scales) = row.split_at(format.value_bytes(dim));
                decoder.decode(values, scales, out);
            }
            Ok(())
        })
    })
}

/// A C-contiguous uint8 array over any bytes-like object, copied only if it lies otherwise.
fn bytes_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<u8>>> {
    let py = data.py();
    let array = match data.cast::<PyUntypedArray>() {
        Ok(array) => array.clone().into_any(),
        Err(_) if data.len().is_ok_and(|len| len == 0) => numpy_function(py, "empty")?.call1((0, "uint8"))?,
        Err(_) => numpy_function(py, "frombuffer")?.call1((data, "uint8")).map_err(|_| {
            let found = data.get_type().name().map(|name| name.to_string());
            let found = found.unwrap_or_else(|_| "object".to_owned());
            errors::argument_type(py, format!("data must be bytes or a uint8 array, got {found}"))
        })?,
    };
    let dtype = array.cast::<PyUntypedArray>()?.dtype();
    if !dtype.is_equiv_to(&numpy::dtype::<u8>(py)) {
        return Err(errors::argument_type(py, format!("data must be of dtype uint8, got {dtype}")));
    }
    let array = numpy_function(py, "ascontiguousarray")?.call1((array,))?;
    Ok(array.cast_into::<PyArrayDyn<u8>>()?)
}
