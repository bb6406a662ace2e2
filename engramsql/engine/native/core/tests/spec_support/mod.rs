//! Specs of every family, and sequences to hash.

#![allow(dead_code)] // Not every test binary uses every helper.

use crate::npz::{cases, json, with};
use engram_engine::spec::{Spec, TokenMap};
use serde_json::json;
use std::sync::Arc;

/// Small deterministic generator; the cases need variety, not quality.
pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// One spec per family and variant.
pub fn specs() -> Vec<Spec> {
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
