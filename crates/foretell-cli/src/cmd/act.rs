//! `foretell act`

use std::io::{BufRead, Read, stdin};
use std::path::PathBuf;

use foretell::data::{escaped, unescaped};
use foretell::limits::LINE;
use foretell::log::flag;
use foretell::plan::Greedy;
use foretell::{Action, ActionObservation, Alphabet, Error, Observation, ObservationSymbol, Plan, Policy, Seed};

use crate::report;

/// Let a policy choose actions for another program
///
/// Writes the first action. Then reads observations from standard input, one per line, and writes
/// the next action after each, without buffering. An empty line starts a new episode. `?`, or what
/// stood for a missing value in the logs, is a missing observation, also as one of several parts;
/// an observation that has this name in the logs is meant by it. Measured or several columns are given
/// as in the logs: `1.5`, or `speed=1.5|door=open`. If rewards are part of observations, append
/// the reward, as in `growl(-1)`; without it, the state is that of any reward.
///
/// Line ends and control characters in names are written, and may be given, as `\n`, `\t` or
/// `\u{1b}`. Blanks around a name count where the logs have a name with them. A line that is not
/// UTF-8, or names no known observation, counts as an unknown observation, with a message on
/// standard error.
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
        report::say(escaped(alphabet.action_name(action)))?;
    }
    let (mut input, mut bytes) = (stdin().lock(), Vec::new());
    for number in 1.. {
        bytes.clear();
        if input.by_ref().take(LINE as u64 + 1).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        anyhow::ensure!(bytes.len() <= LINE, "line {number} has more than {LINE} bytes; write one observation a line");
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let tab = line.iter().position(|&byte| byte == b'\t').filter(|_| args.available);
        let (seen, listed) = tab.map_or((line, &line[..0]), |tab| (&line[..tab], &line[tab + 1..]));
        match std::str::from_utf8(seen) {
            Ok(text) if text.trim().is_empty() && known(alphabet, text).is_none() => policy.reset(),
            Ok(text) => observe(&plan, &mut policy, action, text, number),
            Err(_) => {
                let shown = String::from_utf8_lossy(seen);
                report::complain(format!("line {number}: {shown:?} is not valid UTF-8; treated as an unknown observation"));
                policy.observe(unknown(alphabet, action));
            }
        }
        let available = available(&plan, listed, number).map_err(|e| anyhow::anyhow!("line {number}: {e}"))?;
        action = policy.best_among(&available).unwrap_or_else(|| policy.best());
        report::say(escaped(alphabet.action_name(action)))?;
    }
    Ok(())
}

/// The observation of that name. After the end of an episode the caller starts a new one with an empty
/// line.
fn known(alphabet: &Alphabet, name: &str) -> Option<Observation> {
    alphabet.observation(name).or(alphabet.terminal_observation(name))
}

fn unknown(alphabet: &Alphabet, action: Action) -> ActionObservation {
    ActionObservation { action, observation: Observation(alphabet.observations().len() as u32) }
}

/// Takes an observation into account as it is written in that line.
fn observe(plan: &Plan, policy: &mut Greedy, action: Action, written: &str, line: u64) {
    let alphabet = plan.alphabet();
    let (exact, trimmed) = (unescaped(written), unescaped(written.trim()));
    let literally = [written, &exact, &trimmed].into_iter().find_map(|name| known(alphabet, name));
    if let Some(observation) = literally {
        return policy.observe(ActionObservation { action, observation });
    }
    let text = &*trimmed;
    if text == "?" || plan.schema().means_missing(text) {
        return policy.observe(ActionObservation { action, observation: Observation::MISSING });
    }
    // The reward may be written with any number of digits.
    let symbol = ObservationSymbol { name: text.to_string(), terminal: false };
    let with_reward = symbol.split_reward().filter(|_| alphabet.observes_rewards());
    let named = |text: &str| ObservationSymbol { name: plan.schema().observation_name(alphabet, text), terminal: false };
    let name = match with_reward {
        Some((plain, reward)) => named(&plain.name).with_reward(reward).name,
        None => named(text).name,
    };
    let known = known(alphabet, &name);
    if known.is_none() && !alphabet.agreeing(&name).is_empty() {
        return policy.observe_partial(action, &name); // parts of it are missing, or the reward is
    }
    policy.observe(match known {
        Some(observation) => ActionObservation { action, observation },
        None => {
            report::complain(format!(
                "line {line}: observation {name:?} is not in the logs that the policy was trained on; treated as unknown"
            ));
            unknown(alphabet, action)
        }
    });
}

/// The available actions as logs tell them: a list, or 1 for all; none for all.
fn available(plan: &Plan, list: &[u8], line: u64) -> anyhow::Result<Vec<Action>> {
    let alphabet = plan.alphabet();
    match std::str::from_utf8(list).ok().map(str::trim).and_then(flag) {
        Some(true) => return Ok(Vec::new()),
        Some(false) => anyhow::bail!(
            "{:?} says that only one action is available, but not which; name it with ; after it, as in \"{};\"",
            String::from_utf8_lossy(list).trim(),
            alphabet.actions().first().map_or("", String::as_str)
        ),
        None => {}
    }
    let known = || alphabet.actions().iter().map(String::as_str);
    let mut actions = Vec::new();
    let mut skipped = None;
    for name in list.split(|&byte| byte == b';').filter(|name| !name.trim_ascii().is_empty()) {
        match std::str::from_utf8(name) {
            Ok(name) => actions.push(action(plan, name).ok_or_else(|| Error::unknown("action", name.trim(), known()))?),
            Err(_) => skipped = Some(String::from_utf8_lossy(name)),
        }
    }
    match skipped {
        Some(name) if actions.is_empty() => Err(Error::unknown("action", &name, known()).into()),
        Some(name) => {
            report::complain(format!("line {line}: the action {name:?} is not valid UTF-8; left out"));
            Ok(actions)
        }
        None => Ok(actions),
    }
}

/// The action that is written in a list: its name as it is, escaped, or with blanks around it.
fn action(plan: &Plan, written: &str) -> Option<Action> {
    let (exact, trimmed) = (unescaped(written), unescaped(written.trim()));
    let alphabet = plan.alphabet();
    let literally = [written, &exact].into_iter().find_map(|name| alphabet.action(name));
    literally.or_else(|| plan.schema().action_of(alphabet, &trimmed))
}
