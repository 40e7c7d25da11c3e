//! `foretell act`

use std::io::{BufRead, stdin};
use std::path::PathBuf;

use foretell::{Action, ActionObservation, Alphabet, Error, Observation, ObservationSymbol, Plan, Policy, Seed};

use crate::report;

/// Let a policy choose actions for another program
///
/// Writes the first action. Then reads observations from standard input, one per line, and writes
/// the next action after each, without buffering. An empty line starts a new episode. `?` is a
/// missing observation, also as one of several parts. If rewards are part of observations, append
/// the reward, as in `growl(-1)`; without it, the state is that of any reward.
///
/// With --available, every line is the observation, a tab, and the available actions with `;`
/// between them (all if there are none); the first line of an episode has no observation, and no
/// action is written before it.
#[derive(clap::Args)]
pub struct Args {
    /// A policy that `foretell plan` or `foretell agent` wrote
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    /// Lines say which actions are available; the best of them is taken
    #[arg(long)]
    available: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let plan = Plan::load(&args.policy)?;
    let (alphabet, mut policy, mut rng) = (plan.alphabet(), plan.policy(), Seed(0).rng());
    let unknown = Observation(alphabet.observations().len() as u32);
    let mut action = policy.act(&mut rng);
    if !args.available {
        report::say(alphabet.action_name(action))?;
    }
    for (number, line) in (1..).zip(stdin().lock().lines()) {
        let line = line?;
        let (seen, listed) = if args.available { line.split_once('\t').unwrap_or((&line, "")) } else { (line.as_str(), "") };
        match seen.trim() {
            "" => policy.reset(),
            "?" => policy.observe(ActionObservation { action, observation: Observation::MISSING }),
            name if is_partial(alphabet, name) => policy.observe_partial(action, name),
            name => {
                // The reward may be written with any number of digits.
                let symbol = ObservationSymbol { name: name.to_string(), terminal: false };
                let with_reward = symbol.split_reward().filter(|_| alphabet.observes_rewards());
                let name = &with_reward.map_or(symbol, |(plain, reward)| plain.with_reward(reward)).name;
                // After the end of an episode the caller starts a new one with an empty line.
                let observation = alphabet.observation(name).or(alphabet.terminal_observation(name)).unwrap_or_else(|| {
                    eprintln!("line {number}: observation {name:?} is not in the logs that the policy was trained on; treated as unknown");
                    unknown
                });
                policy.observe(ActionObservation { action, observation });
            }
        }
        let available = available(alphabet, listed).map_err(|e| anyhow::anyhow!("line {number}: {e}"))?;
        action = policy.best_among(&available).unwrap_or_else(|| policy.best());
        report::say(alphabet.action_name(action))?;
    }
    Ok(())
}

/// Whether several observations may be meant: parts of the name are missing, or the reward is.
fn is_partial(alphabet: &Alphabet, name: &str) -> bool {
    let is_known = alphabet.observation(name).or(alphabet.terminal_observation(name)).is_some();
    !is_known && !alphabet.agreeing(name).is_empty()
}

/// The actions of a list; none for an empty one.
fn available(alphabet: &Alphabet, list: &str) -> foretell::Result<Vec<Action>> {
    let names = list.split(';').map(str::trim).filter(|name| !name.is_empty());
    let known = || alphabet.actions().iter().map(String::as_str);
    names.map(|name| alphabet.action(name).ok_or_else(|| Error::unknown("action", name, known()))).collect()
}
