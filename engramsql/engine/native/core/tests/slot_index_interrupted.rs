//! Building a slot index over an old one, by a process that is killed or whose disk fails: the old index or the new one is
//! there afterwards, and the next build succeeds.

use engram_engine::Progress;
use engram_engine::slot_index::{IndexManifest, Keys, SlotIndex};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

const HEADS: usize = 4;
const SLOTS: usize = 20_000;
/// Where the child finds the keys. Set: this process is the child.
const VARIABLE: &str = "ENGRAMSQL_TEST_INDEX";
/// Too little to sort in memory, so that runs are written.
const MEMORY: u64 = 100_000;

fn open_keys(directory: &Path) -> Arc<Keys> {
    Arc::new(Keys::open(&directory.join("keys.bin"), HEADS, 4, SLOTS as u64).unwrap())
}

/// All keys of the index in `directory` lead to their slots; what the index was built over, as its manifest says.
fn check(directory: &Path) -> String {
    let keys = open_keys(directory);
    let index = SlotIndex::open(&directory.join("index"), keys.clone()).unwrap();
    let expected: Vec<i64> = (0..SLOTS as i64).collect();
    let mut all = vec![0; SLOTS * HEADS];
    keys.keys_into(&expected, &mut all).unwrap();
    let mut slots = vec![0; SLOTS];
    index.lookup_many(&all, &mut slots).unwrap();
    assert_eq!(slots, expected);
    index.manifest().keys_blake3.clone()
}

/// Runs [`the_child_builds`] in a process of its own under `fault`.
fn build_under(directory: &Path, fault: &str) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_child_builds", "--nocapture"]);
    child.env(VARIABLE, directory).env("ENGRAMSQL_FAULT", fault).output().unwrap()
}

#[test]
fn the_child_builds() {
    let Some(directory) = std::env::var_os(VARIABLE) else { return };
    let directory = Path::new(&directory);
    let built = SlotIndex::build(&open_keys(directory), &directory.join("index"), "new", MEMORY, &Progress::new());
    if let Err(error) = built {
        panic!("refused: {error}");
    }
}

#[test]
fn an_interrupted_build_leaves_the_old_index_or_the_new_one() {
    let cases = [
        ("kill@write", "old"),
        ("kill@sync", "old"),
        ("kill@index.named", "old"),
        ("kill@index.published", "new"),
        ("eio@write", "old"),
        ("enospc@write", "old"),
        ("eio@sync", "old"),
        ("none@none", "new"),
    ];
    for (fault, expected) in cases {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let keys: Vec<u8> = (0..(SLOTS * HEADS) as u32).flat_map(|id| (id ^ 0x5A5A).to_le_bytes()).collect();
        std::fs::write(directory.join("keys.bin"), keys).unwrap();
        let folder = directory.join("index");
        SlotIndex::build(&open_keys(directory), &folder, "old", 1 << 20, &Progress::new()).unwrap();
        assert_eq!(check(directory), "old");

        let output = build_under(directory, fault);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match fault.split_once('@').unwrap().0 {
            "kill" => assert_eq!(output.status.signal(), Some(9), "{fault}: {said}"),
            "none" => assert!(output.status.success(), "{said}"),
            "enospc" => assert!(said.contains("no space is left"), "{said}"),
            _ => assert!(said.contains("refused: cannot write") && said.contains("index.unfinished.bin"), "{said}"),
        }
        assert_eq!(check(directory), expected, "{fault}");

        SlotIndex::build(&open_keys(directory), &folder, "next", 1 << 20, &Progress::new()).unwrap();
        assert_eq!(check(directory), "next");
        let manifest = IndexManifest::read(&folder).unwrap();
        let mut expected = [manifest.data, manifest.checksums.file, "index.json".to_owned()];
        expected.sort();
        let mut names: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, expected, "after {fault}");
    }
}
