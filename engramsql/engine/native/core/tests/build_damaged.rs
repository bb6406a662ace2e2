//! Damage of a built table does not get into what is built from it.

mod built;

use built::{Random, Shape, content, flip, shard, write_store};
use engram_engine::build::{BuildOptions, BuildSource, Unfinished, build};
use engram_engine::catalog::{RegisterOptions, Session};
use engram_engine::storage::checksum::Checksums;
use engram_engine::{Error, ErrorKind, Progress};
use std::path::Path;

/// Rows of an odd width, blocks that end between them, and a last shard that is short.
const SHAPE: Shape = Shape { rows: 10_000, rows_per_shard: 3000, width: 137 };
const BLOCK: usize = 65_536;

fn temporary() -> tempfile::TempDir {
    // Beside the build's files: a temporary directory is often in memory and knows no direct reads.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Builds `name` from the store in another session, which has never seen it.
fn build_from(home: &Path, name: &str, options: &BuildOptions) -> Result<(), Error> {
    let session = Session::open(&home.join("db"), false, true).unwrap();
    let source = BuildSource::Path(home.join("store"), RegisterOptions::default());
    build(&session, name, &source, options, &Progress::new()).map(drop)
}

#[test]
fn a_flipped_bit_anywhere_ends_the_build_and_names_file_and_block() {
    let home = temporary();
    let (store, rows) = (home.path().join("store"), content(SHAPE, 7));
    write_store(&store, SHAPE, &rows);
    let full = SHAPE.rows_per_shard * SHAPE.width;
    let mut random = Random(11);
    // As the source is cut, all in one, blocks cut by every shard, several shards in one block.
    for (number, shard_bytes) in [full, 1 << 30, BLOCK, 100_001, 2 * full + 137, 20_000].into_iter().enumerate() {
        let (name, jobs) = (format!("t{number}"), 1 + number % 2);
        let options = BuildOptions { shard_bytes: shard_bytes as u64, jobs, ..BuildOptions::default() };
        let discard = BuildOptions { unfinished: Unfinished::Discard, ..options.clone() };
        let resume = BuildOptions { unfinished: Unfinished::Resume, ..options.clone() };
        // The first byte, the last one, both sides of the border of two blocks, and others.
        let mut places = vec![0, rows.len() - 1, BLOCK - 1, BLOCK, 2 * full - 1, 2 * full];
        places.extend((0..4).map(|_| random.below(rows.len())));
        for (place, byte) in places.into_iter().enumerate() {
            let (damaged, offset) = (byte / full, byte % full);
            flip(&shard(&store, damaged), 8 * offset + random.below(8));
            let flipped = std::fs::read(shard(&store, damaged)).unwrap();
            let options = if place == 0 { &options } else { &discard };
            let error = build_from(home.path(), &name, options).unwrap_err();
            let (message, block) = (error.to_string(), offset / BLOCK);
            let size = flipped.len();
            let last = size.min((block + 1) * BLOCK) - 1;
            let expected = format!(
                "shard_{damaged:03}.bin, block {block} (bytes {} to {last}), rows {} to {}: ",
                block * BLOCK,
                damaged * SHAPE.rows_per_shard + block * BLOCK / SHAPE.width,
                damaged * SHAPE.rows_per_shard + last / SHAPE.width,
            );
            assert!(message.contains(&expected), "{shard_bytes} {byte}: {message}, not {expected}");
            assert_eq!(error.kind(), ErrorKind::Storage);
            let session = Session::open(&home.path().join("db"), false, true).unwrap();
            assert!(!session.contains(&name).unwrap());
            assert!(!home.path().join("db/tables").join(&name).exists());
            std::fs::write(shard(&store, damaged), &rows[damaged * full..damaged * full + size]).unwrap();
        }
        // What was done before the damage was met is good, and a repaired source gives the rest.
        build_from(home.path(), &name, &resume).unwrap();
        let session = Session::open(&home.path().join("db"), true, false).unwrap();
        let table = session.table(&name).unwrap();
        let mut copied = vec![0; rows.len()];
        table.scan_into(0, &mut copied).unwrap();
        assert!(copied == rows, "{shard_bytes}");
    }
}

#[test]
fn a_store_without_its_own_checksums_is_not_built_from() {
    let home = temporary();
    let store = home.path().join("store");
    write_store(&store, SHAPE, &content(SHAPE, 8));
    let path = store.join("checksums.bin");
    let (mut checksums, _) = Checksums::read(&path).unwrap();
    checksums.files[0].blocks[0] ^= 1;
    checksums.publish(&path).unwrap();
    let message = build_from(home.path(), "t", &BuildOptions::default()).unwrap_err().to_string();
    assert!(message.contains("checksums.bin") && message.contains("not the one that manifest.json"), "{message}");
    std::fs::remove_file(&path).unwrap();
    let message = build_from(home.path(), "t", &BuildOptions::default()).unwrap_err().to_string();
    assert!(message.contains("checksums.bin"), "{message}");
    // Told before anything is written.
    assert!(!home.path().join("db/tables").exists());
}
