//! Token sequences of a chunk, each with the tokens before it.

use super::ids;
use super::table_scalar::Tables;
use crate::error::{Error, Result};
use crate::ffi::{Chunk, OutVector, Type, Vector};
use engram_engine::spec::Sequence;
use std::ops::Range;

/// The arguments `(table, tokens, history)` of a scalar function: the sequences of a chunk that are not NULL.
#[derive(Default)]
pub struct Sequences {
    /// Tokens of all of them, and those before each.
    tokens: Vec<i64>,
    history: Vec<i64>,
    found: Vec<Found>,
}

/// Where a sequence lies among all.
struct Found {
    row: usize,
    tokens: Range<usize>,
    history: Range<usize>,
}

impl Sequences {
    /// Reads those of a chunk, in place of those before. A NULL makes its row NULL; a history that is NULL is none.
    ///
    /// # Errors
    /// A list that does not hold integers, a table without a spec, and what that cannot hash.
    pub fn read(&mut self, tables: &mut Tables<'_>, input: &Chunk<'_>, output: &mut OutVector<'_>) -> Result<()> {
        let (token_lists, history_lists) = (input.column(1)?, input.column(2)?);
        let tokens = Lists::new(ids::TOKENS, &token_lists)?;
        let history = Lists::new(ids::HISTORY, &history_lists)?;
        self.tokens.clear();
        self.history.clear();
        self.found.clear();
        for row in 0..input.len() {
            let (first, first_before) = (self.tokens.len(), self.history.len());
            if tokens.is_null(row) {
                output.set_null(row);
                continue;
            }
            let spec = tables.of_row(row)?.require_spec()?;
            let told = |error| tokens.told(row, error);
            tokens.append(row, spec.vocab_size(), &mut self.tokens).map_err(told)?;
            history.append(row, spec.vocab_size(), &mut self.history)?;
            let found = Found { row, tokens: first..self.tokens.len(), history: first_before..self.history.len() };
            spec.check(self.sequence(&found)).map_err(|error| told(error.into()))?;
            self.found.push(found);
        }
        Ok(())
    }

    /// The tokens of all, one sequence after another.
    pub fn tokens(&self) -> &[i64] {
        &self.tokens
    }

    /// Each with its row.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Sequence<'_>)> {
        self.found.iter().map(|found| (found.row, self.sequence(found)))
    }

    fn sequence(&self, found: &Found) -> Sequence<'_> {
        Sequence::new(&self.tokens[found.tokens.clone()]).with_history(&self.history[found.history.clone()])
    }
}

/// A list argument of integers.
struct Lists<'a> {
    what: &'static str,
    lists: &'a Vector<'a>,
    /// `None` if every row is NULL.
    elements: Option<Vector<'a>>,
}

impl<'a> Lists<'a> {
    fn new(what: &'static str, lists: &'a Vector<'a>) -> Result<Lists<'a>> {
        if *lists.ty() == Type::Null || (0..lists.len()).all(|row| lists.is_null(row)) {
            return Ok(Lists { what, lists, elements: None });
        }
        ids::check_lists(what, lists)?;
        Ok(Lists { what, lists, elements: Some(lists.elements()) })
    }

    fn is_null(&self, row: usize) -> bool {
        self.elements.is_none() || self.lists.is_null(row)
    }

    /// Appends the list of a row, if there is one.
    fn append(&self, row: usize, vocab_size: u64, out: &mut Vec<i64>) -> Result<()> {
        match self.elements.as_ref().filter(|_| !self.lists.is_null(row)) {
            Some(elements) => ids::append_tokens(self.what, elements, self.lists.list(row, elements)?, vocab_size, out),
            None => Ok(()),
        }
    }

    /// An error about the list of a row, which says of which row.
    fn told(&self, row: usize, error: Error) -> Error {
        match &self.elements {
            Some(elements) => ids::in_list(error, self.lists, elements, row),
            None => error,
        }
    }
}
