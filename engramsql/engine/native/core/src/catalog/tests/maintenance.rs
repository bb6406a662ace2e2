//! Tables that moved, what is dropped with its data, and what nothing names.

use super::publishing::{built, table, view};
use super::*;
use crate::catalog::lock::WriterLock;
use crate::storage::DirectoryLock;

fn tree(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = match fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    };
    found.sort();
    found
}

fn kinds(session: &Session) -> Vec<(String, &'static str)> {
    let name = |orphan: &Orphan| orphan.path.file_name().unwrap().to_str().unwrap().to_owned();
    session.orphans().unwrap().iter().map(|orphan| (name(orphan), orphan.kind.name())).collect()
}

#[test]
fn a_table_is_found_again_where_its_files_were_moved() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let session = Session::open(&database, false, true).unwrap();
    session.register("t", &store, &width(8)).unwrap();
    session.mark_table_verified(&session.table_entry("t").unwrap(), Some(5)).unwrap();
    session.table("t").unwrap();
    let moved = home.path().join("moved");
    fs::rename(&store, &moved).unwrap();
    assert!(Session::open(&database, false, true).unwrap().table("t").is_err());
    let entry = session.relocate("T", &moved).unwrap();
    assert_eq!((entry.source.as_path(), entry.verified_at, entry.in_place), (moved.as_path(), None, true));
    let again = Session::open(&database, true, false).unwrap();
    assert_eq!(again.tables().unwrap(), [entry]);
    for session in [&session, &again] {
        let mut row = [0; 8];
        session.table("t").unwrap().fetch_into(&[29], &mut row).unwrap();
        assert_eq!(row, [2; 8]);
    }
}

#[test]
fn a_place_that_holds_another_table_is_refused_and_nothing_changes() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let session = Session::open(&database, false, true).unwrap();
    session.register("t", &store, &width(8)).unwrap();
    session.publish_table(TableEntry { digest: Some("3".repeat(64)), ..table("sealed", &store) }, false).unwrap();
    session.register("v", &golden("ckpt_deepseek_v41"), &RegisterOptions::default()).unwrap();
    let before = fs::read(database.join("engram.json")).unwrap();
    let other = home.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("shard_000.bin"), [0; 80]).unwrap();
    let refusal = |name: &str, place: &Path| session.relocate(name, place).unwrap_err().to_string();
    assert!(refusal("t", &other).contains("rows was 30, there it is 10; the table was left where it was"));
    assert!(refusal("sealed", &store).contains("digest was 3333"));
    let message = refusal("v_l1", &golden("ckpt_qwen4_exp_fp8"));
    assert!(message.contains("rows was 112, there it is 1408"), "{message}");
    let message = refusal("v_l3", &golden("ckpt_qwen4_exp_fp8"));
    assert!(message.contains("ckpt_qwen4_exp_fp8") && message.contains("layer 3"), "{message}");
    assert!(refusal("t", &home.path().join("nowhere")).contains("nowhere"));
    assert!(refusal("u", &other).contains("no table named 'u'"));
    assert_eq!(fs::read(database.join("engram.json")).unwrap(), before);
}

#[test]
fn what_was_declared_inside_the_old_place_moves_along() {
    let home = tempfile::tempdir().unwrap();
    let (old, new) = (home.path().join("old"), home.path().join("new"));
    fs::create_dir(&old).unwrap();
    fs::write(old.join("shard_000.bin"), vec![0; 8 * 250]).unwrap();
    let spec = r#"
        name = "tiny"
        family = "qwen_ple_v1"
        description = "a test"
        [config]
        ple_layer_ids = [2]
        ple_embed_dim = 32
        ngram_size = 3
        heads_per_ngram = 2
        eos_token_id = 1
        vocab_size = 512
        ngram_vocab_size_base = 50
        make_ngram_vocab_size_divisible_by = 64
    "#;
    fs::write(old.join("tiny.toml"), spec).unwrap();
    let options = RegisterOptions { spec: Some(old.join("tiny.toml").to_str().unwrap().to_owned()), ..width(8) };
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    session.register("t", &old, &options).unwrap();
    fs::rename(&old, &new).unwrap();
    let entry = session.relocate("t", &new).unwrap();
    assert_eq!(entry.options.spec.as_deref(), new.join("tiny.toml").to_str());
    assert_eq!(session.table("t").unwrap().spec().unwrap().name(), "tiny");
}

#[test]
fn data_of_the_database_goes_with_its_entry_when_asked() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().canonicalize().unwrap().join("db");
    let session = Session::open(&database, false, true).unwrap();
    let store = built(&database, "tables", "t", None);
    session.register("t", &store, &RegisterOptions::default()).unwrap();
    let records = built(&database, "views", "v", None);
    session.publish_view(view("v", "t", &records), false).unwrap();
    assert!(!session.table_entry("t").unwrap().in_place);
    let open = session.table("t").unwrap();

    let message = session.drop("t", true).unwrap_err().to_string();
    assert!(message.contains("table 't' has the views 'v'; drop those first"), "{message}");
    assert_eq!(session.drop_view("V", true).unwrap().directory, records);
    assert_eq!(tree(&database.join("views")), [] as [PathBuf; 0]);
    assert_eq!(session.drop_table("t", false).unwrap().source, store);
    assert_eq!(kinds(&session), [("t".to_owned(), "foreign")]);

    session.register("t", &store, &RegisterOptions::default()).unwrap();
    assert!(matches!(session.drop("T", true).unwrap(), Dropped::Table(entry) if entry.source == store));
    assert_eq!(tree(&database.join("tables")), [] as [PathBuf; 0]);
    assert_eq!(Session::open(&database, true, false).unwrap().tables().unwrap(), []);
    // Whoever still has the table is told; no row comes from what is no longer there.
    let message = open.fetch_into(&[3], &mut [0; 8]).unwrap_err().to_string();
    assert!(message.contains("has disappeared"), "{message}");
    // Twice is an error, not a success.
    assert!(session.drop("t", true).unwrap_err().to_string().contains("no table named 't'"));
}

#[test]
fn data_that_the_database_does_not_own_or_still_needs_is_never_removed() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().canonicalize().unwrap().join("db");
    let session = Session::open(&database, false, true).unwrap();
    let store = small_store(home.path());
    session.register("foreign", &store, &width(8)).unwrap();
    let deep = built(&database, "tables/deep", "t", None);
    session.register("deep", &deep, &RegisterOptions::default()).unwrap();
    let own = built(&database, "tables", "own", None);
    session.register("one", &own, &RegisterOptions::default()).unwrap();
    session.register("two", &own.join("../own"), &RegisterOptions::default()).unwrap();
    session.create_sql_view("sql", "SELECT 1", false).unwrap();
    let before = fs::read(database.join("engram.json")).unwrap();
    let refusal = |session: &Session, name: &str| session.drop(name, true).unwrap_err().to_string();
    for name in ["foreign", "deep"] {
        let message = refusal(&session, name);
        assert!(message.contains("it is never removed; drop") && message.contains("without its data"), "{message}");
    }
    assert!(refusal(&session, "one").contains("also holds the data of 'two'"));
    let memory = Session::in_memory();
    memory.register("m", &own, &RegisterOptions::default()).unwrap();
    assert!(refusal(&memory, "m").contains("never removed"));
    // A builder that is about to publish it again holds its lock.
    let lock = DirectoryLock::take(&own).unwrap();
    session.drop("two", false).unwrap();
    assert!(refusal(&session, "one").contains("is being written by another process"));
    drop(lock);
    assert_ne!(fs::read(database.join("engram.json")).unwrap(), before);
    assert_eq!(session.tables().unwrap().len(), 3);
    assert!(store.join("shard_000.bin").exists() && deep.join("shard_000.bin").exists());
    assert!(own.join("shard_000.bin").exists());
    session.drop("sql", true).unwrap();
    session.drop("one", true).unwrap();
    assert!(!own.exists());
}

#[test]
fn a_linked_directory_loses_its_link_only() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().canonicalize().unwrap().join("db");
    let elsewhere = built(home.path(), "disk", "t", None);
    fs::create_dir_all(database.join("tables")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, database.join("tables/t")).unwrap();
    fs::write(
        database.join("engram.json"),
        r#"{"format": "engramsql-catalog", "version": 2, "tables": [], "views": [], "sql_views": []}"#,
    )
    .unwrap();
    let session = Session::open(&database, false, false).unwrap();
    session.register("t", &database.join("tables/t"), &RegisterOptions::default()).unwrap();
    session.drop("t", true).unwrap();
    assert_eq!(tree(&database.join("tables")), [] as [PathBuf; 0]);
    assert!(elsewhere.join("shard_000.bin").exists());
}

#[test]
fn what_lost_its_manifest_is_ours_by_its_checksums_only() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().canonicalize().unwrap().join("db");
    let session = Session::open(&database, false, true).unwrap();
    session.register("t", &small_store(home.path()), &width(8)).unwrap();
    let lost = |name: &str| {
        let path = built(&database, "tables", name, Some("engramsql-store"));
        fs::remove_file(path.join("manifest.json")).unwrap();
        path
    };
    lost("a");
    let bytes = fs::read(built(&database, "tables", "b", Some("engramsql-store")).join("manifest.json")).unwrap();
    fs::write(database.join("tables/b/manifest.json"), &bytes[..bytes.len() / 2]).unwrap();
    // Somebody keeps something else there.
    fs::write(lost("c").join("notes.txt"), "mine").unwrap();
    fs::remove_file(lost("d").join("checksums.bin")).unwrap();
    fs::write(lost("e").join("checksums.bin"), "ENGRAMCS").unwrap();
    let expected = [("a", "store"), ("b", "store"), ("c", "foreign"), ("d", "foreign"), ("e", "foreign")];
    assert_eq!(kinds(&session), expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(session.remove_orphans().unwrap().len(), 2);
    assert_eq!(kinds(&session).len(), 3);
}

#[test]
fn orphans_are_what_nothing_names_and_only_ours_are_removed() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().canonicalize().unwrap().join("db");
    let session = Session::open(&database, false, true).unwrap();
    let named = built(&database, "tables", "named", None);
    session.register("t", &named, &RegisterOptions::default()).unwrap();
    session.register("v", &golden("ckpt_deepseek_v41"), &RegisterOptions::default()).unwrap();
    let records = built(&database, "views", "v", None);
    session.publish_view(view("w", "t", &records), false).unwrap();
    assert_eq!(kinds(&session), []);

    built(&database, "tables", "named~2", Some("engramsql-store"));
    built(&database, "views", "old", Some("engramsql-view"));
    for name in ["tables/.a.building", "tables/.b.building", "views/.trash-1-0", "tables/copied", "tables/.hidden"] {
        fs::create_dir(database.join(name)).unwrap();
        fs::write(database.join(name).join("file"), [0; 7]).unwrap();
    }
    let maps = database.join("token_maps");
    fs::write(maps.join("0123456789abcdef.map"), "").unwrap();
    fs::write(maps.join(".0123456789abcdef.map.x7"), "").unwrap();
    fs::write(maps.join("notes.txt"), "mine").unwrap();
    fs::write(database.join(".engram.json.x7"), "{").unwrap();
    // Somebody is building.
    let lock = DirectoryLock::take(&database.join("tables/.b.building")).unwrap();

    let found = session.orphans().unwrap();
    let expected = [
        (".engram.json.x7", "temporary"),
        (".a.building", "unfinished build"),
        (".b.building", "unfinished build"),
        (".hidden", "foreign"),
        ("copied", "foreign"),
        ("named~2", "store"),
        (".trash-1-0", "trash"),
        ("old", "view"),
        (".0123456789abcdef.map.x7", "temporary"),
        ("0123456789abcdef.map", "token map"),
        ("notes.txt", "foreign"),
    ];
    assert_eq!(kinds(&session), expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert!(found.iter().all(|orphan| orphan.in_use == orphan.path.ends_with(".b.building")));
    assert_eq!(found.iter().find(|orphan| orphan.path.ends_with("copied")).unwrap().bytes, 7);

    assert!(!session.remove_orphan(&named).unwrap());
    assert!(!session.remove_orphan(&database.join("tables/copied")).unwrap());
    assert!(!session.remove_orphan(&database.join("tables/.b.building")).unwrap());
    assert!(session.remove_orphan(&database.join("tables/named~2")).unwrap());
    let before = fs::read(database.join("engram.json")).unwrap();
    assert_eq!(session.remove_orphans().unwrap().len(), 6);
    let left: Vec<_> = session.orphans().unwrap();
    let kept = [".b.building", ".hidden", "copied", "notes.txt"];
    assert_eq!(left.len(), kept.len());
    assert!(left.iter().zip(kept).all(|(orphan, name)| orphan.path.ends_with(name)), "{left:?}");
    drop(lock);
    assert_eq!(session.remove_orphans().unwrap().len(), 1);
    assert_eq!(fs::read(database.join("engram.json")).unwrap(), before);
    assert!(named.join("shard_000.bin").exists() && records.join("shard_000.bin").exists());
    session.table("v_l3").unwrap();
}

#[test]
fn what_a_writer_is_making_is_no_orphan_until_it_is_gone() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().canonicalize().unwrap().join("db");
    let session = Session::open(&database, false, true).unwrap();
    session.register("t", &small_store(home.path()), &width(8)).unwrap();
    fs::create_dir(database.join("token_maps")).unwrap();
    let making = [".engram.json.x7", "token_maps/.0123456789abcdef.map.x7", "token_maps/0123456789abcdef.map"];
    let writer = WriterLock::take(&database).unwrap();
    for name in making {
        fs::write(database.join(name), "{").unwrap();
    }
    fs::create_dir(database.join("tables")).unwrap();
    fs::create_dir(database.join("tables/.a.building")).unwrap();
    let building = (".a.building".to_owned(), "unfinished build");
    for session in [&session, &Session::open(&database, true, false).unwrap()] {
        assert_eq!(kinds(session), std::slice::from_ref(&building));
    }
    drop(writer);
    assert_eq!(session.orphans().unwrap().len(), 1 + making.len());
    // Looking keeps nobody from writing.
    assert_eq!(session.remove_orphans().unwrap().len(), 1 + making.len());
}

#[test]
fn what_is_named_by_another_path_is_no_orphan() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().canonicalize().unwrap().join("db");
    let session = Session::open(&database, false, true).unwrap();
    let store = built(&database, "tables", "t", None);
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&store, &link).unwrap();
    session.register("t", &link, &RegisterOptions::default()).unwrap();
    assert_eq!(kinds(&session), []);
    assert_eq!(session.remove_orphans().unwrap(), []);
    session.table("t").unwrap();
}

#[test]
fn a_session_that_may_not_write_removes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().canonicalize().unwrap().join("db");
    let store = built(&database, "tables", "t", Some("engramsql-store"));
    // Another program's directory does not become a database; what a first build left does.
    fs::create_dir(database.join("tables/foreign")).unwrap();
    Session::open(&database, false, true).err().unwrap();
    fs::remove_dir(database.join("tables/foreign")).unwrap();
    let session = Session::open(&database, false, true).unwrap();
    session.register("t", &store, &RegisterOptions::default()).unwrap();
    let orphan = database.join("tables/orphan");
    fs::create_dir(&orphan).unwrap();
    for file in tree(&store) {
        fs::copy(&file, orphan.join(file.file_name().unwrap())).unwrap();
    }
    let reader = Session::open(&database, true, false).unwrap();
    for refused in [
        reader.drop("t", true).map(|_| ()),
        reader.remove_orphans().map(|_| ()),
        reader.relocate("t", &orphan).map(|_| ()),
        reader.mark_table_verified(&reader.table_entry("t").unwrap(), Some(1)),
        reader.publish_table(table("u", &store), false).map(|_| ()),
    ] {
        assert!(refused.unwrap_err().to_string().contains("read-only"));
    }
    assert_eq!(reader.orphans().unwrap().len(), 1);
    assert!(store.exists() && orphan.exists());
}
