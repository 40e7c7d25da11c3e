//! Returns of episodes, with intervals.

use serde::{Deserialize, Serialize};

use crate::data::{End, Trajectory};
use crate::math::{Mean, Z95};

/// Returns of episodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Returns {
    /// Number of episodes.
    pub episodes: u64,
    /// Mean sum of rewards.
    pub mean_return: f64,
    /// Half the width of its 95 % interval; `None` for fewer than two episodes.
    pub ci95: Option<f64>,
    /// Mean Σ_t γ^(t−1) r_t.
    pub discounted_return: f64,
    /// Half the width of its 95 % interval; `None` for fewer than two episodes.
    pub discounted_ci95: Option<f64>,
    /// Mean number of steps.
    pub mean_length: f64,
    /// Share of the episodes that terminated.
    pub terminated: f64,
}

impl Returns {
    /// The returns of these episodes; a missing reward counts as 0.
    pub fn of(episodes: impl IntoIterator<Item = Trajectory>, discount: f64) -> Returns {
        let (mut plain, mut discounted) = (Mean::default(), Mean::default());
        let (mut steps, mut terminated) = (0.0, 0.0);
        for z in episodes {
            let (mut sum, mut weighted, mut weight) = (0.0, 0.0, 1.0);
            for reward in z.rewards.iter().map(|reward| reward.unwrap_or(0.0)) {
                sum += reward;
                weighted += weight * reward;
                weight *= discount;
            }
            plain.add(sum);
            discounted.add(weighted);
            steps += z.steps.len() as f64;
            terminated += if z.end == End::Terminated { 1.0 } else { 0.0 };
        }
        let n = plain.count().max(1.0);
        let interval = |of: &Mean| (of.count() > 1.0).then(|| of.ci95());
        Returns {
            episodes: plain.count() as u64,
            mean_return: plain.mean(),
            ci95: interval(&plain),
            discounted_return: discounted.mean(),
            discounted_ci95: interval(&discounted),
            mean_length: steps / n,
            terminated: terminated / n,
        }
    }

    /// The returns of several samples pooled.
    pub fn pooled(samples: &[Returns]) -> Returns {
        let n: f64 = samples.iter().map(|r| r.episodes as f64).sum();
        let mean = |x: fn(&Returns) -> f64| samples.iter().map(|r| r.episodes as f64 / n * x(r)).sum::<f64>();
        // n·variance of the mean: of each sample, and of the means of samples around the common one
        let ci95 = |x: fn(&Returns) -> f64, ci: fn(&Returns) -> Option<f64>| {
            let all = mean(x);
            let squares: f64 = samples
                .iter()
                .map(|r| {
                    let n = r.episodes as f64;
                    n * (n - 1.0) * (ci(r).unwrap_or(0.0) / Z95).powi(2) + n * (x(r) - all).powi(2)
                })
                .sum();
            (n > 1.0).then(|| Z95 * (squares / (n - 1.0) / n).sqrt())
        };
        Returns {
            episodes: n as u64,
            mean_return: mean(|r| r.mean_return),
            ci95: ci95(|r| r.mean_return, |r| r.ci95),
            discounted_return: mean(|r| r.discounted_return),
            discounted_ci95: ci95(|r| r.discounted_return, |r| r.discounted_ci95),
            mean_length: mean(|r| r.mean_length),
            terminated: mean(|r| r.terminated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ActionObservation;

    fn episode(rewards: &[f64], end: End) -> Trajectory {
        let steps = vec![ActionObservation::new(0, 0); rewards.len()];
        Trajectory {
            steps,
            rewards: rewards.iter().map(|&r| Some(r)).collect(),
            action_probabilities: vec![],
            end,
            about: Default::default(),
        }
    }

    #[test]
    fn returns_are_sums_with_and_without_discount() {
        let episodes = [episode(&[1.0, 2.0, 4.0], End::Terminated), episode(&[3.0], End::Truncated)];
        let returns = Returns::of(episodes, 0.5);
        assert_eq!((returns.episodes, returns.mean_length, returns.terminated), (2, 2.0, 0.5));
        assert_eq!((returns.mean_return, returns.discounted_return), (5.0, 3.0));
        // 7 and 3 have the standard deviation √8, their mean a standard error of 2.
        assert!((returns.ci95.unwrap() - 2.0 * Z95).abs() < 1e-12);
        assert_eq!(returns.discounted_ci95, Some(0.0));
    }

    #[test]
    fn pooled_samples_are_one_sample() {
        let episodes: Vec<Trajectory> =
            (0..30).map(|i| episode(&vec![f64::from(i % 7); i as usize % 4 + 1], End::Truncated)).collect();
        let all = Returns::of(episodes.clone(), 0.9);
        let parts = [&episodes[..10], &episodes[10..12], &episodes[12..]].map(|part| Returns::of(part.to_vec(), 0.9));
        let pooled = Returns::pooled(&parts);
        let half = |ci95: Option<f64>| ci95.unwrap();
        let numbers = |r: &Returns| [r.mean_return, half(r.ci95), r.discounted_return, half(r.discounted_ci95), r.mean_length];
        assert!(numbers(&all).iter().zip(numbers(&pooled)).all(|(x, y)| (x - y).abs() < 1e-12), "{all:?} {pooled:?}");
    }
}
