//! The E-step: what is to be expected of the states along an episode, forward and backward.

use super::latent::Latent;
use crate::data::ActionObservation;

/// States that hold less of the belief are left out of a step: their share of any count is below it.
const NEGLIGIBLE: f64 = 1e-9;

/// Sums over episodes, and room to work in.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// For each block entry Σ α(s) β(s′): times T it is the expected number of transitions.
    pub(super) counts: Vec<f64>,
    /// For each symbol, along its active set: expected visits.
    pub(super) emissions: Vec<Vec<f64>>,
    pub(super) log_likelihood: f64,
    pub(super) steps: u64,
    work: Work,
}

/// What one episode needs.
#[derive(Clone, Debug, Default)]
struct Work {
    /// α of the states before and after each step, one after the other, and where each begins.
    alpha: Vec<f64>,
    begin: Vec<usize>,
    scale: Vec<f64>,
    block: Vec<u32>,
    beta: Vec<f64>,
    weighted: Vec<f64>,
}

impl Lane {
    /// Adds the counts of another lane, `weight` times.
    #[cfg(test)]
    pub(super) fn add(&mut self, other: &Lane, weight: f64) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(x, y)| *x += weight * y);
        for (mine, other) in self.emissions.iter_mut().zip(&other.emissions) {
            mine.iter_mut().zip(other).for_each(|(x, y)| *x += weight * y);
        }
    }
}

impl Latent {
    /// A lane with nothing in it.
    pub(super) fn lane(&self) -> Lane {
        Lane {
            counts: vec![0.0; self.entries],
            emissions: self.layout.active.iter().map(|active| vec![0.0; active.len()]).collect(),
            ..Lane::default()
        }
    }

    /// ln P(o_1 … o_n ‖ a_1 … a_n), added to the lane.
    pub(super) fn score(&self, steps: &[ActionObservation], lane: &mut Lane) {
        lane.log_likelihood += self.forward(steps, &mut lane.work);
        lane.steps += steps.len() as u64;
    }

    /// Adds the expected counts of an episode.
    pub(super) fn expect(&self, steps: &[ActionObservation], lane: &mut Lane) {
        self.score(steps, lane);
        self.backward(steps, lane);
    }

    /// Calls `see` with the active set and the belief over it before each step.
    pub(super) fn track(&self, steps: &[ActionObservation], lane: &mut Lane, mut see: impl FnMut(usize, &[u32], &[f64])) {
        self.score(steps, lane);
        let mut before = self.layout.active.len() - 1;
        for (t, ao) in steps.iter().enumerate() {
            let set = &self.sets[self.set_of[before] as usize];
            let begin = lane.work.begin[t];
            see(t, set, &lane.work.alpha[begin..begin + set.len()]);
            before = ao.observation.0 as usize;
        }
    }

    /// Fills α, normalised at every step.
    fn forward(&self, steps: &[ActionObservation], work: &mut Work) -> f64 {
        let Work { alpha, begin, scale, block: blocks, .. } = work;
        alpha.clear();
        begin.clear();
        scale.clear();
        blocks.clear();
        alpha.push(1.0);
        begin.push(0);
        let mut before = self.set_of[self.layout.active.len() - 1];
        let mut log_likelihood = 0.0;
        for ao in steps {
            let o = ao.observation.0 as usize;
            let next = self.set_of[o];
            let id = self.block_of[&(ao.action.0, before, next)];
            let block = &self.blocks[id as usize];
            let (first, middle) = (begin[begin.len() - 1], alpha.len());
            alpha.resize(middle + block.width, 0.0);
            let (now, after) = alpha[first..].split_at_mut(middle - first);
            for (&weight, row) in now.iter().zip(block.t.chunks_exact(block.width)) {
                if weight > NEGLIGIBLE {
                    after.iter_mut().zip(row).for_each(|(x, t)| *x += weight * t);
                }
            }
            after.iter_mut().zip(&self.emissions[o]).for_each(|(x, e)| *x *= e);
            // Priors keep every sum positive; the least of numbers stands in where rounding does not.
            let sum = after.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            after.iter_mut().for_each(|x| *x /= sum);
            log_likelihood += sum.ln();
            begin.push(middle);
            scale.push(sum);
            blocks.push(id);
            before = next;
        }
        log_likelihood
    }

    /// β from the last step to the first, and with it the counts.
    fn backward(&self, steps: &[ActionObservation], lane: &mut Lane) {
        let Lane { counts, emissions, work, .. } = lane;
        let Work { alpha, begin, scale, block: blocks, beta, weighted } = work;
        beta.clear();
        beta.resize(alpha.len() - begin[steps.len()], 1.0);
        for (t, ao) in steps.iter().enumerate().rev() {
            let o = ao.observation.0 as usize;
            let (first, middle) = (begin[t], begin[t + 1]);
            let end = middle + beta.len();
            let after = &alpha[middle..end];
            emissions[o].iter_mut().zip(after).zip(&*beta).for_each(|((n, x), b)| *n += x * b);
            weighted.clear();
            weighted.extend(beta.iter().zip(&self.emissions[o]).map(|(b, e)| b * e / scale[t]));
            let block = &self.blocks[blocks[t] as usize];
            let now = &alpha[first..middle];
            let counts = &mut counts[block.first..block.first + block.t.len()];
            beta.clear();
            for ((&weight, row), counts) in
                now.iter().zip(block.t.chunks_exact(block.width)).zip(counts.chunks_exact_mut(block.width))
            {
                beta.push(row.iter().zip(&*weighted).map(|(t, w)| t * w).sum());
                if weight > NEGLIGIBLE {
                    counts.iter_mut().zip(&*weighted).for_each(|(n, w)| *n += weight * w);
                }
            }
        }
    }
}
