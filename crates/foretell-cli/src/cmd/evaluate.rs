//! `foretell evaluate`

use std::path::PathBuf;

use foretell::baselines::Test;
use foretell::returns::{Mean, Returns};
use foretell::{Plan, Seed, domains};
use serde::Serialize;

use crate::report::{self, plural};

/// Let a policy act in a domain and see what it earns
#[derive(clap::Args)]
pub struct Args {
    /// A policy that `foretell plan` or `foretell agent` wrote
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    /// A built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(long, value_name = "DOMAIN")]
    domain: String,
    /// Number of episodes, for each seed
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    episodes: u64,
    /// Steps after which an episode is cut [default: the domain's horizon]
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Discount of the discounted return [default: the domain's]
    #[arg(long, value_name = "G")]
    discount: Option<f64>,
    /// Number of seeds
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// All episodes together, and the seeds one by one.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    all: Returns,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_seed: Vec<Returns>,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let plan = Plan::load(&args.policy)?;
    let domain = domains::get(&args.domain)?;
    let discount = args.discount.unwrap_or(domain.discount);
    if !(0.0..=1.0).contains(&discount) {
        anyhow::bail!("discount = {discount}: must be between 0 and 1");
    }
    let max_steps = args.max_steps.map_or(domain.horizon, |n| n as usize);
    let policy = plan.policies_for(domain.alphabet())?;
    let test = |seed| Test { domain: &domain, episodes: args.episodes as usize, max_steps, discount, seed: Seed(seed) };
    let by_seed: Vec<Returns> = (args.seed..args.seed + args.seeds).map(|seed| test(seed).returns(&policy)).collect();
    let all = Returns::pooled(&by_seed);
    if args.json {
        let by_seed = if args.seeds > 1 { by_seed } else { Vec::new() };
        return report::json(&Report { all, by_seed });
    }
    report::say(format!("{} in {}", plural(all.episodes, "episode"), domain.name))?;
    report::say(format!("  return     {:.4} ± {:.4}", all.mean_return, all.ci95))?;
    report::say(format!("  discounted {:.4} ± {:.4} (discount {discount})", all.discounted_return, all.discounted_ci95))?;
    report::say(format!("  length     {:.2} steps; {} ended by themselves", all.mean_length, report::percent(all.terminated)))?;
    if args.seeds > 1 {
        let seeds: Mean = by_seed.iter().map(|returns| returns.discounted_return).collect();
        report::say(format!("  seeds      {}, standard deviation of the discounted return {:.4}", args.seeds, seeds.sd()))?;
    }
    Ok(())
}
