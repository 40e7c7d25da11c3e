//! `foretell act`

use std::io::{BufRead, stdin};
use std::path::PathBuf;

use foretell::{ActionObservation, Observation, ObservationSymbol, Plan, Policy, Seed};

use crate::report;

/// Let a policy choose actions for another program
///
/// Writes the first action. Then reads observations from standard input, one per line, and writes
/// the next action after each, without buffering. An empty line starts a new episode. `?` is a
/// missing observation. If the policy was learned with --observe-reward, append the reward to the
/// observation, as in `growl(-1)`.
#[derive(clap::Args)]
pub struct Args {
    /// A policy that `foretell plan` or `foretell agent` wrote
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let plan = Plan::load(&args.policy)?;
    let (alphabet, mut policy, mut rng) = (plan.alphabet(), plan.policy(), Seed(0).rng());
    let unknown = Observation(alphabet.observations().len() as u32);
    let mut action = policy.act(&mut rng);
    report::say(alphabet.action_name(action))?;
    for (number, line) in (1..).zip(stdin().lock().lines()) {
        let line = line?;
        match line.trim() {
            "" => policy.reset(),
            "?" => policy.observe(ActionObservation { action, observation: unknown }),
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
        action = policy.act(&mut rng);
        report::say(alphabet.action_name(action))?;
    }
    Ok(())
}
