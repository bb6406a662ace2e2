//! Files that lie: whatever bytes a checkpoint, store or catalog holds, opening it ends in a table or an error.

use engram_engine::catalog::{RegisterOptions, Session};
use std::fs;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../tests/golden").join(name)
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A small deterministic generator; the seed is printed with a failure.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Registers and reads both ends; panics only if the engine does, or if it hands out rows it cannot have.
fn open_and_read(path: &Path) {
    let session = Session::in_memory();
    let Ok(entries) = session.register("t", path, &RegisterOptions::default()) else { return };
    for entry in entries {
        let Ok(table) = session.table(&entry.name) else { continue };
        let ids = [0, table.rows() as i64 - 1];
        let mut rows = vec![0; 2 * table.row_bytes()];
        table.fetch_into(&ids, &mut rows).unwrap();
        if let Some(dim) = table.dim() {
            table.vectors_into(&ids, &mut vec![0.0; 2 * dim]).unwrap();
        }
        if let Some(spec) = table.spec().filter(|spec| spec.can_hash()) {
            let last = spec.vocab_size() as i64 - 1;
            let rowids = table.rowids(&[0, last], &[]).unwrap();
            assert!(table.check_ids(&rowids).is_ok(), "{} hashes outside its table", path.display());
        }
    }
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    // Headers and JSON are what is parsed; a wrong data byte is a wrong value, which no header can show.
    let reach = bytes.len().min(1200);
    match random.below(5) {
        0 => {
            let at = random.below(reach);
            bytes[at] = random.below(256) as u8;
        }
        1 => bytes.truncate(random.below(bytes.len())),
        2 => {
            let at = random.below(reach);
            bytes.insert(at, b'0' + random.below(10) as u8);
        }
        3 => {
            let at = random.below(reach);
            bytes.remove(at);
        }
        _ => {
            // Digits are sizes, shapes and offsets.
            let digits: Vec<usize> = (0..reach).filter(|&at| bytes[at].is_ascii_digit()).collect();
            if let Some(&at) = digits.get(random.below(digits.len().max(1))) {
                bytes[at] = b'0' + random.below(10) as u8;
            }
        }
    }
}

#[test]
fn mutated_checkpoints_and_stores_never_panic() {
    let home = tempfile::tempdir().unwrap();
    let sources =
        ["ckpt_qwen4_exp_fp8", "ckpt_qwen4_exp_bf16", "ckpt_qwen4_exp_nvfp4", "ckpt_deepseek_v41", "peer_store/rows"];
    for name in sources {
        let copy = home.path().join(name);
        copy_directory(&golden(name), &copy);
        let mut files: Vec<PathBuf> = fs::read_dir(&copy).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for seed in 1..400u64 {
            let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let file = &files[random.below(files.len())];
            let before = fs::read(file).unwrap();
            let mut bytes = before.clone();
            for _ in 0..=random.below(3) {
                if !bytes.is_empty() {
                    mutate(&mut random, &mut bytes);
                }
            }
            fs::write(file, &bytes).unwrap();
            let result = std::panic::catch_unwind(|| open_and_read(&copy));
            assert!(result.is_ok(), "seed {seed} on {}", file.display());
            fs::write(file, &before).unwrap();
        }
        open_and_read(&copy);
    }
}

#[test]
fn a_mutated_catalog_never_panics() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let session = Session::open(&database, false, true).unwrap();
    session.register("ple", &golden("ckpt_qwen4_exp_fp8"), &RegisterOptions::default()).unwrap();
    let file = database.join("engram.json");
    let before = fs::read(&file).unwrap();
    for seed in 1..600u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut bytes = before.clone();
        mutate(&mut random, &mut bytes);
        fs::write(&file, &bytes).unwrap();
        let result = std::panic::catch_unwind(|| {
            if let Ok(session) = Session::open(&database, true, false) {
                for entry in session.tables().unwrap() {
                    let _ = session.table(&entry.name);
                }
            }
        });
        assert!(result.is_ok(), "seed {seed}");
    }
}
