//! Catalogs of format version 1, as releases before materialised views wrote them.

use super::super::document::Document;
use super::*;
use serde_json::Value;

/// A file that version 1 wrote.
const WRITTEN: &str = include_str!("version_1.json");

fn database_with(home: &Path, catalog: &str) -> PathBuf {
    let database = home.join("db");
    fs::create_dir(&database).unwrap();
    fs::write(database.join("engram.json"), catalog).unwrap();
    database
}

/// What version 1 would have written where version 2 wrote `text`.
fn as_version_one(text: &str) -> String {
    let mut catalog: Value = serde_json::from_str(text).unwrap();
    let members = catalog.as_object_mut().unwrap();
    assert_eq!(members.insert("version".into(), 1.into()).unwrap(), 2);
    let sql_views = members.remove("sql_views").unwrap();
    assert_eq!(members.insert("views".into(), sql_views).unwrap(), Value::Array(Vec::new()));
    for table in members["tables"].as_array_mut().unwrap() {
        assert_eq!(table.as_object_mut().unwrap().remove("digest").unwrap(), Value::Null);
    }
    serde_json::to_string_pretty(&catalog).unwrap()
}

#[test]
fn a_file_of_version_one_opens_with_every_property_and_is_written_as_version_two() {
    let home = tempfile::tempdir().unwrap();
    let store = small_store(home.path());
    let database = database_with(home.path(), WRITTEN);
    let before = Session::open(&database, true, false).unwrap();
    let entries = before.tables().unwrap();
    let names: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.rows, entry.heads)).collect();
    assert_eq!(names, [("small", 30, 0), ("v41_l1", 112, 6)]);
    assert_eq!(entries[0].source, store);
    assert_eq!(entries[0].options.scale, Some(0.1));
    assert_eq!(entries[1].constants.as_ref().unwrap().multipliers[0], 27513143700777655);
    assert_eq!(before.sql_views().unwrap(), [SqlViewEntry { name: "few".into(), sql: "SELECT 1".into() }]);
    assert_eq!(before.views().unwrap(), []);
    // Opening writes nothing, even where it may.
    Session::open(&database, false, false).unwrap().table("small").unwrap();
    assert_eq!(fs::read_to_string(database.join("engram.json")).unwrap(), WRITTEN);

    Session::open(&database, false, false).unwrap().drop_sql_view("few").unwrap();
    let text = fs::read_to_string(database.join("engram.json")).unwrap();
    assert!(text.contains(r#""version": 2"#) && text.contains(r#""sql_views": []"#), "{text}");
    assert_eq!(Session::open(&database, true, false).unwrap().tables().unwrap(), entries);
    assert_eq!(fs::read_to_string(database.join("engram.json.bak")).unwrap(), WRITTEN);
}

/// Registers what each call of `make` registers, in both versions.
#[test]
fn every_catalog_reads_the_same_in_both_versions() {
    let home = tempfile::tempdir().unwrap();
    let store = small_store(home.path());
    let none = RegisterOptions::default();
    let sources: [(PathBuf, RegisterOptions); 7] = [
        (store.clone(), width(8)),
        (store.clone(), RegisterOptions { rows_per_shard: Some(20), ..width(4) }),
        (store, RegisterOptions { format: Some("fp8_e4m3".into()), scale: Some(f32::MIN_POSITIVE), ..width(8) }),
        (golden("ckpt_qwen4_exp_fp8"), none.clone()),
        (golden("ckpt_deepseek_v41"), none.clone()),
        (golden("ckpt_deepseek_v41"), RegisterOptions { layer: Some(3), ..none.clone() }),
        (golden("ckpt_qwen4_exp_fp8"), RegisterOptions { format: Some("fp8_e4m3".into()), ..none }),
    ];
    // Every set of the sources, with as many SQL views as tables.
    for set in 0..1u32 << sources.len() {
        let database = home.path().join(format!("db{set}"));
        let session = Session::open(&database, false, true).unwrap();
        for (index, (source, options)) in sources.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1) {
            let name = format!("{}{index}", ["t", "\u{8868}", "select", "a'b", "q\"q"][index % 5]);
            session.register(&name, source, options).unwrap();
            session.create_sql_view(&format!("v{index}"), "SELECT 'x\n\"y\"'", false).unwrap();
        }
        if set == 0 {
            session.create_sql_view("v", "SELECT 1", false).unwrap();
        }
        let path = database.join("engram.json");
        let text = fs::read_to_string(&path).unwrap();
        let second = Document::parse(&database, &path, text.as_bytes()).unwrap();
        assert_eq!(second.tables, session.tables().unwrap());
        assert_eq!(second.sql_views, session.sql_views().unwrap());
        let first = Document::parse(&database, &path, as_version_one(&text).as_bytes()).unwrap();
        assert_eq!(first, second, "{text}");
    }
}

#[test]
fn members_that_no_version_knows_are_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let database = database_with(home.path(), "");
    let refusal = |text: &str| {
        fs::write(database.join("engram.json"), text).unwrap();
        Session::open(&database, true, false).err().unwrap().to_string()
    };
    let message = refusal(r#"{"format": "engramsql-catalog", "version": 1, "tables": [], "views": [], "extra": 1}"#);
    assert!(message.contains("member 'extra' (line 1)") && message.contains("version 1"), "{message}");
    let message = refusal(
        "{\"format\": \"engramsql-catalog\", \"version\": 2, \"tables\": [], \"views\": [],\n\
         \"sql_views\": [{\"name\": \"v\", \"sql\": \"SELECT 1\", \"hidden\": true}]}",
    );
    assert!(message.contains("member 'hidden' (line 2)") && message.contains("version 2"), "{message}");
    // Version 2 has no SQL views under the name of version 1, and must have all its lists.
    let message = refusal(r#"{"format": "engramsql-catalog", "version": 2, "tables": [], "views": []}"#);
    assert!(message.contains("damaged") && message.contains("sql_views"), "{message}");
}

#[test]
fn a_damaged_catalog_points_to_its_backup_only_if_that_reads() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let session = Session::open(&database, false, true).unwrap();
    session.register("a", &store, &width(8)).unwrap();
    let first = fs::read(database.join("engram.json")).unwrap();
    assert!(!database.join("engram.json.bak").exists());
    session.register("b", &store, &width(4)).unwrap();
    assert_eq!(fs::read(database.join("engram.json.bak")).unwrap(), first);
    let whole = fs::read(database.join("engram.json")).unwrap();
    for length in 0..whole.len() - 1 {
        fs::write(database.join("engram.json"), &whole[..length]).unwrap();
        let message = Session::open(&database, true, false).err().unwrap().to_string();
        assert!(message.contains("is damaged") && message.contains("engram.json.bak"), "{length}: {message}");
    }
    // It does what it says: the state before the last change is there again.
    fs::copy(database.join("engram.json.bak"), database.join("engram.json")).unwrap();
    assert_eq!(Session::open(&database, false, false).unwrap().tables().unwrap().len(), 1);

    fs::write(database.join("engram.json"), "{").unwrap();
    fs::write(database.join("engram.json.bak"), "{").unwrap();
    let message = Session::open(&database, true, false).err().unwrap().to_string();
    assert!(message.contains("restore it from a copy") && !message.contains(".bak"), "{message}");
    fs::remove_file(database.join("engram.json")).unwrap();
    let message = Session::open(&database, false, true).err().unwrap().to_string();
    assert!(message.contains("copy it to engram.json"), "{message}");
}
