//! Models that take in other logs, as a user types it.

use crate::support::{Folder, SMALL, learn, parsed};
use serde_json::{Value, json};

#[test]
fn updates_and_merges_write_the_bytes_of_learning_from_all_logs() {
    let folder = Folder::new();
    for (name, episodes, seed) in [("a.csv", 300, 1), ("b.csv", 200, 2), ("c.csv", 100, 3)] {
        folder.sample(name, episodes, seed);
    }
    for recipe in [&SMALL[..], &["--preset", "paper"], &["--preset", "paper", "--projection", "spherical"]] {
        let learn = |logs: &[&str], model: &str, keep: &str| {
            folder.ok(&[&["learn", "-o", model, keep], logs, recipe].concat());
        };
        learn(&["a.csv", "b.csv", "c.csv"], "all", "--keep-moments");
        for [logs, model] in [["a.csv", "a"], ["b.csv", "b"], ["c.csv", "c"]] {
            learn(&[logs], model, "--keep-moments=exact");
        }
        let said = folder.ok(&["update", "a", "b.csv", "c.csv", "-o", "updated"]);
        assert!(said.starts_with("learned from 600 episodes, ") && said.contains("moments    exact"), "{said}");
        assert!(folder.read("updated") == folder.read("all"), "{recipe:?}: update");
        folder.ok(&["merge", "a", "b", "c", "-o", "merged"]);
        assert!(folder.read("merged") == folder.read("all"), "{recipe:?}: merge");
        folder.ok(&["update", "a", "b.csv", "-o", "a"]);
        folder.ok(&["update", "a", "c.csv", "-o", "./a"]);
        assert!(folder.read("a") == folder.read("all"), "{recipe:?}: updates in place");
        // A merge over one of its parts.
        folder.ok(&["update", "b", "c.csv", "-o", "b"]);
        learn(&["a.csv"], "a", "--keep-moments");
        folder.ok(&["merge", "a", "b", "-o", "b"]);
        assert!(folder.read("b") == folder.read("all"), "{recipe:?}: a merge in place");
        // What is kept beside the model does not change it.
        folder.ok(&["update", "a", "b.csv", "c.csv", "-o", "updated"]);
        let score = |model: &str| folder.ok(&["score", model, "c.csv", "--json"]);
        assert_eq!(score("updated"), score("all"));
    }
}

#[test]
fn memory_decides_which_moments_are_kept() {
    let folder = Folder::with_model();
    let learn = |flags: &[&str]| learn(&folder, flags);
    assert_eq!(learn(&[])["moments"], Value::Null);
    assert_eq!(learn(&["--keep-moments"])["moments"], "exact");
    let learned = learn(&["--keep-moments=compressed"]);
    assert_eq!((&learned["moments"], &learned["operators"]), (&json!("compressed"), &json!("second pass")));
    assert_eq!(learn(&["--keep-moments", "--memory", "1kB"])["moments"], "compressed");
    assert_eq!(learn(&["--keep-moments=fitting", "--memory", "0.5GiB"])["moments"], "exact");
    // An update may find too little memory as well; what is exact becomes compressed only if that is wanted.
    let update = ["update", "other.safetensors", "heldout.csv", "-o", "other.safetensors", "--memory", "1000", "--json"];
    let refused = folder.run(&update, b"");
    assert!(refused.code == 1 && refused.err.contains("compress them with --compress"), "{}", refused.err);
    let updated = parsed(&folder.ok(&[&update[..], &["--compress"]].concat()));
    assert_eq!((&updated["moments"], &updated["episodes"]), (&json!("compressed"), &json!(360)));
    let said = folder.ok(&["update", "other.safetensors", "heldout.csv", "-o", "again.safetensors", "--again"]);
    assert!(
        said.starts_with("learned from 420 episodes, ")
            && said.contains("added      60 episodes")
            && said.contains("moments    compressed"),
        "{said}"
    );
    folder.ok(&["score", "again.safetensors", "heldout.csv"]);
}

#[test]
fn what_an_update_cannot_carry_over_is_said() {
    let folder = Folder::new();
    folder.sample("walks.csv", 300, 1);
    let flags = ["--keep-moments", "--refine", "--em-rounds", "2"];
    folder.ok(&[&["learn", "walks.csv", "-o", "model.safetensors"], &SMALL[..], &flags].concat());
    let said = folder.ok(&["update", "model.safetensors", "walks.csv", "-o", "more.safetensors", "--again"]);
    assert!(said.contains("refined    dropped") && said.contains("run `foretell refine` again"), "{said}");
    folder.ok(&["refine", "more.safetensors", "walks.csv", "-o", "refined.safetensors", "--em-rounds", "2"]);
    folder.ok(&["update", "refined.safetensors", "walks.csv", "-o", "again.safetensors", "--again"]); // refining keeps the moments
}

#[test]
fn the_same_episodes_are_not_learned_from_twice() {
    let folder = Folder::new();
    for (name, episodes, seed) in [("a.csv", 300, 1), ("b.csv", 100, 2)] {
        folder.sample(name, episodes, seed);
    }
    let both = [folder.read("a.csv"), folder.read("b.csv").split(|byte| *byte == b'\n').skip(1).collect::<Vec<_>>().join(&b'\n')];
    let renamed = String::from_utf8(both[1].clone()).unwrap().lines().map(|line| format!("n{line}\n")).collect::<String>();
    folder.write("grown.csv", [&both[0], renamed.as_bytes()].concat());
    for (logs, model) in [("a.csv", "a"), ("b.csv", "b"), ("a.csv", "copy")] {
        folder.ok(&[&["learn", logs, "-o", model, "--keep-moments=exact"], &SMALL[..]].concat());
    }
    let model = folder.read("a");
    for logs in ["a.csv", "grown.csv"] {
        let ran = folder.run(&["update", "a", logs, "-o", "a"], b"");
        assert!(ran.code == 1 && ran.err.contains("were learned from before, and would count twice"), "{}", ran.err);
        assert!(ran.err.ends_with("leave them out, or say that they are to count --again\n"), "{}", ran.err);
    }
    let ran = folder.run(&["merge", "b", "a", "copy", "-o", "merged"], b"");
    assert!(ran.code == 1 && ran.err.starts_with("error: cannot add copy: "), "{}", ran.err);
    assert!(folder.read("a") == model && !folder.path("merged").exists());
    folder.ok(&["update", "a", "b.csv", "-o", "updated"]);
    assert!(folder.ok(&["update", "a", "a.csv", "-o", "again", "--again"]).starts_with("learned from 600 episodes"));
    assert!(folder.ok(&["merge", "a", "copy", "-o", "again", "--again"]).starts_with("learned from 600 episodes"));
    // What counts twice is still known.
    assert_eq!(folder.run(&["update", "again", "a.csv", "-o", "again"], b"").code, 1);
}

#[cfg(unix)]
#[test]
fn of_two_updates_at_once_one_wins_and_the_other_says_so() {
    let folder = Folder::new();
    for (name, seed) in [("a.csv", 1), ("b.csv", 2)] {
        folder.sample(name, 200, seed);
    }
    folder.ok(&[&["learn", "a.csv", "-o", "model", "--keep-moments=exact"], &SMALL[..]].concat());
    let old = folder.read("model");
    let update = ["update", "model", "b.csv", "-o", "model"];
    // As the first of them holds it.
    let first = std::fs::File::open(folder.path("model")).unwrap();
    first.lock().unwrap();
    let ran = folder.run(&update, b"");
    assert_eq!((ran.code, ran.err.as_str()), (1, "error: another process is changing model; run this again when it has ended\n"));
    assert!(folder.read("model") == old);
    folder.ok(&["score", "model", "b.csv", "--json"]);
    drop(first);
    folder.ok(&update);
    assert!(folder.read("model") != old);
}
