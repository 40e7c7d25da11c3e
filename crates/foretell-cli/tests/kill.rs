//! Work that is killed at any moment goes on, and ends with what it would have ended with.
#![cfg(unix)] // SIGKILL

use std::fs;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Folder, SMALL, asked};
use foretell::{Rng, Seed};
use serde_json::Value;

/// How often a command is killed; `FORETELL_KILLS` asks for more.
const KILLS: usize = 20;
/// Runs for each kill, after which it makes no progress.
const MOST_RUNS: usize = 10;
const CHECKPOINT: [&str; 4] = ["--checkpoint", "checkpoint", "--checkpoint-every", "0"];
pub const OLD: &[u8] = b"what was there before";

/// A command that writes a file and a report as JSON, and what comes of it where it is left alone.
struct Work<'a> {
    folder: &'a Folder,
    command: Vec<&'a str>,
    output: &'a str,
    file: Vec<u8>,
    report: Value,
    takes: Duration,
}

impl<'a> Work<'a> {
    fn new(folder: &'a Folder, command: &[&'a str], output: &'a str) -> Work<'a> {
        let command = [command, &["--json", "-o", output]].concat();
        let started = Instant::now();
        let out = folder.ok(&command);
        let takes = started.elapsed();
        Work { file: folder.read(output), report: report(out.as_bytes()), folder, command, output, takes }
    }

    /// Kills it again and again, at moments up to that when it would have ended, and lets it go on.
    fn survives_being_killed(&self, mut rng: Rng) {
        let (mut killed, mut resumed) = (0, 0);
        let kills = asked("FORETELL_KILLS", KILLS);
        self.begin(0);
        for run in 0..MOST_RUNS * kills {
            // After enough kills it may end, however slow the machine has become.
            let after = self.takes.mul_f64(if killed < kills { rng.uniform() } else { 100.0 });
            let child = self.folder.spawn(&[&self.command, &CHECKPOINT[..]].concat());
            let ran = self.watch(child, after).wait_with_output().unwrap();
            let said = String::from_utf8(ran.stderr).unwrap();
            resumed += usize::from(said.starts_with("resuming from checkpoint: "));
            match ran.status.code() {
                None => killed += 1,
                Some(code) => {
                    assert_eq!(code, 0, "{said}");
                    self.check_result(&ran.stdout);
                    if killed >= kills {
                        eprintln!("{killed} kills, {resumed} resumed: {}", self.command.join(" "));
                        assert!(resumed > 0, "it always began anew");
                        return;
                    }
                    self.begin(run);
                }
            }
        }
        panic!("killed {killed} times, it did not end");
    }

    /// Every other time an old file is where the new one is to be.
    fn begin(&self, run: usize) {
        match run % 2 {
            0 => fs::remove_file(self.folder.path(self.output)).unwrap(),
            _ => self.folder.write(self.output, OLD),
        }
    }

    /// Kills a run after a while. Meanwhile and afterwards its file is whole, or as it was before.
    fn watch(&self, mut child: Child, after: Duration) -> Child {
        let until = Instant::now() + after;
        while child.try_wait().unwrap().is_none() {
            self.check_file();
            if Instant::now() >= until {
                child.kill().unwrap();
                child.wait().unwrap();
                break;
            }
            sleep(Duration::from_millis(1));
        }
        self.check_file();
        child
    }

    fn check_file(&self) {
        if let Ok(bytes) = fs::read(self.folder.path(self.output)) {
            assert!(bytes == self.file || bytes == OLD, "{} is neither old nor whole", self.output);
        }
    }

    fn check_result(&self, out: &[u8]) {
        assert!(self.folder.read(self.output) == self.file, "{} differs", self.output);
        assert_eq!(report(out), self.report);
        assert!(!self.folder.path("checkpoint").exists(), "the checkpoint was not removed");
    }
}

/// What a command printed, but for the time it took.
fn report(out: &[u8]) -> Value {
    let mut report: Value = serde_json::from_slice(out).unwrap();
    report.as_object_mut().unwrap().remove("seconds");
    report
}

#[test]
fn an_agent_survives_being_killed() {
    let folder = Folder::new();
    let small = ["--episodes", "10", "--rounds", "2", "--test-episodes", "10", "--seed", "1", "--refine", "false"];
    Work::new(&folder, &[&["agent", "tiger"], &small[..]].concat(), "policy.safetensors").survives_being_killed(Seed(1).rng());
}

/// Over several batches and files, in every pass and with every kind of moments.
#[test]
fn learning_survives_being_killed() {
    let folder = Folder::new();
    folder.ok(&["sample", "colored-gridworld", "--episodes", "6000", "--shards", "3", "-o", "walks.parquet"]);
    let logs = ["learn", "walks-00.parquet", "walks-01.parquet", "walks-02.parquet"];
    let ways: [&[&str]; 4] = [
        &["--test-dim", "60", "--history-dim", "60", "--rank", "5", "--refine", "--em-rounds", "3", "--states", "20"],
        &[
            "--mix",
            "0.2",
            "--keep-moments",
            "--weighting",
            "propensity",
            "--test-dim",
            "200",
            "--history-dim",
            "200",
            "--rank",
            "8",
        ],
        // Half of the moments of pairs fit into memory.
        &["--mix", "0.2", "--keep-moments", "--memory", "1MB", "--test-dim", "200", "--history-dim", "200", "--rank", "8"],
        &["--preset", "paper", "--projection", "identity", "--max-test-length", "2", "--ensemble", "2"],
    ];
    for (seed, way) in (3..).zip(ways) {
        Work::new(&folder, &[&logs[..], way].concat(), "model.safetensors").survives_being_killed(Seed(seed).rng());
    }
}

#[test]
fn refinement_survives_being_killed() {
    let folder = Folder::new();
    folder.sample("walks.csv", 300, 1);
    folder.ok(&[&["learn", "walks.csv", "-o", "model.safetensors"], &SMALL[..]].concat());
    let command = ["refine", "model.safetensors", "walks.csv"];
    Work::new(&folder, &command, "refined.safetensors").survives_being_killed(Seed(2).rng());
}

#[test]
fn a_search_survives_being_killed() {
    let folder = Folder::new();
    folder.sample("walks.csv", 150, 1);
    let small = ["--projection", "hashed", "--test-dim", "32", "--history-dim", "32", "--max-test-length", "2"];
    let narrow = ["--history-length", "3", "--folds", "3", "--budget", "0"];
    Work::new(&folder, &[&["search", "walks.csv"], &small[..], &narrow].concat(), "best.toml")
        .survives_being_killed(Seed(7).rng());
}

#[test]
fn a_checkpoint_of_other_work_is_refused_and_stays() {
    let folder = Folder::with_model();
    let refine = ["refine", "model.safetensors", "walks.csv", "-o", "refined.safetensors", "--checkpoint", "other"];
    fs::create_dir(folder.path("other")).unwrap();
    let theirs = r#"{ "foretell": "0.1.0", "work": { "verb": "refine", "model": "0" } }"#;
    folder.write("other/work.json", theirs);
    let ran = folder.run(&refine, b"");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the checkpoint in other is of other work (it differs in: "), "{}", ran.err);
    assert_eq!(folder.read("other/work.json"), theirs.as_bytes());
    assert!(!folder.path("refined.safetensors").exists());
}

/// Commands that are killed without a checkpoint, and what they write.
pub const WRITERS: [(&str, &str); 7] = [
    ("sample tiger --episodes 3000 --seed 5 -o OUT", "OUT.csv"),
    ("learn walks.csv --mix 0 --rank 8 --test-dim 64 --history-dim 64 -o OUT", "OUT.safetensors"),
    ("update OUT heldout.csv -o OUT", "kept.safetensors"),
    ("merge kept.safetensors other.safetensors -o OUT", "OUT.safetensors"),
    ("refine model.safetensors walks.csv --em-rounds 2 --states 20 -o OUT", "OUT.safetensors"),
    ("plan model.safetensors walks.csv --rounds 3 --trees 4 -o OUT", "OUT.safetensors"),
    ("agent tiger --episodes 10 --rounds 2 --test-episodes 10 -o OUT", "OUT.safetensors"),
];
/// How often each is killed; `FORETELL_KILLS` asks for more.
const FEW_KILLS: usize = 4;

/// What the commands need.
pub fn with_moments() -> Folder {
    let folder = Folder::with_model();
    for (logs, model) in [("walks.csv", "kept.safetensors"), ("heldout.csv", "other.safetensors")] {
        folder.ok(&[&["learn", logs, "-o", model, "--keep-moments=exact"], &SMALL[..]].concat());
    }
    folder
}

#[test]
fn an_output_is_whole_or_old_whenever_its_command_is_killed() {
    let kills = asked("FORETELL_KILLS", FEW_KILLS);
    let folder = with_moments();
    let mut rng = Seed(11).rng();
    for (line, name) in WRITERS {
        let is_in_place = folder.path(name).exists();
        let old = if is_in_place { folder.read(name) } else { OLD.to_vec() };
        let line = line.replace("OUT", name);
        let command: Vec<&str> = line.split(' ').collect();
        folder.write(name, &old);
        let started = Instant::now();
        let ran = folder.run(&command, b"");
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        let (new, takes) = (folder.read(name), started.elapsed());
        let mut killed = 0;
        while killed < kills {
            folder.write(name, &old);
            let mut child = folder.spawn(&command);
            sleep(takes.mul_f64(1.1 * rng.uniform()));
            killed += usize::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait_with_output().unwrap();
            let found = folder.read(name);
            assert!(found == old || found == new, "{line}: {name} is neither old nor whole");
        }
        folder.write(name, &old);
        assert_eq!(folder.run(&command, b"").code, 0);
        assert!(folder.read(name) == new, "{line}");
        let left: Vec<String> = folder.names().into_iter().filter(|file| file.ends_with(".tmp")).collect();
        assert_eq!(left, [""; 0], "{line} left something");
        eprintln!("{killed} kills: {line}");
        if is_in_place {
            folder.write(name, &old);
        } else {
            fs::remove_file(folder.path(name)).unwrap();
        }
    }
}
