//! Logs in K parts: each is held out in turn, and the others are learned from.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::data::{Action, ActionObservation, Alphabet, Episodes, Fingerprints, Observation, Translation};
use crate::error::{Error, Result};
use crate::learn::{Features, Side, Survey, empty_batch, first_alphabet, refuse_no_rewards, rule};
use crate::log::Logs;
use crate::model::{Counter, LearnParams, NGram, NGramStep, Projection, unseen};
use crate::rng::Seed;

/// The largest number of steps held in memory (about 200 MiB); of longer logs only the first ones
/// are used.
const MOST_STEPS: u64 = 1 << 22;
/// Steps of the first part on which many candidates are compared. All are compared on the same
/// episodes, so that common noise cancels.
const SAMPLED: usize = 20_000;

/// Estimates: operations per entry of a scattered sum, and per cubed dimension in solving; matrices
/// of that dimension held at once; and the dimension without compression.
const SCATTERED: f64 = 20.0;
const CUBIC: f64 = 12.0;
const MATRICES: f64 = 16.0;
const UNCOMPRESSED: f64 = 1000.0;

/// Logs in memory, in parts that can each be held out, with what candidates share: the symbols and
/// pairs of the other parts, and the predictions of their n-gram for each held-out step.
pub struct Folds {
    pub(super) alphabet: Alphabet,
    pub(super) parts: Vec<Vec<Episodes>>,
    pub(super) folds: Vec<Fold>,
    /// Episodes in all parts.
    pub episodes: u64,
    /// Steps in all parts.
    pub steps: u64,
    /// Bad episodes that were dropped.
    pub skipped: u64,
    /// Whether the logs contain more than is held.
    pub is_cut: bool,
}

/// One part held out.
pub(super) struct Fold {
    /// The symbols of the other parts.
    pub(super) alphabet: Alphabet,
    /// The pairs of the other parts, in the alphabet of all, sorted.
    pub(super) pairs: Vec<ActionObservation>,
    /// The same in the alphabet of the other parts.
    pub(super) own_pairs: Vec<ActionObservation>,
    pub(super) pair_counts: Vec<u64>,
    pub(super) longest_truncated: Option<usize>,
    /// Episodes and steps of the other parts.
    pub(super) trained_on: (u64, u64),
    pub(super) unseen: f64,
    pub(super) held_out: Vec<HeldOut>,
}

/// An episode in the alphabet of the other parts, and the predictions of their n-gram.
pub(super) struct HeldOut {
    pub(super) steps: Vec<ActionObservation>,
    pub(super) given: Vec<NGramStep>,
}

/// What is held out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Some episodes of the first part: enough to separate good candidates from bad.
    Sample,
    /// Every part in turn.
    All,
}

/// Parts of which each is held out in turn, at most.
const MOST_FOLDS: usize = 1000;

impl Folds {
    /// Reads logs into `parts` parts of the same number of episodes, drawn with the seed of
    /// `params`. Where episodes have groups, those of a group are in one part, and parts have the same
    /// number of groups.
    pub fn read(logs: &Logs, params: &LearnParams, parts: usize) -> Result<Folds> {
        if parts < 2 {
            return Err(Error::parameter("folds", parts, "must be at least 2"));
        }
        if parts > MOST_FOLDS {
            return Err(Error::parameter("folds", parts, format!("must be at most {MOST_FOLDS}: each is a model of its own")));
        }
        let mut reader = logs.open(first_alphabet(params))?;
        let mut batches: Vec<Vec<Episodes>> = vec![Vec::new(); parts];
        let (mut episodes, mut steps) = (0, 0);
        let mut draw = Draw::new(Seed(params.seed).stream("folds"), parts);
        let mut is_cut = false;
        let (mut groups, mut units): (FxHashMap<Arc<str>, usize>, u64) = Default::default();
        for z in reader.by_ref() {
            let z = z?;
            if steps + z.steps.len() as u64 > MOST_STEPS && episodes > 0 {
                is_cut = true;
                break;
            }
            let mut drawn = || {
                units += 1;
                draw.next()
            };
            let part = &mut batches[match &z.about.group {
                Some(group) => *groups.entry(group.clone()).or_insert_with(drawn),
                None => drawn(),
            }];
            if part.last().is_none_or(Episodes::is_full) {
                part.push(empty_batch(params.weighting));
            }
            part.last_mut().expect("there is one now").push(&z, 1.0)?;
            episodes += 1;
            steps += z.steps.len() as u64;
        }
        let (skipped, alphabet) = (reader.skipped(), reader.into_alphabet());
        if steps == 0 {
            return Err(Error::NoSteps);
        }
        if !groups.is_empty() && units < parts as u64 {
            let problem = format!("groups of episodes in the logs: {units}, too few to hold out one of {parts} parts of them");
            return Err(Error::data(problem, "give more groups, fewer folds, or no `group`"));
        }
        if episodes < 2 * parts as u64 {
            let problem = format!("episodes in the logs: {episodes}, too few to hold out one of {parts} parts of them");
            return Err(Error::data(problem, "give more episodes, or fewer folds"));
        }
        refuse_no_rewards(&alphabet)?;
        let survey = |batches: &Vec<Episodes>| {
            let mut survey = Survey::new(alphabet.clone(), params.ngram_length);
            batches.iter().for_each(|batch| survey.add(&alphabet, batch));
            survey
        };
        let surveys: Vec<Survey> = batches.par_iter().map(survey).collect();
        let fold = |held: usize| Fold::new(&alphabet, &surveys, &batches[held], held);
        let folds = (0..parts).into_par_iter().map(fold).collect();
        Ok(Folds { alphabet, parts: batches, folds, episodes, steps, skipped, is_cut })
    }

    /// The numbers of the parts that a fold is learned from.
    pub(super) fn training(&self, fold: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.parts.len()).filter(move |&part| part != fold)
    }

    /// The folds that are scored, each with its episodes.
    pub(super) fn scored(&self, held: Held) -> Vec<(usize, Vec<&HeldOut>)> {
        match held {
            Held::All => self.folds.iter().map(|fold| fold.held_out.iter().collect()).enumerate().collect(),
            Held::Sample => {
                let all = &self.folds[0].held_out;
                let steps: usize = all.iter().map(|z| z.steps.len()).sum();
                vec![(0, all.iter().step_by(steps.div_ceil(SAMPLED).max(1)).collect())]
            }
        }
    }

    /// The lengths of the episodes that are scored.
    pub fn lengths(&self, held: Held) -> Vec<usize> {
        self.scored(held).iter().flat_map(|(_, episodes)| episodes.iter().map(|z| z.steps.len())).collect()
    }
}

/// Estimates of the cost of a candidate.
impl Folds {
    /// The length of the longest episode.
    pub(super) fn longest(&self) -> usize {
        self.parts.iter().flatten().flat_map(Episodes::iter).map(|z| z.steps.len()).max().unwrap_or(0)
    }

    /// The number of sequences of an uncompressed side, counted up to `most`; 0 if both are
    /// compressed.
    pub(super) fn words(&self, params: &LearnParams, most: usize) -> usize {
        let mut features = Features::new(params, &self.alphabet);
        let words = |features: &Features| {
            let of = |side: &Side| if side.is_identity() { side.rows() } else { 0 };
            of(&features.tests).max(of(&features.histories))
        };
        if words(&features) == 0 {
            return 0;
        }
        for episodes in self.parts.iter().flatten() {
            let batch = features.batch(episodes, rule(params, None));
            features.learn_words(&batch, false);
            if words(&features) > most {
                break;
            }
        }
        words(&features)
    }

    /// The approximate number of operations of a configuration, with all its ranks.
    pub(super) fn cost(&self, params: &LearnParams, ranks: &[usize], held: Held) -> f64 {
        let [d_t, d_h] = [(params.test_projection, params.test_dim), (params.history_projection, params.history_dim)]
            .map(|(projection, dim)| if projection == Projection::Identity { UNCOMPRESSED } else { dim as f64 });
        let is_dense = |projection: Projection| !projection.is_hash() && projection != Projection::Identity;
        let steps = self.steps as f64;
        let passes = match is_dense(params.test_projection) || is_dense(params.history_projection) {
            true => steps * (d_t + d_h).powi(2),
            false => steps * SCATTERED * (1 + params.max_test_length) as f64 * (2 + params.history_length) as f64,
        };
        let largest = ranks.iter().copied().max().unwrap_or(1) as f64;
        let solve = CUBIC * d_t.max(d_h).powi(3);
        let operators = steps * 4.0 * largest * largest;
        let symbols = self.alphabet.observations().len() as f64;
        let filter: f64 = ranks.iter().map(|&d| 2.0 * d as f64 * (d as f64 + symbols)).sum();
        let (folds, scored) = match held {
            Held::All => (self.parts.len() as f64, steps),
            Held::Sample => (1.0, steps.min(SAMPLED as f64)),
        };
        passes + folds * (solve + operators) + scored * filter
    }

    /// The approximate memory of a configuration, in bytes.
    pub(super) fn bytes(&self, params: &LearnParams, ranks: &[usize]) -> f64 {
        let largest = ranks.iter().copied().max().unwrap_or(1) as f64;
        let pairs = self.folds[0].pairs.len() as f64;
        MATRICES * 8.0 * (params.test_dim.max(params.history_dim) as f64).powi(2) + 3.0 * 8.0 * pairs * largest * largest
    }
}

/// Assigns episodes to parts: in each round one to every part, in random order.
pub(super) struct Draw {
    seed: Seed,
    parts: usize,
    round: u64,
    order: Vec<usize>,
}

impl Draw {
    pub(super) fn new(seed: Seed, parts: usize) -> Draw {
        Draw { seed, parts, round: 0, order: Vec::new() }
    }

    /// The part of the next episode.
    pub(super) fn next(&mut self) -> usize {
        if self.order.is_empty() {
            let mut rng = self.seed.index(self.round).rng();
            self.order = (0..self.parts).collect();
            (1..self.parts).for_each(|i| self.order.swap(i, rng.below(i + 1)));
            self.round += 1;
        }
        self.order.pop().expect("a round has every part")
    }
}

impl Fold {
    fn new(all: &Alphabet, surveys: &[Survey], batches: &[Episodes], held: usize) -> Fold {
        let mut others = surveys.iter().enumerate().filter(|(part, _)| *part != held).map(|(_, survey)| survey);
        let mut training = others.next().expect("there are at least two parts").clone();
        others.for_each(|survey| {
            training.merge(survey);
        });
        let pairs = training.pairs();
        let alphabet = alphabet_of(all, &pairs);
        let names = Translation::between(all, &alphabet);
        // A symbol that is held out alone is beyond the alphabet.
        let own_observation = |o: Observation| match o.is_missing() {
            true => o,
            false => names.observation(o).unwrap_or(Observation::UNKNOWN),
        };
        let own = |ao: ActionObservation| ActionObservation {
            action: names.action(ao.action).unwrap_or(Action(u32::MAX)),
            observation: own_observation(ao.observation),
        };
        let own_pairs: Vec<ActionObservation> = pairs.iter().map(|&ao| own(ao)).collect();
        let mut counter = Counter::new(training.counter.length());
        counter.merge(&training.counter, |o| names.observation(o).expect("it was counted in training"));
        let counts = &training.counts;
        let mut symbols = vec![0; alphabet.observations().len()];
        own_pairs.iter().zip(&pairs).for_each(|(own, ao)| symbols[own.observation.index()] += counts[ao]);
        let (ngram, unseen): (NGram, f64) = (counter.finish(), unseen(&symbols));
        let fingerprints = Fingerprints::of(&alphabet);
        let held_out = batches.iter().flat_map(Episodes::iter).map(|z| {
            let steps: Vec<_> = z.steps.iter().map(|&ao| own(ao)).collect();
            HeldOut { given: NGramStep::of(&ngram, &fingerprints, unseen, &steps), steps }
        });
        let held_out = held_out.collect();
        Fold {
            pair_counts: pairs.iter().map(|ao| counts[ao]).collect(),
            longest_truncated: training.longest_truncated,
            trained_on: (training.episodes, training.steps),
            alphabet,
            pairs,
            own_pairs,
            unseen,
            held_out,
        }
    }
}

/// The alphabet of some pairs, in the order of that of all: sorted pairs stay sorted.
fn alphabet_of(all: &Alphabet, pairs: &[ActionObservation]) -> Alphabet {
    let mut alphabet = if all.observes_rewards() { Alphabet::observing_rewards() } else { Alphabet::default() };
    let (mut actions, mut observations) = (vec![false; all.actions().len()], vec![false; all.observations().len()]);
    for ao in pairs {
        actions[ao.action.index()] = true;
        observations[ao.observation.index()] = true;
    }
    for (name, _) in all.actions().iter().zip(&actions).filter(|(_, seen)| **seen) {
        alphabet.intern_action(name);
    }
    for (symbol, _) in all.observations().iter().zip(&observations).filter(|(_, seen)| **seen) {
        alphabet.intern(&symbol.name, symbol.terminal);
    }
    alphabet
}
