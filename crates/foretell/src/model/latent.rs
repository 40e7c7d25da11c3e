//! The POMDP of a refined model, and its arrays in files.

use serde::{Deserialize, Serialize};

use super::linear::Linear;
use crate::data::Alphabet;
use crate::error::Result;
use crate::pomdp::{Learned, Pomdp, RewardRule, Row};
use crate::store::tensors::{Array, Arrays};

/// In a file, stands for an argument that a reward does not depend on.
const ANY: u32 = u32::MAX;

/// How latent states relate to observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum StateLayout {
    /// The layout that predicts held-out episodes best
    Auto,
    /// Each state emits one observation: for noise-free observations that many states share
    Owned,
    /// The same, beginning with histories merged into a deterministic automaton: for memory that
    /// reaches far
    Merged,
    /// A state may emit any observation: for noisy observations
    Free,
    /// The same, and what a state emits depends on the action that led to it: for actions that look
    /// or ask
    Sensing,
    /// A state is an observation and a hidden mode with dynamics of its own
    Modes,
    /// A state may emit any observation, and EM starts at random: plain Baum–Welch, for comparison
    Dense,
}

/// A kind and number of states to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The relation of its states to observations.
    pub layout: StateLayout,
    /// The number of states.
    pub states: usize,
}

/// A POMDP with latent states, fitted to logs. It was refined from a linear model.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    /// The linear model that was refined.
    pub linear: Linear,
    /// The POMDP, over the model's alphabet.
    pub pomdp: Pomdp,
    /// Expected number of times that each action was tried in each state, at index a·|S| + s.
    pub visits: Vec<f64>,
    /// Standard deviation of the rewards in the logs.
    pub reward_sd: f64,
    /// How much less an action earns, relative to its expected reward under the belief, when it is
    /// repeated in the same state of an episode than the first time, in standard deviations of a
    /// reward. It is far from 0 where rewards depend on information that the states lack. It is 0
    /// where observations determine rewards, or where it is not significant.
    pub fading: f64,
    /// Correlation of the difference between a reward and its expectation under the belief with
    /// earlier differences in the same episode for the same action. It is far from 0 where rewards
    /// carry more information about the state than observations do. It is 0 where it is not
    /// significant.
    pub reward_memory: f64,
    /// The kind of its states, and the number that was requested.
    pub candidate: Candidate,
}

/// The part of a file header about it.
#[derive(Serialize, Deserialize)]
pub(super) struct LatentHeader {
    candidate: Candidate,
    reward_sd: f64,
    fading: f64,
    #[serde(default)]
    reward_memory: f64,
    states: Vec<String>,
    terminal: Vec<bool>,
}

/// Smallest correlation of reward differences that is worth reporting.
const LEAST_MEMORY: f64 = 0.1;
/// Largest fading at which planning in the POMDP is worthwhile. Above it policies go after rewards
/// that are no longer there.
const LARGEST_FADING: f64 = 0.01;

impl Latent {
    /// Whether rewards depend on information that the states lack, for example where a reward is
    /// paid only once. Then plan on the logs instead.
    pub fn forgets_rewards(&self) -> bool {
        self.fading > LARGEST_FADING
    }

    /// Whether rewards carry more information about the state than observations do. Then they
    /// should be included in observations ([`LearnParams::observe_reward`](crate::LearnParams)).
    pub fn wants_rewards_observed(&self) -> bool {
        self.reward_memory > LEAST_MEMORY
    }

    /// The POMDP with the reward of action a in state s reduced by `pessimism`·sd / √(1 + n(a, s)),
    /// where n is how often it was tried there.
    pub fn pessimistic(&self, pessimism: f64) -> Pomdp {
        let penalty = self.visits.iter().map(|n| pessimism * self.reward_sd / (1.0 + n).sqrt());
        self.pomdp.with_less_reward(penalty)
    }

    /// The POMDP with the reward of action a in state s raised by `bonus` / √(1 + n(a, s)): plans in
    /// it seek what was rarely tried.
    pub fn optimistic(&self, bonus: f64) -> Pomdp {
        self.pomdp.with_less_reward(self.visits.iter().map(|n| -bonus / (1.0 + n).sqrt()))
    }

    pub(super) fn header(&self) -> LatentHeader {
        let Learned { states, terminal, .. } = self.pomdp.to_learned();
        let Latent { candidate, reward_sd, fading, reward_memory, .. } = *self;
        LatentHeader { candidate, reward_sd, fading, reward_memory, states, terminal }
    }

    pub(super) fn arrays(&self) -> Vec<Array> {
        let mut arrays = vec![Array::f64s("refined_visits", &[self.visits.len()], &self.visits)];
        arrays.extend(pomdp_arrays("refined", &self.pomdp));
        arrays
    }

    pub(super) fn read(header: LatentHeader, linear: Linear, alphabet: &Alphabet, arrays: &Arrays<'_>) -> Result<Latent> {
        let n = header.states.len() * alphabet.actions().len();
        let LatentHeader { candidate, reward_sd, fading, reward_memory, states, terminal } = header;
        let pomdp = read_pomdp("refined", PomdpHeader { candidate, states, terminal }, alphabet, arrays)?;
        let visits = arrays.sized("refined_visits", arrays.f64s("refined_visits")?, n)?;
        if visits.iter().any(|n| *n < 0.0) {
            return Err(arrays.damaged("array refined_visits has negative numbers"));
        }
        Ok(Latent { linear, pomdp, visits, reward_sd, fading, reward_memory, candidate })
    }
}

/// The part of a file header about a POMDP of a mixture.
#[derive(Serialize, Deserialize)]
pub(super) struct PomdpHeader {
    pub(super) candidate: Candidate,
    pub(super) states: Vec<String>,
    pub(super) terminal: Vec<bool>,
}

impl PomdpHeader {
    pub(super) fn of(candidate: Candidate, pomdp: &Pomdp) -> PomdpHeader {
        let Learned { states, terminal, .. } = pomdp.to_learned();
        PomdpHeader { candidate, states, terminal }
    }
}

/// The arrays of a POMDP, whose names begin with `prefix`.
pub(super) fn pomdp_arrays(prefix: &str, pomdp: &Pomdp) -> Vec<Array> {
    let learned = pomdp.to_learned();
    let mut arrays = Vec::new();
    for (name, rows) in [("transitions", &learned.transitions), ("emissions", &learned.emissions)] {
        let lengths: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
        let columns: Vec<u32> = rows.iter().flatten().map(|&(column, _)| column as u32).collect();
        let probabilities: Vec<f64> = rows.iter().flatten().map(|&(_, p)| p).collect();
        arrays.push(Array::u32s(format!("{prefix}_{name}_lengths"), &[lengths.len()], &lengths));
        arrays.push(Array::u32s(format!("{prefix}_{name}_columns"), &[columns.len()], &columns));
        arrays.push(Array::f64s(format!("{prefix}_{name}"), &[probabilities.len()], &probabilities));
    }
    let arguments = |rule: &RewardRule| [rule.action, rule.from, rule.to, rule.observation].map(|x| x.map_or(ANY, |x| x as u32));
    let named: Vec<u32> = learned.rewards.iter().flat_map(arguments).collect();
    let rewards: Vec<f64> = learned.rewards.iter().map(|rule| rule.reward).collect();
    arrays.push(Array::u32s(format!("{prefix}_reward_arguments"), &[rewards.len(), 4], &named));
    arrays.push(Array::f64s(format!("{prefix}_rewards"), &[rewards.len()], &rewards));
    arrays
}

/// The POMDP that [`pomdp_arrays`] wrote.
pub(super) fn read_pomdp(prefix: &str, header: PomdpHeader, alphabet: &Alphabet, arrays: &Arrays<'_>) -> Result<Pomdp> {
    let n = header.states.len() * alphabet.actions().len();
    let rows = |name: &str| -> Result<Vec<Row>> {
        let lengths = arrays.sized(name, arrays.u32s(&format!("{prefix}_{name}_lengths"))?, n)?;
        let columns = arrays.u32s(&format!("{prefix}_{name}_columns"))?;
        let all: usize = lengths.iter().map(|&length| length as usize).sum();
        let columns = arrays.sized(name, columns, all)?;
        let probabilities = arrays.sized(name, arrays.f64s(&format!("{prefix}_{name}"))?, all)?;
        let mut entries = columns.into_iter().map(|column| column as usize).zip(probabilities);
        Ok(lengths.iter().map(|&length| entries.by_ref().take(length as usize).collect()).collect())
    };
    let (transitions, emissions) = (rows("transitions")?, rows("emissions")?);
    let rewards = arrays.f64s(&format!("{prefix}_rewards"))?;
    let arguments = format!("{prefix}_reward_arguments");
    let named = arrays.sized(&arguments, arrays.u32s(&arguments)?, 4 * rewards.len())?;
    let argument = |i: u32| (i != ANY).then_some(i as usize);
    let rewards = named.chunks_exact(4).zip(rewards).map(|(x, reward)| RewardRule {
        action: argument(x[0]),
        from: argument(x[1]),
        to: argument(x[2]),
        observation: argument(x[3]),
        reward,
    });
    let learned = Learned {
        alphabet: alphabet.clone(),
        states: header.states,
        terminal: header.terminal,
        transitions,
        emissions,
        rewards: rewards.collect(),
    };
    Pomdp::learned(learned).map_err(|e| arrays.damaged(&e.to_string()))
}
