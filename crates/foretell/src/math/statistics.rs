//! Means with intervals.

/// 97.5 % quantile of the normal distribution.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

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
