//! Comparison of a model with a baseline, step by step on the same logs.

use serde::Serialize;

use crate::math::PerStepMean;

/// Smaller differences are rounding errors, nats per step.
const ROUNDING: f64 = 1e-9;

/// How much better than another predictor a model predicts the same steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The other predictor: a baseline, or `truth` for the exact model.
    pub name: String,
    /// Mean log-likelihood of a step under the model minus that under the other, nats.
    pub difference: f64,
    /// Half the width of its 95 % interval; none where the logs are too short for one.
    pub ci95: Option<f64>,
    /// How many episodes the interval is computed from, or groups where the logs have them, or blocks
    /// of consecutive steps where there are few episodes.
    pub blocks: u64,
}

/// What an interval says about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The model is better beyond noise: the interval is above 0.
    Better,
    /// The interval contains 0.
    WithinNoise,
    /// The model is worse beyond noise: the interval is below 0.
    Worse,
}

impl Comparison {
    pub(super) fn new(name: impl Into<String>, found: PerStepMean) -> Comparison {
        Comparison { name: name.into(), difference: found.mean, ci95: found.ci95, blocks: found.blocks }
    }

    /// Whether the difference is larger than its noise; none without an interval.
    pub fn verdict(&self) -> Option<Verdict> {
        let noise = self.ci95?.max(ROUNDING);
        Some(match self.difference {
            d if d > noise => Verdict::Better,
            d if d < -noise => Verdict::Worse,
            _ => Verdict::WithinNoise,
        })
    }
}

/// The verdict on a model given its comparisons with baselines, and the baseline that decides it:
/// among those with the worst verdict the one that predicts best. None without intervals.
pub(super) fn against_all<'c>(baselines: impl Iterator<Item = &'c Comparison>) -> Option<(Verdict, &'c Comparison)> {
    let judged = baselines.filter_map(|baseline| Some((baseline.verdict()?, baseline)));
    judged.max_by(|(x, of_x), (y, of_y)| (*x as u8).cmp(&(*y as u8)).then(of_y.difference.total_cmp(&of_x.difference)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(name: &str, difference: f64, ci95: Option<f64>) -> Comparison {
        Comparison { name: name.into(), difference, ci95, blocks: 30 }
    }

    #[test]
    fn a_verdict_needs_an_interval_without_zero() {
        let verdict = |difference, ci95| comparison("", difference, ci95).verdict();
        assert_eq!(verdict(0.3, Some(0.2)), Some(Verdict::Better));
        assert_eq!(verdict(-0.3, Some(0.2)), Some(Verdict::Worse));
        assert_eq!([verdict(0.1, Some(0.2)), verdict(-0.1, Some(0.2))], [Some(Verdict::WithinNoise); 2]);
        assert_eq!(verdict(-0.3, None), None);
        assert_eq!(verdict(-1e-16, Some(0.0)), Some(Verdict::WithinNoise), "rounding");
    }

    #[test]
    fn the_strongest_baseline_decides() {
        let decides = |all: &[Comparison]| against_all(all.iter()).map(|(verdict, by)| (verdict, by.name.clone()));
        let [far, near] = [comparison("uniform", 0.5, Some(0.1)), comparison("ngram-1", 0.3, Some(0.1))];
        let noisy = comparison("ngram-2", 0.4, Some(0.6));
        let [worse, worst] = [comparison("ngram-3", -0.2, Some(0.1)), comparison("ngram-4", -0.3, Some(0.1))];
        assert_eq!(decides(&[far.clone(), near.clone()]), Some((Verdict::Better, "ngram-1".into())));
        assert_eq!(decides(&[far.clone(), near, noisy.clone()]), Some((Verdict::WithinNoise, "ngram-2".into())));
        assert_eq!(decides(&[worse, worst, noisy, far]), Some((Verdict::Worse, "ngram-4".into())));
        assert_eq!(decides(&[comparison("uniform", 1.0, None)]), None);
    }
}
