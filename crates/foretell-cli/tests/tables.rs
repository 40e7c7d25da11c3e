//! The commands of the guide to tables of one's own, on tables of these shapes; then what goes wrong.

use std::fmt::Write;

use crate::support::Folder;

/// A guide whose commands are run as they stand.
const GUIDE: &str = include_str!("../../../docs/your-own-table.md");

/// Numbers that look random: those of a linear congruential generator.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Answers of students who learn one of two skills.
fn answers(students: usize) -> String {
    let (mut draws, mut text) = (Draws(1), String::from("user_id,order,skill,correct\n"));
    for student in 0..students {
        let mut knows = draws.next() < 0.3;
        for order in 1..=15 {
            let skill = if draws.next() < 0.5 { "add" } else { "sub" };
            let correct = draws.next() < if knows && skill == "add" { 0.9 } else { 0.4 };
            writeln!(text, "s{student},{order},{skill},{}", u8::from(correct)).unwrap();
            knows |= draws.next() < 0.1;
        }
    }
    text
}

/// Animals that rest or travel.
fn tracks() -> String {
    let (mut draws, mut text) = (Draws(2), String::from("ID,step,angle\n"));
    for animal in 1..=3 {
        let mut travels = false;
        for _ in 0..120 {
            travels ^= draws.next() < 0.1;
            let (step, angle) = if travels { (2.0, 0.5) } else { (0.1, 3.0) };
            writeln!(text, "elk-{animal},{:.3},{:.3}", step * draws.next(), angle * (2.0 * draws.next() - 1.0)).unwrap();
        }
    }
    text
}

/// Patients who get worse with time.
fn visits() -> String {
    let (mut draws, mut text) = (Draws(3), String::from("PTNUM,age,years,state\n"));
    for patient in 0..80 {
        let (mut years, mut state) = (0.0, 1);
        for _ in 0..6 {
            writeln!(text, "{},50,{years:.3},{state}", 100_000 + patient).unwrap();
            let elapsed = 0.3 + 3.0 * draws.next();
            years += elapsed;
            state += i32::from(state < 3 && draws.next() < 0.15 * elapsed);
        }
    }
    text
}

/// A robot that drives towards walls.
fn robot() -> String {
    let (mut draws, mut text) = (Draws(4), String::from("time,command,front,left\n"));
    let mut front = 2.0;
    for i in 0..400 {
        let command = if front < 0.5 || draws.next() < 0.05 { "turn" } else { "forward" };
        writeln!(text, "{:.2},{command},{front:.3},{:.3}", f64::from(i) * 0.11, draws.next()).unwrap();
        front = if command == "turn" { 0.5 + 2.5 * draws.next() } else { (front - 0.1 - 0.1 * draws.next()).max(0.1) };
    }
    text
}

#[test]
fn the_guide_to_tables_of_ones_own_works_as_it_stands() {
    let folder = Folder::new();
    let (answers, tracks, visits, robot) = (answers(40), tracks(), visits(), robot());
    for (name, text) in [("logs", &answers), ("answers", &answers), ("tracks", &tracks), ("visits", &visits), ("robot", &robot)] {
        folder.write(&format!("{name}.csv"), text);
    }
    let commands: Vec<&str> = GUIDE.lines().filter_map(|line| line.strip_prefix("foretell ")).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands {
        // Words in quotes stay together.
        let words: Vec<&str> = command
            .split('"')
            .enumerate()
            .flat_map(|(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
            .collect();
        let said = folder.ok(&words);
        assert!(!said.is_empty(), "{command}");
    }
    let predictions = String::from_utf8(folder.read("predictions.csv")).unwrap();
    assert!(predictions.starts_with("episode,step,action,observation,probability,entropy,p_"), "{predictions}");
    assert!(predictions.lines().nth(1).unwrap().starts_with('s'), "names of episodes are kept: {predictions}");
}

#[test]
fn an_unknown_table_is_explained_and_no_guess_is_forced() {
    let folder = Folder::new();
    folder.write("answers.csv", answers(5));
    let said = folder.ok(&["inspect", "answers.csv"]);
    for claim in ["\"user_id\" has 5 values in blocks", "--episode user_id", "episode = [\"user_id\"]", "5 episodes, 75 steps"] {
        assert!(said.contains(claim), "{claim}: {said}");
    }
    folder.write("unclear.csv", "when,mood,level,dose\n1,a,1,x\n2,b,2,y\n3,a,2,y\n");
    let ran = folder.run(&["learn", "unclear.csv", "-o", "m.safetensors"], b"");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("no column for the observation") && ran.err.contains("A guess to start from: "), "{}", ran.err);
    assert!(ran.err.contains("--observation mood,level"), "{}", ran.err);
}

#[test]
fn a_model_reads_other_logs_as_it_was_told() {
    let folder = Folder::new();
    folder.write("answers.csv", answers(20));
    let columns = ["--episode", "user_id", "--action", "skill", "--observation", "correct"];
    folder.ok(&[&["learn", "answers.csv", "--effort", "quick", "-o", "m.safetensors"], &columns[..]].concat());
    let plain = folder.ok(&["score", "m.safetensors", "answers.csv", "--json"]);
    assert_eq!(plain, folder.ok(&[&["score", "m.safetensors", "answers.csv", "--json"], &columns[..]].concat()));
    let ran = folder.run(&["score", "m.safetensors", "answers.csv", "--action", "order"], b"");
    assert!(ran.code == 1 && ran.err.contains("--action order") && ran.err.contains("learn again"), "{}", ran.err);
}

#[test]
fn a_split_keeps_rows_and_groups_whole() {
    let folder = Folder::new();
    folder.write("answers.csv", answers(10));
    for format in ["csv", "jsonl", "parquet"] {
        let files = format!("train.{format},test.{format}");
        let said = folder.ok(&["split", "answers.csv", "--by", "user_id", "--test", "0.3", "--seed", "1", "-o", &files]);
        assert!(said.contains("105 rows, 7 values of user_id") && said.contains("45 rows, 3 values of user_id"), "{said}");
        let read = |name: &str| {
            let columns = ["--episode", "user_id", "--action", "skill", "--observation", "correct", "--json"];
            crate::support::parsed(&folder.ok(&[&["inspect", &format!("{name}.{format}")], &columns[..]].concat()))["steps"]
                .as_u64()
                .unwrap()
        };
        assert_eq!((read("train"), read("test")), (105, 45), "{format}");
    }
    let ran = folder.run(&["split", "answers.csv", "--by", "order_id", "-o", "a.csv,b.csv"], b"");
    assert!(ran.code == 1 && ran.err.contains("no column \"order_id\" to split by"), "{}", ran.err);
    assert!(!folder.names().contains(&"a.csv".to_string()));
}
