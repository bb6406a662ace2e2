//! Builds that are interrupted: killed, or refused by the disk, at every step. Nothing is registered, and resumed they
//! give the same bytes as a build that nothing interrupted.
//!
//! The interrupted builds run in processes of their own: this binary starts itself, with `ENGRAMSQL_FAULT` set.

mod building;

use building::{contents, golden, names};
use engram_engine::build::{BuildOptions, BuildSource, StoreDescription, StoreWriter, Unfinished, build};
use engram_engine::catalog::{RegisterOptions, Session, TableEntry};
use engram_engine::{Progress, Result};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

const DATABASE: &str = "ENGRAMSQL_TEST_DATABASE";
const REPLACE: &str = "ENGRAMSQL_TEST_REPLACE";
const STORE: &str = "ENGRAMSQL_TEST_STORE";
/// Every step at which something is written, renamed or read.
const STEPS: &[&str] = &[
    "build.plan",
    "build.shard:2",
    "stream:2",
    "write:2",
    "sync:2",
    "build.sums:1",
    "build.sums:3",
    "build.check",
    "build.manifest",
    "build.rename",
    "build.catalog",
];

fn options(unfinished: Unfinished, replace: bool) -> BuildOptions {
    BuildOptions { shard_bytes: 10_000, jobs: 1, unfinished, replace, ..BuildOptions::default() }
}

fn build_here(database: &Path, unfinished: Unfinished, replace: bool) -> Result<Vec<TableEntry>> {
    let session = Session::open(database, false, true)?;
    let source = BuildSource::Path(golden("ckpt_deepseek_v41"), RegisterOptions::default());
    build(&session, "t", &source, &options(unfinished, replace), &Progress::new())
}

/// Not a test by itself: what the others run in another process.
#[test]
fn child_of_the_tests() {
    if let Some(database) = std::env::var_os(DATABASE) {
        let answer = build_here(Path::new(&database), Unfinished::Refuse, std::env::var_os(REPLACE).is_some());
        assert!(answer.is_ok(), "REFUSED: {}", answer.unwrap_err());
    }
}

fn build_in_child(database: &Path, fault: &str, replace: bool) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_of_the_tests", "--nocapture"]);
    command.env(DATABASE, database).env("ENGRAMSQL_FAULT", fault);
    if replace {
        command.env(REPLACE, "1");
    }
    command.output().unwrap()
}

/// Files of each built table by name, without what tells when it was begun.
fn built(entries: &[TableEntry]) -> Vec<BTreeMap<String, Vec<u8>>> {
    let mut tables: Vec<_> = entries.iter().map(|entry| contents(&entry.source)).collect();
    for files in &mut tables {
        assert!(files.remove("manifest.json").is_some());
    }
    tables
}

fn uninterrupted() -> Vec<BTreeMap<String, Vec<u8>>> {
    let home = tempfile::tempdir().unwrap();
    built(&build_here(&home.path().join("db"), Unfinished::Refuse, false).unwrap())
}

#[test]
fn a_killed_build_is_resumed_to_the_same_bytes() {
    let expected = uninterrupted();
    for step in STEPS {
        let home = tempfile::tempdir().unwrap();
        let database = home.path().join("db");
        let output = build_in_child(&database, &format!("kill@{step}"), false);
        assert_eq!(output.status.signal(), Some(9), "{step}: {output:?}");
        assert_eq!(Session::open(&database, false, true).unwrap().tables().unwrap(), [], "{step}");

        // Whoever does not say what to do about it is told; only before there was a plan there is nothing to tell.
        let refused = build_here(&database, Unfinished::Refuse, false);
        if *step != "build.plan" {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("resume"), "{step}: {message}");
            assert!(message.contains("discard") || message.contains("restart"), "{step}: {message}");
            let entries = build_here(&database, Unfinished::Resume, false).unwrap();
            assert_eq!(built(&entries), expected, "{step}");
        } else {
            assert_eq!(built(&refused.unwrap()), expected, "{step}");
        }
        assert_eq!(names(&database.join("tables")), ["t_l1", "t_l3"], "{step}");
        assert_eq!(Session::open(&database, true, false).unwrap().orphans().unwrap(), [], "{step}");
    }
}

#[test]
fn a_resumed_build_tells_when_it_was_begun() {
    // Resumed twice from one state, both results are the same file by file, manifest included.
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    build_in_child(&database, "kill@build.shard:4", false);
    let copy = home.path().join("copy");
    let copied = Command::new("cp").arg("-a").arg(&database).arg(&copy).status().unwrap();
    assert!(copied.success());
    let entries = [&database, &copy].map(|database| build_here(database, Unfinished::Resume, false).unwrap());
    for (a, b) in entries[0].iter().zip(&entries[1]) {
        // The layer that was not begun yet was begun at two times.
        let manifests = [a, b].map(|entry| contents(&entry.source).remove("manifest.json").unwrap());
        assert_eq!(a.name == "t_l1", manifests[0] == manifests[1], "{}", a.name);
    }
}

#[test]
fn what_the_disk_refuses_is_told_and_resumed() {
    let expected = uninterrupted();
    for kind in ["eio", "enospc"] {
        for step in STEPS {
            let home = tempfile::tempdir().unwrap();
            let database = home.path().join("db");
            let output = build_in_child(&database, &format!("{kind}@{step}"), false);
            assert!(!output.status.success(), "{kind}@{step}");
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let wanted = if kind == "eio" { "Input/output error" } else { "No space left on device" };
            let message = said.lines().find(|line| line.starts_with("REFUSED")).unwrap_or_else(|| panic!("{said}"));
            assert!(message.contains(wanted), "{kind}@{step}: {message}");
            assert_eq!(Session::open(&database, false, true).unwrap().tables().unwrap(), [], "{kind}@{step}");
            assert_eq!(built(&build_here(&database, Unfinished::Resume, false).unwrap()), expected, "{kind}@{step}");
            assert_eq!(names(&database.join("tables")), ["t_l1", "t_l3"], "{kind}@{step}");
        }
    }
}

#[test]
fn killed_after_the_catalog_was_renamed_the_table_is_there() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let output = build_in_child(&database, "kill@build.published", false);
    assert_eq!(output.status.signal(), Some(9), "{output:?}");
    assert_eq!(Session::open(&database, false, true).unwrap().tables().unwrap().len(), 2);
    let entries = build_here(&database, Unfinished::Resume, false).unwrap();
    assert_eq!(built(&entries), uninterrupted());
    // The old table is the one that is there until the catalog names the new one.
    for (step, place) in [("build.catalog", "t_l1"), ("build.published", "t_l1~2")] {
        let output = build_in_child(&database, &format!("kill@{step}"), true);
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
        let session = Session::open(&database, false, true).unwrap();
        let source = session.table_entry("t_l1").unwrap().source;
        assert_eq!(source.file_name().unwrap(), place);
        session.table("t_l1").unwrap().fetch_into(&[0], &mut vec![0; 264]).unwrap();
        if step == "build.catalog" {
            session.remove_orphans().unwrap();
        }
    }
}

#[test]
fn a_byte_that_the_disk_changed_is_found_by_the_second_reader() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    build_in_child(&database, "kill@build.check", false);
    let shard = database.join("tables/.t_l1.building/shard_001.bin");
    let mut bytes = fs::read(&shard).unwrap();
    // A shard has 37 rows of 264 bytes.
    bytes[5 * 264 + 17] ^= 0x40;
    fs::write(&shard, &bytes).unwrap();
    let message = build_here(&database, Unfinished::Resume, false).unwrap_err().to_string();
    assert!(message.contains("row 42 was built wrong: byte 17 is"), "{message}");
    assert_eq!(Session::open(&database, true, true).unwrap().tables().unwrap(), []);
    let entries = build_here(&database, Unfinished::Discard, false).unwrap();
    assert_eq!(built(&entries), uninterrupted());
}

#[test]
fn a_running_build_is_named_by_its_process() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    build_in_child(&database, "kill@build.shard:2", false);
    let held = engram_engine::storage::DirectoryLock::take(&database.join("tables/.t_l1.building")).unwrap();
    let error = build_here(&database, Unfinished::Resume, false).unwrap_err();
    assert_eq!(error.kind(), engram_engine::ErrorKind::Locked);
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(held);
    build_here(&database, Unfinished::Resume, false).unwrap();
}

/// Not a test by itself: writes rows where the first shard cannot be synced.
#[test]
fn child_that_writes_rows() {
    let Some(store) = std::env::var_os(STORE) else { return };
    let description = StoreDescription { format: None, spec: None, layer: None, source: "rows".to_owned() };
    let mut writer = StoreWriter::create(Path::new(&store), 8, 80, description).unwrap();
    assert!(writer.write_rows(&[1; 160]).is_err());
    let again = writer.write_rows(&[1; 8]).unwrap_err().to_string();
    assert!(again.contains("an earlier write failed"), "{again}");
    let finished = writer.finish().unwrap_err().to_string();
    assert!(finished.contains("an earlier write failed"), "{finished}");
}

#[test]
fn a_store_of_which_a_write_failed_is_never_finished() {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_that_writes_rows", "--nocapture"]);
    command.env(STORE, home.path().join("store")).env("ENGRAMSQL_FAULT", "enospc@sync:1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(names(home.path()), Vec::<String>::new());
}
