//! `foretell act`

use std::io::{BufRead, stdin};
use std::path::PathBuf;

use foretell::{ActionObservation, Observation, ObservationSymbol, Plan, Policy, Seed};

use crate::report;

/// Let a policy choose actions for another program
///
/// Writes the first action; then, for each observation read from standard input, one on each line, the next. An empty line
/// begins a new episode. The answer comes at once, so a program can hold the pipe open. `?` stands for an observation that is
/// missing; where the policy observes rewards, they come with it, as in `growl(-1)`.
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
                // However the reward is written.
                let symbol = ObservationSymbol { name: name.to_string(), terminal: false };
                let told = symbol.split_reward().filter(|_| alphabet.observes_rewards());
                let name = &told.map_or(symbol, |(plain, reward)| plain.with_reward(reward)).name;
                // Whoever tells that the episode has ended begins a new one with an empty line.
                let observation = alphabet.observation(name).or(alphabet.terminal_observation(name)).unwrap_or_else(|| {
                    eprintln!("line {number}: observation {name:?} was never met in the logs of the policy");
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
