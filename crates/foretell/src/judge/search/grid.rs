//! The configurations of a search: exponentially spaced ones first, then finer ones around the
//! best.

use std::f64::consts::SQRT_2;

use crate::model::{History, LearnOverrides, LearnParams, Projection};

/// The largest dimension in the default space: moments are quadratic in it, and solving is cubic.
const LARGEST_DIM: usize = 2048;
/// Number of best lengths and best dimensions that are combined.
const COMBINED: usize = 3;
/// Number of best configurations around which finer ones are scored.
const REFINED: usize = 2;
/// 2^¼: the ratio of neighbouring ranks in the third phase.
const FINE: f64 = 1.189_207_115_002_721;

/// The values of each parameter; one with a single value is fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// Projections of tests and histories.
    pub projections: Vec<[Projection; 2]>,
    /// Dimensions of tests and histories.
    pub dims: Vec<[usize; 2]>,
    /// Longest tests.
    pub tests: Vec<usize>,
    /// Longest histories.
    pub histories: Vec<usize>,
    /// d′, in ascending order.
    pub ranks: Vec<usize>,
    /// Weights of the n-gram.
    pub mixes: Vec<f64>,
}

impl Space {
    /// The space around given parameters; those with a value in `fixed` do not vary.
    pub fn around(base: &LearnParams, fixed: &LearnOverrides) -> Space {
        let kinds =
            [Projection::SignedHash, Projection::Hashed, Projection::Rademacher, Projection::Spherical, Projection::Identity];
        let is_free = fixed.test_projection.is_none() && fixed.history_projection.is_none();
        let projections = with([base.test_projection, base.history_projection], is_free, kinds.map(|kind| [kind; 2]));
        let is_free = fixed.test_dim.is_none() && fixed.history_dim.is_none();
        let dims = with([base.test_dim, base.history_dim], is_free, [64, 256, 1024].map(|dim| [dim; 2]));
        let has_length = base.history == History::Suffix && fixed.history_length.is_none();
        let mut ranks = with(base.rank, fixed.rank.is_none(), [2, 4, 8, 16, 32, 64]);
        ranks.sort_unstable();
        Space {
            projections,
            dims,
            tests: with(base.max_test_length, fixed.max_test_length.is_none(), [1, 2, 4]),
            histories: with(base.history_length, has_length, [1, 2, 4, 8]),
            ranks,
            mixes: with(base.mix, fixed.mix.is_none(), [0.0, 0.1, 0.2, 0.3, 0.5]),
        }
    }

    /// The first phase: all lengths, and all projections with all dimensions, the rest as in
    /// `base`.
    pub(super) fn coarse(&self, base: &LearnParams) -> Vec<LearnParams> {
        let mut all = Shapes::default();
        all.add(base.clone());
        for &max_test_length in &self.tests {
            for &history_length in &self.histories {
                all.add(LearnParams { max_test_length, history_length, ..base.clone() });
            }
        }
        for &projection in &self.projections {
            self.dims.iter().for_each(|&dims| all.add(projected(base, projection, dims)));
        }
        all.0
    }

    /// The second: the best lengths with the best projections and dimensions. `ranked` are those
    /// scored, best first.
    pub(super) fn combined(&self, ranked: &[LearnParams]) -> Vec<LearnParams> {
        let (mut lengths, mut projections) = (Vec::new(), Vec::new());
        for shape in ranked {
            add_new(&mut lengths, (shape.max_test_length, shape.history_length), COMBINED);
            add_new(&mut projections, (projections_of(shape), dims_of(shape)), COMBINED);
        }
        let mut all = Shapes::default();
        for &(max_test_length, history_length) in &lengths {
            for &(projection, dims) in &projections {
                all.add(LearnParams { max_test_length, history_length, ..projected(&ranked[0], projection, dims) });
            }
        }
        all.without(ranked)
    }

    /// The third: around the best, each with the rank that was best, and ranks around it.
    pub(super) fn finer(&self, ranked: &[LearnParams]) -> Vec<(LearnParams, Vec<usize>)> {
        let mut all = Shapes::default();
        let mut with_ranks = Vec::new();
        for best in ranked.iter().take(REFINED) {
            let before = all.0.len();
            all.add(best.clone());
            if self.dims.len() > 1 {
                for factor in [1.0 / SQRT_2, SQRT_2, 2.0] {
                    let dims = dims_of(best).map(|dim| ((dim as f64 * factor).round() as usize).clamp(1, LARGEST_DIM.max(dim)));
                    all.add(projected(best, projections_of(best), dims));
                }
            }
            if self.tests.len() > 1 {
                for max_test_length in [best.max_test_length - 1, best.max_test_length + 1] {
                    all.add(LearnParams { max_test_length, ..best.clone() });
                }
            }
            if self.histories.len() > 1 {
                for history_length in [best.history_length - 1, best.history_length + 1] {
                    all.add(LearnParams { history_length, ..best.clone() });
                }
            }
            let ranks = self.ranks_around(best.rank);
            with_ranks.extend(all.0[before..].iter().map(|shape| (shape.clone(), ranks.clone())));
        }
        with_ranks
            .retain(|(shape, _)| shape.max_test_length > 0 && (shape.history == History::Prefix || shape.history_length > 0));
        // The best are scored again with finer ranks; the others only if they are new.
        let is_known = |shape: &LearnParams| ranked.iter().skip(REFINED).any(|other| is_same_shape(shape, other));
        with_ranks.retain(|(shape, _)| !is_known(shape));
        with_ranks
    }

    /// Ranks close to one.
    fn ranks_around(&self, rank: usize) -> Vec<usize> {
        if self.ranks.len() == 1 {
            return self.ranks.clone();
        }
        let mut ranks: Vec<usize> = (-2..=2).map(|i| (rank as f64 * FINE.powi(i)).round().max(1.0) as usize).collect();
        if Some(&rank) == self.ranks.last() {
            ranks.push(2 * rank);
        }
        ranks.dedup();
        ranks
    }
}

/// The value and, if it may vary, others.
fn with<T: PartialEq + Copy, const N: usize>(value: T, is_free: bool, others: [T; N]) -> Vec<T> {
    let mut all = vec![value];
    all.extend(others.into_iter().filter(|other| is_free && *other != value));
    all
}

fn add_new<T: PartialEq>(list: &mut Vec<T>, item: T, most: usize) {
    if list.len() < most && !list.contains(&item) {
        list.push(item);
    }
}

fn projections_of(params: &LearnParams) -> [Projection; 2] {
    [params.test_projection, params.history_projection]
}

fn dims_of(params: &LearnParams) -> [usize; 2] {
    [params.test_dim, params.history_dim]
}

fn projected(params: &LearnParams, projections: [Projection; 2], dims: [usize; 2]) -> LearnParams {
    let [test_projection, history_projection] = projections;
    let [test_dim, history_dim] = dims;
    LearnParams { test_projection, history_projection, test_dim, history_dim, ..params.clone() }
}

/// Whether both have the same moments: all but rank and mixture, and dimensions where nothing is
/// compressed.
pub(super) fn is_same_shape(one: &LearnParams, other: &LearnParams) -> bool {
    let dim = |projection, dim: usize| if projection == Projection::Identity { 0 } else { dim };
    let shape = |params: &LearnParams| LearnParams {
        rank: 1,
        mix: 0.0,
        test_dim: dim(params.test_projection, params.test_dim),
        history_dim: dim(params.history_projection, params.history_dim),
        ..params.clone()
    };
    shape(one) == shape(other)
}

/// Configurations, each once.
#[derive(Default)]
struct Shapes(Vec<LearnParams>);

impl Shapes {
    fn add(&mut self, params: LearnParams) {
        if !self.0.iter().any(|other| is_same_shape(other, &params)) {
            self.0.push(params);
        }
    }

    /// Those that are not in `others`.
    fn without(mut self, others: &[LearnParams]) -> Vec<LearnParams> {
        self.0.retain(|shape| !others.iter().any(|other| is_same_shape(other, shape)));
        self.0
    }
}
