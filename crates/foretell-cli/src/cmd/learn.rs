//! `foretell learn`

use std::path::PathBuf;
use std::time::Instant;

use foretell::{LearnOverrides, LearnParams, Projection, RefineOverrides, RefineParams, learn_with_progress};
use serde_json::json;

use super::Preset;
use crate::input::LogArgs;
use crate::output;
use crate::progress::{LearningBar, RoundsBar};
use crate::report::{self, plural};

/// Learn a predictive model from logs
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: LogArgs,
    /// File to write the model to
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    /// Recipe to start from
    #[arg(long, value_enum, default_value_t = Preset::Default)]
    preset: Preset,
    /// Projection of tests and of histories
    #[arg(long, value_enum)]
    projection: Option<Projection>,
    #[command(flatten)]
    overrides: LearnOverrides,
    /// Refine the model into a proper POMDP, as `foretell refine` does
    #[arg(long)]
    refine: bool,
    #[command(flatten)]
    refinement: RefineOverrides,
    /// Average so many models, and learn as many of halves of the logs, whose spread tells how sure predictions are
    #[arg(long, value_name = "N")]
    ensemble: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let mut params = match args.preset {
        Preset::Default => LearnParams::default(),
        Preset::Paper => LearnParams::paper(),
    };
    if let Some(projection) = args.projection {
        params.test_projection = projection;
        params.history_projection = projection;
    }
    let params = args.overrides.apply(params);
    if !args.refine && args.refinement != RefineOverrides::default() {
        anyhow::bail!("--states, --layout, --em-rounds and --patience are of refinement: give --refine as well");
    }
    let refinement = args.refinement.apply(RefineParams::default());
    refinement.validate()?;

    output::check(&args.output)?;
    args.input.refuse_as_output(&args.output)?;
    let started = Instant::now();
    let input = args.input.open()?;
    let mut bar = LearningBar::new();
    let learned = learn_with_progress(&input.logs, &params, &mut |progress| bar.tell(progress));
    bar.finish();
    let mut model = learned.map_err(|e| input.blame(e))?;
    let mut trace = Vec::new();
    if args.refine {
        (model, trace) = super::refine::refine(&model, &input.logs, &refinement).map_err(|e| input.blame(e))?;
    }
    if let Some(n) = args.ensemble {
        let mut bar = RoundsBar::new("ensemble", (2 * n as u64).saturating_sub(1));
        model = foretell::ensemble(&model, &input.logs, n, &mut |i| bar.tell(i as u64)).map_err(|e| input.blame(e))?;
        bar.finish();
    }
    model.save(&args.output)?;
    let seconds = started.elapsed().as_secs_f64();

    let (episodes, steps) = model.trained_on();
    let output = args.output.display().to_string();
    if args.json {
        let alphabet = model.alphabet();
        return report::json(&json!({
            "model": output, "episodes": episodes, "steps": steps, "skipped": model.skipped(), "seconds": seconds,
            "actions": alphabet.actions().len(), "observations": alphabet.observations().len(), "pairs": model.pairs().len(),
            "ensemble": args.ensemble, "rank": model.rank(), "spectrum": model.spectrum(), "params": model.params(),
            "refined": args.refine.then(|| super::refine::describe(&model, &trace)),
        }));
    }
    report::say(format!("learned from {}, {} in {seconds:.2} s", plural(episodes, "episode"), plural(steps, "step")))?;
    if model.skipped() > 0 {
        report::say(format!("  skipped    {}", plural(model.skipped(), "bad episode")))?;
    }
    let alphabet = model.alphabet();
    let sizes = [alphabet.actions().len(), alphabet.observations().len(), model.pairs().len()].map(|n| n as u64);
    let (actions, observations) = (plural(sizes[0], "action"), plural(sizes[1], "observation"));
    report::say(format!("  alphabet   {actions}, {observations}, {} met", plural(sizes[2], "pair")))?;
    report::say(format!("  rank       {}, singular values {}", model.rank(), spectrum(model.spectrum(), model.rank())))?;
    super::refine::say(&model, &trace, &refinement)?;
    if let Some(n) = args.ensemble {
        report::say(format!("  ensemble   {n} models of all logs and {n} of halves"))?;
    }
    report::say(format!("  model      {output}"))?;
    Ok(())
}

/// The first singular values, and where they are cut.
fn spectrum(values: &[f64], rank: usize) -> String {
    let show = |v: &[f64]| v.iter().map(|s| format!("{s:.3}")).collect::<Vec<_>>().join(" ");
    let kept = &values[..rank.min(values.len())];
    let head = if kept.len() > 4 { format!("{} … {:.3}", show(&kept[..3]), kept[kept.len() - 1]) } else { show(kept) };
    match values.get(rank) {
        Some(next) => format!("{head} (next {next:.3})"),
        None => head,
    }
}
