//! `rowids_for_seq`: the row ids that a token sequence looks up.

use super::ids;
use super::tables::{Resolver, TableArgument, needs_spec};
use crate::error::Result;
use crate::ffi::{Chunk, Column, ListEntry, OutVector, Overload, Parameter, Scalar, ScalarArguments, Type, Vector};
use engram_engine::catalog::Session;
use engram_engine::spec::{Sequence, Spec};
use std::marker::PhantomData;
use std::sync::Arc;

/// Where the spec comes from, and which argument is what.
pub struct Bound {
    source: Source,
    tokens: usize,
    history: Option<usize>,
}

enum Source {
    /// No table given.
    Released(Spec),
    /// The first argument's table.
    Table(TableArgument),
}

/// Tables and scratch memory of one thread.
pub struct Local {
    resolver: Resolver,
    tokens: Vec<i64>,
    history: Vec<i64>,
}

/// A function from tokens to row ids: its name and the order of its arguments.
pub trait Form: 'static {
    /// SQL name.
    const NAME: &'static str;
    /// Parameters of every signature.
    const SIGNATURES: &'static [&'static [Parameter]];
    /// Places of table, tokens and history among `count` arguments.
    fn places(count: usize) -> (Option<usize>, usize, Option<usize>);
}

/// `rowids_for_seq(tokens)`, `(table, tokens)`, `(table, tokens, history)`.
pub struct RowIds;

impl Form for RowIds {
    const NAME: &'static str = "rowids_for_seq";
    const SIGNATURES: &'static [&'static [Parameter]] =
        &[&[Parameter::Any], &[Parameter::Text, Parameter::Any], &[Parameter::Text, Parameter::Any, Parameter::Any]];

    fn places(count: usize) -> (Option<usize>, usize, Option<usize>) {
        match count {
            1 => (None, 0, None),
            2 => (Some(0), 1, None),
            _ => (Some(0), 1, Some(2)),
        }
    }
}

/// `rowids_for_seq_with_history(table, history, tokens)`.
pub struct WithHistory;

impl Form for WithHistory {
    const NAME: &'static str = "rowids_for_seq_with_history";
    const SIGNATURES: &'static [&'static [Parameter]] = &[&[Parameter::Text, Parameter::Any, Parameter::Any]];

    fn places(_count: usize) -> (Option<usize>, usize, Option<usize>) {
        (Some(0), 2, Some(1))
    }
}

/// The scalar function of a [`Form`].
pub struct Sequences<F>(PhantomData<F>);

impl<F: Form> Scalar for Sequences<F> {
    const NAME: &'static str = F::NAME;
    type Bound = Bound;
    type Local = Local;

    fn overloads() -> Vec<Overload> {
        F::SIGNATURES
            .iter()
            .map(|&parameters| Overload { parameters: parameters.into(), result: Column::BigIntListList })
            .collect()
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<Bound> {
        let (table, tokens, history) = F::places(arguments.len());
        let Some(index) = table else {
            return Ok(Bound { source: Source::Released(Spec::released_qwen_ple()?), tokens, history });
        };
        let argument = TableArgument::bind_checked(session, arguments, index, needs_spec)?;
        Ok(Bound { source: Source::Table(argument), tokens, history })
    }

    fn init(session: &Arc<Session>, bound: &Bound) -> Result<Local> {
        let resolver = match &bound.source {
            Source::Table(argument) => argument.resolve(session)?,
            Source::Released(_) => Resolver::default(),
        };
        Ok(Local { resolver, tokens: Vec::new(), history: Vec::new() })
    }

    fn call(
        session: &Arc<Session>,
        bound: &Bound,
        local: &mut Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        call(session, bound, local, input, output)
    }
}

/// A list argument and its elements.
struct Lists<'a> {
    lists: &'a Vector<'a>,
    /// Elements of all rows.
    elements: Vector<'a>,
}

impl<'a> Lists<'a> {
    /// `None` for the type of an untyped NULL, which has no elements.
    fn new(lists: &'a Vector<'a>) -> Option<Lists<'a>> {
        if *lists.ty() == Type::Null {
            return None;
        }
        let elements = lists.elements();
        Some(Lists { lists, elements })
    }

    /// Place of row `row` in the elements.
    fn range(&self, row: usize) -> Result<std::ops::Range<usize>> {
        self.lists.list(row, &self.elements)
    }
}

fn call(
    session: &Arc<Session>,
    bound: &Bound,
    local: &mut Local,
    input: &Chunk<'_>,
    output: &mut OutVector<'_>,
) -> Result<()> {
    let rows = input.len();
    let token_lists = input.column(bound.tokens)?;
    ids::check_lists(ids::TOKENS, &token_lists)?;
    let history_lists = match bound.history {
        Some(index) => Some(input.column(index)?),
        None => None,
    };
    if let Some(history) = &history_lists {
        ids::check_lists(ids::HISTORY, history)?;
    }
    let names = match &bound.source {
        Source::Table(argument) => Some((argument, input.column(0)?)),
        Source::Released(_) => None,
    };
    let tokens = Lists::new(&token_lists);
    let history = history_lists.as_ref().map(Lists::new);

    // First pass: what goes where. A row is (row, table); the others are NULL.
    let mut plan: Vec<(usize, usize)> = Vec::with_capacity(rows);
    let (mut lists, mut values) = (0, 0);
    for row in 0..rows {
        let null = token_lists.is_null(row) || history_lists.as_ref().is_some_and(|list| list.is_null(row));
        let (false, Some(tokens)) = (null, &tokens) else {
            output.set_null(row);
            continue;
        };
        let table = match &names {
            Some((argument, names)) => local.resolver.of_row(session, argument, names, row)?,
            None => 0,
        };
        let heads = spec_at(bound, &local.resolver, table)?.heads();
        let len = tokens.range(row)?.len();
        lists += len;
        values += len * heads;
        plan.push((row, table));
    }

    let (inner, mut out) = output.nested_elements(lists, values)?;
    let (mut list, mut value) = (0, 0);
    for &(row, table) in &plan {
        let Some(tokens) = &tokens else { continue };
        let spec = spec_at(bound, &local.resolver, table)?;
        local.tokens.clear();
        local.history.clear();
        let vocab = spec.vocab_size();
        let told = |error| ids::in_list(error, &token_lists, &tokens.elements, row);
        ids::append_tokens(ids::TOKENS, &tokens.elements, tokens.range(row)?, vocab, &mut local.tokens)
            .map_err(told)?;
        if let Some(Some(history)) = &history {
            ids::append_tokens(ids::HISTORY, &history.elements, history.range(row)?, vocab, &mut local.history)?;
        }
        let heads = spec.heads();
        let (part, rest) = out.split_at_mut(local.tokens.len() * heads);
        out = rest;
        let sequence = Sequence::new(&local.tokens).with_history(&local.history);
        spec.rowids_into(sequence, part).map_err(|error| told(error.into()))?;
        for _ in 0..local.tokens.len() {
            inner[list] = ListEntry { offset: value as u64, length: heads as u64 };
            list += 1;
            value += heads;
        }
    }

    let entries = output.values::<ListEntry>(rows);
    entries.fill(ListEntry { offset: 0, length: 0 });
    let mut offset = 0;
    for (row, _) in plan {
        let length = tokens.as_ref().map_or(Ok(0), |tokens| tokens.range(row).map(|range| range.len()))? as u64;
        entries[row] = ListEntry { offset, length };
        offset += length;
    }
    Ok(())
}

fn spec_at<'a>(bound: &'a Bound, resolver: &'a Resolver, table: usize) -> Result<&'a Spec> {
    match &bound.source {
        Source::Table(_) => Ok(resolver.table(table).require_spec()?),
        Source::Released(spec) => Ok(spec),
    }
}
