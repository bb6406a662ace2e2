//! Sums that lose nothing that matters over billions of values.

/// A sum with what rounding took from it (Neumaier's variant of Kahan summation, ZAMM 54, 1974).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    pub(super) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        // The smaller of the two is the one that lost digits.
        self.lost += if self.sum.abs() >= value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
    }

    pub(super) fn merge(&mut self, other: Sum) {
        self.add(other.sum);
        self.lost += other.lost;
    }

    pub(super) fn value(self) -> f64 {
        self.sum + self.lost
    }
}

/// Count, mean and squared deviations of values, merged as by Chan, Golub and LeVeque (1979): the sum of squares minus the
/// square of the sum would lose every digit of a deviation that is small against the mean.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    count: u64,
    mean: f64,
    /// Sum of the squares of the differences from the mean.
    deviations: f64,
    sum: Sum,
}

impl Moments {
    /// `count` values with this sum, and the squares of their differences from `sum / count`.
    pub(super) fn of(count: u64, sum: f64, deviations: f64) -> Moments {
        let mut all = Sum::default();
        all.add(sum);
        Moments { count, mean: if count > 0 { sum / count as f64 } else { 0.0 }, deviations, sum: all }
    }

    pub(super) fn merge(&mut self, other: Moments) {
        let count = self.count + other.count;
        if other.count == 0 || self.count == 0 {
            if self.count == 0 {
                *self = other;
            }
            return;
        }
        let share = other.count as f64 / count as f64;
        let difference = other.mean - self.mean;
        self.mean += difference * share;
        self.deviations += other.deviations + difference * difference * (self.count as f64 * share);
        self.count = count;
        self.sum.merge(other.sum);
    }

    /// Mean and population standard deviation; `None` of no values.
    pub(super) fn summary(&self) -> Option<(f64, f64)> {
        let count = self.count as f64;
        (self.count > 0).then(|| (self.sum.value() / count, (self.deviations / count).sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_keeps_what_rounding_takes() {
        let mut sum = Sum::default();
        [1.0, 1e100, 1.0, -1e100].iter().for_each(|&value| sum.add(value));
        assert_eq!(sum.value(), 2.0);
        let mut two = Sum::default();
        two.merge(sum);
        two.merge(sum);
        assert_eq!(two.value(), 4.0);
    }

    #[test]
    fn a_small_deviation_beside_a_large_mean_is_right() {
        // 2^26 and 2^26 + 1 in turn: squares of 10^4 of them need 66 bits, so that their sum has no digit of the deviation.
        let mut all = Moments::default();
        for block in 0..1000 {
            let base = f64::from(1 << 26) + f64::from(block % 2);
            all.merge(Moments::of(10, base * 10.0, 0.0));
        }
        all.merge(Moments::default());
        let (mean, deviation) = all.summary().unwrap();
        assert_eq!(mean, f64::from(1 << 26) + 0.5);
        // A rounding of the mean, 2^-27, against the deviation.
        assert!((deviation - 0.5).abs() < 1e-8, "{deviation}");
        assert!(Moments::default().summary().is_none());
    }
}
