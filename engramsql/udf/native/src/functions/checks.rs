//! `_engram_row_id(table, rowid)`, `_engram_batch(batch)`: arguments of macros, exact or refused.
//!
//! A macro that compares its argument with a column would find nothing where an argument makes no sense, or round it.

use super::ids;
use super::table_scalar::{TableScalar, Tables};
use crate::error::{Error, Result};
use crate::ffi::{Chunk, Column, OutVector, Overload, Parameter, Scalar, ScalarArguments, Type, Vector};
use engram_engine::catalog::Session;
use std::sync::Arc;

/// `_engram_row_id(table, rowid)`: the id, if the table has that row; NULL for NULL.
pub struct RowId;

impl TableScalar for RowId {
    const NAME: &'static str = "_engram_row_id";
    const SPOKEN: &'static str = "engram_row_ngrams";
    const UNFOLDED: bool = true;
    type Scratch = ();

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: (&[Parameter::Text, Parameter::Any]).into(), result: Column::BigInt }]
    }

    fn call(tables: &mut Tables<'_>, _scratch: &mut (), input: &Chunk<'_>, output: &mut OutVector<'_>) -> Result<()> {
        let values = input.column(1)?;
        for row in 0..input.len() {
            if values.is_null(row) {
                output.set_null(row);
                continue;
            }
            let table = tables.of_row(row)?;
            if !is_integer(&values) {
                let (ty, shown) = (values.ty(), values.first_shown().unwrap_or_default());
                return Err(Error::argument(format!(
                    "a row id must be an integer, got {ty} {shown}: table '{}' has {} rows",
                    table.name(),
                    table.rows()
                )));
            }
            let id = ids::integer(&values, row, |value| ids::row_id_too_large(table, value))?;
            table.check_ids(&[id])?;
            output.values::<i64>(input.len())[row] = id;
        }
        Ok(())
    }
}

/// `_engram_batch(batch)`: the number, if it is an integer of 1 or more.
pub struct Batch;

impl Scalar for Batch {
    const NAME: &'static str = "_engram_batch";
    const SPOKEN: &'static str = "engram_reuse";
    const UNFOLDED: bool = true;
    type Bound = ();
    type Local = ();

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: (&[Parameter::Any]).into(), result: Column::BigInt }]
    }

    fn bind(_session: &Arc<Session>, _arguments: &ScalarArguments<'_>) -> Result<()> {
        Ok(())
    }

    fn init(_session: &Arc<Session>, _bound: &()) -> Result<()> {
        Ok(())
    }

    fn call(
        _session: &Arc<Session>,
        _bound: &(),
        _local: &mut (),
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let refuse = |shown: String| Error::argument(format!("batch must be an integer of 1 or more, got {shown}"));
        let values = input.column(0)?;
        for row in 0..input.len() {
            if values.is_null(row) {
                return Err(refuse("NULL".into()));
            }
            if !is_integer(&values) {
                return Err(refuse(format!("{} {}", values.ty(), values.first_shown().unwrap_or_default())));
            }
            let batch = ids::integer(&values, row, |value| refuse(value.to_string()))?;
            if batch < 1 {
                return Err(refuse(batch.to_string()));
            }
            output.values::<i64>(input.len())[row] = batch;
        }
        Ok(())
    }
}

fn is_integer(values: &Vector<'_>) -> bool {
    matches!(values.ty(), Type::Int(_))
}
