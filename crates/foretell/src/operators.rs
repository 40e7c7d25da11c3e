//! Operators: C_ao = Σ (Ûᵀψ_{t+1}) (Bᵀχ_t)ᵀ over the cuts whose next step is ao [H14 §3.2.1], in a second pass or
//! from sums that the first has kept.
//!
//! Beside it w_ao = Σ Bᵀχ_t, the regression of the event itself: w_aoᵀc = P(a, o | h). For steps that go on it estimates
//! what C_aoᵀc_∞ does, with less noise; for steps that end the episode, whose C_ao leads nowhere, it is the only way.
//!
//! The cuts of a batch are grouped by their next step; each group is one task and one matrix product, so there is a
//! single copy of the sums, and they do not depend on the number of threads.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::data::ActionObservation;
use crate::features::{Batch, Features, NULL_TEST, Place, Side};
use crate::moments::{PairSums, Slots, grouped};

/// Cuts of a group that are multiplied at once.
const GATHERED: usize = 256;

/// The bases in which operators are estimated.
#[derive(Clone, Debug)]
pub(crate) struct Bases {
    /// Û, d_T × d: the state after a history is the mean of Ûᵀψ.
    pub(crate) u: Mat<f64>,
    /// B, d_H × d: the right inverse of ÛᵀΣ̂_TH, V̂Ŝ⁻¹ or its two-stage form.
    pub(crate) b: Mat<f64>,
}

/// What the second pass sums for one action–observation pair.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    /// Σ (Ûᵀψ_{t+1}) (Bᵀχ_t)ᵀ, d × d by columns
    pub(crate) matrix: Vec<f64>,
    /// Σ Ûᵀψ_{t+1}
    pub(crate) state: Vec<f64>,
    /// Σ Bᵀχ_t
    pub(crate) readout: Vec<f64>,
    /// Number of cuts (or their weight).
    pub(crate) weight: f64,
}

/// Operators in the making.
pub(crate) struct Operators {
    /// Ûᵀ and Bᵀ, padded: columns are what a coordinate of ψ or χ contributes.
    ut: Mat<f64>,
    bt: Mat<f64>,
    slots: Slots,
    sums: Vec<Operator>,
}

impl Operators {
    /// One operator for each of `pairs`, which must hold every step of the logs.
    pub(crate) fn new(bases: &Bases, pairs: &[ActionObservation]) -> Operators {
        let d = padded(bases.u.ncols());
        let zero = Operator { matrix: vec![0.0; d * d], state: vec![0.0; d], readout: vec![0.0; d], weight: 0.0 };
        Operators {
            ut: transposed(bases.u.as_ref()),
            bt: transposed(bases.b.as_ref()),
            slots: pairs.iter().enumerate().map(|(slot, &ao)| (ao, slot)).collect(),
            sums: vec![zero; pairs.len()],
        }
    }

    /// Adds the cuts of a batch.
    pub(crate) fn add(&mut self, features: &Features, batch: &Batch<'_>) {
        let groups = grouped(batch, &self.slots, batch.places());
        let (ut, bt) = (self.ut.as_ref(), self.bt.as_ref());
        self.sums.par_iter_mut().zip(&groups).filter(|(_, group)| !group.is_empty()).for_each(|(sum, group)| {
            group.chunks(GATHERED).for_each(|places| sum.add(features, batch, places, ut, bt));
        });
    }

    /// The sums, without the padding.
    pub(crate) fn finish(self, d: usize) -> Vec<Operator> {
        let unpadded = |mut operator: Operator| {
            let wide = operator.state.len();
            operator.matrix = (0..d * d).map(|i| operator.matrix[i / d * wide + i % d]).collect();
            operator.state.truncate(d);
            operator.readout.truncate(d);
            operator
        };
        self.sums.into_iter().map(unpadded).collect()
    }
}

/// Rows are padded to whole vectors, with zeros: products run on the padding too, and what else lies there may be
/// subnormal numbers, on which they are a hundred times slower.
fn padded(d: usize) -> usize {
    d.next_multiple_of(8)
}

fn transposed(basis: MatRef<'_, f64>) -> Mat<f64> {
    let d = basis.ncols();
    Mat::from_fn(padded(d), basis.nrows(), |i, j| if i < d { basis[(j, i)] } else { 0.0 })
}

impl Operator {
    /// From sums over all cuts of a pair: C_ao = ÛᵀΣ̂_{T,ao,H}B.
    pub(crate) fn of(sums: &PairSums, bases: &Bases) -> Operator {
        let (d_t, d_h, d) = (bases.u.nrows(), bases.b.nrows(), bases.u.ncols());
        let joint = MatRef::from_column_major_slice(&sums.joint, d_t, d_h);
        let matrix = bases.u.transpose() * (joint * &bases.b);
        let state = bases.u.transpose() * MatRef::from_column_major_slice(&sums.tests, d_t, 1);
        // The null test always succeeds, so its row is Σ χ_t.
        let readout = joint.subrows(NULL_TEST, 1) * &bases.b;
        Operator {
            matrix: (0..d).flat_map(|j| matrix.col_as_slice(j).to_vec()).collect(),
            state: state.col_as_slice(0).to_vec(),
            readout: (0..d).map(|j| readout[(0, j)]).collect(),
            weight: sums.weight,
        }
    }

    fn add(&mut self, features: &Features, batch: &Batch<'_>, places: &[Place], ut: MatRef<'_, f64>, bt: MatRef<'_, f64>) {
        let d = self.state.len();
        let entry = |place: &Place, f: &mut dyn FnMut(usize, f64)| features.each_test_entry(batch, place.at + 1, place.end, f);
        let fill = |place: &Place, out: &mut [f64]| features.fill_tests(batch, place.at + 1, place.end, out);
        let x = project(&features.tests, places, ut, entry, fill);
        let entry = |place: &Place, f: &mut dyn FnMut(usize, f64)| features.each_history_entry(batch, *place, f);
        let fill = |place: &Place, out: &mut [f64]| features.fill_histories(batch, *place, out);
        let mut y = project(&features.histories, places, bt, entry, fill);
        for (j, place) in places.iter().enumerate() {
            self.weight += place.weight;
            let x = x.col_as_slice(j);
            self.state.iter_mut().zip(x).for_each(|(s, x)| *s += place.weight * x);
            let y = y.col_as_slice_mut(j);
            if place.weight != 1.0 {
                y.iter_mut().for_each(|y| *y *= place.weight);
            }
            self.readout.iter_mut().zip(y).for_each(|(r, y)| *r += *y);
        }
        let sum = MatMut::from_column_major_slice_mut(&mut self.matrix, d, d);
        matmul(sum, Accum::Add, &x, y.transpose(), 1.0, Par::Seq);
    }
}

/// basis · [features of each place], d × places: by rows of the basis where columns are sparse, by a product where dense.
fn project(
    side: &Side,
    places: &[Place],
    basis: MatRef<'_, f64>,
    entries: impl Fn(&Place, &mut dyn FnMut(usize, f64)),
    fill: impl Fn(&Place, &mut [f64]),
) -> Mat<f64> {
    let mut out = Mat::zeros(basis.nrows(), places.len());
    if side.is_hash() || side.is_identity() {
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
