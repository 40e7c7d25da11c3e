//! Random projections: φ_T and φ_H as pure functions of (seed, sequence). The matrices Φ are never
//! stored.
//!
//! A column depends only on the names in the sequence and on the seed. So a new sequence needs no
//! storage, and two machines agree. Column values are part of the model format: golden tests below
//! freeze them.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::data::mix;
use crate::rng::Seed;

/// How sequences become columns of length d [H14 §6.1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Projection {
    /// Independent Gaussian entries of variance 1/d, rounded to 4096 values.
    Spherical,
    /// Independent entries ±1/√d.
    Rademacher,
    /// A single 1 in a random place.
    Hashed,
    /// A single ±1 in a random place: inner products are unbiased (Weinberger et al. 2009).
    SignedHash,
    /// No compression: one coordinate for each sequence seen in training (TPSR).
    Identity,
}

impl Projection {
    /// Whether a column has a single non-zero.
    pub fn is_hash(self) -> bool {
        matches!(self, Projection::Hashed | Projection::SignedHash)
    }
}

/// The columns of one random matrix Φ with `dim` rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    projection: Projection,
    dim: usize,
    seed: u64,
}

impl Columns {
    pub(crate) fn new(projection: Projection, dim: usize, seed: Seed) -> Columns {
        Columns { projection, dim, seed: seed.0 }
    }

    pub(crate) fn projection(&self) -> Projection {
        self.projection
    }

    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// The row of the non-zero of a hashed column, and its value.
    #[inline(always)]
    pub(crate) fn bucket(&self, key: u64) -> (usize, f64) {
        let h = mix(key ^ self.seed);
        let bucket = ((u128::from(h) * self.dim as u128) >> 64) as usize;
        // The sign comes from the low bit, which is independent of the bucket: that comes from the
        // high bits.
        let sign = if self.projection == Projection::SignedHash && h & 1 == 1 { -1.0 } else { 1.0 };
        (bucket, sign)
    }

    /// Adds `weight` times a column, in units of [`Columns::scale`]. Entries are integers, so sums
    /// of products are exact in any order.
    #[inline(always)]
    pub(crate) fn add(&self, key: u64, weight: f64, out: &mut [f64]) {
        assert_eq!(out.len(), self.dim);
        match self.projection {
            Projection::Spherical => add_gaussians(mix(key ^ self.seed), weight, out, &gaussians().values),
            // A separate function, because the compiler does not vectorise the loop if it is
            // inlined here.
            Projection::Rademacher => pulp::Arch::new().dispatch(AddSigns { key: mix(key ^ self.seed), weight, out }),
            Projection::Hashed | Projection::SignedHash => {
                let (bucket, sign) = self.bucket(key);
                out[bucket] += weight * sign;
            }
            Projection::Identity => out[key as usize - 1] += weight,
        }
    }

    /// The factor that turns sums of added columns into sums of columns of Φ.
    pub(crate) fn scale(&self) -> f64 {
        match self.projection {
            Projection::Spherical => 1.0 / (gaussians().sd * (self.dim as f64).sqrt()),
            Projection::Rademacher => 1.0 / (self.dim as f64).sqrt(),
            Projection::Hashed | Projection::SignedHash | Projection::Identity => 1.0,
        }
    }
}

/// out += ±weight, with signs from the bits of hashes of the key: 64 at a time, with the widest
/// vectors available.
struct AddSigns<'a> {
    key: u64,
    weight: f64,
    out: &'a mut [f64],
}

impl pulp::NullaryFnOnce for AddSigns<'_> {
    type Output = ();

    #[inline(always)] // into the function that is compiled for those vectors
    fn call(self) {
        for (i, block) in self.out.chunks_mut(64).enumerate() {
            let bits = mix(self.key ^ i as u64);
            for (j, x) in block.iter_mut().enumerate() {
                *x += f64::from_bits(self.weight.to_bits() ^ ((bits >> j) << 63));
            }
        }
    }
}

/// Distinct values of Gaussian entries: 12 bits, and a table that stays in the first-level cache.
const GAUSSIANS: usize = 4096;
/// Entries drawn from each 64-bit hash.
const PER_HASH: usize = 5;

/// The standard deviation of Gaussian entries, in their integer units.
const UNIT: f64 = 1024.0;

/// out += weight times normal numbers, rounded to equally likely integers.
///
/// A table lookup makes learning three times faster than drawing exact normal numbers. A projection
/// only needs independent entries of variance 1 with light tails.
#[inline(always)] // into what is compiled for wide vectors
fn add_gaussians(key: u64, weight: f64, out: &mut [f64], gaussians: &[f64; GAUSSIANS]) {
    let entry = |bits: u64, j: usize| weight * gaussians[(bits >> (12 * j)) as usize % GAUSSIANS];
    let (blocks, rest) = out.as_chunks_mut::<PER_HASH>();
    for (i, block) in blocks.iter_mut().enumerate() {
        let bits = mix(key ^ i as u64);
        for (j, x) in block.iter_mut().enumerate() {
            *x += entry(bits, j);
        }
    }
    let bits = mix(key ^ blocks.len() as u64);
    rest.iter_mut().enumerate().for_each(|(j, x)| *x += entry(bits, j));
}

/// The quantiles (2k + 1)/8192 of the normal distribution with standard deviation [`UNIT`], rounded
/// to integers.
struct Gaussians {
    values: [f64; GAUSSIANS],
    /// Their standard deviation.
    sd: f64,
}

fn gaussians() -> &'static Gaussians {
    const HALF: usize = GAUSSIANS / 2;
    static TABLE: OnceLock<Gaussians> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut values = [0.0; GAUSSIANS];
        let mut x = 0.0;
        for k in 0..HALF {
            let p = (2 * k + 1) as f64 / GAUSSIANS as f64;
            // Newton's method from the previous quantile. P(|g| < x) is concave, so it converges
            // from below.
            while let step @ f64::EPSILON.. = (p - within(x)) / (2.0 * density(x)) {
                x += step;
            }
            let rounded = (UNIT * x).round();
            (values[HALF + k], values[HALF - 1 - k]) = (rounded, -rounded);
        }
        let variance = values.iter().map(|x| x * x).sum::<f64>() / GAUSSIANS as f64;
        Gaussians { values, sd: variance.sqrt() }
    })
}

/// The standard normal density.
fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

/// P(|g| < x) = 2 density(x) Σ_n x^(2n+1) / (1·3·5 ⋯ (2n+1)), g standard normal
fn within(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, 0.0, 1.0);
    while term > f64::EPSILON * sum {
        sum += term;
        odd += 2.0;
        term *= x * x / odd;
    }
    2.0 * density(x) * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: [Projection; 4] = [Projection::Spherical, Projection::Rademacher, Projection::Hashed, Projection::SignedHash];

    fn column(projection: Projection, dim: usize, key: u64) -> Vec<f64> {
        column_of(Columns::new(projection, dim, Seed(5)), key)
    }

    fn column_of(columns: Columns, key: u64) -> Vec<f64> {
        let mut out = vec![0.0; columns.dim()];
        columns.add(key, 1.0, &mut out);
        out.iter().map(|x| x * columns.scale()).collect()
    }

    #[test]
    fn gaussian_values_are_quantiles_of_the_normal_distribution() {
        // P(|g| < 1.959964) = 0.95
        assert!((within(1.959_963_984_540_054) - 0.95).abs() < 1e-15);
        let Gaussians { values, sd } = gaussians();
        let mean = |f: &dyn Fn(f64) -> f64| values.iter().map(|&x| f(x / sd)).sum::<f64>() / GAUSSIANS as f64;
        assert!((mean(&|x| x * x) - 1.0).abs() < 1e-14);
        // E|g| = √(2/π) and E g⁴ = 3, up to the effect of rounding on the tails.
        assert!((mean(&f64::abs) - std::f64::consts::FRAC_2_PI.sqrt()).abs() < 1e-3);
        assert!((mean(&|x| x.powi(4)) - 3.0).abs() < 0.03);
        assert!(values.is_sorted() && values.iter().all(|x| x.fract() == 0.0));
        // The last quantile is 3.66833.
        assert_eq!(values[GAUSSIANS - 1], (UNIT * 3.668_33).round(), "{}", values[GAUSSIANS - 1]);
    }

    #[test]
    fn gaussian_entries_are_independent_and_fair() {
        const DIM: usize = 7; // not a multiple of the entries of a hash
        const COLUMNS: usize = 100_000;
        let mut sums = [0.0; DIM];
        let mut products = [[0.0; DIM]; DIM];
        for key in 1..=COLUMNS as u64 {
            let c = column(Projection::Spherical, DIM, key);
            for i in 0..DIM {
                sums[i] += c[i] * (DIM as f64).sqrt();
                (0..DIM).for_each(|j| products[i][j] += c[i] * c[j] * DIM as f64);
            }
        }
        // Standard deviations of the sums √n, of the products √n, of the squares √2n; 4.5 of them.
        let deviations = |x: f64, variance: f64| (x / (variance * COLUMNS as f64).sqrt()).abs();
        assert!(sums.iter().all(|&s| deviations(s, 1.0) < 4.5), "{sums:?}");
        for (i, row) in products.iter().enumerate() {
            for (j, &product) in row.iter().enumerate() {
                let (expected, variance) = if i == j { (COLUMNS as f64, 2.0) } else { (0.0, 1.0) };
                assert!(deviations(product - expected, variance) < 4.5, "{i} {j}: {product}");
            }
        }
    }

    /// The lemma itself: distances between sums of columns are kept within 1 ± ε.
    #[test]
    fn projections_keep_distances_as_johnson_and_lindenstrauss_say() {
        // For d = 1000 the squared ratio has standard deviation √(2/d) = 0.045; 200 pairs, 4.5
        // deviations.
        const DIM: usize = 1000;
        const EPSILON: f64 = 0.2;
        // Unsigned hashing is not a JL map: all its entries are positive, so it is tested on
        // differences that sum to 0.
        for projection in RANDOM {
            let mut rng = Seed(3).rng();
            for _ in 0..200 {
                let weights: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
                let mut out = vec![0.0; DIM];
                for w in &weights {
                    let c = column(projection, DIM, rng.bits());
                    out.iter_mut().zip(&c).for_each(|(x, c)| *x += w * c);
                }
                let ratio = (out.iter().map(|x| x * x).sum::<f64>() / 100.0).sqrt();
                assert!((ratio - 1.0).abs() < EPSILON, "{projection:?}: {ratio}");
            }
        }
    }

    #[test]
    fn columns_are_pure_functions_of_seed_and_sequence() {
        for projection in RANDOM {
            assert_eq!(column(projection, 50, 99), column(projection, 50, 99));
            assert_ne!(column(projection, 50, 99), column(projection, 50, 100));
            assert_ne!(column(projection, 50, 99), column_of(Columns::new(projection, 50, Seed(6)), 99));
        }
    }

    #[test]
    fn buckets_are_uniform_and_signs_fair() {
        let columns = Columns::new(Projection::SignedHash, 10, Seed(1));
        let mut counts = [0.0; 10];
        let mut sum = 0.0;
        for key in 0..100_000 {
            let (bucket, sign) = columns.bucket(key);
            counts[bucket] += 1.0;
            sum += sign;
        }
        assert!(counts.iter().all(|c: &f64| (c - 10_000.0).abs() < 4.5 * 95.0), "{counts:?}"); // binomial(1e5, 0.1): sd 95
        assert!(sum.abs() < 4.5 * 316.0, "{sum}");
    }

    /// Column values are part of the model format: if this fails, raise the format version.
    #[test]
    fn column_values_are_frozen() {
        let expected = [
            [0.34234007616784545, 1.2965947250008982, -0.713493368446822, 0.6773547584091322],
            [-0.5, 0.5, -0.5, -0.5],
            [1.0, 0.0, 0.0, 0.0],
            [-1.0, 0.0, 0.0, 0.0],
        ];
        for (projection, expected) in RANDOM.into_iter().zip(expected) {
            let column = column(projection, 4, 42);
            // The last bit of exp and ln may differ between platforms.
            assert!(column.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-14), "{projection:?}: {column:?}");
        }
    }
}
