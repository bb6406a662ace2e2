//! Where the rows of one table lie in its slabs: an index from row id to slot, with a use counter for each row.
//!
//! Buckets are cache lines of 7 entries; a full one overflows into the next. Buckets form segments of 32 KiB, and a
//! segment that gets full is split in two by one more bit of the hash (extendible hashing: Fagin et al., 1979), so the
//! index grows by moving some 2,700 entries at a time and never as a whole. The counters are in the bucket, so a
//! hit touches no further line. A row that leaves may leave its entry behind as a ghost until another row needs the
//! place: a row that comes back while its ghost is there was evicted too early.

use super::bucket::{Bucket, EMPTY, FIRST_SLOT, GHOST, LANES, MOST_USED};
use super::budget::Slab;
use super::memory::{SLAB_BYTES, prefetch};

/// Buckets of a segment.
const BUCKETS: usize = 512;
/// Segments of a slab.
const SEGMENTS: usize = SLAB_BYTES / 64 / BUCKETS;
/// Entries of a segment.
const ENTRIES: usize = BUCKETS * LANES;
/// Entries at which a segment is split: beyond, more than one lookup in ten would need a second bucket.
const SPLIT_AT: u32 = (ENTRIES * 3 / 4) as u32;
/// Entries at which a segment that cannot be split refuses more.
const FULL_AT: u32 = (ENTRIES * 19 / 20) as u32;

/// A bucket: segment and number within it. What a row id hashes to is its home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Home(u32);

impl Home {
    #[inline(always)]
    fn new(segment: u32, hash: u64) -> Home {
        Home(segment * BUCKETS as u32 + (hash as u32 & (BUCKETS - 1) as u32))
    }

    #[inline(always)]
    fn next(self) -> Home {
        let bucket = self.0 & (BUCKETS - 1) as u32;
        Home(self.0 - bucket + (bucket + 1) % BUCKETS as u32)
    }

    fn segment(self) -> usize {
        self.0 as usize / BUCKETS
    }
}

/// Where an entry is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    bucket: Home,
    lane: usize,
}

#[derive(Clone, Copy, Default)]
struct Segment {
    /// Live entries.
    rows: u32,
    /// First bits of the hash that all its ids share: how many, and which.
    depth: u32,
    prefix: u32,
}

/// Why a row has no place.
pub(super) enum Refusal {
    /// One more slab for the index would make room.
    WantsSlab,
    /// A split has to come first.
    Full,
}

/// The index of one table.
pub(super) struct Index {
    slabs: Vec<Slab<Bucket>>,
    /// Segment for each value of the first `depth` bits of a hash; empty without a slab.
    directory: Vec<u32>,
    depth: u32,
    segments: Vec<Segment>,
    /// Segments of the slabs that are in use; those behind are free.
    used: usize,
    rows: u64,
    /// A segment while it is split.
    scratch: Vec<Bucket>,
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): row ids of
/// one token share differences, so every bit has to count.
#[inline(always)]
fn hash(id: u64) -> u64 {
    let id = (id ^ id >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let id = (id ^ id >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    id ^ id >> 31
}

impl Index {
    pub(super) fn new() -> Index {
        Index {
            slabs: Vec::new(),
            directory: Vec::new(),
            depth: 0,
            segments: Vec::new(),
            used: 0,
            rows: 0,
            scratch: Vec::new(),
        }
    }

    /// Whether there is no memory for any row.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.directory.is_empty()
    }

    /// Live rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn slabs(&self) -> usize {
        self.slabs.len()
    }

    /// Adds memory.
    pub(super) fn adopt(&mut self, slab: Slab<Bucket>) {
        self.slabs.push(slab);
        self.segments.resize(self.slabs.len() * SEGMENTS, Segment::default());
        if self.directory.is_empty() {
            self.directory.push(0);
            self.used = 1;
        }
    }

    /// Slabs that hold `rows` rows at a fill that leaves room.
    pub(super) fn slabs_for(rows: u64) -> usize {
        // Segments are split in step, so their fill is between half and all of SPLIT_AT.
        rows.div_ceil(u64::from(SPLIT_AT) * SEGMENTS as u64 / 2) as usize
    }

    /// Forgets everything and keeps `slabs` slabs, already divided into as many segments as a power of two allows; the
    /// others are returned.
    pub(super) fn reset(&mut self, slabs: usize) -> Vec<Slab<Bucket>> {
        let freed = self.slabs.split_off(slabs.min(self.slabs.len()));
        self.slabs.iter_mut().for_each(|slab| slab.fill_with(Bucket::empty));
        self.rows = 0;
        self.directory.clear();
        self.depth = (self.slabs.len() * SEGMENTS).checked_ilog2().unwrap_or(0);
        self.used = if self.slabs.is_empty() { 0 } else { 1 << self.depth };
        self.directory.extend(0..self.used as u32);
        self.segments = (0..self.used as u32).map(|prefix| Segment { rows: 0, depth: self.depth, prefix }).collect();
        self.segments.resize(self.slabs.len() * SEGMENTS, Segment::default());
        if self.slabs.is_empty() {
            self.scratch = Vec::new();
        }
        freed
    }

    /// The bucket where the search for `id` begins. The index has a slab.
    #[inline(always)]
    pub(super) fn home(&self, id: u64) -> Home {
        let hash = hash(id);
        // In two steps: at depth 0 all 64 bits go.
        Home::new(self.directory[(hash >> 1 >> (63 - self.depth)) as usize], hash)
    }

    #[inline(always)]
    fn bucket(&self, home: Home) -> &Bucket {
        let at = home.0 as usize;
        &self.slabs[at / (SEGMENTS * BUCKETS)][at % (SEGMENTS * BUCKETS)]
    }

    fn bucket_mut(&mut self, home: Home) -> &mut Bucket {
        let at = home.0 as usize;
        &mut self.slabs[at / (SEGMENTS * BUCKETS)][at % (SEGMENTS * BUCKETS)]
    }

    /// Asks for the cache line of a bucket.
    #[inline(always)]
    pub(super) fn prefetch(&self, home: Home) {
        prefetch(self.bucket(home));
    }

    /// The entry of `id`, live or ghost.
    #[inline(always)]
    fn entry(&self, home: Home, id: u64) -> Option<Place> {
        let mut bucket = home;
        loop {
            let entries = self.bucket(bucket);
            if let Some(lane) = entries.lane_of(id) {
                return Some(Place { bucket, lane });
            }
            if entries.overflow() == 0 {
                return None;
            }
            bucket = bucket.next();
            // Once around: every bucket of the segment was passed by some entry.
            if bucket == home {
                return None;
            }
        }
    }

    /// Place and slot of a row.
    #[inline(always)]
    pub(super) fn find(&self, home: Home, id: u64) -> Option<(Place, u32)> {
        let place = self.entry(home, id)?;
        let slot = self.bucket(place.bucket).slots[place.lane];
        (slot >= FIRST_SLOT).then(|| (place, slot - FIRST_SLOT))
    }

    /// Slot of a row that is used now, and counted.
    #[inline(always)]
    pub(super) fn find_used(&self, home: Home, id: u64) -> Option<u32> {
        let (place, slot) = self.find(home, id)?;
        let bucket = self.bucket(place.bucket);
        match bucket.counter(place.lane) {
            MOST_USED => {}
            awaited if awaited > MOST_USED => bucket.set_counter(place.lane, 1),
            counter => bucket.set_counter(place.lane, counter + 1),
        }
        Some(slot)
    }

    /// Whether `id` was evicted lately.
    pub(super) fn has_ghost(&self, home: Home, id: u64) -> bool {
        let bucket = self.bucket(home);
        bucket.lane_of(id).is_some_and(|lane| bucket.slots[lane] == GHOST)
    }

    pub(super) fn counter(&self, place: Place) -> u8 {
        self.bucket(place.bucket).counter(place.lane)
    }

    pub(super) fn set_counter(&self, place: Place, counter: u8) {
        self.bucket(place.bucket).set_counter(place.lane, counter);
    }

    /// Moves a row to another slot.
    pub(super) fn set_slot(&mut self, place: Place, slot: u32) {
        self.bucket_mut(place.bucket).slots[place.lane] = slot + FIRST_SLOT;
    }

    /// Removes a row; with `ghost`, so that its return is noticed.
    pub(super) fn remove(&mut self, home: Home, place: Place, ghost: bool) {
        self.rows -= 1;
        self.segments[home.segment()].rows -= 1;
        // A ghost in a later bucket would make every search pass through.
        let mark = if ghost && place.bucket == home { GHOST } else { EMPTY };
        self.bucket_mut(place.bucket).slots[place.lane] = mark;
        let mut bucket = home;
        while bucket != place.bucket {
            self.bucket_mut(bucket).add_overflow(-1);
            bucket = bucket.next();
        }
    }

    /// Makes sure that a row of `home` can be put; its home may be another one afterwards.
    pub(super) fn make_room(&mut self, home: Home) -> Result<(), Refusal> {
        let segment = home.segment();
        if self.segments[segment].rows < SPLIT_AT {
            return Ok(());
        }
        if self.used < self.segments.len() {
            self.split(segment);
            return Ok(());
        }
        Err(if self.segments[segment].rows < FULL_AT { Refusal::WantsSlab } else { Refusal::Full })
    }

    /// Enters a row that has no live entry; its segment is not full.
    pub(super) fn put(&mut self, home: Home, id: u64, slot: u32, counter: u8) {
        self.rows += 1;
        self.segments[home.segment()].rows += 1;
        self.place(home, id, slot + FIRST_SLOT, counter);
    }

    fn place(&mut self, home: Home, id: u64, stored: u32, counter: u8) {
        let mut bucket = home;
        loop {
            let entries = self.bucket_mut(bucket);
            // Its own ghost, or a free place, or another's ghost: which one goes by the id, so that none is immortal.
            let free = entries.lane_of(id).or_else(|| entries.slots.iter().position(|&slot| slot == EMPTY));
            let lane = free.or_else(|| {
                let first = id as usize % LANES;
                (first..first + LANES).map(|lane| lane % LANES).find(|&lane| entries.slots[lane] == GHOST)
            });
            if let Some(lane) = lane {
                entries.put(lane, id, stored, counter);
                return;
            }
            entries.add_overflow(1);
            bucket = bucket.next();
        }
    }

    /// Divides a segment by one more bit of the hash. There is a free segment. Ghosts are forgotten.
    fn split(&mut self, segment: usize) {
        if self.segments[segment].depth == self.depth {
            self.directory = self.directory.iter().flat_map(|&segment| [segment, segment]).collect();
            self.depth += 1;
        }
        let added = self.used;
        self.used += 1;
        let Segment { depth, prefix, .. } = self.segments[segment];
        let (depth, prefix) = (depth + 1, prefix << 1);
        self.segments[segment] = Segment { rows: 0, depth, prefix };
        self.segments[added] = Segment { rows: 0, depth, prefix: prefix | 1 };
        let run = 1usize << (self.depth - depth);
        self.directory[(prefix | 1) as usize * run..][..run].fill(added as u32);

        let at = segment * BUCKETS;
        let whole = &mut self.slabs[at / (SEGMENTS * BUCKETS)][at % (SEGMENTS * BUCKETS)..][..BUCKETS];
        self.scratch.resize_with(BUCKETS, Bucket::empty);
        whole.swap_with_slice(&mut self.scratch);
        whole.fill_with(Bucket::empty);
        let scratch = std::mem::take(&mut self.scratch);
        for bucket in &scratch {
            for lane in (0..LANES).filter(|&lane| bucket.slots[lane] >= FIRST_SLOT) {
                let id = bucket.id(lane);
                let home = self.home(id);
                self.segments[home.segment()].rows += 1;
                self.place(home, id, bucket.slots[lane], bucket.counter(lane));
            }
        }
        self.scratch = scratch;
    }
}
