//! `foretell inspect`

use foretell::log::Summary;

use crate::input::LogArgs;
use crate::report::{self, count, percent, plural};

/// Maximum number of rows in a table of symbols.
const SHOWN: usize = 15;

/// Summarise logs: episodes, alphabet, rewards, and possible problems
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: LogArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let input = args.input.open()?;
    let mut summary = Summary::of(&input.logs).map_err(|e| input.blame(e))?;
    summary.first_skipped = summary.first_skipped.map(|text| input.rename(&text));
    if args.json {
        return report::json(&summary);
    }
    overview(&summary)?;
    symbols(&summary)?;
    if !summary.findings.is_empty() {
        report::say("\nnotes")?;
        for finding in &summary.findings {
            report::say(format!("  - {}", report::with_flags(finding)))?;
        }
    }
    Ok(())
}

fn overview(s: &Summary) -> anyhow::Result<()> {
    report::say(format!("{}, {}", plural(s.episodes, "episode"), plural(s.steps, "step")))?;
    if let Some(l) = s.lengths {
        report::say(format!("  length      {} to {}, mean {:.2}, median {}", l.min, l.max, l.mean, l.median))?;
    }
    report::say(format!("  ends        {} terminated, {} truncated", percent(s.terminated), percent(1.0 - s.terminated)))?;
    let r = &s.rewards;
    if let (Some(min), Some(mean), Some(max), Some(nonzero)) = (r.min, r.mean, r.max, r.nonzero) {
        let missing = if r.missing > 0 { format!(", missing in {}", plural(r.missing, "step")) } else { String::new() };
        report::say(format!(
            "  reward      {min} to {max}, mean {mean:.4}, non-zero in {} of the steps{missing}",
            percent(nonzero)
        ))?;
    } else {
        report::say("  reward      none")?;
    }
    if let Some(p) = s.propensities {
        report::say(format!(
            "  propensity  known, at least {:.4}; effective sample size for uniformly random actions {} of the steps",
            p.least,
            percent(p.effective)
        ))?;
    }
    report::say(format!(
        "  alphabet    {}, {}, {} seen",
        plural(s.actions.len() as u64, "action"),
        plural(s.observations.len() as u64, "observation"),
        plural(s.distinct_pairs, "pair")
    ))?;
    if s.skipped > 0 {
        report::say(format!(
            "  skipped     {}; the first: {}",
            plural(s.skipped, "episode"),
            s.first_skipped.as_deref().unwrap_or("")
        ))?;
    }
    Ok(())
}

fn symbols(s: &Summary) -> anyhow::Result<()> {
    let share = |n: u64| percent(n as f64 / s.steps.max(1) as f64);
    let actions = s.actions.iter().map(|a| (a.name.clone(), a.count)).collect();
    let name = |o: &foretell::log::ObservationCount| if o.terminal { format!("{} [end]", o.name) } else { o.name.clone() };
    let observations = s.observations.iter().map(|o| (name(o), o.count)).collect();
    for (title, symbols) in [("action", actions), ("observation", observations)] {
        let mut symbols: Vec<(String, u64)> = symbols;
        symbols.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let rows = symbols.iter().take(SHOWN).map(|(name, n)| vec![name.clone(), count(*n), share(*n)]);
        report::say(format!("\n{}", report::table(&[title, "steps", "share"], rows)))?;
        if symbols.len() > SHOWN {
            report::say(format!("  … and {} more (all with --json)", symbols.len() - SHOWN))?;
        }
    }
    Ok(())
}
