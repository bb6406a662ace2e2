//! The cached rows of one table: lookups under shared locks, insertions under short exclusive ones.

use super::bucket::ID_LIMIT;
use super::budget::Slab;
use super::index::Home;
use super::pool::{Inserted, Need, Pool};
use super::state::State;
use crate::read::{Row, RowSink};
use crate::source::Layout;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

/// Rows that are looked up together. 16 cost some 15 % more when the rows are copied to a large output: their prefetches
/// fill the core's line buffers, and the copies wait behind them.
const GROUP: usize = 8;
/// Rows that are looked up under one lock, some 15 us.
const LOCKED_LOOKUPS: usize = 256;
/// Rows that are inserted under one lock, some 10 us.
pub(super) const LOCKED_INSERTS: usize = 64;

/// Number of a table in its process's cache: the same for all that opened the same unchanged files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableKey(pub u32);

/// A row to insert.
#[derive(Debug, Clone, Copy)]
pub struct NewRow<'a> {
    /// Row id.
    pub id: i64,
    /// The first part: the whole row, or its values.
    pub values: &'a [u8],
    /// The second part: block scales; empty for tables of one part.
    pub scales: &'a [u8],
}

/// What is known about the use of inserted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// They were read for somebody just now.
    Normal,
    /// They are prefetched: they stay for some rounds until their first use, and count as used once from then on.
    UntilUsed,
}

/// What one table holds and did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableUsage {
    /// The table.
    pub key: TableKey,
    /// Bytes of one row.
    pub row_bytes: usize,
    /// Memory held, index included.
    pub bytes: u64,
    /// Rows held.
    pub rows: u64,
    /// Rows found by lookups.
    pub hits: u64,
    /// Rows not found.
    pub misses: u64,
}

/// The cache of one table in one process.
pub(super) struct TablePool {
    pub(super) key: TableKey,
    pub(super) layout: Layout,
    state: Arc<State>,
    pool: RwLock<Pool>,
    /// Held by whoever inserts. At most one thread then waits for the exclusive lock, and readers get their turn
    /// between two batches; and no two threads bring a slab where one was missing.
    inserting: Mutex<()>,
    slabs: AtomicU64,
    rows: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl TablePool {
    pub(super) fn new(key: TableKey, layout: &Layout, state: Arc<State>) -> TablePool {
        let first_part = layout.parts.first().map_or(0, |part| part.width());
        TablePool {
            key,
            layout: layout.clone(),
            state,
            pool: RwLock::new(Pool::new(layout.row_bytes(), first_part)),
            inserting: Mutex::new(()),
            slabs: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    pub(super) fn slabs(&self) -> u64 {
        self.slabs.load(Ordering::Relaxed)
    }

    pub(super) fn usage(&self) -> TableUsage {
        TableUsage {
            key: self.key,
            row_bytes: self.layout.row_bytes(),
            bytes: self.slabs() * super::memory::SLAB_BYTES as u64,
            rows: self.rows.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// Ids that can be in the cache.
    fn id_limit(&self) -> u64 {
        self.layout.rows.min(ID_LIMIT)
    }

    pub(super) fn lookup(&self, ids: &[i64], sink: &mut dyn RowSink, misses: &mut Vec<usize>) -> usize {
        let missed_before = misses.len();
        if self.rows.load(Ordering::Relaxed) == 0 {
            misses.extend(0..ids.len());
        } else {
            for (chunk, first) in ids.chunks(LOCKED_LOOKUPS).zip((0..).step_by(LOCKED_LOOKUPS)) {
                // After a panic in the middle of an insertion nothing in there is trusted; the next one clears it.
                match self.pool.read() {
                    Ok(pool) => lookup_locked(&pool, chunk, first, sink, misses),
                    Err(_) => misses.extend(first..first + chunk.len()),
                }
            }
        }
        let missed = misses.len() - missed_before;
        let hits = ids.len() - missed;
        self.hits.fetch_add(hits as u64, Ordering::Relaxed);
        self.misses.fetch_add(missed as u64, Ordering::Relaxed);
        self.state.count(hits as u64, missed as u64);
        hits
    }

    pub(super) fn find_missing(&self, ids: &[i64], missing: &mut Vec<usize>) {
        for (chunk, first) in ids.chunks(LOCKED_LOOKUPS).zip((0..).step_by(LOCKED_LOOKUPS)) {
            match self.pool.read() {
                Ok(pool) => missing.extend((first..).zip(chunk).filter_map(|(position, &id)| {
                    let known =
                        !pool.index.is_empty() && pool.index.find(pool.index.home(id as u64), id as u64).is_some();
                    (!known).then_some(position)
                })),
                Err(_) => missing.extend(first..first + chunk.len()),
            }
        }
    }

    pub(super) fn clear(&self) {
        let mut pool = self.exclusive();
        pool.clear();
        self.publish(&pool);
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Pool> {
        self.pool.write().unwrap_or_else(|poisoned| {
            let mut pool = poisoned.into_inner();
            pool.clear();
            self.pool.clear_poison();
            pool
        })
    }

    fn publish(&self, pool: &Pool) {
        self.slabs.store(pool.slabs() as u64, Ordering::Relaxed);
        self.rows.store(pool.index.rows(), Ordering::Relaxed);
    }

    /// Inserts `count` rows as `row` gives them; rows that are there already, and rows without a place, are skipped.
    pub(super) fn insert<'r>(&self, count: usize, row: impl Fn(usize) -> NewRow<'r>, stay: Stay) {
        let budget = &self.state.budget;
        for first in (0..count).step_by(LOCKED_INSERTS) {
            if budget.bytes() == 0 {
                return;
            }
            let end = count.min(first + LOCKED_INSERTS);
            let _turn = self.inserting.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut at, mut room, mut wish) = (first, true, false);
            while at < end {
                let mut needs = None;
                {
                    let mut pool = self.exclusive();
                    pool.announce((at..end).map(|at| row(at).id as u64).filter(|&id| id < self.id_limit()));
                    while at < end {
                        let NewRow { id, values, scales } = row(at);
                        if (id as u64) < self.id_limit() {
                            let room = room && budget.has_room();
                            match pool.insert(id as u64, values, scales, stay == Stay::UntilUsed, room) {
                                Inserted::Yes | Inserted::No => {}
                                Inserted::Needs(need) => {
                                    needs = Some(need);
                                    break;
                                }
                            }
                        }
                        at += 1;
                    }
                    wish |= pool.take_wish();
                    self.publish(&pool);
                }
                // Memory is mapped and zeroed while readers go on.
                let Some(need) = needs else { break };
                if self.bring(need) {
                    continue;
                }
                if !std::mem::take(&mut room) {
                    // Nothing of its own to evict, and nobody to take from.
                    if !self.state.take_from_largest(Some(self)) || !self.bring(need) {
                        return;
                    }
                }
            }
            if wish {
                self.state.rebalance(self);
            }
            self.state.shrink();
        }
    }

    /// Adds a slab, if the budget allows it.
    fn bring(&self, need: Need) -> bool {
        let surplus = match need {
            Need::Index => match Slab::new(&self.state.budget) {
                Some(slab) => {
                    let mut pool = self.exclusive();
                    pool.index.adopt(slab);
                    self.publish(&pool);
                    None
                }
                None => return false,
            },
            Need::Rows => match Slab::new(&self.state.budget) {
                Some(slab) => {
                    let mut pool = self.exclusive();
                    let surplus = pool.adopt_rows(slab);
                    self.publish(&pool);
                    surplus
                }
                None => return false,
            },
        };
        surplus.is_none()
    }

    /// Frees one slab of rows and what the index has too much; false if there was none.
    pub(super) fn release(&self) -> bool {
        let freed = {
            let mut pool = self.exclusive();
            let freed = pool.release();
            self.publish(&pool);
            freed
        };
        freed.0.is_some() || !freed.1.is_empty()
    }
}

/// Looks up at most `LOCKED_LOOKUPS` ids: the index lines of a group are asked for while the group before is probed,
/// its rows while the one before that goes to the sink.
fn lookup_locked(pool: &Pool, ids: &[i64], first: usize, sink: &mut dyn RowSink, misses: &mut Vec<usize>) {
    if pool.index.is_empty() {
        misses.extend(first..first + ids.len());
        return;
    }
    let mut homes = [[Home::default(); GROUP]; 2];
    let announce = |homes: &mut [Home; GROUP], ids: &[i64]| {
        for (home, &id) in homes.iter_mut().zip(ids) {
            *home = pool.index.home(id as u64);
            pool.index.prefetch(*home);
        }
    };
    const NONE: Row<'_> = Row { position: 0, values: &[], scales: &[] };
    let mut found = [[NONE; GROUP]; 2];
    let mut counts = [0; 2];
    let groups = ids.len().div_ceil(GROUP);
    announce(&mut homes[0], &ids[..ids.len().min(GROUP)]);
    for group in 0..groups {
        let begin = group * GROUP;
        let members = &ids[begin..ids.len().min(begin + GROUP)];
        let (now, other) = (group % 2, (group + 1) % 2);
        if let Some(next) = ids.get(begin + GROUP..) {
            announce(&mut homes[other], &next[..next.len().min(GROUP)]);
        }
        let mut count = 0;
        for ((&id, &home), position) in members.iter().zip(&homes[now]).zip(first + begin..) {
            match pool.index.find_used(home, id as u64) {
                Some(slot) => {
                    let (values, scales) = pool.row(slot);
                    pool.prefetch((values, scales));
                    found[now][count] = Row { position, values, scales };
                    count += 1;
                }
                None => misses.push(position),
            }
        }
        counts[now] = count;
        if counts[other] > 0 {
            sink.take(&found[other][..counts[other]]);
            counts[other] = 0;
        }
    }
    let last = (groups + 1) % 2;
    if counts[last] > 0 {
        sink.take(&found[last][..counts[last]]);
    }
}
