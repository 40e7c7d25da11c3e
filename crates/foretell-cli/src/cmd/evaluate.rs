//! `foretell evaluate`

use foretell::data::Alphabet;
use foretell::judge::{Returns, Test};
use foretell::off_policy::{Bound, Bounded, CrossFit, Estimator, LogValue, OffPolicy, Target, TargetPolicy, ValueParams};
use foretell::system::{Always, Exploring};
use foretell::{ActionObservation, Domain, Mean, Plan, Policy, Seed, Trajectory, Uniform, domains};
use serde::Serialize;

use crate::input::LogArgs;
use crate::report::{self, plural};
use crate::schema::SchemaArgs;

/// Episodes or rollouts, unless they are given; so many may be given at most.
const EPISODES: u64 = 10_000;
const MOST_EPISODES: u64 = 1_000_000_000;
/// Steps of all rollouts together, unless their number is given, and the fewest rollouts then.
const ROLLOUT_STEPS: usize = 2_000_000;
const FEWEST_ROLLOUTS: usize = 200;

/// Evaluate a policy in a domain, or estimate its value from logs
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("where").required(true).args(["domain", "logs"])))]
pub struct Args {
    /// A policy that `foretell plan` or `foretell agent` wrote; `always:ACTION`, `uniform`, or with
    /// --logs `logged`
    #[arg(value_name = "POLICY")]
    policy: String,
    /// Domain to act in: a built-in one (see `foretell domains`), a .POMDP file or the map of a
    /// maze
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Logs to estimate the value from: files, folders or quoted patterns. If the policy was planned
    /// on them, it is planned anew on parts of them. They are held in memory, about 2 KB per step
    #[arg(long, value_name = "LOGS", num_args = 1..)]
    logs: Vec<std::path::PathBuf>,
    /// Probability of a uniformly random action instead of the policy's
    #[arg(long, default_value_t = 0.0, value_name = "E")]
    epsilon: f64,
    /// Estimators from logs; the first of wdr, dr, snpdis, pdis, fqe, model decides
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAMES",
        default_value = "pdis,snpdis,dr,wdr,fqe,model",
        conflicts_with = "domain"
    )]
    estimators: Vec<Estimator>,
    /// Kind of the intervals from logs
    #[arg(long, value_enum, default_value_t = Bound::T, conflicts_with = "domain")]
    bound: Bound,
    /// How often intervals from logs are meant to contain the value
    #[arg(long, default_value_t = 0.95, value_name = "P", conflicts_with = "domain")]
    level: f64,
    /// When to plan anew on folds of the logs
    #[arg(long, value_enum, default_value_t = CrossFit::Auto, conflicts_with = "domain")]
    cross_fit: CrossFit,
    /// Folds for that [default: 2, or 5 of fewer than 500 episodes]
    #[arg(long, value_name = "K", conflicts_with = "domain")]
    folds: Option<usize>,
    /// Number of episodes for each seed; with --logs, number of rollouts in the policy's own model
    /// [default: 10000, fewer where rollouts of many steps would take long]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_EPISODES))]
    episodes: Option<u64>,
    /// Steps after which an episode is truncated [default: the domain's horizon, or as many as are
    /// known of half of the logged episodes]
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Discount of the discounted return [default: the domain's, or that used for planning; 1 with
    /// --logs for a policy that was not planned]
    #[arg(long, value_name = "G")]
    discount: Option<f64>,
    /// Number of seeds
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1_000_000), conflicts_with = "logs")]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of bootstrap samples of the logs for the interval of fitted-Q evaluation
    #[arg(long, default_value_t = 20, value_name = "B", value_parser = clap::value_parser!(u64).range(2..=1_000_000), conflicts_with = "domain")]
    replicates: u64,
    #[command(flatten)]
    schema: SchemaArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    if let Some(discount) = args.discount.filter(|discount| !(0.0..=1.0).contains(discount)) {
        anyhow::bail!("--discount {discount}: must be between 0 and 1");
    }
    if !(0.0..=1.0).contains(&args.epsilon) {
        anyhow::bail!("--epsilon {}: must be between 0 and 1", args.epsilon);
    }
    let is_named = args.policy.starts_with("always:") || ["uniform", "logged"].contains(&args.policy.as_str());
    let plan = (!is_named).then(|| crate::input::policy(&args.policy)).transpose()?;
    if args.domain.is_some() && !args.schema.schema()?.is_empty() {
        anyhow::bail!("a domain has no columns; flags of columns go with --logs");
    }
    match &args.domain {
        Some(domain) => in_domain(&args, plan.as_ref(), domain),
        None => from_logs(&args, plan.as_ref()),
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

/// Makes a policy for each thread.
type Acting<'a> = Box<dyn Fn() -> Box<dyn Policy + 'a> + Send + Sync + 'a>;

/// The policy of that name or file, for a domain.
fn acting<'a>(args: &Args, plan: Option<&'a Plan>, domain: &Domain) -> anyhow::Result<Acting<'a>> {
    let (epsilon, actions) = (args.epsilon, domain.alphabet().actions().len());
    if let Some(plan) = plan {
        let greedy = plan.policies_for(domain.alphabet())?;
        return Ok(Box::new(move || -> Box<dyn Policy + 'a> {
            match epsilon > 0.0 {
                true => Box::new(Exploring::new(greedy(), epsilon, actions)),
                false => Box::new(greedy()),
            }
        }));
    }
    match Target::named(&args.policy, domain.alphabet())?.map(|target| target.policy) {
        Some(TargetPolicy::Always(a)) => {
            Ok(Box::new(move || -> Box<dyn Policy + 'a> { Box::new(Exploring::new(Always(a), epsilon, actions)) }))
        }
        Some(TargetPolicy::Uniform) => Ok(Box::new(move || -> Box<dyn Policy + 'a> { Box::new(Uniform { actions }) })),
        _ => anyhow::bail!("the policy that was logged cannot act in a domain; give --logs instead of --domain"),
    }
}

fn in_domain(args: &Args, plan: Option<&Plan>, domain: &str) -> anyhow::Result<()> {
    let domain = domains::get(domain)?;
    let discount = args.discount.unwrap_or(domain.discount);
    let max_steps = args.max_steps.map_or(domain.horizon, |n| n as usize);
    let policy = acting(args, plan, &domain)?;
    let test = |seed| Test {
        domain: &domain,
        episodes: args.episodes.unwrap_or(EPISODES) as usize,
        max_steps,
        discount,
        seed: Seed(seed),
    };
    let by_seed: Vec<Returns> = (0..args.seeds).map(|i| test(args.seed.wrapping_add(i)).returns(&policy)).collect();
    let all = Returns::pooled(&by_seed);
    if let Some(plan) = plan {
        warn_of_unknown(plan, &domain, max_steps, Seed(args.seed))?;
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

/// Warns if many observations of the domain are not those that the policy was trained on.
fn warn_of_unknown(plan: &Plan, domain: &Domain, max_steps: usize, seed: Seed) -> anyhow::Result<()> {
    let policy = plan.policies_for(domain.alphabet())?;
    let trial = domains::sample_with(domain, &policy, TRIAL, max_steps, seed);
    let (translated, beyond) = (policy(), plan.alphabet().observations().len());
    let seen = trial.flat_map(|z| z.steps.into_iter().zip(z.rewards));
    let is_unknown = |(ao, reward): (ActionObservation, Option<f64>)| {
        translated.own_observation(ao.observation, reward.unwrap_or(0.0)).index() >= beyond
    };
    let unknown: Vec<bool> = seen.map(is_unknown).collect();
    let unknown = unknown.iter().filter(|is| **is).count() as f64 / unknown.len().max(1) as f64;
    if unknown > MUCH_UNKNOWN {
        let share = report::percent(unknown);
        report::complain(format!(
            "warning: {share} of the observations here were not in the logs that the policy was trained on; was it made for {}?",
            domain.name
        ));
    }
    Ok(())
}

/// The estimates from logs, and what they say.
#[derive(Serialize)]
struct LogReport {
    #[serde(flatten)]
    value: LogValue,
    verdict: String,
    notes: Vec<String>,
    warnings: Vec<String>,
}

fn from_logs(args: &Args, plan: Option<&Plan>) -> anyhow::Result<()> {
    let (alphabet, episodes) = read(args, plan)?;
    let named = |name: &str| Target::named(name, &alphabet);
    let target = match plan {
        Some(plan) => Target { policy: TargetPolicy::Plan(plan), epsilon: args.epsilon },
        None => Target { epsilon: args.epsilon, ..named(&args.policy)?.expect("names were told from files") },
    };
    let value = ValueParams {
        max_steps: args.max_steps.map(|n| n as usize),
        discount: args.discount.or(plan.map(|plan| plan.params().discount)).unwrap_or(1.0),
        bound: args.bound,
        level: args.level,
        replicates: args.replicates as usize,
        seed: Seed(args.seed),
        first: first_action(plan, &alphabet, &episodes),
    };
    let affordable = (ROLLOUT_STEPS / value.horizon(&episodes)).clamp(FEWEST_ROLLOUTS, EPISODES as usize);
    let (rollouts, estimators) = (args.episodes.map_or(affordable, |n| n as usize), args.estimators.clone());
    let test = OffPolicy { value, estimators, rollouts, cross_fit: args.cross_fit, folds: args.folds };
    let value = test.evaluate(&target, &alphabet, &episodes)?;
    if args.json {
        let (verdict, notes, warnings) = (value.verdict(), value.notes(), value.warnings());
        return report::json(&LogReport { value, verdict, notes, warnings });
    }
    show(&value)
}

/// The action of first steps that nobody chose.
fn first_action(plan: Option<&Plan>, alphabet: &Alphabet, episodes: &[Trajectory]) -> Option<foretell::Action> {
    let given = || {
        alphabet
            .action(foretell::log::FIRST_ACTION)
            .filter(|a| episodes.iter().all(|z| z.steps.first().is_some_and(|ao| ao.action == *a)))
    };
    plan.map_or_else(given, Plan::first_action)
}

/// The episodes, over the alphabet of the policy or, if it has none, their own.
fn read(args: &Args, plan: Option<&Plan>) -> anyhow::Result<(Alphabet, Vec<Trajectory>)> {
    let logs = LogArgs::with(args.logs.clone(), args.schema.clone());
    if let Some(plan) = plan {
        let input = logs.open_for(plan.schema())?;
        let episodes = input.logs.episodes_for(plan.alphabet(), "policy").map_err(|e| input.blame(e))?;
        return Ok((plan.alphabet().clone(), episodes));
    }
    let input = logs.open()?;
    let mut reader = input.logs.open(Alphabet::default()).map_err(|e| input.blame(e))?;
    let episodes = reader.by_ref().collect::<foretell::Result<Vec<Trajectory>>>().map_err(|e| input.blame(e))?;
    Ok((reader.into_alphabet(), episodes))
}

fn show(value: &LogValue) -> anyhow::Result<()> {
    let LogValue { max_steps, discount, level, bound, .. } = value;
    let steps = plural(*max_steps as u64, "step");
    let episodes = plural(value.episodes as u64, "episode");
    let what = if *discount == 1.0 { "return".into() } else { format!("discounted return (discount {discount})") };
    report::say(format!("{what} over {steps}, estimated from {episodes} of logs"))?;
    let number = |x: Option<f64>| x.map_or("n/a".into(), |x| format!("{x:.4}"));
    let row = |name: &str, x: &Bounded| vec![name.to_string(), format!("{:.4}", x.value), number(x.low), number(x.high)];
    let estimates = value.estimates.iter().map(|found| row(described(found.estimator), &found.bounded));
    let rows = std::iter::once(row("logged", &value.logged)).chain(estimates);
    report::say(report::table(&["", "value", "low", "high"], rows))?;
    if let Some(returns) = &value.returns {
        let quantiles: Vec<String> = returns.quantiles.iter().map(|(p, x)| format!("{} {x:.4}", report::percent(*p))).collect();
        report::say(format!("  mean of the worst 5 %: {:.4}; quantiles: {}", returns.cvar, quantiles.join(", ")))?;
    }
    let kind = match bound {
        Bound::T => "Student's t",
        Bound::Bootstrap => "bootstrap",
        Bound::Bernstein => "empirical Bernstein",
    };
    report::say(format!(
        "low and high: {} intervals ({kind}) of sampling error. fqe and model also err by their trees and model, which no interval covers.",
        report::percent(*level)
    ))?;
    value.notes().iter().try_for_each(report::say)?;
    report::say(value.verdict())?;
    value.warnings().iter().try_for_each(|warning| report::say(format!("warning: {warning}")))?;
    Ok(())
}

/// An estimator as a row of the table.
fn described(estimator: Estimator) -> &'static str {
    match estimator {
        Estimator::Pdis => "pdis    importance sampling",
        Estimator::Snpdis => "snpdis  self-normalised",
        Estimator::Dr => "dr      doubly robust",
        Estimator::Wdr => "wdr     weighted doubly robust",
        Estimator::Fqe => "fqe     fitted-Q evaluation",
        Estimator::Model => "model   rollouts",
    }
}
