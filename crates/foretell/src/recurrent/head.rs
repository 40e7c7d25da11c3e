//! The probabilities of the observations of all rows, part by part, and back.

use super::cell::Net;
use super::lane::Lane;
use crate::math::single::{Factor, Into, add, exp, multiply_into, vectorised};
use crate::model::FORCED;
use crate::rng::Rng;

/// Rows computed together, so that what belongs to them stays in cache.
const CHUNK: usize = 128;
/// Units are dropped with a probability of so many in 256.
const DROPPED: u64 = 26; // about 0.1

/// Space for the rows of a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    /// States and inner units, as the outputs see them, 2 hidden.
    units: Vec<f32>,
    /// 0 for a unit that is dropped, otherwise the inverse of the share that is not; 2 hidden.
    kept: Vec<f32>,
    /// The inner units before relu, for each factor.
    inner: Vec<f32>,
    /// Logits of all values, then the derivatives by them.
    logits: Vec<f32>,
    by_inner: Vec<f32>,
    by_part: Vec<f32>,
}

/// What is done with the rows.
pub(super) enum Task<'a> {
    /// Their log-probabilities are computed.
    Score,
    /// And the gradient of the negative log-likelihood, with units dropped at random if there is a
    /// generator.
    Learn { gradient: &'a mut [f32], by_states: &'a mut Vec<f32>, dropout: Option<&'a mut Rng> },
}

impl Head {
    /// ln P of the observation of each row.
    pub(super) fn run(&mut self, net: Net<'_>, lane: &Lane, states: &[f32], mut task: Task<'_>, logs: &mut Vec<f32>) {
        let n = net.shape.hidden;
        logs.clear();
        logs.resize(lane.rows(), 0.0);
        if let Task::Learn { by_states, .. } = &mut task {
            by_states.resize(lane.rows() * n, 0.0);
        }
        for first in (0..lane.rows()).step_by(CHUNK) {
            let rows = first..(first + CHUNK).min(lane.rows());
            let targets = &lane.targets[rows.clone()];
            let states = &states[rows.start * n..rows.end * n];
            let dropout = if let Task::Learn { dropout: Some(rng), .. } = &mut task { Some(&mut **rng) } else { None };
            self.units(net, states, targets, dropout);
            self.logits(net);
            match &mut task {
                Task::Score => self.parts(net, targets, None, &mut logs[rows]),
                Task::Learn { gradient, by_states, .. } => {
                    let by_states = &mut by_states[rows.start * n..rows.end * n];
                    self.parts(net, targets, Some(gradient), &mut logs[rows]);
                    self.back(net, states, gradient, by_states);
                }
            }
        }
    }

    /// The units that outputs depend on.
    fn units(&mut self, net: Net<'_>, states: &[f32], targets: &[u32], dropout: Option<&mut Rng>) {
        let (n, rows, factors) = (net.shape.hidden, targets.len(), net.choices.factors());
        self.kept.clear();
        match dropout {
            None => self.kept.resize(rows * 2 * n, 1.0),
            Some(rng) => {
                let scale = 256.0 / (256 - DROPPED) as f32;
                while self.kept.len() < rows * 2 * n {
                    let bits = rng.bits();
                    self.kept.extend((0..8).map(|i| if (bits >> (8 * i)) & 255 < DROPPED { 0.0 } else { scale }));
                }
                self.kept.truncate(rows * 2 * n);
            }
        }
        self.units.resize(rows * 2 * n, 0.0);
        for ((units, kept), h) in
            self.units.chunks_exact_mut(2 * n).zip(self.kept.chunks_exact(2 * n)).zip(states.chunks_exact(n))
        {
            units.iter_mut().zip(kept).zip(h).for_each(|((unit, kept), h)| *unit = kept * h);
        }
        self.inner.resize(factors * rows * n, 0.0);
        let bias = &net.weights[net.blocks.inner_bias.clone()];
        self.inner[..rows * n].chunks_exact_mut(n).for_each(|row| row.copy_from_slice(bias));
        let weights = Factor::rows(&net.weights[net.blocks.inner.clone()], n);
        multiply_into(&mut self.inner[..rows * n], n, 0, Into::Add, Factor::rows(states, n), weights);
        let revealed = &net.weights[net.blocks.revealed.clone()];
        for factor in 1..factors {
            let (before, after) = self.inner.split_at_mut(factor * rows * n);
            let (before, after) = (&before[(factor - 1) * rows * n..], &mut after[..rows * n]);
            after.copy_from_slice(before);
            for (row, &o) in after.chunks_exact_mut(n).zip(targets) {
                if let Some(&value) = net.choices.values(o as usize).get(factor - 1) {
                    add(row, &revealed[value as usize * n..][..n]);
                }
            }
        }
    }

    /// What the states contribute to the logits of all values.
    fn logits(&mut self, net: Net<'_>) {
        let (n, values) = (net.shape.hidden, net.shape.values);
        let rows = self.units.len() / (2 * n);
        self.logits.resize(rows * values, 0.0);
        let bias = &net.weights[net.blocks.out_bias.clone()];
        self.logits.chunks_exact_mut(values).for_each(|row| row.copy_from_slice(bias));
        let out = Factor::rows(&net.weights[net.blocks.out.clone()], 2 * n).columns(0, n).transposed();
        multiply_into(&mut self.logits, values, 0, Into::Add, Factor::rows(&self.units, 2 * n).columns(0, n), out);
    }

    /// The log-probabilities of all parts, the last part first; logits become derivatives, and the
    /// gradient by what belongs to the inner units is added.
    fn parts(&mut self, net: Net<'_>, targets: &[u32], mut gradient: Option<&mut [f32]>, logs: &mut [f32]) {
        let (n, values, rows) = (net.shape.hidden, net.shape.values, targets.len());
        self.by_inner.clear();
        self.by_inner.resize(rows * n, 0.0);
        self.by_part.resize(rows * n, 0.0);
        for factor in (0..net.choices.factors()).rev() {
            let (first, end) = (net.choices.first[factor], net.choices.first[factor + 1]);
            let inner = &self.inner[factor * rows * n..][..rows * n];
            let Head { units, kept, logits, by_inner, by_part, .. } = self;
            vectorised(
                #[inline(always)]
                || {
                    let units = units.chunks_exact_mut(2 * n).zip(kept.chunks_exact(2 * n)).zip(inner.chunks_exact(n));
                    for ((units, kept), inner) in units {
                        units[n..].iter_mut().zip(&kept[n..]).zip(inner).for_each(|((unit, kept), x)| *unit = kept * x.max(0.0));
                    }
                },
            );
            let active = Factor::rows(units, 2 * n).columns(n, n);
            let out = &net.weights[net.blocks.out.clone()][first * 2 * n..end * 2 * n];
            let out = Factor::rows(out, 2 * n).columns(n, n);
            multiply_into(logits, values, first, Into::Add, active, out.transposed());
            vectorised(
                #[inline(always)]
                || {
                    for ((row, &o), log) in logits.chunks_exact_mut(values).zip(targets).zip(&mut *logs) {
                        *log += choose(net, o as usize, factor, &mut row[first..end], first);
                    }
                },
            );
            let Some(gradient) = gradient.as_deref_mut() else { continue };
            let by_logits = Factor::rows(logits, values).columns(first, end - first);
            let by_out = &mut gradient[net.blocks.out.clone()][first * 2 * n..end * 2 * n];
            multiply_into(by_out, 2 * n, n, Into::Add, by_logits.transposed(), active);
            multiply_into(by_part, n, 0, Into::Replace, by_logits, out);
            let revealed = &mut gradient[net.blocks.revealed.clone()];
            vectorised(
                #[inline(always)]
                || {
                    let parts = by_part.chunks_exact(n).zip(kept.chunks_exact(2 * n)).zip(inner.chunks_exact(n));
                    for ((by_inner, ((by_part, kept), inner)), &o) in by_inner.chunks_exact_mut(n).zip(parts).zip(targets) {
                        if let Some(&value) = net.choices.values(o as usize).get(factor) {
                            add(&mut revealed[value as usize * n..][..n], by_inner);
                        }
                        for (((sum, d), kept), x) in by_inner.iter_mut().zip(by_part).zip(&kept[n..]).zip(inner) {
                            *sum += if *x > 0.0 { d * kept } else { 0.0 };
                        }
                    }
                },
            );
        }
    }

    /// The rest of the gradient, and the derivatives by the states.
    fn back(&mut self, net: Net<'_>, states: &[f32], gradient: &mut [f32], by_states: &mut [f32]) {
        let (n, values) = (net.shape.hidden, net.shape.values);
        let by_logits = Factor::rows(&self.logits, values);
        let by_out = &mut gradient[net.blocks.out.clone()];
        multiply_into(by_out, 2 * n, 0, Into::Add, by_logits.transposed(), Factor::rows(&self.units, 2 * n).columns(0, n));
        let out = Factor::rows(&net.weights[net.blocks.out.clone()], 2 * n).columns(0, n);
        multiply_into(by_states, n, 0, Into::Replace, by_logits, out);
        vectorised(
            #[inline(always)]
            || {
                for (by_state, kept) in by_states.chunks_exact_mut(n).zip(self.kept.chunks_exact(2 * n)) {
                    by_state.iter_mut().zip(kept).for_each(|(d, kept)| *d *= kept);
                }
                let by_bias = &mut gradient[net.blocks.out_bias.clone()];
                self.logits.chunks_exact(values).for_each(|row| add(by_bias, row));
                let by_bias = &mut gradient[net.blocks.inner_bias.clone()];
                self.by_inner.chunks_exact(n).for_each(|row| add(by_bias, row));
            },
        );
        let by_inner = Factor::rows(&self.by_inner, n);
        multiply_into(&mut gradient[net.blocks.inner.clone()], n, 0, Into::Add, Factor::rows(states, n).transposed(), by_inner);
        let weights = Factor::rows(&net.weights[net.blocks.inner.clone()], n);
        multiply_into(by_states, n, 0, Into::Add, by_inner, weights.transposed());
    }
}

/// ln P of the value of one part; the logits of its factor become the derivatives of −ln P.
#[inline(always)]
fn choose(net: Net<'_>, o: usize, factor: usize, logits: &mut [f32], first: usize) -> f32 {
    let node = if net.choices.knows(o) { net.choices.nodes(o)[factor] } else { FORCED };
    if node == FORCED {
        logits.fill(0.0);
        return 0.0;
    }
    let options = net.choices.options(node);
    let value = net.choices.values(o)[factor] as usize - first;
    let chosen = logits[value];
    if options.len() == logits.len() {
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        logits.iter_mut().for_each(|x| *x = exp(*x - most));
        let total: f32 = logits.iter().sum();
        logits.iter_mut().for_each(|x| *x /= total);
        logits[value] -= 1.0;
        return chosen - most - total.ln();
    }
    let at = |option: &u32| *option as usize - first;
    let most = options.iter().map(|option| logits[at(option)]).fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = options.iter().map(|option| exp(logits[at(option)] - most)).sum();
    let mut left = 0;
    for option in options {
        logits[left..at(option)].fill(0.0);
        logits[at(option)] = exp(logits[at(option)] - most) / total;
        left = at(option) + 1;
    }
    logits[left..].fill(0.0);
    logits[value] -= 1.0;
    chosen - most - total.ln()
}
