//! Everything a user gets wrong has a message that says what and what to do, an exit code, and leaves nothing behind.
#![cfg(unix)] // the messages of the system are in the snapshot

use crate::support::{Folder, SMALL};

/// Each a command line; the arguments are divided by `|`, since some hold spaces or are empty.
const FAILURES: &[&str] = &[
    // the command line itself
    "learn|walks.csv|-o|out.safetensors|--rnak|5",
    "lern|walks.csv|-o|out.safetensors",
    "learn|walks.csv",
    "learn|walks.csv|-o|out.safetensors|--rank|-3",
    "learn|walks.csv|-o|out.safetensors|--threads|0",
    "sample|colored-gridworld|--policy|greedy|-o|out.csv",
    "predict|model.safetensors",
    // files
    "learn|missing.csv|-o|out.safetensors",
    "inspect|missing.csv",
    "score|missing.safetensors|heldout.csv",
    "learn|walks.csv|-o|no/such/out.safetensors",
    "learn|walks.csv|-o|walks.csv/out.safetensors",
    "learn|walks.csv|-o|.",
    "learn|walks.csv|-o|walks.csv",
    "learn|walks.csv|-o|./walks.csv",
    "sample|colored-gridworld|-o|no/out.csv",
    "sample|colored-gridworld|-o|out.txt",
    "sample|colored-gridworld|-o|out.txt|--shards|3",
    "sample|colored-gridworld|-o|no/out.csv|--shards|3",
    "sample|colored-gridworld|-o|-|--shards|3",
    "sample|colored-gridworld|-o|out.csv|--shards|0",
    "sample|colored-gridworld|-o|out.csv|--shards|3|--episodes|2",
    "inspect|no-logs",
    "inspect|*.parquet",
    "inspect|no-such/*.csv",
    "learn|[wh]*.csv|-o|walks.csv",
    // models
    "score|version9.safetensors|heldout.csv",
    "score|damaged.safetensors|heldout.csv",
    "score|walks.csv|heldout.csv",
    "predict|cut-in-header.safetensors|--actions|E",
    "predict|cut-in-arrays.safetensors|--actions|E",
    "predict|empty.csv|--actions|E",
    // logs
    "learn|empty.csv|-o|out.safetensors",
    "learn|no-rows.csv|-o|out.safetensors",
    "learn|-|-o|out.safetensors",
    "inspect|-|-",
    "inspect|bad.csv",
    "score|model.safetensors|bad.csv",
    "learn|walks.csv|-o|out.safetensors|--mix|0|--max-test-length|20",
    // histories, tests and actions
    "predict|model.safetensors|--history|X:....|--actions|E",
    "predict|model.safetensors|--history|N:wall|--actions|E",
    "predict|model.safetensors|--history|N|--actions|E",
    "predict|model.safetensors|--history|N,E:....|--actions|E",
    "predict|model.safetensors|--history|N:.... [end]|--actions|E",
    "predict|model.safetensors|--actions|",
    "predict|model.safetensors|--actions|E,Q",
    "predict|model.safetensors|--actions|E E",
    "predict|model.safetensors|--test|N:?",
    // values
    "learn|walks.csv|-o|out.safetensors|--rank|0",
    "learn|walks.csv|-o|out.safetensors|--mix|2",
    "score|model.safetensors|heldout.csv|--mix|2",
    "sample|colored-gridworld|--episodes|0|-o|out.csv",
    "sample|colored-gridwrld|-o|out.csv",
    "sample|t-maze:lenght=20|-o|out.csv",
    "sample|rocksample:size=7,rocks=9|-o|out.csv",
    "sample|walks.csv|-o|out.csv",
    // policies
    "evaluate|missing.safetensors|--domain|tiger",
    "evaluate|model.safetensors",
    "evaluate|model.safetensors|--domain|tiger|--logs|heldout.csv",
    "evaluate|model.safetensors|--domain|tiger|--discount|2",
    "plan|model.safetensors|walks.csv|-o|out.safetensors|--window|0",
    "agent|tiger|--plot|x.gif",
    "agent|tiger|--sampling-policy|missing.safetensors",
    "sample|tiger|--epsilon|2|-o|out.csv",
    "sample|tiger|--epsilon|0.5|-o|out.csv",
    "watch|missing.safetensors|--domain|tiger",
    "watch|model.safetensors|--domain|colored-gridworld",
    "watch|model.safetensors",
    "watch|model.safetensors|--domain|tiger|--max-steps|0",
    // checkpoints
    "refine|model.safetensors|walks.csv|-o|out.safetensors|--checkpoint|walks.csv",
    "refine|model.safetensors|-|-o|out.safetensors|--checkpoint|checkpoint",
    "refine|model.safetensors|walks.csv|-o|out.safetensors|--checkpoint-every|5",
    "refine|model.safetensors|walks.csv|-o|model.safetensors|--checkpoint|checkpoint",
    // twice
    "learn|walks.csv|./walks.csv|-o|out.safetensors",
    "merge|model.safetensors|model.safetensors|-o|out.safetensors",
    // moments
    "update|model.safetensors|heldout.csv|-o|out.safetensors",
    "update|kept.safetensors|heldout.csv|-o|heldout.csv",
    "update|kept.safetensors|missing.csv|-o|out.safetensors",
    "update|kept.safetensors|empty.csv|-o|kept.safetensors",
    "update|missing.safetensors|heldout.csv|-o|out.safetensors",
    "merge|kept.safetensors|-o|out.safetensors",
    "merge|kept.safetensors|model.safetensors|-o|out.safetensors",
    "merge|kept.safetensors|other-seed.safetensors|-o|out.safetensors",
    "merge|kept.safetensors|compressed.safetensors|-o|out.safetensors",
    "learn|walks.csv|-o|out.safetensors|--keep-moments=exact|--memory|1kB",
    "learn|walks.csv|-o|out.safetensors|--keep-moments|--memory|much",
    "learn|walks.csv|-o|out.safetensors|--keep-moments|--memory|1.2.3GB",
    "learn|walks.csv|-o|out.safetensors|--keep-moments=all",
    // exact models
    "solve|pocman",
    "solve|tiger|--discount|1",
    "solve|tiger|--discount|1.5",
    "solve|tiger|--gap|-1",
    "solve|tiger|--seconds|-1",
    "solve|tiger|--planner|exact",
    "solve|tiger|--max-steps|5",
    "export|pocman|-o|out.POMDP",
    "export|tiger|-o|no/out.POMDP",
    "export|tiger",
    // truth and pictures
    "score|model.safetensors|heldout.csv|--truth|tiger",
    "score|model.safetensors|heldout.csv|--truth|gridworld",
    "score|model.safetensors|heldout.csv|--truth|nowhere",
    "score|model.safetensors|heldout.csv|--plot|x.gif",
    "score|model.safetensors|heldout.csv|--plot|no/x.svg",
];

/// The folder in which all of them fail.
fn folder() -> Folder {
    let folder = Folder::with_model();
    let model = folder.read("model.safetensors");
    let field = |version: u32| format!(r#"\"format_version\":{version}"#).into_bytes();
    let at = model.windows(field(3).len()).position(|bytes| bytes == field(3)).expect("the header says its version");
    let mut version9 = model.clone();
    version9[at..at + field(9).len()].copy_from_slice(&field(9));
    folder.write("version9.safetensors", foretell::store::sealed(version9));
    let mut damaged = model.clone();
    damaged[model.len() - 3] ^= 1;
    folder.write("damaged.safetensors", damaged);
    folder.write("cut-in-header.safetensors", &model[..1000]);
    folder.write("cut-in-arrays.safetensors", &model[..model.len() / 2]);
    folder.write("empty.csv", "");
    let kept = [
        ("kept", ["--keep-moments", "--seed=0"]),
        ("other-seed", ["--keep-moments", "--seed=1"]),
        ("compressed", ["--keep-moments=compressed", "--seed=0"]),
    ];
    for (name, flags) in kept {
        folder.ok(&[&["learn", "walks.csv", "-o", &format!("{name}.safetensors")], &SMALL[..], &flags].concat());
    }
    std::fs::create_dir(folder.path("no-logs")).unwrap();
    folder.write("no-rows.csv", "action,observation\n");
    folder.write("bad.csv", "action,observation,reward\nN,....,0\nN,....,n.a.\n");
    folder
}

/// The command, what it says and its exit code, once it is sure that it left nothing.
fn fail(folder: &Folder, line: &str) -> String {
    let before: Vec<_> = folder.names().into_iter().map(|name| (folder.path(&name).metadata().unwrap().len(), name)).collect();
    let args: Vec<&str> = line.split('|').collect();
    let ran = folder.run(&args, b"");
    assert!(ran.out.is_empty(), "{line} writes to standard output: {}", String::from_utf8_lossy(&ran.out));
    let after: Vec<_> = folder.names().into_iter().map(|name| (folder.path(&name).metadata().unwrap().len(), name)).collect();
    assert_eq!(before, after, "{line} leaves or changes a file");
    assert!(ran.code == 1 || ran.code == 2, "{line} exits with {}", ran.code);
    let quoted: Vec<String> =
        args.iter().map(|a| if a.is_empty() || a.contains(' ') { format!("\"{a}\"") } else { a.to_string() }).collect();
    format!("$ foretell {}\n{}[exit {}]\n", quoted.join(" "), ran.err, ran.code)
}

#[test]
fn every_mistake_has_a_message_that_helps_and_leaves_nothing() {
    let folder = folder();
    let said: Vec<String> = FAILURES.iter().map(|line| fail(&folder, line)).collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_wrong_picture_is_refused_before_anything_is_read() {
    let folder = Folder::new();
    let ran = folder.run(&["score", "missing.safetensors", "missing.csv", "--plot", "x.gif"], b"");
    assert_eq!(ran.err, "error: cannot draw x.gif: the name must end in .svg or .png\n");
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_is_read() {
    let folder = Folder::new();
    for args in [["learn", "missing.csv", "-o", "no/x"].as_slice(), &["score", "no-model", "no.csv", "--plot", "no/x.svg"]] {
        let ran = folder.run(args, b"");
        assert!(ran.err.contains("there is no folder no; create it first"), "{}", ran.err);
    }
}
