//! A folder of its own for a test, and the real binary run in it.
#![allow(dead_code)] // each test needs its share of it

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Flags that make learning quick where the model itself does not matter.
pub const SMALL: [&str; 8] = ["--test-dim", "64", "--history-dim", "64", "--rank", "8", "--mix", "0"];

/// A report as JSON.
pub fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// `learn` with flags, quickly, and what it says of itself.
pub fn learn(folder: &Folder, flags: &[&str]) -> Value {
    parsed(&folder.ok(&[&["learn", "walks.csv", "-o", "other.safetensors", "--json"], &SMALL[..], flags].concat()))
}

/// A number that a variable of the environment asks for, in place of a smaller one.
pub fn asked(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// What a command left behind.
pub struct Ran {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: String,
}

/// Where a test runs its commands; temporary files are made here too, so that [`Folder::names`] shows them.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// A folder with logs, other logs to score on, and a small model.
    pub fn with_model() -> Folder {
        let folder = Folder::new();
        folder.sample("walks.csv", 300, 1);
        folder.sample("heldout.csv", 60, 2);
        folder.ok(&[&["learn", "walks.csv", "-o", "model.safetensors"], &SMALL[..]].concat());
        folder
    }

    /// Writes walks in the coloured maze; the extension says how.
    pub fn sample(&self, name: &str, episodes: usize, seed: u64) {
        let (episodes, seed) = (episodes.to_string(), seed.to_string());
        let how = ["--episodes", &episodes, "--max-steps", "13", "--policy", "uniform", "--seed", &seed];
        self.ok(&[&["sample", "colored-gridworld"], &how[..], &["-o", name]].concat());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// All files, hidden ones too.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Starts `foretell`.
    pub fn spawn(&self, args: &[&str]) -> Child {
        self.spawn_with(args, &[])
    }

    /// Starts `foretell` with some variables of the environment.
    pub fn spawn_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_foretell"))
            .args(args)
            .envs(variables.iter().copied())
            .current_dir(self.0.path())
            .env("TMPDIR", self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs `foretell`.
    pub fn run(&self, args: &[&str], stdin: &[u8]) -> Ran {
        let mut child = self.spawn(args);
        let mut pipe = child.stdin.take().unwrap();
        let stdin = stdin.to_vec();
        // Beside the reading of its output, so that neither waits for the other.
        let writer = std::thread::spawn(move || match pipe.write_all(&stdin) {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => panic!("{e}"),
            _ => {}
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let code = output.status.code().expect("it was not killed");
        Ran { code, out: output.stdout, err: String::from_utf8(output.stderr).unwrap() }
    }

    /// Plans quickly on the walks of [`Folder::with_model`]. So few of them reach the goal that nothing
    /// shows the plan to be better than random walks, and it must say so.
    pub fn plan(&self, policy: &str, more: &[&str]) -> String {
        let args = ["plan", "model.safetensors", "walks.csv", "-o", policy, "--rounds", "5", "--trees", "4", "--quiet"];
        let ran = self.run(&[&args, more].concat(), b"");
        let warned = ran.err.starts_with("warning: these logs do not show that this policy is better than");
        assert!(ran.code == 0 && warned && ran.err.lines().count() == 1, "{}: {}", ran.code, ran.err);
        String::from_utf8(ran.out).unwrap()
    }

    /// What a command that must succeed without a word of complaint prints.
    pub fn ok(&self, args: &[&str]) -> String {
        self.piped(args, b"")
    }

    /// The same with something on standard input. Quietly, else a slow machine would tell its progress.
    pub fn piped(&self, args: &[&str], stdin: &[u8]) -> String {
        let ran = self.run(&[args, &["--quiet"]].concat(), stdin);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "foretell {}", args.join(" "));
        String::from_utf8(ran.out).unwrap()
    }
}
