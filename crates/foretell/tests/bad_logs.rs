//! Every malformed log has a message that says where, what and what to do; and no bytes make a
//! reader panic.
#![cfg(feature = "parquet")]

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use foretell::{Alphabet, End, Error, Logs, OnBadEpisode, ReadOptions, Schema, Trajectory, Writer};
use proptest::prelude::*;
use tempfile::TempDir;

const HEAD: &str = "episode_id,step,action,observation,reward,terminated,truncated\n";

/// Name and content of a file, and the schema that it is read with.
const MALFORMED_WITH_SCHEMA: &[(&str, &[u8], &str)] = &[
    ("no_such_column.csv", b"user,a,o\nann,N,wall\n", r#"{"episode": "usr"}"#),
    ("sort_missing.csv", b"ep,day,a,o\n1,2,N,wall\n1,,N,wall\n", r#"{"sort": "day"}"#),
    ("sort_nowhere.csv", b"ep,a,o\n1,N,wall\n", r#"{"sort": "day"}"#),
    ("measured_text.csv", b"a,speed\nN,1.5\nN,fast\n", r#"{"observation": "speed", "bins": {"speed": "2"}}"#),
    ("bins_nowhere.csv", b"a,o\nN,1.5\n", r#"{"bins": {"sped": "2"}}"#),
    ("not_a_time.csv", b"id,when,o\n1,2024-01-01,x\n1,soon,x\n", r#"{"episode": "id", "action": "none", "elapsed": "when"}"#),
    ("descending.csv", b"id,years,o\n1,0,x\n", r#"{"action": "none", "elapsed": "years", "elapsed_bins": ["1y", "3m"]}"#),
    ("unit.csv", b"id,years,o\n1,0,x\n", r#"{"action": "none", "elapsed": "years", "elapsed_bins": ["3q"]}"#),
    ("not_wide.csv", b"id,m1\n1,x\n", r#"{"action": "none", "wide": "m_*"}"#),
    ("wide_name.csv", b"observation,m1,m2\n1,x,y\n", r#"{"action": "none", "wide": "m*"}"#),
    ("unavailable.csv", b"a,o,can\nN,x,N;S\nE,x,N;S\n", r#"{"available": "can"}"#),
    ("available_flag.csv", b"a,o,available_N,available_S\nN,x,1,2\n", "{}"),
    ("no_group.csv", b"ep,school,a,o\n1,A,N,x\n2,,N,x\n", r#"{"group": "school"}"#),
    ("missing_part.csv", b"skill,level,o\nadd,1,x\nadd,NA,x\n", r#"{"action": ["skill", "level"]}"#),
    ("no_columns.csv", b"x,y\n1,2\n", r#"{"observation": "none", "action": "x"}"#),
    ("missing_word.csv", b"a,o,r\nN,x,NA\n", r#"{"missing": ["-9"]}"#),
    ("same_names_given.csv", b"skill,skill,o\nN,S,x\n", r#"{"action": "skill"}"#),
    ("second_sort.csv", b"ep,year,month,a,o\n1,2,3,N,x\n1,2,,N,x\n", r#"{"sort": ["year", "month"]}"#),
];

/// So many ways in which tables go wrong, at least, have a message.
const AT_LEAST: usize = 50;

/// Name and content of a file.
const MALFORMED: &[(&str, &[u8])] = &[
    ("empty.csv", b""),
    ("blank.csv", b" \n\n"),
    ("no_rows.csv", b"action,observation\n"),
    ("no_header.csv", b"1,0,N,wall,0,false,false\n"),
    ("no_action.csv", b"t,move,obs\n0,N,wall\n"),
    ("no_observation.jsonl", b"{\"action\": 1, \"state\": 2}\n"),
    ("two_ends.csv", b"action,observation,done,terminated\nN,wall,0,0\n"),
    ("latin1_header.csv", b"action,observation,caf\xe9\nN,wall,1\n"),
    ("latin1.csv", b"action,observation\nN,caf\xe9\n"),
    ("reward.csv", b"action,observation,reward\nN,wall,0\nN,wall,n.a.\n"),
    ("inf.csv", b"action,observation,reward\nN,wall,inf\n"),
    ("flag.csv", b"action,observation,terminated\nN,wall,maybe\n"),
    ("empty_flag.csv", b"action,observation,truncated\nN,wall,\n"),
    ("gap.csv", b"ep,step,action,observation\n1,0,N,wall\n1,2,N,wall\n"),
    ("repeat.csv", b"ep,step,action,observation\n1,3,N,wall\n1,3,N,wall\n"),
    ("back.csv", b"ep,t,action,observation\n1,3,N,wall\n1,2,N,wall\n"),
    ("time.csv", b"ep,time,action,observation\n1,0.5,N,wall\n"),
    ("comes_back.csv", b"ep,action,observation\n1,N,wall\n2,N,wall\n1,N,wall\n"),
    ("no_id.csv", b"ep,action,observation\n1,N,wall\n,N,wall\n"),
    ("after_end.csv", b"ep,action,observation,done\n7,N,wall,1\n7,N,wall,0\n"),
    ("first_in_the_middle.csv", b"ep,action,observation,is_first\n7,N,wall,1\n7,N,wall,1\n"),
    ("not_first_after_end.csv", b"action,observation,is_first,is_last\nN,wall,1,1\nN,wall,0,0\n"),
    ("empty_action.csv", b"action,observation\n,wall\n"),
    ("na_action.csv", b"action,observation\nN,wall\nNA,wall\n"),
    ("zero_probability.csv", b"action,observation,action_prob\nN,wall,0\n"),
    ("empty_probability.csv", b"action,observation,action_prob\nN,wall,\n"),
    ("positive_logp.csv", b"action,observation,action_logp\nN,wall,0.5\n"),
    ("short_row.csv", b"action,observation,reward\r\nN,wall,0\r\n\r\nN,wall\r\n"),
    ("long_row.csv", b"action,observation\nN,wall,0\n"),
    ("open_quote.csv", b"action,observation\nN,\"wall\nN,wall\n"),
    ("after_quote.csv", b"action,observation\nN,\"two\nlines\"\nN,\"wall\"s\n"),
    ("separator.csv", b"action,obs_x,obs_y\nN,a|b,c\n"),
    ("fraction.jsonl", b"{\"action\": 1, \"observation\": 0.25}\n"),
    ("fractions.jsonl", b"{\"action\": 1, \"observation\": [1, 0.25]}\n"),
    ("nested.jsonl", b"{\"action\": 1, \"observation\": {\"x\": 1}}\n"),
    ("nested_array.jsonl", b"{\"action\": 1, \"observation\": [[1], [2]]}\n"),
    ("no_elements.jsonl", b"{\"action\": 1, \"observation\": []}\n"),
    ("null.jsonl", br#"{"action": null, "observation": "wall"}"#),
    ("missing_key.jsonl", b"{\"action\": 1, \"observation\": 2}\n{\"observation\": 2}\n"),
    ("late_key.jsonl", b"{\"action\": 1, \"observation\": 2}\n{\"action\": 1, \"observation\": 2, \"episode_id\": 3}\n"),
    ("twice.jsonl", b"{\"action\": 1, \"observation\": 2, \"action\": 2}\n"),
    ("array.jsonl", b"[{\"action\": 1, \"observation\": 2}]\n"),
    ("array.json", b"[\n{\"action\": 1, \"observation\": 2}]\n"),
    ("cut.jsonl", b"{\"action\": 1, \"observation\": 2}\n{\"action\": 1, \"obs"),
    ("batch.jsonl", b"{\"actions\": [0, 1], \"obs\": [2, 3], \"rewards\": [0.0, 1.0]}\n"),
    ("reward_array.jsonl", b"{\"action\": 1, \"observation\": 2, \"reward\": [0, 0.5]}\n"),
    ("not.csv.gz", b"action,observation\nN,wall\n"),
    ("not.parquet", b"action,observation\nN,wall\n"),
    ("PAR1.dat", b"PAR1 and nothing else"),
    ("sheet.csv", b"PK\x03\x04\x14\0\x06\0"),
    ("page.csv", b"<!doctype html><html>\n"),
    ("utf16.csv", b"\xff\xfea\0,\0o\0\n\0"),
    ("old_mac.csv", b"action,observation\rN,wall\r"),
    ("between_spaces.csv", b"action observation\nN wall\n"),
    ("title.csv", b"My experiment\n\naction,observation\nN,wall\n"),
    ("quoted_between_spaces.csv", b"\"action\" \"observation\"\n\"N\" \"wall\"\n"),
    ("named_rows.csv", b"action,observation\n1,N,wall\n"),
    ("same_names.csv", b"action,observation,observation\nN,wall,wall\n"),
];

fn read_all(path: &Path, on_bad: OnBadEpisode) -> foretell::Result<u64> {
    let reader = Logs::files([path], ReadOptions { on_bad, ..ReadOptions::default() }).open(Alphabet::default())?;
    reader.map(|trajectory| trajectory.map(|_| 1)).sum()
}

fn read_with(path: &Path, schema: &str) -> foretell::Result<u64> {
    let schema: Schema = serde_json::from_str(schema).unwrap();
    let logs = Logs::files([path], ReadOptions { schema: Arc::new(schema), ..ReadOptions::default() }).fitted()?;
    logs.open(Alphabet::default())?.map(|trajectory| trajectory.map(|_| 1)).sum()
}

/// Tables that are wrong as a whole.
const ABOUT_THE_WHOLE: &[&str] = &[
    "empty.csv",
    "blank.csv",
    "no_rows.csv",
    "no_header.csv",
    "no_action.csv",
    "no_observation.jsonl",
    "two_ends.csv",
    "not.csv.gz",
    "not.parquet",
    "PAR1.dat",
    "no_such_column.csv",
    "sort_nowhere.csv",
    "bins_nowhere.csv",
    "descending.csv",
    "unit.csv",
    "not_wide.csv",
    "wide_name.csv",
    "no_columns.csv",
    "sheet.csv",
    "page.csv",
    "utf16.csv",
    "old_mac.csv",
    "title.csv",
    "between_spaces.csv",
    "same_names.csv",
    "same_names_given.csv",
];

#[test]
fn every_malformed_log_has_a_message_that_helps() {
    let folder = TempDir::new().unwrap();
    let mut messages = String::new();
    let plain = MALFORMED.iter().map(|(name, content)| (*name, *content, "{}"));
    let all: Vec<(&str, &[u8], &str)> = plain.chain(MALFORMED_WITH_SCHEMA.iter().copied()).collect();
    let names: HashSet<&str> = all.iter().map(|(name, ..)| *name).collect();
    assert!(names.len() == all.len() && all.len() >= AT_LEAST, "{} tables", all.len());
    for (name, content, schema) in all {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let error = read_with(&path, schema).expect_err(name);
        let Error::Input { file, line, remedy, .. } = &error else { panic!("{name}: {error:?}") };
        assert!(file.ends_with(name) && !remedy.is_empty(), "{error}");
        // All but what is wrong with a file or its columns as a whole has a line.
        assert_eq!(line.is_none(), ABOUT_THE_WHOLE.contains(&name), "{error}");
        let message = error.to_string();
        messages.push_str(&message.replace(&format!("{}/", folder.path().display()), ""));
        messages.push('\n');
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn a_missing_file_is_named() {
    let message = read_all(Path::new("no/such/walks.csv"), OnBadEpisode::Skip).unwrap_err().to_string();
    assert!(message.starts_with("cannot read no/such/walks.csv: "), "{message}");
}

#[test]
fn a_cut_gzip_file_is_an_error_even_when_skipping() {
    let folder = TempDir::new().unwrap();
    let whole = gzip(format!("{HEAD}{}", "1,0,N,wall,0,0,1\n").as_bytes());
    let path = folder.path().join("walks.csv.gz");
    fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    let message = read_all(&path, OnBadEpisode::Skip).unwrap_err().to_string();
    assert!(message.contains("walks.csv.gz: the gzip data is broken"), "{message}");
}

#[test]
fn a_row_of_a_parquet_file_is_named_by_its_number() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("walks.parquet");
    // a writer does not check what only a reader can see: probabilities
    let mut alphabet = Alphabet::default();
    let step = foretell::ActionObservation { action: alphabet.intern_action("N"), observation: alphabet.intern_observation("x") };
    let z = Trajectory {
        steps: vec![step; 2],
        rewards: vec![None; 2],
        action_probabilities: vec![0.5, 2.0],
        end: End::Truncated,
        about: Default::default(),
    };
    let mut writer = Writer::create(&path).unwrap();
    writer.write(&alphabet, &z).unwrap();
    writer.finish().unwrap();
    let message = read_all(&path, OnBadEpisode::Fail).unwrap_err().to_string();
    assert!(message.contains("walks.parquet: row 2: action_prob 2 is not in (0, 1]"), "{message}");
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(vec![], Compression::fast());
    gzip.write_all(content).unwrap();
    gzip.finish().unwrap()
}

/// A small valid file of each format.
fn valid(name: &str) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    let mut alphabet = Alphabet::default();
    let mut writer = Writer::create(&path).unwrap();
    for i in 0..6u32 {
        let step = foretell::ActionObservation {
            action: alphabet.intern_action(["N", "S"][i as usize % 2]),
            observation: alphabet.intern_observation(["x", "y\"", "z,z"][i as usize % 3]),
        };
        let z = Trajectory {
            steps: vec![step; 4],
            rewards: vec![None, Some(0.5), Some(-1.0), Some(0.0)],
            action_probabilities: vec![0.5; 4],
            end: End::Truncated,
            about: Default::default(),
        };
        writer.write(&alphabet, &z).unwrap();
    }
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

const FORMATS: [&str; 6] = ["walks.csv", "walks.jsonl", "walks.parquet", "walks.csv.gz", "walks.jsonl.gz", "walks.unknown"];

/// Reads `content` under the name; an error is fine, a panic is not.
fn survives(name: &str, content: &[u8]) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    for on_bad in [OnBadEpisode::Fail, OnBadEpisode::Skip] {
        let _ = read_all(&path, on_bad);
    }
}

/// Pieces that formats are made of, so that random files get past the first check.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 24] = [
        b"action,observation\n",
        b"episode_id,action,observation,reward,done\n",
        b"a,obs_1,obs_2\n",
        b"1,N,x,0,0\n",
        b"1,N\n",
        b",",
        b";",
        b"\n",
        b"\r\n",
        b"\"",
        b"\"\"",
        b"\xff",
        b"\xEF\xBB\xBF",
        b"{",
        b"}",
        b"[",
        b"]",
        b"{\"action\":1,\"observation\":2}\n",
        b"\"action\":",
        b":",
        b"1e999",
        b"-9223372036854775808",
        b"PAR1",
        b"\x1f\x8b\x08\x00",
    ];
    let piece = prop_oneof![4 => prop::sample::select(pieces.to_vec()).prop_map(<[u8]>::to_vec), 1 => prop::collection::vec(any::<u8>(), 0..8)];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_make_a_reader_panic(content in pieces(), format in 0..FORMATS.len(), packed in any::<bool>()) {
        survives(FORMATS[format], &if packed { gzip(&content) } else { content });
    }

    #[test]
    fn no_mutation_of_a_valid_file_makes_a_reader_panic(
        format in 0..5usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut content = valid(FORMATS[format]);
        for (at, byte) in edits {
            let at = at.index(content.len());
            content[at] = byte;
        }
        if let Some(cut) = cut {
            content.truncate(cut.index(content.len()));
        }
        survives(FORMATS[format], &content);
    }
}
