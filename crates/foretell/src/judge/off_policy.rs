//! Off-policy evaluation: the value of a policy from logs alone, by two estimates with different
//! errors.
//!
//! Fitted-Q evaluation (Le, Voloshin, Yue 2019) carries rewards of the logs back along the policy's
//! actions; its trees smooth over states. Rollouts let the policy act in its own model; they err
//! where the model does. Where the two disagree, trust neither.

use std::iter;

use rayon::prelude::*;
use serde::Serialize;

use super::returns::Returns;
use crate::data::{Action, ActionObservation, End, LearnedFrom, Observation, Trajectory};
use crate::error::{Error, Result};
use crate::math::{Mean, Z95};
use crate::model::{Model, PredictiveState};
use crate::plan::{Ensembles, FittedQ, Following, LANES, Plan, Steps, Structure, TreeFit, TreeQ};
use crate::pomdp::Pomdp;
use crate::rng::{Rng, Seed};
use crate::system::{Filter, Policy, Track};

/// Estimates with a smaller relative difference are equal, summed in another order.
const ROUNDING: f64 = 1e-9;

/// A test of a policy on logs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogTest {
    /// Steps after which an episode is truncated, without [`first`](LogTest::first).
    pub max_steps: usize,
    /// γ
    pub discount: f64,
    /// Rollouts in the model.
    pub rollouts: usize,
    /// Samples of episodes, drawn with replacement, for the interval of fitted-Q evaluation.
    pub replicates: usize,
    /// Seed of rollouts, trees and replicates.
    pub seed: Seed,
    /// The action of every first step, where that step is no choice but only records the initial
    /// observation. The policy does not choose it, and returns begin after it.
    pub first: Option<Action>,
}

/// A value and half the width of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The expected discounted return.
    pub value: f64,
    /// Half the width of the interval, which covers sampling error only, not errors of trees or
    /// model; `None` for a single episode.
    pub ci95: Option<f64>,
}

impl Estimate {
    /// Whether the intervals overlap, if there are two.
    pub fn agrees_with(&self, other: &Estimate) -> Option<bool> {
        let rounding = ROUNDING * self.value.abs().max(other.value.abs());
        Some((self.value - other.value).abs() <= self.ci95? + other.ci95? + rounding)
    }
}

/// The value of a policy, estimated from logs.
#[derive(Clone, Debug, Serialize)]
pub struct LogValue {
    /// The return of the behaviour policy, from the logs. An unknown reward counts as the mean of the
    /// known ones as many steps after the start of other episodes.
    pub logged: Returns,
    /// Steps whose reward is unknown; fitted-Q evaluation leaves them out.
    pub missing_rewards: usize,
    /// By fitted-Q evaluation, with an interval by bootstrap over episodes.
    pub fitted_q: Estimate,
    /// By rollouts in the policy's model, with an interval over rollouts; `None` if it has no
    /// model, or if only some actions were available in the logs, which the model does not predict.
    pub rollouts: Option<Estimate>,
    /// Share of the steps with known reward in whose state the policy would have taken the action of the logs.
    pub same_action: f64,
    /// How many of the episodes it was planned on, or its model was learned from; `None` where that
    /// is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<LearnedFrom>,
}

impl LogValue {
    /// Whether the two estimates agree, where there are two with intervals.
    pub fn agree(&self) -> Option<bool> {
        self.rollouts.and_then(|rollouts| rollouts.agrees_with(&self.fitted_q))
    }
}

impl LogTest {
    /// Evaluates a policy on these logs, over its alphabet. They should not be those it was planned
    /// on, which would bias the estimate upwards.
    pub fn evaluate(&self, plan: &Plan, episodes: &[Trajectory]) -> Result<LogValue> {
        let steps = Steps::of(plan.alphabet(), episodes)?;
        let states = plan.states(episodes);
        let mut actions = plan.actions(episodes);
        if let Some(first) = self.first {
            steps.starts().iter().for_each(|&row| actions[row] = first);
        }
        check_support(plan, &steps, &actions)?;
        let trees = plan.params().tree_params();
        let mut fit =
            TreeFit::new(&steps, &states, Structure::Frozen, Ensembles::PerAction, &trees, self.seed.stream("evaluation"))?;
        FittedQ::new(&steps, &mut fit, self.discount).next();
        let rewards = fit.to_q();
        let fitted_q = self.fitted_q(&steps, &fit, &actions);
        let simulated = plan.model().filter(|_| !steps.are_restricted());
        let rollouts = simulated.map(|model| self.rollouts(plan, model, &rewards));
        let given = if self.first.is_some() { episodes.len() } else { 0 };
        let same = steps.list().iter().filter(|step| actions[step.row] == step.action).count().saturating_sub(given);
        let cut: Vec<Trajectory> = episodes.iter().map(|z| self.cut(z)).collect();
        let logged = Returns::of(with_mean_rewards(cut), self.discount);
        let same_action = same as f64 / (steps.list().len() - given).max(1) as f64;
        Ok(LogValue {
            logged,
            missing_rewards: steps.unrewarded(),
            fitted_q: self.after_first(fitted_q),
            rollouts: rollouts.map(|x| self.after_first(x)),
            same_action,
            learned_from: plan.digest().learned_from(plan.alphabet(), episodes),
        })
    }

    /// The part of an episode within the horizon.
    fn cut(&self, z: &Trajectory) -> Trajectory {
        let last = z.steps.len().min(self.horizon());
        let first = (self.horizon() - self.max_steps).min(last);
        let end = if last < z.steps.len() { End::Truncated } else { z.end };
        let (steps, rewards) = (z.steps[first..last].to_vec(), z.rewards[first..last].to_vec());
        Trajectory { steps, rewards, action_probabilities: Vec::new(), end, about: Default::default() }
    }

    /// Steps of an episode, including the first if that is given.
    fn horizon(&self) -> usize {
        self.max_steps + usize::from(self.first.is_some())
    }

    /// The value after the first step, which has no reward, if that is given.
    fn after_first(&self, Estimate { value, ci95 }: Estimate) -> Estimate {
        let weight = if self.first.is_some() && self.discount > 0.0 { self.discount } else { 1.0 };
        Estimate { value: value / weight, ci95: ci95.map(|half| half / weight) }
    }

    /// Q̂ at the start, over the horizon of an episode.
    fn fitted_q(&self, steps: &Steps, fit: &TreeFit, actions: &[Action]) -> Estimate {
        let (episodes, of_step) = (steps.starts().len(), steps.episodes());
        let following = Following::new(fit, steps, actions, self.discount);
        // The weight of each episode: 1, and in replicates how often it is drawn.
        let replicate = |i| drawn(episodes, &mut self.seed.stream("bootstrap").index(i).rng());
        let counts: Vec<Vec<f64>> = iter::once(vec![1.0; episodes]).chain((0..self.replicates as u64).map(replicate)).collect();
        let values = counts.chunks(LANES).flat_map(|counts| {
            let count = |lane: usize, i: usize| counts.get(lane).map_or(1.0, |counts| counts[of_step[i]]);
            let values = following.values(|i| std::array::from_fn(|lane| count(lane, i)), self.horizon());
            let value = |(lane, counts): (usize, &Vec<f64>)| {
                let starts = steps.starts().iter().zip(counts).map(|(&row, n)| n * values[row][lane]);
                starts.sum::<f64>() / episodes as f64
            };
            counts.iter().enumerate().map(value).collect::<Vec<f64>>()
        });
        let values: Vec<f64> = values.collect();
        let replicates: Mean = values[1..].iter().copied().collect();
        Estimate { value: values[0], ci95: (episodes > 1).then(|| Z95 * replicates.sd()) }
    }

    /// The mean return of the policy in its own model, with rewards of the model's POMDP, or else
    /// those of similar steps in the logs.
    fn rollouts(&self, plan: &Plan, model: &Model, rewards: &TreeQ) -> Estimate {
        let seed = self.seed.stream("rollouts");
        let returns: Vec<f64> = (0..self.rollouts as u64)
            .into_par_iter()
            .map(|i| self.rollout(plan, model, rewards, &mut seed.index(i).rng()))
            .collect();
        let mean: Mean = returns.into_iter().collect();
        Estimate { value: mean.mean(), ci95: (mean.count() > 1.0).then(|| mean.ci95()) }
    }

    fn rollout(&self, plan: &Plan, model: &Model, rewards: &TreeQ, rng: &mut Rng) -> f64 {
        let (mut policy, mut world) = (plan.policy(), PredictiveState::new(model));
        let pomdp = model.latent().map(|latent| &latent.pomdp).filter(|pomdp| pomdp.has_rewards());
        let (mut sum, mut weight) = (0.0, 1.0);
        for t in 0..self.horizon() {
            let action = self.first.filter(|_| t == 0).unwrap_or_else(|| policy.act(rng));
            let earned = |pomdp: &Pomdp| {
                let belief = world.state().iter().enumerate().filter(|(_, b)| **b > 0.0);
                belief.map(|(s, b)| b * pomdp.expected_reward(action, s)).sum()
            };
            sum += weight * pomdp.map_or_else(|| rewards.value(policy.state(), action), earned);
            weight *= self.discount;
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

/// The episodes, with the mean of the known rewards of their time step, or else of all steps, in
/// place of unknown ones.
fn with_mean_rewards(mut episodes: Vec<Trajectory>) -> Vec<Trajectory> {
    let (mut all, mut at) = (Mean::default(), Vec::<Mean>::new());
    for (t, &reward) in episodes.iter().flat_map(|z| z.rewards.iter().enumerate()) {
        at.resize(at.len().max(t + 1), Mean::default());
        reward.into_iter().for_each(|reward| {
            all.add(reward);
            at[t].add(reward);
        });
    }
    let mean = |t: usize| if at[t].count() > 0.0 { at[t].mean() } else { all.mean() };
    for z in &mut episodes {
        z.rewards.iter_mut().enumerate().filter(|(_, reward)| reward.is_none()).for_each(|(t, reward)| *reward = Some(mean(t)));
    }
    episodes
}

/// How often each of n is drawn when n are drawn with replacement.
fn drawn(n: usize, rng: &mut Rng) -> Vec<f64> {
    let mut counts = vec![0.0; n];
    (0..n).for_each(|_| counts[rng.below(n)] += 1.0);
    counts
}

/// Every action of the policy must be in the logs with a reward, otherwise it cannot be evaluated.
fn check_support(plan: &Plan, steps: &Steps, actions: &[Action]) -> Result<()> {
    let taken = |a: Action| steps.list().iter().any(|step| step.action == a);
    let all = (0..steps.actions() as u32).map(Action);
    match all.into_iter().find(|&a| actions.contains(&a) && !taken(a)) {
        None => Ok(()),
        Some(a) => {
            let with = if steps.unrewarded() > 0 { " with a reward" } else { "" };
            let problem =
                format!("the policy takes the action {:?}, which never occurs in the logs{with}", plan.alphabet().action_name(a));
            Err(Error::data(problem, "give logs that contain all of its actions"))
        }
    }
}
