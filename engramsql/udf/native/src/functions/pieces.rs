//! `_engram_pieces(table, tokens, history)`: a sequence cut into short ones, each with the tokens before it that matter.
//!
//! A function computes the results of a whole chunk before DuckDB unnests the first of them, and looks for an interrupt
//! only then. A chunk of long sequences would take gigabytes; of their pieces, which take some bytes a token, it takes
//! megabytes, and one unnests to many chunks.

use super::lists::LISTS;
use super::sequence::Sequences;
use super::table_scalar::{Check, TableScalar, Tables};
use super::tables::needs_spec;
use crate::error::Result;
use crate::ffi::{Chunk, Column, ListEntry, OutVector, Overload, Parameter};
use engram_engine::spec::Sequence;

/// Tokens of a piece. A chunk of pieces has a million row ids where a token has sixteen.
const PIECE: usize = 32;

/// The function. A history that is NULL is none.
pub struct Pieces;

/// Memory of one thread.
#[derive(Default)]
pub struct Scratch {
    /// Tokens of the chunk, and those before each piece.
    tokens: Vec<i64>,
    before: Vec<i64>,
    history: Vec<i64>,
    /// Pieces of the chunk: the place of the first token in its sequence, tokens, tokens before.
    pieces: Vec<(i64, usize, usize)>,
}

impl TableScalar for Pieces {
    const NAME: &'static str = "_engram_pieces";
    const SPOKEN: &'static str = "engram_ngrams";
    const UNFOLDED: bool = true;
    const CHECK: Check = needs_spec;
    type Scratch = Scratch;

    fn overloads() -> Vec<Overload> {
        let result = Column::StructList(&[
            (c"first", Column::BigInt),
            (c"tokens", Column::BigIntList),
            (c"history", Column::BigIntList),
        ]);
        LISTS.map(|list| Overload { parameters: vec![Parameter::Text, list, Parameter::Any].into(), result }).to_vec()
    }

    fn call(
        tables: &mut Tables<'_>,
        scratch: &mut Scratch,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let (token_lists, history_lists) = (input.column(1)?, input.column(2)?);
        let lists = Sequences::new(&token_lists, &history_lists)?;
        let Scratch { tokens, before, history, pieces } = scratch;
        tokens.clear();
        before.clear();
        pieces.clear();
        let mut entries = vec![ListEntry { offset: 0, length: 0 }; input.len()];
        for (row, entry) in entries.iter_mut().enumerate() {
            let first = tokens.len();
            let Some(table) = lists.read(tables, row, tokens, history)? else {
                output.set_null(row);
                continue;
            };
            let (spec, of_row) = (table.require_spec()?, &tokens[first..]);
            // Here an id is told with its place in the whole sequence.
            let sequence = Sequence::new(of_row).with_history(history);
            spec.check(sequence).map_err(|error| lists.told(row, error.into()))?;
            entry.offset = pieces.len() as u64;
            for start in (0..of_row.len()).step_by(PIECE) {
                let (given, length) = (before.len(), spec.history_len());
                let of_history = length.saturating_sub(start).min(history.len());
                before.extend_from_slice(&history[history.len() - of_history..]);
                before.extend_from_slice(&of_row[start.saturating_sub(length)..start]);
                pieces.push((start as i64, PIECE.min(of_row.len() - start), before.len() - given));
            }
            entry.length = pieces.len() as u64 - entry.offset;
        }
        let mut structs = output.struct_elements(pieces.len())?;
        let mut field = structs.field(0);
        let firsts = field.values::<i64>(pieces.len());
        firsts.iter_mut().zip(&*pieces).for_each(|(slot, (first, ..))| *slot = *first);
        write(structs.field(1), tokens, pieces.iter().map(|(_, tokens, _)| *tokens))?;
        write(structs.field(2), before, pieces.iter().map(|(_, _, before)| *before))?;
        output.values::<ListEntry>(input.len()).copy_from_slice(&entries);
        Ok(())
    }
}

/// Writes lists that lie one after another, by their lengths.
fn write(mut field: OutVector<'_>, elements: &[i64], lengths: impl ExactSizeIterator<Item = usize>) -> Result<()> {
    field.integer_elements(elements.len())?.copy_from_slice(elements);
    let mut offset = 0;
    let lists = lengths.len();
    for (slot, length) in field.values::<ListEntry>(lists).iter_mut().zip(lengths) {
        *slot = ListEntry { offset, length: length as u64 };
        offset += length as u64;
    }
    Ok(())
}
