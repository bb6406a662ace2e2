//! `engram_fetch(table, rowids)`: one row per id, in the order given.

use super::scratch::grown;
use super::tables::Pinned;
use super::wanted::{Wanted, present};
use super::write;
use crate::error::Result;
use crate::ffi::{Arguments, Column, Columns, OutChunk, OutVector, Parameter, TableFunction};
use engram_engine::Table;
use engram_engine::catalog::Session;
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
