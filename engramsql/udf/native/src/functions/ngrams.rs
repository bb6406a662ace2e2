//! `_engram_ngrams(table, tokens, history)`: the n-gram behind every row id of a sequence; `_engram_grams`: every n-gram
//! once, for counting.

use super::lists::LISTS;
use super::sequence::Sequences;
use super::tables::{Resolver, TableArgument, needs_spec};
use crate::error::Result;
use crate::ffi::{Chunk, Column, Fields, HugeInt, ListEntry, OutVector, Overload, Parameter, Scalar, ScalarArguments};
use engram_engine::catalog::Session;
use engram_engine::spec::{HeadRun, Ngrams, Sequence};
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
    const UNFOLDED: bool = true;
    type Bound = TableArgument;
    type Local = Local;

    fn overloads() -> Vec<Overload> {
        let result = Column::StructList(FIELDS);
        LISTS.map(|list| Overload { parameters: vec![Parameter::Text, list, Parameter::Any].into(), result }).to_vec()
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind_checked(session, arguments, 0, needs_spec)
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
        let lists = Sequences::new(&names, &token_lists, &history_lists)?;
        let Local { resolver, tokens, history } = local;
        let mut sequences = Vec::with_capacity(input.len());
        for row in 0..input.len() {
            tokens.clear();
            let Some(table) = lists.read(session, bound, resolver, row, tokens, history)? else {
                output.set_null(row);
                continue;
            };
            let spec = table.require_spec()?;
            let sequence = Sequence::new(tokens).with_history(history);
            let rowids = spec.rowids(sequence).map_err(|error| lists.told(row, error.into()))?;
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
        for (range, list) in sequence.ngrams.ranges().zip(&mut lists) {
            *list = ListEntry { offset: (at + range.start) as u64, length: range.len() as u64 };
        }
        at += sequence.ngrams.ids().len();
    }
    output.values::<ListEntry>(rows).copy_from_slice(&entries);
    Ok(())
}

/// The n-gram of each run of heads at each token of a sequence: its first head, a key that tells it from other n-grams of
/// that head, and the row ids of all of them. A tenth of what one line per head costs to count.
pub struct Grams;

/// Tables and scratch memory of one thread.
pub struct GramsLocal {
    resolver: Resolver,
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

impl Scalar for Grams {
    const NAME: &'static str = "_engram_grams";
    const SPOKEN: &'static str = "engram_ngrams";
    type Bound = TableArgument;
    type Local = GramsLocal;

    fn overloads() -> Vec<Overload> {
        let parameters = &[Parameter::Text, Parameter::Any, Parameter::Any];
        let result = Column::StructList(&[
            (c"head", Column::Integer),
            (c"key", Column::HugeInt),
            (c"rowids", Column::BigIntList),
        ]);
        vec![Overload { parameters: parameters.into(), result }]
    }

    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<TableArgument> {
        TableArgument::bind_checked(session, arguments, 0, needs_spec)
    }

    fn init(session: &Arc<Session>, bound: &TableArgument) -> Result<GramsLocal> {
        let resolver = bound.resolve(session)?;
        let (tokens, history, rowids, keys, sequences) = Default::default();
        Ok(GramsLocal { resolver, tokens, history, rowids, keys, sequences })
    }

    fn call(
        session: &Arc<Session>,
        bound: &TableArgument,
        local: &mut GramsLocal,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let (names, token_lists, history_lists) = (input.column(0)?, input.column(1)?, input.column(2)?);
        let lists = Sequences::new(&names, &token_lists, &history_lists)?;
        let GramsLocal { resolver, tokens, history, rowids, keys, sequences } = local;
        rowids.clear();
        keys.clear();
        sequences.clear();
        let mut known: Option<(usize, Arc<[HeadRun]>)> = None;
        for row in 0..input.len() {
            tokens.clear();
            let Some(table) = lists.read(session, bound, resolver, row, tokens, history)? else {
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
