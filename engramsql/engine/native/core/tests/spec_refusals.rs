//! What configs, masks, batches and stored constants are refused for.

mod npz;

use engram_engine::ErrorKind;
use engram_engine::spec::{FAMILIES, PackedSequences, Sequence, Spec, SpecError, TokenMap};
use npz::{json, with};
use serde_json::{Value, json};
use std::sync::Arc;

fn qwen() -> Value {
    json("qwen_ple_v1.json")["config"].clone()
}

fn deepseek() -> Value {
    json("ckpt_deepseek_v41/config.json")
}

fn error(family: &str, config: &Value, layer: Option<u32>) -> String {
    let error = Spec::from_config(family, config, layer, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Spec);
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn qwen_fields() {
    for (fields, parts) in [
        (json!({"ngram_size": 1}), ["'ngram_size'", "is 1"]),
        (json!({"ngram_size": 3.0}), ["'ngram_size'", "is 3.0"]),
        (json!({"ngram_size": "3"}), ["'ngram_size'", "\"3\""]),
        (json!({"heads_per_ngram": 0}), ["'heads_per_ngram'", "is 0"]),
        (json!({"heads_per_ngram": 1_000_000}), ["'heads_per_ngram'", "at most 4096 heads"]),
        (json!({"heads_per_ngram": -8}), ["'heads_per_ngram'", "is -8"]),
        (json!({"vocab_size": 0}), ["'vocab_size'", "is 0"]),
        (json!({"vocab_size": 1.5}), ["'vocab_size'", "is 1.5"]),
        (json!({"vocab_size": u64::MAX}), ["'vocab_size'", "63 bits"]),
        (json!({"eos_token_id": null}), ["'eos_token_id'", "missing"]),
        (json!({"eos_token_id": []}), ["'eos_token_id'", "at least one entry"]),
        (json!({"eos_token_id": 248_320}), ["'eos_token_id'", "0 to 248319"]),
        (json!({"eos_token_id": [-1]}), ["'eos_token_id[0]'", "is -1"]),
        (json!({"seed": -1}), ["'seed'", "is -1"]),
        (json!({"ple_embed_dim": 2561}), ["'ple_embed_dim'", "multiple of the number of heads (16)"]),
        (json!({"ple_layer_ids": [0]}), ["'ple_layer_ids[0]'", "is 0"]),
        (json!({"ple_layer_ids": 2}), ["'ple_layer_ids'", "list"]),
        (json!({"ple_layer_ids": [2, 5]}), ["1, 4", "name one"]),
        (json!({"ngram_vocab_size_base": 0}), ["'ngram_vocab_size_base'", "is 0"]),
        (json!({"ngram_vocab_size_base": i64::MAX}), ["63 bits", "ngram_vocab_size_base"]),
        (json!({"ngram_vocab_size_base": 1_u64 << 62}), ["63 bits", "ngram_vocab_size_base"]),
        (json!({"make_ngram_vocab_size_divisible_by": 0}), ["divisible_by'", "is 0"]),
        (
            json!({"make_ngram_vocab_size_divisible_by": 1_u64 << 62, "ngram_vocab_size_base": 1_u64 << 58}),
            ["63 bits", "divisible_by"],
        ),
    ] {
        let text = error("qwen_ple_v1", &with(&qwen(), fields.clone()), None);
        for part in parts {
            assert!(text.contains(part), "{fields}: {text}");
        }
    }
    assert!(error("qwen_ple_v1", &json!([1]), None).contains("JSON object"));
    assert!(error("qwen_ple_v1", &json!({"text_config": 1}), None).contains("text_config"));
    assert!(error("qwen_ple_v1", &qwen(), Some(2)).contains("(0-based) are: 1"));
    let unknown = error("qwen", &qwen(), None);
    assert!(FAMILIES.iter().all(|family| unknown.contains(family)));
    let map = Some(Arc::new(TokenMap::identity(10).unwrap()));
    assert!(matches!(Spec::from_config("qwen_ple_v1", &qwen(), None, map), Err(SpecError::TokenMapNotUsed { .. })));
}

#[test]
fn qwen_defaults_and_lists_of_eos() {
    let spec = Spec::from_config("qwen_ple_v1", &json!({"eos_token_id": [248_044, 7]}), None, None).unwrap();
    assert_eq!(spec.name(), "qwen3.8-flash-next");
    let seeded = with(&qwen(), json!({"seed": u64::MAX}));
    assert_eq!(Spec::from_config("qwen_ple_v1", &seeded, None, None).unwrap().name(), "qwen_ple_v1");
    let other_eos = with(&qwen(), json!({"eos_token_id": 1}));
    assert_eq!(Spec::from_config("qwen_ple_v1", &other_eos, None, None).unwrap().name(), "qwen_ple_v1");
}

#[test]
fn deepseek_fields() {
    let inner = |fields: Value| {
        let mut config = deepseek();
        config["text_config"] = with(&config["text_config"], fields);
        config
    };
    for (fields, parts) in [
        (json!({"engram_layer_ids": [1, 1]}), ["engram_layer_ids[1]", "at most once"]),
        (json!({"engram_layer_ids": []}), ["engram_layer_ids", "at least one"]),
        (json!({"engram_num_embeddings": [112]}), ["engram_num_embeddings", "(2)"]),
        (json!({"engram_num_embeddings": [111, 252]}), ["112 rows", "announces 111"]),
        (json!({"engram_n_heads": null}), ["engram_n_heads", "missing"]),
        (json!({"engram_max_ngram_size": 33}), ["engram_max_ngram_size", "2 to 32"]),
        (json!({"engram_pad_token_id": null}), ["engram_pad_token_id' or 'engram_pad_id", "missing"]),
        (json!({"engram_pad_id": 3}), ["engram_pad_id", "only one"]),
        (json!({"engram_pad_token_id": 334}), ["engram_pad_token_id", "0 to 333"]),
        (json!({"engram_compressed_vocab_size": 1_u64 << 30}), ["engram_compressed_vocab_size", "whole number"]),
    ] {
        let text = error("deepseek_v41", &inner(fields.clone()), Some(1));
        for part in parts {
            assert!(text.contains(part), "{fields}: {text}");
        }
    }
    // The other spelling of the pad field.
    let mut config = inner(json!({"engram_pad_id": 2}));
    config["text_config"].as_object_mut().unwrap().remove("engram_pad_token_id");
    Spec::from_config("deepseek_v41", &config, Some(1), None).unwrap();
}

#[test]
fn masks_and_buffers() {
    let spec = Spec::released_qwen_ple().unwrap();
    let dead = spec.rowids(Sequence::new(&[1, 2]).with_dead(&[false, true], &[])).unwrap_err();
    assert!(matches!(dead, SpecError::NoDeadTokens { family: "qwen_ple_v1" }));
    let short = spec.rowids(Sequence::new(&[1, 2]).with_dead(&[false], &[])).unwrap_err();
    assert!(matches!(short, SpecError::MaskLength { mask: "dead", expected: 2, found: 1 }));
    let past = spec.rowids(Sequence::new(&[1]).with_dead(&[], &[false])).unwrap_err();
    assert!(matches!(past, SpecError::MaskLength { mask: "history_dead", .. }));
    let buffer = spec.rowids_into(Sequence::new(&[1, 2]), &mut [0; 31]).unwrap_err();
    assert_eq!(buffer.kind(), ErrorKind::Argument);
    assert!(buffer.to_string().contains("need 32"), "{buffer}");
    assert!(spec.rowids(Sequence::default()).unwrap().is_empty());
}

#[test]
fn packed_boundaries() {
    let spec = Spec::released_qwen_ple().unwrap();
    let run = |starts: &[i64], history: &[i64], history_starts: &[i64]| {
        let batch = PackedSequences { tokens: &[1, 2, 3], starts, history, history_starts, ..Default::default() };
        let mut out = vec![0; 48];
        spec.rowids_packed_into(batch, &mut out).map_err(|e| e.to_string())
    };
    assert!(run(&[0, 3, 3], &[], &[]).is_ok());
    assert!(run(&[0, 1, 3], &[9, 8], &[0, 2, 2]).is_ok());
    for (starts, history, history_starts, part) in [
        (&[][..], &[][..], &[][..], "no entries"),
        (&[1, 3], &[], &[], "first entry is 1"),
        (&[0, 2, 1, 3], &[], &[], "entry 2 (1) is below"),
        (&[0, 2], &[], &[], "the list holds 3"),
        (&[0, 4], &[], &[], "last entry is 4"),
        (&[0, 3], &[5], &[], "history_starts"),
        (&[0, 3], &[5], &[0, 0, 1], "one history per sequence"),
        (&[0, 3], &[5], &[0, 2], "the list holds 1"),
    ] {
        let text = run(starts, history, history_starts).unwrap_err();
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn stored_constants() {
    let spec = Spec::released_qwen_ple().unwrap();
    let wide = |values: &[u64]| values.iter().map(|&v| v as i64).collect::<Vec<_>>();
    let (mut sizes, offsets) = (wide(spec.head_sizes()), wide(spec.head_offsets()));
    spec.check_stored(Some(spec.multipliers()), Some(&sizes), Some(&offsets)).unwrap();
    spec.check_stored(None, None, None).unwrap();
    sizes[3] += 2;
    let error = spec.check_stored(None, Some(&sizes), None).unwrap_err();
    assert!(matches!(
        error,
        SpecError::StoredDiffers { constant: "head sizes", index: 3, stored: 20_000_049, derived: 20_000_047 }
    ));
    let error = spec.check_stored(Some(&[1]), None, None).unwrap_err();
    assert!(matches!(error, SpecError::StoredShape { constant: "multipliers", stored: 1, derived: 3 }));
}
