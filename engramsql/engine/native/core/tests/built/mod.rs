//! A store that describes itself, written from the primitives that every build uses, and ways to damage it.

#![allow(dead_code, reason = "each test binary uses its part")]

use engram_engine::spec::TokenMap;
use engram_engine::storage::checksum::{Checksums, Summer};
use engram_engine::storage::{OrderedWriter, seal};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// A small deterministic generator.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Shape of a store.
#[derive(Clone, Copy)]
pub struct Shape {
    pub rows: usize,
    pub rows_per_shard: usize,
    pub width: usize,
}

impl Shape {
    pub fn shards(self) -> usize {
        self.rows.div_ceil(self.rows_per_shard)
    }
}

/// Random bytes for the rows of a store.
pub fn content(shape: Shape, seed: u64) -> Vec<u8> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    (0..shape.rows * shape.width).map(|_| random.next() as u8).collect()
}

pub fn shard(directory: &Path, shard: usize) -> PathBuf {
    directory.join(format!("shard_{shard:03}.bin"))
}

/// Writes a store of `bytes`, with manifest, checksums and a token map that no spec uses.
pub fn write_store(directory: &Path, shape: Shape, bytes: &[u8]) {
    std::fs::create_dir_all(directory).unwrap();
    let mut checksums = Checksums::default();
    for (number, rows) in bytes.chunks(shape.rows_per_shard * shape.width).enumerate() {
        let mut writer = OrderedWriter::create(&shard(directory, number), rows.len() as u64).unwrap();
        writer.write(rows).unwrap();
        checksums.files.push(writer.finish().unwrap());
    }
    let digest = checksums.publish(&directory.join("checksums.bin")).unwrap();
    TokenMap::identity(50).unwrap().write(directory.join("token_map.map")).unwrap();
    let manifest = json!({
        "layout": {
            "shards": shape.shards(), "rows_per_shard": shape.rows_per_shard, "width": shape.width, "elem_bytes": 1,
            "badge_rows": 0, "badge_bytes": 0, "total_rows": shape.rows,
        },
        "source": "random bytes",
        "engramsql": {
            "format": "engramsql-store", "version": 1, "value_format": null, "scale": null, "layer": null, "spec": null,
            "token_map": "token_map.map",
            "checksums": {"file": "checksums.bin", "block_bytes": 65536, "blake3": digest},
            "built_at": 1,
        },
    });
    seal::publish(&directory.join("manifest.json"), &object(manifest)).unwrap();
}

pub fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("no object") };
    object
}

/// Checksums of bytes that are in memory.
pub fn sums_of(bytes: &[u8]) -> engram_engine::storage::checksum::FileSums {
    let mut summer = Summer::new();
    summer.update(bytes);
    summer.finish()
}

/// Flips one bit of a file where it lies.
pub fn flip(path: &Path, bit: usize) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, bit as u64 / 8).unwrap();
    byte[0] ^= 1 << (bit % 8);
    file.write_all_at(&byte, bit as u64 / 8).unwrap();
}

pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../tests/golden").join(name)
}

pub fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
