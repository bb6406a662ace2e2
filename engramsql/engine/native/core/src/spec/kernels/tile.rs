//! The windows of consecutive tokens, one array per window position, so that tokens fill a register.

/// Tokens hashed at a time; what a tile needs stays in the first cache.
pub(in super::super) const TILE: usize = 32;
/// Longest window and most n-gram orders that the kernels take; published models use up to 5.
pub(super) const LONGEST: usize = 8;

/// What up to [`TILE`] consecutive tokens see.
pub(in super::super) struct Tile {
    /// `[s][t + 1]`: what token `t` sees `s` positions back (itself for 0); `[s][0]`: what the token before saw.
    seen: [[u64; TILE + 1]; LONGEST],
    window: usize,
    len: usize,
}

impl Tile {
    /// An empty tile behind a token that saw `window`, newest first; at most [`LONGEST`] positions.
    pub(in super::super) fn new(window: impl ExactSizeIterator<Item = u64>) -> Tile {
        let mut tile = Tile { seen: [[0; TILE + 1]; LONGEST], window: window.len().min(LONGEST), len: 0 };
        for (seen, id) in tile.seen.iter_mut().zip(window) {
            seen[0] = id;
        }
        tile
    }

    /// Tokens in the tile.
    pub(in super::super) fn len(&self) -> usize {
        self.len
    }

    /// The last token.
    pub(in super::super) fn newest(&self) -> u64 {
        self.seen[0][self.len]
    }

    /// Moves on to the next (at most [`TILE`]) tokens. Each comes with whether it sees `filler` in place of every older
    /// one.
    #[inline]
    pub(in super::super) fn advance(&mut self, filler: u64, tokens: impl Iterator<Item = (u64, bool)>) {
        for seen in &mut self.seen {
            seen[0] = seen[self.len];
        }
        let mut cuts = [0; TILE];
        self.len = 0;
        for ((slot, cut), (token, is_cut)) in self.seen[0][1..].iter_mut().zip(&mut cuts).zip(tokens) {
            *slot = token;
            *cut = if is_cut { u64::MAX } else { 0 };
            self.len += 1;
        }
        for s in 1..self.window {
            let (younger, older) = self.seen.split_at_mut(s);
            let slots = older[0][1..].iter_mut().zip(&younger[s - 1]).zip(&cuts);
            for ((slot, before), cut) in slots.take(self.len) {
                *slot = (before & !cut) | (filler & cut);
            }
        }
    }

    /// What every token sees `back` positions back; only the first `len()` mean anything.
    #[inline(always)]
    pub(super) fn seen(&self, back: usize) -> &[u64; TILE] {
        // Never fails: one more than TILE entries.
        self.seen[back].last_chunk().unwrap_or(&[0; TILE])
    }
}

/// Hash values of a tile before they are reduced to buckets, per n-gram order; the same as doubles.
pub(super) struct Mixed {
    pub(super) values: [[u64; TILE]; LONGEST],
    pub(super) doubles: [[f64; TILE]; LONGEST],
}

impl Mixed {
    #[inline(always)]
    pub(super) fn new() -> Mixed {
        Mixed { values: [[0; TILE]; LONGEST], doubles: [[0.0; TILE]; LONGEST] }
    }
}
