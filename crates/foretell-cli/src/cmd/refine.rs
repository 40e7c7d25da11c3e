//! `foretell refine`

use std::path::PathBuf;
use std::time::Instant;

use foretell::model::StateLayout;
use foretell::refine::EmRound;
use foretell::store::digest;
use foretell::{Checkpoint, Logs, Model, Moments, RefineOverrides, RefineParams, Refinement, StopReason};
use serde_json::{Value, json};

use crate::checkpoint::{self, CheckpointArgs, report_resumed};
use crate::input::LogArgs;
use crate::progress::RefiningBar;
use crate::{output, report};

/// Refine a model into a POMDP: more accurate predictions, and a model that any POMDP solver can
/// use
#[derive(clap::Args)]
pub struct Args {
    /// A model that `foretell learn` wrote
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    input: LogArgs,
    /// File to write the refined model to; may be the old one
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    #[command(flatten)]
    overrides: RefineOverrides,
    #[command(flatten)]
    checkpoint: CheckpointArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let params = args.overrides.apply(RefineParams::default());
    params.validate()?;
    output::check([&args.output], &args.input.files()?)?;
    args.checkpoint.refuse_standard_input(&args.input)?;
    args.checkpoint.refuse_same(&args.model, &args.output)?;
    let started = Instant::now();
    let model = crate::input::model(&args.model)?;
    let input = args.input.open_for(&model.origin().schema)?;
    let is_ensemble = model.ensemble().is_some();
    let mut checkpoint = args.checkpoint.open(|| {
        let logs = input.logs.identity()?;
        Ok(json!({ "verb": "refine", "model": digest(&model.to_bytes()), "logs": logs, "parameters": params }))
    })?;
    let refined = refine(&model, &input.logs, &params, checkpoint.as_mut());
    let (model, trace, stopped) = refined.map_err(|e| input.blame(e))?;
    super::learn::save(&model, Moments::load_kept(&args.model)?.as_ref(), &args.output)?;
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        let mut report = describe(&model, &trace);
        report["model"] = json!(args.output);
        report["seconds"] = json!(seconds);
        report::json(&report)?;
    } else {
        report::say(format!("refined in {seconds:.2} s"))?;
        if is_ensemble {
            report::say(
                "  ensemble   dropped, as its models are linear; `foretell learn --refine --ensemble N` refines all of them",
            )?;
        }
        say(&model, &trace, stopped)?;
        advise(&model)?;
        report::say(format!("  model      {}", args.output.display()))?;
    }
    checkpoint::finish(checkpoint)
}

/// Refines with a progress bar, and resumes from a checkpoint if there is one; also returns the
/// rounds.
pub fn refine(
    model: &Model,
    logs: &Logs,
    params: &RefineParams,
    checkpoint: Option<&mut Checkpoint>,
) -> foretell::Result<(Model, Vec<EmRound>, Option<StopReason>)> {
    let mut refinement = Refinement::new(model, logs, params)?;
    if let Some(checkpoint) = checkpoint {
        let folder = checkpoint.folder().to_path_buf();
        refinement = refinement.checkpointed(checkpoint)?;
        let done = refinement.trace().len() as u64;
        if done > 0 {
            report_resumed(&folder, &format!("{} of EM done", report::plural(done, "round")));
        }
    }
    let mut bar = RefiningBar::new();
    for round in refinement.by_ref() {
        bar.tell(&round?);
    }
    bar.finish();
    let (trace, stopped) = (refinement.trace().to_vec(), refinement.stopped());
    Ok((refinement.finish()?, trace, stopped))
}

/// The result as text.
pub fn say(model: &Model, trace: &[EmRound], stopped: Option<StopReason>) -> anyhow::Result<()> {
    let Some(latent) = model.latent() else { return Ok(()) };
    let kind = match latent.candidate.layout {
        StateLayout::Owned | StateLayout::Merged | StateLayout::Auto => "each emits one observation",
        StateLayout::Free | StateLayout::Dense => "each emits several observations",
        StateLayout::Sensing => "each emits several observations, by the action that led to it",
        StateLayout::Modes => "each is an observation and a hidden mode",
    };
    report::say(format!("  states     {}: {kind}", latent.pomdp.states().len()))?;
    // The number of states may grow in the course of a fit.
    let is_same_fit =
        |x: &EmRound, y: &EmRound| x.candidate.layout == y.candidate.layout && x.trial == y.trial && x.round < y.round;
    let fits: Vec<&[EmRound]> = trace.chunk_by(is_same_fit).collect();
    let best = |rounds: &[EmRound]| rounds.iter().filter_map(|round| round.held_out).fold(f64::NEG_INFINITY, f64::max);
    let is_like = |round: &EmRound| !round.trial && round.candidate == latent.candidate;
    let chosen = |rounds: &&&[EmRound]| rounds.iter().any(is_like);
    let tried = fits.iter().filter(|rounds| fits.len() > 1 && (rounds[0].trial || fits.iter().all(|fit| !fit[0].trial)));
    let tried: Vec<String> = tried.map(|rounds| format!("{} {:.3}", name(&rounds[rounds.len() - 1]), best(rounds))).collect();
    if !tried.is_empty() {
        let share = if fits.iter().any(|fit| fit[0].trial) { ", on part of the logs" } else { "" };
        let all = tried.join(", ");
        report::say(format!("  tried      --layout and number of states, nats per held-out step{share}: {all}"))?;
    }
    if let Some(rounds) = fits.iter().filter(chosen).max_by(|x, y| best(x).total_cmp(&best(y))) {
        let held_out = match best(rounds) {
            best if best.is_finite() => format!(", {best:.4} held out"),
            _ => "; too few episodes to hold any out, so expect little".to_string(),
        };
        let last = rounds[rounds.len() - 1];
        let number = report::plural(last.round as u64, "round");
        report::say(format!("  EM         {number}, {:.4} nats per step in training{held_out}", last.training))?;
        if stopped == Some(StopReason::Rounds) && last.held_out.is_some_and(|x| x >= best(rounds)) {
            report::say("             stopped at --em-rounds while still improving; try more")?;
        }
        if stopped == Some(StopReason::Work) {
            report::say(
                "             stopped at its limit of work while still improving; fewer states (--states) would need less",
            )?;
        }
    }
    if latent.forgets_rewards() {
        report::say(
            "  rewards    depend on more than the states: repeating an action in the same state earns less; plan on the logs (--planner fitted-q)",
        )?;
    }
    Ok(())
}

/// Advice to observe rewards, where nothing has decided about it.
pub fn advise(model: &Model) -> anyhow::Result<()> {
    let Some(latent) = model.latent().filter(|latent| latent.wants_rewards_observed()) else { return Ok(()) };
    report::say(format!(
        "  rewards    carry information about the state that observations lack (deviations from the expected reward have correlation {:.2} within an episode); learn with --observe-reward, with rewards rounded to at most 100 values",
        latent.reward_memory
    ))?;
    Ok(())
}

fn name(round: &EmRound) -> String {
    let layout = match round.candidate.layout {
        StateLayout::Owned | StateLayout::Auto => "owned",
        StateLayout::Merged => "merged",
        StateLayout::Free => "free",
        StateLayout::Sensing => "sensing",
        StateLayout::Modes => "modes",
        StateLayout::Dense => "dense",
    };
    format!("{layout} {}", round.candidate.states)
}

/// The result as JSON.
pub fn describe(model: &Model, trace: &[EmRound]) -> Value {
    let latent = model.latent();
    json!({
        "states": latent.map(|latent| latent.pomdp.states().len()), "candidate": latent.map(|latent| latent.candidate),
        "fading": latent.map(|latent| latent.fading), "forgets_rewards": latent.map(|latent| latent.forgets_rewards()),
        "reward_memory": latent.map(|latent| latent.reward_memory),
        "wants_rewards_observed": latent.map(|latent| latent.wants_rewards_observed()),
        "trace": trace,
    })
}
