//! How often actions were tried in states similar to a given one.

use super::experience::{States, Steps};
use crate::data::Action;
use crate::error::Result;
use crate::rng::Seed;
use crate::trees::{Inputs, Leaves, Rows, TreeParams, Trees};

/// States in the same leaf are similar. A leaf has fewer steps than one in `SHARE` of all, or than
/// `FEW` if that is more.
const SHARE: usize = 100;
const FEW: usize = 50;
/// Trees over which counts are averaged.
const TREES: usize = 25;

/// Counts of actions among similar states.
pub(super) struct Visits {
    /// The leaves of each step's state.
    leaves: Leaves,
    /// Indexed by leaf and action.
    counts: Vec<u32>,
    actions: usize,
}

impl Visits {
    /// Counts these steps, given the states of a filter along them.
    pub(crate) fn new(steps: &Steps, states: &States, seed: Seed) -> Result<Visits> {
        let rows: Vec<f64> = steps.list().iter().flat_map(|step| states.row(step.row)).copied().collect();
        let inputs = Inputs::new(Rows::new(&rows, states.width())?)?;
        let min_split = (steps.list().len() / SHARE).max(FEW);
        let trees = Trees::grow(&inputs, &TreeParams { trees: TREES, candidates: None, min_split }, seed)?;
        let (leaves, actions) = (trees.leaves(&inputs), steps.actions());
        let mut counts = vec![0; trees.leaf_count() * actions];
        for tree in 0..TREES {
            for (&leaf, step) in leaves.of_tree(tree).iter().zip(steps.list()) {
                counts[leaf as usize * actions + step.action.index()] += 1;
            }
        }
        Ok(Visits { leaves, counts, actions })
    }

    /// For each step, how often the given action was tried in states similar to its own: the mean
    /// over trees.
    pub(crate) fn of(&self, chosen: impl Iterator<Item = Action>) -> Vec<f64> {
        let count = |(i, a): (usize, Action)| {
            let leaf = |tree| self.leaves.of_tree(tree)[i] as usize;
            let in_tree = |tree| f64::from(self.counts[leaf(tree) * self.actions + a.index()]);
            (0..TREES).map(in_tree).sum::<f64>() / TREES as f64
        };
        chosen.enumerate().map(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ActionObservation, Alphabet, End, Trajectory};

    #[test]
    fn actions_are_counted_where_they_were_tried() {
        // Two places far from each other; the second action is taken only in the first place, every
        // tenth time.
        let mut alphabet = Alphabet::default();
        ["stay", "leave"].iter().for_each(|name| {
            alphabet.intern_action(name);
        });
        let episode = |i: u32| Trajectory {
            steps: vec![ActionObservation::new(u32::from(i.is_multiple_of(20)), i % 2)],
            rewards: vec![Some(0.0)],
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        };
        let episodes: Vec<_> = (0..80).map(episode).collect();
        let steps = Steps::of(&alphabet, &episodes).unwrap();
        struct Place(f64);
        impl crate::system::Track for Place {
            fn reset(&mut self) {
                self.0 = 1.0 - self.0;
            }
            fn observe(&mut self, _: ActionObservation) {}
        }
        impl crate::system::Filter for Place {
            fn state(&self) -> &[f64] {
                std::slice::from_ref(&self.0)
            }
        }
        // Each batch starts in the same place, so episodes alternate.
        let states = States::track(&episodes, || Place(1.0));
        let visits = Visits::new(&steps, &states, Seed(1)).unwrap();
        let left = visits.of(std::iter::repeat_n(Action(1), 80));
        let stayed = visits.of(std::iter::repeat_n(Action(0), 80));
        for i in 0..80 {
            let expected = if i % 2 == 0 { (4.0, 36.0) } else { (0.0, 40.0) };
            assert_eq!((left[i], stayed[i]), expected, "{i}");
        }
    }
}
