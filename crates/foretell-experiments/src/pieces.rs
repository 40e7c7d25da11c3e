//! Finished pieces of an experiment, saved in a folder.

use std::path::PathBuf;
use std::time::Instant;

use foretell::Checkpoint;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Arguments;

/// Results of finished pieces, so that a stopped experiment resumes with the next one.
pub struct Pieces {
    checkpoint: Option<Checkpoint>,
    opened: Instant,
}

impl Pieces {
    /// Opens the folder of `--checkpoint`. `work` is everything that the results depend on.
    pub fn open(arguments: &Arguments, work: &impl Serialize) -> foretell::Result<Pieces> {
        let open = |folder: &PathBuf| Checkpoint::open(folder, work, || true);
        let checkpoint = arguments.checkpoint.as_ref().map(open).transpose()?;
        let pieces = Pieces { checkpoint, opened: Instant::now() };
        if let (true, Some(folder)) = (pieces.go_on(), &arguments.checkpoint) {
            eprintln!("resuming from {}", folder.display());
        }
        Ok(pieces)
    }

    fn go_on(&self) -> bool {
        self.checkpoint.as_ref().is_some_and(Checkpoint::goes_on)
    }

    /// Total time so far in seconds; unknown after a stop.
    pub fn seconds(&self) -> Option<f64> {
        (!self.go_on()).then(|| self.opened.elapsed().as_secs_f64().round())
    }

    /// The rows of a piece: the saved ones, or those that `run` returns.
    pub fn rows<R: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        run: impl FnOnce() -> anyhow::Result<Vec<R>>,
    ) -> anyhow::Result<Vec<R>> {
        let Some(checkpoint) = &mut self.checkpoint else { return run() };
        if let Some(bytes) = checkpoint.load(name)? {
            return from_csv(&bytes);
        }
        let rows = run()?;
        checkpoint.save(name, &to_csv(&rows)?)?;
        Ok(rows)
    }

    /// Removes the folder, after the results were written.
    pub fn finish(self) -> foretell::Result<()> {
        self.checkpoint.map_or(Ok(()), Checkpoint::finish)
    }
}

/// CSV, which can hold infinities.
fn to_csv<R: Serialize>(rows: &[R]) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    Ok(writer.into_inner()?)
}

fn from_csv<R: DeserializeOwned>(bytes: &[u8]) -> anyhow::Result<Vec<R>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes);
    Ok(reader.deserialize().collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (String, u64, Option<f64>, Vec<f64>);

    fn rows() -> Vec<Row> {
        let odd = [0.1 + 0.2, -0.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, 1.0, 1e-7];
        let some = (1..=odd.len()).map(|n| (format!("a, \"b\" {n}"), u64::MAX, Some(odd[n - 1]), odd.to_vec()));
        some.chain([(String::new(), 0, None, odd.to_vec())]).collect()
    }

    #[test]
    fn numbers_survive_bit_by_bit() {
        let read: Vec<Row> = from_csv(&to_csv(&rows()).unwrap()).unwrap();
        assert_eq!(read, rows());
        let bits = |rows: &[Row]| rows.iter().flat_map(|row| &row.3).map(|x| x.to_bits()).collect::<Vec<u64>>();
        assert_eq!(bits(&read), bits(&rows()));
        assert!(from_csv::<f64>(&to_csv(&[f64::NAN]).unwrap()).unwrap()[0].is_nan());
    }

    #[test]
    fn a_finished_piece_is_not_run_again() {
        let folder = std::env::temp_dir().join(format!("foretell-pieces-{}", std::process::id()));
        let arguments = Arguments { folder: "results".into(), words: vec![], quick: false, checkpoint: Some(folder.clone()) };
        let mut runs = 0;
        for _ in 0..2 {
            let mut pieces = Pieces::open(&arguments, &"seeds").unwrap();
            let run = || {
                runs += 1;
                Ok(rows())
            };
            assert_eq!(pieces.rows("seed-1", run).unwrap(), rows());
        }
        assert_eq!(runs, 1);
        assert!(Pieces::open(&arguments, &"other seeds").is_err());
        Pieces::open(&arguments, &"seeds").unwrap().finish().unwrap();
        assert!(!folder.exists());
    }
}
