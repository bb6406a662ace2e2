//! `_engram_key` and `engram_head`: what a row id says without its row being read.

use super::gather::Gather;
use super::table_scalar::{TableScalar, Tables};
use super::write;
use crate::error::Result;
use crate::ffi::{Chunk, Column, OutVector, Overload, Parameter};

/// `_engram_key(table, id)`: the id if the table has that row, else NULL. Joins drop keys without a row; this lets a
/// lookup do the same.
///
/// No overload takes DOUBLE or text: `rowid = 5.5` compares as DOUBLE, which an integer key cannot stand for, so such a
/// rewrite must fail to bind.
pub struct Key;

impl TableScalar for Key {
    const NAME: &'static str = "_engram_key";
    type Scratch = Vec<i64>;

    fn overloads() -> Vec<Overload> {
        [Parameter::BigInt, Parameter::HugeInt, Parameter::UBigInt, Parameter::UHugeInt]
            .map(|id| Overload { parameters: vec![Parameter::Text, id].into(), result: Column::BigInt })
            .to_vec()
    }

    fn call(tables: &mut Tables<'_>, id: &mut Vec<i64>, input: &Chunk<'_>, output: &mut OutVector<'_>) -> Result<()> {
        let keys = input.column(1)?;
        let rows = input.len();
        for row in 0..rows {
            id.clear();
            // A NULL appends nothing, and what int64 cannot hold no table has.
            let _ = keys.append_ints(row..row + 1, id, &mut |_| Ok(()));
            let Some(&id) = id.first() else {
                output.set_null(row);
                continue;
            };
            let rows_there = tables.of_row(row)?.rows();
            if u64::try_from(id).is_ok_and(|id| id < rows_there) {
                output.values::<i64>(rows)[row] = id;
            } else {
                output.set_null(row);
            }
        }
        Ok(())
    }
}

/// `engram_head(table, rowid)`.
pub struct Head;

impl TableScalar for Head {
    const NAME: &'static str = "engram_head";
    type Scratch = Gather;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: (&[Parameter::Text, Parameter::Any]).into(), result: Column::Integer }]
    }

    fn call(tables: &mut Tables<'_>, gather: &mut Gather, input: &Chunk<'_>, output: &mut OutVector<'_>) -> Result<()> {
        gather.ids(tables, input, output)?;
        for (table, batch) in gather.batches(tables) {
            table.check_ids(&batch.ids)?;
            write::heads_at(output, table, input.len(), batch.rows.iter().map(|(row, at)| (*row, batch.ids[at.start])));
        }
        Ok(())
    }
}
