//! `_engram_ids(table [, low, high])`: row ids and their heads in order; no row is read.

use super::blocks::{Block, Blocks};
use super::tables::Pinned;
use super::write;
use crate::error::{Error, Result};
use crate::ffi::{Arguments, Column, Columns, OutChunk, Parameter, TableFunction, Type, Value};
use engram_engine::Table;
use engram_engine::catalog::Session;
use std::sync::Arc;

/// The table function.
pub struct RowIds;

/// What ids to list.
pub struct Bound {
    table: Pinned,
    first: u64,
    end: u64,
}

/// Progress of one execution.
pub struct Global {
    table: Arc<Table>,
    blocks: Blocks,
}

impl TableFunction for RowIds {
    const NAME: &'static str = "_engram_ids";
    // Relations and macros of many names stand upon it.
    const SPOKEN: &'static str = "engramsql";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const NAMED: &'static [(&'static str, Parameter)] = &[("low", Parameter::Any), ("high", Parameter::Any)];
    type Bound = Bound;
    type Global = Global;
    type Local = Block;

    fn bind(session: &Arc<Session>, arguments: &Arguments<'_>, columns: &mut Columns<'_>) -> Result<Bound> {
        let table = Pinned::new(session, arguments.text(0, "table")?)?;
        let rows = table.table().rows();
        let bound = |name: &str, absent: i128| match arguments.given(name) {
            None => Ok(Some(absent)),
            Some(value) => limit(name, &value),
        };
        let (low, high) = (bound("low", 0)?, bound("high", i128::MAX - 1)?);
        let (first, end) = match (low, high) {
            (Some(low), Some(high)) => clipped(low, high, rows),
            _ => (0, 0),
        };
        columns.add("rowid", Column::BigInt);
        columns.add("head", Column::Integer);
        columns.cardinality(end - first);
        Ok(Bound { table, first, end })
    }

    fn init(session: &Arc<Session>, bound: &Bound) -> Result<Global> {
        Ok(Global { table: bound.table.current(session)?, blocks: Blocks::new(bound.first..bound.end) })
    }

    fn max_threads(bound: &Bound) -> usize {
        Blocks::threads(bound.end - bound.first)
    }

    fn call(_bound: &Bound, global: &Global, block: &mut Block, output: &mut OutChunk<'_>) -> Result<()> {
        let (rows, _) = global.blocks.take(block, output.capacity());
        let len = (rows.end - rows.start) as usize;
        output.each(|column, vector| {
            // Row ids fit int64: a table's rows do, as its bytes do.
            let ids = (0..len).map(|row| rows.start as i64 + row as i64);
            match column {
                0 => vector.values::<i64>(len).iter_mut().zip(ids).for_each(|(slot, id)| *slot = id),
                _ => write::heads(vector, &global.table, ids.map(Some)),
            }
            Ok(())
        })?;
        output.set_len(len);
        Ok(())
    }
}

/// An end of the range; `None` for NULL.
fn limit(name: &str, value: &Value) -> Result<Option<i128>> {
    if value.is_null() {
        return Ok(None);
    }
    match value.ty() {
        Type::Int(_) => Ok(Some(value.wide_integer())),
        ty => Err(Error::argument(format!("{name} must be an integer, got {ty} {value}"))),
    }
}

/// First row and end of `[low, high]` within a table of `rows` rows.
fn clipped(low: i128, high: i128, rows: u64) -> (u64, u64) {
    let rows = i128::from(rows);
    let end = high.saturating_add(1).clamp(0, rows);
    let first = low.clamp(0, end);
    (first as u64, end as u64)
}
