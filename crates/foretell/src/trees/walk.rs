//! From rows to leaves: trees as flat arrays, walked by several rows or through several trees at
//! once.

use std::ops::Range;

use rayon::prelude::*;

use super::Targets;
use super::inputs::Inputs;

/// Walks in parallel: each waits for memory at every step, and the waits overlap.
pub(super) const TOGETHER: usize = 16;
/// Rows that one task takes through all trees: they stay in the second-level cache, and so does a
/// tree.
pub(super) const BLOCK: usize = 2048;

/// One node: rows whose `feature` is above `threshold` go to `child + 1`, others to `child`.
///
/// A leaf is its own child, with a threshold that nothing is above, so a walk that has arrived
/// stays where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) feature: u32,
    pub(super) threshold: f32,
    pub(super) child: u32,
}

impl Node {
    pub(super) fn leaf(at: u32) -> Node {
        Node { feature: 0, threshold: f32::INFINITY, child: at }
    }
}

/// The structure of a forest: trees without values.
#[derive(Debug, PartialEq)]
pub struct Trees {
    pub(super) width: usize,
    /// Nodes of all trees; children point forward, within their tree.
    pub(super) nodes: Vec<Node>,
    /// The root of each tree, and the end.
    pub(super) starts: Vec<u32>,
    /// For each node, the number of leaves before it, over all trees.
    pub(super) leaf: Vec<u32>,
    /// The first leaf of each tree, and the end.
    pub(super) leaf_starts: Vec<u32>,
}

/// The leaf of each of some rows in each tree of a forest: what [`Trees::leaves`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaves {
    pub(super) rows: usize,
    /// Tree after tree, leaves counted over all trees.
    pub(super) index: Vec<u32>,
}

impl Leaves {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The leaves of some of the rows, each from one of several sets in the same trees: (which set,
    /// which row).
    pub(crate) fn select(sets: &[Leaves], trees: usize, chosen: &[(usize, usize)]) -> Leaves {
        let of_tree = |tree| chosen.iter().map(move |&(set, row)| sets[set].of_tree(tree)[row]);
        Leaves { rows: chosen.len(), index: (0..trees).flat_map(of_tree).collect() }
    }

    /// The leaves of all rows in one tree.
    pub(crate) fn of_tree(&self, tree: usize) -> &[u32] {
        &self.index[tree * self.rows..][..self.rows]
    }
}

impl Trees {
    /// Joins trees grown separately, whose child indices are relative to their own root.
    pub(super) fn join(width: usize, grown: Vec<Vec<Node>>) -> Trees {
        let mut starts = vec![0];
        let mut nodes = Vec::with_capacity(grown.iter().map(Vec::len).sum());
        for tree in grown {
            let start = nodes.len() as u32;
            nodes.extend(tree.iter().map(|node| Node { child: node.child + start, ..*node }));
            starts.push(nodes.len() as u32);
        }
        Trees::new(width, nodes, starts)
    }

    pub(super) fn new(width: usize, nodes: Vec<Node>, starts: Vec<u32>) -> Trees {
        let mut leaves = 0;
        let leaf: Vec<u32> = (0..)
            .zip(&nodes)
            .map(|(i, node)| {
                let number = leaves;
                leaves += u32::from(node.child == i);
                number
            })
            .collect();
        let leaf_starts = starts.iter().map(|&start| leaf.get(start as usize).copied().unwrap_or(leaves)).collect();
        Trees { width, nodes, starts, leaf, leaf_starts }
    }

    /// Number of trees.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no tree; never, for trees that were grown or read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Features of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Leaves of all trees together.
    pub fn leaf_count(&self) -> usize {
        self.leaf_starts[self.len()] as usize
    }

    /// The leaf of each row in each tree, in parallel over trees.
    ///
    /// # Panics
    /// If the rows have another width than those the trees were grown from.
    pub fn leaves(&self, inputs: &Inputs) -> Leaves {
        assert_eq!(inputs.width(), self.width, "features of a row");
        let mut index = vec![0; self.len() * inputs.len()];
        if !inputs.is_empty() {
            index.par_chunks_mut(inputs.len()).enumerate().for_each(|(tree, out)| {
                self.descend_rows(tree, inputs, 0, out);
            });
        }
        Leaves { rows: inputs.len(), index }
    }

    /// Sums over trees, in their order, of what `values` gives for the leaf of each row; in
    /// parallel over rows.
    pub(super) fn sum_all(&self, inputs: &Inputs, values: &[f64]) -> Vec<f64> {
        assert_eq!(inputs.width(), self.width, "features of a row");
        let mut sums = vec![0.0; inputs.len()];
        sums.par_chunks_mut(BLOCK).enumerate().for_each(|(block, sums)| {
            let mut leaves = [0; BLOCK];
            for tree in 0..self.len() {
                let leaves = &mut leaves[..sums.len()];
                self.descend_rows(tree, inputs, block * BLOCK, leaves);
                sums.iter_mut().zip(leaves).for_each(|(sum, leaf)| *sum += values[*leaf as usize]);
            }
        });
        sums
    }

    /// The leaf in one tree of each of the rows from `first` on.
    fn descend_rows(&self, tree: usize, inputs: &Inputs, first: usize, leaves: &mut [u32]) {
        let last = inputs.len() - 1;
        for (i, out) in leaves.chunks_mut(TOGETHER).enumerate() {
            // The last group repeats the last row to fill up.
            let offsets = std::array::from_fn(|k| (first + i * TOGETHER + k).min(last) * inputs.stride());
            let at = self.descend([self.starts[tree]; TOGETHER], inputs.values(), offsets);
            out.iter_mut().zip(at).for_each(|(out, at)| *out = self.leaf[at as usize]);
        }
    }

    /// The sum over trees, in their order, of what `values` gives for the leaf of one row.
    pub(super) fn sum_one(&self, row: &[f32], values: &[f64]) -> f64 {
        let mut sum = 0.0;
        for roots in self.starts[..self.len()].chunks(TOGETHER) {
            let at = self.descend(std::array::from_fn(|k| roots[k.min(roots.len() - 1)]), row, [0; TOGETHER]);
            sum = at[..roots.len()].iter().fold(sum, |sum, &at| sum + values[self.leaf[at as usize] as usize]);
        }
        sum
    }

    /// The leaves of one tree, counted over all trees.
    pub(crate) fn leaves_of(&self, tree: usize) -> Range<usize> {
        self.leaf_starts[tree] as usize..self.leaf_starts[tree + 1] as usize
    }

    /// The mean target in each leaf of one tree; where there are no rows, that of all.
    pub(super) fn means(&self, tree: usize, leaves: &[u32], targets: Targets<'_>) -> Vec<f64> {
        let (first, end) = (self.leaf_starts[tree], self.leaf_starts[tree + 1]);
        let mut sums = vec![(0.0, 0.0); (end - first) as usize];
        for (i, &leaf) in leaves.iter().enumerate() {
            let weight = targets.weights.map_or(1.0, |weights| weights[i]);
            let (sum, total) = &mut sums[(leaf - first) as usize];
            *sum += weight * targets.y[i];
            *total += weight;
        }
        let (sum, total) = sums.iter().fold((0.0, 0.0), |all, leaf| (all.0 + leaf.0, all.1 + leaf.1));
        sums.iter().map(|leaf| if leaf.1 > 0.0 { leaf.0 / leaf.1 } else { sum / total }).collect()
    }

    /// The ends of walks that start at given nodes with the rows at given offsets.
    #[inline(always)]
    fn descend(&self, mut at: [u32; TOGETHER], rows: &[f32], offsets: [usize; TOGETHER]) -> [u32; TOGETHER] {
        let nodes = &self.nodes[..];
        loop {
            let mut moved = 0;
            for k in 0..TOGETHER {
                let node = nodes[at[k] as usize];
                let next = node.child + u32::from(rows[offsets[k] + node.feature as usize] > node.threshold);
                moved |= next ^ at[k];
                at[k] = next;
            }
            if moved == 0 {
                return at;
            }
        }
    }
}
