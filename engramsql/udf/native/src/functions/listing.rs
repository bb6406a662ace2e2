//! Small results: table functions that compute all their rows when an execution starts.

use crate::error::Result;
use crate::ffi::{Arguments, Column, Columns, OutChunk, OutVector, Parameter, TableFunction};
use engram_engine::catalog::Session;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One value of a listing.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// BIGINT, INTEGER or TIMESTAMP.
    Integer(i64),
    /// VARCHAR.
    Text(String),
    /// BOOLEAN.
    Boolean(bool),
    /// DOUBLE or FLOAT.
    Number(f64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::Boolean(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::Number(value)
    }
}

impl From<f32> for Cell {
    fn from(value: f32) -> Cell {
        Cell::Number(value.into())
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Cell {
        Cell::Integer(value)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Cell {
        Cell::Integer(value.into())
    }
}

impl From<u64> for Cell {
    /// Counts and byte sizes fit int64: no file system holds more.
    fn from(value: u64) -> Cell {
        i64::try_from(value).map_or(Cell::Null, Cell::Integer)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}

/// A table function whose rows are few.
pub trait Listing: 'static {
    /// SQL name.
    const NAME: &'static str;
    /// Positional parameters.
    const PARAMETERS: &'static [Parameter] = &[];
    /// Named parameters.
    const NAMED: &'static [(&'static str, Parameter)] = &[];
    /// Result columns.
    const COLUMNS: &'static [(&'static str, Column)];
    /// The arguments, read.
    type Arguments: Send + Sync + 'static;

    /// Reads and checks the arguments. May run several times; changes nothing.
    fn bind(session: &Session, arguments: &Arguments<'_>) -> Result<Self::Arguments>;
    /// All rows; called once per execution.
    fn rows(session: &Session, arguments: &Self::Arguments) -> Result<Vec<Vec<Cell>>>;
}

/// A [`Listing`] as a table function.
pub struct Listed<L>(PhantomData<L>);

/// The rows of one execution.
pub struct Global {
    rows: Vec<Vec<Cell>>,
    next: AtomicUsize,
}

impl<L: Listing> TableFunction for Listed<L> {
    const NAME: &'static str = L::NAME;
    const PARAMETERS: &'static [Parameter] = L::PARAMETERS;
    const NAMED: &'static [(&'static str, Parameter)] = L::NAMED;
    type Bound = L::Arguments;
    type Global = Global;
    type Local = ();

    fn bind(session: &Arc<Session>, arguments: &Arguments<'_>, columns: &mut Columns<'_>) -> Result<L::Arguments> {
        for (name, column) in L::COLUMNS {
            columns.add(name, *column);
        }
        L::bind(session, arguments)
    }

    fn init(session: &Arc<Session>, bound: &L::Arguments) -> Result<Global> {
        Ok(Global { rows: L::rows(session, bound)?, next: AtomicUsize::new(0) })
    }

    fn call(_bound: &L::Arguments, global: &Global, _local: &mut (), output: &mut OutChunk<'_>) -> Result<()> {
        let start = global.next.load(Ordering::Relaxed);
        let end = global.rows.len().min(start + output.capacity());
        global.next.store(end, Ordering::Relaxed);
        write_rows(L::COLUMNS, &global.rows[start..end], output)
    }
}

/// Writes one chunk.
pub fn write_rows(columns: &[(&str, Column)], rows: &[Vec<Cell>], output: &mut OutChunk<'_>) -> Result<()> {
    output.each(|column, vector| {
        for (row, cells) in rows.iter().enumerate() {
            write(vector, columns[column].1, row, rows.len(), &cells[column]);
        }
        Ok(())
    })?;
    output.set_len(rows.len());
    Ok(())
}

fn write(vector: &mut OutVector<'_>, column: Column, row: usize, rows: usize, cell: &Cell) {
    match (cell, column) {
        (Cell::Integer(value), Column::BigInt | Column::Timestamp) => {
            vector.values::<i64>(rows)[row] = *value;
        }
        (Cell::Integer(value), Column::Integer) => match i32::try_from(*value) {
            Ok(value) => vector.values::<i32>(rows)[row] = value,
            Err(_) => vector.set_null(row),
        },
        (Cell::Number(value), Column::Double) => vector.values::<f64>(rows)[row] = *value,
        (Cell::Number(value), Column::Float) => vector.values::<f32>(rows)[row] = *value as f32,
        (Cell::Boolean(value), Column::Boolean) => vector.values::<u8>(rows)[row] = u8::from(*value),
        (Cell::Text(value), Column::Text) => vector.assign(row, value.as_bytes()),
        (Cell::Null, _) => vector.set_null(row),
        (cell, column) => panic!("{cell:?} in a {column:?} column"),
    }
}
