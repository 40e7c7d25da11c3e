//! `foretell score`

mod predictions;

use std::path::PathBuf;

use foretell::judge::{Comparison, EventScore, Uncertainty, Verdict};
use foretell::{Error, HorizonScore, Model, Score, domains, score};
use serde::Serialize;

use crate::input::LogArgs;
use crate::report::{self, count, percent, plural};
use crate::{output, plot};

/// Score a model on held-out logs, and compare it with baselines and the exact model
#[derive(clap::Args)]
pub struct Args {
    /// A model that `foretell learn` wrote
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    input: LogArgs,
    /// Domain that the logs come from; its exact model is scored too
    #[arg(long, value_name = "DOMAIN")]
    truth: Option<String>,
    /// Weight of the n-gram in predictions, instead of the model's own
    #[arg(long, value_name = "W")]
    mix: Option<f64>,
    /// Write a row for each step to this file: the probability of what came, of each observation,
    /// and the entropy; its extension sets the format
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    /// Score the prediction of an event, such as correct=1: a symbol, or the value of a column
    #[arg(long, value_name = "EVENT")]
    auc: Vec<String>,
    /// Plot log-likelihood by horizon to this file, .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    args.plot.as_deref().map_or(Ok(()), foretell_plots::check_name)?;
    let outputs: Vec<&PathBuf> = args.plot.iter().chain(&args.predictions).collect();
    if !outputs.is_empty() {
        let mut inputs = args.input.files()?;
        inputs.extend(args.truth.iter().map(PathBuf::from).chain([args.model.clone()]));
        output::check(outputs, &inputs)?;
    }
    let mut model = crate::input::model(&args.model)?;
    if let Some(mix) = args.mix {
        model = model.with_mix(mix)?;
    }
    let truth = args.truth.as_deref().map(domains::get).transpose()?;
    let pomdp = match &truth {
        Some(domain) => Some(domain.pomdp().ok_or_else(|| anyhow::anyhow!("{} has no exact model", domain.name))?),
        None => None,
    };
    let input = args.input.open_for(&model.origin().schema)?;
    let score = score(&model, &input.logs, pomdp).map_err(|e| input.blame(e)).map_err(|e| match (&e, &truth) {
        (Error::UnknownSymbol { .. }, Some(truth)) => anyhow::anyhow!("the logs are not of {}: {e}", truth.name),
        _ => e.into(),
    })?;
    if let Some(path) = &args.plot {
        output::plot(&[plot::likelihood(&score)], path)?;
    }
    if let Some(path) = &args.predictions {
        predictions::write(&model, &input.logs, path)?;
    }
    let events = predictions::events(&model, &input.logs, &args.auc)?;
    if args.json {
        return report::json(&WithEvents { score: &score, events: &events });
    }
    if model.alphabet().observes_rewards() {
        report::say("observations include rewards, which are predicted with them")?;
    }
    print(&score, remedy(&model))?;
    if !events.is_empty() {
        predictions::print(&events)?;
    }
    Ok(())
}

/// A score, and those of events.
#[derive(Serialize)]
struct WithEvents<'a> {
    #[serde(flatten)]
    score: &'a Score,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    events: &'a [EventScore],
}

/// Horizons get a row if this many episodes reach them, or if none has that many.
const ENOUGH: u64 = 30;
/// Maximum number of rows by horizon.
const ROWS: usize = 10;

/// The horizons that get a row: first and last, and between them ever fewer, with a constant ratio.
fn shown(horizons: &[HorizonScore]) -> Vec<&HorizonScore> {
    let enough = horizons.iter().take_while(|h| h.episodes >= ENOUGH).count();
    let last = if enough > 0 { enough } else { horizons.len() };
    let spaced = |i: usize| (last as f64).powf(i as f64 / (ROWS - 1) as f64).round() as usize;
    let mut rows: Vec<usize> = if last <= ROWS { (1..=last).collect() } else { (0..ROWS).map(spaced).collect() };
    rows.dedup();
    rows.into_iter().map(|n| &horizons[n - 1]).collect()
}

/// Four decimals, or more where a small number would become zero.
fn nats(x: f64) -> String {
    if x != 0.0 && x.abs() < 0.5e-4 { format!("{x:.1e}") } else { format!("{x:.4}") }
}

/// A number with half its interval, if it has one.
fn with_ci95(x: f64, ci95: Option<f64>) -> String {
    match ci95 {
        Some(half) => format!("{} ± {}", nats(x), nats(half)),
        None => nats(x),
    }
}

/// A number that may be missing.
fn or_dash(x: Option<f64>, text: impl Fn(f64) -> String) -> String {
    x.map_or("–".into(), text)
}

fn print(s: &Score, remedy: &str) -> anyhow::Result<()> {
    let per_step = with_ci95(s.per_step, s.per_step_ci95);
    report::say(format!("{}, {}: {per_step} nats per step", plural(s.episodes, "episode"), plural(s.steps, "step")))?;
    print_comparisons(s, remedy)?;
    print_horizons(s)?;

    let rows =
        s.calibration.iter().map(|b| vec![format!("{:.3}", b.predicted), format!("{:.3}", b.observed), count(b.predictions)]);
    report::say("\ncalibration: predicted probability and observed frequency")?;
    report::say(report::table(&["predicted", "observed", "predictions"], rows))?;

    if let Some(Uncertainty { spread, coverage, .. }) = s.uncertainty {
        let covered = coverage.map(|share| {
            format!("; an interval of two spreads contains the true probability in {} of the predictions", percent(share))
        });
        report::say(format!("\nthe ensemble's mean spread is {spread:.4}{}", covered.unwrap_or_default()))?;
    }
    report::say(format!("\nfilter lost {}, {} of steps", plural(s.lost, "time"), percent(s.lost as f64 / s.steps as f64)))?;
    if s.missing > 0 {
        report::say(format!(
            "{} had no observation, or only parts of it, and are not scored",
            plural(s.missing, "further step")
        ))?;
    }
    if let Some(warning) = s.learned_from.and_then(|found| found.warning()) {
        report::say(format!("warning: {warning}"))?;
    }
    if s.unseen > 0 {
        report::say(format!("{} had an action or observation that was not seen in training", plural(s.unseen, "step")))?;
    }
    if s.unseen as f64 > MUCH_UNSEEN * s.steps as f64 {
        report::say("warning: this is most of the steps; are these logs of the same system?")?;
    }
    Ok(())
}

/// Fraction of steps with unknown symbols above which the logs are probably of another system.
const MUCH_UNSEEN: f64 = 0.5;

fn print_comparisons(s: &Score, remedy: &str) -> anyhow::Result<()> {
    let row = |c: &Comparison| vec![c.name.clone(), format!("{:+.4}", c.difference), or_dash(c.ci95, nats), count(c.blocks)];
    let is_cut = s.comparisons.iter().any(|c| c.blocks != s.episodes);
    let units = if is_cut { "blocks" } else { "episodes" };
    report::say("\ndifference from other predictors on the same steps, nats per step; above 0 the model is better")?;
    report::say(report::table(&["predictor", "difference", "± 95 %", units], s.comparisons.iter().map(row)))?;
    report::say(verdict(s, remedy))?;
    Ok(())
}

fn print_horizons(s: &Score) -> anyhow::Result<()> {
    let mut header = vec!["horizon", "episodes", "model", "± 95 %"];
    let mut columns: Vec<&[HorizonScore]> = Vec::new();
    if let Some(truth) = &s.truth {
        header.push("truth");
        columns.push(truth);
    }
    for (name, scores) in &s.baselines {
        header.push(name);
        columns.push(scores);
    }
    let three = |x: f64| format!("{x:.3}");
    let rows = shown(&s.horizons).into_iter().map(|h| {
        let mut row = vec![h.horizon.to_string(), count(h.episodes), three(h.log_likelihood), or_dash(h.ci95, three)];
        row.extend(columns.iter().map(|c| three(c[h.horizon - 1].log_likelihood)));
        row
    });
    report::say("\nlog-likelihood ln P(o_1..n || a_1..n), nats, mean over episodes of at least n steps; higher is better")?;
    report::say(report::table(&header, rows))?;
    Ok(())
}

/// Whether the model predicts better than the baselines and, if not, what to do.
fn verdict(s: &Score, remedy: &str) -> String {
    let Some((verdict, baseline)) = s.verdict() else {
        return "the logs are too short to tell whether the model is better than the baselines: score it on more steps".into();
    };
    let name = &baseline.name;
    let by = |difference: f64| format!("{} nats per step", with_ci95(difference, baseline.ci95));
    match verdict {
        Verdict::Better => {
            format!(
                "the model predicts better than all baselines; the best of them is {name}, {} behind",
                by(baseline.difference)
            )
        }
        Verdict::WithinNoise => {
            format!("no baseline is better beyond noise; {name} is within noise, the difference is {}", by(baseline.difference))
        }
        Verdict::Worse => {
            format!("warning: {name} predicts better than the model by {}: {remedy}", by(-baseline.difference))
        }
    }
}

/// What to do if a baseline predicts better.
fn remedy(model: &Model) -> &'static str {
    match model.mixture().is_some() || model.linear().is_none() {
        true => "learn from more episodes",
        false => "learn without --refine, --mix and --only, so that n-grams are weighed too, or from more episodes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn horizons(episodes: impl Fn(usize) -> u64, last: usize) -> Vec<HorizonScore> {
        let score = |n| HorizonScore { horizon: n, log_likelihood: -1.0, ci95: None, episodes: episodes(n) };
        (1..=last).map(score).collect()
    }

    fn rows(horizons: &[HorizonScore]) -> Vec<usize> {
        shown(horizons).iter().map(|h| h.horizon).collect()
    }

    #[test]
    fn about_ten_horizons_have_a_row_however_long_the_episodes() {
        assert_eq!(rows(&horizons(|_| ENOUGH, 1000)), [1, 2, 5, 10, 22, 46, 100, 215, 464, 1000]);
        assert_eq!(rows(&horizons(|_| ENOUGH, 7)), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(rows(&horizons(|_| 1, 100_000)).len(), ROWS, "a single episode");
        assert_eq!(rows(&horizons(|n| if n > 50 { 3 } else { 100 }, 800)).last(), Some(&50), "then too few episodes are left");
    }

    /// A score against ngram-0 to ngram-3, of which ngram-3 is the best.
    fn score(difference: f64, ci95: Option<f64>) -> Score {
        let names = ["uniform", "ngram-0", "ngram-1", "ngram-2", "ngram-3"];
        let compared = |(i, name): (usize, &&str)| {
            let difference = difference + (names.len() - 1 - i) as f64;
            Comparison { name: name.to_string(), difference, ci95, blocks: 30 }
        };
        Score {
            per_step: -1.0,
            per_step_ci95: ci95,
            comparisons: names.iter().enumerate().map(compared).collect(),
            horizons: horizons(|_| 30, 1),
            lost: 0,
            episodes: 30,
            steps: 30,
            unseen: 0,
            missing: 0,
            learned_from: None,
            calibration: vec![],
            uncertainty: None,
            truth: None,
            baselines: names.iter().map(|name| (name.to_string(), horizons(|_| 30, 1))).collect(),
        }
    }

    #[test]
    fn only_a_model_that_is_worse_beyond_noise_gets_a_warning() {
        let says = |difference, ci95| verdict(&score(difference, ci95), "learn again");
        assert_eq!(
            says(-0.3, Some(0.1)),
            "warning: ngram-3 predicts better than the model by 0.3000 ± 0.1000 nats per step: learn again"
        );
        assert_eq!(
            says(-0.05, Some(0.1)),
            "no baseline is better beyond noise; ngram-3 is within noise, the difference is -0.0500 ± 0.1000 nats per step"
        );
        assert_eq!(
            says(0.3, Some(0.1)),
            "the model predicts better than all baselines; the best of them is ngram-3, 0.3000 ± 0.1000 nats per step behind"
        );
        assert!(says(-0.3, None).starts_with("the logs are too short"));
    }

    #[test]
    fn small_numbers_do_not_become_zero() {
        assert_eq!([nats(0.0), nats(-0.25), nats(0.00001)], ["0.0000", "-0.2500", "1.0e-5"]);
    }
}
