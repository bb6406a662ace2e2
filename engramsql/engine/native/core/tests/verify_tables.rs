//! Verification of tables: whatever is damaged is found and named, and nothing else.

mod built;

use built::{Random, Shape, content, copy_directory, flip, golden, shard, write_store};
use engram_engine::build::{BuildOptions, BuildSource, build};
use engram_engine::catalog::{RegisterOptions, Session};
use engram_engine::verify::{Finding, Level, compare, verify};
use engram_engine::{Error, ErrorKind, Progress};
use std::path::Path;

/// Rows of an odd width, blocks that end between them, and a last shard that is short.
const SHAPE: Shape = Shape { rows: 10_000, rows_per_shard: 3000, width: 137 };
const BLOCK: usize = 65_536;

fn temporary() -> tempfile::TempDir {
    // Beside the build's files: a temporary directory is often in memory and knows no direct reads.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn run(session: &Session, name: &str, level: Level) -> (bool, Vec<Finding>) {
    let mut findings = Vec::new();
    let good = verify(session, name, level, false, &Progress::new(), &mut |finding| findings.push(finding)).unwrap();
    assert_eq!(good, findings.iter().all(|finding| finding.ok), "{findings:#?}");
    (good, findings)
}

fn bad(session: &Session, name: &str, level: Level) -> Vec<Finding> {
    run(session, name, level).1.into_iter().filter(|finding| !finding.ok).collect()
}

/// A database with the built store `t`.
fn database(home: &Path) -> Session {
    let session = Session::open(&home.join("db"), false, true).unwrap();
    let store = home.join("db/tables/t");
    write_store(&store, SHAPE, &content(SHAPE, 1));
    session.register("t", &store, &RegisterOptions::default()).unwrap();
    session
}

#[test]
fn a_good_store_is_good_at_every_level_and_marked_once_all_of_it_was_read() {
    let home = temporary();
    let session = database(home.path());
    for level in [Level::Headers, Level::Sample, Level::Full] {
        assert_eq!(session.table_entry("T").unwrap().verified_at, None);
        let (good, findings) = run(&session, "T", level);
        assert!(good, "{level:?} {findings:#?}");
        let blocks: Vec<_> = findings.iter().filter(|finding| finding.check == "block").collect();
        assert_eq!(blocks.iter().map(|finding| finding.shard).collect::<Vec<_>>(), [0, 1, 2, 3].map(Some));
        let expected = match level {
            Level::Headers => "shard_001.bin: 3 of 7 blocks",
            // Fewer blocks than a sample has.
            Level::Sample => "shard_001.bin: 7 of 7 blocks",
            Level::Full => "shard_001.bin: 7 blocks",
        };
        assert_eq!(blocks[1].detail, expected);
        let rows = findings.iter().filter(|finding| finding.check == "rows").count();
        assert_eq!(rows, if level == Level::Headers { 0 } else { 4 });
    }
    assert!(session.table_entry("t").unwrap().verified_at.is_some_and(|at| at > 1_600_000_000_000_000));
    // By its path, too.
    let path = home.path().join("db/tables/t");
    assert!(run(&session, path.to_str().unwrap(), Level::Full).0);
}

#[test]
fn what_was_built_is_good_and_equal_to_its_source() {
    let home = temporary();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    for (name, from) in [("ds", "ckpt_deepseek_v41"), ("ple", "ckpt_qwen4_exp_nvfp4"), ("peer", "peer_store/rows")] {
        let options = BuildOptions { shard_bytes: 5000, ..BuildOptions::default() };
        let source = BuildSource::Path(golden(from), RegisterOptions::default());
        for entry in build(&session, name, &source, &options, &Progress::new()).unwrap() {
            let (good, findings) = run(&session, &entry.name, Level::Full);
            assert!(good, "{findings:#?}");
            let count = |check: &str| findings.iter().filter(|finding| finding.check == check).count() as u64;
            let token_maps = u64::from(name == "ds");
            assert_eq!(
                (count("block"), count("rows"), count("token_map"), count("stray")),
                (entry.shards, entry.shards, token_maps, 0)
            );
            let path = match entry.layer {
                Some(layer) => format!("{}#l{layer}", golden(from).display()),
                None => golden(from).display().to_string(),
            };
            let (built, original) = (session.table(&entry.name).unwrap(), session.table(&path).unwrap());
            assert_eq!(compare(&original, &built, 1, &Progress::new(), None).unwrap().different, 0);
        }
    }
    // What is wrong with a table that does not open is a finding, too.
    let store = session.table_entry("ds_l3").unwrap().source;
    flip(&store.join("manifest.json"), 300);
    assert!(Session::open(&home.path().join("db"), true, false).unwrap().table("ds_l3").is_err());
    let found = bad(&session, "ds_l3", Level::Headers);
    assert_eq!((found.len(), found[0].check), (1, "manifest"), "{found:#?}");
}

#[test]
fn what_is_found_bad_at_any_level_is_no_longer_remembered_as_verified() {
    let home = temporary();
    let session = database(home.path());
    let verified_at = || session.table_entry("t").unwrap().verified_at;
    let first = shard(&home.path().join("db/tables/t"), 0);
    let read_only = Session::open(&home.path().join("db"), true, false).unwrap();
    for level in [Level::Headers, Level::Sample, Level::Full] {
        assert!(run(&session, "t", Level::Full).0);
        let before = verified_at();
        assert!(before.is_some());
        // A level that does not read all of it says nothing new of what is good.
        assert!(run(&session, "t", Level::Sample).0);
        assert_eq!(verified_at(), before);
        flip(&first, 0);
        assert!(!run(&read_only, "t", level).0);
        assert_eq!(verified_at(), before);
        assert!(!run(&session, "t", level).0);
        assert_eq!(verified_at(), None, "{level:?}");
        flip(&first, 0);
        let reopened = Session::open(&home.path().join("db"), true, false).unwrap();
        assert_eq!(reopened.table_entry("t").unwrap().verified_at, None);
    }
}

#[test]
fn every_flipped_bit_of_a_shard_is_found_and_named_by_shard_and_block() {
    let home = temporary();
    let session = database(home.path());
    let store = home.path().join("db/tables/t");
    let mut random = Random(7);
    for round in 0..200 {
        let number = random.below(SHAPE.shards());
        let path = shard(&store, number);
        let bytes = std::fs::metadata(&path).unwrap().len() as usize;
        // Both ends of the file among them.
        let byte = match round {
            0 => 0,
            1 => bytes - 1,
            _ => random.below(bytes),
        };
        let bit = 8 * byte + random.below(8);
        flip(&path, bit);
        let found = bad(&session, "t", Level::Full);
        let [finding] = &found[..] else { panic!("shard {number}, byte {byte}: {found:#?}") };
        assert_eq!((finding.check, finding.shard), ("block", Some(number as u32)));
        let block = byte / BLOCK;
        let (start, end) = (block * BLOCK, ((block + 1) * BLOCK).min(bytes) - 1);
        let first = number * SHAPE.rows_per_shard;
        let detail = format!(
            "shard_{number:03}.bin, block {block} (bytes {start} to {end}), rows {} to {}",
            first + start / SHAPE.width,
            first + end / SHAPE.width
        );
        assert_eq!(finding.detail, detail);
        let digits = |value: &Option<String>| value.as_ref().map(|v| (v.len(), u64::from_str_radix(v, 16).is_ok()));
        assert_eq!((digits(&finding.expected), digits(&finding.found)), (Some((16, true)), Some((16, true))));
        assert_ne!(finding.expected, finding.found);
        flip(&path, bit);
    }
    assert!(run(&session, "t", Level::Full).0);
}

#[test]
fn every_flipped_bit_of_what_describes_the_store_is_found_at_once() {
    let home = temporary();
    let session = database(home.path());
    let store = home.path().join("db/tables/t");
    let mut random = Random(11);
    for (file, check) in [("manifest.json", "manifest"), ("checksums.bin", "manifest"), ("token_map.map", "token_map")]
    {
        let path = store.join(file);
        let bits = std::fs::metadata(&path).unwrap().len() as usize * 8;
        for _ in 0..60 {
            let bit = random.below(bits);
            flip(&path, bit);
            let found = bad(&session, "t", Level::Headers);
            assert!(found.iter().any(|finding| finding.check == check), "{file}, bit {bit}: {found:#?}");
            assert!(found.iter().any(|finding| finding.detail.contains(file)), "{file}, bit {bit}: {found:#?}");
            flip(&path, bit);
        }
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let found = bad(&session, "t", Level::Headers);
        assert!(found.iter().any(|finding| finding.detail.contains(file)), "{file} missing: {found:#?}");
        std::fs::write(&path, kept).unwrap();
    }
    assert!(run(&session, "t", Level::Headers).0);
}

#[test]
fn swapped_cut_extended_replaced_missing_and_stray_shards_are_found_by_headers() {
    let home = temporary();
    let session = database(home.path());
    let store = home.path().join("db/tables/t");
    let checks = |found: &[Finding]| -> Vec<(&'static str, Option<u32>)> {
        let mut checks: Vec<_> = found.iter().map(|finding| (finding.check, finding.shard)).collect();
        checks.dedup();
        checks
    };
    let (first, second, last) = (shard(&store, 0), shard(&store, 1), shard(&store, 3));

    let swap = || {
        let aside = store.join("aside");
        std::fs::rename(&first, &aside).unwrap();
        std::fs::rename(&second, &first).unwrap();
        std::fs::rename(&aside, &second).unwrap();
    };
    swap();
    assert_eq!(checks(&bad(&session, "t", Level::Headers)), [("block", Some(0)), ("block", Some(1))]);
    swap();

    let kept = std::fs::read(&second).unwrap();
    std::fs::write(&second, &kept[..kept.len() - 17]).unwrap();
    let found = bad(&session, "t", Level::Headers);
    assert_eq!(checks(&found), [("size", Some(1))]);
    assert_eq!(found[0].detail, "shard_001.bin: 17 bytes missing");
    assert_eq!((found[0].expected.as_deref(), found[0].found.as_deref()), (Some("411000"), Some("410983")));
    // What is left of it and all others are looked at.
    let (_, all) = run(&session, "t", Level::Full);
    let blocks: Vec<_> = all.iter().filter(|f| f.check == "block").map(|f| (f.ok, f.detail.as_str())).collect();
    assert_eq!(blocks[1], (true, "shard_001.bin: 6 of 7 blocks"));
    assert_eq!(blocks.len(), 4);

    std::fs::write(&second, [&kept[..], &[0; 3]].concat()).unwrap();
    let found = bad(&session, "t", Level::Headers);
    assert_eq!(
        (checks(&found), found[0].detail.as_str()),
        (vec![("size", Some(1))], "shard_001.bin: 3 bytes too many")
    );
    assert_eq!(checks(&bad(&session, "t", Level::Full)), [("size", Some(1))]);

    std::fs::write(&second, vec![7; kept.len()]).unwrap();
    assert_eq!(checks(&bad(&session, "t", Level::Headers)), [("block", Some(1))]);

    std::fs::remove_file(&second).unwrap();
    let found = bad(&session, "t", Level::Headers);
    assert_eq!((checks(&found), found[0].detail.as_str()), (vec![("files", Some(1))], "shard_001.bin is missing"));
    std::fs::create_dir(&second).unwrap();
    assert_eq!(checks(&bad(&session, "t", Level::Full)), [("files", Some(1))]);
    std::fs::remove_dir(&second).unwrap();
    std::fs::write(&second, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 411000\n").unwrap();
    assert_eq!(checks(&bad(&session, "t", Level::Headers)), [("size", Some(1))]);
    std::fs::write(&second, &kept).unwrap();

    std::fs::copy(&last, shard(&store, 4)).unwrap();
    let found = bad(&session, "t", Level::Headers);
    assert_eq!(checks(&found), [("stray", None)]);
    assert!(found[0].detail.starts_with("shard_004.bin"), "{}", found[0].detail);
    std::fs::remove_file(shard(&store, 4)).unwrap();
    // Other files are told and no matter.
    std::fs::write(store.join("README"), "x").unwrap();
    let (good, findings) = run(&session, "t", Level::Headers);
    assert!(good && findings.iter().any(|finding| finding.check == "stray" && finding.detail.starts_with("README")));
}

#[test]
fn a_store_that_was_replaced_by_a_whole_one_is_found() {
    let home = temporary();
    let session = database(home.path());
    let store = home.path().join("db/tables/t");
    // Checksums of another build beside this manifest.
    let kept = std::fs::read(store.join("checksums.bin")).unwrap();
    let other = home.path().join("other");
    write_store(&other, SHAPE, &content(SHAPE, 2));
    std::fs::copy(other.join("checksums.bin"), store.join("checksums.bin")).unwrap();
    let found = bad(&session, "t", Level::Headers);
    assert!(found[0].check == "manifest" && found[0].detail.contains("not the one that manifest.json"), "{found:#?}");
    std::fs::write(store.join("checksums.bin"), kept).unwrap();
    assert!(run(&session, "t", Level::Headers).0);
}

#[test]
fn many_bad_blocks_are_summed_up() {
    let home = temporary();
    let session = Session::in_memory();
    let shape = Shape { rows: 130, rows_per_shard: 130, width: BLOCK };
    let store = home.path().join("store");
    write_store(&store, shape, &content(shape, 1));
    session.register("t", &store, &RegisterOptions::default()).unwrap();
    (0..130).for_each(|block| flip(&shard(&store, 0), 8 * block * BLOCK));
    let found = bad(&session, "t", Level::Full);
    assert_eq!(found.len(), 101);
    assert_eq!(found[100].detail, "shard_000.bin: 30 more bad blocks");
}

#[test]
fn what_is_read_in_place_is_read_and_not_proven() {
    let home = temporary();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    for (name, from) in [("ds", "ckpt_deepseek_v41"), ("ple", "ckpt_qwen4_exp_fp8"), ("peer", "peer_store/rows")] {
        let source = home.path().join(name);
        copy_directory(&golden(from), &source);
        for entry in session.register(name, &source, &RegisterOptions::default()).unwrap() {
            let (good, findings) = run(&session, &entry.name, Level::Full);
            assert!(good, "{findings:#?}");
            let last = findings.last().unwrap();
            assert!(last.check == "block" && last.detail.contains("--against"), "{findings:#?}");
            let read = findings.iter().filter(|f| f.check == "rows" && f.detail.ends_with("bytes read")).count();
            assert_eq!(read as u64, entry.shards, "{findings:#?}");
            assert!(session.table_entry(&entry.name).unwrap().verified_at.is_some());
        }
    }
    // A shard that is cut, and one that is gone, are findings of a table that does not open.
    let source = home.path().join("ds");
    let file = source.join("model-00002-of-00002.safetensors");
    let kept = std::fs::read(&file).unwrap();
    let name = "ds_l3";
    std::fs::write(&file, &kept[..kept.len() - 17]).unwrap();
    let found = bad(&session, name, Level::Headers);
    assert_eq!((found.len(), found[0].check), (1, "size"));
    assert!(found[0].detail.contains("17 bytes missing"), "{found:#?}");
    std::fs::remove_file(&file).unwrap();
    let found = bad(&session, name, Level::Headers);
    assert_eq!((found.len(), found[0].check), (1, "files"));
    assert!(found[0].detail.contains("model-00002-of-00002.safetensors"), "{found:#?}");
    std::fs::write(&file, &kept).unwrap();
    std::fs::write(source.join("model.safetensors"), &kept).unwrap();
    let (good, findings) = run(&session, name, Level::Headers);
    assert!(good && findings.iter().any(|f| f.check == "stray" && f.detail.starts_with("model.safetensors")));
    // By path, a layer of it.
    assert!(run(&session, &format!("{}#l3", source.display()), Level::Full).0);
}

#[test]
fn names_and_paths_that_mean_nothing_are_errors() {
    let home = temporary();
    let session = Session::in_memory();
    let refused = |name: &str| verify(&session, name, Level::Full, false, &Progress::new(), &mut |_| ()).unwrap_err();
    assert_eq!(refused("nothing").kind(), ErrorKind::UnknownTable);
    assert!(refused("nothing").to_string().starts_with("no table or view named 'nothing'; "));
    for path in [home.path().join("none"), home.path().to_owned(), golden("ckpt_deepseek_v41"), golden("README.md")] {
        let error = refused(path.to_str().unwrap());
        assert!(error.to_string().contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
    }
    let layer = format!("{}#l2", golden("ckpt_deepseek_v41").display());
    assert!(refused(&layer).to_string().contains("no table for layer 2"));
    let error = Level::from_name("deep").unwrap_err();
    assert_eq!(Error::from(error).to_string(), "no verification level 'deep'; known levels: headers, sample, full");
    assert_eq!(Level::from_name("sample").unwrap(), Level::Sample);
}

#[test]
fn a_read_only_database_is_verified_without_a_trace() {
    let home = temporary();
    drop(database(home.path()));
    let session = Session::open(&home.path().join("db"), true, false).unwrap();
    let mut ok = true;
    assert!(verify(&session, "t", Level::Full, true, &Progress::new(), &mut |f| ok &= f.ok).unwrap() && ok);
    assert_eq!(session.table_entry("t").unwrap().verified_at, None);
    assert!(!home.path().join("db/.verify").exists());
}
