//! `engram_embeddings(table, tokens [, history])`: e_t of every token of a sequence.

use super::ids;
use super::tables::Pinned;
use super::write;
use crate::error::Result;
use crate::ffi::{Arguments, Column, Columns, OutChunk, Parameter, TableFunction};
use engram_engine::Table;
use engram_engine::catalog::Session;
use engram_engine::spec::Sequence;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the floats of one chunk. A token's e_t is `heads * dim` floats, so a full chunk could reach 100 MB; this is
/// still enough rows per engine call for its cost not to matter.
const CHUNK_BYTES: usize = 8 << 20;

/// The table function.
pub struct Embeddings;

/// One sequence and its row ids (tokens x heads).
pub struct Bound {
    table: Pinned,
    tokens: Vec<i64>,
    rowids: Vec<i64>,
    heads: usize,
    e_t: Column,
}

/// Progress of one execution.
pub struct Global {
    table: Arc<Table>,
    next: AtomicUsize,
}

impl TableFunction for Embeddings {
    const NAME: &'static str = "engram_embeddings";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text, Parameter::Any];
    const NAMED: &'static [(&'static str, Parameter)] = &[("history", Parameter::Any)];
    type Bound = Bound;
    type Global = Global;
    type Local = ();

    fn bind(session: &Arc<Session>, arguments: &Arguments<'_>, columns: &mut Columns<'_>) -> Result<Bound> {
        let table = Pinned::new(session, arguments.text(0, "table")?)?;
        let spec = table.table().require_spec()?;
        let heads = spec.heads();
        let vocab = spec.vocab_size();
        let tokens = ids::tokens_of(ids::TOKENS, &arguments.positional(1)?, vocab)?;
        let history = match arguments.named("history") {
            Some(value) => ids::tokens_of(ids::HISTORY, &value, vocab)?,
            None => Vec::new(),
        };
        let mut rowids = vec![0; tokens.len() * heads];
        spec.rowids_into(Sequence::new(&tokens).with_history(&history), &mut rowids)?;
        // A spec that reaches past the table's rows must fail before any row is returned.
        table.table().check_ids(&rowids)?;
        let e_t = write::float_column(table.table().dim().map(|dim| dim * heads));
        columns.add("token", Column::BigInt);
        columns.add("token_id", Column::BigInt);
        columns.add("e_t", e_t);
        columns.cardinality(tokens.len() as u64);
        Ok(Bound { table, tokens, rowids, heads, e_t })
    }

    fn init(session: &Arc<Session>, bound: &Bound) -> Result<Global> {
        Ok(Global { table: bound.table.current(session)?, next: AtomicUsize::new(0) })
    }

    fn call(bound: &Bound, global: &Global, _local: &mut (), output: &mut OutChunk<'_>) -> Result<()> {
        let start = global.next.load(Ordering::Relaxed);
        let most = rows_per_chunk(global.table.dim().unwrap_or(0) * bound.heads, output.capacity());
        let rows = start..bound.tokens.len().min(start + most);
        global.next.store(rows.end, Ordering::Relaxed);
        let len = rows.len();
        let table = &global.table;
        output.each(|column, vector| {
            match column {
                0 => {
                    for (slot, row) in vector.values::<i64>(len).iter_mut().zip(rows.clone()) {
                        *slot = row as i64;
                    }
                }
                1 => vector.values::<i64>(len).copy_from_slice(&bound.tokens[rows.clone()]),
                _ => {
                    let size = table.require_dim()? * bound.heads;
                    // Tokens that a view of the table holds are one read each; the values are the same.
                    let ids = &bound.rowids[rows.start * bound.heads..rows.end * bound.heads];
                    write::floats(vector, bound.e_t, len, size, |out| Ok(table.e_t_into(ids, out)?))?;
                }
            }
            Ok(())
        })?;
        output.set_len(len);
        Ok(())
    }
}

/// Rows of `size` floats in one chunk of at most `capacity` rows.
pub fn rows_per_chunk(size: usize, capacity: usize) -> usize {
    (CHUNK_BYTES / size_of::<f32>()).checked_div(size).unwrap_or(capacity).clamp(1, capacity)
}

#[cfg(test)]
mod tests {
    use super::rows_per_chunk;

    #[test]
    fn a_chunk_stays_near_8_mb() {
        let rows = [0, 1, 1024, 16 * 768, 1 << 22].map(|size| rows_per_chunk(size, 2048));
        assert_eq!(rows, [2048, 2048, 2048, 170, 1]);
    }
}
