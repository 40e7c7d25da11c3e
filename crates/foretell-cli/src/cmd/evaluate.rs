//! `foretell evaluate`

use std::path::PathBuf;

use foretell::judge::{Estimate, LogTest, LogValue, Returns, Test};
use foretell::{ActionObservation, Mean, Plan, Seed, domains};
use serde::Serialize;

use crate::input::LogArgs;
use crate::report::{self, plural};

/// Evaluate a policy in a domain, or estimate its return from logs
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("where").required(true).args(["domain", "logs"])))]
pub struct Args {
    /// A policy that `foretell plan` or `foretell agent` wrote
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    /// Domain to act in: a built-in one (see `foretell domains`), a .POMDP file or the map of a
    /// maze
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Logs to estimate the return from: files, folders or quoted patterns, preferably not those
    /// used for planning. They are held in memory, about 2 KB per step
    #[arg(long, value_name = "LOGS", num_args = 1..)]
    logs: Vec<PathBuf>,
    /// Number of episodes for each seed; with --logs, number of rollouts in the policy's own model
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    episodes: u64,
    /// Steps after which an episode is truncated [default: the domain's horizon, or the longest
    /// episode of the logs]
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Discount of the discounted return [default: the domain's, or that used for planning]
    #[arg(long, value_name = "G")]
    discount: Option<f64>,
    /// Number of seeds
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "logs")]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of bootstrap samples of the logs for the 95 % interval
    #[arg(long, default_value_t = 20, value_name = "B", value_parser = clap::value_parser!(u64).range(2..), conflicts_with = "domain")]
    replicates: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    if let Some(discount) = args.discount.filter(|discount| !(0.0..=1.0).contains(discount)) {
        anyhow::bail!("--discount {discount}: must be between 0 and 1");
    }
    let plan = Plan::load(&args.policy)?;
    match &args.domain {
        Some(domain) => in_domain(&args, &plan, domain),
        None => from_logs(&args, &plan),
    }
}

/// Episodes in which unknown observations are counted, and the fraction of steps with them that
/// gives a warning.
const TRIAL: usize = 200;
const MUCH_UNKNOWN: f64 = 0.02;

/// All episodes together, and each seed separately.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    all: Returns,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_seed: Vec<Returns>,
}

fn in_domain(args: &Args, plan: &Plan, domain: &str) -> anyhow::Result<()> {
    let domain = domains::get(domain)?;
    let discount = args.discount.unwrap_or(domain.discount);
    let max_steps = args.max_steps.map_or(domain.horizon, |n| n as usize);
    let policy = plan.policies_for(domain.alphabet())?;
    let test = |seed| Test { domain: &domain, episodes: args.episodes as usize, max_steps, discount, seed: Seed(seed) };
    let by_seed: Vec<Returns> = (args.seed..args.seed + args.seeds).map(|seed| test(seed).returns(&policy)).collect();
    let all = Returns::pooled(&by_seed);
    let trial = domains::sample_with(&domain, &policy, TRIAL, max_steps, Seed(args.seed));
    let (translated, beyond) = (policy(), plan.alphabet().observations().len());
    let seen = trial.flat_map(|z| z.steps.into_iter().zip(z.rewards));
    let is_unknown = |(ao, reward): (ActionObservation, Option<f64>)| {
        translated.own_observation(ao.observation, reward.unwrap_or(0.0)).index() >= beyond
    };
    let unknown: Vec<bool> = seen.map(is_unknown).collect();
    let unknown = unknown.iter().filter(|is| **is).count() as f64 / unknown.len().max(1) as f64;
    if unknown > MUCH_UNKNOWN {
        let share = report::percent(unknown);
        eprintln!(
            "warning: {share} of the observations here were not in the logs that the policy was trained on; was it made for {}?",
            domain.name
        );
    }
    if args.json {
        let by_seed = if args.seeds > 1 { by_seed } else { Vec::new() };
        return report::json(&Report { all, by_seed });
    }
    report::say(format!("{} in {}", plural(all.episodes, "episode"), domain.name))?;
    report::say(format!("  return     {}", report::with_ci95(all.mean_return, all.ci95)))?;
    report::say(format!("  discounted {} (discount {discount})", report::with_ci95(all.discounted_return, all.discounted_ci95)))?;
    report::say(format!(
        "  length     {:.2} steps; {} of the episodes terminated",
        all.mean_length,
        report::percent(all.terminated)
    ))?;
    if args.seeds > 1 {
        let seeds: Mean = by_seed.iter().map(|returns| returns.discounted_return).collect();
        report::say(format!("  seeds      {}, standard deviation of the discounted return {:.4}", args.seeds, seeds.sd()))?;
    }
    Ok(())
}

/// Logs with fewer rewarded steps than this give unreliable estimates.
const FEW_REWARDS: usize = 50;

/// The estimates from logs, and whether they agree.
#[derive(Serialize)]
struct LogReport {
    episodes: usize,
    /// Steps whose reward is not zero.
    rewarded: usize,
    max_steps: usize,
    discount: f64,
    #[serde(skip)]
    has_masks: bool,
    #[serde(flatten)]
    value: LogValue,
    agree: Option<bool>,
}

fn from_logs(args: &Args, plan: &Plan) -> anyhow::Result<()> {
    let input = LogArgs::of(args.logs.clone()).open_for(plan.schema())?;
    let episodes = input.logs.episodes_for(plan.alphabet(), "policy").map_err(|e| input.blame(e))?;
    let first = plan.first_action();
    let longest = episodes.iter().map(|z| z.steps.len()).max().unwrap_or(0).saturating_sub(usize::from(first.is_some()));
    let (max_steps, discount) = (args.max_steps.map_or(longest, |n| n as usize), args.discount.unwrap_or(plan.params().discount));
    let (rollouts, replicates) = (args.episodes as usize, args.replicates as usize);
    let test = LogTest { max_steps, discount, rollouts, replicates, seed: Seed(args.seed), first };
    let value = test.evaluate(plan, &episodes)?;
    let agree = value.agree();
    let rewarded = episodes.iter().flat_map(|z| &z.rewards).flatten().filter(|reward| **reward != 0.0).count();
    let has_masks = episodes.iter().any(|z| !z.about.available.is_empty());
    let report = LogReport { episodes: episodes.len(), rewarded, max_steps, discount, has_masks, value, agree };
    if args.json { report::json(&report) } else { show(&report) }
}

fn show(report: &LogReport) -> anyhow::Result<()> {
    let LogReport { episodes, max_steps, discount, value, .. } = report;
    let episodes = plural(*episodes as u64, "episode");
    report::say(format!("discounted return over {max_steps} steps (discount {discount}), estimated from {episodes} of logs"))?;
    let line = |name: &str, x: &Estimate| report::say(format!("  {name:<22} {}", report::with_ci95(x.value, x.ci95)));
    line("behaviour policy", &Estimate { value: value.logged.discounted_return, ci95: value.logged.discounted_ci95 })?;
    line("fitted-Q evaluation", &value.fitted_q)?;
    if let Some(rollouts) = &value.rollouts {
        line("rollouts in the model", rollouts)?;
    }
    let same = report::percent(value.same_action);
    report::say(format!(
        "The policy takes the logged action in {same} of the steps. ± is half the width of a 95 % interval; it covers sampling error, \
         not errors of the trees or the model."
    ))?;
    if let Some(warning) = value.learned_from.and_then(|known| known.warning()) {
        report::say(format!("warning: {warning}"))?;
    }
    if value.missing_rewards > 0 {
        report::say(format!(
            "{} of these logs had no reward: fitted-Q leaves them out, and the behaviour policy is given the mean of known rewards there.",
            plural(value.missing_rewards as u64, "step")
        ))?;
    }
    match report.agree {
        None if report.episodes < 2 => report::say(
            "warning: a single episode gives no interval, so nothing can be said about the difference; give more episodes",
        ),
        _ if report.rewarded < FEW_REWARDS => report::say(format!(
            "warning: only {} of these logs had a non-zero reward, so the estimates are unreliable; give more logs",
            plural(report.rewarded as u64, "step")
        )),
        Some(false) => report::say(
            "warning: the two estimates disagree, so trust neither; give more logs, or logs of a policy closer to this one",
        ),
        Some(true) => report::say("The two estimates are consistent. Both depend on the model, so this is not a proof."),
        None if report.has_masks => report::say(
            "Only actions that were available in the logs are taken. A model does not predict which are, so there are no rollouts.",
        ),
        None if value.rollouts.is_some() => report::say("A single rollout gives no interval; take more with --episodes."),
        None => report::say("The policy has no model, so there is no second estimate."),
    }?;
    Ok(())
}
