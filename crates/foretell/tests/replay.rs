//! The inputs of the fuzz targets (`fuzz/`), as plain tests: seeds, whatever once failed, and some
//! changes of files.

use std::fs;
use std::path::{Path, PathBuf};

use foretell::agent::Agent;
use foretell::domains::grid::Grid;
use foretell::log::Format;
use foretell::plan::{Planner, Regressor, StateKind, plan_on};
use foretell::{
    AgentParams, Checkpoint, Keep, LearnParams, Learner, Logs, Model, PlanParams, Projection, Recipe, RefineParams, Refinement,
    Seed, SelectParams, Stamp, Writer, domains, learn,
};

use crate::inputs::{KINDS, edit, is_file};

/// Changes of each file that is a seed; `FORETELL_CHANGES` says another number.
const CHANGES: u64 = 100;

fn folder(of: &str, kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(of).join(kind)
}

/// The files of a folder, in order of their names.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Checks an input; `failed` takes its name if it fails.
fn check(check: fn(&[u8]), bytes: &[u8], name: String, failed: &mut Vec<String>) {
    if std::panic::catch_unwind(|| check(bytes)).is_err() {
        eprintln!("the input was {name}");
        failed.push(name);
    }
}

#[test]
fn every_seed_and_every_input_that_once_failed_is_fine() {
    let mut failing = Vec::new();
    for (kind, of_kind) in KINDS {
        let (seeds, failed) = (inputs(&folder("corpus", kind)), inputs(&folder("crashes", kind)));
        assert!(seeds.len() >= 2, "{kind} has {} seeds", seeds.len());
        for path in seeds.iter().chain(&failed) {
            check(of_kind, &fs::read(path).unwrap(), path.display().to_string(), &mut failing);
        }
    }
    assert!(failing.is_empty(), "{failing:#?}");
}

#[test]
fn seeds_are_what_they_are_named_after() {
    for (kind, name) in [("model", "model"), ("moments", "model"), ("policy", "policy")] {
        for path in inputs(&folder("corpus", kind)) {
            let stamp = Stamp::of(&fs::read(&path).unwrap());
            assert_eq!(stamp.map(|stamp| stamp.kind).as_deref(), Some(name), "{}", path.display());
        }
    }
}

#[test]
fn files_with_one_part_changed_are_refused_or_work() {
    let mut failed = Vec::new();
    let changes = std::env::var("FORETELL_CHANGES").ok().and_then(|n| n.parse().ok()).unwrap_or(CHANGES);
    for (kind, of_kind) in KINDS.into_iter().filter(|(kind, _)| is_file(kind)) {
        for path in inputs(&folder("corpus", kind)) {
            let whole = fs::read(&path).unwrap();
            for change in 0..changes {
                let changed = edit::changed(&whole, &mut Seed(change).rng());
                check(of_kind, &changed, format!("change {change} of {}", path.display()), &mut failed);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Writes the seeds anew: `cargo test -p foretell --test all write_seeds -- --ignored`.
#[test]
#[ignore = "it writes into the repository"]
fn write_seeds() {
    let save = |kind: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(folder("corpus", kind)).unwrap();
        fs::write(folder("corpus", kind).join(name), bytes).unwrap();
    };
    texts(&save);
    tables(&save);
    files(&save);
    checkpoints(&save);
}

fn texts(save: &dyn Fn(&str, &str, &[u8])) {
    let csv = [
        "action,observation\na,x\nb,y\n",
        "episode_id,step,action,observation,reward,terminated,truncated,action_prob\n0,0,N,wall,0,false,false,0.5\n0,1,E,open,-1.5,true,false,0.5\n1,0,N,NA,,false,true,1\n",
        "user;when;quality,x\n1;2024-01-02;3\n",
        "action,observation_a,observation_b,available\n\"a,\"\"b\",1,2,a;b\nc,?,2,\n",
        "obs,act,rew,done,timeout\n1,2,0.1,0,0\n2,1,0.2,1,0\n",
    ];
    let lines = [
        "{\"action\": \"a\", \"observation\": \"x\", \"reward\": 1}\n{\"action\": \"b\", \"observation\": null}\n",
        "{\"action\": 1, \"observation\": [1, \"x\"], \"terminated\": true, \"episode_id\": \"e\", \"step\": 0}\n",
        "{\"action\": {\"k\": [1, 2]}, \"observation\": {\"a\": 1.5, \"b\": \"\\u00e9\"}, \"ignored\": {}}\n",
    ];
    let configs = ["rank = 7\nseed = 3\n", "test_projection = \"hashed\"\nmix = 0.2\ncuts = \"ragged\"\n", ""];
    let schemas = [
        "episode = \"id\"\naction = [\"a\"]\nobservation = [\"b\", \"x\"]\nreward = \"r\"\n[bins]\nx = \"3\"\n",
        "action = \"none\"\nobservation = \"x\"\nelapsed = \"when\"\nelapsed_bins = [\"1m\"]\nsort = \"when\"\n",
        "{\"episode\":[\"id\"],\"available\":\"free\",\"action\":\"a\",\"observation\":\"b\",\"encoders\":{\"x\":{\"kind\":\"cuts\",\"cuts\":[0.0],\"low\":-1.0,\"high\":2.0}}}",
        "{\"wide\":[\"x..r\"],\"action\":\"none\",\"shift_observation\":true,\"missing\":[\"?\"]}",
    ];
    for (kind, all) in [("csv", &csv[..]), ("json-lines", &lines), ("config", &configs), ("schema", &schemas)] {
        all.iter().enumerate().for_each(|(i, text)| save(kind, &format!("seed-{i}"), text.as_bytes()));
    }
    let pomdps =
        [include_str!("../src/domains/tiger.POMDP"), include_str!("data/machine.POMDP"), include_str!("data/two-doors.POMDP")];
    pomdps.iter().enumerate().for_each(|(i, text)| save("pomdp", &format!("seed-{i}"), text.as_bytes()));
    let mazes = ["xxxxx\nxS.Gx\nx.x.x\nxxxxx\n", "xxxx\nxSGx\nxxxx\n\n0101\n0000\n1111\n"];
    for (i, text) in mazes.iter().enumerate() {
        Grid::parse(text, "maze").unwrap();
        save("maze", &format!("seed-{i}"), text.as_bytes());
    }
}

/// Logs that the library wrote, packed and typed.
fn tables(save: &dyn Fn(&str, &str, &[u8])) {
    let folder = tempfile::tempdir().unwrap();
    for (i, name) in ["tiger", "t-maze"].into_iter().enumerate() {
        let domain = domains::get(name).unwrap();
        for (kind, file) in [("gzip", "log.csv.gz"), ("parquet", "log.parquet")] {
            assert!(Format::of_name(file).is_some());
            let path = folder.path().join(file);
            let mut writer = Writer::create(&path).unwrap();
            domains::sample(&domain, 3, 5, Seed(1)).for_each(|z| writer.write(domain.alphabet(), &z).unwrap());
            writer.finish().unwrap();
            save(kind, &format!("seed-{i}"), &fs::read(&path).unwrap());
        }
    }
}

fn small() -> LearnParams {
    LearnParams { test_dim: 8, history_dim: 8, rank: 2, ngram_length: 1, ..LearnParams::default() }
}

fn tiger() -> Logs {
    let tiger = domains::get("tiger").unwrap();
    Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 12, 8, Seed(3)).collect())
}

fn refined() -> Recipe {
    let refine = Some(RefineParams { em_rounds: 2, states: "4".parse().unwrap(), ..RefineParams::default() });
    Recipe { learn: small(), refine, ..Recipe::default() }
}

/// Models, moments and policies of all kinds, as small as they can be.
fn files(save: &dyn Fn(&str, &str, &[u8])) {
    let logs = tiger();
    let mix = LearnParams { mix: 0.3, observe_reward: true, ..small() };
    let linear = learn(&logs, &mix).unwrap();
    let latent = refined().fit(&logs).unwrap().model;
    let select = Some(SelectParams::default());
    let mixture = Recipe { learn: small(), select, ..Recipe::default() }.fit(&logs).unwrap().model;
    let ensemble = Recipe { learn: small(), ensemble: Some(2), ..Recipe::default() }.fit(&logs).unwrap().model;
    let all: [(&str, &Model); 4] = [("linear", &linear), ("latent", &latent), ("mixture", &mixture), ("ensemble", &ensemble)];
    all.into_iter().for_each(|(name, model)| save("model", name, &model.to_bytes()));
    let identity = LearnParams { test_projection: Projection::Identity, max_test_length: 1, history_length: 1, ..small() };
    let spherical = LearnParams { history_projection: Projection::Spherical, ..LearnParams::paper() };
    let spherical = LearnParams { test_dim: 4, history_dim: 4, rank: 2, max_test_length: 2, ngram_length: 1, ..spherical };
    for (name, params, keep) in [
        ("exact", small(), Keep::Exact),
        ("compressed", small(), Keep::Compressed),
        ("identity", identity, Keep::Exact),
        ("spherical", spherical.clone(), Keep::Exact),
        ("factors", spherical, Keep::Compressed),
    ] {
        let learned = Learner::new(&params).keep(keep).learn(&logs).unwrap();
        save("moments", name, &learned.model.to_bytes_with_moments(&learned.moments.unwrap()));
    }
    let plain = learn(&logs, &small()).unwrap();
    let episodes = logs.episodes_for(plain.alphabet(), "model").unwrap();
    let of = |regressor, state| PlanParams {
        planner: Planner::FittedQ,
        regressor,
        state,
        rounds: 2,
        trees: 2,
        window: 1,
        ..PlanParams::default()
    };
    for (name, model, params) in [
        ("trees", &plain, of(Regressor::Trees, StateKind::Predictive)),
        ("mean", &plain, of(Regressor::Mean, StateKind::Last)),
        ("changes", &plain, of(Regressor::Changes, StateKind::Memory)),
        ("vectors", &latent, PlanParams { planner: Planner::Qmdp, ..PlanParams::default() }),
    ] {
        save("policy", name, &plan_on(model, &episodes, &params, &mut |_| {}).unwrap().to_bytes());
    }
}

/// Parts of checkpoints, in the middle of their work.
fn checkpoints(save: &dyn Fn(&str, &str, &[u8])) {
    let (folder, logs) = (tempfile::tempdir().unwrap(), tiger());
    let mut checkpoint = Checkpoint::open(folder.path(), &1, || true).unwrap();
    Learner::new(&small()).keep(Keep::Exact).checkpoint(&mut checkpoint).learn(&logs).unwrap();
    save("checkpoint", "learn", &checkpoint.load("learn").unwrap().unwrap());
    let model = learn(&logs, &small()).unwrap();
    let params = RefineParams { em_rounds: 2, ..RefineParams::default() };
    let refinement = Refinement::new(&model, &logs, &params).unwrap().checkpointed(&mut checkpoint).unwrap();
    assert!(refinement.take(3).all(|round| round.is_ok()));
    save("checkpoint", "refinement", &checkpoint.load("refinement").unwrap().unwrap());
    let domain = domains::get("tiger").unwrap();
    let params = AgentParams { agent_rounds: 2, episodes: 12, refine: false, ..AgentParams::default() };
    let planning = PlanParams { rounds: 2, trees: 2, ..PlanParams::default() };
    let agent = Agent::new(&domain, params, small(), planning, Seed(3)).unwrap();
    agent.checkpointed(&mut checkpoint).unwrap().next().unwrap().unwrap();
    save("checkpoint", "agent", &checkpoint.load("agent").unwrap().unwrap());
}
