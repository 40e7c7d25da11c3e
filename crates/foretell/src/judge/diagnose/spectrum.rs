//! How many directions of the moments are significant, that is, above the noise.
//!
//! The noise is estimated from the logs themselves, in two ways.
//!
//! *Shuffled*: the history of each cut is paired with the tests of another cut, far from it. This
//! keeps the marginal distributions and the autocorrelation of both, and destroys their dependence.
//! It is a test of independence for any number of episodes, even one. But beyond the first
//! dependence, it underestimates the noise in parts of the system that are seldom visited.
//!
//! *Signed*: neighbouring episodes (blocks, if episodes are few) get opposite random signs. Half the
//! difference of the two halves' moments has no signal and the same covariance as the noise in the
//! moments of all. It is accurate only for many episodes or blocks.
//!
//! Beyond rank(Σ_TH) = r, the singular values of Σ̂_TH are those of the noise outside the r leading
//! directions. So the i-th one is compared with the largest that several draws have outside the
//! i − 1 leading directions: shuffled draws for i = 2, where the question is whether the future
//! depends on the past at all, and the larger of the two estimates for i > 2. The number of
//! significant directions is a lower bound of the rank, which more steps raise.
//!
//! Nine draws are few for rare coincidences: of independent symbols with equal frequencies 1 % of
//! logs (8 of 960) had more than one significant direction, with frequencies ∝ 1/i² 4 % (39 of 960).

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;
use serde::Serialize;

use super::memory::FEW_EPISODES;
use super::shuffle::{Shuffled, shuffled};
use crate::error::{Error, Result};
use crate::learn::{Accumulator, Batch, EpisodeCuts, Features, Moments, NULL_TEST, Whitening};
use crate::math::{Linear, Mean, Svd};
use crate::rng::Seed;

/// Draws of each kind of noise.
const DRAWS: usize = 9;
/// 99 % of one more draw lie below mean + this · standard deviation: Student's t with 8 degrees of
/// freedom, times √(1 + 1/9).
const QUANTILE: f64 = 2.896 * 1.054_093;
/// Residual of the norm of a draw: the draws themselves differ by more.
const TOLERANCE: f64 = 0.03;
/// The largest number of directions compared.
const MOST_DIRECTIONS: usize = 256;
/// Largest side of moments that can be compared (128 MiB each).
const LARGEST_SIDE: usize = 4096;

/// Cuts in a block of few episodes, at most: several times the usual length of histories and tests.
const BLOCK: usize = 40;
/// Canonical correlations are at most 1. If noise reaches this, even an almost perfect dependence
/// would not stand out.
const POWERLESS: f64 = 0.95;
/// Largest fraction of cuts that may keep tests near their own in a shuffled draw: such pairs still
/// depend on each other.
const MOST_NEAR: f64 = 0.05;

/// Fewer cuts than this are not shuffled: rotations of a short recording that avoid a cut's own
/// neighbourhood hardly differ, so they would underestimate the noise.
const FEWEST_CUTS: usize = 200;

/// The singular values of the moments, and their noise floor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectrum {
    /// Whether they are of whitened moments (canonical correlations, as for two-stage regression)
    /// or of Σ̂_TH itself.
    pub whitened: bool,
    /// Largest first.
    pub values: Vec<f64>,
    /// The noise floor of some of them, from the second on; none if there are too few steps to
    /// shuffle. For canonical correlations, dependences weaker than the floor are not found.
    pub floor: Vec<Floor>,
    /// How many are above the noise: the suggested rank, at least 1. `None` if this cannot be told:
    /// there are too few steps to shuffle, or noise alone would give canonical correlations close to
    /// 1, or none but the first is above the noise although past steps help to predict.
    pub rank: Option<usize>,
}

/// The noise floor of a singular value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// Which one, counted from 1.
    pub direction: usize,
    /// 99 % of draws are below.
    pub value: f64,
}

/// Running sums of the draws of the noise.
pub(super) struct Noise {
    seed: Seed,
    signed: Vec<Accumulator>,
    shuffled: Vec<Accumulator>,
    /// Episodes so far, and in all.
    added: u64,
    total: u64,
    /// Batches so far.
    batches: u64,
    /// Pairs of histories and tests in the shuffled draws, and those that are near each other.
    pairs: usize,
    near: usize,
}

impl Noise {
    pub(super) fn new(features: &Features, seed: Seed, total: u64) -> Noise {
        let draws = || (0..DRAWS).map(|_| Accumulator::lean(features)).collect();
        Noise { seed, signed: draws(), shuffled: draws(), added: 0, total, batches: 0, pairs: 0, near: 0 }
    }

    /// Adds the cuts of a batch.
    pub(super) fn add(&mut self, features: &Features, batch: &Batch<'_>) {
        let (added, total) = (self.added, self.total);
        let (coins, shuffles) = (self.seed.stream("diagnose/noise"), self.seed.stream("diagnose/shuffle").index(self.batches));
        self.signed.par_iter_mut().enumerate().for_each(|(i, draw)| {
            let coin = coins.index(i as u64);
            let signed = (added..).zip(&batch.episodes).flat_map(|(i, episode)| signed(coin, i, total, episode));
            draw.add_episodes(features, batch, &signed.collect::<Vec<_>>());
        });
        let shuffle = |(i, draw): (usize, &mut Accumulator)| {
            let Shuffled { pairings, near } = shuffled(batch, shuffles.index(i as u64));
            draw.add_pairings(features, batch, &pairings);
            (pairings.len(), near)
        };
        let counts: Vec<(usize, usize)> = self.shuffled.par_iter_mut().enumerate().map(shuffle).collect();
        self.pairs += counts.iter().map(|count| count.0).sum::<usize>();
        self.near += counts.iter().map(|count| count.1).sum::<usize>();
        self.added += batch.episodes.len() as u64;
        self.batches += 1;
    }

    /// Whether there are enough shuffled cuts, and these are free of dependence.
    fn is_shuffled(&self) -> bool {
        self.pairs >= FEWEST_CUTS * DRAWS && self.near as f64 <= MOST_NEAR * self.pairs as f64
    }

    /// The signed draws: sums times a factor.
    fn signed(&self, features: &Features, factor: f64) -> Vec<Mat<f64>> {
        // An odd number of episodes omits one, so the sums are scaled to all of them.
        let paired = if is_in_blocks(self.total) { self.total } else { self.total - self.total % 2 };
        dense(&self.signed, features, factor * (self.total as f64 / paired as f64).sqrt())
    }

    /// The shuffled draws without their mean: sums times a factor. The product of the marginal means
    /// is in all of them; √(n / (n − 1)) restores the variance that the mean of the draws removes.
    fn shuffled(&self, features: &Features, factor: f64) -> Vec<Mat<f64>> {
        let n = DRAWS as f64;
        let draws = dense(&self.shuffled, features, factor * (n / (n - 1.0)).sqrt());
        let mean = draws.iter().skip(1).fold(draws[0].clone(), |sum, draw| sum + draw) * (1.0 / n);
        draws.into_iter().map(|draw| draw - &mean).collect()
    }
}

fn dense(draws: &[Accumulator], features: &Features, factor: f64) -> Vec<Mat<f64>> {
    draws.iter().map(|draw| draw.matrices(features, factor).joint.to_dense()).collect()
}

/// Whether episodes are so few that blocks of them get signs of their own.
fn is_in_blocks(episodes: u64) -> bool {
    episodes < FEW_EPISODES
}

/// The `i`-th episode with the sign of its half. If episodes are few, it is cut into an even number
/// of blocks, each with its own sign.
fn signed(coin: Seed, i: u64, total: u64, episode: &EpisodeCuts) -> Vec<EpisodeCuts> {
    let with = |cuts: std::ops::Range<usize>, sign: f64| EpisodeCuts { cuts, weight: sign * episode.weight, ..*episode };
    if !is_in_blocks(total) {
        return vec![with(episode.cuts.clone(), sign(coin, i, total))];
    }
    let (start, cuts) = (episode.cuts.start, episode.cuts.len());
    let blocks = 2 * cuts.div_ceil(2 * BLOCK);
    let block =
        |k: usize| with(start + k * cuts / blocks..start + (k + 1) * cuts / blocks, sign(coin.index(i), k as u64, blocks as u64));
    (0..blocks).map(block).collect()
}

/// The half of an episode, as a sign; its neighbour is in the other, and the last of an odd number
/// in none (0).
fn sign(coin: Seed, i: u64, total: u64) -> f64 {
    if i + 1 == total && total % 2 == 1 {
        return 0.0;
    }
    let side = coin.index(i / 2).rng().bits() >> 63;
    if side == i % 2 { 1.0 } else { -1.0 }
}

impl Spectrum {
    pub(super) fn of(moments: &Moments, noise: &Noise) -> Result<Spectrum> {
        let features = &moments.features;
        let side = features.tests.rows().max(features.histories.rows());
        if side > LARGEST_SIDE {
            return Err(Error::data(
                format!("the spectrum of moments of {side} coordinates is too large for a comparison with noise"),
                "use a compressing projection or smaller dimensions; sparsity is counted without compression anyway",
            ));
        }
        let scale = moments.scale(moments.sums.entry(NULL_TEST, features.start_coordinate()))?;
        let matrices = moments.sums.matrices(features, scale);
        let joint = matrices.joint.to_dense();
        let (signed, shuffled) = (noise.signed(features, scale), noise.shuffled(features, scale));
        let (m, signed, shuffled) = match &matrices.covariances {
            None => (joint, signed, shuffled),
            Some((tests, histories)) => {
                let whitening = Whitening::new(&matrices, tests, histories, &moments.params)?;
                let all = |draws: Vec<Mat<f64>>| draws.iter().map(|draw| whitening.of_all(draw)).collect();
                (whitening.of_all(&joint), all(signed), all(shuffled))
            }
        };
        let whitened = matrices.covariances.is_some();
        let svd = match whitened {
            false => Svd::thin(m.as_ref())?,
            true => Svd::of_gram(m.as_ref(), MOST_DIRECTIONS).or_else(|_| Svd::thin(m.as_ref()))?,
        };
        if !noise.is_shuffled() {
            return Ok(Spectrum { whitened, values: svd.s, floor: Vec::new(), rank: None });
        }
        let floors = Floors { svd: &svd, signed: &signed, shuffled: &shuffled, seed: Seed(moments.params.seed) };
        let (mut floor, rank) = floors.rank()?;
        if whitened {
            // The quantile is extrapolated from few draws, but no correlation exceeds 1.
            floor.iter_mut().for_each(|floor| floor.value = floor.value.min(1.0));
        }
        let is_powerless = whitened && floor.first().is_some_and(|floor| floor.value >= POWERLESS);
        Ok(Spectrum { whitened, values: svd.s, floor, rank: (rank > 1 || !is_powerless).then_some(rank) })
    }
}

/// The singular values of Σ̂_TH itself.
pub(super) fn plain(moments: &Moments, spectrum: &Spectrum) -> Result<Vec<f64>> {
    if !spectrum.whitened {
        return Ok(spectrum.values.clone());
    }
    let features = &moments.features;
    let scale = moments.scale(moments.sums.entry(NULL_TEST, features.start_coordinate()))?;
    let joint = moments.sums.matrices(features, scale).joint.to_dense();
    Ok(Svd::of_gram(joint.as_ref(), 0).or_else(|_| Svd::thin(joint.as_ref()))?.s)
}

/// Singular triples, and draws of their noise.
struct Floors<'a> {
    svd: &'a Svd,
    signed: &'a [Mat<f64>],
    shuffled: &'a [Mat<f64>],
    seed: Seed,
}

impl Floors<'_> {
    /// The noise floor of the singular value after `leading` directions, at least 1.
    fn after(&self, leading: usize) -> Result<Floor> {
        let shuffled = self.quantile(self.shuffled, leading)?;
        let value = if leading == 1 { shuffled } else { shuffled.max(self.quantile(self.signed, leading)?) };
        Ok(Floor { direction: leading + 1, value })
    }

    /// The 99 % quantile of the norm of draws outside the leading directions.
    fn quantile(&self, draws: &[Mat<f64>], leading: usize) -> Result<f64> {
        let (u, v) = (self.svd.u.subcols(0, leading), self.svd.v.subcols(0, leading));
        let norm = |draw: &Mat<f64>| Svd::norm(&Outside { matrix: draw, u, v }, TOLERANCE, self.seed.stream("diagnose/norm"));
        let norms: Mean = draws.par_iter().map(norm).collect::<Result<Vec<f64>>>()?.into_iter().collect();
        Ok(norms.mean() + QUANTILE * norms.sd())
    }

    /// Noise floors at some indices, and the number of singular values above theirs. The first
    /// direction is the mean, which always exists. Beyond it values and floors decrease, so it is
    /// enough to check 2, 3, 4, 6, 8, 12, 16, … up to the first that is not above, and then bisect.
    fn rank(&self) -> Result<(Vec<Floor>, usize)> {
        let most = self.svd.u.ncols().min(MOST_DIRECTIONS);
        let is_above = |floor: &Floor| self.svd.s[floor.direction - 1] > floor.value;
        let mut floors = Vec::new();
        let (mut above, mut below) = (1.min(most), most);
        for leading in steps().take_while(|&i| i < most) {
            let floor = self.after(leading)?;
            floors.push(floor);
            if below < most {
                // One more, for plots of the curve.
                break;
            }
            if is_above(&floor) { above = leading + 1 } else { below = leading }
        }
        while above < below {
            let middle = (above + below) / 2;
            let floor = self.after(middle)?;
            floors.push(floor);
            if is_above(&floor) { above = middle + 1 } else { below = middle }
        }
        floors.sort_by_key(|floor| floor.direction);
        floors.dedup_by_key(|floor| floor.direction);
        Ok((floors, above.max(1)))
    }
}

/// 1, 2, 3, 5, 7, 11, 15, 23, 31, …
fn steps() -> impl Iterator<Item = usize> {
    (1..).flat_map(|k| [1 << k, 3 << (k - 1)]).map(|n| n - 1)
}

/// (I − UUᵀ) A (I − VVᵀ)
struct Outside<'a> {
    matrix: &'a Mat<f64>,
    u: MatRef<'a, f64>,
    v: MatRef<'a, f64>,
}

impl Linear for Outside<'_> {
    fn rows(&self) -> usize {
        self.matrix.nrows()
    }

    fn columns(&self) -> usize {
        self.matrix.ncols()
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        let y = product(self.matrix.as_ref(), &without(self.v, x));
        without(self.u, &y)
    }

    fn transpose_times(&self, x: &[f64]) -> Vec<f64> {
        let y = product(self.matrix.transpose(), &without(self.u, x));
        without(self.v, &y)
    }
}

fn product(matrix: MatRef<'_, f64>, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; matrix.nrows()];
    let out = faer::MatMut::from_column_major_slice_mut(&mut y, matrix.nrows(), 1);
    matmul(out, Accum::Replace, matrix, MatRef::from_column_major_slice(x, x.len(), 1), 1.0, Par::Seq);
    y
}

/// x − B Bᵀx
fn without(basis: MatRef<'_, f64>, x: &[f64]) -> Vec<f64> {
    if basis.ncols() == 0 {
        return x.to_vec();
    }
    let along = product(basis, &product(basis.transpose(), x));
    x.iter().zip(along).map(|(x, along)| x - along).collect()
}
