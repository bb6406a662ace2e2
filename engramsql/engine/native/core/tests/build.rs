//! Building stores from every kind of source, and what the built stores are worth.

mod building;

use building::{assert_same_rows, contents, golden, names, small_store};
use engram_engine::build::{BuildOptions, BuildSource, StoreDescription, StoreWriter, Unfinished, build};
use engram_engine::catalog::{RegisterOptions, Session, TableEntry};
use engram_engine::format::ValueFormat;
use engram_engine::{Error, ErrorKind, Progress, Result};
use std::fs;
use std::path::Path;

fn source(path: &Path) -> BuildSource {
    BuildSource::Path(path.to_owned(), RegisterOptions::default())
}

fn build_as(session: &Session, name: &str, from: &Path, options: &BuildOptions) -> Result<Vec<TableEntry>> {
    build(session, name, &source(from), options, &Progress::new())
}

#[test]
fn every_golden_checkpoint_is_built_bit_by_bit_and_opens_without_options() {
    for name in ["ckpt_qwen4_exp_fp8", "ckpt_qwen4_exp_bf16", "ckpt_qwen4_exp_nvfp4", "ckpt_deepseek_v41"] {
        for (shard_bytes, jobs, sample_rows) in [(1 << 30, 1, 4096), (2_011, 2, 100), (2_011, 1, 1 << 40)] {
            let home = tempfile::tempdir().unwrap();
            let session = Session::open(&home.path().join("db"), false, true).unwrap();
            let options = BuildOptions { shard_bytes, jobs, sample_rows, ..BuildOptions::default() };
            let entries = build_as(&session, "t", &golden(name), &options).unwrap();
            assert!(entries.iter().all(|entry| !entry.in_place && entry.digest.is_some()), "{entries:?}");

            let other = Session::in_memory();
            for (entry, original) in
                entries.iter().zip(other.register("o", &golden(name), &Default::default()).unwrap())
            {
                let original = other.table(&original.name).unwrap();
                let alone = other.table(entry.source.to_str().unwrap()).unwrap();
                for built in [session.table(&entry.name).unwrap(), alone] {
                    assert_same_rows(&original, &built);
                    assert_eq!(built.format(), original.format());
                    assert_eq!(built.layer(), original.layer());
                    assert_eq!(built.shard_count() > 1, shard_bytes < 1 << 30);
                    let tokens: Vec<i64> = (0..40).map(|i| i * 7 % 97).collect();
                    assert_eq!(built.rowids(&tokens, &[3]).unwrap(), original.rowids(&tokens, &[3]).unwrap());
                    assert_eq!(built.spec().unwrap().name(), original.spec().unwrap().name());
                }
                assert!(names(&entry.source).iter().all(|name| {
                    name.starts_with("shard_") && name.ends_with(".bin")
                        || ["checksums.bin", "manifest.json", "token_map.map"].contains(&name.as_str())
                }));
            }
            assert_eq!(session.orphans().unwrap(), []);
        }
    }
}

#[test]
fn the_number_of_jobs_and_interruptions_leave_no_trace_in_the_bytes() {
    let home = tempfile::tempdir().unwrap();
    let options = |jobs| BuildOptions { shard_bytes: 1000, jobs, ..BuildOptions::default() };
    let mut built = Vec::new();
    for jobs in [1, 2, 3] {
        let session = Session::open(&home.path().join(format!("db{jobs}")), false, true).unwrap();
        let entry = &build_as(&session, "t", &golden("peer_store/rows"), &options(jobs)).unwrap()[0];
        assert_eq!((entry.rows, entry.shards, entry.row_bytes), (256, 43, 160));
        built.push(contents(&entry.source));
    }
    // The manifests tell when they were begun.
    built.iter_mut().for_each(|files| drop(files.remove("manifest.json")));
    assert_eq!(built[0], built[1]);
    assert_eq!(built[0], built[2]);
}

#[test]
fn a_registered_table_can_be_replaced_by_its_own_copy_and_that_by_another() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    let store = small_store(home.path());
    let options = RegisterOptions {
        width: Some(8),
        format: Some("fp8_e4m3".into()),
        scale: Some(0.5),
        ..RegisterOptions::default()
    };
    session.register("t", &store, &options).unwrap();
    let from = BuildSource::Table("t".into());
    let mut options = BuildOptions::default();
    let refused = build(&session, "t", &from, &options, &Progress::new()).unwrap_err();
    assert!(refused.to_string().contains("'t' is already there; replace it, drop it first"), "{refused}");
    options.replace = true;
    let first = build(&session, "t", &from, &options, &Progress::new()).unwrap().remove(0);
    assert_eq!(first.source, home.path().canonicalize().unwrap().join("db/tables/t"));
    assert_eq!((first.format.as_deref(), first.scale, first.shards), (Some("fp8_e4m3"), Some(0.5), 1));
    options.shard_bytes = 70;
    let second = build(&session, "t", &from, &options, &Progress::new()).unwrap().remove(0);
    assert_eq!((second.source.file_name().unwrap().to_str(), second.shards), (Some("t~2"), 4));
    let original = Session::in_memory();
    original.register("o", &store, &RegisterOptions { width: Some(8), ..Default::default() }).unwrap();
    assert_same_rows(&original.table("o").unwrap(), &session.table("t").unwrap());
    assert_eq!(names(&home.path().join("db/tables")), ["t~2"]);
    assert!(store.exists());
}

#[test]
fn what_can_be_known_is_told_before_anything_is_written() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let session = Session::open(&database, false, true).unwrap();
    let store = small_store(home.path());
    let refusal = |session: &Session, name: &str, source: &BuildSource, options: &BuildOptions| -> Error {
        build(session, name, source, options, &Progress::new()).unwrap_err()
    };
    let good = BuildSource::Path(store.clone(), RegisterOptions { width: Some(8), ..Default::default() });
    let options = BuildOptions::default();
    assert_eq!(refusal(&Session::in_memory(), "t", &good, &options).kind(), ErrorKind::Catalog);
    assert_eq!(refusal(&session, "a/b", &good, &options).kind(), ErrorKind::Argument);
    assert!(refusal(&session, "t", &source(&store), &options).to_string().contains("row width"));
    assert_eq!(refusal(&session, "t", &BuildSource::Table("none".into()), &options).kind(), ErrorKind::UnknownTable);
    for options in [
        BuildOptions { jobs: 0, ..options.clone() },
        BuildOptions { jobs: 65, ..options.clone() },
        BuildOptions { shard_bytes: 0, ..options.clone() },
    ] {
        assert_eq!(refusal(&session, "t", &good, &options).kind(), ErrorKind::Argument);
    }
    assert!(!database.exists());
    session.create_sql_view("v", "SELECT 1", false).unwrap();
    let replace = BuildOptions { replace: true, ..options.clone() };
    assert!(refusal(&session, "V", &good, &replace).to_string().contains("SQL view named 'v'"));
    let read_only = Session::open(&database, true, false).unwrap();
    assert!(refusal(&read_only, "t", &good, &options).to_string().contains("read-only"));
    assert!(!database.join("tables").exists());
    // A store of holes: larger than any disk, and nothing of it is on this one.
    let huge = home.path().join("huge");
    fs::create_dir(&huge).unwrap();
    fs::File::create(huge.join("shard_000.bin")).unwrap().set_len(8 << 40).unwrap();
    let huge = BuildSource::Path(huge, RegisterOptions { width: Some(1 << 20), ..Default::default() });
    let message = refusal(&session, "t", &huge, &options).to_string();
    assert!(message.contains("bytes free") || message.contains("free;"), "{message}");
    assert!(!database.join("tables").exists());
}

#[test]
fn options_that_contradict_a_built_store_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    let entry = build_as(&session, "t", &golden("ckpt_qwen4_exp_fp8"), &BuildOptions::default()).unwrap().remove(0);
    let other = Session::in_memory();
    let agree = RegisterOptions {
        format: entry.format.clone(),
        scale: entry.scale,
        width: Some(entry.row_bytes),
        layer: entry.layer,
        ..RegisterOptions::default()
    };
    other.register("agree", &entry.source, &agree).unwrap();
    let none = RegisterOptions::default();
    for (options, what) in [
        (RegisterOptions { format: Some("bf16".into()), ..none.clone() }, "format was declared as bf16"),
        (RegisterOptions { scale: Some(2.0), ..none.clone() }, "scale was declared as 2"),
        (RegisterOptions { width: Some(80), ..none.clone() }, "width was declared as 80"),
        (RegisterOptions { layer: Some(77), ..none.clone() }, "layer was declared as 77"),
        (RegisterOptions { spec: Some("qwen3.8-flash-next".into()), ..none.clone() }, "spec was declared as"),
    ] {
        let message = other.register("x", &entry.source, &options).unwrap_err().to_string();
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn every_flipped_bit_of_a_manifest_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    let store = small_store(home.path());
    let from = BuildSource::Path(store, RegisterOptions { width: Some(8), ..Default::default() });
    let entry = build(&session, "t", &from, &BuildOptions::default(), &Progress::new()).unwrap().remove(0);
    let path = entry.source.join("manifest.json");
    let bytes = fs::read(&path).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, flipped).unwrap();
        assert!(Session::in_memory().register("x", &entry.source, &RegisterOptions::default()).is_err(), "bit {bit}");
    }
    // A manifest that proves itself and is another one: the catalog remembers which it was.
    let text = String::from_utf8(bytes).unwrap();
    fs::write(&path, &text).unwrap();
    Session::open(&home.path().join("db"), true, false).unwrap().table("t").unwrap();
    let other = build(&session, "u", &BuildSource::Table("t".into()), &BuildOptions::default(), &Progress::new());
    fs::copy(other.unwrap()[0].source.join("manifest.json"), &path).unwrap();
    let message = Session::open(&home.path().join("db"), true, false).unwrap().table("t").err().unwrap().to_string();
    assert!(message.contains("digest was"), "{message}");
}

#[test]
fn a_source_that_is_damaged_on_the_way_ends_the_build_and_nothing_is_registered() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    let store = small_store(home.path());
    session.register("t", &store, &RegisterOptions { width: Some(8), ..Default::default() }).unwrap();
    session.table("t").unwrap();
    let options = BuildOptions { shard_bytes: 80, ..BuildOptions::default() };
    let (table, cancelled) = (BuildSource::Table("t".into()), Progress::new());
    cancelled.cancel();
    assert!(matches!(build(&session, "u", &table, &options, &cancelled).unwrap_err(), Error::Cancelled));
    fs::write(store.join("shard_001.bin"), [1; 63]).unwrap();
    let resumed = BuildOptions { unfinished: Unfinished::Resume, ..options.clone() };
    // One that is begun anew does not even begin.
    for (name, options) in [("u", &resumed), ("v", &options)] {
        let error = build(&session, name, &table, options, &Progress::new()).unwrap_err();
        assert!(error.to_string().contains("shard_001.bin' was truncated (17 bytes missing)"), "{error}");
        assert!(!session.contains(name).unwrap());
    }
    assert_eq!(names(&home.path().join("db/tables")), [".u.building"]);
    // Repaired, it is another source: neither the table that was registered nor what the build began with.
    fs::write(store.join("shard_001.bin"), [1; 80]).unwrap();
    let again = BuildSource::Path(store, RegisterOptions { width: Some(8), ..Default::default() });
    let options = BuildOptions { unfinished: Unfinished::Refuse, ..options };
    let message = build(&session, "u", &again, &options, &Progress::new()).unwrap_err().to_string();
    assert!(message.contains("with 0 of 3 shards done"), "{message}");
    let options = BuildOptions { unfinished: Unfinished::Resume, ..options };
    let message = build(&session, "u", &again, &options, &Progress::new()).unwrap_err().to_string();
    assert!(message.contains("its identity of the source is"), "{message}");
    let options = BuildOptions { unfinished: Unfinished::Discard, ..options };
    build(&session, "u", &again, &options, &Progress::new()).unwrap();
    assert_eq!(names(&home.path().join("db/tables")), ["u"]);
}

#[test]
fn a_cancelled_build_is_resumed() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    let options = BuildOptions { shard_bytes: 1000, ..BuildOptions::default() };
    let progress = Progress::new();
    progress.cancel();
    let error = build(&session, "t", &source(&golden("peer_store/rows")), &options, &progress).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let other_size = BuildOptions { unfinished: Unfinished::Resume, shard_bytes: 2000, ..options.clone() };
    let message = build_as(&session, "t", &golden("peer_store/rows"), &other_size).unwrap_err().to_string();
    assert!(message.contains("is 43, now it is 22"), "{message}");
    let resume = BuildOptions { unfinished: Unfinished::Resume, ..options };
    build_as(&session, "t", &golden("peer_store/rows"), &resume).unwrap();
    // Asked again, it says the same.
    build_as(&session, "t", &golden("peer_store/rows"), &resume).unwrap();
    assert_eq!(names(&home.path().join("db/tables")), ["t"]);
}

#[test]
fn a_writer_publishes_whole_stores_only() {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("out");
    let describe = |format| StoreDescription { format, spec: None, layer: None, source: "a query".into() };
    let rows: Vec<u8> = (0..=255).cycle().take(12 * 1000).collect();

    let mut writer = StoreWriter::create(&target, 12, 100, describe(Some(ValueFormat::F32))).unwrap();
    writer.write_rows(&rows[..1200]).unwrap();
    assert!(writer.write_rows(&rows[..13]).unwrap_err().to_string().contains("13 bytes"));
    assert!(StoreWriter::create(&target, 12, 100, describe(None)).is_err());
    drop(writer);
    assert_eq!(names(home.path()), [] as [&str; 0]);

    let empty = StoreWriter::create(&target, 12, 100, describe(None)).unwrap();
    assert_eq!(empty.finish().unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(names(home.path()), [] as [&str; 0]);
    assert!(StoreWriter::create(&target, 13, 100, describe(Some(ValueFormat::F32))).is_err());

    let mut writer = StoreWriter::create(&target, 12, 100, describe(Some(ValueFormat::F32))).unwrap();
    rows.chunks(12 * 7).for_each(|rows| writer.write_rows(rows).unwrap());
    assert_eq!(writer.rows(), 1000);
    let digest = writer.finish().unwrap();
    assert_eq!(names(home.path()), ["out"]);
    let table = Session::in_memory().table(target.to_str().unwrap()).unwrap();
    assert_eq!((table.rows(), table.dim(), table.shard_count()), (1000, Some(3), 125));
    assert_eq!(table.digest(), Some(digest.as_str()));
    let mut out = vec![0; rows.len()];
    table.fetch_into(&(0..1000).collect::<Vec<i64>>(), &mut out).unwrap();
    assert!(out == rows);
    assert!(StoreWriter::create(&target, 12, 100, describe(None)).err().unwrap().to_string().contains("not empty"));
}

#[test]
fn a_replaced_table_is_read_no_more_and_its_name_means_the_new_one() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    let source = golden("ckpt_qwen4_exp_fp8");
    let old = build_as(&session, "t", &source, &BuildOptions::default()).unwrap().remove(0);
    let before = session.table("t").unwrap();
    let replace = BuildOptions { replace: true, shard_bytes: 10_000, ..BuildOptions::default() };
    let new = build_as(&session, "t", &source, &replace).unwrap().remove(0);
    assert_ne!(old.source, new.source);
    assert!(!old.source.exists());
    assert_eq!(session.orphans().unwrap(), []);
    // Whoever still holds it is told, and never given something else.
    let mut row = vec![0; before.row_bytes()];
    let error = before.fetch_into(&[0], &mut row).unwrap_err();
    assert!(matches!(error, Error::Read(_)) && error.to_string().contains("has disappeared"), "{error}");
    assert_same_rows(&session.table("t").unwrap(), &Session::in_memory().table(source.to_str().unwrap()).unwrap());
}
