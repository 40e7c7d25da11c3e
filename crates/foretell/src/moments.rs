//! First pass: Σ̂_TH (and Σ̂_TT, Σ̂_HH where whitening needs them), in one streaming pass.
//!
//! Three layouts, one meaning. Hashed columns have a single non-zero, so a cut adds a few dozen numbers whatever the
//! dimension. Dense columns are gathered and multiplied as one matrix product. The identity projection counts in a
//! map. Sums are split over fixed lanes or blocks and reduced in their order: the number of threads changes nothing.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::data::ActionObservation;
use crate::features::{Batch, Features, Place};
use crate::sparse::SparseMatrix;

/// Independent sums into which hashed cuts are split; more would cost memory, fewer would leave threads idle.
const LANES: usize = 4;
/// Numbers of a gathered matrix Ψ or X (2 MiB, a level-2 cache): one product of many cuts
/// reuses what rank-1 updates would load again.
const GATHERED: usize = 1 << 18;
/// Largest d_T·d_H for which Σ̂_{T,ao,H} of hashed columns is kept for each pair: beyond, a second pass over the logs costs less
/// than the products with the bases.
const LARGEST_KEPT: usize = 1 << 14;
/// Most numbers kept over all pairs (64 MiB).
const MOST_KEPT: usize = 1 << 23;
/// Columns of a product that one task computes.
const BLOCK: usize = 64;

/// Which second moments are wanted beside Σ̂_TH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Joint,
    JointAndCovariances,
}

/// Σ̂_TH, dense or sparse.
#[derive(Clone, Debug)]
pub(crate) enum Joint {
    Dense(Mat<f64>),
    Sparse(SparseMatrix),
}

/// The compressed moments, as sums over cuts.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    /// Σ̂_TH, d_T × d_H; its first row is Σ̂_H.
    pub(crate) joint: Joint,
    /// Σ̂_TT and Σ̂_HH.
    pub(crate) covariances: Option<(Mat<f64>, Mat<f64>)>,
    /// Σ̂_{T,ao,H} for each pair, where they are small enough to keep: then operators need no second pass.
    pub(crate) pairs: Option<Vec<PairSums>>,
}

/// Sums over the cuts whose next step is a given pair.
#[derive(Clone, Debug)]
pub(crate) struct PairSums {
    /// Σ ψ_{t+1} χ_tᵀ, d_T × d_H by columns
    pub(crate) joint: Vec<f64>,
    /// Σ ψ_{t+1}
    pub(crate) tests: Vec<f64>,
    /// Number of cuts (or their weight).
    pub(crate) weight: f64,
}

/// Sums for each pair in the making.
struct PerPair {
    slots: Slots,
    sums: Vec<PairSums>,
}

/// Where each pair has its sums.
pub(crate) type Slots = FxHashMap<ActionObservation, usize>;

/// The places of a batch, grouped by the slot of their next step.
pub(crate) fn grouped(batch: &Batch<'_>, slots: &Slots, places: impl Iterator<Item = Place>) -> Vec<Vec<Place>> {
    let mut groups = vec![Vec::new(); slots.len()];
    places.for_each(|place| groups[slots[&batch.steps[place.at]]].push(place));
    groups
}

impl Moments {
    /// Multiplies all moments: dividing by |Z| turns sums into probabilities and keeps the numbers near unity [H14 §7.1.3].
    pub(crate) fn scale(&mut self, factor: f64) {
        match &mut self.joint {
            Joint::Dense(joint) => *joint *= factor,
            Joint::Sparse(joint) => joint.scale(factor),
        }
        if let Some((tests, histories)) = &mut self.covariances {
            *tests *= factor;
            *histories *= factor;
        }
    }
}

/// Sums in the making.
pub(crate) struct Accumulator {
    wanted: Wanted,
    layout: Layout,
    per_pair: Option<PerPair>,
}

enum Layout {
    Buckets(Vec<Sums>),
    Dense(Sums, Buffers),
    Counts(Counts),
}

/// Memory of gathered matrices, kept from one to the next.
#[derive(Default)]
struct Buffers {
    psi: Vec<f64>,
    chi: Vec<f64>,
}

/// Column-major sums; of symmetric ones only the lower triangle.
struct Sums {
    d_t: usize,
    d_h: usize,
    th: Vec<f64>,
    tt: Vec<f64>,
    hh: Vec<f64>,
}

impl Sums {
    fn new(d_t: usize, d_h: usize, wanted: Wanted) -> Sums {
        let square = |d: usize| if wanted == Wanted::JointAndCovariances { vec![0.0; d * d] } else { Vec::new() };
        Sums { d_t, d_h, th: vec![0.0; d_t * d_h], tt: square(d_t), hh: square(d_h) }
    }

    fn merge(&mut self, other: &Sums) {
        for (into, from) in [(&mut self.th, &other.th), (&mut self.tt, &other.tt), (&mut self.hh, &other.hh)] {
            into.iter_mut().zip(from).for_each(|(x, y)| *x += y);
        }
    }

    fn finish(self) -> Moments {
        let mat = |values: &[f64], rows: usize| MatRef::from_column_major_slice(values, rows, values.len() / rows).to_owned();
        let symmetric = |values: &[f64], d: usize| {
            let lower = mat(values, d);
            Mat::from_fn(d, d, |i, j| lower[(i.max(j), i.min(j))])
        };
        let covariances = (!self.tt.is_empty()).then(|| (symmetric(&self.tt, self.d_t), symmetric(&self.hh, self.d_h)));
        Moments { joint: Joint::Dense(mat(&self.th, self.d_t)), covariances, pairs: None }
    }
}

/// Sparse sums, (row, column) → value.
#[derive(Default)]
struct Counts {
    th: FxHashMap<(u32, u32), f64>,
    tt: FxHashMap<(u32, u32), f64>,
    hh: FxHashMap<(u32, u32), f64>,
}

impl Accumulator {
    /// For logs whose steps are all among `pairs`.
    pub(crate) fn new(features: &Features, wanted: Wanted, pairs: &[ActionObservation]) -> Accumulator {
        let (tests, histories) = (&features.tests, &features.histories);
        let sums = || Sums::new(tests.rows(), histories.rows(), wanted);
        let layout = if tests.is_identity() || histories.is_identity() {
            Layout::Counts(Counts::default())
        } else if tests.is_hash() && histories.is_hash() {
            Layout::Buckets((0..LANES).map(|_| sums()).collect())
        } else {
            Layout::Dense(sums(), Buffers::default())
        };
        let (d_t, d_h) = (tests.rows(), histories.rows());
        let small = d_t * d_h <= LARGEST_KEPT && pairs.len() * d_t * d_h <= MOST_KEPT;
        let kept = small && wanted == Wanted::Joint && matches!(layout, Layout::Buckets(_));
        let per_pair = kept.then(|| PerPair {
            slots: pairs.iter().enumerate().map(|(slot, &ao)| (ao, slot)).collect(),
            sums: vec![PairSums { joint: vec![0.0; d_t * d_h], tests: vec![0.0; d_t], weight: 0.0 }; pairs.len()],
        });
        Accumulator { wanted, layout, per_pair }
    }

    /// Adds the cuts of a batch.
    pub(crate) fn add(&mut self, features: &Features, batch: &Batch<'_>) {
        match &mut self.layout {
            Layout::Buckets(lanes) => {
                let chunk = batch.episodes.len().div_ceil(LANES).max(1);
                lanes.par_iter_mut().zip(batch.episodes.par_chunks(chunk)).for_each(|(lane, episodes)| {
                    let places = episodes.iter().flat_map(|e| e.places());
                    add_buckets(lane, features, batch, places);
                });
                if let Some(per_pair) = &mut self.per_pair {
                    per_pair.add_buckets(features, batch);
                }
            }
            Layout::Dense(sums, buffers) => add_dense(sums, buffers, features, batch),
            Layout::Counts(counts) => add_counts(counts, features, batch, self.wanted),
        }
    }

    pub(crate) fn finish(self, features: &Features) -> Moments {
        let moments = match self.layout {
            Layout::Buckets(lanes) => {
                let total = lanes.into_iter().reduce(|mut total, lane| {
                    total.merge(&lane);
                    total
                });
                total.expect("LANES > 0").finish()
            }
            Layout::Dense(sums, _) => sums.finish(),
            Layout::Counts(counts) => {
                let (d_t, d_h) = (features.tests.rows(), features.histories.rows());
                let covariances = (self.wanted == Wanted::JointAndCovariances).then(|| {
                    let dense = |entries, d| SparseMatrix::from_entries(d, d, entries).to_dense();
                    (dense(counts.tt, d_t), dense(counts.hh, d_h))
                });
                Moments { joint: Joint::Sparse(SparseMatrix::from_entries(d_t, d_h, counts.th)), covariances, pairs: None }
            }
        };
        Moments { pairs: self.per_pair.map(|p| p.sums), ..moments }
    }
}

/// A few dozen additions for each cut, whatever the dimensions.
fn add_buckets(sums: &mut Sums, features: &Features, batch: &Batch<'_>, places: impl Iterator<Item = Place>) {
    let (mut psi, mut chi) = (Vec::new(), Vec::new());
    for place in places {
        psi.clear();
        chi.clear();
        features.each_test_entry(batch, place.at, place.end, |row, value| psi.push((row, value)));
        features.each_history_entry(batch, place, |row, value| chi.push((row, value)));
        for &(h, x) in &chi {
            let column = &mut sums.th[h * sums.d_t..(h + 1) * sums.d_t];
            psi.iter().for_each(|&(t, y)| column[t] += place.weight * x * y);
        }
        if !sums.tt.is_empty() {
            add_square(&mut sums.tt, sums.d_t, &psi, place.weight);
            add_square(&mut sums.hh, sums.d_h, &chi, place.weight);
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
fn add_dense(sums: &mut Sums, buffers: &mut Buffers, features: &Features, batch: &Batch<'_>) {
    let at_once = (GATHERED / sums.d_t.max(sums.d_h)).max(512);
    let places: Vec<Place> = batch.places().collect();
    for places in places.chunks(at_once) {
        let (psi, chi) = buffers.gather(features, batch, places);
        add_product(&mut sums.th, psi, chi, Triangle::Whole);
        if !sums.tt.is_empty() {
            add_product(&mut sums.tt, psi, psi, Triangle::Lower);
            add_product(&mut sums.hh, chi, chi, Triangle::Lower);
        }
    }
}

impl Buffers {
    /// The features of some places as columns of Ψ and X.
    fn gather(&mut self, features: &Features, batch: &Batch<'_>, places: &[Place]) -> (MatRef<'_, f64>, MatRef<'_, f64>) {
        let (d_t, d_h, n) = (features.tests.rows(), features.histories.rows(), places.len());
        let Buffers { psi, chi } = self;
        psi.resize(d_t * n, 0.0);
        chi.resize(d_h * n, 0.0);
        let columns = (psi.par_chunks_mut(d_t), chi.par_chunks_mut(d_h), places.par_iter());
        columns.into_par_iter().with_min_len(16).for_each(|(psi, chi, place)| {
            features.fill_tests(batch, place.at, place.end, psi);
            features.fill_histories(batch, *place, chi);
            if place.weight != 1.0 {
                let root = place.weight.sqrt();
                psi.iter_mut().chain(chi).for_each(|x| *x *= root);
            }
        });
        (MatRef::from_column_major_slice(psi, d_t, n), MatRef::from_column_major_slice(chi, d_h, n))
    }
}

impl PerPair {
    /// Adds cuts whose columns have a single non-zero, a task for each pair.
    fn add_buckets(&mut self, features: &Features, batch: &Batch<'_>) {
        let groups = grouped(batch, &self.slots, batch.places());
        let d_t = features.tests.rows();
        self.sums.par_iter_mut().zip(&groups).for_each(|(sums, places)| {
            let mut psi = Vec::new();
            for place in places {
                psi.clear();
                features.each_test_entry(batch, place.at + 1, place.end, |row, value| psi.push((row, place.weight * value)));
                psi.iter().for_each(|&(t, y)| sums.tests[t] += y);
                features.each_history_entry(batch, *place, |h, x| {
                    let column = &mut sums.joint[h * d_t..(h + 1) * d_t];
                    psi.iter().for_each(|&(t, y)| column[t] += x * y);
                });
                sums.weight += place.weight;
            }
        });
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Triangle {
    Whole,
    Lower,
}

/// sums += A Bᵀ, one task for each block of columns; below the diagonal only, if so asked.
fn add_product(sums: &mut [f64], a: MatRef<'_, f64>, b: MatRef<'_, f64>, triangle: Triangle) {
    let rows = a.nrows();
    sums.par_chunks_mut(rows * BLOCK).enumerate().for_each(|(block, sums)| {
        let (from, columns) = (block * BLOCK, sums.len() / rows);
        let top = if triangle == Triangle::Lower { from } else { 0 };
        let target = MatMut::from_column_major_slice_mut(sums, rows, columns).subrows_mut(top, rows - top);
        matmul(target, Accum::Add, a.subrows(top, rows - top), b.subrows(from, columns).transpose(), 1.0, Par::Seq);
    });
}

/// Non-zeros of ψ and χ into maps; a side that is not the identity may be dense.
fn add_counts(counts: &mut Counts, features: &Features, batch: &Batch<'_>, wanted: Wanted) {
    let (mut psi, mut chi) = (Vec::new(), Vec::new());
    let (mut dense_psi, mut dense_chi) = (vec![0.0; features.tests.rows()], vec![0.0; features.histories.rows()]);
    let dense = |side: &crate::features::Side| !side.is_hash() && !side.is_identity();
    let non_zeros = |from: &[f64], to: &mut Vec<(u32, f64)>| {
        to.extend(from.iter().enumerate().filter(|(_, x)| **x != 0.0).map(|(i, &x)| (i as u32, x)));
    };
    for place in batch.places() {
        psi.clear();
        chi.clear();
        if dense(&features.tests) {
            features.fill_tests(batch, place.at, place.end, &mut dense_psi);
            non_zeros(&dense_psi, &mut psi);
        } else {
            features.each_test_entry(batch, place.at, place.end, |row, value| psi.push((row as u32, value)));
        }
        if dense(&features.histories) {
            features.fill_histories(batch, place, &mut dense_chi);
            non_zeros(&dense_chi, &mut chi);
        } else {
            features.each_history_entry(batch, place, |row, value| chi.push((row as u32, value)));
        }
        add_outer(&mut counts.th, &psi, &chi, place.weight);
        if wanted == Wanted::JointAndCovariances {
            add_outer(&mut counts.tt, &psi, &psi, place.weight);
            add_outer(&mut counts.hh, &chi, &chi, place.weight);
        }
    }
}

fn add_outer(sums: &mut FxHashMap<(u32, u32), f64>, a: &[(u32, f64)], b: &[(u32, f64)], weight: f64) {
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
    use crate::params::LearnParams;
    use crate::rng::Seed;
    use crate::sequence::Fingerprints;
    use crate::source::Episodes;

    /// A long episode is gathered in several pieces; they must add up to the sum over its cuts one by one.
    #[test]
    fn pieces_of_a_long_episode_add_up() {
        let tiger = domains::get("tiger").unwrap();
        let z = domains::sample(&tiger, 1, 9000, Seed(1)).next().unwrap();
        let mut episodes = Episodes::default();
        episodes.push(&z, 0.5);
        let params = LearnParams { test_dim: 150, history_dim: 150, max_test_length: 3, ..LearnParams::paper() };
        let mut features = Features::new(&params, Fingerprints::of(tiger.alphabet()));
        let batch = features.batch(&episodes, CutRule { room: 3, limit: None });
        let mut accumulator = Accumulator::new(&features, Wanted::Joint, &[]);
        accumulator.add(&features, &batch);
        let Joint::Dense(ours) = accumulator.finish(&features).joint else { panic!("spherical moments are dense") };

        let (d_t, d_h) = (features.tests.rows(), features.histories.rows());
        let (mut psi, mut chi) = (vec![0.0; d_t], vec![0.0; d_h]);
        let mut joint = vec![0.0; d_t * d_h];
        for place in batch.places() {
            features.fill_tests(&batch, place.at, place.end, &mut psi);
            features.fill_histories(&batch, place, &mut chi);
            (0..d_t * d_h).for_each(|i| joint[i] += 0.5 * psi[i % d_t] * chi[i / d_t]);
        }
        let close = |x: f64, y: f64| (x - y).abs() < 1e-9 * (1.0 + y.abs());
        assert!((0..d_t * d_h).all(|i| close(ours[(i % d_t, i / d_t)], joint[i])));
    }
}
