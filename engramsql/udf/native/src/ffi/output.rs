//! Writing DuckDB vectors: flat values, text, blobs, lists, arrays.

use super::host;
use super::input::Vector;
use super::sys::*;
use super::types::{Column, IntType, Type};
use crate::error::{Error, Result};
use std::marker::PhantomData;
use std::ops::Range;

mod sealed {
    /// Types of which every bit pattern is a value: DuckDB does not clear a vector, so a reference to it may see any.
    /// `bool` is not one; a BOOLEAN is written as the byte 0 or 1.
    pub trait Plain: Copy {}
    impl Plain for u8 {}
    impl Plain for i32 {}
    impl Plain for i64 {}
    impl Plain for f32 {}
    impl Plain for f64 {}
    impl Plain for super::ListEntry {}
    impl Plain for super::HugeInt {}
}
use sealed::Plain;

/// Where a row's list lies among the elements.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ListEntry {
    /// First element.
    pub offset: u64,
    /// Number of elements.
    pub length: u64,
}

/// A HUGEINT as it lies in a vector.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HugeInt {
    lower: u64,
    upper: i64,
}

impl From<i128> for HugeInt {
    fn from(value: i128) -> HugeInt {
        HugeInt { lower: value as u64, upper: (value >> 64) as i64 }
    }
}

/// One output vector of known type.
pub struct OutVector<'a> {
    raw: duckdb_vector,
    ty: Column,
    /// Rows that may be written.
    len: usize,
    lifetime: PhantomData<&'a mut ()>,
}

impl<'a> OutVector<'a> {
    /// # Safety
    /// `raw` is a live, writable flat vector of type `ty` with room for `len` rows, used by nobody else for `'a`.
    pub(super) unsafe fn new(raw: duckdb_vector, ty: Column, len: usize) -> OutVector<'a> {
        OutVector { raw, ty, len, lifetime: PhantomData }
    }

    /// Makes row `row` NULL.
    pub fn set_null(&mut self, row: usize) {
        assert!(row < self.len);
        // SAFETY: the mask covers `len` rows once it is writable.
        unsafe {
            host::ensure_validity(self.raw);
            duckdb_validity_set_row_invalid(duckdb_vector_get_validity(self.raw), row as idx_t);
            if let Column::FloatArray(size) = self.ty {
                // A NULL array keeps its slots; consumers look at the elements' own mask.
                let child = duckdb_array_vector_get_child(self.raw);
                host::ensure_validity(child);
                let mask = duckdb_vector_get_validity(child);
                let data = duckdb_vector_get_data(child).cast::<f32>();
                for slot in row * size..(row + 1) * size {
                    duckdb_validity_set_row_invalid(mask, slot as idx_t);
                    data.add(slot).write(0.0);
                }
            }
        }
        if let Column::Struct(fields) = self.ty {
            // A field that is taken out of a struct is looked at alone.
            (0..fields.len()).for_each(|field| self.field(field).set_null(row));
        }
    }

    /// The vector of field `index` of a STRUCT.
    ///
    /// # Panics
    /// If it is not one, or has no such field.
    pub fn field(&mut self, index: usize) -> OutVector<'_> {
        let Column::Struct(fields) = self.ty else { panic!("a field of {:?}", self.ty) };
        // SAFETY: a live struct vector with the declared fields, each with as many rows as the struct; borrowed from self,
        // so used by nobody else.
        unsafe { OutVector::new(duckdb_struct_vector_get_child(self.raw, index as idx_t), fields[index].1, self.len) }
    }

    /// The first `len` values.
    ///
    /// # Panics
    /// If `T` is not what the vector holds.
    pub fn values<T: Plain>(&mut self, len: usize) -> &mut [T] {
        assert!(
            len <= self.len && size_of::<T>() == self.ty.width() && !matches!(self.ty, Column::Text | Column::Blob),
            "{len} values of {} bytes written to {:?}",
            size_of::<T>(),
            self.ty
        );
        // SAFETY: DuckDB allocated `len` elements of this width, and every bit pattern is a `T`.
        unsafe { slice_mut(duckdb_vector_get_data(self.raw), len) }
    }

    /// The elements of the first `len` rows of a FLOAT[n] vector.
    ///
    /// # Panics
    /// If it is not one.
    pub fn array_elements(&mut self, len: usize) -> &mut [f32] {
        let Column::FloatArray(size) = self.ty else { panic!("array elements written to {:?}", self.ty) };
        assert!(len <= self.len);
        // SAFETY: the child of an array vector has room for `size` elements per row.
        unsafe {
            let child = duckdb_array_vector_get_child(self.raw);
            slice_mut(duckdb_vector_get_data(child), len * size)
        }
    }

    /// The elements of a FLOAT[] vector, sized to `total`; rows point into them through [`ListEntry`]s.
    ///
    /// # Panics
    /// If it is not one.
    pub fn list_elements(&mut self, total: usize) -> Result<&mut [f32]> {
        assert!(self.ty == Column::FloatList, "list of {:?}", self.ty);
        // SAFETY: a live list vector; its child holds `total` floats once reserved.
        unsafe {
            let child = resize(self.raw, total)?;
            Ok(slice_mut(duckdb_vector_get_data(child), total))
        }
    }

    /// The elements of a BIGINT[] vector, sized to `total`; rows point into them through [`ListEntry`]s.
    ///
    /// # Panics
    /// If it is not one.
    pub fn integer_elements(&mut self, total: usize) -> Result<&mut [i64]> {
        assert!(self.ty == Column::BigIntList, "list of {:?}", self.ty);
        // SAFETY: a live list vector; its child holds `total` integers once reserved.
        unsafe {
            let child = resize(self.raw, total)?;
            Ok(slice_mut(duckdb_vector_get_data(child), total))
        }
    }

    /// The elements of a STRUCT[] vector, sized to `total`; rows point into them through [`ListEntry`]s.
    ///
    /// # Panics
    /// If it is not one.
    pub fn struct_elements(&mut self, total: usize) -> Result<OutVector<'_>> {
        let Column::StructList(fields) = self.ty else { panic!("structs written to {:?}", self.ty) };
        // SAFETY: a live list vector; its child is a struct vector with room for `total` rows once reserved, borrowed
        // from self.
        unsafe { Ok(OutVector::new(resize(self.raw, total)?, Column::Struct(fields), total)) }
    }

    /// The inner lists and the integers of a BIGINT[][] vector, sized to `lists` and `total`.
    ///
    /// # Panics
    /// If it is not one.
    pub fn nested_elements(&mut self, lists: usize, total: usize) -> Result<(&mut [ListEntry], &mut [i64])> {
        assert!(self.ty == Column::BigIntListList, "list of {:?}", self.ty);
        // SAFETY: a live list of lists; child and grandchild hold what was reserved and do not overlap.
        unsafe {
            let inner = resize(self.raw, lists)?;
            let values = resize(inner, total)?;
            Ok((slice_mut(duckdb_vector_get_data(inner), lists), slice_mut(duckdb_vector_get_data(values), total)))
        }
    }

    /// Shares the values of `other`, of which nothing is copied; nothing more may be written to this vector then.
    ///
    /// # Panics
    /// If `other` is no BIGINT vector, or this one is none or is longer.
    pub fn reference(self, other: &Vector<'_>) {
        let bigints = self.ty == Column::BigInt && *other.ty() == Type::Int(IntType::I64);
        assert!(bigints && self.len <= other.len(), "{} values of {} shared as {:?}", other.len(), other.ty(), self.ty);
        // SAFETY: both are live vectors of one type; DuckDB counts who uses the values.
        unsafe { duckdb_vector_reference_vector(self.raw, other.raw()) }
    }

    /// Makes every row of `rows` NULL, and so are the fields of a STRUCT.
    ///
    /// # Panics
    /// If `rows` leave the vector, or it holds FLOAT[n], whose elements only [`set_null`](Self::set_null) makes NULL.
    pub fn set_nulls(&mut self, rows: Range<usize>) {
        assert!(rows.start <= rows.end && rows.end <= self.len && !matches!(self.ty, Column::FloatArray(_)));
        if rows.is_empty() {
            return;
        }
        // SAFETY: once writable, the mask has one bit for each of the vector's `len` rows, in words of 64.
        unsafe {
            host::ensure_validity(self.raw);
            let mask = duckdb_vector_get_validity(self.raw);
            for word in rows.start / 64..=(rows.end - 1) / 64 {
                let from = rows.start.max(word * 64) - word * 64;
                let to = rows.end.min(word * 64 + 64) - word * 64;
                let bits = if to - from == 64 { u64::MAX } else { ((1u64 << (to - from)) - 1) << from };
                *mask.add(word) &= !bits;
            }
        }
        if let Column::Struct(fields) = self.ty {
            (0..fields.len()).for_each(|field| self.field(field).set_nulls(rows.clone()));
        }
    }

    /// Writes text or a blob to row `row`.
    ///
    /// # Panics
    /// If the vector holds neither.
    pub fn assign(&mut self, row: usize, bytes: &[u8]) {
        assert!(row < self.len && matches!(self.ty, Column::Text | Column::Blob));
        // SAFETY: a live vector of the right type with that row. Text comes from a `str` or is checked by callers, so the
        // unchecked form (which skips a UTF-8 walk) is right.
        unsafe { host::assign(self.raw, row, bytes) }
    }

    /// Writes `buffer[range]` to every `(row, range)` of a BLOB vector with one copy of the whole buffer.
    ///
    /// An assignment per row allocates per row and is bound by that; here the buffer becomes one allocation in the
    /// vector's heap, and the rows' strings point into it. The heap lives as long as the vector.
    ///
    /// # Panics
    /// If it is no BLOB vector or a range leaves the buffer.
    pub fn assign_parts(&mut self, buffer: &[u8], parts: impl Iterator<Item = (usize, Range<usize>)>) {
        assert!(self.ty == Column::Blob);
        let mut parts = parts.peekable();
        let Some(first) = parts.peek().map(|(row, _)| *row) else {
            return;
        };
        if buffer.len() <= INLINE || u32::try_from(buffer.len()).is_err() {
            for (row, range) in parts {
                self.assign(row, &buffer[range]);
            }
            return;
        }
        self.assign(first, buffer);
        // SAFETY: the string just written is longer than INLINE, so it points to `buffer.len()` bytes in the vector's
        // heap; every range is checked against the buffer, every row against the vector.
        unsafe {
            let strings = duckdb_vector_get_data(self.raw).cast::<duckdb_string_t>();
            let heap = (*strings.add(first)).value.pointer.ptr;
            for (row, range) in parts {
                assert!(row < self.len);
                let bytes = &buffer[range.clone()];
                strings.add(row).write(string(bytes, heap.add(range.start)));
            }
        }
    }
}

/// Longest string that DuckDB keeps inside its string_t (bytes).
const INLINE: usize = 12;

/// A string_t for `bytes`, which also lie at `at`.
fn string(bytes: &[u8], at: *mut std::ffi::c_char) -> duckdb_string_t {
    let mut head = [0; INLINE];
    if bytes.len() <= INLINE {
        for (slot, byte) in head.iter_mut().zip(bytes) {
            *slot = *byte as std::ffi::c_char;
        }
        return duckdb_string_t {
            value: duckdb_string_t__bindgen_ty_1 {
                inlined: duckdb_string_t__bindgen_ty_1__bindgen_ty_2 { length: bytes.len() as u32, inlined: head },
            },
        };
    }
    let prefix = [bytes[0], bytes[1], bytes[2], bytes[3]].map(|byte| byte as std::ffi::c_char);
    duckdb_string_t {
        value: duckdb_string_t__bindgen_ty_1 {
            pointer: duckdb_string_t__bindgen_ty_1__bindgen_ty_1 { length: bytes.len() as u32, prefix, ptr: at },
        },
    }
}

/// Gives a list vector room for `total` elements and returns its child.
///
/// # Safety
/// `raw` is a live, writable list vector.
unsafe fn resize(raw: duckdb_vector, total: usize) -> Result<duckdb_vector> {
    // SAFETY: live by contract. The child is fetched after the reservation, which may move it.
    unsafe {
        if !host::resize_list(raw, total) {
            return Err(Error::argument(format!("DuckDB could not allocate a list of {total} elements")));
        }
        Ok(duckdb_list_vector_get_child(raw))
    }
}

/// # Safety
/// `data` points to `len` elements of `T` that nobody else uses for `'a`.
unsafe fn slice_mut<'a, T: Plain>(data: *mut std::ffi::c_void, len: usize) -> &'a mut [T] {
    if len == 0 {
        return &mut [];
    }
    // SAFETY: by contract; DuckDB aligns vector data for its element type.
    unsafe { std::slice::from_raw_parts_mut(data.cast::<T>(), len) }
}
