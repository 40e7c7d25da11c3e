//! Baselines for planners, on the same data and the same test episodes.

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
/// Number of observations that trees without a model use.
const LAST: usize = 2;

/// A test of policies by episodes in a domain.
#[derive(Clone, Copy, Debug)]
pub struct Test<'d> {
    /// Where.
    pub domain: &'d Domain,
    /// Number of episodes.
    pub episodes: usize,
    /// Steps after which each is truncated.
    pub max_steps: usize,
    /// γ of the discounted return.
    pub discount: f64,
    /// Seed of the test episodes.
    pub seed: Seed,
}

/// A policy and its returns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tested {
    /// The name of the policy.
    pub policy: String,
    /// Its returns.
    #[serde(flatten)]
    pub returns: Returns,
}

impl Test<'_> {
    /// The returns of a policy; `policy` makes one for each thread.
    pub fn returns<P: Policy>(&self, policy: impl Fn() -> P + Send + Sync) -> Returns {
        Returns::of(sample_with(self.domain, policy, self.episodes, self.max_steps, self.seed), self.discount)
    }

    /// Policies that learn nothing: uniformly random, and the best constant action.
    pub fn unlearned(&self) -> Vec<Tested> {
        let actions = self.domain.alphabet().actions().len();
        let random = Tested { policy: "random".into(), returns: self.returns(|| Uniform { actions }) };
        iter::once(random).chain(self.best_single_action()).collect()
    }

    /// Policies that need no model: the [`unlearned`](Test::unlearned) ones, fitted-Q with tables
    /// over the last observation (memoryless) and over the last two and three pairs, and with trees
    /// over the last observations. `episodes` are over the domain's alphabet.
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

    /// The constant action with the largest return in episodes other than those of the test.
    fn best_single_action(&self) -> Option<Tested> {
        let actions = self.domain.alphabet().actions();
        let trial = Test { seed: self.seed.stream("single action"), ..*self };
        let (best, _) = argmax((0..actions.len() as u32).map(|a| trial.returns(|| Always(Action(a))).discounted_return));
        let returns = self.returns(|| Always(Action(best as u32)));
        Some(Tested { policy: format!("always {}", actions.get(best)?), returns })
    }

    /// QMDP on the exact belief, and the discounted value of the fully observed system, an upper
    /// bound; if the domain is a finite POMDP.
    pub fn informed(&self) -> Option<(Tested, f64)> {
        let solved = Qmdp::solve(self.domain.pomdp()?, self.discount, self.max_steps);
        let returns = self.returns(|| solved.policy());
        Some((Tested { policy: "QMDP, knows the model".into(), returns }, solved.bound()))
    }
}
