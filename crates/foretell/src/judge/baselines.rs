//! What a planner is compared with, on the same data and the same test episodes.

use std::iter;

use serde::{Deserialize, Serialize};

use super::returns::Returns;
use crate::data::{Action, Trajectory};
use crate::domains::{Domain, sample_with};
use crate::error::Result;
use crate::math::argmax;
use crate::plan::{FittedQ, GreedyOnTrees, LastObservations, PlanParams, Recent, States, Steps, TreeFit, WindowFit};
use crate::pomdp::Qmdp;
use crate::rng::Seed;
use crate::system::{Always, Policy, Uniform};

/// Rounds of fitted-Q.
const ROUNDS: usize = 100;
/// Observations that trees without a model look at.
const LAST: usize = 2;

/// How policies are tested.
#[derive(Clone, Copy, Debug)]
pub struct Test<'d> {
    /// Where.
    pub domain: &'d Domain,
    /// In how many episodes.
    pub episodes: usize,
    /// Steps after which each is cut.
    pub max_steps: usize,
    /// γ of the discounted return.
    pub discount: f64,
    /// Seed of the test episodes.
    pub seed: Seed,
}

/// A policy and what it earns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tested {
    /// What kind of policy it is.
    pub policy: String,
    /// What it earns.
    #[serde(flatten)]
    pub returns: Returns,
}

impl Test<'_> {
    /// What a policy earns; `policy` makes one for each thread.
    pub fn returns<P: Policy>(&self, policy: impl Fn() -> P + Send + Sync) -> Returns {
        Returns::of(sample_with(self.domain, policy, self.episodes, self.max_steps, self.seed), self.discount)
    }

    /// Policies that learn nothing: random, and the best of always the same action.
    pub fn unlearned(&self) -> Vec<Tested> {
        let actions = self.domain.alphabet().actions().len();
        let random = Tested { policy: "random".into(), returns: self.returns(|| Uniform { actions }) };
        iter::once(random).chain(self.best_single_action()).collect()
    }

    /// Policies that need no model: the [`unlearned`](Test::unlearned) ones, fitted-Q with tables over the last observation
    /// (memoryless) and over the last two and three pairs, and with trees over the last observations. `episodes` are over the
    /// domain's alphabet.
    pub fn baselines(&self, episodes: &[Trajectory], discount: f64) -> Result<Vec<Tested>> {
        let tested = |policy: String, returns| Tested { policy, returns };
        let mut all = self.unlearned();
        let steps = Steps::of(self.domain.alphabet(), episodes)?;
        let windows =
            [("memoryless", Recent::Observation), ("last 2 pairs", Recent::Pairs(2)), ("last 3 pairs", Recent::Pairs(3))];
        for (name, recent) in windows {
            let mut fitted = FittedQ::new(&steps, WindowFit::new(recent, &steps, episodes), discount);
            fitted.by_ref().take(ROUNDS).last();
            let q = fitted.into_inner().into_q();
            all.push(tested(name.into(), self.returns(|| q.policy())));
        }
        let last = || LastObservations::new(self.domain.alphabet(), LAST);
        let PlanParams { structure, ensembles, .. } = PlanParams::default();
        let (states, trees) = (States::track(episodes, last), PlanParams::default().tree_params());
        let trees = TreeFit::new(&steps, &states, structure, ensembles, &trees, self.seed.stream("trees"))?;
        let mut fitted = FittedQ::new(&steps, trees, discount);
        fitted.by_ref().take(ROUNDS).last();
        let q = fitted.into_inner().to_q();
        all.push(tested(format!("trees, last {LAST} observations"), self.returns(|| GreedyOnTrees::new(&q, Box::new(last())))));
        Ok(all)
    }

    /// The single action that earns most in other episodes than those of the test.
    fn best_single_action(&self) -> Option<Tested> {
        let actions = self.domain.alphabet().actions();
        let trial = Test { seed: self.seed.stream("single action"), ..*self };
        let (best, _) = argmax((0..actions.len() as u32).map(|a| trial.returns(|| Always(Action(a))).discounted_return));
        let returns = self.returns(|| Always(Action(best as u32)));
        Some(Tested { policy: format!("always {}", actions.get(best)?), returns })
    }

    /// QMDP on the exact belief, and what one could earn at most who saw the state, discounted; where the domain is a finite POMDP.
    pub fn informed(&self) -> Option<(Tested, f64)> {
        let solved = Qmdp::solve(self.domain.pomdp()?, self.discount, self.max_steps);
        let returns = self.returns(|| solved.policy());
        Some((Tested { policy: "QMDP, knows the model".into(), returns }, solved.bound()))
    }
}
