//! Stacking: the weights of a mixture that predict held-out steps best (Wolpert 1992).
//!
//! With weights that follow the evidence of the episode, ln w_tk = ln w_k + s_tk up to a constant,
//! where s_t+1,k = λ(s_tk + ln p_tk). The held-out log-likelihood is concave in the weights for
//! λ = 0, and its gradient in ln w_k is Σ_t (r_tk − π_tk), where π_t are the weights at step t and
//! r_tk ∝ π_tk p_tk. Each round multiplies w_k by Σ_t r_tk / Σ_t π_tk, which is EM for λ = 0.

use std::borrow::Cow;

use rayon::prelude::*;

use super::evidence::{Evidence, Part};
use crate::math::dot8;

/// Most rounds of the multiplicative updates.
const ROUNDS: usize = 60;
/// They end once no weight changes by more than this: the likelihood is flat there.
const LEAST_CHANGE: f64 = 1e-4;
/// Values of λ to try.
const MEMORIES: [f64; 6] = [0.0, 0.5, 0.8, 0.9, 0.97, 1.0];
/// A member is dropped if the others predict as well without it, up to this many nats per step.
const NEGLIGIBLE: f64 = 1e-3;
/// A smaller difference is an effect of rounding and of the last digits of the weights.
const ROUNDING: f64 = 1e-5;
/// A probability below this counts as this much evidence against a member.
const LEAST_PROBABILITY: f64 = 1e-12;

/// The inverse of a smaller number is not finite.
const LEAST_SUM: f64 = 1e-300;

/// A mixture of some of the members.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stack {
    /// The weight of each member of the evidence; 0 for those not in it.
    pub(super) weights: Vec<f64>,
    /// λ
    pub(super) memory: f64,
    /// The log-likelihood of each held-out part.
    pub(super) scores: Vec<f64>,
}

/// The best mixture: the simplest member alone, otherwise the one with the fewest members, and
/// constant weights, among those that are as good as any up to one standard error (and a negligible
/// difference).
pub(super) fn stack(evidence: &Evidence) -> Stack {
    let probabilities: Vec<Vec<f64>> = (0..evidence.members()).into_par_iter().map(|k| evidence.probabilities(k)).collect();
    let fitted = |members: &[usize], memory: f64| fitted(evidence, &probabilities, members, memory);
    let best = smallest(evidence, &fitted);
    let alone = (0..evidence.members()).into_par_iter().map(|k| fitted(&[k], 0.0)).collect::<Vec<_>>();
    alone.into_iter().find(|alone| is_as_good(evidence, alone, &best)).unwrap_or(best)
}

/// Whether a mixture is as good as another up to one standard error and a negligible difference.
fn is_as_good(evidence: &Evidence, mixture: &Stack, other: &Stack) -> bool {
    let (gain, error) = evidence.difference(&other.scores, &mixture.scores);
    gain <= error.clamp(ROUNDING, NEGLIGIBLE)
}

/// The mixture that is left after members were dropped whose loss does not matter.
fn smallest(evidence: &Evidence, fitted: &(impl Fn(&[usize], f64) -> Stack + Sync)) -> Stack {
    let all: Vec<usize> = (0..evidence.members()).collect();
    let mut best = fitted(&all, 0.0);
    let others: Vec<Stack> = MEMORIES[1..].par_iter().map(|&memory| fitted(&all, memory)).collect();
    for other in others {
        let (gain, error) = evidence.difference(&other.scores, &best.scores);
        if gain > error.max(NEGLIGIBLE) {
            best = other;
        }
    }
    let mut members = all;
    while members.len() > 1 {
        // The member whose loss costs least; among equals the most complex one, which is last.
        let without = |&k: &usize| {
            let rest: Vec<usize> = members.iter().copied().filter(|&other| other != k).collect();
            let stack = fitted(&rest, best.memory);
            (evidence.difference(&best.scores, &stack.scores).0, rest, stack)
        };
        let tried: Vec<_> = members.par_iter().rev().map(without).collect();
        let least = tried.into_iter().min_by(|x, y| x.0.total_cmp(&y.0));
        let Some((_, rest, stack)) = least.filter(|(.., stack)| is_as_good(evidence, stack, &best)) else { break };
        (members, best) = (rest, stack);
    }
    if members.len() == 1 {
        best.memory = 0.0;
    }
    best
}

impl Stack {
    /// The log-likelihood of each part, where members predict something else of its steps: `logs`
    /// has the logarithms of the probabilities of each member with a weight, in order. Weights
    /// follow the evidence as before.
    pub(super) fn scores_of(&self, evidence: &Evidence, logs: &[Vec<f64>]) -> Vec<f64> {
        let members: Vec<usize> = (0..evidence.members()).filter(|&k| self.weights[k] > 0.0).collect();
        let factors = factors(evidence, &members, self.memory);
        let (mut factors, mut at) = (factors.chunks_exact(members.len()), 0);
        let mut score = |part: &Part| {
            let steps = at + part.from..at + part.steps;
            at += part.steps;
            let log = |t: usize| {
                let factors = factors.next().expect("there are factors for each step that counts");
                let weights = || members.iter().zip(factors).map(|(&k, factor)| self.weights[k] * factor);
                let given: f64 = weights().zip(logs).map(|(weight, logs)| weight * logs[t].exp()).sum();
                (given / weights().sum::<f64>()).max(f64::MIN_POSITIVE).ln()
            };
            steps.map(log).sum()
        };
        evidence.parts.iter().map(&mut score).collect()
    }
}

/// The best weights of some members for a given λ; `probabilities` are those of all members.
fn fitted(evidence: &Evidence, probabilities: &[Vec<f64>], members: &[usize], memory: f64) -> Stack {
    let columns = Columns::of(evidence, probabilities, members, memory);
    let k = members.len();
    let mut weights = vec![1.0 / k as f64; k];
    for _ in 0..if k > 1 { ROUNDS } else { 0 } {
        let next = columns.next(&weights);
        let change = weights.iter().zip(&next).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        weights = next;
        if change < LEAST_CHANGE {
            break;
        }
    }
    let mut steps = columns.predicted(&weights).into_iter().map(|p| p.max(f64::MIN_POSITIVE).ln());
    let scores = evidence.parts.iter().map(|part| steps.by_ref().take(part.steps - part.from).sum()).collect();
    let mut of_all = vec![0.0; evidence.members()];
    members.iter().zip(weights).for_each(|(&member, weight)| of_all[member] = weight);
    Stack { weights: of_all, memory, scores }
}

/// For each member and each step that counts: e^{s_tk}, scaled by its largest, and e^{s_tk} p_tk.
struct Columns<'p> {
    /// Empty if all factors are 1, which they are for λ = 0.
    factors: Vec<Cow<'p, [f64]>>,
    products: Vec<Cow<'p, [f64]>>,
}

impl<'p> Columns<'p> {
    fn of(evidence: &Evidence, probabilities: &'p [Vec<f64>], members: &[usize], memory: f64) -> Columns<'p> {
        let of_members = members.iter().map(|&k| &probabilities[k][..]);
        if memory == 0.0 {
            return Columns { factors: Vec::new(), products: of_members.map(Cow::from).collect() };
        }
        let rows = factors(evidence, members, memory);
        let k = members.len();
        let factors: Vec<Vec<f64>> = (0..k).map(|i| rows.iter().skip(i).step_by(k).copied().collect()).collect();
        let product = |(p, factors): (&[f64], &Vec<f64>)| p.iter().zip(factors).map(|(p, factor)| p * factor).collect();
        let products = of_members.zip(&factors).map(product).map(Cow::Owned).collect();
        Columns { factors: factors.into_iter().map(Cow::Owned).collect(), products }
    }

    /// The weights after a round of the multiplicative updates.
    fn next(&self, weights: &[f64]) -> Vec<f64> {
        let shares = |columns: &[Cow<'_, [f64]>]| -> Vec<f64> {
            let inverse: Vec<f64> = combined(columns, weights).iter().map(|sum| sum.max(LEAST_SUM).recip()).collect();
            columns.iter().map(|column| dot8(column, &inverse)).collect()
        };
        let expected = shares(&self.products);
        let next: Vec<f64> = match self.factors.is_empty() {
            true => weights.iter().zip(&expected).map(|(w, expected)| w * expected).collect(),
            false => {
                let ratio = |(expected, prior): (f64, f64)| if prior > 0.0 { expected / prior } else { 0.0 };
                let ratios = expected.into_iter().zip(shares(&self.factors)).map(ratio);
                weights.iter().zip(ratios).map(|(w, ratio)| w * ratio).collect()
            }
        };
        let total: f64 = next.iter().sum();
        next.into_iter().map(|weight| weight / total).collect()
    }

    /// The probability of each step.
    fn predicted(&self, weights: &[f64]) -> Vec<f64> {
        let mut given = combined(&self.products, weights);
        if !self.factors.is_empty() {
            given.iter_mut().zip(combined(&self.factors, weights)).for_each(|(p, total)| *p /= total);
        }
        given
    }
}

/// Σ_k w_k x_k for columns x_k.
fn combined(columns: &[Cow<'_, [f64]>], weights: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; columns.first().map_or(0, |column| column.len())];
    for (column, weight) in columns.iter().zip(weights) {
        sum.iter_mut().zip(column.iter()).for_each(|(sum, x)| *sum += weight * x);
    }
    sum
}

/// For each step that counts and each member: e^{s_tk}, scaled by its largest.
fn factors(evidence: &Evidence, members: &[usize], memory: f64) -> Vec<f64> {
    let mut factors = Vec::new();
    let mut at = 0;
    for part in &evidence.parts {
        let mut sums = vec![0.0; members.len()];
        for t in at..at + part.steps {
            if t >= at + part.from {
                let most = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                factors.extend(sums.iter().map(|s| (s - most).exp()));
            }
            for (sum, &k) in sums.iter_mut().zip(members) {
                *sum = memory * (*sum + evidence.logs[k][t].max(LEAST_PROBABILITY.ln()));
            }
        }
        at += part.steps;
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    /// Evidence of members whose probabilities are drawn by `draw(part, step, member)`.
    fn evidence(parts: usize, steps: usize, members: usize, mut draw: impl FnMut(usize, usize, usize) -> f64) -> Evidence {
        let mut logs = vec![Vec::new(); members];
        for i in 0..parts {
            for t in 0..steps {
                logs.iter_mut().enumerate().for_each(|(k, logs)| logs.push(draw(i, t, k).ln()));
            }
        }
        Evidence { parts: vec![Part { steps, from: 0, counted: steps }; parts], logs }
    }

    fn probabilities(evidence: &Evidence) -> Vec<Vec<f64>> {
        (0..evidence.members()).map(|k| evidence.probabilities(k)).collect()
    }

    #[test]
    fn weights_of_a_mixture_are_recovered() {
        // Each step is drawn from one of two coins that say different things; 70 % from the first.
        let mut rng = Seed(1).rng();
        let drawn: Vec<bool> = (0..40_000).map(|_| rng.uniform() < if rng.uniform() < 0.7 { 0.9 } else { 0.1 }).collect();
        let found = stack(&evidence(400, 100, 2, |i, t, k| {
            let p = if k == 0 { 0.9 } else { 0.1 };
            if drawn[i * 100 + t] { p } else { 1.0 - p }
        }));
        // A tolerance of four standard errors: 4·√(.66·.34/40000)/.8
        assert!((found.weights[0] - 0.7).abs() < 0.012 && found.memory == 0.0, "{found:?}");
    }

    #[test]
    fn members_that_are_right_in_different_episodes_are_told_apart_within_them() {
        // One of two members is right in a whole episode: its probability is 0.8, the other's 0.2.
        let evidence = evidence(200, 20, 2, |i, _, k| if i % 2 == k { 0.8 } else { 0.2 });
        let nats = |stack: &Stack| stack.scores.iter().sum::<f64>() / 4000.0;
        // The Bayesian mixture: ½(.8ⁿ + .2ⁿ), closed form.
        let exact = (0.5 * (0.8f64.powi(20) + 0.2f64.powi(20))).ln() / 20.0;
        assert!((nats(&fitted(&evidence, &probabilities(&evidence), &[0, 1], 1.0)) - exact).abs() < 1e-12);
        let found = stack(&evidence);
        assert!(found.memory > 0.9 && nats(&found) > exact - NEGLIGIBLE, "{found:?}");
    }

    #[test]
    fn a_member_that_adds_nothing_is_dropped_and_the_simpler_of_equals_stays() {
        let mut rng = Seed(2).rng();
        let p: Vec<f64> = (0..2000).map(|_| 0.2 + 0.6 * rng.uniform()).collect();
        let same = stack(&evidence(20, 100, 3, |i, t, k| if k == 2 { 0.5 * p[i * 100 + t] } else { p[i * 100 + t] }));
        assert_eq!(same.weights, [1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_simpler_member_is_taken_unless_it_is_worse_beyond_noise() {
        // The second member is better by `gain` nats per step on average, and better or worse by
        // 0.02 in every other part: the standard error is 0.002.
        let draw = |gain: f64| {
            stack(&evidence(100, 20, 2, |i, _, k| match (k, i % 2) {
                (0, _) => 0.5,
                (_, 0) => 0.5 * (gain + 0.02).exp(),
                _ => 0.5 * (gain - 0.02).exp(),
            }))
        };
        assert_eq!(draw(0.0).weights, [1.0, 0.0]);
        assert_eq!(draw(0.01).weights, [0.0, 1.0]);
    }

    #[test]
    fn scores_of_the_same_predictions_are_the_same() {
        let evidence = evidence(50, 20, 2, |i, _, k| if i % 2 == k { 0.8 } else { 0.3 });
        for memory in [0.0, 0.9] {
            let stack = fitted(&evidence, &probabilities(&evidence), &[0, 1], memory);
            let again = stack.scores_of(&evidence, &evidence.logs);
            assert!(stack.scores.iter().zip(&again).all(|(x, y)| (x - y).abs() < 1e-12));
        }
    }
}
