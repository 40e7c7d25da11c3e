//! A policy against what was logged.

use serde::Serialize;

use super::bounds::Bounded;
use super::estimators::{Estimated, Estimator, Evidence};
use super::value::ValueParams;

/// More than this many times the episodes would be needed: then nobody knows how many.
const MOST_NEEDED: f64 = 1e4;

/// Whether a policy earns more than what was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval of the difference is above 0.
    Better,
    /// It is below 0.
    Worse,
    /// It contains 0.
    CannotTell,
    /// The policy is what was logged.
    Same,
}

/// The difference between a policy and what was logged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The estimator that decides.
    pub by: Estimator,
    /// The value of the policy minus what was logged, with the interval of the difference.
    pub difference: Bounded,
    /// What follows.
    pub verdict: Verdict,
    /// Episodes, about, with which such a difference could be told, if it cannot with these.
    pub needed: Option<u64>,
}

/// Compares an estimate with what was logged, episode by episode where it has weights.
pub(super) fn compared(
    estimated: &Estimated,
    evidence: &Evidence,
    logged: &Evidence,
    params: &ValueParams,
    is_logged: bool,
) -> Comparison {
    let ValueParams { bound, level, seed, .. } = *params;
    let (earned, own) = logged.estimate(Estimator::Pdis, logged.horizon()).expect("it weights episodes");
    let value = estimated.bounded.value - earned;
    let difference = match evidence.estimate(estimated.estimator, estimated.weighted_steps) {
        Some((_, numbers)) => {
            let paired: Vec<f64> = numbers.iter().zip(&own).map(|(x, y)| x - y).collect();
            let paired = bound.around(value, &paired, level, seed);
            let alone = evidence.bounded(estimated.estimator, estimated.weighted_steps, bound, level, seed);
            beyond_weights(paired, &estimated.bounded, alone.as_ref())
        }
        None => {
            let logged = bound.around(earned, &own, level, seed);
            let half = logged.high.map_or(0.0, |high| high - earned);
            let estimate = Bounded {
                value,
                low: estimated.bounded.low.map(|low| low - earned),
                high: estimated.bounded.high.map(|high| high - earned),
                ..estimated.bounded
            };
            if logged.error.is_some() { estimate.widened(logged.error.unwrap_or(0.0), half) } else { Bounded::alone(value) }
        }
    };
    let verdict = match (difference.low, difference.high) {
        _ if is_logged => Verdict::Same,
        (Some(low), _) if low > 0.0 => Verdict::Better,
        (_, Some(high)) if high < 0.0 => Verdict::Worse,
        _ => Verdict::CannotTell,
    };
    let needed = (verdict == Verdict::CannotTell).then(|| needed(&difference, evidence.len())).flatten();
    Comparison { by: estimated.estimator, difference, verdict, needed }
}

/// The interval of a difference, widened by what the estimate's own was widened beyond its weights.
fn beyond_weights(paired: Bounded, estimate: &Bounded, alone: Option<&Bounded>) -> Bounded {
    let more = |with: Option<f64>, without: Option<f64>| {
        let (with, without) = (with? - estimate.value, without? - estimate.value);
        Some((with * with - without * without).max(0.0).sqrt())
    };
    let Some(alone) = alone else { return paired };
    let errors = estimate.error.zip(alone.error).map_or(0.0, |(with, without)| (with * with - without * without).max(0.0).sqrt());
    paired.widened(errors, more(estimate.high, alone.high).unwrap_or(0.0))
}

/// The episodes with which the interval would just not contain 0, to two digits.
fn needed(difference: &Bounded, episodes: usize) -> Option<u64> {
    let end = if difference.value > 0.0 { difference.low? } else { difference.high? };
    let times = ((difference.value - end) / difference.value).powi(2);
    if !(times.is_finite() && times <= MOST_NEEDED) {
        return None;
    }
    let exact = times * episodes as f64;
    let digit = 10f64.powf((exact.log10().floor() - 1.0).max(0.0));
    Some(((exact / digit).ceil() * digit) as u64)
}
