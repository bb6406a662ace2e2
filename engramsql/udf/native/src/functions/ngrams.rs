//! `_engram_ngrams(table, tokens, history)`: the n-gram behind every row id of a sequence; `_engram_grams`: every n-gram
//! once, for counting.

use super::lists::LISTS;
use super::sequence::Sequences;
use super::table_scalar::{Check, TableScalar, Tables};
use super::tables::needs_spec;
use crate::error::Result;
use crate::ffi::{Chunk, Column, Fields, HugeInt, ListEntry, OutVector, Overload, Parameter};
use engram_engine::Table;
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

/// The function.
pub struct OfSequence;

/// One sequence of a chunk, and where its row ids lie among those of all.
struct Hashed<'a> {
    sequence: Sequence<'a>,
    table: Arc<Table>,
    rowids: Range<usize>,
}

impl TableScalar for OfSequence {
    const NAME: &'static str = "_engram_ngrams";
    const SPOKEN: &'static str = "engram_ngrams";
    const UNFOLDED: bool = true;
    const CHECK: Check = needs_spec;
    type Scratch = Sequences;

    fn overloads() -> Vec<Overload> {
        let result = Column::StructList(FIELDS);
        LISTS.map(|list| Overload { parameters: vec![Parameter::Text, list, Parameter::Any].into(), result }).to_vec()
    }

    fn call(
        tables: &mut Tables<'_>,
        sequences: &mut Sequences,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        sequences.read(tables, input, output)?;
        let mut entries = vec![ListEntry { offset: 0, length: 0 }; input.len()];
        let mut total = 0;
        let mut hashed = Vec::with_capacity(input.len());
        for (row, sequence) in sequences.iter() {
            let table = Arc::clone(tables.of_row(row)?);
            let length = sequence.tokens.len() * table.require_spec()?.heads();
            entries[row] = ListEntry { offset: total as u64, length: length as u64 };
            hashed.push(Hashed { sequence, table, rowids: total..total + length });
            total += length;
        }

        // A chunk of long sequences has millions of row ids, so each is computed where it is to lie.
        let mut structs = output.struct_elements(total)?;
        let mut field = structs.field(0);
        let places = field.values::<i64>(total);
        for Hashed { table, rowids, .. } in &hashed {
            let of_tokens = places[rowids.clone()].chunks_exact_mut(table.require_spec()?.heads());
            of_tokens.zip(0..).for_each(|(slots, token)| slots.fill(token));
        }
        let mut field = structs.field(1);
        let heads = field.values::<i32>(total);
        for Hashed { table, rowids, .. } in &hashed {
            for slots in heads[rowids.clone()].chunks_exact_mut(table.require_spec()?.heads()) {
                slots.iter_mut().zip(0..).for_each(|(slot, head)| *slot = head);
            }
        }
        let mut field = structs.field(2);
        let ids = field.values::<i64>(total);
        for Hashed { sequence, table, rowids } in &hashed {
            table.require_spec()?.rowids_into(*sequence, &mut ids[rowids.clone()])?;
        }
        let mut field = structs.field(3);
        let lists = field.values::<ListEntry>(total);
        let mut ids = Vec::new();
        for Hashed { sequence, table, rowids } in &hashed {
            let ngrams = table.require_spec()?.ngrams(*sequence)?;
            for (slot, range) in lists[rowids.clone()].iter_mut().zip(ngrams.ranges()) {
                *slot = ListEntry { offset: (ids.len() + range.start) as u64, length: range.len() as u64 };
            }
            ids.extend_from_slice(ngrams.ids());
        }
        field.integer_elements(ids.len())?.copy_from_slice(&ids);
        output.values::<ListEntry>(input.len()).copy_from_slice(&entries);
        Ok(())
    }
}

/// The n-gram of each run of heads at each token of a sequence: its first head, a key that tells it from other n-grams of
/// that head, and the row ids of all of them. A tenth of what one line per head costs to count.
pub struct Grams;

/// Memory of one thread.
#[derive(Default)]
pub struct GramsScratch {
    sequences: Sequences,
    rowids: Vec<i64>,
    keys: Vec<u128>,
    counted: Vec<Counted>,
}

/// One sequence of a chunk: its row, its table's heads, its tokens.
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
        let GramsScratch { sequences, rowids, keys, counted } = scratch;
        sequences.read(tables, input, output)?;
        rowids.clear();
        keys.clear();
        counted.clear();
        let mut known: Option<(usize, Arc<[HeadRun]>)> = None;
        for (row, sequence) in sequences.iter() {
            let table = tables.of_row(row)?;
            let spec = table.require_spec()?;
            let address = Arc::as_ptr(table).addr();
            let runs = match &known {
                Some((of, runs)) if *of == address => Arc::clone(runs),
                _ => known.insert((address, spec.head_runs().into())).1.clone(),
            };
            let (first_id, first_key, tokens) = (rowids.len(), keys.len(), sequence.tokens.len());
            rowids.resize(first_id + tokens * spec.heads(), 0);
            keys.resize(first_key + tokens * runs.len(), 0);
            spec.rowids_into(sequence, &mut rowids[first_id..])?;
            spec.ngram_keys_into(sequence, &mut keys[first_key..])?;
            counted.push(Counted { row, runs, tokens });
        }
        let mut structs = output.struct_elements(keys.len())?;
        let mut field = structs.field(0);
        let heads = counted.iter().flat_map(|of| (0..of.tokens).flat_map(|_| &*of.runs));
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
        for of in counted {
            let length = (of.tokens * of.runs.len()) as u64;
            entries[of.row] = ListEntry { offset, length };
            offset += length;
        }
        Ok(())
    }
}
