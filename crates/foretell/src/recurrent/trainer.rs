//! The weights of a network on their way: one pass over episodes after the other.

use rayon::prelude::*;

use super::adam::Adam;
use super::cell::{Net, Trace};
use super::head::{Head, Task};
use super::lane::Lane;
use crate::data::ActionObservation;
use crate::model::{Blocks, Choices, Recurrent, Shape};
use crate::rng::{Rng, Seed};

/// Episodes in a batch.
const BATCH: usize = 32;
/// Lanes of a batch, each computed by one thread.
const LANES: usize = 2;
/// Steps through which derivatives go back. Longer episodes are divided, and the state is carried
/// over.
const WINDOW: usize = 128;
/// Episodes scored together.
const SCORED: usize = 32;
/// The standard deviation of what a symbol or an action adds to the gates at first.
const INPUT_SCALE: f64 = 0.3;
/// The same of outputs, relative to that which keeps variances.
const OUTPUT_SCALE: f64 = 0.3;

/// A network that is being trained.
pub(super) struct Trainer<'a> {
    shape: Shape,
    blocks: Blocks,
    choices: &'a Choices,
    pub(super) weights: Vec<f32>,
    adam: Adam,
    workers: Vec<Worker>,
    seed: Seed,
    passes: u64,
}

/// How a pass changes the weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) rate: f32,
    pub(super) decay: f32,
    pub(super) dropout: bool,
}

/// What one lane needs.
#[derive(Default)]
struct Worker {
    lane: Lane,
    trace: Trace,
    head: Head,
    states: Vec<f32>,
    by_states: Vec<f32>,
    logs: Vec<f32>,
    gradient: Vec<f32>,
}

/// The steps of an episode.
pub(super) type Steps<'a> = &'a [ActionObservation];

impl<'a> Trainer<'a> {
    /// Random weights, with units that forget within up to `memory` steps.
    pub(super) fn new(choices: &'a Choices, actions: usize, hidden: usize, memory: usize, seed: Seed) -> Trainer<'a> {
        let shape = Shape { actions, values: choices.total(), hidden };
        Trainer::from(shape, initial(shape, choices.factors(), memory, seed.stream("weights")), choices, seed)
    }

    /// The weights of a network.
    pub(super) fn of(net: &'a Recurrent, seed: Seed) -> Trainer<'a> {
        Trainer::from(net.shape, net.weights.clone(), &net.choices, seed)
    }

    fn from(shape: Shape, weights: Vec<f32>, choices: &'a Choices, seed: Seed) -> Trainer<'a> {
        let workers = (0..LANES).map(|_| Worker::default()).collect();
        let adam = Adam::new(shape.weights());
        Trainer { blocks: shape.blocks(), shape, choices, weights, adam, workers, seed: seed.stream("passes"), passes: 0 }
    }

    /// Goes on from other weights, without past gradients.
    pub(super) fn restart(&mut self, weights: &[f32]) {
        self.weights.copy_from_slice(weights);
        self.adam.reset();
    }

    /// The network with the given weights.
    pub(super) fn network(&self, weights: Vec<f32>) -> Recurrent {
        Recurrent::new(self.shape, weights, self.choices.clone())
    }

    /// Multiply-adds of training with one step.
    pub(super) fn work_per_step(&self) -> f64 {
        work_per_step(self.shape, self.choices.factors())
    }

    /// The number of updates in a pass over the episodes, about.
    pub(super) fn batches(episodes: &[Steps<'_>]) -> usize {
        let windows: usize = episodes.iter().map(|z| z.len().div_ceil(WINDOW)).sum();
        windows.div_ceil(BATCH).max(1)
    }

    /// A pass over the episodes in random order. Returns whether all gradients were finite.
    pub(super) fn pass(&mut self, episodes: &[Steps<'_>], pace: Pace) -> bool {
        let mut rng = self.seed.index(self.passes).rng();
        self.passes += 1;
        let mut order: Vec<usize> = (0..episodes.len()).collect();
        (1..order.len()).for_each(|i| order.swap(i, rng.below(i + 1)));
        let steps: usize = episodes.iter().map(|z| z.len()).sum();
        let typical = steps.min(WINDOW * episodes.len()) as f32 / episodes.len() as f32 * BATCH.min(episodes.len()) as f32;
        let mut finite = true;
        for batch in order.chunks(BATCH) {
            let mut batch: Vec<Steps<'_>> = batch.iter().map(|&i| episodes[i]).collect();
            batch.sort_by_key(|z| std::cmp::Reverse(z.len()));
            finite &= self.learn(&batch, typical / 2.0, pace, &mut rng);
        }
        finite
    }

    /// Learns from a batch, window by window. The gradient is a mean over at least `least` steps.
    fn learn(&mut self, batch: &[Steps<'_>], least: f32, pace: Pace, rng: &mut Rng) -> bool {
        let n = self.shape.hidden;
        let lanes: Vec<Vec<Steps<'_>>> =
            (0..LANES).map(|lane| batch.iter().skip(lane).step_by(LANES).copied().collect()).collect();
        for (worker, lane) in self.workers.iter_mut().zip(&lanes) {
            worker.states.clear();
            worker.states.resize(lane.len() * n, 0.0);
        }
        let longest = batch.first().map_or(0, |z| z.len());
        let mut finite = true;
        for from in (0..longest).step_by(WINDOW) {
            let seed = Seed(rng.bits());
            let net = Net { shape: self.shape, blocks: &self.blocks, weights: &self.weights, choices: self.choices };
            let gradient = |(i, (worker, lane)): (usize, (&mut Worker, &Vec<Steps<'_>>))| {
                let mut rng = pace.dropout.then(|| seed.index(i as u64).rng());
                worker.lane.fill(lane, from, from + WINDOW);
                worker.learn(net, rng.as_mut());
            };
            self.workers.par_iter_mut().zip(&lanes).enumerate().for_each(gradient);
            let rows: usize = self.workers.iter().map(|worker| worker.lane.rows()).sum();
            let (sum, others) = self.workers.split_first_mut().expect("there are lanes");
            for other in others {
                sum.gradient.iter_mut().zip(&other.gradient).for_each(|(x, y)| *x += y);
            }
            let scale = 1.0 / (rows as f32).max(least);
            finite &= self.adam.update(&mut self.weights, &sum.gradient, scale, pace.rate, pace.decay);
        }
        finite
    }

    /// Σ ln P of all steps, and their number.
    pub(super) fn score(&self, episodes: &[Steps<'_>]) -> f64 {
        let net = Net { shape: self.shape, blocks: &self.blocks, weights: &self.weights, choices: self.choices };
        let mut sorted = episodes.to_vec();
        sorted.sort_by_key(|z| std::cmp::Reverse(z.len()));
        let of_chunk = |chunk: &[Steps<'_>]| Worker::default().score(net, chunk);
        sorted.par_chunks(SCORED).map(of_chunk).collect::<Vec<f64>>().iter().sum()
    }

    /// The gradient of −Σ ln P of all steps, without dropout.
    #[cfg(test)]
    pub(super) fn gradient(&self, episodes: &[Steps<'_>]) -> Vec<f32> {
        let net = Net { shape: self.shape, blocks: &self.blocks, weights: &self.weights, choices: self.choices };
        let mut worker = Worker { states: vec![0.0; episodes.len() * self.shape.hidden], ..Worker::default() };
        worker.lane.fill(episodes, 0, WINDOW);
        worker.learn(net, None);
        worker.gradient
    }
}

impl Worker {
    fn learn(&mut self, net: Net<'_>, dropout: Option<&mut Rng>) {
        let Worker { lane, trace, head, states, by_states, logs, gradient } = self;
        gradient.clear();
        gradient.resize(net.weights.len(), 0.0);
        trace.forward(net, lane, states);
        head.run(net, lane, &trace.states, Task::Learn { gradient, by_states, dropout }, logs);
        trace.backward(net, lane, by_states, gradient);
    }

    fn score(&mut self, net: Net<'_>, episodes: &[Steps<'_>]) -> f64 {
        self.states = vec![0.0; episodes.len() * net.shape.hidden];
        let mut sum = 0.0;
        for from in (0..episodes.first().map_or(0, |z| z.len())).step_by(WINDOW) {
            self.lane.fill(episodes, from, from + WINDOW);
            self.trace.forward(net, &self.lane, &mut self.states);
            self.head.run(net, &self.lane, &self.trace.states, Task::Score, &mut self.logs);
            sum += self.logs.iter().map(|&log| f64::from(log)).sum::<f64>();
        }
        sum
    }
}

/// Multiply-adds of training with one step: the way forward, and twice as much for the way back.
pub(super) fn work_per_step(shape: Shape, factors: usize) -> f64 {
    let (h, v) = (shape.hidden as f64, shape.values as f64);
    3.0 * (4.0 * h * h + 2.0 * h * v + (4 + 4 * factors) as f64 * h)
}

/// Weights that keep the variance of what goes through them.
fn initial(shape: Shape, factors: usize, memory: usize, seed: Seed) -> Vec<f32> {
    let (blocks, n) = (shape.blocks(), shape.hidden);
    let mut weights = vec![0.0; shape.weights()];
    let mut rng = seed.rng();
    let by_state = 1.0 / (n as f64).sqrt();
    let by_factor = INPUT_SCALE / (factors as f64).sqrt();
    for (block, scale) in [
        (&blocks.action, INPUT_SCALE),
        (&blocks.value, by_factor),
        (&blocks.recurrence, by_state),
        (&blocks.inner, by_state),
        (&blocks.revealed, by_factor),
        (&blocks.out, OUTPUT_SCALE * by_state / 2f64.sqrt()),
    ] {
        weights[block.clone()].iter_mut().for_each(|w| *w = (scale * normal(&mut rng)) as f32);
    }
    // σ(b_z) is the share of a unit that is renewed in a step: its inverse is the time until it forgets
    // (Tallec and Ollivier 2018).
    for z in &mut weights[blocks.gates.start..][..n] {
        let steps = 1.0 + rng.uniform() * (memory.max(3) - 1) as f64;
        *z = -(steps.ln()) as f32;
    }
    weights
}

/// A draw from the standard normal distribution (Box and Muller 1958).
fn normal(rng: &mut Rng) -> f64 {
    let (u, v) = (1.0 - rng.uniform(), rng.uniform());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
