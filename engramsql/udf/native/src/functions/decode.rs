//! `engram_decode(blob, format [, scale])`: stored bytes to float32.

use crate::error::Result;
use crate::ffi::{Chunk, Column, ListEntry, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::catalog::Session;
use engram_engine::format::ValueFormat;
use std::ops::Range;
use std::sync::Arc;

/// The scalar function.
pub struct Decode;

/// The format of the last row and what it was made from.
#[derive(Default)]
pub struct Local {
    last: Option<(String, Option<f64>, ValueFormat)>,
    /// Row, format and elements of the rows that are not NULL.
    plan: Vec<(usize, ValueFormat, Range<usize>)>,
}

impl Local {
    fn format(&mut self, name: &str, scale: Option<f64>) -> Result<ValueFormat> {
        if let Some((last, at, format)) = &self.last
            && last == name
            && at.map(f64::to_bits) == scale.map(f64::to_bits)
        {
            return Ok(*format);
        }
        let format = ValueFormat::from_name(name, scale.map(|scale| scale as f32))?;
        self.last = Some((name.to_owned(), scale, format));
        Ok(format)
    }
}

impl Scalar for Decode {
    const NAME: &'static str = "engram_decode";
    type Bound = ();
    type Local = Local;

    fn overloads() -> Vec<Overload> {
        // DOUBLE, because every number type converts to it by itself; the scale is a float32 in the end.
        [&[Parameter::Blob, Parameter::Text] as &[_], &[Parameter::Blob, Parameter::Text, Parameter::Double]]
            .map(|parameters| Overload { parameters, result: Column::FloatList })
            .to_vec()
    }

    fn bind(_session: &Arc<Session>, _arguments: &ScalarArguments<'_>) -> Result<()> {
        // Format and scale may well be subqueries over `engram_tables()`, so they are first looked at when it runs.
        Ok(())
    }

    fn init(_session: &Arc<Session>, _bound: &()) -> Result<Local> {
        Ok(Local::default())
    }

    fn call(
        _session: &Arc<Session>,
        _bound: &(),
        local: &mut Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let rows = input.len();
        let (blobs, names) = (input.column(0)?, input.column(1)?);
        let scales = match input.columns() {
            0..=2 => None,
            _ => Some(input.column(2)?),
        };
        let mut plan = std::mem::take(&mut local.plan);
        plan.clear();
        let mut total = 0;
        for row in 0..rows {
            if blobs.is_null(row) || names.is_null(row) || scales.as_ref().is_some_and(|scales| scales.is_null(row)) {
                output.set_null(row);
                continue;
            }
            let scale = scales.as_ref().map(|scales| scales.double(row));
            let format = local.format(names.text(row)?, scale)?;
            let len = blobs.bytes(row).len();
            let dim = format.dim_of_bytes(len)?;
            plan.push((row, format, total..total + dim));
            total += dim;
        }
        let out = output.list_elements(total)?;
        for (row, format, at) in &plan {
            format.decode_row(blobs.bytes(*row), &mut out[at.clone()]);
        }
        let entries = output.values::<ListEntry>(rows);
        entries.fill(ListEntry { offset: 0, length: 0 });
        for (row, _, at) in &plan {
            entries[*row] = ListEntry { offset: at.start as u64, length: at.len() as u64 };
        }
        local.plan = plan;
        Ok(())
    }
}
