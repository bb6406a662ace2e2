//! `_engram_vector` and `_engram_e_t`: values typed FLOAT[n], and `_engram_type`, the text of that type.
//!
//! A scalar function's result type is fixed when it is registered, so there is one signature per width; a witness of the
//! wanted type, whose value nobody looks at, chooses it. With any other witness the values come as FLOAT[], which the
//! caller casts; a witness that is itself a list binds to nothing, since DuckDB converts a list to every array.

use super::gather::Gather;
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

/// Widths of rows: those of the released models, powers of two and other usual ones.
const ROW_WIDTHS: &[usize] = &[
    1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 120, 128, 144, 160, 176, 192, 200, 208, 224, 240, 256, 288, 300, 320, 352,
    384, 400, 416, 448, 480, 512, 576, 600, 640, 704, 720, 768, 800, 832, 896, 960, 1000, 1024, 1152, 1280, 1536, 1792,
    2048, 2560, 3072, 3584, 4096,
];

/// Widths of e_t: heads times row width.
const TOKEN_WIDTHS: &[usize] = &[
    8, 16, 32, 64, 96, 128, 160, 192, 256, 320, 384, 512, 576, 640, 768, 960, 1024, 1152, 1280, 1536, 1600, 1792, 1920,
    2048, 2304, 2560, 2880, 3072, 3200, 3584, 3840, 4096, 4480, 4608, 5120, 6144, 7168, 7680, 8192, 9216, 10240, 12288,
    14336, 15360, 16384, 20480, 24576, 28672, 32768, 40960, 49152, 65536,
];

/// A function whose values a witness types.
pub trait Witnessed: Decoded {
    /// SQL name.
    const TYPED: &'static str;
    /// Widths that have a signature.
    const WIDTHS: &'static [usize];
    /// Width of the value under `table`, if every value has the same.
    fn width(table: &Table) -> Option<usize>;
    /// Reads the rows of `ids`.
    fn read(table: &Table, ids: &[i64], out: &mut [f32]) -> Result<()>;
}

impl Witnessed for OfRow {
    const TYPED: &'static str = "_engram_vector";
    const WIDTHS: &'static [usize] = ROW_WIDTHS;

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
    type Bound = Bound;
    type Local = Local;

    fn overloads() -> Vec<Overload> {
        let signature =
            |witness, result| Overload { parameters: vec![Parameter::Text, Parameter::Any, witness].into(), result };
        F::WIDTHS
            .iter()
            .map(|&width| signature(Parameter::FloatArray(width), Column::FloatArray(width)))
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

/// `_engram_type(table [, 'e_t'])`: the type of a table's vectors, or of e_t, as from_json wants it: a JSON string.
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
            let index = resolver.of_row(session, bound, &names, row)?;
            let table = resolver.table(index);
            let dim = match &values {
                None => table.dim(),
                Some(values) if *values.ty() == Type::Text && !values.is_null(row) && values.text(row)? == "e_t" => {
                    let heads = table.require_spec()?.heads();
                    table.dim().map(|dim| dim * heads)
                }
                Some(_) => return Err(Error::argument("the values must be 'e_t', or left out for a row's")),
            };
            let text = match write::float_column(dim) {
                Column::FloatArray(size) => format!("\"FLOAT[{size}]\""),
                _ => "\"FLOAT[]\"".to_owned(),
            };
            output.assign(row, text.as_bytes());
        }
        Ok(())
    }
}
