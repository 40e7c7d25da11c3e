//! The commands as a user types them, run on files of their own.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Command, Stdio};

use crate::support::{Folder, SMALL, learn, parsed};
use foretell::LearnParams;
use serde_json::{Value, json};

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_flow_goes_from_logs_to_a_prediction() {
    let folder = Folder::new();
    folder.sample("walks.csv", 500, 1);
    folder.sample("heldout.csv", 100, 2);
    let seen = folder.ok(&["inspect", "walks.csv"]);
    assert!(seen.starts_with("500 episodes, "), "{seen}");
    assert!(seen.contains("4 actions, "), "{seen}");
    let learned = folder.ok(&["learn", "walks.csv", "-o", "model.safetensors"]);
    assert!(learned.starts_with("learned from 500 episodes, "), "{learned}");
    let scored = folder.ok(&["score", "model.safetensors", "heldout.csv"]);
    assert!(scored.starts_with("100 episodes, ") && scored.contains("nats per step"), "{scored}");
    let asked = folder.ok(&["predict", "model.safetensors", "--history", "N:....,E:....", "--actions", "E,E"]);
    let steps: Vec<&str> = asked.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!((steps.first(), steps.last()), (Some(&"1"), Some(&"2")), "{asked}");
    assert_eq!(folder.names(), ["heldout.csv", "model.safetensors", "walks.csv"]);
}

#[test]
fn the_model_is_better_than_guessing_and_no_better_than_the_truth() {
    let folder = Folder::new();
    folder.sample("walks.csv", 2000, 1);
    folder.sample("heldout.csv", 500, 2);
    folder.ok(&["learn", "walks.csv", "-o", "model.safetensors"]);
    let score = parsed(&folder.ok(&["score", "model.safetensors", "heldout.csv", "--truth", "colored-gridworld", "--json"]));
    let last = |scores: &Value| scores.as_array().unwrap().last().unwrap()["log_likelihood"].as_f64().unwrap();
    let (model, truth) = (last(&score["horizons"]), last(&score["truth"]));
    assert!(last(&score["baselines"]["uniform"]) < model && model < truth, "{model} {truth}");
}

#[test]
fn predictions_are_distributions_and_tests_their_products() {
    let folder = Folder::with_model();
    let steps = parsed(&folder.ok(&["predict", "model.safetensors", "--history", "N:....", "--actions", "E,S", "--json"]));
    for step in steps.as_array().unwrap() {
        let total: f64 = step["observations"].as_array().unwrap().iter().map(|o| o["probability"].as_f64().unwrap()).sum();
        // What was never seen has the little that is missing.
        assert!((0.99..=1.0 + 1e-9).contains(&total), "{total}");
    }
    let ask = |history: &str, test: &str| -> f64 {
        folder.ok(&["predict", "model.safetensors", "--history", history, "--test", test]).trim().parse().unwrap()
    };
    let (both, one, other) = (ask("", "N:....,E:...."), ask("", "N:...."), ask("N:....", "E:...."));
    assert!((both - one * other).abs() < 1e-9, "{both} is not {one} · {other}");
    assert!(ask("", "N:.... [end]") < 0.1 * one, "an end is another observation");
}

#[test]
fn samples_of_the_future_depend_on_the_seed_only() {
    let folder = Folder::with_model();
    let draw = |seed| folder.ok(&["predict", "model.safetensors", "--actions", "E,E,N", "--samples", "20", "--seed", seed]);
    assert_eq!(draw("3"), draw("3"));
    assert_ne!(draw("3"), draw("4"));
    assert_eq!(draw("3").lines().count(), 20);
}

#[test]
fn logs_of_another_system_give_a_warning() {
    let folder = Folder::with_model();
    let warning = "are these logs of the same system?";
    assert!(!folder.ok(&["score", "model.safetensors", "heldout.csv"]).contains(warning));
    folder.ok(&["sample", "tiger", "--episodes", "20", "-o", "tiger.csv"]);
    assert!(folder.ok(&["score", "model.safetensors", "tiger.csv"]).contains(warning));
}

#[test]
fn a_score_in_json_has_the_documented_shape() {
    let folder = Folder::with_model();
    let horizon = BTreeSet::from(["horizon", "log_likelihood", "ci95", "episodes"]);
    let check = |scores: &Value| {
        let scores = scores.as_array().unwrap();
        assert_eq!(scores.len(), 13);
        for (n, score) in scores.iter().enumerate() {
            assert_eq!(keys(score), horizon);
            assert_eq!(score["horizon"], json!(n + 1));
            assert!(score["log_likelihood"].is_f64() && score["ci95"].is_f64() && score["episodes"].is_u64());
        }
    };
    let score = parsed(&folder.ok(&["score", "model.safetensors", "heldout.csv", "--json"]));
    assert!(score["per_step"].as_f64().unwrap() < 0.0 && score["lost"].is_u64());
    assert!(score["per_step_ci95"].as_f64().unwrap() > 0.0);
    let comparisons = score["comparisons"].as_array().unwrap();
    let names: Vec<&str> = comparisons.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["uniform", "ngram-0", "ngram-1", "ngram-2", "ngram-3"]);
    for comparison in comparisons {
        assert_eq!(keys(comparison), BTreeSet::from(["name", "difference", "ci95", "blocks"]));
        assert!(comparison["difference"].is_f64() && comparison["ci95"].as_f64().unwrap() > 0.0);
        assert_eq!(comparison["blocks"], score["episodes"]);
    }
    assert!(score.get("truth").is_none());
    check(&score["horizons"]);
    assert_eq!(keys(&score["baselines"]), BTreeSet::from(["ngram-0", "ngram-1", "ngram-2", "ngram-3", "uniform"]));
    score["baselines"].as_object().unwrap().values().for_each(check);

    let flags = ["score", "model.safetensors", "heldout.csv", "--truth", "colored-gridworld", "--json"];
    let with_truth = parsed(&folder.ok(&flags));
    check(&with_truth["truth"]);
    assert_eq!(with_truth["comparisons"].as_array().unwrap().last().unwrap()["name"], "truth");
    assert_eq!(with_truth["horizons"], score["horizons"]);
}

/// Samples a single episode of tiger, for a model of that domain.
fn with_a_single_episode(steps: &str) -> Folder {
    let folder = Folder::new();
    folder.ok(&["sample", "tiger", "--episodes", "200", "--max-steps", "20", "--seed", "1", "-o", "walks.csv"]);
    folder.ok(&[&["learn", "walks.csv", "-o", "model.safetensors"], &SMALL[..]].concat());
    folder.ok(&["sample", "tiger", "--episodes", "1", "--max-steps", steps, "--seed", "2", "-o", "one.csv"]);
    folder
}

#[test]
fn a_single_episode_has_an_interval_per_step_but_none_by_horizon() {
    let folder = with_a_single_episode("3000");
    let score = parsed(&folder.ok(&["score", "model.safetensors", "one.csv", "--json"]));
    assert!(score["per_step_ci95"].as_f64().unwrap() > 0.0);
    let intervals = |scores: &Value| scores.as_array().unwrap().iter().map(|h| h["ci95"].clone()).collect::<Vec<_>>();
    assert_eq!(intervals(&score["horizons"]), vec![Value::Null; 3000]);
    assert_eq!(intervals(&score["baselines"]["ngram-1"]), vec![Value::Null; 3000]);
    for comparison in score["comparisons"].as_array().unwrap() {
        assert!(comparison["ci95"].as_f64().unwrap() > 0.0 && comparison["blocks"].as_u64().unwrap() >= 16, "{comparison}");
    }
    let text = folder.ok(&["score", "model.safetensors", "one.csv"]);
    assert!(!text.contains("± 0.000 ") && text.contains('–'), "{text}");
    assert!(text.lines().count() < 45, "{} lines", text.lines().count());
    folder.ok(&["score", "model.safetensors", "one.csv", "--plot", "one.svg"]);
}

#[test]
fn logs_too_short_for_an_interval_have_none() {
    let folder = with_a_single_episode("10");
    let score = parsed(&folder.ok(&["score", "model.safetensors", "one.csv", "--json"]));
    assert!(score["per_step_ci95"].is_null() && score["comparisons"][0]["ci95"].is_null());
    let text = folder.ok(&["score", "model.safetensors", "one.csv"]);
    assert!(text.contains("the logs are too short to tell") && !text.contains("warning"), "{text}");
}

#[test]
fn a_model_worse_than_an_n_gram_gets_a_warning_that_mixing_it_in_resolves() {
    let folder = Folder::with_model();
    folder.sample("heldout.csv", 1000, 2);
    let said = folder.ok(&["score", "model.safetensors", "heldout.csv"]);
    assert!(said.contains("warning: ngram-") && said.contains("predicts better than the model by 0."), "{said}");
    let mixed = folder.ok(&["score", "model.safetensors", "heldout.csv", "--mix", "1"]);
    assert!(!mixed.contains("warning: ngram-3"), "{mixed}");
    let page = folder.ok(&["report", "model.safetensors", "--logs", "heldout.csv", "-o", "page.html"]);
    assert!(page.starts_with("page.html: "), "{page}");
    let html = String::from_utf8(folder.read("page.html")).unwrap();
    assert!(html.contains("A baseline predicts better than the model: "));
}

#[test]
fn a_score_does_not_depend_on_how_logs_are_split_over_files() {
    let folder = Folder::with_model();
    let flags = ["sample", "colored-gridworld", "--episodes", "300", "--seed", "3"];
    folder.ok(&[&flags[..], &["-o", "whole.csv"]].concat());
    folder.ok(&[&flags[..], &["-o", "part.csv", "--shards", "3"]].concat());
    let whole = folder.ok(&["score", "model.safetensors", "whole.csv", "--json"]);
    assert_eq!(folder.ok(&["score", "model.safetensors", "part-00.csv", "part-01.csv", "part-02.csv", "--json"]), whole);
}

#[test]
fn threads_do_not_change_the_model() {
    let folder = Folder::new();
    folder.sample("walks.csv", 500, 1);
    for threads in ["1", "2"] {
        folder.ok(&[&["learn", "walks.csv", "-o", threads, "--threads", threads], &SMALL[..]].concat());
    }
    assert!(folder.read("1") == folder.read("2"), "models differ");
}

#[test]
fn formats_do_not_change_the_model() {
    let folder = Folder::new();
    let models = ["walks.csv", "walks.jsonl", "walks.parquet", "walks.csv.gz"].map(|logs| {
        folder.sample(logs, 300, 1);
        folder.ok(&[&["learn", logs, "-o", "model"], &SMALL[..]].concat());
        (logs, folder.read("model"))
    });
    for (logs, model) in &models {
        assert!(*model == models[0].1, "{logs} gives another model than {}", models[0].0);
    }
}

#[test]
fn logs_go_through_pipes() {
    let folder = Folder::with_model();
    let how = ["--episodes", "300", "--max-steps", "13", "--seed", "1", "-o", "-"];
    let walks = folder.ok(&[&["sample", "colored-gridworld"], &how[..]].concat());
    assert_eq!(walks.as_bytes(), folder.read("walks.csv"));
    assert_eq!(folder.piped(&["inspect", "-"], walks.as_bytes()), folder.ok(&["inspect", "walks.csv"]));
    folder.piped(&[&["learn", "-", "-o", "piped.safetensors"], &SMALL[..]].concat(), walks.as_bytes());
    assert!(folder.read("piped.safetensors") == folder.read("model.safetensors"), "models differ");
    let scored = folder.piped(&["score", "model.safetensors", "-"], walks.as_bytes());
    assert_eq!(scored, folder.ok(&["score", "model.safetensors", "walks.csv"]));
    assert_eq!(folder.names(), ["heldout.csv", "model.safetensors", "piped.safetensors", "walks.csv"]);
}

#[test]
fn a_refined_model_is_a_pomdp_that_predicts_plans_and_can_be_written() {
    let folder = Folder::new();
    folder.sample("walks.csv", 500, 1);
    folder.ok(&["sample", "colored-gridworld", "--episodes", "200", "--seed", "2", "-o", "heldout.csv"]);
    folder.ok(&["learn", "walks.csv", "--mix", "0", "-o", "model.safetensors"]);
    let refused = folder.run(&["export", "model.safetensors", "-o", "model.POMDP"], b"");
    assert!(refused.code == 1 && refused.err.contains("negative probabilities"), "{}", refused.err);
    let said = folder.ok(&["refine", "model.safetensors", "walks.csv", "--em-rounds", "8", "-o", "refined.safetensors"]);
    assert!(said.starts_with("refined in ") && said.contains("held out") && said.contains("tried"), "{said}");
    let flags = ["--refine", "--em-rounds", "8", "--json"];
    let at_once = parsed(&folder.ok(&[&["learn", "walks.csv", "-o", "at-once.safetensors"][..], &flags].concat()));
    assert!(at_once["refined"]["states"].as_u64().unwrap() > 5, "{at_once}");
    assert_eq!(folder.read("at-once.safetensors"), folder.read("refined.safetensors"), "two steps and one give the same");
    let per_step = |model: &str| {
        let scored = parsed(&folder.ok(&["score", model, "heldout.csv", "--truth", "colored-gridworld", "--json"]));
        scored["per_step"].as_f64().unwrap()
    };
    assert!(per_step("refined.safetensors") > per_step("model.safetensors"));
    folder.ok(&["plan", "refined.safetensors", "walks.csv", "--planner", "qmdp", "-o", "policy.safetensors"]);
    folder.ok(&["evaluate", "policy.safetensors", "--domain", "colored-gridworld", "--episodes", "50"]);
    folder.ok(&["export", "refined.safetensors", "-o", "model.POMDP"]);
    // The file is a domain like any other: what it samples has the same observations.
    folder.ok(&["sample", "model.POMDP", "--episodes", "20", "--max-steps", "10", "-o", "dreams.csv"]);
    let refused = folder.run(&["learn", "walks.csv", "--only", "linear", "--states", "5", "-o", "no.safetensors"], b"");
    assert!(refused.code == 1 && refused.err.contains("add --refine"), "{}", refused.err);
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    let args = ["sample", "colored-gridworld", "--episodes", "100000", "-o", "-"];
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_foretell")).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 100]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn domains_are_listed_and_files_are_domains() {
    let folder = Folder::new();
    let domains = parsed(&folder.ok(&["domains", "--json"]));
    let text = folder.ok(&["domains"]);
    for domain in domains.as_array().unwrap() {
        let name = domain["name"].as_str().unwrap();
        assert!(text.contains(name) && text.contains(domain["story"].as_str().unwrap()), "{text}");
        folder.ok(&["sample", name, "--episodes", "2", "-o", "some.csv"]);
    }

    let lamp = "discount: 0.9\nvalues: reward\nstates: off on\nactions: wait press\nobservations: dark light\nstart: 1 0\n\
                T: wait identity\nT: press\n0 1\n1 0\nO: *\n0.9 0.1\n0.1 0.9\nR: * : * : * : * 0\n";
    folder.write("lamp.POMDP", lamp);
    folder.write("tiger:2.POMDP", lamp);
    folder.write("maze.txt", "xxxxx\nxS.Gx\nxxxxx\n");
    let known = [
        ("lamp.POMDP", "2 actions", "2 observations"),
        ("tiger:2.POMDP", "2 actions", "2 observations"),
        ("maze.txt", "4 actions", ""),
        ("t-maze:length=1", "4 actions", ""),
    ];
    for (domain, actions, observations) in known {
        let said = folder.ok(&["sample", domain, "--episodes", "100", "--max-steps", "6", "--seed", "1", "-o", "log.csv"]);
        assert!(said.starts_with(&format!("100 episodes of {domain}, ")), "{said}");
        let seen = folder.ok(&["inspect", "log.csv"]);
        assert!(seen.contains(actions) && seen.contains(observations), "{seen}");
        folder.ok(&[&["learn", "log.csv", "-o", "model"], &SMALL[..]].concat());
        folder.ok(&["score", "model", "log.csv", "--truth", domain]);
    }
}

#[test]
fn the_weight_of_the_ngram_is_saved_and_can_be_overridden() {
    let folder = Folder::with_model();
    let mixed = [&["learn", "walks.csv", "-o", "other.safetensors", "--json"], &SMALL[..6], &["--mix", "0.5"]].concat();
    assert_eq!(parsed(&folder.ok(&mixed))["params"]["mix"], 0.5);
    let score = |model: &str, flags: &[&str]| {
        parsed(&folder.ok(&[&["score", model, "heldout.csv", "--json"], flags].concat()))["per_step"].clone()
    };
    let (plain, mixed) = (score("model.safetensors", &[]), score("other.safetensors", &[]));
    assert_ne!(plain, mixed);
    assert_eq!(score("model.safetensors", &["--mix", "0.5"]), mixed);
    assert_eq!(score("other.safetensors", &["--mix", "0"]), plain);
}

#[test]
fn pictures_are_drawn_with_their_labels() {
    let folder = Folder::with_model();
    for picture in ["x.svg", "x.png"] {
        let flags = ["--truth", "colored-gridworld", "--plot", picture];
        folder.ok(&[&["score", "model.safetensors", "heldout.csv"], &flags[..]].concat());
    }
    let svg = String::from_utf8(folder.read("x.svg")).unwrap();
    for label in ["model", "truth", "ngram-1", "horizon n (steps)", "nats", "Log-likelihood of held-out logs by horizon"] {
        assert!(svg.contains(label), "{label:?} is not in the picture");
    }
    assert!(folder.read("x.png").starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(folder.names(), ["heldout.csv", "model.safetensors", "walks.csv", "x.png", "x.svg"]);
}

#[test]
fn bad_episodes_are_skipped_and_counted_if_asked() {
    let folder = Folder::new();
    folder.sample("good.csv", 300, 1);
    let good = String::from_utf8(folder.read("good.csv")).unwrap();
    // The reward of the third step of episode 7.
    let bad: String = good
        .lines()
        .map(|line| if line.starts_with("7,2,") { line.replace(",0.0,", ",n.a.,") } else { line.to_string() } + "\n")
        .collect();
    assert_ne!(bad, good);
    folder.write("walks.csv", &bad);
    let refused = folder.run(&["inspect", "walks.csv"], b"");
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("\"n.a.\" is not a number"), "{}", refused.err);

    let seen = parsed(&folder.ok(&["inspect", "walks.csv", "--skip-bad-episodes", "--json"]));
    assert_eq!((&seen["episodes"], &seen["skipped"]), (&json!(299), &json!(1)));
    let learned = learn(&folder, &["--skip-bad-episodes"]);
    assert_eq!((&learned["episodes"], &learned["skipped"]), (&json!(299), &json!(1)));
    let piped = folder.piped(&["inspect", "-", "--skip-bad-episodes"], bad.as_bytes());
    assert!(piped.contains("1 episode; the first: standard input line"), "{piped}");
}

#[test]
fn every_parameter_has_a_flag_with_its_default() {
    let help = Folder::new().ok(&["learn", "--help"]);
    // Help is wrapped to the width of the terminal.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, value) in serde_json::to_value(LearnParams::default()).unwrap().as_object().unwrap() {
        let (name, upper) = (name.replace('_', "-"), name.to_uppercase());
        let flag = if value.is_boolean() { format!("--{name}[=<{upper}>]") } else { format!("--{name} <{upper}>") };
        let (_, after) = help.split_once(&flag).unwrap_or_else(|| panic!("{flag} is not in {help}"));
        let own = after.split(" --").next().unwrap();
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        assert!(own.contains(&format!("[default: {value}")), "{flag}: {own}");
    }
}

#[test]
fn flags_reach_the_saved_parameters() {
    let folder = Folder::with_model();
    let other = json!({
        "test_projection": "rademacher", "history_projection": "hashed", "test_dim": 50, "history_dim": 51,
        "max_test_length": 3, "history": "prefix", "history_length": 4, "cuts": "ragged", "start": "mixed", "rank": 6,
        "tolerance": 1e-5, "regression": "pseudo-inverse", "whitening_ridge": 0.5, "ridge": 0.25, "floor": 0.001,
        "ngram_length": 2, "mix": 0.125, "observe_reward": true, "weighting": "propensity", "seed": 9,
    });
    let default = serde_json::to_value(LearnParams::default()).unwrap();
    assert_eq!(keys(&other), keys(&default), "the list above is not complete");
    let mut args: Vec<String> = ["learn", "walks.csv", "-o", "other.safetensors", "--json"].map(String::from).to_vec();
    for (name, value) in other.as_object().unwrap() {
        assert_ne!(*value, default[name], "{name} would be the same without its flag");
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        args.push(format!("--{}={value}", name.replace('_', "-")));
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    assert_eq!(parsed(&folder.ok(&args))["params"], other);
}

#[test]
fn a_preset_is_a_start_for_the_flags() {
    let folder = Folder::with_model();
    let args = ["learn", "walks.csv", "-o", "x", "--preset", "paper", "--projection", "rademacher", "--rank", "4", "--json"];
    let saved: LearnParams = serde_json::from_value(parsed(&folder.ok(&args))["params"].clone()).unwrap();
    let projection = foretell::Projection::Rademacher;
    let paper = LearnParams { rank: 4, test_projection: projection, history_projection: projection, ..LearnParams::paper() };
    assert_eq!(saved, paper);
}

#[test]
fn a_domain_is_played_through_a_pipe() {
    let folder = Folder::new();
    let maze = ["play", "colored-gridworld", "--reveal", "--seed", "3"];
    let said = folder.piped(&maze, b"N\n\nw\n");
    insta::assert_snapshot!(said);
    assert_eq!(folder.piped(&maze, b"N\nW"), said, "the same seed, the same game");
    let said = folder.piped(&["play", "tiger", "--max-steps", "2"], b"listen\nlis\nlisten\n");
    assert!(said.contains("Step limit reached after 2 steps: total reward −2.\n1 listen: "), "{said}");
    let ran = folder.run(&["play", "pocman"], b"N\nfly\n");
    assert_eq!((ran.code, ran.err.as_str()), (1, "error: line 2: \"fly\" is not an action of pocman; write one of N, E, W, S\n"));
}

#[test]
fn a_plan_is_made_tested_and_asked_for_actions() {
    let folder = Folder::with_model();
    let said = folder.plan("policy.safetensors", &[]);
    assert!(said.starts_with("planned on 300 episodes, "), "{said}");
    let flags = ["--domain", "colored-gridworld", "--episodes", "200", "--seeds", "2", "--json"];
    let report = parsed(&folder.ok(&[&["evaluate", "policy.safetensors"], &flags[..]].concat()));
    let fields =
        ["episodes", "mean_return", "ci95", "discounted_return", "discounted_ci95", "mean_length", "terminated", "by_seed"];
    assert_eq!(keys(&report), BTreeSet::from(fields));
    assert_eq!((&report["episodes"], report["by_seed"].as_array().unwrap().len()), (&json!(400), 2));
    let elsewhere = folder.run(&["evaluate", "policy.safetensors", "--domain", "gridworld", "--episodes", "10"], b"");
    assert!(
        elsewhere
            .err
            .contains("of the observations here were not in the logs that the policy was trained on; was it made for gridworld?"),
        "{}",
        elsewhere.err
    );

    let ran = folder.run(&["act", "policy.safetensors"], b"....\nno such view\n\n....\n");
    assert_eq!(
        ran.err,
        "line 2: observation \"no such view\" is not in the logs that the policy was trained on; treated as unknown\n"
    );
    let output = String::from_utf8(ran.out).unwrap();
    let actions: Vec<&str> = output.lines().collect();
    assert_eq!(actions.len(), 5, "{output}");
    assert!(actions.iter().all(|a| ["N", "E", "S", "W"].contains(a)), "{output}");
    assert_eq!(actions[..2], actions[3..], "an empty line begins anew");
}

#[test]
fn a_policy_is_watched_through_a_pipe() {
    let folder = Folder::with_model();
    folder.plan("policy.safetensors", &[]);
    let last = ["plan", "model.safetensors", "walks.csv", "-o", "last.safetensors", "--state", "last"];
    folder.ok(&[&last[..], &["--rounds", "5", "--trees", "4"]].concat());
    let watch = |policy: &str, domain: &str, flags: &[&str]| {
        let args = [&["watch", policy, "--domain", domain], flags].concat();
        folder.run(&args, b"")
    };
    let text = |ran: crate::support::Ran| String::from_utf8(ran.out).unwrap();
    let maze = |flags: &[&str]| text(watch("policy.safetensors", "colored-gridworld", flags));
    let said = maze(&["--seed", "4", "--max-steps", "5", "--episodes", "2"]);
    insta::assert_snapshot!(said);
    let one = maze(&["--seed", "4", "--max-steps", "5"]);
    assert!(said.starts_with(&one) && one.len() < said.len(), "the first of them: {one}");
    let [three, others] = ["4", "5"].map(|seed| maze(&["--seed", seed, "--episodes", "3"]));
    assert_ne!(three, others, "another seed, other episodes");

    let blind = text(watch("last.safetensors", "colored-gridworld", &["--max-steps", "2"]));
    assert!(blind.contains("no model, so there are no predicted probabilities") && blind.contains(" – "), "{blind}");
    let strange = text(watch("policy.safetensors", "gridworld", &[]));
    assert!(strange.contains(" not in the logs that the policy was trained on."), "{strange}");

    let unfit = watch("policy.safetensors", "tiger", &[]);
    let expected = "error: the policy may take the action \"W\", which is not among listen, open-left, open-right; \
                    use it in the system it was made for\n";
    assert_eq!((unfit.code, unfit.err.as_str(), unfit.out.as_slice()), (1, expected, b"".as_slice()));
}

#[test]
fn logs_say_what_a_policy_would_earn() {
    let folder = Folder::with_model();
    assert!(folder.plan("policy.safetensors", &[]).contains("\n  decides by "));
    let trace = parsed(&folder.plan("policy.safetensors", &["--json"]))["trace"].clone();
    assert_eq!((trace.as_array().unwrap().len(), keys(&trace[4])), (5, BTreeSet::from(["number", "change", "start_value"])));
    let sample = ["sample", "colored-gridworld", "--policy", "policy.safetensors", "--epsilon", "0.5", "--episodes", "200"];
    folder.ok(&[&sample[..], &["-o", "more.csv"]].concat());
    let evaluate =
        ["evaluate", "policy.safetensors", "--logs", "more.csv", "heldout.csv", "--episodes", "50", "--replicates", "3"];
    let said = folder.ok(&evaluate);
    assert!(said.contains("fqe     fitted-Q evaluation ") && said.contains("wdr     weighted doubly robust "), "{said}");
    assert!(said.contains("estimates are unreliable"), "{said}");
    assert!(!said.contains("planned on these logs"), "{said}");
    let quick = ["--episodes", "50", "--replicates", "3"];
    let planned_on = folder.ok(&[&["evaluate", "policy.safetensors", "--logs", "walks.csv"], &quick[..]].concat());
    assert!(planned_on.contains("was planned on these logs") && planned_on.contains("5 folds"), "{planned_on}");
    let biased =
        folder.ok(&[&["evaluate", "policy.safetensors", "--logs", "walks.csv", "--cross-fit", "never"], &quick[..]].concat());
    assert!(biased.contains("were learned from"), "{biased}");
    let report = parsed(&folder.ok(&[&evaluate[..], &["--json", "--estimators", "fqe,snpdis", "--bound", "bootstrap"]].concat()));
    let names: Vec<&Value> = report["estimates"].as_array().unwrap().iter().map(|found| &found["estimator"]).collect();
    assert_eq!(names, [&json!("snpdis"), &json!("fqe")]);
    let fields = [
        "episodes",
        "rewarded",
        "without_reward",
        "max_steps",
        "discount",
        "level",
        "bound",
        "logged",
        "estimates",
        "propensities",
        "support",
        "returns",
        "cross_fitted",
        "learned_from",
        "agree",
        "comparison",
        "verdict",
        "notes",
        "warnings",
    ];
    assert_eq!(keys(&report), BTreeSet::from(fields));
    let fields = ["estimator", "value", "error", "low", "high", "weighted_steps"];
    assert_eq!((&report["max_steps"], keys(&report["estimates"][0])), (&json!(13), BTreeSet::from(fields)));
    // Policies that have no file.
    let constant = folder.ok(&["evaluate", "always:N", "--logs", "walks.csv", "--epsilon", "0.5", "--replicates", "3"]);
    assert!(constant.contains("logged") && !constant.contains("model   rollouts"), "{constant}");
    let unknown = folder.run(&["evaluate", "always:up", "--logs", "walks.csv"], b"");
    assert!(unknown.code == 1 && unknown.err.contains("action \"up\" is not known; known: "), "{}", unknown.err);
    let report = parsed(&folder.ok(&["evaluate", "uniform", "--domain", "colored-gridworld", "--episodes", "50", "--json"]));
    assert_eq!(report["episodes"], json!(50));
    let refused = folder.run(&["evaluate", "logged", "--domain", "colored-gridworld"], b"");
    assert!(refused.code == 1 && refused.err.contains("give --logs instead"), "{}", refused.err);
}

#[test]
fn an_agent_does_everything_from_nothing() {
    let folder = Folder::new();
    let quick = ["--agent-rounds", "2", "--episodes", "60", "--test-episodes", "100"];
    let report = parsed(&folder.ok(&[&["agent", "tiger", "-o", "policy.safetensors", "--json"], &quick[..]].concat()));
    let policies: Vec<&str> = report["policies"].as_array().unwrap().iter().map(|p| p["policy"].as_str().unwrap()).collect();
    let expected = [
        "random",
        "always listen",
        "memoryless",
        "last 2 pairs",
        "last 3 pairs",
        "trees, last 2 observations",
        "foretell",
        "QMDP, knows the model",
    ];
    assert_eq!(policies, expected);
    assert_eq!(folder.names(), ["policy.safetensors"]);
    let guided = ["agent", "tiger", "--sampling-policy", "policy.safetensors", "--plot", "returns.svg"];
    let said = folder.ok(&[&guided[..], &quick[..]].concat());
    let picture = String::from_utf8(folder.read("returns.svg")).unwrap();
    assert!(picture.contains("QMDP, knows the model") && picture.contains("discounted return"));
    assert!(said.contains("  foretell ") && said.contains("No policy can earn more than "), "{said}");
}

#[test]
fn a_model_is_solved_and_its_policy_earns_what_was_promised() {
    let folder = Folder::new();
    let solve = |flags: &[&str]| parsed(&folder.ok(&[&["solve", "tiger", "--discount", "0.95", "--json"], flags].concat()));
    let solved = solve(&["--episodes", "2000", "--seed", "3"]);
    let number = |value: &Value, key: &str| value[key].as_f64().unwrap();
    let (lower, upper) = (number(&solved, "lower"), number(&solved, "upper"));
    assert!(lower <= 19.372 && 19.371 <= upper && upper - lower <= 0.001 * upper, "{solved}");
    let (earned, ci95) = (number(&solved["returns"], "discounted_return"), number(&solved["returns"], "discounted_ci95"));
    assert!((earned - lower).abs() < 2.3 * ci95 + 0.1, "{solved}"); // 4.5 standard deviations, and what is cut off
    let bound = |planner: &str| number(&solve(&["--planner", planner]), "upper");
    assert!(upper < bound("fast-informed") && bound("fast-informed") < bound("qmdp"));
    assert_eq!(solve(&["--planner", "qmdp"])["lower"], Value::Null);
    let hasty = solve(&["--seconds", "0"]);
    assert_eq!(hasty["rounds"], 0, "no time, no rounds, but bounds: {hasty}");
    let said = folder.ok(&["solve", "tiger", "--discount", "0.95"]);
    assert!(said.contains("at least   19.3") && said.contains("at most    19.3"), "{said}");
}

#[test]
fn an_exported_model_is_the_same_domain() {
    let folder = Folder::new();
    let said = folder.ok(&["export", "t-maze:length=4", "-o", "maze.POMDP"]);
    assert!(said.ends_with("in maze.POMDP\n"), "{said}");
    let solve = |domain| {
        let solved = parsed(&folder.ok(&["solve", domain, "--discount", "0.9", "--json"]));
        (solved["lower"].as_f64().unwrap(), solved["upper"].as_f64().unwrap())
    };
    let (written, original) = (solve("maze.POMDP"), solve("t-maze:length=4"));
    assert!((written.0 - original.0).abs() < 1e-6 && (written.1 - original.1).abs() < 1e-6, "{written:?} {original:?}");
    assert_eq!(folder.ok(&["export", "t-maze:length=4", "-o", "-"]).as_bytes(), folder.read("maze.POMDP"));
    assert_eq!(folder.names(), ["maze.POMDP"]);
}

#[test]
fn rewards_are_observed_by_choice_and_predictions_do_not_show_them_unless_asked() {
    let folder = Folder::new();
    folder.ok(&["sample", "tiger", "--episodes", "60", "--max-steps", "20", "--seed", "1", "-o", "t.csv"]);
    folder.ok(&["learn", "t.csv", "--observe-reward", "--only", "linear", "-o", "m.safetensors"]);
    let predict = |flags: &[&str]| {
        let shown = folder.ok(&[&["predict", "m.safetensors", "--json"], flags].concat());
        let rows = parsed(&shown)[0]["observations"].as_array().unwrap().clone();
        rows.iter().map(|row| (row["observation"].as_str().unwrap().to_string(), row["probability"].as_f64().unwrap())).collect()
    };
    let plain: Vec<(String, f64)> = predict(&["--history", "listen:growl-left", "--actions", "open-left"]);
    let full: Vec<(String, f64)> = predict(&["--history", "listen:growl-left(-1)", "--actions", "open-left", "--with-rewards"]);
    assert_eq!(plain.len(), 2, "{plain:?}");
    for (name, p) in &plain {
        let sum: f64 = full.iter().filter(|(other, _)| other.starts_with(&format!("{name}("))).map(|(_, p)| p).sum();
        assert!((sum - p).abs() < 1e-12, "{name}: {plain:?} {full:?}");
    }
    // Where several rewards are possible, a history without them is that of any, by their probability.
    folder.ok(&["learn", "t.csv", "--observe-reward", "--refine", "-o", "m.safetensors"]);
    let first: Vec<(String, f64)> = predict(&["--actions", "open-left", "--with-rewards"]);
    let after = |observation: &str| {
        let next: Vec<(String, f64)> = predict(&["--history", &format!("open-left:{observation}"), "--actions", "listen"]);
        next.into_iter().find(|(name, _)| name == "growl-left").unwrap().1
    };
    let ways: Vec<_> = first.iter().filter(|(name, _)| name.starts_with("growl-left(")).collect();
    let total: f64 = ways.iter().map(|(_, p)| p).sum();
    let mean: f64 = ways.iter().map(|(name, p)| p / total * after(name)).sum();
    assert!(ways.len() > 1 && (after("growl-left") - mean).abs() < 1e-9, "{ways:?} {} {mean}", after("growl-left"));
}
