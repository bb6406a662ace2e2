//! The n-grams that heads hash: hashing them anew gives the row ids.

mod npz;
mod spec_support;

use engram_engine::spec::{Sequence, Spec};
use npz::{json, with};
use serde_json::json;
use spec_support::{Draw, specs};
use std::collections::HashMap;

/// The row id of one n-gram, oldest id first, by the formula of the spec's family in plain arithmetic.
fn row_of(spec: &Spec, head: usize, ngram: &[i64]) -> i64 {
    let size = u128::from(spec.head_sizes()[head]);
    let value = if spec.family() == "longcat" {
        let vocab = u128::from(spec.vocab_size());
        ngram.iter().fold(0, |sum, &id| (sum * vocab + id as u128) % size)
    } else {
        let mut ids: Vec<i64> = ngram.to_vec();
        if spec.family() != "engram_peft" {
            ids.reverse();
        }
        let mixed = ids.iter().zip(spec.multipliers()).fold(0, |mixed, (id, multiplier)| mixed ^ (id * multiplier));
        mixed as u128 % size
    };
    (value as u64 + spec.head_offsets()[head]) as i64
}

#[test]
fn hashing_an_ngram_anew_gives_its_row_and_equal_ngrams_have_equal_rows() {
    let mut draw = Draw(11);
    for spec in specs() {
        let heads = spec.heads();
        let mut known: HashMap<(usize, Vec<i64>), i64> = HashMap::new();
        let (mut keyed, mut unkeyed) = (HashMap::new(), HashMap::new());
        for round in 0..200 {
            // Few distinct ids, so that EOS (7, 2), pad and image tokens are frequent, as are equal n-grams.
            let mut tokens = |length: usize| -> Vec<i64> { (0..length).map(|_| draw.below(9) as i64).collect() };
            let (history, tokens) = (tokens(round % 5), tokens(round % 40));
            let seq = Sequence::new(&tokens).with_history(&history);
            let rows = spec.rowids(seq).unwrap();
            let ngrams = spec.ngrams(seq).unwrap();
            assert_eq!(ngrams.ranges().count(), rows.len());
            let runs = spec.head_runs();
            assert_eq!(
                runs.iter().flat_map(|run| run.heads.clone()).collect::<Vec<_>>(),
                (0..heads).collect::<Vec<_>>()
            );
            let mut keys = vec![0; tokens.len() * runs.len()];
            spec.ngram_keys_into(seq, &mut keys).unwrap();
            for (place, key) in keys.iter().enumerate() {
                let (token, run) = (place / runs.len(), place % runs.len());
                for head in runs[run].heads.clone() {
                    let ngram = ngrams.iter().nth(token * heads + head).unwrap();
                    // One key for one n-gram, and one n-gram for one key.
                    assert_eq!(*keyed.entry((run, ngram.to_vec())).or_insert(*key), *key);
                    assert_eq!(*unkeyed.entry((run, *key)).or_insert(ngram.to_vec()), ngram);
                }
            }
            for (index, (ngram, &row)) in ngrams.iter().zip(&rows).enumerate() {
                let head = index % heads;
                assert!(ngram.len() <= spec.ngram_orders()[head] as usize);
                assert!(ngram.len() == spec.ngram_orders()[head] as usize || spec.family() == "longcat");
                assert_eq!(row_of(&spec, head, ngram), row, "{} head {head} {ngram:?}", spec.family());
                assert_eq!(*known.entry((head, ngram.to_vec())).or_insert(row), row);
            }
        }
        assert!(known.len() > 10 * heads, "{}", spec.family());
    }
}

#[test]
fn an_ngram_ends_at_its_token_and_shows_boundaries() {
    for spec in specs() {
        let (orders, heads) = (spec.ngram_orders(), spec.heads());
        let bigram = orders.iter().position(|&order| order == 2).unwrap();
        let ngrams = spec.ngrams(Sequence::new(&[4, 5])).unwrap();
        let at = |token: usize| ngrams.iter().nth(token * heads + bigram).unwrap().to_vec();
        let missing = |id: Option<u64>| id.unwrap() as i64;
        match spec.family() {
            "qwen_ple_v1" => assert_eq!((at(0), at(1)), (vec![missing(spec.eos_token()), 4], vec![4, 5])),
            "longcat" => assert_eq!((at(0), at(1)), (vec![4], vec![4, 5])),
            "engram_peft" => {
                let largest = ngrams.iter().last().unwrap();
                assert!(largest.len() > 2 && largest.ends_with(&[4, 5]));
                assert_eq!(at(1), largest[..2]);
            }
            // The deepseek map compresses ids below 500 to themselves.
            _ => assert_eq!((at(0)[1], at(1)), (4, vec![4, 5])),
        }
    }
}

#[test]
fn what_cannot_be_hashed_has_no_ngrams() {
    let spec = Spec::released_qwen_ple().unwrap();
    let text = spec.ngrams(Sequence::new(&[1, -1])).unwrap_err().to_string();
    assert_eq!(text, spec.rowids(Sequence::new(&[1, -1])).unwrap_err().to_string());
}

/// Keys of n-grams whose ids do not fit a number are hashes.
#[test]
fn long_ngrams_are_told_apart_by_a_hash() {
    // 1001^14 is more than 2^127.
    let config = with(&json("qwen_generic.json")["configs"][0], json!({"ngram_size": 14, "heads_per_ngram": 2}));
    let spec = Spec::from_config("qwen_ple_v1", &config, None, None).unwrap();
    let keys = |spec: &Spec, first: i64| {
        let tokens: Vec<i64> = std::iter::once(first).chain(20..36).collect();
        let mut keys = vec![0; tokens.len() * spec.head_runs().len()];
        spec.ngram_keys_into(Sequence::new(&tokens), &mut keys).unwrap();
        keys
    };
    // Three ids of the released vocabulary fit 64 bits as digits of a number; a hash hardly ever does.
    assert!(keys(&Spec::released_qwen_ple().unwrap(), 5).iter().all(|&key| key < 1 << 64));
    let (one, other) = (keys(&spec, 5), keys(&spec, 6));
    assert!(one.iter().all(|&key| key >= 1 << 64));
    let runs = spec.head_runs().len();
    let (reaches, beyond) = (one.len() - 4 * runs, one.len() - 3 * runs);
    // The longest n-gram of a token ends where the next one begins.
    assert_ne!(one[reaches + runs - 1], other[reaches + runs - 1]);
    assert_eq!(one[reaches..beyond - 1], other[reaches..beyond - 1]);
    assert_eq!(one[beyond..], other[beyond..]);
}
