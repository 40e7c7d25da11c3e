//! Parts of the logs for cross-fitting.

use std::collections::{HashMap, HashSet};

use crate::data::Trajectory;
use crate::rng::Seed;

/// The fold of each episode, 0 to `count` − 1, drawn at random and of equal sizes; episodes of a
/// group are in the same one. Folds in turn would be no samples of logs in which policies alternate.
pub fn folds(episodes: &[Trajectory], count: usize) -> Vec<usize> {
    let seed = Seed(0).stream("off_policy/folds");
    let (mut groups, mut round, mut open) = (HashMap::new(), 0, Vec::new());
    let mut new = || {
        if open.is_empty() {
            let mut rng = seed.index(round).rng();
            open = (0..count.max(1)).collect();
            (1..open.len()).for_each(|i| open.swap(i, rng.below(i + 1)));
            round += 1;
        }
        open.pop().expect("it was just filled")
    };
    let of = |z: &Trajectory| match &z.about.group {
        Some(group) => *groups.entry(group.clone()).or_insert_with(&mut new),
        None => new(),
    };
    episodes.iter().map(of).collect()
}

/// How many episodes and groups can be in different folds.
pub(super) fn units(episodes: &[Trajectory]) -> usize {
    let groups: HashSet<_> = episodes.iter().filter_map(|z| z.about.group.as_ref()).collect();
    groups.len() + episodes.iter().filter(|z| z.about.group.is_none()).count()
}
