//! Files of models, policies, moments and checkpoints that are damaged, or that a stranger made.

use std::fs;
use std::path::Path;

use foretell::plan::{Planner, Regressor, plan_on};
use foretell::store::sealed;
use foretell::{
    ActionObservation, Alphabet, Checkpoint, End, Keep, LearnParams, Learner, Logs, Model, Moments, Plan, PlanParams,
    PredictiveState, Recipe, RefineParams, Seed, Stamp, Trajectory, domains, learn,
};
use safetensors::tensor::Dtype;
use serde_json::{Value, json};

use crate::inputs::edit::{Tensor, edited, edited_within};

/// Bits that are flipped in each file, besides those of the first bytes.
const FLIPS: usize = 300;
/// Bytes all of whose bits are flipped: the length of the header, and what says which file it is.
const FIRST: usize = 120;

fn params() -> LearnParams {
    LearnParams { test_dim: 8, history_dim: 8, rank: 2, ngram_length: 1, ..LearnParams::default() }
}

fn tiger(episodes: usize) -> (Logs, Vec<Trajectory>) {
    let tiger = domains::get("tiger").unwrap();
    let episodes: Vec<Trajectory> = domains::sample(&tiger, episodes, 8, Seed(1)).collect();
    (Logs::memory(tiger.alphabet().clone(), episodes.clone()), episodes)
}

fn model() -> Vec<u8> {
    learn(&tiger(40).0, &params()).unwrap().to_bytes()
}

fn model_with_moments(params: &LearnParams, keep: Keep) -> Vec<u8> {
    let learned = Learner::new(params).keep(keep).learn(&tiger(40).0).unwrap();
    learned.model.to_bytes_with_moments(&learned.moments.unwrap())
}

fn refined() -> Vec<u8> {
    let refine = Some(RefineParams { states: "4".parse().unwrap(), em_rounds: 2, ..RefineParams::default() });
    Recipe { learn: params(), refine, ..Recipe::default() }.fit(&tiger(40).0).unwrap().model.to_bytes()
}

fn ensemble() -> Vec<u8> {
    Recipe { learn: params(), ensemble: Some(2), ..Recipe::default() }.fit(&tiger(40).0).unwrap().model.to_bytes()
}

fn policy(regressor: Regressor) -> Vec<u8> {
    let (logs, episodes) = tiger(40);
    let model = learn(&logs, &params()).unwrap();
    let planning = PlanParams { planner: Planner::FittedQ, regressor, rounds: 2, trees: 2, window: 1, ..PlanParams::default() };
    plan_on(&model, &episodes, &planning, &mut |_| {}).unwrap().to_bytes()
}

fn read(bytes: &[u8]) -> foretell::Result<()> {
    match Stamp::of(bytes).map(|stamp| stamp.kind).as_deref() {
        Some("policy") => Plan::from_bytes(bytes, "file").map(drop),
        _ => {
            Model::from_bytes(bytes, "file")?;
            Moments::kept_in(bytes, "file").map(drop)
        }
    }
}

/// The message for a changed file, which must not be read.
fn refused(bytes: &[u8]) -> String {
    read(bytes).expect_err("a file that contradicts itself was read").to_string()
}

/// Every one of some flipped bits must be noticed; returns how many there were.
fn flip(whole: &[u8], flips: usize, notices: impl Fn(&[u8]) -> bool) -> usize {
    let mut rng = Seed(7).rng();
    let first = (0..8 * FIRST.min(whole.len())).map(|bit| (bit / 8, bit % 8));
    let flips = first.chain((0..flips).map(|_| (rng.below(whole.len()), rng.below(8)))).collect::<Vec<_>>();
    for &(byte, bit) in &flips {
        let mut damaged = whole.to_vec();
        damaged[byte] ^= 1 << bit;
        assert!(notices(&damaged), "bit {bit} of byte {byte} of {}", whole.len());
    }
    flips.len()
}

/// How many bits are flipped in each file; `FORETELL_FLIPS` says another number.
fn flips() -> usize {
    std::env::var("FORETELL_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(FLIPS)
}

#[test]
fn every_flipped_bit_of_a_model_is_noticed() {
    for whole in [model(), model_with_moments(&params(), Keep::Exact), refined()] {
        read(&whole).unwrap();
        flip(&whole, flips(), |damaged| read(damaged).is_err());
    }
}

#[test]
fn every_flipped_bit_of_a_policy_is_noticed() {
    for whole in [policy(Regressor::Mean), policy(Regressor::Changes)] {
        read(&whole).unwrap();
        flip(&whole, flips(), |damaged| read(damaged).is_err());
    }
}

#[test]
fn every_flipped_bit_of_a_checkpoint_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let work = json!({ "logs": "walks.csv", "rank": 5, "tolerance": 1e-6 });
    let open = || Checkpoint::open(folder.path(), &work, || true);
    let mut checkpoint = open().unwrap();
    Learner::new(&params()).keep(Keep::Exact).checkpoint(&mut checkpoint).learn(&tiger(40).0).unwrap();
    drop(checkpoint);
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let files: Vec<_> = files.into_iter().filter(|path| path.metadata().unwrap().len() > 0).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    for path in files {
        let whole = fs::read(&path).unwrap();
        let part = path.file_stem().unwrap().to_str().unwrap();
        flip(&whole, flips(), |damaged| {
            // Some file systems write a file that is truncated to the disk at once.
            fs::remove_file(&path).unwrap();
            fs::write(&path, damaged).unwrap();
            open().and_then(|checkpoint| checkpoint.load(part)).is_err()
        });
        fs::write(&path, &whole).unwrap();
        open().unwrap();
    }
}

#[test]
fn a_damaged_file_is_named_with_what_is_lost_and_what_to_do() {
    for (mut bytes, kind, again) in
        [(model(), "model", "learn the model again"), (policy(Regressor::Trees), "policy", "plan again")]
    {
        let last = bytes.len() - 1;
        bytes[last] ^= 16;
        let said = refused(&bytes);
        assert!(said.starts_with(&format!("file: the {kind} is damaged: its checksum is wrong")), "{said}");
        assert!(said.contains("none can be relied on") && said.ends_with(again), "{said}");
    }
}

#[test]
fn files_of_the_format_before_are_read_with_a_note() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let note = "was written by an earlier version, without a checksum: damage to it would not be noticed";
    let (old_model, old_policy) = (data.join("format-2-model.safetensors"), data.join("format-2-policy.safetensors"));
    let (model, plan) = (Model::load(&old_model).unwrap(), Plan::load(&old_policy).unwrap());
    assert_eq!(model.origin().note.as_deref(), Some(format!("{} {note}", old_model.display()).as_str()));
    assert_eq!(plan.note(), Some(format!("{} {note}", old_policy.display()).as_str()));
    Moments::load(&old_model).unwrap().model().unwrap();
    // What is written now has a checksum, and is the same otherwise.
    let again = Model::from_bytes(&model.to_bytes(), "again").unwrap();
    assert_eq!((again.origin().note.as_deref(), again.linear()), (None, model.linear()));
    assert_eq!(Plan::from_bytes(&plan.to_bytes(), "again").unwrap().note(), None);
    assert_eq!(Stamp::of(&model.to_bytes()).unwrap().format_version, 3);
}

#[test]
fn a_file_that_has_lost_its_checksum_is_damaged() {
    let lost = edited(&model(), |parts| drop(parts.header.as_object_mut().unwrap().remove("checksum")));
    assert!(refused(&lost).contains("checksum is wrong"));
    // Nor does it help to say that it is of the format before.
    let mut older = model();
    let digit = older.windows(18).position(|text| text == br#"format_version\":3"#).unwrap() + 17;
    older[digit] = b'2';
    assert!(refused(&older).contains("checksum is wrong"));
}

/// A field of the header.
fn with(path: &str, value: impl Into<Value>) -> impl FnOnce(&mut crate::inputs::edit::Parts) {
    let (path, value) = (path.to_string(), value.into());
    move |parts| *parts.header.pointer_mut(&path).unwrap_or_else(|| panic!("no {path}")) = value
}

/// An array with one number changed.
fn number(name: &str, at: usize, value: f64) -> impl FnOnce(&mut crate::inputs::edit::Parts) {
    let name = name.to_string();
    move |parts| {
        let Tensor { dtype, data, .. } = parts.tensor(&name);
        match dtype {
            Dtype::F64 => data[8 * at..][..8].copy_from_slice(&value.to_le_bytes()),
            Dtype::F32 => data[4 * at..][..4].copy_from_slice(&(value as f32).to_le_bytes()),
            Dtype::U64 => data[8 * at..][..8].copy_from_slice(&(value as u64).to_le_bytes()),
            Dtype::U32 => data[4 * at..][..4].copy_from_slice(&(value as u32).to_le_bytes()),
            other => panic!("{name} is {other:?}"),
        }
    }
}

/// Sizes that no memory has.
const HUGE: [u64; 4] = [1 << 20, 1 << 40, u64::MAX / 2, u64::MAX];

#[test]
fn sizes_in_headers_are_not_believed() {
    let (model, moments) = (model(), model_with_moments(&params(), Keep::Exact));
    for size in HUGE {
        assert!(refused(&edited(&model, with("/ngram_length", size))).contains("n-gram"));
        for field in ["test_dim", "history_dim", "max_test_length", "history_length", "ngram_length", "rank"] {
            let path = format!("/params/{field}");
            assert!(refused(&edited(&model, with(&path, size))).contains(field), "{field}");
            assert!(refused(&edited_within(&moments, "moments", with(&path, size))).contains(field), "{field}");
        }
        assert!(refused(&edited_within(&moments, "moments", with("/width", size.max(1 << 21)))).contains("times as wide"));
    }
    // The largest dimensions there may be, and a file that holds next to nothing.
    let large = edited_within(&moments, "moments", |parts| {
        with("/params/test_dim", 16_384)(parts);
        with("/params/history_dim", 16_384)(parts);
    });
    assert!(refused(&large).contains("of which the file holds") || refused(&large).contains("values, not"));
}

#[test]
fn moments_of_pairs_are_sized_by_what_a_file_holds() {
    use foretell::Projection::Spherical;
    let dense = LearnParams { test_projection: Spherical, history_projection: Spherical, ..params() };
    let moments = model_with_moments(&dense, Keep::Exact);
    let large = edited_within(&moments, "moments", |parts| {
        with("/params/test_dim", 16_384)(parts);
        with("/params/history_dim", 16_384)(parts);
    });
    assert!(refused(&large).contains("damaged"));
}

#[test]
fn counts_that_overflow_are_refused() {
    let (model, moments) = (model(), model_with_moments(&params(), Keep::Exact));
    for n in [u64::MAX as f64, (1u64 << 63) as f64] {
        assert!(refused(&edited(&model, number("pair_counts", 0, n))).contains("counts of its pairs"));
        assert!(refused(&edited_within(&moments, "moments", number("pair_counts", 0, n))).contains("do not add up"));
    }
    for field in ["/episodes", "/steps", "/skipped"] {
        assert!(refused(&edited(&model, with(field, u64::MAX))).contains("number of steps"), "{field}");
        assert!(refused(&edited_within(&moments, "moments", with(field, u64::MAX))).contains("do not add up"), "{field}");
    }
    let overlap = with("/overlap/steps", u64::MAX);
    assert!(refused(&edited_within(&moments, "moments", overlap)).contains("do not add up"));
    assert!(refused(&edited(&model, number("pair_counts", 0, 0.0))).contains("counts of its pairs"));
}

#[test]
fn numbers_that_are_none_are_refused_with_the_name_of_their_array() {
    for (whole, names) in [
        (model(), &["initial", "normalizer", "operators", "readouts", "mean_states", "spectrum"][..]),
        (refined(), &["refined_visits", "refined_transitions", "refined_emissions"]),
        (policy(Regressor::Mean), &["forest0_values", "forest0_thresholds"]),
    ] {
        for name in names {
            for value in [f64::NAN, f64::INFINITY] {
                let said = refused(&edited(&whole, number(name, 0, value)));
                assert!(said.contains(&format!("array {name} has numbers that are not finite")), "{said}");
            }
        }
    }
    assert!(refused(&edited(&refined(), number("refined_visits", 1, -2.0))).contains("refined_visits has negative"));
    assert!(refused(&edited(&policy(Regressor::Table), number("table_q", 0, f64::NAN))).contains("table is inconsistent"));
}

#[test]
fn an_ensemble_within_an_ensemble_is_refused_however_deep() {
    let mut nested = ensemble();
    read(&nested).unwrap();
    // Deep enough to overflow a stack, if every level were read.
    for _ in 0..12 {
        let inner = nested.clone();
        nested = edited(&ensemble(), |parts| parts.tensor("member0").data = inner);
        assert!(refused(&nested).contains("a model of its ensemble is an ensemble itself"));
    }
}

#[test]
fn an_ensemble_without_halves_is_refused() {
    for sizes in [json!([1, 0]), json!([0, 0])] {
        assert!(refused(&edited(&ensemble(), with("/ensemble", sizes))).contains("no models of halves"));
    }
    assert!(refused(&edited(&ensemble(), with("/ensemble", json!([1, u64::MAX])))).contains("array half2 is missing"));
}

#[test]
fn a_policy_says_no_more_trees_than_it_has() {
    for trees in [3u64, 1000, 65_536, u64::MAX] {
        let said = refused(&edited(&policy(Regressor::Mean), with("/params/trees", trees)));
        assert!(said.contains("trees = ") || said.contains("do not match"), "{said}");
        if trees > 1000 {
            let said = refused(&edited(&policy(Regressor::Table), with("/params/trees", trees)));
            assert!(said.contains("must be at most 1000"), "{said}");
        }
    }
    let said = refused(&edited(&policy(Regressor::Table), with("/params/rounds", u64::MAX)));
    assert!(said.contains("rounds = "), "{said}");
}

#[test]
fn indices_that_lead_nowhere_are_refused() {
    let model = model();
    for (name, at, value, said) in [
        ("pairs", 0, 7.0, "pairs do not match"),
        ("pairs", 1, 7.0, "pairs do not match"),
        ("ngram_start", 0, 1.0, "outside its arrays"),
        ("ngram_start", 1, 1e6, "outside its arrays"),
        ("ngram_start", 1, 0.0, "outside its arrays"),
        ("ngram_symbols", 0, 9.0, "outside its arrays"),
        ("ngram_counts", 0, 0.0, "never seen"),
    ] {
        let message = refused(&edited(&model, number(name, at, value)));
        assert!(message.contains(said), "{name}: {message}");
    }
    let trees = policy(Regressor::Mean);
    for name in ["forest0_roots", "forest0_features", "forest0_children", "table_shorter"] {
        let last = edited(&trees, |parts| {
            let size = parts.tensor(name).data.len() / 4;
            (0..size).for_each(|at| number(name, at, f64::from(u32::MAX))(parts));
        });
        assert!(refused(&last).contains("damaged"), "{name}");
    }
    let names = json!({ "actions": ["a", "a"], "observations": [] });
    assert!(refused(&edited(&model, with("/alphabet", names))).contains("named twice"));
}

/// More actions and observations than a table of both could hold in memory.
#[test]
fn many_actions_and_observations_need_no_table_of_both() {
    const SYMBOLS: u32 = 30_000;
    let mut alphabet = Alphabet::default();
    for i in 0..SYMBOLS {
        alphabet.intern_action(&format!("a{i}"));
        alphabet.intern_observation(&format!("o{i}"));
    }
    let episode = |i: u32| Trajectory {
        steps: (0..30).map(|t| ActionObservation::new(30 * i + t, 30 * i + t)).collect(),
        rewards: vec![Some(1.0); 30],
        action_probabilities: vec![],
        end: End::Truncated,
        about: Default::default(),
    };
    let episodes: Vec<Trajectory> = (0..SYMBOLS / 30).map(episode).collect();
    let logs = Logs::memory(alphabet, episodes);
    let params = LearnParams { test_dim: 16, history_dim: 16, rank: 2, ngram_length: 1, ..LearnParams::default() };
    let model = learn(&logs, &params).unwrap();
    let model = Model::from_bytes(&model.to_bytes(), "model").unwrap();
    let mut state = PredictiveState::new(&model);
    let total: f64 = state.predict(foretell::Action(17)).iter().sum();
    assert!((total + state.unseen() - 1.0).abs() < 1e-9, "{total}");
}

#[test]
fn moments_of_logs_with_missing_observations_are_read_again() {
    let maze = domains::get("colored-gridworld").unwrap();
    let mut episodes: Vec<Trajectory> = domains::sample(&maze, 300, 13, Seed(2)).collect();
    for (i, z) in episodes.iter_mut().enumerate().filter(|(_, z)| z.steps.len() > 1) {
        let t = i % (z.steps.len() - 1);
        z.steps[t].observation = foretell::Observation::MISSING;
    }
    assert!(episodes.iter().any(|z| z.end == End::Terminated && z.steps.len() > 1));
    let logs = Logs::memory(maze.alphabet().clone(), episodes);
    let learned = Learner::new(&params()).keep(Keep::Exact).learn(&logs).unwrap();
    let bytes = learned.model.to_bytes_with_moments(&learned.moments.unwrap());
    let moments = Moments::kept_in(&bytes, "file").unwrap().unwrap();
    assert_eq!(moments.model().unwrap().linear(), learned.model.linear());
    Learner::new(&params()).update(moments, &logs).unwrap();
}

#[test]
fn a_file_is_sealed_again_after_a_change_on_purpose() {
    let mut bytes = model();
    // The last bit of the first number.
    let first = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[first] ^= 1;
    assert!(read(&bytes).is_err());
    read(&sealed(bytes)).unwrap();
}
