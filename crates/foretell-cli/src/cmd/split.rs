//! `foretell split`

use std::path::PathBuf;

use foretell::Seed;
use foretell::log::{Split, split, split_names};

use crate::input::LogArgs;
use crate::output;
use crate::report::{self, plural};

/// Divide tables into one to learn from and one to test on: all rows of an episode, or of a person,
/// go to the same file
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: LogArgs,
    /// Columns whose values stay together [default: those that name episodes]
    #[arg(long, value_name = "COLUMNS")]
    by: Option<String>,
    /// Share of the groups that goes to the second file
    #[arg(long, default_value_t = 0.3, value_name = "SHARE")]
    test: f64,
    /// Seed of the random choice
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The two files to write, such as train.csv,test.csv; the extensions set the formats
    #[arg(short, long, value_name = "TRAIN,TEST", value_delimiter = ',', required = true, num_args = 1..=2)]
    output: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let [train, test] = &args.output[..] else { anyhow::bail!("--output needs two files, such as train.csv,test.csv") };
    if train == test {
        anyhow::bail!("--output names {} twice; give two different files", train.display());
    }
    output::check([train, test], &args.input.files()?)?;
    let by = args.by.as_deref().map(split_names).unwrap_or_default();
    let input = if by.is_empty() { args.input.open()? } else { args.input.open_as_given()? };
    let divided = split(&input.paths, input.logs.schema(), &by, args.test, Seed(args.seed), [train, test]);
    let Split { by, groups, rows } = divided.map_err(|e| input.blame(e))?;
    if args.json {
        return report::json(&Split { by, groups, rows });
    }
    for ((path, groups), rows) in [train, test].into_iter().zip(groups).zip(rows) {
        let rows = plural(rows, "row");
        report::say(format!("{}: {rows}, {} of {}", path.display(), plural(groups, "value"), by.join(" and ")))?;
    }
    Ok(())
}
