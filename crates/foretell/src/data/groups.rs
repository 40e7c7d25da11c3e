//! Episodes that belong together, such as those of one person: they are in the same part of the logs,
//! and are one sample.

use std::collections::HashMap;
use std::sync::Arc;

use super::trajectory::Trajectory;
use crate::rng::Seed;

/// Which episodes belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Groups {
    /// The number of the group of each episode, in order of appearance.
    of: Vec<usize>,
    count: usize,
}

impl Groups {
    /// Groups by name; an episode without one is a group of its own.
    pub(crate) fn new<'t>(names: impl IntoIterator<Item = Option<&'t Arc<str>>>) -> Groups {
        let (mut known, mut count) = (HashMap::new(), 0);
        let mut new = || {
            count += 1;
            count - 1
        };
        let of = names.into_iter().map(|name| match name {
            Some(name) => *known.entry(name).or_insert_with(&mut new),
            None => new(),
        });
        let of = of.collect();
        Groups { of, count }
    }

    /// The groups of episodes.
    pub(crate) fn of<'t>(episodes: impl IntoIterator<Item = &'t Trajectory>) -> Groups {
        Groups::new(episodes.into_iter().map(|z| z.about.group.as_ref()))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The number of the group of each episode.
    pub(crate) fn numbers(&self) -> &[usize] {
        &self.of
    }

    /// For each group the sum of its episodes' numbers, scaled so that the mean stays what it was: its
    /// sampling error is that of independent groups.
    pub(crate) fn sums(&self, numbers: &[f64]) -> Vec<f64> {
        let scale = self.count as f64 / self.of.len() as f64;
        let mut sums = vec![0.0; self.count];
        self.of.iter().zip(numbers).for_each(|(&group, x)| sums[group] += scale * x);
        sums
    }

    /// The fold of each episode, 0 to `folds` − 1, drawn at random for each group, equally often. Folds
    /// in turn would be no samples of logs in which policies alternate.
    pub(crate) fn folds(&self, folds: usize, seed: Seed) -> Vec<usize> {
        let rounds = 0..self.count.div_ceil(folds.max(1)) as u64;
        let of_group: Vec<usize> = rounds.flat_map(|round| shuffled(folds.max(1), seed.index(round))).collect();
        self.of.iter().map(|&group| of_group[group]).collect()
    }
}

/// 0 to `n` − 1 in random order.
fn shuffled(n: usize, seed: Seed) -> Vec<usize> {
    let mut rng = seed.rng();
    let mut all: Vec<usize> = (0..n).collect();
    (1..n).for_each(|i| all.swap(i, rng.below(i + 1)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::Mean;

    fn groups(names: &[&str]) -> Groups {
        let names: Vec<Option<Arc<str>>> = names.iter().map(|name| (!name.is_empty()).then(|| Arc::from(*name))).collect();
        Groups::new(names.iter().map(Option::as_ref))
    }

    #[test]
    fn episodes_without_a_group_are_on_their_own() {
        let found = groups(&["a", "", "b", "a", ""]);
        assert_eq!((found.numbers(), found.count()), ([0, 1, 2, 0, 3].as_slice(), 4));
    }

    #[test]
    fn sums_keep_the_mean_and_have_the_error_of_groups() {
        // Two groups of two equal episodes are two samples, not four.
        let numbers = [1.0, 1.0, 5.0, 5.0];
        let sums = groups(&["a", "a", "b", "b"]).sums(&numbers);
        assert_eq!(sums, [1.0, 5.0]);
        let mean: Mean = groups(&["a", "a", "", "b"]).sums(&numbers).into_iter().collect();
        assert!((mean.mean() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn folds_are_of_equal_sizes_and_keep_groups_together() {
        let names: Vec<String> = (0..60).map(|i| if i % 3 == 0 { "g".into() } else { format!("{i}") }).collect();
        let found = groups(&names.iter().map(String::as_str).collect::<Vec<_>>()).folds(4, Seed(1));
        assert!((0..60).step_by(3).all(|i| found[i] == found[0]));
        let mut sizes = [0; 4];
        (0..60).filter(|i| i % 3 != 0).for_each(|i| sizes[found[i]] += 1);
        assert!(sizes.iter().all(|n| (9..=10).contains(n)), "{sizes:?}");
        // They are not folds in turn.
        assert!(found.windows(5).any(|five| five[0] != five[4]));
    }
}
