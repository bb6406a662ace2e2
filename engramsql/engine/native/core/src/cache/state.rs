//! One process's cache: the tables it knows, and whose memory goes when it gets scarce.

use super::budget::Budget;
use super::table::{TableKey, TablePool, TableUsage};
use crate::source::Layout;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What the cache holds and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheUsage {
    /// The budget in bytes; 0: off.
    pub budget: u64,
    /// Whether somebody asked for that budget.
    pub explicit: bool,
    /// Memory held, indexes included.
    pub bytes: u64,
    /// Rows held.
    pub rows: u64,
    /// Rows found by lookups, closed tables included.
    pub hits: u64,
    /// Rows not found.
    pub misses: u64,
    /// The open tables, by key.
    pub tables: Vec<TableUsage>,
}

pub(super) struct State {
    pub(super) budget: Arc<Budget>,
    tables: Mutex<Vec<Weak<TablePool>>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl State {
    pub(super) fn new(bytes: u64, explicit: bool) -> Arc<State> {
        Arc::new(State {
            budget: Arc::new(Budget::new(bytes, explicit)),
            tables: Mutex::new(Vec::new()),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    pub(super) fn count(&self, hits: u64, misses: u64) {
        self.hits.fetch_add(hits, Ordering::Relaxed);
        self.misses.fetch_add(misses, Ordering::Relaxed);
    }

    fn registry(&self) -> MutexGuard<'_, Vec<Weak<TablePool>>> {
        // A list of weak pointers is whole at every moment.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tables(&self) -> Vec<Arc<TablePool>> {
        self.registry().iter().filter_map(Weak::upgrade).collect()
    }

    /// The pool of the table with this layout: the one there is, or a new one under the lowest free key.
    pub(super) fn register(self: &Arc<State>, layout: &Layout) -> Arc<TablePool> {
        let mut registry = self.registry();
        registry.retain(|table| table.strong_count() > 0);
        let known: Vec<Arc<TablePool>> = registry.iter().filter_map(Weak::upgrade).collect();
        if let Some(table) = known.iter().find(|table| table.layout == *layout) {
            return table.clone();
        }
        let free = (0..).find(|&key| known.iter().all(|table| table.key.0 != key)).unwrap_or(u32::MAX);
        let table = Arc::new(TablePool::new(TableKey(free), layout, self.clone()));
        registry.push(Arc::downgrade(&table));
        table
    }

    /// Takes a slab from the table that holds most, `except` aside; false if nobody holds any.
    pub(super) fn take_from_largest(&self, except: Option<&TablePool>) -> bool {
        let others = self.tables().into_iter().filter(|table| except.is_none_or(|own| !std::ptr::eq(&**table, own)));
        others.max_by_key(|table| table.slabs()).is_some_and(|largest| largest.slabs() > 0 && largest.release())
    }

    /// Gives a table that evicts what it needs a slab of one that holds more than twice as much. A scan brings nothing
    /// back, so it never takes from others.
    pub(super) fn rebalance(&self, table: &TablePool) {
        let largest = self.tables().into_iter().max_by_key(|table| table.slabs());
        if let Some(largest) = largest.filter(|largest| largest.slabs() > 2 * table.slabs()) {
            // The slab is free now; the next insertion finds room.
            largest.release();
        }
    }

    pub(super) fn set_budget(&self, bytes: u64, explicit: bool) {
        self.budget.set(bytes, explicit);
        self.shrink();
    }

    /// Frees slabs until the budget is kept.
    pub(super) fn shrink(&self) {
        while self.budget.is_exceeded() {
            if !self.take_from_largest(None) {
                // A slab on its way to a table, or from one: it gets there.
                std::thread::yield_now();
            }
        }
    }

    pub(super) fn usage(&self) -> CacheUsage {
        let mut tables: Vec<TableUsage> = self.tables().iter().map(|table| table.usage()).collect();
        tables.sort_by_key(|table| table.key);
        CacheUsage {
            budget: self.budget.bytes(),
            explicit: self.budget.is_explicit(),
            bytes: self.budget.held_bytes(),
            rows: tables.iter().map(|table| table.rows).sum(),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            tables,
        }
    }
}
