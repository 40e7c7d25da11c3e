//! `foretell search`

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use foretell::judge::Test;
use foretell::judge::search::{
    Candidate, CandidateValue, Evaluation, FOLDS, Found, Phase, Search, SkippedCandidate, Space, Values, most_valuable,
};
use foretell::off_policy::Bounded;
use foretell::{LearnOverrides, LearnParams, PlanParams, Projection, Seed, ValueParams, domains, store};
use serde_json::json;

use super::Preset;
use crate::checkpoint::{self, CheckpointArgs, report_if_resumed};
use crate::input::{LogArgs, Opened};
use crate::progress::{RoundsBar, SearchBar};
use crate::report::{self, plural};
use crate::{config, output, plot};

/// Rows of the table.
const SHOWN: usize = 12;
/// Test episodes in a domain; bootstrap samples where policies are evaluated on logs.
const TEST_EPISODES: usize = 10_000;
const REPLICATES: usize = 100;
/// Configurations listed for each reason why some were not tried.
const NAMED: usize = 5;
/// 97.5 % quantile of the normal distribution.
const Z95: f64 = 1.96;
/// The parameters that are searched, unless given.
const SEARCHED: [&str; 8] =
    ["test_projection", "history_projection", "test_dim", "history_dim", "max_test_length", "history_length", "rank", "mix"];

/// Search for the parameters with which models predict held-out logs best
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: LogArgs,
    /// File to write the parameters to, as TOML for `foretell learn --config`
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Parameters to start from, and to improve on
    #[arg(long, value_enum, default_value_t = Preset::Default)]
    preset: Preset,
    /// Projection of both tests and histories, instead of searching for it
    #[arg(long, value_enum)]
    projection: Option<Projection>,
    #[command(flatten)]
    overrides: LearnOverrides,
    /// Number of folds, each of which is held out in turn
    #[arg(long, value_name = "K", default_value_t = FOLDS)]
    folds: usize,
    /// Time limit in seconds; 0 for no limit, which makes the result reproducible
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, allow_negative_numbers = true)]
    budget: f64,
    /// Also plan with the best N candidates on the first part of the logs, and choose one whose
    /// policy earns significantly more, if there is one; needs rewards
    #[arg(long, value_name = "N")]
    plan: Option<usize>,
    /// Test the policies of --plan in this domain instead of on held-out logs
    #[arg(long, value_name = "DOMAIN", requires = "plan")]
    domain: Option<String>,
    /// Plot held-out likelihood by dimension and by rank to this file, .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    checkpoint: CheckpointArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Marks the parameters that are searched in the help.
pub fn with_searched(command: clap::Command) -> clap::Command {
    super::with_note(command, &SEARCHED, "[searched, unless given]")
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let (base, fixed) = base(&args);
    base.validate()?;
    check(&args, &base)?;
    let domain = args.domain.as_deref().map(domains::get).transpose()?;
    let input = args.input.open()?;
    let space = Space::around(&base, &fixed);
    let mut checkpoint = args.checkpoint.open(|| {
        Ok(json!({
            "verb": "search", "logs": input.logs.identity()?, "base": base, "fixed": fixed, "folds": args.folds,
        }))
    })?;
    let started = Instant::now();
    let mut bar = SearchBar::new();
    let mut tell = |progress| bar.tell(progress);
    let mut spent = || started.elapsed().as_secs_f64() / args.budget;
    let mut search = Search::new(&base, space).folds(args.folds).progress(&mut tell);
    if args.budget > 0.0 {
        search = search.budget(&mut spent);
    }
    if let Some(checkpoint) = &mut checkpoint {
        search = search.checkpoint(report_if_resumed(checkpoint));
    }
    let found = search.run(&input.logs);
    bar.finish();
    let found = found.map_err(|e| input.blame(e))?;
    let valued = match args.plan {
        Some(n) => values(&args, &found, n, &input, domain.as_ref())?,
        None => Vec::new(),
    };
    let chosen = if valued.is_empty() { &found.chosen.params } else { &valued[most_valuable(&valued)].params };
    let seconds = started.elapsed().as_secs_f64();
    store::write(&args.output, config::text(&comments(&args, &found, &valued, chosen), chosen)?.as_bytes())?;
    if let Some(path) = &args.plot {
        output::plot(&plot::search(&found), path)?;
    }
    if args.json {
        report::json(&json!({ "config": args.output, "params": chosen, "seconds": seconds, "found": found, "values": valued }))?;
    } else {
        say(&args, &found, &valued, chosen, seconds)?;
    }
    checkpoint::finish(checkpoint)
}

/// The parameters that the search starts from, and those of them that are fixed.
fn base(args: &Args) -> (LearnParams, LearnOverrides) {
    let mut fixed = args.overrides.clone();
    fixed.test_projection = fixed.test_projection.or(args.projection);
    fixed.history_projection = fixed.history_projection.or(args.projection);
    (fixed.apply(args.preset.learning()), fixed)
}

/// Refuses bad requests before any work.
fn check(args: &Args, base: &LearnParams) -> anyhow::Result<()> {
    if args.output == Path::new("-") {
        anyhow::bail!("--output -: standard output has the report; name a file for the parameters");
    }
    args.plot.as_deref().map_or(Ok(()), foretell_plots::check_name)?;
    let mut inputs = args.input.files()?;
    inputs.extend(args.domain.iter().map(PathBuf::from));
    output::check([&args.output].into_iter().chain(&args.plot), &inputs)?;
    args.checkpoint.refuse_standard_input(&args.input)?;
    if !(args.budget >= 0.0 && args.budget.is_finite()) {
        anyhow::bail!("--budget {}: give a number of seconds, or 0 for no limit", args.budget);
    }
    if args.plan == Some(0) {
        anyhow::bail!("--plan 0: give a number of candidates of at least 1, or omit the flag");
    }
    if i64::try_from(base.seed).is_err() {
        anyhow::bail!("--seed {}: TOML files cannot hold numbers above {}; use a smaller seed", base.seed, i64::MAX);
    }
    Ok(())
}

/// The values of the policies of the best candidates; the one chosen by likelihood comes first.
fn values(
    args: &Args,
    found: &Found,
    most: usize,
    input: &Opened,
    domain: Option<&foretell::Domain>,
) -> anyhow::Result<Vec<CandidateValue>> {
    let mut candidates = vec![found.chosen.params.clone()];
    // The weight of the n-gram does not affect states.
    let same_states =
        |x: &LearnParams, y: &LearnParams| LearnParams { mix: 0.0, ..x.clone() } == LearnParams { mix: 0.0, ..y.clone() };
    let finals = found.tried.iter().filter(|tried| tried.phase == Phase::Final).map(|tried| &tried.params);
    for params in finals {
        if candidates.len() < most && !candidates.iter().any(|other| same_states(other, params)) {
            candidates.push(params.clone());
        }
    }
    if !candidates.iter().any(|other| same_states(other, &found.base.params)) {
        candidates.push(found.base.params.clone());
    }
    let planning = PlanParams::default();
    let judge = match domain {
        Some(domain) => Evaluation::Domain(Test {
            domain,
            episodes: TEST_EPISODES,
            max_steps: domain.horizon,
            discount: domain.discount,
            seed: Seed(found.base.params.seed),
        }),
        None => Evaluation::Logs(ValueParams {
            max_steps: Some(found.longest),
            discount: planning.discount,
            replicates: REPLICATES,
            seed: Seed(found.base.params.seed),
            ..ValueParams::default()
        }),
    };
    let mut bar = RoundsBar::new("planning", candidates.len() as u64);
    let values = Values { folds: args.folds, planning, judge };
    let valued = values.of(&input.logs, &candidates, &mut |done| bar.tell(done as u64)).map_err(|e| input.blame(e));
    bar.finish();
    Ok(valued?)
}

/// The comments at the top of the file.
fn comments(args: &Args, found: &Found, valued: &[CandidateValue], chosen: &LearnParams) -> Vec<String> {
    let Found { episodes, steps, folds, base, .. } = found;
    let mut lines = vec![
        format!("Parameters of foretell learn, found by foretell search {}", env!("CARGO_PKG_VERSION")),
        format!("logs: {} ({episodes} episodes, {steps} steps), {folds} folds", args.input.named()),
    ];
    let likelihood = |name: &str, tried: &Candidate| format!("{name}: {:.5} nats per held-out step", tried.nats);
    let name = base_name(args, &base.params);
    lines.push(likelihood(name, base));
    match found.tried.iter().chain([base]).find(|tried| tried.phase == Phase::Final && tried.params == *chosen) {
        Some(tried) if tried.params != base.params => {
            lines.push(format!("{}, gain {:.5} ± {:.5}", likelihood("these", tried), tried.gain, Z95 * tried.error));
        }
        _ => lines.push(format!("nothing was significantly better than {name}, so these are its parameters")),
    }
    if let Some(CandidateValue { value: Some(value), .. }) = valued.iter().find(|valued| valued.params == *chosen) {
        lines.push(format!("value of the policy planned with them: {}", report::with_ci95(value.value, half(value))));
    }
    lines.push(format!("use: foretell learn LOGS --config {} -o model.safetensors", args.output.display()));
    if chosen.mix > 0.0 {
        lines.push("mix was chosen for the linear model: learn --config with --refine leaves it out".into());
    }
    lines
}

/// The name of the base: a preset, or a preset with changes.
fn base_name(args: &Args, base: &LearnParams) -> &'static str {
    let preset = args.preset.learning();
    match args.preset {
        _ if *base != LearnParams { seed: base.seed, ..preset } => "the base",
        Preset::Default => "default",
        Preset::Paper => "paper",
    }
}

fn say(args: &Args, found: &Found, valued: &[CandidateValue], chosen: &LearnParams, seconds: f64) -> anyhow::Result<()> {
    let (episodes, steps) = (plural(found.episodes, "episode"), plural(found.steps, "step"));
    let tried = plural(found.tried.len() as u64, "candidate");
    report::say(format!("{tried} compared on {episodes}, {steps} in {seconds:.1} s"))?;
    if found.skipped > 0 {
        report::say(format!("skipped {}", plural(found.skipped, "bad episode")))?;
    }
    if found.is_cut {
        report::say("searched with the first part of the logs only, which is enough for a comparison")?;
    }
    let name = base_name(args, &found.base.params);
    report::say(format!("\nheld-out log-likelihood, nats per step, on all {} folds; gain over {name}, ± 95 %", found.folds))?;
    let mut rows: Vec<&Candidate> = found.tried.iter().filter(|tried| tried.phase == Phase::Final).take(SHOWN).collect();
    if !rows.iter().any(|tried| tried.params == found.base.params) {
        rows.push(&found.base);
    }
    let header = ["", "projection", "dims", "tests", "histories", "rank", "mix", "nats", "gain", "±"];
    report::say(report::table(&header, rows.iter().map(|tried| row(tried, found, chosen, name))))?;
    if !valued.is_empty() {
        say_values(args, valued, chosen)?;
    }
    say_untried(&found.untried)?;
    report::say(format!("\n{}", verdict(found, chosen, valued, name)))?;
    if chosen.mix > 0.0 {
        report::say("mix was chosen for the linear model: learn --config with --refine leaves it out")?;
    }
    let output = args.output.display();
    report::say(format!("next: foretell learn {} --config {output} -o model.safetensors", args.input.named()))?;
    Ok(())
}

fn row(tried: &Candidate, found: &Found, chosen: &LearnParams, base: &str) -> Vec<String> {
    let mark = match (tried.params == *chosen, tried.params == found.base.params) {
        (true, _) => "→",
        (_, true) => base,
        _ => "",
    };
    let mut row = vec![mark.to_string()];
    row.extend(shape(&tried.params));
    row.push(tried.params.rank.to_string());
    row.push(tried.params.mix.to_string());
    row.extend([tried.nats, tried.gain, Z95 * tried.error].map(|nats| format!("{nats:.5}")));
    row
}

/// Projection, dimensions, lengths of tests and of histories.
fn shape(params: &LearnParams) -> [String; 4] {
    let both = |x: String, y: String| if x == y { x } else { format!("{x}, {y}") };
    let of = |projection: Projection| projection.to_possible_value().map_or(String::new(), |value| value.get_name().to_string());
    let dim = |projection, dim: usize| if projection == Projection::Identity { "all".into() } else { dim.to_string() };
    let histories = match params.history {
        foretell::History::Prefix => "whole".into(),
        foretell::History::Suffix => params.history_length.to_string(),
    };
    let dims = [dim(params.test_projection, params.test_dim), dim(params.history_projection, params.history_dim)];
    let [tests_dim, histories_dim] = dims;
    let projection = both(of(params.test_projection), of(params.history_projection));
    [projection, both(tests_dim, histories_dim), params.max_test_length.to_string(), histories]
}

fn say_values(args: &Args, valued: &[CandidateValue], chosen: &LearnParams) -> anyhow::Result<()> {
    let by =
        args.domain.as_ref().map_or("fitted-Q evaluation on held-out logs".into(), |domain| format!("test episodes in {domain}"));
    if let [CandidateValue { value: None, why: Some(why), .. }, others @ ..] = valued
        && others.iter().all(|other| other.value.is_none())
    {
        report::say(format!("\nthe values of their policies cannot be estimated: {why}"))?;
        return Ok(());
    }
    report::say(format!("\ndiscounted values of their policies, by {by}"))?;
    let rows = valued.iter().map(|valued| {
        let mut row = vec![if valued.params == *chosen { "→".to_string() } else { String::new() }];
        row.extend(shape(&valued.params));
        row.push(valued.params.rank.to_string());
        match (&valued.value, &valued.why) {
            (Some(value), _) => {
                let half = half(value).map_or("n/a: one episode".into(), |half| format!("{half:.4}"));
                row.extend([format!("{:.4}", value.value), half]);
            }
            (None, why) => row.extend(["–".into(), why.clone().unwrap_or_default()]),
        }
        row
    });
    report::say(report::table(&["", "projection", "dims", "tests", "histories", "rank", "value", "± 95 %"], rows))?;
    Ok(())
}

/// Reports the configurations that were not tried, one line for each reason.
fn say_untried(untried: &[SkippedCandidate]) -> anyhow::Result<()> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for untried in untried {
        let [projection, dims, tests, histories] = shape(&untried.params);
        let name = format!("{projection} {dims} ({tests}, {histories})");
        match reasons.iter_mut().find(|(why, _)| *why == untried.why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((&untried.why, vec![name])),
        }
    }
    if !reasons.is_empty() {
        report::say("\nnot tried: projection, dimension (lengths of tests, histories)")?;
    }
    for (why, names) in reasons {
        let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
        report::say(format!("  {why}: {}{more}", names[..names.len().min(NAMED)].join(", ")))?;
    }
    Ok(())
}

fn verdict(found: &Found, chosen: &LearnParams, valued: &[CandidateValue], name: &str) -> String {
    let Found { chosen: by_likelihood, base, .. } = found;
    if valued.iter().any(|valued| valued.value.is_some()) && *chosen == by_likelihood.params {
        return format!(
            "no policy has a significantly higher value than that of the best predictor, so {} is chosen",
            if by_likelihood.params == base.params { name } else { "the best predictor" }
        );
    }
    if *chosen != by_likelihood.params {
        return "chosen by the value of its policy, which is significantly higher than that of the best predictor".into();
    }
    if by_likelihood.params == base.params {
        return format!("nothing is significantly better than {name}, so {name} is chosen");
    }
    let Candidate { gain, error, .. } = by_likelihood;
    format!("chosen: it predicts better than {name} by {gain:.5} ± {:.5} nats per step", Z95 * error)
}

/// Half the width of a 95 % interval, where there is one.
fn half(value: &Bounded) -> Option<f64> {
    value.low.map(|low| value.value - low)
}
