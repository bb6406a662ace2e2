//! Rows kept in memory, within a RAM budget: hot rows at the speed of memory, whatever else reads the disk.
//!
//! It keeps rows and not pages. Row ids are hashes, so the neighbours of a row on its 4 KiB page have nothing to do with
//! it: a pool of pages spends 4096 bytes to keep 160, and a pool of rows keeps some twenty times as many hot rows.
//!
//! A [`RowCache`] holds the rows of any number of tables; [`RowCache::global`] is the process's. Memory is taken in slabs
//! of 2 MiB as rows come, indexes included, and never exceeds the budget. A slab belongs to one table, which evicts
//! its own rows first; see `pool` for which. Tables are told apart by their [`Layout`], so a changed file never meets
//! the rows of its predecessor.

mod bucket;
mod budget;
mod index;
mod memory;
mod pool;
mod size;
mod state;
mod table;

pub use size::{BUDGET_VARIABLE, CacheError, check_budget, default_budget, parse_bytes, usable_memory};
pub use state::CacheUsage;
pub use table::{NewRow, Stay, TableKey, TableUsage};

use crate::process::PerProcess;
use crate::read::RowSink;
use crate::source::Layout;
use state::State;
use std::convert::Infallible;
use std::sync::Arc;
use table::{LOCKED_INSERTS, TablePool};

/// Rows of tables within a RAM budget. Clones share it. A forked child starts with an empty one of the same budget.
#[derive(Clone)]
pub struct RowCache {
    states: Arc<PerProcess<Arc<State>>>,
    budget: (u64, bool),
}

impl RowCache {
    /// The cache of this process. Its budget is `ENGRAMSQL_RAM_BUDGET`, or else [`default_budget`].
    pub fn global() -> Result<&'static RowCache, CacheError> {
        // Not OnceLock: a child forked while another thread initialises it would wait for ever.
        static GLOBAL: PerProcess<RowCache> = PerProcess::new();
        GLOBAL.get(|parent| match parent {
            Some(parent) => Ok(parent.clone()),
            None => size::configured_budget().map(|(bytes, explicit)| RowCache::with_budget(bytes, explicit)),
        })
    }

    /// A cache of its own with an explicit budget in bytes.
    pub fn new(budget: u64) -> RowCache {
        RowCache::with_budget(budget, true)
    }

    fn with_budget(bytes: u64, explicit: bool) -> RowCache {
        RowCache { states: Arc::new(PerProcess::new()), budget: (bytes, explicit) }
    }

    fn state(&self) -> &Arc<State> {
        let made = self.states.get(|parent: Option<&Arc<State>>| {
            let (bytes, explicit) =
                parent.map_or(self.budget, |parent| (parent.budget.bytes(), parent.budget.is_explicit()));
            Ok::<_, Infallible>(State::new(bytes, explicit))
        });
        match made {
            Ok(state) => state,
            Err(never) => match never {},
        }
    }

    /// The rows of the table with this layout, shared by all that hold it; they go with the last holder.
    pub fn table(&self, layout: &Layout) -> CachedTable {
        let table = CachedTable { cache: self.clone(), layout: Arc::new(layout.clone()), pools: PerProcess::new() };
        table.pool();
        table
    }

    /// Sets the budget in bytes, 0 for off, or `None` for the environment's or the default. Memory beyond it is free when
    /// this returns. The error tells what is wrong with the environment variable.
    pub fn set_budget(&self, bytes: Option<u64>) -> Result<(), CacheError> {
        let (bytes, explicit) = match bytes {
            Some(bytes) => (bytes, true),
            None => size::configured_budget()?,
        };
        self.state().set_budget(bytes, explicit);
        Ok(())
    }

    /// The budget in bytes; 0: off.
    pub fn budget(&self) -> u64 {
        self.state().budget.bytes()
    }

    /// Whether somebody asked for the budget, by call or environment.
    pub fn is_explicit(&self) -> bool {
        self.state().budget.is_explicit()
    }

    /// What the cache holds and did.
    pub fn usage(&self) -> CacheUsage {
        self.state().usage()
    }
}

/// The cached rows of one table. Safe to use from many threads.
pub struct CachedTable {
    cache: RowCache,
    layout: Arc<Layout>,
    pools: PerProcess<Arc<TablePool>>,
}

impl CachedTable {
    fn pool(&self) -> &TablePool {
        match self.pools.get(|_| Ok::<_, Infallible>(self.cache.state().register(&self.layout))) {
            Ok(pool) => pool,
            Err(never) => match never {},
        }
    }

    /// The table's number in this process's cache.
    pub fn key(&self) -> TableKey {
        self.pool().key
    }

    /// What the table holds and did.
    pub fn usage(&self) -> TableUsage {
        self.pool().usage()
    }

    /// Hands every row of `ids` that is here to `sink`, a few at a time, and appends the positions of the others
    /// to `misses`. Returns the number of rows found. Ids out of range are misses.
    ///
    /// The sink is called under a shared lock: it must not insert into a cache or change a budget.
    pub fn lookup(&self, ids: &[i64], sink: &mut dyn RowSink, misses: &mut Vec<usize>) -> usize {
        self.pool().lookup(ids, sink, misses)
    }

    /// Appends to `missing` the positions of the ids that are not here; no lookup is counted. Ids out of range are missing.
    pub fn find_missing(&self, ids: &[i64], missing: &mut Vec<usize>) {
        self.pool().find_missing(ids, missing);
    }

    /// Rows of the table that fit the budget beside their index, if no other table has rows.
    pub fn capacity(&self) -> u64 {
        /// What the index takes for a row, its free places included.
        const ENTRY: u64 = 24;
        // One slab is the index's from the start, and one row slab may be half empty.
        let bytes = self.budget().saturating_sub(2 * memory::SLAB_BYTES as u64);
        bytes / (self.layout.row_bytes() as u64 + ENTRY)
    }

    /// Forgets every row of the table.
    pub fn clear(&self) {
        self.pool().clear();
    }

    /// The budget of the cache in bytes, shared by all tables; 0: off.
    pub fn budget(&self) -> u64 {
        self.cache.budget()
    }

    /// Whether somebody asked for that budget.
    pub fn budget_is_explicit(&self) -> bool {
        self.cache.is_explicit()
    }

    /// Inserts rows; what is there already stays as it is. Only rows of a batch that was proven whole may come here: a
    /// cached row is not checked again.
    ///
    /// # Panics
    /// If a row's parts have other widths than the layout's.
    pub fn insert(&self, rows: &[NewRow<'_>], stay: Stay) {
        rows.iter().for_each(|row| self.check(row));
        self.pool().insert(rows.len(), |at| rows[at], stay);
    }

    /// Inserts rows one by one, without a lock for each.
    pub fn inserter(&self, stay: Stay) -> Inserter<'_> {
        let row_bytes = self.layout.row_bytes();
        Inserter {
            table: self,
            stay,
            ids: Vec::with_capacity(LOCKED_INSERTS),
            bytes: Vec::with_capacity(LOCKED_INSERTS * row_bytes),
        }
    }

    fn check(&self, row: &NewRow<'_>) {
        let widths = self.layout.parts.iter().map(|part| part.width());
        assert!(
            widths.clone().chain([0, 0]).take(2).eq([row.values.len(), row.scales.len()]),
            "row {} has {} + {} bytes, the layout's parts {:?}",
            row.id,
            row.values.len(),
            row.scales.len(),
            widths.collect::<Vec<_>>()
        );
    }
}

/// Collects rows of one table and inserts them 64 at a time, and when dropped.
pub struct Inserter<'t> {
    table: &'t CachedTable,
    stay: Stay,
    ids: Vec<i64>,
    bytes: Vec<u8>,
}

impl Inserter<'_> {
    /// Adds a row; its bytes are copied.
    ///
    /// # Panics
    /// If its parts have other widths than the layout's.
    pub fn push(&mut self, row: NewRow<'_>) {
        self.table.check(&row);
        self.ids.push(row.id);
        self.bytes.extend_from_slice(row.values);
        self.bytes.extend_from_slice(row.scales);
        if self.ids.len() == LOCKED_INSERTS {
            self.flush();
        }
    }

    /// Inserts what was collected.
    pub fn flush(&mut self) {
        let width = self.table.layout.row_bytes();
        let split = self.table.layout.parts.first().map_or(0, |part| part.width());
        let row = |at: usize| {
            let (values, scales) = self.bytes[at * width..][..width].split_at(split);
            NewRow { id: self.ids[at], values, scales }
        };
        self.table.pool().insert(self.ids.len(), row, self.stay);
        self.ids.clear();
        self.bytes.clear();
    }
}

impl Drop for Inserter<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests;
