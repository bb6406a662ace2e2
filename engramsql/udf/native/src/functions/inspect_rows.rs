//! `engram_row_stats(table, rowid)`, `engram_row_hash(table, rowid)`: single rows, a whole chunk of them at once.

use super::gather::Gather;
use super::scalars::TABLE_AND_IDS;
use super::scratch::grown;
use super::tables::{TableArgument, needs_format};
use crate::error::Result;
use crate::ffi::{Chunk, Column, Fields, HugeInt, OutVector, Overload, Scalar, ScalarArguments};
use engram_engine::catalog::Session;
use engram_engine::inspect::{RowStats, row_hashes, row_stats, scan_row_hashes, scan_row_stats};
use std::sync::Arc;

/// `engram_row_stats(table, rowid)`.
pub struct RowStatistics;

const FIELDS: Fields = &[
    (c"nans", Column::BigInt),
    (c"infs", Column::BigInt),
    (c"zeros", Column::BigInt),
    (c"min", Column::Float),
    (c"max", Column::Float),
    (c"sum", Column::Double),
    (c"sum_squares", Column::Double),
    (c"mean", Column::Double),
    (c"stddev", Column::Double),
    (c"constant", Column::Boolean),
    (c"dead", Column::Boolean),
    (c"scale_min", Column::Float),
    (c"scale_max", Column::Float),
];

/// Writes field by field: finding a field's memory costs more than a value.
fn write(output: &mut OutVector<'_>, len: usize, rows: &[usize], found: &[RowStats]) {
    macro_rules! fields {
        ($($value:expr => $type:ty),* $(,)?) => {
            let mut fields = 0..FIELDS.len();
            $(
                let value: fn(&RowStats) -> Option<$type> = $value;
                let mut field = output.field(fields.next().unwrap_or(usize::MAX));
                let values = field.values::<$type>(len);
                for (&row, stats) in rows.iter().zip(found) {
                    values[row] = value(stats).unwrap_or_default();
                }
                for (&row, _) in rows.iter().zip(found).filter(|(_, stats)| value(stats).is_none()) {
                    field.set_null(row);
                }
            )*
        };
    }
    fields! {
        |stats| i64::try_from(stats.nans).ok() => i64,
        |stats| i64::try_from(stats.infs).ok() => i64,
        |stats| i64::try_from(stats.zeros).ok() => i64,
        |stats| stats.min => f32,
        |stats| stats.max => f32,
        |stats| stats.sum => f64,
        |stats| stats.sum_squares => f64,
        |stats| stats.mean => f64,
        |stats| stats.stddev => f64,
        |stats| Some(stats.constant.into()) => u8,
        |stats| Some(stats.dead.into()) => u8,
        |stats| stats.scale_min => f32,
        |stats| stats.scale_max => f32,
    }
}

/// Tables and scratch memory of one thread.
pub struct Local<T> {
    gather: Gather,
    found: Vec<T>,
    /// Rows of the chunk that are not NULL.
    rows: Vec<usize>,
}

impl Scalar for RowStatistics {
    const NAME: &'static str = "engram_row_stats";
    type Bound = TableArgument;
    type Local = Local<RowStats>;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: TABLE_AND_IDS.into(), result: Column::Struct(FIELDS) }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind_checked(session, arguments, 0, needs_format)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<Self::Local> {
        Ok(Local { gather: Gather::new(session, bound)?, found: Vec::new(), rows: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut Self::Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let Local { gather, found, rows } = local;
        if let Some((table, first)) = gather.stretch(bound, input)? {
            let found = grown(found, input.len());
            scan_row_stats(table, first, found)?;
            rows.clear();
            rows.extend(0..found.len());
            write(output, input.len(), rows, found);
            return Ok(());
        }
        gather.ids(session, bound, input, output)?;
        for (table, batch) in gather.batches() {
            let found = grown(found, batch.ids.len());
            row_stats(table, &batch.ids, found)?;
            rows.clear();
            rows.extend(batch.rows.iter().map(|(row, _)| *row));
            write(output, input.len(), rows, found);
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
        Ok(Local { gather: Gather::new(session, bound)?, found: Vec::new(), rows: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut Self::Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let Local { gather, found, .. } = local;
        if let Some((table, first)) = gather.stretch(bound, input)? {
            let found = grown(found, input.len());
            scan_row_hashes(table, first, found)?;
            for (out, &hash) in output.values::<HugeInt>(input.len()).iter_mut().zip(&*found) {
                *out = (hash as i128).into();
            }
            return Ok(());
        }
        gather.ids(session, bound, input, output)?;
        let hashes = output.values::<HugeInt>(input.len());
        for (table, batch) in gather.batches() {
            let found = grown(found, batch.ids.len());
            row_hashes(table, &batch.ids, found)?;
            for ((row, _), &hash) in batch.rows.iter().zip(&*found) {
                hashes[*row] = (hash as i128).into();
            }
        }
        Ok(())
    }
}
