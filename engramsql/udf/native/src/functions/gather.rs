//! The ids of one chunk, batched by table: one engine call per table and chunk.

use super::ids;
use super::stretch::Stretch;
use super::table_scalar::Tables;
use crate::error::{Error, Result};
use crate::ffi::{Chunk, OutVector, Type, Vector};
use engram_engine::Table;
use std::ops::Range;
use std::sync::Arc;

/// Memory of one thread.
#[derive(Default)]
pub struct Gather {
    /// Batch `i` belongs to table number `i`.
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
    /// The batches of the last chunk, with their tables.
    pub fn batches<'a>(&'a self, tables: &'a Tables<'_>) -> impl Iterator<Item = (&'a Arc<Table>, &'a Batch)> {
        self.batches
            .iter()
            .enumerate()
            .filter(|(_, batch)| !batch.rows.is_empty())
            .map(|(number, batch)| (tables.table(number), batch))
    }

    fn start(&mut self) {
        for batch in &mut self.batches {
            batch.ids.clear();
            batch.rows.clear();
        }
    }

    fn batch(&mut self, number: usize) -> &mut Batch {
        if self.batches.len() <= number {
            self.batches.resize_with(number + 1, Batch::default);
        }
        &mut self.batches[number]
    }

    /// The rows of a chunk that names one table and no NULL, as most chunks do: nothing has to be collected.
    pub fn plain<'a, 't>(&mut self, tables: &'t Tables<'_>, values: &'a Vector<'_>) -> Option<(&'t Table, Plain<'a>)> {
        let (table, ids) = (tables.only()?, values.bigints()?);
        Some((&**table, self.stretch.first(table, ids).map_or(Plain::Ids(ids), Plain::Stretch)))
    }

    /// Collects `(table, rowid)` arguments. A NULL id makes its row NULL.
    pub fn ids(&mut self, tables: &mut Tables<'_>, input: &Chunk<'_>, output: &mut OutVector<'_>) -> Result<()> {
        let values = input.column(1)?;
        ids::check_integers(ids::ROW_IDS, &values)?;
        self.start();
        if let Some(table) = tables.only() {
            return self.append(0, table, &values, 0..input.len(), output);
        }
        for row in 0..input.len() {
            if values.is_null(row) {
                output.set_null(row);
            } else {
                let number = tables.number(row)?;
                self.append(number, tables.table(number), &values, row..row + 1, output)?;
            }
        }
        Ok(())
    }

    fn append(
        &mut self,
        number: usize,
        table: &Table,
        values: &Vector<'_>,
        rows: Range<usize>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let mut nulls = std::mem::take(&mut self.nulls);
        nulls.clear();
        let batch = self.batch(number);
        let mut next = batch.ids.len();
        values
            .append_ints(rows.clone(), &mut batch.ids, &mut |null| {
                nulls.push(rows.start + null);
                Ok(())
            })
            .map_err(|fault| ids::row_id_fault(table, fault))?;
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
    pub fn lists(&mut self, tables: &mut Tables<'_>, input: &Chunk<'_>, output: &mut OutVector<'_>) -> Result<()> {
        let lists = input.column(1)?;
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
            let number = tables.number(row)?;
            let batch = self.batch(number);
            let start = batch.ids.len();
            let mut has_null = false;
            elements
                .append_ints(lists.list(row, &elements)?, &mut batch.ids, &mut |_| {
                    has_null = true;
                    Ok(())
                })
                .map_err(|fault| ids::row_id_fault(tables.table(number), fault))?;
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
    pub fn total(&self, tables: &Tables<'_>, width: impl Fn(&Table) -> Result<usize>) -> Result<usize> {
        self.batches(tables).try_fold(0usize, |total, (table, batch)| {
            width(table)?
                .checked_mul(batch.ids.len())
                .and_then(|size| size.checked_add(total))
                .ok_or_else(|| Error::argument("the result does not fit in memory"))
        })
    }
}
