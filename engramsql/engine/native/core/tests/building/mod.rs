//! Sources to build from, and what directories hold.
#![allow(dead_code, reason = "no test uses all of it")]

use engram_engine::Table;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../tests/golden").join(name)
}

/// The "small table": 3 shards x 10 rows x 8 bytes, byte value = shard number.
pub fn small_store(parent: &Path) -> PathBuf {
    let path = parent.join("small");
    fs::create_dir(&path).unwrap();
    for shard in 0..3u8 {
        fs::write(path.join(format!("shard_{shard:03}.bin")), vec![shard; 80]).unwrap();
    }
    path
}

/// Names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Files of a directory by name.
pub fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    names(directory).into_iter().map(|name| (name.clone(), fs::read(directory.join(name)).unwrap())).collect()
}

/// Every row of both tables has the same bytes.
pub fn assert_same_rows(a: &Table, b: &Table) {
    assert_eq!((a.rows(), a.row_bytes()), (b.rows(), b.row_bytes()));
    let ids: Vec<i64> = (0..a.rows() as i64).collect();
    let fetch = |table: &Table| {
        let mut out = vec![0; ids.len() * table.row_bytes()];
        table.fetch_into(&ids, &mut out).unwrap();
        out
    };
    assert!(fetch(a) == fetch(b), "rows of '{}' and '{}' differ", a.name(), b.name());
}
