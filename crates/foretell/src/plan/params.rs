//! How policies are computed: kinds of states, planners and estimates of Q, and their parameters.

use serde::{Deserialize, Serialize};

use super::tree_q::{Ensembles, Structure};
use super::window::Recent;
use crate::error::{Error, Result};
use crate::parameters;
use crate::trees::TreeParams;

/// Most observations in a state: with more, the splits of trees would be less likely to find the
/// informative ones.
const MOST_LAST: usize = 100;
/// Most trees in a forest: their mean settles with a few dozen.
const MOST_TREES: usize = 1000;
/// Most rounds: values with a discount of 0.9999 have settled after about as many.
const MOST_ROUNDS: usize = 100_000;

/// What a policy remembers of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum StateKind {
    /// The predictive state of the model, as in the paper
    Predictive,
    /// The predictive state and the last observation
    Memory,
    /// The last observations only, as many as `last` says; the model is not used
    Last,
}

/// How a policy is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Planner {
    /// Point-based planning if the model is refined, its POMDP predicts the logs better than the
    /// last steps do, its states determine rewards, and the logs do not say that actions were
    /// unavailable, and have episodes of several steps; otherwise fitted-Q with the linear model.
    /// Another planner, state or estimate of Q if its policy is better beyond noise by cross-fitted
    /// value on the logs
    Auto,
    /// Fitted-Q on the logs, as in the paper
    FittedQ,
    /// QMDP: assumes that the state becomes visible after the next step; needs a refined model
    Qmdp,
    /// The fast informed bound: assumes that the state becomes visible after two steps; needs a
    /// refined model
    FastInformed,
    /// Point-based value iteration between two bounds; needs a refined model
    PointBased,
}

/// What estimates Q.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Regressor {
    /// Trees if the model predicts better than the last steps do; a table if nothing predicts
    /// better than the last step alone; otherwise the mean of both, also if rewards depend on more
    /// than the states of its POMDP. Trees if the model was learned from other logs
    Auto,
    /// Trees over states, as in the paper
    Trees,
    /// A table over the last steps and the time step
    Table,
    /// The mean of both
    Mean,
    /// A table over the last observations that differed from the one before, one more of them than
    /// `window` says
    Changes,
}

/// Standard deviations of the reward beyond which a penalty forbids: sums of penalties stay finite.
const MOST_PESSIMISM: f64 = 1e6;

parameters! {
    /// Parameters of planning. [`PlanParams::default`] plans best; [`PlanParams::paper`] is the
    /// published recipe.
    PlanParams,
    /// Changes to a preset: one optional value for each field of [`PlanParams`].
    PlanOverrides, "Planning",
    /// How the policy is computed
    planner: Planner,
    /// Penalty on untried actions, in standard deviations of the reward; half after three trials
    pessimism: f64,
    /// What the policy remembers of the past, with fitted-Q
    state: StateKind,
    /// Number of observations in the state, if it consists of the last ones
    last: usize,
    /// What estimates Q
    regressor: Regressor,
    /// Maximum number of last steps that the table distinguishes, besides the time step
    window: usize,
    /// Rounds of fitted-Q, or of the point-based planner
    rounds: usize,
    /// Discount γ
    discount: f64,
    /// Trees in a forest
    trees: usize,
    /// Tree nodes with fewer rows than this are leaves
    min_split: usize,
    /// When the structure of the trees is chosen
    structure: Structure,
    /// How actions enter Q
    ensembles: Ensembles,
    /// Seed of the trees
    seed: u64,
}

impl Default for PlanParams {
    fn default() -> Self {
        PlanParams {
            planner: Planner::Auto,
            pessimism: 0.0,
            state: StateKind::Memory,
            last: 2,
            regressor: Regressor::Auto,
            window: 2,
            rounds: 100, // [H14 §6.4]
            discount: 0.99,
            trees: 25, // [H14 §6.4]
            min_split: 30,
            structure: Structure::Frozen,
            ensembles: Ensembles::PerAction,
            seed: 0,
        }
    }
}

impl PlanParams {
    /// The recipe as printed [H14 §6.4]: 25 trees for each action, on the predictive state,
    /// refitted in each of 100 rounds.
    pub fn paper() -> Self {
        PlanParams {
            planner: Planner::FittedQ,
            state: StateKind::Predictive,
            regressor: Regressor::Trees,
            structure: Structure::Refitted,
            min_split: 10,
            ..PlanParams::default()
        }
    }

    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        for (name, value) in [("last", self.last), ("rounds", self.rounds), ("window", self.window)] {
            if value == 0 {
                return Err(Error::parameter(name, value, "must be at least 1"));
            }
        }
        let limited = [("last", self.last, MOST_LAST), ("window", self.window, MOST_LAST)];
        for (name, value, most) in
            limited.into_iter().chain([("rounds", self.rounds, MOST_ROUNDS), ("trees", self.trees, MOST_TREES)])
        {
            if value > most {
                return Err(Error::parameter(name, value, format!("must be at most {most}")));
            }
        }
        if !(0.0..=1.0).contains(&self.discount) {
            return Err(Error::parameter("discount", self.discount, "must be between 0 and 1"));
        }
        if !(0.0..=MOST_PESSIMISM).contains(&self.pessimism) {
            return Err(Error::parameter("pessimism", self.pessimism, format!("must be between 0 and {MOST_PESSIMISM}")));
        }
        self.tree_params().validate()
    }

    pub(crate) fn tree_params(&self) -> TreeParams {
        TreeParams { trees: self.trees, candidates: None, min_split: self.min_split }
    }
}

/// What the table of a regressor distinguishes.
pub(super) fn recent(regressor: Regressor, window: usize) -> Recent {
    match regressor {
        Regressor::Changes => Recent::Changes(window + 1),
        Regressor::Auto | Regressor::Trees | Regressor::Table | Regressor::Mean => Recent::PairsAndTime(window),
    }
}

impl Regressor {
    /// Whether it has trees over states.
    pub(super) fn has_trees(self) -> bool {
        !matches!(self, Regressor::Table | Regressor::Changes)
    }
}
