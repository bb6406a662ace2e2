//! Builds of views that end in the middle: killed at every point, out of space, cancelled, and gone on with.

mod view_support;

use engram_engine::catalog::Session;
use engram_engine::storage::{DirectoryLock, StorageError, Unfinished};
use engram_engine::view::{Order, ViewBuilder, ViewOptions, build_index};
use engram_engine::{Error, ErrorKind, Progress};
use std::path::Path;
use std::process::{Command, Output};
use view_support::*;

/// Database in which the test that is started as a process of its own builds.
const DATABASE: &str = "ENGRAMSQL_TEST_VIEW_DATABASE";

fn options(unfinished: Unfinished) -> ViewOptions {
    ViewOptions { order: Order::Access, shard_bytes: 400_000, memory: 60_000, unfinished, ..ViewOptions::default() }
}

fn corpus_of(session: &Session) -> Vec<Vec<i64>> {
    corpus(21, 40, session.table("t").unwrap().spec().unwrap().vocab_size())
}

#[test]
fn build_in_a_process_of_its_own() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let session = Session::open(Path::new(&path), false, false).unwrap();
    let corpus = corpus_of(&session);
    if let Err(error) = build(&session, "v", "t", &corpus, options(Unfinished::Refuse)) {
        panic!("{error}");
    }
}

fn build_elsewhere(database: &Path, fault: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "build_in_a_process_of_its_own", "--nocapture"])
        .env(DATABASE, database)
        .env("ENGRAMSQL_FAULT", fault)
        .output()
        .unwrap()
}

/// Whether the build came as far as keys that need not be collected again.
fn has_keys(fault: &str) -> bool {
    !fault.contains("view.plan") && !fault.contains("view.keys") && !fault.contains("sort.run")
}

#[test]
fn whatever_ends_a_build_resuming_it_gives_the_same_view() {
    let undisturbed = directory();
    let session = database(undisturbed.path(), "ckpt_qwen4_exp_fp8");
    let corpus = corpus_of(&session);
    let expected = content(&build(&session, "v", "t", &corpus, options(Unfinished::Refuse)).unwrap().directory);
    assert!(expected.keys().filter(|path| path.to_string_lossy().starts_with("shard_")).count() > 3);
    let faults = [
        "kill@view.plan",
        "kill@sort.run:2",
        "kill@view.keys",
        "kill@view.shard:1",
        "kill@view.shard:3",
        "kill@view.index",
        "kill@index.named",
        "kill@view.manifest",
        "kill@view.rename",
        "kill@view.catalog",
        "panic@view.shard:2",
        "eio@view.index",
        "enospc@write:2",
        "enospc@view.shard:2",
        "eio@view.catalog",
        "enospc@sort.run:1",
    ];
    for fault in faults {
        let directory = directory();
        let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
        let ended = build_elsewhere(directory.path(), fault);
        assert!(!ended.status.success(), "{fault}");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned() + &String::from_utf8_lossy(&ended.stdout);
        if fault.contains("enospc") {
            assert!(said.contains("no space is left for"), "{fault}: {said}");
        }
        // The catalog is as before, and so are the answers.
        assert!(session.views().unwrap().is_empty(), "{fault}");
        check_e_t(&session.table("t").unwrap(), &corpus[3]);
        let named = fault.contains("view.catalog");
        if has_keys(fault) {
            let error = build(&session, "v", "t", &corpus, options(Unfinished::Refuse)).unwrap_err();
            assert!(error.to_string().contains("view 'v' has an unfinished build in"), "{fault}: {error}");
        }
        if has_keys(fault) && !named {
            let other = ViewOptions { top: Some(5), ..options(Unfinished::Resume) };
            let error = build(&session, "v", "t", &corpus, other).unwrap_err();
            assert!(error.to_string().contains("has top none, asked for is 5"), "{fault}: {error}");
        }
        let resumed = ViewBuilder::begin(&session, "v", "t", options(Unfinished::Resume)).unwrap();
        assert_eq!(resumed.keys_are_complete(), has_keys(fault), "{fault}");
        drop(resumed);
        let entry = build(&session, "v", "t", &corpus, options(Unfinished::Resume)).unwrap();
        assert!(content(&entry.directory) == expected, "{fault}");
        assert_eq!(entry.directory.file_name().unwrap(), "v", "{fault}");
        let table = session.table("t").unwrap();
        assert_eq!(table.attached_views().len(), 1);
        check_e_t(&table, &corpus[3]);
        assert!(session.orphans().unwrap().is_empty(), "{fault}: {:?}", session.orphans());
    }
}

#[test]
fn finished_shards_are_kept() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
    assert!(!build_elsewhere(directory.path(), "kill@view.shard:3").status.success());
    let building = directory.path().join("views/.v.building");
    let written = |shard: &str| std::fs::metadata(building.join(shard)).unwrap().modified().unwrap();
    let before = (written("shard_000.bin"), written("shard_001.bin"), written("keys.bin"));
    let builder = ViewBuilder::begin(&session, "v", "t", options(Unfinished::Resume)).unwrap();
    let entry = builder.finish(&session, &Progress::new()).unwrap();
    let written = |shard: &str| std::fs::metadata(entry.directory.join(shard)).unwrap().modified().unwrap();
    assert_eq!((written("shard_000.bin"), written("shard_001.bin"), written("keys.bin")), before);
}

#[test]
fn an_unfinished_build_can_be_discarded() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
    assert!(!build_elsewhere(directory.path(), "kill@view.shard:2").status.success());
    let corpus = corpus_of(&session);
    let other = ViewOptions { top: Some(5), ..options(Unfinished::Discard) };
    assert_eq!(build(&session, "v", "t", &corpus, other).unwrap().slots, 5);
    assert!(session.orphans().unwrap().is_empty());
}

#[test]
fn one_builds_at_a_time_and_a_cancelled_build_goes_on() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
    let corpus = corpus_of(&session);
    let (tokens, starts) = packed(&corpus);
    let mut builder = ViewBuilder::begin(&session, "v", "t", options(Unfinished::Refuse)).unwrap();
    builder.add(&tokens, &starts, &[]).unwrap();
    for unfinished in [Unfinished::Refuse, Unfinished::Resume, Unfinished::Discard] {
        let other = Session::open(directory.path(), false, false).unwrap();
        let error = ViewBuilder::begin(&other, "v", "t", options(unfinished)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    }
    // Cancelled while records are written.
    let progress = Progress::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while progress.snapshot().0 != "records" {
                std::hint::spin_loop();
            }
            progress.cancel();
        });
        assert_eq!(builder.finish(&session, &progress).unwrap_err().kind(), ErrorKind::Cancelled);
    });
    let builder = ViewBuilder::begin(&session, "v", "t", options(Unfinished::Resume)).unwrap();
    assert!(builder.keys_are_complete());
    builder.finish(&session, &Progress::new()).unwrap();
    assert!(session.view("v").unwrap().is_usable());
}

#[test]
fn an_index_is_built_by_one_process_at_a_time() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
    let corpus = corpus_of(&session);
    let entry = build(&session, "v", "t", &corpus, options(Unfinished::Refuse)).unwrap();
    let before = content(&entry.directory);
    let other = DirectoryLock::take(&entry.directory).unwrap();
    let error = build_index(&session, "v", None, &Progress::new()).unwrap_err();
    assert!(matches!(error, Error::Storage(StorageError::Busy { .. })), "{error}");
    // Nor does the view go while somebody writes to it.
    assert!(session.drop_view("v", true).is_err());
    drop(other);
    build_index(&session, "v", None, &Progress::new()).unwrap();
    assert_eq!(content(&entry.directory), before);
}

#[test]
fn shards_are_neither_empty_nor_beyond_number() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
    let no_rows = ViewOptions { shard_bytes: 0, ..ViewOptions::default() };
    let error = build(&session, "v", "t", &[vec![1, 2]], no_rows).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("shard_bytes")), (ErrorKind::Argument, true), "{error}");
    let mut builder =
        ViewBuilder::begin(&session, "v", "t", ViewOptions { shard_bytes: 1, ..ViewOptions::default() }).unwrap();
    builder.add_keys(&vec![0; 100_001 * builder.heads()]).unwrap();
    let error = builder.finish(&session, &Progress::new()).unwrap_err().to_string();
    assert!(error.contains("100001 shards") && error.contains("larger shard_bytes"), "{error}");
    assert_eq!(session.orphans().unwrap(), []);
}

#[test]
fn a_view_that_only_lacks_its_place_in_the_catalog_can_be_discarded_and_a_dropped_one_stays() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
    let corpus = corpus_of(&session);
    assert!(!build_elsewhere(directory.path(), "kill@view.catalog").status.success());
    let entry = build(&session, "v", "t", &corpus, options(Unfinished::Discard)).unwrap();
    assert_eq!(entry.directory.file_name().unwrap(), "v");
    assert_eq!(session.orphans().unwrap(), []);
    session.drop_view("v", false).unwrap();
    for unfinished in [Unfinished::Refuse, Unfinished::Resume, Unfinished::Discard] {
        let next = build(&session, "v", "t", &corpus, options(unfinished)).unwrap();
        assert_eq!(next.directory.file_name().unwrap(), "v~2");
        assert!(entry.directory.join("manifest.json").exists());
        session.drop_view("v", true).unwrap();
    }
}
