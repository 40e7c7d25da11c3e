//! `foretell inspect`

use foretell::Schema;
use foretell::log::{Guess, GuessedRole, Summary};
use serde::Serialize;

use crate::input::{LogArgs, Opened};
use crate::report::{self, count, percent, plural};
use crate::schema::flags;

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

/// What a table holds, and what its columns mean.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    summary: Summary,
    /// What the columns mean, as given, guessed and fitted.
    schema: Schema,
    roles: Vec<GuessedRole>,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let as_given = args.input.open_as_given()?;
    let guess = as_given.logs.guess().map_err(|e| as_given.blame(e))?;
    // What cannot be read is explained before it is refused.
    let is_unreadable = guess.as_ref().is_some_and(|guess| guess.problem.is_some());
    if is_unreadable && !args.json {
        guess.iter().try_for_each(columns)?;
        guess.iter().flat_map(|guess| &guess.doubts).try_for_each(|doubt| report::say(report::with_flags(doubt)))?;
    }
    let explained = guess.as_ref().filter(|_| is_unreadable && !args.json);
    let (input, _) = args.input.understand(as_given).map_err(|error| match explained {
        Some(Guess { unread: Some(problem), .. }) => anyhow::anyhow!("{}", report::with_flags(problem)),
        Some(guess) if !guess.is_sure() => {
            anyhow::anyhow!("some of this is a guess, so nothing was read: give the flags above, or others")
        }
        _ => error,
    })?;
    let summary = summarise(&input)?;
    if args.json {
        let roles = guess.map(|guess| guess.roles).unwrap_or_default();
        return report::json(&Report { summary, schema: (**input.logs.schema()).clone(), roles });
    }
    let is_usual = guess.iter().flat_map(|guess| &guess.roles).all(|role| !role.guessed) && input.logs.schema().is_empty();
    if !is_usual && !is_unreadable {
        guess.iter().try_for_each(columns)?;
    }
    if !is_usual {
        report::say("")?;
    }
    overview(&summary)?;
    symbols(&summary)?;
    let doubts = guess.iter().filter(|_| !is_unreadable).flat_map(|guess| &guess.doubts);
    let notes: Vec<&String> = doubts.chain(&summary.findings).collect();
    if !notes.is_empty() {
        report::say("\nnotes")?;
        notes.iter().try_for_each(|note| report::say(format!("  - {}", report::with_flags(note))))?;
    }
    Ok(())
}

fn summarise(input: &Opened) -> anyhow::Result<Summary> {
    let mut summary = Summary::of(&input.logs).map_err(|e| input.blame(e))?;
    summary.first_skipped = summary.first_skipped.map(|text| input.rename(&text));
    Ok(summary)
}

/// What the columns mean, and why; then how to say the same explicitly.
fn columns(guess: &Guess) -> anyhow::Result<()> {
    let row = |role: &GuessedRole| {
        let columns = if role.columns.is_empty() { "none".into() } else { role.columns.join(", ") };
        let doubt = if role.guessed && !role.sure { "a guess, not used without asking: " } else { "" };
        vec![role.role.to_string(), columns, format!("{doubt}{}", role.reason), role.examples.join(", ")]
    };
    if !guess.roles.is_empty() {
        report::say(report::table(&["read as", "columns", "why", "values"], guess.roles.iter().map(row)))?;
    }
    if let Some(problem) = &guess.unread {
        report::say(format!("\ntried: {}", flags(&guess.schema)))?;
        // Where the table cannot be read without flags either, this is the error.
        if guess.problem.is_none() {
            report::say(format!("but the first rows cannot be read so: {}", report::with_flags(problem)))?;
        }
    } else if guess.roles.iter().any(|role| role.guessed) {
        report::say(format!("\nthe same, said explicitly: {}", flags(&guess.schema)))?;
        report::say("or, in a file for --schema:")?;
        toml::to_string(&guess.schema.as_given())?.lines().try_for_each(|line| report::say(format!("  {line}")))?;
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
    if let Some(available) = s.available {
        report::say(format!(
            "  available   {:.2} of {} on average; only some in {} of the steps, only the one taken in {}",
            available.mean,
            plural(s.actions.len() as u64, "action"),
            percent(available.restricted as f64 / s.steps.max(1) as f64),
            percent(available.forced as f64 / s.steps.max(1) as f64)
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
