//! However a sequence is cut or packed, its row ids are those of one pass.

mod npz;

use engram_engine::spec::{PackedSequences, Sequence, Spec, TokenMap};
use npz::{cases, json, with};
use serde_json::json;
use std::sync::Arc;

/// Small deterministic generator; the cases need variety, not quality.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// One spec per family and variant.
fn specs() -> Vec<Spec> {
    let qwen = json("qwen_generic.json")["configs"][0].clone();
    let demo = cases(&json("engram_demo.json"))[2]["config"].clone();
    let peft = cases(&json("engram_peft.json"))[2]["config"].clone();
    let longcat = cases(&json("longcat.json"))[1]["config"].clone();
    let engine = with(&longcat, json!({"eos_rule": "engine_0_33"}));
    let deepseek = with(&json("deepseek_v41_small.json")["config"], json!({"image_token_id": 3}));
    let map = Arc::new(TokenMap::from_vec((0..800).map(|id| id % 500).collect()).unwrap());
    let build = |family: &str, config, layer, map| Spec::from_config(family, config, layer, map).unwrap();
    vec![
        build("qwen_ple_v1", &qwen, None, None),
        build("deepseek_v41", &deepseek, Some(5), Some(map)),
        build("engram_demo", &demo, Some(4), None),
        build("engram_peft", &peft, Some(9), None),
        build("longcat", &longcat, None, None),
        build("longcat", &engine, None, None),
    ]
}

#[test]
fn cuts_and_batches_equal_one_pass() {
    let mut draw = Draw(7);
    for spec in specs() {
        let (heads, dead_family) = (spec.heads(), spec.family() == "deepseek_v41");
        for round in 0..300 {
            let length = draw.below(40);
            // Few distinct ids, so that EOS (7, 2), pad and image tokens are frequent and often adjacent.
            let tokens: Vec<i64> = (0..length).map(|_| draw.below(9) as i64).collect();
            let dead: Vec<bool> = (0..length).map(|_| dead_family && draw.below(8) == 0).collect();
            let whole = spec.rowids(Sequence::new(&tokens).with_dead(&dead, &[])).unwrap();
            let reachable = 0..spec.reachable_rows() as i64;
            assert!(whole.iter().all(|row| reachable.contains(row)));

            let mut starts = vec![0, length as i64];
            starts.extend((0..draw.below(6)).map(|_| draw.below(length + 1) as i64));
            starts.sort_unstable();
            let (mut chunked, mut history, mut history_dead, mut history_starts) = (vec![], vec![], vec![], vec![0]);
            for bounds in starts.windows(2) {
                let (from, to) = (bounds[0] as usize, bounds[1] as usize);
                // Any history of at least n - 1 tokens gives the same answer.
                let least = from.saturating_sub(spec.history_len());
                let first = draw.below(least + 1);
                let seq = Sequence {
                    tokens: &tokens[from..to],
                    dead: &dead[from..to],
                    history: &tokens[first..from],
                    history_dead: &dead[first..from],
                };
                chunked.extend(spec.rowids(seq).unwrap());
                history.extend_from_slice(seq.history);
                history_dead.extend_from_slice(seq.history_dead);
                history_starts.push(history.len() as i64);
            }
            assert_eq!(chunked, whole, "{} round {round}", spec.family());

            let batch = PackedSequences {
                tokens: &tokens,
                starts: &starts,
                history: &history,
                history_starts: &history_starts,
                dead: &dead,
                history_dead: &history_dead,
            };
            let mut packed = vec![-1; length * heads];
            spec.rowids_packed_into(batch, &mut packed).unwrap();
            assert_eq!(packed, whole, "{} round {round}", spec.family());
        }
    }
}
