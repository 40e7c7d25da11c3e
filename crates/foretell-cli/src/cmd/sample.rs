//! `foretell sample`

use std::path::{Path, PathBuf};

use foretell::log::{Format, Writer};
use foretell::policy::Exploring;
use foretell::{Plan, Policy, Seed, Uniform, domains};

use crate::{output, report};

/// Let a domain run and write what happened as logs
#[derive(clap::Args)]
pub struct Args {
    /// A built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(value_name = "DOMAIN")]
    domain: String,
    /// Number of episodes
    #[arg(long, default_value_t = 1000, value_name = "N")]
    episodes: usize,
    /// Steps after which an episode is cut [default: the domain's horizon]
    #[arg(long, value_name = "L")]
    max_steps: Option<usize>,
    /// Who acts: `uniform`, every action alike, or the file of a policy
    #[arg(long, default_value = UNIFORM, value_name = "POLICY")]
    policy: PathBuf,
    /// Share of actions taken at random where a policy acts
    #[arg(long, default_value_t = 0.0, value_name = "E")]
    epsilon: f64,
    /// Seed; episode i depends on it and on i only
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write, by extension .csv, .jsonl or .parquet (the first two also .gz); `-` is CSV to standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// The policy that needs no file.
const UNIFORM: &str = "uniform";

pub fn run(args: Args) -> anyhow::Result<()> {
    let domain = domains::get(&args.domain)?;
    let max_steps = args.max_steps.unwrap_or(domain.horizon);
    if max_steps == 0 || args.episodes == 0 {
        anyhow::bail!("nothing to write: --episodes and --max-steps must be at least 1");
    }
    if !(0.0..=1.0).contains(&args.epsilon) {
        anyhow::bail!("epsilon = {}: must be between 0 and 1", args.epsilon);
    }
    let plan = match &args.policy {
        uniform if uniform == Path::new(UNIFORM) && args.epsilon > 0.0 => {
            anyhow::bail!("--epsilon {}: needs the file of a policy, --policy FILE", args.epsilon)
        }
        uniform if uniform == Path::new(UNIFORM) => None,
        file if file.is_file() => Some(Plan::load(file)?),
        other => anyhow::bail!("--policy {}: neither `uniform` nor the file of a policy", other.display()),
    };
    let greedy = plan.as_ref().map(|plan| plan.policies_for(domain.alphabet())).transpose()?;
    let actions = domain.alphabet().actions().len();
    let policy = || -> Box<dyn Policy> {
        match &greedy {
            Some(greedy) => Box::new(Exploring::new(greedy(), args.epsilon, actions)),
            None => Box::new(Uniform { actions }),
        }
    };
    let to_stdout = args.output == Path::new("-");
    if !to_stdout {
        output::check(&args.output)?;
    }
    let mut writer =
        if to_stdout { Writer::stream(Box::new(std::io::stdout()), Format::Csv)? } else { Writer::create(&args.output)? };
    let mut steps = 0;
    for z in domains::sample_with(&domain, policy, args.episodes, max_steps, Seed(args.seed)) {
        steps += z.steps.len() as u64;
        writer.write(domain.alphabet(), &z)?;
    }
    writer.finish()?;
    if !to_stdout {
        let episodes = report::plural(args.episodes as u64, "episode");
        report::say(format!("{episodes} of {}, {}, in {}", domain.name, report::plural(steps, "step"), args.output.display()))?;
    }
    Ok(())
}
