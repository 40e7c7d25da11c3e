//! Σ̂_{T,ao,H} of each pair. With them operators need no second pass over the logs, and those of
//! other logs can be added.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::features::{Batch, Cut, Features};
use crate::data::ActionObservation;

/// The index of the sums of each pair.
pub(super) type Slots = FxHashMap<ActionObservation, usize>;

/// Up to this d_T·d_H the sums of hashed columns are arrays; above it most entries would be zero.
const LARGEST_ARRAY: usize = 1 << 14;
/// Cuts gathered for one product.
const GATHERED: usize = 512;
/// Bytes that an entry of a map takes on average: key, value and a share of empty slots.
const ENTRY: usize = 26;
/// The column of Σ ψ_{t+1} in a map.
pub(super) const TESTS: u32 = u32::MAX;

/// The cuts of a batch, grouped by the slot of their next step.
pub(super) fn grouped(batch: &Batch<'_>, slots: &Slots, places: impl Iterator<Item = Cut>) -> Vec<Vec<Cut>> {
    let mut groups = vec![Vec::new(); slots.len()];
    places.for_each(|place| groups[slots[&batch.steps[place.at]]].push(place));
    groups
}

/// Sums over the cuts whose next step is a given pair, in units of
/// [`Side::scales`](crate::learn::features::Side::scales).
#[derive(Clone, Debug)]
pub(crate) struct PairSums {
    pub(crate) entries: Entries,
    /// Number of cuts (or their weight).
    pub(crate) weight: f64,
}

/// Σ ψ_{t+1} χ_tᵀ, followed by the column Σ ψ_{t+1}.
#[derive(Clone, Debug)]
pub(crate) enum Entries {
    /// d_T × (d_H + 1) by columns
    Array(Vec<f64>),
    /// column · 2³² + row ↦ value
    Map(FxHashMap<u64, f64>),
}

/// Sums for each pair.
#[derive(Clone, Debug)]
pub(crate) struct PerPair {
    pub(crate) slots: Slots,
    pub(crate) sums: Vec<PairSums>,
    is_array: bool,
}

/// Number of entries in the sums of a pair if they are an array; `None` if they are a map.
pub(super) fn array_size(features: &Features) -> Option<usize> {
    let (tests, histories) = (&features.tests, &features.histories);
    let is_hashed = tests.is_hash() && histories.is_hash();
    let is_dense = !(tests.is_identity() || histories.is_identity() || is_hashed);
    let is_small = is_hashed && tests.rows() * histories.rows() <= LARGEST_ARRAY;
    (is_dense || is_small).then(|| tests.rows() * (histories.rows() + 1))
}

impl PerPair {
    pub(crate) fn new(features: &Features) -> PerPair {
        PerPair { slots: Slots::default(), sums: Vec::new(), is_array: array_size(features).is_some() }
    }

    /// From a file: the sums of each of some pairs, all of them different.
    pub(crate) fn from_sums(features: &Features, pairs: &[ActionObservation], sums: Vec<PairSums>) -> PerPair {
        PerPair { slots: pairs.iter().copied().zip(0..).collect(), sums, ..PerPair::new(features) }
    }

    /// Allocates the sums of pairs.
    pub(crate) fn reserve(&mut self, features: &Features, pairs: &[ActionObservation]) {
        for &ao in pairs {
            let next = self.sums.len();
            if *self.slots.entry(ao).or_insert(next) == next {
                let entries = match array_size(features) {
                    Some(size) if self.is_array => Entries::Array(vec![0.0; size]),
                    _ => Entries::Map(FxHashMap::default()),
                };
                self.sums.push(PairSums { entries, weight: 0.0 });
            }
        }
    }

    /// The sums of a pair, if it was seen in training.
    pub(crate) fn of(&self, ao: ActionObservation) -> Option<&PairSums> {
        self.slots.get(&ao).map(|&slot| &self.sums[slot])
    }

    /// Approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of = |sums: &PairSums| match &sums.entries {
            Entries::Array(array) => 8 * array.len(),
            Entries::Map(map) => ENTRY * map.len(),
        };
        self.sums.iter().map(of).sum()
    }

    /// Adds the cuts of a batch, a task for each pair.
    pub(crate) fn add(&mut self, features: &Features, batch: &Batch<'_>) {
        let groups = grouped(batch, &self.slots, batch.cuts());
        let is_sparse = !(features.tests.is_dense() || features.histories.is_dense());
        self.sums.par_iter_mut().zip(&groups).filter(|(_, places)| !places.is_empty()).for_each(|(sums, places)| {
            for place in places {
                sums.weight += place.weight * batch.ratio(place.at);
            }
            match &mut sums.entries {
                Entries::Array(array) if !is_sparse => {
                    places.chunks(GATHERED).for_each(|places| add_product(array, features, batch, places));
                }
                entries => add_entries(entries, features, batch, places),
            }
        });
    }
}

fn add_product(sums: &mut [f64], features: &Features, batch: &Batch<'_>, places: &[Cut]) {
    let (d_t, d_h) = (features.tests.rows(), features.histories.rows());
    let mut psi = vec![0.0; d_t * places.len()];
    // χ with a 1 appended, for Σ ψ.
    let mut chi = vec![1.0; (d_h + 1) * places.len()];
    for ((psi, chi), place) in psi.chunks_exact_mut(d_t).zip(chi.chunks_exact_mut(d_h + 1)).zip(places) {
        features.fill_tests(batch, place.at + 1, place.end, psi);
        features.fill_histories(batch, *place, &mut chi[..d_h]);
        let weight = place.weight * batch.ratio(place.at);
        if weight != 1.0 {
            psi.iter_mut().for_each(|x| *x *= weight);
        }
    }
    let (psi, chi) =
        (MatRef::from_column_major_slice(&psi, d_t, places.len()), MatRef::from_column_major_slice(&chi, d_h + 1, places.len()));
    let sums = MatMut::from_column_major_slice_mut(sums, d_t, d_h + 1);
    matmul(sums, Accum::Add, psi, chi.transpose(), 1.0, Par::Seq);
}

fn add_entries(sums: &mut Entries, features: &Features, batch: &Batch<'_>, places: &[Cut]) {
    let (d_t, d_h) = (features.tests.rows(), features.histories.rows());
    let (mut psi, mut chi) = (Vec::new(), Vec::new());
    let mut buffer = Vec::new();
    for place in places {
        let weight = place.weight * batch.ratio(place.at);
        features.sparse_tests(batch, place.at + 1, place.end, &mut buffer, &mut psi);
        features.sparse_histories(batch, *place, &mut buffer, &mut chi);
        for &(h, x) in chi.iter().chain([&(TESTS, 1.0)]) {
            match sums {
                Entries::Array(array) => {
                    let first = if h == TESTS { d_h * d_t } else { h as usize * d_t };
                    let column = &mut array[first..first + d_t];
                    psi.iter().for_each(|&(t, y)| column[t as usize] += weight * x * y);
                }
                Entries::Map(map) => {
                    psi.iter().for_each(|&(t, y)| *map.entry(key(t, h)).or_insert(0.0) += weight * x * y);
                }
            }
        }
    }
}

pub(super) fn key(row: u32, column: u32) -> u64 {
    u64::from(column) << 32 | u64::from(row)
}

/// Row and column of a key.
pub(super) fn place(key: u64) -> (u32, u32) {
    (key as u32, (key >> 32) as u32)
}

/// Whether the row and column of a key exist.
pub(super) fn is_within(key: u64, features: &Features) -> bool {
    let (t, h) = place(key);
    (t as usize) < features.tests.rows() && ((h as usize) < features.histories.rows() || h == TESTS)
}

impl Entries {
    /// Adds the entries of another, whose rows and columns `rename` maps to ours.
    pub(crate) fn merge(&mut self, other: &Entries, rename: impl Fn(u32, u32) -> (u32, u32)) {
        match (self, other) {
            (Entries::Array(ours), Entries::Array(theirs)) => ours.iter_mut().zip(theirs).for_each(|(x, y)| *x += y),
            (Entries::Map(ours), Entries::Map(theirs)) => {
                for (&entry, y) in theirs {
                    let (t, h) = place(entry);
                    let (t, h) = if h == TESTS { (rename(t, 0).0, h) } else { rename(t, h) };
                    *ours.entry(key(t, h)).or_insert(0.0) += y;
                }
            }
            _ => unreachable!("the same parameters give the same layout"),
        }
    }

    /// The entries of a map, sorted by column and row.
    pub(crate) fn sorted(map: &FxHashMap<u64, f64>) -> Vec<(u64, f64)> {
        let mut entries: Vec<_> = map.iter().map(|(&key, &x)| (key, x)).collect();
        entries.sort_unstable_by_key(|&(key, _)| key);
        entries
    }
}
