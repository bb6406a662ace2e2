//! `engram_view_fetch(view, slots)`, `engram_view_lookup(view, key)`: records by slot, slots by key.

use super::embeddings::rows_per_chunk;
use super::ids;
use super::scratch::grown;
use super::tables::{Resolver, TableArgument};
use super::wanted::{Wanted, present};
use super::write;
use crate::error::{Error, Result};
use crate::ffi::{
    Arguments, Chunk, Column, Columns, IntFault, OutChunk, OutVector, Overload, Parameter, Scalar, ScalarArguments,
    TableFunction, Type,
};
use engram_engine::catalog::Session;
use engram_engine::view::View;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places of the declared columns.
const E_T: usize = 1;
const RECORD: usize = 2;

/// `engram_view_fetch(view, slots)`.
pub struct Fetch;

/// What to fetch. Every slot was checked against the view.
pub struct Bound {
    name: String,
    view: Arc<View>,
    slots: Wanted,
    e_t: Column,
}

/// Progress of one execution.
pub struct Global {
    view: Arc<View>,
    next: AtomicUsize,
}

/// Scratch memory; only grows.
#[derive(Default)]
pub struct Local {
    floats: Vec<f32>,
    bytes: Vec<u8>,
}

impl TableFunction for Fetch {
    const NAME: &'static str = "engram_view_fetch";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text, Parameter::Any];
    type Bound = Bound;
    type Global = Global;
    type Local = Local;

    fn bind(session: &Arc<Session>, arguments: &Arguments<'_>, columns: &mut Columns<'_>) -> Result<Bound> {
        let name = arguments.text(0, "view")?;
        let view = session.view(&name)?;
        let slots = Wanted::read_slots(&view, &arguments.positional(1)?)?;
        let e_t = write::float_column(view.values());
        columns.add("slot", Column::BigInt);
        columns.add("e_t", e_t);
        columns.add("record", Column::Blob);
        columns.cardinality(slots.rows as u64);
        Ok(Bound { name, view, slots, e_t })
    }

    fn init(session: &Arc<Session>, bound: &Bound) -> Result<Global> {
        let view = session.view(&bound.name)?;
        // Slots count the records of one state of a view.
        if view.digest() != bound.view.digest() || view.values() != bound.view.values() {
            return Err(Error::argument(format!(
                "view '{}' changed since this statement was prepared; prepare it again",
                bound.name
            )));
        }
        Ok(Global { view, next: AtomicUsize::new(0) })
    }

    // One thread: the rows come in the order of the slots.

    fn call(bound: &Bound, global: &Global, local: &mut Local, output: &mut OutChunk<'_>) -> Result<()> {
        let (view, wanted) = (&global.view, &bound.slots);
        let start = global.next.load(Ordering::Relaxed);
        let most = rows_per_chunk(view.values().unwrap_or(0), output.capacity());
        let rows = start..wanted.rows.min(start + most);
        global.next.store(rows.end, Ordering::Relaxed);
        let (slots, nulls) = wanted.part(&rows);
        let len = rows.len();
        let width = view.record_bytes();
        // Where the records themselves are wanted, the values come from them: each is read once.
        let records = output.wants(RECORD).then(|| grown(&mut local.bytes, slots.len() * width));
        let records = match records {
            Some(records) => {
                view.records_into(slots, records)?;
                Some(&*records)
            }
            None => None,
        };
        let e_t_into = |out: &mut [f32]| match records {
            Some(records) => view.decode_into(records, out),
            None => view.e_t_into(slots, out),
        };
        output.each(|column, vector| {
            match column {
                0 => {
                    for (index, row) in present(nulls, start, len).enumerate() {
                        vector.values::<i64>(len)[row] = slots[index];
                    }
                }
                E_T => {
                    // Without values this says why.
                    view.e_t_into(&[], &mut [])?;
                    let size = view.values().unwrap_or(0);
                    let floats = grown(&mut local.floats, slots.len() * size);
                    if !nulls.is_empty() {
                        e_t_into(floats)?;
                    }
                    write::floats(vector, bound.e_t, len, size, |out| {
                        if nulls.is_empty() {
                            return Ok(e_t_into(out)?);
                        }
                        for (index, row) in present(nulls, start, len).enumerate() {
                            out[row * size..][..size].copy_from_slice(&floats[index * size..][..size]);
                        }
                        Ok(())
                    })?;
                }
                _ => {
                    let bytes = records.unwrap_or_default();
                    let parts = present(nulls, start, len).enumerate();
                    vector.assign_parts(bytes, parts.map(|(index, row)| (row, index * width..(index + 1) * width)));
                }
            }
            nulls.iter().for_each(|row| vector.set_null(row - start));
            Ok(())
        })?;
        output.set_len(len);
        Ok(())
    }
}

/// `engram_view_lookup(view, key)`.
pub struct Lookup;

/// Views of one thread, and the keys of a chunk.
pub struct LookupLocal {
    resolver: Resolver<View>,
    /// Keys `i` belong to the resolver's view `i`.
    batches: Vec<Batch>,
}

/// Keys of one view.
#[derive(Default)]
struct Batch {
    keys: Vec<i64>,
    /// Row of the chunk of each key.
    rows: Vec<usize>,
    slots: Vec<i64>,
}

impl Scalar for Lookup {
    const NAME: &'static str = "engram_view_lookup";
    type Bound = TableArgument;
    type Local = LookupLocal;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: (&[Parameter::Text, Parameter::Any]).into(), result: Column::BigInt }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind_to::<View>(session, arguments, 0)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<LookupLocal> {
        Ok(LookupLocal { resolver: bound.resolve(session)?, batches: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut LookupLocal,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        local.collect(session, bound, input, output)?;
        for (index, batch) in local.batches.iter_mut().enumerate().filter(|(_, batch)| !batch.rows.is_empty()) {
            let slots = grown(&mut batch.slots, batch.rows.len());
            local.resolver.table(index).lookup_many(&batch.keys, slots)?;
            for (&row, &slot) in batch.rows.iter().zip(slots.iter()) {
                if slot < 0 {
                    output.set_null(row);
                } else {
                    output.values::<i64>(input.len())[row] = slot;
                }
            }
        }
        Ok(())
    }
}

impl LookupLocal {
    /// The keys of a chunk, by view: one question to each. A NULL key, or a NULL in it, has no slot.
    fn collect(
        &mut self,
        session: &Session,
        bound: &TableArgument,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let (names, keys) = (input.column(0)?, input.column(1)?);
        ids::check_lists(ids::KEY_IDS, &keys)?;
        for batch in &mut self.batches {
            batch.keys.clear();
            batch.rows.clear();
        }
        if *keys.ty() == Type::Null {
            (0..input.len()).for_each(|row| output.set_null(row));
            return Ok(());
        }
        let elements = keys.elements();
        for row in 0..input.len() {
            if keys.is_null(row) {
                output.set_null(row);
                continue;
            }
            let index = self.resolver.of_row(session, bound, &names, row)?;
            let view = self.resolver.table(index);
            if self.batches.len() <= index {
                self.batches.resize_with(index + 1, Batch::default);
            }
            let batch = &mut self.batches[index];
            let (start, range) = (batch.keys.len(), keys.list(row, &elements)?);
            if range.len() != view.heads() {
                return Err(Error::argument(format!(
                    "a key of view '{}' has {} row ids, one per head; got {}",
                    view.name(),
                    view.heads(),
                    range.len()
                )));
            }
            let mut has_null = false;
            let mut null = |_| {
                has_null = true;
                Ok(())
            };
            elements.append_ints(range, &mut batch.keys, &mut null).map_err(|fault| match fault {
                IntFault::Refused(error) => error,
                IntFault::TooLarge { value, .. } => Error::argument(format!("{value} is no row id of any table")),
            })?;
            if has_null {
                batch.keys.truncate(start);
                output.set_null(row);
            } else {
                batch.rows.push(row);
            }
        }
        Ok(())
    }
}
