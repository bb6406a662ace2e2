//! Writing vectors of floats and heads.

use crate::error::Result;
use crate::ffi::{Column, ListEntry, OutVector};
use engram_engine::Table;

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

/// Writes the head of each id as INTEGER; NULL where the id is NULL or no head reaches it.
pub fn heads(output: &mut OutVector<'_>, table: &Table, ids: impl ExactSizeIterator<Item = Option<i64>>) {
    let rows = ids.len();
    for (row, id) in ids.enumerate() {
        let head = id.and_then(|id| table.head_of(u64::try_from(id).ok()?)).and_then(|head| i32::try_from(head).ok());
        match head {
            Some(head) => output.values::<i32>(rows)[row] = head,
            None => output.set_null(row),
        }
    }
}

/// The same for `(row, id)` pairs of a vector of `rows` rows; other rows are left alone.
pub fn heads_at(output: &mut OutVector<'_>, table: &Table, rows: usize, ids: impl Iterator<Item = (usize, i64)>) {
    for (row, id) in ids {
        let head = u64::try_from(id).ok().and_then(|id| table.head_of(id)).and_then(|head| i32::try_from(head).ok());
        match head {
            Some(head) => output.values::<i32>(rows)[row] = head,
            None => output.set_null(row),
        }
    }
}
