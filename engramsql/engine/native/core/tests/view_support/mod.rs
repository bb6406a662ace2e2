//! Databases with a golden checkpoint, corpora without a pattern, and what a view of them must hold.

#![allow(dead_code, reason = "each test file uses some of it")]

use engram_engine::catalog::{RegisterOptions, Session, ViewEntry};
use engram_engine::view::{ViewBuilder, ViewOptions};
use engram_engine::{Progress, Result, Table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The golden checkpoints, each with its tables under the name "t".
pub const CHECKPOINTS: [(&str, &[&str]); 4] = [
    ("ckpt_qwen4_exp_fp8", &["t"]),
    ("ckpt_qwen4_exp_bf16", &["t"]),
    ("ckpt_qwen4_exp_nvfp4", &["t"]),
    ("ckpt_deepseek_v41", &["t_l1", "t_l3"]),
];

pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../tests/golden").join(name)
}

/// A database beside the build's files: a temporary directory is often in memory and knows no direct reads.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A database at `path` with the tables of a golden checkpoint.
pub fn database(path: &Path, checkpoint: &str) -> Session {
    let session = Session::open(path, false, true).unwrap();
    session.register("t", &golden(checkpoint), &RegisterOptions::default()).unwrap();
    session
}

/// Numbers without a pattern.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }
}

/// Sequences, some empty and one long; some tokens are frequent, as in any language.
pub fn corpus(seed: u64, sequences: usize, vocabulary: u64) -> Vec<Vec<i64>> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed.wrapping_mul(0xD129_0E2B));
    (0..sequences)
        .map(|number| {
            let length = if number == 3 { 3000 } else { random.below(40) };
            let few = vocabulary.min(12);
            let token =
                |random: &mut Random| if random.below(4) > 0 { random.below(few) } else { random.below(vocabulary) };
            (0..length).map(|_| token(&mut random) as i64).collect()
        })
        .collect()
}

/// The tokens of all sequences, and where each begins.
pub fn packed(sequences: &[Vec<i64>]) -> (Vec<i64>, Vec<usize>) {
    let starts = sequences.iter().scan(0, |at, sequence| Some(std::mem::replace(at, *at + sequence.len()))).collect();
    (sequences.concat(), starts)
}

/// Key, first position and count of all keys of a corpus.
pub fn reference(table: &Table, sequences: &[Vec<i64>]) -> BTreeMap<Vec<i64>, (u64, u64)> {
    let heads = table.spec().unwrap().heads();
    let mut keys = BTreeMap::new();
    let mut position = 0;
    for sequence in sequences {
        for key in table.rowids(sequence, &[]).unwrap().chunks_exact(heads) {
            keys.entry(key.to_vec()).or_insert((position, 0)).1 += 1;
            position += 1;
        }
    }
    keys
}

pub fn build(
    session: &Session,
    name: &str,
    table: &str,
    corpus: &[Vec<i64>],
    options: ViewOptions,
) -> Result<ViewEntry> {
    let mut builder = ViewBuilder::begin(session, name, table, options)?;
    if !builder.keys_are_complete() {
        let (tokens, starts) = packed(corpus);
        builder.add(&tokens, &starts, &[])?;
    }
    builder.finish(session, &Progress::new())
}

/// The keys of a view, by slot.
pub fn keys(session: &Session, name: &str) -> Vec<Vec<i64>> {
    let view = session.view(name).unwrap();
    let key = |slot| {
        let mut key = vec![0; view.heads()];
        view.key_into(slot, &mut key).unwrap();
        key
    };
    (0..view.slots()).map(key).collect()
}

/// Bits of e_t from the rows.
pub fn from_rows(table: &Table, rowids: &[i64]) -> Vec<u32> {
    let mut values = vec![0.0f32; rowids.len() * table.dim().unwrap()];
    table.vectors_into(rowids, &mut values).unwrap();
    values.into_iter().map(f32::to_bits).collect()
}

/// Bits of e_t as the table gives it.
pub fn e_t(table: &Table, rowids: &[i64]) -> Vec<u32> {
    let mut values = vec![0.0f32; rowids.len() * table.dim().unwrap()];
    table.e_t_into(rowids, &mut values).unwrap();
    values.into_iter().map(f32::to_bits).collect()
}

/// Asserts that e_t of `tokens` is that of the rows, in both types.
pub fn check_e_t(table: &Arc<Table>, tokens: &[i64]) {
    let rowids = table.rowids(tokens, &[]).unwrap();
    assert!(e_t(table, &rowids) == from_rows(table, &rowids));
    let mut expected = vec![0; rowids.len() * table.dim().unwrap()];
    let mut found = expected.clone();
    table.vectors_bf16_into(&rowids, &mut expected).unwrap();
    table.e_t_bf16_into(&rowids, &mut found).unwrap();
    assert!(found == expected);
}

/// Every file below `directory` with its bytes, but what says when it was built.
pub fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut bytes = std::fs::read(&path).unwrap();
            if path.file_name().unwrap() == "manifest.json" {
                let mut json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                json["blake3"].take();
                json["engramsql"]["built_at"].take();
                bytes = json.to_string().into_bytes();
            }
            found.insert(path.strip_prefix(directory).unwrap().to_owned(), bytes);
        }
    }
    found
}
