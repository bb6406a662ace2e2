//! `engram_tokens(table, text)`: the token ids of text.

use super::table_scalar::{Check, TableScalar, Tables};
use crate::error::Result;
use crate::ffi::{Chunk, Column, ListEntry, OutVector, Overload, Parameter};

/// The function.
pub struct OfText;

impl TableScalar for OfText {
    const NAME: &'static str = "engram_tokens";
    const CHECK: Check = |table| {
        table.require_tokenizer()?;
        Ok(())
    };
    type Scratch = Vec<i64>;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: (&[Parameter::Text, Parameter::Text]).into(), result: Column::BigIntList }]
    }

    fn call(
        tables: &mut Tables<'_>,
        tokens: &mut Vec<i64>,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let texts = input.column(1)?;
        let rows = input.len();
        tokens.clear();
        let mut entries = vec![ListEntry { offset: 0, length: 0 }; rows];
        for (row, entry) in entries.iter_mut().enumerate() {
            if texts.is_null(row) {
                output.set_null(row);
                continue;
            }
            let start = tokens.len();
            tables.of_row(row)?.tokenizer()?.append(texts.text(row)?, tokens)?;
            *entry = ListEntry { offset: start as u64, length: (tokens.len() - start) as u64 };
        }
        output.integer_elements(tokens.len())?.copy_from_slice(tokens);
        output.values::<ListEntry>(rows).copy_from_slice(&entries);
        Ok(())
    }
}
