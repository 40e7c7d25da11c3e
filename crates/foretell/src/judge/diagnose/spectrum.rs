//! How many directions of the moments are significant, that is, above the noise.
//!
//! The noise is estimated from the episodes themselves. Pairs of neighbouring episodes are split at
//! random, one to either half: half the difference of the two halves' moments has no signal and the
//! same covariance as the noise in the moments of all. Beyond rank(Σ_TH) = r, the singular values
//! of Σ̂_TH are those of that noise outside the r leading directions; so the i-th one is compared
//! with the largest that several such draws have outside the i − 1 leading directions. The number
//! of significant directions is a lower bound of the rank, which more episodes raise.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::learn::{Accumulator, Batch, EpisodeCuts, Features, Moments, NULL_TEST, Whitening};
use crate::math::{Linear, Svd};
use crate::rng::Seed;

/// Draws of the noise.
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

/// The singular values of the moments, and their noise floor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectrum {
    /// Whether they are of whitened moments (canonical correlations, as for two-stage regression)
    /// or of Σ̂_TH itself.
    pub whitened: bool,
    /// Largest first.
    pub values: Vec<f64>,
    /// The noise floor of some of them; none if there is a single episode.
    pub floor: Vec<Floor>,
    /// How many are above the noise: the suggested rank, at least 1. `None` if there is a single
    /// episode.
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
    coins: Vec<Seed>,
    draws: Vec<Accumulator>,
    /// Episodes so far, and in all.
    added: u64,
    total: u64,
}

impl Noise {
    pub(super) fn new(features: &Features, seed: Seed, total: u64) -> Noise {
        let coins = (0..DRAWS).map(|i| seed.stream("diagnose/noise").index(i as u64)).collect();
        Noise { coins, draws: (0..DRAWS).map(|_| Accumulator::lean(features)).collect(), added: 0, total }
    }

    /// Adds the cuts of a batch.
    pub(super) fn add(&mut self, features: &Features, batch: &Batch<'_>) {
        let (added, total) = (self.added, self.total);
        self.draws.par_iter_mut().zip(&self.coins).for_each(|(draw, coin)| {
            let signed = |(i, episode): (u64, &EpisodeCuts)| EpisodeCuts {
                weight: sign(*coin, i, total) * episode.weight,
                ..episode.clone()
            };
            let episodes: Vec<EpisodeCuts> = (added..).zip(&batch.episodes).map(signed).collect();
            draw.add_episodes(features, batch, &episodes);
        });
        self.added += batch.episodes.len() as u64;
    }

    /// The draws: sums times a factor.
    fn matrices(&self, features: &Features, factor: f64) -> impl Iterator<Item = Mat<f64>> {
        self.draws.iter().map(move |draw| draw.matrices(features, factor).joint.to_dense())
    }
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
        // An odd number of episodes omits one, so the sums are scaled to all of them.
        let paired = noise.total - noise.total % 2;
        let correction = (noise.total as f64 / paired.max(1) as f64).sqrt();
        let draws = noise.matrices(features, scale * correction);
        let joint = matrices.joint.to_dense();
        let (m, draws): (_, Vec<_>) = match &matrices.covariances {
            None => (joint, draws.collect()),
            Some((tests, histories)) => {
                let whitening = Whitening::new(&matrices, tests, histories, &moments.params)?;
                (whitening.of_all(&joint), draws.map(|draw| whitening.of_all(&draw)).collect())
            }
        };
        let svd = match matrices.covariances {
            None => Svd::thin(m.as_ref())?,
            Some(_) => Svd::of_gram(m.as_ref(), MOST_DIRECTIONS).or_else(|_| Svd::thin(m.as_ref()))?,
        };
        let floors = Floors { svd: &svd, draws: &draws, seed: Seed(moments.params.seed) };
        let (floor, rank) = if paired == 0 { (Vec::new(), None) } else { floors.rank().map(|(f, rank)| (f, Some(rank)))? };
        Ok(Spectrum { whitened: matrices.covariances.is_some(), values: svd.s, floor, rank })
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
    draws: &'a [Mat<f64>],
    seed: Seed,
}

impl Floors<'_> {
    /// The noise floor of the singular value after `leading` directions.
    fn after(&self, leading: usize) -> Result<Floor> {
        let (u, v) = (self.svd.u.subcols(0, leading), self.svd.v.subcols(0, leading));
        let norm = |draw: &Mat<f64>| Svd::norm(&Outside { matrix: draw, u, v }, TOLERANCE, self.seed.stream("diagnose/norm"));
        let norms = self.draws.par_iter().map(norm).collect::<Result<Vec<f64>>>()?;
        let n = norms.len() as f64;
        let mean = norms.iter().sum::<f64>() / n;
        let variance = norms.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Ok(Floor { direction: leading + 1, value: mean + QUANTILE * variance.sqrt() })
    }

    /// Noise floors at some indices, and the number of singular values above theirs. Both decrease,
    /// so it is enough to check 1, 2, 3, 4, 6, 8, 12, 16, … up to the first that is not above, and
    /// then bisect.
    fn rank(&self) -> Result<(Vec<Floor>, usize)> {
        let most = self.svd.u.ncols().min(MOST_DIRECTIONS);
        let is_above = |floor: &Floor| self.svd.s[floor.direction - 1] > floor.value;
        let mut floors = Vec::new();
        let (mut above, mut below) = (0, most);
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
        // The first direction always exists: some test always follows.
        Ok((floors, above.max(1)))
    }
}

/// 0, 1, 2, 3, 5, 7, 11, 15, 23, 31, …
fn steps() -> impl Iterator<Item = usize> {
    [0, 1].into_iter().chain((1..).flat_map(|k| [1 << k, 3 << (k - 1)]).map(|n| n - 1).skip(1))
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
