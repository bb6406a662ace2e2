//! Files of engramdb, byte for byte, and files that lie.

use super::*;
use crate::progress::Progress;
use crate::slot_index::{Keys, SlotIndex};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const GOLDEN: [(&str, u32, PeerHash); 4] = [
    ("slot_index_v1", 1, PeerHash::Blake2b),
    ("slot_index_v2", 2, PeerHash::Fnv1a64),
    ("slot_index_v3", 3, PeerHash::Fnv1a64),
    ("slot_index_v3_blake2b", 3, PeerHash::Blake2b),
];
const HEADS: usize = 16;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../tests/golden/peer_store").join(name)
}

/// The keys of the golden view, by slot.
fn golden_keys() -> Vec<Vec<i64>> {
    let text = fs::read_to_string(golden("keys.txt")).unwrap();
    let ids: Vec<i64> = text.lines().map(|line| line.parse().unwrap()).collect();
    ids.chunks_exact(HEADS).map(<[i64]>::to_vec).collect()
}

fn options(version: u32, hash: PeerHash) -> PeerOptions {
    PeerOptions { version, hash, heads: HEADS, num_buckets: 16, expected: 24, memory: 1 << 20 }
}

fn with_slots(keys: &[Vec<i64>]) -> impl Iterator<Item = (&Vec<i64>, u64)> {
    keys.iter().zip(0..)
}

/// All files below `directory` by their relative paths.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.strip_prefix(directory).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for (name, bytes) in files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// All records of an index.
fn all(index: &PeerIndex) -> crate::Result<Vec<(Vec<i64>, u64)>> {
    let mut entries = Vec::new();
    index.entries(&Progress::new(), &mut |keys, slots| {
        entries.extend(keys.chunks_exact(index.heads()).map(<[i64]>::to_vec).zip(slots.iter().copied()));
        Ok(())
    })?;
    Ok(entries)
}

#[test]
fn the_hashes_are_those_of_engramdb() {
    let key: Vec<u8> = (0..16u64).flat_map(u64::to_le_bytes).collect();
    let (fnv, blake) = (PeerHash::Fnv1a64.of(&key), PeerHash::Blake2b.of(&key));
    assert_eq!((fnv, fnv % DEFAULT_BUCKETS), (0x3f71_fbaf_4605_ff25, 16165));
    assert_eq!((blake, blake % DEFAULT_BUCKETS), (0x4fd9_b822_218c_faa5, 15013));
}

#[test]
fn what_is_written_equals_the_files_of_engramdb() {
    let keys = golden_keys();
    let directory = tempfile::tempdir().unwrap();
    for (name, version, hash) in GOLDEN {
        let written = directory.path().join(name);
        write(&written, &options(version, hash), with_slots(&keys), &Progress::new()).unwrap();
        assert_eq!(files(&written), files(&golden(name)), "{name}");
        // In any order, and with so little memory that it has to be sorted on the disk.
        let again = directory.path().join(name.to_owned() + " again");
        let few = PeerOptions { expected: 0, memory: 500, ..options(version, hash) };
        write(&again, &few, with_slots(&keys).collect::<Vec<_>>().into_iter().rev(), &Progress::new()).unwrap();
        assert_eq!(files(&again), files(&golden(name)), "{name}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 8, "something was left behind");
}

#[test]
fn a_view_is_written_as_its_keys_file_says() {
    let keys = golden_keys();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.bin");
    let bytes: Vec<u8> = keys.iter().flatten().flat_map(|&id| (id as u32).to_le_bytes()).collect();
    fs::write(&path, bytes).unwrap();
    let keys = Arc::new(Keys::open(&path, HEADS, 4, 24).unwrap());
    let written = directory.path().join("index");
    write_keys(&written, &options(2, PeerHash::Fnv1a64), &keys, &Progress::new()).unwrap();
    assert_eq!(files(&written), files(&golden("slot_index_v2")));
    // Our own index knows the same.
    let ours = directory.path().join("ours");
    SlotIndex::build(&keys, &ours, "", 1 << 20, &Progress::new()).unwrap();
    let ours = SlotIndex::open(&ours, keys).unwrap();
    for (key, slot) in all(&PeerIndex::open(&written).unwrap()).unwrap() {
        let slots = ours.lookup_all(&key).unwrap();
        assert!(slots.contains(&slot) && slots == PeerIndex::open(&written).unwrap().lookup_all(&key).unwrap());
    }
}

#[test]
fn the_files_of_engramdb_are_read() {
    let keys = golden_keys();
    for (name, version, hash) in GOLDEN {
        let index = PeerIndex::open(&golden(name)).unwrap();
        let about = (index.version(), index.hash(), index.heads(), index.num_buckets(), index.count());
        assert_eq!(about, (version, hash, HEADS, 16, 24));
        for (slot, key) in keys.iter().enumerate() {
            // The last key is that of slot 3 once more.
            let slots = if matches!(slot, 3 | 23) { vec![3, 23] } else { vec![slot as u64] };
            assert_eq!(index.lookup(key).unwrap(), Some(slots[0]), "{name}");
            assert_eq!(index.lookup_all(key).unwrap(), slots, "{name}");
            let mut other = key.clone();
            other[15] += 1;
            assert_eq!(index.lookup(&other).unwrap(), None);
            other[0] = -1;
            assert_eq!(index.lookup(&other).unwrap(), None);
        }
        let mut entries = all(&index).unwrap();
        entries.sort_by_key(|(_, slot)| *slot);
        assert!(entries.iter().map(|(key, slot)| (key, *slot)).eq(with_slots(&keys)), "{name}");
        assert!(index.lookup(&keys[0][1..]).unwrap_err().to_string().contains("a key has 16 row ids"));
    }
}

#[test]
fn equal_keys_lie_in_the_order_of_their_slots_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let options = PeerOptions { heads: 2, num_buckets: 3, ..options(3, PeerHash::Fnv1a64) };
    // 256 is 00 01 on the disk, before 1, which is 01 00.
    let entries = [([5, 6], 1), ([5, 6], 256), ([5, 7], 3), ([5, 6], 2), ([5, 6], 1)];
    write(&path, &options, entries, &Progress::new()).unwrap();
    let index = PeerIndex::open(&path).unwrap();
    assert_eq!(index.lookup_all(&[5, 6]).unwrap(), [256, 1, 1, 2]);
    assert_eq!(index.lookup(&[5, 6]).unwrap(), Some(256));
    assert_eq!(index.count(), 5);
}

#[test]
fn what_engramdb_cannot_hold_is_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let refused = |options: PeerOptions, key: &[i64]| {
        write(&path, &options, [(key, 0)], &Progress::new()).unwrap_err().to_string()
    };
    let good = options(3, PeerHash::Fnv1a64);
    assert!(refused(PeerOptions { version: 4, ..good }, &[0; 16]).contains("cannot hold version 4"));
    assert!(refused(PeerOptions { version: 1, ..good }, &[0; 16]).contains("hash fnv1a-64 in version 1"));
    assert!(refused(PeerOptions { num_buckets: 0, ..good }, &[0; 16]).contains("0 buckets"));
    assert!(refused(PeerOptions { heads: 0, ..good }, &[]).contains("cannot be indexed"));
    assert!(refused(good, &[-1; 16]).contains("the key of slot 0, which has a negative row id; row ids are 0 or more"));
    assert!(refused(good, &[1; 15]).contains("a key has 16 row ids"));
    assert!(refused(PeerOptions { expected: 1 << 60, ..good }, &[0; 16]).contains("free"));
    assert!(refused(PeerOptions { expected: 10_000, memory: 1000, ..good }, &[0; 16]).contains("give it at least"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    fs::create_dir(&path).unwrap();
    fs::write(path.join("mine"), []).unwrap();
    assert!(refused(good, &[0; 16]).contains("exists already"));
    assert_eq!(files(&path).len(), 1);
}

/// Opens and reads everything; what is wrong.
fn wrong(directory: &Path) -> String {
    let index = match PeerIndex::open(directory) {
        Ok(index) => index,
        Err(error) => return error.to_string(),
    };
    let by_key = golden_keys().iter().find_map(|key| index.lookup_all(key).err());
    let streamed = all(&index).err();
    assert_eq!(by_key.is_some(), streamed.is_some(), "a lookup tells what a pass over all records tells");
    streamed.map_or_else(String::new, |error| error.to_string())
}

#[test]
fn manifests_that_lie_are_refused_by_name() {
    let good = fs::read_to_string(golden("slot_index_v2").join("index.json")).unwrap();
    let cases = [
        (
            "\"engramdb-disk-slot-index-v2\"",
            "\"engramdb-disk-slot-index-v9\"",
            "its format is 'engramdb-disk-slot-index-v9'",
        ),
        ("\"format\"", "\"from\"", "'format' is missing"),
        ("\"fnv1a-64\"", "\"md5\"", "its hash 'md5' is not known"),
        ("\"fnv1a-64\"", "7", "'hash' is 7, not a text"),
        ("\"heads\": 16", "\"heads\": 0", "'heads' is 0"),
        ("\"heads\": 16", "\"heads\": 18446744073709551615", "'heads' is 18446744073709551615"),
        ("\"heads\": 16", "\"heads\": 15", "'record_bytes' is 136, 15 row ids and a slot are 128"),
        ("\"heads\": 16,", "", "'heads' is missing"),
        ("\"num_buckets\": 16", "\"num_buckets\": 0", "'num_buckets' is 0"),
        ("\"num_buckets\": 16", "\"num_buckets\": 15", "none of its 15 buckets has a file of this name"),
        ("\"num_buckets\": 16", "\"num_buckets\": 17", "holds a key of another bucket"),
        ("\"num_buckets\": 16", "\"num_buckets\": -1", "'num_buckets' is -1, not a count"),
        ("\"num_buckets\": 16", "\"num_buckets\": 1e3", "not a count"),
        ("\"count\": 24", "\"count\": 25", "its buckets hold 24 records, its index.json says 25"),
        ("\"count\": 24", "\"count\": 18446744073709551615", "says 18446744073709551615"),
        ("\"record_bytes\": 136", "\"record_bytes\": 128", "'record_bytes' is 128"),
        ("\"single_file\": false", "\"single_file\": true", "'single_file' is true in version 2"),
        ("}", "", "it is no JSON object"),
    ];
    let directory = tempfile::tempdir().unwrap();
    copy(&golden("slot_index_v2"), directory.path());
    let path = directory.path().join("index.json");
    for (from, to, expected) in cases {
        fs::write(&path, good.replace(from, to)).unwrap();
        let told = wrong(directory.path());
        assert!(told.contains(expected) && told.contains(directory.path().to_str().unwrap()), "{to}: {told}");
    }
    // Members that builders leave out, and those that only they know.
    for (from, to) in [(",\n  \"single_file\": false", ""), ("\"cache_buckets\": 64", "\"note\": null")] {
        fs::write(&path, good.replace(from, to)).unwrap();
        assert_eq!(wrong(directory.path()), "");
    }
    fs::write(&path, good.replace("\"hash\": \"fnv1a-64\",", "")).unwrap();
    assert!(wrong(directory.path()).contains("holds a key of another bucket"), "blake2b is what no hash means");
    fs::write(&path, " ".repeat(2 << 20)).unwrap();
    assert!(wrong(directory.path()).contains("more than 1048576 bytes"));
    fs::remove_file(&path).unwrap();
    assert!(wrong(directory.path()).contains("cannot read"));
}

#[test]
fn data_that_lies_is_refused_by_name() {
    let record = 136;
    type Change = fn(&mut Vec<u8>);
    let files: [(&str, &str, Change, &str); 14] = [
        ("slot_index_v2", "buckets/0004.bin", |b| b.truncate(135), "135 bytes are no number of records"),
        ("slot_index_v2", "buckets/0004.bin", |b| b.truncate(272), "its buckets hold 23 records"),
        ("slot_index_v2", "buckets/0004.bin", |b| b.rotate_left(136), "bucket 4 is not sorted"),
        ("slot_index_v2", "buckets/0004.bin", |b| b[408 - 9] = 1, "holds a key of another bucket"),
        ("slot_index_v2", "buckets/0001.bin", |b| b[135] = 0x80, "is beyond the int64 range"),
        ("slot_index_v3", "data.bin", |b| b.truncate(3000), "are not the 24 records of 136 bytes"),
        ("slot_index_v3", "data.bin", |b| b.fill(0), "holds a key of another bucket"),
        ("slot_index_v3", "offsets.bin", |b| b.truncate(128), "are not the 16 + 1 offsets"),
        ("slot_index_v3", "offsets.bin", |b| b.extend([0; 8]), "are not the 16 + 1 offsets"),
        ("slot_index_v3", "offsets.bin", |b| b.truncate(135), "are not the 16 + 1 offsets"),
        ("slot_index_v3", "offsets.bin", |b| b[0] = 136, "offset 0 is 136"),
        ("slot_index_v3", "offsets.bin", |b| b[8 * 5] ^= 1, "where no record begins"),
        ("slot_index_v3", "offsets.bin", |b| b[8 * 5 + 7] = 0xff, "where no record begins"),
        ("slot_index_v3", "offsets.bin", |b| b.fill(0), "the last offset is 0, data.bin has 3264 bytes"),
    ];
    for (name, file, change, expected) in files {
        let directory = tempfile::tempdir().unwrap();
        copy(&golden(name), directory.path());
        let path = directory.path().join(file);
        let mut bytes = fs::read(&path).unwrap();
        assert!(bytes.len() >= record);
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let told = wrong(directory.path());
        assert!(told.contains(expected) && told.contains(directory.path().to_str().unwrap()), "{file}: {told}");
        fs::remove_file(&path).unwrap();
        assert_ne!(wrong(directory.path()), "", "without {file}");
    }
    let directory = tempfile::tempdir().unwrap();
    copy(&golden("slot_index_v2"), directory.path());
    for stray in ["16.bin", "1.bin", "x.bin", "00001.bin", "18446744073709551616.bin"] {
        let path = directory.path().join("buckets").join(stray);
        fs::write(&path, []).unwrap();
        assert!(wrong(directory.path()).contains("has a file of this name"), "{stray}");
        fs::remove_file(path).unwrap();
    }
    fs::write(directory.path().join("buckets/.hidden"), [1]).unwrap();
    assert_eq!(wrong(directory.path()), "");
    fs::remove_dir_all(directory.path().join("buckets")).unwrap();
    assert!(wrong(directory.path()).contains("cannot read"));
}
