//! Statistics of a log, and what looks wrong with it.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashSet, FxHasher};
use serde::Serialize;

use super::likeness::{blanks, constant_columns, look_alikes, parts};
use super::timing::{Timing, TimingTally};
use super::{Logs, Notes};
use crate::data::{ActionObservation, Alphabet, End, Overlap, Propensities, Trajectory};
use crate::error::Result;

/// Statistics of a log, and what looks wrong with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Episodes that were read.
    pub episodes: u64,
    /// Their steps.
    pub steps: u64,
    /// Their lengths; `None` if there are no episodes.
    pub lengths: Option<Lengths>,
    /// Share of the episodes that terminated; the others were truncated.
    pub terminated: f64,
    /// The actions and how often they were taken.
    pub actions: Vec<ActionCount>,
    /// The observations and how often they were seen.
    pub observations: Vec<ObservationCount>,
    /// Episodes in which the action changes.
    pub episodes_with_several_actions: u64,
    /// Number of different action–observation pairs.
    pub distinct_pairs: u64,
    /// Steps whose observation is missing.
    pub missing_observations: u64,
    /// Episodes with several changes that are exact copies of others.
    pub copies: u64,
    /// The action whose probability `action_prob` seems to be in every row, rather than that of the
    /// action taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability_of: Option<String>,
    /// How often only some actions were available, if the logs say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<Availability>,
    /// How actions and observations of neighbouring rows depend on each other; `None` for few rows,
    /// or if observations were shifted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// Symbols with few occurrences.
    pub rare: RareSymbols,
    /// The rewards.
    pub rewards: Rewards,
    /// Whether every step has the probability of its action.
    pub has_action_probabilities: bool,
    /// How far the behaviour policy was from uniformly random, where every step has a probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propensities: Option<Propensities>,
    /// Episodes that were dropped.
    pub skipped: u64,
    /// Why the first of them was.
    pub first_skipped: Option<String>,
    /// The logs are said to have no actions.
    #[serde(skip)]
    only_observed: bool,
    /// Episodes whose names begin or end with a space, and the first of them.
    #[serde(skip)]
    spaced: (u64, Option<String>),
    /// Notes of the reader.
    pub notes: Notes,
    /// What looks wrong or deserves attention, in plain sentences.
    pub findings: Vec<String>,
}

/// Which actions were available.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Availability {
    /// Steps in which only some actions were available.
    pub restricted: u64,
    /// Steps in which only the one that was taken was.
    pub forced: u64,
    /// Mean number of available actions.
    pub mean: f64,
}

/// Lengths of the episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lengths {
    /// Shortest.
    pub min: u64,
    /// Half of the episodes are at most this long.
    pub median: u64,
    /// Steps per episode.
    pub mean: f64,
    /// Longest.
    pub max: u64,
}

/// How often an action was taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionCount {
    /// The action.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// How often an observation was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObservationCount {
    /// The observation.
    pub name: String,
    /// Whether it ended the episode.
    pub terminal: bool,
    /// How often.
    pub count: u64,
}

/// Symbols seen fewer than [`RareSymbols::BELOW`] times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RareSymbols {
    /// How many there are.
    pub count: u64,
    /// The first few.
    pub examples: Vec<String>,
}

impl RareSymbols {
    /// A frequency from fewer than 5 counts has a relative error above 1/√5 = 45 %.
    pub const BELOW: u64 = 5;
    const EXAMPLES: usize = 5;
}

/// The rewards of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rewards {
    /// Steps without one.
    pub missing: u64,
    /// Smallest; like the next three, `None` if no step has a reward.
    pub min: Option<f64>,
    /// Average.
    pub mean: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Share of the rewards that are not zero.
    pub nonzero: Option<f64>,
}

impl Summary {
    /// Reads all of `logs`.
    pub fn of(logs: &Logs) -> Result<Summary> {
        let mut reader = logs.open(Alphabet::default())?;
        let mut tally = Tally::default();
        for trajectory in reader.by_ref() {
            tally.add(&trajectory?);
        }
        let mut summary = tally.summary(reader.alphabet());
        summary.skipped = reader.skipped();
        summary.first_skipped = reader.first_skipped().map(ToString::to_string);
        summary.notes = reader.notes().clone();
        summary.timing = summary.timing.filter(|_| !logs.schema().shift_observation);
        summary.only_observed = logs.schema().action.as_ref().is_some_and(Vec::is_empty);
        summary.findings = summary.find();
        Ok(summary)
    }

    fn find(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let mut say = |when: bool, sentence: String| {
            if when {
                findings.push(sentence);
            }
        };
        let all = self.episodes + self.skipped;
        say(self.episodes == 0, "no episode could be read".into());
        say(self.skipped > 0, format!("{} of {all} episodes were skipped", self.skipped));
        say(self.skipped * 10 > all, "more than 10 % of the episodes were skipped: the rest may not be representative".into());
        if self.episodes > 0 {
            self.find_in_symbols(&mut say);
            self.find_in_rewards(&mut say);
            let single = self.lengths.is_some_and(|lengths| lengths.max == 1);
            let bandit = "every episode has one step: plans take it as the end of the episode (a bandit)";
            say(single && self.terminated == 0.0, bandit.into());
            let short = self.lengths.is_some_and(|lengths| lengths.median == 1) && !single;
            say(short, "at least half of the episodes have one step: is the episode column right?".into());
        }
        if let (spaced, Some(name)) = &self.spaced {
            say(
                true,
                format!(
                    "the names of {spaced} episodes begin or end with a space, such as {name:?}: are they others without it?"
                ),
            );
        }
        say(
            self.copies > 0,
            format!("exact copies among the episodes with {LONG} or more changes: {}; were logs joined twice?", self.copies),
        );
        if let Some(action) = &self.probability_of {
            findings.push(format!(
                "action_prob seems to be the probability of the action {action:?} in every row, not that of the action taken: \
                 with 1 − p in the other rows, the mean of 1/p is about the number of actions; write it so"
            ));
        } else if let Some(p) = self.propensities.filter(Propensities::misses_actions) {
            findings.push(format!(
                "weights 1/(|A|·π) have mean {:.2}, not 1: the policy never takes some actions, or action_prob is wrong; \
                 the effects of actions that were never taken cannot be learned",
                p.mean_weight
            ));
        }
        if let Some(p) = self.propensities.filter(|p| p.are_wrong() && self.probability_of.is_none()) {
            findings.push(format!(
                "weights 1/(|A|·π) have mean {:.2} ± {:.2}, not 1: action_prob is not the probability of the action taken",
                p.mean_weight, p.mean_weight_error
            ));
        }
        findings.extend(self.timing.and_then(|timing| timing.sentence()));
        findings.extend(self.notes.sentences());
        findings
    }

    fn find_in_symbols(&self, say: &mut impl FnMut(bool, String)) {
        let missing = self.missing_observations;
        say(missing > 0, format!("{missing} of {} observations are missing: they are marginalised", self.steps));
        if let ([only], false) = (&self.actions[..], self.only_observed) {
            say(true, format!("there is one action, {:?}: the effects of actions cannot be learned", only.name));
        }
        let is_constant = self.episodes_with_several_actions == 0 && self.actions.len() > 1 && self.steps > self.episodes;
        say(is_constant, "the action never changes within an episode: the effect of a change of action cannot be learned".into());
        let mut names: Vec<_> = self.observations.iter().map(|symbol| &symbol.name).collect();
        names.sort();
        names.dedup();
        if let [only] = names[..] {
            let varies = self.rewards.min != self.rewards.max;
            let but = if varies { " but rewards, which can be made part of it (`observe_reward`)" } else { "" };
            say(true, format!("there is one observation, {only:?}: there is nothing to predict{but}"));
        }
        let symbols = (self.actions.len() + self.observations.len()) as u64;
        let alike = [
            look_alikes("action", self.actions.iter().map(|action| action.name.as_str())),
            look_alikes("observation", names.iter().map(|name| name.as_str())),
            blanks(names.iter().map(|name| name.as_str())),
            constant_columns(names.iter().map(|name| name.as_str())),
            constant_columns(self.actions.iter().map(|action| action.name.as_str())),
        ];
        alike.into_iter().flatten().for_each(|sentence| say(true, sentence));
        say(
            self.rare.count > 0,
            format!(
                "{} of {symbols} symbols were seen fewer than {} times: {}",
                self.rare.count,
                RareSymbols::BELOW,
                self.rare.listed()
            ),
        );
        say(
            self.rare.count * 2 > symbols && symbols > 10,
            format!("most symbols are rare: {}, or log more", widest_part(&names)),
        );
        let decimal =
            names.iter().filter(|name| name.contains('.') && name.parse::<f64>().is_ok_and(|x| x.fract() != 0.0)).count();
        say(
            decimal * 2 > names.len(),
            "most observations look like measurements, not symbols: divide them into bins (`bins`)".into(),
        );
    }

    fn find_in_rewards(&self, say: &mut impl FnMut(bool, String)) {
        let Rewards { missing, min, max, .. } = self.rewards;
        say(missing == self.steps, "there are no rewards: a model can be learned, but there is nothing to plan for".into());
        say(missing > 0 && missing < self.steps, format!("{missing} of {} rewards are missing", self.steps));
        if let (Some(min), Some(max)) = (min, max)
            && min == max
        {
            say(true, if min == 0.0 { "all rewards are zero".into() } else { format!("all rewards are {min}") });
        }
    }
}

/// What to do about observations that take too many values: the column with the most of them.
fn widest_part(names: &[&String]) -> String {
    let values = parts(names.iter().map(|name| name.as_str()));
    match values.iter().max_by_key(|(_, values)| values.len()).filter(|_| values.len() > 1) {
        Some((column, values)) => format!("divide column {column} into fewer bins, it has {} values", values.len()),
        None => "divide the observations into bins (`bins`)".into(),
    }
}

impl RareSymbols {
    fn listed(&self) -> String {
        let dots = if self.count as usize > self.examples.len() { ", …" } else { "" };
        format!("{}{dots}", self.examples.join(", "))
    }
}

/// Episodes with fewer steps that differ from the one before may well be the same by chance.
const LONG: usize = 10;
/// Episodes that are compared for copies at most.
const MOST_DIGESTS: usize = 1 << 20;
/// Relative deviation of the mean of 1/p from the number of actions that is taken for none.
const ABOUT: f64 = 0.1;

/// The counts behind a [`Summary`].
#[derive(Default)]
struct Tally {
    /// Length ↦ episodes.
    lengths: BTreeMap<u64, u64>,
    terminated: u64,
    with_several_actions: u64,
    actions: Vec<u64>,
    observations: Vec<u64>,
    pairs: FxHashSet<ActionObservation>,
    missing: u64,
    steps: u64,
    /// Digests of long episodes, and how many of them are copies.
    digests: FxHashSet<u64>,
    copies: u64,
    /// Of each of the first two actions: Σ 1/p and Σ 1/(1 − p) over its steps.
    inverse: [[f64; 2]; 2],
    overlap: Overlap,
    timing: TimingTally,
    /// Episodes whose names begin or end with a space, and the first of them.
    spaced: (u64, Option<String>),
    /// Steps in which the available actions are known, by their number.
    available: BTreeMap<usize, u64>,
    says_available: bool,
    rewards: u64,
    reward_sum: f64,
    nonzero: u64,
    reward_range: Option<(f64, f64)>,
}

impl Tally {
    fn add(&mut self, trajectory: &Trajectory) {
        let length = trajectory.steps.len() as u64;
        *self.lengths.entry(length).or_default() += 1;
        self.steps += length;
        self.terminated += u64::from(trajectory.end == End::Terminated);
        self.overlap.add(trajectory);
        if let Some(name) = trajectory.about.name.as_deref().filter(|name| name.trim() != *name) {
            self.spaced.0 += 1;
            self.spaced.1.get_or_insert_with(|| name.to_string());
        }
        self.timing.add(trajectory);
        self.says_available |= !trajectory.about.available.is_empty();
        for set in trajectory.about.available.iter().flatten() {
            *self.available.entry(set.len()).or_default() += 1;
        }
        let changes = trajectory.steps.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if changes >= LONG && self.digests.len() < MOST_DIGESTS {
            let mut hasher = FxHasher::default();
            trajectory.steps.hash(&mut hasher);
            trajectory.rewards.iter().for_each(|reward| reward.map(f64::to_bits).hash(&mut hasher));
            self.copies += u64::from(!self.digests.insert(hasher.finish()));
        }
        for (ao, p) in trajectory.steps.iter().zip(&trajectory.action_probabilities) {
            if let Some([of, other]) = self.inverse.get_mut(ao.action.index()) {
                *of += 1.0 / p;
                *other += 1.0 / (1.0 - p);
            }
        }
        self.with_several_actions += u64::from(trajectory.steps.windows(2).any(|pair| pair[0].action != pair[1].action));
        for &step in &trajectory.steps {
            count(&mut self.actions, step.action.0);
            if step.observation.is_missing() {
                self.missing += 1;
                continue;
            }
            count(&mut self.observations, step.observation.0);
            self.pairs.insert(step);
        }
        for &reward in trajectory.rewards.iter().flatten() {
            self.rewards += 1;
            self.reward_sum += reward;
            self.nonzero += u64::from(reward != 0.0);
            let (min, max) = self.reward_range.unwrap_or((reward, reward));
            self.reward_range = Some((min.min(reward), max.max(reward)));
        }
    }

    fn summary(mut self, alphabet: &Alphabet) -> Summary {
        self.actions.resize(alphabet.actions().len(), 0);
        self.observations.resize(alphabet.observations().len(), 0);
        let episodes: u64 = self.lengths.values().sum();
        let actions: Vec<_> = alphabet
            .actions()
            .iter()
            .zip(&self.actions)
            .map(|(name, &count)| ActionCount { name: name.clone(), count })
            .collect();
        let observations: Vec<_> = (alphabet.observations().iter().zip(&self.observations))
            .map(|(symbol, &count)| ObservationCount { name: symbol.name.clone(), terminal: symbol.terminal, count })
            .collect();
        let propensities = self.overlap.propensities(alphabet.actions().len());
        Summary {
            has_action_probabilities: propensities.is_some(),
            propensities,
            episodes,
            steps: self.steps,
            lengths: self.lengths(episodes),
            terminated: share(self.terminated, episodes).unwrap_or(0.0),
            episodes_with_several_actions: self.with_several_actions,
            distinct_pairs: self.pairs.len() as u64,
            missing_observations: self.missing,
            copies: self.copies,
            probability_of: self.probability_of(alphabet),
            available: self.availability(actions.len()),
            timing: std::mem::take(&mut self.timing).finish(),
            rare: rare(alphabet, &actions, &observations),
            actions,
            observations,
            rewards: Rewards {
                missing: self.steps - self.rewards,
                min: self.reward_range.map(|(min, _)| min),
                mean: (self.rewards > 0).then(|| self.reward_sum / self.rewards as f64),
                max: self.reward_range.map(|(_, max)| max),
                nonzero: share(self.nonzero, self.rewards),
            },
            skipped: 0,
            first_skipped: None,
            only_observed: false,
            spaced: self.spaced,
            notes: Notes::default(),
            findings: Vec::new(),
        }
    }

    /// The action whose probability the logs contain in every row, if that explains them and the
    /// probability of the action taken does not: E[1/π(a)] is the number of actions.
    fn probability_of(&self, alphabet: &Alphabet) -> Option<String> {
        let [first, second] = alphabet.actions() else { return None };
        let steps = self.steps as f64;
        let is_two = |sum: f64| (sum / steps / 2.0 - 1.0).abs() < ABOUT;
        let [[p, other_p], [q, other_q]] = self.inverse;
        match (is_two(p + q), is_two(p + other_q), is_two(q + other_p)) {
            (false, true, false) => Some(first.clone()),
            (false, false, true) => Some(second.clone()),
            _ => None,
        }
    }

    fn availability(&self, actions: usize) -> Option<Availability> {
        let some = || self.available.iter().filter(|(number, _)| **number < actions);
        let restricted = some().map(|(_, steps)| steps).sum::<u64>();
        let of_some: u64 = some().map(|(&number, steps)| number as u64 * steps).sum();
        let mean = (of_some + (self.steps - restricted) * actions as u64) as f64 / self.steps.max(1) as f64;
        let forced = some().filter(|(number, _)| **number == 1).map(|(_, steps)| steps).sum();
        self.says_available.then_some(Availability { restricted, forced, mean })
    }

    fn lengths(&self, episodes: u64) -> Option<Lengths> {
        let mut up_to = 0;
        let at_half = |(_, count): &(&u64, &u64)| {
            up_to += **count;
            2 * up_to >= episodes
        };
        Some(Lengths {
            min: *self.lengths.first_key_value()?.0,
            median: *self.lengths.iter().find(at_half)?.0,
            mean: self.steps as f64 / episodes as f64,
            max: *self.lengths.last_key_value()?.0,
        })
    }
}

fn rare(alphabet: &Alphabet, actions: &[ActionCount], observations: &[ObservationCount]) -> RareSymbols {
    let actions =
        actions.iter().filter(|action| action.count < RareSymbols::BELOW).map(|action| format!("action {:?}", action.name));
    let observations = (observations.iter().zip(alphabet.observations()))
        .filter(|(counted, _)| counted.count < RareSymbols::BELOW)
        .map(|(_, symbol)| format!("observation {:?}", symbol.to_string()));
    let mut rare = RareSymbols::default();
    for symbol in actions.chain(observations) {
        rare.count += 1;
        if rare.examples.len() < RareSymbols::EXAMPLES {
            rare.examples.push(symbol);
        }
    }
    rare
}

fn count(counts: &mut Vec<u64>, symbol: u32) {
    let symbol = symbol as usize;
    if counts.len() <= symbol {
        counts.resize(symbol + 1, 0);
    }
    counts[symbol] += 1;
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Trajectory;

    /// The findings for episodes of (action, observation) whose rewards are 0, 1, 2, …
    fn findings(episodes: &[&[(&str, &str)]]) -> Vec<String> {
        let mut alphabet = Alphabet::default();
        let mut trajectory = |episode: &&[(&str, &str)]| {
            let steps = episode.iter().map(|(a, o)| ActionObservation {
                action: alphabet.intern_action(a),
                observation: alphabet.intern_observation(o),
            });
            let rewards = (0..episode.len()).map(|r| Some(r as f64)).collect();
            Trajectory {
                steps: steps.collect(),
                rewards,
                action_probabilities: vec![],
                end: End::Truncated,
                about: Default::default(),
            }
        };
        let trajectories = episodes.iter().map(&mut trajectory).collect();
        Summary::of(&Logs::memory(alphabet, trajectories)).unwrap().findings
    }

    #[test]
    fn a_log_in_order_has_no_findings() {
        let episode: &[_] = &[("N", "x"), ("S", "y")];
        assert_eq!(findings(&[episode; 5]), [""; 0]);
    }

    #[test]
    fn what_cannot_be_learned_is_found() {
        let says = |episodes: &[&[(&str, &str)]], what: &str| findings(episodes).iter().any(|finding| finding.contains(what));
        assert!(says(&[&[("N", "x"), ("N", "y")], &[("S", "x"), ("S", "y")]], "never changes within an episode"));
        assert!(says(&[&[("N", "x"), ("S", "x")]], "one observation, \"x\""));
        assert!(says(&[&[("N", "x"), ("S", "x")]], "`observe_reward`"));
        assert!(says(&[&[("N", "0.25"), ("S", "0.5")]], "look like measurements"));
        assert!(says(&[], "no episode"));
    }

    #[test]
    fn the_effective_share_is_that_of_the_weights() {
        let mut alphabet = Alphabet::default();
        let action = alphabet.intern_action("N");
        ["E", "S", "W"].iter().for_each(|name| {
            alphabet.intern_action(name);
        });
        let step = ActionObservation { action, observation: alphabet.intern_observation("x") };
        let of = |probabilities: &[f64]| {
            let n = probabilities.len();
            let action_probabilities = probabilities.to_vec();
            let z = Trajectory {
                steps: vec![step; n],
                rewards: vec![None; n],
                action_probabilities,
                end: End::Truncated,
                about: Default::default(),
            };
            Summary::of(&Logs::memory(alphabet.clone(), vec![z])).unwrap().propensities.unwrap()
        };
        let uniform = of(&[0.25; 4]);
        assert_eq!((uniform.least, uniform.effective, uniform.misses_actions()), (0.25, 1.0, false));
        assert!(of(&[1.0; 4]).misses_actions(), "a policy that always takes the same action gives the others probability 0");
        // Weights 1 and 3: (1 + 3)² / (2·(1 + 9))
        let uneven = of(&[0.75, 0.25]);
        assert!(uneven.least == 0.25 && (uneven.effective - 0.8).abs() < 1e-12, "{uneven:?}");
    }

    #[test]
    fn the_median_is_a_length_that_half_of_the_episodes_do_not_exceed() {
        let tally = Tally { lengths: BTreeMap::from([(1, 1), (5, 1), (9, 2)]), steps: 24, ..Tally::default() };
        assert_eq!(tally.lengths(4), Some(Lengths { min: 1, median: 5, mean: 6.0, max: 9 }));
    }
}
