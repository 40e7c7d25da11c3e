//! Logs in many files are the same as in one: shards, folders and patterns.

use std::fs;

use crate::support::{Folder, SMALL};

const SAMPLE: [&str; 8] = ["sample", "colored-gridworld", "--episodes", "1234", "--seed", "5", "-o", "logs/part"];

/// Samples the same walks into `logs/part` with an extension, as one file or as shards.
fn sample(folder: &Folder, extension: &str, flags: &[&str]) -> String {
    fs::create_dir_all(folder.path("logs")).unwrap();
    let output = format!("logs/part{extension}");
    folder.ok(&[&SAMPLE[..SAMPLE.len() - 1], &[output.as_str()], flags].concat())
}

/// The bytes of a file in `logs`.
fn read(folder: &Folder, name: &str) -> Vec<u8> {
    folder.read(&format!("logs/{name}"))
}

#[test]
fn shards_hold_the_episodes_of_the_single_file() {
    let folder = Folder::new();
    for extension in [".jsonl", ".csv"] {
        sample(&folder, extension, &[]);
        let said = sample(&folder, extension, &["--shards", "7"]);
        assert!(said.contains(&format!("in 7 files: logs/part-00{extension} to logs/part-06{extension}")), "{said}");
        let header =
            if extension == ".csv" { "episode_id,step,action,observation,reward,terminated,truncated,action_prob\n" } else { "" };
        let mut together = header.as_bytes().to_vec();
        for i in 0..7 {
            let shard = read(&folder, &format!("part-0{i}{extension}"));
            let rows = shard.strip_prefix(header.as_bytes()).expect("every shard has a header");
            let episodes = rows.split(|byte| *byte == b'\n').filter(|row| row.windows(4).any(|x| x == b"true")).count();
            assert!((176..=177).contains(&episodes), "{episodes}");
            together.extend_from_slice(rows);
        }
        assert!(together == read(&folder, &format!("part{extension}")), "{extension}");
    }
    assert_eq!(fs::read_dir(folder.path("logs")).unwrap().count(), 16, "nothing else is left");
}

#[test]
fn one_file_shards_a_folder_and_a_pattern_give_the_same_model() {
    let folder = Folder::new();
    let learn = |logs: &[&str]| {
        let refine = ["--refine", "--em-rounds", "3", "--keep-moments"];
        folder.ok(&[&["learn"], logs, &["-o", "model"], &SMALL[..], &refine].concat());
        folder.read("model")
    };
    sample(&folder, ".parquet", &[]);
    let single = learn(&["logs/part.parquet"]);
    fs::remove_file(folder.path("logs/part.parquet")).unwrap();
    sample(&folder, ".parquet", &["--shards", "12"]);
    let padded: Vec<String> = (0..12).map(|i| format!("logs/part-{i:02}.parquet")).collect();
    let padded: Vec<&str> = padded.iter().map(String::as_str).collect();
    assert!(learn(&padded) == single, "shards");
    // Without zeros in front, the order of letters would put part-10 before part-2.
    for (i, shard) in padded.iter().enumerate() {
        fs::rename(folder.path(shard), folder.path(&format!("logs/part-{i}.parquet"))).unwrap();
    }
    folder.write("logs/notes.txt", "not a log");
    assert!(learn(&["logs"]) == single, "a folder");
    assert!(learn(&["logs/*.parquet"]) == single, "a pattern");
    assert!(learn(&["l[!x]gs/part-?.parquet", "./log?/part-1[01].parquet"]) == single, "two patterns");
}

#[test]
fn packed_logs_and_parquet_go_through_pipes() {
    let folder = Folder::new();
    for extension in [".csv", ".csv.gz", ".jsonl.gz", ".parquet"] {
        sample(&folder, extension, &[]);
        let name = format!("logs/part{extension}");
        assert_eq!(folder.piped(&["inspect", "-"], &folder.read(&name)), folder.ok(&["inspect", &name]), "{extension}");
    }
    assert_eq!(folder.names(), ["logs"]);
}

#[test]
fn a_pattern_is_scored_and_inspected_as_its_files_are() {
    let folder = Folder::with_model();
    folder.sample("heldout-2.csv", 40, 3);
    let (files, pattern) = (["heldout.csv", "heldout-2.csv"], "held*.csv");
    assert_ne!(folder.ok(&["inspect", files[0]]), folder.ok(&["inspect", pattern]));
    assert_eq!(folder.ok(&["inspect", files[1], files[0]]), folder.ok(&["inspect", pattern]));
    let score = |logs: &[&str]| folder.ok(&[&["score", "model.safetensors"], logs].concat());
    assert_eq!(score(&[files[1], files[0]]), score(&[pattern]));
}

#[test]
fn an_output_among_the_logs_of_a_folder_is_refused() {
    let folder = Folder::new();
    sample(&folder, ".csv", &["--shards", "3"]);
    for logs in ["logs", "logs/*.csv"] {
        let ran = folder.run(&["learn", logs, "-o", "logs/part-01.csv"], b"");
        assert_eq!((ran.code, ran.err.contains("logs/part-01.csv is read by this command")), (1, true), "{}", ran.err);
    }
}
