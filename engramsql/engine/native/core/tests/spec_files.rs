//! Spec files, model types, tokenizers and token maps: what they give and what they are refused for.

mod npz;

use engram_engine::spec::{Sequence, Spec, SpecError, SpecFile, TokenMap, family_of, layers};
use npz::json;
use serde_json::json;
use std::sync::Arc;

#[test]
fn families_by_model_type_and_architecture() {
    for (config, family) in [
        (json!({"model_type": "qwen4_exp"}), Some("qwen_ple_v1")),
        (json!({"model_type": "other", "text_config": {"model_type": "qwen4_exp_text"}}), Some("qwen_ple_v1")),
        (json!({"architectures": ["DeepseekV41ForCausalLM"]}), Some("deepseek_v41")),
        (json!({"model_type": "longcat_flash"}), None),
        (json!({"model_type": "longcat_flash_ngram", "emb_neighbor_num": 4}), Some("longcat")),
        (json!({"model_type": "llama"}), None),
        (json!([]), None),
    ] {
        assert_eq!(family_of(&config), family, "{config}");
    }
    assert!(layers("longcat", &json!({})).unwrap().is_empty());
    assert_eq!(layers("engram_peft", &json!({"layer_ids": [9, 4]})).unwrap(), [4, 9]);
    assert_eq!(layers("engram_demo", &json!({"layer_ids": [9, 4]})).unwrap(), [9, 4]);
}

#[test]
fn released_files_load_and_name_their_specs() {
    assert_eq!(SpecFile::released_names(), ["qwen3.8-flash-next", "deepseek-v4.1-flash", "engram-demo"]);
    for name in SpecFile::released_names() {
        let file = SpecFile::released(name).unwrap();
        assert_eq!(file.name(), name);
        assert!(!file.description().is_empty());
        for &layer in file.layers() {
            let spec = file.spec(Some(layer), None).unwrap();
            assert_eq!((spec.name(), spec.family(), spec.layer()), (name, file.family(), Some(layer)));
        }
    }
    let error = SpecFile::released("qwen3.8-flash").unwrap_err().to_string();
    assert!(error.contains("did you mean 'qwen3.8-flash-next'") && error.contains("engram-demo"), "{error}");
    assert!(!SpecFile::released("x").unwrap_err().to_string().contains("did you mean"));
    let error = SpecFile::released("engram-demo").unwrap().spec(None, None).unwrap_err();
    assert!(matches!(error, SpecError::LayerRequired { .. }));
}

#[test]
fn a_users_spec_file() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, text).unwrap();
        SpecFile::read(&path)
    };
    let text = r#"
        name = "mine"
        family = "qwen_ple_v1"
        [config]
        ple_layer_ids = [1, 4]
        ngram_size = 4
        heads_per_ngram = 3
        eos_token_id = 7
        vocab_size = 1000
        ngram_vocab_size_base = 97
        [[layer]]
        id = 3
        head_sizes = [139, 149, 151, 157, 163, 167, 173, 179, 181]
    "#;
    let file = read(text).unwrap();
    assert_eq!(file.layers(), [0, 3]);
    let spec = file.spec(Some(3), None).unwrap();
    assert_eq!((spec.name(), spec.layer()), ("mine", Some(3)));
    assert_eq!(file.spec(Some(0), None).unwrap().head_sizes()[0], 97);
    for (from, to, part) in [
        ("139, 149", "139, 150", "layer 3: expected head_sizes[1] are 150, its [config] derives 149"),
        ("139, ", "", "8 entries"),
        ("id = 3", "id = 2", "layer 2 has no hash table"),
        ("id = 3", "", "has no id"),
        ("qwen_ple_v1", "qwen", "unknown hash family"),
        ("eos_token_id = 7", "", "'eos_token_id'"),
        ("\"mine\"", "\"\"", "name is empty"),
        ("[[layer]]", "[[layers]]", "unknown field"),
        ("ngram_size = 4", "ngram_size = 4.0", "'ngram_size'"),
        ("family", "fam", "fam"),
    ] {
        let error = read(&text.replacen(from, to, 1)).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(part) && message.contains("mine.toml"), "{from}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let twice = format!("{text}\n[[layer]]\nid = 3\n");
    assert!(read(&twice).unwrap_err().to_string().contains("appears twice"));
    let borrowed = read(&text.replace("\"mine\"", "\"engram-demo\"")).unwrap();
    assert!(borrowed.spec(Some(3), None).unwrap_err().to_string().contains("choose another"));
    assert!(matches!(SpecFile::read(folder.path().join("none.toml")), Err(SpecError::Io { .. })));
}

#[test]
fn tokenizers_that_are_none_or_have_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    assert!(matches!(TokenMap::from_tokenizer_json(&path), Err(SpecError::Io { .. })));
    std::fs::write(&path, "{}").unwrap();
    let error = TokenMap::from_tokenizer_json(&path).unwrap_err().to_string();
    assert!(error.contains("not a tokenizer.json") && error.contains("tokenizer.json'"), "{error}");
    let mut tokenizer = json("ckpt_deepseek_v41/tokenizer.json");
    tokenizer["model"]["vocab"]["!"] = json!(9999);
    std::fs::write(&path, tokenizer.to_string()).unwrap();
    let error = TokenMap::from_tokenizer_json(&path).unwrap_err().to_string();
    assert!(error.contains("token id 4 of 334 is missing"), "{error}");
}

#[test]
fn deepseek_token_maps() {
    let build = |map: Option<TokenMap>| {
        Spec::from_config("deepseek_v41", &json("ckpt_deepseek_v41/config.json"), Some(3), map.map(Arc::new))
    };
    // Without a map everything but hashing works.
    let spec = build(None).unwrap();
    assert!(!spec.can_hash() && spec.heads() == 6 && spec.vocab_size() == 334);
    let error = spec.rowids(Sequence::new(&[1])).unwrap_err();
    assert!(error.to_string().contains("tokenizer.json"), "{error}");
    assert!(matches!(build(Some(TokenMap::identity(277).unwrap())), Err(SpecError::CompressedSize { .. })));
    let long = (0..400).map(|i| i % 276).collect();
    assert!(matches!(
        build(Some(TokenMap::from_vec(long).unwrap())),
        Err(SpecError::TokenMapTooLong { tokens: 400, vocab_size: 334 })
    ));
    // A map shorter than a padded vocabulary bounds the ids.
    let spec = build(Some(TokenMap::identity(276).unwrap())).unwrap();
    assert_eq!(spec.vocab_size(), 276);
    assert!(spec.rowids(Sequence::new(&[276])).is_err());
}
