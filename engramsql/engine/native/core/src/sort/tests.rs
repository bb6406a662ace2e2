//! Against the standard library's sort, with little and much memory.

use super::*;

/// Numbers without a pattern.
fn numbers(count: usize) -> impl Iterator<Item = u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

fn all(mut sorted: Sorted) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some(record) = sorted.next().unwrap() {
        records.push(record.to_vec());
    }
    records
}

const MEMORIES: [u64; 6] = [0, 300, 5_000, 70_000, 1 << 20, 1 << 30];

#[test]
fn any_memory_gives_the_order_of_the_bytes() {
    let directory = tempfile::tempdir().unwrap();
    for record in [1, 3, 8, 13, 80] {
        let shape = Shape { record, key: record };
        let records: Vec<Vec<u8>> = numbers(5_000)
            .map(|number| {
                // Many agree in their beginning, some in all.
                let bytes = [(number % 3) as u8, 0, 0, 0, 0, 0, 0, 0, 0, (number >> 8) as u8 % 7, number as u8];
                bytes.iter().cycle().take(record).copied().collect()
            })
            .collect();
        let mut expected = records.clone();
        expected.sort();
        for memory in MEMORIES {
            let mut sorter = Sorter::new(directory.path(), shape, None, memory, 0);
            records.iter().for_each(|record| sorter.push(record).unwrap());
            assert!(all(sorter.finish(memory).unwrap()) == expected, "{record} bytes in {memory} bytes of memory");
        }
    }
    // Runs have no names.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn equal_keys_become_one_record() {
    let directory = tempfile::tempdir().unwrap();
    let shape = Shape { record: 10, key: 2 };
    let sum = |record: &[u8]| u64::from_le_bytes(record[2..].try_into().unwrap());
    let fold: Fold = |into, other| {
        let number = |record: &[u8]| u64::from_le_bytes(record[2..].try_into().unwrap());
        let total = number(into) + number(other);
        into[2..].copy_from_slice(&total.to_le_bytes());
    };
    let mut expected = std::collections::BTreeMap::new();
    let records: Vec<Vec<u8>> = numbers(20_000)
        .map(|number| {
            let key = [(number >> 40) as u8 % 30, number as u8 % 30];
            *expected.entry(key).or_insert(0) += number >> 32;
            [&key[..], &(number >> 32).to_le_bytes()].concat()
        })
        .collect();
    for memory in MEMORIES {
        let mut sorter = Sorter::new(directory.path(), shape, Some(fold), memory, 0);
        records.iter().for_each(|record| sorter.push(record).unwrap());
        let found: Vec<([u8; 2], u64)> =
            all(sorter.finish(memory).unwrap()).iter().map(|record| ([record[0], record[1]], sum(record))).collect();
        assert!(found.into_iter().eq(expected.iter().map(|(&key, &sum)| (key, sum))), "{memory} bytes of memory");
    }
}

#[test]
fn nothing_sorts_to_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let sorter = Sorter::new(directory.path(), Shape { record: 4, key: 4 }, None, 100, 0);
    assert!(all(sorter.finish(100).unwrap()).is_empty());
}
