//! The E-step: expected counts of states along an episode, by the forward–backward algorithm.

use pulp::NullaryFnOnce;

use super::latent::{Block, GROUP, Latent};
use super::layout::START;
use crate::data::ActionObservation;
use crate::math::dot4;
use crate::rng::Rng;

/// States with less of the belief are left out of a step: their share of any count is smaller than
/// this.
const NEGLIGIBLE: f64 = 1e-9;
/// Sums are kept in this many lanes, whatever the number of threads, so that their order is always
/// the same.
pub(super) const LANES: usize = 8;

/// Sums over episodes, and scratch space.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// For each block entry Σ α(s) β(s′): times T it is the expected number of transitions.
    pub(super) counts: Vec<f64>,
    /// For each place of an observation, along its active set: expected visits.
    pub(super) emissions: Vec<Vec<f64>>,
    pub(super) log_likelihood: f64,
    pub(super) steps: u64,
    /// Entries of T that were visited.
    pub(super) visited: u64,
    work: Work,
}

/// Scratch space for one episode.
#[derive(Clone, Debug, Default)]
struct Work {
    /// α of the states before and after each step, concatenated, and where each begins.
    alpha: Vec<f64>,
    begin: Vec<usize>,
    scale: Vec<f64>,
    block: Vec<u32>,
    beta: Vec<f64>,
    weighted: Vec<f64>,
}

impl Lane {
    /// Adds `weight` times the counts of another lane.
    #[cfg(test)]
    pub(super) fn add(&mut self, other: &Lane, weight: f64) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(x, y)| *x += weight * y);
        for (mine, other) in self.emissions.iter_mut().zip(&other.emissions) {
            mine.iter_mut().zip(other).for_each(|(x, y)| *x += weight * y);
        }
    }
}

impl Latent {
    /// An empty lane.
    pub(super) fn lane(&self) -> Lane {
        Lane {
            counts: vec![0.0; self.entries],
            emissions: self.layout.active.iter().map(|active| vec![0.0; active.len()]).collect(),
            ..Lane::default()
        }
    }

    /// Adds ln P(o_1 … o_n ‖ a_1 … a_n) to the lane.
    pub(super) fn score(&self, steps: &[ActionObservation], lane: &mut Lane) {
        lane.log_likelihood += self.forward(steps, &mut lane.work);
        lane.steps += steps.len() as u64;
        lane.visited += lane.work.block.iter().map(|&id| self.blocks[id as usize].t.len() as u64).sum::<u64>();
    }

    /// Adds the expected counts of an episode.
    pub(super) fn expect(&self, steps: &[ActionObservation], lane: &mut Lane) {
        self.score(steps, lane);
        self.backward(steps, lane);
    }

    /// Calls `see` with the step, the active set and the belief over it before each step.
    pub(super) fn track(&self, steps: &[ActionObservation], lane: &mut Lane, mut see: impl FnMut(usize, &[u32], &[f64])) {
        self.score(steps, lane);
        let mut before = self.layout.start();
        for (t, ao) in steps.iter().enumerate() {
            let set = &self.sets[self.set_of[before] as usize];
            let begin = lane.work.begin[t];
            see(t, set, &lane.work.alpha[begin..begin + set.len()]);
            before = self.layout.place(*ao);
        }
    }

    /// Draws the state after each step from the posterior of all of them.
    pub(super) fn draw(&self, steps: &[ActionObservation], lane: &mut Lane, rng: &mut Rng) -> Vec<u32> {
        self.score(steps, lane);
        let Work { alpha, begin, block: blocks, .. } = &lane.work;
        let mut states = vec![START as u32; steps.len()];
        let (mut weights, mut later) = (Vec::new(), None);
        for (t, ao) in steps.iter().enumerate().rev() {
            let set = &self.sets[self.set_of[self.layout.place(*ao)] as usize];
            weights.clear();
            weights.extend_from_slice(&alpha[begin[t + 1]..][..set.len()]);
            if let Some(later) = later {
                // P(s | s′) ∝ α(s) T(s′ | a, s)
                let block = &self.blocks[blocks[t + 1] as usize];
                weights.iter_mut().zip(block.t.chunks_exact(block.width)).for_each(|(weight, row)| *weight *= row[later]);
            }
            let drawn = rng.weighted(&weights).unwrap_or(0);
            (states[t], later) = (set[drawn], Some(drawn));
        }
        states
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
        let mut before = self.set_of[self.layout.start()];
        let mut log_likelihood = 0.0;
        for ao in steps {
            let o = self.layout.place(*ao);
            let next = self.set_of[o];
            let id = self.block_of[&(ao.action.0, before, next)];
            let block = &self.blocks[id as usize];
            let (first, middle) = (begin[begin.len() - 1], alpha.len());
            alpha.resize(middle + block.width, 0.0);
            let (now, after) = alpha[first..].split_at_mut(middle - first);
            let sum = dispatch(Forward { now, block, emissions: &self.padded_emissions[o], after });
            log_likelihood += sum.ln();
            begin.push(middle);
            scale.push(sum);
            blocks.push(id);
            before = next;
        }
        log_likelihood
    }

    /// Computes β from the last step to the first, and from it the counts.
    fn backward(&self, steps: &[ActionObservation], lane: &mut Lane) {
        let Lane { counts, emissions, work, .. } = lane;
        let Work { alpha, begin, scale, block: blocks, beta, weighted } = work;
        beta.clear();
        beta.resize(alpha.len() - begin[steps.len()], 1.0);
        for (t, ao) in steps.iter().enumerate().rev() {
            let o = self.layout.place(*ao);
            let (first, middle) = (begin[t], begin[t + 1]);
            let after = &alpha[middle..middle + beta.len()];
            emissions[o].iter_mut().zip(after).zip(&*beta).for_each(|((n, x), b)| *n += x * b);
            weighted.clear();
            weighted.extend(beta.iter().zip(&self.padded_emissions[o]).map(|(b, e)| b * e / scale[t]));
            let block = &self.blocks[blocks[t] as usize];
            let now = &alpha[first..middle];
            let counts = &mut counts[block.first..block.first + block.t.len()];
            beta.clear();
            beta.resize(now.len(), 0.0);
            dispatch(Backward { now, block, weighted, counts, beta });
        }
    }
}

/// α of the next step, and the probability of its observation.
struct Forward<'a> {
    now: &'a [f64],
    block: &'a Block,
    emissions: &'a [f64],
    after: &'a mut [f64],
}

impl NullaryFnOnce for Forward<'_> {
    type Output = f64;

    #[inline(always)]
    fn call(self) -> f64 {
        let Forward { now, block, emissions, after } = self;
        let width = block.width;
        for (i, &weight) in now.iter().enumerate() {
            if weight > NEGLIGIBLE {
                add(after, weight, &block.t[i * width..(i + 1) * width]);
            }
        }
        // Priors keep every sum positive; the smallest positive number replaces one that rounds to
        // zero.
        let sum = dot4(after, emissions).max(f64::MIN_POSITIVE);
        for (x, e) in after.iter_mut().zip(emissions) {
            *x *= e / sum;
        }
        sum
    }
}

/// β of the previous step, and the counts of the step between.
struct Backward<'a> {
    now: &'a [f64],
    block: &'a Block,
    /// β of the next step, weighted by the probability of the observation.
    weighted: &'a [f64],
    counts: &'a mut [f64],
    beta: &'a mut [f64],
}

impl NullaryFnOnce for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Backward { now, block, weighted, counts, beta } = self;
        let width = block.width;
        for i in 0..block.t.len() / width {
            let row = i * width..(i + 1) * width;
            // β of a state that is left out matters for nothing.
            if now[i] > NEGLIGIBLE {
                beta[i] = dot4(&block.t[row.clone()], weighted);
                add(&mut counts[row], now[i], weighted);
            }
        }
    }
}

#[inline(always)]
fn dispatch<F: NullaryFnOnce>(f: F) -> F::Output {
    pulp::Arch::new().dispatch(f)
}

/// sums += weight·row
#[inline(always)]
fn add(sums: &mut [f64], weight: f64, row: &[f64]) {
    let (groups, rest) = sums.as_chunks_mut::<GROUP>();
    let (row_groups, row_rest) = row.as_chunks::<GROUP>();
    for g in 0..groups.len().min(row_groups.len()) {
        for i in 0..GROUP {
            groups[g][i] += weight * row_groups[g][i];
        }
    }
    for i in 0..rest.len().min(row_rest.len()) {
        rest[i] += weight * row_rest[i];
    }
}
