//! `engram_tokens(table, text)`: the token ids of text.

use super::tables::{Resolver, TableArgument};
use crate::error::Result;
use crate::ffi::{Chunk, Column, ListEntry, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::catalog::Session;
use std::sync::Arc;

/// The function.
pub struct OfText;

/// Tables and scratch memory of one thread.
pub struct Local {
    resolver: Resolver,
    tokens: Vec<i64>,
}

impl Scalar for OfText {
    const NAME: &'static str = "engram_tokens";
    type Bound = TableArgument;
    type Local = Local;

    fn overloads() -> Vec<Overload> {
        vec![Overload { parameters: (&[Parameter::Text, Parameter::Text]).into(), result: Column::BigIntList }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind_checked(session, arguments, 0, |table| {
            table.require_tokenizer()?;
            Ok(())
        })
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<Local> {
        Ok(Local { resolver: bound.resolve(session)?, tokens: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let (names, texts) = (input.column(0)?, input.column(1)?);
        let rows = input.len();
        let Local { resolver, tokens } = local;
        tokens.clear();
        let mut entries = vec![ListEntry { offset: 0, length: 0 }; rows];
        for (row, entry) in entries.iter_mut().enumerate() {
            if texts.is_null(row) {
                output.set_null(row);
                continue;
            }
            let table = resolver.of_row(session, bound, &names, row)?;
            let start = tokens.len();
            resolver.table(table).tokenizer()?.append(texts.text(row)?, tokens)?;
            *entry = ListEntry { offset: start as u64, length: (tokens.len() - start) as u64 };
        }
        output.integer_elements(tokens.len())?.copy_from_slice(tokens);
        output.values::<ListEntry>(rows).copy_from_slice(&entries);
        Ok(())
    }
}
