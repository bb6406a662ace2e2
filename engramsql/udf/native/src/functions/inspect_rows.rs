//! `engram_row_stats(table, rowid)`, `engram_row_hash(table, rowid)` and what macros ask of rows: single rows, a whole chunk
//! of them at once.

use super::fields::write_fields;
use super::gather::{Gather, Plain};
use super::scalars::TABLE_AND_IDS;
use super::scratch::grown;
use super::tables::{TableArgument, needs_format};
use crate::error::Result;
use crate::ffi::{Chunk, Column, Fields, HugeInt, OutVector, Overload, Scalar, ScalarArguments};
use engram_engine::Table;
use engram_engine::catalog::Session;
use engram_engine::format::ValueFormat;
use engram_engine::inspect::{OfRow, RowHash, RowKind, RowScales, RowStats, of_rows, scan_of_rows};
use std::marker::PhantomData;
use std::sync::Arc;

/// Something that can be asked of a row by a scalar function.
pub trait Asked: OfRow {
    /// SQL name.
    const NAME: &'static str;
    /// Name in error texts.
    const SPOKEN: &'static str = Self::NAME;
    /// Result type.
    const RESULT: Column;

    /// An error if the rows of a table have no answer.
    fn check(table: &Table) -> Result<()>;
    /// Whether the answer is NULL for every row of a table, so that none needs to be read.
    fn is_absent(_table: &Table) -> bool {
        false
    }
    /// Writes `found[i]` to row `rows[i]` of a vector of `len` rows.
    fn write(output: &mut OutVector<'_>, len: usize, rows: &[usize], found: &[Self]);
}

/// The scalar function that asks `A` of rows.
pub struct Answers<A>(PhantomData<A>);

/// Tables and scratch memory of one thread.
pub struct Local<A> {
    gather: Gather,
    found: Vec<A>,
    /// Rows of the chunk that are not NULL.
    rows: Vec<usize>,
}

impl<A: Asked> Scalar for Answers<A> {
    const NAME: &'static str = A::NAME;
    const SPOKEN: &'static str = A::SPOKEN;
    type Bound = TableArgument;
    type Local = Local<A>;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: TABLE_AND_IDS.into(), result: A::RESULT }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind_checked(session, arguments, 0, A::check)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<Local<A>> {
        Ok(Local { gather: Gather::new(session, bound)?, found: Vec::new(), rows: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut Local<A>,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let Local { gather, found, rows } = local;
        rows.clear();
        if let TableArgument::Constant(_) = bound
            && A::is_absent(gather.resolver.table(0))
        {
            gather.ids(session, bound, input, output)?;
            output.set_nulls(0..input.len());
            return Ok(());
        }
        if let Some((table, plain)) = gather.plain(bound, &input.column(1)?) {
            let found = grown(found, input.len());
            match plain {
                Plain::Stretch(first) => scan_of_rows(table, first, found)?,
                Plain::Ids(ids) => of_rows(table, ids, found)?,
            }
            rows.extend(0..found.len());
            write(output, input.len(), rows, found);
            return Ok(());
        }
        gather.ids(session, bound, input, output)?;
        for (table, batch) in gather.batches() {
            let found = grown(found, batch.ids.len());
            of_rows(table, &batch.ids, found)?;
            rows.clear();
            rows.extend(batch.rows.iter().map(|(row, _)| *row));
            write(output, input.len(), rows, found);
        }
        Ok(())
    }
}

/// Writes some rows after the others: field by field, all answers of a chunk would leave the processor's first cache in
/// between.
fn write<A: Asked>(output: &mut OutVector<'_>, len: usize, rows: &[usize], found: &[A]) {
    const GROUP: usize = 128;
    for (rows, found) in rows.chunks(GROUP).zip(found.chunks(GROUP)) {
        A::write(output, len, rows, found);
    }
}

const STATS: Fields = &[
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

/// `engram_row_stats(table, rowid)`.
impl Asked for RowStats {
    const NAME: &'static str = "engram_row_stats";
    const RESULT: Column = Column::Struct(STATS);

    fn check(table: &Table) -> Result<()> {
        needs_format(table)
    }

    fn write(output: &mut OutVector<'_>, len: usize, rows: &[usize], found: &[RowStats]) {
        write_fields! { output, len, rows, found;
            // No row has 2^63 values.
            plain i64: |stats: &RowStats| stats.nans as i64,
            plain i64: |stats: &RowStats| stats.infs as i64,
            plain i64: |stats: &RowStats| stats.zeros as i64,
            some f32: |stats: &RowStats| stats.min,
            some f32: |stats: &RowStats| stats.max,
            some f64: |stats: &RowStats| stats.sum,
            some f64: |stats: &RowStats| stats.sum_squares,
            some f64: |stats: &RowStats| stats.mean,
            some f64: |stats: &RowStats| stats.stddev,
            plain u8: |stats: &RowStats| stats.constant.into(),
            plain u8: |stats: &RowStats| stats.dead.into(),
            some f32: |stats: &RowStats| stats.scale_min,
            some f32: |stats: &RowStats| stats.scale_max,
        }
    }
}

/// `_engram_row_kind(table, rowid)`.
impl Asked for RowKind {
    const NAME: &'static str = "_engram_row_kind";
    // Macros of several names stand upon it.
    const SPOKEN: &'static str = "engramsql";
    const RESULT: Column =
        Column::Struct(&[(c"dead", Column::Boolean), (c"constant", Column::Boolean), (c"finite", Column::Boolean)]);

    fn check(table: &Table) -> Result<()> {
        needs_format(table)
    }

    fn write(output: &mut OutVector<'_>, len: usize, rows: &[usize], found: &[RowKind]) {
        write_fields! { output, len, rows, found;
            plain u8: |kind: &RowKind| kind.dead.into(),
            plain u8: |kind: &RowKind| kind.constant.into(),
            plain u8: |kind: &RowKind| kind.finite.into(),
        }
    }
}

/// `_engram_row_scales(table, rowid)`.
impl Asked for RowScales {
    const NAME: &'static str = "_engram_row_scales";
    const SPOKEN: &'static str = "engram_scale_ranges";
    const RESULT: Column = Column::Struct(&[(c"min", Column::Float), (c"max", Column::Float)]);

    fn check(table: &Table) -> Result<()> {
        needs_format(table)
    }

    fn is_absent(table: &Table) -> bool {
        !matches!(table.format(), Some(ValueFormat::Fp8E4m3E8m0 | ValueFormat::Nvfp4 { .. }))
    }

    fn write(output: &mut OutVector<'_>, len: usize, rows: &[usize], found: &[RowScales]) {
        write_fields! { output, len, rows, found;
            some f32: |scales: &RowScales| scales.min,
            some f32: |scales: &RowScales| scales.max,
        }
    }
}

/// `engram_row_hash(table, rowid)`. A signed number: DuckDB hands an unsigned one of 128 bits to Arrow as a decimal that is
/// wrong in its upper half.
impl Asked for RowHash {
    const NAME: &'static str = "engram_row_hash";
    const RESULT: Column = Column::HugeInt;

    fn check(_table: &Table) -> Result<()> {
        Ok(())
    }

    fn write(output: &mut OutVector<'_>, len: usize, rows: &[usize], found: &[RowHash]) {
        let hashes = output.values::<HugeInt>(len);
        for (&row, hash) in rows.iter().zip(found) {
            hashes[row] = (hash.0 as i128).into();
        }
    }
}
