//! Growing a tree whose splits are the best of K random ones.

use super::inputs::{Aligned, Bounds, Inputs};
use super::kernels::{Left, gather};
use super::threshold;
use super::walk::Node;
use crate::rng::Rng;

/// Scores whose ratio is nearer to 1 are equal but for rounding: splits of the same rows, perhaps with sides exchanged.
///
/// A sum of some hundred numbers in single precision is right to about ten units of 2⁻²⁴, and a score has its square.
const TIE: f32 = 2e-6;

/// What all trees of a forest are grown from.
pub(super) struct Sample<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) y: &'a [f64],
    /// Positive; none if they are equal.
    pub(super) weights: Option<&'a [f64]>,
    /// K
    pub(super) candidates: usize,
    pub(super) min_split: usize,
}

/// One tree: its nodes, and the means of its leaves in their order.
pub(super) struct Grown {
    pub(super) nodes: Vec<Node>,
    pub(super) means: Vec<f64>,
}

/// Where the rows of a node lie together: the root's in the sample, others' in one of two stores. Those of its children go
/// to the same places of the other store.
#[derive(Clone, Copy)]
enum Place {
    Sample,
    Store(usize),
}

/// A node to be split or made a leaf.
struct Task {
    node: usize,
    start: usize,
    end: usize,
    place: Place,
    bounds: Bounds,
}

/// Rows with their targets and weights.
struct Store {
    rows: Aligned,
    y: Vec<f64>,
    weights: Vec<f64>,
}

/// Rows, targets and weights of one node.
#[derive(Clone, Copy)]
struct Members<'a> {
    rows: &'a [f32],
    y: &'a [f64],
    weights: Option<&'a [f64]>,
}

/// Rows whose feature is above the threshold go right.
pub(super) struct Split {
    pub(super) feature: usize,
    pub(super) threshold: f32,
}

/// Grows trees one after the other in the same memory.
pub(super) struct Grower<'a> {
    sample: &'a Sample<'a>,
    stores: [Store; 2],
    /// Bounds of nodes that are done.
    spare: Vec<Bounds>,
    chooser: Chooser,
    order: [Vec<u32>; 2],
}

impl<'a> Grower<'a> {
    pub(super) fn new(sample: &'a Sample<'a>) -> Grower<'a> {
        let (rows, stride) = (sample.inputs.len(), sample.inputs.stride());
        let weighted = if sample.weights.is_some() { rows } else { 0 };
        let store = || Store { rows: Aligned::new(rows * stride), y: vec![0.0; rows], weights: vec![0.0; weighted] };
        Grower {
            sample,
            stores: [store(), store()],
            spare: Vec::new(),
            chooser: Chooser::new(rows, sample.inputs.width(), stride, sample.candidates),
            order: [vec![0; rows], vec![0; rows]],
        }
    }

    /// Grows one tree, depth first.
    pub(super) fn grow(&mut self, mut rng: Rng) -> Grown {
        let (mut nodes, mut means) = (vec![Node::leaf(0)], vec![0.0]);
        let (end, bounds) = (self.sample.inputs.len(), self.sample.inputs.bounds().clone());
        let mut tasks = vec![Task { node: 0, start: 0, end, place: Place::Sample, bounds }];
        while let Some(task) = tasks.pop() {
            let members = self.sample.members(&self.stores, &task);
            let (mean, differ) = self.chooser.centre(members.y, members.weights);
            means[task.node] = mean;
            let large = task.end - task.start >= self.sample.min_split.max(2);
            let split = if large && differ { self.chooser.choose(members.rows, &task.bounds, &mut rng) } else { None };
            let Some(split) = split else {
                self.spare.push(task.bounds);
                continue;
            };
            let child = nodes.len();
            nodes[task.node] = Node { feature: split.feature as u32, threshold: split.threshold, child: child as u32 };
            nodes.extend([Node::leaf(child as u32), Node::leaf(child as u32 + 1)]);
            means.extend([0.0; 2]);
            let [left, right] = self.partition(task, &split, child);
            tasks.extend([right, left]);
        }
        let is_leaf = |(i, node): &(usize, &Node)| node.child as usize == *i;
        let means = nodes.iter().enumerate().filter(is_leaf).map(|(i, _)| means[i]).collect();
        Grown { nodes, means }
    }

    /// Moves the rows of a node to its children.
    fn partition(&mut self, task: Task, split: &Split, child: usize) -> [Task; 2] {
        let stride = self.sample.inputs.stride();
        let mut bounds = || self.spare.pop().unwrap_or_else(|| task.bounds.clone());
        let mut bounds = [bounds(), bounds()];
        let [first, second] = &mut self.stores;
        let (from, to, place) = match task.place {
            Place::Store(0) => (Some(first), second, 1),
            Place::Store(_) => (Some(second), first, 0),
            Place::Sample => (None, first, 0),
        };
        let from = match from {
            Some(store) => store.members(task.start..task.end, stride),
            None => self.sample.all(),
        };
        let [left, right] = &mut self.order;
        let sizes = separate(from.rows, stride, split, left, right);
        let middle = task.start + sizes[0];
        let ranges = [task.start..middle, middle..task.end];
        for ((order, range), bounds) in [&left[..sizes[0]], &right[..sizes[1]]].into_iter().zip(&ranges).zip(&mut bounds) {
            gather(from.rows, order, &mut to.rows.mut_slice()[range.start * stride..range.end * stride], bounds);
            pick(from.y, order, &mut to.y[range.clone()]);
            if let Some(weights) = from.weights {
                pick(weights, order, &mut to.weights[range.clone()]);
            }
        }
        let place = Place::Store(place);
        let [left, right] = bounds;
        self.spare.push(task.bounds);
        [
            Task { node: child, start: task.start, end: middle, place, bounds: left },
            Task { node: child + 1, start: middle, end: task.end, place, bounds: right },
        ]
    }
}

impl<'a> Sample<'a> {
    fn all(&self) -> Members<'a> {
        Members { rows: self.inputs.values(), y: self.y, weights: self.weights }
    }

    fn members<'b>(&self, stores: &'b [Store; 2], task: &Task) -> Members<'b>
    where
        'a: 'b,
    {
        match task.place {
            Place::Sample => self.all(),
            Place::Store(i) => stores[i].members(task.start..task.end, self.inputs.stride()),
        }
    }
}

impl Store {
    fn members(&self, range: std::ops::Range<usize>, stride: usize) -> Members<'_> {
        Members {
            rows: &self.rows.slice()[range.start * stride..range.end * stride],
            y: &self.y[range.clone()],
            weights: self.weights.get(range),
        }
    }
}

/// Which rows go left and which right; returns how many.
fn separate(rows: &[f32], stride: usize, split: &Split, left: &mut [u32], right: &mut [u32]) -> [usize; 2] {
    let mut sizes = [0, 0];
    for (i, row) in rows.chunks_exact(stride).enumerate() {
        // Both are written and one is counted: no branch to mispredict.
        left[sizes[0]] = i as u32;
        right[sizes[1]] = i as u32;
        let above = usize::from(row[split.feature] > split.threshold);
        sizes[1] += above;
        sizes[0] += 1 - above;
    }
    sizes
}

fn pick(from: &[f64], order: &[u32], to: &mut [f64]) {
    to.iter_mut().zip(order).for_each(|(to, &i)| *to = from[i as usize]);
}

/// Chooses the best of K random splits of a node.
pub(super) struct Chooser {
    width: usize,
    /// K
    candidates: usize,
    /// weight·(y − mean), in units of the largest |y − mean|, so that single precision is enough
    residuals: Vec<f32>,
    /// In units of the largest.
    weights: Vec<f32>,
    total_weight: f32,
    thresholds: Vec<f32>,
    left: Left,
    scores: Vec<f32>,
    features: Vec<usize>,
}

impl Chooser {
    pub(super) fn new(rows: usize, width: usize, stride: usize, candidates: usize) -> Chooser {
        Chooser {
            width,
            candidates,
            residuals: vec![0.0; rows],
            weights: vec![1.0; rows],
            total_weight: 0.0,
            thresholds: vec![0.0; stride],
            left: Left::new(stride),
            scores: vec![0.0; stride],
            features: Vec::new(),
        }
    }

    /// Takes in the targets of a node: returns their mean, and whether they differ.
    pub(super) fn centre(&mut self, y: &[f64], weights: Option<&[f64]>) -> (f64, bool) {
        let (low, high) = y.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &y| (low.min(y), high.max(y)));
        if low == high {
            return (low, false);
        }
        let (sum, total) = match weights {
            None => (y.iter().sum::<f64>(), y.len() as f64),
            Some(weights) => (y.iter().zip(weights).map(|(y, w)| y * w).sum(), weights.iter().sum()),
        };
        // Rounding may carry a mean outside.
        let mean = (sum / total).clamp(low, high);
        let scale = 1.0 / (high - mean).max(mean - low);
        self.residuals.clear();
        self.residuals.extend(y.iter().map(|y| ((y - mean) * scale) as f32));
        self.total_weight = y.len() as f32;
        if let Some(weights) = weights {
            let scale = 1.0 / weights.iter().copied().fold(0.0, f64::max);
            self.weights.clear();
            self.weights.extend(weights.iter().map(|w| (w * scale) as f32));
            self.residuals.iter_mut().zip(&self.weights).for_each(|(residual, w)| *residual *= w);
            self.total_weight = (total * scale) as f32;
        }
        (mean, true)
    }

    /// The best of K splits of the rows whose targets were taken in last; none if all features are constant.
    pub(super) fn choose(&mut self, rows: &[f32], bounds: &Bounds, rng: &mut Rng) -> Option<Split> {
        let mut bits = 0;
        for (j, t) in self.thresholds.iter_mut().enumerate() {
            bits = if j % 2 == 0 { rng.bits() } else { bits >> 32 };
            *t = threshold(bounds.low[j], bounds.high[j], bits as u32);
        }
        let n = self.residuals.len();
        self.left.sum(rows, &self.thresholds, &self.residuals, &self.weights[..n]);
        self.score();
        self.features.clear();
        self.features.extend((0..self.width).filter(|&j| bounds.low[j] < bounds.high[j]));
        for i in 0..self.candidates.min(self.features.len()) {
            if self.candidates >= self.features.len() {
                break;
            }
            let drawn = i + rng.below(self.features.len() - i);
            self.features.swap(i, drawn);
        }
        self.features.truncate(self.candidates);
        let scores = &self.scores;
        let best = self.features.iter().map(|&j| scores[j]).fold(f32::NEG_INFINITY, f32::max);
        self.features.retain(|&j| scores[j] >= best * (1.0 - TIE));
        let feature = *self.features.get(rng.below(self.features.len()))?;
        Some(Split { feature, threshold: self.thresholds[feature] })
    }

    /// Σ_left r² / (w_left·w_right): with residuals that sum to 0, the reduction of variance but for a constant factor.
    fn score(&mut self) {
        let total = self.total_weight;
        for ((score, sum), left) in self.scores.iter_mut().zip(&self.left.residuals).zip(&self.left.weights) {
            // Weights may be so unequal that rounding leaves nothing on a side.
            let right = (total - left).max(f32::MIN_POSITIVE);
            *score = sum * sum / (left.max(f32::MIN_POSITIVE) * right).max(f32::MIN_POSITIVE);
        }
    }
}
