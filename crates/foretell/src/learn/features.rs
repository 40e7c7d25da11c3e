//! The features of a cut: ψ (tests that succeed) and χ (histories that end there), summed over
//! sequences.
//!
//! The double sum over T × H of [H14 §3.2.1] is bilinear, so columns are summed first:
//! Σ̂_TH = Σ ψ_t χ_tᵀ.
//!
//! ψ_t = [1 | Σ_l φ_T(ao_{t+1..t+l})]: the null test, which always succeeds, has a coordinate of
//! its own. So Σ̂_H is the first row of Σ̂_TH, and a symbol that ends the episode has a probability.
//!
//! χ_t = [specials | Σ φ_H(histories)]: see [`Features::specials`].

use std::ops::Range;

use crate::data::{ActionObservation, Alphabet, CutRule, EMPTY, Episodes, Fingerprints, Vocabulary, extend};
use crate::model::{Columns, History, LearnParams, Projection, Start, Weighting};
use crate::rng::Seed;

/// Row of the null test in ψ.
pub(crate) const NULL_TEST: usize = 0;

/// The trajectories of one batch laid end to end, with what the features of all cuts share.
pub(crate) struct Batch<'e> {
    pub(crate) steps: &'e [ActionObservation],
    /// Fingerprint of each step.
    pairs: Vec<u64>,
    /// Key of the history that ends before each step (prefix histories only).
    prefixes: Vec<u64>,
    /// ρ of each step: the probability of its action under a uniformly random policy, divided by
    /// its probability under the behaviour policy. Empty where steps are not weighted.
    ratios: Vec<f64>,
    pub(crate) episodes: Vec<EpisodeCuts>,
}

/// One trajectory of a [`Batch`], or some of its cuts.
#[derive(Clone, Debug)]
pub(crate) struct EpisodeCuts {
    pub(crate) first: usize,
    pub(crate) end: usize,
    /// The cuts, by the number of steps before them.
    pub(crate) cuts: Range<usize>,
    pub(crate) weight: f64,
}

/// A cut of a [`Batch`]: the history is `first..at`, tests start at `at`, and the episode ends at
/// `end`.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) first: usize,
    pub(crate) at: usize,
    pub(crate) end: usize,
    pub(crate) weight: f64,
}

/// Where the histories and the tests of one summand ψχᵀ are taken from: the same cut, except in
/// shuffled sums.
#[derive(Clone, Copy)]
pub(crate) struct Pairing {
    pub(crate) history: Cut,
    pub(crate) tests: Cut,
}

impl Pairing {
    /// The past and the future of the same cut.
    pub(crate) fn of(cut: Cut) -> Pairing {
        Pairing { history: cut, tests: cut }
    }
}

impl Batch<'_> {
    /// ρ of a step.
    #[inline(always)]
    pub(crate) fn ratio(&self, at: usize) -> f64 {
        self.ratios.get(at).copied().unwrap_or(1.0)
    }

    /// The cuts of all episodes, in order.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = Cut> + '_ {
        self.episodes.iter().flat_map(EpisodeCuts::cuts)
    }
}

impl EpisodeCuts {
    pub(crate) fn cuts(&self) -> impl Iterator<Item = Cut> + use<> {
        let EpisodeCuts { first, end, weight, .. } = *self;
        (first + self.cuts.start..first + self.cuts.end).map(move |at| Cut { first, at, end, weight })
    }
}

/// One side (tests or histories): special coordinates, then the columns of Φ.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) specials: usize,
    pub(crate) columns: Columns,
    /// The sequences seen so far, for the identity projection.
    pub(crate) vocabulary: Vocabulary,
}

impl Side {
    fn new(projection: Projection, dim: usize, specials: usize, seed: Seed) -> Side {
        let columns = Columns::new(projection, dim, seed);
        Side { specials, columns, vocabulary: Vocabulary::default() }
    }

    /// Length of a feature vector.
    pub(crate) fn rows(&self) -> usize {
        self.specials + if self.is_identity() { self.vocabulary.len() } else { self.columns.dim() }
    }

    /// The factor of each coordinate that turns sums of columns into a feature vector.
    pub(crate) fn scales(&self) -> Vec<f64> {
        let scale = self.columns.scale();
        (0..self.rows()).map(|i| if i < self.specials { 1.0 } else { scale }).collect()
    }

    pub(crate) fn is_identity(&self) -> bool {
        self.columns.projection() == Projection::Identity
    }

    /// Whether most coordinates of a column are not zero.
    pub(crate) fn is_dense(&self) -> bool {
        !self.is_hash() && !self.is_identity()
    }

    pub(crate) fn is_hash(&self) -> bool {
        self.columns.projection().is_hash()
    }

    /// The row and value of a column that has a single non-zero.
    #[inline(always)]
    pub(crate) fn entry(&self, key: u64) -> (usize, f64) {
        if self.is_identity() {
            return (self.specials + key as usize - 1, 1.0);
        }
        let (bucket, sign) = self.columns.bucket(key);
        (self.specials + bucket, sign)
    }

    /// The key of a sequence one step longer; `None` if the identity projection has no coordinate
    /// for it.
    #[inline(always)]
    fn extend(&self, key: u64, step: ActionObservation, pair: u64) -> Option<u64> {
        if self.is_identity() { self.vocabulary.find(key, step) } else { Some(extend(key, pair)) }
    }
}

/// φ_T and φ_H, and which sequences of a cut they are summed over.
#[derive(Clone, Debug)]
pub(crate) struct Features {
    pub(crate) tests: Side,
    pub(crate) histories: Side,
    max_test_length: usize,
    history: History,
    history_length: usize,
    start: Start,
    weighting: Weighting,
    /// The probability of an action under a uniformly random policy.
    uniform: f64,
    fingerprints: Fingerprints,
}

impl Features {
    pub(crate) fn new(params: &LearnParams, alphabet: &Alphabet) -> Features {
        let seed = Seed(params.seed);
        let specials = if params.history == History::Suffix { 2 } else { 1 };
        Features {
            tests: Side::new(params.test_projection, params.test_dim, 1, seed.stream("projection/tests")),
            histories: Side::new(params.history_projection, params.history_dim, specials, seed.stream("projection/histories")),
            max_test_length: params.max_test_length,
            history: params.history,
            history_length: params.history_length,
            start: params.start,
            weighting: params.weighting,
            uniform: 1.0 / alphabet.actions().len() as f64,
            fingerprints: Fingerprints::of(alphabet),
        }
    }

    /// Changes to an alphabet that has more symbols.
    pub(crate) fn extend_to(&mut self, alphabet: &Alphabet) {
        self.uniform = 1.0 / alphabet.actions().len() as f64;
        self.fingerprints = Fingerprints::of(alphabet);
    }

    /// The coordinate of χ that picks the start state: c₁ = ŜV̂ᵀe, with e the unit vector of this
    /// coordinate.
    pub(crate) fn start_coordinate(&self) -> usize {
        match (self.start, self.history) {
            (Start::Mixed, History::Suffix) => 1,
            _ => 0,
        }
    }

    /// Lays trajectories end to end. Weights scale the contribution of each episode to the sums.
    pub(crate) fn batch<'e>(&mut self, episodes: &'e Episodes, rule: CutRule) -> Batch<'e> {
        self.some_cuts(episodes, |z| (0..rule.count(z.steps.len(), z.end), z.weight))
    }

    /// The same with cuts and weights given for each episode.
    pub(crate) fn some_cuts<'e>(
        &mut self,
        episodes: &'e Episodes,
        cuts: impl Fn(&crate::data::Episode<'_>) -> (Range<usize>, f64),
    ) -> Batch<'e> {
        let steps = episodes.steps();
        let pairs = steps.iter().map(|&ao| self.fingerprints.pair(ao)).collect();
        let ratios = match self.weighting {
            Weighting::None => Vec::new(),
            Weighting::Next | Weighting::Propensity => episodes.probabilities().iter().map(|p| self.uniform / p).collect(),
        };
        let mut batch = Batch { steps, pairs, prefixes: Vec::new(), ratios, episodes: Vec::with_capacity(episodes.len()) };
        let mut first = 0;
        for z in episodes.iter() {
            let end = first + z.steps.len();
            let (cuts, weight) = cuts(&z);
            let ranges = self.complete(z.steps, cuts);
            batch.episodes.extend(ranges.into_iter().map(|cuts| EpisodeCuts { first, end, cuts, weight }));
            first = end;
        }
        if self.history == History::Prefix {
            self.name_prefixes(&mut batch);
        }
        batch
    }

    /// The cuts whose histories, next step and tests contain no missing observation. Each estimate
    /// conditions on the history, so it stays consistent if observations are missing at random.
    fn complete(&self, steps: &[ActionObservation], cuts: Range<usize>) -> Vec<Range<usize>> {
        let missing = || steps.iter().enumerate().filter(|(_, ao)| ao.observation.is_missing()).map(|(t, _)| t);
        let Some(first) = missing().next() else { return vec![cuts] };
        let ahead = self.max_test_length; // and the next step
        let until = |t: usize| t.saturating_sub(ahead);
        if self.history == History::Prefix {
            // One range for each episode, which may be empty.
            let end = cuts.end.min(until(first)).max(cuts.start);
            return std::iter::once(cuts.start..end).collect();
        }
        let mut ranges = Vec::new();
        let mut begin = cuts.start;
        for t in missing() {
            ranges.push(begin..until(t).min(cuts.end));
            begin = begin.max(t + 1 + self.history_length);
        }
        ranges.push(begin..cuts.end);
        ranges.retain(|range| range.start < range.end);
        ranges
    }

    fn name_prefixes(&mut self, batch: &mut Batch<'_>) {
        batch.prefixes.reserve(batch.steps.len());
        for e in &batch.episodes {
            let mut key = EMPTY;
            for at in e.first..e.end {
                batch.prefixes.push(key);
                if !self.histories.is_identity() {
                    key = extend(key, batch.pairs[at]);
                } else if at + 1 < e.first + e.cuts.end {
                    key = self.histories.vocabulary.intern(key, batch.steps[at]);
                }
            }
        }
    }

    /// Adds the tests and suffix histories of the batch's cuts to the vocabularies of identity
    /// projections. With `after_next`, it also adds the tests that follow `next`; those never seen
    /// at a cut have rows of zeros in Σ̂_TH.
    pub(crate) fn learn_words(&mut self, batch: &Batch<'_>, after_next: bool) {
        for cut in batch.cuts() {
            if self.tests.is_identity() {
                self.learn_tests(batch, cut);
            }
            if self.tests.is_identity() && after_next {
                self.learn_tests(batch, Cut { at: cut.at + 1, ..cut });
            }
            if self.histories.is_identity() && self.history == History::Suffix {
                self.learn_suffixes(batch, cut);
            }
        }
    }

    fn learn_tests(&mut self, batch: &Batch<'_>, cut: Cut) {
        let mut node = EMPTY;
        for &step in &batch.steps[cut.at..cut.end.min(cut.at + self.max_test_length)] {
            node = self.tests.vocabulary.intern(node, step);
        }
    }

    fn learn_suffixes(&mut self, batch: &Batch<'_>, cut: Cut) {
        for k in 1..=self.history_length.min(cut.at - cut.first) {
            let mut node = EMPTY;
            for &step in &batch.steps[cut.at - k..cut.at] {
                node = self.histories.vocabulary.intern(node, step);
            }
        }
    }

    /// Calls `f` with the key of every test that succeeds from step `at` on, and with the product
    /// of the ratios of its steps where tests are weighted.
    #[inline(always)]
    pub(crate) fn each_test(&self, batch: &Batch<'_>, at: usize, end: usize, mut f: impl FnMut(u64, f64)) {
        let (mut key, mut weight) = (EMPTY, 1.0);
        for i in at..end.min(at + self.max_test_length) {
            match self.tests.extend(key, batch.steps[i], batch.pairs[i]) {
                Some(longer) => key = longer,
                None => break,
            }
            if self.weighting == Weighting::Propensity {
                weight *= batch.ratio(i);
            }
            f(key, weight);
        }
    }

    /// Calls `f` with the key of every history except the null history that ends before step `at`.
    #[inline(always)]
    pub(crate) fn each_history(&self, batch: &Batch<'_>, cut: Cut, mut f: impl FnMut(u64)) {
        match self.history {
            History::Prefix if cut.at > cut.first => f(batch.prefixes[cut.at]),
            History::Prefix => {}
            History::Suffix => {
                for k in 1..=self.history_length.min(cut.at - cut.first) {
                    let mut steps = cut.at - k..cut.at;
                    if let Some(key) = steps.try_fold(EMPTY, |key, i| self.histories.extend(key, batch.steps[i], batch.pairs[i]))
                    {
                        f(key);
                    }
                }
            }
        }
    }

    /// The special coordinates of χ.
    ///
    /// Prefix histories have one: 1 for the null history if all episodes start in the same state
    /// (`Start::Fixed`), 1 for every history if not (`Start::Mixed`). Suffix histories have both,
    /// in this order, because the empty suffix is a suffix of every history.
    #[inline(always)]
    pub(crate) fn specials(&self, cut: Cut) -> [f64; 2] {
        let at_start = if cut.at == cut.first { 1.0 } else { 0.0 };
        match (self.history, self.start) {
            (History::Prefix, Start::Fixed) => [at_start, 0.0],
            (History::Prefix, Start::Mixed) => [1.0, 0.0],
            (History::Suffix, _) => [at_start, 1.0],
        }
    }

    /// out = ψ of the tests from step `at` on, in units of [`Side::scales`]
    pub(crate) fn fill_tests(&self, batch: &Batch<'_>, at: usize, end: usize, out: &mut [f64]) {
        with_wide_vectors(|| {
            out.fill(0.0);
            out[NULL_TEST] = 1.0;
            let columns = &mut out[self.tests.specials..];
            self.each_test(batch, at, end, |key, weight| self.tests.columns.add(key, weight, columns));
        });
    }

    /// out = χ of the cut, in units of [`Side::scales`]
    pub(crate) fn fill_histories(&self, batch: &Batch<'_>, cut: Cut, out: &mut [f64]) {
        with_wide_vectors(|| {
            out.fill(0.0);
            let (specials, columns) = out.split_at_mut(self.histories.specials);
            specials.copy_from_slice(&self.specials(cut)[..specials.len()]);
            self.each_history(batch, cut, |key| self.histories.columns.add(key, 1.0, columns));
        });
    }

    /// Calls `f` with each non-zero (row, value) of ψ, where columns have a single non-zero.
    #[inline(always)]
    pub(crate) fn each_test_entry(&self, batch: &Batch<'_>, at: usize, end: usize, mut f: impl FnMut(usize, f64)) {
        f(NULL_TEST, 1.0);
        self.each_test(batch, at, end, |key, weight| {
            let (row, value) = self.tests.entry(key);
            f(row, weight * value);
        });
    }

    /// Calls `f` with each non-zero (row, value) of χ, where columns have a single non-zero.
    #[inline(always)]
    pub(crate) fn each_history_entry(&self, batch: &Batch<'_>, cut: Cut, mut f: impl FnMut(usize, f64)) {
        for (row, value) in self.specials(cut).into_iter().enumerate() {
            if value != 0.0 {
                f(row, value);
            }
        }
        self.each_history(batch, cut, |key| {
            let (row, value) = self.histories.entry(key);
            f(row, value);
        });
    }
}

impl Features {
    /// Replaces `out` by the non-zeros of ψ; `buffer` is scratch space.
    pub(crate) fn sparse_tests(
        &self,
        batch: &Batch<'_>,
        at: usize,
        end: usize,
        buffer: &mut Vec<f64>,
        out: &mut Vec<(u32, f64)>,
    ) {
        out.clear();
        if self.tests.is_dense() {
            buffer.resize(self.tests.rows(), 0.0);
            self.fill_tests(batch, at, end, buffer);
            out.extend(non_zeros(buffer));
        } else {
            self.each_test_entry(batch, at, end, |row, value| out.push((row as u32, value)));
        }
    }

    /// Replaces `out` by the non-zeros of χ; `buffer` is scratch space.
    pub(crate) fn sparse_histories(&self, batch: &Batch<'_>, cut: Cut, buffer: &mut Vec<f64>, out: &mut Vec<(u32, f64)>) {
        out.clear();
        if self.histories.is_dense() {
            buffer.resize(self.histories.rows(), 0.0);
            self.fill_histories(batch, cut, buffer);
            out.extend(non_zeros(buffer));
        } else {
            self.each_history_entry(batch, cut, |row, value| out.push((row as u32, value)));
        }
    }
}

fn non_zeros(values: &[f64]) -> impl Iterator<Item = (u32, f64)> {
    (0..).zip(values).filter(|(_, x)| **x != 0.0).map(|(i, &x)| (i, x))
}

/// Runs `work`, compiled for the widest vectors the processor has. All of a feature vector is
/// computed in here, including the parts that need no vectors: switching between old and new
/// instructions costs more than the work itself, because matrix products leave the registers in
/// that state.
#[inline(always)]
fn with_wide_vectors(work: impl FnOnce()) {
    pulp::Arch::new().dispatch(work);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{End, Trajectory};

    #[test]
    fn cuts_split_the_steps_of_each_episode_without_loss() {
        let mut alphabet = Alphabet::default();
        (0..5).for_each(|i| {
            alphabet.intern_action(&i.to_string());
        });
        alphabet.intern_observation("o");
        let mut episodes = Episodes::default();
        for length in [5, 3] {
            let steps = (0..length).map(|i| ActionObservation::new(i, 0)).collect::<Vec<_>>();
            let rewards = vec![None; steps.len()];
            episodes
                .push(
                    &Trajectory { steps, rewards, action_probabilities: vec![], end: End::Truncated, about: Default::default() },
                    1.0,
                )
                .unwrap();
        }
        let mut features = Features::new(&LearnParams::default(), &alphabet);
        let batch = features.batch(&episodes, CutRule { room: 1, limit: None });
        let cuts: Vec<_> = batch.cuts().map(|cut| (cut.first, cut.at, cut.end)).collect();
        assert_eq!(cuts, [(0, 0, 5), (0, 1, 5), (0, 2, 5), (0, 3, 5), (5, 5, 8), (5, 6, 8)]);
        // The history before the cut, the next step at it, and what follows.
        assert!(batch.cuts().all(|cut| batch.steps[cut.at].action.index() == cut.at - cut.first));
    }
}
