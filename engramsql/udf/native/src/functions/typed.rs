//! `_engram_vector` and `_engram_e_t`: values typed FLOAT[n], and `_engram_type`, the text of that type.
//!
//! A scalar function's result type is fixed when it is registered, so there is one signature per width; a witness, whose
//! value nobody looks at, chooses it: NULL::FLOAT[n][] for FLOAT[n]. (A FLOAT[n] itself would do, but DuckDB copies a
//! constant argument for every row of a chunk, an array element by element; a NULL list costs nothing.) With any other
//! witness the values come as FLOAT[], which the caller casts.

use super::gather::{Gather, Plain};
use super::scalars::{Decoded, OfRow, OfRows, decode};
use super::scratch::grown;
use super::tables::{Resolver, TableArgument};
use super::write;
use crate::error::{Error, Result};
use crate::ffi::{Chunk, Column, OutVector, Overload, Parameter, Scalar, ScalarArguments, Type};
use engram_engine::Table;
use engram_engine::catalog::Session;
use std::marker::PhantomData;
use std::sync::Arc;

/// Widths of rows: those of the released models, powers of two and other usual ones. Not more than that: each costs
/// binding about 3 microseconds.
const ROW_WIDTHS: &[usize] = &[
    1, 2, 4, 8, 16, 32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536,
    2048, 2560, 3072, 4096,
];

/// Widths of e_t: heads times row width.
const TOKEN_WIDTHS: &[usize] = &[
    8, 16, 32, 64, 128, 160, 256, 320, 512, 640, 768, 1024, 1280, 1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192,
    10240, 12288, 16384, 20480, 24576, 32768, 65536,
];

/// A function whose values a witness types.
pub trait Witnessed: Decoded {
    /// SQL name.
    const TYPED: &'static str;
    /// Widths that have a signature.
    const WIDTHS: &'static [usize];
    /// Whether a value is that of one row.
    const ONE_ROW: bool;
    /// Width of the value under `table`, if every value has the same.
    fn width(table: &Table) -> Option<usize>;
    /// Reads the rows of `ids`.
    fn read(table: &Table, ids: &[i64], out: &mut [f32]) -> Result<()>;
}

impl Witnessed for OfRow {
    const TYPED: &'static str = "_engram_vector";
    const WIDTHS: &'static [usize] = ROW_WIDTHS;
    const ONE_ROW: bool = true;

    fn width(table: &Table) -> Option<usize> {
        table.dim()
    }

    fn read(table: &Table, ids: &[i64], out: &mut [f32]) -> Result<()> {
        Ok(table.vectors_into(ids, out)?)
    }
}

impl Witnessed for OfRows {
    const TYPED: &'static str = "_engram_e_t";
    const WIDTHS: &'static [usize] = TOKEN_WIDTHS;
    const ONE_ROW: bool = false;

    fn width(_table: &Table) -> Option<usize> {
        None
    }

    fn read(table: &Table, ids: &[i64], out: &mut [f32]) -> Result<()> {
        // Tokens that a view of the table holds are one read each; the values are the same.
        Ok(table.e_t_into(ids, out)?)
    }
}

/// `_engram_vector(table, rowid, witness)`, `_engram_e_t(table, rowids, witness)`.
pub struct Typed<F>(PhantomData<F>);

/// The table and the width of FLOAT[n]; `None` for FLOAT[].
pub struct Bound {
    table: TableArgument,
    width: Option<usize>,
}

/// State of one thread.
pub struct Local {
    gather: Gather,
    /// Values of a batch whose rows do not lie together; only grows.
    floats: Vec<f32>,
}

impl<F: Witnessed> Scalar for Typed<F> {
    const NAME: &'static str = F::TYPED;
    const SPOKEN: &'static str = <F as Decoded>::NAME;
    type Bound = Bound;
    type Local = Local;

    fn overloads() -> Vec<Overload> {
        let signature =
            |witness, result| Overload { parameters: vec![Parameter::Text, Parameter::Any, witness].into(), result };
        F::WIDTHS
            .iter()
            .map(|&width| signature(Parameter::FloatArrayList(width), Column::FloatArray(width)))
            .chain([signature(Parameter::Any, Column::FloatList)])
            .collect()
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<Bound> {
        let table = TableArgument::bind(session, arguments, 0)?;
        let width = match arguments.result() {
            Column::FloatArray(width) => Some(width),
            _ => None,
        };
        if let TableArgument::Constant(name) = &table {
            let table = session.table(name)?;
            if let (Some(width), Some(wanted)) = (width, F::width(&table))
                && width != wanted
            {
                return Err(differs(&table, wanted, width));
            }
        }
        Ok(Bound { table, width })
    }

    fn init(session: &Arc<Session>, bound: &Bound) -> Result<Local> {
        Ok(Local { gather: Gather::new(session, &bound.table)?, floats: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &Bound,
        local: &mut Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let Local { gather, floats } = local;
        if F::ONE_ROW
            && let Some(width) = bound.width
            && let Some((table, rows)) = gather.plain(&bound.table, &input.column(1)?)
        {
            let dim = table.require_dim()?;
            if dim != width {
                return Err(differs(table, dim, width));
            }
            let out = output.array_elements(input.len());
            return match rows {
                Plain::Stretch(first) => Ok(table.scan_vectors_into(first, out)?),
                Plain::Ids(ids) => F::read(table, ids, out),
            };
        }
        F::COLLECT(gather, session, &bound.table, input, output)?;
        let Some(width) = bound.width else {
            return decode(gather, input.len(), output, F::read);
        };
        let rows = input.len();
        for (table, batch) in gather.batches() {
            let dim = table.require_dim()?;
            if let Some((_, at)) = batch.rows.iter().find(|(_, at)| at.len() * dim != width) {
                return Err(differs(table, at.len() * dim, width));
            }
            if batch.rows.len() == rows {
                F::read(table, &batch.ids, output.array_elements(rows))?;
                continue;
            }
            let values = grown(floats, batch.ids.len() * dim);
            F::read(table, &batch.ids, values)?;
            let out = output.array_elements(rows);
            for ((row, _), values) in batch.rows.iter().zip(values.chunks_exact(width)) {
                out[row * width..][..width].copy_from_slice(values);
            }
        }
        Ok(())
    }
}

fn differs(table: &Table, wanted: usize, width: usize) -> Error {
    Error::argument(format!("table '{}' gives FLOAT[{wanted}] here, not FLOAT[{width}]", table.name()))
}

/// `_engram_type(table [, of])`: the type of a table's vectors, or of e_t, as from_json wants it: a JSON string.
///
/// `of` is 'vector' or 'e_t' for the type of the values, 'vector witness' or 'e_t witness' for that of their witness.
pub struct TypeText;

impl Scalar for TypeText {
    const NAME: &'static str = "_engram_type";
    type Bound = TableArgument;
    type Local = Resolver;

    fn overloads() -> Vec<Overload> {
        [1, 2].map(|count| Overload { parameters: vec![Parameter::Text; count].into(), result: Column::Text }).to_vec()
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind(session, arguments, 0)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<Resolver> {
        bound.resolve(session)
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        resolver: &mut Resolver,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let names = input.column(0)?;
        let values = if input.columns() > 1 { Some(input.column(1)?) } else { None };
        for row in 0..input.len() {
            let of = match &values {
                None => "vector",
                Some(values) if *values.ty() == Type::Text && !values.is_null(row) => values.text(row)?,
                Some(_) => "NULL",
            };
            // Whoever uses the type also calls a function that says what is wrong with a NULL.
            let table = if names.is_null(row) {
                None
            } else {
                let index = resolver.of_row(session, bound, &names, row)?;
                Some(&**resolver.table(index))
            };
            output.assign(row, type_text(table, of)?.as_bytes());
        }
        Ok(())
    }
}

fn type_text(table: Option<&Table>, of: &str) -> Result<String> {
    let dim = table.and_then(Table::dim);
    let dim = match of {
        "vector" | "vector witness" => dim,
        "e_t" | "e_t witness" => {
            let heads = table.map_or(Ok(0), |table| Ok::<_, Error>(table.require_spec()?.heads()))?;
            dim.map(|dim| dim * heads)
        }
        _ => return Err(Error::argument(format!("no values are called {of}; say 'vector' or 'e_t'"))),
    };
    let ty = match (write::float_column(dim), of.ends_with("witness")) {
        (Column::FloatArray(size), false) => format!("FLOAT[{size}]"),
        (Column::FloatArray(size), true) => format!("FLOAT[{size}][]"),
        _ => "FLOAT[]".to_owned(),
    };
    Ok(format!("\"{ty}\""))
}
