//! The result of the first pass over the logs: alphabet, counts, n-gram. All of it adds up over
//! logs.

use rustc_hash::FxHashMap;

use crate::data::{ActionObservation, Alphabet, CutRule, End, Episodes, Fingerprints, Overlap, Translation};
use crate::model::{Counter, Cuts, LearnParams, Origin};

/// Counts over the logs read so far.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    pub(crate) alphabet: Alphabet,
    pub(crate) episodes: u64,
    pub(crate) steps: u64,
    pub(crate) skipped: u64,
    /// How often each pair occurred.
    pub(crate) counts: FxHashMap<ActionObservation, u64>,
    pub(crate) longest_truncated: Option<usize>,
    pub(crate) overlap: Overlap,
    pub(crate) counter: Counter,
}

impl Survey {
    /// No counts yet, over an alphabet that may already have symbols.
    pub(crate) fn new(alphabet: Alphabet, ngram_length: usize) -> Survey {
        Survey {
            alphabet,
            episodes: 0,
            steps: 0,
            skipped: 0,
            counts: FxHashMap::default(),
            longest_truncated: None,
            overlap: Overlap::default(),
            counter: Counter::new(ngram_length),
        }
    }

    /// Adds a batch, whose symbols are in `alphabet`.
    pub(crate) fn add(&mut self, alphabet: &Alphabet, batch: &Episodes) {
        self.counter.add(&Fingerprints::of(alphabet), batch);
        let seen = batch.steps().iter().filter(|ao| !ao.observation.is_missing());
        seen.for_each(|&ao| *self.counts.entry(ao).or_insert(0) += 1);
        let truncated = batch.iter().filter(|z| z.end == End::Truncated).map(|z| z.steps.len());
        self.longest_truncated = self.longest_truncated.max(truncated.max());
        self.overlap.merge(batch.overlap());
        self.episodes += batch.len() as u64;
        self.steps += batch.steps().len() as u64;
        if self.alphabet != *alphabet {
            self.alphabet = alphabet.clone();
        }
    }

    /// Adds the counts of other logs; returns the translation of their symbols.
    pub(crate) fn merge(&mut self, other: &Survey) -> Translation {
        let translation = Translation::adding(&other.alphabet, &mut self.alphabet);
        for (&ao, n) in &other.counts {
            let count = self.counts.entry(translation.known_pair(ao)).or_insert(0);
            *count = count.saturating_add(*n);
        }
        self.counter.merge(&other.counter, |o| translation.observation(o).expect("it was added"));
        self.longest_truncated = self.longest_truncated.max(other.longest_truncated);
        self.overlap.merge(&other.overlap);
        let sums = [(&mut self.episodes, other.episodes), (&mut self.steps, other.steps), (&mut self.skipped, other.skipped)];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        translation
    }

    /// The pairs seen, sorted.
    pub(crate) fn pairs(&self) -> Vec<ActionObservation> {
        let mut pairs: Vec<_> = self.counts.keys().copied().collect();
        pairs.sort_unstable();
        pairs
    }

    /// The origin of a model that is learned from these logs.
    pub(crate) fn origin(&self, params: &LearnParams) -> Origin {
        let pairs = self.pairs();
        Origin {
            params: params.clone(),
            episodes: self.episodes,
            steps: self.steps,
            skipped: self.skipped,
            pair_counts: pairs.iter().map(|ao| self.counts[ao]).collect(),
            pairs,
            encoding: None,
            schema: Default::default(),
            digest: Default::default(),
            note: None,
        }
    }

    /// Which cuts of the episodes are used.
    pub(crate) fn rule(&self, params: &LearnParams) -> CutRule {
        rule(params, self.longest_truncated)
    }
}

/// Which cuts are used, given the length of the longest truncated episode.
pub(crate) fn rule(params: &LearnParams, longest_truncated: Option<usize>) -> CutRule {
    match params.cuts {
        Cuts::Complete => CutRule { room: params.max_test_length, limit: longest_truncated },
        Cuts::Ragged => CutRule::RAGGED,
    }
}
