//! Counting keys: a table of the distinct ones in memory, sorted runs of them on the disk.

use super::fields::{add_to, number, put};
use crate::sort::{Fold, Shape, Sorted, Sorter};
use crate::storage::StorageError;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// A place that is free.
const FREE: u64 = u64::MAX;
/// Places for each key that is held: half of them stay free, so that searches are short.
const PLACES: usize = 2;

/// Distinct keys, each with the position where it appeared first and how often it did: records of the key, the position
/// and the count.
pub(super) struct Tally {
    key: usize,
    sorter: Sorter,
    /// Open addressing: the upper half of a hash and the number of a held record.
    places: Vec<u64>,
    record: Vec<u8>,
}

impl Tally {
    /// For keys of `key` bytes, compared as byte strings.
    pub(super) fn new(directory: &Path, key: usize, memory: u64) -> Tally {
        let shape = Shape { record: key + 16, key };
        let fold: Fold = |record, other| {
            let at = record.len() - 16;
            if other[at..at + 8] < record[at..at + 8] {
                record[at..at + 8].copy_from_slice(&other[at..at + 8]);
            }
            add_to(&mut record[at + 8..], number(&other[at + 8..]));
        };
        let sorter = Sorter::new(directory, shape, Some(fold), memory, PLACES * size_of::<u64>());
        Tally { key, sorter, places: Vec::new(), record: vec![0; key + 16] }
    }

    /// Counts `key`, which appears at `position`; positions ascend.
    pub(super) fn add(&mut self, key: &[u8], position: u64) -> Result<(), StorageError> {
        let hash = xxh3_64(key);
        if self.sorter.is_full() {
            self.sorter.spill()?;
            self.places.fill(FREE);
        } else if PLACES * self.sorter.held() >= self.places.len() {
            self.grow();
        }
        let mut place = home(hash, self.places.len());
        while self.places[place] != FREE {
            let entry = self.places[place];
            if entry >> 32 == hash >> 32 {
                let record = self.sorter.record_mut(entry as u32 as usize);
                if record[..self.key] == *key {
                    add_to(&mut record[self.key + 8..], 1);
                    return Ok(());
                }
            }
            place = if place + 1 == self.places.len() { 0 } else { place + 1 };
        }
        self.places[place] = hash >> 32 << 32 | self.sorter.held() as u64;
        self.record[..self.key].copy_from_slice(key);
        put(&mut self.record[self.key..], position);
        put(&mut self.record[self.key + 8..], 1);
        self.sorter.push(&self.record)
    }

    /// Makes room for twice as many keys, and not for more than may be held.
    fn grow(&mut self) {
        let places = (2 * self.places.len()).max(1 << 12).min(PLACES * self.sorter.capacity());
        self.places.clear();
        self.places.resize(places, FREE);
        for number in 0..self.sorter.held() {
            let hash = xxh3_64(&self.sorter.record(number)[..self.key]);
            let mut place = home(hash, places);
            while self.places[place] != FREE {
                place = if place + 1 == places { 0 } else { place + 1 };
            }
            self.places[place] = hash >> 32 << 32 | number as u64;
        }
    }

    /// The distinct keys in order, merged in `memory` bytes.
    pub(super) fn finish(self, memory: u64) -> Result<Sorted, StorageError> {
        drop(self.places);
        self.sorter.finish(memory)
    }
}

/// Where the search for a hash begins. Its upper half is stored beside, so the lower one decides.
fn home(hash: u64, places: usize) -> usize {
    (((hash & 0xFFFF_FFFF) * places as u64) >> 32) as usize
}
