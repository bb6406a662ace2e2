//! `COPY (SELECT ...) TO 'dir' (FORMAT engram, ...)`: a new store from rows.

mod encode;
mod options;
mod target;

use crate::error::{Error, Result};
use crate::ffi::{Chunk, CopyFunction, CopyOptions, Type, Vector};
use encode::Encoding;
use engram_engine::build::StoreWriter;
use engram_engine::catalog::Session;
use options::Description;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Widest row that a store may have (bytes).
const MAX_WIDTH: usize = 1 << 24;

/// The format.
pub struct Engram;

/// What to write, and from which columns.
pub struct Bound {
    description: Description,
    rowid: Option<usize>,
    row: usize,
    /// How vectors become bytes; `None` where the rows come as bytes.
    encoding: Option<Encoding>,
}

/// A store that is being written.
pub struct Output {
    path: PathBuf,
    /// Made at the first row: its width is the store's.
    store: Option<StoreWriter>,
    /// Bytes of a row.
    width: usize,
    /// Rows so far.
    rows: u64,
    /// The rows of a chunk, back to back; kept from chunk to chunk.
    bytes: Vec<u8>,
    ids: Vec<i64>,
}

impl CopyFunction for Engram {
    const NAME: &'static str = "engram";
    const STATEMENT: &'static str = "COPY (FORMAT engram)";
    type Bound = Bound;
    type Output = Output;

    fn bind(_session: &Arc<Session>, columns: &[Type], options: &CopyOptions) -> Result<Bound> {
        let description = Description::read(options)?;
        let (rowid, row) = pick_columns(columns)?;
        let encoding = match &columns[row] {
            Type::Blob => None,
            _ => Some(Encoding::new(description.format())?),
        };
        Ok(Bound { description, rowid, row, encoding })
    }

    fn begin(_bound: &Bound, path: &Path) -> Result<Output> {
        let path = target::check(path)?;
        Ok(Output { path, store: None, width: 0, rows: 0, bytes: Vec::new(), ids: Vec::new() })
    }

    fn write(bound: &Bound, output: &mut Output, rows: &Chunk<'_>) -> Result<()> {
        if rows.len() == 0 {
            return Ok(());
        }
        if let Some(rowid) = bound.rowid {
            output.check_ids(&rows.column(rowid)?)?;
        }
        let column = rows.column(bound.row)?;
        output.bytes.clear();
        match &bound.encoding {
            None => output.append_blobs(&column)?,
            Some(encoding) => output.append_vectors(encoding, &column)?,
        }
        if output.store.is_none() {
            bound.description.check_width(output.width)?;
            output.store = Some(bound.description.create(&output.path, output.width)?);
        }
        if let Some(store) = &mut output.store {
            store.write_rows(&output.bytes)?;
        }
        output.rows += rows.len() as u64;
        Ok(())
    }

    fn finish(bound: &Bound, output: Output) -> Result<()> {
        let Some(store) = output.store else {
            return Err(Error::argument("there are no rows to write; a store has at least one"));
        };
        bound.description.check_rows(output.rows)?;
        store.finish()?;
        Ok(())
    }
}

/// Places of the row ids, if there are any, and of the rows. DuckDB says no names here, so the types tell.
fn pick_columns(columns: &[Type]) -> Result<(Option<usize>, usize)> {
    let wanted = "select the rows as one BLOB or FLOAT[] column, and beside it at most their row ids as BIGINT";
    let (mut rowid, mut row) = (None, None);
    for (index, ty) in columns.iter().enumerate() {
        let place = match ty {
            Type::Int(_) => &mut rowid,
            Type::Blob => &mut row,
            Type::List(element) | Type::Array(element, _) if **element == Type::Float => &mut row,
            Type::List(element) | Type::Array(element, _)
                if matches!(**element, Type::Double | Type::Decimal { .. } | Type::Int(_)) =>
            {
                return Err(Error::argument(format!(
                    "column {} is {ty}, and only FLOAT[] is written as it is; cast it: column::FLOAT[]",
                    index + 1
                )));
            }
            _ => return Err(Error::argument(format!("column {} is {ty}; {wanted}", index + 1))),
        };
        if place.replace(index).is_some() {
            return Err(Error::argument(format!("column {} is one more {ty}; {wanted}", index + 1)));
        }
    }
    Ok((rowid, row.ok_or_else(|| Error::argument(format!("no column has rows; {wanted}")))?))
}

impl Output {
    /// Row ids must count the rows: anything else would move rows to other ids.
    fn check_ids(&mut self, column: &Vector<'_>) -> Result<()> {
        let rows = self.rows;
        self.ids.clear();
        let mut null = |index: usize| Err(Error::argument(format!("row id {} is NULL", rows + index as u64)));
        column.append_ints(0..column.len(), &mut self.ids, &mut null).map_err(|fault| match fault {
            crate::ffi::IntFault::Refused(error) => error,
            crate::ffi::IntFault::TooLarge { index, value } => {
                Error::argument(format!("row id {value} where {} must come", rows + index as u64))
            }
        })?;
        for (expected, &id) in (rows..).zip(&self.ids) {
            if u64::try_from(id) != Ok(expected) {
                return Err(Error::argument(format!(
                    "row id {id} where {expected} must come: row ids count from 0 without a gap; ORDER BY them, or leave \
                     them out and the rows are numbered as they come"
                )));
            }
        }
        Ok(())
    }

    fn append_blobs(&mut self, column: &Vector<'_>) -> Result<()> {
        for index in 0..column.len() {
            if column.is_null(index) {
                return Err(self.null_row(index));
            }
            let row = column.bytes(index);
            self.check_width(index, row.len(), "bytes")?;
            self.bytes.extend_from_slice(row);
        }
        Ok(())
    }

    fn append_vectors(&mut self, encoding: &Encoding, column: &Vector<'_>) -> Result<()> {
        let elements = column.elements();
        for index in 0..column.len() {
            if column.is_null(index) {
                return Err(self.null_row(index));
            }
            let range = column.list(index, &elements)?;
            let number = self.rows + index as u64;
            if let Some(position) = range.clone().position(|element| elements.is_null(element)) {
                return Err(Error::argument(format!("row {number} has a NULL at position {position}")));
            }
            self.check_width(index, range.len() * encoding.bytes(), "bytes")?;
            encoding.append(elements.floats(range), number, &mut self.bytes)?;
        }
        Ok(())
    }

    /// The first row says how wide all are.
    fn check_width(&mut self, index: usize, width: usize, unit: &str) -> Result<()> {
        let number = self.rows + index as u64;
        if width == 0 {
            return Err(Error::argument(format!("row {number} is empty")));
        }
        if width > MAX_WIDTH {
            return Err(Error::argument(format!("row {number} has {width} bytes; a row has at most {MAX_WIDTH}")));
        }
        if self.width == 0 {
            self.width = width;
        }
        if width != self.width {
            return Err(Error::argument(format!(
                "row {number} has {width} {unit} and the rows before it {}; the rows of a table are of one width",
                self.width
            )));
        }
        Ok(())
    }

    fn null_row(&self, index: usize) -> Error {
        Error::argument(format!(
            "row {} is NULL; a table has every row: leave it out, or write what it holds",
            self.rows + index as u64
        ))
    }
}
