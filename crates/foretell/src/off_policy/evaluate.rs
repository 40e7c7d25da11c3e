//! All that logs tell of a policy: estimates, how much they rest on, and a comparison with what was
//! logged.

use serde::{Deserialize, Serialize};

use super::behaviour::Propensities;
use super::bounds::{Bound, Bounded};
use super::estimators::{Estimated, Estimator, Evidence};
use super::replan::{CrossFitted, replanned};
use super::rollouts::Rollouts;
use super::target::Target;
use super::value::{Along, Part, Prepared, ValueParams, across_folds, combined, error_after, least_effective, value_after};
use super::verdict::{Comparison, compared};
use crate::data::{Alphabet, Groups, LearnedFrom, Trajectory};
use crate::error::{Error, Result};
use crate::math::{Mean, t_quantile};

/// The share of the worst episodes that CVaR averages.
const WORST: f64 = 0.05;
/// Which quantiles of returns are reported.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
/// Below this many episodes they are divided into more folds, so that plans have more to learn from.
const FEW: usize = 500;

/// When plans are made anew for the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum CrossFit {
    /// If the logs are those that the policy was planned on
    Auto,
    /// In any case
    Always,
    /// Never: estimates on planning logs are biased upwards
    Never,
}

/// What to ask of logs.
#[derive(Clone, Debug, PartialEq)]
pub struct OffPolicy {
    /// How values are estimated.
    pub value: ValueParams,
    /// The estimators to report; the first in order of [`OffPolicy::BEST`] decides.
    pub estimators: Vec<Estimator>,
    /// Rollouts in the model.
    pub rollouts: usize,
    /// When plans are made anew.
    pub cross_fit: CrossFit,
    /// Folds for that; `None` for two, or five of fewer than 500 episodes.
    pub folds: Option<usize>,
}

impl Default for OffPolicy {
    fn default() -> Self {
        OffPolicy {
            value: ValueParams::default(),
            estimators: Estimator::ALL.to_vec(),
            rollouts: 10_000,
            cross_fit: CrossFit::Auto,
            folds: None,
        }
    }
}

/// How much the logs say about the policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Support {
    /// Mean probability with which the policy takes the logged action.
    pub same_action: f64,
    /// Share of the logged steps that are reached with actions of the policy.
    pub steps: f64,
    /// The first steps of an episode whose weights are worth at least ten episodes.
    pub weighted_steps: usize,
    /// Effective number of episodes at the last of these.
    pub effective: f64,
    /// The same at the last step of the horizon.
    pub effective_at_end: f64,
    /// The largest share of one episode in the weights of the last weighted step.
    pub largest_weight: f64,
    /// The part of the value by fitted-Q evaluation that comes after these steps: it rests on Q̂
    /// alone.
    pub unsupported_value: f64,
    /// Its share of the value, if all parts of it have the same sign.
    pub unsupported_share: Option<f64>,
}

/// The distribution of discounted returns, by weighted episodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Effective number of episodes.
    pub effective: f64,
    /// Mean return of the worst 5 %.
    pub cvar: f64,
    /// Quantiles: the share of episodes that earn less, and the return.
    pub quantiles: Vec<(f64, f64)>,
}

/// The value of a policy, estimated from logs.
#[derive(Clone, Debug, Serialize)]
pub struct LogValue {
    /// Episodes of the logs.
    pub episodes: usize,
    /// Steps whose reward is not zero.
    pub rewarded: usize,
    /// Steps without a reward, which are left out.
    pub without_reward: usize,
    /// Steps of a return.
    pub max_steps: usize,
    /// γ
    pub discount: f64,
    /// How often intervals are meant to contain the value.
    pub level: f64,
    /// Their kind.
    pub bound: Bound,
    /// What was logged.
    pub logged: Bounded,
    /// The policy, by each estimator.
    pub estimates: Vec<Estimated>,
    /// Where the probabilities of logged actions are from.
    pub propensities: Propensities,
    /// How much the logs say about the policy.
    pub support: Support,
    /// The distribution of returns; `None` if too few whole episodes have weight.
    pub returns: Option<Distribution>,
    /// If plans were made anew on folds of the logs.
    pub cross_fitted: Option<CrossFitted>,
    /// How many of the episodes it was planned on, or its model was learned from; `None` where that
    /// is not known.
    pub learned_from: Option<LearnedFrom>,
    /// Whether estimates that rest on Q̂ or on the model agree with the one that decides.
    pub agree: Option<bool>,
    /// The policy against what was logged.
    pub comparison: Comparison,
}

impl LogValue {
    /// The estimate of one estimator.
    pub fn by(&self, estimator: Estimator) -> Option<&Estimated> {
        self.estimates.iter().find(|estimated| estimated.estimator == estimator)
    }

    /// The estimate that decides.
    pub fn deciding(&self) -> Option<&Estimated> {
        self.by(self.comparison.by)
    }
}

impl OffPolicy {
    /// Estimators in the order in which they decide, if they are asked for.
    pub const BEST: [Estimator; 6] =
        [Estimator::Wdr, Estimator::Dr, Estimator::Snpdis, Estimator::Pdis, Estimator::Fqe, Estimator::Model];

    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        self.value.validate()?;
        if self.estimators.is_empty() {
            return Err(Error::parameter("estimators", "none", "must be at least one of pdis, snpdis, dr, wdr, fqe, model"));
        }
        match self.folds {
            Some(folds) if folds < 2 => Err(Error::parameter("folds", folds, "must be at least 2")),
            _ => Ok(()),
        }
    }

    /// The value of a policy from logged episodes over its alphabet.
    pub fn evaluate(&self, target: &Target<'_>, alphabet: &Alphabet, episodes: &[Trajectory]) -> Result<LogValue> {
        self.validate()?;
        let prepared = Prepared::new(target, alphabet, episodes, self.value.seed)?;
        let learned_from = target.plan().and_then(|plan| plan.digest().learned_from(alphabet, episodes));
        let (parts, cross_fitted) = self.parts(target, alphabet, &prepared.episodes, learned_from)?;
        let alongs: Vec<&Along> = parts.iter().map(|part| &part.along).collect();
        let evidence = Evidence::pooled(alongs.iter().map(|along| along.evidence.clone()).collect()).ok_or(Error::NoSteps)?;
        let logged = evidence.as_logged();
        let support = support(&evidence, &alongs);
        let estimates = self.estimates(target, &parts, &evidence, &support);
        let known = || episodes.iter().flat_map(|z| &z.rewards);
        let by = Self::BEST.into_iter().find(|e| estimates.iter().any(|found| found.estimator == *e));
        let by = by.ok_or_else(|| Error::data("none of the estimators can be used", "give others, or a policy with a model"))?;
        let deciding = estimates.iter().find(|found| found.estimator == by).expect("it was just found");
        let comparison = compared(deciding, &evidence, &logged, &self.value, target.is_logged());
        Ok(LogValue {
            episodes: episodes.len(),
            rewarded: known().flatten().filter(|reward| **reward != 0.0).count(),
            without_reward: episodes.iter().map(|z| self.without_reward(z)).sum(),
            max_steps: evidence.horizon(),
            discount: self.value.discount,
            level: self.value.level,
            bound: self.value.bound,
            logged: self.whole(&logged, Estimator::Pdis),
            agree: agree(&estimates, deciding),
            comparison,
            estimates,
            propensities: prepared.propensities,
            support,
            returns: distribution(&evidence),
            cross_fitted,
            learned_from,
        })
    }

    fn without_reward(&self, z: &Trajectory) -> usize {
        z.rewards.iter().skip(self.value.offset()).filter(|reward| reward.is_none()).count()
    }

    fn whole(&self, evidence: &Evidence, estimator: Estimator) -> Bounded {
        let ValueParams { bound, level, seed, .. } = self.value;
        evidence.bounded(estimator, evidence.horizon(), bound, level, seed).expect("it weights episodes")
    }

    /// The policy along the logs, or plans like it along folds of them.
    fn parts(
        &self,
        target: &Target<'_>,
        alphabet: &Alphabet,
        episodes: &[Trajectory],
        learned_from: Option<LearnedFrom>,
    ) -> Result<(Vec<Part>, Option<CrossFitted>)> {
        // Short episodes repeat by chance: if all were seen, they may be those it was planned on.
        let is_known = learned_from.is_some_and(|known| known.is_beyond_chance() || known.found == known.episodes);
        let again = match self.cross_fit {
            CrossFit::Auto => is_known,
            CrossFit::Always => true,
            CrossFit::Never => false,
        };
        let folds = self.folds.unwrap_or(if episodes.len() < FEW { 5 } else { 2 }).min(Groups::of(episodes).count());
        match target.plan().filter(|_| again && folds > 1) {
            Some(plan) => {
                let mut told = CrossFitted { folds, relearned: false };
                let replan = |training: &[Trajectory]| {
                    let (plan, relearned) = replanned(plan, training)?;
                    told.relearned = relearned;
                    Ok(plan)
                };
                let parts = across_folds(episodes, alphabet, folds, target.epsilon, &self.value, replan)?;
                Ok((parts, Some(told)))
            }
            None => {
                let along = Along::of(target, alphabet, episodes, self.value.horizon(episodes), &self.value)?;
                Ok((vec![Part { plan: None, along }], None))
            }
        }
    }

    fn estimates(&self, target: &Target<'_>, parts: &[Part], evidence: &Evidence, support: &Support) -> Vec<Estimated> {
        let horizon = evidence.horizon();
        let mut wanted = self.estimators.clone();
        wanted.sort_unstable();
        wanted.dedup();
        let estimate = |estimator: Estimator| {
            let (bounded, weighted_steps) = match estimator {
                Estimator::Wdr => (combined(parts, &self.value), support.weighted_steps),
                Estimator::Fqe => (self.by_fitted_q(parts), 0),
                Estimator::Model => (self.by_model(target, parts, horizon)?, 0),
                _ => (self.whole(evidence, estimator), horizon),
            };
            Some(Estimated { estimator, bounded, weighted_steps })
        };
        wanted.into_iter().filter_map(estimate).collect()
    }

    /// Fitted-Q evaluation, with an interval by samples of episodes.
    fn by_fitted_q(&self, parts: &[Part]) -> Bounded {
        let n: f64 = parts.iter().map(|part| part.along.evidence.len() as f64).sum();
        let value = parts.iter().map(|part| part.along.evidence.len() as f64 / n * part.along.fitted.value()).sum();
        if n < 2.0 {
            return Bounded::alone(value);
        }
        let (error, half) = error_after(parts, 0, self.value.level);
        Bounded { value, error: Some(error), low: Some(value - half), high: Some(value + half) }
    }

    /// Rollouts in the policy's own model; `None` if it has none, or if only some actions were
    /// available in the logs, which a model does not predict.
    fn by_model(&self, target: &Target<'_>, parts: &[Part], horizon: usize) -> Option<Bounded> {
        let n: f64 = parts.iter().map(|part| part.along.evidence.len() as f64).sum();
        let (mut value, mut squares) = (0.0, 0.0);
        for Part { plan, along } in parts.iter().filter(|part| !part.along.is_restricted) {
            let plan = plan.as_ref().or(target.plan())?;
            let (model, rewards) = (plan.model()?, &along.fitted.rewards);
            let rollouts = Rollouts { plan, model, epsilon: target.epsilon, rewards, horizon, params: &self.value };
            let share = along.evidence.len() as f64 / n;
            let mean = rollouts.mean((share * self.rollouts as f64).ceil() as usize);
            value += share * mean.value;
            squares += (share * mean.error.unwrap_or(f64::NAN)).powi(2);
        }
        if parts.iter().any(|part| part.along.is_restricted) {
            return None;
        }
        let error = squares.sqrt();
        Some(if error.is_nan() {
            Bounded::alone(value)
        } else {
            let half = t_quantile(0.5 + 0.5 * self.value.level, self.rollouts as f64 - 1.0) * error;
            Bounded { value, error: Some(error), low: Some(value - half), high: Some(value + half) }
        })
    }
}

/// Whether Q̂ and the model agree with the estimate that decides; `None` if there is only one.
fn agree(estimates: &[Estimated], deciding: &Estimated) -> Option<bool> {
    let others = || {
        let own = |found: &&Estimated| matches!(found.estimator, Estimator::Fqe | Estimator::Model);
        estimates.iter().filter(own).filter(|found| found.estimator != deciding.estimator)
    };
    others().next()?;
    Some(others().all(|other| other.bounded.overlaps(&deciding.bounded)))
}

/// How much the logs say about the policy.
fn support(evidence: &Evidence, alongs: &[&Along]) -> Support {
    let (overlap, n) = (evidence.overlap(), evidence.len() as f64);
    let weighted_steps = evidence.supported(least_effective(evidence));
    let last = overlap.get(weighted_steps.saturating_sub(1)).copied().unwrap_or_default();
    let share = |along: &Along| along.evidence.len() as f64 / n;
    let by_horizon: Vec<f64> =
        (0..evidence.horizon()).map(|k| alongs.iter().map(|along| share(along) * along.fitted.by_horizon[k]).sum()).collect();
    let unsupported_value = value_after(&by_horizon, weighted_steps);
    let whole = by_horizon.last().copied().unwrap_or(0.0);
    let is_one_sign = (whole - unsupported_value) * unsupported_value >= 0.0 && whole != 0.0;
    let reached: Mean =
        evidence.episodes().iter().flat_map(|z| reached(&z.ratios[..z.ratios.len().min(evidence.horizon())])).collect();
    Support {
        same_action: alongs.iter().map(|along| share(along) * along.same_action).sum(),
        steps: reached.mean(),
        weighted_steps,
        effective: last.effective,
        effective_at_end: overlap.last().map_or(0.0, |at| at.effective),
        largest_weight: if last.mean_weight > 0.0 { last.largest_weight / (last.mean_weight * last.known as f64) } else { 0.0 },
        unsupported_value,
        unsupported_share: is_one_sign.then(|| unsupported_value / whole),
    }
}

/// 1 for each step that is reached with actions of the policy, 0 for the others.
fn reached(ratios: &[f64]) -> impl Iterator<Item = f64> + '_ {
    let mut so_far = true;
    ratios.iter().map(move |ratio| {
        so_far &= *ratio > 0.0;
        f64::from(u8::from(so_far))
    })
}

/// The distribution of returns by weighted episodes.
fn distribution(evidence: &Evidence) -> Option<Distribution> {
    let mut returns = evidence.weighted_returns();
    let (sum, squares) = returns.iter().fold((0.0, 0.0), |(sum, squares), (_, w)| (sum + w, squares + w * w));
    let effective = if squares > 0.0 { sum * sum / squares } else { 0.0 };
    if effective < least_effective(evidence) {
        return None;
    }
    returns.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let (mut at, mut share, mut cvar) = (Vec::new(), 0.0, 0.0);
    for (earned, weight) in returns {
        let own = weight / sum;
        cvar += earned * own.min((WORST - share).max(0.0)) / WORST;
        share += own;
        at.push((earned, share));
    }
    let at_share = |p: f64| at.iter().find(|(_, share)| *share >= p - 1e-12).or(at.last()).map_or(0.0, |(earned, _)| *earned);
    Some(Distribution { effective, cvar, quantiles: QUANTILES.map(|p| (p, at_share(p))).to_vec() })
}
