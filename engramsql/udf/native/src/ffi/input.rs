//! Reading DuckDB vectors: integers of every width, text, blobs, lists, with their validity.

use super::output::ListEntry;
use super::sys::*;
use super::types::{IntType, LogicalType, Type};
use crate::error::{Error, Result};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// An integer of any SQL type, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integer {
    /// Anything but the upper half of UHUGEINT.
    Signed(i128),
    /// The upper half of UHUGEINT.
    Huge(u128),
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Integer::Signed(value) => value.fmt(f),
            Integer::Huge(value) => value.fmt(f),
        }
    }
}

/// Why integers could not be read.
#[derive(Debug)]
pub enum IntFault {
    /// A value outside int64, with its index in the range read.
    TooLarge {
        /// 0-based index in the range read.
        index: usize,
        /// The value.
        value: Integer,
    },
    /// The NULL handler refused.
    Refused(Error),
}

/// The arguments of one call: equally long vectors.
pub struct Chunk<'a> {
    raw: duckdb_data_chunk,
    len: usize,
    lifetime: PhantomData<&'a ()>,
}

impl Chunk<'_> {
    /// # Safety
    /// `raw` is a live chunk with flat vectors that nobody writes while the result lives.
    pub(super) unsafe fn new(raw: duckdb_data_chunk) -> Self {
        // SAFETY: live by contract.
        let len = unsafe { duckdb_data_chunk_get_size(raw) } as usize;
        Chunk { raw, len, lifetime: PhantomData }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Number of arguments.
    pub fn columns(&self) -> usize {
        // SAFETY: the chunk is live while self lives.
        unsafe { duckdb_data_chunk_get_column_count(self.raw) as usize }
    }

    /// Argument `index`.
    pub fn column(&self, index: usize) -> Result<Vector<'_>> {
        if index >= self.columns() {
            return Err(Error::argument(format!("argument {} is missing", index + 1)));
        }
        // SAFETY: the index is in range and the chunk is live while self lives.
        Ok(unsafe { Vector::new(duckdb_data_chunk_get_vector(self.raw, index as idx_t), self.len) })
    }
}

/// One flat input vector of known type and length.
pub struct Vector<'a> {
    raw: duckdb_vector,
    ty: Type,
    len: usize,
    data: *const u8,
    /// One bit per row, null if every row is valid.
    validity: *const u64,
    lifetime: PhantomData<&'a ()>,
}

impl<'a> Vector<'a> {
    /// # Safety
    /// `raw` is a live flat vector of at least `len` rows, unchanged for `'a`.
    pub(super) unsafe fn new(raw: duckdb_vector, len: usize) -> Vector<'a> {
        // SAFETY: live by contract; the type is freed by LogicalType.
        unsafe {
            let ty = LogicalType(duckdb_vector_get_column_type(raw)).describe();
            Vector {
                raw,
                ty,
                len,
                data: duckdb_vector_get_data(raw).cast::<u8>(),
                validity: duckdb_vector_get_validity(raw),
                lifetime: PhantomData,
            }
        }
    }

    /// The vector itself, for who shares it.
    pub(super) fn raw(&self) -> duckdb_vector {
        self.raw
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Type of the elements.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Whether row `row` is NULL.
    pub fn is_null(&self, row: usize) -> bool {
        assert!(row < self.len, "row {row} of {}", self.len);
        if self.ty == Type::Null {
            return true;
        }
        if self.validity.is_null() {
            return false;
        }
        // SAFETY: the mask has one bit for each of the vector's rows.
        unsafe { *self.validity.add(row / 64) >> (row % 64) & 1 == 0 }
    }

    /// Appends the integers of `rows` to `out` as int64. A NULL is not appended: `on_null` gets its index in `rows`.
    ///
    /// # Errors
    /// The first value outside int64, or what `on_null` refuses.
    ///
    /// # Panics
    /// If the vector holds no integers: callers check [`Vector::ty`] first.
    pub fn append_ints(
        &self,
        rows: Range<usize>,
        out: &mut Vec<i64>,
        on_null: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<(), IntFault> {
        assert!(rows.start <= rows.end && rows.end <= self.len);
        let ty = match &self.ty {
            Type::Int(ty) => *ty,
            Type::Null => {
                return (0..rows.len()).try_for_each(|i| on_null(i).map_err(IntFault::Refused));
            }
            other => panic!("integers asked of a vector of {other}"),
        };
        // SAFETY: the type tag says what the data is; the range was checked above.
        unsafe {
            match ty {
                IntType::I64 if self.validity.is_null() => {
                    out.extend_from_slice(&self.slice::<i64>()[rows]);
                    Ok(())
                }
                IntType::I64 => self.convert(rows, out, on_null, |v: i64| Ok(v)),
                IntType::I32 => self.convert(rows, out, on_null, |v: i32| Ok(v.into())),
                IntType::I16 => self.convert(rows, out, on_null, |v: i16| Ok(v.into())),
                IntType::I8 => self.convert(rows, out, on_null, |v: i8| Ok(v.into())),
                IntType::U32 => self.convert(rows, out, on_null, |v: u32| Ok(v.into())),
                IntType::U16 => self.convert(rows, out, on_null, |v: u16| Ok(v.into())),
                IntType::U8 => self.convert(rows, out, on_null, |v: u8| Ok(v.into())),
                IntType::U64 => {
                    self.convert(rows, out, on_null, |v: u64| i64::try_from(v).map_err(|_| Integer::Signed(v.into())))
                }
                IntType::I128 => self.convert(rows, out, on_null, |v: duckdb_hugeint| {
                    let value = (i128::from(v.upper) << 64) | i128::from(v.lower);
                    i64::try_from(value).map_err(|_| Integer::Signed(value))
                }),
                IntType::U128 => self.convert(rows, out, on_null, |v: duckdb_uhugeint| {
                    let value = (u128::from(v.upper) << 64) | u128::from(v.lower);
                    i64::try_from(value).map_err(|_| match i128::try_from(value) {
                        Ok(value) => Integer::Signed(value),
                        Err(_) => Integer::Huge(value),
                    })
                }),
            }
        }
    }

    /// Whether any row is NULL.
    pub fn has_null(&self) -> bool {
        if self.ty == Type::Null {
            return self.len > 0;
        }
        if self.validity.is_null() {
            return false;
        }
        // SAFETY: the mask has one bit for each of the vector's rows, in words of 64.
        let words = unsafe { std::slice::from_raw_parts(self.validity, self.len.div_ceil(64)) };
        let unused = (words.len() * 64 - self.len) as u32;
        words.iter().rev().enumerate().any(|(index, &word)| {
            // Bits beyond the last row say nothing.
            let rows = if index == 0 { u64::MAX >> unused } else { u64::MAX };
            word & rows != rows
        })
    }

    /// The entries of a list vector without a NULL; not of an array's, which has none.
    pub fn entries(&self) -> Option<&[ListEntry]> {
        if !matches!(self.ty, Type::List(_)) || self.has_null() {
            return None;
        }
        // SAFETY: the type tag says what the data is; a ListEntry is laid out as DuckDB's list entry.
        Some(unsafe { self.slice::<ListEntry>() })
    }

    /// The values of a BIGINT vector without a NULL.
    pub fn bigints(&self) -> Option<&[i64]> {
        if self.ty != Type::Int(IntType::I64) {
            return None;
        }
        // A mask may be there and say that every row is valid.
        if self.has_null() {
            return None;
        }
        // SAFETY: the type tag says what the data is.
        Some(unsafe { self.slice::<i64>() })
    }

    /// # Safety
    /// The vector's elements are `T`s.
    unsafe fn convert<T: Copy>(
        &self,
        rows: Range<usize>,
        out: &mut Vec<i64>,
        on_null: &mut dyn FnMut(usize) -> Result<()>,
        narrow: impl Fn(T) -> Result<i64, Integer>,
    ) -> Result<(), IntFault> {
        out.reserve(rows.len());
        // SAFETY: by this function's contract.
        let data = unsafe { self.slice::<T>() };
        for (index, row) in rows.enumerate() {
            if self.is_null(row) {
                on_null(index).map_err(IntFault::Refused)?;
                continue;
            }
            out.push(narrow(data[row]).map_err(|value| IntFault::TooLarge { index, value })?);
        }
        Ok(())
    }

    /// # Safety
    /// The vector's elements are `T`s.
    pub(super) unsafe fn slice<T: Copy>(&self) -> &[T] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `len` elements of the right type by contract, aligned by DuckDB, unchanged while self lives.
        unsafe { std::slice::from_raw_parts(self.data.cast::<T>(), self.len) }
    }

    /// Bytes of row `row` of a VARCHAR or BLOB vector.
    ///
    /// # Panics
    /// If the vector holds neither, or the row is NULL.
    pub fn bytes(&self, row: usize) -> &[u8] {
        assert!(matches!(self.ty, Type::Text | Type::Blob), "bytes asked of a vector of {}", self.ty);
        // A NULL row's string_t was never written; its pointer must not be followed.
        assert!(!self.is_null(row), "bytes asked of row {row}, which is NULL");
        // SAFETY: elements are string_t by the type tag and this one is valid; short ones hold their bytes in place,
        // long ones point to them. `is_null` checked the row.
        unsafe {
            let string = &*self.data.cast::<duckdb_string_t>().add(row);
            let inlined = &string.value.inlined;
            let len = inlined.length as usize;
            let start = if len <= inlined.inlined.len() {
                inlined.inlined.as_ptr()
            } else {
                string.value.pointer.ptr.cast_const()
            };
            std::slice::from_raw_parts(start.cast::<u8>(), len)
        }
    }

    /// Row `row` of a VARCHAR vector.
    ///
    /// # Panics
    /// As [`Vector::bytes`].
    pub fn text(&self, row: usize) -> Result<&str> {
        std::str::from_utf8(self.bytes(row)).map_err(|_| Error::argument("text is not UTF-8"))
    }

    /// Row `row` of a DOUBLE vector.
    ///
    /// # Panics
    /// If the vector holds no doubles.
    pub fn double(&self, row: usize) -> f64 {
        assert!(self.ty == Type::Double, "double asked of {}", self.ty);
        // SAFETY: elements are doubles by the type tag.
        unsafe { self.slice::<f64>()[row] }
    }

    /// Rows `rows` of a FLOAT vector. What a NULL row holds is undefined.
    ///
    /// # Panics
    /// If the vector holds no floats or the range leaves it.
    pub fn floats(&self, rows: Range<usize>) -> &[f32] {
        assert!(self.ty == Type::Float, "floats asked of {}", self.ty);
        // SAFETY: elements are floats by the type tag, of which every bit pattern is one.
        unsafe { &self.slice::<f32>()[rows] }
    }

    /// Row `row` of a BOOLEAN vector.
    ///
    /// # Panics
    /// If the vector holds no booleans.
    pub fn boolean(&self, row: usize) -> bool {
        assert!(self.ty == Type::Boolean, "boolean asked of {}", self.ty);
        // SAFETY: elements are bytes that are 0 or 1 by the type tag; read as u8 because nothing here depends on it.
        unsafe { self.slice::<u8>()[row] != 0 }
    }

    /// Range of row `row` of a list or array vector in [`Vector::elements`].
    ///
    /// # Errors
    /// An entry that leaves the elements (a NULL row's may: it was never written).
    ///
    /// # Panics
    /// If the vector holds neither.
    pub fn list(&self, row: usize, elements: &Vector<'_>) -> Result<Range<usize>> {
        let range = match &self.ty {
            Type::List(_) => {
                // SAFETY: elements are list entries by the type tag.
                let entry = unsafe { self.slice::<duckdb_list_entry>()[row] };
                entry.offset.checked_add(entry.length).map(|end| entry.offset as usize..end as usize)
            }
            Type::Array(_, size) => Some(row * size..(row + 1) * size),
            other => panic!("a list asked of a vector of {other}"),
        };
        match range {
            Some(range) if range.start <= range.end && range.end <= elements.len => Ok(range),
            _ => Err(leaves_elements()),
        }
    }

    /// The elements of all rows of a list or array vector.
    ///
    /// # Panics
    /// If the vector holds neither.
    pub fn elements(&self) -> Vector<'_> {
        // SAFETY: the type tag says which child exists; it lives as long as its parent.
        unsafe {
            match &self.ty {
                Type::List(_) => {
                    Vector::new(duckdb_list_vector_get_child(self.raw), duckdb_list_vector_get_size(self.raw) as usize)
                }
                Type::Array(_, size) => Vector::new(duckdb_array_vector_get_child(self.raw), self.len * size),
                other => panic!("elements asked of a vector of {other}"),
            }
        }
    }
}

/// The refusal of a list that begins or ends outside the elements it came with. DuckDB 1.5 counts only as many elements of
/// an Arrow list view as its lists have in all, wherever these lie; what lies behind may be no memory of the vector.
fn leaves_elements() -> Error {
    Error::argument(
        "DuckDB passes a list without its elements, as version 1.5 does where the lists of an Arrow list view are out of \
         order or leave gaps: pass lists instead of list views, or use DuckDB 2",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vector over memory of this process.
    fn vector<'a, T>(ty: Type, data: &'a [T], validity: &'a u64) -> Vector<'a> {
        Vector {
            raw: std::ptr::null_mut(),
            ty,
            len: data.len(),
            data: data.as_ptr().cast(),
            validity,
            lifetime: PhantomData,
        }
    }

    #[test]
    #[should_panic(expected = "row 0, which is NULL")]
    fn the_pointer_of_a_null_string_is_not_followed() {
        // Longer than a string kept in place, at an address that nothing is at.
        let strings = [[1000u64, 8]];
        vector(Type::Text, &strings, &0).bytes(0);
    }

    #[test]
    fn a_null_is_found_among_the_rows_alone() {
        let has_null = |rows: usize, valid: [u64; 2]| {
            let values = vec![0i64; rows];
            let mask = valid.as_ptr();
            Vector { validity: mask.cast_mut(), ..vector(Type::Int(IntType::I64), &values, &valid[0]) }.has_null()
        };
        assert!(!has_null(64, [u64::MAX, 0]));
        assert!(!has_null(65, [u64::MAX, 1]));
        assert!(has_null(65, [u64::MAX, 0]));
        assert!(has_null(65, [u64::MAX - 1, 1]));
        assert!(has_null(1, [0, 0]));
        assert!(!has_null(0, [0, 0]));
    }

    #[test]
    fn a_list_entry_that_overflows_is_no_empty_range() {
        let lists = [[u64::MAX, 2]];
        let elements = vector(Type::Int(IntType::I64), &[1i64, 2, 3], &u64::MAX);
        let found = vector(Type::List(Box::new(Type::Null)), &lists, &u64::MAX).list(0, &elements);
        assert!(found.unwrap_err().message("f").starts_with("f: DuckDB passes a list without its elements"));
    }
}
