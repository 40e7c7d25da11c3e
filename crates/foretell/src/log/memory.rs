//! Trajectories in memory, read as if from a file.

use std::sync::Arc;

use crate::data::{Action, ActionObservation, Alphabet, End, Observation, Trajectory};
use crate::error::{Error, Result};
use crate::log::episodes::{Book, Source};

/// Trajectories, and how their indices translate into the reader's alphabet.
pub(super) struct Memory {
    trajectories: Arc<[Trajectory]>,
    next: usize,
    actions: Vec<Action>,
    observations: Vec<Observation>,
    is_terminal: Vec<bool>,
}

impl Memory {
    /// Adds the names of `from` that are new behind those of `to`.
    pub fn new(from: &Alphabet, trajectories: Arc<[Trajectory]>, to: &mut Alphabet) -> Memory {
        let actions = from.actions().iter().map(|name| to.intern_action(name)).collect();
        let mut intern = |name: &str, terminal: bool| match terminal {
            true => to.intern_terminal_observation(name),
            false => to.intern_observation(name),
        };
        let observations = from.observations().iter().map(|symbol| intern(&symbol.name, symbol.terminal)).collect();
        let is_terminal = from.observations().iter().map(|symbol| symbol.terminal).collect();
        Memory { trajectories, next: 0, actions, observations, is_terminal }
    }

    /// The trajectory in the reader's alphabet, if it is one that a file could hold.
    fn translate(&self, trajectory: &Trajectory) -> Result<Trajectory, String> {
        let Trajectory { steps, rewards, action_probabilities, end } = trajectory;
        if rewards.len() != steps.len() {
            return Err(format!("{} rewards for {} steps", rewards.len(), steps.len()));
        }
        if !action_probabilities.is_empty() && action_probabilities.len() != steps.len() {
            return Err(format!("{} action probabilities for {} steps", action_probabilities.len(), steps.len()));
        }
        if let Some(r) = rewards.iter().flatten().find(|r| !r.is_finite()) {
            return Err(format!("reward {r}"));
        }
        if let Some(p) = action_probabilities.iter().find(|p| !(**p > 0.0 && **p <= 1.0)) {
            return Err(format!("action probability {p}, which is not in (0, 1]"));
        }
        let translate = |(t, step): (usize, &ActionObservation)| {
            let ActionObservation { action, observation } = step;
            let (Some(&a), Some(&o)) = (self.actions.get(action.0 as usize), self.observations.get(observation.0 as usize))
            else {
                return Err(format!("action {} or observation {}, which the alphabet does not have", action.0, observation.0));
            };
            let ends = *end == End::Terminated && t + 1 == steps.len();
            match self.is_terminal[observation.0 as usize] == ends {
                true => Ok(ActionObservation { action: a, observation: o }),
                false => Err("an observation that ends the episode before its end, or an end without one".into()),
            }
        };
        let steps = steps.iter().enumerate().map(translate).collect::<Result<_, _>>()?;
        Ok(Trajectory { steps, rewards: rewards.clone(), action_probabilities: action_probabilities.clone(), end: *end })
    }
}

impl Source for Memory {
    fn next(&mut self, _: &mut Book) -> Result<Option<Trajectory>> {
        let Some(trajectory) = self.trajectories.get(self.next) else { return Ok(None) };
        self.next += 1;
        self.translate(trajectory).map(Some).map_err(|problem| {
            Error::data(
                format!("trajectory {} in memory has {problem}", self.next - 1),
                "build it with the alphabet that goes with it",
            )
        })
    }
}
