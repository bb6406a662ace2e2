//! The rows of one table in slabs, and which of them make room for others.
//!
//! Replacement follows S3-FIFO (Yang et al.: FIFO queues are all you need for cache eviction, SOSP 2023): new rows pass
//! through a short ring, a tenth of the slabs, and only those used again before its end move to the main slabs; a row
//! that comes back while its ghost is in the index goes there at once. One pass over any number of rows therefore
//! turns over a tenth of the memory. In the main slabs a hand goes round, counts down and takes the first row at 0.

use super::bucket::{AWAITED, Bucket, MOST_USED, SLOT_LIMIT};
use super::budget::Slab;
use super::index::{Index, Refusal};
use super::memory::{SLAB_BYTES, prefetch_row};
use std::collections::VecDeque;

/// Bytes of a row id at the end of a slab.
const ID_BYTES: usize = 5;
/// The ring holds one slab in this many.
const RING_SHARE: usize = 10;
/// Rows whose index entries are asked for ahead of the hand.
const AHEAD: usize = 8;
/// Rows the hand looks at before it takes one that is in use: bounds the time of one insertion.
const LOOKS: usize = 64;
/// A table wants a slab of another when one in this many of its insertions brought back what it had just evicted.
const RETURNED_SHARE: usize = 16;

/// What an insertion lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// A slab for rows.
    Rows,
    /// A slab for the index.
    Index,
}

/// Whether a row was inserted.
pub(super) enum Inserted {
    /// It is there.
    Yes,
    /// There was no place.
    No,
    /// Not before the pool got this.
    Needs(Need),
}

/// The rows of one table. Every row lies in one slot: number of its slab, then its place there in the low bits.
pub(super) struct Pool {
    width: usize,
    /// Width of the first part.
    split: usize,
    /// Slots of a slab; 0 if a row does not fit.
    slots: usize,
    shift: u32,
    slabs: Vec<Option<Slab<u8>>>,
    free_numbers: Vec<u32>,
    /// Slabs that new rows pass through, oldest first; the last one is filled up to `cursor`.
    ring: VecDeque<u32>,
    cursor: usize,
    main: Vec<u32>,
    /// Slab in `main` and place in it that the hand looks at next.
    hand: (usize, usize),
    pub(super) index: Index,
    /// Rows that came back since the ring's last slab was begun.
    returned: usize,
    wants_slab: bool,
}

impl Pool {
    pub(super) fn new(width: usize, split: usize) -> Pool {
        let slots = if width == 0 { 0 } else { SLAB_BYTES / (width + ID_BYTES) };
        Pool {
            width,
            split,
            slots,
            shift: slots.next_power_of_two().trailing_zeros(),
            slabs: Vec::new(),
            free_numbers: Vec::new(),
            ring: VecDeque::new(),
            cursor: 0,
            main: Vec::new(),
            hand: (0, 0),
            index: Index::new(),
            returned: 0,
            wants_slab: false,
        }
    }

    /// Slabs for rows.
    pub(super) fn row_slabs(&self) -> usize {
        self.ring.len() + self.main.len()
    }

    /// All slabs.
    pub(super) fn slabs(&self) -> usize {
        self.row_slabs() + self.index.slabs()
    }

    /// Whether evictions since the last call showed that more memory would help.
    pub(super) fn take_wish(&mut self) -> bool {
        std::mem::take(&mut self.wants_slab)
    }

    #[inline(always)]
    fn slot(&self, slab: u32, place: usize) -> u32 {
        slab << self.shift | place as u32
    }

    #[inline(always)]
    fn locate(&self, slot: u32) -> (usize, usize) {
        ((slot >> self.shift) as usize, slot as usize & ((1 << self.shift) - 1))
    }

    /// The bytes of a slot that the index names; such a slab is there.
    #[inline(always)]
    pub(super) fn row(&self, slot: u32) -> (&[u8], &[u8]) {
        let (slab, place) = self.locate(slot);
        let row = match &self.slabs[slab] {
            Some(slab) => &slab[place * self.width..][..self.width],
            None => unreachable!("the index names a slab that is gone"),
        };
        row.split_at(self.split)
    }

    /// Asks for the cache lines of a row.
    #[inline(always)]
    pub(super) fn prefetch(&self, (values, scales): (&[u8], &[u8])) {
        prefetch_row(values);
        prefetch_row(scales);
    }

    /// The row id in a slot, or `None` if it is free. Ids are stored plus 1: a new slab is all zero.
    fn id_at(&self, slot: u32) -> Option<u64> {
        let (slab, place) = self.locate(slot);
        let bytes = &self.slabs[slab].as_ref()?[self.slots * self.width + place * ID_BYTES..][..ID_BYTES];
        let mut id = [0; 8];
        id[..ID_BYTES].copy_from_slice(bytes);
        u64::from_le_bytes(id).checked_sub(1)
    }

    fn set_id(&mut self, slot: u32, id: Option<u64>) {
        let (slab, place) = self.locate(slot);
        let at = self.slots * self.width + place * ID_BYTES;
        let id = id.map_or(0, |id| id + 1).to_le_bytes();
        if let Some(slab) = &mut self.slabs[slab] {
            slab[at..][..ID_BYTES].copy_from_slice(&id[..ID_BYTES]);
        }
    }

    /// Adds the slab for rows that an insertion asked for: the ring goes on there. Returned if no more slots can be
    /// numbered.
    pub(super) fn adopt_rows(&mut self, slab: Slab<u8>) -> Option<Slab<u8>> {
        let number = match self.free_numbers.pop() {
            Some(number) => number,
            None if (self.slabs.len() as u64 + 1) << self.shift <= SLOT_LIMIT => {
                self.slabs.push(None);
                self.slabs.len() as u32 - 1
            }
            None => return Some(slab),
        };
        self.slabs[number as usize] = Some(slab);
        self.ring.push_back(number);
        self.cursor = 0;
        None
    }

    /// Asks for the lines that inserting `ids` will need.
    pub(super) fn announce(&self, ids: impl Iterator<Item = u64>) {
        if self.index.is_empty() {
            return;
        }
        let mut count = 0;
        for id in ids {
            self.index.prefetch(self.index.home(id));
            count += 1;
        }
        // Whom they will replace.
        if let Some(&slab) = self.ring.back() {
            for place in self.cursor..(self.cursor + count).min(self.slots) {
                if let Some(id) = self.id_at(self.slot(slab, place)) {
                    self.index.prefetch(self.index.home(id));
                }
            }
        }
    }

    /// Inserts a row of the pool's width; with `room`, memory is asked for before a row is evicted.
    pub(super) fn insert(&mut self, id: u64, values: &[u8], scales: &[u8], awaited: bool, room: bool) -> Inserted {
        if self.slots == 0 {
            return Inserted::No;
        }
        if self.index.is_empty() {
            return Inserted::Needs(Need::Index);
        }
        let home = self.index.home(id);
        if let Some((place, _)) = self.index.find(home, id) {
            if awaited {
                self.index.set_counter(place, AWAITED);
            }
            return Inserted::Yes;
        }
        match self.index.make_room(home) {
            Ok(()) => {}
            Err(Refusal::WantsSlab) if !room => {}
            Err(Refusal::WantsSlab) => return Inserted::Needs(Need::Index),
            Err(Refusal::Full) => return if room { Inserted::Needs(Need::Index) } else { Inserted::No },
        }
        let returns = self.index.has_ghost(self.index.home(id), id);
        self.returned += usize::from(returns);
        let slot = if returns && !self.main.is_empty() {
            self.main_slot()
        } else {
            match self.ring_slot(room) {
                Some(slot) => slot,
                None => return Inserted::Needs(Need::Rows),
            }
        };
        let (slab, place) = self.locate(slot);
        if let Some(slab) = &mut self.slabs[slab] {
            let row = &mut slab[place * self.width..][..self.width];
            row[..values.len()].copy_from_slice(values);
            row[values.len()..].copy_from_slice(scales);
        }
        self.set_id(slot, Some(id));
        self.index.put(self.index.home(id), id, slot, if awaited { AWAITED } else { 0 });
        Inserted::Yes
    }

    /// A free slot at the end of the ring, or `None` if a slab is needed.
    fn ring_slot(&mut self, room: bool) -> Option<u32> {
        if self.ring.is_empty() || self.cursor >= self.slots {
            if room || self.row_slabs() == 0 {
                return None;
            }
            self.turn_ring();
        }
        let slot = self.slot(*self.ring.back()?, self.cursor);
        self.cursor += 1;
        if let Some(id) = self.id_at(slot) {
            let home = self.index.home(id);
            if let Some((place, _)) = self.index.find(home, id) {
                match self.index.counter(place) {
                    counter if counter > 0 && !self.main.is_empty() => {
                        let to = self.main_slot();
                        self.copy(slot, to);
                        self.set_id(to, Some(id));
                        self.index.set_slot(place, to);
                        self.index.set_counter(place, counter_after(counter));
                    }
                    _ => self.index.remove(home, place, true),
                }
            }
        }
        Some(slot)
    }

    /// Begins the next slab of a ring that may not grow. There is a slab.
    fn turn_ring(&mut self) {
        let share = (self.row_slabs() / RING_SHARE).max(1);
        while self.ring.len() > share {
            // Rows that nobody used are there still, and the first that the hand takes.
            self.main.extend(self.ring.pop_front());
        }
        if self.ring.is_empty() {
            self.ring.extend(self.main.pop());
        }
        self.ring.rotate_left(1);
        self.cursor = 0;
        self.wants_slab |= self.returned * RETURNED_SHARE >= self.slots;
        self.returned = 0;
    }

    /// A free slot in the main slabs, of which there is one. The row that was there is gone.
    fn main_slot(&mut self) -> u32 {
        let mut looks = 0;
        loop {
            let (slab, place) = self.hand;
            // Slabs come and go.
            let slab = slab % self.main.len();
            let slot = self.slot(self.main[slab], place);
            self.hand = if place + 1 < self.slots { (slab, place + 1) } else { (slab + 1, 0) };
            if place + AHEAD < self.slots
                && let Some(id) = self.id_at(slot + AHEAD as u32)
            {
                self.index.prefetch(self.index.home(id));
            }
            let Some(id) = self.id_at(slot) else { return slot };
            let home = self.index.home(id);
            let Some((place, _)) = self.index.find(home, id) else { return slot };
            let counter = self.index.counter(place);
            looks += 1;
            if counter == 0 || looks >= LOOKS {
                self.set_id(slot, None);
                self.index.remove(home, place, true);
                return slot;
            }
            self.index.set_counter(place, counter_after(counter));
        }
    }

    fn copy(&mut self, from: u32, to: u32) {
        let ((from, at), (to, place)) = (self.locate(from), self.locate(to));
        let (at, place) = (at * self.width, place * self.width);
        if from == to {
            if let Some(slab) = &mut self.slabs[from] {
                slab.copy_within(at..at + self.width, place);
            }
        } else if let Ok([Some(from), Some(to)]) = self.slabs.get_disjoint_mut([from, to]) {
            to[place..][..self.width].copy_from_slice(&from[at..][..self.width]);
        }
    }

    /// Gives up one slab of rows, and what the index then has too much: to be dropped without the lock.
    pub(super) fn release(&mut self) -> (Option<Slab<u8>>, Vec<Slab<Bucket>>) {
        let share = (self.row_slabs() / RING_SHARE).max(1);
        let number = if self.ring.len() > share || self.main.is_empty() {
            if self.ring.len() == 1 {
                self.cursor = 0;
            }
            self.ring.pop_front()
        } else {
            let slab = self.hand.0 % self.main.len();
            self.hand = (slab, 0);
            Some(self.main.swap_remove(slab))
        };
        let Some(number) = number else { return (None, self.index.reset(0)) };
        for place in 0..self.slots {
            if place + AHEAD < self.slots
                && let Some(id) = self.id_at(self.slot(number, place + AHEAD))
            {
                self.index.prefetch(self.index.home(id));
            }
            if let Some(id) = self.id_at(self.slot(number, place)) {
                let home = self.index.home(id);
                if let Some((place, _)) = self.index.find(home, id) {
                    self.index.remove(home, place, false);
                }
            }
        }
        let slab = self.slabs[number as usize].take();
        self.free_numbers.push(number);
        let wanted = if self.row_slabs() == 0 { 0 } else { Index::slabs_for(self.index.rows()).max(1) };
        let freed = if wanted * 2 <= self.index.slabs() { self.rebuild_index(wanted) } else { Vec::new() };
        (slab, freed)
    }

    /// Enters all rows anew into an index of fewer slabs. Only a lowered budget leads here.
    fn rebuild_index(&mut self, slabs: usize) -> Vec<Slab<Bucket>> {
        let freed = self.index.reset(slabs);
        for number in 0..self.slabs.len() as u32 {
            for place in 0..self.slots {
                let slot = self.slot(number, place);
                let Some(id) = self.id_at(slot) else { continue };
                match self.index.make_room(self.index.home(id)) {
                    Ok(()) | Err(Refusal::WantsSlab) => self.index.put(self.index.home(id), id, slot, 1),
                    Err(Refusal::Full) => self.set_id(slot, None),
                }
            }
        }
        freed
    }

    /// Gives up everything.
    pub(super) fn clear(&mut self) {
        *self = Pool::new(self.width, self.split);
    }
}

/// A counter one round later; below the levels of a row that waits for its first use there is only 0.
fn counter_after(counter: u8) -> u8 {
    match counter - 1 {
        MOST_USED => 0,
        counter => counter,
    }
}
