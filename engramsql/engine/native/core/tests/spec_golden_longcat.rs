//! `longcat` against the published kernel (tests/golden).

mod npz;

use engram_engine::spec::{Sequence, Spec};
use npz::{Npz, cases, ints, json, with};
use serde_json::json;

#[test]
fn both_rules_every_case() {
    let (doc, npz) = (json("longcat.json"), Npz::open("longcat.npz"));
    for case in cases(&doc) {
        let tokens = &npz.of(case, "tokens").unwrap().values;
        for rule in ["hf", "engine_0_33"] {
            let config = with(&case["config"], json!({"eos_rule": rule}));
            let spec = Spec::from_config("longcat", &config, None, None).unwrap();
            let wide = |values: &[u64]| values.iter().map(|&v| v as i64).collect::<Vec<_>>();
            assert_eq!(wide(spec.head_sizes()), ints(&case["sizes"]));
            assert_eq!(wide(spec.head_offsets()), ints(&case["offsets"]));
            assert_eq!(spec.reachable_rows(), case["total_rows"].as_u64().unwrap());
            assert!(spec.multipliers().is_empty());
            assert_eq!(spec.layer(), None);
            let expected = &npz.of(case, rule).unwrap().values;
            assert_eq!(&spec.rowids(Sequence::new(tokens)).unwrap(), expected, "{} {rule}", case["name"]);
            for cut in 0..=tokens.len() {
                let mut rows = spec.rowids(Sequence::new(&tokens[..cut])).unwrap();
                let rest = Sequence::new(&tokens[cut..]).with_history(&tokens[..cut]);
                rows.extend(spec.rowids(rest).unwrap());
                assert_eq!(&rows, expected);
            }
        }
        // Without the switch: the rule of the published model code.
        let spec = Spec::from_config("longcat", &case["config"], None, None).unwrap();
        assert_eq!(&spec.rowids(Sequence::new(tokens)).unwrap(), &npz.of(case, "hf").unwrap().values);
    }
    assert_eq!(cases(&doc).len(), 3);
}

#[test]
fn settings_the_engine_cannot_mean_are_refused() {
    let config = json("longcat.json")["cases"][1]["config"].clone();
    let fails = |fields| {
        let config = with(&config, fields);
        Spec::from_config("longcat", &config, None, None).unwrap_err().to_string()
    };
    assert!(fails(json!({"eos_rule": "maybe"})).contains("eos_rule"));
    assert!(fails(json!({"eos_rule": "engine_0_33", "eos_token_id": 0})).contains("at least 1"));
    assert!(fails(json!({"hidden_size": 63})).contains("multiple of the number of heads (4)"));
    assert!(fails(json!({"ngram_vocab_size_ratio": -1.5})).contains("above 0"));
    assert!(fails(json!({"ngram_vocab_size_ratio": 0})).contains("above 0"));
    assert!(fails(json!({"ngram_vocab_size_ratio": 1e30})).contains("63 bits"));
    assert!(fails(json!({"ngram_vocab_size_ratio": u64::MAX})).contains("63 bits"));
    let error = Spec::from_config("longcat", &config, Some(3), None).unwrap_err();
    assert!(error.to_string().contains("one table"), "{error}");
}
