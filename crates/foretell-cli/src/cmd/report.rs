//! `foretell report`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use foretell::{Domain, domains, store};

use crate::input::LogArgs;
use crate::output;
use crate::page::{Heard, Subject, Wishes};
use crate::report::{self, count};

/// Make one page about a model, a policy or a run, for a browser: what it learned, how good it is, what it does
///
/// The page is one file that needs no network. With --logs it tells how well a model foretells logs it has not seen; with --domain,
/// what a policy earns and does. What a page does not hold it says how to get.
#[derive(clap::Args)]
pub struct Args {
    /// A model of `learn` or `refine`, a policy of `plan` or `agent`, or what `agent --json` printed (`-` is standard input)
    #[arg(value_name = "MODEL|POLICY|RUN")]
    file: PathBuf,
    /// Logs that it has not seen, files, folders or quoted patterns: summed up, scored, and shown step by step
    #[arg(long, value_name = "LOGS", num_args = 1..)]
    logs: Vec<PathBuf>,
    /// The domain the logs come from: its exact model is put beside
    #[arg(long, value_name = "DOMAIN", requires = "logs")]
    truth: Option<String>,
    /// Let the policy act here: a built-in domain (see `foretell domains`), a .POMDP file or the map of a maze [default: that of
    /// the run]
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Episodes that are shown step by step
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=50))]
    episodes: u16,
    /// Episodes in which the policy is tested in the domain, or in its own model
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    test_episodes: u64,
    /// Seed of these episodes; those of the domain are those of `evaluate` and `watch`
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write the page to; `-` is standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "json")]
    output: Option<PathBuf>,
    /// Print what is on the page as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    if let Some(path) = args.output.as_deref().filter(|path| !is_dash(path)) {
        output::check(path)?;
        let inputs = args.logs.iter().chain([&args.file]).cloned();
        LogArgs::of(inputs.filter(|path| path.exists()).collect()).refuse_as_output(path)?;
    }
    let subject = Subject::read(&args.file)?;
    let page = subject.page(&Wishes {
        logs: (!args.logs.is_empty()).then(|| LogArgs::of(args.logs.clone()).open()).transpose()?.map(Heard::new),
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
            report::say("not on the page:")?;
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
        None => anyhow::bail!("{} has no exact model", domain.name),
    }
}
