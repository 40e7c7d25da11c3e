//! `foretell sample`

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use foretell::log::{Format, Writer};
use foretell::{Seed, domains};

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
    /// Who acts
    #[arg(long, value_enum, default_value_t = Actor::Uniform)]
    policy: Actor,
    /// Seed; episode i depends on it and on i only
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write, by extension .csv, .jsonl or .parquet (the first two also .gz); `-` is CSV to standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Policies that need no learning.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Actor {
    /// Every action alike
    Uniform,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let Actor::Uniform = args.policy;
    let domain = domains::get(&args.domain)?;
    let max_steps = args.max_steps.unwrap_or(domain.horizon);
    if max_steps == 0 || args.episodes == 0 {
        anyhow::bail!("nothing to write: --episodes and --max-steps must be at least 1");
    }
    let to_stdout = args.output == Path::new("-");
    if !to_stdout {
        output::check(&args.output)?;
    }
    let mut writer =
        if to_stdout { Writer::stream(Box::new(std::io::stdout()), Format::Csv)? } else { Writer::create(&args.output)? };
    let mut steps = 0;
    for z in domains::sample(&domain, args.episodes, max_steps, Seed(args.seed)) {
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
