//! Whether rewards are part of observations.
//!
//! Models with and without rewards in their observations predict different symbols. They are
//! compared on what both predict: the observation without its reward, and the expected reward, by
//! which planners decide. With rewards r_t of variance σ² and expectations r̂_t, a step is worth
//! ln P(o_t ‖ a_t) − (r_t − r̂_t)²/(2σ²): a gain in the reward is half the share of its variance that
//! is explained in addition.
//!
//! Random actions seldom lead where rewards matter most, so held-out steps often cannot tell the two
//! apart: in tiger doors are hardly ever opened after two equal sounds. States that are fitted to
//! rewards too plan far better there. So where states predict rewards better than the action alone,
//! rewards do tell about states, and are observed unless that costs something.

use serde::Serialize;

use super::evidence::{Evidence, Part};
use crate::math::Mean;

/// A smaller gain does not justify a larger alphabet, nats per step.
const NEGLIGIBLE: f64 = 1e-3;

/// Standard errors beyond which a gain is not noise: policies and histories that need rewards are
/// less convenient, so one is not enough.
pub(super) const BEYOND_NOISE: f64 = 2.0;

/// Whether rewards are observed, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RewardChoice {
    /// Whether they are part of observations.
    pub observed: bool,
    /// How much better held-out observations and rewards are predicted if they are, nats per step.
    pub gain: f64,
    /// Standard error of that; `None` if there is at most one held-out part.
    pub error: Option<f64>,
    /// Whether states predict rewards better than the action alone, beyond noise: then rewards are
    /// observed unless that costs something.
    pub tell_of_states: bool,
    /// The part of the gain that is due to observations.
    pub observation_gain: f64,
    /// Root mean squared error of expected rewards, without and with rewards observed.
    pub reward_errors: [f64; 2],
}

/// What a family says about held-out parts, whether or not it observes rewards.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// The log-likelihood of the observations of each part, without their rewards.
    pub(super) observations: Vec<f64>,
    /// For each part Σ (r_t − r̂_t)².
    pub(super) squares: Vec<f64>,
    /// The variance of rewards.
    pub(super) variance: f64,
    /// Whether states predict rewards better than the action alone, beyond noise.
    pub(super) tell_of_states: bool,
}

impl Common {
    /// From the log-likelihood of parts, the rewards of those of their steps that count, and two
    /// expectations of the reward of every step, by states and by the action alone. The better one
    /// counts: the states of a POMDP may say less about rewards.
    pub(super) fn new(
        evidence: &Evidence,
        observations: Vec<f64>,
        expectations: [&[f64]; 2],
        rewards: &[&[Option<f64>]],
    ) -> Common {
        let all: Mean = rewards.iter().copied().flatten().flatten().copied().collect();
        let squares = |expected: &[f64]| -> Vec<f64> {
            let mut at = 0;
            let square = |(part, rewards): (&Part, &&[Option<f64>])| {
                at += part.steps;
                let expected = &expected[at - part.steps + part.from..at];
                rewards.iter().zip(expected).filter_map(|(reward, expected)| Some((reward.as_ref()? - expected).powi(2))).sum()
            };
            evidence.parts.iter().zip(rewards).map(square).collect()
        };
        let [by_states, by_actions] = expectations.map(squares);
        let (gain, error) = evidence.difference(&by_actions, &by_states);
        Common {
            observations,
            squares: if gain >= 0.0 { by_states } else { by_actions },
            variance: all.sd().powi(2),
            tell_of_states: gain > BEYOND_NOISE * error,
        }
    }
}

/// How much better one family predicts observations and rewards than another, nats per step, and the
/// standard error of that.
pub(super) fn gain(evidence: &Evidence, one: &Common, other: &Common) -> (f64, f64) {
    let variance = other.variance.max(f64::MIN_POSITIVE);
    let worth = |common: &Common| -> Vec<f64> {
        common.observations.iter().zip(&common.squares).map(|(log, square)| log - square / (2.0 * variance)).collect()
    };
    evidence.difference(&worth(one), &worth(other))
}

/// Whether rewards are observed: the family that does is better beyond noise, or is not worse and
/// rewards tell about states.
pub(super) fn compare(evidence: &Evidence, plain: &Common, observed: &Common) -> RewardChoice {
    let steps = evidence.steps() as f64;
    let mean = |squares: &[f64]| squares.iter().sum::<f64>() / steps;
    let (gain, error) = gain(evidence, observed, plain);
    RewardChoice {
        observed: gain > (BEYOND_NOISE * error).max(NEGLIGIBLE) || plain.tell_of_states && gain > -error,
        gain,
        tell_of_states: plain.tell_of_states,
        error: error.is_finite().then_some(error),
        observation_gain: evidence.difference(&observed.observations, &plain.observations).0,
        reward_errors: [plain, observed].map(|common| mean(&common.squares).sqrt()),
    }
}
