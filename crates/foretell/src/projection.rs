//! Random projections: φ_T and φ_H as pure functions of (seed, sequence); the matrices Φ are never held.
//!
//! A column depends on the names in the sequence and on the seed only, so a new sequence needs nothing, and two
//! machines agree. Column values are part of the model format: golden tests below freeze them.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::rng::{Rng, Seed};
use crate::sequence::mix;

/// How sequences become columns of length d [H14 §6.1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Projection {
    /// Independent Gaussian entries of variance 1/d.
    Spherical,
    /// Independent entries ±1/√d.
    Rademacher,
    /// A single 1 in a random place.
    Hashed,
    /// A single ±1 in a random place: inner products are unbiased (Weinberger et al. 2009).
    SignedHash,
    /// No compression: one coordinate for each sequence met (TPSR).
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

    /// Where a hashed column has its non-zero, and its value.
    #[inline(always)]
    pub(crate) fn bucket(&self, key: u64) -> (usize, f64) {
        let h = mix(key ^ self.seed);
        let bucket = ((u128::from(h) * self.dim as u128) >> 64) as usize;
        // The low bit is independent of the bucket, which the high bits decide.
        let sign = if self.projection == Projection::SignedHash && h & 1 == 1 { -1.0 } else { 1.0 };
        (bucket, sign)
    }

    /// out += φ(key)
    #[inline(always)]
    pub(crate) fn add(&self, key: u64, out: &mut [f64]) {
        assert_eq!(out.len(), self.dim);
        match self.projection {
            Projection::Spherical => {
                let scale = 1.0 / (self.dim as f64).sqrt();
                let mut rng = Seed(key ^ self.seed).rng();
                let ziggurat = Ziggurat::tables();
                // Not with wide vectors: this is scalar code, and its rare calls of exp would pay for their registers.
                out.iter_mut().for_each(|x| *x += scale * ziggurat.sample(&mut rng));
            }
            Projection::Rademacher => pulp::Arch::new().dispatch(AddSigns { key: mix(key ^ self.seed), out }),
            Projection::Hashed | Projection::SignedHash => {
                let (bucket, sign) = self.bucket(key);
                out[bucket] += sign;
            }
            Projection::Identity => out[key as usize - 1] += 1.0,
        }
    }
}

/// out += ±1/√d, signs from the bits of hashes of the key: 64 at a time, with the widest vectors there are.
struct AddSigns<'a> {
    key: u64,
    out: &'a mut [f64],
}

impl pulp::NullaryFnOnce for AddSigns<'_> {
    type Output = ();

    #[inline(always)] // into the function that is compiled for those vectors
    fn call(self) {
        let scale = (1.0 / (self.out.len() as f64).sqrt()).to_bits();
        for (i, block) in self.out.chunks_mut(64).enumerate() {
            let bits = mix(self.key ^ i as u64);
            for (j, x) in block.iter_mut().enumerate() {
                *x += f64::from_bits(scale ^ ((bits >> j) << 63));
            }
        }
    }
}

/// Layers of the ziggurat of Marsaglia & Tsang (2000).
const LAYERS: usize = 256;
/// Where the tail begins, and the area of each layer, for 256 layers.
const TAIL: f64 = 3.654_152_885_361_009;
const AREA: f64 = 0.004_928_673_233_992_336;

/// Tables of the ziggurat method for the standard normal distribution.
struct Ziggurat {
    /// Right edges of the layers, from the base (widened to hold the tail) to 0.
    edge: [f64; LAYERS + 1],
    /// exp(−x²/2) at the edges.
    density: [f64; LAYERS + 1],
}

impl Ziggurat {
    fn tables() -> &'static Ziggurat {
        static TABLES: OnceLock<Ziggurat> = OnceLock::new();
        TABLES.get_or_init(|| {
            let f = |x: f64| (-0.5 * x * x).exp();
            let mut edge = [0.0; LAYERS + 1];
            edge[0] = AREA / f(TAIL);
            edge[1] = TAIL;
            for i in 2..LAYERS {
                edge[i] = (-2.0 * (AREA / edge[i - 1] + f(edge[i - 1])).ln()).sqrt();
            }
            Ziggurat { edge, density: edge.map(f) }
        })
    }

    /// One standard normal number.
    #[inline(always)]
    fn sample(&self, rng: &mut Rng) -> f64 {
        let bits = rng.bits();
        let layer = (bits & 0xff) as usize;
        // The upper 53 bits as a number in [−1, 1).
        let u = (bits as i64 >> 11) as f64 * (-52f64).exp2();
        let x = u * self.edge[layer];
        if x.abs() < self.edge[layer + 1] { x } else { self.edge_case(rng, layer, u, x) }
    }

    /// The 1.2 % of draws that fall outside the rectangle certain to lie under the curve.
    #[cold]
    fn edge_case(&self, rng: &mut Rng, layer: usize, u: f64, x: f64) -> f64 {
        if layer == 0 {
            loop {
                let (a, b) = (-(1.0 - rng.uniform()).ln() / TAIL, -(1.0 - rng.uniform()).ln());
                if 2.0 * b > a * a {
                    return (TAIL + a).copysign(u);
                }
            }
        }
        let y = self.density[layer] + rng.uniform() * (self.density[layer + 1] - self.density[layer]);
        if y < (-0.5 * x * x).exp() { x } else { self.sample(rng) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: [Projection; 4] = [Projection::Spherical, Projection::Rademacher, Projection::Hashed, Projection::SignedHash];

    fn column(projection: Projection, dim: usize, key: u64) -> Vec<f64> {
        let mut out = vec![0.0; dim];
        Columns::new(projection, dim, Seed(5)).add(key, &mut out);
        out
    }

    #[test]
    fn the_ziggurat_samples_the_standard_normal() {
        let n = 1_000_000;
        let mut rng = Seed(11).rng();
        let mut moments = [0.0; 4];
        let mut beyond_tail = 0;
        for _ in 0..n {
            let x = Ziggurat::tables().sample(&mut rng);
            (0..4).for_each(|k| moments[k] += x.powi(k as i32 + 1) / n as f64);
            beyond_tail += usize::from(x.abs() > TAIL);
        }
        // Moments 0, 1, 0, 3; standard errors √(1, 2, 15, 96)/1000; 4.5 of them.
        for (k, (expected, variance)) in [(0.0, 1.0f64), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)].into_iter().enumerate() {
            assert!((moments[k] - expected).abs() < 4.5e-3 * variance.sqrt(), "moment {}: {}", k + 1, moments[k]);
        }
        // P(|x| > TAIL) = 2.580e-4, so 258 ± 16.
        assert!((beyond_tail as f64 - 258.0).abs() < 4.5 * 16.1, "{beyond_tail}");
    }

    /// The lemma itself: distances between sums of columns are kept within 1 ± ε.
    #[test]
    fn projections_keep_distances_as_johnson_and_lindenstrauss_say() {
        // For d = 1000 the squared ratio has standard deviation √(2/d) = 0.045; 200 pairs, 4.5 deviations.
        const DIM: usize = 1000;
        const EPSILON: f64 = 0.2;
        // Unsigned hashing is not a JL map: all its entries are positive, so it is tested on differences that sum to 0.
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
            let other_seed = {
                let mut out = vec![0.0; 50];
                Columns::new(projection, 50, Seed(6)).add(99, &mut out);
                out
            };
            assert_ne!(column(projection, 50, 99), other_seed);
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
            [-0.732203010938905, -0.1463442908546229, 0.7002804084550239, -0.1344852114100132],
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
