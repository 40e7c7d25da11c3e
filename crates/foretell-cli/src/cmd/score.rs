//! `foretell score`

use std::path::PathBuf;

use foretell::judge::Uncertainty;
use foretell::{Error, HorizonScore, Model, Score, domains, score};

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
    /// Plot log-likelihood by horizon to this file, .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    if let Some(path) = &args.plot {
        foretell_plots::check_name(path)?;
        output::check(path)?;
    }
    let mut model = Model::load(&args.model)?;
    if let Some(mix) = args.mix {
        model = model.with_mix(mix)?;
    }
    let truth = args.truth.as_deref().map(domains::get).transpose()?;
    let pomdp = match &truth {
        Some(domain) => Some(domain.pomdp().ok_or_else(|| anyhow::anyhow!("{} has no exact model", domain.name))?),
        None => None,
    };
    let input = args.input.open()?;
    let score = score(&model, &input.logs, pomdp).map_err(|e| input.blame(e)).map_err(|e| match (&e, &truth) {
        (Error::UnknownSymbol { .. }, Some(truth)) => anyhow::anyhow!("the logs are not of {}: {e}", truth.name),
        _ => e.into(),
    })?;
    if let Some(path) = &args.plot {
        foretell_plots::save(&[plot::likelihood(&score)], path)?;
    }
    if args.json {
        return report::json(&score);
    }
    print(&score, model.latent().is_some())
}

/// Horizons that get a row: the first five, then fewer and fewer, and the last.
fn shown(last: usize) -> impl Fn(usize) -> bool {
    move |n| n <= 5 || n == last || [7, 10, 13, 15, 20, 30, 50, 75].contains(&n) || n.is_multiple_of(100)
}

fn print(s: &Score, is_refined: bool) -> anyhow::Result<()> {
    report::say(format!("{}, {}: {:.4} nats per step", plural(s.episodes, "episode"), plural(s.steps, "step"), s.per_step))?;
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
    let last = s.horizons.len();
    let rows = s.horizons.iter().filter(|h| shown(last)(h.horizon)).map(|h| {
        let mut row =
            vec![h.horizon.to_string(), count(h.episodes), format!("{:.3}", h.log_likelihood), format!("{:.3}", h.ci95)];
        row.extend(columns.iter().map(|c| format!("{:.3}", c[h.horizon - 1].log_likelihood)));
        row
    });
    report::say("\nlog-likelihood ln P(o_1..n || a_1..n), nats, mean over episodes of at least n steps; higher is better")?;
    report::say(report::table(&header, rows))?;

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
    if let Some(advice) = verdict(s, is_refined) {
        report::say(advice)?;
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

/// Advice if a baseline predicts better than the model at the last horizon that enough episodes
/// reach.
fn verdict(s: &Score, is_refined: bool) -> Option<String> {
    const ENOUGH: u64 = 30;
    let last = s.horizons.iter().rev().find(|h| h.episodes >= ENOUGH)?;
    let at = |scores: &[HorizonScore]| scores[last.horizon - 1].log_likelihood;
    let (name, best) = s.baselines.iter().map(|(name, scores)| (name, at(scores))).max_by(|x, y| x.1.total_cmp(&y.1))?;
    (best > last.log_likelihood).then(|| {
        // --mix mixes in the longest one.
        let is_longest = s.baselines.keys().filter(|name| name.starts_with("ngram-")).all(|other| other <= name);
        let remedy = match is_refined {
            true => "refine with fewer --states, or learn from more episodes",
            false if is_longest => "mix it in (--mix 0.2 or more), lower --rank, refine the model, or learn from more episodes",
            false => "lower --rank, refine the model, or learn from more episodes",
        };
        format!(
            "{name} predicts better than the model at horizon {} (the last that {ENOUGH} episodes reach): {remedy}",
            last.horizon
        )
    })
}
