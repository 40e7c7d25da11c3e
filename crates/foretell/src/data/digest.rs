//! Which episodes a model was learned from: hashes of them, bounded in number.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sequence::{EMPTY, Fingerprints, extend, mix};
use super::symbols::Alphabet;
use super::trajectory::{End, Trajectory};
use crate::error::{Error, Result};

/// Most hashes that are kept: 48 KiB in a file. Of more episodes, those with the smallest hashes are
/// kept, which is a random sample of the distinct ones that does not depend on their order and whose
/// union with another is again one.
const KEPT: usize = 4096;

/// Standard deviations above what is expected by chance from which on episodes count as known. The
/// number of chance matches is about Poisson.
const BEYOND_CHANCE: f64 = 3.0;

/// The same from which on learning from them is refused, which chance should never lead to.
const FAR_BEYOND_CHANCE: f64 = 5.0;

/// Hashes of episodes, by names of symbols, rewards and how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Hash ↦ how often an episode with it occurred.
    counts: BTreeMap<u64, u32>,
}

/// How many of some episodes were learned from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "Report")]
pub struct LearnedFrom {
    /// Episodes that could be compared: all, or a sample if the model was learned from many.
    pub episodes: u64,
    /// How many of them were learned from.
    pub found: u64,
    /// How many would be found by chance, because short episodes repeat.
    pub by_chance: f64,
}

/// The serialised form of [`LearnedFrom`].
#[derive(Serialize)]
struct Report {
    episodes: u64,
    found: u64,
    by_chance: f64,
    warning: Option<String>,
}

impl From<LearnedFrom> for Report {
    fn from(known: LearnedFrom) -> Report {
        let LearnedFrom { episodes, found, by_chance } = known;
        Report { episodes, found, by_chance, warning: known.warning() }
    }
}

/// Computes hashes while an alphabet grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct EpisodeKeys {
    fingerprints: Fingerprints,
}

impl EpisodeKeys {
    /// The hash of an episode over that alphabet, which may have grown since the last one.
    pub(crate) fn key(&mut self, alphabet: &Alphabet, z: &Trajectory) -> u64 {
        if self.fingerprints.sizes() != (alphabet.actions().len(), alphabet.observations().len()) {
            self.fingerprints.extend_without_rewards(alphabet);
        }
        let steps = z.steps.iter().enumerate().fold(EMPTY, |key, (t, &ao)| {
            let reward = z.rewards.get(t).copied().flatten().map_or(u64::MAX, |reward| (reward + 0.0).to_bits());
            extend(extend(key, self.fingerprints.pair_or_unknown(ao)), mix(reward))
        });
        extend(steps, u64::from(z.end == End::Terminated))
    }
}

impl Digest {
    /// The digest of episodes over an alphabet. They may have symbols beyond it, which are all the
    /// same.
    pub fn of<'z>(alphabet: &Alphabet, episodes: impl IntoIterator<Item = &'z Trajectory>) -> Digest {
        let (mut digest, mut keys) = (Digest::default(), EpisodeKeys::default());
        episodes.into_iter().for_each(|z| digest.add(keys.key(alphabet, z), 1));
        digest
    }

    pub(crate) fn add(&mut self, key: u64, count: u32) {
        let n = self.counts.entry(key).or_default();
        *n = n.saturating_add(count);
        if self.counts.len() > KEPT {
            self.counts.pop_last();
        }
    }

    /// Adds the episodes of another digest.
    pub fn merge(&mut self, other: &Digest) {
        other.counts.iter().for_each(|(&key, &count)| self.add(key, count));
    }

    /// Adds the episodes of another digest, which may be the same ones: each is counted once.
    pub(crate) fn unite(&mut self, other: &Digest) {
        for (&key, &count) in &other.counts {
            let known = self.counts.get(&key).copied().unwrap_or(0);
            if count > known {
                self.add(key, count - known);
            }
        }
    }

    /// Whether nothing is known of the episodes.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The hashes in ascending order, and how often each occurred.
    pub(crate) fn to_arrays(&self) -> (Vec<u64>, Vec<u32>) {
        self.counts.iter().map(|(&key, &count)| (key, count)).unzip()
    }

    /// The inverse of [`to_arrays`](Self::to_arrays); `None` for arrays that it does not return.
    pub(crate) fn from_arrays(keys: &[u64], counts: &[u32]) -> Option<Digest> {
        let fits = keys.len() == counts.len() && keys.len() <= KEPT && keys.is_sorted_by(|x, y| x < y);
        (fits && !counts.contains(&0)).then(|| Digest { counts: keys.iter().copied().zip(counts.iter().copied()).collect() })
    }

    /// Begins to compare other episodes with it; `None` if it is empty.
    pub(crate) fn comparison(&self) -> Option<LearnedFrom> {
        (!self.is_empty()).then_some(LearnedFrom { episodes: 0, found: 0, by_chance: 0.0 })
    }

    /// Takes an episode into account in a comparison.
    pub(crate) fn compare(&self, key: u64, with: &mut LearnedFrom) {
        let is_sampled = self.counts.len() < KEPT || self.counts.last_key_value().is_some_and(|(&last, _)| key <= last);
        if is_sampled {
            with.episodes += 1;
            with.found += u64::from(self.counts.contains_key(&key));
            with.by_chance += self.repeated();
        }
    }

    /// How many episodes of another digest it has too.
    pub fn shared_with(&self, other: &Digest) -> LearnedFrom {
        let last = |digest: &Digest| match digest.counts.last_key_value() {
            Some((&last, _)) if digest.counts.len() == KEPT => last,
            _ => u64::MAX,
        };
        let sampled = other.counts.range(..=last(self).min(last(other)));
        let (mut episodes, mut found) = (0, 0);
        for (key, &count) in sampled {
            episodes += u64::from(count);
            found += if self.counts.contains_key(key) { u64::from(count) } else { 0 };
        }
        LearnedFrom { episodes, found, by_chance: episodes as f64 * self.repeated().max(other.repeated()) }
    }

    /// An error if episodes of another digest are known and would count twice.
    pub fn refuse_again(&self, other: &Digest) -> Result<()> {
        let shared = self.shared_with(other);
        if !shared.is_again() {
            return Ok(());
        }
        let problem = format!("{} of {} episodes were learned from before, and would count twice", shared.found, shared.episodes);
        Err(Error::data(problem, "leave them out, or say that they are to count `again`"))
    }

    /// The episodes that another digest does not have.
    pub fn without(&self, other: &Digest) -> Digest {
        let new = self.counts.iter().filter(|(key, _)| !other.counts.contains_key(key));
        Digest { counts: new.map(|(&key, &count)| (key, count)).collect() }
    }

    /// The share of its episodes that occurred more than once: about the probability that a new
    /// episode is the same as one of them by chance.
    fn repeated(&self) -> f64 {
        let all: f64 = self.counts.values().map(|&n| f64::from(n)).sum();
        let again: f64 = self.counts.values().filter(|&&n| n > 1).map(|&n| f64::from(n)).sum();
        again / all.max(1.0)
    }

    /// How many of these episodes it contains; `None` if it is empty.
    pub fn learned_from<'z>(
        &self,
        alphabet: &Alphabet,
        episodes: impl IntoIterator<Item = &'z Trajectory>,
    ) -> Option<LearnedFrom> {
        let (mut comparison, mut keys) = (self.comparison()?, EpisodeKeys::default());
        episodes.into_iter().for_each(|z| self.compare(keys.key(alphabet, z), &mut comparison));
        Some(comparison)
    }
}

impl LearnedFrom {
    /// Whether more episodes were found than chance explains.
    pub fn is_beyond_chance(&self) -> bool {
        self.found as f64 > self.by_chance + BEYOND_CHANCE * self.by_chance.sqrt() + 0.5
    }

    /// Whether they would count twice if they were learned from again: far more of them than chance
    /// explains were, or all.
    pub fn is_again(&self) -> bool {
        let is_most = self.found as f64 > self.by_chance + FAR_BEYOND_CHANCE * self.by_chance.max(1.0).sqrt();
        let is_all = self.found == self.episodes && self.found as f64 > 2.0 * self.by_chance;
        self.found > 0 && (is_most || is_all)
    }

    /// A warning, if more episodes were found than chance explains.
    pub fn warning(&self) -> Option<String> {
        self.is_beyond_chance().then(|| {
            let sampled = "of these episodes were learned from";
            format!("{} of {} {sampled}: they do not show how good it is on new ones", self.found, self.episodes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::symbols::ActionObservation;

    fn episode(symbols: &[u32], end: End) -> Trajectory {
        let steps: Vec<_> = symbols.iter().map(|&o| ActionObservation::new(0, o)).collect();
        Trajectory { rewards: vec![None; steps.len()], steps, action_probabilities: vec![], end, about: Default::default() }
    }

    fn alphabet(names: &[&str]) -> Alphabet {
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("go");
        names.iter().for_each(|name| {
            alphabet.intern_observation(name);
        });
        alphabet
    }

    #[test]
    fn an_episode_is_recognised_in_any_alphabet() {
        let (one, other) = (alphabet(&["x", "y"]), alphabet(&["y", "x", "z"]));
        let digest = Digest::of(&one, &[episode(&[0, 1, 1], End::Truncated)]);
        let found = |symbols: &[u32], end| digest.learned_from(&other, &[episode(symbols, end)]).unwrap().found;
        assert_eq!(found(&[1, 0, 0], End::Truncated), 1);
        assert_eq!(found(&[1, 0, 0], End::Terminated) + found(&[1, 0, 2], End::Truncated) + found(&[0, 1, 1], End::Truncated), 0);
        assert_eq!(found(&[9, 0, 0], End::Truncated), 0, "a symbol beyond the alphabet");
        assert_eq!(Digest::default().learned_from(&other, &[]), None);
    }

    #[test]
    fn what_is_learned_from_again_is_told_from_what_repeats() {
        let names = alphabet(&["x", "y"]);
        let bits = |i: u32, n: u32| (0..n).map(|bit| i >> bit & 1).collect::<Vec<u32>>();
        let of = |numbers: std::ops::Range<u32>, n| {
            let episodes: Vec<Trajectory> = numbers.map(|i| episode(&bits(i, n), End::Truncated)).collect();
            Digest::of(&names, &episodes)
        };
        let first = of(0..1000, 12);
        assert!(first.shared_with(&of(0..1000, 12)).is_again(), "the same log");
        assert!(first.shared_with(&of(900..3000, 12)).is_again(), "a log that begins with the end of the other");
        assert!(!first.shared_with(&of(1000..2000, 12)).is_again(), "another log");
        assert!(of(7..8, 12).shared_with(&of(7..8, 12)).is_again(), "a single episode");
        let short = |seed: u32| {
            Digest::of(
                &names,
                &(0..1000).map(|i| episode(&bits(mix(u64::from(i + seed)) as u32, 2), End::Truncated)).collect::<Vec<_>>(),
            )
        };
        assert!(!short(0).shared_with(&short(5000)).is_again(), "episodes of two steps repeat by chance");
        assert_eq!(of(0..3, 12).without(&of(1..9, 12)), of(0..1, 12));
    }

    #[test]
    fn a_union_of_samples_is_the_sample_of_the_union() {
        let keys: Vec<u64> = (0..3 * KEPT as u64).map(mix).collect();
        let of = |keys: &[u64]| {
            let mut digest = Digest::default();
            keys.iter().for_each(|&key| digest.add(key, 1));
            digest
        };
        let (mut first, second) = (of(&keys[..2 * KEPT]), of(&keys[KEPT / 2..]));
        first.merge(&second);
        let (all, counts) = of(&keys).to_arrays();
        assert_eq!((first.to_arrays().0, all.len()), (all.clone(), KEPT));
        assert_eq!(Digest::from_arrays(&all, &counts), Some(of(&keys)));
        assert_eq!(Digest::from_arrays(&all, &counts[1..]), None);
        // A sample says as much of those it could have contained.
        let mut comparison = of(&keys).comparison().unwrap();
        let sample = of(&keys);
        (0..6 * KEPT as u64).map(mix).for_each(|key| sample.compare(key, &mut comparison));
        let share = comparison.found as f64 / comparison.episodes as f64;
        // Half of them are in it: within five standard deviations of a share of about 8000.
        assert!((share - 0.5).abs() < 5.0 * (0.25 / comparison.episodes as f64).sqrt(), "{comparison:?}");
    }

    #[test]
    fn short_episodes_that_repeat_by_chance_are_no_reason_to_warn() {
        let alphabet = alphabet(&["x", "y"]);
        let bit = |i: u32, k: u32| i >> k & 1;
        let short: Vec<_> = (0..64).map(|i| episode(&[bit(i, 0), bit(i, 1)], End::Truncated)).collect();
        let long: Vec<_> = (0..64).map(|i| episode(&[0, 1, 2, 3, 4, 5].map(|k| bit(i, k)), End::Truncated)).collect();
        let warns = |episodes: &[Trajectory], others: &[Trajectory]| {
            Digest::of(&alphabet, episodes).learned_from(&alphabet, others).unwrap().warning()
        };
        assert_eq!(warns(&short, &short), None);
        assert_eq!(warns(&long[..32], &long[32..]), None);
        assert!(warns(&long[..33], &long[32..]).unwrap().starts_with("1 of 32 of these episodes were learned from"));
    }
}
