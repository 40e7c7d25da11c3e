//! Planning from logs: fitted-Q on the states of a filter, or solving the POMDP of a refined model.
//! The result is a plan, which acts as a policy.

mod experience;
mod fitted_q;
mod memory;
mod choices;
mod tree_q;
mod window;
mod q;
mod visits;
mod comparison;
mod params;
mod greedy;
mod translated;
mod evidence;
mod planner;
mod worth;
mod choice;
mod support;
mod file;

pub(crate) use choice::{contenders, seeking};
pub use choice::{plan, plan_on};
pub use choices::Choices;
pub use evidence::{Choice, Judged};
pub use experience::{States, Step, Steps, are_single_steps};
pub use fitted_q::{Approximator, FittedQ, Round};
pub use greedy::{Greedy, GreedyOnTrees};
pub use memory::{LastObservations, WithLast};
pub use params::{PlanOverrides, PlanParams, Planner, Regressor, StateKind};
pub use planner::{Plan, only_reward};
pub use support::Support;
pub use translated::Translated;
pub(crate) use tree_q::{AtOwnTime, Following, LANES, Lanes};
pub use tree_q::{Ensembles, Structure, TreeFit, TreeQ};
pub use window::{Recent, RecentPast, WindowFit, WindowPolicy, WindowQ};
