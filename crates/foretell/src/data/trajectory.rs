//! Episodes as they were logged, and where a trajectory may be cut into a history, the next step
//! and a future.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::symbols::{Action, ActionObservation};
#[cfg(doc)]
use super::symbols::{Alphabet, Observation};

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The system ended it: nothing follows, and that is information.
    Terminated,
    /// The log stops; what would have followed is unknown.
    Truncated,
}

/// One episode, z = ao_1 … ao_L.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// ao_1 … ao_L
    pub steps: Vec<ActionObservation>,
    /// r_1 … r_L; `None` where the log has no reward.
    pub rewards: Vec<Option<f64>>,
    /// π(a_t | h_t) of the behaviour policy for each step; empty where the log does not contain it.
    pub action_probabilities: Vec<f64>,
    /// How it ended.
    pub end: End,
    /// What else is known of it.
    pub about: About,
}

/// What is known of an episode beside its steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Its name in the logs.
    pub name: Option<Arc<str>>,
    /// Episodes with the same group stay together when some are held out.
    pub group: Option<Arc<str>>,
    /// Steps of which only some parts of the observation are known: the step, and the name of the
    /// observation with `?` for each part that is missing ([`Alphabet::agreeing`]). The observation
    /// of such a step is [`Observation::MISSING`].
    pub partial: Vec<(u32, Arc<str>)>,
    /// The actions that could be taken in each step, in order of their indices; `None` where it is
    /// not known or all could. Empty if nothing is known of any step.
    pub available: Vec<Option<Arc<[Action]>>>,
}

impl About {
    /// What is known of the steps `from..to` of an episode.
    pub(crate) fn part(&self, from: usize, to: usize) -> About {
        let is_inside = |(step, _): &&(u32, Arc<str>)| (from..to).contains(&(*step as usize));
        let partial = self.partial.iter().filter(is_inside).map(|(step, name)| (step - from as u32, name.clone()));
        let available = self.available.get(from..to).unwrap_or_default().to_vec();
        About { name: self.name.clone(), group: self.group.clone(), partial: partial.collect(), available }
    }

    /// Whether fewer than so many actions were available in some step.
    pub(crate) fn restricts(&self, actions: usize) -> bool {
        self.available.iter().flatten().any(|set| set.len() < actions)
    }

    /// The actions that could be taken in a step; `None` for all.
    pub fn available_at(&self, step: usize) -> Option<&[Action]> {
        self.available.get(step)?.as_deref()
    }

    /// What is known of the observation of a step of which only some parts are, as in
    /// [`partial`](About::partial).
    pub fn partial_at(&self, step: usize) -> Option<&Arc<str>> {
        let place = self.partial.partition_point(|(t, _)| (*t as usize) < step);
        self.partial.get(place).filter(|(t, _)| *t as usize == step).map(|(_, name)| name)
    }
}

/// Which cuts of a trajectory, where a history ends and tests begin, are used: the one convention all sums of the learner share.
///
/// A cut at t needs room for `next` and for the longest test, t + 1 + `room` ≤ L. If late histories
/// could not see long tests, the rank of Σ_TH would be inflated. After termination nothing happens,
/// which is known, so a terminated episode has that room at every cut. But only cuts that would
/// have had it if the episode had continued may be used: otherwise cuts near the time limit would
/// be kept only when the episode ends there, and termination would be overestimated. `limit`, the
/// length of the longest truncated episode, stands for that time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutRule {
    /// Pairs needed after `next`: the length of the longest test.
    pub room: usize,
    /// Length at which episodes are truncated; `None` where none is.
    pub limit: Option<usize>,
}

impl CutRule {
    /// Every place of a trajectory is a cut, whatever follows (the ragged estimate that the paper
    /// prints).
    pub const RAGGED: CutRule = CutRule { room: 0, limit: None };

    /// How many cuts (t = 0, 1, …) a trajectory of `length` steps has.
    pub fn count(&self, length: usize, end: End) -> usize {
        match end {
            End::Truncated => length.saturating_sub(self.room),
            End::Terminated => length.min(self.limit.map_or(length, |limit| limit.saturating_sub(self.room))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_leave_room_for_next_and_the_longest_test() {
        let rule = CutRule { room: 2, limit: Some(13) };
        assert_eq!(rule.count(13, End::Truncated), 11); // t = 0..=10: 10 + 1 + 2 = 13
        assert_eq!(rule.count(2, End::Truncated), 0);
        assert_eq!(rule.count(5, End::Terminated), 5); // after termination nothing happens, and that is known
        assert_eq!(rule.count(13, End::Terminated), 11); // but t = 11, 12 would be kept only because it ended there
        assert_eq!(CutRule { limit: None, ..rule }.count(13, End::Terminated), 13);
        assert_eq!(CutRule::RAGGED.count(13, End::Truncated), 13);
    }
}
