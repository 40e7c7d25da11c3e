//! `diagnose` as a user types it.

use crate::support::{Folder, SMALL, parsed};
use serde_json::json;

#[test]
fn a_diagnosis_is_said_in_words() {
    let folder = Folder::new();
    folder.ok(&["sample", "tiger", "--episodes", "1000", "--max-steps", "12", "--seed", "1", "-o", "tiger.csv"]);
    let said =
        folder.ok(&["diagnose", "tiger.csv", "--test-dim", "64", "--history-dim", "64", "--rank", "4", "--plot", "tiger.svg"]);
    insta::assert_snapshot!(said);
    assert_eq!(folder.names(), ["tiger.csv", "tiger.svg"]);
    let picture = String::from_utf8(folder.read("tiger.svg")).unwrap();
    assert!(picture.contains("suggested rank 2") && picture.contains("noise, 99 %"));
}

#[test]
fn a_diagnosis_in_json_has_the_numbers_of_the_words() {
    let folder = Folder::new();
    folder.sample("walks.csv", 300, 1);
    let found = parsed(&folder.ok(&[&["diagnose", "walks.csv", "--json"], &SMALL[..]].concat()));
    assert_eq!((&found["episodes"], &found["params"]["rank"]), (&json!(300), &json!(8)));
    for part in ["sparsity", "projection", "spectrum", "decay", "terms", "norms", "coverage"] {
        assert!(found[part].is_object(), "{part}");
    }
    let memory = &found["memory"];
    assert!(["helps", "no_evidence", "unclear"].contains(&memory["verdict"].as_str().unwrap()), "{memory}");
    assert_eq!((&memory["parts"], &memory["blocks"], &memory["steps"]), (&json!(300), &json!(false), &found["steps"]));
    assert!(memory["gain"].is_number() && memory["half_width"].as_f64() > Some(0.0), "{memory}");
    let sparsity = &found["sparsity"];
    let ln_tests = sparsity["tests"].as_f64().unwrap().ln();
    let k = ["joint", "with_next"].map(|m| sparsity[m]["largest"].as_f64().unwrap()).into_iter().fold(0.0, f64::max);
    assert!((found["projection"]["safe"].as_f64().unwrap() - k * ln_tests).abs() < 1e-6);
    assert_eq!(found["propagation"].as_array().unwrap().len(), 13);
    let paper = parsed(&folder.ok(&["diagnose", "walks.csv", "--json", "--preset", "paper", "--max-test-length", "3"]));
    assert_eq!((&paper["params"]["history"], &paper["spectrum"]["whitened"]), (&json!("prefix"), &json!(false)));
    assert!(paper["sparsity"]["histories"].as_u64() > sparsity["histories"].as_u64(), "whole pasts are more than their ends");
}

/// A recording of a machine that mostly stays in its state, as rows of a log.
fn recording(steps: usize) -> String {
    let mut state = 0;
    let row = |t: usize| {
        if t % 7 == 6 {
            state = (state * 5 + 3 + t) % 15;
        }
        format!("0,{t},wait,s{state}\n")
    };
    "episode_id,step,action,observation\n".to_string() + &(0..steps).map(row).collect::<String>()
}

#[test]
fn small_logs_with_memory_are_never_said_to_have_none() {
    let folder = Folder::new();
    for steps in [8, 60, 300, 700] {
        folder.write("recording.csv", recording(steps));
        for preset in ["default", "paper"] {
            let said = folder.ok(&[&["diagnose", "recording.csv", "--preset", preset], &SMALL[..]].concat());
            assert!(!said.contains("no dependence") && !said.contains("No evidence"), "{said}");
            assert_eq!(said.contains("Past steps help to predict: +"), steps >= 300, "{said}");
        }
    }
    insta::assert_snapshot!(folder.ok(&["diagnose", "recording.csv", "--rank", "2"]));
}

#[test]
fn mistakes_have_messages_that_help() {
    let folder = Folder::new();
    folder.sample("walks.csv", 20, 1);
    let said = |args: &[&str]| {
        let ran = folder.run(&[&["diagnose", "walks.csv", "-q"], args].concat(), b"");
        (ran.code, ran.err)
    };
    assert_eq!(said(&["--plot", "walks.pdf"]), (1, "error: cannot draw walks.pdf: the name must end in .svg or .png\n".into()));
    assert_eq!(said(&["--rank", "0"]), (1, "error: --rank 0: must be at least 1\n".into()));
    let (code, err) = said(&["--max-test-length", "13"]);
    assert!(
        code == 1 && err.contains("no episode is longer than 13 steps") && err.contains("smaller --max-test-length"),
        "{err}"
    );
    assert_eq!(folder.names(), ["walks.csv"]);
}
