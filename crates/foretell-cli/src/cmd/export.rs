//! `foretell export`

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use foretell::model::Predictor;
use foretell::{Pomdp, domains};

use crate::{output, report};

/// Write a refined or exact model in Cassandra's .POMDP format, which other planners read
#[derive(clap::Args)]
pub struct Args {
    /// A refined model, a built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(value_name = "MODEL")]
    model: String,
    /// File to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Discount to write to the file [default: the domain's; 0.99 for a refined model]
    #[arg(long, value_name = "G")]
    discount: Option<f64>,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    if args.output != Path::new("-") {
        output::check([&args.output], &[PathBuf::from(&args.model)])?;
    }
    let mut pomdp = pomdp(&args.model)?;
    if let Some(discount) = args.discount {
        pomdp = pomdp.with_discount(discount)?;
    }
    if args.output == Path::new("-") {
        io::stdout().lock().write_all(pomdp.to_cassandra().as_bytes())?;
        return Ok(());
    }
    pomdp.write(&args.output)?;
    let states = report::plural(pomdp.states().len() as u64, "state");
    report::say(format!("{}, {states}, in {}", args.model, args.output.display()))?;
    Ok(())
}

/// Discount of refined models: logs do not contain one.
const DISCOUNT: f64 = 0.99;

/// The POMDP of a model file, or of a domain.
fn pomdp(name: &str) -> anyhow::Result<Pomdp> {
    if is_model(Path::new(name)) {
        let model = crate::input::model(name)?;
        if matches!(model.predictor(), Predictor::Recurrent(_)) {
            anyhow::bail!(
                "{name} is a recurrent network, not a POMDP: it has no latent states; learn one with `foretell learn LOGS --only latent -o refined.safetensors`"
            );
        }
        let Some(refined) = model.latent() else {
            anyhow::bail!(
                "{name} is a linear model, not a POMDP: its operators may give negative probabilities; refine it first with `foretell refine {name} LOGS -o refined.safetensors`"
            );
        };
        return Ok(refined.pomdp.clone().with_discount(DISCOUNT)?);
    }
    let domain = domains::get(name)?;
    domain.pomdp().cloned().ok_or_else(|| {
        anyhow::anyhow!("{} has no exact model; choose a domain for which `foretell domains` lists states", domain.name)
    })
}

/// Whether the file is in safetensors format: the length of a header, then its opening brace.
fn is_model(path: &Path) -> bool {
    let mut start = [0; 9];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start[8] == b'{' && start[7] == 0
}
