//! Trajectories survive every format, and every common table is understood.
#![cfg(feature = "parquet")]

use std::fs;
use std::path::PathBuf;

use foretell::log::MISSING;
use foretell::{About, Alphabet, End, Logs, OnBadEpisode, ReadOptions, Summary, Trajectory, Writer, limits};
use proptest::prelude::*;
use tempfile::TempDir;

const NAMES: [&str; 9] = [
    "walks.csv",
    "walks.csv.gz",
    "walks.jsonl",
    "walks.ndjson",
    "walks.jsonl.gz",
    "b/walks.csv",
    "walks.parquet",
    "x.CSV",
    "y.Parquet",
];
fn skip() -> ReadOptions {
    ReadOptions { on_bad: OnBadEpisode::Skip, ..ReadOptions::default() }
}

/// A step by names: action, observation, reward, probability.
type Step = (String, String, Option<f64>, f64);

/// A trajectory by names, whatever the indices.
fn spell(alphabet: &Alphabet, z: &Trajectory) -> (Vec<Step>, bool, End) {
    let probability = |t: usize| z.action_probabilities.get(t).copied().unwrap_or(-1.0);
    let step = |(t, step): (usize, &foretell::ActionObservation)| {
        let symbol = alphabet.symbol(step.observation);
        assert_eq!(symbol.terminal, z.end == End::Terminated && t + 1 == z.steps.len());
        (alphabet.action_name(step.action).to_string(), symbol.name.clone(), z.rewards[t], probability(t))
    };
    (z.steps.iter().enumerate().map(step).collect(), z.action_probabilities.is_empty(), z.end)
}

fn build(alphabet: &mut Alphabet, steps: &[Step], with_probabilities: bool, end: End) -> Trajectory {
    let pair = |(t, (a, o, _, _)): (usize, &Step)| foretell::ActionObservation {
        action: alphabet.intern_action(a),
        observation: match end == End::Terminated && t + 1 == steps.len() {
            true => alphabet.intern_terminal_observation(o),
            false => alphabet.intern_observation(o),
        },
    };
    Trajectory {
        steps: steps.iter().enumerate().map(pair).collect(),
        rewards: steps.iter().map(|step| step.2).collect(),
        action_probabilities: if with_probabilities { steps.iter().map(|step| step.3).collect() } else { vec![] },
        end,
        about: About::default(),
    }
}

fn read(path: PathBuf) -> (Alphabet, Vec<Trajectory>) {
    let mut reader = Logs::files([path], ReadOptions::default()).open(Alphabet::default()).unwrap();
    // Episodes in memory have no names, and the writer numbers them.
    let unnamed = |z: foretell::Result<Trajectory>| Trajectory { about: About::default(), ..z.unwrap() };
    let trajectories = reader.by_ref().map(unnamed).collect();
    (reader.alphabet().clone(), trajectories)
}

/// Names with special characters of the formats, or that look empty.
fn name() -> impl Strategy<Value = String> {
    let nasty = [
        " ", "\t", "\n", "\r", "\r\n", ",", ";", "\"", "\"\"", "a\"b", "nil", "N.A.", "true", "-", "0", "-0", "007", "1e3",
        "0.5", "|", "a=b|c=d", "{", "}", "[1]", "\\", "\\n", "#", "'", "\u{feff}", "\u{0}", "日本", "é", "e\u{301}", "🦀",
        " lead", "trail ", "a,b\nc",
    ];
    let any = prop_oneof![3 => prop::sample::select(nasty.to_vec()).prop_map(String::from), 1 => "[a-c]{1,2}", 1 => "\\PC{1,6}", 1 => any::<char>().prop_map(String::from)];
    any.prop_filter("it stands for a missing value", |name| !MISSING.contains(&name.as_str()))
}

fn step() -> impl Strategy<Value = Step> {
    let reward =
        prop::option::of(prop_oneof![Just(0.0), Just(-0.0), -1e3..1e3, prop::num::f64::NORMAL, prop::num::f64::SUBNORMAL]);
    let reward = reward.prop_map(|reward| reward.map(|r| r % limits::REWARD));
    let probability = prop_oneof![Just(1.0), limits::PROBABILITY..=1.0];
    (name(), name(), reward, probability)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn trajectories_survive_every_format(
        episodes in prop::collection::vec((prop::collection::vec(step(), 1..6), any::<bool>()), 1..6),
        with_probabilities in any::<bool>(),
        format in 0..NAMES.len(),
    ) {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        let path = folder.path().join(NAMES[format]);
        let mut alphabet = Alphabet::default();
        let mut writer = Writer::create(&path).unwrap();
        let mut written = vec![];
        for (steps, terminated) in &episodes {
            let end = if *terminated { End::Terminated } else { End::Truncated };
            let z = build(&mut alphabet, steps, with_probabilities, end);
            writer.write(&alphabet, &z).unwrap();
            written.push(z);
        }
        prop_assert!(!path.exists());
        writer.finish().unwrap();
        let (again, trajectories) = read(path);
        prop_assert_eq!(&again, &alphabet);
        prop_assert_eq!(trajectories, written);
    }
}

fn write_file(folder: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

/// The steps of each episode of a table, `action>observation`, and how they end.
fn episodes_of(name: &str, content: &str) -> String {
    let folder = TempDir::new().unwrap();
    let (alphabet, trajectories) = read(write_file(&folder, name, content));
    describe(&alphabet, &trajectories)
}

fn describe(alphabet: &Alphabet, trajectories: &[Trajectory]) -> String {
    let episode = |z: &Trajectory| {
        let (steps, _, end) = spell(alphabet, z);
        let steps: Vec<_> = steps.iter().map(|(a, o, _, _)| format!("{a}>{o}")).collect();
        format!("{} {}", steps.join(" "), if end == End::Terminated { "T" } else { "-" })
    };
    trajectories.iter().map(episode).collect::<Vec<_>>().join("; ")
}

#[test]
fn the_same_table_reads_the_same_in_csv_and_json() {
    let expected = "N>wall S>goal T; N>wall -";
    let csv = "\u{feff}Episode_ID,STEP,action,observation,terminated,truncated\r\n\r\n1,0,N,wall,false,False\r\n1,1,S,goal,TRUE,0\r\n2,5,N,wall,0.0,1";
    assert_eq!(episodes_of("a.csv", csv), expected);
    assert_eq!(episodes_of("a.unknown", csv), expected);
    assert_eq!(episodes_of("a.csv", &csv.replace(',', ";")), expected);
    assert_eq!(episodes_of("a.txt", &csv.replace(',', "\t")), expected);
    let json = r#"{"eps_id": 1, "actions": "N", "obs": "wall", "infos": {"x": [1]}}
        {"obs": "goal", "eps_id": 1, "actions": "S", "terminateds": true}

        {"eps_id": 2, "actions": "N", "obs": "wall"}"#;
    assert_eq!(episodes_of("a.jsonl", json), expected);
    assert_eq!(episodes_of("a.json", json), expected);
}

#[test]
fn an_observation_may_be_spread_over_columns() {
    assert_eq!(episodes_of("a.csv", "a,obs_side,obs_colour\nN,left,red\n"), "N>colour=red|side=left -");
    assert_eq!(episodes_of("a.csv", "a,obs_1,obs_0,obs_10\nN,1,0,7\n"), "N>0|1|7 -");
    assert_eq!(episodes_of("a.jsonl", r#"{"a": [0, 1], "o": ["x", 2, true, 3.0]}"#), "0|1>x|2|true|3 -");
    assert_eq!(episodes_of("a.jsonl", r#"{"a": 1.0, "obs": 5, "new_obs": false}"#), "1>false -");
}

#[test]
fn without_ids_flags_divide_a_file() {
    assert_eq!(episodes_of("a.csv", "a,o,terminals,timeouts\n1,1,0,0\n2,2,1,0\n3,3,0,1\n4,4,0,0\n"), "1>1 2>2 T; 3>3 -; 4>4 -");
    assert_eq!(episodes_of("a.csv", "a,o,is_first\n1,1,1\n2,2,0\n3,3,1\n"), "1>1 2>2 -; 3>3 -");
    let rlds = "a,o,is_first,is_last,is_terminal\n1,1,1,0,0\n2,2,0,1,1\n3,3,1,1,0\n";
    assert_eq!(episodes_of("a.csv", rlds), "1>1 2>2 T; 3>3 -");
    assert_eq!(episodes_of("a.csv", "a,o\n1,1\n2,2\n"), "1>1 2>2 -");
}

#[test]
fn log_probabilities_are_probabilities() {
    let folder = TempDir::new().unwrap();
    let (_, z) = read(write_file(&folder, "a.csv", "a,o,action_logp\n1,1,-0.5\n"));
    assert_eq!(z[0].action_probabilities, [(-0.5f64).exp()]);
    let (_, z) = read(write_file(&folder, "b.csv", "a,o,action_logp,action_prob\n1,1,-0.5,0.25\n"));
    assert_eq!(z[0].action_probabilities, [0.25]);
}

/// The episodes of a table if bad ones are skipped, and the number skipped.
fn skipping(name: &str, content: &str) -> (String, u64) {
    let folder = TempDir::new().unwrap();
    let mut reader = Logs::files([write_file(&folder, name, content)], skip()).open(Alphabet::default()).unwrap();
    let trajectories: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.first_skipped().is_some(), reader.skipped() > 0);
    (describe(reader.alphabet(), &trajectories), reader.skipped())
}

#[test]
fn a_bad_row_drops_its_episode_and_no_other() {
    let table = "ep,a,o,r\n1,N,x,0\n2,N,x,0\n2,bad,bad,n.a.\n2,N,worse,0\n3,N,x,0\n";
    assert_eq!(skipping("a.csv", table), ("N>x -; N>x -".into(), 1));
    let repeated = "ep,a,o\n1,N,x\n2,N,x\n1,N,y\n3,N,x\n";
    assert_eq!(skipping("a.csv", repeated), ("N>x -; N>x -; N>x -".into(), 1));
}

#[test]
fn names_of_dropped_episodes_do_not_enter_the_alphabet() {
    let folder = TempDir::new().unwrap();
    let path = write_file(&folder, "a.csv", "ep,a,o,r\n1,new,new,0\n1,N,x,n.a.\n2,N,y,0\n2,N,x,1\n");
    let mut reader = Logs::files([path], skip()).open(Alphabet::default()).unwrap();
    assert_eq!(reader.by_ref().count(), 1);
    assert_eq!(reader.alphabet().actions(), ["N"]);
    let names: Vec<_> = reader.alphabet().observations().iter().map(|symbol| &symbol.name).collect();
    assert_eq!(names, ["y", "x"]);
}

#[test]
fn a_row_without_an_episode_drops_both_neighbours() {
    assert_eq!(skipping("a.csv", "ep,a,o\n1,N,x\n2,N,x\n,N,x\n3,N,x\n4,N,x\n"), ("N>x -; N>x -".into(), 2));
    assert_eq!(skipping("a.csv", "ep,a,o\n1,N,x\n2,N,x\n2,N\n2,N,x\n3,N,x\n"), ("N>x -; N>x -".into(), 1));
    assert_eq!(skipping("a.csv", "ep,a,o\n1,N,x,x\n1,N,x\n2,N,x\n"), ("N>x -".into(), 1));
    assert_eq!(skipping("a.csv", "ep,a,o,done\n1,N,x,1\noops\n"), ("N>x T".into(), 1));
    let lines = "{\"ep\":1,\"a\":1,\"o\":1}\n{\"ep\":2,\"a\":1,\"o\":1}\n{\"ep\":\n{\"ep\":2,\"a\":1,\"o\":1}\n{\"ep\":3,\"a\":1,\"o\":1}\n";
    assert_eq!(skipping("a.jsonl", lines), ("1>1 -; 1>1 -".into(), 1));
}

#[test]
fn without_ids_a_bad_row_drops_everything_up_to_the_next_end() {
    let table = "a,o,r,done\n1,1,0,1\n2,2,x,0\n2,2,0,0\n2,2,0,1\n3,3,0,1\n";
    assert_eq!(skipping("a.csv", table), ("1>1 T; 3>3 T".into(), 1));
    assert_eq!(skipping("a.csv", &table.replace("2,2,x,0", "2,2")), ("1>1 T; 3>3 T".into(), 1));
    assert_eq!(skipping("a.csv", &table.replace("2,2,x,0", "2,2,0,?")), ("1>1 T; 3>3 T".into(), 1));
    // its own end counts, although something else is wrong with it
    assert_eq!(skipping("a.csv", "a,o,r,done\n1,1,x,1\n3,3,0,1\n"), ("3>3 T".into(), 1));
    let first = "a,o,is_first\n1,1,1\n,2,1\n2,2,0\n3,3,1\n";
    assert_eq!(skipping("a.csv", first), ("1>1 -; 3>3 -".into(), 1));
}

#[test]
fn files_are_read_one_after_the_other_into_one_alphabet() {
    let folder = TempDir::new().unwrap();
    let first = write_file(&folder, "a.csv", "ep,a,o\n1,N,x\n");
    let second = write_file(&folder, "b.jsonl", r#"{"ep": 1, "a": "S", "o": "x"}"#);
    let logs = Logs::files([first, second], ReadOptions::default());
    let mut start = Alphabet::default();
    start.intern_action("S");
    for _ in 0..2 {
        let mut reader = logs.open(start.clone()).unwrap();
        let trajectories: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(describe(reader.alphabet(), &trajectories), "N>x -; S>x -");
        assert_eq!(reader.alphabet().actions(), ["S", "N"]);
    }
}

#[test]
fn memory_is_read_by_name() {
    let mut alphabet = Alphabet::default();
    let steps = [("N".to_string(), "x".to_string(), Some(1.0), 1.0)];
    let z = build(&mut alphabet, &steps, false, End::Terminated);
    let logs = Logs::memory(alphabet, vec![z.clone()]);
    let mut other = Alphabet::default();
    other.intern_action("S");
    let mut reader = logs.open(other).unwrap();
    let again = reader.next().unwrap().unwrap();
    assert_eq!(again.steps, [foretell::ActionObservation::new(1, 0)]);
    assert_eq!(describe(reader.alphabet(), &[again]), "N>x T");

    let foreign = Logs::memory(Alphabet::default(), vec![z]);
    let mut reader = foreign.open(Alphabet::default()).unwrap();
    assert!(reader.next().unwrap().is_err() && reader.next().is_none());
}

#[test]
fn a_dropped_writer_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    for name in ["a.csv", "a.jsonl.gz", "a.parquet"] {
        let mut writer = Writer::create(folder.path().join(name)).unwrap();
        let mut alphabet = Alphabet::default();
        let z = build(&mut alphabet, &[("N".into(), "x".into(), None, 1.0)], true, End::Truncated);
        writer.write(&alphabet, &z).unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn trajectories_that_could_not_be_read_are_not_written() {
    let folder = TempDir::new().unwrap();
    let mut writer = Writer::create(folder.path().join("a.csv")).unwrap();
    let mut alphabet = Alphabet::default();
    let good = build(&mut alphabet, &[("N".into(), "x".into(), None, 1.0)], true, End::Truncated);
    writer.write(&alphabet, &good).unwrap();
    let nameless = build(&mut alphabet, &[("N".into(), "".into(), None, 1.0)], true, End::Truncated);
    let infinite = Trajectory { rewards: vec![Some(f64::INFINITY)], ..good.clone() };
    let mixed = Trajectory { action_probabilities: vec![], ..good.clone() };
    let empty = Trajectory { steps: vec![], rewards: vec![], ..mixed.clone() };
    for bad in [nameless, infinite, mixed, empty] {
        assert!(writer.write(&alphabet, &bad).is_err(), "{bad:?}");
    }
    writer.finish().unwrap();
    assert_eq!(read(folder.path().join("a.csv")).1, [good]);
    assert!(Writer::create(folder.path().join("a.txt")).is_err());
}

#[test]
fn a_summary_counts_and_finds() {
    let folder = TempDir::new().unwrap();
    let table = "eps_id,actions,obs,rewards,done,colour\n1,N,x,0,0,r\n1,N,y,,1,r\n2,N,x,0,0,r\n3,N,x,n.a.,0,r\n";
    let summary = Summary::of(&Logs::files([write_file(&folder, "a.csv", table)], skip())).unwrap();
    assert_eq!((summary.episodes, summary.steps, summary.skipped, summary.distinct_pairs), (2, 3, 1, 2));
    assert_eq!(summary.terminated, 0.5);
    assert_eq!((summary.rewards.missing, summary.rewards.mean, summary.rewards.nonzero), (1, Some(0.0), Some(0.0)));
    let lengths = summary.lengths.unwrap();
    assert_eq!((lengths.min, lengths.median, lengths.max, lengths.mean), (1, 1, 2, 1.5));
    let columns = ["episode ← eps_id", "action ← actions", "observation ← obs", "reward ← rewards", "terminated ← done"];
    assert_eq!(summary.notes.columns, columns);
    insta::assert_snapshot!(summary.findings.join("\n"), @r#"
    1 of 3 episodes were skipped
    more than 10 % of the episodes were skipped: the rest may not be representative
    there is one action, "N": the effects of actions cannot be learned
    3 of 3 symbols were seen fewer than 5 times: action "N", observation "x", observation "y [end]"
    1 of 3 rewards are missing
    all rewards are zero
    at least half of the episodes have one step: is the episode column right?
    1 episode(s) end without a flag and are read as truncated
    the column done is read as terminated; if it also marks time limits, split it into terminated and truncated
    each row's observation is read as what followed its action; if the action was chosen on it, shift observations (`shift_observation`)
    columns not read: colour
    "#);
}
