//! `foretell solve`

use std::time::{Duration, Instant};

use foretell::judge::Test;
use foretell::pomdp::solve::{Gap, PointBased, Solution, fast_informed_bound, qmdp};
use foretell::{Returns, Seed, domains};
use serde::Serialize;

use crate::progress::SolvingBar;
use crate::report::{self, plural};

/// Plan with the exact model of a domain, and bound its optimal value
#[derive(clap::Args)]
pub struct Args {
    /// A built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(value_name = "DOMAIN")]
    domain: String,
    /// Discount; must be below 1 if episodes can last forever [default: the domain's]
    #[arg(long, value_name = "G", allow_negative_numbers = true)]
    discount: Option<f64>,
    /// Planning method
    #[arg(long, value_enum, default_value_t = Planner::PointBased)]
    planner: Planner,
    /// Stop when the gap between the bounds is this fraction of the value
    #[arg(long, value_name = "E", default_value_t = Gap::default().relative, allow_negative_numbers = true)]
    gap: f64,
    /// Time limit in seconds
    #[arg(long, value_name = "N", default_value_t = 60.0, allow_negative_numbers = true)]
    seconds: f64,
    /// Test the policy in N episodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    episodes: Option<u64>,
    /// Steps after which an episode is truncated [default: as many as matter at this discount, or
    /// the domain's horizon]
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(1..), requires = "episodes")]
    max_steps: Option<u32>,
    /// Seed of the episodes
    #[arg(long, default_value_t = 0, requires = "episodes")]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Planner {
    /// QMDP: assumes that the state becomes visible after one step; fast, but never gathers
    /// information
    Qmdp,
    /// The fast informed bound: takes the next observation into account
    FastInformed,
    /// Point-based value iteration: converging bounds, and a policy worth about the lower one
    PointBased,
}

#[derive(Serialize)]
struct Report {
    discount: f64,
    lower: Option<f64>,
    upper: f64,
    vectors: usize,
    /// Beliefs of the upper bound.
    points: usize,
    rounds: usize,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    returns: Option<Returns>,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let domain = domains::get(&args.domain)?;
    let Some(pomdp) = domain.pomdp() else {
        anyhow::bail!(
            "{} has no exact model to plan with; choose a domain for which `foretell domains` lists states",
            domain.name
        )
    };
    let discount = args.discount.unwrap_or(domain.discount);
    let limit = Duration::try_from_secs_f64(args.seconds)
        .map_err(|_| anyhow::anyhow!("--seconds {}: must be a non-negative number", args.seconds))?;
    let started = Instant::now();
    let (mut rounds, mut points) = (0, 0);
    let solution: Solution = match args.planner {
        Planner::Qmdp => qmdp(pomdp, discount)?,
        Planner::FastInformed => fast_informed_bound(pomdp, discount)?,
        Planner::PointBased => {
            let mut planner = PointBased::new(pomdp, discount, Gap { relative: args.gap, ..Gap::default() })?;
            let mut bar = SolvingBar::new(limit);
            while started.elapsed() < limit
                && let Some(round) = planner.next()
            {
                rounds += 1;
                bar.tell(rounds, &round);
            }
            points = planner.round().points;
            planner.solution()
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    let returns = args.episodes.map(|episodes| {
        let max_steps = args.max_steps.map_or_else(|| domain.steps_that_count(discount), |n| n as usize);
        let test = Test { domain: &domain, episodes: episodes as usize, max_steps, discount, seed: Seed(args.seed) };
        test.returns(|| solution.policy(pomdp))
    });
    let Solution { vectors, lower, upper } = &solution;
    let report = Report { discount, lower: *lower, upper: *upper, vectors: vectors.len(), points, rounds, seconds, returns };
    if args.json { report::json(&report) } else { show(&report, &domain.name) }
}

fn show(report: &Report, domain: &str) -> anyhow::Result<()> {
    let Report { discount, upper, seconds, .. } = report;
    report::say(format!("{domain}, discount {discount}: optimal value at the start"))?;
    if let Some(lower) = report.lower {
        report::say(format!("  at least   {lower:.4}"))?;
    }
    report::say(format!("  at most    {upper:.4}"))?;
    if let Some(lower) = report.lower {
        let gap = upper - lower;
        let share = gap / lower.abs().max(upper.abs()).max(f64::MIN_POSITIVE);
        report::say(format!("  gap        {gap:.4}, {}", report::percent(share)))?;
    }
    if let Some(Returns { episodes, discounted_return, discounted_ci95, .. }) = report.returns {
        let episodes = plural(episodes, "episode");
        report::say(format!("  policy     {} in {episodes}", report::with_ci95(discounted_return, discounted_ci95)))?;
    }
    let vectors = plural(report.vectors as u64, "vector");
    if report.lower.is_some() {
        let (points, rounds) = (plural(report.points as u64, "belief"), plural(report.rounds as u64, "round"));
        report::say(format!("lower bound from {vectors}, upper bound from {points}, after {rounds} in {seconds:.2} s"))?;
    } else {
        report::say(format!("{vectors}, in {seconds:.2} s"))?;
    }
    Ok(())
}
