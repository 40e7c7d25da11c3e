//! Tables whose rows hold what was seen before the action: each action is paired with the
//! observation of the next row.

use super::columns::Columns;
use crate::data::{Action, ActionObservation, Observation};

/// The action of the step that shows the first observation. Nobody chose it.
pub const FIRST_ACTION: &str = "reset";

/// What the last row of an episode means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Convention {
    /// Its action was taken, and what followed was not recorded but for the end (Gymnasium, most
    /// tables).
    BeforeAction,
    /// It shows the last observation, and its action is a filler (RLDS).
    LastRowHasNoAction,
}

impl Convention {
    /// RLDS marks the first and the last row.
    pub fn of(columns: &Columns) -> Convention {
        match columns.first.is_some() || columns.last.is_some() {
            true => Convention::LastRowHasNoAction,
            false => Convention::BeforeAction,
        }
    }
}

/// (o_0, a_0), …, (o_n, a_n) become (first, o_0), (a_0, o_1), …, and at the end (a_n, last), if
/// there is a `last`. Rewards and probabilities stay with their actions; the first step has none.
pub(super) fn shift(
    first: Action,
    last: Option<Observation>,
    steps: &mut Vec<ActionObservation>,
    rewards: &mut Vec<Option<f64>>,
    probabilities: &mut Vec<f64>,
) {
    let actions: Vec<Action> = std::iter::once(first).chain(steps.iter().map(|ao| ao.action)).collect();
    let observations = steps.iter().map(|ao| ao.observation).chain(last);
    *steps =
        actions.into_iter().zip(observations).map(|(action, observation)| ActionObservation { action, observation }).collect();
    rewards.insert(0, None);
    rewards.truncate(steps.len());
    if !probabilities.is_empty() {
        probabilities.insert(0, 1.0);
        probabilities.truncate(steps.len());
    }
}
