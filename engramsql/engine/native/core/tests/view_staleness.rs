//! Views whose table or record file has become another one: they never answer with what was there before.

mod view_support;

use engram_engine::build::{self, BuildOptions, BuildSource};
use engram_engine::catalog::{RegisterOptions, Session};
use engram_engine::view::{RecordFile, ViewBuilder, ViewOptions};
use engram_engine::{Error, Progress};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};
use view_support::*;

/// Copies the files of a golden directory, which are not to be changed.
fn copied(name: &str, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(golden(name)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}

/// Flips a bit of the last byte of a file, at another time than it was written.
fn changed(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(path, bytes).unwrap();
    let later = SystemTime::now() + Duration::from_secs(5);
    File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
}

#[test]
fn a_view_does_not_hide_that_its_table_has_changed() {
    let directory = directory();
    let checkpoint = directory.path().join("checkpoint");
    copied("ckpt_qwen4_exp_fp8", &checkpoint);
    let database = directory.path().join("db");
    let session = Session::open(&database, false, true).unwrap();
    session.register("t", &checkpoint, &RegisterOptions::default()).unwrap();
    let tokens = vec![5, 4, 3, 9, 9];
    build(&session, "v", "t", std::slice::from_ref(&tokens), ViewOptions::default()).unwrap();
    let table = session.table("t").unwrap();
    let rowids = table.rowids(&tokens, &[]).unwrap();
    assert!(e_t(&table, &rowids) == from_rows(&table, &rowids));
    assert_eq!(table.attached_views()[0].usage().misses, 0);

    let shards = table.shards();
    changed(Path::new(&shards[0].file));
    let mut values = vec![0.0f32; rowids.len() * table.dim().unwrap()];
    let error = table.e_t_into(&rowids, &mut values).unwrap_err();
    assert!(matches!(error, Error::Read(_)) && error.to_string().contains(&shards[0].file), "{error}");
    // Opened anew the table is another one, and the view is not its view.
    let session = Session::open(&database, true, false).unwrap();
    let table = session.table("t").unwrap();
    assert!(table.attached_views().is_empty());
    assert!(session.view("v").unwrap().why().unwrap().contains("another state of table 't'"));
    assert!(e_t(&table, &rowids) == from_rows(&table, &rowids));
}

#[test]
fn a_record_file_that_was_written_to_is_no_view_any_more() {
    let directory = directory();
    let peer = directory.path().join("peer");
    copied("peer_store", &peer);
    let database = directory.path().join("db");
    let session = Session::open(&database, false, true).unwrap();
    let options =
        RegisterOptions { format: Some("fp8_e4m3".to_owned()), scale: Some(0.25), ..RegisterOptions::default() };
    session.register("t", &golden("peer_store/rows"), &options).unwrap();
    let text = std::fs::read_to_string(peer.join("keys.txt")).unwrap();
    let keys: Vec<i64> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
    let records = Some(RecordFile { path: peer.join("view.bin"), slot_bytes: 2560 });
    let options = ViewOptions { heads: Some(16), records, ..ViewOptions::default() };
    let mut builder = ViewBuilder::begin(&session, "v", "t", options).unwrap();
    builder.add_keys(&keys[..16 * 24]).unwrap();
    builder.finish(&session, &Progress::new()).unwrap();
    assert!(Session::open(&database, true, false).unwrap().view("v").unwrap().is_usable());

    changed(&peer.join("view.bin"));
    let error = Session::open(&database, true, false).unwrap().view("v").err().unwrap().to_string();
    assert!(error.contains("view.bin") && error.contains("written to since the view was built"), "{error}");
}

#[test]
fn a_table_that_is_built_again_with_the_same_bits_keeps_its_views_and_another_one_does_not() {
    for name in ["ckpt_qwen4_exp_fp8", "ckpt_deepseek_v41"] {
        let directory = directory();
        let (database, checkpoint) = (directory.path().join("db"), directory.path().join("checkpoint"));
        copied(name, &checkpoint);
        let session = Session::open(&database, false, true).unwrap();
        let source = BuildSource::Path(checkpoint.clone(), RegisterOptions::default());
        let options = BuildOptions { shard_bytes: 5000, replace: true, ..BuildOptions::default() };
        let built = |source: &BuildSource, options: &BuildOptions| {
            build::build(&session, "t", source, options, &Progress::new()).unwrap().remove(0)
        };
        let first = built(&source, &options);
        let tokens = vec![5, 4, 3, 9, 9];
        build(&session, "v", &first.name, std::slice::from_ref(&tokens), ViewOptions::default()).unwrap();
        let identity = session.table(&first.name).unwrap().identity();
        // From the checkpoint again, and from the table itself: at another time, under another digest.
        for source in [&source, &BuildSource::Table(first.name.clone())] {
            if name == "ckpt_deepseek_v41" && matches!(source, BuildSource::Table(_)) {
                continue;
            }
            let again = built(source, &options);
            assert_ne!((&again.digest, &again.source), (&first.digest, &first.source));
            for session in [&session, &Session::open(&database, true, false).unwrap()] {
                let table = session.table(&again.name).unwrap();
                assert_eq!(table.identity(), identity);
                assert_eq!(table.digest(), again.digest.as_deref());
                assert!(session.view("v").unwrap().is_usable());
                let rowids = table.rowids(&tokens, &[]).unwrap();
                assert!(e_t(&table, &rowids) == from_rows(&table, &rowids));
                assert_eq!(table.attached_views()[0].usage().misses, 0);
            }
        }
        // Cut into other shards, it is another one: nothing was compared.
        built(&source, &BuildOptions { shard_bytes: 7000, ..options.clone() });
        assert_ne!(session.table(&first.name).unwrap().identity(), identity);
        assert!(session.view("v").unwrap().why().unwrap().contains("another state of table"));
        built(&source, &options);
        assert!(session.view("v").unwrap().is_usable());
        // One bit of one row.
        let table = Session::in_memory();
        table.register("o", &checkpoint, &RegisterOptions::default()).unwrap();
        let original = table.table(if first.name == "t" { "o" } else { "o_l1" }).unwrap();
        let extent = original.shards().remove(0);
        let mut bytes = std::fs::read(&extent.file).unwrap();
        bytes[extent.offset as usize] ^= 1;
        std::fs::write(&extent.file, bytes).unwrap();
        built(&source, &options);
        assert_ne!(session.table(&first.name).unwrap().identity(), identity);
        assert!(!session.view("v").unwrap().is_usable());
    }
}
