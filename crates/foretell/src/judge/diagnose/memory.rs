//! Whether the past helps to predict: n-grams of at least one step against the action alone, on
//! held-out parts of the logs.
//!
//! This needs far fewer steps than the spectrum of the moments, since an n-gram of one step has few
//! parameters. The parts are episodes. If these are few, they are cut into blocks, so that even a
//! single long recording can be judged.

use std::ops::Range;

use rayon::prelude::*;
use serde::Serialize;

use crate::data::{Alphabet, Fingerprints, Trajectory};
use crate::error::Result;
use crate::log::Logs;
use crate::math::{Z95, argmax};
use crate::model::{Counter, Past};

/// Folds of the cross-validation: each n-gram is trained on four fifths of the logs.
const FOLDS: usize = 5;
/// Longest context, in steps: longer ones rarely repeat in logs that are small enough for this
/// comparison to matter.
const LONGEST: usize = 3;
/// Fewer episodes than this are cut into blocks, since their number determines the accuracy of the
/// standard error.
pub(super) const FEW_EPISODES: u64 = 30;
/// The number of blocks aimed at, and the least length of a block: neighbouring blocks should be
/// about independent.
const BLOCKS: usize = 40;
const SHORTEST_BLOCK: usize = 20;
/// Fewer parts than this give no standard error worth reporting.
const FEWEST_PARTS: usize = 10;
/// Steps between a held-out part and the nearest training step of its episode.
const GAP: usize = 10;
/// Only this many steps are compared, the first ones. At the usual spread of about 1 nat a step,
/// the standard error is then 0.002 nats.
const MOST_STEPS: usize = 1 << 18;
/// Gains below this, in nats per step, count as negligible.
const NEGLIGIBLE: f64 = 0.05;

/// Whether n-grams of past steps predict held-out steps better than the action alone does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// What the interval says.
    pub verdict: MemoryVerdict,
    /// The mean gain in log-likelihood, nats per step.
    pub gain: f64,
    /// Half the width of its 95 % interval.
    pub half_width: f64,
    /// The length of the n-grams: the best of 1 to 3 steps, chosen for each fold on the other folds;
    /// the most frequent choice.
    pub length: usize,
    /// The parts over which the interval is computed: episodes, or blocks of few episodes.
    pub parts: usize,
    /// Whether the parts are blocks of episodes.
    pub blocks: bool,
    /// Steps compared.
    pub steps: usize,
}

/// What the interval of the gain says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryVerdict {
    /// It is above zero.
    Helps,
    /// It contains zero, or lies below, and excludes gains of 0.05 nats or more.
    NoEvidence,
    /// It contains zero and gains of 0.05 nats or more.
    Unclear,
}

/// A part of an episode that is held out as a whole.
#[derive(Clone)]
struct Part {
    episode: usize,
    range: Range<usize>,
    fold: usize,
}

/// Compares on the first steps of the logs; `None` if there are too few.
pub(super) fn memory(logs: &Logs, alphabet: &Alphabet) -> Result<Option<Memory>> {
    let mut episodes: Vec<Trajectory> = Vec::new();
    let mut steps = 0;
    for z in logs.open(alphabet.clone())? {
        let mut z = z?;
        z.steps.truncate(MOST_STEPS - steps);
        steps += z.steps.len();
        episodes.push(z);
        if steps >= MOST_STEPS {
            break;
        }
    }
    let parts = parts(&episodes, steps);
    if parts.len() < FEWEST_PARTS {
        return Ok(None);
    }
    let fingerprints = Fingerprints::of(alphabet);
    let of_fold = |fold: usize| gains(&episodes, &parts, fold, &fingerprints);
    let gains: Vec<Vec<Gain>> = (0..FOLDS).into_par_iter().map(of_fold).collect();
    Ok(Some(judged(&gains, (episodes.len() as u64) < FEW_EPISODES)))
}

/// Whole episodes, or blocks of few episodes. Folds are contiguous.
fn parts(episodes: &[Trajectory], steps: usize) -> Vec<Part> {
    let block = match (episodes.len() as u64) < FEW_EPISODES {
        true => (steps / BLOCKS).max(SHORTEST_BLOCK),
        false => usize::MAX,
    };
    let blocks = |(episode, z): (usize, &Trajectory)| {
        let (length, n) = (z.steps.len(), (z.steps.len() / block).max(1));
        (0..n).map(move |i| Part { episode, range: i * length / n..(i + 1) * length / n, fold: 0 })
    };
    let mut parts: Vec<Part> = episodes.iter().enumerate().flat_map(blocks).filter(|part| !part.range.is_empty()).collect();
    let n = parts.len();
    parts.iter_mut().enumerate().for_each(|(i, part)| part.fold = i * FOLDS / n);
    parts
}

/// The gains of one held-out part.
struct Gain {
    steps: usize,
    /// Nats gained over the action alone, summed over the steps, for n-grams of 1, 2, … steps.
    by_length: [f64; LONGEST],
}

/// The gains of the parts of a fold, with n-grams of the other folds.
fn gains(episodes: &[Trajectory], parts: &[Part], fold: usize, f: &Fingerprints) -> Vec<Gain> {
    let mut counter = Counter::new(LONGEST);
    for here in parts.chunk_by(|x, y| x.episode == y.episode) {
        let steps = &episodes[here[0].episode].steps;
        training(here, fold).into_iter().for_each(|range| counter.add_range(f, steps, range));
    }
    let ngram = counter.finish();
    let uniform = 1.0 / f.sizes().1 as f64;
    let of = |part: &Part| {
        let steps = &episodes[part.episode].steps;
        // Contexts reach back beyond the start of the part.
        let from = part.range.start.saturating_sub(LONGEST + 1);
        let scored = |length: usize| -> f64 {
            let mut past = Past::new(length);
            let score = |t: usize| {
                let ao = steps[t];
                if ao.observation.is_missing() {
                    past.push_gap();
                    return 0.0;
                }
                let (p, _) = ngram.of_one(f, &past, ao, uniform);
                past.push(f, ao);
                if part.range.contains(&t) { p.ln() } else { 0.0 }
            };
            (from..part.range.end).map(score).sum()
        };
        let action_alone = scored(0);
        Gain { steps: part.range.len(), by_length: std::array::from_fn(|i| scored(i + 1) - action_alone) }
    };
    parts.iter().filter(|part| part.fold == fold).map(of).collect()
}

/// The steps of an episode, given by its parts, on which a fold is trained: those of other folds,
/// before and after held-out ones, without the gap around these.
fn training(parts: &[Part], fold: usize) -> [Range<usize>; 2] {
    let end = parts.last().map_or(0, |part| part.range.end);
    let mut held_out = parts.iter().filter(|part| part.fold == fold);
    let Some(first) = held_out.next() else { return [0..end, end..end] };
    // The parts of a fold are contiguous.
    let last = held_out.next_back().unwrap_or(first);
    [0..first.range.start.saturating_sub(GAP), (last.range.end + GAP).min(end)..end]
}

/// The mean gain per step with its interval: a ratio of sums over parts, whose variance is that of
/// the residuals g − mean·steps.
fn judged(folds: &[Vec<Gain>], blocks: bool) -> Memory {
    let total = |fold: &Vec<Gain>, i: usize| fold.iter().map(|gain| gain.by_length[i]).sum::<f64>();
    // Chosen on the other folds, so that the choice does not favour the gain.
    let chosen = |k: usize| {
        let others = |i| folds.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, fold)| total(fold, i)).sum::<f64>();
        argmax((0..LONGEST).map(others)).0
    };
    let choices: Vec<usize> = (0..folds.len()).map(chosen).collect();
    let gains: Vec<(f64, f64)> = folds
        .iter()
        .zip(&choices)
        .flat_map(|(fold, &i)| fold.iter().map(move |gain| (gain.by_length[i], gain.steps as f64)))
        .collect();
    let (n, steps) = (gains.len() as f64, gains.iter().map(|(_, steps)| steps).sum::<f64>());
    let gain = gains.iter().map(|(gain, _)| gain).sum::<f64>() / steps;
    let squares: f64 = gains.iter().map(|(g, steps)| (g - gain * steps).powi(2)).sum();
    let half_width = student95(n - 1.0) * (squares * n / (n - 1.0)).sqrt() / steps;
    let verdict = match (gain - half_width, gain + half_width) {
        (low, _) if low > 0.0 => MemoryVerdict::Helps,
        (_, high) if high < NEGLIGIBLE => MemoryVerdict::NoEvidence,
        _ => MemoryVerdict::Unclear,
    };
    let often = |i: usize| choices.iter().filter(|&&choice| choice == i).count() as f64;
    let length = 1 + argmax((0..LONGEST).map(often)).0;
    Memory { verdict, gain, half_width, length, parts: gains.len(), blocks, steps: steps as usize }
}

/// 97.5 % quantile of Student's t with at least 9 degrees of freedom, by the first terms of its
/// expansion around the normal quantile (Abramowitz and Stegun 26.7.5); the error is below 0.001.
fn student95(freedom: f64) -> f64 {
    let [z, z3, z5, z7] = [1, 3, 5, 7].map(|k| Z95.powi(k));
    let terms = [(z3 + z) / 4.0, (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0, (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / 384.0];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (freedom, quantile) in [(9.0, 2.262), (19.0, 2.093), (39.0, 2.023)] {
            assert!((student95(freedom) - quantile).abs() < 1e-3, "{freedom}");
        }
    }

    #[test]
    fn a_fold_is_never_trained_on_its_own_steps_nor_near_them() {
        use crate::data::{ActionObservation, End};
        let z = |n: usize| Trajectory {
            steps: vec![ActionObservation::new(0, 0); n],
            rewards: vec![None; n],
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        };
        for episodes in [vec![z(700)], vec![z(80); 9], vec![z(5); 50], vec![z(3), z(1000), z(41)]] {
            let steps = episodes.iter().map(|z| z.steps.len()).sum();
            let parts = parts(&episodes, steps);
            assert_eq!(parts.iter().map(|part| part.range.len()).sum::<usize>(), steps, "every step is in one part");
            for (part, fold) in parts.iter().flat_map(|part| (0..FOLDS).map(move |fold| (part, fold))) {
                let here: Vec<Part> = parts.iter().filter(|other| other.episode == part.episode).cloned().collect();
                let trained = training(&here, fold);
                let is_near = |range: &Range<usize>| {
                    !range.is_empty() && range.start < part.range.end + GAP && part.range.start < range.end + GAP
                };
                assert!(part.fold != fold || !trained.iter().any(is_near), "{:?} {trained:?}", part.range);
            }
        }
    }
}
