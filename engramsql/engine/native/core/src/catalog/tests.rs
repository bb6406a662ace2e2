use super::*;
use crate::ErrorKind;
use std::fs;
use std::path::{Path, PathBuf};

mod maintenance;
mod publishing;
mod version_one;

/// The "small table": 3 shards x 10 rows x 8 bytes, byte value = shard number.
fn small_store(parent: &Path) -> PathBuf {
    let path = parent.join("store");
    fs::create_dir(&path).unwrap();
    for shard in 0..3u8 {
        fs::write(path.join(format!("shard_{shard:03}.bin")), vec![shard; 80]).unwrap();
    }
    path
}

fn width(bytes: u64) -> RegisterOptions {
    RegisterOptions { width: Some(bytes), ..RegisterOptions::default() }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../tests/golden").join(name)
}

#[test]
fn a_registered_table_is_there_again_at_the_next_open() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let entries = Session::open(&database, false, true).unwrap().register("Small", &store, &width(8)).unwrap();
    assert_eq!((entries[0].rows, entries[0].shards, entries[0].row_bytes), (30, 3, 8));

    let again = Session::open(&database, true, false).unwrap();
    assert_eq!(again.tables().unwrap(), entries);
    let mut out = [0; 24];
    again.table("sMALL").unwrap().fetch_into(&[29, 0, 10], &mut out).unwrap();
    assert_eq!(out, [[2; 8], [0; 8], [1; 8]].concat()[..]);
    // Beside the database, so the two can move together.
    let text = fs::read_to_string(database.join("engram.json")).unwrap();
    assert!(text.contains(r#""source": "../store""#), "{text}");
}

#[test]
fn sessions_of_one_directory_see_each_other() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let (one, two) = (Session::open(&database, false, true).unwrap(), Session::open(&database, false, true).unwrap());
    one.register("a", &store, &width(8)).unwrap();
    let opened = two.table("a").unwrap();
    one.drop_table("A", false).unwrap();
    assert_eq!(two.table("a").err().unwrap().kind(), ErrorKind::UnknownTable);
    // Whoever holds the table keeps it.
    opened.fetch_into(&[3], &mut [0; 8]).unwrap();
    two.register("a", &store, &width(4)).unwrap();
    assert_eq!(one.table("a").unwrap().rows(), 60);
}

#[test]
fn an_unknown_name_brings_the_nearest() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::in_memory();
    let message = session.table("ple").err().unwrap().to_string();
    assert!(message.contains("no table named 'ple'") && message.contains("engram_register"), "{message}");
    session.register("ple_fp8", &small_store(home.path()), &width(8)).unwrap();
    assert!(session.table("pel_fp8").err().unwrap().to_string().contains("did you mean 'ple_fp8'?"));
    assert!(session.table("zzzzzzzzzzz").err().unwrap().to_string().contains("there are 'ple_fp8'"));
}

#[test]
fn names_that_could_not_be_used_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let (session, store) = (Session::in_memory(), small_store(home.path()));
    for name in ["", " ", "a/b", "a\\b", "a#l1", "a\nb"] {
        assert_eq!(session.register(name, &store, &width(8)).unwrap_err().kind(), ErrorKind::Argument, "{name:?}");
    }
    session.register("t", &store, &width(8)).unwrap();
    assert!(session.register("T", &store, &width(8)).unwrap_err().to_string().contains("'t' is already there"));
    session.create_sql_view("v", "SELECT 1", false).unwrap();
    assert!(session.register("V", &store, &width(8)).is_err());
    assert!(session.create_sql_view("t", "SELECT 1", true).is_err());
    assert!(session.create_sql_view("v", "SELECT 2", false).is_err());
    session.create_sql_view("V", "SELECT 2", true).unwrap();
    assert_eq!(session.sql_views().unwrap(), [SqlViewEntry { name: "V".into(), sql: "SELECT 2".into() }]);
}

#[test]
fn a_newer_or_damaged_catalog_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("engram.json");
    let refusal = |content: &str| {
        fs::write(&file, content).unwrap();
        Session::open(home.path(), false, true).err().unwrap().to_string()
    };
    assert!(refusal(r#"{"format": "engramsql-catalog", "version": 3, "new": 1}"#).contains("version 3"));
    assert!(refusal(r#"{"format": "other", "version": 1}"#).contains("'other'"));
    assert!(refusal(r#"{"format": "engramsql-catalog", "ver"#).contains("engram.json' is damaged"));
    assert!(refusal("").contains("damaged"));
}

#[test]
fn a_foreign_directory_does_not_become_a_database() {
    let home = tempfile::tempdir().unwrap();
    let store = small_store(home.path());
    assert!(Session::open(&store, false, true).err().unwrap().to_string().contains("checkpoint or store"));
    assert!(Session::open(home.path(), false, true).err().unwrap().to_string().contains("not empty"));
    assert!(Session::open(&home.path().join("none"), true, true).err().unwrap().to_string().contains("does not exist"));
}

#[test]
fn a_read_only_session_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    Session::open(&database, false, true).unwrap().register("a", &store, &width(8)).unwrap();
    fs::remove_file(database.join("engram.lock")).unwrap();
    let session = Session::open(&database, true, false).unwrap();
    session.table("a").unwrap();
    assert!(session.drop_table("a", false).unwrap_err().to_string().contains("read-only"));
    let names: Vec<_> = fs::read_dir(&database).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["engram.json"]);
}

#[test]
fn a_source_that_became_another_table_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    Session::open(&database, false, true).unwrap().register("a", &store, &width(8)).unwrap();
    fs::write(store.join("shard_003.bin"), [3; 80]).unwrap();
    let message = Session::open(&database, false, true).unwrap().table("a").err().unwrap().to_string();
    assert!(message.contains("rows was 30, is now 40"), "{message}");
}

#[test]
fn hash_constants_keep_all_their_bits() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::open(&home.path().join("db"), false, true).unwrap();
    let entries = session.register("v41", &golden("ckpt_deepseek_v41"), &RegisterOptions::default()).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["v41_l1", "v41_l3"]);
    let again = Session::open(&home.path().join("db"), true, false).unwrap();
    let constants = again.tables().unwrap()[0].constants.clone().unwrap();
    // 2^53 is 9007199254740992: a float on the way would show.
    assert_eq!(constants.multipliers, [27513143700777655, 1737655803763127, 12910564671988999, 26563598708068931]);
    assert!(again.table("v41_l3").is_ok());
    // Both layers share one token map, kept with the catalog: the tokenizer is not read again.
    assert_eq!(fs::read_dir(home.path().join("db/token_maps")).unwrap().count(), 1);
}

#[test]
fn a_path_with_several_layers_asks_which() {
    let session = Session::in_memory();
    let path = golden("ckpt_deepseek_v41").to_str().unwrap().to_owned();
    let message = session.table(&path).err().unwrap().to_string();
    assert!(message.contains("[1, 3]") && message.contains("#l1"), "{message}");
    assert_eq!(session.table(&format!("{path}#l3")).unwrap().layer(), Some(3));
}

#[test]
fn a_writer_that_finds_the_lock_taken_says_by_whom() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    fs::create_dir(&database).unwrap();
    let held = lock::WriterLock::take(&database).unwrap();
    let error = Session::open(&database, false, true).unwrap().register("a", &store, &width(8)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(held);
    Session::open(&database, false, true).unwrap().register("a", &store, &width(8)).unwrap();
}

#[test]
fn a_spec_file_is_found_from_any_working_directory_and_moves_with_the_database() {
    let home = tempfile::tempdir().unwrap();
    let old = home.path().join("old");
    fs::create_dir(&old).unwrap();
    let store = old.join("store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("shard_000.bin"), vec![0; 8 * 250]).unwrap();
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
    Session::open(&old.join("db"), false, true).unwrap().register("t", &store, &options).unwrap();
    let new = home.path().join("new");
    fs::rename(&old, &new).unwrap();
    let table = Session::open(&new.join("db"), true, false).unwrap().table("t").unwrap();
    assert_eq!(table.spec().unwrap().name(), "tiny");
}

#[test]
fn options_that_nothing_would_use_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let (session, store) = (Session::in_memory(), small_store(home.path()));
    let refusal = |options: RegisterOptions| session.register("t", &store, &options).unwrap_err().to_string();
    assert!(refusal(RegisterOptions { scale: Some(2.0), ..width(8) }).contains("scale was given without format"));
    assert!(refusal(RegisterOptions { layer: Some(1), ..width(8) }).contains("layer was given without spec"));
    assert!(refusal(width(0)).contains("rows of 0 bytes"));
    assert!(refusal(width(1 << 40)).contains("rows of 1099511627776 bytes"));
    assert!(refusal(RegisterOptions::default()).contains("row width in bytes must be given"));
}

#[test]
fn a_padded_row_file_needs_a_manifest_that_says_where_its_rows_end() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("badges");
    fs::create_dir(&store).unwrap();
    let rows: Vec<u8> = [vec![7; 8 * 5], vec![0; 4096 - 8 * 5]].concat();
    fs::write(store.join("badge_000.bin"), rows).unwrap();
    let session = Session::in_memory();
    assert!(session.register("t", &store, &width(8)).unwrap_err().to_string().contains("may be padded"));
    let manifest = r#"{"layout": {"shards": 1, "rows_per_shard": 5, "width": 8, "total_rows": 5}}"#;
    fs::write(store.join("manifest.json"), manifest).unwrap();
    assert_eq!(session.register("t", &store, &RegisterOptions::default()).unwrap()[0].rows, 5);
}

#[test]
fn a_dropped_table_is_closed() {
    let home = tempfile::tempdir().unwrap();
    let session = Session::in_memory();
    session.register("t", &small_store(home.path()), &width(8)).unwrap();
    let table = session.table("t").unwrap();
    session.drop_table("t", false).unwrap();
    assert_eq!(std::sync::Arc::strong_count(&table), 1);
}

#[test]
fn what_a_failed_first_change_left_behind_is_no_obstacle() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("engram.lock"), "").unwrap();
    fs::write(home.path().join(".engram.json.abc"), "{").unwrap();
    fs::create_dir(home.path().join("token_maps")).unwrap();
    assert!(Session::open(home.path(), false, true).unwrap().tables().unwrap().is_empty());
}

#[test]
fn a_source_registered_anew_is_opened_anew_by_every_session() {
    let home = tempfile::tempdir().unwrap();
    let (store, database) = (small_store(home.path()), home.path().join("db"));
    let (one, two) = (Session::open(&database, false, true).unwrap(), Session::open(&database, false, true).unwrap());
    one.register("t", &store, &width(8)).unwrap();
    two.table("t").unwrap();
    fs::remove_file(store.join("shard_001.bin")).unwrap();
    fs::write(store.join("shard_001.bin"), [9; 80]).unwrap();
    assert!(two.table("t").unwrap().fetch_into(&[10], &mut [0; 8]).is_err());
    one.drop_table("t", false).unwrap();
    one.register("t", &store, &width(8)).unwrap();
    let mut row = [0; 8];
    two.table("t").unwrap().fetch_into(&[10], &mut row).unwrap();
    assert_eq!(row, [9; 8]);
}

#[test]
fn a_path_means_what_lies_there_now() {
    let home = tempfile::tempdir().unwrap();
    let store = small_store(home.path());
    fs::write(store.join("manifest.json"), r#"{"layout": {"shards": 3, "rows_per_shard": 10, "width": 8}}"#).unwrap();
    let (session, path) = (Session::in_memory(), store.to_str().unwrap());
    let opened = session.table(path).unwrap();
    fs::remove_file(store.join("shard_001.bin")).unwrap();
    fs::write(store.join("shard_001.bin"), [9; 80]).unwrap();
    assert!(opened.fetch_into(&[10], &mut [0; 8]).is_err());
    session.table(path).unwrap().fetch_into(&[10], &mut [0; 8]).unwrap();
}

#[test]
fn dots_in_a_path_mean_the_same_from_everywhere() {
    let home = tempfile::tempdir().unwrap();
    small_store(home.path());
    fs::create_dir_all(home.path().join("a/b")).unwrap();
    let source = home.path().join("a/b/../../store");
    Session::open(&home.path().join("a/b/../db"), false, true).unwrap().register("t", &source, &width(8)).unwrap();
    let entry = &Session::open(&home.path().join("a/db"), true, false).unwrap().tables().unwrap()[0];
    assert_eq!(entry.source, home.path().canonicalize().unwrap().join("store"));
}

#[test]
fn what_is_no_regular_file_is_not_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let checkpoint = home.path().join("checkpoint");
    fs::create_dir(&checkpoint).unwrap();
    fs::copy(golden("ckpt_qwen4_exp_fp8").join("config.json"), checkpoint.join("config.json")).unwrap();
    let pipe = checkpoint.join("model.safetensors");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let message = Session::in_memory().register("t", &checkpoint, &RegisterOptions::default()).unwrap_err().to_string();
    assert!(message.contains("model.safetensors") && message.contains("not a regular file"), "{message}");
}
