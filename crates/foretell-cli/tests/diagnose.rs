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
    let sparsity = &found["sparsity"];
    let ln_tests = sparsity["tests"].as_f64().unwrap().ln();
    let k = ["joint", "with_next"].map(|m| sparsity[m]["largest"].as_f64().unwrap()).into_iter().fold(0.0, f64::max);
    assert!((found["projection"]["safe"].as_f64().unwrap() - k * ln_tests).abs() < 1e-6);
    assert_eq!(found["propagation"].as_array().unwrap().len(), 13);
    let paper = parsed(&folder.ok(&["diagnose", "walks.csv", "--json", "--preset", "paper", "--max-test-length", "3"]));
    assert_eq!((&paper["params"]["history"], &paper["spectrum"]["whitened"]), (&json!("prefix"), &json!(false)));
    assert!(paper["sparsity"]["histories"].as_u64() > sparsity["histories"].as_u64(), "whole pasts are more than their ends");
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
