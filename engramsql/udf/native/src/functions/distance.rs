//! `_engram_row_distance(a, b, rowid)`: how far a row of one table lies from the same row of another.

use super::fields::write_fields;
use super::ids;
use super::stretch::Stretch;
use super::tables::{Resolver, TableArgument};
use crate::error::Result;
use crate::ffi::{Chunk, Column, Fields, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::Table;
use engram_engine::catalog::Session;
use engram_engine::inspect::{Distance, comparable_dim, distances, scan_distances};
use std::sync::Arc;

const FIELDS: Fields = &[
    (c"changed", Column::Boolean),
    (c"norm_a", Column::Double),
    (c"norm_b", Column::Double),
    (c"l2", Column::Double),
    (c"cosine", Column::Double),
    (c"max_abs", Column::Float),
];

/// The function.
pub struct RowDistance;

/// The two table arguments.
pub struct Bound {
    a: TableArgument,
    b: TableArgument,
}

/// Tables and scratch memory of one thread.
pub struct Local {
    a: Resolver,
    b: Resolver,
    ids: Vec<i64>,
    /// Rows of one of them.
    bytes: Vec<u8>,
    /// Rows of the chunk that are not NULL, and their distances.
    rows: Vec<usize>,
    found: Vec<Distance>,
    /// Where each table is, if it is read in order.
    stretches: [Stretch; 2],
}

impl Scalar for RowDistance {
    const NAME: &'static str = "_engram_row_distance";
    const SPOKEN: &'static str = "engram_distance";
    type Bound = Bound;
    type Local = Local;

    fn overloads() -> Vec<Overload> {
        let parameters = &[Parameter::Text, Parameter::Text, Parameter::Any];
        vec![Overload { parameters: parameters.into(), result: Column::Struct(FIELDS) }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<Bound> {
        let bound =
            Bound { a: TableArgument::bind(session, arguments, 0)?, b: TableArgument::bind(session, arguments, 1)? };
        if let (TableArgument::Constant(a), TableArgument::Constant(b)) = (&bound.a, &bound.b) {
            comparable_dim(&*session.table(a)?, &*session.table(b)?)?;
        }
        Ok(bound)
    }

    fn init(session: &Arc<Session>, bound: &Bound) -> Result<Local> {
        let (a, b) = (bound.a.resolve(session)?, bound.b.resolve(session)?);
        let (ids, bytes, rows, found) = Default::default();
        Ok(Local { a, b, ids, bytes, rows, found, stretches: Default::default() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &Bound,
        local: &mut Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let rows = input.len();
        let (a_names, b_names, values) = (input.column(0)?, input.column(1)?, input.column(2)?);
        ids::check_integers(ids::ROW_IDS, &values)?;
        local.rows.clear();
        local.found.clear();
        let mut start = 0;
        while start < rows {
            if values.is_null(start) {
                output.set_null(start);
                start += 1;
                continue;
            }
            // As many rows as are of the same two tables.
            let of = |local: &mut Local, row: usize| -> Result<(usize, usize)> {
                let a = local.a.of_row(session, &bound.a, &a_names, row)?;
                Ok((a, local.b.of_row(session, &bound.b, &b_names, row)?))
            };
            let tables = of(local, start)?;
            let mut end = start + 1;
            while end < rows && !values.is_null(end) && of(local, end)? == tables {
                end += 1;
            }
            let (a, b) = (Arc::clone(local.a.table(tables.0)), Arc::clone(local.b.table(tables.1)));
            local.ids.clear();
            values
                .append_ints(start..end, &mut local.ids, &mut |_| Ok(()))
                .map_err(|fault| ids::row_id_fault(&a, fault))?;
            local.rows.extend(start..end);
            measure([&a, &b], local)?;
            start = end;
        }
        write_fields! { output, rows, local.rows, &local.found;
            plain u8: |distance: &Distance| distance.changed.into(),
            plain f64: |distance: &Distance| distance.norm_a,
            plain f64: |distance: &Distance| distance.norm_b,
            plain f64: |distance: &Distance| distance.l2,
            some f64: |distance: &Distance| distance.cosine,
            plain f32: |distance: &Distance| distance.max_abs,
        }
        Ok(())
    }
}

/// Adds the distances of the rows `local.ids`.
fn measure(tables: [&Table; 2], local: &mut Local) -> Result<()> {
    let Local { ids, bytes, found, stretches, .. } = local;
    let before = found.len();
    found.resize(before + ids.len(), Distance::default());
    let found = &mut found[before..];
    let [a, b] = stretches;
    // Both are asked: each keeps where its table is.
    match (a.first(tables[0], ids), b.first(tables[1], ids)) {
        (Some(first), Some(_)) => scan_distances(tables, first, bytes, found)?,
        _ => distances(tables, ids, bytes, found)?,
    }
    Ok(())
}
