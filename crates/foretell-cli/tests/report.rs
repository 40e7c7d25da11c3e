//! Pages about models, policies and runs: what is on them, and what is not.

use crate::support::{Folder, SMALL, parsed};
use serde_json::{Value, json};

/// The data of a page, as the browser reads it.
fn data(html: &str) -> Value {
    let (_, rest) = html.split_once("type=\"application/json\">").unwrap();
    parsed(rest.split_once("</script>").unwrap().0)
}

/// Makes a page and reads its data.
fn page(folder: &Folder, args: &[&str]) -> Value {
    let said = folder.ok(&[&["report"], args, &["-o", "page.html"]].concat());
    assert!(said.starts_with("page.html: "), "{said}");
    data(&String::from_utf8(folder.read("page.html")).unwrap())
}

#[test]
fn a_page_about_a_model_agrees_with_score_and_inspect() {
    let folder = Folder::with_model();
    let page_data =
        page(&folder, &["model.safetensors", "--logs", "heldout.csv", "--truth", "colored-gridworld", "--episodes", "2"]);
    let score = parsed(&folder.ok(&["score", "model.safetensors", "heldout.csv", "--truth", "colored-gridworld", "--json"]));
    let seen = parsed(&folder.ok(&["inspect", "heldout.csv", "--json"]));
    let foresight = &page_data["foresight"]["here"];
    assert_eq!(foresight["per_step"], score["per_step"]);
    let line = |name: &str| {
        let lines = foresight["lines"].as_array().unwrap();
        lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name}"))["points"].clone()
    };
    let enough = |scores: &Value| {
        let scores = scores.as_array().unwrap();
        Value::from(scores.iter().filter(|h| h["episodes"].as_u64() >= Some(30)).cloned().collect::<Vec<_>>())
    };
    assert_eq!(line("this model"), enough(&score["horizons"]));
    assert_eq!(line("exact model"), enough(&score["truth"]));
    assert_eq!(line("n-gram, 2 steps"), enough(&score["baselines"]["ngram-2"]));
    assert_eq!(line("action only"), enough(&score["baselines"]["ngram-0"]));
    assert_eq!(line("uniform"), enough(&score["baselines"]["uniform"]));
    assert_eq!(foresight["calibration"][3]["observed"], score["calibration"][3]["observed"]);
    let in_logs = &page_data["data"]["here"];
    assert_eq!((&in_logs["episodes"], &in_logs["lengths"]), (&seen["episodes"], &seen["lengths"]));
    assert_eq!(in_logs["files"][0]["name"], "heldout.csv");
    assert_eq!(page_data["episodes"]["here"]["list"].as_array().unwrap().len(), 2);
    assert_eq!((&page_data["kind"], &page_data["spectrum"]["rank"]), (&json!("model"), &json!(8)));
    let last = line("this model").as_array().unwrap().last().unwrap()["log_likelihood"].as_f64().unwrap();
    let headline = page_data["headlines"][0]["value"].as_str().unwrap();
    assert_eq!(headline, format!("{last:.2} nats").replace('-', "−"));
    let rank = page_data["parameters"][0]["list"].as_array().unwrap().iter().find(|p| p["flag"] == "--rank").unwrap();
    assert_eq!(rank["value"], "8");
}

#[test]
fn a_page_says_how_to_get_what_it_does_not_hold() {
    let folder = Folder::with_model();
    let said = folder.ok(&["report", "model.safetensors", "-o", "page.html"]);
    assert!(said.contains("missing from the page:") && said.contains("--logs LOGS"), "{said}");
    let page_data = data(&String::from_utf8(folder.read("page.html")).unwrap());
    for part in ["foresight", "episodes", "data"] {
        assert!(page_data[part]["missing"].as_str().unwrap().contains("--logs"), "{part}");
    }
    assert!(page_data.get("earned").is_none(), "a model earns nothing");
    let full = folder.ok(&["report", "model.safetensors", "--logs", "heldout.csv", "-o", "page.html"]);
    assert!(!full.contains("missing from the page"), "{full}");
}

#[test]
fn the_same_input_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = Folder::with_model();
    folder.plan("policy.safetensors", &[]);
    let made = |threads: &str| {
        let flags = ["--domain", "colored-gridworld", "--logs", "heldout.csv", "--test-episodes", "50", "--threads", threads];
        folder.ok(&[&["report", "policy.safetensors", "-o", "-"], &flags[..]].concat())
    };
    let one = made("1");
    assert!(one.starts_with("<!doctype html>") && one == made("2"), "pages differ");
    let json = parsed(&folder.ok(&["report", "policy.safetensors", "--json"]));
    assert_eq!(json["kind"], "policy");
}

#[test]
fn names_of_logs_cannot_become_part_of_a_page() {
    let folder = Folder::new();
    let nasty = "</script><b>";
    let rows: String =
        (0..120).map(|i| format!("{},{},{},{}\n", i / 4, i % 4, ["go", "stay"][i % 2], [nasty, "wall"][i % 3 / 2])).collect();
    folder.write("nasty.csv", format!("episode_id,step,action,observation\n{rows}"));
    folder.ok(&[&["learn", "nasty.csv", "-o", "model.safetensors"], &SMALL[..]].concat());
    let page_data = page(&folder, &["model.safetensors", "--logs", "nasty.csv"]);
    assert_eq!(page_data["data"]["here"]["observations"]["shown"][0][0], nasty);
    let html = String::from_utf8(folder.read("page.html")).unwrap();
    assert_eq!(html.matches("</script>").count(), 2, "the data and our own");
    let (_, rest) = html.split_once("type=\"application/json\">").unwrap();
    assert!(!rest.split_once("</script>").unwrap().0.contains(['<', '>', '&']), "no name of a log can end the data");
}

#[test]
fn a_policy_is_shown_at_work_and_beside_others() {
    let folder = Folder::with_model();
    folder.plan("policy.safetensors", &[]);
    let flags = ["--domain", "colored-gridworld", "--test-episodes", "200", "--seed", "3"];
    let page_data = page(&folder, &[&["policy.safetensors"], &flags[..]].concat());
    let earned = parsed(&folder.ok(&[
        "evaluate",
        "policy.safetensors",
        "--domain",
        "colored-gridworld",
        "--episodes",
        "200",
        "--seed",
        "3",
        "--json",
    ]));
    let policies = page_data["earned"]["here"]["policies"].as_array().unwrap();
    let named = |name: &str| policies.iter().find(|p| p["policy"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(named("foretell")["mean_return"], earned["mean_return"], "as evaluate has it");
    named("random");
    named("QMDP, knows the model");
    let played = &page_data["episodes"]["here"];
    let trace = folder.ok(&["watch", "policy.safetensors", "--domain", "colored-gridworld", "--seed", "3"]);
    let (_, row) =
        trace.lines().map(|line| line.split_once("1  ")).find_map(|row| row.filter(|(n, _)| n.trim().is_empty())).unwrap();
    assert_eq!(played["list"][0]["steps"][0]["action"].as_str(), row.split_whitespace().next(), "as watch has it: {trace}");
    assert!(page_data["estimates"]["missing"].as_str().unwrap().contains("--logs"));

    let beside = page(&folder, &["policy.safetensors", "--logs", "heldout.csv", "--test-episodes", "200"]);
    assert!(beside["estimates"]["here"]["logged"]["value"].is_number() && beside["earned"]["missing"].is_string());
    let step = &beside["episodes"]["here"]["list"][0]["steps"][0];
    assert!(step["advised"].is_string() && step["values"].as_array().unwrap().len() == 4, "{step}");

    let unrewarded = "episode_id,step,action,observation\n0,0,N,....\n0,1,E,....\n";
    folder.write("unrewarded.csv", unrewarded);
    let without = page(
        &folder,
        &["policy.safetensors", "--logs", "unrewarded.csv", "--domain", "colored-gridworld", "--test-episodes", "20"],
    );
    let why = without["estimates"]["missing"].as_str().unwrap();
    assert!(why.contains("cannot be estimated"), "no rewards, no estimate, but a page: {why}");
}

#[test]
fn a_run_is_reported_with_its_policy_if_that_exists_unchanged() {
    let folder = Folder::new();
    let quick = ["--agent-rounds", "2", "--episodes", "401", "--test-episodes", "100", "--refine", "false"];
    let run = folder.ok(&[&["agent", "tiger", "-o", "policy.safetensors", "--json"], &quick[..]].concat());
    folder.write("run.json", &run);
    let (page_data, run) = (page(&folder, &["run.json"]), parsed(&run));
    assert_eq!(page_data["kind"], "run");
    assert_eq!(page_data["earned"]["here"]["policies"], run["policies"]);
    // A hundred are kept for the last comparison of plans.
    assert_eq!((&page_data["rounds"], page_data["rounds"][1]["episodes"].as_u64()), (&run["rounds"], Some(301)));
    assert_eq!(page_data["episodes"]["here"]["acted"], true);
    let titles: Vec<&str> = page_data["parameters"].as_array().unwrap().iter().map(|g| g["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Sampling", "Planning", "Learning"]);
    let piped = parsed(&folder.piped(&["report", "-", "--json"], run.to_string().as_bytes()));
    assert_eq!(piped["earned"], page_data["earned"]);

    let policy = folder.read("policy.safetensors");
    folder.write("policy.safetensors", &policy[..policy.len() - 1]);
    let alone = page(&folder, &["run.json"]);
    assert_eq!(alone["earned"], page_data["earned"]);
    assert!(alone["episodes"]["missing"].as_str().unwrap().contains("agent -o POLICY"), "another policy is not its own");
    assert!(alone.get("data").is_none() && alone.get("foresight").is_none());
}

#[test]
fn absolute_paths_stay_at_home() {
    let folder = Folder::with_model();
    let absolute = |name: &str| folder.path(name).display().to_string();
    let (model, logs) = (absolute("model.safetensors"), absolute("heldout.csv"));
    let html = folder.ok(&["report", &model, "--logs", &logs, "-o", "-"]);
    let home = folder.path("").display().to_string();
    assert!(!html.contains(home.trim_end_matches('/')), "{home}");
    assert_eq!(data(&html)["title"], "model.safetensors");
}

#[test]
fn what_cannot_be_reported_on_is_refused_with_a_remedy() {
    let folder = Folder::with_model();
    folder.write("other.json", "{\"a\": 1}");
    folder.write("old.json", "{\"policies\": []}");
    let remedy = "give a file that `foretell learn`, `refine`, `plan` or `agent` wrote, or the output of `foretell agent --json`";
    let cases: [(&[&str], i32, &[&str]); 10] = [
        (&["heldout.csv", "-o", "page.html"], 1, &["heldout.csv: neither a model, a policy nor a run", remedy]),
        (&["other.json", "-o", "page.html"], 1, &["JSON, but not the output of `foretell agent --json`", remedy]),
        (&["old.json", "-o", "page.html"], 1, &["a run of another version", remedy]),
        (&["missing.json", "-o", "page.html"], 1, &["cannot read missing.json"]),
        (
            &["model.safetensors", "--domain", "tiger", "-o", "page.html"],
            1,
            &["is a model, and only policies act in a domain", "--logs LOGS"],
        ),
        (&["model.safetensors", "--logs", "heldout.csv", "--truth", "pocman", "-o", "page.html"], 1, &["no exact model"]),
        (&["model.safetensors", "--logs", "missing.csv", "-o", "page.html"], 1, &["missing.csv"]),
        (&["model.safetensors", "-o", "model.safetensors"], 1, &["would be overwritten"]),
        (&["model.safetensors", "-o", "no/page.html"], 1, &["there is no folder no"]),
        (&["model.safetensors"], 2, &["--output"]),
    ];
    let before = folder.names();
    for (args, code, says) in cases {
        let ran = folder.run(&[&["report"], args].concat(), b"");
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(says.iter().all(|said| ran.err.contains(said)), "{args:?}: {}", ran.err);
        assert_eq!(folder.names(), before, "{args:?} leaves nothing behind");
    }
}
