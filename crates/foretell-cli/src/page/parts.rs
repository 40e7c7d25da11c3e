//! Parts of the page, with names and numbers as shown there.

use foretell::LogValue;
use foretell::data::LearnedFrom;
use foretell::judge::{CalibrationBin, Comparison, Tested, Uncertainty, Verdict};
use foretell::log::{Lengths, Rewards};
use foretell::{HorizonScore, Model, Score, Summary};
use serde::Serialize;

use crate::report::plural;

/// Symbols that have a bar of their own.
const SHOWN: usize = 12;
/// Horizons that fewer episodes reach are left out, unless all are like that: their wide intervals
/// would hide the rest.
const ENOUGH: u64 = 30;
/// Maximum number of points of a line.
const POINTS: usize = 150;
/// Maximum number of singular values: this multiple of those kept, but at least `LEAST`.
const BEYOND: usize = 4;
const LEAST: usize = 60;

/// A log file: its name as given by the user, and its identity.
#[derive(Debug, Serialize)]
pub struct LogFile {
    pub name: String,
    pub bytes: u64,
    pub digest: String,
}

/// Summary of the logs.
#[derive(Debug, Serialize)]
pub struct Data {
    pub files: Vec<LogFile>,
    pub episodes: u64,
    pub steps: u64,
    pub lengths: Option<Lengths>,
    pub terminated: f64,
    pub rewards: Rewards,
    pub actions: Counts,
    pub observations: Counts,
    pub pairs: u64,
    /// Whether every step has the probability of its action.
    pub has_propensities: bool,
    pub skipped: u64,
    pub findings: Vec<String>,
}

/// The most frequent symbols.
#[derive(Debug, Serialize)]
pub struct Counts {
    pub all: usize,
    pub shown: Vec<(String, u64)>,
    /// Count of all other symbols together.
    pub others: u64,
}

impl Counts {
    fn of(mut counts: Vec<(String, u64)>) -> Counts {
        counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let all = counts.len();
        let others = counts.iter().skip(SHOWN).map(|(_, n)| n).sum();
        counts.truncate(SHOWN);
        Counts { all, shown: counts, others }
    }
}

impl Data {
    pub fn of(summary: &Summary, files: Vec<LogFile>) -> Data {
        let observation = |o: &foretell::log::ObservationCount| {
            (if o.terminal { format!("{} [end]", o.name) } else { o.name.clone() }, o.count)
        };
        Data {
            files,
            episodes: summary.episodes,
            steps: summary.steps,
            lengths: summary.lengths,
            terminated: summary.terminated,
            rewards: summary.rewards,
            actions: Counts::of(summary.actions.iter().map(|a| (a.name.clone(), a.count)).collect()),
            observations: Counts::of(summary.observations.iter().map(observation).collect()),
            pairs: summary.distinct_pairs,
            has_propensities: summary.has_action_probabilities,
            skipped: summary.skipped,
            findings: summary.findings.clone(),
        }
    }
}

/// Singular values, and how many of them the model keeps.
#[derive(Debug, Serialize)]
pub struct Spectrum {
    pub values: Vec<f64>,
    /// Total number, shown or not.
    pub all: usize,
    pub rank: usize,
    /// States of the POMDP it was refined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<usize>,
}

impl Spectrum {
    pub fn of(model: &Model) -> Spectrum {
        let (values, rank) = model.linear().map_or((&[][..], 0), |linear| (linear.spectrum(), linear.rank()));
        let shown = values.len().min((BEYOND * rank).max(LEAST));
        let states = model.latent().map(|refined| refined.pomdp.states().len());
        Spectrum { values: values[..shown].to_vec(), all: values.len(), rank, states }
    }
}

/// How well logs are predicted.
#[derive(Debug, Serialize)]
pub struct Foresight {
    pub per_step: f64,
    pub per_step_ci95: Option<f64>,
    /// Differences from the other predictors, as they are named here.
    pub comparisons: Vec<Comparison>,
    /// The baseline that is better beyond noise, if there is one.
    #[serde(skip)]
    pub better: Option<Comparison>,
    pub episodes: u64,
    pub steps: u64,
    pub lost: u64,
    pub unseen: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<LearnedFrom>,
    /// The model first.
    pub lines: Vec<Line>,
    pub calibration: Vec<Reliability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<Uncertainty>,
}

/// What makes predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predictor {
    Model,
    Truth,
    Baseline,
    Uniform,
}

/// Log-likelihood by horizon.
#[derive(Debug, Serialize)]
pub struct Line {
    pub name: String,
    pub who: Predictor,
    pub points: Vec<HorizonScore>,
}

/// A bin of predicted probabilities and its observed frequency, with half a 95 % interval.
#[derive(Debug, Serialize)]
pub struct Reliability {
    #[serde(flatten)]
    pub bin: CalibrationBin,
    pub ci95: f64,
}

impl Foresight {
    pub fn of(score: &Score) -> Foresight {
        let line = |name: &str, who: Predictor, scores: &[HorizonScore]| Line { name: name.into(), who, points: thinned(scores) };
        let mut lines = vec![line("this model", Predictor::Model, &score.horizons)];
        lines.extend(score.truth.iter().map(|truth| line("exact model", Predictor::Truth, truth)));
        let ngrams = score.baselines.iter().filter(|(name, _)| name.starts_with("ngram-"));
        lines.extend(ngrams.map(|(name, scores)| line(&shown_name(name), Predictor::Baseline, scores)));
        lines.extend(score.baselines.get("uniform").map(|scores| line("uniform", Predictor::Uniform, scores)));
        let named = |c: &Comparison| Comparison { name: shown_name(&c.name), ..c.clone() };
        Foresight {
            per_step: score.per_step,
            per_step_ci95: score.per_step_ci95,
            comparisons: score.comparisons.iter().map(named).collect(),
            better: score.verdict().filter(|(verdict, _)| *verdict == Verdict::Worse).map(|(_, baseline)| named(baseline)),
            episodes: score.episodes,
            steps: score.steps,
            lost: score.lost,
            unseen: score.unseen,
            learned_from: score.learned_from,
            lines,
            calibration: score.calibration.iter().map(|&bin| Reliability { bin, ci95: bin.ci95() }).collect(),
            uncertainty: score.uncertainty,
        }
    }

    /// The last horizon that enough episodes reach.
    pub fn last(&self) -> Option<Last<'_>> {
        let model = self.lines.first()?.points.last()?;
        let end = |line: &Line| line.points.last().map_or(f64::NEG_INFINITY, |h| h.log_likelihood);
        let truth = self.lines.iter().find(|line| line.who == Predictor::Truth).map(end);
        let ngrams = self.lines.iter().filter(|line| line.who == Predictor::Baseline);
        let best_ngram = ngrams.map(|line| (line.name.as_str(), end(line))).max_by(|x, y| x.1.total_cmp(&y.1));
        Some(Last { model, truth, best_ngram })
    }
}

/// Log-likelihoods at a horizon, nats.
#[derive(Debug, PartialEq)]
pub struct Last<'f> {
    pub model: &'f HorizonScore,
    pub truth: Option<f64>,
    pub best_ngram: Option<(&'f str, f64)>,
}

/// The name of a predictor on the page.
fn shown_name(name: &str) -> String {
    match name.strip_prefix("ngram-").and_then(|length| length.parse().ok()) {
        Some(0) => "action only".into(),
        Some(length) => format!("n-gram, {}", plural(length, "step")),
        None if name == "truth" => "exact model".into(),
        None => name.into(),
    }
}

/// Horizons that enough episodes reach, thinned out; always with the last of them.
fn thinned(scores: &[HorizonScore]) -> Vec<HorizonScore> {
    let enough = scores.iter().take_while(|h| h.episodes >= ENOUGH).count();
    let scores = if enough > 0 { &scores[..enough] } else { scores };
    let every = scores.len().div_ceil(POINTS).max(1);
    let last = scores.len().saturating_sub(1);
    scores.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, h)| *h).collect()
}

/// Returns of policies in a domain.
#[derive(Debug, Serialize)]
pub struct Earned {
    pub domain: String,
    pub story: String,
    pub episodes: u64,
    pub max_steps: usize,
    pub discount: f64,
    pub policies: Vec<Tested>,
    /// What the baselines were learned from, or why they are missing.
    pub others: String,
    /// The name of our policy among them.
    pub own: String,
    /// Upper bound on the discounted return, even of a policy that sees the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

impl Earned {
    /// The best policy without knowledge of the model, if its discounted return is higher than
    /// ours.
    pub fn better(&self) -> Option<&Tested> {
        let own = self.policies.iter().position(|t| t.policy == self.own)?;
        let earned = |t: &Tested| t.returns.discounted_return;
        let best = self.policies[..own].iter().max_by(|x, y| earned(x).total_cmp(&earned(y)))?;
        (earned(best) > earned(&self.policies[own])).then_some(best)
    }
}

/// The value of a policy, estimated from logs.
#[derive(Debug, Serialize)]
pub struct Estimates {
    #[serde(flatten)]
    pub value: LogValue,
    pub verdict: String,
    pub notes: Vec<String>,
}

impl Estimates {
    pub fn of(value: LogValue) -> Estimates {
        let (verdict, notes) = (value.verdict(), value.notes());
        Estimates { value, verdict, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_too_few_episodes_are_left_and_have_few_points() {
        let score = |horizon: usize, episodes: u64| HorizonScore { horizon, log_likelihood: -1.0, ci95: Some(0.1), episodes };
        let horizons = |scores: &[HorizonScore]| thinned(scores).iter().map(|h| h.horizon).collect::<Vec<_>>();
        let short: Vec<HorizonScore> = (1..=5).map(|n| score(n, if n < 4 { ENOUGH } else { ENOUGH - 1 })).collect();
        assert_eq!(horizons(&short), [1, 2, 3]);
        assert_eq!(horizons(&short[3..]), [4, 5], "few episodes are better than none");
        let long: Vec<HorizonScore> = (1..=1000).map(|n| score(n, ENOUGH)).collect();
        let kept = horizons(&long);
        assert!(kept.len() <= POINTS + 1 && kept[0] == 1 && kept.last() == Some(&1000), "{kept:?}");
    }

    #[test]
    fn rare_symbols_share_a_count() {
        let counts = Counts::of((0..20).map(|i| (format!("o{i}"), i)).collect());
        assert_eq!((counts.all, counts.shown.len(), counts.shown[0].1), (20, SHOWN, 19));
        assert_eq!(counts.others, (0..8).sum::<u64>());
    }

    #[test]
    fn policies_that_know_the_model_are_not_simpler() {
        let tested = |policy: &str, discounted_return: f64| {
            let returns = foretell::Returns { discounted_return, ..Default::default() };
            Tested { policy: policy.into(), returns }
        };
        let earned = |own: f64| Earned {
            domain: String::new(),
            story: String::new(),
            episodes: 1,
            max_steps: 1,
            discount: 1.0,
            policies: vec![tested("random", 1.0), tested("memoryless", 2.0), tested("foretell", own), tested("QMDP", 9.0)],
            others: String::new(),
            own: "foretell".into(),
            bound: None,
        };
        assert_eq!(earned(1.5).better().map(|t| t.policy.as_str()), Some("memoryless"));
        assert!(earned(2.0).better().is_none() && earned(3.0).better().is_none());
    }

    #[test]
    fn the_last_horizon_has_the_truth_and_the_best_n_gram_beside_it() {
        let point = |y: f64, horizon| HorizonScore { horizon, log_likelihood: y * horizon as f64, ci95: Some(0.1), episodes: 99 };
        let points = |y: f64| [point(y, 1), point(y, 2)].to_vec();
        let baselines = [("ngram-0", -4.0), ("ngram-1", -3.0), ("ngram-2", -3.5), ("uniform", -0.5)];
        let score = Score {
            per_step: -1.0,
            per_step_ci95: None,
            comparisons: vec![Comparison { name: "ngram-1".into(), difference: -0.5, ci95: Some(0.1), blocks: 99 }],
            horizons: points(-2.0),
            lost: 0,
            episodes: 99,
            steps: 198,
            unseen: 0,
            missing: 0,
            learned_from: None,
            calibration: vec![],
            uncertainty: None,
            truth: Some(points(-1.0)),
            baselines: baselines.map(|(name, y)| (name.to_string(), points(y))).into(),
        };
        let foresight = Foresight::of(&score);
        let model = &point(-2.0, 2);
        assert_eq!(foresight.last(), Some(Last { model, truth: Some(-2.0), best_ngram: Some(("n-gram, 1 step", -6.0)) }));
        assert_eq!(foresight.better.map(|baseline| baseline.name), Some("n-gram, 1 step".into()));
    }
}
