//! First pass: Σ̂_TH (and Σ̂_TT, Σ̂_HH where whitening needs them), in one streaming pass.
//!
//! There are three layouts with the same meaning. Hashed columns have a single non-zero, so a cut
//! adds a few dozen numbers whatever the dimension. Dense columns are gathered and multiplied in
//! one matrix product. The identity projection counts in a map. Sums are split over fixed lanes or
//! blocks and reduced in a fixed order, so they do not depend on the number of threads. Without
//! weights all summands are integers, so sums are exact in any order.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::features::{Batch, EpisodeCuts, Features, Pairing};
use crate::math::{Matrix, SparseMatrix};

/// Independent sums into which hashed cuts are split; more would cost memory, fewer would leave
/// threads idle.
pub(super) const LANES: usize = 4;
/// Entries of a gathered matrix Ψ or X (2 MiB, a level-2 cache): one product over many cuts reuses
/// what rank-1 updates would load again.
const GATHERED: usize = 1 << 18;
/// Columns of a product that one task computes.
const BLOCK: usize = 64;

/// Which second moments are computed beside Σ̂_TH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Joint,
    JointAndCovariances,
}

/// The compressed moments: sums over cuts, times a factor.
#[derive(Clone, Debug)]
pub(crate) struct Matrices {
    /// Σ̂_TH, d_T × d_H; its first row is Σ̂_H.
    pub(crate) joint: Matrix,
    /// Σ̂_TT and Σ̂_HH.
    pub(crate) covariances: Option<(Mat<f64>, Mat<f64>)>,
    /// Whether tests, and histories, are uncompressed.
    pub(crate) is_identity: [bool; 2],
}

/// Sums while they are being computed, in units of
/// [`Side::scales`](crate::learn::features::Side::scales).
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    pub(crate) wanted: Wanted,
    pub(crate) layout: Layout,
}

#[derive(Clone, Debug)]
pub(crate) enum Layout {
    Buckets(Vec<Sums>),
    Dense(Sums, Buffers),
    Counts(Counts),
}

/// The kind of a [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayoutKind {
    Buckets,
    Dense,
    Counts,
}

impl Layout {
    /// The layout of sums of these features.
    pub(super) fn kind(features: &Features) -> LayoutKind {
        let (tests, histories) = (&features.tests, &features.histories);
        match (tests.is_identity() || histories.is_identity(), tests.is_hash() && histories.is_hash()) {
            (true, _) => LayoutKind::Counts,
            (false, true) => LayoutKind::Buckets,
            (false, false) => LayoutKind::Dense,
        }
    }
}

/// Scratch space for gathered matrices, reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    psi: Vec<f64>,
    chi: Vec<f64>,
}

/// Column-major sums; only the lower triangle of symmetric ones. Without any array they are zero.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    d_t: usize,
    d_h: usize,
    wanted: Wanted,
    pub(crate) th: Vec<f64>,
    pub(crate) tt: Vec<f64>,
    pub(crate) hh: Vec<f64>,
}

impl Sums {
    fn new(d_t: usize, d_h: usize, wanted: Wanted) -> Sums {
        let mut sums = Sums::empty(d_t, d_h, wanted);
        sums.allocate();
        sums
    }

    /// Zero, without any array.
    pub(super) fn empty(d_t: usize, d_h: usize, wanted: Wanted) -> Sums {
        Sums { d_t, d_h, wanted, th: Vec::new(), tt: Vec::new(), hh: Vec::new() }
    }

    /// From a file; the sizes fit.
    pub(super) fn of(d_t: usize, d_h: usize, wanted: Wanted, [th, tt, hh]: [Vec<f64>; 3]) -> Sums {
        Sums { d_t, d_h, wanted, th, tt, hh }
    }

    /// How many numbers each of its arrays has.
    pub(super) fn sizes(&self) -> [usize; 3] {
        let square = |d: usize| if self.wanted == Wanted::JointAndCovariances { d * d } else { 0 };
        [self.d_t * self.d_h, square(self.d_t), square(self.d_h)]
    }

    /// Whether it has no array.
    pub(super) fn is_empty(&self) -> bool {
        self.th.is_empty()
    }

    fn allocate(&mut self) {
        if self.is_empty() {
            [self.th, self.tt, self.hh] = self.sizes().map(|size| vec![0.0; size]);
        }
    }

    fn merge(&mut self, other: &Sums) {
        if other.is_empty() {
            return;
        }
        self.allocate();
        for (into, from) in [(&mut self.th, &other.th), (&mut self.tt, &other.tt), (&mut self.hh, &other.hh)] {
            into.iter_mut().zip(from).for_each(|(x, y)| *x += y);
        }
    }

    fn matrices(&self, tests: &[f64], histories: &[f64], factor: f64) -> Matrices {
        let scaled = |values: &[f64], rows: &[f64], columns: &[f64]| {
            Mat::from_fn(rows.len(), columns.len(), |i, j| factor * rows[i] * columns[j] * values[j * rows.len() + i])
        };
        let symmetric = |values: &[f64], scales: &[f64]| {
            let lower = scaled(values, scales, scales);
            Mat::from_fn(scales.len(), scales.len(), |i, j| lower[(i.max(j), i.min(j))])
        };
        let covariances = (!self.tt.is_empty()).then(|| (symmetric(&self.tt, tests), symmetric(&self.hh, histories)));
        Matrices { joint: Matrix::Dense(scaled(&self.th, tests, histories)), covariances, is_identity: [false; 2] }
    }
}

/// Sparse sums, (row, column) → value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) th: Map,
    pub(crate) tt: Map,
    pub(crate) hh: Map,
}

pub(super) type Map = FxHashMap<(u32, u32), f64>;

impl Accumulator {
    pub(crate) fn new(features: &Features, wanted: Wanted) -> Accumulator {
        let (tests, histories) = (&features.tests, &features.histories);
        let sums = || Sums::new(tests.rows(), histories.rows(), wanted);
        let layout = match Layout::kind(features) {
            LayoutKind::Counts => Layout::Counts(Counts::default()),
            LayoutKind::Buckets => {
                // The first is always there; the others once something is added to them.
                let others = (1..LANES).map(|_| Sums::empty(tests.rows(), histories.rows(), wanted));
                Layout::Buckets(std::iter::once(sums()).chain(others).collect())
            }
            LayoutKind::Dense => Layout::Dense(sums(), Buffers::default()),
        };
        Accumulator { wanted, layout }
    }

    /// For Σ̂_TH alone, in a single lane: to sum many of them at once.
    pub(crate) fn lean(features: &Features) -> Accumulator {
        let mut accumulator = Accumulator::new(features, Wanted::Joint);
        if let Layout::Buckets(lanes) = &mut accumulator.layout {
            lanes.truncate(1);
        }
        accumulator
    }

    /// Adds the cuts of a batch.
    pub(crate) fn add(&mut self, features: &Features, batch: &Batch<'_>) {
        self.add_episodes(features, batch, &batch.episodes);
    }

    /// Adds the cuts of some episodes of a batch, whose weights may differ from those in the batch.
    pub(crate) fn add_episodes(&mut self, features: &Features, batch: &Batch<'_>, episodes: &[EpisodeCuts]) {
        match &mut self.layout {
            Layout::Buckets(lanes) => {
                let chunk = episodes.len().div_ceil(lanes.len()).max(1);
                lanes.par_iter_mut().zip(episodes.par_chunks(chunk)).for_each(|(lane, episodes)| {
                    let cuts = episodes.iter().flat_map(|e| e.cuts());
                    add_buckets(lane, features, batch, cuts.map(Pairing::of));
                });
            }
            _ => {
                let pairings: Vec<Pairing> = episodes.iter().flat_map(EpisodeCuts::cuts).map(Pairing::of).collect();
                self.add_pairings(features, batch, &pairings);
            }
        }
    }

    /// Adds ψχᵀ with ψ and χ of different cuts of a batch; the weight is that of the history.
    pub(crate) fn add_pairings(&mut self, features: &Features, batch: &Batch<'_>, pairings: &[Pairing]) {
        match &mut self.layout {
            Layout::Buckets(lanes) => add_buckets(&mut lanes[0], features, batch, pairings.iter().copied()),
            Layout::Dense(sums, buffers) => add_dense(sums, buffers, features, batch, pairings),
            Layout::Counts(counts) => add_counts(counts, features, batch, pairings, self.wanted),
        }
    }

    /// Adds the sums of another; `test` and `history` map the rows and columns of an uncompressed
    /// side to ours.
    pub(crate) fn merge(&mut self, other: &Accumulator, test: impl Fn(u32) -> u32, history: impl Fn(u32) -> u32) {
        match (&mut self.layout, &other.layout) {
            (Layout::Buckets(ours), Layout::Buckets(theirs)) => ours.iter_mut().zip(theirs).for_each(|(x, y)| x.merge(y)),
            (Layout::Dense(ours, _), Layout::Dense(theirs, _)) => ours.merge(theirs),
            (Layout::Counts(ours), Layout::Counts(theirs)) => {
                theirs.th.iter().for_each(|(&(t, h), x)| *ours.th.entry((test(t), history(h))).or_insert(0.0) += x);
                theirs.tt.iter().for_each(|(&(i, j), x)| *ours.tt.entry((test(i), test(j))).or_insert(0.0) += x);
                theirs.hh.iter().for_each(|(&(i, j), x)| *ours.hh.entry((history(i), history(j))).or_insert(0.0) += x);
            }
            _ => unreachable!("the same parameters give the same layout"),
        }
    }

    /// Adds all lanes to the first.
    pub(crate) fn compact(&mut self) {
        if let Layout::Buckets(lanes) = &mut self.layout {
            let (first, others) = lanes.split_first_mut().expect("LANES > 0");
            for lane in others {
                first.merge(lane);
                *lane = Sums::empty(lane.d_t, lane.d_h, lane.wanted);
            }
        }
    }

    /// The same sums in a single lane, to be merged with others like it.
    pub(crate) fn in_one_lane(mut self) -> Accumulator {
        self.compact();
        if let Layout::Buckets(lanes) = &mut self.layout {
            lanes.truncate(1);
        }
        self
    }

    /// The moments, times a factor. Dividing by |Z| turns sums into probabilities and keeps the
    /// numbers near unity [H14 §7.1.3].
    pub(crate) fn matrices(&self, features: &Features, factor: f64) -> Matrices {
        let (tests, histories) = (features.tests.scales(), features.histories.scales());
        match &self.layout {
            Layout::Buckets(lanes) => {
                let mut total = lanes[0].clone();
                lanes[1..].iter().for_each(|lane| total.merge(lane));
                total.matrices(&tests, &histories, factor)
            }
            Layout::Dense(sums, _) => sums.matrices(&tests, &histories, factor),
            Layout::Counts(counts) => {
                let sparse = |map: &Map, rows: &[f64], columns: &[f64]| {
                    let scaled =
                        |(&(i, j), &x): (&(u32, u32), &f64)| ((i, j), factor * rows[i as usize] * columns[j as usize] * x);
                    SparseMatrix::from_entries(rows.len(), columns.len(), map.iter().map(scaled))
                };
                let covariances = (self.wanted == Wanted::JointAndCovariances).then(|| {
                    (sparse(&counts.tt, &tests, &tests).to_dense(), sparse(&counts.hh, &histories, &histories).to_dense())
                });
                let is_identity = [features.tests.is_identity(), features.histories.is_identity()];
                Matrices { joint: Matrix::Sparse(sparse(&counts.th, &tests, &histories)), covariances, is_identity }
            }
        }
    }

    /// The sum of ψ_i χ_j for coordinates with scale 1.
    pub(crate) fn entry(&self, i: usize, j: usize) -> f64 {
        match &self.layout {
            Layout::Buckets(lanes) => lanes.iter().filter_map(|lane| lane.th.get(j * lane.d_t + i)).sum(),
            Layout::Dense(sums, _) => sums.th[j * sums.d_t + i],
            Layout::Counts(counts) => counts.th.get(&(i as u32, j as u32)).copied().unwrap_or(0.0),
        }
    }
}

/// A few dozen additions for each cut, whatever the dimension.
fn add_buckets(sums: &mut Sums, features: &Features, batch: &Batch<'_>, pairings: impl Iterator<Item = Pairing>) {
    sums.allocate();
    let (mut psi, mut chi) = (Vec::new(), Vec::new());
    for Pairing { history: cut, tests } in pairings {
        psi.clear();
        chi.clear();
        features.each_test_entry(batch, tests.at, tests.end, |row, value| psi.push((row, value)));
        features.each_history_entry(batch, cut, |row, value| chi.push((row, value)));
        for &(h, x) in &chi {
            let column = &mut sums.th[h * sums.d_t..(h + 1) * sums.d_t];
            psi.iter().for_each(|&(t, y)| column[t] += cut.weight * x * y);
        }
        if !sums.tt.is_empty() {
            add_square(&mut sums.tt, sums.d_t, &psi, cut.weight);
            add_square(&mut sums.hh, sums.d_h, &chi, cut.weight);
        }
    }
}

/// The lower triangle of Σ x xᵀ.
fn add_square(sums: &mut [f64], d: usize, x: &[(usize, f64)], weight: f64) {
    for &(j, y) in x {
        for &(i, x) in x.iter().filter(|(i, _)| *i >= j) {
            sums[j * d + i] += weight * x * y;
        }
    }
}

/// Gathers ψ and χ of the cuts as matrices Ψ, X and adds ΨXᵀ (and ΨΨᵀ, XXᵀ).
fn add_dense(sums: &mut Sums, buffers: &mut Buffers, features: &Features, batch: &Batch<'_>, pairings: &[Pairing]) {
    let at_once = (GATHERED / sums.d_t.max(sums.d_h)).max(512);
    for pairings in pairings.chunks(at_once) {
        let Buffers { psi, chi } = &mut *buffers;
        gather(features, batch, pairings, psi, chi);
        let weighted = |x: &[f64], rows: usize| -> Option<Vec<f64>> {
            let columns = || x.chunks_exact(rows).zip(pairings);
            let scaled = || columns().flat_map(|(x, pairing)| x.iter().map(|x| pairing.history.weight * x)).collect();
            pairings.iter().any(|pairing| pairing.history.weight != 1.0).then(scaled)
        };
        let matrix = |x, rows| MatRef::from_column_major_slice(x, rows, pairings.len());
        let (weighted_psi, weighted_chi) = (weighted(psi, sums.d_t), weighted(chi, sums.d_h));
        let weighted_psi = matrix(weighted_psi.as_deref().unwrap_or(psi), sums.d_t);
        let weighted_chi = matrix(weighted_chi.as_deref().unwrap_or(chi), sums.d_h);
        let (psi, chi) = (matrix(psi, sums.d_t), matrix(chi, sums.d_h));
        add_product(&mut sums.th, weighted_psi, chi, Triangle::Whole);
        if !sums.tt.is_empty() {
            add_product(&mut sums.tt, weighted_psi, psi, Triangle::Lower);
            add_product(&mut sums.hh, weighted_chi, chi, Triangle::Lower);
        }
    }
}

/// The features of some cuts as columns of Ψ and X.
fn gather(features: &Features, batch: &Batch<'_>, pairings: &[Pairing], psi: &mut Vec<f64>, chi: &mut Vec<f64>) {
    let (d_t, d_h, n) = (features.tests.rows(), features.histories.rows(), pairings.len());
    psi.resize(d_t * n, 0.0);
    chi.resize(d_h * n, 0.0);
    let columns = (psi.par_chunks_mut(d_t), chi.par_chunks_mut(d_h), pairings.par_iter());
    columns.into_par_iter().with_min_len(16).for_each(|(psi, chi, Pairing { history, tests })| {
        features.fill_tests(batch, tests.at, tests.end, psi);
        features.fill_histories(batch, *history, chi);
    });
}

#[derive(Clone, Copy, PartialEq)]
enum Triangle {
    Whole,
    Lower,
}

/// sums += A Bᵀ, one task for each block of columns; only below the diagonal for `Triangle::Lower`.
fn add_product(sums: &mut [f64], a: MatRef<'_, f64>, b: MatRef<'_, f64>, triangle: Triangle) {
    let rows = a.nrows();
    sums.par_chunks_mut(rows * BLOCK).enumerate().for_each(|(block, sums)| {
        let (from, columns) = (block * BLOCK, sums.len() / rows);
        let top = if triangle == Triangle::Lower { from } else { 0 };
        let target = MatMut::from_column_major_slice_mut(sums, rows, columns).subrows_mut(top, rows - top);
        matmul(target, Accum::Add, a.subrows(top, rows - top), b.subrows(from, columns).transpose(), 1.0, Par::Seq);
    });
}

/// Adds the non-zeros of ψ and χ to maps; a side that is not the identity may be dense.
fn add_counts(counts: &mut Counts, features: &Features, batch: &Batch<'_>, pairings: &[Pairing], wanted: Wanted) {
    let (mut psi, mut chi, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    for &Pairing { history: cut, tests } in pairings {
        features.sparse_tests(batch, tests.at, tests.end, &mut buffer, &mut psi);
        features.sparse_histories(batch, cut, &mut buffer, &mut chi);
        add_outer(&mut counts.th, &psi, &chi, cut.weight);
        if wanted == Wanted::JointAndCovariances {
            add_outer(&mut counts.tt, &psi, &psi, cut.weight);
            add_outer(&mut counts.hh, &chi, &chi, cut.weight);
        }
    }
}

fn add_outer(sums: &mut Map, a: &[(u32, f64)], b: &[(u32, f64)], weight: f64) {
    for &(j, y) in b {
        for &(i, x) in a {
            *sums.entry((i, j)).or_insert(0.0) += weight * x * y;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::CutRule;
    use crate::domains;
    use crate::model::LearnParams;
    use crate::rng::Seed;

    /// A long episode is gathered in several pieces. Their sum must equal the sum over its cuts one
    /// by one.
    #[test]
    fn pieces_of_a_long_episode_add_up() {
        let tiger = domains::get("tiger").unwrap();
        let z = domains::sample(&tiger, 1, 9000, Seed(1)).next().unwrap();
        let params = LearnParams { test_dim: 150, history_dim: 150, max_test_length: 3, ..LearnParams::paper() };
        let mut episodes = crate::learn::empty_batch(params.weighting);
        episodes.push(&z, 0.5).unwrap();
        let mut features = Features::new(&params, tiger.alphabet());
        let batch = features.batch(&episodes, CutRule { room: 3, limit: None });
        let mut accumulator = Accumulator::new(&features, Wanted::JointAndCovariances);
        accumulator.add(&features, &batch);
        let Matrices { joint: Matrix::Dense(ours), covariances, .. } = accumulator.matrices(&features, 1.0) else {
            panic!("spherical moments are dense")
        };

        let (d_t, d_h) = (features.tests.rows(), features.histories.rows());
        let (mut psi, mut chi) = (vec![0.0; d_t], vec![0.0; d_h]);
        let (mut joint, mut tests) = (Mat::<f64>::zeros(d_t, d_h), Mat::<f64>::zeros(d_t, d_t));
        for cut in batch.cuts() {
            features.fill_tests(&batch, cut.at, cut.end, &mut psi);
            features.fill_histories(&batch, cut, &mut chi);
            psi.iter_mut().zip(features.tests.scales()).for_each(|(x, scale)| *x *= scale);
            chi.iter_mut().zip(features.histories.scales()).for_each(|(x, scale)| *x *= scale);
            joint += Mat::from_fn(d_t, d_h, |i, j| 0.5 * psi[i] * chi[j]);
            tests += Mat::from_fn(d_t, d_t, |i, j| 0.5 * psi[i] * psi[j]);
        }
        let close = |x: &Mat<f64>, y: &Mat<f64>| (x - y).norm_max() < 1e-9 * (1.0 + y.norm_max());
        assert!(close(&ours, &joint) && close(&covariances.unwrap().0, &tests));
    }
}
