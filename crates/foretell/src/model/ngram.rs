//! Back-off n-grams P(o | a, last k pairs) with Witten–Bell smoothing: the baseline for every
//! model, and the fallback of one that fails.
//!
//! P_k(o) = (n(context, o) + T(context)·P_{k−1}(o)) / (n(context) + T(context)), with T the number
//! of distinct observations after the context. The start of an episode counts as a pair of its own
//! in the context.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::data::{Action, ActionObservation, EMPTY, Episodes, Fingerprints, Observation, extend};

/// In a context, stands for the start of an episode.
const START: u64 = 0x5354_4152_5400_0000;
/// In a context, stands for an unknown step: no context extends beyond it.
const GAP: u64 = 0x4741_5000_0000_0000;
/// A level with more counts drops half of its contexts, which bounds memory. Which ones are dropped
/// depends only on their keys. So the counts of the others are complete, and do not depend on how
/// the logs are split.
const MOST_COUNTS: usize = 1 << 21;

/// Counts for contexts of 0, 1, 2, … pairs, while they are being collected.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) levels: Vec<Level>,
    /// Fingerprints of the steps counted last; kept as scratch space.
    pairs: Vec<u64>,
}

/// Counts of observations after the contexts of one length, by context and observation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    pub(crate) length: usize,
    /// Contexts are counted if this many leading bits of their keys are zero.
    pub(crate) zeros: u32,
    pub(crate) counts: FxHashMap<(u64, Observation), u32>,
}

/// The recent past of an episode, as fingerprints of its pairs.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    length: usize,
    pairs: Vec<u64>,
}

impl Past {
    /// At the start of an episode, for contexts of up to `length` pairs.
    pub(crate) fn new(length: usize) -> Past {
        Past { length, pairs: vec![START] }
    }

    pub(crate) fn reset(&mut self) {
        self.pairs.clear();
        self.pairs.push(START);
    }

    pub(crate) fn push(&mut self, f: &Fingerprints, ao: ActionObservation) {
        self.push_pair(f.pair(ao));
    }

    /// One pair more than contexts need is kept, to know whether they are the whole history.
    fn push_pair(&mut self, pair: u64) {
        self.pairs.push(pair);
        if self.pairs.len() > 4 * (self.length + 1) {
            self.pairs.drain(..self.pairs.len() - (self.length + 1));
        }
    }

    /// Adds a step if its symbols are known, otherwise a gap.
    pub(crate) fn push_if(&mut self, known: bool, f: &Fingerprints, ao: ActionObservation) {
        if known { self.push(f, ao) } else { self.push_gap() }
    }

    /// Adds an unknown step.
    pub(crate) fn push_gap(&mut self) {
        self.push_pair(GAP);
    }

    /// Whether the longest context is the whole history, back to the start of the episode.
    fn is_whole(&self) -> bool {
        self.pairs.len() <= self.length && !self.pairs.contains(&GAP)
    }

    /// Keys of the contexts of the next step, shortest first: the action alone, then with 1, 2, …
    /// pairs of the past.
    fn contexts(&self, f: &Fingerprints, a: Action) -> impl Iterator<Item = u64> {
        let bare = bare(f, a);
        let pairs = self.pairs.iter().rev().take(self.length).take_while(|&&pair| pair != GAP);
        std::iter::once(bare).chain(pairs.scan(bare, |key, &pair| {
            *key = extend(*key, pair);
            Some(*key)
        }))
    }
}

impl Counter {
    pub(crate) fn new(length: usize) -> Counter {
        let levels = (0..=length).map(|length| Level { length, ..Level::default() });
        Counter { levels: levels.collect(), pairs: Vec::new() }
    }

    /// Longest context, in pairs.
    pub(crate) fn length(&self) -> usize {
        self.levels.len() - 1
    }

    /// Counts every step of the episodes. Fingerprints must cover their symbols.
    pub(crate) fn add(&mut self, f: &Fingerprints, episodes: &Episodes) {
        self.add_at_most(MOST_COUNTS, f, episodes);
    }

    /// Counts some steps of an episode, after their contexts in the whole episode.
    pub(crate) fn add_range(&mut self, f: &Fingerprints, steps: &[ActionObservation], range: Range<usize>) {
        let Counter { levels, pairs } = self;
        pairs.clear();
        pairs.extend(steps.iter().map(|&ao| f.pair(ao)));
        for level in levels {
            level.add(f, steps, pairs, range.clone());
            level.shrink(MOST_COUNTS);
        }
    }

    fn add_at_most(&mut self, most: usize, f: &Fingerprints, episodes: &Episodes) {
        let Counter { levels, pairs } = self;
        pairs.clear();
        pairs.extend(episodes.steps().iter().map(|&ao| f.pair(ao)));
        levels.par_iter_mut().for_each(|level| {
            let mut rest = &pairs[..];
            for z in episodes.iter() {
                let (past, others) = rest.split_at(z.steps.len());
                level.add(f, z.steps, past, 0..z.steps.len());
                rest = others;
            }
            level.shrink(most);
        });
    }

    /// Adds the counts of another, whose observations `translate` renames.
    pub(crate) fn merge(&mut self, other: &Counter, translate: impl Fn(Observation) -> Observation) {
        self.merge_at_most(MOST_COUNTS, other, translate);
    }

    fn merge_at_most(&mut self, most: usize, other: &Counter, translate: impl Fn(Observation) -> Observation) {
        for (level, other) in self.levels.iter_mut().zip(&other.levels) {
            level.zeros = level.zeros.max(other.zeros);
            let zeros = level.zeros;
            level.counts.retain(|(context, _), _| begins_with_zeros(*context, zeros));
            for (&(context, o), n) in other.counts.iter().filter(|((context, _), _)| begins_with_zeros(*context, zeros)) {
                let count = level.counts.entry((context, translate(o))).or_insert(0);
                *count = count.saturating_add(*n);
            }
            level.shrink(most);
        }
    }

    pub(crate) fn finish(&self) -> NGram {
        let length = self.levels.len() - 1;
        let all = self.levels.iter().flat_map(|level| &level.counts);
        let mut counts: Vec<_> = all.map(|(&key, &n)| (key, n)).collect();
        counts.sort_unstable();
        let (mut keys, mut start) = (Vec::new(), vec![0]);
        for context in counts.chunk_by(|((x, _), _), ((y, _), _)| x == y) {
            keys.push(context[0].0.0);
            start.push(start[start.len() - 1] + context.len() as u32);
        }
        keys.shrink_to_fit();
        start.shrink_to_fit();
        let (symbols, counts) = counts.into_iter().map(|((_, o), n)| (o.0, n)).unzip();
        NGram { length, keys, start, symbols, counts }
    }
}

impl Level {
    /// Counts the steps `range` of an episode, whose fingerprints are `pairs`.
    fn add(&mut self, f: &Fingerprints, steps: &[ActionObservation], pairs: &[u64], range: Range<usize>) {
        // After t steps, preceded by the start, a context can have up to t + 1 pairs.
        let begin = range.start.max(self.length.saturating_sub(1));
        let is_missing = |step: &ActionObservation| step.observation.is_missing();
        // The first step whose context reaches no further back than the last missing observation.
        let mut complete = steps[..begin.min(steps.len())].iter().rposition(is_missing).map_or(0, |last| last + 1 + self.length);
        for t in begin..range.end {
            if is_missing(&steps[t]) {
                complete = t + 1 + self.length;
            }
            if t < complete {
                continue;
            }
            let past = pairs[..t].iter().rev().copied().chain([START]).take(self.length);
            let context = past.fold(bare(f, steps[t].action), extend);
            if begins_with_zeros(context, self.zeros) {
                let count = self.counts.entry((context, steps[t].observation)).or_insert(0);
                *count = count.saturating_add(1);
            }
        }
    }

    /// Drops contexts until there are at most `most` counts.
    fn shrink(&mut self, most: usize) {
        while self.counts.len() > most {
            self.zeros += 1;
            self.counts.retain(|(context, _), _| begins_with_zeros(*context, self.zeros));
        }
    }
}

#[inline(always)]
fn begins_with_zeros(key: u64, zeros: u32) -> bool {
    key.leading_zeros() >= zeros
}

/// The key of an action with an empty context.
fn bare(f: &Fingerprints, a: Action) -> u64 {
    extend(EMPTY, f.action(a))
}

/// Counts of what followed a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Followers {
    /// How often the observation in question did.
    pub(crate) given: f64,
    /// How often any observation did.
    pub(crate) all: f64,
    /// How many distinct observations did: T.
    pub(crate) types: f64,
}

/// A trained back-off n-gram.
#[derive(Clone, Debug, PartialEq)]
pub struct NGram {
    /// Longest context, in pairs.
    pub(crate) length: usize,
    /// Key of each context, in ascending order.
    pub(crate) keys: Vec<u64>,
    /// Where the counts of each context start, followed by the end of the last.
    pub(crate) start: Vec<u32>,
    pub(crate) symbols: Vec<u32>,
    pub(crate) counts: Vec<u32>,
}

impl NGram {
    /// Longest context, in pairs.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Turns `p`, the distribution to back off to, into P(o | a, past) for every o, with contexts of
    /// up to `length` pairs.
    pub(crate) fn smooth(&self, f: &Fingerprints, past: &Past, length: usize, a: Action, p: &mut [f64]) {
        for key in past.contexts(f, a).take(length.saturating_add(1)) {
            let Some(range) = self.counts_of(key) else { break };
            let types = range.len() as f64;
            self.add_counts(range, types, p);
        }
    }

    /// [`smooth`](Self::smooth) and [`weigh_whole_history`](Self::weigh_whole_history) for one
    /// observation: the smoothed `p`, and what followed the whole history, if that history was
    /// counted.
    pub(crate) fn of_one(&self, f: &Fingerprints, past: &Past, ao: ActionObservation, mut p: f64) -> (f64, Option<Followers>) {
        let counts = |key: u64| {
            let range = self.counts_of(key)?;
            let given = range.clone().find(|&i| self.symbols[i] == ao.observation.0).map_or(0, |i| self.counts[i]);
            let all = self.counts[range.clone()].iter().map(|&n| f64::from(n)).sum::<f64>();
            Some(Followers { given: f64::from(given), all, types: range.len() as f64 })
        };
        for key in past.contexts(f, ao.action) {
            let Some(Followers { given, all, types }) = counts(key) else { break };
            p = p * (types / (types + all)) + given / (types + all);
        }
        let whole = past.is_whole().then(|| past.contexts(f, ao.action).last()).flatten();
        (p, whole.and_then(counts))
    }

    /// Uses `p` as the prior of the observation after the whole history, if that history was
    /// counted. It counts as `strength(T)` observations, with T the number of distinct observations
    /// after the history.
    ///
    /// Unlike the counts of a shorter context, these counts estimate exactly the wanted
    /// distribution.
    pub(crate) fn weigh_whole_history(
        &self,
        f: &Fingerprints,
        past: &Past,
        a: Action,
        strength: impl Fn(f64) -> f64,
        p: &mut [f64],
    ) {
        let key = past.is_whole().then(|| past.contexts(f, a).last()).flatten();
        if let Some(range) = key.and_then(|key| self.counts_of(key)) {
            let seen: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= seen);
            let strength = strength(range.len() as f64);
            self.add_counts(range, strength, p);
            p.iter_mut().for_each(|p| *p *= seen);
        }
    }

    fn counts_of(&self, key: u64) -> Option<Range<usize>> {
        let context = self.keys.binary_search(&key).ok()?;
        Some(self.start[context] as usize..self.start[context + 1] as usize)
    }

    /// p(o) ↦ (n(o) + strength·p(o)) / (n + strength)
    fn add_counts(&self, range: Range<usize>, strength: f64, p: &mut [f64]) {
        let total = strength + self.counts[range.clone()].iter().map(|&n| f64::from(n)).sum::<f64>();
        p.iter_mut().for_each(|p| *p *= strength / total);
        for i in range {
            p[self.symbols[i] as usize] += f64::from(self.counts[i]) / total;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Alphabet, End, Trajectory};

    fn alphabet() -> Alphabet {
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("a");
        ["x", "y"].iter().for_each(|name| {
            alphabet.intern_observation(name);
        });
        alphabet
    }

    fn episode(symbols: &[u32]) -> Episodes {
        let steps: Vec<_> = symbols.iter().map(|&o| ActionObservation::new(0, o)).collect();
        let z = Trajectory {
            rewards: vec![None; steps.len()],
            steps,
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        };
        let mut episodes = Episodes::default();
        episodes.push(&z, 1.0).unwrap();
        episodes
    }

    #[test]
    fn witten_bell_agrees_with_its_formula_by_hand() {
        let f = Fingerprints::of(&alphabet());
        let mut counter = Counter::new(1);
        counter.add(&f, &episode(&[0, 0, 1])); // after start: x; after x: x, y
        let ngram = counter.finish();
        let mut past = Past::new(1);
        let mut p = [0.5, 0.5];
        ngram.smooth(&f, &past, usize::MAX, Action(0), &mut p);
        // k = 0: n(x) = 2, n(y) = 1, T = 2: (2 + 2·½)/5, (1 + 2·½)/5; k = 1 after start, only x,
        // T = 1: (1 + .6)/2, .4/2
        assert!((p[0] - 0.8).abs() < 1e-15 && (p[1] - 0.2).abs() < 1e-15, "{p:?}");
        past.push(&f, ActionObservation::new(0, 0));
        let mut p = [0.5, 0.5];
        ngram.smooth(&f, &past, usize::MAX, Action(0), &mut p); // after x, T = 2: (1 + 2·.6)/4, (1 + 2·.4)/4
        assert!((p[0] - 0.55).abs() < 1e-15 && (p[1] - 0.45).abs() < 1e-15, "{p:?}");
    }

    /// Which contexts are dropped depends only on their keys, so no way of splitting the logs
    /// changes the others.
    #[test]
    fn counters_that_overflow_count_the_same_however_logs_are_split() {
        let f = Fingerprints::of(&alphabet());
        let mut rng = crate::Seed(5).rng();
        let all: Vec<Episodes> =
            (0..120).map(|_| episode(&(0..9).map(|_| u32::from(rng.uniform() < 0.4)).collect::<Vec<_>>())).collect();
        for most in [2, 7, 12, 40, 1000] {
            let count = |part: &[Episodes]| {
                let mut counter = Counter::new(5);
                part.iter().for_each(|z| counter.add_at_most(most, &f, z));
                counter
            };
            let whole = count(&all);
            let dropped = whole.levels.iter().filter(|level| level.zeros > 0).count();
            assert!(whole.levels.iter().all(|level| level.counts.len() <= most));
            assert!(if most == 1000 { dropped == 0 } else { dropped > 0 }, "{most}: {dropped} levels dropped contexts");
            for parts in [1, 2, 3, 7, 60] {
                let mut counters = all.chunks(all.len() / parts).map(count).collect::<Vec<_>>();
                if parts % 2 == 1 {
                    counters.reverse();
                }
                let mut merged = counters.remove(0);
                counters.iter().for_each(|other| merged.merge_at_most(most, other, |o| o));
                for (merged, whole) in merged.levels.iter().zip(&whole.levels) {
                    assert_eq!((merged.zeros, &merged.counts), (whole.zeros, &whole.counts), "at most {most} in {parts} parts");
                }
            }
        }
    }

    #[test]
    fn an_unseen_or_unknown_context_backs_off() {
        let f = Fingerprints::of(&alphabet());
        let mut counter = Counter::new(3);
        counter.add(&f, &episode(&[0, 0, 0]));
        let ngram = counter.finish();
        let smooth = |past: &Past| {
            let mut p = [0.5, 0.5];
            ngram.smooth(&f, past, usize::MAX, Action(0), &mut p);
            p
        };
        let (mut unseen, mut gap) = (Past::new(3), Past::new(3));
        unseen.push(&f, ActionObservation::new(0, 1));
        gap.push_gap();
        let bare = smooth(&Past::new(0));
        assert_eq!(smooth(&unseen), bare);
        assert_eq!(smooth(&gap), bare);
        assert_ne!(smooth(&Past::new(3)), bare);
    }
}
