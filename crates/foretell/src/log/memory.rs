//! Trajectories in memory, read as if from a file.

use std::sync::Arc;

use super::episodes::{ReadState, Source};
use crate::data::{About, Action, ActionObservation, Alphabet, End, Trajectory, Translation};
use crate::error::{Error, Result};
use crate::limits::{PROBABILITY, REWARD};

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

/// Refuses numbers that readers of files refuse.
fn check_numbers(trajectory: &Trajectory) -> Result<(), String> {
    if let Some(r) = trajectory.rewards.iter().flatten().find(|r| !(-REWARD..=REWARD).contains(*r)) {
        return Err(format!("reward {r:e}, which is not within ±{REWARD:e}"));
    }
    match trajectory.action_probabilities.iter().find(|p| !(PROBABILITY..=1.0).contains(*p)) {
        Some(p) => Err(format!("action probability {p:e}, which is not within {PROBABILITY:e} and 1")),
        None => Ok(()),
    }
}

impl Source for Memory {
    fn next(&mut self, _: &mut ReadState) -> Result<Option<Trajectory>> {
        let Some(trajectory) = self.trajectories.get(self.next) else { return Ok(None) };
        let number = self.next;
        self.next += 1;
        let failed = |remedy| move |problem| Error::data(format!("trajectory {number} in memory has {problem}"), remedy);
        check_numbers(trajectory).map_err(failed("give rewards in another unit, and probabilities of the actions taken"))?;
        self.translate(trajectory).map(Some).map_err(failed("build its steps with the alphabet that is given with it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Logs;

    #[test]
    fn numbers_that_overflow_are_refused_in_memory_too() {
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("open");
        alphabet.intern_observation("creak");
        let read = |reward: f64, p: f64| {
            let (steps, end) = (vec![ActionObservation::new(0, 0)], End::Truncated);
            let z =
                Trajectory { steps, rewards: vec![Some(reward)], action_probabilities: vec![p], end, about: About::default() };
            Logs::memory(alphabet.clone(), vec![z]).open(Alphabet::default()).unwrap().next().unwrap()
        };
        assert!(read(-1e50, 1e-50).is_ok());
        for (reward, p, problem) in [
            (2e50, 1.0, "trajectory 0 in memory has reward 2e50, which is not within ±1e50; give rewards in another unit"),
            (f64::NAN, 1.0, "reward NaN"),
            (0.0, 1e-51, "action probability 1e-51, which is not within 1e-50 and 1"),
            (0.0, 0.0, "action probability 0e0"),
        ] {
            let said = read(reward, p).unwrap_err().to_string();
            assert!(said.contains(problem), "{said}");
        }
    }
}
