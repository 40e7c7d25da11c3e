//! Growing a tree from rows and targets, depth first, with the rows of each node contiguous in
//! memory.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::choose::{Chooser, Members, Summary};
use super::inputs::{Aligned, Inputs};
use super::kernels::{Bounds, Split, dispatch, exchange, separate};
use super::walk::Node;
use super::{Targets, TreeParams};
use crate::rng::Rng;

/// The training data of all trees of a forest.
pub(super) struct Sample<'a> {
    inputs: &'a Inputs,
    y: &'a [f64],
    /// Positive; none if they are equal.
    weights: Option<&'a [f64]>,
    /// K
    candidates: usize,
    min_split: usize,
    /// Of all rows.
    bounds: Bounds,
}

impl<'a> Sample<'a> {
    pub(super) fn new(inputs: &'a Inputs, Targets { y, weights }: Targets<'a>, params: &TreeParams) -> Sample<'a> {
        let bounds = Bounds::of(inputs.values(), inputs.stride());
        let candidates = params.candidates.unwrap_or(inputs.width());
        Sample { inputs, y, weights, candidates, min_split: params.min_split, bounds }
    }
}

/// One tree: its nodes, and the means of its leaves in their order.
pub(super) struct Grown {
    pub(super) nodes: Vec<Node>,
    pub(super) means: Vec<f64>,
}

/// A node that may be split.
struct Task {
    node: usize,
    range: Range<usize>,
    summary: Summary,
    bounds: Bounds,
}

/// Grows trees, reusing memory from tree to tree.
pub(super) struct Grower<'a> {
    sample: &'a Sample<'a>,
    /// Rows, targets and weights, ordered so that those of each node are contiguous.
    rows: Aligned,
    y: Vec<f64>,
    weights: Option<Vec<f64>>,
    chooser: Chooser,
    /// Rows of a node, those of its left child first.
    order: Vec<u32>,
    /// Bounds of finished nodes, for reuse.
    spare: Vec<Bounds>,
}

impl<'a> Grower<'a> {
    pub(super) fn new(sample: &'a Sample<'a>) -> Grower<'a> {
        let (rows, width, stride) = (sample.inputs.len(), sample.inputs.width(), sample.inputs.stride());
        Grower {
            sample,
            rows: Aligned::new(rows * stride),
            y: vec![0.0; rows],
            weights: sample.weights.map(<[f64]>::to_vec),
            chooser: Chooser::new(rows, width, stride, sample.candidates),
            order: vec![0; rows],
            spare: Vec::new(),
        }
    }

    /// Grows one tree.
    pub(super) fn grow(&mut self, rng: Rng) -> Grown {
        dispatch(self.start(rng))
    }

    /// The bounds of some of the rows.
    #[inline(always)]
    fn bounds<S: Simd>(&mut self, simd: S, range: &Range<usize>) -> Bounds {
        let stride = self.sample.inputs.stride();
        let mut bounds = self.spare.pop().unwrap_or_else(|| Bounds::new(stride));
        bounds.find(simd, &self.rows.slice()[range.start * stride..range.end * stride]);
        bounds
    }

    fn start(&mut self, rng: Rng) -> Growing<'_, 'a> {
        let sample = self.sample;
        self.rows.mut_slice().copy_from_slice(sample.inputs.values());
        self.y.copy_from_slice(sample.y);
        if let (Some(to), Some(from)) = (&mut self.weights, sample.weights) {
            to.copy_from_slice(from);
        }
        Growing { grower: self, rng, nodes: Vec::new(), means: Vec::new(), tasks: Vec::new() }
    }
}

/// A tree that is being grown.
struct Growing<'a, 'b> {
    grower: &'a mut Grower<'b>,
    rng: Rng,
    nodes: Vec<Node>,
    /// Mean target of each node.
    means: Vec<f64>,
    tasks: Vec<Task>,
}

impl WithSimd for Growing<'_, '_> {
    type Output = Grown;

    #[inline(always)] // like all that follows, into the function that is compiled for the widest vectors
    fn with_simd<S: Simd>(mut self, simd: S) -> Grown {
        let bounds = self.grower.sample.bounds.clone();
        self.add(0..self.grower.sample.inputs.len(), |_| bounds);
        while let Some(task) = self.tasks.pop() {
            if let Some(split) = self.choose(simd, &task) {
                let middle = self.partition::<S>(&task.range, split);
                let child = self.nodes.len() as u32;
                self.nodes[task.node] = Node { feature: split.feature as u32, threshold: split.threshold, child };
                for range in [task.range.start..middle, middle..task.range.end] {
                    self.add(range.clone(), |grower| grower.bounds(simd, &range));
                }
            }
            self.grower.spare.push(task.bounds);
        }
        let is_leaf = |(i, node): &(usize, &Node)| node.child as usize == *i;
        let means = self.nodes.iter().enumerate().filter(is_leaf).map(|(i, _)| self.means[i]).collect();
        Grown { nodes: self.nodes, means }
    }
}

impl Growing<'_, '_> {
    /// Adds a node for these rows: a leaf, unless its task finds a split.
    #[inline(always)]
    fn add(&mut self, range: Range<usize>, bounds: impl FnOnce(&mut Grower<'_>) -> Bounds) {
        let Grower { sample, y, weights, .. } = &*self.grower;
        let summary = Summary::of(&y[range.clone()], weights.as_ref().map(|w| &w[range.clone()]));
        let node = self.nodes.len();
        self.nodes.push(Node::leaf(node as u32));
        self.means.push(summary.mean());
        if summary.rows >= sample.min_split.max(2) && summary.low < summary.high {
            let bounds = bounds(self.grower);
            self.tasks.push(Task { node, range, summary, bounds });
        }
    }

    #[inline(always)]
    fn choose<S: Simd>(&mut self, simd: S, task: &Task) -> Option<Split> {
        let Grower { sample, rows, y, weights, chooser, .. } = &mut *self.grower;
        let (range, stride) = (task.range.clone(), sample.inputs.stride());
        let members = Members {
            rows: &rows.slice()[range.start * stride..range.end * stride],
            y: &y[range.clone()],
            weights: weights.as_ref().map(|w| &w[range]),
            summary: &task.summary,
            bounds: &task.bounds,
        };
        chooser.choose(simd, &members, &mut self.rng)
    }

    /// Moves the rows that go left to the front; returns where the others start.
    #[inline(always)]
    fn partition<S: Simd>(&mut self, range: &Range<usize>, split: Split) -> usize {
        let Grower { sample, rows, y, weights, order, .. } = &mut *self.grower;
        let stride = sample.inputs.stride();
        let (rows, y) = (&mut rows.mut_slice()[range.start * stride..range.end * stride], &mut y[range.clone()]);
        let order = &mut order[..y.len()];
        let middle = separate(rows, stride, split, order);
        // Rows of the left child that are too far back, last first, and as many of the right child
        // too far in front.
        let (left, right) = order.split_at(middle);
        let pairs = left.iter().rev().zip(right.iter().rev()).map(|(l, r)| (*l as usize, *r as usize));
        for (l, r) in pairs.take_while(|(l, _)| *l >= middle) {
            exchange::<S>(rows, stride, l, r);
            y.swap(l, r);
            if let Some(weights) = weights {
                weights[range.clone()].swap(l, r);
            }
        }
        range.start + middle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::trees::Rows;

    #[test]
    fn any_vectors_grow_the_same_tree() {
        for width in [1, 7, 8, 20, 40] {
            let mut rng = Seed(width as u64).rng();
            let x: Vec<f64> = (0..1500 * width).map(|_| rng.uniform()).collect();
            let y: Vec<f64> = x.chunks(width).map(|x| x.iter().sum::<f64>().sin() + rng.uniform()).collect();
            let weights: Vec<f64> = y.iter().map(|y| 1.0 + y * y).collect();
            let inputs = Inputs::new(Rows::new(&x, width).unwrap()).unwrap();
            for weights in [None, Some(&weights[..])] {
                let sample =
                    Sample::new(&inputs, Targets { y: &y, weights }, &TreeParams { trees: 1, candidates: Some(5), min_split: 3 });
                let widest = Grower::new(&sample).grow(Seed(2).rng());
                let scalar = pulp::Scalar.vectorize(Grower::new(&sample).start(Seed(2).rng()));
                assert_eq!((&widest.nodes, &widest.means), (&scalar.nodes, &scalar.means));
                assert!(widest.means.len() > 300);
            }
        }
    }
}
