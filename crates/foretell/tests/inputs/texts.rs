//! Logs, POMDPs, mazes, and files of parameters and schemas.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foretell::domains::grid::Grid;
use foretell::log::{OnBadEpisode, ReadOptions};
use foretell::{
    Action, ActionObservation, Alphabet, Belief, LearnOverrides, LearnParams, Logs, Pomdp, Predict, Schema, Summary, Trajectory,
    Writer,
};

/// Rounding of sums of probabilities.
const ROUNDING: f64 = 1e-6;
/// Most episodes that are written and read again.
const MOST_AGAIN: usize = 1000;

/// A folder of this thread, in memory where there is such a file system.
pub(super) fn folder() -> PathBuf {
    thread_local!(static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() });
    let new = || match Path::new("/dev/shm") {
        memory if memory.is_dir() => tempfile::tempdir_in(memory).unwrap(),
        _ => tempfile::tempdir().unwrap(),
    };
    FOLDER.with(|folder| folder.get_or_init(new).path().to_path_buf())
}

pub fn csv(bytes: &[u8]) {
    log(bytes, "log.csv");
}

pub fn json_lines(bytes: &[u8]) {
    log(bytes, "log.jsonl");
}

pub fn parquet(bytes: &[u8]) {
    log(bytes, "log.parquet");
}

pub fn gzip(bytes: &[u8]) {
    log(bytes, "log.csv.gz");
}

type Read = (Alphabet, Vec<Trajectory>);

fn read(logs: &Logs) -> foretell::Result<Read> {
    let mut reader = logs.open(Alphabet::default())?;
    let episodes = reader.by_ref().collect::<foretell::Result<_>>()?;
    Ok((reader.into_alphabet(), episodes))
}

fn log(bytes: &[u8], name: &str) {
    let path = folder().join(name);
    fs::write(&path, bytes).unwrap();
    let with = |on_bad| Logs::files([&path], ReadOptions { on_bad, schema: Arc::default() });
    let strict = read(&with(OnBadEpisode::Fail));
    if let Ok(lenient) = read(&with(OnBadEpisode::Skip))
        && let Ok(strict) = &strict
    {
        assert_eq!(lenient.1, strict.1, "no episode was bad");
    }
    let _ = with(OnBadEpisode::Fail).guess();
    let _ = Summary::of(&with(OnBadEpisode::Skip));
    if let Ok(read) = strict
        && read.1.len() <= MOST_AGAIN
    {
        write_again(&read);
    }
}

/// What was read is written and read as the same, by names.
fn write_again((alphabet, episodes): &Read) {
    let path = folder().join("again.csv");
    let mut writer = Writer::create(&path).unwrap();
    for z in episodes {
        assert!(z.steps.iter().all(|ao| ao.action.index() < alphabet.actions().len()));
        if writer.write(alphabet, z).is_err() {
            return; // some names are only read
        }
    }
    writer.finish().unwrap();
    // An empty table has no log.
    let Ok((known, again)) = read(&Logs::files([&path], ReadOptions::default())) else { return };
    assert_eq!(again.len(), episodes.len());
    let named = |alphabet: &Alphabet, z: &Trajectory| -> Vec<(String, Option<String>)> {
        let name = |ao: &ActionObservation| {
            let seen = (!ao.observation.is_missing()).then(|| alphabet.symbol(ao.observation).to_string());
            (alphabet.action_name(ao.action).to_string(), seen)
        };
        z.steps.iter().map(name).collect()
    };
    for (x, y) in episodes.iter().zip(&again) {
        assert_eq!((named(alphabet, x), x.end), (named(&known, y), y.end));
        assert_eq!(x.rewards, y.rewards);
    }
}

pub fn pomdp(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(pomdp) = Pomdp::parse(&text, "x.POMDP") else { return };
    let again = Pomdp::parse(&pomdp.to_cassandra(), "again.POMDP").unwrap();
    assert_eq!((again.states(), again.alphabet().actions()), (pomdp.states(), pomdp.alphabet().actions()));
    assert_eq!(again.to_cassandra(), pomdp.to_cassandra());
    pomdp.uniform_policy().nth(2);
    predicts(&pomdp);
}

fn predicts(pomdp: &Pomdp) {
    let mut belief = Belief::new(pomdp);
    let actions = pomdp.alphabet().actions().len();
    for t in 0..4 {
        let a = Action((t % actions) as u32);
        let p = belief.probabilities(a).to_vec();
        let total: f64 = p.iter().sum();
        assert!(p.iter().all(|p| *p >= 0.0) && (total - 1.0).abs() < ROUNDING, "{total}");
        let o = p.iter().position(|p| *p > 0.0).expect("they sum to 1");
        if pomdp.alphabet().observations()[o].terminal {
            return;
        }
        belief.update(ActionObservation::new(a.0, o as u32));
    }
}

pub fn maze(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(grid) = Grid::parse(&text, "x.txt") else { return };
    predicts(&grid.pomdp());
    predicts(&grid.without_colours().pomdp());
}

pub fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(overrides) = toml::from_str::<LearnOverrides>(&text) else { return };
    let params = overrides.apply(LearnParams::default());
    if params.validate().is_ok() {
        let again: LearnOverrides = toml::from_str(&toml::to_string(&params).unwrap()).unwrap();
        assert_eq!(again.apply(LearnParams::paper()), params);
    }
}

/// A table with all kinds of columns, which schemas say how to read.
const TABLE: &str = "id,t,a,b,x,r,p,done,when,free\n1,0,go,u,0.5,1,0.5,0,2024-01-01,go;stay\n1,1,stay,v,1.5,0,0.25,1,2024-01-02,go;stay\n2,0,go,u,-3,?,1,0,2024-02-01,stay\n2,1,go,,7,2,1,1,2024-02-03,go\n";

pub fn schema(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let of_json = serde_json::from_slice::<Schema>(bytes).ok();
    let Some(schema) = of_json.or_else(|| toml::from_str(&text).ok()) else { return };
    let json = serde_json::to_string(&schema).unwrap();
    assert_eq!(serde_json::to_string(&serde_json::from_str::<Schema>(&json).unwrap()).unwrap(), json);
    let path = folder().join("table.csv");
    fs::write(&path, TABLE).unwrap();
    let logs = Logs::files([&path], ReadOptions { on_bad: OnBadEpisode::Skip, schema: Arc::new(schema) });
    let _ = read(&logs);
    if let Ok((logs, _)) = logs.understood()
        && let Ok(logs) = logs.fitted()
    {
        let _ = read(&logs);
    }
}
