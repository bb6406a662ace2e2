//! `engram_decode(blob, format [, scale])`: stored bytes to float32.

use crate::error::Result;
use crate::ffi::{Chunk, Column, ListEntry, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::catalog::Session;
use engram_engine::format::{Decoder, ValueFormat};
use std::ops::Range;
use std::sync::Arc;

/// The scalar function.
pub struct Decode;

/// The formats met so far, and scratch memory.
#[derive(Default)]
pub struct Local {
    /// What each was made from. Making one builds a table of 256 products, which costs more than decoding a short row.
    decoders: Vec<(String, Option<u64>, Decoder)>,
    /// Row, decoder and elements of the rows that are not NULL.
    plan: Vec<(usize, usize, Range<usize>)>,
}

impl Local {
    /// Formats kept: a query has one, but scales may come from a column.
    const MOST: usize = 64;

    /// Number of the decoder of a format.
    fn decoder(&mut self, name: &str, scale: Option<f64>) -> Result<usize> {
        let bits = scale.map(f64::to_bits);
        let known = self.decoders.iter().rposition(|(known, at, _)| *at == bits && known == name);
        if let Some(known) = known {
            return Ok(known);
        }
        let format = ValueFormat::from_name(name, scale.map(|scale| scale as f32))?;
        self.decoders.push((name.to_owned(), bits, Decoder::new(format)));
        Ok(self.decoders.len() - 1)
    }
}

impl Scalar for Decode {
    const NAME: &'static str = "engram_decode";
    type Bound = ();
    type Local = Local;

    fn overloads() -> Vec<Overload> {
        // DOUBLE, because every number type converts to it by itself; the scale is a float32 in the end.
        [&[Parameter::Blob, Parameter::Text] as &[_], &[Parameter::Blob, Parameter::Text, Parameter::Double]]
            .map(|parameters| Overload { parameters: parameters.into(), result: Column::FloatList })
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
        if local.decoders.len() > Local::MOST {
            local.decoders.clear();
        }
        let mut total = 0;
        for row in 0..rows {
            if blobs.is_null(row) || names.is_null(row) || scales.as_ref().is_some_and(|scales| scales.is_null(row)) {
                output.set_null(row);
                continue;
            }
            let scale = scales.as_ref().map(|scales| scales.double(row));
            let decoder = local.decoder(names.text(row)?, scale)?;
            let dim = local.decoders[decoder].2.format().dim_of_bytes(blobs.bytes(row).len())?;
            plan.push((row, decoder, total..total + dim));
            total += dim;
        }
        let out = output.list_elements(total)?;
        for (row, decoder, at) in &plan {
            let decoder = &local.decoders[*decoder].2;
            let (values, scales) = blobs.bytes(*row).split_at(decoder.format().value_bytes(at.len()));
            decoder.decode(values, scales, &mut out[at.clone()]);
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
