//! What builders publish: tables, views, and the names they share.

use super::*;
use crate::build::{StoreDescription, StoreWriter};

/// The entry of a store, as a build publishes it.
pub(super) fn table(name: &str, source: &Path) -> TableEntry {
    let session = Session::in_memory();
    session.register(name, source, &width(8)).unwrap().remove(0)
}

/// The entry of a view of `table` in `directory`.
pub(super) fn view(name: &str, table: &str, directory: &Path) -> ViewEntry {
    ViewEntry {
        name: name.into(),
        directory: directory.to_owned(),
        table: table.into(),
        table_identity: "0".repeat(64),
        slots: 3,
        heads: 2,
        record_bytes: 16,
        bytes: 48,
        form: "rows".into(),
        order: "key".into(),
        tokens: Some(9),
        covered: None,
        digest: "1".repeat(64),
        built_at: 7,
        verified_at: None,
    }
}

/// A store or view below `folder` of the database, with the manifest of one that EngramSQL built if `format` names it.
pub(super) fn built(database: &Path, folder: &str, name: &str, format: Option<&str>) -> PathBuf {
    let path = database.join(folder).join(name);
    fs::create_dir_all(database.join(folder)).unwrap();
    if format == Some("engramsql-store") {
        let description = StoreDescription { format: None, spec: None, layer: None, source: "a test".into() };
        let mut writer = StoreWriter::create(&path, 8, 1 << 20, description).unwrap();
        writer.write_rows(&[1; 80]).unwrap();
        writer.finish().unwrap();
        return path;
    }
    fs::create_dir(&path).unwrap();
    fs::write(path.join("shard_000.bin"), [1; 80]).unwrap();
    let ours = format.map_or(String::new(), |format| format!(r#", "engramsql": {{"format": "{format}"}}"#));
    let manifest = format!(r#"{{"layout": {{"shards": 1, "rows_per_shard": 10, "width": 8}}{ours}}}"#);
    fs::write(path.join("manifest.json"), manifest).unwrap();
    path
}

#[test]
fn a_published_table_replaces_its_namesake_only_when_told() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let session = Session::open(&database, false, true).unwrap();
    session.register("first", &store, &width(8)).unwrap();
    session.register("last", &store, &width(8)).unwrap();
    let new = TableEntry { source: database.join("tables/first"), rows: 31, ..table("FIRST", &store) };
    let error = session.publish_table(new.clone(), false).unwrap_err();
    assert!(error.to_string().contains("a table named 'first' is already there"), "{error}");
    let replaced = session.publish_table(new.clone(), true).unwrap().unwrap();
    assert_eq!((replaced.name.as_str(), replaced.rows, replaced.in_place), ("first", 30, true));
    let now = Session::open(&database, true, false).unwrap().tables().unwrap();
    // In its place, with its own spelling, and known as the database's own.
    assert_eq!(now.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["FIRST", "last"]);
    assert!(!now[0].in_place && now[0].rows == 31);
    assert_eq!(session.publish_table(TableEntry { name: "new".into(), ..new }, true).unwrap(), None);
}

#[test]
fn several_tables_are_published_together_or_not_at_all() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let session = Session::open(&database, false, true).unwrap();
    session.register("t_l3", &store, &width(8)).unwrap();
    let layers = || vec![table("t_l1", &store), table("t_l3", &store)];
    assert!(session.publish_tables(layers(), false).is_err());
    assert_eq!(session.tables().unwrap().len(), 1);
    assert_eq!(Session::open(&database, true, false).unwrap().tables().unwrap().len(), 1);
    assert_eq!(session.publish_tables(layers(), true).unwrap().len(), 1);
    assert_eq!(Session::open(&database, true, false).unwrap().tables().unwrap().len(), 2);
}

#[test]
fn views_are_there_again_and_move_with_the_database() {
    let home = tempfile::tempdir().unwrap();
    let store = small_store(home.path());
    let database = home.path().join("a/db");
    let session = Session::open(&database, false, true).unwrap();
    session.register("t", &store, &width(8)).unwrap();
    let (inside, beside) = (database.join("views/v"), home.path().join("a/beside"));
    let far = PathBuf::from("/elsewhere/v");
    for (name, directory) in [("v", &inside), ("w", &beside), ("x", &far)] {
        assert_eq!(session.publish_view(view(name, "T", directory), false).unwrap(), None);
    }
    fs::rename(home.path().join("a"), home.path().join("b")).unwrap();
    let again = Session::open(&home.path().join("b/db"), true, false).unwrap();
    let directories: Vec<_> = again.views().unwrap().into_iter().map(|view| view.directory).collect();
    assert_eq!(directories, [home.path().join("b/db/views/v"), home.path().join("b/beside"), far]);
    let expected = ViewEntry { directory: home.path().join("b/db/views/v"), ..view("v", "T", &inside) };
    assert_eq!(again.view_entry("V").unwrap(), expected);
    assert!(again.view_entry("vv").unwrap_err().to_string().contains("no view named 'vv'; did you mean 'v'?"));
}

#[test]
fn a_view_of_a_table_that_went_meanwhile_is_not_published() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    let error = session.publish_view(view("v", "gone", &home.path().join("db/views/v")), false).unwrap_err();
    assert!(error.to_string().contains("no table named 'gone'"), "{error}");
}

#[test]
fn tables_views_and_sql_views_share_their_names() {
    let home = tempfile::tempdir().unwrap();
    let (store, directory) = (small_store(home.path()), home.path().join("v"));
    let session = Session::in_memory();
    session.register("table", &store, &width(8)).unwrap();
    session.publish_view(view("view", "table", &directory), false).unwrap();
    session.create_sql_view("sql", "SELECT 1", false).unwrap();
    for (taken, what) in [("TABLE", "a table named 'table'"), ("View", "a view named 'view'"), ("Sql", "a SQL view")] {
        let ways = [
            session.register(taken, &store, &width(8)).map(|_| ()),
            session.publish_table(table(taken, &store), taken != "TABLE").map(|_| ()),
            session.publish_view(view(taken, "table", &directory), taken != "View").map(|_| ()),
            session.create_sql_view(taken, "SELECT 2", taken != "Sql"),
        ];
        for way in ways {
            let message = way.unwrap_err().to_string();
            assert!(message.contains(what) && message.contains("already there; drop"), "{message}");
        }
    }
    assert_eq!(session.publish_view(view("VIEW", "table", &directory), true).unwrap().unwrap().name, "view");
}

#[test]
fn a_verification_is_remembered_and_closes_no_table() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let session = Session::open(&database, false, true).unwrap();
    session.register("t", &store, &width(8)).unwrap();
    session.publish_view(view("v", "t", &database.join("views/v")), false).unwrap();
    let open = session.table("t").unwrap();
    let (verified, view_verified) = (session.table_entry("T").unwrap(), session.view_entry("v").unwrap());
    session.mark_table_verified(&verified, Some(11)).unwrap();
    session.mark_view_verified(&view_verified, Some(12)).unwrap();
    assert!(std::sync::Arc::ptr_eq(&open, &session.table("t").unwrap()));
    let again = Session::open(&database, true, false).unwrap();
    assert_eq!(again.table_entry("t").unwrap().verified_at, Some(11));
    assert_eq!(again.view_entry("v").unwrap().verified_at, Some(12));
    session.mark_table_verified(&verified, None).unwrap();
    session.mark_view_verified(&view_verified, None).unwrap();
    let again = Session::open(&database, true, false).unwrap();
    assert_eq!(again.table_entry("t").unwrap().verified_at, None);
    assert_eq!(again.view_entry("v").unwrap().verified_at, None);
    // What has the name by now was not verified.
    session.publish_table(TableEntry { registered_at: 1, ..verified.clone() }, true).unwrap();
    session.publish_view(ViewEntry { digest: "0".repeat(64), ..view_verified.clone() }, true).unwrap();
    for answer in
        [session.mark_table_verified(&verified, Some(13)), session.mark_view_verified(&view_verified, Some(14))]
    {
        assert!(answer.unwrap_err().to_string().contains("was changed by another process meanwhile"));
    }
    assert_eq!(session.table_entry("t").unwrap().verified_at, None);
}

#[test]
fn a_free_directory_is_one_that_nothing_has() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().canonicalize().unwrap().join("db");
    let session = Session::open(&database, false, true).unwrap();
    let free = |kind, name: &str| session.free_directory(kind, name).unwrap();
    assert_eq!(free(Held::Table, "t"), database.join("tables/t"));
    fs::create_dir_all(database.join("tables/t")).unwrap();
    fs::write(database.join("tables/t~2"), "").unwrap();
    std::os::unix::fs::symlink("/nowhere", database.join("tables/t~3")).unwrap();
    assert_eq!(free(Held::Table, "t"), database.join("tables/t~4"));
    assert_eq!(free(Held::View, "t"), database.join("views/t"));
    assert_eq!(free(Held::Table, ".t.building"), database.join("tables/_t.building"));
    assert!(session.free_directory(Held::Table, "../t").is_err());
    let error = Session::in_memory().free_directory(Held::View, "t").unwrap_err();
    assert!(error.to_string().contains("building a view needs a database directory"), "{error}");
}

#[test]
fn a_digest_must_stay_what_it_was() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let session = Session::open(&database, false, true).unwrap();
    session.publish_table(TableEntry { digest: Some("2".repeat(64)), ..table("t", &store) }, false).unwrap();
    let message = session.table("t").err().unwrap().to_string();
    assert!(message.contains(&format!("digest was {}, is now none", "2".repeat(64))), "{message}");
}
