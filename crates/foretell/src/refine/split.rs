//! Whether a state is really two: its visits fall into two classes if what came before them and
//! what follows depend on each other although the state is the same.
//!
//! With c the action and state before a visit, o its symbol and f the state after it (given the
//! action a that led there), two classes g explain the visits better than one by the factor
//!
//! ```text
//! Σ_g P(g) · P(g | c)/P(g) · P(g | o)/P(g) · P(g | f)/P(g | a)
//! ```
//!
//! Where what a state emits depends on the action, the factor of o is also given that action.
//!
//! The classes are fitted by EM on half of the visits, and judged on the other half.

use rustc_hash::FxHashMap;

use crate::data::ActionObservation;
use crate::rng::{Rng, Seed};

/// The steps of an episode, and the states that were drawn for them.
pub(super) type Path<'a> = (&'a [ActionObservation], Vec<u32>);

/// A visit to a state: its episode and step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) episode: u32,
    pub(super) step: u32,
}

/// What is compared: what came before a visit and what follows, each as a short sequence.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reach {
    /// The states before and after.
    States,
    /// The state before, and two observations after.
    Observations,
    /// State and observation before it, and two observations after.
    Longer,
    /// Two observations before, and two after.
    Symbols,
    /// The last observation before that was another one, and the next after.
    Others,
}

/// What is compared where states emit several symbols. That the last other observation depends on
/// the next would then be due to the symbol, and not to the state.
pub(super) const FREE_REACHES: [Reach; 4] = [Reach::States, Reach::Observations, Reach::Longer, Reach::Symbols];
/// What is compared where states are owned.
pub(super) const OWNED_REACHES: [Reach; 5] = [Reach::States, Reach::Observations, Reach::Longer, Reach::Symbols, Reach::Others];

/// A value of a view; the unused places are [`NONE`].
type Key = [u32; 4];
const NONE: u32 = u32::MAX;

impl Reach {
    /// What came before the step, and what follows: actions, and what they led to.
    fn views(self, (steps, states): &Path<'_>, t: usize) -> (Key, Option<(Key, Key)>) {
        let state = |back: usize| if t >= back { states[t - back] } else { NONE };
        let symbol = |back: usize| if t >= back { steps[t - back].observation.0 } else { NONE };
        let action = |back: usize| if t >= back { steps[t - back].action.0 } else { NONE };
        let next = |ahead: usize| steps.get(t + ahead).map_or((NONE, NONE), |ao| (ao.action.0, ao.observation.0));
        let two = || {
            let ((a, o), (b, p)) = (next(1), next(2));
            (a != NONE).then_some(([a, b, NONE, NONE], [o, p, NONE, NONE]))
        };
        match self {
            Reach::States => {
                let after = (t + 1 < steps.len()).then(|| ([next(1).0, NONE, NONE, NONE], [states[t + 1], NONE, NONE, NONE]));
                ([action(0), state(1), NONE, NONE], after)
            }
            Reach::Observations => ([action(0), state(1), NONE, NONE], two()),
            Reach::Longer => ([action(0), state(1), action(1), symbol(2)], two()),
            Reach::Symbols => ([action(0), symbol(1), action(1), symbol(2)], two()),
            Reach::Others => {
                let own = steps[t].observation;
                let before = steps[..t].iter().rev().find(|ao| ao.observation != own).map_or(NONE, |ao| ao.observation.0);
                let after = steps[t + 1..].iter().find(|ao| ao.observation != own);
                ([before, NONE, NONE, NONE], after.map(|ao| ([NONE; 4], [ao.observation.0, NONE, NONE, NONE])))
            }
        }
    }
}

/// Two classes of the visits to a state.
#[derive(Clone, Debug)]
pub(super) struct Split {
    /// By how much they explain visits better that were not used to find them, in nats.
    pub(super) gain: f64,
    /// Whether that is significant.
    pub(super) is_sure: bool,
    /// Which visits are in the second class.
    pub(super) second: Vec<bool>,
}

/// What the symbol of a visit depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emission {
    State,
    ActionAndState,
}

/// What is known of a visit: what came before, its symbol, and what follows.
const VIEWS: usize = 3;
const SYMBOL: usize = 1;
const AFTER: usize = 2;
/// The views that are compared first, in turn; EM starts from there.
const PAIRS: [(usize, usize); 3] = [(0, AFTER), (SYMBOL, AFTER), (0, SYMBOL)];
/// Rounds of the power method: EM improves on the direction.
const POWER_ROUNDS: usize = 8;
/// Rounds of EM for the classes, and for those of all visits.
const ROUNDS: usize = 10;
const LAST_ROUNDS: usize = 4;
/// The share of a class among all visits counts as this many visits for each value of a view.
const PRIOR: f64 = 1.0;
/// How sharply EM begins to distinguish classes, per standard deviation.
const SHARPNESS: f64 = 2.0;
/// Fewer visits are not split; of more than this a sample is taken to find the classes.
const LEAST_VISITS: usize = 16;
const MOST_VISITS: usize = 4096;
/// A gain is significant if it is this many standard errors, and this many nats; it is worth a
/// trial if it is not significant, but this many standard errors.
const SURE: f64 = 2.0;
const DOUBTFUL: f64 = 0.5;
const LEAST_GAIN: f64 = 2.0;

/// Visits by the values of their views.
struct Table {
    /// For each visit the value of each view; the number of values if it has none.
    values: Vec<[u32; VIEWS]>,
    /// Number of values of each view.
    sizes: [usize; VIEWS],
    /// For each view the action of each value, if the view is given an action.
    action: [Option<Vec<u32>>; VIEWS],
    actions: usize,
}

/// P(second class), and given each value of the views; for views that are given an action also given
/// the action alone.
#[derive(Clone)]
struct Classes {
    share: f64,
    given: [Vec<f64>; VIEWS],
    by_action: [Vec<f64>; VIEWS],
}

/// The best split of the visits to a state, if there is one that may gain.
pub(super) fn split(visits: &[Visit], paths: &[Path<'_>], reaches: &[Reach], emission: Emission, seed: Seed) -> Option<Split> {
    if visits.len() < LEAST_VISITS {
        return None;
    }
    let taken: Vec<usize> = (0..visits.len()).step_by(visits.len().div_ceil(MOST_VISITS)).collect();
    let sample: Vec<Visit> = taken.iter().map(|&i| visits[i]).collect();
    let by = |(i, reach): (u64, &Reach)| judged(Table::of(&sample, paths, *reach, emission), &sample, *reach, seed.index(i));
    let found = (0..).zip(reaches).filter_map(by);
    // Of equals the first.
    let best = found.reduce(|best, next| if (next.is_sure, next.gain) > (best.is_sure, best.gain) { next } else { best })?;
    // The classes of all visits.
    let table = Table::of(visits, paths, best.reach, emission);
    let all: Vec<usize> = (0..visits.len()).collect();
    let mut shares = table.expect(&all, &table.maximise(&taken, &best.shares));
    for _ in 1..LAST_ROUNDS {
        shares = table.expect(&all, &table.maximise(&all, &shares));
    }
    let second: Vec<bool> = shares.iter().map(|p| *p > 0.5).collect();
    let several = second.iter().any(|x| *x) && second.iter().any(|x| !*x);
    let gain = best.gain * visits.len() as f64 / taken.len() as f64;
    several.then_some(Split { gain, is_sure: best.is_sure, second })
}

/// A split of a sample of visits.
struct Judged {
    reach: Reach,
    gain: f64,
    is_sure: bool,
    /// The probability of the second class for each visit.
    shares: Vec<f64>,
}

/// Classes that are fitted on half of the episodes, and judged on the others.
fn judged(table: Table, visits: &[Visit], reach: Reach, seed: Seed) -> Option<Judged> {
    let is_training = |i: usize| visits[i].episode.is_multiple_of(2);
    let (training, test): (Vec<usize>, Vec<usize>) = (0..visits.len()).partition(|&i| is_training(i));
    let mut rng = seed.rng();
    let mut best: Option<(f64, Classes)> = None;
    for (u, v) in PAIRS {
        if table.sizes[u] < 2 || table.sizes[v] < 2 {
            continue;
        }
        let Some(mut classes) = table.correlated(&training, u, v, &mut rng) else { continue };
        for _ in 0..ROUNDS {
            classes = table.maximise(&training, &table.expect(&training, &classes));
        }
        let explained = table.gains(&training, &classes).iter().sum::<f64>();
        if best.as_ref().is_none_or(|(other, _)| explained > *other) {
            best = Some((explained, classes));
        }
    }
    let (_, classes) = best?;
    let gains = table.gains(&test, &classes);
    let gain: f64 = gains.iter().sum();
    let error = gains.iter().map(|x| x * x).sum::<f64>().sqrt();
    let is_sure = gain > LEAST_GAIN && gain > SURE * error;
    let all: Vec<usize> = (0..visits.len()).collect();
    (gain > DOUBTFUL * error).then(|| Judged { reach, gain, is_sure, shares: table.expect(&all, &classes) })
}

impl Table {
    fn of(visits: &[Visit], paths: &[Path<'_>], reach: Reach, emission: Emission) -> Table {
        let (mut before_ids, mut symbol_ids) = (FxHashMap::default(), FxHashMap::default());
        let (mut after_ids, mut action_ids) = (FxHashMap::default(), FxHashMap::default());
        let (mut led_by, mut followed_by) = (Vec::new(), Vec::new());
        let mut values: Vec<[u32; VIEWS]> = Vec::with_capacity(visits.len());
        for visit in visits {
            let (path, t) = (&paths[visit.episode as usize], visit.step as usize);
            let (before, after) = reach.views(path, t);
            let after = after.map_or(NONE, |(actions, led_to)| {
                let value = id(&mut after_ids, (actions, led_to));
                if value as usize == followed_by.len() {
                    followed_by.push(id(&mut action_ids, actions));
                }
                value
            });
            let ActionObservation { action, observation } = path.0[t];
            let symbol = match emission {
                Emission::State => id(&mut symbol_ids, (NONE, observation.0)),
                Emission::ActionAndState => id(&mut symbol_ids, (action.0, observation.0)),
            };
            if symbol as usize == led_by.len() && emission == Emission::ActionAndState {
                led_by.push(id(&mut action_ids, [action.0, NONE, NONE, NONE]));
            }
            values.push([id(&mut before_ids, before), symbol, after]);
        }
        let sizes = [before_ids.len(), symbol_ids.len(), after_ids.len()];
        let led_by = Some(led_by).filter(|_| emission == Emission::ActionAndState);
        Table { values, sizes, action: [None, led_by, Some(followed_by)], actions: action_ids.len() }
    }

    /// The action that a value of a view is given.
    fn action(&self, v: usize, value: usize) -> Option<usize> {
        self.action[v].as_ref().map(|actions| actions[value] as usize)
    }

    fn value(&self, i: usize, v: usize) -> Option<usize> {
        Some(self.values[i][v] as usize).filter(|&value| value < self.sizes[v])
    }

    /// Classes along the direction in which two views are correlated most, by the power method.
    /// `None` if they are not.
    fn correlated(&self, visits: &[usize], u: usize, v: usize, rng: &mut Rng) -> Option<Classes> {
        let pairs: Vec<(usize, usize)> = visits.iter().filter_map(|&i| self.value(i, u).zip(self.value(i, v))).collect();
        let mut x: Vec<f64> = (0..self.sizes[u]).map(|_| rng.uniform() - 0.5).collect();
        for _ in 0..POWER_ROUNDS {
            let mut y = means(pairs.iter().map(|&(i, j)| (j, x[i])), self.sizes[v]);
            self.centre(&mut y, v, pairs.iter().map(|&(_, j)| j));
            x = means(pairs.iter().map(|&(i, j)| (i, y[j])), self.sizes[u]);
            self.centre(&mut x, u, pairs.iter().map(|&(i, _)| i));
            let square: f64 = pairs.iter().map(|&(i, _)| x[i] * x[i]).sum::<f64>() / pairs.len().max(1) as f64;
            if square <= f64::MIN_POSITIVE {
                return None;
            }
            x.iter_mut().for_each(|x| *x /= square.sqrt());
        }
        let share = |i: &usize| self.value(*i, u).map_or(0.5, |value| 1.0 / (1.0 + (-SHARPNESS * x[value]).exp()));
        let shares: Vec<f64> = visits.iter().map(share).collect();
        Some(self.maximise(visits, &shares))
    }

    /// Subtracts the mean over visits, or that of each action: it is no matter of states which action
    /// follows.
    fn centre(&self, x: &mut [f64], v: usize, values: impl Iterator<Item = usize>) {
        let group = |value: usize| self.action(v, value).unwrap_or(0);
        let mut sums = vec![(0.0, 0.0); self.actions.max(1)];
        for value in values {
            let (sum, n) = &mut sums[group(value)];
            *sum += x[value];
            *n += 1.0;
        }
        for (value, x) in x.iter_mut().enumerate() {
            let (sum, n) = sums[group(value)];
            *x -= sum / f64::max(n, 1.0);
        }
    }

    /// The most probable classes, given the probability of the second for each visit.
    fn maximise(&self, visits: &[usize], shares: &[f64]) -> Classes {
        let share = (shares.iter().sum::<f64>() + 0.5) / (visits.len() as f64 + 1.0);
        let mut counts = self.sizes.map(|size| vec![(0.0, 0.0); size]);
        let mut by_action = [0; VIEWS].map(|_| vec![(0.0, 0.0); self.actions]);
        for (&i, &p) in visits.iter().zip(shares) {
            for (v, counts) in counts.iter_mut().enumerate() {
                let Some(value) = self.value(i, v) else { continue };
                counts[value].0 += p;
                counts[value].1 += 1.0;
                if let Some(a) = self.action(v, value) {
                    let (sum, n) = &mut by_action[v][a];
                    *sum += p;
                    *n += 1.0;
                }
            }
        }
        let posterior = |(sum, n): (f64, f64), prior: f64| (sum + PRIOR * prior) / (n + PRIOR);
        let by_action = by_action.map(|counts| counts.into_iter().map(|count| posterior(count, share)).collect::<Vec<f64>>());
        let prior = |v: usize, value: usize| self.action(v, value).map_or(share, |a| by_action[v][a]);
        let given = [0, SYMBOL, AFTER]
            .map(|v| counts[v].iter().enumerate().map(|(value, &count)| posterior(count, prior(v, value))).collect());
        Classes { share, given, by_action }
    }

    /// For each class: its probability times how much more probable it makes the visit.
    fn weights(&self, i: usize, classes: &Classes) -> [f64; 2] {
        let mut weights = [1.0 - classes.share, classes.share];
        for v in 0..VIEWS {
            let Some(value) = self.value(i, v) else { continue };
            let p = classes.given[v][value];
            let prior = self.action(v, value).map_or(classes.share, |a| classes.by_action[v][a]);
            weights[0] *= (1.0 - p) / (1.0 - prior);
            weights[1] *= p / prior;
        }
        weights
    }

    /// The probability of the second class for each visit.
    fn expect(&self, visits: &[usize], classes: &Classes) -> Vec<f64> {
        let share = |&i: &usize| {
            let [first, second] = self.weights(i, classes);
            second / (first + second)
        };
        visits.iter().map(share).collect()
    }

    /// How much better two classes explain each visit than one, in nats.
    fn gains(&self, visits: &[usize], classes: &Classes) -> Vec<f64> {
        visits.iter().map(|&i| self.weights(i, classes).iter().sum::<f64>().ln()).collect()
    }
}

/// The number of a key, in the order of appearance.
fn id<K: Eq + std::hash::Hash>(ids: &mut FxHashMap<K, u32>, key: K) -> u32 {
    let next = ids.len() as u32;
    *ids.entry(key).or_insert(next)
}

/// The mean of each value, shrunk to zero like the probabilities of classes.
fn means(entries: impl Iterator<Item = (usize, f64)>, size: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); size];
    for (value, x) in entries {
        sums[value].0 += x;
        sums[value].1 += 1.0;
    }
    sums.into_iter().map(|(sum, n)| sum / (n + PRIOR)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Episodes of three steps: a first symbol, one that all share, and a last one. `last(first, i)`
    /// is that of episode i.
    fn episodes(last: impl Fn(u32, usize) -> u32) -> Vec<Vec<ActionObservation>> {
        let mut rng = Seed(9).rng();
        let episode = |i| {
            let first = rng.below(2) as u32;
            [first, 2, 3 + last(first, i)].map(|o| ActionObservation::new(0, o)).to_vec()
        };
        (0..400).map(episode).collect()
    }

    /// The split of the visits to the shared symbol, where every symbol has one state.
    fn split_of(episodes: &[Vec<ActionObservation>]) -> Option<Split> {
        let path = |steps: &'_ Vec<ActionObservation>| steps.iter().map(|ao| 1 + ao.observation.0).collect::<Vec<u32>>();
        let paths: Vec<Path<'_>> = episodes.iter().map(|steps| (steps.as_slice(), path(steps))).collect();
        let visits: Vec<Visit> = (0..episodes.len() as u32).map(|episode| Visit { episode, step: 1 }).collect();
        split(&visits, &paths, &FREE_REACHES, Emission::State, Seed(1))
    }

    #[test]
    fn a_state_whose_past_determines_its_future_is_split_by_it() {
        let episodes = episodes(|first, _| first);
        let split = split_of(&episodes).unwrap();
        // Each of 200 other visits is explained better by ln 2; half of the classes is a prior.
        assert!(split.is_sure && (split.gain / (200.0 * 2.0f64.ln()) - 1.0).abs() < 0.1, "{}", split.gain);
        let of = |i: usize| episodes[i][0].observation.0 == episodes[0][0].observation.0;
        assert!((0..400).all(|i| (split.second[i] == split.second[0]) == of(i)));
    }

    #[test]
    fn a_state_that_forgets_its_past_is_not_split() {
        let mut rng = Seed(3).rng();
        let drawn: Vec<u32> = (0..400).map(|_| rng.below(2) as u32).collect();
        let split = split_of(&episodes(|_, i| drawn[i]));
        assert!(split.as_ref().is_none_or(|split| !split.is_sure), "{split:?}");
        // Neither is one of few visits.
        assert!(split_of(&episodes(|first, _| first)[..LEAST_VISITS - 1]).is_none());
    }
}
