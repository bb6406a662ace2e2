//! CPU tensors of any library, borrowed for writing through the DLPack protocol.
//!
//! The structures are those of DLPack 1.0 (`dlpack.h`), and of the older protocol without a version. A capsule that is
//! not renamed is not consumed: dropping it gives the tensor back to its library.

#![allow(unsafe_code)]

use crate::errors;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{PyCapsule_GetPointer, PyCapsule_IsValid};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};

const VERSIONED: &CStr = c"dltensor_versioned";
const UNVERSIONED: &CStr = c"dltensor";
/// Devices whose memory is the process's own: `kDLCPU`, and the pinned memory of `kDLCUDAHost` and `kDLROCMHost`.
const HOST: [i32; 3] = [1, 3, 11];
/// `DLPACK_FLAG_BITMASK_READ_ONLY` and `DLPACK_FLAG_BITMASK_IS_COPIED`.
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// A tensor of another library, alive and in place as long as this is.
pub struct Tensor<'py> {
    /// Address of its first element.
    pub address: *mut c_void,
    /// Name of its element type, as Python libraries write it.
    pub dtype: String,
    /// Elements along each dimension.
    pub shape: Vec<usize>,
    /// Whether its elements lie in C order without gaps.
    pub contiguous: bool,
    /// Keeps the memory.
    _capsule: Bound<'py, PyAny>,
}

impl<'py> Tensor<'py> {
    /// The memory of `object`; None if it does not speak DLPack.
    ///
    /// # Errors
    /// A tensor that is not on the CPU, is read-only, or is handed out as a copy only.
    pub fn borrow(object: &Bound<'py, PyAny>) -> PyResult<Option<Tensor<'py>>> {
        let py = object.py();
        if !object.hasattr("__dlpack__")? {
            return Ok(None);
        }
        let refuse = |what: String| errors::argument(py, format!("out must be {what}"));
        let no_export = |error: PyErr| refuse(format!("exportable by DLPack: {}", error.value(py)));
        if object.hasattr("__dlpack_device__")? {
            let device = object.call_method0("__dlpack_device__").and_then(|pair| pair.get_item(0)?.extract::<i32>());
            let device = device.map_err(no_export)?;
            if !HOST.contains(&device) {
                return Err(refuse(format!(
                    "a tensor on the CPU, got one on device type {device}; copy it afterwards"
                )));
            }
        }
        let capsule = export(object).map_err(no_export)?;
        let (tensor, flags) =
            read(&capsule).ok_or_else(|| refuse("a DLPack 1.x tensor, got a capsule of another kind".to_owned()))?;
        if flags & READ_ONLY != 0 {
            return Err(refuse("writable, got a read-only tensor".to_owned()));
        }
        if flags & IS_COPIED != 0 {
            return Err(refuse("a tensor that can be filled in place, its library hands out a copy".to_owned()));
        }
        if !HOST.contains(&tensor.device_type) {
            let device = tensor.device_type;
            return Err(refuse(format!("a tensor on the CPU, got one on device type {device}; copy it afterwards")));
        }
        let (shape, strides) = extents(&tensor);
        Ok(Some(Tensor {
            // Wrapping: the pointer of an empty tensor may be null.
            address: tensor.data.wrapping_byte_add(tensor.byte_offset as usize),
            dtype: type_name(&tensor),
            contiguous: strides.is_none_or(|strides| is_c_order(&shape, &strides)),
            shape,
            _capsule: capsule,
        }))
    }
}

/// The capsule of a tensor, of the newest protocol that its library speaks.
fn export<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let arguments = PyDict::new(py);
    arguments.set_item("max_version", (1, 0))?;
    match object.call_method("__dlpack__", (), Some(&arguments)) {
        // A library from before DLPack 1.0; its capsules cannot say that they are read-only.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0("__dlpack__"),
        exported => exported,
    }
}

/// Tensor and flags of a capsule; None if it is none of DLPack's, or of a layout that is not known here.
fn read(capsule: &Bound<'_, PyAny>) -> Option<(DlTensor, u64)> {
    let object = capsule.as_ptr();
    // SAFETY: `object` is a live Python object and the interpreter is held. A capsule of one of these names holds a
    // pointer to the structure that the protocol defines for it, which lives as long as the capsule is not consumed;
    // what follows the version is only read where the major version is the one this layout belongs to.
    unsafe {
        if PyCapsule_IsValid(object, VERSIONED.as_ptr()) != 0 {
            let managed = PyCapsule_GetPointer(object, VERSIONED.as_ptr()).cast::<Versioned>();
            return ((*managed).major == 1).then(|| ((*managed).tensor, (*managed).flags));
        }
        if PyCapsule_IsValid(object, UNVERSIONED.as_ptr()) != 0 {
            // The tensor is the first member.
            let tensor = PyCapsule_GetPointer(object, UNVERSIONED.as_ptr()).cast::<DlTensor>();
            return Some((*tensor, 0));
        }
    }
    None
}

/// Shape and strides; no strides means C order.
fn extents(tensor: &DlTensor) -> (Vec<usize>, Option<Vec<i64>>) {
    let ndim = usize::try_from(tensor.ndim).unwrap_or(0);
    if ndim == 0 || tensor.shape.is_null() {
        return (Vec::new(), None);
    }
    // SAFETY: the protocol promises `ndim` entries behind both pointers; strides may be null. The capsule that keeps
    // them is held by the caller.
    let (shape, strides) = unsafe {
        let strides = (!tensor.strides.is_null()).then(|| std::slice::from_raw_parts(tensor.strides, ndim).to_vec());
        (std::slice::from_raw_parts(tensor.shape, ndim), strides)
    };
    (shape.iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).collect(), strides)
}

/// Strides of dimensions of length 1, and of empty tensors, do not matter.
fn is_c_order(shape: &[usize], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected: i64 = 1;
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        if extent != 1 && stride != expected {
            return false;
        }
        expected = expected.saturating_mul(extent as i64);
    }
    true
}

/// `DLDataTypeCode` and width as a name.
fn type_name(tensor: &DlTensor) -> String {
    let DlTensor { code, bits, lanes, .. } = *tensor;
    let lanes = if lanes == 1 { String::new() } else { format!("x{lanes}") };
    match code {
        0 => format!("int{bits}{lanes}"),
        1 => format!("uint{bits}{lanes}"),
        2 => format!("float{bits}{lanes}"),
        4 => format!("bfloat{bits}{lanes}"),
        5 => format!("complex{bits}{lanes}"),
        6 => "bool".to_owned(),
        _ => format!("DLPack type {code} of {bits} bits{lanes}"),
    }
}
