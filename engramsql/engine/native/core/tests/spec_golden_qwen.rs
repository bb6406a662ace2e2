//! `qwen_ple_v1` against vLLM, transformers and engramdb (tests/golden).

mod npz;

use engram_engine::ErrorKind;
use engram_engine::spec::{PackedSequences, Sequence, Spec, SpecError};
use npz::{Npz, cases, ints, json, with};
use serde_json::{Value, json};

fn wide(values: &[u64]) -> Vec<i64> {
    values.iter().map(|&v| v as i64).collect()
}

fn assert_constants(spec: &Spec, doc: &Value) {
    let multipliers = ints(&doc["layer_multipliers"]);
    let (sizes, offsets) = (ints(&doc["head_vocab_sizes"]), ints(&doc["head_offsets"]));
    assert_eq!(spec.multipliers(), multipliers);
    assert_eq!(wide(spec.head_sizes()), sizes);
    assert_eq!(wide(spec.head_offsets()), offsets);
    assert_eq!(spec.reachable_rows(), doc["total_rows"].as_u64().unwrap());
    assert_eq!(spec.table_rows(), doc["padded_rows"].as_u64().unwrap());
    spec.check_stored(Some(&multipliers), Some(&sizes), Some(&offsets)).unwrap();
}

/// Every case as a packed batch, and every sequence of it alone and token by token.
fn assert_cases(spec: &Spec, npz: &Npz, case: &Value) {
    let name = case["name"].as_str().unwrap();
    let array = |short: &str| npz.of(case, short).unwrap();
    let (tokens, starts) = (&array("tokens").values, &array("query_start_loc").values);
    let (context, expected) = (array("context"), array("rowids"));
    let history_starts: Vec<i64> = (0..starts.len()).map(|i| (i * context.shape[1]) as i64).collect();
    let mut out = vec![-1; expected.values.len()];
    let batch = PackedSequences {
        tokens,
        starts,
        history: &context.values,
        history_starts: &history_starts,
        ..Default::default()
    };
    spec.rowids_packed_into(batch, &mut out).unwrap();
    assert_eq!(out, expected.values, "{name}");

    for (bounds, history) in starts.windows(2).zip(context.rows()) {
        let (from, to) = (bounds[0] as usize, bounds[1] as usize);
        let rows = &expected.values[from * spec.heads()..to * spec.heads()];
        let seq = Sequence::new(&tokens[from..to]).with_history(history);
        assert_eq!(spec.rowids(seq).unwrap(), rows, "{name}");
        for t in from..to {
            let past: Vec<i64> = history.iter().chain(&tokens[from..t]).copied().collect();
            let one = spec.rowids(Sequence::new(&tokens[t..=t]).with_history(&past)).unwrap();
            assert_eq!(one, rows[(t - from) * spec.heads()..][..spec.heads()], "{name}, token {t}");
        }
    }
}

#[test]
fn released_constants_and_every_case() {
    let (doc, npz) = (json("qwen_ple_v1.json"), Npz::open("qwen_ple_v1.npz"));
    let spec = Spec::from_config("qwen_ple_v1", &doc["config"], None, None).unwrap();
    assert_constants(&spec, &doc);
    assert_eq!((spec.name(), spec.layer()), ("qwen3.8-flash-next", Some(1)));
    assert_eq!((spec.heads(), spec.history_len(), spec.head_dim()), (16, 2, Some(160)));
    assert_eq!(spec.ngram_orders(), [[2; 8], [3; 8]].concat());
    assert!(cases(&doc).len() >= 28);
    for case in cases(&doc) {
        assert_cases(&spec, &npz, case);
        assert_cases(&Spec::released_qwen_ple().unwrap(), &npz, case);
    }
}

#[test]
fn other_geometries_and_further_layers() {
    let (doc, npz) = (json("qwen_generic.json"), Npz::open("qwen_generic.npz"));
    for case in cases(&doc) {
        let dense = case["dense_layer"].as_u64().unwrap();
        // The rank counts, not the layer id; order and repetition in the config do not matter.
        let config = with(&case["config"], json!({"ple_layer_ids": [31, 3, 8, 3]}));
        let layer = [2, 7, 30][dense as usize];
        let spec = Spec::from_config("qwen_ple_v1", &config, Some(layer), None).unwrap();
        assert_constants(&spec, case);
        assert_eq!((spec.name(), spec.layer()), ("qwen_ple_v1", Some(layer)));
        assert_cases(&spec, &npz, case);
        if dense == 0 {
            let spec = Spec::from_config("qwen_ple_v1", &case["config"], None, None).unwrap();
            assert_constants(&spec, case);
            assert_eq!(spec.layer(), None);
        }
    }
    assert_eq!(cases(&doc).len(), 6);
}

#[test]
fn ids_outside_the_vocabulary_are_refused_with_their_position() {
    let (doc, npz) = (json("qwen_out_of_vocab.json"), Npz::open("qwen_out_of_vocab.npz"));
    let spec = Spec::released_qwen_ple().unwrap();
    for case in cases(&doc) {
        let tokens = &npz.of(case, "tokens").unwrap().values;
        let first = tokens.iter().position(|t| !(0..248_320).contains(t)).unwrap();
        let error = spec.rowids(Sequence::new(tokens)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TokenId);
        assert!(matches!(error, SpecError::TokenOutOfVocabulary { token, position, vocab_size: 248_320 }
            if position == first && token == i128::from(tokens[first])));
        let error = spec.rowids(Sequence::new(&[1]).with_history(tokens)).unwrap_err();
        assert!(error.to_string().contains(&format!("history position {first}")), "{error}");
        // A refused list leaves the buffer alone.
        let mut out = vec![-7; tokens.len() * 16];
        spec.rowids_into(Sequence::new(tokens), &mut out).unwrap_err();
        assert!(out.iter().all(|&v| v == -7));
    }
}

#[test]
fn the_tiny_checkpoints() {
    for name in ["fp8", "bf16", "nvfp4"] {
        let stem = format!("ckpt_qwen4_exp_{name}");
        let (doc, npz) = (json(&format!("{stem}_expected.json")), Npz::open(&format!("{stem}_expected.npz")));
        let config = json(&format!("{stem}/config.json"));
        assert_eq!(engram_engine::spec::family_of(&config), Some("qwen_ple_v1"));
        assert_eq!(engram_engine::spec::layers("qwen_ple_v1", &config).unwrap(), [1]);
        let spec = Spec::from_config("qwen_ple_v1", &config, Some(1), None).unwrap();
        assert_eq!(spec.table_rows(), doc["padded_rows"].as_u64().unwrap());
        assert_eq!(spec.reachable_rows(), doc["total_rows"].as_u64().unwrap());
        assert_eq!(spec.head_dim(), doc["head_dim"].as_u64());
        let case = &cases(&doc)[0];
        let array = |short: &str| &npz.of(case, short).unwrap().values;
        assert_eq!(&spec.rowids(Sequence::new(array("tokens"))).unwrap(), array("rowids"), "{name}");
    }
}

#[test]
fn the_worked_example() {
    // Released constants, cold start; figures worked out by hand from the definition.
    let spec = Spec::released_qwen_ple().unwrap();
    let rows = spec.rowids(Sequence::new(&[248_044, 1000, 99_999, 42])).unwrap();
    assert_eq!((rows[16], rows[17]), (1_876_085, 31_308_566));
    assert_eq!((rows[32], rows[40]), (4_504_090, 172_823_072));
    assert_eq!(248_044_u64 * 20_109_073_645_365, 4_987_935_063_290_916_060);
}

#[test]
fn engram_pefts_qwen_mapping_is_the_same_hash() {
    let (doc, npz) = (json("engram_peft.json"), Npz::open("engram_peft.npz"));
    let spec = Spec::released_qwen_ple().unwrap();
    let case = cases(&doc).iter().find(|c| c["name"] == "qwen_mapping").unwrap();
    let local = &npz.of(case, "local").unwrap().values;
    let rows = spec.rowids(Sequence::new(&npz.of(case, "input_ids").unwrap().values)).unwrap();
    let offsets = wide(spec.head_offsets());
    let buckets: Vec<i64> = rows.iter().enumerate().map(|(i, row)| row - offsets[i % 16]).collect();
    assert_eq!(&buckets, local);
}
