mod replacement;
mod threads;

use super::memory::SLAB_BYTES;
use super::*;
use crate::read::Row;
use crate::source::{Extent, Part};
use std::collections::HashSet;

const SLAB: u64 = SLAB_BYTES as u64;

/// A table of `rows` rows; no file is opened.
fn layout(widths: &[usize], rows: u64) -> Layout {
    let part = |&width: &usize| Part::new(width, vec![Extent { shard: 0, file: 0, first_row: 0, rows, offset: 0 }]);
    Layout { files: Vec::new(), rows, parts: widths.iter().map(part).collect() }
}

/// The bytes of row `id` in its version `version`.
fn content(id: i64, version: u8, width: usize) -> Vec<u8> {
    let word = (id as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..width).map(|column| word[column % 8] ^ (column as u8) ^ version).collect()
}

fn insert(table: &CachedTable, widths: &[usize], ids: &[i64], version: u8, stay: Stay) {
    let bytes: Vec<Vec<u8>> = ids.iter().map(|&id| content(id, version, widths.iter().sum())).collect();
    let rows: Vec<NewRow<'_>> = ids
        .iter()
        .zip(&bytes)
        .map(|(&id, bytes)| {
            let (values, scales) = bytes.split_at(widths[0]);
            NewRow { id, values, scales }
        })
        .collect();
    table.insert(&rows, stay);
}

/// Looks `ids` up, checks that every position comes once and every hit has the right bytes, and returns the missed ids.
fn missed(table: &CachedTable, widths: &[usize], ids: &[i64], version: u8) -> Vec<i64> {
    let (mut seen, mut misses) = (vec![false; ids.len()], Vec::new());
    let mut sink = |row: Row<'_>| {
        assert!(!std::mem::replace(&mut seen[row.position], true), "position {} came twice", row.position);
        assert_eq!(row.values.len(), widths[0]);
        let expected = content(ids[row.position], version, widths.iter().sum());
        assert!([row.values, row.scales].concat() == expected, "row {} has other bytes", ids[row.position]);
    };
    let hits = table.lookup(ids, &mut sink, &mut misses);
    assert_eq!(hits + misses.len(), ids.len());
    assert!(misses.iter().all(|&position| !seen[position]));
    assert_eq!(seen.iter().filter(|&&seen| seen).count(), hits);
    misses.into_iter().map(|position| ids[position]).collect()
}

/// Looks up, inserts what was missed, returns the number of hits.
fn access(table: &CachedTable, widths: &[usize], ids: &[i64]) -> usize {
    let missed = missed(table, widths, ids, 0);
    insert(table, widths, &missed, 0, Stay::Normal);
    ids.len() - missed.len()
}

/// A generator of fixed sequences (xorshift64*: Vigna, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

#[test]
fn a_hit_is_always_the_inserted_row() {
    // Narrow and wide, one part and two, fitting a slab 2 to 300,000 times; memory for a fraction of the rows.
    for (widths, rows, slabs) in
        [(&[160][..], 60_000, 4), (&[256, 8], 40_000, 5), (&[1], 900_000, 3), (&[700_000, 50_000], 40, 9)]
    {
        let cache = RowCache::new(slabs * SLAB);
        let table = cache.table(&layout(widths, rows));
        let mut random = Random(7);
        let mut inserted: HashSet<i64> = HashSet::new();
        let mut hits = 0;
        for round in 0..120 {
            let few = (rows as usize / 25).clamp(4, 3000) as u64;
            // Clustered, so that rows come again.
            let base = random.below(rows);
            let count = 1 + random.below(few);
            let ids: Vec<i64> = (0..count).map(|_| ((base + random.below(few)) % rows) as i64).collect();
            if round % 3 == 0 {
                let missed = missed(&table, widths, &ids, 0);
                // What never went in never comes out.
                assert!(ids.iter().all(|id| inserted.contains(id) || missed.contains(id)));
                hits += ids.len() - missed.len();
            }
            let stay = if round % 5 == 0 { Stay::UntilUsed } else { Stay::Normal };
            insert(&table, widths, &ids, 0, stay);
            inserted.extend(&ids);
            let usage = cache.usage();
            assert!(usage.bytes <= slabs * SLAB && usage.rows == table.usage().rows);
        }
        assert!(hits > 0, "no hit with rows of {widths:?}");
        assert_eq!(cache.usage().hits as usize, hits);
    }
}

#[test]
fn what_fits_stays() {
    let cache = RowCache::new(64 * SLAB);
    let table = cache.table(&layout(&[160], 1 << 40));
    // Ids on both sides of 32 bits, and one that is beyond what is kept.
    let ids: Vec<i64> = (0..200_000).map(|n| n * 600_011).collect();
    let mut inserter = table.inserter(Stay::Normal);
    for &id in ids.iter().chain([&(1 << 39), &-1, &(1 << 41), &5]) {
        inserter.push(NewRow { id, values: &content(id, 0, 160), scales: &[] });
    }
    drop(inserter);
    assert!(missed(&table, &[160], &ids, 0).is_empty());
    assert_eq!(missed(&table, &[160], &[1 << 39, -1, 5, 1 << 41, i64::MIN], 0), [1 << 39, -1, 1 << 41, i64::MIN]);
    assert_eq!(table.usage().rows, 200_001);
    // As many slabs as that takes: 16 for rows, 2 for the index.
    assert_eq!(cache.usage().bytes, 18 * SLAB);
    // Duplicates change nothing.
    insert(&table, &[160], &ids[..100], 9, Stay::Normal);
    assert!(missed(&table, &[160], &ids[..100], 0).is_empty());
    assert_eq!(table.usage().rows, 200_001);
}

#[test]
fn a_lowered_budget_is_kept_at_once() {
    let cache = RowCache::new(60 * SLAB + 5);
    let table = cache.table(&layout(&[160], 1 << 32));
    let ids: Vec<i64> = (0..600_000).collect();
    insert(&table, &[160], &ids, 0, Stay::Normal);
    assert_eq!((cache.usage().bytes, cache.budget()), (52 * SLAB, 60 * SLAB + 5));
    let mut rows = table.usage().rows;
    assert_eq!(rows, 600_000);
    for slabs in [40, 12, 5, 2] {
        cache.set_budget(Some(slabs * SLAB)).unwrap();
        assert!(cache.usage().bytes <= slabs * SLAB);
        let left = ids.len() - missed(&table, &[160], &ids, 0).len();
        let other = 1 - missed(&table, &[160], &[700_000], 0).len();
        assert_eq!((left + other) as u64, table.usage().rows);
        // Only what had to go went; the slab that stays last may be the one that was being filled.
        assert!(left as u64 + 12_000 >= slabs / 2 * 12_000, "{left} rows left in {slabs} slabs");
        assert!((left as u64) < rows);
        rows = left as u64;
        insert(&table, &[160], &[-1, 700_000], 0, Stay::Normal);
        assert!(missed(&table, &[160], &[700_000], 0).is_empty());
    }
    cache.set_budget(Some(0)).unwrap();
    assert_eq!((cache.usage().bytes, cache.usage().rows), (0, 0));
    insert(&table, &[160], &ids[..1000], 0, Stay::Normal);
    assert_eq!(missed(&table, &[160], &ids[..1000], 0), ids[..1000]);
    cache.set_budget(Some(3 * SLAB)).unwrap();
    assert_eq!(access(&table, &[160], &ids[..1000]) + access(&table, &[160], &ids[..1000]), 1000);
}

#[test]
fn a_table_opened_again_has_its_rows_and_a_new_one_has_none() {
    let cache = RowCache::new(8 * SLAB);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    let stamped = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let files = vec![(path.clone(), crate::source::FileStamp::of(&path).unwrap())];
        Layout { files, ..layout(&[16], 1000) }
    };
    let old = stamped(b"old");
    let table = cache.table(&old);
    insert(&table, &[16], &[1, 2], 0, Stay::Normal);
    assert_eq!(missed(&cache.table(&old), &[16], &[1, 2, 3], 0), [3]);
    assert_eq!(cache.table(&old).key(), table.key());

    let changed = cache.table(&stamped(b"changed"));
    assert_ne!(changed.key(), table.key());
    assert_eq!(missed(&changed, &[16], &[1, 2], 1), [1, 2]);
    insert(&changed, &[16], &[1, 2], 1, Stay::Normal);
    assert_eq!((missed(&table, &[16], &[1, 2], 0), missed(&changed, &[16], &[1, 2], 1)), (vec![], vec![]));

    let key = table.key();
    drop(table);
    assert_eq!(cache.usage().tables.len(), 1);
    assert_eq!(cache.usage().bytes, 2 * SLAB);
    // The key is used again, the rows are not.
    let again = cache.table(&old);
    assert_eq!(again.key(), key);
    assert_eq!(missed(&again, &[16], &[1, 2], 0), [1, 2]);
}

#[test]
fn budgets_know_who_asked_for_them() {
    let cache = RowCache::with_budget(3 * SLAB, false);
    assert!(!cache.is_explicit() && !cache.usage().explicit);
    cache.set_budget(Some(2 * SLAB)).unwrap();
    assert!(cache.is_explicit());
    // The variable is not set in tests.
    if std::env::var_os(BUDGET_VARIABLE).is_none() {
        cache.set_budget(None).unwrap();
        assert_eq!((cache.is_explicit(), cache.budget()), (false, default_budget()));
        assert_eq!(RowCache::global().unwrap().budget(), default_budget());
    }
}

#[test]
fn a_row_of_another_width_is_refused() {
    let cache = RowCache::new(4 * SLAB);
    for (widths, values, scales) in [(&[160][..], 159, 0), (&[160], 160, 1), (&[8, 2], 8, 0), (&[8, 2], 10, 0)] {
        let table = cache.table(&layout(widths, 10));
        let (values, scales) = (vec![0; values], vec![0; scales]);
        let row = NewRow { id: 1, values: &values, scales: &scales };
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| table.insert(&[row], Stay::Normal)));
        assert!(refused.is_err());
    }
    // Wider than a slab: never kept, never an error.
    let table = cache.table(&layout(&[SLAB_BYTES], 10));
    insert(&table, &[SLAB_BYTES], &[1], 0, Stay::Normal);
    assert_eq!(missed(&table, &[SLAB_BYTES], &[1], 0), [1]);
    assert_eq!(cache.usage().bytes, 0);
}
