//! Ids that a table function was given, NULLs among them.

use super::ids;
use crate::error::{Error, Result};
use crate::ffi::{IntFault, Integer, Value, Vector};
use engram_engine::Table;
use engram_engine::view::View;
use std::ops::Range;

/// Ids in output order.
#[derive(Default)]
pub struct Wanted {
    /// Rows of the result.
    pub rows: usize,
    /// The ids that are not NULL.
    pub ids: Vec<i64>,
    /// Rows of the result whose id is NULL, ascending.
    nulls: Vec<usize>,
    /// Inner list of each row; `None` for a flat list.
    pub tokens: Option<Vec<i64>>,
}

impl Wanted {
    /// Reads a list, or a list of lists, of row ids of any integer type.
    pub fn read(table: &Table, value: &Value) -> Result<Wanted> {
        let fault = |fault| ids::row_id_fault(table, fault);
        let mut wanted = Wanted::default();
        let nested = match value.ty().element() {
            Some(element) if element.element().is_some() => {
                ids::check_list(ids::ROW_IDS, element, value)?;
                true
            }
            _ => {
                ids::check_list(ids::ROW_IDS, value.ty(), value)?;
                false
            }
        };
        let Some(vector) = value.vector() else {
            return Ok(wanted);
        };
        if vector.is_null(0) {
            return Ok(wanted);
        }
        let outer = vector.elements();
        let range = vector.list(0, &outer)?;
        if !nested {
            wanted.append(&outer, range, &fault)?;
            return Ok(wanted);
        }
        let mut tokens = Vec::new();
        let inner = outer.elements();
        for (token, row) in range.enumerate() {
            if !outer.is_null(row) {
                wanted.append(&inner, outer.list(row, &inner)?, &fault)?;
                tokens.resize(wanted.rows, token as i64);
            }
        }
        wanted.tokens = Some(tokens);
        Ok(wanted)
    }

    /// Reads a list of slots of any integer type.
    pub fn read_slots(view: &View, value: &Value) -> Result<Wanted> {
        let fault = |fault| match fault {
            IntFault::Refused(error) => error,
            IntFault::TooLarge { value: Integer::Signed(slot), .. } => view.out_of_range(slot).into(),
            IntFault::TooLarge { value, .. } => Error::argument(format!("view '{}' has no slot {value}", view.name())),
        };
        let mut wanted = Wanted::default();
        ids::check_list(ids::SLOTS, value.ty(), value)?;
        if let Some(vector) = value.vector()
            && !vector.is_null(0)
        {
            let elements = vector.elements();
            wanted.append(&elements, vector.list(0, &elements)?, &fault)?;
        }
        match wanted.ids.iter().find(|&&slot| u64::try_from(slot).map_or(true, |slot| slot >= view.slots())) {
            Some(&slot) => Err(view.out_of_range(slot.into()).into()),
            None => Ok(wanted),
        }
    }

    /// The ids that are not NULL, in order.
    pub fn into_ids(self) -> Vec<i64> {
        self.ids
    }

    fn append(&mut self, elements: &Vector<'_>, range: Range<usize>, fault: &dyn Fn(IntFault) -> Error) -> Result<()> {
        let first = self.rows;
        self.rows += range.len();
        let nulls = &mut self.nulls;
        elements
            .append_ints(range, &mut self.ids, &mut |index| {
                nulls.push(first + index);
                Ok(())
            })
            .map_err(fault)
    }

    /// Ids and NULL rows of a range of the result.
    pub fn part(&self, rows: &Range<usize>) -> (&[i64], &[usize]) {
        if self.nulls.is_empty() {
            return (&self.ids[rows.clone()], &[]);
        }
        let before = |row: usize| self.nulls.partition_point(|&null| null < row);
        let (from, to) = (before(rows.start), before(rows.end));
        (&self.ids[rows.start - from..rows.end - to], &self.nulls[from..to])
    }
}

/// Rows of a chunk (counted from its start) that are not NULL.
pub fn present(nulls: &[usize], start: usize, len: usize) -> impl Iterator<Item = usize> {
    let mut nulls = nulls.iter().peekable();
    (0..len).filter(move |row| nulls.next_if(|&&null| null == start + row).is_none())
}
