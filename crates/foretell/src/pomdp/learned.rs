//! POMDPs over a given alphabet: those that were learned, and their arrays in files.

use super::rewards::Rewards;
use super::rows::Rows;
use super::tables::expected_rewards;
use super::{Pomdp, RewardRule, Row};
use crate::data::Alphabet;
use crate::error::{Error, Result};

/// Rows of learned probabilities sum to 1 up to rounding.
const SUM_TOLERANCE: f64 = 1e-9;

/// A POMDP over an alphabet that exists already; it starts in state 0.
pub(crate) struct Learned {
    pub(crate) alphabet: Alphabet,
    pub(crate) states: Vec<String>,
    pub(crate) terminal: Vec<bool>,
    /// T(s' | a, s), row a·|S| + s, sorted by state; empty for a terminal s.
    pub(crate) transitions: Vec<Row>,
    /// O(o | a, s'), row a·|S| + s', sorted by symbol.
    pub(crate) emissions: Vec<Row>,
    /// Their observations are symbols of the alphabet.
    pub(crate) rewards: Vec<RewardRule>,
}

impl Pomdp {
    /// A learned model, or one read from a file: everything is checked.
    pub(crate) fn learned(learned: Learned) -> Result<Pomdp> {
        check(&learned).map_err(|problem| Error::data(problem, "learn the model again"))?;
        let Learned { alphabet, states, terminal, transitions, emissions, rewards } = learned;
        let rows = |list: Vec<Row>| {
            let mut rows = Rows::default();
            list.into_iter().for_each(|row| rows.push(row.into_iter().filter(|(_, p)| *p > 0.0)));
            rows
        };
        let mut pomdp = Pomdp {
            reward_observations: (0..alphabet.observations().len()).collect(),
            alphabet,
            states,
            terminal,
            discount: None,
            start: rows(vec![vec![(0, 1.0)]]),
            transitions: rows(transitions),
            emissions: rows(emissions),
            rewards: Rewards::new(&rewards),
            expected_rewards: Vec::new(),
        };
        pomdp.expected_rewards = expected_rewards(&pomdp);
        Ok(pomdp)
    }

    /// The inverse of [`Pomdp::learned`].
    pub(crate) fn to_learned(&self) -> Learned {
        let all = |rows: &Rows| (0..self.alphabet.actions().len() * self.states.len()).map(|i| rows.row(i).collect()).collect();
        Learned {
            alphabet: self.alphabet.clone(),
            states: self.states.clone(),
            terminal: self.terminal.clone(),
            transitions: all(&self.transitions),
            emissions: all(&self.emissions),
            rewards: self.rewards.rules(),
        }
    }

    /// The same model with another discount.
    pub fn with_discount(mut self, discount: f64) -> Result<Pomdp> {
        if !(0.0..=1.0).contains(&discount) {
            return Err(Error::parameter("discount", discount, "must be between 0 and 1"));
        }
        self.discount = Some(discount);
        Ok(self)
    }

    /// The same model with `penalty`, at a·|S| + s, subtracted from r(a, s), for planners; R(a, s,
    /// s', o) is unchanged.
    pub(crate) fn with_less_reward(&self, penalty: impl Iterator<Item = f64>) -> Pomdp {
        let mut pomdp = self.clone();
        let all = pomdp.expected_rewards.iter_mut().zip(penalty).enumerate();
        all.filter(|(i, _)| !self.terminal[i % self.states.len()]).for_each(|(_, (r, less))| *r -= less);
        pomdp
    }

    /// Whether any reward is known.
    pub fn has_rewards(&self) -> bool {
        !self.rewards.is_empty()
    }
}

fn check(learned: &Learned) -> Result<(), String> {
    let Learned { alphabet, states, terminal, transitions, emissions, rewards } = learned;
    let (actions, symbols) = (alphabet.actions().len(), alphabet.observations().len());
    let n = states.len();
    if n == 0 || terminal.len() != n || terminal[0] || transitions.len() != actions * n || emissions.len() != actions * n {
        return Err(format!("its tables do not fit {n} states and {actions} actions"));
    }
    let is_sound = |row: &Row, width: usize| {
        let sorted = row.windows(2).all(|w| w[0].0 < w[1].0) && row.last().is_some_and(|last| last.0 < width);
        let sum: f64 = row.iter().map(|(_, p)| p).sum();
        sorted && row.iter().all(|(_, p)| *p >= 0.0) && (sum - 1.0).abs() < SUM_TOLERANCE
    };
    for (i, (t, e)) in transitions.iter().zip(emissions).enumerate() {
        let ends = terminal[i % n];
        // Nothing leads to the start, so what it emits is never seen.
        let fits = |&(o, _): &(usize, f64)| i % n == 0 || alphabet.observations()[o].terminal == ends;
        if !(if ends { t.is_empty() } else { is_sound(t, n) }) || !is_sound(e, symbols) || !e.iter().all(fits) {
            return Err(format!("the rows of state {} are not probabilities", states[i % n]));
        }
    }
    let limits = [actions, n, n, symbols];
    let in_range = |rule: &RewardRule| {
        let arguments = [rule.action, rule.from, rule.to, rule.observation];
        rule.reward.is_finite() && arguments.iter().zip(limits).all(|(x, n)| x.is_none_or(|x| x < n))
    };
    if rewards.iter().all(in_range) { Ok(()) } else { Err("its rewards point outside its tables".into()) }
}
