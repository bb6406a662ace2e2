//! Row ids of many tokens at once: the same arithmetic as [`Mixer`](super::heads::Mixer), eight heads in a register.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "no other processor has a kernel that pays"))]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod tests;
mod tile;

pub(super) use tile::{TILE, Tile};

use super::heads::Heads;
use crate::cpu::Level;
use std::ops::RangeInclusive;
use tile::{LONGEST, Mixed};

/// Heads in a group.
const LANES: usize = 8;

/// Heads `8 g .. 8 g + 8`, padded with heads that are never stored.
#[derive(Debug, Clone)]
struct Group {
    sizes: [u64; LANES],
    /// About 1 / size, rounded as the kernel needs it.
    inverses: [f64; LANES],
    offsets: [u64; LANES],
    /// Lanes in use.
    lanes: usize,
    /// (lanes, index of their n-gram order): the first covers all lanes, each other overwrites some.
    values: Vec<(u8, usize)>,
}

type Rows = unsafe fn(&Wide, &Mixed, &[Group], usize, &mut [i64]);
type Mix = unsafe fn(&Wide, &Tile, &mut Mixed);

/// What a level has.
struct Functions {
    mix: Mix,
    rows: Rows,
    /// Head sizes that it is exact for.
    sizes: RangeInclusive<u64>,
    /// Whether it wants inverses that are not above 1 / size.
    round_down: bool,
}

impl Functions {
    fn at(level: Level) -> Option<Functions> {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                Some(Functions { mix: avx512::mix, rows: avx512::rows, sizes: avx512::SIZES, round_down: true })
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Some(Functions { mix: avx2::mix, rows: avx2::rows, sizes: avx2::SIZES, round_down: false }),
            _ => None,
        }
    }
}

/// Constants of one table, laid out for the kernels of one level.
#[derive(Debug, Clone)]
pub(super) struct Wide {
    multipliers: Vec<u64>,
    /// Window positions mixed in for each n-gram order, ascending.
    orders: Vec<usize>,
    groups: Vec<Group>,
    heads: usize,
    /// Whether the oldest window position is mixed in first.
    oldest_first: bool,
    mix: Mix,
    rows: Rows,
}

impl Wide {
    /// `None` where the level has no kernel, or the constants are outside of what it is exact for.
    pub(super) fn new(level: Level, multipliers: &[u64], heads: &Heads, oldest_first: bool) -> Option<Wide> {
        let window = multipliers.len();
        let mut orders: Vec<usize> = heads.orders.iter().map(|&order| order as usize).collect();
        orders.dedup();
        let fits = window <= LONGEST && orders.len() <= LONGEST && orders.is_sorted_by(|a, b| a < b);
        if !fits || orders.last().is_none_or(|&last| last > window) || !level.is_available() {
            return None;
        }
        let Functions { mix, rows, sizes, round_down } = Functions::at(level)?;
        if !heads.sizes.iter().all(|size| sizes.contains(size)) {
            return None;
        }
        let inverse = |size: u64| {
            // Sizes up to 2^53 are exact in a double.
            let nearest = 1.0 / size as f64;
            if round_down { nearest.next_down() } else { nearest }
        };
        let groups = (0..heads.sizes.len()).step_by(LANES).map(|first| {
            let lanes = LANES.min(heads.sizes.len() - first);
            let pad = *sizes.start();
            let mut group = Group {
                sizes: [pad; LANES],
                inverses: [inverse(pad); LANES],
                offsets: [0; LANES],
                lanes,
                values: Vec::new(),
            };
            for lane in 0..lanes {
                let (size, order) = (heads.sizes[first + lane], heads.orders[first + lane] as usize);
                group.sizes[lane] = size;
                group.inverses[lane] = inverse(size);
                group.offsets[lane] = heads.offsets[first + lane];
                let index = orders.partition_point(|&known| known < order);
                match group.values.last_mut() {
                    None => group.values.push((u8::MAX, index)),
                    Some((_, last)) if *last == index => {}
                    // From this lane on.
                    Some(_) => group.values.push((u8::MAX << lane, index)),
                }
            }
            group
        });
        let groups = groups.collect();
        Some(Wide {
            multipliers: multipliers.to_vec(),
            orders,
            groups,
            heads: heads.sizes.len(),
            oldest_first,
            mix,
            rows,
        })
    }

    /// Row ids of the tokens of a tile: as many as the tile holds, times the heads.
    pub(super) fn rows(&self, tile: &Tile, out: &mut [i64]) {
        assert_eq!(out.len(), tile.len() * self.heads, "row ids do not fit the tokens of the tile");
        let mut mixed = Mixed::new();
        // SAFETY: `new` checked the level, the window, the orders and the sizes; the output was checked just now.
        unsafe {
            (self.mix)(self, tile, &mut mixed);
            (self.rows)(self, &mixed, &self.groups, tile.len(), out);
        }
    }

    /// (window positions back, multiplier) in the order of mixing.
    #[inline(always)]
    fn terms(&self) -> impl Iterator<Item = (usize, u64)> {
        let last = self.multipliers.len() - 1;
        let back = move |position| if self.oldest_first { last - position } else { position };
        self.multipliers.iter().enumerate().map(move |(position, &multiplier)| (back(position), multiplier))
    }
}
