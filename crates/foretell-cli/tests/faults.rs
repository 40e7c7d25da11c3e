//! Whatever fails on the disk while an output is written, it is whole or as it was, nothing else is
//! left, and the command says so; run again, it ends with what it would have ended with.
#![cfg(target_os = "linux")] // LD_PRELOAD, and the numbers of errors

use std::fs;
use std::process::Command;

use crate::kill::{OLD, WRITERS, with_moments};
use crate::support::{Folder, Ran, asked};
use foretell::{Rng, Seed};

/// How many faults each command meets; `FORETELL_FAULTS` asks for more.
const FAULTS: usize = 1;
/// Errors of a call: no space, no input or output, quota, no permission, a read-only system, and a
/// signal, after which the call is made again.
const ERRORS: [i32; 6] = [28, 5, 122, 13, 30, INTERRUPTED];
const INTERRUPTED: i32 = 4;
const NO_SPACE: i32 = 28;
/// Writes of a command whose writes are short: each takes time.
const MOST_WRITES: usize = 1000;
/// What commands with checkpoints are given too.
const CHECKPOINT: &str = "--checkpoint checkpoint --checkpoint-every 0";
const HAVE_CHECKPOINTS: [&str; 3] = ["learn", "refine", "agent"];

/// A command, and what it writes.
struct Writer<'a> {
    folder: &'a Folder,
    line: String,
    name: &'a str,
    old: Vec<u8>,
    new: Vec<u8>,
    /// Calls that can fail, and bytes written.
    calls: usize,
    bytes: usize,
}

impl<'a> Writer<'a> {
    fn of(folder: &'a Folder, line: String, name: &'a str) -> Writer<'a> {
        let old = if folder.path(name).exists() { folder.read(name) } else { OLD.to_vec() };
        let mut writer = Writer { folder, line, name, old, new: Vec::new(), calls: 0, bytes: 0 };
        let (ran, seen) = writer.run("count 0 0");
        assert_eq!(ran.code, 0, "{}: {}", writer.line, ran.err);
        let seen: Vec<usize> = seen.split_whitespace().map(|n| n.parse().unwrap()).collect();
        (writer.new, writer.calls, writer.bytes) = (folder.read(name), seen[0], seen[1]);
        assert!(writer.calls >= 3 && writer.bytes >= writer.new.len(), "{}: {seen:?}", writer.line);
        writer
    }

    /// Runs it with faults, and says what it did to the disk.
    fn run(&self, faults: &str) -> (Ran, String) {
        let outside = tempfile::tempdir().unwrap();
        let seen = outside.path().join("seen").into_os_string().into_string().unwrap();
        let library = library();
        let variables = [("LD_PRELOAD", &library[..]), ("FAULTS", faults), ("FAULTS_SEEN", &seen)];
        let child = self.folder.spawn_with(&self.line.split(' ').collect::<Vec<_>>(), &variables);
        let output = child.wait_with_output().unwrap();
        let ran = Ran { code: output.status.code().unwrap(), out: output.stdout, err: String::from_utf8(output.stderr).unwrap() };
        (ran, fs::read_to_string(seen).unwrap())
    }

    /// Something fails; then it is run again.
    fn survives(&self, faults: &str) -> bool {
        self.folder.write(self.name, &self.old);
        let before = self.folder.names();
        let (ran, _) = self.run(faults);
        let (found, said) = (self.folder.read(self.name), format!("{} with {faults}: {}", self.line, ran.err));
        match ran.code {
            0 => assert!(found == self.new, "{said}"),
            1 => assert!(found == self.old && ran.err.contains("error: "), "{said}"),
            _ => panic!("{said}"),
        }
        let mut left = self.folder.names();
        left.retain(|name| !before.contains(name) && (ran.code == 0 || name != "checkpoint"));
        assert_eq!(left, [""; 0], "{said}");
        if ran.code == 0 {
            self.folder.write(self.name, &self.old);
        }
        let again = self.folder.run(&self.line.split(' ').collect::<Vec<_>>(), b"");
        assert_eq!(again.code, 0, "{said}: {}", again.err);
        assert!(self.folder.read(self.name) == self.new, "{said}");
        assert!(!self.folder.path("checkpoint").exists(), "{said}");
        ran.code != 0
    }

    fn fault(&self, rng: &mut Rng) -> String {
        match rng.below(8) {
            0 => format!("full {} {NO_SPACE}", rng.below(self.bytes)),
            1 => format!("short {} 0", self.bytes / MOST_WRITES + 1 + rng.below(self.bytes)),
            _ => format!("call {} {}", 1 + rng.below(self.calls), ERRORS[rng.below(ERRORS.len())]),
        }
    }
}

/// The library that fails, compiled once: a compiler of C is there, since dependencies need it.
fn library() -> String {
    static LIBRARY: std::sync::OnceLock<(tempfile::TempDir, String)> = std::sync::OnceLock::new();
    let (_, library) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("faults.so").into_os_string().into_string().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/faults.c");
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o", &library, source, "-ldl"]).status().unwrap();
        assert!(compiled.success());
        (folder, library)
    });
    library.clone()
}

#[test]
fn an_output_is_whole_or_old_whatever_fails_on_the_disk() {
    let folder = with_moments();
    let faults = asked("FORETELL_FAULTS", FAULTS);
    let mut rng = Seed(13).rng();
    for (line, name) in WRITERS {
        let line = line.replace("OUT", name);
        let has_checkpoints = HAVE_CHECKPOINTS.iter().any(|verb| line.starts_with(verb));
        let resumed = has_checkpoints.then(|| format!("{line} {CHECKPOINT}"));
        for line in [Some(line), resumed].into_iter().flatten() {
            let writer = Writer::of(&folder, line, name);
            let failed = (0..faults).filter(|_| writer.survives(&writer.fault(&mut rng))).count();
            eprintln!("{faults} faults, {failed} of which ended it: {}", writer.line);
            match writer.old == OLD {
                true => fs::remove_file(folder.path(name)).unwrap(),
                false => folder.write(name, &writer.old),
            }
        }
    }
}
