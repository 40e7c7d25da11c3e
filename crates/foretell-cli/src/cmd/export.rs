//! `foretell export`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use foretell::domains;

use crate::{output, report};

/// Write an exact model in Cassandra's .POMDP format, which other planners read
#[derive(clap::Args)]
pub struct Args {
    /// A built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(value_name = "DOMAIN")]
    domain: String,
    /// File to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let domain = domains::get(&args.domain)?;
    let Some(pomdp) = domain.pomdp() else { anyhow::bail!("{} has no exact model to write", domain.name) };
    if args.output == Path::new("-") {
        io::stdout().lock().write_all(pomdp.to_cassandra().as_bytes())?;
        return Ok(());
    }
    output::check(&args.output)?;
    pomdp.write(&args.output)?;
    let states = report::plural(pomdp.states().len() as u64, "state");
    report::say(format!("{}, {states}, in {}", domain.name, args.output.display()))?;
    Ok(())
}
