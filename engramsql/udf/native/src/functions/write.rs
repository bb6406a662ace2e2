//! Writing vectors of floats and optional integers.

use crate::error::Result;
use crate::ffi::{Column, ListEntry, OutVector};

/// Largest size of a DuckDB array type.
const MAX_ARRAY: usize = 100_000;

/// Column type of a vector of `dim` floats; a list where the length is unknown or beyond what an array may have.
pub fn float_column(dim: Option<usize>) -> Column {
    match dim {
        Some(dim) if (1..=MAX_ARRAY).contains(&dim) => Column::FloatArray(dim),
        _ => Column::FloatList,
    }
}

/// Lets `fill` write `rows` vectors of `dim` floats, one after another.
pub fn floats(
    output: &mut OutVector<'_>,
    column: Column,
    rows: usize,
    dim: usize,
    fill: impl FnOnce(&mut [f32]) -> Result<()>,
) -> Result<()> {
    if let Column::FloatArray(_) = column {
        return fill(output.array_elements(rows));
    }
    fill(output.list_elements(rows * dim)?)?;
    for (row, entry) in output.values::<ListEntry>(rows).iter_mut().enumerate() {
        *entry = ListEntry { offset: (row * dim) as u64, length: dim as u64 };
    }
    Ok(())
}

/// Writes one integer per row, NULL for `None`.
pub fn optional_integers(output: &mut OutVector<'_>, rows: usize, value: impl Fn(usize) -> Option<i32>) {
    for row in 0..rows {
        match value(row) {
            Some(value) => output.values::<i32>(rows)[row] = value,
            None => output.set_null(row),
        }
    }
}
