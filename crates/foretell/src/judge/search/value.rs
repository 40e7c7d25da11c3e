//! The best candidates as policies: the best predictor need not be the best for planning [H14
//! §7.1.1].

use serde::Serialize;

use super::folds::Draw;
use crate::data::Trajectory;
use crate::error::{Error, Result};
use crate::judge::baselines::Test;
use crate::learn::{first_alphabet, learn};
use crate::log::Logs;
use crate::math::Z95;
use crate::model::LearnParams;
use crate::off_policy::{Bounded, Target, TargetPolicy, ValueParams, value_of};
use crate::plan::{PlanParams, plan_on};
use crate::rng::Seed;

/// Number of steps, the first of the logs, for planning: fitted-Q passes over them a hundred times.
const MOST_PLANNED: usize = 1 << 16;

/// How the value of a policy is estimated.
#[derive(Clone, Copy, Debug)]
pub enum Evaluation<'d> {
    /// Weighted doubly robust, on the episodes held out.
    Logs(ValueParams),
    /// Returns in a domain.
    Domain(Test<'d>),
}

/// The values of candidates as policies: each is learned and planned on all parts of the logs but
/// one.
#[derive(Clone, Debug)]
pub struct Values<'d> {
    /// Parts of the logs.
    pub folds: usize,
    /// The planner.
    pub planning: PlanParams,
    /// How the policies are evaluated.
    pub judge: Evaluation<'d>,
}

/// A candidate, and the value of its policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CandidateValue {
    /// Its parameters.
    pub params: LearnParams,
    /// Its discounted return; `None` if there is no policy, or the logs cannot evaluate it.
    pub value: Option<Bounded>,
    /// The reason, if there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Values<'_> {
    /// Evaluates each candidate; `progress` gets the number done.
    pub fn of(&self, logs: &Logs, candidates: &[LearnParams], progress: &mut dyn FnMut(usize)) -> Result<Vec<CandidateValue>> {
        let Some(first) = candidates.first() else { return Ok(Vec::new()) };
        let mut reader = logs.open(first_alphabet(first))?;
        let mut draw = Draw::new(Seed(first.seed).stream("folds"), self.folds);
        let (mut training, mut held_out, mut steps) = (Vec::new(), Vec::new(), 0);
        for z in reader.by_ref() {
            let z = z?;
            steps += z.steps.len();
            if steps > MOST_PLANNED && !(training.is_empty() || held_out.is_empty()) {
                break;
            }
            if draw.next() == 0 { held_out.push(z) } else { training.push(z) }
        }
        let rewarded = |episodes: &[Trajectory]| episodes.iter().any(|z| z.rewards.iter().any(Option::is_some));
        if !(rewarded(&training) && rewarded(&held_out)) {
            return Err(Error::NoRewards { purpose: "to plan for", remedy: "search by likelihood alone" });
        }
        let kept = Logs::memory(reader.into_alphabet(), training.clone());
        let mut valued = Vec::new();
        for (i, params) in candidates.iter().enumerate() {
            progress(i);
            let (value, why) = match self.value(&kept, params, &training, &held_out) {
                Ok(value) => (Some(value), None),
                Err(error) => (None, Some(error.to_string())),
            };
            valued.push(CandidateValue { params: params.clone(), value, why });
        }
        progress(candidates.len());
        Ok(valued)
    }

    fn value(&self, kept: &Logs, params: &LearnParams, training: &[Trajectory], held_out: &[Trajectory]) -> Result<Bounded> {
        let model = learn(kept, params)?;
        let plan = plan_on(&model, training, &self.planning, &mut |_| {})?;
        match &self.judge {
            Evaluation::Logs(params) => {
                let target = Target { policy: TargetPolicy::Plan(&plan), epsilon: 0.0 };
                value_of(&target, plan.alphabet(), held_out, params)
            }
            Evaluation::Domain(test) => {
                let returns = test.returns(plan.policies_for(test.domain.alphabet())?);
                let (value, half) = (returns.discounted_return, returns.discounted_ci95);
                let ends = |side: f64| half.map(|half| value + side * half);
                Ok(Bounded { value, error: half.map(|half| half / Z95), low: ends(-1.0), high: ends(1.0) })
            }
        }
    }
}

/// The index of the candidate to choose: the first, unless another is better by more than one
/// standard error of the difference, as if the two were independent, and that error is known.
pub fn most_valuable(valued: &[CandidateValue]) -> usize {
    let value = |i: usize| valued.get(i).and_then(|valued| valued.value);
    let best = (0..valued.len()).filter(|&i| value(i).is_some()).max_by(|&i, &j| {
        let of = |i| value(i).map_or(f64::NEG_INFINITY, |value| value.value);
        // The first of equals.
        of(i).total_cmp(&of(j)).then(j.cmp(&i))
    });
    match (best, best.and_then(value), value(0)) {
        (Some(best), Some(most), Some(first)) => {
            let error = most.error.unwrap_or(f64::INFINITY).hypot(first.error.unwrap_or(f64::INFINITY));
            if most.value - first.value > error { best } else { 0 }
        }
        (Some(best), _, None) => best,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_is_chosen_only_if_it_is_significantly_better() {
        let valued = |values: &[Option<f64>]| -> Vec<CandidateValue> {
            let one = |value: &Option<f64>| CandidateValue {
                params: LearnParams::default(),
                value: value.map(|value| Bounded { error: Some(1.0), ..Bounded::alone(value) }),
                why: None,
            };
            values.iter().map(one).collect()
        };
        assert_eq!(most_valuable(&valued(&[Some(1.0), Some(2.0), Some(0.0)])), 0);
        assert_eq!(most_valuable(&valued(&[Some(1.0), Some(2.5), Some(2.6)])), 2);
        assert_eq!(most_valuable(&valued(&[None, Some(2.0), Some(2.0)])), 1);
        assert_eq!(most_valuable(&valued(&[None, None])), 0);
        assert_eq!(most_valuable(&[]), 0);
    }
}
