//! Operators: C_ao = Σ (Ûᵀψ_{t+1}) (Bᵀχ_t)ᵀ over the cuts whose next step is ao [H14 §3.2.1], from
//! a second pass or from sums kept in the first.
//!
//! Beside it w_ao = Σ Bᵀχ_t, the regression of the event itself: w_aoᵀc = P(a, o | h). For steps
//! that do not end the episode it estimates the same as C_aoᵀc_∞, with less noise. For steps that
//! do, C_ao is zero and w_ao is the only estimate.
//!
//! The cuts of a batch are grouped by their next step. Each group is one task and one matrix
//! product. So there is a single copy of the sums, and they do not depend on the number of threads.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use super::features::{Batch, Cut, Features, NULL_TEST, Side};
use super::pairs::{Entries, PairSums, Slots, TESTS, grouped, place};
use crate::data::ActionObservation;

/// Cuts of a group that are multiplied in one product.
const GATHERED: usize = 256;

/// Sums for one action–observation pair, in bases L of tests and R of histories: Û and B, or wider
/// ones.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    /// Σ (Lᵀψ_{t+1}) (Rᵀχ_t)ᵀ
    pub(crate) matrix: Mat<f64>,
    /// Σ Lᵀψ_{t+1}
    pub(crate) state: Vec<f64>,
    /// Σ Rᵀχ_t
    pub(crate) readout: Vec<f64>,
    /// Number of cuts (or their weight).
    pub(crate) weight: f64,
}

/// Operators while they are being summed.
pub(crate) struct Operators {
    /// Lᵀ and Rᵀ, padded: each column is the contribution of a coordinate of ψ or χ.
    lt: Mat<f64>,
    rt: Mat<f64>,
    sizes: (usize, usize),
    slots: Slots,
    pub(crate) sums: Vec<Operator>,
}

impl Operators {
    /// One operator for each of `pairs`, which must contain every pair of the logs.
    pub(crate) fn new(features: &Features, left: &Mat<f64>, right: &Mat<f64>, pairs: &[ActionObservation]) -> Operators {
        let zero = Operator::zero(padded(left.ncols()), padded(right.ncols()));
        Operators {
            lt: transposed(left.as_ref(), &features.tests.scales()),
            rt: transposed(right.as_ref(), &features.histories.scales()),
            sizes: (left.ncols(), right.ncols()),
            slots: pairs.iter().enumerate().map(|(slot, &ao)| (ao, slot)).collect(),
            sums: vec![zero; pairs.len()],
        }
    }

    /// Adds the cuts of a batch.
    pub(crate) fn add(&mut self, features: &Features, batch: &Batch<'_>) {
        let groups = grouped(batch, &self.slots, batch.cuts());
        let (lt, rt) = (self.lt.as_ref(), self.rt.as_ref());
        self.sums.par_iter_mut().zip(&groups).filter(|(_, group)| !group.is_empty()).for_each(|(sum, group)| {
            group.chunks(GATHERED).for_each(|places| sum.add(features, batch, places, lt, rt));
        });
    }

    /// The sums, without the padding.
    pub(crate) fn finish(self) -> Vec<Operator> {
        let (k_t, k_h) = self.sizes;
        let unpadded = |mut operator: Operator| {
            operator.matrix = operator.matrix.submatrix(0, 0, k_t, k_h).to_owned();
            operator.state.truncate(k_t);
            operator.readout.truncate(k_h);
            operator
        };
        self.sums.into_iter().map(unpadded).collect()
    }
}

/// Rows are padded with zeros to whole vectors. Products run over the padding too: without the
/// zeros it may hold subnormal numbers, on which they are a hundred times slower.
fn padded(d: usize) -> usize {
    d.next_multiple_of(8)
}

/// The transposed basis for features in units of `scales`.
fn transposed(basis: MatRef<'_, f64>, scales: &[f64]) -> Mat<f64> {
    let d = basis.ncols();
    Mat::from_fn(padded(d), basis.nrows(), |i, j| if i < d { scales[j] * basis[(j, i)] } else { 0.0 })
}

/// Lᵀ and Rᵀ for sums of features.
pub(crate) struct ScaledBases {
    lt: Mat<f64>,
    rt: Mat<f64>,
}

impl ScaledBases {
    pub(crate) fn new(features: &Features, left: &Mat<f64>, right: &Mat<f64>) -> ScaledBases {
        let scaled =
            |basis: &Mat<f64>, scales: Vec<f64>| Mat::from_fn(basis.ncols(), basis.nrows(), |i, j| scales[j] * basis[(j, i)]);
        ScaledBases { lt: scaled(left, features.tests.scales()), rt: scaled(right, features.histories.scales()) }
    }
}

impl Operator {
    pub(crate) fn zero(k_t: usize, k_h: usize) -> Operator {
        Operator { matrix: Mat::zeros(k_t, k_h), state: vec![0.0; k_t], readout: vec![0.0; k_h], weight: 0.0 }
    }

    /// From sums over all cuts of a pair: LᵀΣ̂_{T,ao,H}R.
    pub(crate) fn of(sums: &PairSums, bases: &ScaledBases) -> Operator {
        let ScaledBases { lt, rt } = bases;
        let (d_t, d_h) = (lt.ncols(), rt.ncols());
        let mut operator = match &sums.entries {
            Entries::Array(array) => {
                let all = MatRef::from_column_major_slice(array, d_t, d_h + 1);
                let joint = all.subcols(0, d_h);
                Operator {
                    matrix: lt * (joint * rt.transpose()),
                    state: to_vec(&(lt * all.subcols(d_h, 1))),
                    // The null test always succeeds, so its row is Σ χ_t.
                    readout: to_vec(&(rt * joint.subrows(NULL_TEST, 1).transpose())),
                    weight: 0.0,
                }
            }
            Entries::Map(map) => {
                // Column by column: multiply it by Lᵀ, then by the row of R.
                let mut operator = Operator::zero(lt.nrows(), rt.nrows());
                let entries = Entries::sorted(map);
                for column in entries.chunk_by(|(x, _), (y, _)| x >> 32 == y >> 32) {
                    let h = place(column[0].0).1;
                    let mut projected = vec![0.0; lt.nrows()];
                    for &(key, value) in column {
                        add_multiple(&mut projected, value, lt.col_as_slice(place(key).0 as usize));
                    }
                    if h == TESTS {
                        operator.state = projected;
                        continue;
                    }
                    let row = rt.col_as_slice(h as usize);
                    for (j, &r) in row.iter().enumerate() {
                        add_multiple(operator.matrix.col_as_slice_mut(j), r, &projected);
                    }
                    if let Some((_, sum)) = column.iter().find(|(key, _)| place(*key).0 as usize == NULL_TEST) {
                        add_multiple(&mut operator.readout, *sum, row);
                    }
                }
                operator
            }
        };
        operator.weight = sums.weight;
        operator
    }

    /// The same sums in other bases L′ and R′, given L′ᵀD and DᵀR′ with the duals D of the old
    /// ones.
    pub(crate) fn rotated(&self, left: &Mat<f64>, right: &Mat<f64>) -> Operator {
        let vector = |x: &[f64]| Mat::from_fn(x.len(), 1, |i, _| x[i]);
        Operator {
            matrix: left * &self.matrix * right,
            state: to_vec(&(left * vector(&self.state))),
            readout: to_vec(&(right.transpose() * vector(&self.readout))),
            weight: self.weight,
        }
    }

    /// Adds the sums of other logs, in the same bases.
    pub(crate) fn merge(&mut self, other: &Operator) {
        self.matrix += &other.matrix;
        add_multiple(&mut self.state, 1.0, &other.state);
        add_multiple(&mut self.readout, 1.0, &other.readout);
        self.weight += other.weight;
    }

    fn add(&mut self, features: &Features, batch: &Batch<'_>, places: &[Cut], lt: MatRef<'_, f64>, rt: MatRef<'_, f64>) {
        let entry = |place: &Cut, f: &mut dyn FnMut(usize, f64)| features.each_test_entry(batch, place.at + 1, place.end, f);
        let fill = |place: &Cut, out: &mut [f64]| features.fill_tests(batch, place.at + 1, place.end, out);
        let x = project(&features.tests, places, lt, entry, fill);
        let entry = |place: &Cut, f: &mut dyn FnMut(usize, f64)| features.each_history_entry(batch, *place, f);
        let fill = |place: &Cut, out: &mut [f64]| features.fill_histories(batch, *place, out);
        let mut y = project(&features.histories, places, rt, entry, fill);
        for (j, place) in places.iter().enumerate() {
            let weight = place.weight * batch.ratio(place.at);
            self.weight += weight;
            add_multiple(&mut self.state, weight, x.col_as_slice(j));
            let y = y.col_as_slice_mut(j);
            if weight != 1.0 {
                y.iter_mut().for_each(|y| *y *= weight);
            }
            add_multiple(&mut self.readout, 1.0, y);
        }
        matmul(self.matrix.as_mut(), Accum::Add, &x, y.transpose(), 1.0, Par::Seq);
    }
}

/// sum += factor · x
fn add_multiple(sum: &mut [f64], factor: f64, x: &[f64]) {
    sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
}

fn to_vec(column: &Mat<f64>) -> Vec<f64> {
    column.col_as_slice(0).to_vec()
}

/// basis · [features of each cut], d × cuts: by columns of the basis where features are sparse, by
/// a matrix product where they are dense.
fn project(
    side: &Side,
    places: &[Cut],
    basis: MatRef<'_, f64>,
    entries: impl Fn(&Cut, &mut dyn FnMut(usize, f64)),
    fill: impl Fn(&Cut, &mut [f64]),
) -> Mat<f64> {
    let mut out = Mat::zeros(basis.nrows(), places.len());
    if !side.is_dense() {
        for (j, place) in places.iter().enumerate() {
            let out = out.col_as_slice_mut(j);
            entries(place, &mut |row, value| {
                let column = basis.col(row).try_as_col_major().expect("Mat is column-major").as_slice();
                out.iter_mut().zip(column).for_each(|(out, b)| *out += value * b);
            });
        }
    } else {
        let mut features = Mat::zeros(basis.ncols(), places.len());
        places.iter().enumerate().for_each(|(j, place)| fill(place, features.col_as_slice_mut(j)));
        matmul(out.as_mut(), Accum::Replace, basis, &features, 1.0, Par::Seq);
    }
    out
}
