//! `_engram_ngrams(table, tokens, history)`: the n-gram behind every row id of a sequence.

use super::ids;
use super::rowids::Lists;
use super::tables::{Resolver, TableArgument};
use crate::error::Result;
use crate::ffi::{Chunk, Column, ListEntry, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::catalog::Session;
use engram_engine::spec::{Ngrams, Sequence};
use std::sync::Arc;

/// Fields of one n-gram.
const FIELDS: &[(&str, Column)] =
    &[("token", Column::BigInt), ("head", Column::Integer), ("rowid", Column::BigInt), ("ngram", Column::BigIntList)];

/// The function. A history that is NULL is none.
pub struct OfSequence;

/// Tables and scratch memory of one thread.
pub struct Local {
    resolver: Resolver,
    tokens: Vec<i64>,
    history: Vec<i64>,
}

/// The n-grams of one sequence.
struct Hashed {
    row: usize,
    heads: usize,
    rowids: Vec<i64>,
    ngrams: Ngrams,
}

impl Scalar for OfSequence {
    const NAME: &'static str = "_engram_ngrams";
    const SPOKEN: &'static str = "engram_ngrams";
    type Bound = TableArgument;
    type Local = Local;

    fn overloads() -> Vec<Overload> {
        let parameters = &[Parameter::Text, Parameter::Any, Parameter::Any];
        vec![Overload { parameters: parameters.into(), result: Column::StructList(FIELDS) }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        let argument = TableArgument::bind(session, arguments, 0)?;
        if let TableArgument::Constant(name) = &argument {
            session.table(name)?.require_spec()?;
        }
        Ok(argument)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<Local> {
        Ok(Local { resolver: bound.resolve(session)?, tokens: Vec::new(), history: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let (names, token_lists, history_lists) = (input.column(0)?, input.column(1)?, input.column(2)?);
        ids::check_lists(ids::TOKENS, &token_lists)?;
        ids::check_lists(ids::HISTORY, &history_lists)?;
        let (tokens, histories) = (Lists::new(&token_lists), Lists::new(&history_lists));
        let mut sequences = Vec::with_capacity(input.len());
        for row in 0..input.len() {
            let (false, Some(tokens)) = (token_lists.is_null(row), &tokens) else {
                output.set_null(row);
                continue;
            };
            let table = local.resolver.of_row(session, bound, &names, row)?;
            let spec = local.resolver.table(table).require_spec()?;
            let vocab = spec.vocab_size();
            local.tokens.clear();
            local.history.clear();
            let told = |error| ids::in_list(error, &token_lists, &tokens.elements, row);
            ids::append_tokens(ids::TOKENS, &tokens.elements, tokens.range(row), vocab, &mut local.tokens)
                .map_err(told)?;
            if let Some(histories) = histories.as_ref().filter(|_| !history_lists.is_null(row)) {
                let range = histories.range(row);
                ids::append_tokens(ids::HISTORY, &histories.elements, range, vocab, &mut local.history)?;
            }
            let sequence = Sequence::new(&local.tokens).with_history(&local.history);
            let rowids = spec.rowids(sequence).map_err(|error| told(error.into()))?;
            let ngrams = spec.ngrams(sequence)?;
            sequences.push(Hashed { row, heads: spec.heads(), rowids, ngrams });
        }
        write(&sequences, input.len(), output)
    }
}

fn write(sequences: &[Hashed], rows: usize, output: &mut OutVector<'_>) -> Result<()> {
    let mut entries = vec![ListEntry { offset: 0, length: 0 }; rows];
    let mut total = 0;
    for sequence in sequences {
        entries[sequence.row] = ListEntry { offset: total as u64, length: sequence.rowids.len() as u64 };
        total += sequence.rowids.len();
    }
    let mut structs = output.struct_elements(total)?;
    let mut at = 0;
    let mut field = structs.field(0);
    let tokens = field.values::<i64>(total);
    for sequence in sequences {
        for index in 0..sequence.rowids.len() {
            tokens[at + index] = (index / sequence.heads) as i64;
        }
        at += sequence.rowids.len();
    }
    at = 0;
    let mut field = structs.field(1);
    let heads = field.values::<i32>(total);
    for sequence in sequences {
        for index in 0..sequence.rowids.len() {
            heads[at + index] = (index % sequence.heads) as i32;
        }
        at += sequence.rowids.len();
    }
    at = 0;
    let mut field = structs.field(2);
    let rowids = field.values::<i64>(total);
    for sequence in sequences {
        rowids[at..at + sequence.rowids.len()].copy_from_slice(&sequence.rowids);
        at += sequence.rowids.len();
    }
    let mut field = structs.field(3);
    let ids = field.integer_elements(sequences.iter().map(|sequence| sequence.ngrams.ids().len()).sum())?;
    at = 0;
    for sequence in sequences {
        let of = sequence.ngrams.ids();
        ids[at..at + of.len()].copy_from_slice(of);
        at += of.len();
    }
    let lists = field.values::<ListEntry>(total);
    let mut lists = lists.iter_mut();
    at = 0;
    for sequence in sequences {
        for (range, list) in sequence.ngrams.ranges().iter().zip(&mut lists) {
            *list = ListEntry { offset: (at + range.start) as u64, length: range.len() as u64 };
        }
        at += sequence.ngrams.ids().len();
    }
    output.values::<ListEntry>(rows).copy_from_slice(&entries);
    Ok(())
}
