//! Forests as plain arrays, for files.

use std::sync::Arc;

use super::Forest;
use super::walk::{Node, Trees};
use crate::error::{Error, Result};

/// A forest as flat arrays, nodes of all trees one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForestArrays {
    /// Features of a row.
    pub width: usize,
    /// The root of each tree, which is the first of its nodes.
    pub roots: Vec<u32>,
    /// The feature each node splits by; 0 for leaves.
    pub features: Vec<u32>,
    /// Rows whose feature is above it go to the second child; 0 for leaves.
    pub thresholds: Vec<f32>,
    /// The first child of each node, directly followed by the second; 0 for leaves.
    pub children: Vec<u32>,
    /// The mean target of each leaf, in the order of nodes.
    pub values: Vec<f64>,
}

impl Forest {
    /// The forest as arrays.
    pub fn to_arrays(&self) -> ForestArrays {
        let trees = &self.trees;
        let split = |i: usize| trees.nodes[i].child as usize != i;
        let of_splits =
            |value: fn(&Node) -> u32| (0..trees.nodes.len()).map(|i| if split(i) { value(&trees.nodes[i]) } else { 0 }).collect();
        ForestArrays {
            width: trees.width,
            roots: trees.starts[..trees.len()].to_vec(),
            features: of_splits(|node| node.feature),
            thresholds: (0..trees.nodes.len()).map(|i| if split(i) { trees.nodes[i].threshold } else { 0.0 }).collect(),
            children: of_splits(|node| node.child),
            values: self.means.clone(),
        }
    }

    /// Rebuilds a forest from its arrays, which may come from a damaged file.
    pub fn from_arrays(arrays: ForestArrays) -> Result<Forest> {
        arrays.check()?;
        let nodes = (0..).zip(arrays.features).zip(arrays.thresholds).zip(arrays.children);
        let nodes: Vec<Node> = nodes
            .map(|(((i, feature), threshold), child)| if child == 0 { Node::leaf(i) } else { Node { feature, threshold, child } })
            .collect();
        let starts = arrays.roots.into_iter().chain([nodes.len() as u32]).collect();
        Ok(Forest { trees: Arc::new(Trees::new(arrays.width, nodes, starts)), means: arrays.values })
    }
}

impl ForestArrays {
    /// Whether every walk from a root ends at a leaf with a value: children come after their
    /// parent, in its tree.
    fn check(&self) -> Result<()> {
        let damaged = |problem: String| Err(Error::data(format!("the forest is damaged: {problem}"), "fit it again"));
        let nodes = self.features.len();
        if self.thresholds.len() != nodes || self.children.len() != nodes {
            return damaged(format!("{nodes} features, {} thresholds, {} children", self.thresholds.len(), self.children.len()));
        }
        if u32::try_from(nodes).is_err() {
            return damaged(format!("{nodes} nodes"));
        }
        let leaves = self.children.iter().filter(|child| **child == 0).count();
        if self.values.len() != leaves || self.values.iter().any(|value| !value.is_finite()) {
            return damaged(format!("{} values for {leaves} leaves, or not numbers", self.values.len()));
        }
        let ends = self.roots.iter().skip(1).copied().chain([nodes as u32]);
        if self.roots.first() != Some(&0) || !self.roots.iter().zip(ends.clone()).all(|(root, end)| *root < end) {
            return damaged("its roots are not in order".into());
        }
        for (&root, end) in self.roots.iter().zip(ends) {
            for i in root..end {
                let (feature, child) = (self.features[i as usize], self.children[i as usize]);
                let inside = child > i && child < end - 1 && (feature as usize) < self.width;
                if child != 0 && !(inside && self.thresholds[i as usize].is_finite()) {
                    return damaged(format!("node {i} points to node {child} or splits feature {feature}, which do not exist"));
                }
            }
        }
        if self.width == 0 { damaged("it has no features".into()) } else { Ok(()) }
    }
}
