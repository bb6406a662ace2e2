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

/// The function.
pub struct Pieces;

/// Memory of one thread.
#[derive(Default)]
pub struct Scratch {
    sequences: Sequences,
    /// Tokens before each piece.
    before: Vec<i64>,
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
        let Scratch { sequences, before, pieces } = scratch;
        // Here an id is told with its place in the whole sequence.
        sequences.read(tables, input, output)?;
        before.clear();
        pieces.clear();
        let mut entries = vec![ListEntry { offset: 0, length: 0 }; input.len()];
        for (row, Sequence { tokens, history, .. }) in sequences.iter() {
            let length = tables.of_row(row)?.require_spec()?.history_len();
            let offset = pieces.len();
            for start in (0..tokens.len()).step_by(PIECE) {
                let given = before.len();
                let of_history = length.saturating_sub(start).min(history.len());
                before.extend_from_slice(&history[history.len() - of_history..]);
                before.extend_from_slice(&tokens[start.saturating_sub(length)..start]);
                pieces.push((start as i64, PIECE.min(tokens.len() - start), before.len() - given));
            }
            entries[row] = ListEntry { offset: offset as u64, length: (pieces.len() - offset) as u64 };
        }
        let mut structs = output.struct_elements(pieces.len())?;
        let mut field = structs.field(0);
        let firsts = field.values::<i64>(pieces.len());
        firsts.iter_mut().zip(&*pieces).for_each(|(slot, (first, ..))| *slot = *first);
        write(structs.field(1), sequences.tokens(), pieces.iter().map(|(_, tokens, _)| *tokens))?;
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
