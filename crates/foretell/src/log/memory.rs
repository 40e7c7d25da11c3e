//! Trajectories in memory, read as if from a file.

use std::sync::Arc;

use super::episodes::{ReadState, Source};
use crate::data::{About, Action, ActionObservation, Alphabet, End, Trajectory, Translation};
use crate::error::{Error, Result};

/// Trajectories, and how their indices translate into the reader's alphabet.
pub(super) struct Memory {
    trajectories: Arc<[Trajectory]>,
    next: usize,
    translation: Translation,
    is_terminal: Vec<bool>,
}

impl Memory {
    /// Appends the names of `from` that are new to `to`.
    pub fn new(from: &Alphabet, trajectories: Arc<[Trajectory]>, to: &mut Alphabet) -> Memory {
        let translation = Translation::adding(from, to);
        let is_terminal = from.observations().iter().map(|symbol| symbol.terminal).collect();
        Memory { trajectories, next: 0, translation, is_terminal }
    }

    /// The trajectory in the reader's alphabet, if it is valid.
    fn translate(&self, trajectory: &Trajectory) -> Result<Trajectory, String> {
        let Trajectory { steps, rewards, action_probabilities, end, about } = trajectory;
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
        let translate = |(t, &step): (usize, &ActionObservation)| {
            let ActionObservation { action, observation } = step;
            if observation.is_missing() {
                let action = self
                    .translation
                    .action(action)
                    .ok_or_else(|| format!("action {}, which the alphabet does not have", action.0))?;
                return Ok(ActionObservation { action, observation });
            }
            let Some(renamed) = self.translation.pair(step) else {
                return Err(format!("action {} or observation {}, which the alphabet does not have", action.0, observation.0));
            };
            let ends = *end == End::Terminated && t + 1 == steps.len();
            match self.is_terminal[observation.index()] == ends {
                true => Ok(renamed),
                false => Err("an observation that ends the episode before its end, or an end without one".into()),
            }
        };
        let steps = steps.iter().enumerate().map(translate).collect::<Result<Vec<_>, _>>()?;
        let about = self.translate_about(about, steps.len())?;
        Ok(Trajectory { steps, rewards: rewards.clone(), action_probabilities: action_probabilities.clone(), end: *end, about })
    }

    /// What is known of the trajectory, with available actions in the reader's alphabet.
    fn translate_about(&self, about: &About, steps: usize) -> Result<About, String> {
        if !about.available.is_empty() && about.available.len() != steps {
            return Err(format!("available actions for {} of {steps} steps", about.available.len()));
        }
        let action = |&a: &Action| {
            self.translation.action(a).ok_or_else(|| format!("available action {}, which the alphabet does not have", a.0))
        };
        let set = |set: &Arc<[Action]>| {
            let mut actions = set.iter().map(action).collect::<Result<Vec<Action>, String>>()?;
            actions.sort_unstable();
            Ok::<_, String>(actions.into())
        };
        let available = about.available.iter().map(|given| given.as_ref().map(set).transpose()).collect::<Result<_, _>>()?;
        Ok(About { available, ..about.clone() })
    }
}

impl Source for Memory {
    fn next(&mut self, _: &mut ReadState) -> Result<Option<Trajectory>> {
        let Some(trajectory) = self.trajectories.get(self.next) else { return Ok(None) };
        self.next += 1;
        self.translate(trajectory).map(Some).map_err(|problem| {
            Error::data(
                format!("trajectory {} in memory has {problem}", self.next - 1),
                "build its steps with the alphabet that is given with it",
            )
        })
    }
}
