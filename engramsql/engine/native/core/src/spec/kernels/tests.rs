//! Every level that this processor has, called by name, against plain remainders and the portable loops.

use super::super::engram::Engram;
use super::super::heads::Heads;
use super::super::qwen_ple::QwenPle;
use super::super::{Checked, Constants, NgramHash, TokenMap};
use super::*;
use crate::cpu;
use std::sync::Arc;

/// Small deterministic generator; the cases need variety, not quality.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        crate::spec::splitmix::splitmix64(self.0)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Sizes, prime or not, around everything that a kernel's limits could be.
fn sizes_near(draw: &mut Draw) -> u64 {
    let centre = draw.pick(&[1 << 14, 1 << 20, 20_000_000, 1 << 31, 1 << 32, 1 << 40, 1 << 51]);
    (centre - 40 + draw.below(80) as u64).max(2)
}

fn heads(orders: Vec<u32>, sizes: Vec<u64>) -> Heads {
    Heads::new("test", orders, sizes, "sizes").unwrap()
}

fn kernel_levels() -> Vec<Level> {
    cpu::available().into_iter().filter(|level| matches!(level, Level::Avx2 | Level::Avx512)).collect()
}

#[test]
fn remainders_are_exact_to_the_last_bit() {
    let mut draw = Draw(1);
    let mut wide_levels = 0;
    for level in kernel_levels() {
        for round in 0..2000 {
            let size = match round {
                0 => 1 << 14,
                1 => (1 << 31) - 1,
                2 => 1 << 51,
                _ => sizes_near(&mut draw),
            };
            let heads = heads(vec![1], vec![size]);
            let Some(wide) = Wide::new(level, &[1], &heads, false) else {
                assert!(!(1 << 14..1 << 31).contains(&size), "{level}, {size}");
                continue;
            };
            wide_levels += 1;
            // Around multiples of the size, where a quotient that is one off shows, and at the ends of the range.
            let most = u64::MAX / size;
            let multiples = (0..24).map(|_| draw.next() % most.saturating_add(1) * size).collect::<Vec<_>>();
            let near = multiples.iter().enumerate().map(|(i, m)| m.wrapping_add(i as u64 % 3).wrapping_sub(1));
            let values: Vec<u64> =
                near.chain([0, u64::MAX, most * size, most * size - 1, i64::MAX as u64, 1]).collect();
            let mut tile = Tile::new([0].into_iter());
            tile.advance(0, values.iter().map(|&value| (value, false)));
            let mut rows = vec![-1; values.len()];
            wide.rows(&tile, &mut rows);
            for (value, row) in values.iter().zip(rows) {
                assert_eq!(row as u64, value % size, "{level}: {value} mod {size}");
            }
        }
    }
    assert!(wide_levels >= 1000 * kernel_levels().len());
}

#[test]
fn sizes_beyond_a_kernel_are_left_to_the_portable_loop() {
    for level in kernel_levels() {
        let most = if level == Level::Avx2 { 1 << 31 } else { 1 << 52 };
        for size in [2, 3, 97, (1 << 14) - 1, most, 1 << 62] {
            let heads = heads(vec![2, 2], vec![20_000_003, size]);
            assert!(Wide::new(level, &[3, 5], &heads, false).is_none(), "{level}, {size}");
        }
        let window = vec![3; LONGEST + 1];
        assert!(Wide::new(level, &window, &heads(vec![2], vec![20_000_003]), false).is_none());
    }
    assert!(Wide::new(Level::Portable, &[3, 5], &heads(vec![2], vec![20_000_003]), false).is_none());
}

/// A random table: window of 2 to 9, some of its orders, 1 to 7 heads each.
fn constants(draw: &mut Draw, family: &'static str) -> Constants {
    let window = 2 + draw.pick(&[0, 1, 1, 1, 2, 3, 6, 7]) as u32;
    let mut orders = Vec::new();
    let per_order = 1 + draw.below(12);
    for order in 2..=window {
        // engram-peft leaves orders out; the window is as long as the largest.
        if order == window || draw.below(4) > 0 {
            orders.extend(vec![order; per_order]);
        }
    }
    let usual = draw.below(4) > 0;
    let sizes = orders.iter().map(|_| match draw.below(12) {
        0 if !usual => 2 + draw.below(200) as u64,
        1 if !usual => (1 << 56) - draw.below(99) as u64,
        2..=5 if !usual => sizes_near(draw),
        _ => 16_000_000 + draw.below(9_000_000) as u64,
    });
    let sizes: Vec<u64> = sizes.collect();
    let vocab_size = draw.pick(&[50, 248_320]);
    let heads = heads(orders, sizes);
    Constants {
        family,
        layer: None,
        multipliers: (0..window).map(|_| (draw.next() % (i64::MAX as u64 / vocab_size)) as i64 | 1).collect(),
        table_rows: heads.rows,
        heads,
        vocab_size,
        history_len: window as usize - 1,
        head_dim: None,
        eos: None,
        pad: None,
        dead: (family == "deepseek_v41" && draw.below(2) == 0).then_some(7),
        rule: "",
    }
}

/// A sequence in which `special` is frequent, often adjacent; history of any length up to what counts.
struct Case {
    tokens: Vec<i64>,
    dead: Vec<bool>,
    history: Vec<i64>,
    history_dead: Vec<bool>,
}

impl Case {
    fn new(draw: &mut Draw, constants: &Constants, special: u64, with_dead: bool) -> Case {
        let rare = draw.pick(&[2, 3, 10, 1000]);
        let mut list = |lengths: &[usize]| -> (Vec<i64>, Vec<bool>) {
            let n = draw.pick(lengths);
            let mut token = || match draw.below(rare) {
                0 => special,
                _ => draw.next() % constants.vocab_size,
            };
            let tokens = (0..n).map(|_| token() as i64).collect();
            let dead = if with_dead { (0..n).map(|_| draw.below(rare) == 0).collect() } else { Vec::new() };
            (tokens, dead)
        };
        let (tokens, dead) = list(&[0, 1, 3, 4, 5, 30, TILE - 1, TILE, TILE + 1, 3 * TILE + 7]);
        let past: Vec<usize> = (0..=constants.history_len).collect();
        let (history, history_dead) = list(&past);
        Case { tokens, dead, history, history_dead }
    }

    fn rows(&self, hash: &dyn NgramHash, heads: usize) -> Vec<i64> {
        let mut rows = vec![-1; self.tokens.len() * heads];
        let seq = Checked {
            tokens: &self.tokens,
            dead: &self.dead,
            history: &self.history,
            history_dead: &self.history_dead,
        };
        hash.rows_into(seq, &mut rows);
        rows
    }
}

#[test]
fn random_qwen_tables_hash_alike() {
    let mut draw = Draw(2);
    for round in 0..400 {
        let constants = constants(&mut draw, "qwen_ple_v1");
        let eos = draw.next() % constants.vocab_size;
        let hash = |level| QwenPle::new(level, &constants, eos);
        for _ in 0..10 {
            let case = Case::new(&mut draw, &constants, eos, false);
            let count = constants.heads.sizes.len();
            let truth = case.rows(&hash(Level::Portable), count);
            for level in kernel_levels() {
                assert_eq!(case.rows(&hash(level), count), truth, "{level}, round {round}, {constants:?}");
            }
        }
    }
}

#[test]
fn random_engram_tables_hash_alike() {
    let mut draw = Draw(3);
    for round in 0..400 {
        let family = draw.pick(&["deepseek_v41", "engram_demo", "engram_peft"]);
        let constants = constants(&mut draw, family);
        let (pad, special) = (draw.next() % constants.vocab_size, draw.pick(&[7, 0, 49]));
        let map: Vec<u32> = (0..constants.vocab_size as u32).map(|id| id % 40).collect();
        let map = (family != "engram_demo").then(|| Arc::new(TokenMap::from_vec(map).unwrap()));
        let hash = |level| Engram::new(level, &constants, pad, map.clone(), family == "engram_peft");
        for _ in 0..10 {
            let case = Case::new(&mut draw, &constants, special, family == "deepseek_v41");
            let count = constants.heads.sizes.len();
            let truth = case.rows(&hash(Level::Portable), count);
            for level in kernel_levels() {
                assert_eq!(case.rows(&hash(level), count), truth, "{level}, {family}, round {round}, {constants:?}");
            }
        }
    }
}
