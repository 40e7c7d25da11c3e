//! Finite POMDPs, exactly: a reference for learned models, and environments to learn from.
//!
//! A state s is drawn from the start distribution. An action a moves it to s' ~ T(· | a, s), which
//! emits o ~ O(· | a, s') and pays R(a, s, s', o). A *terminal* state ends the episode: what it
//! emits is the terminal variant of the observation's symbol, and nothing follows. Other states
//! emit the non-terminal variant.
//!
//! Models come from tables ([`Pomdp::new`]) or from files in Cassandra's format ([`Pomdp::read`]).
//! [`Belief`] is the exact filter, [`PomdpEnvironment`] the environment, and [`solve`] contains
//! planners.

mod rows;
mod rewards;
mod tables;
mod learned;
mod cassandra;
mod belief;
mod viterbi;
mod environment;
mod qmdp;
pub mod solve;

pub use belief::{Belief, BeliefState};
pub use environment::PomdpEnvironment;
pub(crate) use learned::Learned;
pub use qmdp::{Qmdp, QmdpPolicy};
pub use rewards::RewardRule;
pub use rows::{Row, sparse};
pub use tables::PomdpTables;

use std::io::Write;
use std::path::Path;

use crate::data::{Action, ActionObservation, Alphabet, Observation};
use crate::error::{Error, Result};
use crate::store::AtomicFile;
use crate::system::Predict;
use rewards::Rewards;
use rows::Rows;

/// The accuracy of [`Pomdp::uniform_policy_value`]: a bound on the value of the steps left out.
const VALUE_TOLERANCE: f64 = 1e-10;
/// The steps after which [`Pomdp::uniform_policy_value`] gives up; enough for a discount of 0.9999.
const MAX_VALUE_STEPS: usize = 1_000_000;

/// A finite partially observable Markov decision process.
#[derive(Clone, Debug, PartialEq)]
pub struct Pomdp {
    alphabet: Alphabet,
    states: Vec<String>,
    terminal: Vec<bool>,
    discount: Option<f64>,
    /// One row.
    start: Rows,
    /// T(s' | a, s), row a·|S| + s; empty for a terminal s.
    transitions: Rows,
    /// O(o | a, s'), row a·|S| + s'; its columns are symbols of the alphabet.
    emissions: Rows,
    rewards: Rewards,
    /// For each symbol of the alphabet, its index in `rewards`.
    reward_observations: Vec<usize>,
    /// r(a, s) = E[R(a, s, s', o)], at a·|S| + s; 0 for a terminal s.
    expected_rewards: Vec<f64>,
}

/// One step of a uniformly random policy, in expectation over all episodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UniformStep {
    /// The expected reward, not discounted; episodes that have ended count as 0.
    pub reward: f64,
    /// The probability that the episode continues after this step.
    pub live: f64,
}

impl Pomdp {
    /// Reads a file in Cassandra's `.POMDP` format, see [`Pomdp::parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Pomdp> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        // Comments of old files may have any encoding.
        Pomdp::parse(&String::from_utf8_lossy(&bytes), &path.display().to_string())
    }

    /// Reads a text in Cassandra's `.POMDP` format
    /// (<https://www.pomdp.org/code/pomdp-file-spec.html>); `file` is its name in error messages.
    ///
    /// Where the format is ambiguous: a missing `discount` is 1 (see [`Pomdp::discount_is_given`]),
    /// missing `values` are rewards, a missing `start` is uniform, rows that sum to 1 within 10⁻⁴
    /// are normalised. The format has no terminal states, so episodes never end, except in models
    /// that [`Pomdp::to_cassandra`] wrote.
    ///
    /// ```
    /// let coin = "discount: 0.5  values: reward  states: heads tails  actions: flip  observations: clink
    ///             T: flip uniform
    ///             O: flip uniform
    ///             R: flip : * : heads : * 1";
    /// let pomdp = foretell::Pomdp::parse(coin, "coin.POMDP")?;
    /// assert!((pomdp.uniform_policy_value().unwrap() - 1.0).abs() < 1e-9);
    /// # Ok::<(), foretell::Error>(())
    /// ```
    pub fn parse(text: &str, file: &str) -> Result<Pomdp> {
        cassandra::parse(text, file)
    }

    /// This model as a text in Cassandra's format.
    ///
    /// Probabilities, rewards and the discount (1 where none is given) read back exactly, except
    /// for rows whose sum is off by rounding. Names become words of letters, digits, `_` and `-`. A
    /// terminal state is written as one that leads to a state `end`, which emits `end` forever and
    /// pays nothing; a terminal observation is named like the non-terminal one, with `_end`.
    /// Comments record the original names, so that [`Pomdp::parse`] returns the same model; for
    /// other programs it is an equivalent one whose episodes do not end.
    pub fn to_cassandra(&self) -> String {
        cassandra::write(self)
    }

    /// Writes [`Pomdp::to_cassandra`] to a file.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let mut file = AtomicFile::create(path)?;
        file.write_all(self.to_cassandra().as_bytes()).map_err(Error::io("write", path))?;
        file.commit()
    }

    /// Its actions, and its terminal and non-terminal observations.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// Names of the states.
    pub fn states(&self) -> &[String] {
        &self.states
    }

    /// Whether state `s` ends the episode.
    pub fn is_terminal(&self, s: usize) -> bool {
        self.terminal[s]
    }

    /// γ; 1 where the model does not give it.
    pub fn discount(&self) -> f64 {
        self.discount.unwrap_or(1.0)
    }

    /// Whether the model gives its discount.
    pub fn discount_is_given(&self) -> bool {
        self.discount.is_some()
    }

    /// The states it can start in, with their probabilities.
    pub fn start(&self) -> impl Iterator<Item = (usize, f64)> {
        self.start.row(0)
    }

    /// The states s' that `a` can lead to from `s`, with T(s' | a, s); none if `s` is terminal.
    pub fn transitions(&self, a: Action, s: usize) -> impl Iterator<Item = (usize, f64)> {
        self.transitions.row(self.index(a, s))
    }

    /// The observations that state `s` can emit after `a`, with O(o | a, s).
    pub fn emissions(&self, a: Action, s: usize) -> impl Iterator<Item = (Observation, f64)> {
        self.emissions.row(self.index(a, s)).map(|(o, p)| (Observation(o as u32), p))
    }

    /// R(a, s, s', o)
    pub fn reward(&self, a: Action, s: usize, to: usize, o: Observation) -> f64 {
        self.rewards.get(a.index(), s, to, self.reward_observations[o.index()])
    }

    /// r(a, s) = E[R(a, s, s', o)]; 0 if `s` is terminal.
    pub fn expected_reward(&self, a: Action, s: usize) -> f64 {
        self.expected_rewards[self.index(a, s)]
    }

    /// P(o_1 … o_n ‖ a_1 … a_n) from the start: the probability of the observations if these
    /// actions are taken.
    ///
    /// It underflows on long sequences: sum the logarithms of [`Belief::update`] there.
    pub fn probability(&self, steps: &[ActionObservation]) -> f64 {
        let mut belief = Belief::new(self);
        let mut probability = 1.0;
        for &ao in steps {
            probability *= belief.update(ao);
            if probability == 0.0 {
                break; // nothing after an impossible step matters
            }
        }
        probability
    }

    /// The steps 1, 2, … of a uniformly random policy, exactly.
    pub fn uniform_policy(&self) -> impl Iterator<Item = UniformStep> {
        let actions = self.alphabet.actions().len();
        let mut now = vec![0.0; self.states.len()];
        let mut next = now.clone();
        for (s, p) in self.start() {
            now[s] = p;
        }
        std::iter::repeat_with(move || {
            let mut step = UniformStep { reward: 0.0, live: 0.0 };
            next.fill(0.0);
            for (s, p) in now.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                for i in (0..actions).map(|a| a * self.states.len() + s) {
                    step.reward += p / actions as f64 * self.expected_rewards[i];
                    for (to, q) in self.transitions.row(i).filter(|&(to, _)| !self.terminal[to]) {
                        next[to] += p / actions as f64 * q;
                    }
                }
            }
            step.live = next.iter().sum();
            std::mem::swap(&mut now, &mut next);
            step
        })
    }

    /// The discounted value of a uniformly random policy from the start, E[Σ_t γ^(t−1) r_t] over an
    /// infinite horizon.
    ///
    /// Summed forward until the rest is below 10⁻¹⁰; `None` if a million steps do
    /// not suffice, as without discount and without termination.
    pub fn uniform_policy_value(&self) -> Option<f64> {
        let gamma = self.discount();
        let largest = self.expected_rewards.iter().fold(0.0, |m: f64, r| m.max(r.abs()));
        if largest == 0.0 {
            return Some(0.0);
        }
        if gamma == 1.0 && !self.terminal.contains(&true) {
            return None;
        }
        let (mut value, mut weight) = (0.0, 1.0);
        for step in self.uniform_policy().take(MAX_VALUE_STEPS) {
            value += weight * step.reward;
            weight *= gamma;
            let tail = weight * step.live * largest / (1.0 - gamma);
            // The tail has no bound without discount: there the sum ends when all episodes have
            // terminated up to rounding.
            if tail <= VALUE_TOLERANCE || step.live < f64::EPSILON {
                return Some(value);
            }
        }
        None
    }

    /// The row of (a, s) in all tables.
    fn index(&self, a: Action, s: usize) -> usize {
        a.index() * self.states.len() + s
    }
}
