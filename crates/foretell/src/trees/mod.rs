//! Extra-Trees: regression by extremely randomised trees (Geurts, Ernst, Wehenkel 2006), the
//! regressor of fitted-Q.
//!
//! A node of a tree draws a threshold for each of K features, uniformly between the smallest and
//! the largest value of the feature there, and splits by the one that reduces the variance of the
//! targets most. The prediction of a forest is the mean over its trees of the mean target in the
//! leaf a row falls into.
//!
//! ```
//! use foretell::Seed;
//! use foretell::trees::{Forest, Inputs, Rows, TreeParams};
//!
//! // y = x₀ + 2·x₁ on a grid
//! let x: Vec<f64> = (0..400).flat_map(|i| [f64::from(i % 20), f64::from(i / 20)]).collect();
//! let y: Vec<f64> = x.chunks(2).map(|x| x[0] + 2.0 * x[1]).collect();
//! let inputs = Inputs::new(Rows::new(&x, 2)?)?;
//! let forest = Forest::fit(&inputs, &y, &TreeParams::default(), Seed(1))?;
//! assert!((forest.predict(&[10.0, 10.0]) - 30.0).abs() < 3.0);
//! # Ok::<(), foretell::Error>(())
//! ```
//!
//! Thresholds are uniform between bounds, so a forest does not change if a feature is scaled and
//! shifted (up to rounding, and exactly if it is multiplied by a power of 2). Other increasing maps
//! change the thresholds, but with n_min = 1 the targets of distinct rows are still fitted exactly.
//!
//! With K = 1 the structure does not depend on the targets: [`Trees::grow`] it once, find the
//! [`Leaves`] of all rows once, and each new set of targets costs only the means of the leaves
//! ([`Forest::from_leaves`], [`Forest::predict_leaves`]).

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::rng::Seed;
use grow::{Grower, Grown, Sample};

mod inputs;
mod walk;
mod arrays;
mod kernels;
mod choose;
mod random;
mod grow;
#[cfg(test)]
mod tests;

pub use arrays::ForestArrays;
pub use inputs::{Inputs, Rows};
pub use walk::{Leaves, Trees};

/// Largest target in absolute value: squares of sums of them stay finite.
const LARGEST_TARGET: f64 = 1e100;

/// How trees are grown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TreeParams {
    /// Trees in a forest
    pub trees: usize,
    /// K, features among which a split is chosen (none: all of them; 1: totally randomised trees)
    pub candidates: Option<usize>,
    /// n_min, rows below which a node is a leaf
    pub min_split: usize,
}

impl Default for TreeParams {
    /// 25 trees, K = all features, n_min = 10.
    fn default() -> Self {
        TreeParams { trees: 25, candidates: None, min_split: 10 }
    }
}

impl TreeParams {
    /// Checks every value once, at the door.
    pub fn validate(&self) -> Result<()> {
        let candidates = self.candidates.unwrap_or(1);
        for (name, value) in [("trees", self.trees), ("candidates", candidates), ("min_split", self.min_split)] {
            if value == 0 {
                return Err(Error::parameter(name, value, "must be at least 1"));
            }
        }
        Ok(())
    }
}

/// The target of each row, and its weight.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a> {
    /// One number for each row.
    pub y: &'a [f64],
    /// One weight for each row, not negative; none if all are equal.
    ///
    /// Means and scores are weighted; n_min counts rows, whatever their weight. A row of weight 0
    /// is ignored.
    pub weights: Option<&'a [f64]>,
}

impl<'a> From<&'a [f64]> for Targets<'a> {
    fn from(y: &'a [f64]) -> Self {
        Targets { y, weights: None }
    }
}

impl<'a> From<&'a Vec<f64>> for Targets<'a> {
    fn from(y: &'a Vec<f64>) -> Self {
        y.as_slice().into()
    }
}

impl Targets<'_> {
    fn check(&self, rows: usize) -> Result<()> {
        let weights = self.weights.unwrap_or(&[]);
        if self.y.len() != rows || self.weights.is_some_and(|w| w.len() != rows) {
            let problem = match self.weights {
                None => format!("{} targets for {rows} rows", self.y.len()),
                Some(w) => format!("{} targets and {} weights for {rows} rows", self.y.len(), w.len()),
            };
            return Err(Error::data(problem, "give one of each for each row"));
        }
        if let Some(i) = self.y.iter().position(|y| y.is_nan() || y.abs() > LARGEST_TARGET) {
            return Err(Error::data(
                format!("the target of row {i} is {}", self.y[i]),
                format!("give numbers of at most {LARGEST_TARGET:e}"),
            ));
        }
        if let Some(i) = weights.iter().position(|w| !(0.0..=LARGEST_TARGET).contains(w)) {
            return Err(Error::data(
                format!("the weight of row {i} is {}", weights[i]),
                format!("give numbers from 0 to {LARGEST_TARGET:e}"),
            ));
        }
        if rows == 0 || self.weights.is_some_and(|w| w.iter().all(|w| *w == 0.0)) {
            return Err(Error::data("there is no row to learn from", "give at least one row of positive weight"));
        }
        Ok(())
    }
}

/// Trees and the mean targets of their leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    trees: Arc<Trees>,
    /// The values of all leaves of all trees.
    means: Vec<f64>,
}

impl Trees {
    /// Grows totally randomised trees (K = 1, whatever `params.candidates`), which do not depend on
    /// targets.
    ///
    /// O(trees · rows · depth), in parallel over trees.
    pub fn grow(inputs: &Inputs, params: &TreeParams, seed: Seed) -> Result<Arc<Trees>> {
        params.validate()?;
        check_size(inputs, params)?;
        let columns = inputs.columns();
        let tree = |i: u64| random::grow(inputs, &columns, params.min_split, seed.index(i).rng());
        let grown = (0..params.trees as u64).into_par_iter().map(tree).collect();
        Ok(Arc::new(Trees::join(inputs.width(), grown)))
    }
}

impl Forest {
    /// Grows a forest from rows and their targets; the same seed gives the same forest on any
    /// number of threads.
    ///
    /// O(trees · rows · features · depth), in parallel over trees. The rows may be used again with
    /// other targets. With K = 1 this is [`Trees::grow`] and then the means: a node is split even
    /// if its targets are equal, which does not change predictions.
    pub fn fit<'a>(inputs: &Inputs, targets: impl Into<Targets<'a>>, params: &TreeParams, seed: Seed) -> Result<Forest> {
        let targets = targets.into();
        params.validate()?;
        targets.check(inputs.len())?;
        check_size(inputs, params)?;
        let Some(weights) = targets.weights.filter(|weights| weights.contains(&0.0)) else {
            return Forest::fit_checked(inputs, targets, params, seed);
        };
        let kept: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
        let keep = |values: &[f64]| -> Vec<f64> { kept.iter().map(|&i| values[i]).collect() };
        let (y, weights) = (keep(targets.y), keep(weights));
        Forest::fit_checked(&inputs.select(&kept), Targets { y: &y, weights: Some(&weights) }, params, seed)
    }

    fn fit_checked(inputs: &Inputs, targets: Targets<'_>, params: &TreeParams, seed: Seed) -> Result<Forest> {
        if params.candidates == Some(1) {
            let trees = Trees::grow(inputs, params, seed)?;
            let leaves = trees.leaves(inputs);
            return Forest::from_leaves(trees, &leaves, targets);
        }
        let sample = Sample::new(inputs, targets, params);
        let tree = |grower: &mut Grower<'_>, i: u64| grower.grow(seed.index(i).rng());
        let grown: Vec<Grown> = (0..params.trees as u64).into_par_iter().map_init(|| Grower::new(&sample), tree).collect();
        let means = grown.iter().flat_map(|tree| &tree.means).copied().collect();
        let nodes = grown.into_iter().map(|tree| tree.nodes).collect();
        Ok(Forest { trees: Arc::new(Trees::join(inputs.width(), nodes)), means })
    }

    /// Gives trees the mean targets of rows whose leaves are known. A leaf without rows gets the
    /// mean of all rows.
    ///
    /// # Panics
    /// If the leaves are not of these trees.
    pub fn from_leaves<'a>(trees: Arc<Trees>, leaves: &Leaves, targets: impl Into<Targets<'a>>) -> Result<Forest> {
        let targets = targets.into();
        targets.check(leaves.len())?;
        assert_eq!(leaves.index.len(), leaves.len() * trees.len(), "leaves of other trees");
        let means =
            (0..trees.len()).into_par_iter().flat_map_iter(|tree| trees.means(tree, leaves.of_tree(tree), targets)).collect();
        Ok(Forest { trees, means })
    }

    /// The prediction for one row. NaN counts as below every threshold.
    ///
    /// # Panics
    /// If the row has another width than those the forest was grown from.
    pub fn predict(&self, row: &[f64]) -> f64 {
        assert_eq!(row.len(), self.trees.width(), "features of a row");
        let row: Vec<f32> = row.iter().map(|&x| x as f32).collect();
        self.trees.sum_one(&row, &self.means) / self.trees.len() as f64
    }

    /// The predictions for many rows, in parallel over blocks of them: the same numbers as those of
    /// [`Forest::predict`].
    ///
    /// # Panics
    /// If the rows have another width than those the forest was grown from.
    pub fn predict_all(&self, inputs: &Inputs) -> Vec<f64> {
        let trees = self.trees.len() as f64;
        let mut sums = self.trees.sum_all(inputs, &self.means);
        sums.iter_mut().for_each(|sum| *sum /= trees);
        sums
    }

    /// The predictions for rows whose leaves are known.
    ///
    /// # Panics
    /// If the leaves are not of the trees of this forest.
    pub fn predict_leaves(&self, leaves: &Leaves) -> Vec<f64> {
        let trees = self.trees.len();
        assert_eq!(leaves.index.len(), leaves.len() * trees, "leaves of other trees");
        let mut sums = vec![0.0; leaves.len()];
        sums.par_chunks_mut(walk::BLOCK).enumerate().for_each(|(block, sums)| {
            for tree in 0..trees {
                let leaves = &leaves.of_tree(tree)[block * walk::BLOCK..];
                sums.iter_mut().zip(leaves).for_each(|(sum, &leaf)| *sum += self.means[leaf as usize]);
            }
            sums.iter_mut().for_each(|sum| *sum /= trees as f64);
        });
        sums
    }

    /// The structure, to find leaves in or to share.
    pub fn trees(&self) -> &Arc<Trees> {
        &self.trees
    }
}

/// Refuses forests with more nodes than a `u32` can index: a tree of n rows has at most 2n − 1.
fn check_size(inputs: &Inputs, params: &TreeParams) -> Result<()> {
    if inputs.is_empty() {
        return Err(Error::data("there is no row to learn from", "give at least one"));
    }
    let nodes = (2 * inputs.len() as u128 - 1) * params.trees as u128;
    if nodes > u128::from(u32::MAX) {
        let problem = format!("{} trees of {} rows may have more than {} nodes", params.trees, inputs.len(), u32::MAX);
        return Err(Error::data(problem, "use fewer trees or rows"));
    }
    Ok(())
}

/// A number drawn uniformly in [`low`, `high`) from 24 random bits; `low` if they are equal.
#[inline(always)]
fn threshold(low: f32, high: f32, bits: u32) -> f32 {
    const STEP: f32 = 1.0 / (1 << 24) as f32;
    let u = (bits >> 8) as f32 * STEP;
    // In this form the difference of huge numbers cannot overflow.
    let t = (low * (1.0 - u) + high * u).max(low);
    if t < high { t } else { low }
}
