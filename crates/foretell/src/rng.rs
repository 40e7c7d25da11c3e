//! Randomness is an argument: named streams of one seed, and the generator they yield.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A seed from which independent streams are drawn by name or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of the stream called `name`.
    pub fn stream(self, name: &str) -> Seed {
        Seed(xxh3_64_with_seed(name.as_bytes(), self.0))
    }

    /// The seed of the `i`-th stream, such as that of an episode.
    pub fn index(self, i: u64) -> Seed {
        Seed(xxh3_64_with_seed(&i.to_le_bytes(), self.0))
    }

    /// A generator that starts here.
    pub fn rng(self) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(self.0))
    }
}

/// A pseudo-random generator, xoshiro256++ with the samplers this library needs.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform on [0, 1), in steps of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (-53f64).exp2()
    }

    /// Uniform on 0 … n − 1, by Lemire's multiply-high; its bias is at most n·2⁻⁶⁴, which is
    /// negligible.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// An index drawn with probability proportional to its weight; `None` if no weight is positive.
    pub fn weighted(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().sum();
        let mut left = self.uniform() * total;
        let mut last = None;
        for (i, &w) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            last = Some(i);
            left -= w;
            if left < 0.0 {
                break;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let seed = Seed(7);
        assert_ne!(seed.stream("tests").rng().bits(), seed.stream("histories").rng().bits());
        assert_eq!(seed.index(3).rng().bits(), seed.index(3).rng().bits());
    }

    #[test]
    fn weighted_draws_follow_the_weights() {
        let mut rng = Seed(1).rng();
        let mut counts = [0; 4];
        for _ in 0..30_000 {
            counts[rng.weighted(&[1.0, 0.0, 2.0, 0.0]).unwrap()] += 1;
        }
        // 4 standard deviations of a binomial(30 000, 1/3)
        assert!((counts[0] as f64 - 10_000.0).abs() < 4.0 * 81.7, "{counts:?}");
        assert_eq!((counts[1], counts[3]), (0, 0));
        assert_eq!(rng.weighted(&[0.0, 0.0]), None);
    }
}
