//! Means with intervals.

/// 97.5 % quantile of the normal distribution.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

/// 97.5 % quantile of Student's t with `freedom` degrees of freedom, by the expansion of
/// Abramowitz and Stegun (26.7.5): exact to 1 % from three degrees on.
pub(crate) fn t95(freedom: f64) -> f64 {
    let z = Z95;
    let power = |n: i32| z.powi(n);
    let terms = [
        (power(3) + z) / 4.0,
        (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / 96.0,
        (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / 384.0,
        (79.0 * power(9) + 776.0 * power(7) + 1482.0 * power(5) - 1920.0 * power(3) - 945.0 * z) / 92160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + z
}

/// A running mean and variance (Welford 1962).
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    count: f64,
    mean: f64,
    /// Σ (x − mean)²
    squares: f64,
}

impl Mean {
    /// Adds a number.
    pub fn add(&mut self, x: f64) {
        self.count += 1.0;
        let off = x - self.mean;
        self.mean += off / self.count;
        self.squares += off * (x - self.mean);
    }

    /// Adds all numbers of another (Chan et al. 1979).
    pub(crate) fn merge(&mut self, other: &Mean) {
        let count = self.count + other.count;
        if count > 0.0 {
            let off = other.mean - self.mean;
            self.mean += off * other.count / count;
            self.squares += other.squares + off * off * self.count * other.count / count;
            self.count = count;
        }
    }

    /// How many numbers there are.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// The mean of the numbers.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Their standard deviation; 0 for fewer than two.
    pub fn sd(&self) -> f64 {
        if self.count < 2.0 { 0.0 } else { (self.squares / (self.count - 1.0)).sqrt() }
    }

    /// Half the width of the 95 % interval of the mean.
    pub fn ci95(&self) -> f64 {
        Z95 * self.sd() / self.count.max(1.0).sqrt()
    }
}

impl FromIterator<f64> for Mean {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Mean {
        let mut mean = Mean::default();
        numbers.into_iter().for_each(|x| mean.add(x));
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_students_t_agree_with_the_table() {
        for (freedom, expected) in [(3.0, 3.1824), (4.0, 2.7764), (9.0, 2.2622), (19.0, 2.0930), (30.0, 2.0423), (1e9, 1.95996)] {
            let t = t95(freedom);
            assert!((t / expected - 1.0).abs() < 0.01, "{freedom}: {t}, not {expected}");
        }
    }
}
