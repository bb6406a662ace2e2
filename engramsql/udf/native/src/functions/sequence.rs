//! Token sequences of a chunk, each with the tokens before it.

use super::ids;
use super::tables::{Resolver, TableArgument};
use crate::error::{Error, Result};
use crate::ffi::{Type, Vector};
use engram_engine::Table;
use engram_engine::catalog::Session;

/// The arguments `(table, tokens, history)` of a scalar function. A history that is NULL is none.
pub struct Sequences<'a> {
    names: &'a Vector<'a>,
    tokens: Lists<'a>,
    history: Lists<'a>,
}

/// A list argument of integers.
struct Lists<'a> {
    lists: &'a Vector<'a>,
    /// `None` if every row is NULL.
    elements: Option<Vector<'a>>,
}

impl<'a> Lists<'a> {
    fn new(what: &str, lists: &'a Vector<'a>) -> Result<Lists<'a>> {
        if *lists.ty() == Type::Null || (0..lists.len()).all(|row| lists.is_null(row)) {
            return Ok(Lists { lists, elements: None });
        }
        ids::check_lists(what, lists)?;
        Ok(Lists { lists, elements: Some(lists.elements()) })
    }

    /// Appends the list of a row; whether there is one.
    fn append(&self, what: &str, row: usize, vocab_size: u64, out: &mut Vec<i64>) -> Result<bool> {
        let Some(elements) = self.elements.as_ref().filter(|_| !self.lists.is_null(row)) else {
            return Ok(false);
        };
        ids::append_tokens(what, elements, self.lists.list(row, elements)?, vocab_size, out)?;
        Ok(true)
    }

    fn is_null(&self, row: usize) -> bool {
        self.elements.is_none() || self.lists.is_null(row)
    }
}

impl<'a> Sequences<'a> {
    /// The sequences of a chunk.
    ///
    /// # Errors
    /// A list that does not hold integers.
    pub fn new(names: &'a Vector<'a>, tokens: &'a Vector<'a>, history: &'a Vector<'a>) -> Result<Sequences<'a>> {
        let (tokens, history) = (Lists::new(ids::TOKENS, tokens)?, Lists::new(ids::HISTORY, history)?);
        Ok(Sequences { names, tokens, history })
    }

    /// Appends the tokens of a row to `tokens` and makes `history` those before them; its table, `None` for NULL.
    ///
    /// # Errors
    /// A table without a spec, or a token id that is NULL or does not fit int64.
    pub fn read<'r>(
        &self,
        session: &Session,
        bound: &TableArgument,
        resolver: &'r mut Resolver,
        row: usize,
        tokens: &mut Vec<i64>,
        history: &mut Vec<i64>,
    ) -> Result<Option<&'r Table>> {
        if self.tokens.is_null(row) {
            return Ok(None);
        }
        let index = resolver.of_row(session, bound, self.names, row)?;
        let table = resolver.table(index);
        let vocab_size = table.require_spec()?.vocab_size();
        self.tokens.append(ids::TOKENS, row, vocab_size, tokens).map_err(|error| self.told(row, error))?;
        history.clear();
        self.history.append(ids::HISTORY, row, vocab_size, history)?;
        Ok(Some(table))
    }

    /// An error about the tokens of a row, which says of which row.
    pub fn told(&self, row: usize, error: Error) -> Error {
        match &self.tokens.elements {
            Some(elements) => ids::in_list(error, self.tokens.lists, elements, row),
            None => error,
        }
    }
}
