//! `foretell report`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use foretell::{Domain, domains, store};

use crate::input::LogArgs;
use crate::output;
use crate::page::{HeldOut, Options, Subject};
use crate::report::{self, count};

/// Write an HTML page about a model, a policy or a run: what it learned, how good it is, what it
/// does
///
/// The page is a single file that needs no network. With --logs it shows how well a model predicts
/// held-out logs. With --domain it shows the returns and actions of a policy. For missing parts it
/// says which flags add them.
#[derive(clap::Args)]
pub struct Args {
    /// A model from `learn` or `refine`, a policy from `plan` or `agent`, or the output of
    /// `agent --json` (`-` is standard input)
    #[arg(value_name = "MODEL|POLICY|RUN")]
    file: PathBuf,
    /// Held-out logs to summarise, score and show step by step: files, folders or quoted patterns
    #[arg(long, value_name = "LOGS", num_args = 1..)]
    logs: Vec<PathBuf>,
    /// Domain that the logs come from; its exact model is shown for comparison
    #[arg(long, value_name = "DOMAIN", requires = "logs")]
    truth: Option<String>,
    /// Domain for the policy to act in: a built-in one (see `foretell domains`), a .POMDP file or
    /// the map of a maze [default: that of the run]
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Number of episodes to show step by step
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=50))]
    episodes: u16,
    /// Number of test episodes of the policy in the domain, or of rollouts in its own model
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    test_episodes: u64,
    /// Seed of these episodes; those in the domain are the same as in `evaluate` and `watch`
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write the page to; `-` is standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "json")]
    output: Option<PathBuf>,
    /// Print the contents of the page as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    if let Some(path) = args.output.as_ref().filter(|path| !is_dash(path)) {
        let mut inputs = LogArgs::of(args.logs.clone()).files()?;
        inputs.extend(args.truth.iter().chain(&args.domain).map(PathBuf::from).chain([args.file.clone()]));
        output::check([path], &inputs)?;
    }
    let subject = Subject::read(&args.file)?;
    let page = subject.page(&Options {
        logs: (!args.logs.is_empty())
            .then(|| LogArgs::of(args.logs.clone()).open_for(&subject.schema()))
            .transpose()?
            .map(HeldOut::new),
        truth: args.truth.as_deref().map(exact).transpose()?,
        domain: args.domain.as_deref().map(domains::get).transpose()?,
        episodes: usize::from(args.episodes),
        test_episodes: args.test_episodes,
        seed: args.seed,
    })?;
    if args.json {
        report::json(&page)?;
    }
    let Some(path) = &args.output else { return Ok(()) };
    let html = page.html();
    if is_dash(path) {
        return Ok(io::stdout().lock().write_all(html.as_bytes())?);
    }
    store::write(path, html.as_bytes())?;
    if !args.json {
        report::say(format!("{}: {} kB, open it in a browser", path.display(), count(html.len().div_ceil(1000) as u64)))?;
        let missing = page.missing();
        if !missing.is_empty() {
            report::say("missing from the page:")?;
        }
        for hint in missing {
            report::say(format!("  {hint}"))?;
        }
    }
    Ok(())
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A domain that has an exact model.
fn exact(name: &str) -> anyhow::Result<Domain> {
    let domain = domains::get(name)?;
    match domain.pomdp() {
        Some(_) => Ok(domain),
        None => anyhow::bail!("--truth {}: this domain has no exact model", domain.name),
    }
}
