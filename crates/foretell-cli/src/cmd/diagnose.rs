//! `foretell diagnose`

mod words;

use std::path::PathBuf;

use foretell::judge::diagnose::{Diagnosis, diagnose};
use foretell_plots::{Axis, Chart, Figure, Line, Look, Mark, Point};

use super::RecipeArgs;
use crate::input::LogArgs;
use crate::progress::LearningBar;
use crate::{output, report};

/// Measure what can be learned from logs: coverage, sparsity, supported rank and projection size,
/// error growth
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: LogArgs,
    #[command(flatten)]
    recipe: RecipeArgs,
    /// Plot the spectrum with its noise level, the decay of eigenvalues and the prediction of each
    /// step to this file, .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    if let Some(path) = &args.plot {
        foretell_plots::check_name(path)?;
        output::check([path], &[args.input.files()?, args.recipe.files()].concat())?;
    }
    let input = args.input.open()?;
    let mut bar = LearningBar::new();
    let found = diagnose(&input.logs, &args.recipe.params()?, &mut |progress| bar.tell(progress));
    bar.finish();
    let found = found.map_err(|e| input.blame(e))?;
    if let Some(path) = &args.plot {
        output::plot(&[spectrum(&found), decay(&found), by_step(&found)], path)?;
    }
    if args.json {
        return report::json(&found);
    }
    report::say(words::of(&found))?;
    Ok(())
}

/// Number of directions to draw: twice as many as are used or suggested.
fn drawn(found: &Diagnosis) -> usize {
    let used = found.params.rank.max(found.spectrum.rank.unwrap_or(0));
    found.spectrum.values.len().min((2 * used).max(10))
}

fn line(name: &str, points: impl Iterator<Item = (f64, f64)>, look: Look) -> Line {
    Line { name: name.into(), points: points.map(|(x, y)| Point { x, y, half: 0.0 }).collect(), look }
}

fn numbered(values: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    values.iter().enumerate().map(|(i, &value)| ((i + 1) as f64, value))
}

/// Singular values, those of pure noise, and the suggested rank.
fn spectrum(found: &Diagnosis) -> Figure {
    let (s, drawn) = (&found.spectrum, drawn(found));
    let floor = s.floor.iter().filter(|floor| floor.direction <= drawn).map(|floor| (floor.direction as f64, floor.value));
    let suggested = s.rank.map(|rank| Mark { at: rank as f64, name: format!("suggested rank {rank}") });
    let used = (Some(found.params.rank) != s.rank)
        .then(|| Mark { at: found.params.rank as f64, name: format!("rank used {}", found.params.rank) });
    Figure::from(Chart {
        title: "Dependence of the future on the past".into(),
        x: Axis::new("direction"),
        y: Axis::log("singular value"),
        lines: vec![line("moments", numbered(&s.values[..drawn]), Look::Dots), line("noise, 99 %", floor, Look::Dashed)],
        marks: suggested.into_iter().chain(used.filter(|used| used.at <= drawn as f64)).collect(),
    })
}

/// The eigenvalues of Theorem 1, and the variation beyond the leading ones.
fn decay(found: &Diagnosis) -> Figure {
    let decay = &found.decay;
    let drawn = drawn(found).min(decay.eigenvalues.len());
    let share = |value: f64| value / decay.total;
    let eigenvalues = numbered(&decay.eigenvalues[..drawn]).map(|(i, value)| (i, share(value)));
    let left_out = (1..=drawn).map(|m| (m as f64, share(decay.nu(m))));
    Figure::from(Chart {
        title: "Decay of eigenvalues".into(),
        x: Axis::new("direction"),
        y: Axis::log("fraction of the variation"),
        lines: vec![line("this direction", eigenvalues, Look::Dots), line("all later directions", left_out, Look::Line)],
        marks: vec![],
    })
}

/// Prediction of each step.
fn by_step(found: &Diagnosis) -> Figure {
    let steps = || found.by_step.iter().filter(|step| step.episodes >= words::ENOUGH);
    let lines = vec![
        line("model", steps().map(|s| (s.step as f64, s.model)), Look::Line),
        line("best n-gram", steps().map(|s| (s.step as f64, s.ngram)), Look::Dashed),
    ];
    Figure::from(Chart {
        title: "Error growth: log-likelihood of each held-out step".into(),
        x: Axis::new("step of the episode"),
        y: Axis::new("mean ln P(o || a) of this step, nats"),
        lines,
        marks: vec![],
    })
}
