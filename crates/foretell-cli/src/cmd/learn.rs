//! `foretell learn`

mod selected;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use foretell::data::Propensities;
use foretell::model::{Linear, MemberKind};
use foretell::{
    Effort, Fitted, Keep, Learned, Model, Moments, OperatorsFrom, Recipe, RefineOverrides, RefineParams, SelectParams, Weighting,
};
use serde_json::{Value, json};

use super::RecipeArgs;
use crate::checkpoint::{self, CheckpointArgs, report_if_resumed};
use crate::input::{LogArgs, Opened};
use crate::output;
use crate::progress::{self, FittingBar};
use crate::report::{self, percent, plural};

/// Effective sample size, as a fraction of the steps, above which actions count as uniformly
/// random.
const NEARLY_UNIFORM: f64 = 0.95;

/// Learn a predictive model from logs
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: LogArgs,
    /// File to write the model to
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    #[command(flatten)]
    recipe: RecipeArgs,
    /// How much work goes into finding a good predictor
    #[arg(long, value_enum, default_value = "normal")]
    effort: Effort,
    /// Use only predictors of this kind
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "refine")]
    only: Option<Only>,
    /// Learn a linear model of --rank and refine it into a POMDP, as `foretell refine` does, without
    /// selecting anything else
    #[arg(long)]
    refine: bool,
    #[command(flatten)]
    refinement: RefineOverrides,
    /// Average N models, and learn N more from halves of the logs; their spread shows how uncertain
    /// predictions are
    #[arg(long, value_name = "N")]
    ensemble: Option<usize>,
    /// Keep moments in the model file, so that `foretell update` and `foretell merge` can add other
    /// logs: exact ones if they fit into --memory, otherwise compressed ones
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "fitting")]
    keep_moments: Option<KeepMoments>,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    checkpoint: CheckpointArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Kinds of predictors.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Only {
    /// Back-off n-grams
    Ngram,
    /// Linear predictive states
    Linear,
    /// Latent states of POMDPs
    Latent,
    /// Recurrent networks
    Recurrent,
}

impl From<Only> for MemberKind {
    fn from(only: Only) -> MemberKind {
        match only {
            Only::Ngram => MemberKind::NGram,
            Only::Linear => MemberKind::Linear,
            Only::Latent => MemberKind::Latent,
            Only::Recurrent => MemberKind::Recurrent,
        }
    }
}

/// How moments are kept.
#[derive(Clone, Copy, clap::ValueEnum)]
enum KeepMoments {
    /// Exact if they fit into memory, otherwise compressed
    Fitting,
    /// Moments of every pair: an update gives the same model as learning from all logs
    Exact,
    /// Moments in bases twice as wide as the model's: of bounded size, but updates are approximate
    Compressed,
}

impl From<KeepMoments> for Keep {
    fn from(how: KeepMoments) -> Keep {
        match how {
            KeepMoments::Fitting => Keep::Fitting,
            KeepMoments::Exact => Keep::Exact,
            KeepMoments::Compressed => Keep::Compressed,
        }
    }
}

/// How much memory may be used.
#[derive(clap::Args)]
pub struct Memory {
    /// Maximum memory for the moments of pairs, such as 500MB or 2GiB
    #[arg(long, default_value = "2GiB", value_name = "SIZE", value_parser = bytes)]
    memory: usize,
}

impl Memory {
    pub fn bytes(&self) -> usize {
        self.memory
    }
}

/// Reads `500MB`, `2GiB`, `2G`.
fn bytes(text: &str) -> Result<usize, String> {
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let power = |base: f64, of: i32| Some(base.powi(of));
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1.0),
        "k" | "kib" => power(1024.0, 1),
        "m" | "mib" => power(1024.0, 2),
        "g" | "gib" => power(1024.0, 3),
        "t" | "tib" => power(1024.0, 4),
        "kb" => power(1000.0, 1),
        "mb" => power(1000.0, 2),
        "gb" => power(1000.0, 3),
        "tb" => power(1000.0, 4),
        _ => None,
    };
    let size = number.parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor);
    size.map(|size| size as usize).ok_or_else(|| "give a number and a unit, such as 500MB or 2GiB".into())
}

/// Marks the parameters that are selected in the help.
pub fn with_selected(command: clap::Command) -> clap::Command {
    let command = super::with_note(command, &["rank", "observe_reward"], "[selected, unless given or with --refine or --mix]");
    super::with_note(command, &["mix"], "[if given, nothing is selected]")
}

impl Args {
    /// How predictors are selected; `None` if the flags describe one model completely.
    fn select(&self) -> anyhow::Result<Option<SelectParams>> {
        let fixed = self.recipe.fixed()?.filter(|_| !self.refine);
        let only = self.only.map(MemberKind::from);
        if fixed.is_none() && only.is_some_and(|only| only != MemberKind::Linear) {
            anyhow::bail!("--mix and --preset paper describe a linear model; leave out --only, or --mix and --preset");
        }
        Ok(fixed.map(|fixed| SelectParams { effort: self.effort, only, fixed, for_planning: false }))
    }

    /// An error if there are parameters of latent states, and no latent states.
    fn check_refinement(&self, select: Option<&SelectParams>) -> anyhow::Result<()> {
        let has_states = self.refine
            || select.is_some_and(|select| match select.only {
                None => select.effort != Effort::Quick,
                Some(only) => only == MemberKind::Latent,
            });
        if !has_states && self.refinement != RefineOverrides::default() {
            anyhow::bail!(
                "--states, --layout, --em-rounds and --patience are parameters of latent states, of which there are none; \
                 add --refine or --only latent"
            );
        }
        Ok(())
    }
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let select = args.select()?;
    let alone = select.is_none() && !args.refine;
    let params = if alone { args.recipe.params()? } else { args.recipe.params_to_refine()? };
    args.check_refinement(select.as_ref())?;
    let refinement = args.refinement.apply(RefineParams::default());
    let recipe = Recipe {
        learn: params,
        refine: (args.refine || select.is_some()).then_some(refinement),
        select,
        ensemble: args.ensemble,
        keep: args.keep_moments.map_or(Keep::Nothing, Keep::from),
        memory: args.memory.bytes(),
    };
    recipe.validate()?;

    output::check([&args.output], &[args.input.files()?, args.recipe.files()].concat())?;
    args.checkpoint.refuse_standard_input(&args.input)?;
    let started = Instant::now();
    let input = args.input.open()?;
    note_timing(&input)?;
    let mut checkpoint = args.checkpoint.open(|| {
        let keep = args.keep_moments.map(|how| how.to_possible_value().map(|value| value.get_name().to_string()));
        Ok(json!({
            "verb": "learn", "logs": input.logs.identity()?, "parameters": recipe.learn, "keep": keep, "memory": recipe.memory,
            "refinement": recipe.refine, "select": recipe.select, "ensemble": recipe.ensemble,
        }))
    })?;
    let folder = checkpoint.as_ref().map(|checkpoint| checkpoint.folder().to_path_buf());
    let mut bar = FittingBar::new(folder);
    let mut tell = |progress| bar.tell(progress);
    let mut fitting = recipe.fitting().progress(&mut tell);
    if let Some(checkpoint) = &mut checkpoint {
        fitting = fitting.checkpoint(report_if_resumed(checkpoint));
    }
    let fitted = fitting.run(&input.logs);
    bar.finish();
    let Fitted { model, learned, rounds, stopped, selection } = fitted.map_err(|e| input.blame(e))?;
    save(&model, learned.moments.as_ref(), &args.output)?;
    let seconds = started.elapsed().as_secs_f64();

    let output = args.output.display().to_string();
    if args.json {
        let mut report = describe(&model, &learned, seconds);
        report["model"] = json!(output);
        report["ensemble"] = json!(args.ensemble);
        report["refined"] = json!(args.refine.then(|| super::refine::describe(&model, &rounds)));
        report["selection"] = json!(selection);
        report::json(&report)?;
    } else {
        say(&model, &learned, seconds)?;
        super::refine::say(&model, &rounds, stopped)?;
        selection.iter().try_for_each(selected::say)?;
        if let Some(planning) = selection.as_ref().and_then(|selection| selected::planning(&model, selection)) {
            report::say(format!("  planning   {planning}"))?;
        }
        if selection.is_none_or(|selection| selection.rewards.is_none()) {
            super::refine::advise(&model)?;
        }
        if let Some(n) = args.ensemble {
            report::say(format!("  ensemble   {n} models of all logs and {n} models of halves"))?;
        }
        report::say(format!("  model      {output}"))?;
    }
    checkpoint::finish(checkpoint)
}

/// Says if observations seem to have been seen before the actions of their rows.
fn note_timing(input: &Opened) -> anyhow::Result<()> {
    let schema = input.logs.schema();
    if schema.shift_observation || schema.action.as_ref().is_some_and(Vec::is_empty) {
        return Ok(());
    }
    let timing = input.logs.timing().map_err(|e| input.blame(e))?;
    if let Some(sentence) = timing.and_then(|timing| timing.sentence()) {
        progress::note(&report::with_flags(&sentence));
    }
    Ok(())
}

/// Writes a model, with its moments, if any.
pub fn save(model: &Model, moments: Option<&Moments>, path: &Path) -> anyhow::Result<()> {
    match moments {
        Some(moments) => model.save_with_moments(moments, path)?,
        None => model.save(path)?,
    }
    Ok(())
}

/// What was learned, as JSON.
pub fn describe(model: &Model, learned: &Learned, seconds: f64) -> Value {
    let (alphabet, (episodes, steps)) = (model.alphabet(), model.trained_on());
    json!({
        "episodes": episodes, "steps": steps, "skipped": model.origin().skipped, "seconds": seconds,
        "actions": alphabet.actions().len(), "observations": alphabet.observations().len(), "pairs": model.origin().pairs.len(),
        "rank": model.linear().map(Linear::rank), "spectrum": model.linear().map(Linear::spectrum), "params": model.params(),
        "operators": match learned.operators { OperatorsFrom::Moments => "moments", OperatorsFrom::SecondPass => "second pass" },
        "moments": learned.moments.as_ref().map(|moments| if moments.is_exact() { "exact" } else { "compressed" }),
        "propensities": learned.propensities,
    })
}

/// What was learned, as text.
pub fn say(model: &Model, learned: &Learned, seconds: f64) -> anyhow::Result<()> {
    let (episodes, steps) = model.trained_on();
    report::say(format!("learned from {}, {} in {seconds:.2} s", plural(episodes, "episode"), plural(steps, "step")))?;
    if model.origin().skipped > 0 {
        report::say(format!("  skipped    {}", plural(model.origin().skipped, "bad episode")))?;
    }
    let alphabet = model.alphabet();
    let sizes = [alphabet.actions().len(), alphabet.observations().len(), model.origin().pairs.len()].map(|n| n as u64);
    let (actions, observations) = (plural(sizes[0], "action"), plural(sizes[1], "observation"));
    report::say(format!("  alphabet   {actions}, {observations}, {} seen", plural(sizes[2], "pair")))?;
    if model.origin().schema.action.as_ref().is_none_or(|action| !action.is_empty()) {
        report::say(format!("  policy     {}", policy(model, learned)))?;
    }
    if let Some(linear) = model.linear() {
        let values = spectrum(linear.spectrum(), linear.rank());
        report::say(format!("  rank       {}, singular values {values}", linear.rank()))?;
    }
    if let Some(moments) = &learned.moments {
        let how = match (moments.is_exact(), learned.operators) {
            (true, _) => "exact: `foretell update` and `merge` give the same model as learning from all logs",
            (false, OperatorsFrom::SecondPass) => {
                "compressed, with operators from a second pass: `foretell update` is approximate"
            }
            (false, OperatorsFrom::Moments) => "compressed: `foretell update` is approximate",
        };
        report::say(format!("  moments    {how}"))?;
        if let Some(limit) = moments.stale_limit() {
            let limit = limit.map_or("none".to_string(), |limit| plural(limit as u64, "step"));
            report::say(format!("  time limit {limit}, as in the first logs; too many episodes depend on it to change it now"))?;
        }
    }
    Ok(())
}

/// The policy under which the predictions hold.
fn policy(model: &Model, learned: &Learned) -> String {
    let Some(propensities @ Propensities { least, effective, mean_weight, .. }) = learned.propensities else {
        return "no action probabilities in the logs: predictions hold under the behaviour policy, and under any policy if it \
                chose actions independently of observations"
            .into();
    };
    let known = format!("smallest action probability {least:.4}, effective sample size {} of the steps", percent(effective));
    if propensities.misses_actions() {
        return format!(
            "behaviour policy: it never takes some actions, which weighting cannot correct (mean weight {mean_weight:.2}, not 1)"
        );
    }
    match model.params().weighting {
        Weighting::Propensity => format!("uniformly random, by weighting ({known})"),
        Weighting::Next => format!("uniformly random in the next step, by weighting ({known})"),
        Weighting::None if effective > NEARLY_UNIFORM => "about uniformly random, as logged".into(),
        Weighting::None => format!("behaviour policy ({known}); --weighting next reduces its influence"),
    }
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
