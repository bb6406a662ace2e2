//! `engram_row`, `engram_vector`, `engram_e_t`: rows by id, as scalar functions.

use super::gather::{Gather, Plain};
use super::scratch::grown;
use super::tables::{TableArgument, needs_format};
use crate::error::Result;
use crate::ffi::{Chunk, Column, ListEntry, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::Table;
use engram_engine::catalog::Session;
use std::marker::PhantomData;
use std::sync::Arc;

/// Parameters of functions of rows by id.
pub const TABLE_AND_IDS: &[Parameter] = &[Parameter::Text, Parameter::Any];

/// `engram_row(table, rowid)`.
pub struct Row;

/// Tables and scratch memory of one thread.
pub struct RowLocal {
    gather: Gather,
    /// Only grows, so a chunk does not zero it again.
    bytes: Vec<u8>,
}

impl Scalar for Row {
    const NAME: &'static str = "engram_row";
    type Bound = TableArgument;
    type Local = RowLocal;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: TABLE_AND_IDS.into(), result: Column::Blob }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind(session, arguments, 0)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<RowLocal> {
        Ok(RowLocal { gather: Gather::new(session, bound)?, bytes: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut RowLocal,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let RowLocal { gather, bytes } = local;
        if let Some((table, rows)) = gather.plain(bound, &input.column(1)?) {
            let width = table.row_bytes();
            let buffer = grown(bytes, width * input.len());
            match rows {
                Plain::Stretch(first) => table.scan_into(first, buffer)?,
                Plain::Ids(ids) => table.fetch_into(ids, buffer)?,
            }
            output.assign_parts(buffer, (0..input.len()).map(|row| (row, row * width..(row + 1) * width)));
            return Ok(());
        }
        gather.ids(session, bound, input, output)?;
        for (table, batch) in gather.batches() {
            let width = table.row_bytes();
            let total = width * batch.ids.len();
            let buffer = grown(bytes, total);
            table.fetch_into(&batch.ids, buffer)?;
            output.assign_parts(buffer, batch.rows.iter().map(|(row, at)| (*row, at.start * width..at.end * width)));
        }
        Ok(())
    }
}

/// A function that decodes the rows its second argument names.
pub trait Decoded: 'static {
    /// SQL name.
    const NAME: &'static str;
    /// Collects the ids of a chunk.
    const COLLECT: Collect;
}

/// A method of [`Gather`] that collects the ids of a chunk.
type Collect = fn(&mut Gather, &Session, &TableArgument, &Chunk<'_>, &mut OutVector<'_>) -> Result<()>;

/// `engram_vector(table, rowid)`.
pub struct OfRow;

impl Decoded for OfRow {
    const NAME: &'static str = "engram_vector";
    const COLLECT: Collect = Gather::ids;
}

/// `engram_e_t(table, rowids)`.
pub struct OfRows;

impl Decoded for OfRows {
    const NAME: &'static str = "engram_e_t";
    const COLLECT: Collect = Gather::lists;
}

/// `engram_vector` and `engram_e_t`: the values of one row, or of several in one list.
pub struct Vectors<F>(PhantomData<F>);

impl<F: Decoded> Scalar for Vectors<F> {
    const NAME: &'static str = F::NAME;
    type Bound = TableArgument;
    type Local = Gather;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: TABLE_AND_IDS.into(), result: Column::FloatList }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind_checked(session, arguments, 0, needs_format)
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
        F::COLLECT(gather, session, bound, input, output)?;
        decode(gather, input.len(), output, |table, ids, out| Ok(table.vectors_into(ids, out)?))
    }
}

/// Decodes all batches straight into the output's elements; rows point at their part.
pub fn decode(
    gather: &Gather,
    rows: usize,
    output: &mut OutVector<'_>,
    read: impl Fn(&Table, &[i64], &mut [f32]) -> Result<()>,
) -> Result<()> {
    let total = gather.total(|table| Ok(table.require_dim()?))?;
    let mut rest = output.list_elements(total)?;
    for (table, batch) in gather.batches() {
        let (part, after) = rest.split_at_mut(batch.ids.len() * table.require_dim()?);
        read(table, &batch.ids, part)?;
        rest = after;
    }
    let entries = output.values::<ListEntry>(rows);
    entries.fill(ListEntry { offset: 0, length: 0 });
    let mut base = 0;
    for (table, batch) in gather.batches() {
        let dim = table.require_dim()?;
        for (row, at) in &batch.rows {
            entries[*row] = ListEntry { offset: (base + at.start * dim) as u64, length: (at.len() * dim) as u64 };
        }
        base += batch.ids.len() * dim;
    }
    Ok(())
}
