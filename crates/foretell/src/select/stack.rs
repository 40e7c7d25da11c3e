//! Stacking: the weights of a mixture that predict held-out steps best (Wolpert 1992).
//!
//! With weights that follow the evidence of the episode, ln w_tk = ln w_k + s_tk up to a constant,
//! where s_t+1,k = λ(s_tk + ln p_tk). The held-out log-likelihood is concave in the weights for
//! λ = 0, and its gradient in ln w_k is Σ_t (r_tk − π_tk), where π_t are the weights at step t and
//! r_tk ∝ π_tk p_tk. Each round multiplies w_k by Σ_t r_tk / Σ_t π_tk, which is EM for λ = 0.

use rayon::prelude::*;

use super::evidence::{Evidence, Part};

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
    let best = smallest(evidence);
    let alone = (0..evidence.members()).into_par_iter().map(|k| fitted(evidence, &[k], 0.0)).collect::<Vec<_>>();
    alone.into_iter().find(|alone| is_as_good(evidence, alone, &best)).unwrap_or(best)
}

/// Whether a mixture is as good as another up to one standard error and a negligible difference.
fn is_as_good(evidence: &Evidence, mixture: &Stack, other: &Stack) -> bool {
    let (gain, error) = evidence.difference(&other.scores, &mixture.scores);
    gain <= error.clamp(ROUNDING, NEGLIGIBLE)
}

/// The mixture that is left after members were dropped whose loss does not matter.
fn smallest(evidence: &Evidence) -> Stack {
    let all: Vec<usize> = (0..evidence.members()).collect();
    let mut best = fitted(evidence, &all, 0.0);
    let others: Vec<Stack> = MEMORIES[1..].par_iter().map(|&memory| fitted(evidence, &all, memory)).collect();
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
            let stack = fitted(evidence, &rest, best.memory);
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
        let (factors, _) = table(evidence, &members, self.memory);
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

/// The best weights of some members for a given λ.
fn fitted(evidence: &Evidence, members: &[usize], memory: f64) -> Stack {
    let k = members.len();
    let (factors, probabilities) = table(evidence, members, memory);
    let mut weights = vec![1.0 / k as f64; k];
    for _ in 0..if k > 1 { ROUNDS } else { 0 } {
        let (mut expected, mut prior) = (vec![0.0; k], vec![0.0; k]);
        for (factors, p) in factors.chunks_exact(k).zip(probabilities.chunks_exact(k)) {
            let total: f64 = weights.iter().zip(factors).map(|(w, f)| w * f).sum();
            let given: f64 = weights.iter().zip(factors).zip(p).map(|((w, f), p)| w * f * p).sum();
            for i in 0..k {
                let weight = weights[i] * factors[i];
                expected[i] += weight * p[i] / given;
                prior[i] += weight / total;
            }
        }
        let mut next: Vec<f64> = (0..k).map(|i| if prior[i] > 0.0 { weights[i] * expected[i] / prior[i] } else { 0.0 }).collect();
        let total: f64 = next.iter().sum();
        next.iter_mut().for_each(|weight| *weight /= total);
        let change = weights.iter().zip(&next).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        weights = next;
        if change < LEAST_CHANGE {
            break;
        }
    }
    let mut steps = factors.chunks_exact(k).zip(probabilities.chunks_exact(k)).map(|(factors, p)| {
        let total: f64 = weights.iter().zip(factors).map(|(w, f)| w * f).sum();
        let given: f64 = weights.iter().zip(factors).zip(p).map(|((w, f), p)| w * f * p).sum();
        (given / total).max(f64::MIN_POSITIVE).ln()
    });
    let scores = evidence.parts.iter().map(|part| steps.by_ref().take(part.steps - part.from).sum()).collect();
    let mut of_all = vec![0.0; evidence.members()];
    members.iter().zip(weights).for_each(|(&member, weight)| of_all[member] = weight);
    Stack { weights: of_all, memory, scores }
}

/// For each step that counts and each member: e^{s_tk}, scaled by its largest, and p_tk.
fn table(evidence: &Evidence, members: &[usize], memory: f64) -> (Vec<f64>, Vec<f64>) {
    let (mut factors, mut probabilities) = (Vec::new(), Vec::new());
    let mut at = 0;
    for part in &evidence.parts {
        let mut sums = vec![0.0; members.len()];
        for t in at..at + part.steps {
            if t >= at + part.from {
                let most = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                factors.extend(sums.iter().map(|s| (s - most).exp()));
                probabilities.extend(members.iter().map(|&k| evidence.logs[k][t].exp().max(f64::MIN_POSITIVE)));
            }
            for (sum, &k) in sums.iter_mut().zip(members) {
                *sum = memory * (*sum + evidence.logs[k][t].max(LEAST_PROBABILITY.ln()));
            }
        }
        at += part.steps;
    }
    (factors, probabilities)
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
        assert!((nats(&fitted(&evidence, &[0, 1], 1.0)) - exact).abs() < 1e-12);
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
            let stack = fitted(&evidence, &[0, 1], memory);
            let again = stack.scores_of(&evidence, &evidence.logs);
            assert!(stack.scores.iter().zip(&again).all(|(x, y)| (x - y).abs() < 1e-12));
        }
    }
}
