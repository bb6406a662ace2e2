//! `engram_row_stats(table, rowid)`, `engram_row_hash(table, rowid)`: single rows, a whole chunk of them at once.

use super::gather::Gather;
use super::listing::{self, Cell};
use super::scalars::{TABLE_AND_IDS, needs_format};
use super::tables::TableArgument;
use crate::error::Result;
use crate::ffi::{Chunk, Column, HugeInt, OutVector, Overload, Scalar, ScalarArguments};
use engram_engine::catalog::Session;
use engram_engine::inspect::{RowStats, row_hashes, row_stats};
use std::sync::Arc;

/// `engram_row_stats(table, rowid)`.
pub struct RowStatistics;

const FIELDS: &[(&str, Column)] = &[
    ("nans", Column::BigInt),
    ("infs", Column::BigInt),
    ("zeros", Column::BigInt),
    ("min", Column::Float),
    ("max", Column::Float),
    ("sum", Column::Double),
    ("sum_squares", Column::Double),
    ("constant", Column::Boolean),
    ("dead", Column::Boolean),
    ("scale_min", Column::Float),
    ("scale_max", Column::Float),
];

/// In the order of [`FIELDS`].
fn cells(stats: &RowStats) -> [Cell; FIELDS.len()] {
    [
        stats.nans.into(),
        stats.infs.into(),
        stats.zeros.into(),
        stats.min.into(),
        stats.max.into(),
        stats.sum.into(),
        stats.sum_squares.into(),
        stats.constant.into(),
        stats.dead.into(),
        stats.scale_min.into(),
        stats.scale_max.into(),
    ]
}

/// Tables and scratch memory of one thread.
pub struct Local<T> {
    gather: Gather,
    found: Vec<T>,
}

impl Scalar for RowStatistics {
    const NAME: &'static str = "engram_row_stats";
    type Bound = TableArgument;
    type Local = Local<RowStats>;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: TABLE_AND_IDS.into(), result: Column::Struct(FIELDS) }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        let bound = TableArgument::bind(session, arguments, 0)?;
        needs_format(session, &bound)?;
        Ok(bound)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<Self::Local> {
        Ok(Local { gather: Gather::new(session, bound)?, found: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut Self::Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let Local { gather, found } = local;
        gather.ids(session, bound, input, output)?;
        for (table, batch) in gather.batches() {
            found.clear();
            found.resize(batch.ids.len(), RowStats::default());
            row_stats(table, &batch.ids, found)?;
            for ((row, _), stats) in batch.rows.iter().zip(&*found) {
                for (index, (cell, (_, column))) in cells(stats).iter().zip(FIELDS).enumerate() {
                    listing::write(&mut output.field(index), *column, *row, input.len(), cell);
                }
            }
        }
        Ok(())
    }
}

/// `engram_row_hash(table, rowid)`. A signed number: DuckDB hands an unsigned one of 128 bits to Arrow as a decimal that is
/// wrong in its upper half.
pub struct RowHash;

impl Scalar for RowHash {
    const NAME: &'static str = "engram_row_hash";
    type Bound = TableArgument;
    type Local = Local<u128>;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: TABLE_AND_IDS.into(), result: Column::HugeInt }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind(session, arguments, 0)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<Self::Local> {
        Ok(Local { gather: Gather::new(session, bound)?, found: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut Self::Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let Local { gather, found } = local;
        gather.ids(session, bound, input, output)?;
        let hashes = output.values::<HugeInt>(input.len());
        for (table, batch) in gather.batches() {
            found.clear();
            found.resize(batch.ids.len(), 0);
            row_hashes(table, &batch.ids, found)?;
            for ((row, _), hash) in batch.rows.iter().zip(&*found) {
                hashes[*row] = (*hash as i128).into();
            }
        }
        Ok(())
    }
}
