//! `_engram_row_distance(a, b, rowid)`: how far a row of one table lies from the same row of another.

use super::ids;
use super::scratch::grown;
use super::stretch::Stretch;
use super::tables::{Resolver, TableArgument};
use crate::error::Result;
use crate::ffi::{Chunk, Column, Fields, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::Table;
use engram_engine::catalog::Session;
use engram_engine::verify::{Distance, comparable_dim};
use std::sync::Arc;

const FIELDS: Fields = &[
    (c"changed", Column::Boolean),
    (c"norm_a", Column::Double),
    (c"norm_b", Column::Double),
    (c"l2", Column::Double),
    (c"cosine", Column::Double),
    (c"max_abs", Column::Float),
];
/// Place of the field that can be NULL in a row that is not.
const COSINE: usize = 4;

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
    floats: Vec<f32>,
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
        Ok(Local { a, b, ids: Vec::new(), floats: Vec::new(), stretches: Default::default() })
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
        let mut found = vec![None; rows];
        let mut start = 0;
        while start < rows {
            if values.is_null(start) {
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
            measure([&a, &b], local, &mut found[start..end])?;
            start = end;
        }
        write(&found, output);
        Ok(())
    }
}

/// Distances of the rows `local.ids`, one for each place of `found`.
fn measure(tables: [&Table; 2], local: &mut Local, found: &mut [Option<Distance>]) -> Result<()> {
    let dim = comparable_dim(tables[0], tables[1])?;
    let Local { ids, floats, stretches, .. } = local;
    let (of_a, of_b) = grown(floats, 2 * ids.len() * dim).split_at_mut(ids.len() * dim);
    for ((table, stretch), out) in tables.into_iter().zip(stretches).zip([&mut *of_a, &mut *of_b]) {
        match stretch.first(table, ids) {
            Some(first) => table.scan_vectors_into(first, out)?,
            None => table.vectors_into(ids, out)?,
        }
    }
    for ((a, b), found) in of_a.chunks_exact(dim).zip(of_b.chunks_exact(dim)).zip(found) {
        *found = Some(Distance::of(a, b));
    }
    Ok(())
}

fn write(found: &[Option<Distance>], output: &mut OutVector<'_>) {
    let rows = found.len();
    let each = || found.iter().enumerate().filter_map(|(row, distance)| Some((row, (*distance)?)));
    let mut changed = output.field(0);
    each().for_each(|(row, distance)| changed.values::<u8>(rows)[row] = u8::from(distance.changed));
    for (field, of) in [
        (1, (|distance| Some(distance.norm_a)) as fn(Distance) -> Option<f64>),
        (2, |distance| Some(distance.norm_b)),
        (3, |distance| Some(distance.l2)),
        (COSINE, |distance| distance.cosine),
    ] {
        let mut vector = output.field(field);
        for (row, distance) in each() {
            match of(distance) {
                Some(value) => vector.values::<f64>(rows)[row] = value,
                None => vector.set_null(row),
            }
        }
    }
    let mut largest = output.field(FIELDS.len() - 1);
    each().for_each(|(row, distance)| largest.values::<f32>(rows)[row] = distance.max_abs);
    (0..rows).filter(|&row| found[row].is_none()).for_each(|row| output.set_null(row));
}
