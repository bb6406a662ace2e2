//! `engram_fetch(table, rowids)`: one row per id, in the order given.

use super::ids;
use super::scratch::grown;
use super::tables::Pinned;
use super::write;
use crate::error::Result;
use crate::ffi::{Arguments, Column, Columns, OutChunk, OutVector, Parameter, TableFunction, Value, Vector};
use engram_engine::Table;
use engram_engine::catalog::Session;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places of the declared columns.
const EMBEDDING: usize = 4;
const ROW: usize = 5;

/// The table function.
pub struct Fetch;

/// What to fetch. Every id was checked against the table.
pub struct Bound {
    table: Pinned,
    ids: Wanted,
    embedding: Column,
}

/// Ids in output order.
#[derive(Default)]
pub struct Wanted {
    /// Rows of the result.
    rows: usize,
    /// The ids that are not NULL.
    ids: Vec<i64>,
    /// Rows of the result whose id is NULL, ascending.
    nulls: Vec<usize>,
    /// Inner list of each row; `None` for a flat list.
    tokens: Option<Vec<i64>>,
}

/// Progress of one execution.
pub struct Global {
    table: Arc<Table>,
    next: AtomicUsize,
}

/// Scratch memory; only grows.
#[derive(Default)]
pub struct Local {
    floats: Vec<f32>,
    bytes: Vec<u8>,
}

impl TableFunction for Fetch {
    const NAME: &'static str = "engram_fetch";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text, Parameter::Any];
    type Bound = Bound;
    type Global = Global;
    type Local = Local;

    fn bind(session: &Arc<Session>, arguments: &Arguments<'_>, columns: &mut Columns<'_>) -> Result<Bound> {
        let table = Pinned::new(session, arguments.text(0, "table")?)?;
        let ids = Wanted::read(table.table(), &arguments.positional(1)?)?;
        table.table().check_ids(&ids.ids)?;
        let embedding = write::float_column(table.table().dim());
        columns.add("ord", Column::BigInt);
        columns.add("token", Column::BigInt);
        columns.add("head", Column::Integer);
        columns.add("rowid", Column::BigInt);
        columns.add("embedding", embedding);
        columns.add("row", Column::Blob);
        columns.cardinality(ids.rows as u64);
        Ok(Bound { table, ids, embedding })
    }

    fn init(session: &Arc<Session>, bound: &Bound) -> Result<Global> {
        Ok(Global { table: bound.table.current(session)?, next: AtomicUsize::new(0) })
    }

    // One thread: the rows come in the order of the ids.

    fn call(bound: &Bound, global: &Global, local: &mut Local, output: &mut OutChunk<'_>) -> Result<()> {
        let wanted = &bound.ids;
        let start = global.next.load(Ordering::Relaxed);
        let rows = start..wanted.rows.min(start + output.capacity());
        global.next.store(rows.end, Ordering::Relaxed);
        let (ids, nulls) = wanted.part(&rows);
        let len = rows.len();
        let table = &global.table;
        // Rows that are asked for as bytes and as vectors are read once.
        let width = table.row_bytes();
        let bytes = if output.wants(ROW) { grown(&mut local.bytes, ids.len() * width) } else { &mut [] };
        if output.wants(ROW) {
            table.fetch_into(ids, bytes)?;
        }
        let vectors_into = |bytes: &[u8], out: &mut [f32]| match bytes {
            [] => table.vectors_into(ids, out),
            bytes => table.decode_into(bytes, out),
        };
        output.each(|column, vector| {
            match column {
                0 => {
                    for (slot, row) in vector.values::<i64>(len).iter_mut().zip(rows.clone()) {
                        *slot = row as i64;
                    }
                }
                1 => match &wanted.tokens {
                    Some(tokens) => vector.values::<i64>(len).copy_from_slice(&tokens[rows.clone()]),
                    None => (0..len).for_each(|row| vector.set_null(row)),
                },
                2 => {
                    let mut ids = ids.iter().copied();
                    let mut nulls = nulls.iter().peekable();
                    let each = (0..len).map(|row| match nulls.next_if(|&&null| null == start + row) {
                        Some(_) => None,
                        None => ids.next(),
                    });
                    write::heads(vector, table, each);
                }
                3 if nulls.is_empty() => vector.values::<i64>(len).copy_from_slice(ids),
                3 => scatter(ids, nulls, start, len, vector, |vector, row, id| {
                    vector.values::<i64>(len)[row] = ids[id];
                }),
                EMBEDDING => {
                    let dim = table.require_dim()?;
                    if nulls.is_empty() {
                        return write::floats(vector, bound.embedding, len, dim, |out| Ok(vectors_into(bytes, out)?));
                    }
                    let floats = grown(&mut local.floats, ids.len() * dim);
                    vectors_into(bytes, floats)?;
                    write::floats(vector, bound.embedding, len, dim, |out| {
                        for (id, row) in present(nulls, start, len).enumerate() {
                            out[row * dim..][..dim].copy_from_slice(&floats[id * dim..][..dim]);
                        }
                        Ok(())
                    })?;
                    nulls.iter().for_each(|row| vector.set_null(row - start));
                }
                _ => {
                    vector.assign_parts(
                        bytes,
                        present(nulls, start, len).enumerate().map(|(id, row)| (row, id * width..(id + 1) * width)),
                    );
                    nulls.iter().for_each(|row| vector.set_null(row - start));
                }
            }
            Ok(())
        })?;
        output.set_len(len);
        Ok(())
    }
}

/// Rows of a chunk (counted from its start) that are not NULL.
fn present(nulls: &[usize], start: usize, len: usize) -> impl Iterator<Item = usize> {
    let mut nulls = nulls.iter().peekable();
    (0..len).filter(move |row| nulls.next_if(|&&null| null == start + row).is_none())
}

/// Calls `write(vector, row, index of its id)` for rows with an id and makes the others NULL.
fn scatter(
    ids: &[i64],
    nulls: &[usize],
    start: usize,
    len: usize,
    vector: &mut OutVector<'_>,
    mut write: impl FnMut(&mut OutVector<'_>, usize, usize),
) {
    for (id, row) in present(nulls, start, len).enumerate().take(ids.len()) {
        write(vector, row, id);
    }
    nulls.iter().for_each(|row| vector.set_null(row - start));
}

impl Wanted {
    /// Reads a list, or a list of lists, of any integer type.
    pub fn read(table: &Table, value: &Value) -> Result<Wanted> {
        let mut wanted = Wanted::default();
        let nested = match value.ty().element() {
            Some(element) if element.element().is_some() => {
                ids::check_list(ids::ROW_IDS, element, value)?;
                true
            }
            _ => {
                ids::check_list(ids::ROW_IDS, value.ty(), value)?;
                false
            }
        };
        let Some(vector) = value.vector() else {
            return Ok(wanted);
        };
        if vector.is_null(0) {
            return Ok(wanted);
        }
        let outer = vector.elements();
        let range = vector.list(0, &outer);
        if !nested {
            wanted.append(table, &outer, range)?;
            return Ok(wanted);
        }
        let mut tokens = Vec::new();
        let inner = outer.elements();
        for (token, row) in range.enumerate() {
            if !outer.is_null(row) {
                wanted.append(table, &inner, outer.list(row, &inner))?;
                tokens.resize(wanted.rows, token as i64);
            }
        }
        wanted.tokens = Some(tokens);
        Ok(wanted)
    }

    /// The ids that are not NULL, in order.
    pub fn into_ids(self) -> Vec<i64> {
        self.ids
    }

    fn append(&mut self, table: &Table, elements: &Vector<'_>, range: Range<usize>) -> Result<()> {
        let first = self.rows;
        self.rows += range.len();
        let nulls = &mut self.nulls;
        elements
            .append_ints(range, &mut self.ids, &mut |index| {
                nulls.push(first + index);
                Ok(())
            })
            .map_err(|fault| ids::row_id_fault(table, fault))
    }

    /// Ids and NULL rows of a range of the result.
    fn part(&self, rows: &Range<usize>) -> (&[i64], &[usize]) {
        if self.nulls.is_empty() {
            return (&self.ids[rows.clone()], &[]);
        }
        let before = |row: usize| self.nulls.partition_point(|&null| null < row);
        let (from, to) = (before(rows.start), before(rows.end));
        (&self.ids[rows.start - from..rows.end - to], &self.nulls[from..to])
    }
}
