//! `foretell update`

use std::path::PathBuf;
use std::time::Instant;

use foretell::data::Digest;
use foretell::store::digest;
use foretell::{Alphabet, Keep, Learner, Model, Moments};
use serde_json::json;

use super::learn::{self, Memory};
use crate::checkpoint::{self, CheckpointArgs, report_if_resumed};
use crate::input::LogArgs;
use crate::progress::LearningBar;
use crate::{output, report};

/// Add new logs to a model that `foretell learn --keep-moments` wrote; the old logs are not needed
#[derive(clap::Args)]
pub struct Args {
    /// A model that keeps moments
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    input: LogArgs,
    /// File to write the new model to; may be the old one
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    #[command(flatten)]
    memory: Memory,
    /// Compress exact moments if they no longer fit into --memory, instead of stopping
    #[arg(long)]
    compress: bool,
    #[command(flatten)]
    checkpoint: CheckpointArgs,
    /// Add logs even if the model was learned from them before; their episodes then count twice
    #[arg(long)]
    again: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Episodes that are looked at before the work, to refuse logs that were learned from before.
const FIRST: usize = 10_000;

pub fn run(args: Args) -> anyhow::Result<()> {
    output::check([&args.output], &args.input.files()?)?;
    args.checkpoint.refuse_standard_input(&args.input)?;
    args.checkpoint.refuse_same(&args.model, &args.output)?;
    let _lock = output::lock(&args.output)?;
    let started = Instant::now();
    let old = crate::input::model(&args.model)?;
    let moments = Moments::load(&args.model)?;
    let input = args.input.open_for(&old.origin().schema)?;
    if !args.again {
        let mut reader = input.logs.open(Alphabet::default()).map_err(|e| input.blame(e))?;
        let first = reader.by_ref().take(FIRST).collect::<foretell::Result<Vec<_>>>().map_err(|e| input.blame(e))?;
        old.origin().digest.refuse_again(&Digest::of(reader.alphabet(), &first))?;
    }
    let mut checkpoint = args.checkpoint.open(|| {
        let model = std::fs::read(&args.model).map_err(foretell::Error::io("read", &args.model))?;
        let (logs, memory) = (input.logs.identity()?, args.memory.bytes());
        Ok(json!({ "verb": "update", "model": digest(&model), "logs": logs, "memory": memory, "compress": args.compress }))
    })?;
    let keep = if moments.is_exact() && !args.compress { Keep::Exact } else { Keep::Fitting };
    let mut bar = LearningBar::new();
    let mut tell = |progress| bar.tell(progress);
    let mut learner = Learner::new(moments.params()).keep(keep).memory(args.memory.bytes()).progress(&mut tell);
    if let Some(checkpoint) = &mut checkpoint {
        learner = learner.checkpoint(report_if_resumed(checkpoint));
    }
    let learned = learner.update(moments, &input.logs);
    bar.finish();
    let mut learned = learned.map_err(|e| input.blame(e))?;
    let more = learned.digest.clone().map_or_else(|| input.logs.digest(), Ok).map_err(|e| input.blame(e))?;
    let more = if args.again { more.without(&old.origin().digest) } else { more };
    old.origin().digest.refuse_again(&more)?;
    learned.model = learned.model.continuing(&old, &more);
    learn::save(&learned.model, learned.moments.as_ref(), &args.output)?;
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        let mut report = learn::describe(&learned.model, &learned, seconds);
        report["model"] = json!(args.output);
        report::json(&report)?;
    } else {
        learn::say(&learned.model, &learned, seconds)?;
        report_added(&old, &learned.model)?;
        report_dropped(&[old])?;
        report::say(format!("  model      {}", args.output.display()))?;
    }
    checkpoint::finish(checkpoint)
}

/// Reports what the new logs added.
fn report_added(old: &Model, new: &Model) -> anyhow::Result<()> {
    let more = |before: u64, now: u64, noun: &str| report::plural(now - before, noun);
    let ((episodes, steps), (all_episodes, all_steps)) = (old.trained_on(), new.trained_on());
    let mut added = vec![more(episodes, all_episodes, "episode"), more(steps, all_steps, "step")];
    let symbols = |model: &Model| [model.alphabet().actions().len(), model.alphabet().observations().len()];
    for ((before, now), noun) in symbols(old).into_iter().zip(symbols(new)).zip(["new action", "new observation"]) {
        if now > before {
            added.push(more(before as u64, now as u64, noun));
        }
    }
    report::say(format!("  added      {}", added.join(", ")))?;
    Ok(())
}

/// Reports the parts of models that are not carried over: all but the linear one.
pub fn report_dropped(models: &[Model]) -> anyhow::Result<()> {
    if models.iter().any(|model| model.mixture().is_some()) {
        report::say("  mixture    dropped, as its weights need held-out logs; run `foretell learn` on all logs again")?;
    } else if models.iter().any(|model| model.latent().is_some()) {
        report::say("  refined    dropped, as refinement needs the logs themselves; run `foretell refine` again")?;
    }
    if models.iter().any(|model| model.ensemble().is_some()) {
        report::say("  ensemble   dropped, as an ensemble needs the logs themselves; run `foretell learn --ensemble` again")?;
    }
    Ok(())
}
