//! Means with intervals.

/// 97.5 % quantile of the normal distribution.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

/// The quantile of the normal distribution at 0 < p < 1, by Acklam's rational approximation,
/// whose relative error is below 1.2·10⁻⁹.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 6] =
        [-5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1, 1.0];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 5] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0];
    /// Below it the tail has an approximation of its own.
    const TAIL: f64 = 0.02425;
    let horner = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        horner(&C, q) / horner(&D, q)
    };
    match p {
        p if p < TAIL => tail(p),
        p if p > 1.0 - TAIL => -tail(1.0 - p),
        p => {
            let q = p - 0.5;
            q * horner(&A, q * q) / horner(&B, q * q)
        }
    }
}

/// The quantile of Student's t at p with `freedom` degrees of freedom: exact for one and two, else
/// by the expansion of Abramowitz and Stegun (26.7.5), whose error at 97.5 % is below 1 %.
pub(crate) fn t_quantile(p: f64, freedom: f64) -> f64 {
    if freedom <= 1.0 {
        return (std::f64::consts::PI * (p - 0.5)).tan();
    }
    if freedom <= 2.0 {
        let x = 2.0 * p - 1.0;
        return x * (2.0 / (1.0 - x * x)).sqrt();
    }
    let z = normal_quantile(p);
    let power = |n: i32| z.powi(n);
    let terms = [
        (power(3) + z) / 4.0,
        (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / 96.0,
        (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / 384.0,
        (79.0 * power(9) + 776.0 * power(7) + 1482.0 * power(5) - 1920.0 * power(3) - 945.0 * z) / 92160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + z
}

/// 97.5 % quantile of Student's t with `freedom` degrees of freedom.
pub(crate) fn t95(freedom: f64) -> f64 {
    t_quantile(0.975, freedom)
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
    fn quantiles_of_the_normal_distribution_agree_with_the_table() {
        for (p, z) in [(0.975, Z95), (0.5, 0.0), (0.9, 1.281_551_565_5), (0.995, 2.575_829_303_5), (0.001, -3.090_232_306_2)] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn quantiles_of_students_t_agree_with_the_table() {
        for (freedom, expected) in [
            (1.0, 12.7062),
            (2.0, 4.3027),
            (3.0, 3.1824),
            (4.0, 2.7764),
            (9.0, 2.2622),
            (19.0, 2.0930),
            (30.0, 2.0423),
            (1e9, 1.95996),
        ] {
            let t = t95(freedom);
            assert!((t / expected - 1.0).abs() < 0.01, "{freedom}: {t}, not {expected}");
        }
    }
}
