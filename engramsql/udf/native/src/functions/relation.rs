//! The relation of a table: the SELECT that its name stands for, and `_engram_relation`, which tells it.

use super::macros;
use super::table_scalar::{TableScalar, Tables};
use super::write;
use crate::error::{Error, Result};
use crate::ffi::{Chunk, Column, OutVector, Overload, Parameter};
use engram_engine::Table;

/// SQL for the relation of a table: its columns are those of `engram_scan`, and are computed for the rows and columns
/// alone that a query uses. Functions are named with their schema: a user's macro of such a name must not take their
/// place.
pub fn relation_sql(table: &Table, name: &str) -> String {
    format!(
        "SELECT rowid, head, {} AS embedding, system.main.engram_row({name}, rowid) AS \"row\" \
         FROM system.main.{}({name})",
        embedding_sql(table, name, "rowid"),
        macros::IDS,
        name = literal(name)
    )
}

/// SQL for the embedding of the row that the expression `rowid` names.
fn embedding_sql(table: &Table, name: &str, rowid: &str) -> String {
    let (witness, cast) = match write::float_column(table.dim()) {
        Column::FloatArray(size) => (format!("NULL::FLOAT[{size}][]"), format!("::FLOAT[{size}]")),
        _ => ("0".to_owned(), String::new()),
    };
    format!("system.main._engram_vector({}, {rowid}, {witness}){cast}", literal(name))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `_engram_relation(table)`: the text of [`relation_sql`]; `_engram_relation(table, rowid)`: that of its embedding for a
/// row id that is the expression `rowid`.
pub struct Relation;

impl TableScalar for Relation {
    const NAME: &'static str = "_engram_relation";
    type Scratch = ();

    fn overloads() -> Vec<Overload> {
        [1, 2].map(|count| Overload { parameters: vec![Parameter::Text; count].into(), result: Column::Text }).to_vec()
    }

    fn call(tables: &mut Tables<'_>, _scratch: &mut (), input: &Chunk<'_>, output: &mut OutVector<'_>) -> Result<()> {
        let names = input.column(0)?;
        let rowids = if input.columns() > 1 { Some(input.column(1)?) } else { None };
        for row in 0..input.len() {
            if names.is_null(row) || rowids.as_ref().is_some_and(|rowids| rowids.is_null(row)) {
                return Err(Error::argument("_engram_relation: an argument is NULL"));
            }
            let (table, name) = (tables.of_row(row)?, names.text(row)?);
            let text = match &rowids {
                None => relation_sql(table, name),
                Some(rowids) => embedding_sql(table, name, rowids.text(row)?),
            };
            output.assign(row, text.as_bytes());
        }
        Ok(())
    }
}
