//! The positions of a batch, sorted by row id.

/// Positions of a batch by row id: equal ids lie together, and reads go through each file once, forwards.
pub(super) struct Order {
    /// Row id in the upper bits, position in the lower ones: 8 bytes a row, and sorting compares whole numbers.
    keys: Vec<u64>,
    position_bits: u32,
    first_position: usize,
}

impl Order {
    /// Sorts `ids`, all below `rows`, in pieces of as many as fit the keys: one piece unless ids or batch have more than
    /// about 2^32 values.
    pub(super) fn pieces(ids: &[i64], rows: u64) -> impl Iterator<Item = Order> {
        let position_bits = rows.saturating_sub(1).leading_zeros().min(32);
        let most = 1usize << position_bits;
        ids.chunks(most).enumerate().map(move |(piece, ids)| {
            let mut keys: Vec<u64> =
                (0..).zip(ids).map(|(position, &id)| (id as u64) << position_bits | position).collect();
            keys.sort_unstable();
            Order { keys, position_bits, first_position: piece * most }
        })
    }

    /// Number of positions.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The row id at `index`.
    #[inline]
    pub(super) fn id(&self, index: usize) -> u64 {
        self.keys[index] >> self.position_bits
    }

    /// The position in the batch at `index`.
    #[inline]
    pub(super) fn position(&self, index: usize) -> usize {
        self.first_position + (self.keys[index] & ((1 << self.position_bits) - 1)) as usize
    }

    /// The end of the run of equal ids that begins at `index`.
    #[inline]
    pub(super) fn run_end(&self, index: usize) -> usize {
        let id = self.id(index);
        (index + 1..self.len()).find(|&next| self.id(next) != id).unwrap_or(self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_size_are_sorted_with_their_positions() {
        // With few bits left for positions there are many pieces; the largest row count leaves two positions each.
        for rows in [1u64, 2, 1 << 20, 1 << 62, (1 << 62) + 1, i64::MAX as u64] {
            let last = rows as i64 - 1;
            let ids: Vec<i64> = (0..50).map(|k| if k % 3 == 0 { last } else { last.min(50 - k) }).collect();
            let mut seen = vec![false; ids.len()];
            for order in Order::pieces(&ids, rows) {
                let mut index = 0;
                while index < order.len() {
                    let end = order.run_end(index);
                    assert!(end == order.len() || order.id(end) > order.id(index));
                    for at in index..end {
                        assert_eq!(order.id(at), ids[order.position(at)] as u64);
                        assert!(!std::mem::replace(&mut seen[order.position(at)], true));
                    }
                    index = end;
                }
            }
            assert!(seen.into_iter().all(|seen| seen), "{rows} rows");
        }
    }
}
