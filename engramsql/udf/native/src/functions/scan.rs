//! `engram_scan(table [, first, count])`: rows in id order, read by several threads.

use super::blocks::{Block, Blocks};
use super::scratch::grown;
use super::tables::Pinned;
use super::write;
use crate::error::{Error, Result};
use crate::ffi::{Arguments, Column, Columns, OutChunk, Parameter, TableFunction, Value};
use engram_engine::Table;
use engram_engine::catalog::Session;
use std::sync::Arc;

/// Places of the declared columns.
const EMBEDDING: usize = 2;
const ROW: usize = 3;

/// The table function.
pub struct Scan;

/// What to scan.
pub struct Bound {
    table: Pinned,
    first: u64,
    end: u64,
    embedding: Column,
}

/// Progress of one execution.
pub struct Global {
    table: Arc<Table>,
    blocks: Blocks,
}

/// The block a thread is at, and scratch memory that only grows.
#[derive(Default)]
pub struct Local {
    block: Block,
    ids: Vec<i64>,
    bytes: Vec<u8>,
}

impl TableFunction for Scan {
    const NAME: &'static str = "engram_scan";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const NAMED: &'static [(&'static str, Parameter)] = &[("first", Parameter::Any), ("count", Parameter::Any)];
    type Bound = Bound;
    type Global = Global;
    type Local = Local;

    fn bind(session: &Arc<Session>, arguments: &Arguments<'_>, columns: &mut Columns<'_>) -> Result<Bound> {
        let table = Pinned::new(session, arguments.text(0, "table")?)?;
        let (first, end) = range(table.table(), arguments)?;
        let embedding = write::float_column(table.table().dim());
        columns.add("rowid", Column::BigInt);
        columns.add("head", Column::Integer);
        columns.add("embedding", embedding);
        columns.add("row", Column::Blob);
        columns.cardinality(end - first);
        Ok(Bound { table, first, end, embedding })
    }

    fn init(session: &Arc<Session>, bound: &Bound) -> Result<Global> {
        Ok(Global { table: bound.table.current(session)?, blocks: Blocks::new(bound.first..bound.end) })
    }

    fn max_threads(bound: &Bound) -> usize {
        Blocks::threads(bound.end - bound.first)
    }

    fn call(bound: &Bound, global: &Global, local: &mut Local, output: &mut OutChunk<'_>) -> Result<()> {
        let (rows, block) = global.blocks.take(&mut local.block, output.capacity());
        let first = rows.start;
        let len = (rows.end - first) as usize;
        local.ids.clear();
        // Row ids fit int64: a table's rows do, as its bytes do.
        local.ids.extend(rows.map(|id| id as i64));
        let (table, ids) = (&global.table, &local.ids);
        // Rows come in order here, while maps are set for scattered ones: without this, each page of a cold table would
        // be waited for alone. Not said when no row is read.
        if let Some(block) = block
            && (output.wants(EMBEDDING) || output.wants(ROW))
        {
            table.announce(block);
        }
        // Rows that are asked for as bytes and as vectors are read once.
        let width = table.row_bytes();
        let bytes = if output.wants(ROW) { grown(&mut local.bytes, len * width) } else { &mut [] };
        if output.wants(ROW) {
            table.scan_into(first, bytes)?;
        }
        output.each(|column, vector| {
            match column {
                0 => vector.values::<i64>(len).copy_from_slice(ids),
                1 => write::heads(vector, table, ids.iter().copied().map(Some)),
                EMBEDDING => {
                    let dim = table.require_dim()?;
                    write::floats(vector, bound.embedding, len, dim, |out| {
                        Ok(if bytes.is_empty() {
                            table.scan_vectors_into(first, out)
                        } else {
                            table.decode_into(bytes, out)
                        }?)
                    })?;
                }
                _ => {
                    vector.assign_parts(bytes, (0..len).map(|row| (row, row * width..(row + 1) * width)));
                }
            }
            Ok(())
        })?;
        output.set_len(len);
        Ok(())
    }
}

/// First row and end of the named arguments `first` and `count`; a range that leaves the table is refused.
pub fn range(table: &Table, arguments: &Arguments<'_>) -> Result<(u64, u64)> {
    let integer = |name: &str| -> Result<Option<i64>> {
        match arguments.named(name) {
            Some(value) => Value::integer(&value, name),
            None => Ok(None),
        }
    };
    let rows = table.rows();
    let first = match integer("first")? {
        None => 0,
        Some(first) => {
            u64::try_from(first).ok().filter(|&first| first <= rows).ok_or_else(|| table.out_of_range(first.into()))?
        }
    };
    match integer("count")? {
        None => Ok((first, rows)),
        Some(count) => {
            let count = u64::try_from(count)
                .map_err(|_| Error::argument(format!("count must not be negative, got {count}")))?;
            if count > rows - first {
                return Err(table.out_of_range(i128::from(first) + i128::from(count) - 1).into());
            }
            Ok((first, first + count))
        }
    }
}
