//! What `deepseek_v41`, `engram_demo` and `engram_peft` share: numpy multipliers and one hash over compressed ids.

use super::config::{Config, MAX_ORDER};
use super::error::SpecError;
use super::heads::Mixer;
use super::kernels::{TILE, Tile, Wide};
use super::numpy_rng::Pcg64;
use super::token_map::TokenMap;
use super::{Checked, Constants, NgramHash, Window};
use crate::cpu::Level;
use std::sync::Arc;

/// Largest compressed vocabulary: above, numpy would draw the multipliers in another way (32 bits at a time).
pub(super) const MAX_COMPRESSED: u64 = (i64::MAX as u64) / ((1 << 33) + 2);

/// Odd multipliers of one layer: `default_rng(seed + 10007 * layer)` (Engram demo, vLLM 0.33.0).
pub(super) fn multipliers(seed: u64, layer: u32, compressed: u64, count: u64) -> Vec<i64> {
    let bound = (i64::MAX as u64) / compressed / 2;
    let mut rng = Pcg64::new(u128::from(seed) + 10_007 * u128::from(layer));
    // 2 * (bound - 1) + 1 < (2^63 - 1) / compressed, so token x multiplier stays below 2^63.
    (0..count).map(|_| (2 * rng.below(bound) + 1) as i64).collect()
}

pub(super) fn no_primes(family: &'static str, remedy: &'static str) -> SpecError {
    SpecError::Overflow { family, what: "a head size", remedy }
}

/// Compressed size and valid token ids of the families whose settings name no vocabulary.
///
/// Without a token map the ids given are compressed ones already.
pub(super) fn compressed_size(config: Config<'_>, token_map: Option<&TokenMap>) -> Result<(u64, u64), SpecError> {
    const NAMES: &[&str] = &["compressed_vocab_size", "compressed"];
    let announced = match config.spelled(NAMES) {
        Ok(field) => Some((field, config.int(field, None, 1, MAX_COMPRESSED)?)),
        Err(SpecError::MissingField { .. }) if token_map.is_some() => None,
        Err(error) => return Err(error),
    };
    match (token_map, announced) {
        (None, Some((_, size))) => Ok((size, size)),
        (Some(map), Some((field, size))) => {
            map.check_compressed_size(field, size)?;
            Ok((size, map.tokens()))
        }
        (Some(map), None) if map.compressed_size() <= MAX_COMPRESSED => Ok((map.compressed_size(), map.tokens())),
        (Some(map), None) => Err(config.bad(NAMES[0], map.compressed_size(), format!("at most {MAX_COMPRESSED}"))),
        (None, None) => Err(config.missing(NAMES[0])),
    }
}

/// Compressed ids, a pad where a token is missing, dead or behind a dead one.
#[derive(Debug)]
pub(super) struct Engram {
    mixer: Mixer,
    /// `None`: token ids are compressed already.
    token_map: Option<Arc<TokenMap>>,
    /// Compressed.
    pad: u64,
    dead: Option<i64>,
    /// engram-peft multiplies the window from its oldest token on; the others from the current one.
    oldest_first: bool,
}

impl Engram {
    /// `pad` is an id of the same kind as the tokens: raw with a map, compressed without. The caller checked its range.
    pub(super) fn new(
        level: Level,
        constants: &Constants,
        pad: u64,
        token_map: Option<Arc<TokenMap>>,
        oldest_first: bool,
    ) -> Self {
        let pad = match &token_map {
            Some(map) => u64::from(map.map()[pad as usize]),
            None => pad,
        };
        Self {
            mixer: Mixer::new(level, &constants.multipliers, &constants.heads, oldest_first),
            token_map,
            pad,
            dead: constants.dead.and_then(|id| i64::try_from(id).ok()),
            oldest_first,
        }
    }

    /// Compressed id of a token, or `None` of a dead one.
    #[inline(always)]
    fn id(&self, token: i64, masked: bool) -> Option<u64> {
        if masked || self.dead == Some(token) {
            return None;
        }
        Some(match &self.token_map {
            Some(map) => u64::from(map.map()[token as usize]),
            None => token as u64,
        })
    }

    #[inline(always)]
    fn push(&self, window: &mut [u64], token: i64, masked: bool) {
        let Some(id) = self.id(token, masked) else {
            // Blocks itself and, once shifted, everything older: pads only.
            window.fill(self.pad);
            return;
        };
        let last = window.len() - 1;
        if self.oldest_first {
            for s in 0..last {
                window[s] = window[s + 1];
            }
            window[last] = id;
        } else {
            for s in (1..=last).rev() {
                window[s] = window[s - 1];
            }
            window[0] = id;
        }
    }

    /// Many tokens behind `window`.
    fn rows_of_many(&self, wide: &Wide, window: &mut [u64], seq: Checked<'_>, out: &mut [i64]) {
        if self.oldest_first {
            window.reverse();
        }
        let mut tile = Tile::new(window.iter().copied());
        let rows = out.chunks_mut(TILE * self.mixer.heads());
        for ((tokens, rows), first) in seq.tokens.chunks(TILE).zip(rows).zip((0..).step_by(TILE)) {
            let ids = tokens.iter().zip(first..).map(|(&token, i)| self.id(token, masked(seq.dead, i)));
            tile.advance(self.pad, ids.map(|id| (id.unwrap_or(self.pad), id.is_none())));
            wide.rows(&tile, rows);
        }
    }
}

#[inline(always)]
fn masked(mask: &[bool], i: usize) -> bool {
    mask.get(i).is_some_and(|&dead| dead)
}

impl Engram {
    /// The window behind the history, in `buffer`.
    fn start<'w>(&self, seq: Checked<'_>, buffer: &'w mut Window) -> &'w mut [u64] {
        *buffer = [self.pad; MAX_ORDER as usize];
        let window = &mut buffer[..self.mixer.window()];
        for (i, &token) in seq.history.iter().enumerate() {
            self.push(window, token, masked(seq.history_dead, i));
        }
        window
    }
}

impl NgramHash for Engram {
    fn rows_into(&self, seq: Checked<'_>, out: &mut [i64]) {
        let mut buffer = Window::default();
        let window = self.start(seq, &mut buffer);
        if let Some(wide) = self.mixer.wide(seq.tokens.len()) {
            return self.rows_of_many(wide, window, seq, out);
        }
        let rows = out.chunks_exact_mut(self.mixer.heads());
        for (i, (&token, rows)) in seq.tokens.iter().zip(rows).enumerate() {
            self.push(window, token, masked(seq.dead, i));
            self.mixer.rows(window, rows);
        }
    }

    fn windows(&self, seq: Checked<'_>, take: &mut dyn FnMut(&[u64])) {
        let mut buffer = Window::default();
        let window = self.start(seq, &mut buffer);
        for (i, &token) in seq.tokens.iter().enumerate() {
            self.push(window, token, masked(seq.dead, i));
            take(window);
        }
    }

    fn newest_first(&self) -> bool {
        !self.oldest_first
    }
}
