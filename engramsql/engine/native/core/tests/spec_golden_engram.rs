//! `deepseek_v41`, `engram_demo`, `engram_peft` against vLLM, DeepSeek's code and the package (tests/golden).

mod npz;

use engram_engine::spec::{PackedSequences, Sequence, Spec, SpecError, SpecFile, TokenMap, family_of, layers};
use npz::{Array, Npz, cases, golden, ints, json, with};
use serde_json::{Value, json};
use std::sync::Arc;

const DEEPSEEK: &str = "deepseek_v41";

fn token_map(array: &Array) -> Arc<TokenMap> {
    let ids = array.values.iter().map(|&id| id as u32).collect();
    Arc::new(TokenMap::from_vec(ids).unwrap())
}

fn wide(values: &[u64]) -> Vec<i64> {
    values.iter().map(|&v| v as i64).collect()
}

/// One spec per layer of a deepseek config, checked against the constants of the golden file.
fn specs(doc: &Value, config: &Value, map: &Arc<TokenMap>) -> Vec<Spec> {
    let layers = layers(DEEPSEEK, config).unwrap();
    let specs: Vec<Spec> = layers
        .iter()
        .map(|&layer| Spec::from_config(DEEPSEEK, config, Some(layer), Some(map.clone())).unwrap())
        .collect();
    for (i, spec) in specs.iter().enumerate() {
        assert_eq!(spec.multipliers(), ints(&doc["multipliers"][i]));
        assert_eq!(wide(spec.head_sizes()), ints(&doc["primes"][i]));
        assert_eq!(wide(spec.head_offsets()), ints(&doc["offsets"][i]));
        assert_eq!(spec.layer(), Some(layers[i]));
        assert!(spec.reachable_rows() <= spec.table_rows());
    }
    specs
}

fn assert_ids(specs: &[Spec], ids: &Array, what: &str, hash: impl Fn(&Spec) -> Vec<i64>) {
    assert_eq!(ids.shape[1], specs.len());
    for (i, spec) in specs.iter().enumerate() {
        assert_eq!(hash(spec), ids.layer(i), "{what}, layer {i}");
    }
}

#[test]
fn small_layers_dead_spans_batches_and_streaming() {
    let (doc, npz) = (json("deepseek_v41_small.json"), Npz::open("deepseek_v41_small.npz"));
    let map = token_map(npz.get("token_map.token_map"));
    assert_eq!(i64::from(map.map()[2]), doc["pad_compressed"].as_i64().unwrap());
    let specs = specs(&doc, &doc["config"], &map);
    let mut seen = 0;
    for case in cases(&doc) {
        let name = case["name"].as_str().unwrap();
        let array = |short: &str| npz.of(case, short).unwrap();
        if matches!(name, "token_map" | "unknown_history") {
            continue;
        }
        seen += 1;
        let (tokens, dead) = (&array("tokens").values, array("dead").bools());
        let Some(lookback) = npz.of(case, "lookback") else {
            let seq = Sequence::new(tokens).with_dead(&dead, &[]);
            assert_ids(&specs, array("ids"), name, |spec| spec.rowids(seq).unwrap());
            // Chunked at every cut: the state is the last three (id, dead) pairs.
            for cut in 0..=tokens.len() {
                assert_ids(&specs, array("ids"), name, |spec| {
                    let first = Sequence::new(&tokens[..cut]).with_dead(&dead[..cut], &[]);
                    let second = Sequence::new(&tokens[cut..]).with_history(&tokens[..cut]);
                    let mut rows = spec.rowids(first).unwrap();
                    rows.extend(spec.rowids(second.with_dead(&dead[cut..], &dead[..cut])).unwrap());
                    rows
                });
            }
            continue;
        };
        // Lookback is newest first with -1 where the sequence has no such token: history is what is left, reversed.
        let (mut history, mut history_dead, mut history_starts) = (Vec::new(), Vec::new(), vec![0]);
        for (ids, flags) in lookback.rows().into_iter().zip(array("lookback_dead").rows()) {
            for (&id, &flag) in ids.iter().zip(flags).rev().filter(|(id, _)| **id >= 0) {
                history.push(id);
                history_dead.push(flag != 0);
            }
            history_starts.push(history.len() as i64);
        }
        let batch = PackedSequences {
            tokens,
            starts: &array("query_start_loc").values,
            history: &history,
            history_starts: &history_starts,
            dead: &dead,
            history_dead: &history_dead,
        };
        assert_ids(&specs, array("ids"), name, |spec| {
            let mut rows = vec![-1; tokens.len() * spec.heads()];
            spec.rowids_packed_into(batch, &mut rows).unwrap();
            rows
        });
    }
    assert!(seen >= 20);
}

#[test]
fn unknown_history_is_refused_not_padded() {
    let (doc, npz) = (json("deepseek_v41_small.json"), Npz::open("deepseek_v41_small.npz"));
    let map = token_map(npz.get("token_map.token_map"));
    let specs = specs(&doc, &doc["config"], &map);
    let lookback: Vec<i64> = npz.get("unknown_history.lookback").values.iter().rev().copied().collect();
    assert_eq!(lookback, [4, 3, -1]);
    let tokens = &npz.get("unknown_history.tokens").values;
    let error = specs[0].rowids(Sequence::new(tokens).with_history(&lookback)).unwrap_err();
    assert!(matches!(error, SpecError::HistoryOutOfVocabulary { token: -1, position: 2, .. }));
}

#[test]
fn released_constants_compressed_tokens_and_text() {
    let (doc, npz) = (json("deepseek_v41_real.json"), Npz::open("deepseek_v41_real.npz"));
    let config = &doc["config"];
    let map = token_map(npz.get("token_map.token_map"));
    assert_eq!((map.tokens(), map.compressed_size()), (129_280, 99_092));
    let identity = Arc::new(TokenMap::identity(99_092).unwrap());
    let raw = specs(&doc, config, &map);
    let compressed = specs(&doc, config, &identity);
    for (spec, total) in raw.iter().zip(ints(&doc["row_totals"])) {
        assert_eq!((spec.reachable_rows() as i64, spec.table_rows() as i64), (total, total));
    }
    let file = SpecFile::released("deepseek-v4.1-flash").unwrap();
    let released: Vec<Spec> = [1, 14].map(|layer| file.spec(Some(layer), Some(map.clone())).unwrap()).into();
    assert!(released.iter().all(|spec| spec.name() == "deepseek-v4.1-flash"));
    let mut seen = 0;
    for case in cases(&doc).iter().filter(|case| case["name"] != "token_map") {
        let name = case["name"].as_str().unwrap();
        let array = |short: &str| npz.of(case, short).unwrap();
        let dead = array("dead").bools();
        seen += 1;
        if let Some(tokens) = npz.of(case, "compressed_tokens") {
            let seq = Sequence::new(&tokens.values).with_dead(&dead, &[]);
            assert_ids(&compressed, array("ids"), name, |spec| spec.rowids(seq).unwrap());
        } else {
            let seq = Sequence::new(&array("tokens").values);
            assert_ids(&raw, array("ids"), name, |spec| spec.rowids(seq.with_dead(&dead, &[])).unwrap());
            // The released spec knows the image token and needs no mask.
            assert_ids(&released, array("ids"), name, |spec| spec.rowids(seq).unwrap());
        }
    }
    assert_eq!(seen, 11);

    // Worked example: compressed tokens 3 4 5 6, layer 1.
    let rows = compressed[0].rowids(Sequence::new(&[3, 4, 5, 6])).unwrap();
    assert_eq!(rows[0], 7_010_988);
    let last = &rows[3 * 24..];
    assert_eq!((last[0], last[8], last[16]), (2_726_396, 140_158_537, 264_676_773));
}

#[test]
fn the_tiny_checkpoint_with_its_tokenizer() {
    let stem = "ckpt_deepseek_v41";
    let (doc, npz) = (json(&format!("{stem}_expected.json")), Npz::open(&format!("{stem}_expected.npz")));
    let config = json(&format!("{stem}/config.json"));
    assert_eq!(family_of(&config), Some(DEEPSEEK));
    assert_eq!(layers(DEEPSEEK, &config).unwrap(), [1, 3]);
    let map = TokenMap::from_tokenizer_json(golden(&format!("{stem}/tokenizer.json"))).unwrap();
    let expected = token_map(npz.get("main.token_map"));
    assert_eq!(map, *expected);
    assert_eq!(i64::from(map.map()[2]), doc["pad_compressed"].as_i64().unwrap());
    let specs = specs(&doc, &config, &Arc::new(map));
    assert_eq!(specs[0].dead_token(), doc["dead_token_id"].as_u64());
    let (tokens, dead) = (&npz.get("main.tokens").values, npz.get("main.dead").bools());
    assert!(dead.contains(&true));
    // Dead positions follow from image_token_id; a mask that says the same changes nothing.
    assert_ids(&specs, npz.get("main.ids"), "main", |spec| spec.rowids(Sequence::new(tokens)).unwrap());
    let masked = Sequence::new(tokens).with_dead(&dead, &[]);
    assert_ids(&specs, npz.get("main.ids"), "main", |spec| spec.rowids(masked).unwrap());
}

/// LOCAL buckets of every layer array equal row id - head offset, sequence by sequence.
fn assert_local(family: &str, doc: &Value, npz: &Npz) {
    let mut seen = 0;
    for case in cases(doc).iter().filter(|case| case["config"].is_object()) {
        let config = &case["config"];
        let input = npz.of(case, "input_ids").unwrap();
        for layer in layers(family, config).unwrap() {
            let key = layer.to_string();
            let spec = Spec::from_config(family, config, Some(layer), None).unwrap();
            assert_eq!(spec.multipliers(), ints(&case["multipliers"][&key]));
            assert_eq!(wide(spec.head_sizes()), ints(&case["primes"][&key]));
            if case["row_offsets"].is_object() {
                assert_eq!(wide(spec.head_offsets()), ints(&case["row_offsets"][&key]));
            }
            let expected = npz.of(case, &format!("layer_{layer}")).unwrap();
            let heads = spec.heads();
            for (tokens, local) in input.rows().into_iter().zip(expected.rows()) {
                let rows = spec.rowids(Sequence::new(tokens)).unwrap();
                let offsets = wide(spec.head_offsets());
                let global: Vec<i64> = local.iter().enumerate().map(|(i, v)| v + offsets[i % heads]).collect();
                assert_eq!(rows, global, "{} layer {layer}", case["name"]);
                let cut = Sequence::new(&tokens[7..]).with_history(&tokens[..7]);
                assert_eq!(spec.rowids(cut).unwrap(), global[7 * heads..]);
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 6);
}

#[test]
fn the_demo() {
    let (doc, npz) = (json("engram_demo.json"), Npz::open("engram_demo.npz"));
    assert_local("engram_demo", &doc, &npz);
    let config = &cases(&doc)[1]["config"];
    let spec = Spec::from_config("engram_demo", config, Some(15), None).unwrap();
    assert_eq!(spec.name(), "engram-demo");
}

#[test]
fn engram_peft() {
    assert_local("engram_peft", &json("engram_peft.json"), &Npz::open("engram_peft.npz"));
}

#[test]
fn a_token_map_before_the_demo_maps_tokens_and_pad() {
    let doc = json("engram_demo.json");
    let config = &cases(&doc)[0]["config"];
    // 700 compressed ids; token id i reads as (i + 5) mod 700, so raw pad 697 is compressed pad 2.
    let ids: Vec<u32> = (0..1000).map(|i| (i + 5) % 700).collect();
    let map = Arc::new(TokenMap::from_vec(ids.clone()).unwrap());
    let mapped = with(config, json!({"pad": 697}));
    let spec = Spec::from_config("engram_demo", &mapped, Some(1), Some(map.clone())).unwrap();
    assert_eq!(spec.vocab_size(), 1000);
    let raw: Vec<i64> = vec![0, 999, 697, 3, 500];
    let compressed: Vec<i64> = raw.iter().map(|&t| i64::from(ids[t as usize])).collect();
    let plain = Spec::from_config("engram_demo", config, Some(1), None).unwrap();
    let expected = plain.rowids(Sequence::new(&compressed)).unwrap();
    assert_eq!(spec.rowids(Sequence::new(&raw)).unwrap(), expected);
    // The compressed size may also be left to the map.
    let mut without = mapped.clone();
    without.as_object_mut().unwrap().remove("compressed");
    let spec = Spec::from_config("engram_demo", &without, Some(1), Some(map)).unwrap();
    assert_eq!(spec.rowids(Sequence::new(&raw)).unwrap(), expected);
    let error = Spec::from_config("engram_demo", &without, Some(1), None).unwrap_err();
    assert!(error.to_string().contains("compressed_vocab_size"), "{error}");
}
