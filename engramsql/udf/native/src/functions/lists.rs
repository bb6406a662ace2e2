//! `_engram_list` and `_engram_sequence`: what the macros `engram_fetch` and `engram_embeddings` unnest. One call per
//! list gives one row per id or token, so a list may come from anywhere: a constant, a parameter, a subquery, a column.

use super::ids;
use super::sequence::Sequences;
use super::table_scalar::{Check, TableScalar, Tables};
use super::tables::needs_spec;
use crate::error::Result;
use crate::ffi::{Chunk, Column, IntType, ListEntry, OutVector, Overload, Parameter, Type, Vector};
use engram_engine::Table;
use std::ops::Range;

/// Types of a list argument. ANY alone would do; but DuckDB 1.5 binds a macro's body when it makes the macro, as far as
/// the types of its parameters do not matter, and finds a table name there that is no constant yet.
pub const LISTS: [Parameter; 2] = [Parameter::BigIntList, Parameter::Any];

/// `_engram_list(table, rowids)`: every id of a list, or of a list of lists, with its place, checked against the table.
pub struct Ids;

/// Memory of one thread.
#[derive(Default)]
pub struct Scratch {
    /// Lists of the chunk that are not NULL: row, table, range in `ids`.
    lists: Vec<(usize, usize, Range<usize>)>,
    /// Row ids; 0 where `nulls` says NULL.
    ids: Vec<i64>,
    nulls: Vec<usize>,
    /// Inner list of each id, if the lists are nested.
    tokens: Vec<i64>,
}

impl TableScalar for Ids {
    const NAME: &'static str = "_engram_list";
    const SPOKEN: &'static str = "engram_fetch";
    const UNFOLDED: bool = true;
    type Scratch = Scratch;

    fn overloads() -> Vec<Overload> {
        let places =
            Column::StructList(&[(c"ord", Column::BigInt), (c"token", Column::BigInt), (c"rowid", Column::BigInt)]);
        LISTS.map(|ids| Overload { parameters: vec![Parameter::Text, ids].into(), result: places }).to_vec()
    }

    fn call(
        tables: &mut Tables<'_>,
        scratch: &mut Scratch,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        let lists = input.column(1)?;
        if let (Some(table), Some(found)) = (tables.only(), lists.entries())
            && *lists.ty() == Type::List(Box::new(Type::Int(IntType::I64)))
            && share(table, found, &lists.elements(), output)?
        {
            return Ok(());
        }
        let nested = scratch.read(tables, &lists)?;
        let rows = input.len();
        let total = scratch.ids.len();
        let mut places = output.struct_elements(total)?;
        let mut ord = places.field(0);
        let ords = ord.values::<i64>(total);
        for (_, _, range) in &scratch.lists {
            ords[range.clone()].iter_mut().zip(0..).for_each(|(slot, place)| *slot = place);
        }
        let mut token = places.field(1);
        if nested {
            token.values::<i64>(total).copy_from_slice(&scratch.tokens);
        } else {
            token.set_nulls(0..total);
        }
        let mut rowid = places.field(2);
        rowid.values::<i64>(total).copy_from_slice(&scratch.ids);
        scratch.nulls.iter().for_each(|&row| rowid.set_null(row));
        entries(output, rows, scratch.lists.iter().map(|(row, _, range)| (*row, range.clone())));
        Ok(())
    }
}

/// The same for lists of one table without a NULL: what a column of ids comes as, where a list is one id and what is done
/// for a list is done for each row. The result shares the ids if the lists are all of them, in order, as nearly always;
/// false if it cannot. (Where a filter kept some of the lists, the shared field would be longer than the other fields of its
/// struct, which DuckDB refuses where it verifies vectors.)
fn share(table: &Table, lists: &[ListEntry], elements: &Vector<'_>, output: &mut OutVector<'_>) -> Result<bool> {
    let Some(ids) = elements.bigints() else {
        return Ok(false);
    };
    let mut end = 0_u64;
    for list in lists {
        // Callers checked nothing of the entries; DuckDB made them.
        match end.checked_add(list.length) {
            Some(next) if list.offset == end => end = next,
            _ => return Ok(false),
        }
    }
    if end != ids.len() as u64 {
        return Ok(false);
    }
    table.check_ids(ids)?;
    let mut places = output.struct_elements(ids.len())?;
    let mut ord = places.field(0);
    let mut ords = ord.values::<i64>(ids.len());
    for list in lists {
        let (of_list, rest) = ords.split_at_mut(list.length as usize);
        of_list.iter_mut().zip(0..).for_each(|(slot, place)| *slot = place);
        ords = rest;
    }
    places.field(1).set_nulls(0..ids.len());
    places.field(2).share(elements);
    output.values::<ListEntry>(lists.len()).copy_from_slice(lists);
    Ok(true)
}

impl Scratch {
    /// Collects the lists of a chunk and checks their ids; whether they are lists of lists.
    fn read(&mut self, tables: &mut Tables<'_>, lists: &Vector<'_>) -> Result<bool> {
        self.lists.clear();
        self.ids.clear();
        self.nulls.clear();
        self.tokens.clear();
        let rows = 0..lists.len();
        if rows.clone().all(|row| lists.is_null(row)) {
            return Ok(false);
        }
        ids::check_nested(ids::ROW_IDS, lists)?;
        let outer = lists.elements();
        let inner = outer.ty().element().map(|_| outer.elements());
        for row in rows {
            if lists.is_null(row) {
                continue;
            }
            let number = tables.number(row)?;
            let table = tables.table(number);
            let start = self.ids.len();
            let range = lists.list(row, &outer)?;
            match &inner {
                None => self.append(table, &outer, range)?,
                Some(inner) => {
                    for (token, list) in range.enumerate() {
                        if !outer.is_null(list) {
                            self.append(table, inner, outer.list(list, inner)?)?;
                            self.tokens.resize(self.ids.len(), token as i64);
                        }
                    }
                }
            }
            self.lists.push((row, number, start..self.ids.len()));
        }
        // One check for all lists of one table: their ids lie side by side.
        let mut lists = self.lists.iter().peekable();
        while let Some((_, number, range)) = lists.next() {
            let mut end = range.end;
            while let Some((_, _, range)) = lists.next_if(|(_, next, _)| next == number) {
                end = range.end;
            }
            tables.table(*number).check_ids(&self.ids[range.start..end])?;
        }
        Ok(inner.is_some())
    }

    fn append(&mut self, table: &Table, elements: &Vector<'_>, range: Range<usize>) -> Result<()> {
        let first = self.ids.len();
        let before = self.nulls.len();
        let nulls = &mut self.nulls;
        elements
            .append_ints(range.clone(), &mut self.ids, &mut |index| {
                nulls.push(first + index);
                Ok(())
            })
            .map_err(|fault| ids::row_id_fault(table, fault))?;
        spread(&mut self.ids, first, first + range.len(), &self.nulls[before..]);
        Ok(())
    }
}

/// Moves `ids[first..]` apart, up to `end`, so that each of `nulls` is a place of its own, which holds 0.
fn spread(ids: &mut Vec<i64>, first: usize, end: usize, nulls: &[usize]) {
    if nulls.is_empty() {
        return;
    }
    let mut from = ids.len();
    ids.resize(end, 0);
    let mut nulls = nulls.iter().rev().peekable();
    for to in (first..end).rev() {
        if nulls.next_if(|&&null| null == to).is_some() {
            ids[to] = 0;
        } else {
            from -= 1;
            ids[to] = ids[from];
        }
    }
}

/// Points each row at its range of the elements; the other rows are NULL.
fn entries(output: &mut OutVector<'_>, rows: usize, lists: impl Iterator<Item = (usize, Range<usize>)>) {
    let mut next = 0;
    for (row, range) in lists {
        output.set_nulls(next..row);
        output.values::<ListEntry>(rows)[next..row].fill(ListEntry { offset: 0, length: 0 });
        output.values::<ListEntry>(rows)[row] = ListEntry { offset: range.start as u64, length: range.len() as u64 };
        next = row + 1;
    }
    output.set_nulls(next..rows);
    output.values::<ListEntry>(rows)[next..].fill(ListEntry { offset: 0, length: 0 });
}

/// `_engram_sequence(table, tokens, history)`: every token of a sequence with the row ids it looks up.
pub struct SequenceTokens;

impl TableScalar for SequenceTokens {
    const NAME: &'static str = "_engram_sequence";
    const SPOKEN: &'static str = "engram_embeddings";
    const UNFOLDED: bool = true;
    const CHECK: Check = needs_spec;
    type Scratch = Sequences;

    fn overloads() -> Vec<Overload> {
        let tokens = Column::StructList(&[
            (c"token", Column::BigInt),
            (c"token_id", Column::BigInt),
            (c"rowids", Column::BigIntList),
        ]);
        LISTS
            .map(|list| Overload { parameters: vec![Parameter::Text, list, Parameter::Any].into(), result: tokens })
            .to_vec()
    }

    fn call(
        tables: &mut Tables<'_>,
        sequences: &mut Sequences,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()> {
        sequences.read(tables, input, output)?;
        let tokens = sequences.tokens();
        let mut rowids: Vec<i64> = Vec::new();
        // Row, range in `tokens`, range in `rowids`.
        let mut found: Vec<(usize, Range<usize>, Range<usize>)> = Vec::new();
        let mut first = 0;
        for (row, sequence) in sequences.iter() {
            let table = tables.of_row(row)?;
            let spec = table.require_spec()?;
            let (end, start) = (first + sequence.tokens.len(), rowids.len());
            rowids.resize(start + sequence.tokens.len() * spec.heads(), 0);
            spec.rowids_into(sequence, &mut rowids[start..])?;
            // A spec that reaches past the table's rows must fail before any row is returned.
            table.check_ids(&rowids[start..])?;
            found.push((row, first..end, start..rowids.len()));
            first = end;
        }

        let mut structs = output.struct_elements(tokens.len())?;
        let mut place = structs.field(0);
        let places = place.values::<i64>(tokens.len());
        for (_, range, _) in &found {
            places[range.clone()].iter_mut().zip(0..).for_each(|(slot, place)| *slot = place);
        }
        structs.field(1).values::<i64>(tokens.len()).copy_from_slice(tokens);
        let mut ids = structs.field(2);
        ids.integer_elements(rowids.len())?.copy_from_slice(&rowids);
        let lists = ids.values::<ListEntry>(tokens.len());
        for (_, range, rowids) in &found {
            let heads = rowids.len().checked_div(range.len()).unwrap_or(0);
            for (token, offset) in range.clone().zip((rowids.start..).step_by(heads.max(1))) {
                lists[token] = ListEntry { offset: offset as u64, length: heads as u64 };
            }
        }
        entries(output, input.len(), found.into_iter().map(|(row, range, _)| (row, range)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn nulls_get_places_of_their_own() {
        let spreads = |given: &[i64], end, nulls: &[usize]| {
            let mut ids = given.to_vec();
            spread(&mut ids, 1, end, nulls);
            ids
        };
        assert_eq!(spreads(&[9, 1, 2], 3, &[]), [9, 1, 2]);
        assert_eq!(spreads(&[9, 1, 2], 6, &[1, 3, 5]), [9, 0, 1, 0, 2, 0]);
        assert_eq!(spreads(&[9], 3, &[1, 2]), [9, 0, 0]);
        assert_eq!(spreads(&[9, 1, 2], 4, &[3]), [9, 1, 2, 0]);
    }
}
