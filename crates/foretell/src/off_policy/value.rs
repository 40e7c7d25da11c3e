//! The value of one policy, or of a way to plan, for those who compare several.

use super::behaviour::{Behaviour, Propensities};
use super::bounds::{Bound, Bounded};
use super::estimators::{Estimator, Evidence, Weighted};
use super::fitted::{QAlong, Task};
use super::target::{Target, TargetPolicy};
use crate::data::{Action, Alphabet, End, Groups, Trajectory};
use crate::error::{Error, Result};
use crate::math::{Mean, t_quantile};
use crate::plan::{Choices, Plan, PlanParams, Steps};
use crate::rng::Seed;

/// Weights worth fewer episodes than this, or than half of them, say next to nothing: the weighted
/// doubly robust estimate is not corrected by them.
const LEAST_EFFECTIVE: f64 = 10.0;

/// The effective number of episodes up to which weights are used.
pub(super) fn least_effective(evidence: &Evidence) -> f64 {
    LEAST_EFFECTIVE.min(0.5 * evidence.len() as f64)
}

/// How the value of a policy is estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueParams {
    /// Steps after which an episode is truncated, without [`first`](ValueParams::first); `None` for
    /// as many as are known of at least half of the episodes.
    pub max_steps: Option<usize>,
    /// γ
    pub discount: f64,
    /// The kind of interval.
    pub bound: Bound,
    /// How often intervals are meant to contain the value.
    pub level: f64,
    /// Samples of episodes, drawn with replacement, for the errors of fitted-Q evaluation.
    pub replicates: usize,
    /// Seed of trees, samples and rollouts.
    pub seed: Seed,
    /// The action of every first step, where that step is no choice but only records the initial
    /// observation. The policy does not choose it, and returns begin after it.
    pub first: Option<Action>,
}

impl Default for ValueParams {
    fn default() -> Self {
        ValueParams {
            max_steps: None,
            discount: PlanParams::default().discount,
            bound: Bound::T,
            level: 0.95,
            replicates: 20,
            seed: Seed(0),
            first: None,
        }
    }
}

impl ValueParams {
    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        if self.max_steps == Some(0) {
            return Err(Error::parameter("max_steps", 0, "must be at least 1"));
        }
        if !(0.0..=1.0).contains(&self.discount) {
            return Err(Error::parameter("discount", self.discount, "must be between 0 and 1"));
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(Error::parameter("level", self.level, "must be between 0 and 1, such as 0.95"));
        }
        if self.replicates < 2 {
            return Err(Error::parameter("replicates", self.replicates, "must be at least 2"));
        }
        Ok(())
    }

    /// First steps that nobody chose.
    pub(super) fn offset(&self) -> usize {
        usize::from(self.first.is_some())
    }

    /// Steps of a return: as given, or known of at least half of the episodes.
    pub fn horizon(&self, episodes: &[Trajectory]) -> usize {
        let lengths = |z: &Trajectory| z.steps.len().saturating_sub(self.offset());
        let longest = episodes.iter().map(lengths).max().unwrap_or(0);
        let known = |z: &Trajectory| if z.end == End::Terminated { longest } else { lengths(z) };
        let mut known: Vec<usize> = episodes.iter().map(known).collect();
        known.sort_unstable();
        self.max_steps.unwrap_or_else(|| known.get((known.len().saturating_sub(1)) / 2).copied().unwrap_or(0)).max(1)
    }
}

/// Episodes whose action probabilities are all known or estimated.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) episodes: Vec<Trajectory>,
    pub(super) propensities: Propensities,
}

impl Prepared {
    /// Estimates the probabilities that the logs do not have, from last steps and the states of the
    /// target.
    pub(super) fn new(target: &Target<'_>, alphabet: &Alphabet, episodes: &[Trajectory], seed: Seed) -> Result<Prepared> {
        if !episodes.iter().any(|z| z.rewards.iter().any(Option::is_some)) {
            return Err(Error::NoRewards { purpose: "to evaluate by", remedy: "give logs with a column of rewards" });
        }
        let has_all = |z: &Trajectory| z.action_probabilities.len() == z.steps.len();
        if episodes.iter().all(has_all) {
            return Ok(Prepared { episodes: episodes.to_vec(), propensities: Propensities::Logged });
        }
        let steps = Steps::of(alphabet, &with_rewards(episodes))?;
        let states = target.plan().map(|plan| plan.states(episodes));
        let behaviour = Behaviour::of(&steps, episodes, states.as_ref(), seed)?;
        let (mut episodes, mut taken) = (episodes.to_vec(), behaviour.taken());
        for z in &mut episodes {
            let (own, rest) = taken.split_at(z.steps.len());
            z.action_probabilities = own.to_vec();
            taken = rest;
        }
        Ok(Prepared { episodes, propensities: behaviour.propensities().clone() })
    }
}

/// The episodes with 0 for rewards that are not known; who uses them leaves these steps out.
fn with_rewards(episodes: &[Trajectory]) -> Vec<Trajectory> {
    let known = |z: &Trajectory| {
        let rewards = z.rewards.iter().map(|r| Some(r.unwrap_or(0.0))).collect();
        Trajectory { rewards, ..z.clone() }
    };
    episodes.iter().map(known).collect()
}

/// Episodes with a policy along them.
pub(super) struct Part {
    /// The plan that was made for them, if it is not the one that was asked for.
    pub(super) plan: Option<Plan>,
    pub(super) along: Along,
}

/// A policy along the logs: weights, Q̂, and what they come from.
pub(super) struct Along {
    pub(super) evidence: Evidence,
    pub(super) fitted: QAlong,
    /// Mean probability with which it takes the logged action, over the steps that were chosen.
    pub(super) same_action: f64,
    /// Whether the logs say that some actions could not be taken.
    pub(super) is_restricted: bool,
}

impl Along {
    /// Weights and Q̂ of a policy on episodes with action probabilities.
    pub(super) fn of(
        target: &Target<'_>,
        alphabet: &Alphabet,
        episodes: &[Trajectory],
        horizon: usize,
        params: &ValueParams,
    ) -> Result<Along> {
        let steps = Steps::of(alphabet, &with_rewards(episodes))?;
        let states = target.states(alphabet, episodes);
        let is_asked = matches!(target.policy, TargetPolicy::Logged);
        let behaviour = is_asked.then(|| Behaviour::of(&steps, episodes, None, params.seed)).transpose()?;
        let choices = target.choices(&steps, episodes, behaviour.as_ref(), params.first);
        check_support(alphabet, &steps, &choices)?;
        let is_known: Vec<bool> = episodes.iter().flat_map(|z| z.rewards.iter().map(Option::is_some)).collect();
        let trees = target.plan().map_or_else(PlanParams::default, |plan| plan.params().clone()).tree_params();
        let task = Task {
            steps: &steps,
            episodes,
            states: &states,
            policy: &choices,
            is_known: &is_known,
            trees: &trees,
            horizon,
            offset: params.offset(),
            discount: params.discount,
            replicates: params.replicates,
            seed: params.seed,
        };
        let fitted = task.run()?;
        let mut is_given = vec![false; steps.rows()];
        steps.starts().iter().filter(|_| params.offset() > 0).for_each(|&row| is_given[row] = true);
        let chosen = steps.list().iter().filter(|step| !is_given[step.row]);
        let same: Mean = chosen.map(|step| choices.of(step.row)[step.action.index()]).collect();
        let weighted = weighted(target, episodes, &steps, &choices, &fitted, params.offset());
        let evidence = Evidence::new(weighted, horizon, params.discount);
        Ok(Along { evidence, fitted, same_action: same.mean(), is_restricted: steps.are_restricted() })
    }

    /// The error of the part of Q̂'s value that comes after so many steps, and half the width of its
    /// interval.
    pub(super) fn error_after(&self, steps: usize, level: f64) -> (f64, f64) {
        let after = |by_horizon: &Vec<f64>| value_after(&by_horizon[..self.evidence.horizon()], steps);
        let replicates: Mean = self.fitted.replicates.iter().map(after).collect();
        (replicates.sd(), t_quantile(0.5 + 0.5 * level, replicates.count() - 1.0) * replicates.sd())
    }
}

/// The part of a value over the whole horizon that comes after so many steps.
pub(super) fn value_after(by_horizon: &[f64], steps: usize) -> f64 {
    let of = |k: usize| if k == 0 { 0.0 } else { by_horizon[k - 1] };
    of(by_horizon.len()) - of(steps.min(by_horizon.len()))
}

/// The episodes as the estimators see them.
fn weighted(
    target: &Target<'_>,
    episodes: &[Trajectory],
    steps: &Steps,
    choices: &Choices,
    fitted: &QAlong,
    offset: usize,
) -> Vec<Weighted> {
    let mut first = 0;
    let mut of = |z: &Trajectory, start: usize| {
        let own = first + offset.min(z.steps.len())..first + z.steps.len();
        first += z.steps.len();
        let ratio = |i: usize| {
            let (step, t) = (&steps.list()[i], steps.list()[i].row - start);
            if target.is_logged() { 1.0 } else { choices.of(step.row)[step.action.index()] / z.action_probabilities[t] }
        };
        let rows = start + offset.min(z.steps.len())..=start + z.steps.len();
        Weighted {
            ratios: own.clone().map(ratio).collect(),
            rewards: z.rewards[offset.min(z.steps.len())..].to_vec(),
            q: fitted.q[own].to_vec(),
            v: fitted.v[rows].to_vec(),
            terminated: z.end == End::Terminated,
            group: z.about.group.clone(),
        }
    };
    episodes.iter().zip(steps.starts()).map(|(z, &start)| of(z, start)).collect()
}

/// Every action of the policy must be in the logs, otherwise nothing is known of it.
fn check_support(alphabet: &Alphabet, steps: &Steps, choices: &Choices) -> Result<()> {
    let mut taken = vec![false; steps.actions()];
    steps.list().iter().for_each(|step| taken[step.action.index()] = true);
    let wanted = |a: usize| steps.list().iter().any(|step| choices.of(step.row)[a] > 0.0);
    match (0..steps.actions()).find(|&a| !taken[a] && wanted(a)) {
        None => Ok(()),
        Some(a) => {
            let name = alphabet.action_name(Action(a as u32));
            let problem = format!("the policy takes the action {name:?}, which never occurs in the logs");
            Err(Error::data(problem, "give logs that contain all of its actions"))
        }
    }
}

/// The value of a policy from logged episodes over its alphabet: weighted doubly robust, corrected
/// as far as weights are worth ten episodes, by fitted-Q alone from there on.
///
/// Action probabilities are those of the episodes; where these have none, they are estimated. If the
/// policy was planned on these episodes, it is biased upwards: use [`cross_fitted`].
pub fn value_of(target: &Target<'_>, alphabet: &Alphabet, episodes: &[Trajectory], params: &ValueParams) -> Result<Bounded> {
    params.validate()?;
    let prepared = Prepared::new(target, alphabet, episodes, params.seed)?;
    let along = Along::of(target, alphabet, &prepared.episodes, params.horizon(episodes), params)?;
    Ok(combined(&[Part { plan: None, along }], params))
}

/// The value of a way to plan: `plan` gets the episodes of all folds but one, and its policy is
/// evaluated on the last, in turn. The estimate is of policies from so many episodes, which is a
/// little less than that of one from all.
pub fn cross_fitted(
    alphabet: &Alphabet,
    episodes: &[Trajectory],
    count: usize,
    params: &ValueParams,
    plan: impl FnMut(&[Trajectory]) -> Result<Plan>,
) -> Result<Bounded> {
    params.validate()?;
    let logged = Target { policy: TargetPolicy::Logged, epsilon: 0.0 };
    let prepared = Prepared::new(&logged, alphabet, episodes, params.seed)?;
    let parts = across_folds(&prepared.episodes, alphabet, count, 0.0, params, plan)?;
    Ok(combined(&parts, params))
}

/// Each fold evaluated with a plan made on the others.
pub(super) fn across_folds(
    episodes: &[Trajectory],
    alphabet: &Alphabet,
    count: usize,
    epsilon: f64,
    params: &ValueParams,
    mut plan: impl FnMut(&[Trajectory]) -> Result<Plan>,
) -> Result<Vec<Part>> {
    let (fold, horizon) = (Groups::of(episodes).folds(count, params.seed.stream("folds")), params.horizon(episodes));
    let mut parts = Vec::with_capacity(count);
    for part in 0..count {
        let split = |inside: bool| -> Vec<Trajectory> {
            episodes.iter().zip(&fold).filter(|(_, f)| (**f == part) == inside).map(|(z, _)| z.clone()).collect()
        };
        let (training, held_out) = (split(false), split(true));
        if training.is_empty() || held_out.is_empty() {
            return Err(Error::data(
                format!("{} episodes cannot be divided into {count} folds", episodes.len()),
                "give more episodes, or set `folds` to fewer",
            ));
        }
        let plan = plan(&training)?;
        let target = Target { policy: TargetPolicy::Plan(&plan), epsilon };
        let along = Along::of(&target, alphabet, &held_out, horizon, params)?;
        parts.push(Part { plan: Some(plan), along });
    }
    Ok(parts)
}

/// The weighted doubly robust estimate over several parts of the logs, whose intervals include the
/// error of Q̂ where it is not corrected.
pub(super) fn combined(parts: &[Part], params: &ValueParams) -> Bounded {
    let evidence = Evidence::pooled(parts.iter().map(|part| part.along.evidence.clone()).collect()).expect("there are episodes");
    let until = evidence.supported(least_effective(&evidence));
    let estimate = evidence.bounded(Estimator::Wdr, until, params.bound, params.level, params.seed);
    let estimate = estimate.expect("it weights episodes");
    let (error, half) = error_after(parts, until, params.level);
    if until < evidence.horizon() { estimate.widened(error, half) } else { estimate }
}

/// The error of what comes after so many steps, over several parts of the logs.
pub(super) fn error_after(parts: &[Part], steps: usize, level: f64) -> (f64, f64) {
    let n: f64 = parts.iter().map(|part| part.along.evidence.len() as f64).sum();
    let shares = parts.iter().map(|Part { along, .. }| (along.evidence.len() as f64 / n, along.error_after(steps, level)));
    let (errors, halves): (f64, f64) =
        shares.fold((0.0, 0.0), |(e, h), (share, (error, half))| (e + (share * error).powi(2), h + (share * half).powi(2)));
    (errors.sqrt(), halves.sqrt())
}
