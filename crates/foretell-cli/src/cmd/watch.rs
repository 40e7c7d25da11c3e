//! `foretell watch`

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;

use foretell::{Seed, domains};

use crate::game::Game;
use crate::report::{self, plural};
use crate::screen;
use crate::show::{Show, Thought};

/// Watch a policy act in a domain: its observations, its predictions and its action values
///
/// In a terminal the keyboard controls it. If input or output is not a terminal, a trace is written
/// to standard output, one line per step. The episodes are the same as in `foretell evaluate` with
/// the same seed.
#[derive(clap::Args)]
pub struct Args {
    /// A policy that `foretell plan` or `foretell agent` wrote
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    /// A built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(long, value_name = "DOMAIN")]
    domain: String,
    /// Number of episodes in the trace; in a terminal they continue until you quit
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    episodes: u64,
    /// Steps after which an episode is truncated [default: the domain's horizon]
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Seed; the same seed gives the same episodes
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let plan = crate::input::policy(&args.policy)?;
    let domain = domains::get(&args.domain)?;
    let max_steps = args.max_steps.map_or(domain.horizon, |n| n as usize);
    let mut show = Show::new(Game::new(&domain, max_steps, Seed(args.seed)), &plan)?;
    if stdin().is_terminal() && stdout().is_terminal() {
        return Ok(screen::watch::watch(show)?);
    }
    report::say(format!("{}: {}", domain.name, domain.story))?;
    if plan.model().is_none() {
        report::say("The policy has no model, so there are no predicted probabilities.")?;
    }
    for episode in 1..=args.episodes {
        if episode > 1 {
            show.restart();
        }
        trace(&mut show)?;
    }
    Ok(())
}

/// Writes the trace of an episode.
fn trace(show: &mut Show<'_>) -> anyhow::Result<()> {
    let (mut rows, mut unknown) = (Vec::new(), 0);
    while show.game.over().is_none() {
        let thought = show.thought().clone();
        show.step();
        unknown += u64::from(show.seen().is_some_and(|seen| !show.knows(seen.own)));
        rows.extend(row(show, &thought));
    }
    let values: Vec<String> = show.game.domain.alphabet().actions().iter().map(|name| format!("Q({name})")).collect();
    let header: Vec<&str> = ["step", "action"]
        .into_iter()
        .chain(values.iter().map(String::as_str))
        .chain(["probability", "observation", "reward"])
        .collect();
    report::say(format!("\nepisode {}\n{}", show.game.episode, report::table(&header, rows)))?;
    report::say(show.game.verdict().unwrap_or_default())?;
    if unknown > 0 {
        report::say(format!("{} not in the logs that the policy was trained on.", plural(unknown, "observation")))?;
    }
    Ok(())
}

/// The last step, with the policy's assessment before it.
fn row(show: &Show<'_>, thought: &Thought) -> Option<Vec<String>> {
    let alphabet = show.game.domain.alphabet();
    let (a, outcome) = show.game.steps.last()?;
    let number = |x: Option<f64>, digits: usize| x.map_or("–".to_string(), |x| format!("{x:.digits$}"));
    let mut row = vec![show.game.steps.len().to_string(), alphabet.action_name(*a).to_string()];
    row.extend(thought.values.iter().map(|&q| number(q, 3)));
    row.push(number(show.seen()?.given, 4));
    row.push(alphabet.symbol(outcome.observation).to_string());
    row.push(outcome.reward.to_string());
    Some(row)
}
