//! The index against a map that does the same in memory, and against files that lie.

use super::entry::{BUCKET_BYTES, ENTRIES, homes};
use super::*;
use crate::progress::Progress;
use crate::storage::checksum::Checksums;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A small deterministic generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

const MEMORY: u64 = 64 << 20;

fn write_keys(path: &Path, keys: &[Vec<i64>], key_bytes: usize) {
    let bytes: Vec<u8> = keys.iter().flatten().flat_map(|id| id.to_le_bytes()[..key_bytes].to_vec()).collect();
    fs::write(path, bytes).unwrap();
}

fn open_keys(path: &Path, keys: &[Vec<i64>], key_bytes: usize) -> Arc<Keys> {
    Arc::new(Keys::open(path, keys[0].len(), key_bytes, keys.len() as u64).unwrap())
}

/// `count` keys, about one in eight of them a repetition, with row ids below `rows`.
fn random_keys(random: &mut Random, count: usize, heads: usize, rows: u64) -> Vec<Vec<i64>> {
    let mut keys: Vec<Vec<i64>> = Vec::new();
    for _ in 0..count {
        if !keys.is_empty() && random.below(8) == 0 {
            keys.push(keys[random.below(keys.len() as u64) as usize].clone());
        } else {
            keys.push((0..heads).map(|_| random.below(rows) as i64).collect());
        }
    }
    keys
}

/// Builds and opens the index of `keys` in `directory`.
fn index(directory: &Path, keys: &[Vec<i64>], key_bytes: usize) -> SlotIndex {
    let path = directory.join("keys.bin");
    write_keys(&path, keys, key_bytes);
    let keys = open_keys(&path, keys, key_bytes);
    let index = directory.join("index");
    SlotIndex::build(&keys, &index, "", MEMORY, &Progress::new()).unwrap();
    SlotIndex::open(&index, keys).unwrap()
}

fn lookup(index: &SlotIndex, keys: &[Vec<i64>]) -> crate::Result<Vec<i64>> {
    let mut slots = vec![i64::MIN; keys.len()];
    index.lookup_many(&keys.concat(), &mut slots)?;
    Ok(slots)
}

/// All files of an index directory by name.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

fn data_file(directory: &Path) -> PathBuf {
    directory.join(IndexManifest::read(directory).unwrap().data)
}

#[test]
fn an_index_answers_as_a_map_in_memory_does() {
    let mut random = Random(0x5107);
    let shapes = [
        (1, 1, 4, 1),
        (2, 1, 4, 1 << 32),
        (7, 3, 4, 3),
        (999, 16, 4, 1 << 32),
        (1000, 5, 8, 1 << 63),
        (20_000, 2, 4, 90),
    ];
    for (count, heads, key_bytes, rows) in shapes {
        let directory = tempfile::tempdir().unwrap();
        let keys = random_keys(&mut random, count, heads, rows);
        let index = index(directory.path(), &keys, key_bytes);
        let mut expected: HashMap<&[i64], Vec<u64>> = HashMap::new();
        for (slot, key) in keys.iter().enumerate() {
            expected.entry(key).or_default().push(slot as u64);
        }
        let mut asked = keys.clone();
        asked.extend(random_keys(&mut random, count, heads, rows));
        // Near misses: one head differs, two are exchanged, one does not fit the file.
        for key in &keys {
            let mut other = key.clone();
            other[random.below(heads as u64) as usize] ^= 1;
            asked.push(other);
            asked.push(key.iter().rev().copied().collect());
            asked.push([&[-1], &key[1..]].concat());
            asked.push([&key[1..], &[key[0] | 1 << 62]].concat());
        }
        let slots = lookup(&index, &asked).unwrap();
        for (key, slot) in asked.iter().zip(slots) {
            let all = expected.get(&key[..]).cloned().unwrap_or_default();
            assert_eq!(slot, all.first().map_or(-1, |&slot| slot as i64), "{key:?}");
            assert_eq!(index.lookup_all(key).unwrap(), all, "{key:?}");
        }
        // One by one as in a batch.
        for key in asked.iter().step_by(asked.len() / 50 + 1) {
            let slot = expected.get(&key[..]).map_or(-1, |all| all[0] as i64);
            assert_eq!(lookup(&index, std::slice::from_ref(key)).unwrap(), [slot]);
        }
        // And back.
        let mut key = vec![0; heads];
        for slot in 0..count as u64 {
            index.keys().key_into(slot, &mut key).unwrap();
            assert_eq!(key, keys[slot as usize]);
        }
    }
}

#[test]
fn one_key_in_many_slots_and_no_key_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let keys = vec![vec![7, 8]; 1000];
    let same = index(directory.path(), &keys, 4);
    assert_eq!(lookup(&same, &[vec![7, 8], vec![8, 7]]).unwrap(), [0, -1]);
    assert_eq!(same.lookup_all(&[7, 8]).unwrap(), (0..1000).collect::<Vec<_>>());

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.bin");
    fs::write(&path, []).unwrap();
    let keys = Arc::new(Keys::open(&path, 2, 4, 0).unwrap());
    SlotIndex::build(&keys, directory.path(), "", 0, &Progress::new()).unwrap();
    let none = SlotIndex::open(directory.path(), keys).unwrap();
    assert_eq!(lookup(&none, &[vec![7, 8]]).unwrap(), [-1]);
    assert_eq!(lookup(&none, &[]).unwrap(), [0; 0]);
}

#[test]
fn every_memory_gives_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let keys = random_keys(&mut Random(99), 30_000, 4, 5000);
    let path = directory.path().join("keys.bin");
    write_keys(&path, &keys, 4);
    let keys = open_keys(&path, &keys, 4);
    let build = |name: &str, memory| {
        let index = directory.path().join(name);
        SlotIndex::build(&keys, &index, "digest", memory, &Progress::new()).map(|()| files(&index))
    };
    let whole = build("whole", MEMORY).unwrap();
    assert_eq!(whole.len(), 3);
    for memory in [480_000, 479_999, 200_000, 100_001, 30_000] {
        assert_eq!(build(&format!("with {memory}"), memory).unwrap(), whole, "{memory} bytes");
    }
    let refused = build("with too few", 10_000).unwrap_err().to_string();
    let least = "10000 bytes of memory are too few to sort 480000 bytes of an index; give it at least 24217";
    assert_eq!(refused, least.replace("24217", &(480_000u64 * 1024).isqrt().saturating_add(2048).to_string()));
    // Building again over itself changes nothing.
    assert_eq!(build("whole", 50_000).unwrap(), whole);
    // The checksums are those of the file.
    let manifest = IndexManifest::read(&directory.path().join("whole")).unwrap();
    assert_eq!((manifest.slots, manifest.keys_blake3.as_str()), (30_000, "digest"));
    let (sums, digest) = Checksums::read(&directory.path().join("whole").join(&manifest.checksums.file)).unwrap();
    assert_eq!(digest, manifest.checksums.blake3);
    assert_eq!(sums.files[0].bytes, manifest.buckets * BUCKET_BYTES as u64);
    let entries = manifest.buckets * ENTRIES as u64;
    assert!(manifest.buckets > homes(30_000) && entries < 30_000 * 5 / 4 + 200, "{entries} entries");
}

#[test]
fn a_new_index_replaces_the_old_one_and_what_an_interrupted_build_left() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(5);
    let old = random_keys(&mut random, 500, 4, 1000);
    drop(index(directory.path(), &old, 4));
    let folder = directory.path().join("index");
    let before = data_file(&folder);
    fs::write(folder.join("index.unfinished.bin"), b"half").unwrap();
    fs::write(folder.join("notes.txt"), b"not ours").unwrap();
    let new = random_keys(&mut random, 700, 4, 1000);
    let index = index(directory.path(), &new, 4);
    let slots = lookup(&index, &new).unwrap();
    assert!(slots.iter().zip(&new).all(|(&slot, key)| new[slot as usize] == *key));
    assert!(!before.exists());
    let mut names: Vec<_> = files(&folder).into_iter().map(|(name, _)| name).collect();
    names.retain(|name| !name.starts_with("index."));
    assert_eq!((names, files(&folder).len()), (vec!["notes.txt".to_owned()], 4));
}

#[test]
fn a_cancelled_build_leaves_the_old_index() {
    let directory = tempfile::tempdir().unwrap();
    let keys = random_keys(&mut Random(6), 500, 4, 1000);
    let index = index(directory.path(), &keys, 4);
    let folder = directory.path().join("index");
    let progress = Progress::new();
    progress.cancel();
    let cancelled = SlotIndex::build(index.keys(), &folder, "other", MEMORY, &progress);
    assert!(matches!(cancelled, Err(crate::Error::Cancelled)));
    assert_eq!(IndexManifest::read(&folder).unwrap().keys_blake3, "");
    assert_eq!(files(&folder).len(), 3, "what was written of the new one is removed");
    assert!(lookup(&index, &keys).unwrap().iter().all(|&slot| slot >= 0));
}

fn truncate(path: &Path) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(4096).unwrap();
}

fn write_into(path: &Path) {
    use std::os::unix::fs::FileExt;
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(&[1], 77).unwrap();
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

fn replace(path: &Path) {
    let other = path.with_extension("new");
    fs::copy(path, &other).unwrap();
    fs::rename(other, path).unwrap();
}

#[test]
fn files_that_changed_are_an_error_and_no_slot() {
    type Change = fn(&Path);
    let changes: [(Change, bool); 6] = [
        (truncate, false),
        (remove, false),
        (replace, false),
        (write_into, false),
        (truncate, true),
        (write_into, true),
    ];
    for (number, (change, of_index)) in changes.into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let keys = random_keys(&mut Random(7), 5000, 4, 1000);
        let index = index(directory.path(), &keys, 4);
        lookup(&index, &keys).unwrap();
        let path = if of_index { data_file(&directory.path().join("index")) } else { index.keys().path().to_owned() };
        change(&path);
        for asked in [&keys[..], &keys[..1], &keys[4999..]] {
            let error = lookup(&index, asked).unwrap_err();
            assert!(matches!(error, crate::Error::Read(crate::read::ReadError::FileChanged { .. })), "{error}");
        }
        let error = index.lookup_all(&keys[4000]).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "change {number}: {error}");
        if !of_index {
            assert!(index.keys().key_into(4999, &mut [0; 4]).is_err());
            let built = SlotIndex::build(index.keys(), &directory.path().join("new"), "", MEMORY, &Progress::new());
            assert!(built.unwrap_err().to_string().contains(path.to_str().unwrap()), "change {number}");
        }
    }
}

#[test]
fn an_open_index_does_not_mind_that_another_is_built_in_its_place() {
    for change in [replace, remove] {
        let directory = tempfile::tempdir().unwrap();
        let keys = random_keys(&mut Random(70), 5000, 4, 1000);
        let index = index(directory.path(), &keys, 4);
        let before = lookup(&index, &keys).unwrap();
        change(&data_file(&directory.path().join("index")));
        assert_eq!(lookup(&index, &keys).unwrap(), before);
        assert_eq!(lookup(&index, &keys[..1]).unwrap(), before[..1]);
        // But it does that its keys are others.
        write_into(index.keys().path());
        assert!(lookup(&index, &keys).is_err());
    }
}

#[test]
fn keys_of_another_size_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.bin");
    fs::write(&path, vec![0; 96]).unwrap();
    let refused = |heads, bytes, slots| Keys::open(&path, heads, bytes, slots).err().unwrap().to_string();
    assert!(Keys::open(&path, 3, 8, 4).is_ok() && Keys::open(&path, 3, 4, 8).is_ok());
    assert!(refused(3, 4, 7).ends_with("has 96 bytes, 7 keys of 3 row ids of 4 bytes need 84; build the view again"));
    assert!(refused(3, 8, u64::MAX).contains("more than a slot index can name"));
    assert!(refused(4096, 8, MOST_SLOTS).contains("need 36028797018931200"));
    assert!(refused(0, 4, 0).contains("cannot be indexed") && refused(3, 5, 4).contains("cannot be indexed"));
    assert!(Keys::open(&directory.path().join("none"), 1, 4, 1).is_err());
    let keys = Keys::open(&path, 3, 4, 8).unwrap();
    assert!(keys.key_into(8, &mut [0; 3]).unwrap_err().to_string().contains("slot 8 is out of range"));
    assert!(keys.key_into(7, &mut [0; 4]).is_err());
    // A row id that no table can have.
    fs::write(&path, u64::MAX.to_le_bytes()).unwrap();
    let keys = Keys::open(&path, 1, 8, 1).unwrap();
    assert!(keys.key_into(0, &mut [0]).unwrap_err().to_string().contains("2^63"));
}

#[test]
fn a_manifest_that_lies_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let keys = random_keys(&mut Random(8), 100, 4, 1000);
    let index = index(directory.path(), &keys, 4);
    let folder = directory.path().join("index");
    let path = folder.join("index.json");
    let (good, _) = crate::storage::seal::read(&path).unwrap();
    let refused = |member: &str, value: serde_json::Value| {
        let mut document = good.clone();
        document.insert(member.to_owned(), value);
        crate::storage::seal::publish(&path, &document).unwrap();
        SlotIndex::open(&folder, index.keys().clone()).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused("format", "another".into()).contains("its format is not"));
    assert!(refused("version", 2.into()).contains("reads up to 1; upgrade"));
    assert!(refused("version", "1".into()).contains("version"));
    assert!(refused("hash", "sha1".into()).contains("its hash is 'sha1'"));
    assert!(refused("slots", 99.into()).contains("was built over 99 keys of 4 row ids of 4 bytes, the view has 100"));
    assert!(refused("key_bytes", 8.into()).contains("of 8 bytes"));
    assert!(refused("heads", (1u64 << 40).into()).contains("row ids"));
    assert!(refused("homes", 0.into()).contains("impossible"));
    assert!(refused("homes", 1000.into()).contains("impossible"));
    assert!(refused("buckets", u64::MAX.into()).contains("impossible"));
    assert!(refused("buckets", 1000.into()).contains("its manifest says 64000"));
    assert!(refused("data", "../index.aaaaaaaa.bin".into()).contains("no name of an index file"));
    assert!(refused("data", "index.0.bin".into()).contains("cannot read"));
    assert!(refused("slots", (-1).into()).contains("invalid value"));
    assert_eq!(refused("slots", 100.into()), "");
    // The seal tells every flipped bit.
    let bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, flipped).unwrap();
        assert!(SlotIndex::open(&folder, index.keys().clone()).is_err(), "byte {at}");
    }
}

#[test]
fn damaged_buckets_give_right_answers_none_or_errors() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(9);
    let keys = random_keys(&mut random, 300, 4, 1 << 20);
    let keys_file = index(directory.path(), &keys, 4).keys().clone();
    let folder = directory.path().join("index");
    let path = data_file(&folder);
    let good = fs::read(&path).unwrap();
    let progress = Progress::new();
    assert_eq!(
        SlotIndex::open(&folder, keys_file.clone()).unwrap().damage(directory.path(), MEMORY, &progress).unwrap(),
        None
    );
    let (mut errors, mut found) = (0, 0);
    for round in 0..300 {
        let mut bytes = good.clone();
        match round % 4 {
            0 => bytes.iter_mut().for_each(|byte| *byte = random.next() as u8),
            // No room anywhere, every slot in range.
            1 => bytes.chunks_exact_mut(8).for_each(|entry| entry.copy_from_slice(&(round as u64).to_le_bytes())),
            _ => {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
        }
        fs::write(&path, &bytes).unwrap();
        let index = SlotIndex::open(&folder, keys_file.clone()).unwrap();
        match lookup(&index, &keys) {
            // A key that is not found is what the checksums tell; another key's slot is never given.
            Ok(slots) => assert!(slots.iter().zip(&keys).all(|(&slot, key)| slot < 0 || keys[slot as usize] == *key)),
            Err(error) => {
                assert!(error.to_string().contains("is damaged"), "{error}");
                errors += 1;
            }
        }
        keys.iter().for_each(|key| drop(index.lookup_all(key)));
        found += usize::from(!matches!(index.damage(directory.path(), MEMORY, &progress), Ok(None)));
    }
    assert!(errors > 100, "{errors}");
    // A pass over all keys finds every flipped bit.
    assert_eq!(found, 300);
    // A slot of a key that has several is lost, where its lowest slot is still found.
    let twice = [keys[..2].to_vec(), keys[..2].to_vec()].concat();
    let directory = tempfile::tempdir().unwrap();
    let whole = self::index(directory.path(), &twice, 4);
    let folder_of_twice = directory.path().join("index");
    let mut bytes = fs::read(data_file(&folder_of_twice)).unwrap();
    let last = bytes.chunks_exact(8).rposition(|entry| entry != [0xFF; 8]).unwrap();
    bytes[last * 8..last * 8 + 8].fill(0xFF);
    fs::write(data_file(&folder_of_twice), bytes).unwrap();
    let halved = SlotIndex::open(&folder_of_twice, whole.keys().clone()).unwrap();
    assert_eq!(lookup(&halved, &twice).unwrap(), [0, 1, 0, 1]);
    assert_eq!(
        halved.damage(directory.path(), MEMORY, &progress).unwrap().unwrap(),
        "bucket 0 is not what the keys give"
    );
    fs::write(&path, &good[..good.len() - 1]).unwrap();
    assert!(SlotIndex::open(&folder, keys_file).err().unwrap().to_string().contains("its manifest says"));
}
