//! Verifications that are cancelled, and disks that fail.

mod built;

use built::{Shape, content, flip, shard, write_store};
use engram_engine::catalog::{RegisterOptions, Session};
use engram_engine::verify::{Finding, Level, verify};
use engram_engine::{Error, Progress};
use std::path::Path;
use std::process::Command;

const SHAPE: Shape = Shape { rows: 64_000, rows_per_shard: 8000, width: 256 };
const SHARD_BYTES: u64 = 8000 * 256;

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn database(home: &Path) -> Session {
    let session = Session::open(&home.join("db"), false, true).unwrap();
    let store = home.join("db/tables/t");
    write_store(&store, SHAPE, &content(SHAPE, 1));
    session.register("t", &store, &RegisterOptions::default()).unwrap();
    session
}

/// Runs it to the end, and says how many bytes were read for blocks or shards.
fn run(session: &Session, resume: bool) -> (bool, u64, Vec<Finding>) {
    let progress = Progress::new();
    let mut findings = Vec::new();
    let good = verify(session, "t", Level::Full, resume, &progress, &mut |finding| findings.push(finding)).unwrap();
    let (stage, done, total) = progress.snapshot();
    assert_eq!((stage, done), ("verify", total));
    (good, done, findings)
}

/// Cancels it at the first finding about a whole shard.
fn interrupt(session: &Session, check: &str) {
    let progress = Progress::new();
    let answer = verify(session, "t", Level::Full, true, &progress, &mut |finding| {
        if finding.check == check && !finding.detail.contains("two readers") {
            progress.cancel();
        }
    });
    assert!(matches!(answer, Err(Error::Cancelled)), "{answer:?}");
}

#[test]
fn a_cancelled_verification_goes_on_where_it_ended() {
    let home = temporary();
    let session = database(home.path());
    let state = home.path().join("db/.verify/t.json");
    interrupt(&session, "block");
    assert!(state.exists());
    assert_eq!(session.table_entry("t").unwrap().verified_at, None);
    let (good, read, findings) = run(&session, true);
    let before = findings.iter().filter(|f| f.check == "block" && f.detail.contains("found good before")).count();
    assert!(good && before >= 1, "{findings:#?}");
    assert_eq!(read, (SHAPE.shards() - before) as u64 * SHARD_BYTES);
    assert!(!state.exists() && !state.parent().unwrap().exists());
    assert!(session.table_entry("t").unwrap().verified_at.is_some());
    // It is complete: the next one reads everything.
    assert_eq!(run(&session, true).1, SHAPE.shards() as u64 * SHARD_BYTES);
}

#[test]
fn what_was_written_to_or_was_bad_is_looked_at_again() {
    let home = temporary();
    let session = database(home.path());
    let store = home.path().join("db/tables/t");
    let all = SHAPE.shards() as u64 * SHARD_BYTES;
    interrupt(&session, "block");
    flip(&shard(&store, 0), 77);
    let (good, read, findings) = run(&session, true);
    assert!(!good && read < all, "{findings:#?}");
    assert!(findings.iter().any(|f| !f.ok && f.shard == Some(0) && f.detail.contains("block 0")), "{findings:#?}");
    // Bad at the interruption, bad after it.
    interrupt(&session, "block");
    assert!(!run(&session, true).0);
    // Without resume nothing is skipped.
    flip(&shard(&store, 0), 77);
    interrupt(&session, "block");
    assert_eq!(run(&session, false).1, all);
    // A state that is not whole is none.
    let state = home.path().join("db/.verify/t.json");
    flip(&state, 500);
    assert_eq!(run(&session, true).1, all);
}

#[test]
fn a_table_read_in_place_goes_on_too() {
    let home = temporary();
    let session = database(home.path());
    let store = home.path().join("db/tables/t");
    for file in ["manifest.json", "checksums.bin", "token_map.map"] {
        std::fs::remove_file(store.join(file)).unwrap();
    }
    session.drop_table("t", false).unwrap();
    session.register("t", &store, &RegisterOptions { width: Some(256), ..RegisterOptions::default() }).unwrap();
    interrupt(&session, "rows");
    let (good, read, findings) = run(&session, true);
    let before = findings.iter().filter(|finding| finding.detail.contains("read before")).count() as u64;
    assert!(good && before >= 1 && read == (SHAPE.shards() as u64 - before) * SHARD_BYTES, "{findings:#?}");
}

/// Runs the test `name` of this file again in a process with that fault, and returns what it printed.
fn with_fault(name: &str, fault: &str, database: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("ENGRAMSQL_FAULT", fault)
        .env("VERIFY_DATABASE", database)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Not a test by itself: verifies the database that the environment names, and prints the bad findings.
#[test]
#[expect(clippy::print_stdout, reason = "its parent reads them")]
fn verified_by_another_process() {
    let Some(database) = std::env::var_os("VERIFY_DATABASE") else { return };
    let session = Session::open(Path::new(&database), false, false).unwrap();
    let good = verify(&session, "t", Level::Full, false, &Progress::new(), &mut |finding| {
        if !finding.ok {
            println!("BAD {} {:?} {}", finding.check, finding.shard, finding.detail);
        }
    });
    println!("ANSWER {good:?}");
}

#[test]
fn a_read_that_fails_is_a_finding_that_names_the_file() {
    let home = temporary();
    drop(database(home.path()));
    let database = home.path().join("db");
    // One read of the stream: its blocks can be read one by one.
    let text = with_fault("verified_by_another_process", "eio@stream:3", &database);
    assert!(text.contains("ANSWER Ok(false)"), "{text}");
    let bad: Vec<&str> = text.lines().filter(|line| line.starts_with("BAD")).collect();
    assert_eq!(bad.len(), 1, "{text}");
    assert!(bad[0].contains("block Some(") && bad[0].contains("shard_00") && bad[0].contains("os error 5"), "{text}");
    // Every read of every stream.
    let text = with_fault("verified_by_another_process", "eio@stream", &database);
    for shard in 0..SHAPE.shards() {
        assert!(text.contains(&format!("BAD block Some({shard}) shard_{shard:03}.bin: reading")), "{text}");
    }
    let store = database.join("tables/t");
    // And of a table without checksums.
    for file in ["manifest.json", "checksums.bin", "token_map.map"] {
        std::fs::remove_file(store.join(file)).unwrap();
    }
    let session = Session::open(&database, false, false).unwrap();
    session.drop_table("t", false).unwrap();
    session.register("t", &store, &RegisterOptions { width: Some(256), ..RegisterOptions::default() }).unwrap();
    let text = with_fault("verified_by_another_process", "eio@stream", &database);
    for shard in 0..SHAPE.shards() {
        let line = text.lines().find(|line| line.starts_with(&format!("BAD rows Some({shard}) "))).unwrap();
        assert!(line.contains(&format!("shard_{shard:03}.bin")) && line.contains("os error 5"), "{text}");
    }
}
