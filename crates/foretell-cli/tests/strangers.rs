//! Files and lines that nobody meant to write: logs that change, bytes that are no text, names that
//! command terminals.

use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{Folder, SMALL};

/// A folder with a policy that decides by the last observation.
fn with_policy(logs: &str) -> Folder {
    let folder = Folder::new();
    folder.write("logs.csv", logs);
    folder.ok(&["learn", "logs.csv", "-o", "model.safetensors", "--only", "ngram"]);
    folder.run(&["plan", "model.safetensors", "logs.csv", "-o", "policy.safetensors", "--rounds", "3", "--trees", "2"], b"");
    folder
}

/// Rows in which the best action is the last observation.
fn rows(actions: [&str; 2], observations: [&str; 2]) -> String {
    let mut text = "episode_id,action,observation,reward\n".to_string();
    for i in 0..200 {
        let (a, o) = (i / 2 % 2, i % 2);
        text += &format!("{i},\"{}\",\"{}\",0\n", actions[a], observations[o]);
        text += &format!("{i},\"{}\",\"{}\",{}\n", actions[i / 4 % 2], observations[o], i32::from(i / 4 % 2 == o));
    }
    text
}

#[test]
fn a_log_that_grows_while_it_is_read_is_refused() {
    let folder = Folder::new();
    folder.sample("walks.csv", 3000, 1);
    for (symbol, checkpoint) in [("wall", &[][..]), ("never seen", &["--checkpoint", "saved"]), ("never seen", &[])] {
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut log = File::options().append(true).open(folder.path("walks.csv")).unwrap();
                for episode in 0.. {
                    if is_done.load(Ordering::Relaxed) {
                        break;
                    }
                    writeln!(log, "{symbol} {episode},0,N,{symbol},0,false,true").unwrap();
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            let command = [&["learn", "walks.csv", "-o", "model.safetensors"], &SMALL[..], checkpoint].concat();
            let ran = folder.run(&command, b"");
            is_done.store(true, Ordering::Relaxed);
            assert!(ran.code == 1 && ran.err.starts_with("error: walks.csv: it changed while it was read, from "), "{}", ran.err);
            assert!(!folder.path("model.safetensors").exists());
        });
    }
}

#[test]
fn a_session_goes_on_after_a_line_that_is_no_text() {
    let folder = with_policy(&rows(["left", "right"], ["dark", "bright"]));
    let ran = folder.run(&["act", "policy.safetensors"], b"dark\n\xff\xfe\nbright\r\n\n");
    assert_eq!((ran.code, ran.out.iter().filter(|byte| **byte == b'\n').count()), (0, 5), "{}", ran.err);
    assert!(ran.err.contains("line 2: ") && ran.err.contains("is not valid UTF-8"), "{}", ran.err);
    assert!(ran.err.lines().count() == 1, "{}", ran.err);
    let ran = folder.run(&["act", "policy.safetensors", "--available"], b"\tleft;right\ndark\tleft;\xff\n\xff\tright\n");
    assert_eq!((ran.code, String::from_utf8(ran.out).unwrap().lines().count()), (0, 3), "{}", ran.err);
    let ran = folder.run(&["act", "policy.safetensors", "--available"], b"\t\xff\n");
    assert!(ran.code == 1 && ran.err.starts_with("error: line 1: action "), "{}", ran.err);
}

#[cfg(unix)]
#[test]
fn a_session_goes_on_where_nobody_reads_its_messages() {
    let folder = with_policy(&rows(["left", "right"], ["dark", "bright"]));
    for redirected in ["2>/dev/full", "2>&-"] {
        let line = format!("printf 'x\\ny\\n' | '{}' act policy.safetensors {redirected}", env!("CARGO_BIN_EXE_foretell"));
        let ran = Command::new("sh").args(["-c", &line]).current_dir(folder.path("")).output().unwrap();
        assert_eq!((ran.status.code(), ran.stdout.iter().filter(|byte| **byte == b'\n').count()), (Some(0), 3), "{redirected}");
    }
}

#[test]
fn an_action_takes_one_line_whatever_its_name() {
    let folder = with_policy(&rows(["two\nlines", "\u{1b}[31mred"], ["dark", "bright"]));
    let out = folder.piped(&["act", "policy.safetensors"], b"dark\nbright\n");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| [r"two\nlines", r"\u{1b}[31mred"].contains(line)), "{out}");
    let out = folder.piped(&["act", "policy.safetensors", "--available"], b"\ttwo\\nlines;\ndark\t\\u{1b}[31mred;\n");
    assert_eq!(out, "two\\nlines\n\\u{1b}[31mred\n");
}

#[test]
fn blanks_and_question_marks_are_names_where_the_logs_have_them() {
    let logs = rows(["left", "right"], [" ?", "?"]);
    let folder = Folder::new();
    folder.write("logs.csv", logs);
    let missing = ["--missing", "NA"];
    folder.ok(&[&["learn", "logs.csv", "-o", "model.safetensors", "--only", "ngram"], &missing[..]].concat());
    folder.run(&["plan", "model.safetensors", "logs.csv", "-o", "policy.safetensors", "--rounds", "3", "--trees", "2"], b"");
    let acted = folder.run(&["act", "policy.safetensors"], b"?\n\n ?\n\nNA\n");
    assert_eq!((acted.code, acted.err.as_str()), (0, ""), "all are known");
    let lines: Vec<&str> = std::str::from_utf8(&acted.out).unwrap().lines().collect();
    assert_ne!(lines[1], lines[3], "the two observations differ: {lines:?}");
    let predict = |history: &str| folder.ok(&["predict", "model.safetensors", "--history", history, "--actions", "left"]);
    assert_ne!(predict("left:?"), predict("left: ?"));
    assert!(folder.run(&["act", "policy.safetensors"], b"unheard\n").err.contains("is not in the logs"));
}

#[test]
fn names_do_not_command_the_terminal() {
    let folder = Folder::new();
    folder.write(
        "logs.csv",
        rows(["\u{1b}[31mred\u{202e}", "right"], ["dark\u{7}", "bright"])
            .replace("reward", "reward,\u{1b}]0;owned\u{7}")
            .replace(",0\n", ",0,\n")
            .replace(",1\n", ",1,\n"),
    );
    folder.ok(&["learn", "logs.csv", "-o", "model.safetensors", "--only", "ngram"]);
    let commands: [&[&str]; 6] = [
        &["inspect", "logs.csv"],
        &["predict", "model.safetensors", "--actions", "right"],
        &["predict", "model.safetensors", "--actions", "right", "--samples", "3"],
        &["predict", "model.safetensors", "--actions", "wrong"],
        &["diagnose", "logs.csv"],
        &["evaluate", "always:wrong", "--logs", "logs.csv"],
    ];
    for command in commands {
        let ran = folder.run(command, b"");
        for text in [&String::from_utf8(ran.out).unwrap(), &ran.err] {
            assert!(!text.contains(|c: char| c != '\n' && c.is_control() || c == '\u{202e}'), "{command:?}: {text:?}");
        }
    }
}

#[test]
fn numbers_beyond_all_use_are_refused_at_once() {
    let folder = Folder::with_model();
    folder.plan("policy.safetensors", &[]);
    for command in [
        "predict model.safetensors --actions N --samples 1000000000000000000",
        "plan model.safetensors walks.csv -o out.safetensors --pessimism 1e308",
        "agent tiger --pessimism 1e308",
        "search walks.csv -o best.toml --folds 1000000000",
        "domains --threads 65535",
        "learn walks.csv -o out.safetensors --mix 1e308",
    ] {
        let ran = folder.run(&command.split(' ').collect::<Vec<_>>(), b"");
        let flag = command.split(' ').rfind(|word| word.starts_with("--")).unwrap();
        assert!(matches!(ran.code, 1 | 2) && ran.err.contains(flag), "{command}: {}", ran.err);
    }
}
