//! What the experiments share: their arguments, statistics over seeds, and the files of results.

mod pieces;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use foretell::returns::Mean;
use serde_json::Value;

pub use pieces::Pieces;

/// What an experiment was asked for: `EXPERIMENT [FOLDER] [WORD…] [--quick] [--checkpoint DIR]`.
pub struct Arguments {
    /// Where results go.
    pub folder: PathBuf,
    /// What else was named.
    pub words: Vec<String>,
    /// Whether little is enough.
    pub quick: bool,
    /// Where finished pieces are kept until all are, so that the same command goes on after being stopped.
    pub checkpoint: Option<PathBuf>,
}

impl Arguments {
    /// Of this process.
    pub fn read() -> anyhow::Result<Arguments> {
        Arguments::of(std::env::args().skip(1))
    }

    fn of(arguments: impl IntoIterator<Item = String>) -> anyhow::Result<Arguments> {
        let (mut words, mut quick, mut checkpoint) = (Vec::new(), false, None);
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => quick = true,
                "--checkpoint" => checkpoint = Some(arguments.next().context("--checkpoint: name a folder")?.into()),
                flag if flag.starts_with("--") => anyhow::bail!("{flag} is not known; known: --quick, --checkpoint DIR"),
                _ => words.push(argument),
            }
        }
        let folder = if words.is_empty() { "results".into() } else { words.remove(0) };
        Ok(Arguments { folder: folder.into(), words, quick, checkpoint })
    }
}

/// Writes `NAME.csv` (every seed), `NAME.md` (means over seeds) and `NAME.json` (what was run) into a folder, and prints the table.
pub fn write(folder: &Path, name: &str, csv: &str, table: &str, manifest: &Value) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let manifest = format!("{manifest:#}\n");
    for (extension, text) in [("csv", csv), ("md", table), ("json", &manifest)] {
        fs::write(folder.join(format!("{name}.{extension}")), text)?;
    }
    print!("{table}");
    Ok(())
}

/// Numbers of several seeds.
pub struct OverSeeds {
    /// Their mean.
    pub mean: f64,
    /// Half the 95 % interval of the mean.
    pub half: f64,
    /// Their standard deviation.
    pub sd: f64,
    /// The least of them.
    pub least: f64,
    /// The largest of them.
    pub largest: f64,
}

impl FromIterator<f64> for OverSeeds {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> OverSeeds {
        let numbers: Vec<f64> = numbers.into_iter().collect();
        let mean: Mean = numbers.iter().copied().collect();
        OverSeeds {
            mean: mean.mean(),
            half: t95(numbers.len()) * mean.sd() / (numbers.len() as f64).sqrt(),
            sd: mean.sd(),
            least: numbers.iter().copied().fold(f64::INFINITY, f64::min),
            largest: numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// 97.5 % quantile of Student's t with one degree of freedom less than there are seeds.
fn t95(seeds: usize) -> f64 {
    match seeds {
        2 => 12.706,
        3 => 4.303,
        5 => 2.776,
        10 => 2.262,
        _ => 1.96,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_in_any_order() {
        let read = |line: &str| Arguments::of(line.split_whitespace().map(str::to_string));
        let arguments = read("out --checkpoint kept tiger --quick hallway").unwrap();
        assert_eq!((arguments.folder, arguments.words), ("out".into(), vec!["tiger".into(), "hallway".into()]));
        assert_eq!((arguments.quick, arguments.checkpoint), (true, Some("kept".into())));
        let arguments = read("").unwrap();
        assert_eq!((arguments.folder, arguments.words), ("results".into(), vec![]));
        assert_eq!((arguments.quick, arguments.checkpoint), (false, None));
        assert!(read("out --checkpoint").is_err() && read("--quik").is_err());
    }
}
