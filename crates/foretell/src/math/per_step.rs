//! Means per step over episodes, with intervals that are valid for one long episode too.
//!
//! The mean of a quantity d per step is a ratio, g = Σ d_i / Σ l_i, with d_i its sum over an episode
//! of l_i steps. Its standard error is √(n/(n−1) · Σ (d_i − g l_i)²) / Σ l_i. Episodes are
//! independent, steps of an episode are not. Where there are few episodes, they are cut into
//! consecutive blocks, which are almost independent if they are long (batch means; Schmeiser 1982).
//! Where episodes have groups, such as persons, the terms of the sums are groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::statistics::t95;

/// With at least this many episodes, each of them is one term of the sums above; fewer are cut into
/// blocks. Student's t allows for the number.
const MANY_EPISODES: u64 = 20;
/// Fewer blocks than this: between half as many and this many where the episodes are long enough.
/// Schmeiser recommends 10 to 30: more of them hardly narrow the interval, but are shorter and so
/// depend more on each other.
const MOST_BLOCKS: usize = 32;
/// Steps of the shortest block. Shorter ones would depend on each other in most systems.
const SHORTEST_BLOCK: usize = 8;
/// With fewer terms there is no interval.
const LEAST_TERMS: f64 = 4.0;

/// Sums for the mean per step of a quantity. Their size depends neither on the number of episodes
/// nor on their lengths, but on that of groups, if there are any.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerStep {
    episodes: Terms,
    /// The blocks of each episode, while there are few.
    few: Vec<Blocks>,
    /// Sum and number of steps of each group.
    groups: BTreeMap<Arc<str>, (f64, u64)>,
    /// Episodes that have a group.
    grouped: u64,
}

/// A mean per step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerStepMean {
    pub(crate) mean: f64,
    /// Half the width of its 95 % interval; none where the data are too few.
    pub(crate) ci95: Option<f64>,
    /// How many episodes, blocks or groups of them, the interval is computed from.
    pub(crate) blocks: u64,
}

impl PerStepMean {
    /// The ratio of sums over independent terms: of the sum and the number of steps of each.
    pub(crate) fn over(terms: impl IntoIterator<Item = (f64, u64)>) -> PerStepMean {
        let mut all = Terms::default();
        terms.into_iter().for_each(|(sum, steps)| all.add(sum, steps));
        PerStepMean { mean: all.ratio(), ci95: all.ci95(), blocks: all.count }
    }
}

impl PerStep {
    /// Adds an episode, given its group and the value of each of its steps.
    pub(crate) fn add(&mut self, group: Option<&Arc<str>>, values: impl Iterator<Item = f64>) {
        let mut blocks = Blocks::default();
        let (mut sum, mut steps) = (0.0, 0);
        for value in values {
            sum += value;
            steps += 1;
            blocks.add(value);
        }
        self.episodes.add(sum, steps);
        if let Some(group) = group {
            let (of_group, steps_of_group) = self.groups.entry(group.clone()).or_default();
            *of_group += sum;
            *steps_of_group += steps;
            self.grouped += 1;
        }
        self.few.push(blocks);
        self.forget_blocks();
    }

    /// Adds the episodes of another, which follow those here.
    pub(crate) fn merge(&mut self, other: PerStep) {
        self.episodes.merge(&other.episodes);
        self.grouped += other.grouped;
        for (group, (sum, steps)) in other.groups {
            let into = self.groups.entry(group).or_default();
            *into = (into.0 + sum, into.1 + steps);
        }
        self.few.extend(other.few);
        self.forget_blocks();
    }

    fn forget_blocks(&mut self) {
        if self.episodes.count >= MANY_EPISODES {
            self.few = Vec::new();
        }
    }

    pub(crate) fn finish(&self) -> PerStepMean {
        let blocks = match self.grouped == self.episodes.count && self.grouped > 0 {
            true => self.group_terms(),
            false if self.few.is_empty() => self.episodes,
            false => self.blocks(),
        };
        PerStepMean { mean: self.episodes.ratio(), ci95: blocks.ci95(), blocks: blocks.count }
    }

    /// Sums over groups.
    fn group_terms(&self) -> Terms {
        let mut terms = Terms::default();
        self.groups.values().for_each(|&(sum, steps)| terms.add(sum, steps));
        terms
    }

    /// Sums over blocks, all of the same length but for what remains of each episode: the shortest
    /// length with fewer than [`MOST_BLOCKS`].
    fn blocks(&self) -> Terms {
        let mut few = self.few.clone();
        let mut length = few.iter().map(|blocks| blocks.length).max().unwrap_or(SHORTEST_BLOCK);
        loop {
            few.iter_mut().for_each(|blocks| blocks.lengthen(length));
            let mut terms = Terms::default();
            few.iter().for_each(|blocks| blocks.terms().for_each(|(sum, steps)| terms.add(sum, steps)));
            if terms.count < MOST_BLOCKS as u64 {
                return terms;
            }
            length *= 2;
        }
    }
}

/// Sums over episodes or blocks, with a sum d and l steps each.
#[derive(Clone, Copy, Debug, Default)]
struct Terms {
    count: u64,
    /// Σ d
    sum: f64,
    steps: u64,
    /// Σ d², Σ d·l, Σ l²
    squares: f64,
    products: f64,
    squared_steps: f64,
}

impl Terms {
    fn add(&mut self, sum: f64, steps: u64) {
        let l = steps as f64;
        self.count += 1;
        self.sum += sum;
        self.steps += steps;
        self.squares += sum * sum;
        self.products += sum * l;
        self.squared_steps += l * l;
    }

    fn merge(&mut self, other: &Terms) {
        self.count += other.count;
        self.sum += other.sum;
        self.steps += other.steps;
        self.squares += other.squares;
        self.products += other.products;
        self.squared_steps += other.squared_steps;
    }

    fn ratio(&self) -> f64 {
        self.sum / self.steps as f64
    }

    fn ci95(&self) -> Option<f64> {
        let (n, g) = (self.count as f64, self.ratio());
        // Σ (d − g l)², which rounding can make negative.
        let squares = (self.squares - 2.0 * g * self.products + g * g * self.squared_steps).max(0.0);
        let error = (squares * n / (n - 1.0)).sqrt() / self.steps as f64;
        (n >= LEAST_TERMS).then(|| t95(n - 1.0) * error)
    }
}

/// Sums over consecutive blocks of an episode: fewer than [`MOST_BLOCKS`] of `length` steps each, and
/// the rest. When there are more, pairs of blocks are joined.
#[derive(Clone, Debug)]
struct Blocks {
    length: usize,
    sums: Vec<f64>,
    rest: f64,
    rest_steps: usize,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks { length: SHORTEST_BLOCK, sums: Vec::new(), rest: 0.0, rest_steps: 0 }
    }
}

impl Blocks {
    fn add(&mut self, value: f64) {
        self.rest += value;
        self.rest_steps += 1;
        if self.rest_steps == self.length {
            self.sums.push(std::mem::take(&mut self.rest));
            self.rest_steps = 0;
            if self.sums.len() == MOST_BLOCKS {
                self.double();
            }
        }
    }

    fn double(&mut self) {
        if !self.sums.len().is_multiple_of(2) {
            self.rest += self.sums.pop().expect("their number is odd");
            self.rest_steps += self.length;
        }
        self.sums = self.sums.chunks(2).map(|pair| pair[0] + pair[1]).collect();
        self.length *= 2;
    }

    /// Joins blocks until they have `length` steps, a power of two times the present length.
    fn lengthen(&mut self, length: usize) {
        while self.length < length {
            self.double();
        }
    }

    /// The sum and number of steps of each block. The rest belongs to the last, or is the only one.
    fn terms(&self) -> impl Iterator<Item = (f64, u64)> {
        let full = self.sums.len().saturating_sub(1);
        let (last, steps) = self.sums.last().map_or((0.0, 0), |&sum| (sum, self.length));
        let joined = (last + self.rest, (steps + self.rest_steps) as u64);
        self.sums[..full].iter().map(|&sum| (sum, self.length as u64)).chain([joined])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, Seed};

    /// A chain of two states that stays in the first with probability 0.98 and in the second with
    /// 0.9. It is predicted by the chain itself and by a uniform baseline. Differences in
    /// log-likelihood are then dependent, since the first state is predicted better.
    const STAYS: [f64; 2] = [0.98, 0.9];

    /// Share of time in the second state.
    fn second() -> f64 {
        (1.0 - STAYS[0]) / (2.0 - STAYS[0] - STAYS[1])
    }

    /// E[ln P(o) − ln ½]: ln 2 minus the entropy rate.
    fn expected_difference() -> f64 {
        let gain = |p: f64| p * (2.0 * p).ln() + (1.0 - p) * (2.0 * (1.0 - p)).ln();
        (1.0 - second()) * gain(STAYS[0]) + second() * gain(STAYS[1])
    }

    fn differences(steps: usize, rng: &mut Rng) -> Vec<f64> {
        let mut state = usize::from(rng.uniform() < second());
        let mut step = || {
            let p = STAYS[state];
            let stays = rng.uniform() < p;
            state = if stays { state } else { 1 - state };
            (2.0 * if stays { p } else { 1.0 - p }).ln()
        };
        (0..steps).map(|_| step()).collect()
    }

    /// The share of repeated logs whose interval contains the expected difference.
    fn coverage(lengths: impl Fn(&mut Rng) -> Vec<usize>) -> f64 {
        const REPEATS: u64 = 1000;
        let covers = |repeat: u64| {
            let rng = &mut Seed(7).index(repeat).rng();
            let mut sums = PerStep::default();
            lengths(rng).into_iter().for_each(|steps| sums.add(None, differences(steps, rng).into_iter()));
            let PerStepMean { mean, ci95, .. } = sums.finish();
            (mean - expected_difference()).abs() <= ci95.unwrap()
        };
        (0..REPEATS).filter(|&repeat| covers(repeat)).count() as f64 / REPEATS as f64
    }

    fn assert_covers(coverage: f64) {
        assert!((0.9..=0.98).contains(&coverage), "{coverage}");
    }

    #[test]
    fn intervals_cover_the_expected_difference_for_many_episodes_of_unequal_length() {
        assert_covers(coverage(|rng| (0..200).map(|_| 5 + (20.0 * rng.uniform()) as usize).collect()));
    }

    #[test]
    fn intervals_cover_the_expected_difference_for_one_long_episode_with_dependence() {
        assert_covers(coverage(|_| vec![4000]));
    }

    #[test]
    fn intervals_cover_the_expected_difference_for_a_few_episodes() {
        assert_covers(coverage(|_| vec![600, 1000, 200, 1500, 90]));
        assert_covers(coverage(|_| vec![40; 15]));
    }

    #[test]
    fn intervals_over_episodes_are_those_of_a_ratio() {
        let mut rng = Seed(1).rng();
        let episodes: Vec<Vec<f64>> = (0..50).map(|i| differences(3 + i % 7, &mut rng)).collect();
        let mut sums = PerStep::default();
        episodes.iter().for_each(|z| sums.add(None, z.iter().copied()));
        let steps = episodes.iter().map(Vec::len).sum::<usize>() as f64;
        let total = |z: &Vec<f64>| z.iter().sum::<f64>();
        let mean = episodes.iter().map(total).sum::<f64>() / steps;
        let squares: f64 = episodes.iter().map(|z| (total(z) - mean * z.len() as f64).powi(2)).sum();
        let found = sums.finish();
        assert!((found.mean - mean).abs() < 1e-12);
        assert!((found.ci95.unwrap() / (t95(49.0) * (squares * 50.0 / 49.0).sqrt() / steps) - 1.0).abs() < 1e-9);
        assert_eq!(found.blocks, 50);
    }

    #[test]
    fn blocks_are_bounded_and_do_not_depend_on_how_episodes_are_batched() {
        let mut rng = Seed(2).rng();
        for lengths in [vec![200_000], vec![50, 7, 3000, 12], vec![9; 19], vec![5; 500]] {
            let episodes: Vec<PerStep> = lengths
                .iter()
                .map(|&steps| {
                    let mut sums = PerStep::default();
                    sums.add(None, differences(steps, &mut rng).into_iter());
                    sums
                })
                .collect();
            let merged = |batch: usize| {
                let mut all = PerStep::default();
                for episodes in episodes.chunks(batch) {
                    let mut part = PerStep::default();
                    episodes.iter().for_each(|z| part.merge(z.clone()));
                    all.merge(part);
                }
                all
            };
            let one = merged(1);
            assert!(one.few.len() < MANY_EPISODES as usize && one.few.iter().all(|blocks| blocks.sums.len() < MOST_BLOCKS));
            for batch in [2, 3, 64] {
                let (one, other) = (one.finish(), merged(batch).finish());
                let is_close = |x: f64, y: f64| (x - y).abs() < 1e-12;
                assert_eq!(one.blocks, other.blocks, "{lengths:?}");
                assert!(is_close(one.mean, other.mean) && is_close(one.ci95.unwrap(), other.ci95.unwrap()), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn the_number_of_blocks_follows_the_data() {
        let blocks = |lengths: &[usize]| {
            let mut sums = PerStep::default();
            lengths.iter().for_each(|&steps| sums.add(None, (0..steps).map(|t| t as f64)));
            let found = sums.finish();
            (found.blocks, found.ci95.is_some())
        };
        assert_eq!(blocks(&[10]), (1, false), "too short to be cut");
        assert_eq!(blocks(&[5, 5, 5]), (3, false), "too few episodes");
        assert_eq!(blocks(&[32]), (4, true));
        assert_eq!(blocks(&[1000]), (31, true), "of 32 steps");
        assert_eq!(blocks(&[1_000_000]), (30, true), "of 32 768 steps");
        assert_eq!(blocks(&[100; 19]), (19, true), "the episodes");
        assert_eq!(blocks(&[100; 20]), (20, true), "the episodes");
    }

    #[test]
    fn the_terms_of_grouped_episodes_are_groups() {
        // Episodes of a group are copies: four groups of five say as much as four episodes.
        let values = |group: usize| (0..3 + group).map(move |t| (group * t) as f64);
        let (mut grouped, mut alone) = (PerStep::default(), Terms::default());
        for group in 0..4 {
            let name: Arc<str> = group.to_string().into();
            (0..5).for_each(|_| grouped.add(Some(&name), values(group)));
            alone.add(values(group).sum(), values(group).count() as u64);
        }
        let PerStepMean { mean, ci95, blocks } = grouped.finish();
        assert_eq!(blocks, 4);
        assert!((mean - alone.ratio()).abs() < 1e-12 && (ci95.unwrap() - alone.ci95().unwrap()).abs() < 1e-12);
        // One episode without a group, and groups say nothing.
        grouped.add(None, values(1));
        assert_eq!(grouped.finish().blocks, 21);
    }
}
