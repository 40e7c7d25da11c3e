//! The data of planning: the steps of logged episodes, and the states of a filter before and after
//! each.

use rayon::prelude::*;

use crate::data::{Action, Alphabet, End, Trajectory};
use crate::error::{Error, Result};
use crate::log::FIRST_ACTION;
use crate::system::Filter;

/// Episodes that one task tracks.
const CHUNK: usize = 64;

/// Largest absolute reward: sums over any realistic number of steps stay far below the range of
/// trees.
const LARGEST_REWARD: f64 = 1e60;

/// Steps of logged episodes.
///
/// States have *rows*: an episode of n steps has n + 1 consecutive rows, so the state after a step
/// is in the row after that of the state before it.
#[derive(Clone, Debug)]
pub struct Steps {
    list: Vec<Step>,
    starts: Vec<usize>,
    rows: usize,
    actions: usize,
    /// Whether each action could be taken in the state of each row; `None` if all could in all.
    allowed: Option<Vec<bool>>,
    /// Whether the logs say which actions were available.
    is_restricted: bool,
    /// Steps of the episodes whose reward is unknown.
    unrewarded: usize,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The row of the state in which the action was taken.
    pub row: usize,
    /// a
    pub action: Action,
    /// r
    pub reward: f64,
    /// Whether the episode terminated here, so that nothing follows. A truncated episode did not
    /// terminate: the value of the state after it counts.
    pub terminal: bool,
}

impl Steps {
    /// The steps of episodes over that alphabet whose reward is known. Of the others there are only
    /// the states: an unknown reward is not 0, so there is no target for them. A first step that
    /// nobody chose ([`FIRST_ACTION`]) needs no reward. [Single steps](are_single_steps) end their
    /// episodes.
    pub fn of(alphabet: &Alphabet, episodes: &[Trajectory]) -> Result<Steps> {
        let count = episodes.iter().map(|z| z.steps.len()).sum();
        let actions = alphabet.actions().len();
        let list = Vec::with_capacity(count);
        let mut steps = Steps { list, starts: Vec::new(), rows: 0, actions, allowed: None, is_restricted: false, unrewarded: 0 };
        let given = alphabet.action(FIRST_ACTION);
        let ends_after_one = are_single_steps(alphabet, episodes);
        for (i, z) in episodes.iter().enumerate() {
            steps.starts.push(steps.rows);
            for (t, ao) in z.steps.iter().enumerate() {
                let nobody_chose = || (t == 0 && Some(ao.action) == given).then_some(0.0);
                let Some(reward) = z.rewards.get(t).copied().flatten().or_else(nobody_chose) else {
                    steps.unrewarded += 1;
                    continue;
                };
                if reward.is_nan() || reward.abs() > LARGEST_REWARD {
                    let problem = format!("step {} of episode {} has the reward {reward}", t + 1, i + 1);
                    return Err(Error::data(problem, format!("give rewards between -{LARGEST_REWARD:e} and {LARGEST_REWARD:e}")));
                }
                let terminal = (z.end == End::Terminated || ends_after_one) && t + 1 == z.steps.len();
                steps.list.push(Step { row: steps.rows + t, action: ao.action, reward, terminal });
            }
            steps.rows += z.steps.len() + 1;
        }
        let given = given.filter(|&given| is_first_only(given, episodes));
        steps.is_restricted = is_restricted(episodes, alphabet);
        if steps.is_restricted || given.is_some() {
            steps.allowed = Some(allowed(episodes, actions, given));
        }
        if count == 0 {
            return Err(Error::NoSteps);
        }
        if steps.unrewarded > 0 && episodes.iter().all(|z| z.rewards.iter().all(Option::is_none)) {
            return Err(Error::NoRewards { purpose: "to plan for", remedy: "name their column (`reward`)" });
        }
        Ok(steps)
    }

    /// The same steps with the rewards reduced by `less`.
    pub(crate) fn with_less_reward(mut self, less: impl IntoIterator<Item = f64>) -> Steps {
        self.list.iter_mut().zip(less).for_each(|(step, less)| step.reward -= less);
        self
    }

    /// Steps of the episodes that are not in the list, because their reward is unknown.
    pub fn unrewarded(&self) -> usize {
        self.unrewarded
    }

    /// The steps whose reward is known, in order.
    pub fn list(&self) -> &[Step] {
        &self.list
    }

    /// The rows of the states in which episodes start.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The episode of each step, counted from 0.
    pub fn episodes(&self) -> Vec<usize> {
        let ends = self.starts.iter().skip(1).copied().chain([self.rows]);
        let mut steps = self.list.iter().peekable();
        let mut episodes = Vec::with_capacity(self.list.len());
        for (episode, end) in ends.enumerate() {
            while steps.next_if(|step| step.row < end).is_some() {
                episodes.push(episode);
            }
        }
        episodes
    }

    /// Whether an action could be taken in the state of a row, as far as the logs say so.
    pub fn allows(&self, row: usize, a: Action) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed[row * self.actions + a.index()])
    }

    /// Whether the logs say that some actions could not be taken.
    pub fn are_restricted(&self) -> bool {
        self.is_restricted
    }

    /// Number of states.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of actions of the alphabet.
    pub fn actions(&self) -> usize {
        self.actions
    }
}

/// Whether every episode is a single choice, and none says how it ended: a bandit. The choice ends
/// the episode then, because nothing is known of another one.
pub fn are_single_steps(alphabet: &Alphabet, episodes: &[Trajectory]) -> bool {
    let given = alphabet.action(FIRST_ACTION);
    let choices = |z: &Trajectory| z.steps.iter().enumerate().filter(|(t, ao)| *t > 0 || Some(ao.action) != given).count();
    !episodes.is_empty() && episodes.iter().all(|z| z.end == End::Truncated && choices(z) == 1)
}

/// The actions that count after the last step of an episode, where it is not known which are
/// available: those that were in every step of the logs, because others may promise what cannot be
/// done. If there are none, those of the last step do.
pub(super) struct AfterLast {
    always: Vec<Action>,
}

impl AfterLast {
    /// `first` is the action of first steps that nobody chooses.
    pub(super) fn of(episodes: &[Trajectory], actions: usize, first: Option<Action>) -> AfterLast {
        let mut always: Vec<Action> = (0..actions as u32).map(Action).filter(|a| Some(*a) != first).collect();
        let sets = episodes.iter().flat_map(|z| z.about.available.iter().flatten());
        for set in sets.filter(|set| first.is_none() || set.first() != first.as_ref()) {
            always.retain(|a| set.contains(a));
        }
        AfterLast { always }
    }

    /// The actions that are available before step t, or after the last one; `None` for all.
    pub(super) fn available<'a>(&'a self, z: &'a Trajectory, t: usize) -> Option<&'a [Action]> {
        match z.about.available_at(t) {
            None if t < z.steps.len() || z.about.available.is_empty() => None,
            None if self.always.is_empty() => z.about.available_at(t.saturating_sub(1)),
            None => Some(&self.always),
            given => given,
        }
    }
}

/// Whether each action could be taken, row by row.
fn allowed(episodes: &[Trajectory], actions: usize, first: Option<Action>) -> Vec<bool> {
    let after_last = AfterLast::of(episodes, actions, first);
    let mut allowed = Vec::new();
    for z in episodes {
        for t in 0..=z.steps.len() {
            let set = after_last.available(z, t);
            let could = |a: Action| match first {
                Some(first) if t == 0 => a == first,
                _ => Some(a) != first && set.is_none_or(|set| set.contains(&a)),
            };
            allowed.extend((0..actions as u32).map(|a| could(Action(a))));
        }
    }
    allowed
}

/// Whether only some actions were available in some step of the logs, not counting that of first
/// steps that nobody chooses.
pub(super) fn is_restricted(episodes: &[Trajectory], alphabet: &Alphabet) -> bool {
    let first = alphabet.action(FIRST_ACTION).filter(|&first| is_first_only(first, episodes));
    let actions = alphabet.actions().len() - usize::from(first.is_some());
    episodes.iter().any(|z| z.about.restricts(actions))
}

/// Whether an action is that of every first step, and of no other.
fn is_first_only(a: Action, episodes: &[Trajectory]) -> bool {
    let mut steps = episodes.iter().flat_map(|z| z.steps.iter().enumerate());
    steps.all(|(t, ao)| (ao.action == a) == (t == 0))
}

/// The states of a filter, by rows.
#[derive(Clone, Debug, PartialEq)]
pub struct States {
    width: usize,
    values: Vec<f64>,
}

impl States {
    /// Tracks the states of a filter along the episodes; `start` makes a filter at the start of an
    /// episode.
    pub fn track<F: Filter>(episodes: &[Trajectory], start: impl Fn() -> F + Sync) -> States {
        let width = start().state().len();
        let track = |episodes: &[Trajectory]| {
            let mut filter = start();
            let mut values = Vec::with_capacity(width * episodes.iter().map(|z| z.steps.len() + 1).sum::<usize>());
            let mut push = |state: &[f64]| values.extend_from_slice(state);
            for z in episodes {
                filter.reset();
                push(filter.state());
                for (t, &ao) in z.steps.iter().enumerate() {
                    match z.about.partial_at(t) {
                        Some(pattern) => filter.observe_partial(ao.action, pattern),
                        None => filter.observe(ao),
                    }
                    push(filter.state());
                }
            }
            values
        };
        let parts: Vec<Vec<f64>> = episodes.par_chunks(CHUNK).map(track).collect();
        States { width, values: parts.concat() }
    }

    /// Numbers in a state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All states, concatenated.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// One state.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..(i + 1) * self.width]
    }
}
