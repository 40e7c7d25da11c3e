//! What commands write: through links, with the permissions that were there, never over what they
//! read, and nothing that is no file.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Folder, SMALL};

/// Commands with OUT where the output is named, and the extension of that.
const WRITERS: &[(&str, &str)] = &[
    ("learn walks.csv -o OUT --test-dim 64 --history-dim 64 --rank 8 --mix 0", "safetensors"),
    ("update kept.safetensors heldout.csv -o OUT", "safetensors"),
    ("merge kept.safetensors other.safetensors -o OUT", "safetensors"),
    ("refine model.safetensors walks.csv -o OUT --em-rounds 1 --states 10", "safetensors"),
    ("plan model.safetensors walks.csv -o OUT --rounds 2 --trees 2", "safetensors"),
    ("search walks.csv -o OUT --budget 0.01", "toml"),
    ("search walks.csv -o best.toml --budget 0.01 --plot OUT", "svg"),
    ("score model.safetensors heldout.csv --plot OUT", "png"),
    ("score model.safetensors heldout.csv --predictions OUT", "csv"),
    ("diagnose walks.csv --plot OUT", "svg"),
    ("states refined.safetensors heldout.csv -o OUT", "csv"),
    ("split walks.csv -o OUT,test.csv", "csv"),
    ("sample tiger --episodes 10 -o OUT", "jsonl"),
    ("export tiger -o OUT", "POMDP"),
    ("report model.safetensors -o OUT", "html"),
    ("agent tiger --episodes 10 --rounds 2 --test-episodes 10 -o OUT", "safetensors"),
    ("agent tiger --episodes 10 --rounds 2 --test-episodes 10 --plot OUT", "svg"),
];

/// A folder with what these commands read.
fn folder() -> Folder {
    let folder = Folder::with_model();
    for (logs, model) in [("walks.csv", "kept.safetensors"), ("heldout.csv", "other.safetensors")] {
        folder.ok(&[&["learn", logs, "-o", model, "--keep-moments=exact"], &SMALL[..]].concat());
    }
    folder.ok(&["refine", "model.safetensors", "walks.csv", "-o", "refined.safetensors", "--em-rounds", "1", "--states", "10"]);
    folder
}

fn command(line: &str, output: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace("OUT", output)).collect()
}

fn run(folder: &Folder, line: &str, output: &str) -> (i32, String) {
    let words = command(line, output);
    let ran = folder.run(&words.iter().map(String::as_str).collect::<Vec<_>>(), b"");
    (ran.code, ran.err)
}

#[test]
fn every_output_goes_through_links_and_keeps_its_permissions() {
    let folder = folder();
    fs::create_dir(folder.path("far")).unwrap();
    for (line, extension) in WRITERS {
        let (target, link) = (folder.path(&format!("far/out.{extension}")), folder.path(&format!("link.{extension}")));
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
        symlink(&target, &link).unwrap();
        let (code, said) = run(&folder, line, &format!("link.{extension}"));
        assert_eq!(code, 0, "{line}: {said}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{line} replaced the link");
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o600, "{line}");
        assert_ne!(fs::read(&target).unwrap(), b"old", "{line} wrote elsewhere");
        fs::remove_file(&link).unwrap();
        fs::remove_file(&target).unwrap();
    }
    assert_eq!(fs::read_dir(folder.path("far")).unwrap().count(), 0, "something was left");
}

#[test]
fn what_is_no_file_is_refused_before_anything_is_read() {
    let folder = Folder::new();
    fs::create_dir(folder.path("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap().success());
    for (line, extension) in WRITERS {
        let missing = line.replace("walks.csv", "missing.csv").replace("model.", "missing.").replace("kept.", "missing.");
        for name in ["folder", "pipe"] {
            let named = format!("{name}.{extension}");
            symlink(folder.path(name), folder.path(&named)).unwrap();
            let (code, said) = run(&folder, &missing, &named);
            let expected = format!("error: cannot write {named}: it ");
            assert!(code == 1 && said.starts_with(&expected) && said.ends_with("; name a file\n"), "{line}: {said}");
            fs::remove_file(folder.path(&named)).unwrap();
        }
    }
    assert_eq!(folder.names(), ["folder", "pipe"]);
}

#[test]
fn no_command_overwrites_what_it_reads() {
    let folder = folder();
    folder.ok(&["export", "tiger", "-o", "tiger.POMDP"]);
    folder.ok(&["plan", "model.safetensors", "walks.csv", "-o", "policy.safetensors", "--planner", "fitted-q", "--rounds", "1"]);
    folder.ok(&["sample", "tiger", "--episodes", "20", "-o", "tiger.csv"]);
    folder.write("best.toml", "rank = 4\n");
    folder.write("columns.toml", "action = \"action\"\n");
    let lines = [
        ("learn walks.csv -o OUT", "walks.csv"),
        ("learn walks.csv --config best.toml -o OUT", "best.toml"),
        ("learn walks.csv --columns columns.toml -o OUT", "columns.toml"),
        ("update kept.safetensors heldout.csv -o OUT", "heldout.csv"),
        ("refine model.safetensors walks.csv -o OUT", "walks.csv"),
        ("plan model.safetensors walks.csv -o OUT", "model.safetensors"),
        ("plan model.safetensors walks.csv -o OUT", "walks.csv"),
        ("states refined.safetensors walks.csv -o OUT", "refined.safetensors"),
        ("score model.safetensors heldout.csv --predictions OUT", "heldout.csv"),
        ("split walks.csv -o OUT,test.csv", "walks.csv"),
        ("export model.safetensors -o OUT", "model.safetensors"),
        ("export tiger.POMDP -o OUT", "tiger.POMDP"),
        ("agent tiger.POMDP -o OUT", "tiger.POMDP"),
        ("agent tiger --sampling-policy policy.safetensors -o OUT", "policy.safetensors"),
        ("sample tiger.POMDP -o OUT", "tiger.POMDP"),
        ("report model.safetensors -o OUT", "model.safetensors"),
        ("report model.safetensors --logs heldout.csv -o OUT", "heldout.csv"),
        ("search walks.csv -o OUT", "walks.csv"),
    ];
    for (line, input) in lines {
        let line = line.replace("--columns", "--schema");
        let before = folder.read(input);
        for output in [input.to_string(), format!("./{input}")] {
            let (code, said) = run(&folder, &line, &output);
            let expected = format!("error: {output} is read by this command and would be overwritten; name another output\n");
            assert_eq!((code, said), (1, expected), "{line}");
        }
        assert!(folder.read(input) == before, "{line} changed {input}");
    }
    let (code, said) = run(&folder, "search walks.csv -o OUT --plot OUT", "out.svg");
    assert_eq!((code, said), (1, "error: out.svg is named twice as an output; give each output a file of its own\n".into()));
    // What makes a model of a model may write over it.
    assert_eq!(run(&folder, "update kept.safetensors heldout.csv -o OUT", "kept.safetensors").0, 0);
}

#[test]
fn closed_and_full_standard_output_are_errors() {
    let folder = Folder::new();
    let shell = |redirected: &str| {
        let line = format!("'{}' domains {redirected}", env!("CARGO_BIN_EXE_foretell"));
        Command::new("sh").args(["-c", &line]).current_dir(folder.path("")).output().unwrap()
    };
    let closed = shell(">&-");
    assert_eq!(closed.status.code(), Some(1));
    assert!(String::from_utf8(closed.stderr).unwrap().starts_with("error: standard output is closed"));
    assert_eq!(shell(">/dev/null").status.code(), Some(0));
    assert_eq!(shell("1<>/dev/null 2>&1").status.code(), Some(0));
    assert_eq!(shell(">/dev/full").status.code(), Some(1));
    assert_eq!(shell("2>&-").status.code(), Some(0));
    assert_eq!(shell("| true").status.code(), Some(0));
}

/// What is written when a signal comes is removed, also what a process before left when it was killed.
#[test]
fn signals_leave_no_temporary_files() {
    let folder = Folder::new();
    folder.write(".walks.csv.77-0.tmp", "left by a process that was killed");
    for (signal, code) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let mut child = folder.spawn(&["sample", "colored-gridworld", "--episodes", "100000000", "-o", "walks.csv"]);
        let is_writing = || folder.names().iter().any(|name| name.contains(&format!(".walks.csv.{}-", child.id())));
        while !is_writing() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let kill = format!("kill -s {signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(code));
        assert_eq!(folder.names(), [""; 0]);
    }
    // Standard input is copied to a file, which goes too.
    let mut child = folder.spawn(&["inspect", "-"]);
    child.stdin.as_mut().unwrap().write_all(b"action,observation\n").unwrap();
    while folder.names().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("sh").args(["-c", &format!("kill {}", child.id())]).status().unwrap().success());
    child.wait().unwrap();
    assert_eq!(folder.names(), [""; 0]);
}

/// A program that is to ignore a signal, as under `nohup`, goes on.
#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = Folder::new();
    let line = format!("trap '' HUP; exec '{}' sample tiger --episodes 100000 -o walks.csv", env!("CARGO_BIN_EXE_foretell"));
    let mut child = Command::new("sh").args(["-c", &line]).current_dir(folder.path("")).stdout(Stdio::null()).spawn().unwrap();
    while folder.names().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("sh").args(["-c", &format!("kill -s HUP {}", child.id())]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert_eq!(folder.names(), ["walks.csv"]);
}
