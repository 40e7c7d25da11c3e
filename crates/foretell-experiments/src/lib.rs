//! Common parts of the experiments: arguments, statistics over seeds, and files of results.

mod explored;
mod pieces;
pub mod systems;

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context;
use foretell::Mean;
use foretell_plots::Figure;
use serde_json::{Value, json};

pub use explored::Explorer;
pub use pieces::Pieces;

/// Arguments of an experiment: `EXPERIMENT [FOLDER] [WORD…] [--quick] [--checkpoint DIR]`.
#[derive(Clone)]
pub struct Arguments {
    /// Folder for the results.
    pub folder: PathBuf,
    /// Further words.
    pub words: Vec<String>,
    /// Whether to run a small version.
    pub quick: bool,
    /// Folder for finished pieces, so that the same command can resume after it was stopped.
    pub checkpoint: Option<PathBuf>,
}

impl Arguments {
    /// The arguments of this process.
    pub fn read() -> anyhow::Result<Arguments> {
        Arguments::of(std::env::args().skip(1))
    }

    fn of(arguments: impl IntoIterator<Item = String>) -> anyhow::Result<Arguments> {
        let (mut words, mut quick, mut checkpoint) = (Vec::new(), false, None);
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => quick = true,
                "--checkpoint" => checkpoint = Some(arguments.next().context("--checkpoint needs the name of a folder")?.into()),
                flag if flag.starts_with("--") => anyhow::bail!("{flag} is not known; known: --quick, --checkpoint DIR"),
                _ => words.push(argument),
            }
        }
        let folder = if words.is_empty() { "results".into() } else { words.remove(0) };
        Ok(Arguments { folder: folder.into(), words, quick, checkpoint })
    }
}

/// Writes `NAME.csv` (every seed), `NAME.md` (means over seeds) and `NAME.json` (what was run, and where) into a folder, and prints
/// the table.
pub fn write(folder: &Path, name: &str, csv: &str, table: &str, manifest: &Value) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut manifest = manifest.clone();
    manifest["machine"] = machine();
    let manifest = format!("{manifest:#}\n");
    for (extension, text) in [("csv", csv), ("md", table), ("json", &manifest)] {
        fs::write(folder.join(format!("{name}.{extension}")), text)?;
    }
    print!("{table}");
    Ok(())
}

/// Draws `NAME.svg` and `NAME.png` into a folder.
pub fn draw(folder: &Path, name: &str, figures: &[Figure]) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    ["svg", "png"].iter().try_for_each(|kind| {
        let path = folder.join(format!("{name}.{kind}"));
        Ok(foretell::store::write(&path, &foretell_plots::drawn(figures, &path)?)?)
    })
}

/// The machine that runs the experiment.
fn machine() -> Value {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    json!({ "system": std::env::consts::OS, "architecture": std::env::consts::ARCH, "cores": cores, "processor": model })
}

/// Statistics over several seeds.
pub struct OverSeeds {
    /// Their mean.
    pub mean: f64,
    /// Half the 95 % interval of the mean.
    pub half: f64,
    /// Their standard deviation.
    pub sd: f64,
    /// Their minimum.
    pub least: f64,
    /// Their maximum.
    pub largest: f64,
}

impl OverSeeds {
    /// The mean with half its interval, as a point of a line.
    pub fn at(&self, x: f64) -> foretell_plots::Point {
        foretell_plots::Point { x, y: self.mean, half: self.half }
    }
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

/// 97.5 % quantiles of Student's t with 1, 2, … degrees of freedom.
const T95: [f64; 19] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
    2.101, 2.093,
];

/// The quantile for a mean over `n` seeds, with n − 1 degrees of freedom; that of the normal
/// distribution for more than 20 seeds.
fn t95(seeds: usize) -> f64 {
    seeds.checked_sub(2).map_or(0.0, |i| T95.get(i).copied().unwrap_or(1.96))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_student() {
        let of = |numbers: &[f64]| numbers.iter().copied().collect::<OverSeeds>();
        // sd = 1 and n = 4: 3.182 / 2
        let four = of(&[-1.0, -1.0, 1.0, 1.0].map(|x: f64| x * 0.75f64.sqrt()));
        assert!((four.half - 1.591).abs() < 1e-9 && four.mean == 0.0, "{}", four.half);
        assert_eq!(of(&[3.0]).half, 0.0);
        assert_eq!(t95(10), 2.262);
        assert_eq!(t95(100), 1.96);
    }

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
