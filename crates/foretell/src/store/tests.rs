//! Whatever fails while a file is saved: the old file or the new one is there, whole, and nothing else.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::disk::faults::{self, Fault, Step};
use crate::error::Result;
use crate::plan::{PlanParams, Planner, Regressor, plan_on};
use crate::{Checkpoint, Keep, LearnParams, Learner, Logs, Seed, domains};

const OLD: &[u8] = b"what was there before";
/// Places in each file at which writing fails.
const PLACES: usize = 60;

/// Saves to a file.
type Save = dyn Fn(&Path) -> Result<()>;

/// What a user saves.
struct Saving {
    name: &'static str,
    save: Box<Save>,
}

/// Saves of a model, a model with its moments, a policy and a part of a checkpoint.
fn savings() -> Vec<Saving> {
    let tiger = domains::get("tiger").unwrap();
    let episodes: Vec<_> = domains::sample(&tiger, 30, 8, Seed(1)).collect();
    let logs = Logs::memory(tiger.alphabet().clone(), episodes.clone());
    let params = LearnParams { test_dim: 32, history_dim: 32, rank: 3, ..LearnParams::default() };
    let learned = Learner::new(&params).keep(Keep::Exact).learn(&logs).unwrap();
    let (model, moments) = (learned.model, learned.moments.unwrap());
    let planning =
        PlanParams { planner: Planner::FittedQ, regressor: Regressor::Mean, rounds: 2, trees: 3, ..PlanParams::default() };
    let plan = plan_on(&model, &episodes, &planning, &mut |_| {}).unwrap();
    let (with_moments, part) = (model.clone(), model.to_bytes_with_moments(&moments));
    vec![
        Saving { name: "model.safetensors", save: Box::new(move |path| model.save(path)) },
        Saving { name: "kept.safetensors", save: Box::new(move |path| with_moments.save_with_moments(&moments, path)) },
        Saving { name: "policy.safetensors", save: Box::new(move |path| plan.save(path)) },
        Saving {
            name: "learn.part",
            save: Box::new(move |path| {
                let mut checkpoint = Checkpoint::open(path.parent().unwrap(), &1, || true)?;
                checkpoint.save("learn", &part)
            }),
        },
    ]
}

/// Names of a folder, without what every checkpoint has.
fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "lock" && name != "work.json").collect();
    names.sort();
    names
}

/// A folder in memory where there is one: thousands of files are written to the disk otherwise.
fn folder() -> tempfile::TempDir {
    match Path::new("/dev/shm") {
        memory if memory.is_dir() => tempfile::tempdir_in(memory).unwrap(),
        _ => tempfile::tempdir().unwrap(),
    }
}

fn saved(saving: &Saving) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = folder();
    let path = folder.path().join(saving.name);
    (saving.save)(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    (folder, path, whole)
}

#[test]
fn a_save_that_fails_anywhere_leaves_the_old_file_and_nothing_else() {
    let mut injected = 0;
    for saving in savings() {
        let (folder, path, whole) = saved(&saving);
        let steps = [Step::Create, Step::Sync, Step::Rename].map(|step| (step, ErrorKind::PermissionDenied));
        let steps = steps.into_iter().map(|(step, kind)| Fault::At(step, kind));
        let places = (0..PLACES).map(|i| i * whole.len() / PLACES).chain([1, 8, whole.len() - 1]);
        let kinds = [ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::QuotaExceeded];
        let places = places.enumerate().map(|(i, at)| Fault::AfterBytes(at, kinds[i % kinds.len()]));
        for fault in steps.chain(places) {
            for old in [None, Some(OLD)] {
                match old {
                    Some(old) => fs::write(&path, old).unwrap(),
                    None => fs::remove_file(&path).unwrap_or_default(),
                }
                let error = faults::with(fault, || (saving.save)(&path)).expect_err("it fails").to_string();
                assert!(error.starts_with("cannot ") && error.contains(saving.name), "{fault:?}: {error}");
                assert_eq!(fs::read(&path).ok().as_deref(), old, "{fault:?} of {}", saving.name);
                assert_eq!(names(folder.path()), old.map(|_| saving.name.to_string()).into_iter().collect::<Vec<_>>());
                injected += 1;
            }
        }
    }
    assert!(injected > 500, "{injected}");
}

#[test]
fn a_save_that_is_interrupted_or_written_in_pieces_is_whole() {
    for saving in savings() {
        let (folder, path, whole) = saved(&saving);
        for fault in [Fault::Short(1), Fault::Short(7), Fault::Short(5000), Fault::Interrupted] {
            fs::write(&path, OLD).unwrap();
            faults::with(fault, || (saving.save)(&path)).unwrap();
            assert!(fs::read(&path).unwrap() == whole, "{fault:?} of {}", saving.name);
            assert_eq!(names(folder.path()), [saving.name]);
        }
    }
}

#[test]
fn errors_say_what_failed_and_why() {
    let savings = savings();
    let (_folder, path, whole) = saved(&savings[0]);
    let said = |fault| faults::with(fault, || (savings[0].save)(&path)).unwrap_err().to_string();
    let full = said(Fault::AfterBytes(whole.len() / 2, ErrorKind::StorageFull));
    assert_eq!(full, format!("cannot write {}: no storage space", path.display()));
    let renamed = said(Fault::At(Step::Rename, ErrorKind::PermissionDenied));
    assert_eq!(renamed, format!("cannot create {}: permission denied", path.display()));
}
