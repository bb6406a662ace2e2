//! Views over the golden checkpoints: what they hold, and that a table answers the same with and without them.

mod view_support;

use engram_engine::Progress;
use engram_engine::catalog::{RegisterOptions, Session};
use engram_engine::storage::Unfinished;
use engram_engine::view::{Form, Order, RecordFile, ViewBuilder, ViewOptions};
use view_support::*;

#[test]
fn records_are_the_rows_of_the_distinct_keys() {
    for (checkpoint, tables) in CHECKPOINTS {
        let directory = directory();
        let session = database(directory.path(), checkpoint);
        for (name, seed) in tables.iter().zip(1..) {
            let table = session.table(name).unwrap();
            let corpus = corpus(seed, 60, table.spec().unwrap().vocab_size());
            let expected = reference(&table, &corpus);
            for (form, order) in [
                (Form::Rows, Order::Key),
                (Form::Rows, Order::Access),
                (Form::Float32, Order::Key),
                (Form::Float32, Order::Access),
            ] {
                let view_name = format!("{name}_{}_{}", form.name(), order.name());
                let row = match form {
                    Form::Rows => table.row_bytes(),
                    Form::Float32 => 4 * table.dim().unwrap(),
                };
                // Three shards and a shorter one.
                let shard_bytes = (expected.len() / 3 * row * table.spec().unwrap().heads()) as u64;
                let options = ViewOptions { form, order, shard_bytes, ..ViewOptions::default() };
                let entry = build(&session, &view_name, name, &corpus, options).unwrap();
                let tokens = corpus.iter().map(Vec::len).sum::<usize>() as u64;
                assert_eq!(
                    (entry.slots, entry.tokens, entry.covered),
                    (expected.len() as u64, Some(tokens), Some(tokens))
                );

                let mut wanted: Vec<(&Vec<i64>, u64)> =
                    expected.iter().map(|(key, &(first, _))| (key, first)).collect();
                if order == Order::Access {
                    wanted.sort_by_key(|&(_, first)| first);
                }
                let wanted: Vec<Vec<i64>> = wanted.into_iter().map(|(key, _)| key.clone()).collect();
                assert!(keys(&session, &view_name) == wanted, "{view_name} of {checkpoint}");

                let view = session.view(&view_name).unwrap();
                assert!(view.is_usable(), "{:?}", view.why());
                assert!(view.layout().shard_count() > 1);
                let mut records = vec![0; view.record_bytes() * wanted.len()];
                let slots: Vec<i64> = (0..wanted.len() as i64).collect();
                view.records_into(&slots, &mut records).unwrap();
                let ids = wanted.concat();
                let values = from_rows(&table, &ids);
                let mut decoded = vec![0.0; values.len()];
                view.decode_into(&records, &mut decoded).unwrap();
                assert!(
                    decoded.iter().map(|value: &f32| value.to_bits()).eq(values.iter().copied()),
                    "{view_name} of {checkpoint}"
                );
                match form {
                    Form::Rows => {
                        let mut rows = vec![0; ids.len() * table.row_bytes()];
                        table.fetch_into(&ids, &mut rows).unwrap();
                        assert!(records == rows);
                    }
                    Form::Float32 => {
                        let bytes: Vec<u8> = values.iter().flat_map(|bits| bits.to_le_bytes()).collect();
                        assert!(records == bytes);
                    }
                }
                // In another order, with duplicates, one record after the other.
                let mut random = Random(seed);
                let some: Vec<i64> = (0..300).map(|_| random.below(view.slots()) as i64).collect();
                let mut found = vec![0.0f32; some.len() * view.values().unwrap()];
                view.e_t_into(&some, &mut found).unwrap();
                let each = view.values().unwrap();
                for (&slot, found) in some.iter().zip(found.chunks_exact(each)) {
                    let bits: Vec<u32> = found.iter().map(|value| value.to_bits()).collect();
                    assert!(bits == values[slot as usize * each..][..each]);
                }
                let mut slots = vec![0; wanted.len()];
                view.lookup_many(&ids, &mut slots).unwrap();
                assert!(slots.iter().copied().eq(0..wanted.len() as i64));
            }
        }
    }
}

#[test]
fn a_table_answers_the_same_with_and_without_views() {
    for (checkpoint, tables) in CHECKPOINTS {
        for form in [Form::Rows, Form::Float32] {
            let directory = directory();
            let session = database(directory.path(), checkpoint);
            for name in tables {
                let table = session.table(name).unwrap();
                let vocabulary = table.spec().unwrap().vocab_size();
                let known = corpus(5, 20, vocabulary);
                build(&session, &format!("v_{name}"), name, &known, ViewOptions { form, ..Default::default() })
                    .unwrap();
                // The same table; the session has let it know.
                assert!(table.attached_views().is_empty());
                let again = session.table(name).unwrap();
                assert!(std::sync::Arc::ptr_eq(&table, &again));
                assert_eq!(table.attached_views().len(), 1);
                let view = session.view(&format!("v_{name}")).unwrap();
                // All covered, none covered, both in turn.
                let before = view.usage();
                check_e_t(&table, &known[3]);
                assert_eq!(view.usage().hits - before.hits, 2 * known[3].len() as u64);
                let mut random = Random(77);
                for _ in 0..20 {
                    let tokens: Vec<i64> = (0..50).map(|_| random.below(vocabulary) as i64).collect();
                    check_e_t(&table, &tokens);
                    check_e_t(&table, &[&known[3][..20], &tokens].concat());
                }
                let usage = view.usage();
                assert!(usage.misses > 0 && usage.hits > 0, "{usage:?}");
                check_e_t(&table, &[]);
            }
        }
    }
}

#[test]
fn the_most_frequent_keys_are_chosen_and_the_lower_of_equals() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
    let table = session.table("t").unwrap();
    let corpus = corpus(9, 80, table.spec().unwrap().vocab_size());
    let all = reference(&table, &corpus);
    let tokens: u64 = corpus.iter().map(|sequence| sequence.len() as u64).sum();
    let mut by_count: Vec<(&Vec<i64>, u64, u64)> =
        all.iter().map(|(key, &(first, count))| (key, first, count)).collect();
    by_count.sort_by_key(|&(key, _, count)| (u64::MAX - count, key));
    let record = 16 * 160;
    let cases = [
        (Some(1), None),
        (Some(37), None),
        (None, Some(record * 100 + 5)),
        (Some(500), Some(record * 3)),
        (Some(u64::MAX), None),
    ];
    for (number, (top, budget)) in cases.into_iter().enumerate() {
        for (order, memory) in [(Order::Key, 256 << 20), (Order::Access, 20_000)] {
            let name = format!("v{number}_{}", order.name());
            let options = ViewOptions { top, budget, order, memory, ..ViewOptions::default() };
            let entry = build(&session, &name, "t", &corpus, options).unwrap();
            let limit = [top, budget.map(|budget| budget / record)].into_iter().flatten().min().unwrap();
            let mut wanted: Vec<_> = by_count.iter().take(limit.min(all.len() as u64) as usize).collect();
            match order {
                Order::Key => wanted.sort_by_key(|(key, ..)| *key),
                Order::Access => wanted.sort_by_key(|(_, first, _)| *first),
            }
            let covered = wanted.iter().map(|(.., count)| count).sum();
            assert_eq!((entry.tokens, entry.covered), (Some(tokens), Some(covered)));
            assert!(keys(&session, &name).iter().eq(wanted.iter().map(|(key, ..)| *key)), "{name}");
        }
    }
    for options in [
        ViewOptions { top: Some(0), ..ViewOptions::default() },
        ViewOptions { budget: Some(record - 1), ..ViewOptions::default() },
    ] {
        let error = build(&session, "none", "t", &corpus, options).unwrap_err().to_string();
        assert!(error.contains("leave room for no record of 2560 bytes"), "{error}");
    }
}

#[test]
fn little_memory_and_many_pieces_give_the_same_bytes() {
    for (checkpoint, table) in [("ckpt_qwen4_exp_fp8", "t"), ("ckpt_deepseek_v41", "t_l3")] {
        let directory = directory();
        let session = database(directory.path(), checkpoint);
        let corpus = corpus(11, 120, session.table(table).unwrap().spec().unwrap().vocab_size());
        for (order, top) in [(Order::Key, None), (Order::Access, None), (Order::Key, Some(200))] {
            let options = ViewOptions { order, top, shard_bytes: 1 << 20, replace: true, ..ViewOptions::default() };
            let whole = content(&build(&session, "whole", table, &corpus, options.clone()).unwrap().directory);
            let little = ViewOptions { memory: 8_000, ..options.clone() };
            assert!(content(&build(&session, "little", table, &corpus, little).unwrap().directory) == whole);
            // Sequences one by one, long ones in pieces with what comes before them.
            let mut builder = ViewBuilder::begin(&session, "pieces", table, options).unwrap();
            for sequence in &corpus {
                let mut done = 0;
                for piece in sequence.chunks(1500) {
                    builder.add(piece, &[0], &sequence[..done]).unwrap();
                    done += piece.len();
                }
            }
            let entry = builder.finish(&session, &Progress::new()).unwrap();
            assert!(content(&entry.directory) == whole);
        }
    }
}

#[test]
fn a_view_of_another_state_of_its_table_is_not_used() {
    let directory = directory();
    let checkpoint = directory.path().join("checkpoint");
    std::fs::create_dir(&checkpoint).unwrap();
    for file in std::fs::read_dir(golden("ckpt_qwen4_exp_fp8")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), checkpoint.join(file.file_name())).unwrap();
    }
    let path = directory.path().join("db");
    let session = Session::open(&path, false, true).unwrap();
    session.register("t", &checkpoint, &RegisterOptions::default()).unwrap();
    let table = session.table("t").unwrap();
    let corpus = corpus(2, 10, table.spec().unwrap().vocab_size());
    for form in [Form::Rows, Form::Float32] {
        build(&session, form.name(), "t", &corpus, ViewOptions { form, ..ViewOptions::default() }).unwrap();
    }
    assert_eq!(session.table("t").unwrap().attached_views().len(), 2);
    drop((session, table));

    let file = std::fs::File::options().write(true).open(checkpoint.join("model-00001-of-00002.safetensors")).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let session = Session::open(&path, false, false).unwrap();
    let table = session.table("t").unwrap();
    assert!(table.attached_views().is_empty());
    check_e_t(&table, &corpus[3]);
    let view = session.view("rows").unwrap();
    assert!(!view.is_usable());
    assert!(view.why().unwrap().contains("was built from another state of table 't'"), "{:?}", view.why());
    // Not even when it is asked to.
    table.attach_views(vec![view.clone()]);
    assert!(table.attached_views().is_empty());
    // Neither rows nor values of another state are given out as the table's.
    for name in ["rows", "float32"] {
        let view = session.view(name).unwrap();
        let (mut record, mut values) = (vec![0; view.record_bytes()], vec![0.0; view.values().unwrap()]);
        for answer in [view.records_into(&[0], &mut record), view.e_t_into(&[0], &mut values)] {
            let error = answer.unwrap_err().to_string();
            assert!(error.contains(&format!("view '{name}' was built from another state")), "{error}");
        }
    }
}

#[test]
fn views_of_the_peer_are_read_where_they_lie() {
    let directory = directory();
    let session = Session::open(directory.path(), false, true).unwrap();
    let options =
        RegisterOptions { format: Some("fp8_e4m3".to_owned()), scale: Some(0.25), ..RegisterOptions::default() };
    session.register("t", &golden("peer_store/rows"), &options).unwrap();
    let table = session.table("t").unwrap();
    let text = std::fs::read_to_string(golden("peer_store/keys.txt")).unwrap();
    let keys: Vec<i64> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
    for (file, slot_bytes, slots) in [("view.bin", 2560, 24), ("view4k.bin", 4096, 4)] {
        let path = golden("peer_store").join(file);
        let records = Some(RecordFile { path: path.clone(), slot_bytes });
        let name = file.trim_end_matches(".bin");
        let options = ViewOptions { heads: Some(16), records, ..ViewOptions::default() };
        let mut builder = ViewBuilder::begin(&session, name, "t", options.clone()).unwrap();
        builder.add_keys(&keys[..16 * 10]).unwrap_or_else(|error| panic!("{error}"));
        if slots > 10 {
            builder.add_keys(&keys[16 * 10..16 * slots]).unwrap();
        } else {
            drop(builder);
            builder = ViewBuilder::begin(&session, name, "t", options.clone()).unwrap();
            builder.add_keys(&keys[..16 * slots]).unwrap();
        }
        let entry = builder.finish(&session, &Progress::new()).unwrap();
        assert_eq!(
            (entry.slots, entry.tokens, entry.covered, entry.order.as_str()),
            (slots as u64, None, None, "access")
        );
        let view = session.view(name).unwrap();
        assert!(view.is_usable(), "{:?}", view.why());
        assert_eq!(view.slot_bytes() as u64, slot_bytes);
        // No record was copied.
        assert!(!entry.directory.join("shard_000.bin").exists());
        let bytes = std::fs::read(&path).unwrap();
        let mut random = Random(3);
        let some: Vec<i64> = (0..50).map(|_| random.below(slots as u64) as i64).collect();
        let mut records = vec![0; some.len() * 2560];
        view.records_into(&some, &mut records).unwrap();
        for (&slot, record) in some.iter().zip(records.chunks_exact(2560)) {
            assert!(record == &bytes[slot as usize * slot_bytes as usize..][..2560]);
        }
        let ids: Vec<i64> = some.iter().flat_map(|&slot| &keys[slot as usize * 16..][..16]).copied().collect();
        let mut values = vec![0.0f32; some.len() * view.values().unwrap()];
        view.e_t_into(&some, &mut values).unwrap();
        let mut decoded = vec![0.0f32; values.len()];
        view.decode_into(&records, &mut decoded).unwrap();
        assert!(decoded == values);
        assert!(view.decode_into(&records[1..], &mut decoded).is_err());
        assert!(values.iter().map(|value| value.to_bits()).eq(from_rows(&table, &ids)));

        // With other keys the same file is refused.
        let mut builder = ViewBuilder::begin(
            &session,
            "other",
            "t",
            ViewOptions { unfinished: Unfinished::Discard, ..options.clone() },
        )
        .unwrap();
        builder.add_keys(&keys[..16 * 2]).unwrap();
        builder.add_keys(&keys[16 * 3..16 * 4]).unwrap();
        let error = builder.finish(&session, &Progress::new()).unwrap_err().to_string();
        assert!(error.contains("the record of slot 2 differs from the rows of its key"), "{error}");
    }
    // More keys than records.
    let path = golden("peer_store/view4k.bin");
    let records = Some(RecordFile { path, slot_bytes: 4096 });
    let options = ViewOptions { heads: Some(16), records, unfinished: Unfinished::Discard, ..ViewOptions::default() };
    let mut builder = ViewBuilder::begin(&session, "other", "t", options).unwrap();
    builder.add_keys(&keys[..16 * 5]).unwrap();
    let error = builder.finish(&session, &Progress::new()).unwrap_err().to_string();
    assert!(error.contains("has 16384 bytes, 5 records of 4096 bytes need 20480"), "{error}");
}

#[test]
fn given_keys_keep_their_order_and_their_duplicates() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_bf16");
    let table = session.table("t").unwrap();
    let heads = table.spec().unwrap().heads();
    let mut given = table.rowids(&[5, 4, 3, 5, 4, 3, 7], &[]).unwrap();
    given.extend_from_within(..2 * heads);
    let mut builder = ViewBuilder::begin(&session, "v", "t", ViewOptions::default()).unwrap();
    builder.add_keys(&given).unwrap();
    let error = builder.add(&[1], &[0], &[]).unwrap_err().to_string();
    assert!(error.contains("tokens cannot be added to keys"), "{error}");
    let error = builder.add_keys(&given[1..]).unwrap_err().to_string();
    assert!(error.contains(&format!("a key of view 'v' has {heads}")), "{error}");
    let wrong = vec![table.rows() as i64; heads];
    assert!(builder.add_keys(&wrong).unwrap_err().to_string().contains("out of range"));
    builder.finish(&session, &Progress::new()).unwrap();
    assert_eq!(keys(&session, "v").concat(), given);
    let view = session.view("v").unwrap();
    let mut slots = vec![-1; 9];
    view.lookup_many(&given, &mut slots).unwrap();
    assert_eq!(slots[7..], slots[..2]);
    assert_eq!(view.lookup_all(&given[..heads]).unwrap().len(), 2);
    let table = session.table("t").unwrap();
    check_e_t(&table, &[5, 4, 3, 9, 9]);
    assert!(view.usage().hits >= 3);
}

#[test]
fn a_replaced_view_goes_and_who_holds_the_table_reads_on() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
    let vocabulary = session.table("t").unwrap().spec().unwrap().vocab_size();
    let (first, second) = (corpus(1, 8, vocabulary), corpus(2, 8, vocabulary));
    let old = build(&session, "v", "t", &first, ViewOptions::default()).unwrap();
    let table = session.table("t").unwrap();
    check_e_t(&table, &first[3]);
    let error = build(&session, "V", "t", &second, ViewOptions::default()).unwrap_err().to_string();
    assert!(error.contains("'v' is already there; replace it, drop it first"), "{error}");
    let new = build(&session, "v", "t", &second, ViewOptions { replace: true, ..ViewOptions::default() }).unwrap();
    assert!(!old.directory.exists());
    assert_ne!(old.directory, new.directory);
    // Its files are gone, and the rows answer.
    assert_eq!(table.attached_views()[0].directory(), old.directory);
    check_e_t(&table, &first[3]);
    assert!(table.attached_views()[0].why().unwrap().starts_with("failed"), "{:?}", table.attached_views()[0].why());
    let table = session.table("t").unwrap();
    assert_eq!(table.attached_views()[0].directory(), new.directory);
    check_e_t(&table, &second[3]);
    assert!(session.orphans().unwrap().is_empty(), "{:?}", session.orphans());
}

#[test]
fn a_damaged_view_is_refused_and_its_table_reads_on() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_nvfp4");
    let corpus = corpus(4, 8, session.table("t").unwrap().spec().unwrap().vocab_size());
    let entry = build(&session, "v", "t", &corpus, ViewOptions::default()).unwrap();
    for file in ["shard_000.bin", "keys.bin", "manifest.json", "index/index.json"] {
        let path = entry.directory.join(file);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let session = Session::open(directory.path(), true, false).unwrap();
        let table = session.table("t").unwrap();
        assert!(table.attached_views().is_empty(), "{file}");
        let error = session.view("v").err().unwrap().to_string();
        assert!(error.contains(file), "{error}");
        check_e_t(&table, &corpus[3]);
        std::fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn what_cannot_become_a_view_is_refused_and_leaves_nothing() {
    let directory = directory();
    let session = database(directory.path(), "ckpt_qwen4_exp_fp8");
    let vocabulary = session.table("t").unwrap().spec().unwrap().vocab_size() as i64;
    let begin = |options| ViewBuilder::begin(&session, "v", "t", options);
    let mut builder = begin(ViewOptions::default()).unwrap();
    builder.add(&[1, 2, 3, 4], &[0, 2], &[]).unwrap();
    let mut long = vec![1; 5000];
    long[4321] = vocabulary;
    let error = builder.add(&long, &[0, 1000], &[]).unwrap_err();
    assert_eq!(error.kind(), engram_engine::ErrorKind::TokenId);
    let error = error.to_string();
    assert!(error.contains("sequence 3 (counted from 0)") && error.contains("position 3321"), "{error}");
    for starts in [&[][..], &[1], &[0, 5, 3], &[0, 9]] {
        let error = builder.add(&[1, 2, 3, 4, 5], starts, &[]).unwrap_err().to_string();
        assert!(error.contains("sequence starts do not cut the 5 tokens"), "{error}");
    }
    drop(builder);
    let refused = |options, expected: &str| {
        let error =
            begin(options).and_then(|builder| builder.finish(&session, &Progress::new())).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(ViewOptions::default(), "view 'v' would hold nothing: no token and no key was given");
    refused(ViewOptions { heads: Some(3), ..ViewOptions::default() }, "its table has 16 heads, not 3");
    assert!(
        ViewBuilder::begin(&session, "t", "t", ViewOptions::default())
            .err()
            .unwrap()
            .to_string()
            .contains("already there")
    );
    assert!(
        ViewBuilder::begin(&session, "v", "u", ViewOptions::default())
            .err()
            .unwrap()
            .to_string()
            .contains("no table named 'u'")
    );
    let read_only = Session::open(directory.path(), true, false).unwrap();
    let error = ViewBuilder::begin(&read_only, "v", "t", ViewOptions::default()).err().unwrap().to_string();
    assert!(error.contains("read-only"), "{error}");
    let memory = Session::in_memory();
    memory.register("t", &golden("ckpt_qwen4_exp_fp8"), &RegisterOptions::default()).unwrap();
    let error = ViewBuilder::begin(&memory, "v", "t", ViewOptions::default()).err().unwrap().to_string();
    assert!(error.contains("building a view needs a database directory"), "{error}");
    // A store without a spec has no heads of its own.
    session.register("s", &golden("peer_store/rows"), &RegisterOptions::default()).unwrap();
    let error = ViewBuilder::begin(&session, "v", "s", ViewOptions::default()).err().unwrap().to_string();
    assert!(error.contains("name the number of heads"), "{error}");
    let float32 = ViewOptions { heads: Some(16), form: Form::Float32, ..ViewOptions::default() };
    let error = ViewBuilder::begin(&session, "v", "s", float32).err().unwrap().to_string();
    assert!(error.contains("no value format"), "{error}");
    let progress = Progress::new();
    let mut builder = begin(ViewOptions::default()).unwrap();
    builder.add(&[1, 2, 3], &[0], &[]).unwrap();
    progress.cancel();
    assert_eq!(builder.finish(&session, &progress).unwrap_err().kind(), engram_engine::ErrorKind::Cancelled);
    assert!(session.views().unwrap().is_empty());
    assert!(session.orphans().unwrap().is_empty(), "{:?}", session.orphans());
}
