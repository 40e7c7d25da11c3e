//! The policy in question, along logged episodes.

use super::behaviour::Behaviour;
use crate::data::{Action, Alphabet, Trajectory};
use crate::error::{Error, Result};
use crate::plan::{Choices, LastObservations, Plan, States, Steps};

/// Observations that states consist of where a policy has no model.
const LAST: usize = 2;

/// A policy whose value is asked for.
#[derive(Clone, Copy, Debug)]
pub enum TargetPolicy<'p> {
    /// A plan, which takes the best action.
    Plan(&'p Plan),
    /// The same action, always.
    Always(Action),
    /// Uniformly random actions.
    Uniform,
    /// The one that was logged.
    Logged,
}

/// A policy, and how much it explores.
#[derive(Clone, Copy, Debug)]
pub struct Target<'p> {
    /// The policy.
    pub policy: TargetPolicy<'p>,
    /// Probability of a uniformly random action instead.
    pub epsilon: f64,
}

impl<'p> Target<'p> {
    /// A policy by its name: `always:ACTION`, `uniform` or `logged`; `None` for other names, such as
    /// those of files.
    pub fn named(name: &str, alphabet: &Alphabet) -> Result<Option<Target<'static>>> {
        let policy = match name.split_once(':') {
            Some(("always", action)) => {
                let known = || alphabet.actions().iter().map(String::as_str);
                TargetPolicy::Always(alphabet.action(action).ok_or_else(|| Error::unknown("action", action, known()))?)
            }
            _ if name == "uniform" => TargetPolicy::Uniform,
            _ if name == "logged" => TargetPolicy::Logged,
            _ => return Ok(None),
        };
        Ok(Some(Target { policy, epsilon: 0.0 }))
    }

    /// The plan, if it is one.
    pub fn plan(&self) -> Option<&'p Plan> {
        match self.policy {
            TargetPolicy::Plan(plan) => Some(plan),
            TargetPolicy::Always(_) | TargetPolicy::Uniform | TargetPolicy::Logged => None,
        }
    }

    /// Whether it is what was logged.
    pub fn is_logged(&self) -> bool {
        matches!(self.policy, TargetPolicy::Logged) && self.epsilon == 0.0
    }

    /// The states on which its Q is estimated: those of a plan, else the last observations.
    pub(super) fn states(&self, alphabet: &Alphabet, episodes: &[Trajectory]) -> States {
        match self.policy {
            TargetPolicy::Plan(plan) => plan.states(episodes),
            _ => States::track(episodes, || LastObservations::new(alphabet, LAST)),
        }
    }

    /// π(a | h) along the episodes; `behaviour` is needed for what was logged. `first` is the action of first steps that nobody chooses.
    pub(super) fn choices(
        &self,
        steps: &Steps,
        episodes: &[Trajectory],
        behaviour: Option<&Behaviour>,
        first: Option<Action>,
    ) -> Choices {
        let all = |a: Action| vec![a; steps.rows()];
        let mut given = match self.policy {
            TargetPolicy::Plan(plan) => plan.actions(episodes),
            TargetPolicy::Always(a) => all(a),
            TargetPolicy::Uniform | TargetPolicy::Logged => Vec::new(),
        };
        if let Some(first) = first.filter(|_| !given.is_empty()) {
            steps.starts().iter().for_each(|&row| given[row] = first);
        }
        let choices = match self.policy {
            TargetPolicy::Plan(_) | TargetPolicy::Always(_) => Choices::given(steps, &given),
            TargetPolicy::Uniform => Choices::uniform(steps),
            TargetPolicy::Logged => behaviour.map_or_else(|| Choices::uniform(steps), |behaviour| behaviour.choices().clone()),
        };
        choices.exploring(steps, self.epsilon)
    }
}
