//! The commands of the guide to tables of one's own, on tables of these shapes; then what goes wrong.

use std::fmt::Write;

use crate::support::{Folder, SMALL, parsed};

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
            parsed(&folder.ok(&[&["inspect", &format!("{name}.{format}")], &columns[..]].concat()))["steps"].as_u64().unwrap()
        };
        assert_eq!((read("train"), read("test")), (105, 45), "{format}");
    }
    let ran = folder.run(&["split", "answers.csv", "--by", "order_id", "-o", "a.csv,b.csv"], b"");
    assert!(ran.code == 1 && ran.err.contains("no column \"order_id\" to split by"), "{}", ran.err);
    assert!(!folder.names().contains(&"a.csv".to_string()));
}

#[test]
fn logs_that_were_learned_from_are_recognised() {
    let folder = Folder::with_model();
    let said = folder.ok(&["score", "model.safetensors", "walks.csv"]);
    assert!(said.contains("warning: 300 of 300 of these episodes were learned from"), "{said}");
    let held_out = parsed(&folder.ok(&["score", "model.safetensors", "heldout.csv", "--json"]));
    let known = &held_out["learned_from"];
    assert!(known["episodes"] == 60 && known["warning"].is_null(), "{known}");
    // also after an update, and by a policy
    folder.ok(&[&["learn", "walks.csv", "-o", "kept.safetensors", "--keep-moments"], &SMALL[..]].concat());
    folder.ok(&["update", "kept.safetensors", "heldout.csv", "-o", "more.safetensors"]);
    for logs in ["walks.csv", "heldout.csv"] {
        let known = parsed(&folder.ok(&["score", "more.safetensors", logs, "--json"]))["learned_from"].clone();
        assert_eq!(known["episodes"], known["found"], "{known}");
    }
    // that few of these walks find the goal is said, and does not matter here
    folder.run(&["plan", "model.safetensors", "heldout.csv", "-o", "policy.safetensors", "--rounds", "3", "--trees", "2"], b"");
    let said = folder.run(&["evaluate", "policy.safetensors", "--logs", "heldout.csv", "--episodes", "50"], b"");
    let said = String::from_utf8(said.out).unwrap();
    assert!(said.contains("The policy was planned on these logs, so it was not judged by them"), "{said}");
    let page = parsed(&folder.ok(&["report", "model.safetensors", "--logs", "walks.csv", "--json"]));
    assert!(page["warnings"].to_string().contains("300 of 300 of these episodes"), "{}", page["warnings"]);
}

#[test]
fn a_policy_takes_the_best_of_the_available_actions() {
    let folder = Folder::new();
    let mut draws = Draws(9);
    let mut text = String::from("episode,action,observation,reward,available\n");
    for i in 0..2000 {
        let may = draws.next() < 0.7;
        let send = may && draws.next() < 0.5;
        let mood = if draws.next() < 0.5 { "low" } else { "high" };
        writeln!(text, "{},{},{mood},{},{}", i / 20, if send { "send" } else { "none" }, u8::from(send), u8::from(may)).unwrap();
    }
    folder.write("trial.csv", text);
    let said = folder.ok(&["inspect", "trial.csv"]);
    assert!(said.contains("available   1.") && said.contains("only the one taken in"), "{said}");
    folder.ok(&[&["learn", "trial.csv", "-o", "model.safetensors"], &SMALL[..]].concat());
    folder.ok(&["plan", "model.safetensors", "trial.csv", "-o", "policy.safetensors", "--rounds", "5", "--discount", "0.9"]);
    let acted = folder.piped(&["act", "policy.safetensors", "--available"], b"\tsend;none\nlow\tnone\nhigh\n\nlow\tsend\n");
    assert_eq!(acted, "send\nnone\nsend\nsend\nsend\n");
    // 1 stands for all actions, as in logs
    assert_eq!(
        folder.piped(&["act", "policy.safetensors", "--available"], b"\t1\nlow\tnone;\nhigh\ttrue\n"),
        "send\nnone\nsend\n"
    );
    let refused = folder.run(&["act", "policy.safetensors", "--available"], b"\t0\n");
    assert!(refused.code != 0 && refused.err.contains("line 1") && refused.err.contains("not which"), "{}", refused.err);
    let refused = folder.run(&["act", "policy.safetensors", "--available"], b"\tsned\n");
    assert!(refused.code != 0 && refused.err.contains("line 1") && refused.err.contains("sned"), "{}", refused.err);
}

#[test]
fn measurements_are_given_to_predict_as_they_are() {
    let folder = Folder::new();
    // Fast and slow phases, with a flag that says nothing.
    let (mut draws, mut text, mut fast) = (Draws(5), String::from("episode,action,speed,flag\n"), false);
    for i in 0..2000 {
        fast ^= draws.next() < 0.1;
        let speed = draws.next() * 20.0 + if fast { 20.0 } else { 0.0 };
        writeln!(text, "{},x,{speed:.2},{}", i / 20, u8::from(draws.next() < 0.5)).unwrap();
    }
    folder.write("logs.csv", text);
    let flags = ["--observation", "speed,flag", "--bins", "speed=cuts:20"];
    folder.ok(&[&["learn", "logs.csv", "-o", "model.safetensors"], &SMALL[..], &flags].concat());
    let predict = |history: &str| folder.ok(&["predict", "model.safetensors", "--history", history, "--actions", "x"]);
    assert_eq!(predict("x:speed=3.25|flag=1"), predict("x:speed=..20|flag=1"));
    assert_ne!(predict("x:speed=33|flag=1"), predict("x:speed=..20|flag=1"));
    // parts that are missing are summed over
    assert_ne!(predict("x:speed=3.25|flag=?"), predict("x:?"));
    // in the order of the columns, and without those that are not known
    assert_eq!(predict("x:3.25|1"), predict("x:speed=..20|flag=1"));
    assert_eq!(predict("x:speed=3.25"), predict("x:speed=..20|flag=?"));
    let refused = folder.run(&["predict", "model.safetensors", "--history", "x:speed=fast|flag=1", "--actions", "x"], b"");
    assert!(refused.err.contains("speed=fast"), "{}", refused.err);
}

#[test]
fn groups_stay_together_in_search_and_widen_intervals() {
    let folder = Folder::new();
    // Four schools that differ, with twenty students each.
    let (mut draws, mut text) = (Draws(11), String::from("school,user_id,action,observation\n"));
    for student in 0..80 {
        for _ in 0..6 {
            let right = draws.next() < [0.2, 0.4, 0.6, 0.9][student % 4];
            writeln!(text, "{},{student},x,{}", student % 4, u8::from(right)).unwrap();
        }
    }
    folder.write("logs.csv", text);
    let learn = |name: &str, more: &[&str]| {
        folder.ok(&[&["learn", "logs.csv", "--episode", "user_id", "-o", name], &SMALL[..], more].concat());
        let score = parsed(&folder.ok(&["score", name, "logs.csv", "--json"]));
        let halves = ["/per_step_ci95", "/horizons/0/ci95", "/horizons/5/ci95", "/baselines/uniform/5/ci95"];
        (halves.map(|at| score.pointer(at).unwrap().as_f64().unwrap()), score["comparisons"][0]["blocks"].clone())
    };
    let (alone, grouped) = (learn("alone.safetensors", &[]), learn("grouped.safetensors", &["--group", "school"]));
    assert!(grouped.1 == 4 && alone.1 == 80, "{alone:?} {grouped:?}");
    let is_wider = |i: usize| grouped.0[i] > 2.0 * alone.0[i] || i == 3;
    assert!((0..4).all(is_wider), "the horizons too: {alone:?} {grouped:?}");
    let columns = ["--episode", "user_id", "--group", "school"];
    let refused = folder.run(&[&["search", "logs.csv", "-o", "found.toml", "--folds", "5"], &columns[..]].concat(), b"");
    assert!(refused.err.contains("groups of episodes in the logs: 4, too few"), "{}", refused.err);
}

#[test]
fn measured_actions_and_observations_are_given_to_act_and_predict_as_they_are() {
    let folder = Folder::new();
    // A dose above 1 helps while the level is low.
    let (mut draws, mut text, mut level) = (Draws(6), String::from("episode,dose,level,reward\n"), 50.0);
    for i in 0..3000 {
        let dose = (draws.next() * 2000.0).round() / 1000.0;
        level = 0.5 * level + 50.0 * draws.next();
        let reward = if (dose > 1.0) == (level < 50.0) { 1.0 } else { 0.0 };
        let reward = if draws.next() < 0.3 { "NA".to_string() } else { reward.to_string() };
        writeln!(text, "{},{dose},{level:.1},{reward}", i / 20).unwrap();
    }
    folder.write("logs.csv", text);
    let flags = ["--action", "dose", "--observation", "level", "--bins", "dose=cuts:1,level=cuts:50"];
    folder.ok(&[&["learn", "logs.csv", "-o", "model.safetensors"], &SMALL[..], &flags].concat());
    let predict = |history: &str, actions: &str| {
        folder.ok(&["predict", "model.safetensors", "--history", history, "--actions", actions, "--json"])
    };
    assert_eq!(predict("0.3:12.5", "1.7,0.2"), predict("dose=..1:level=..50", "dose=1..,dose=..1"));
    let planned = folder.run(&["plan", "model.safetensors", "logs.csv", "-o", "policy.safetensors", "--rounds", "3"], b"");
    assert!(planned.code == 0 && planned.err.contains("steps have no reward and are left out"), "{}", planned.err);
    let act = |lines: &[u8]| folder.piped(&["act", "policy.safetensors"], lines);
    assert_eq!(act(b"12.5\n77\n?\n"), act(b"level=..50\nlevel=50..\nNA\n"));
    let evaluated = folder.ok(&["evaluate", "policy.safetensors", "--logs", "logs.csv", "--episodes", "20"]);
    assert!(evaluated.contains("steps have no reward and were left out"), "{evaluated}");
}

#[test]
fn one_episode_gives_no_interval() {
    let folder = Folder::new();
    let mut draws = Draws(8);
    let rows: String = (0..400).map(|i| format!("{},{},{}\n", i % 2, u8::from(draws.next() < 0.5), i % 2)).collect();
    folder.write("one.csv", format!("action,observation,reward\n{rows}"));
    folder.ok(&[&["learn", "one.csv", "-o", "model.safetensors"], &SMALL[..]].concat());
    folder.ok(&["plan", "model.safetensors", "one.csv", "-o", "policy.safetensors", "--rounds", "3"]);
    let evaluate = ["evaluate", "policy.safetensors", "--logs", "one.csv", "--episodes", "20"];
    let said = folder.ok(&evaluate);
    let line = |name: &str| said.lines().find(|line| line.trim_start().starts_with(name)).expect(&said);
    assert!(["logged", "wdr", "fqe"].iter().all(|name| line(name).matches("n/a").count() == 2), "{said}");
    assert!(!line("model").contains("n/a"), "there are several rollouts: {said}");
    let json = parsed(&folder.ok(&[&evaluate[..], &["--json"]].concat()));
    assert!(json["logged"]["low"].is_null() && json["logged"]["error"].is_null(), "{json}");
}

#[test]
fn flags_that_are_printed_can_be_given() {
    let folder = Folder::new();
    let mut draws = Draws(3);
    let rows: String = (0..400)
        .map(|i| {
            format!("p{},{},{},{:.0},{}\n", i / 20, i, ["a", "b"][i % 2], 9.0 * draws.next() - 9.0, u8::from(draws.next() < 0.5))
        })
        .collect();
    folder.write("logs.csv", format!("\"patient, id\",day,treatment,mood,-done?\n{rows}"));
    let said = folder.ok(&["inspect", "logs.csv"]);
    let flags = said.lines().find_map(|line| line.strip_prefix("the same, said explicitly: ")).expect(&said);
    let words: Vec<String> = flags
        .split("' ")
        .flat_map(|part| {
            let (plain, quoted) =
                part.split_once('\'').map_or((part, None), |(plain, quoted)| (plain, Some(quoted.trim_end_matches('\''))));
            plain.split_whitespace().chain(quoted).map(String::from).collect::<Vec<_>>()
        })
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let again = folder.ok(&[&["inspect", "logs.csv"], &words[..]].concat());
    assert!(again.contains("20 episodes, 400 steps") && again.contains("given") && !again.contains("by its name"), "{again}");
    // -9 is a value like any other
    let missing = folder.ok(&[&["inspect", "logs.csv", "--missing", "-9,-8"], &words[..]].concat());
    assert!(missing.contains("observations are missing"), "{missing}");
}

#[test]
fn learn_says_in_plain_words_whether_the_past_helps() {
    let folder = Folder::new();
    let trust = |name: &str, stays: f64| {
        let (mut draws, mut state, mut text) = (Draws(12), 0, String::from("user_id,status\n"));
        for i in 0..800 {
            state ^= u8::from(draws.next() > stays);
            writeln!(text, "u{},{state}", i / 10).unwrap();
        }
        folder.write(name, text);
        let said = folder.ok(&["learn", name, "--effort", "quick", "-o", "m.safetensors"]);
        said.lines().find(|line| line.trim_start().starts_with("trust")).expect(&said).to_string()
    };
    let coin = trust("coin.csv", 0.5);
    assert!(coin.contains("on 800 held-out steps it is not better beyond noise"), "{coin}");
    let sticky = trust("sticky.csv", 0.9);
    assert!(sticky.contains("the past helps: on 800 held-out steps") && sticky.contains("do as well within noise"), "{sticky}");
}

#[test]
fn what_cannot_be_read_is_explained_once() {
    let folder = Folder::new();
    let rows: String =
        (0..60).map(|i| format!("{},{}.5,{}\n", i / 20, if i == 30 { "inf".into() } else { i.to_string() }, i % 2)).collect();
    folder.write("inf.csv", format!("id,speed,state\n{}", rows.replace("inf.5", "inf")));
    let ran = folder.run(&["inspect", "inf.csv", "--quiet"], b"");
    let out = String::from_utf8(ran.out).unwrap();
    assert!(ran.code == 1 && out.contains("tried: --episode id --action none --observation speed,state"), "{out}");
    assert!(ran.err.contains("inf.csv line 32: speed \"inf\" is not a number") && ran.err.contains("--missing"), "{}", ran.err);
    folder.write("wide.csv", "m1,m2,m3,m4,m5,m6,m7,m8\n".to_string() + &"a,b,a,b,a,b,a,a\n".repeat(9) + "b,a,b,a,b,a,b,b\n");
    let ran = folder.run(&["inspect", "wide.csv", "--quiet"], b"");
    let out = String::from_utf8(ran.out).unwrap();
    assert!(ran.code == 1 && out.contains("--action none --wide m1..m8"), "{out}");
    assert!(ran.err.contains("some of this is a guess, so nothing was read: give the flags above"), "{}", ran.err);
    folder.write("constant.csv", "id,correct,skill\na,1,x\na,1,y\nb,1,x\nb,1,y\n");
    let out = String::from_utf8(folder.run(&["inspect", "constant.csv", "--quiet"], b"").out).unwrap();
    assert!(out.contains("\"correct\" could be the observation by its name, but is the same in all rows"), "{out}");
    // what is in doubt is a note, also of learn
    let rows: String = (0..60).map(|i| format!("{},{}\n", i % 12, ["x", "y"][i % 5 % 2])).collect();
    folder.write("mixed.csv", format!("week,status\n{rows}"));
    let doubt = "\"week\" goes down 4 times";
    assert!(folder.ok(&["inspect", "mixed.csv"]).contains(doubt));
    let ran = folder.run(&["learn", "mixed.csv", "--effort", "quick", "-o", "m.safetensors"], b"");
    assert!(ran.code == 0 && ran.err.contains(doubt) && ran.err.contains("(--episode)"), "{}", ran.err);
}
