//! `foretell sample`

use std::io::stdout;
use std::path::{Path, PathBuf};

use foretell::log::{Format, Writer};
use foretell::system::Exploring;
use foretell::{Alphabet, Policy, Seed, Trajectory, Uniform, domains};

use crate::{output, report};

/// Simulate a domain and write the episodes as logs
#[derive(clap::Args)]
pub struct Args {
    /// A built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(value_name = "DOMAIN")]
    domain: String,
    /// Number of episodes
    #[arg(long, default_value_t = 1000, value_name = "N")]
    episodes: usize,
    /// Steps after which an episode is truncated [default: the domain's horizon]
    #[arg(long, value_name = "L")]
    max_steps: Option<usize>,
    /// Policy that acts: `uniform` for uniformly random actions, or the file of a policy
    #[arg(long, default_value = UNIFORM, value_name = "POLICY")]
    policy: PathBuf,
    /// Probability of a random action instead of the policy's
    #[arg(long, default_value_t = 0.0, value_name = "E")]
    epsilon: f64,
    /// Seed; episode i depends only on it and on i
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write; its extension sets the format: .csv, .jsonl or .parquet (the first two also
    /// .gz); `-` writes CSV to standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write names in CSV as they are, also those that a spreadsheet would run as formulas, such as =1+1;
    /// otherwise these begin with an apostrophe, which reading takes away
    #[arg(long)]
    verbatim: bool,
    /// Write N files with equal shares of the episodes: logs/part.csv becomes logs/part-00.csv,
    /// logs/part-01.csv, …
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_SHARDS))]
    shards: Option<u32>,
}

/// Files that one command writes at most.
const MOST_SHARDS: i64 = 10_000;

/// The policy that needs no file.
const UNIFORM: &str = "uniform";

pub fn run(args: Args) -> anyhow::Result<()> {
    let outputs = match args.shards {
        _ if args.output == Path::new("-") => Vec::new(),
        Some(shards) => (0..shards as usize).map(|i| shard(&args.output, i, shards as usize)).collect(),
        None => vec![args.output.clone()],
    };
    output::check(&outputs, &[PathBuf::from(&args.domain), args.policy.clone()])?;
    let domain = domains::get(&args.domain)?;
    let max_steps = args.max_steps.unwrap_or(domain.horizon);
    if max_steps == 0 || args.episodes == 0 {
        anyhow::bail!("nothing to write: --episodes and --max-steps must be at least 1");
    }
    if !(0.0..=1.0).contains(&args.epsilon) {
        anyhow::bail!("--epsilon {}: must be between 0 and 1", args.epsilon);
    }
    let plan = match &args.policy {
        uniform if uniform == Path::new(UNIFORM) && args.epsilon > 0.0 => {
            anyhow::bail!("--epsilon {}: needs a policy to deviate from; add --policy FILE", args.epsilon)
        }
        uniform if uniform == Path::new(UNIFORM) => None,
        file if file.is_file() => Some(crate::input::policy(file)?),
        other => anyhow::bail!(
            "--policy {}: neither `uniform` nor an existing file; give a file that `foretell plan` or `agent` wrote",
            other.display()
        ),
    };
    let greedy = plan.as_ref().map(|plan| plan.policies_for(domain.alphabet())).transpose()?;
    let actions = domain.alphabet().actions().len();
    let policy = || -> Box<dyn Policy> {
        match &greedy {
            Some(greedy) => Box::new(Exploring::new(greedy(), args.epsilon, actions)),
            None => Box::new(Uniform { actions }),
        }
    };
    let mut episodes = domains::sample_with(&domain, policy, args.episodes, max_steps, Seed(args.seed));
    let to_stdout = args.output == Path::new("-");
    let steps = match args.shards {
        Some(shards) => write_shards(&args, shards as usize, domain.alphabet(), &mut episodes)?,
        None if to_stdout => {
            write(named(&args, Writer::stream(Box::new(stdout()), Format::Csv)?), domain.alphabet(), &mut episodes)?
        }
        None => write(named(&args, Writer::create(&args.output)?), domain.alphabet(), &mut episodes)?,
    };
    if !to_stdout {
        let (episodes, steps) = (report::plural(args.episodes as u64, "episode"), report::plural(steps, "step"));
        let place = match args.shards {
            Some(shards) => {
                let (first, last) =
                    (shard(&args.output, 0, shards as usize), shard(&args.output, shards as usize - 1, shards as usize));
                format!("{}: {} to {}", report::plural(u64::from(shards), "file"), first.display(), last.display())
            }
            None => args.output.display().to_string(),
        };
        report::say(format!("{episodes} of {}, {steps}, in {place}", domain.name))?;
    }
    Ok(())
}

/// The writer, which writes names as it was said.
fn named(args: &Args, writer: Writer) -> Writer {
    if args.verbatim { writer.verbatim() } else { writer }
}

/// Writes episodes; returns how many steps they have.
fn write(mut writer: Writer, alphabet: &Alphabet, episodes: impl Iterator<Item = Trajectory>) -> foretell::Result<u64> {
    let mut steps = 0;
    for z in episodes {
        steps += z.steps.len() as u64;
        writer.write(alphabet, &z)?;
    }
    writer.finish()?;
    Ok(steps)
}

/// Writes equal shares of the episodes to files, in order and numbered as in a single file.
fn write_shards(
    args: &Args,
    shards: usize,
    alphabet: &Alphabet,
    mut episodes: impl Iterator<Item = Trajectory>,
) -> anyhow::Result<u64> {
    if args.output == Path::new("-") {
        anyhow::bail!("--shards {shards}: standard output is a single file; name a file for --output");
    }
    if shards > args.episodes {
        anyhow::bail!("--shards {shards}: there are only {} episodes; use at most one file per episode", args.episodes);
    }
    let first = |i: usize| (i as u128 * args.episodes as u128 / shards as u128) as usize;
    let mut steps = 0;
    for i in 0..shards {
        let writer = Writer::create(shard(&args.output, i, shards))?.numbered_from(first(i) as u64);
        steps += write(named(args, writer), alphabet, episodes.by_ref().take(first(i + 1) - first(i)))?;
    }
    Ok(steps)
}

/// The file of a shard: its number, with as many digits as the last one's, comes before the
/// extensions.
fn shard(output: &Path, i: usize, shards: usize) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let packed = name.len() - if name.to_lowercase().ends_with(".gz") { ".gz".len() } else { 0 };
    let (stem, extensions) = name.split_at(name[..packed].rfind('.').unwrap_or(packed));
    let digits = (shards - 1).to_string().len().max(2);
    output.with_file_name(format!("{stem}-{i:0digits$}{extensions}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_numbered_before_the_extensions() {
        let name = |output: &str, i, shards| shard(Path::new(output), i, shards).display().to_string();
        assert_eq!(name("logs/part.parquet", 3, 10), "logs/part-03.parquet");
        assert_eq!(name("part.v2.csv.gz", 3, 1000), "part.v2-003.csv.gz");
        assert_eq!(name("part.csv", 0, 1001), "part-0000.csv");
        assert_eq!(name("part", 0, 1), "part-00");
    }
}
