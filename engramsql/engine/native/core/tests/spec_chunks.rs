//! However a sequence is cut or packed, its row ids are those of one pass.

mod npz;
mod spec_support;

use engram_engine::spec::{PackedSequences, Sequence};
use spec_support::{Draw, specs};

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
