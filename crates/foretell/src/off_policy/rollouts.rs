//! The return of a policy in its own model.

use rayon::prelude::*;

use super::bounds::Bounded;
use super::value::ValueParams;
use crate::data::{ActionObservation, Observation};
use crate::math::{Mean, t_quantile};
use crate::model::{Model, PredictiveState};
use crate::plan::{Plan, TreeQ};
use crate::pomdp::Pomdp;
use crate::rng::Rng;
use crate::system::{Filter, Policy, Track};

/// Rollouts of a plan in its model.
pub(super) struct Rollouts<'r> {
    pub(super) plan: &'r Plan,
    pub(super) model: &'r Model,
    pub(super) epsilon: f64,
    /// The expected reward of one step, where the model has none of its own.
    pub(super) rewards: &'r TreeQ,
    pub(super) horizon: usize,
    pub(super) params: &'r ValueParams,
}

impl Rollouts<'_> {
    /// The mean return of `count` rollouts, with an interval for the error of sampling them, not for
    /// that of the model.
    pub(super) fn mean(&self, count: usize) -> Bounded {
        let seed = self.params.seed.stream("rollouts");
        let one = |i: u64| self.rollout(&mut seed.index(i).rng());
        let returns: Vec<f64> = (0..count as u64).into_par_iter().map(one).collect();
        let mean: Mean = returns.into_iter().collect();
        if mean.count() < 2.0 {
            return Bounded::alone(mean.mean());
        }
        let half = t_quantile(0.5 + 0.5 * self.params.level, mean.count() - 1.0);
        let error = mean.sd() / mean.count().sqrt();
        let (low, high) = (mean.mean() - half * error, mean.mean() + half * error);
        Bounded { value: mean.mean(), error: Some(error), low: Some(low), high: Some(high) }
    }

    fn rollout(&self, rng: &mut Rng) -> f64 {
        let Rollouts { model, params, .. } = *self;
        let (mut policy, mut world) = (self.plan.policy(), PredictiveState::new(model));
        let pomdp = model.latent().map(|latent| &latent.pomdp).filter(|pomdp| pomdp.has_rewards());
        let (mut sum, mut weight) = (0.0, 1.0);
        for t in 0..self.horizon + params.offset() {
            let action = match params.first.filter(|_| t == 0) {
                Some(first) => first,
                None if self.epsilon > 0.0 && rng.uniform() < self.epsilon => {
                    crate::data::Action(rng.below(model.alphabet().actions().len()) as u32)
                }
                None => policy.act(rng),
            };
            if t >= params.offset() {
                let earned = |pomdp: &Pomdp| {
                    let belief = world.state().iter().enumerate().filter(|(_, b)| **b > 0.0);
                    belief.map(|(s, b)| b * pomdp.expected_reward(action, s)).sum()
                };
                sum += weight * pomdp.map_or_else(|| self.rewards.value(policy.state(), action), earned);
                weight *= params.discount;
            }
            let Some(o) = rng.weighted(world.predict(action)) else { break };
            let ao = ActionObservation { action, observation: Observation(o as u32) };
            if model.alphabet().is_terminal(ao.observation) {
                break;
            }
            world.observe(ao);
            policy.observe(ao);
        }
        sum
    }
}
