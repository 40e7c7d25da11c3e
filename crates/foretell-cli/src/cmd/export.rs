//! `foretell export`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use foretell::{Model, Pomdp, domains};

use crate::{output, report};

/// Write a refined or exact model in Cassandra's .POMDP format, which other planners read
#[derive(clap::Args)]
pub struct Args {
    /// A refined model (.safetensors), a built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(value_name = "MODEL")]
    model: String,
    /// File to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let pomdp = pomdp(&args.model)?;
    if args.output == Path::new("-") {
        io::stdout().lock().write_all(pomdp.to_cassandra().as_bytes())?;
        return Ok(());
    }
    output::check(&args.output)?;
    pomdp.write(&args.output)?;
    let states = report::plural(pomdp.states().len() as u64, "state");
    report::say(format!("{}, {states}, in {}", args.model, args.output.display()))?;
    Ok(())
}

/// The POMDP of a model file, or of a domain.
pub fn pomdp(name: &str) -> anyhow::Result<Pomdp> {
    if Path::new(name).extension().is_some_and(|extension| extension == "safetensors") {
        let model = Model::load(name)?;
        let Some(refined) = model.refined() else {
            anyhow::bail!(
                "{name} is a linear model, whose operators may give negative probabilities, so it is no POMDP; refine it first: foretell refine {name} LOGS -o refined.safetensors"
            );
        };
        return Ok(refined.pomdp.clone());
    }
    let domain = domains::get(name)?;
    domain.pomdp().cloned().ok_or_else(|| anyhow::anyhow!("{} has no exact model", domain.name))
}
