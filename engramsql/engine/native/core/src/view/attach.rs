//! A table that answers from its views: the record where a view has the key, the rows elsewhere; the values are the same.

use super::reader::View;
use crate::error::Result;
use crate::gather::{Scattered, split_row};
use crate::read::Row;
use crate::table::{Table, check_output};

impl Table {
    /// e_t of every token, by its row ids (n x heads): `out.len() == rowids.len() * dim`. Tokens that an attached view holds
    /// are read there, one read each; the values are those of [`vectors_into`](Table::vectors_into).
    ///
    /// # Errors
    /// As `vectors_into`, also for a table whose files have changed and whose views hold every token. A view that fails is not asked again, and its tokens come from the rows.
    pub fn e_t_into(&self, rowids: &[i64], out: &mut [f32]) -> Result<()> {
        let (decoder, dim) = self.decoder()?;
        let views = |view: &View, slots: &[i64], at: &[usize], out: &mut [f32]| view.e_t_scattered(slots, at, out);
        let Some(rest) = self.read_views(rowids, dim, out, views)? else { return self.vectors_into(rowids, out) };
        let value_bytes = decoder.format().value_bytes(dim);
        let decode = |_: &mut Vec<f32>, row: Row<'_>, out: &mut [f32]| {
            let (values, scales) = split_row(row, value_bytes);
            decoder.decode(values, scales, out);
        };
        self.read_rows(rowids, &rest, dim, decode, out)
    }

    /// The same rounded once to bfloat16, as bit patterns.
    pub fn e_t_bf16_into(&self, rowids: &[i64], out: &mut [u16]) -> Result<()> {
        let (decoder, dim) = self.decoder()?;
        let views = |view: &View, slots: &[i64], at: &[usize], out: &mut [u16]| view.e_t_bf16_scattered(slots, at, out);
        let Some(rest) = self.read_views(rowids, dim, out, views)? else { return self.vectors_bf16_into(rowids, out) };
        let value_bytes = decoder.format().value_bytes(dim);
        let decode = |scratch: &mut Vec<f32>, row: Row<'_>, out: &mut [u16]| {
            let (values, scales) = split_row(row, value_bytes);
            scratch.resize(dim, 0.0);
            decoder.decode_bf16(values, scales, scratch, out);
        };
        self.read_rows(rowids, &rest, dim, decode, out)
    }

    /// Reads what the views hold; the tokens that are left, or `None` if all are.
    fn read_views<T>(
        &self,
        rowids: &[i64],
        dim: usize,
        out: &mut [T],
        read: impl Fn(&View, &[i64], &[usize], &mut [T]) -> Result<()>,
    ) -> Result<Option<Vec<usize>>> {
        let views = self.attached_views();
        let heads = self.spec().map_or(0, |spec| spec.heads());
        if views.is_empty() || heads == 0 || !rowids.len().is_multiple_of(heads) {
            return Ok(None);
        }
        check_output("values", rowids.len() * dim, out.len())?;
        // No view is asked for what no table has.
        self.check_ids(rowids)?;
        // Nor does one answer for a table that has become another one since it was opened.
        self.check_files()?;
        let tokens = rowids.len() / heads;
        let mut rest: Vec<usize> = (0..tokens).collect();
        for view in views.iter().filter(|view| view.is_usable()) {
            if rest.is_empty() {
                break;
            }
            let some: Vec<i64>;
            let keys = if rest.len() == tokens {
                rowids
            } else {
                some = pick(rowids, &rest, heads);
                &some
            };
            let mut slots = vec![-1; rest.len()];
            let answer = view.lookup_many(keys, &mut slots).and_then(|()| {
                let (mut found, mut at, mut missing) = (Vec::new(), Vec::new(), Vec::new());
                for (&slot, &token) in slots.iter().zip(&rest) {
                    if slot < 0 {
                        missing.push(token);
                    } else {
                        found.push(slot);
                        at.push(token);
                    }
                }
                if !found.is_empty() {
                    read(view, &found, &at, out)?;
                }
                Ok(missing)
            });
            match answer {
                Ok(missing) => {
                    view.count(rest.len() - missing.len(), missing.len());
                    rest = missing;
                }
                // The rows are still there, and their bytes are the same.
                Err(error) => view.give_up(&error),
            }
        }
        Ok((rest.len() < tokens).then_some(rest))
    }

    /// Reads the rows of `tokens`, which ascend, to their places in `out`.
    fn read_rows<T: Send>(
        &self,
        rowids: &[i64],
        tokens: &[usize],
        dim: usize,
        decode: impl Fn(&mut Vec<f32>, Row<'_>, &mut [T]) + Copy + Send,
        out: &mut [T],
    ) -> Result<()> {
        let heads = self.spec().map_or(1, |spec| spec.heads());
        let ids = pick(rowids, tokens, heads);
        let (positions, per, width) = (tokens, heads, dim);
        self.gather(&ids, Scattered { positions, per, width, decode, out, first: 0, before: 0 })
    }
}

/// The row ids of `tokens`.
fn pick(rowids: &[i64], tokens: &[usize], heads: usize) -> Vec<i64> {
    tokens.iter().flat_map(|&token| &rowids[token * heads..(token + 1) * heads]).copied().collect()
}
