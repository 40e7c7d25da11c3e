//! How few of the tests ever follow a history: the sparsity on which compression rests [H14 §3.1,
//! §4.2].
//!
//! Sequences are identified by 64-bit hashes of their names, without any projection. If there are
//! too many to hold, columns are dropped by their hashes, half of them at a time: the rest are
//! counted in full, and are an unbiased sample however logs are split. The empty suffix, with which
//! every history ends, does not count as a history here.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::data::{Alphabet, CutRule, EMPTY, Episodes, extend, mix};
use crate::learn::Features;
use crate::model::{History, LearnParams, Projection};

/// The largest number of entries of a matrix in memory (about 100 MB).
const MOST_ENTRIES: usize = 1 << 21;

/// How sparse the observable matrices are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sparsity {
    /// |T|, tests observed; an estimate if `exact` is false.
    pub tests: u64,
    /// |H|, histories observed, including the empty one; an estimate if `exact` is false.
    pub histories: u64,
    /// Action–observation pairs observed.
    pub pairs: u64,
    /// P_{T,H}: which tests follow which history.
    pub joint: MatrixSparsity,
    /// P_{T,ao,H} of all pairs together: which tests follow which history and next step.
    pub with_next: MatrixSparsity,
    /// Whether everything was counted; if not, a sample of the columns was.
    pub exact: bool,
    /// The largest variance of an entry of P̂_{T,H}, P̂_{T,ao,H} and P̂_H (σ²_x, σ²_y, σ²_z of
    /// Theorems 1 and 2), over the columns counted.
    pub variances: [f64; 3],
}

/// How sparse the columns of a matrix are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MatrixSparsity {
    /// Columns, one for each history (and pair).
    pub columns: u64,
    /// Columns that have a non-zero.
    pub nonzero_columns: u64,
    /// Columns that were counted.
    pub counted: u64,
    /// Non-zeros of a column that has any, on average.
    pub mean: f64,
    /// k: the largest number of non-zeros of any column counted.
    pub largest: u64,
    /// Non-zeros as a share of all entries: the average column sparsity.
    pub share: f64,
}

impl Sparsity {
    /// The largest number of non-zeros of any column counted: k of the theorems.
    pub fn k(&self) -> u64 {
        self.joint.largest.max(self.with_next.largest)
    }

    /// The larger of the two mean numbers of non-zeros of a column that has any.
    pub fn mean(&self) -> f64 {
        self.joint.mean.max(self.with_next.mean)
    }
}

/// Running counts.
pub(super) struct Counter {
    features: Features,
    rule: CutRule,
    tests: Distinct,
    joint: Columns,
    with_next: Columns,
    histories: Columns,
}

impl Counter {
    pub(super) fn new(params: &LearnParams, alphabet: &Alphabet, rule: CutRule) -> Counter {
        // Hashing projections identify sequences by hashes; only these are used.
        let hashed = Projection::SignedHash;
        let params = LearnParams { test_projection: hashed, history_projection: hashed, ..params.clone() };
        let [joint, with_next, histories] = [0; 3].map(|_| Columns::new(MOST_ENTRIES));
        Counter {
            features: Features::new(&params, alphabet),
            rule,
            tests: Distinct::new(MOST_ENTRIES),
            joint,
            with_next,
            histories,
        }
    }

    pub(super) fn add(&mut self, episodes: &Episodes) {
        let batch = self.features.batch(episodes, self.rule);
        let (mut histories, mut tests, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for place in batch.cuts() {
            [&mut histories, &mut tests, &mut after].into_iter().for_each(Vec::clear);
            if place.at == place.first {
                histories.push(EMPTY);
            }
            self.features.each_history(&batch, place, |key| histories.push(key));
            self.features.each_test(&batch, place.at, place.end, |key, _| tests.push(key));
            self.features.each_test(&batch, place.at + 1, place.end, |key, _| after.push(key));
            tests.iter().chain(&after).for_each(|&test| self.tests.add(test));
            for &history in &histories {
                self.histories.add(history, &[EMPTY]);
                self.joint.add(history, &tests);
                // The test of one step names the next pair.
                self.with_next.add(extend(history, tests[0]), &after);
            }
        }
    }

    pub(super) fn finish(self, pairs: usize, episodes: u64, history: History) -> Sparsity {
        let (tests, histories, pairs) = (self.tests.count(), self.joint.columns(), pairs as u64);
        let variance = |columns: &Columns| columns.largest_variance(episodes, history);
        Sparsity {
            tests,
            histories,
            pairs,
            joint: self.joint.sparsity(histories, tests),
            with_next: self.with_next.sparsity(histories * pairs, tests),
            exact: [self.joint.zeros, self.with_next.zeros, self.tests.zeros].iter().all(|&zeros| zeros == 0),
            variances: [&self.joint, &self.with_next, &self.histories].map(variance),
        }
    }
}

/// Whether a key is in a sample of one in 2^zeros.
fn is_in(key: u64, zeros: u32) -> bool {
    mix(key).trailing_zeros() >= zeros
}

/// The number of distinct keys.
pub(super) struct Distinct {
    most: usize,
    pub(super) zeros: u32,
    keys: FxHashSet<u64>,
}

impl Distinct {
    pub(super) fn new(most: usize) -> Distinct {
        Distinct { most, zeros: 0, keys: FxHashSet::default() }
    }

    pub(super) fn add(&mut self, key: u64) {
        if is_in(key, self.zeros) && self.keys.insert(key) && self.keys.len() > self.most {
            self.zeros += 1;
            self.keys.retain(|&key| is_in(key, self.zeros));
        }
    }

    pub(super) fn count(&self) -> u64 {
        (self.keys.len() as u64) << self.zeros
    }
}

/// The count of each entry of a matrix, for a sample of the columns.
pub(super) struct Columns {
    most: usize,
    pub(super) zeros: u32,
    /// (column, row) ↦ count
    pub(super) entries: FxHashMap<(u64, u64), u32>,
}

impl Columns {
    pub(super) fn new(most: usize) -> Columns {
        Columns { most, zeros: 0, entries: FxHashMap::default() }
    }

    pub(super) fn add(&mut self, column: u64, rows: &[u64]) {
        if !is_in(column, self.zeros) {
            return;
        }
        for &row in rows {
            let count = self.entries.entry((column, row)).or_insert(0);
            *count = count.saturating_add(1);
        }
        while self.entries.len() > self.most {
            self.zeros += 1;
            self.entries.retain(|&(column, _), _| is_in(column, self.zeros));
        }
    }

    /// Non-zeros of each column that has any.
    fn lengths(&self) -> FxHashMap<u64, u64> {
        let mut lengths = FxHashMap::default();
        self.entries.keys().for_each(|&(column, _)| *lengths.entry(column).or_insert(0) += 1);
        lengths
    }

    /// How many columns have a non-zero.
    fn columns(&self) -> u64 {
        (self.lengths().len() as u64) << self.zeros
    }

    pub(super) fn sparsity(&self, columns: u64, tests: u64) -> MatrixSparsity {
        let lengths = self.lengths();
        let counted = lengths.len() as u64;
        let (nonzero_columns, mean) = (counted << self.zeros, self.entries.len() as f64 / counted.max(1) as f64);
        MatrixSparsity {
            columns,
            nonzero_columns,
            counted,
            mean,
            largest: lengths.into_values().max().unwrap_or(0),
            share: mean * nonzero_columns as f64 / (columns.max(1) as f64 * tests.max(1) as f64),
        }
    }

    /// The largest variance of an estimated probability: p(1 − p)/n of a share of the episodes;
    /// where an episode may count several times, as with suffixes, that of a Poisson number, p/n.
    fn largest_variance(&self, episodes: u64, history: History) -> f64 {
        let n = episodes.max(1) as f64;
        let variance = |&count: &u32| match (f64::from(count) / n, history) {
            (p, History::Prefix) => (p * (1.0 - p)).max(0.0) / n,
            (p, History::Suffix) => p / n,
        };
        self.entries.values().map(variance).fold(0.0, f64::max)
    }
}
