//! `foretell search` and `learn --config`, as a user types them.

use std::fs;

use crate::support::{Folder, parsed};
use serde_json::Value;

/// A search that is quick: small dimensions, few choices, and no clock.
const QUICK: [&str; 12] = [
    "--test-dim",
    "48",
    "--history-dim",
    "48",
    "--projection",
    "signed-hash",
    "--max-test-length",
    "2",
    "--folds",
    "3",
    "--budget",
    "0",
];

fn search<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["search", "walks.csv", "-o", "best.toml"], &QUICK[..], more].concat()
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.sample("walks.csv", 400, 1);
    folder
}

#[test]
fn what_is_found_is_what_learn_learns_with() {
    let folder = folder();
    let report = parsed(&folder.ok(&search(&["--json", "--plot", "sweep.svg"])));
    let text = String::from_utf8(folder.read("best.toml")).unwrap();
    assert!(
        text.starts_with("# Parameters of foretell learn, found by foretell search ")
            && text.contains("# logs: walks.csv (400 episodes, "),
        "{text}"
    );
    assert!(String::from_utf8(folder.read("sweep.svg")).unwrap().contains("dimension of tests"));
    let learn = ["learn", "walks.csv", "--config", "best.toml", "-o", "model.safetensors", "--json"];
    let learned = parsed(&folder.ok(&learn));
    // The weight of the n-gram is selected anew.
    let mut expected = report["params"].clone();
    expected["mix"] = 0.0.into();
    assert_eq!(learned["params"], expected);
    // Flags win over the file.
    let learned = parsed(&folder.ok(&[&learn[..], &["--rank", "3", "--projection", "hashed"]].concat()));
    (expected["rank"], expected["test_projection"], expected["history_projection"]) =
        (3.into(), "hashed".into(), "hashed".into());
    assert_eq!(learned["params"], expected);
}

#[test]
fn selection_and_refinement_leave_out_the_mixture_of_a_file() {
    let folder = folder();
    fs::write(folder.path("mixed.toml"), "rank = 5\nmix = 0.25\n").unwrap();
    let learn = ["learn", "walks.csv", "--config", "mixed.toml", "-o", "model.safetensors", "--json"];
    let mix = |more: &[&str]| parsed(&folder.ok(&[&learn[..], more].concat()))["params"]["mix"].clone();
    assert_eq!(mix(&[]), 0.0);
    assert_eq!(mix(&["--mix", "0.25"]), 0.25);
    assert_eq!(mix(&["--refine"]), 0.0);
    assert_eq!(mix(&["--refine", "--mix", "0.1"]), 0.1);
}

#[test]
fn given_parameters_are_not_searched() {
    let folder = folder();
    let report = parsed(&folder.ok(&search(&["--json", "--rank", "7", "--mix", "0.2"])));
    let tried = report["found"]["tried"].as_array().unwrap();
    let all = |name: &str, value: Value| tried.iter().all(|tried| tried["params"][name] == value);
    assert!(all("rank", 7.into()) && all("mix", 0.2.into()) && all("test_dim", 48.into()));
    assert!(tried.iter().any(|tried| tried["params"]["history_length"] == 1));
}

#[test]
fn the_table_says_what_was_chosen_and_what_to_type_next() {
    let folder = folder();
    let said = folder.ok(&search(&["--plan", "2"]));
    for words in [
        "candidates compared on 400 episodes",
        "gain over the base",
        "→",
        "values of their policies",
        "next: foretell learn walks.csv --config best.toml",
    ] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
}

#[test]
fn bad_requests_are_refused_before_any_work() {
    let folder = folder();
    let refused = |args: &[&str], words: &str| {
        let ran = folder.run(args, b"");
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
    };
    refused(&["search", "walks.csv", "-o", "-"], "standard output has the report; name a file");
    refused(&["search", "walks.csv", "-o", "walks.csv"], "is read by this command");
    refused(&search(&["--plot", "sweep.gif"]), "must end in .svg or .png");
    refused(&["search", "walks.csv", "-o", "best.toml", "--budget", "-1"], "give a number of seconds");
    refused(&["search", "walks.csv", "-o", "best.toml", "--folds", "1"], "--folds 1: must be at least 2");
    refused(&["search", "walks.csv", "-o", "best.toml", "--folds", "300"], "too few to hold out one of 300 parts");
    refused(&["search", "walks.csv", "-o", "best.toml", "--seed", "9223372036854775808"], "use a smaller seed");
    fs::write(folder.path("bad.toml"), "rank = 5\nrnak = 6\n").unwrap();
    refused(&["learn", "walks.csv", "-o", "m.safetensors", "--config", "bad.toml"], "bad.toml line 2: unknown field `rnak`");
    refused(&["learn", "walks.csv", "-o", "m.safetensors", "--config", "none.toml"], "cannot read none.toml");
    assert_eq!(folder.names(), ["bad.toml", "walks.csv"]);
}
