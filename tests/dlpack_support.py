"""Tensors of a made-up library: NumPy memory that is handed out by DLPack only, with any claim about it."""

from __future__ import annotations

import ctypes
from typing import Any


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned of dlpack.h."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def pointer_in(capsule: object) -> int:
    """Address behind a versioned capsule."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, b"dltensor_versioned"))


class Exported:
    """Memory of a NumPy array; ``claims`` are written over the fields of what it hands out."""

    def __init__(self, array: Any, *, old: bool = False, device: int = 1, **claims: int) -> None:
        self.array = array
        self.old = old
        self.device = device
        self.claims = claims

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> object:
        if self.old:
            if options:
                raise TypeError("unexpected keyword argument 'max_version'")
            return self.array.__dlpack__()
        capsule = self.array.__dlpack__(**options)
        managed = Versioned.from_address(pointer_in(capsule))
        for name, value in self.claims.items():
            setattr(managed if hasattr(managed, name) else managed.tensor, name, value)
        return capsule
