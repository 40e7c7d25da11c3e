//! `foretell act`

use std::io::{BufRead, stdin};
use std::path::PathBuf;

use foretell::log::flag;
use foretell::plan::Greedy;
use foretell::{Action, ActionObservation, Error, Observation, ObservationSymbol, Plan, Policy, Seed};

use crate::report;

/// Let a policy choose actions for another program
///
/// Writes the first action. Then reads observations from standard input, one per line, and writes
/// the next action after each, without buffering. An empty line starts a new episode. `?` is a
/// missing observation, also as one of several parts. Measured or several columns are given as in
/// the logs: `1.5`, or `speed=1.5|door=open`. If rewards are part of observations, append
/// the reward, as in `growl(-1)`; without it, the state is that of any reward.
///
/// With --available, every line is the observation, a tab, and the available actions as in the logs:
/// with `;` between them, or 1 (or nothing) for all; a single action that is called 1 is `1;`. The first line of an episode has no observation, and no
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
    let plan = crate::input::policy(&args.policy)?;
    let (alphabet, mut policy, mut rng) = (plan.alphabet(), plan.policy(), Seed(0).rng());
    let mut action = policy.act(&mut rng);
    if !args.available {
        report::say(alphabet.action_name(action))?;
    }
    for (number, line) in (1..).zip(stdin().lock().lines()) {
        let line = line?;
        let (seen, listed) = if args.available { line.split_once('\t').unwrap_or((&line, "")) } else { (line.as_str(), "") };
        match seen.trim() {
            "" => policy.reset(),
            text => observe(&plan, &mut policy, action, text, number),
        }
        let available = available(&plan, listed.trim()).map_err(|e| anyhow::anyhow!("line {number}: {e}"))?;
        action = policy.best_among(&available).unwrap_or_else(|| policy.best());
        report::say(alphabet.action_name(action))?;
    }
    Ok(())
}

/// Takes an observation into account as it is written in that line.
fn observe(plan: &Plan, policy: &mut Greedy, action: Action, text: &str, line: u64) {
    let alphabet = plan.alphabet();
    if text == "?" {
        return policy.observe(ActionObservation { action, observation: Observation::MISSING });
    }
    // The reward may be written with any number of digits.
    let written = ObservationSymbol { name: text.to_string(), terminal: false };
    let with_reward = written.split_reward().filter(|_| alphabet.observes_rewards());
    let named = |text: &str| ObservationSymbol { name: plan.schema().observation_name(alphabet, text), terminal: false };
    let name = match with_reward {
        Some((plain, reward)) => named(&plain.name).with_reward(reward).name,
        None => named(text).name,
    };
    // After the end of an episode the caller starts a new one with an empty line.
    let known = alphabet.observation(&name).or(alphabet.terminal_observation(&name));
    if known.is_none() && !alphabet.agreeing(&name).is_empty() {
        return policy.observe_partial(action, &name); // parts of it are missing, or the reward is
    }
    let observation = known.unwrap_or_else(|| {
        eprintln!("line {line}: observation {name:?} is not in the logs that the policy was trained on; treated as unknown");
        Observation(alphabet.observations().len() as u32)
    });
    policy.observe(ActionObservation { action, observation });
}

/// The available actions as logs tell them: a list, or 1 for all; none for all.
fn available(plan: &Plan, list: &str) -> anyhow::Result<Vec<Action>> {
    let alphabet = plan.alphabet();
    match flag(list) {
        Some(true) => return Ok(Vec::new()),
        Some(false) => anyhow::bail!(
            "{list:?} says that only one action is available, but not which; name it with ; after it, as in \"{};\"",
            alphabet.actions().first().map_or("", String::as_str)
        ),
        None => {}
    }
    let names = list.split(';').map(str::trim).filter(|name| !name.is_empty());
    let known = || alphabet.actions().iter().map(String::as_str);
    let action = |name: &str| plan.schema().action_of(alphabet, name).ok_or_else(|| Error::unknown("action", name, known()));
    Ok(names.map(action).collect::<foretell::Result<_>>()?)
}
