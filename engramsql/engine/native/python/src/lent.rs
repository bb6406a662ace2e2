//! Memory of others that results are written to while the interpreter is released.

#![allow(unsafe_code)]

use crate::dlpack::Tensor;
use crate::errors;
use crate::guard::detached;
use crate::output::{Value, check_shape, wrong_type};
use engram_engine::Error;
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A tensor of another library, claimed for one call.
pub struct Lent<'py, T> {
    address: *mut T,
    len: usize,
    _claim: Claim,
    _tensor: Tensor<'py>,
}

impl<'py, T: Value> Lent<'py, T> {
    /// The memory of a DLPack tensor; None for NumPy arrays, which say more themselves, and for what is no tensor.
    ///
    /// # Errors
    /// A tensor that does not fit, or whose memory a running call writes to.
    pub fn of_tensor(out: &Bound<'py, PyAny>, shape: &[usize]) -> PyResult<Option<Lent<'py, T>>> {
        let py = out.py();
        if out.is_instance_of::<numpy::PyUntypedArray>() {
            return Ok(None);
        }
        // Arrow arrays speak DLPack too, and nothing may write to them.
        if out.hasattr("__arrow_c_array__")? || out.hasattr("__arrow_c_stream__")? {
            return Err(errors::argument(
                py,
                "out must be writable, got an Arrow array, which is immutable".to_owned(),
            ));
        }
        let Some(tensor) = Tensor::borrow(out)? else { return Ok(None) };
        if !T::NAMES.contains(&tensor.dtype.as_str()) {
            return Err(wrong_type::<T>(py, &tensor.dtype));
        }
        check_shape(py, shape, &tensor.shape)?;
        let address = tensor.address.cast::<T>();
        if !tensor.contiguous || !address.is_aligned() {
            let message = "out must be C-contiguous and aligned; call contiguous() or make a new tensor";
            return Err(errors::argument(py, message.to_owned()));
        }
        let len = shape.iter().product::<usize>();
        if len > 0 && address.is_null() {
            return Err(errors::argument(py, "out must have memory, got a tensor without data".to_owned()));
        }
        let claim = Claim::new(address as usize, len * size_of::<T>()).ok_or_else(|| shared(py))?;
        Ok(Some(Lent { address, len, _claim: claim, _tensor: tensor }))
    }

    /// Runs `work` on the memory with the interpreter released.
    pub fn fill<E: Into<Error> + Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut [T]) -> Result<(), E> + Send,
    ) -> PyResult<()> {
        let values: &mut [T] = if self.len == 0 {
            &mut []
        } else {
            // SAFETY: `address` is aligned, not null, and the start of `len` values of a contiguous tensor that the
            // capsule keeps alive. Every bit pattern is a value of T. No other call of ours writes here (the claim);
            // that nobody else does meanwhile is the caller's part, as with any buffer handed to native code.
            unsafe { std::slice::from_raw_parts_mut(self.address, self.len) }
        };
        detached(py, || work(values))
    }
}

/// Address ranges that running calls write to.
static RUNNING: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

/// A range of memory that no other call may write to until this is dropped.
pub struct Claim(Range<usize>);

impl Claim {
    fn new(address: usize, bytes: usize) -> Option<Claim> {
        let range = address..address + bytes;
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if running.iter().any(|other| other.start < range.end && range.start < other.end) {
            return None;
        }
        running.push(range.clone());
        Some(Claim(range))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = running.iter().position(|range| *range == self.0) {
            running.swap_remove(at);
        }
    }
}

/// Claims the memory of a contiguous array: the array may be a tensor or buffer that another call knows as such.
///
/// # Errors
/// A running call writes to it.
pub fn claim_array<T: Value>(array: &Bound<'_, PyArrayDyn<T>>) -> PyResult<Claim> {
    Claim::new(array.data() as usize, array.len() * size_of::<T>()).ok_or_else(|| shared(array.py()))
}

/// The refusal of memory that is in use.
pub fn shared(py: Python<'_>) -> PyErr {
    errors::argument(py, "out shares memory with the ids or with the output of a running call".to_owned())
}
