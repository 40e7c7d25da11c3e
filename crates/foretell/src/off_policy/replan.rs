//! A plan made anew on other episodes, in the same way.

use serde::Serialize;

use crate::data::Trajectory;
use crate::error::Result;
use crate::learn::learn;
use crate::log::Logs;
use crate::model::{LearnParams, Model};
use crate::plan::{Plan, Planner, plan_on};
use crate::refine::{RefineParams, refine};

/// Steps up to which a POMDP is learned anew: a matter of seconds.
const MOST_RELEARNED: usize = 250_000;

/// How plans were made anew on folds of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CrossFitted {
    /// Folds of the logs: each was evaluated with a plan made on the others.
    pub folds: usize,
    /// Whether the model was learned anew as well; otherwise only plan and Q̂ were.
    pub relearned: bool,
}

/// The same plan from other episodes over its alphabet, and whether its model was learned anew: that
/// of a planner that uses nothing but the POMDP, since its plan would not change otherwise.
pub(super) fn replanned(plan: &Plan, training: &[Trajectory]) -> Result<(Plan, bool)> {
    let steps: usize = training.iter().map(|z| z.steps.len()).sum();
    let is_solved = !matches!(plan.params().planner, Planner::FittedQ | Planner::Auto);
    let anew = |model: Option<&Model>| {
        // Rewards are part of the alphabet's symbols already, if they were observed.
        let given =
            model.map_or_else(|| LearnParams { max_test_length: 1, ..LearnParams::default() }, |model| model.params().clone());
        let params = LearnParams { observe_reward: false, ..given };
        let logs = Logs::memory(plan.alphabet().clone(), training.to_vec());
        let linear = learn(&logs, &params)?;
        if is_solved { refine(&linear, &logs, &RefineParams::default()) } else { Ok(linear) }
    };
    match plan.model() {
        Some(model) if !(is_solved && steps <= MOST_RELEARNED) => {
            Ok((plan_on(model, training, plan.params(), &mut |_| {})?, false))
        }
        model => Ok((plan_on(&anew(model)?, training, plan.params(), &mut |_| {})?, is_solved)),
    }
}
