//! Parts of the logs for cross-fitting.

use std::collections::HashMap;

use crate::data::Trajectory;

/// The fold of each episode, 0 to `count` − 1 in turn; episodes of a group are in the same one.
pub fn folds(episodes: &[Trajectory], count: usize) -> Vec<usize> {
    let (mut groups, mut next) = (HashMap::new(), 0..);
    let mut new = || next.next().expect("there is always a next number") % count.max(1);
    let of = |z: &Trajectory| match &z.about.group {
        Some(group) => *groups.entry(group.clone()).or_insert_with(&mut new),
        None => new(),
    };
    episodes.iter().map(of).collect()
}
