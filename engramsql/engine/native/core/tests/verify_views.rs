//! Verification of views: damage to any of their files, records that are not their keys' rows, keys that lead nowhere.

mod built;
mod view_support;

use built::{copy_directory, flip, object};
use engram_engine::catalog::{RegisterOptions, Session, ViewEntry};
use engram_engine::slot_index::{IndexManifest, Keys, SlotIndex};
use engram_engine::storage::checksum::{Checksums, Summer};
use engram_engine::storage::seal;
use engram_engine::verify::{Finding, Level, verify};
use engram_engine::view::{Form, Order, RecordFile, ViewOptions};
use engram_engine::{Error, Progress};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use view_support::{Random, build, corpus, database, directory, golden, reference};

fn run(session: &Session, name: &str, level: Level) -> (bool, Vec<Finding>) {
    let mut findings = Vec::new();
    let good = verify(session, name, level, false, &Progress::new(), &mut |finding| findings.push(finding)).unwrap();
    assert_eq!(good, findings.iter().all(|finding| finding.ok), "{findings:#?}");
    (good, findings)
}

fn bad(session: &Session, name: &str, level: Level) -> Vec<Finding> {
    run(session, name, level).1.into_iter().filter(|finding| !finding.ok).collect()
}

/// A view `v` of table `t`, with some shards.
fn view(session: &Session, options: ViewOptions) -> ViewEntry {
    let vocabulary = session.table("t").unwrap().spec().unwrap().vocab_size();
    // Three shards and a short one.
    let keys = reference(&session.table("t").unwrap(), &corpus(1, 30, vocabulary)).len() as u64;
    let head = match options.form {
        Form::Rows => session.table("t").unwrap().row_bytes(),
        Form::Float32 => 4 * session.table("t").unwrap().dim().unwrap(),
    };
    let record = (session.table("t").unwrap().spec().unwrap().heads() * head) as u64;
    let slots = options.top.map_or(keys, |top| top.min(keys));
    let options = ViewOptions { shard_bytes: slots / 3 * record, ..options };
    build(session, "v", "t", &corpus(1, 30, vocabulary), options).unwrap()
}

#[test]
fn a_good_view_is_good_at_every_level_and_marked_once_all_of_it_was_read() {
    for (checkpoint, form, order) in
        [("ckpt_qwen4_exp_fp8", Form::Rows, Order::Key), ("ckpt_qwen4_exp_nvfp4", Form::Float32, Order::Access)]
    {
        let home = directory();
        let session = database(home.path(), checkpoint);
        let entry = view(&session, ViewOptions { form, order, ..ViewOptions::default() });
        for level in [Level::Headers, Level::Sample, Level::Full] {
            assert_eq!(session.view_entry("v").unwrap().verified_at, None);
            let (good, findings) = run(&session, "V", level);
            assert!(good, "{findings:#?}");
            let count = |check: &str| findings.iter().filter(|finding| finding.check == check).count();
            let compared = usize::from(level != Level::Headers);
            assert_eq!(
                (count("keys"), count("records"), count("index"), count("stray")),
                (1, compared, 1 + compared, 0)
            );
            assert!(count("block") > 2, "{findings:#?}");
            if level == Level::Full {
                let all = format!("{} records equal the rows of their keys", entry.slots);
                assert!(findings.iter().any(|finding| finding.detail == all), "{findings:#?}");
                let all = format!("{} keys lead to their slots", entry.slots);
                assert!(findings.iter().any(|finding| finding.detail == all), "{findings:#?}");
            }
        }
        assert!(session.view_entry("v").unwrap().verified_at.is_some());
        // A file of others, which the view reads where it lies.
        let shards = session.view("v").unwrap().layout().files.clone();
        let records: Vec<u8> = shards.iter().flat_map(|(path, _)| std::fs::read(path).unwrap()).collect();
        let path = home.path().join("records.bin");
        std::fs::write(&path, [&records[..], b"tail"].concat()).unwrap();
        let slot_bytes = entry.record_bytes;
        let records = Some(RecordFile { path: path.clone(), slot_bytes });
        let options = ViewOptions { form, order, records, ..ViewOptions::default() };
        let vocabulary = session.table("t").unwrap().spec().unwrap().vocab_size();
        build(&session, "outside", "t", &corpus(1, 30, vocabulary), options).unwrap();
        let (good, findings) = run(&session, "outside", Level::Full);
        assert!(good, "{findings:#?}");
        flip(&path, 8 * 700);
        let found = bad(&session, "outside", Level::Full);
        assert!(found[0].check == "block" && found[0].detail.starts_with("records.bin, block 0"), "{found:#?}");
    }
}

#[test]
fn every_flipped_bit_is_found_and_named_by_its_file() {
    let home = directory();
    let session = database(home.path(), "ckpt_qwen4_exp_fp8");
    let entry = view(&session, ViewOptions::default());
    let directory = &entry.directory;
    let index = IndexManifest::read(&directory.join("index")).unwrap();
    let shards = session.view("v").unwrap().layout().shard_count();
    let mut random = Random(3);
    let mut damage = |path: &Path, level: Level, check: &str, shard: Option<u32>| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let bits = std::fs::metadata(path).unwrap().len() * 8;
        for _ in 0..10 {
            let bit = random.below(bits) as usize;
            flip(path, bit);
            let found = bad(&session, "v", level);
            let named =
                |finding: &Finding| finding.check == check && finding.shard == shard && finding.detail.contains(name);
            assert!(found.iter().any(named), "{name}, bit {bit}: {found:#?}");
            flip(path, bit);
        }
        let kept = std::fs::read(path).unwrap();
        std::fs::remove_file(path).unwrap();
        let found = bad(&session, "v", Level::Headers);
        assert!(
            found
                .iter()
                .any(|finding| finding.detail.contains(name) || name == "index.json" && finding.check == "index"),
            "{name} missing: {found:#?}"
        );
        std::fs::write(path, &kept[..kept.len() - 1]).unwrap();
        assert!(!run(&session, "v", Level::Headers).0, "{name} cut");
        std::fs::write(path, kept).unwrap();
    };
    for shard in 0..shards {
        damage(&directory.join(format!("shard_{shard:03}.bin")), Level::Full, "block", Some(shard));
    }
    damage(&directory.join("keys.bin"), Level::Full, "keys", None);
    damage(&directory.join("manifest.json"), Level::Headers, "manifest", None);
    damage(&directory.join("checksums.bin"), Level::Headers, "manifest", None);
    damage(&directory.join("index").join(&index.data), Level::Full, "index", None);
    damage(&directory.join("index").join(&index.checksums.file), Level::Headers, "index", None);
    damage(&directory.join("index/index.json"), Level::Headers, "index", None);
    assert!(run(&session, "v", Level::Full).0);
}

/// Writes checksums and manifest of a view anew, as if it had been built with what its files hold now, and its index over
/// the keys in `keys`.
fn seal_anew(session: &Session, entry: &ViewEntry, keys: &Path) {
    let directory = &entry.directory;
    let (sums, _) = Checksums::read(&directory.join("checksums.bin")).unwrap();
    let names: Vec<String> =
        (0..sums.files.len() - 1).map(|n| format!("shard_{n:03}.bin")).chain(["keys.bin".into()]).collect();
    let files = names.iter().map(|name| {
        let mut summer = Summer::new();
        summer.update(&std::fs::read(directory.join(name)).unwrap());
        summer.finish()
    });
    let digest = Checksums { files: files.collect() }.publish(&directory.join("checksums.bin")).unwrap();
    let (mut manifest, _) = seal::read(&directory.join("manifest.json")).unwrap();
    let key_bytes = manifest["engramsql"]["key_bytes"].as_u64().unwrap() as usize;
    manifest["engramsql"]["checksums"]["blake3"] = Value::String(digest.clone());
    let sealed = seal::publish(&directory.join("manifest.json"), &object(Value::Object(manifest))).unwrap();
    session.publish_view(ViewEntry { digest: sealed, ..entry.clone() }, true).unwrap();
    let keys = Arc::new(Keys::open(keys, entry.heads as usize, key_bytes, entry.slots).unwrap());
    SlotIndex::build(&keys, &directory.join("index"), &digest, 1 << 20, &Progress::new()).unwrap();
}

#[test]
fn records_and_entries_that_were_written_wrong_are_named_by_slot() {
    let home = directory();
    let session = database(home.path(), "ckpt_qwen4_exp_fp8");
    // As many as a sample has, so that it sees all of them.
    let entry = view(&session, ViewOptions { top: Some(900), ..ViewOptions::default() });
    let keys = entry.directory.join("keys.bin");
    // A record of the second shard, at its last byte; sums and seals are right.
    let in_first = session.view("v").unwrap().layout().parts[0].extents()[1].first_row;
    let shard = entry.directory.join("shard_001.bin");
    let bit = (3 * entry.record_bytes as usize - 1) * 8 + 5;
    flip(&shard, bit);
    seal_anew(&session, &entry, &keys);
    assert!(run(&session, "v", Level::Headers).0);
    let slot = in_first + 2;
    for level in [Level::Sample, Level::Full] {
        let found = bad(&session, "v", level);
        let [finding] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(finding.check, "records");
        let detail =
            format!("slot {slot}, byte {}: the record differs from the rows of its key", entry.record_bytes - 1);
        assert_eq!(finding.detail, detail);
    }
    flip(&shard, bit);
    seal_anew(&session, &entry, &keys);
    assert!(run(&session, "v", Level::Full).0);
    // An index over keys of which two are exchanged.
    let mut bytes = std::fs::read(&keys).unwrap();
    let key = bytes.len() / entry.slots as usize;
    let (a, b) = (7, 20);
    for byte in 0..key {
        bytes.swap(a * key + byte, b * key + byte);
    }
    let other = home.path().join("other_keys.bin");
    std::fs::write(&other, bytes).unwrap();
    seal_anew(&session, &entry, &other);
    for level in [Level::Sample, Level::Full] {
        let found = bad(&session, "v", level);
        assert_eq!(found.iter().map(|finding| finding.check).collect::<Vec<_>>(), ["index", "index"], "{found:#?}");
        for (finding, slot) in found.iter().zip([a, b]) {
            assert_eq!(finding.detail, format!("the key of slot {slot} does not lead to it"));
        }
    }
    // An index of other keys altogether, by its own word.
    seal_anew(&session, &entry, &keys);
    assert!(run(&session, "v", Level::Full).0);
    let opened = session.view("v").unwrap().keys().clone();
    SlotIndex::build(&opened, &entry.directory.join("index"), &"0".repeat(64), 1 << 20, &Progress::new()).unwrap();
    let found = bad(&session, "v", Level::Headers);
    assert!(found[0].check == "index" && found[0].detail.contains("other keys"), "{found:#?}");
}

#[test]
fn a_view_of_another_state_of_its_table_is_told() {
    let home = directory();
    let source = home.path().join("source");
    copy_directory(&golden("ckpt_qwen4_exp_bf16"), &source);
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    session.register("t", &source, &RegisterOptions::default()).unwrap();
    view(&session, ViewOptions::default());
    let file =
        std::fs::File::options().write(true).open(session.table("t").unwrap().layout().files[0].0.clone()).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let found = bad(&session, "v", Level::Headers);
    assert!(found.len() == 1 && found[0].detail.contains("another state of table 't'"), "{found:#?}");
    assert!(found[0].expected.is_some() && found[0].expected != found[0].found);
    // And a table that is gone.
    std::fs::rename(&source, home.path().join("away")).unwrap();
    let found = bad(&session, "v", Level::Full);
    assert!(found.len() == 1 && found[0].detail.contains("its table does not open"), "{found:#?}");
}

#[test]
fn an_interrupted_verification_of_a_view_goes_on() {
    let home = directory();
    let session = database(home.path(), "ckpt_qwen4_exp_fp8");
    view(&session, ViewOptions::default());
    let progress = Progress::new();
    let answer = verify(&session, "v", Level::Full, true, &progress, &mut |finding| {
        if finding.check == "index" {
            progress.cancel();
        }
    });
    assert!(matches!(answer, Err(Error::Cancelled)), "{answer:?}");
    let mut findings = Vec::new();
    assert!(verify(&session, "v", Level::Full, true, &Progress::new(), &mut |f| findings.push(f)).unwrap());
    let before = findings.iter().filter(|finding| finding.detail.contains("found good before")).count();
    let blocks = findings.iter().filter(|finding| ["block", "keys"].contains(&finding.check)).count();
    assert!(before >= blocks, "{findings:#?}");
    assert!(!home.path().join(".verify").exists());
}
