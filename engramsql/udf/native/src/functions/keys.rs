//! `_engram_key` and `engram_head`: what a row id says without its row being read.

use super::gather::Gather;
use super::tables::{Resolver, TableArgument};
use super::write;
use crate::error::Result;
use crate::ffi::{Chunk, Column, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::catalog::Session;
use std::sync::Arc;

/// `_engram_key(table, id)`: the id if the table has that row, else NULL. Joins drop keys without a row; this lets a
/// lookup do the same.
///
/// No overload takes DOUBLE or text: `rowid = 5.5` compares as DOUBLE, which an integer key cannot stand for, so such a
/// rewrite must fail to bind.
pub struct Key;

/// Tables and memory of one thread.
pub struct KeyLocal {
    resolver: Resolver,
    id: Vec<i64>,
}

impl Scalar for Key {
    const NAME: &'static str = "_engram_key";
    type Bound = TableArgument;
    type Local = KeyLocal;

    fn overloads() -> Vec<Overload> {
        [Parameter::BigInt, Parameter::HugeInt, Parameter::UBigInt, Parameter::UHugeInt]
            .map(|id| Overload { parameters: vec![Parameter::Text, id].into(), result: Column::BigInt })
            .to_vec()
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind(session, arguments, 0)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<KeyLocal> {
        Ok(KeyLocal { resolver: bound.resolve(session)?, id: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut KeyLocal,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let (names, keys) = (input.column(0)?, input.column(1)?);
        let rows = input.len();
        for row in 0..rows {
            local.id.clear();
            // A NULL appends nothing, and what int64 cannot hold no table has.
            let _ = keys.append_ints(row..row + 1, &mut local.id, &mut |_| Ok(()));
            let Some(&id) = local.id.first() else {
                output.set_null(row);
                continue;
            };
            let index = local.resolver.of_row(session, bound, &names, row)?;
            if u64::try_from(id).is_ok_and(|id| id < local.resolver.table(index).rows()) {
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

impl Scalar for Head {
    const NAME: &'static str = "engram_head";
    type Bound = TableArgument;
    type Local = Gather;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: (&[Parameter::Text, Parameter::Any]).into(), result: Column::Integer }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind(session, arguments, 0)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<Gather> {
        Gather::new(session, bound)
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        gather: &mut Gather,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        gather.ids(session, bound, input, output)?;
        for (table, batch) in gather.batches() {
            table.check_ids(&batch.ids)?;
            write::heads_at(output, table, input.len(), batch.rows.iter().map(|(row, at)| (*row, batch.ids[at.start])));
        }
        Ok(())
    }
}
