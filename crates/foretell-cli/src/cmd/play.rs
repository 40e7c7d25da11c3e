//! `foretell play`

use std::io::{BufRead, IsTerminal, stdin, stdout};

use foretell::{Seed, domains};

use crate::game::{self, Game};
use crate::{report, screen};

/// Play a domain yourself: see what the agent sees, and choose its actions
///
/// In a terminal the keyboard controls it. If input or output is not a terminal, actions are read
/// from standard input, one per line, and the outcomes are written to standard output. After the
/// end of an episode the next action starts a new one.
#[derive(clap::Args)]
pub struct Args {
    /// A built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(value_name = "DOMAIN", default_value = "pocman")]
    domain: String,
    /// Also show the hidden state: the map, or the name of the state
    #[arg(long)]
    reveal: bool,
    /// Steps after which an episode is truncated [default: the domain's horizon]
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Seed; the same seed and actions give the same episodes
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let domain = domains::get(&args.domain)?;
    let max_steps = args.max_steps.map_or(domain.horizon, |n| n as usize);
    let game = Game::new(&domain, max_steps, Seed(args.seed));
    if stdin().is_terminal() && stdout().is_terminal() {
        return Ok(screen::play::play(game, args.reveal)?);
    }
    follow(game, args.reveal)
}

/// Takes actions from standard input until it ends.
fn follow(mut game: Game<'_>, reveal: bool) -> anyhow::Result<()> {
    let actions = game.domain.alphabet().actions().join(", ");
    report::say(format!("{}: {}\nactions: {actions}", game.domain.name, game.domain.story))?;
    show(&game, reveal)?;
    for (number, line) in (1..).zip(stdin().lock().lines()) {
        let line = line?;
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        let Some(a) = game.action(text) else {
            anyhow::bail!("line {number}: {text:?} is not an action of {}; write one of {actions}", game.domain.name);
        };
        let outcome = game.act(a);
        let words = game.words().unwrap_or_default();
        let (step, name) = (game.steps.len(), &game.domain.alphabet().actions()[a.index()]);
        report::say(format!("{step} {name}: {words} Reward {}.", game::reward(outcome.reward)))?;
        show(&game, reveal)?;
        if let Some(verdict) = game.verdict() {
            report::say(verdict)?;
        }
    }
    Ok(())
}

fn show(game: &Game<'_>, reveal: bool) -> std::io::Result<()> {
    if reveal { report::say(game.picture().trim_end()) } else { Ok(()) }
}
