//! `_engram_ngrams(table, tokens, history)`: the n-gram behind every row id of a sequence; `_engram_grams`: every n-gram
//! once, for counting.

use super::lists::LISTS;
use super::sequence::Sequences;
use super::table_scalar::{Check, TableScalar, Tables};
use super::tables::needs_spec;
use crate::error::Result;
use crate::ffi::{Chunk, Column, Fields, HugeInt, ListEntry, OutVector, Overload, Parameter};
use engram_engine::spec::{HeadRun, Sequence};
use std::ops::Range;
use std::sync::Arc;

/// Fields of one n-gram.
const FIELDS: Fields = &[
    (c"token", Column::BigInt),
    (c"head", Column::Integer),
    (c"rowid", Column::BigInt),
    (c"ngram", Column::BigIntList),
];

/// The function. A history that is NULL is none.
pub struct OfSequence;

/// Memory of one thread.
#[derive(Default)]
pub struct Scratch {
    /// Tokens of all sequences of the chunk, and those before each.
    tokens: Vec<i64>,
    before: Vec<i64>,
    history: Vec<i64>,
    sequences: Vec<Hashed>,
}

/// One sequence of a chunk: its row, and where what belongs to it lies among that of all.
struct Hashed {
    row: usize,
    tokens: Range<usize>,
    before: Range<usize>,
    rowids: Range<usize>,
}

impl TableScalar for OfSequence {
    const NAME: &'static str = "_engram_ngrams";
    const SPOKEN: &'static str = "engram_ngrams";
    const UNFOLDED: bool = true;
    const CHECK: Check = needs_spec;
    type Scratch = Scratch;

    fn overloads() -> Vec<Overload> {
        let result = Column::StructList(FIELDS);
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
        let Scratch { tokens, before, history, sequences } = scratch;
        tokens.clear();
        before.clear();
        sequences.clear();
        let mut total = 0;
        let mut entries = vec![ListEntry { offset: 0, length: 0 }; input.len()];
        for (row, entry) in entries.iter_mut().enumerate() {
            let (first, first_before) = (tokens.len(), before.len());
            let Some(table) = lists.read(tables, row, tokens, history)? else {
                output.set_null(row);
                continue;
            };
            let spec = table.require_spec()?;
            let sequence = Sequence::new(&tokens[first..]).with_history(history);
            spec.check(sequence).map_err(|error| lists.told(row, error.into()))?;
            before.extend_from_slice(history);
            let length = sequence.tokens.len() * spec.heads();
            *entry = ListEntry { offset: total as u64, length: length as u64 };
            sequences.push(Hashed {
                row,
                tokens: first..tokens.len(),
                before: first_before..before.len(),
                rowids: total..total + length,
            });
            total += length;
        }

        // A chunk of long sequences has millions of row ids, so each is computed where it is to lie.
        let mut structs = output.struct_elements(total)?;
        let mut field = structs.field(0);
        let places = field.values::<i64>(total);
        for of in &*sequences {
            let of_tokens = places[of.rowids.clone()].chunks_mut(of.heads());
            of_tokens.zip(0..).for_each(|(slots, token)| slots.fill(token));
        }
        let mut field = structs.field(1);
        let heads = field.values::<i32>(total);
        for of in &*sequences {
            for slots in heads[of.rowids.clone()].chunks_mut(of.heads()) {
                slots.iter_mut().zip(0..).for_each(|(slot, head)| *slot = head);
            }
        }
        let mut field = structs.field(2);
        let rowids = field.values::<i64>(total);
        for of in &*sequences {
            let spec = tables.of_row(of.row)?.require_spec()?;
            spec.rowids_into(of.sequence(tokens, before), &mut rowids[of.rowids.clone()])?;
        }
        let mut field = structs.field(3);
        let lists = field.values::<ListEntry>(total);
        let mut ids = Vec::new();
        for of in &*sequences {
            let ngrams = tables.of_row(of.row)?.require_spec()?.ngrams(of.sequence(tokens, before))?;
            for (slot, range) in lists[of.rowids.clone()].iter_mut().zip(ngrams.ranges()) {
                *slot = ListEntry { offset: (ids.len() + range.start) as u64, length: range.len() as u64 };
            }
            ids.extend_from_slice(ngrams.ids());
        }
        field.integer_elements(ids.len())?.copy_from_slice(&ids);
        output.values::<ListEntry>(input.len()).copy_from_slice(&entries);
        Ok(())
    }
}

impl Hashed {
    /// Row ids per token; 1 if there are none.
    fn heads(&self) -> usize {
        self.rowids.len().checked_div(self.tokens.len()).unwrap_or_default().max(1)
    }

    fn sequence<'a>(&self, tokens: &'a [i64], before: &'a [i64]) -> Sequence<'a> {
        Sequence::new(&tokens[self.tokens.clone()]).with_history(&before[self.before.clone()])
    }
}

/// The n-gram of each run of heads at each token of a sequence: its first head, a key that tells it from other n-grams of
/// that head, and the row ids of all of them. A tenth of what one line per head costs to count.
pub struct Grams;

/// Memory of one thread.
#[derive(Default)]
pub struct GramsScratch {
    tokens: Vec<i64>,
    history: Vec<i64>,
    rowids: Vec<i64>,
    keys: Vec<u128>,
    /// Row of the chunk, its table's heads, its row ids and keys.
    sequences: Vec<Counted>,
}

struct Counted {
    row: usize,
    runs: Arc<[HeadRun]>,
    tokens: usize,
}

impl TableScalar for Grams {
    const NAME: &'static str = "_engram_grams";
    const SPOKEN: &'static str = "engram_ngrams";
    const CHECK: Check = needs_spec;
    type Scratch = GramsScratch;

    fn overloads() -> Vec<Overload> {
        let parameters = &[Parameter::Text, Parameter::Any, Parameter::Any];
        let result = Column::StructList(&[
            (c"head", Column::Integer),
            (c"key", Column::HugeInt),
            (c"rowids", Column::BigIntList),
        ]);
        vec![Overload { parameters: parameters.into(), result }]
    }

    fn call(
        tables: &mut Tables<'_>,
        scratch: &mut GramsScratch,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let (token_lists, history_lists) = (input.column(1)?, input.column(2)?);
        let lists = Sequences::new(&token_lists, &history_lists)?;
        let GramsScratch { tokens, history, rowids, keys, sequences } = scratch;
        rowids.clear();
        keys.clear();
        sequences.clear();
        let mut known: Option<(usize, Arc<[HeadRun]>)> = None;
        for row in 0..input.len() {
            tokens.clear();
            let Some(table) = lists.read(tables, row, tokens, history)? else {
                output.set_null(row);
                continue;
            };
            let spec = table.require_spec()?;
            let address = std::ptr::from_ref(table).addr();
            let runs = match &known {
                Some((of, runs)) if *of == address => Arc::clone(runs),
                _ => known.insert((address, spec.head_runs().into())).1.clone(),
            };
            let sequence = Sequence::new(tokens).with_history(history);
            let (first_id, first_key) = (rowids.len(), keys.len());
            rowids.resize(first_id + tokens.len() * spec.heads(), 0);
            keys.resize(first_key + tokens.len() * runs.len(), 0);
            let told = |error: engram_engine::spec::SpecError| lists.told(row, error.into());
            spec.rowids_into(sequence, &mut rowids[first_id..]).map_err(told)?;
            spec.ngram_keys_into(sequence, &mut keys[first_key..])?;
            sequences.push(Counted { row, runs, tokens: tokens.len() });
        }
        let mut structs = output.struct_elements(keys.len())?;
        let mut field = structs.field(0);
        let heads = sequences.iter().flat_map(|of| (0..of.tokens).flat_map(|_| &*of.runs));
        // A spec has fewer heads than 2^31.
        let slots = field.values::<i32>(keys.len()).iter_mut();
        slots.zip(heads.clone()).for_each(|(slot, run)| *slot = run.heads.start as i32);
        let mut field = structs.field(1);
        let slots = field.values::<HugeInt>(keys.len()).iter_mut();
        slots.zip(&*keys).for_each(|(slot, &key)| *slot = (key as i128).into());
        let mut field = structs.field(2);
        field.integer_elements(rowids.len())?.copy_from_slice(rowids);
        let mut offset = 0;
        for (slot, run) in field.values::<ListEntry>(keys.len()).iter_mut().zip(heads) {
            let length = run.heads.len() as u64;
            *slot = ListEntry { offset, length };
            offset += length;
        }
        let entries = output.values::<ListEntry>(input.len());
        entries.fill(ListEntry { offset: 0, length: 0 });
        let mut offset = 0;
        for of in sequences {
            let length = (of.tokens * of.runs.len()) as u64;
            entries[of.row] = ListEntry { offset, length };
            offset += length;
        }
        Ok(())
    }
}
