//! Single values: constants and parameters.

use super::input::{IntFault, Integer, Vector};
use super::show::shorten;
use super::sys::*;
use super::types::Type;
use crate::error::{Error, Result};
use std::ffi::CStr;

/// One SQL value, readable through the same code as a vector of one row.
pub struct Value {
    raw: duckdb_value,
    ty: Type,
    /// A vector of one row that refers to the value; null for an untyped NULL.
    vector: duckdb_vector,
}

impl Value {
    /// Takes over `raw`; a null pointer is "no value".
    ///
    /// # Safety
    /// `raw` is null or a live value that nobody else frees.
    pub(super) unsafe fn new(raw: duckdb_value) -> Option<Value> {
        if raw.is_null() {
            return None;
        }
        // SAFETY: live by contract. The value's type belongs to the value and is not freed. Reading a list through a
        // vector converts it at once, where the value functions copy every element.
        unsafe {
            let logical = duckdb_get_value_type(raw);
            let ty = Type::read(logical);
            let mut vector = std::ptr::null_mut();
            if ty != Type::Null {
                vector = duckdb_create_vector(logical, 1);
                duckdb_vector_reference_value(vector, raw);
            }
            Some(Value { raw, ty, vector })
        }
    }

    /// Type of the value.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        // SAFETY: live until drop.
        unsafe { duckdb_is_null_value(self.raw) }
    }

    /// The value as a vector of one row; `None` for an untyped NULL.
    pub fn vector(&self) -> Option<Vector<'_>> {
        if self.vector.is_null() {
            return None;
        }
        // SAFETY: the vector lives as long as self and has one row.
        Some(unsafe { Vector::new(self.vector, 1) })
    }

    /// A text argument; `None` for NULL.
    pub fn text(&self, what: &str) -> Result<Option<String>> {
        match self.vector() {
            _ if self.is_null() => Ok(None),
            Some(vector) if *vector.ty() == Type::Text => Ok(Some(vector.text(0)?.to_owned())),
            _ => Err(Error::argument(format!("{what} must be text, got {} {self}", self.ty))),
        }
    }

    /// An integer argument; `None` for NULL.
    pub fn integer(&self, what: &str) -> Result<Option<i64>> {
        let wrong = || Error::argument(format!("{what} must be a 64-bit integer, got {} {self}", self.ty));
        match self.vector() {
            _ if self.is_null() => Ok(None),
            Some(vector) if matches!(vector.ty(), Type::Int(_)) => {
                let mut out = Vec::new();
                vector.append_ints(0..1, &mut out, &mut |_| Ok(())).map_err(|_| wrong())?;
                Ok(out.first().copied())
            }
            _ => Err(wrong()),
        }
    }

    /// An integer of any type that is not NULL; those beyond int128 become its largest value.
    ///
    /// # Panics
    /// If it is none: callers check [`Value::ty`] and [`Value::is_null`] first.
    pub fn wide_integer(&self) -> i128 {
        let mut out = Vec::new();
        let Some(vector) = self.vector() else { panic!("an integer asked of a value of type {}", self.ty) };
        match vector.append_ints(0..1, &mut out, &mut |_| Ok(())) {
            Err(IntFault::TooLarge { value: Integer::Signed(value), .. }) => value,
            Err(IntFault::TooLarge { value: Integer::Huge(_), .. }) => i128::MAX,
            _ => i128::from(out[0]),
        }
    }

    /// A number of any type, as the nearest double; `None` for NULL.
    pub fn number(&self, what: &str) -> Result<Option<f64>> {
        match &self.ty {
            _ if self.is_null() => Ok(None),
            Type::Int(_) | Type::Float | Type::Double | Type::Decimal { .. } => {
                // SAFETY: live until drop; DuckDB casts numbers of these types.
                Ok(Some(unsafe { duckdb_get_double(self.raw) }))
            }
            ty => Err(Error::argument(format!("{what} must be a number, got {ty} {self}"))),
        }
    }

    /// The fields of a STRUCT; none of any other value.
    pub(super) fn fields(&self) -> Vec<(String, Value)> {
        // SAFETY: the value is live until drop, and its type with it; a field is owned by its Value, a name freed here.
        unsafe {
            let logical = duckdb_get_value_type(self.raw);
            if duckdb_get_type_id(logical) != DUCKDB_TYPE_DUCKDB_TYPE_STRUCT || self.is_null() {
                return Vec::new();
            }
            (0..duckdb_struct_type_child_count(logical))
                .filter_map(|index| {
                    let raw = duckdb_struct_type_child_name(logical, index);
                    if raw.is_null() {
                        return None;
                    }
                    let name = CStr::from_ptr(raw).to_string_lossy().into_owned();
                    duckdb_free(raw.cast());
                    Some((name, Value::new(duckdb_get_struct_child(self.raw, index))?))
                })
                .collect()
        }
    }

    /// A BOOLEAN argument that is not NULL.
    pub fn boolean(&self, what: &str) -> Result<bool> {
        match self.vector() {
            Some(vector) if *vector.ty() == Type::Boolean && !self.is_null() => Ok(vector.boolean(0)),
            _ => Err(Error::argument(format!("{what} must be true or false, got {self}"))),
        }
    }

    /// A DOUBLE argument; `None` for NULL.
    pub fn double(&self, what: &str) -> Result<Option<f64>> {
        match self.vector() {
            _ if self.is_null() => Ok(None),
            Some(vector) if *vector.ty() == Type::Double => Ok(Some(vector.double(0))),
            _ => Err(Error::argument(format!("{what} must be a number, got {} {self}", self.ty))),
        }
    }
}

impl std::fmt::Display for Value {
    /// The value as SQL shows it, cut where it gets long.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: live until drop; the text is a C string that duckdb_free frees.
        let text = unsafe {
            let raw = duckdb_value_to_string(self.raw);
            if raw.is_null() {
                return Ok(());
            }
            let text = CStr::from_ptr(raw).to_string_lossy().into_owned();
            duckdb_free(raw.cast());
            text
        };
        f.write_str(&shorten(text))
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: both are owned and freed once; the vector refers to the value and goes first.
        unsafe {
            if !self.vector.is_null() {
                duckdb_destroy_vector(&mut self.vector);
            }
            duckdb_destroy_value(&mut self.raw);
        }
    }
}

/// A VARCHAR value, for a replacement scan's argument.
pub(super) fn varchar(text: &str) -> duckdb_value {
    // SAFETY: DuckDB copies `len` bytes.
    unsafe { duckdb_create_varchar_length(text.as_ptr().cast(), text.len() as idx_t) }
}

/// The value an expression folds to, or `None` if it is no constant.
///
/// # Safety
/// Both are live.
pub(super) unsafe fn fold(context: duckdb_client_context, expression: duckdb_expression) -> Option<Value> {
    // SAFETY: live by contract; the error data is freed here, the value by Value.
    unsafe {
        if !duckdb_expression_is_foldable(expression) {
            return None;
        }
        let mut value = std::ptr::null_mut();
        let mut error = duckdb_expression_fold(context, expression, &mut value);
        let failed = duckdb_error_data_has_error(error);
        duckdb_destroy_error_data(&mut error);
        let value = Value::new(value);
        // An expression that fails to fold fails again, with its own message, when it runs.
        if failed { None } else { value }
    }
}
