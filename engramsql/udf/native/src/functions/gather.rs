//! The ids of one chunk, batched by table: one engine call per table and chunk.

use super::ids;
use super::stretch::Stretch;
use super::tables::{Resolver, TableArgument};
use crate::error::{Error, Result};
use crate::ffi::{Chunk, OutVector, Type, Vector};
use engram_engine::Table;
use engram_engine::catalog::Session;
use std::ops::Range;
use std::sync::Arc;

/// State of one thread: tables seen and reused memory.
pub struct Gather {
    pub resolver: Resolver,
    /// Batch `i` belongs to the resolver's table `i`.
    batches: Vec<Batch>,
    nulls: Vec<usize>,
    stretch: Stretch,
}

/// Rows of the chunk that read from one table.
#[derive(Default)]
pub struct Batch {
    /// Row ids, in row order.
    pub ids: Vec<i64>,
    /// Row of the chunk and its range in `ids`.
    pub rows: Vec<(usize, Range<usize>)>,
}

/// The rows of a chunk that come from one table, one for each row of the chunk.
pub enum Plain<'a> {
    /// They follow each other from this one on: a scan reads them best.
    Stretch(u64),
    /// Their ids.
    Ids(&'a [i64]),
}

impl Gather {
    pub fn new(session: &Session, argument: &TableArgument) -> Result<Gather> {
        Ok(Gather {
            resolver: argument.resolve(session)?,
            batches: Vec::new(),
            nulls: Vec::new(),
            stretch: Stretch::default(),
        })
    }

    /// The batches of the last chunk, with their tables.
    pub fn batches(&self) -> impl Iterator<Item = (&Arc<Table>, &Batch)> {
        self.batches
            .iter()
            .enumerate()
            .filter(|(_, batch)| !batch.rows.is_empty())
            .map(|(index, batch)| (self.resolver.table(index), batch))
    }

    fn start(&mut self) {
        for batch in &mut self.batches {
            batch.ids.clear();
            batch.rows.clear();
        }
    }

    fn batch(&mut self, index: usize) -> &mut Batch {
        if self.batches.len() <= index {
            self.batches.resize_with(index + 1, Batch::default);
        }
        &mut self.batches[index]
    }

    /// The rows of a chunk that names one table and no NULL, as most chunks do: nothing has to be collected.
    pub fn plain<'a>(&mut self, argument: &TableArgument, values: &'a Vector<'_>) -> Option<(&Table, Plain<'a>)> {
        let (TableArgument::Constant(_), Some(ids)) = (argument, values.bigints()) else {
            return None;
        };
        let table = self.resolver.table(0);
        Some((&**table, self.stretch.first(table, ids).map_or(Plain::Ids(ids), Plain::Stretch)))
    }

    /// Collects `(table, rowid)` arguments. A NULL id makes its row NULL.
    pub fn ids(
        &mut self,
        session: &Session,
        argument: &TableArgument,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let (names, values) = (input.column(0)?, input.column(1)?);
        ids::check_integers(ids::ROW_IDS, &values)?;
        self.start();
        if matches!(argument, TableArgument::Constant(_)) {
            return self.append(0, &values, 0..input.len(), output);
        }
        for row in 0..input.len() {
            if values.is_null(row) {
                output.set_null(row);
            } else {
                let index = self.resolver.of_row(session, argument, &names, row)?;
                self.append(index, &values, row..row + 1, output)?;
            }
        }
        Ok(())
    }

    fn append(
        &mut self,
        index: usize,
        values: &Vector<'_>,
        rows: Range<usize>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let mut nulls = std::mem::take(&mut self.nulls);
        nulls.clear();
        let table = Arc::clone(self.resolver.table(index));
        let batch = self.batch(index);
        let mut next = batch.ids.len();
        values
            .append_ints(rows.clone(), &mut batch.ids, &mut |null| {
                nulls.push(rows.start + null);
                Ok(())
            })
            .map_err(|fault| ids::row_id_fault(&table, fault))?;
        let mut null = nulls.iter().copied().peekable();
        for row in rows {
            if null.next_if_eq(&row).is_some() {
                output.set_null(row);
            } else {
                batch.rows.push((row, next..next + 1));
                next += 1;
            }
        }
        self.nulls = nulls;
        Ok(())
    }

    /// Collects `(table, rowids)` arguments. A NULL list, or a NULL in it, makes its row NULL.
    pub fn lists(
        &mut self,
        session: &Session,
        argument: &TableArgument,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let (names, lists) = (input.column(0)?, input.column(1)?);
        ids::check_lists(ids::ROW_IDS, &lists)?;
        self.start();
        if *lists.ty() == Type::Null {
            (0..input.len()).for_each(|row| output.set_null(row));
            return Ok(());
        }
        let elements = lists.elements();
        for row in 0..input.len() {
            if lists.is_null(row) {
                output.set_null(row);
                continue;
            }
            let index = self.resolver.of_row(session, argument, &names, row)?;
            let table = Arc::clone(self.resolver.table(index));
            let batch = self.batch(index);
            let start = batch.ids.len();
            let mut has_null = false;
            elements
                .append_ints(lists.list(row, &elements)?, &mut batch.ids, &mut |_| {
                    has_null = true;
                    Ok(())
                })
                .map_err(|fault| ids::row_id_fault(&table, fault))?;
            if has_null {
                batch.ids.truncate(start);
                output.set_null(row);
            } else {
                batch.rows.push((row, start..batch.ids.len()));
            }
        }
        Ok(())
    }

    /// Sum of `width(table) * ids` over the batches.
    pub fn total(&self, width: impl Fn(&Table) -> Result<usize>) -> Result<usize> {
        self.batches().try_fold(0usize, |total, (table, batch)| {
            width(table)?
                .checked_mul(batch.ids.len())
                .and_then(|size| size.checked_add(total))
                .ok_or_else(|| Error::argument("the result does not fit in memory"))
        })
    }
}
