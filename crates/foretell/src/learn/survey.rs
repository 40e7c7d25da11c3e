//! What the first look at the logs tells: alphabet, counts, n-gram. All of it adds up over logs.

use rustc_hash::FxHashMap;

use crate::data::{ActionObservation, Alphabet, CutRule, End, Episodes, Fingerprints, Overlap, Translation};
use crate::model::{Counter, Cuts, LearnParams, Origin};

/// What was met.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    pub(crate) alphabet: Alphabet,
    pub(crate) episodes: u64,
    pub(crate) steps: u64,
    pub(crate) skipped: u64,
    /// How often each pair was met.
    pub(crate) counts: FxHashMap<ActionObservation, u64>,
    pub(crate) longest_truncated: Option<usize>,
    pub(crate) overlap: Overlap,
    pub(crate) counter: Counter,
}

impl Survey {
    /// Nothing met, over an alphabet that may know something.
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

    /// Takes a batch in; `alphabet` knows its symbols.
    pub(crate) fn add(&mut self, alphabet: &Alphabet, batch: &Episodes) {
        self.counter.add(&Fingerprints::of(alphabet), batch);
        batch.steps().iter().for_each(|&ao| *self.counts.entry(ao).or_insert(0) += 1);
        let truncated = batch.iter().filter(|z| z.end == End::Truncated).map(|z| z.steps.len());
        self.longest_truncated = self.longest_truncated.max(truncated.max());
        self.overlap.merge(batch.overlap());
        self.episodes += batch.len() as u64;
        self.steps += batch.steps().len() as u64;
        if self.alphabet != *alphabet {
            self.alphabet = alphabet.clone();
        }
    }

    /// Takes in what was met elsewhere; returns what its symbols are here.
    pub(crate) fn merge(&mut self, other: &Survey) -> Translation {
        let translation = Translation::adding(&other.alphabet, &mut self.alphabet);
        for (&ao, n) in &other.counts {
            *self.counts.entry(translation.known_pair(ao)).or_insert(0) += n;
        }
        self.counter.merge(&other.counter, |o| translation.observation(o).expect("it was added"));
        self.longest_truncated = self.longest_truncated.max(other.longest_truncated);
        self.overlap.merge(&other.overlap);
        self.episodes += other.episodes;
        self.steps += other.steps;
        self.skipped += other.skipped;
        translation
    }

    /// The pairs met, sorted.
    pub(crate) fn pairs(&self) -> Vec<ActionObservation> {
        let mut pairs: Vec<_> = self.counts.keys().copied().collect();
        pairs.sort_unstable();
        pairs
    }

    /// Where a model of it comes from.
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
        }
    }

    /// Which cuts of the episodes are used.
    pub(crate) fn rule(&self, params: &LearnParams) -> CutRule {
        rule(params, self.longest_truncated)
    }
}

/// Which cuts are used where the longest truncated episode is so long.
pub(crate) fn rule(params: &LearnParams, longest_truncated: Option<usize>) -> CutRule {
    match params.cuts {
        Cuts::Complete => CutRule { room: params.max_test_length, limit: longest_truncated },
        Cuts::Ragged => CutRule::RAGGED,
    }
}
