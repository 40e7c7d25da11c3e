//! Tables with dates, whole-number measurements, rows that are episodes, and columns that mislead.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use foretell::plan::{StateKind, plan_on};
use foretell::{
    Alphabet, Effort, LearnParams, Logs, Observation, PlanParams, ReadOptions, Recipe, Schema, Seed, SelectParams, Summary,
    Trajectory,
};
use proptest::prelude::*;

struct Table {
    folder: tempfile::TempDir,
    schema: Schema,
}

fn table(text: &str, schema: &str) -> Table {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("table.csv"), text).unwrap();
    Table { folder, schema: serde_json::from_str(schema).unwrap() }
}

impl Table {
    fn path(&self) -> PathBuf {
        self.folder.path().join("table.csv")
    }

    fn logs(&self) -> Logs {
        Logs::files([self.path()], ReadOptions { schema: Arc::new(self.schema.clone()), ..ReadOptions::default() })
    }

    /// `action:observation` of each step, episodes with ` / ` between them, and the notes on order.
    fn read(&self) -> (String, String) {
        let logs = self.logs().fitted().unwrap();
        let mut reader = logs.open(Alphabet::default()).unwrap();
        let episodes: Vec<Trajectory> = reader.by_ref().collect::<Result<_, _>>().unwrap();
        let alphabet = reader.alphabet();
        let symbol = |o: Observation| if o.is_missing() { "?".into() } else { alphabet.symbol(o).to_string() };
        let step = |ao: &foretell::ActionObservation| format!("{}:{}", alphabet.action_name(ao.action), symbol(ao.observation));
        let episode = |z: &Trajectory| z.steps.iter().map(step).collect::<Vec<_>>().join(" ");
        (episodes.iter().map(episode).collect::<Vec<_>>().join(" / "), reader.notes().order.join("; "))
    }

    /// The columns that were divided into cells.
    fn divided(&self) -> Vec<String> {
        self.logs().fitted().unwrap().schema().encoders.keys().cloned().collect()
    }
}

#[test]
fn rows_are_sorted_by_dates_as_people_write_them() {
    let sorted = |dates: [&str; 3]| {
        let rows: String = dates.iter().zip(["a", "b", "c"]).map(|(date, o)| format!("x,{o},\"{date}\"\n")).collect();
        table(&format!("action,observation,when\n{rows}"), r#"{"sort": "when"}"#).read()
    };
    for dates in [
        ["11/18/2026", "2/3/2026", "12/1/2025"],
        ["18.11.2026", "3.2.2026", "1.12.2025"],
        ["Nov 18, 2026 1:00 PM", "Nov 18, 2026 12:59 PM", "Nov 18, 2026 11:00 AM"],
        ["2026-11-18T00:30+02:00", "2026-11-17T22:00Z", "2026/11/16"],
    ] {
        assert_eq!(sorted(dates), ("x:c x:b x:a".into(), String::new()), "{dates:?}");
    }
    // The order in the file tells which of two ways is meant.
    let (steps, note) = sorted(["01/02/2026", "02/02/2026", "01/03/2026"]);
    assert!(steps == "x:a x:b x:c" && note.contains("day first, in which more rows are in order"), "{steps} {note}");
    let (steps, note) = sorted(["03/04/2026", "04/03/2026", "05/06/2026"]);
    assert!(steps == "x:a x:b x:c" && note.contains("month first"), "{steps} {note}");
    let (steps, note) = sorted(["week 10", "week 9", "week 1"]);
    assert!(steps == "x:c x:b x:a" && note.contains("sorted by its text"), "{steps} {note}");
}

/// Two hundred episodes of a random walk over whole numbers, and its numbers in disguise.
fn walks(disguise: impl Fn(i64) -> String) -> String {
    let mut rng = Seed(3).rng();
    let mut text = String::from("id,action,value,mood\n");
    for episode in 0..100 {
        let mut x = 1000.0;
        for _ in 0..30 {
            x = 1000.0 + 0.9 * (x - 1000.0) + 300.0 * (rng.uniform() - 0.5);
            writeln!(text, "e{episode},{},{},{}", ["up", "down"][rng.below(2)], disguise(x as i64), rng.below(7)).unwrap();
        }
    }
    text
}

#[test]
fn whole_numbers_are_divided_if_they_are_measured() {
    let schema = r#"{"episode": "id", "observation": ["value", "mood"]}"#;
    assert_eq!(table(&walks(|x| x.to_string()), schema).divided(), ["value"]);
    // The same structure, but the numbers are names: a fixed permutation of 60 of them.
    let names = walks(|x| ((x / 10) * 37 % 61).to_string());
    assert!(table(&names, schema).divided().is_empty());
    assert!(table(&walks(|x| format!("{x:06}")), schema).divided().is_empty(), "no measurement begins with zeros");
    let given = r#"{"episode": "id", "observation": ["value", "mood"], "bins": {"value": "category"}}"#;
    let (steps, _) = table(&walks(|x| x.to_string()), given).read();
    assert!(steps.contains("value=other"), "{}", &steps[..200]);
}

#[test]
fn identifiers_without_order_stay_names_even_if_they_are_rare() {
    let mut rng = Seed(4).rng();
    let mut text = String::from("user,shown,clicked_item,count\n");
    for row in 0..900 {
        writeln!(text, "{},{},{},{}", row / 9, rng.below(400), rng.below(400), rng.below(400)).unwrap();
    }
    let logs = table(&text, r#"{"episode": "user", "action": "shown", "observation": ["clicked_item", "count"]}"#);
    assert_eq!(logs.divided(), ["count"], "an action needs evidence, and a name of an identifier speaks against it");
    // With many rows for each value, numbers that gather around a middle are measured.
    let mut text = String::from("action,pulse,room\n");
    for _ in 0..3000 {
        let sum: f64 = (0..6).map(|_| 30.0 * rng.uniform()).sum();
        writeln!(text, "x,{},{}", sum as i64, rng.below(100)).unwrap();
    }
    assert_eq!(table(&text, r#"{"observation": ["pulse", "room"]}"#).divided(), ["pulse"]);
}

#[test]
fn a_row_can_be_an_episode_which_it_ends_for_plans() {
    // A bandit without ids: the second arm earns more.
    let rows: String = (0..200).map(|i| format!("{},{}\n", ["left", "right"][i % 2], i % 2)).collect();
    let bandit =
        table(&format!("arm,won\n{rows}"), r#"{"episode": "row", "action": "arm", "observation": "won", "reward": "won"}"#);
    let logs = bandit.logs();
    let summary = Summary::of(&logs).unwrap();
    assert_eq!((summary.episodes, summary.lengths.unwrap().max), (200, 1));
    assert!(summary.findings.iter().any(|finding| finding.contains("a bandit")), "{:?}", summary.findings);
    let recipe = Recipe { select: Some(SelectParams::default()), ..Recipe::default() };
    let model = recipe.fit(&logs).unwrap().model;
    let episodes = logs.episodes_for(model.alphabet(), "model").unwrap();
    for state in [StateKind::Last, StateKind::Memory] {
        let params = PlanParams { state, ..PlanParams::default() };
        let mut value = 0.0;
        let plan = plan_on(&model, &episodes, &params, &mut |round| value = round.start_value).unwrap();
        assert!((value - 1.0).abs() < 1e-9, "an endless episode would be worth 100: {value}");
        assert_eq!(plan.alphabet().action_name(plan.policy().best()), "right");
    }
    // A step before the choice that shows the context is no choice.
    let shifted = r#"{"episode": "row", "action": "arm", "observation": "won", "reward": "won", "shift_observation": true}"#;
    let (steps, _) = table("arm,won\nleft,0\nright,1\n", shifted).read();
    assert_eq!(steps, "reset:0 left:? / reset:1 right:?");
}

#[cfg(feature = "parquet")]
#[test]
fn times_and_lists_of_parquet_are_read() {
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::types::Float64Type;
    use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, TimestampNanosecondArray};
    use parquet::arrow::ArrowWriter;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let mut lists = ListBuilder::new(StringBuilder::new());
    for list in [["add", "sub"], ["sub", "mul"]] {
        list.iter().for_each(|name| lists.values().append_value(name));
        lists.append(true);
    }
    let odd = ListArray::from_iter_primitive::<Float64Type, _, _>([Some([Some(0.5)]), None]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("action", Arc::new(StringArray::from(vec!["add", "sub"]))),
        ("observation", Arc::new(Int64Array::from(vec![2, 1]))),
        ("when", Arc::new(TimestampNanosecondArray::from(vec![2_000_000_000, 1_000_000_000]))),
        ("can", Arc::new(lists.finish())),
        ("embedding", Arc::new(odd)),
        ("unused", Arc::new(Float64Array::from(vec![0.1, 0.2]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let schema: Schema = serde_json::from_str(r#"{"sort": "when", "available": "can"}"#).unwrap();
    let logs = Logs::files([&path], ReadOptions { schema: Arc::new(schema), ..ReadOptions::default() });
    assert!(logs.guess().unwrap().unwrap().unread.is_none(), "columns that cannot be read are no obstacle to others");
    let mut reader = logs.open(Alphabet::default()).unwrap();
    let z = reader.next().unwrap().unwrap();
    let name = |a: &foretell::Action| reader.alphabet().action_name(*a).to_string();
    assert_eq!(z.steps.iter().map(|ao| name(&ao.action)).collect::<Vec<_>>(), ["sub", "add"]);
    let sets = z.about.available.iter().map(|set| set.as_ref().unwrap().iter().map(name).collect::<Vec<_>>().join("+"));
    assert_eq!(sets.collect::<Vec<_>>(), ["sub+mul", "sub+add"]);
}

/// Two hundred people over eight years, of which some are missing, in random order.
fn panel(names: &str) -> String {
    let mut rng = Seed(6).rng();
    let mut rows = Vec::new();
    for person in 0..200 {
        let mut status = 0;
        for year in 2010..2018 {
            if rng.uniform() < 0.9 {
                let income = 20_000 + rng.below(40_000);
                rows.push((rng.below(1 << 30), format!("{},{year},{},{income}\n", 1000 + person, ["a", "b"][status])));
            }
            status ^= usize::from(rng.uniform() < 0.2);
        }
    }
    rows.sort();
    format!("{names}\n{}", rows.into_iter().map(|(_, row)| row).collect::<String>())
}

#[test]
fn what_has_one_row_for_each_time_names_the_episodes() {
    let understood = |text: &str| {
        let table = table(text, "{}");
        let (logs, guess) = table.logs().understood().unwrap();
        let schema = logs.schema();
        let list = |names: &Option<Vec<String>>| names.as_deref().unwrap_or_default().join(",");
        (list(&schema.episode), list(&schema.sort), guess.map(|guess| guess.doubts.join("; ")).unwrap_or_default())
    };
    assert_eq!(understood(&panel("nr,year,status,income")), ("nr".into(), "year".into(), String::new()));
    // the same in blocks, with names of another language: Zeit begins anew with each Kind
    let blocks: String = (0..90).map(|i| format!("{},{},{}\n", i / 6, i % 6 + 1, ["x", "y"][i * i % 7 % 2])).collect();
    let blocks = format!("Kind,Zeit,status\n{blocks}");
    assert_eq!(understood(&blocks), ("Kind".into(), String::new(), String::new()));
    // without such a column, a time that goes down is in doubt, and nothing is sorted
    let anonymous: String = blocks.lines().map(|line| line.split_once(',').unwrap().1.to_string() + "\n").collect();
    let (episode, sort, doubt) = understood(&anonymous.replace("Zeit", "week"));
    assert!(episode.is_empty() && sort.is_empty() && doubt.contains("\"week\" goes down 14 times"), "{sort} {doubt}");
    // one series has no episodes, even if days and rooms have one row for each hour
    let series: String = (0..600).map(|i| format!("{},{},{},{}\n", 7 * i, i / 24, i % 24, ["on", "off"][i % 5 % 2])).collect();
    assert_eq!(understood(&format!("timestamp,room,hour,status\n{series}")), Default::default());
}

#[test]
fn an_id_that_comes_back_at_the_same_time_is_completed() {
    let rows: String = (0..160).map(|i| format!("{},{},{},{}\n", i / 80, i / 4 % 20, i % 4, ["x", "y"][i % 3 % 2])).collect();
    let text = format!("center,id,visit,status\n{rows}");
    let guess = table(&text, "{}").logs().guess().unwrap().unwrap();
    assert_eq!(guess.schema.episode.unwrap(), ["center", "id"]);
    let (steps, _) = table(&text, r#"{"episode": ["center", "id"], "action": "none", "observation": "status"}"#).read();
    assert_eq!(steps.split(" / ").count(), 40);
    // an age that never changes shows nothing, and a column that makes each row an episode tells nothing
    let rows: String = (0..90).map(|i| format!("p{},{},{},{}\n", i / 3, 40 + i / 3 % 9, i % 3, ["x", "y"][i % 2])).collect();
    let constant = table(&format!("id,age,begin,status\n{rows}"), "{}").logs().guess().unwrap().unwrap();
    assert_eq!(constant.schema.episode.unwrap(), ["id"]);
}

#[test]
fn episodes_without_a_mark_of_their_end_are_not_joined() {
    // the second user never finishes
    let text = "user,action,observation,done\na,x,1,0\na,x,2,1\nb,x,1,0\nb,x,2,0\nc,x,1,0\nc,x,2,1\n";
    let users = table(text, "{}");
    let (logs, guess) = users.logs().understood().unwrap();
    assert_eq!(Summary::of(&logs).unwrap().episodes, 3);
    assert!(guess.unwrap().sentences()[0].contains("also change where no end is marked"));
    // where every end is marked, flags are enough
    let marked = text.replace("b,x,2,0", "b,x,2,1");
    let (logs, guess) = table(&marked, "{}").logs().understood().unwrap();
    assert!(logs.schema().episode.is_none() && guess.is_none());
}

#[test]
fn rows_are_sorted_by_several_columns() {
    let text = "ep,year,month,a,o\n1,2024,2,x,d\n1,2023,11,x,b\n1,2024,1,x,c\n1,2023,9,x,a\n";
    assert_eq!(table(text, r#"{"sort": ["year", "month"]}"#).read().0, "x:a x:b x:c x:d");
    // neither alone is a time of its own
    let row = |(user, i): (usize, usize)| format!("u{user},{},{},s{},{}\n", 2020 + i / 12, i % 12, i % 3, i % 2);
    let rows: String = (0..72).map(|i| row((i / 36, i % 36 * 7 % 36))).collect();
    let (logs, _) = table(&format!("user_id,year,month,skill,correct\n{rows}"), "{}").logs().understood().unwrap();
    assert_eq!(logs.schema().sort.as_deref().unwrap_or_default(), ["year", "month"]);
}

#[test]
fn codes_of_missing_values_and_names_that_look_alike_are_noticed() {
    let rows: String = (0..60).map(|i| format!("{},x,{}\n", i / 10, if i % 9 == 0 { -99 } else { i % 4 })).collect();
    let doubts = |schema: &str| {
        let table = table(&format!("episode,action,observation\n{rows}"), schema);
        table.logs().guess().unwrap().unwrap().doubts.join("; ")
    };
    assert!(doubts("{}").contains("\"observation\" is -99 in 7 rows"), "{}", doubts("{}"));
    assert_eq!(doubts(r#"{"missing": ["-99"]}"#), "");
    let alike = "episode,action,observation\n1,x,Yes\n1,x,yes \n1,x,no\n2 ,x, \n";
    let findings = Summary::of(&table(alike, "{}").logs()).unwrap().findings.join("\n");
    for said in [r#""Yes" and "yes ""#, r#"1 episodes begin or end with a space, such as "2 ""#, r#"" " has a value of spaces"#] {
        assert!(findings.contains(said), "{said}: {findings}");
    }
}

#[test]
fn whole_numbers_have_one_name_in_all_formats() {
    let csv = table("episode,action,obs_x,obs_y\n1,1.0,2.0,a\n1,1,2,a\n", "{}").read().0;
    assert_eq!(csv, "1:x=2|y=a 1:x=2|y=a");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.jsonl");
    fs::write(&path, "{\"action\": 1.0, \"obs_x\": 2.0, \"obs_y\": \"a\"}\n").unwrap();
    let mut reader = Logs::files([path], ReadOptions::default()).open(Alphabet::default()).unwrap();
    reader.next().unwrap().unwrap();
    assert_eq!((&*reader.alphabet().actions()[0], &*reader.alphabet().observations()[0].name), ("1", "x=2|y=a"));
}

#[test]
fn booleans_and_long_ids_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.jsonl");
    let row = |i: usize| {
        format!("{{\"user_id\": {}, \"skill\": \"{}\", \"correct\": {}}}\n", (1u64 << 60) + i as u64 / 4, i % 3, i % 5 > 1)
    };
    fs::write(&path, (0..40).map(row).collect::<String>()).unwrap();
    let (logs, _) = Logs::files([&path], ReadOptions::default()).understood().unwrap();
    let (schema, summary) = (logs.schema(), Summary::of(&logs).unwrap());
    assert_eq!((schema.observation.as_deref().unwrap(), summary.episodes), (&["correct".to_string()][..], 10));
}

#[test]
fn a_split_into_a_typed_format_keeps_numbers_and_loses_nothing() {
    let rows: String =
        (0..40).map(|i| format!("{},x,{},00{i},{}\n", i / 4, f64::from(i) / 8.0, if i == 3 { "NA" } else { "1" })).collect();
    let table = table(&format!("user,action,speed,code,mark\n{rows}"), "{}");
    let paths = ["train.jsonl", "test.jsonl"].map(|name| table.folder.path().join(name));
    let split =
        |by: &str| foretell::log::split(&[table.path()], &table.schema, &[by.into()], 0.5, Seed(1), [&paths[0], &paths[1]]);
    split("user").unwrap();
    let text: String = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(text.contains(r#""speed":0.125,"code":"001","mark":1}"#) && text.contains(r#""code":"003","mark":null}"#), "{text}");
    fs::write(table.path(), b"user,action,o\n1,x,caf\xe9\n2,x,1\n").unwrap();
    let said = split("user").unwrap_err().to_string();
    assert!(said.contains("line 2: o") && said.contains("not valid UTF-8"), "{said}");
}

/// How the cell of a row of an episode is made.
type CellOf = fn(usize, usize) -> String;

/// Columns that tables may have: their names and cells.
const COLUMNS: [(&[&str], CellOf); 16] = [
    (&["user_id", "subject", "episode", "ID, number", "session"], |episode, _| format!("u{episode}")),
    (&["time", "Day", "t", "visit"], |_, step| (2 * step + 1).to_string()),
    (&["date", "when"], |episode, step| format!("{}/{}/2026", episode % 12 + 1, 27 - step)),
    (&["step", "index"], |_, step| step.to_string()),
    (&["action", "treatment", "skill"], |episode, step| ["a", "b"][(episode + step) % 2].to_string()),
    (&["dose", "setting"], |episode, step| format!("{:.3}", (episode * 7 + step * 3) as f64 / 7.0)),
    (&["observation", "obs", "state", "response"], |episode, step| ["x", "y", ""][(episode * step) % 3].to_string()),
    (&["obs_left", "speed", "level"], |episode, step| format!("{:.2}", ((episode + 3 * step) as f64).sin())),
    (&["mood", "score"], |episode, step| (episode * step % 5).to_string()),
    (&["reward", "quality"], |_, step| if step % 2 == 0 { "1.5".into() } else { "NA".into() }),
    (&["done", "terminated", "dropout"], |_, step| u8::from(step == 5).to_string()),
    (&["prob", "action_prob"], |episode, step| [0.25, 0.75][(episode + step) % 2].to_string()),
    (&["avail", "available"], |episode, step| u8::from((episode + step) % 3 > 0).to_string()),
    (&["eligible"], |_, _| "a;b".to_string()),
    (&["note", "Unnamed: 0", ""], |episode, step| format!("{episode}-{step}")),
    (&["allowed, or not", "legal"], |_, step| ["c;d", "a;b"][step % 2].to_string()),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_suggested_reads_the_table(
        chosen in prop::collection::vec((0..COLUMNS.len(), 0..5usize), 2..9),
        interleaved in any::<bool>(),
    ) {
        let mut columns: Vec<(&str, CellOf)> = Vec::new();
        for (kind, name) in chosen {
            let (names, cell) = COLUMNS[kind];
            let name = names[name % names.len()];
            if columns.iter().all(|(known, _)| *known != name) {
                columns.push((name, cell));
            }
        }
        let mut text = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(",") + "\n";
        let rows: Vec<(usize, usize)> = (0..10).flat_map(|episode| (0..6).map(move |step| (episode, step))).collect();
        let order: Vec<usize> = if interleaved { (0..60).map(|i| i % 10 * 6 + i / 10).collect() } else { (0..60).collect() };
        for i in order {
            let (episode, step) = rows[i];
            text += &(columns.iter().map(|(_, cell)| cell(episode, step)).collect::<Vec<_>>().join(",") + "\n");
        }
        let table = table(&text, "{}");
        let guess = table.logs().guess().unwrap().unwrap();
        let said = Table { schema: guess.schema.as_given(), folder: table.folder };
        let read = said.logs().fitted().and_then(|logs| Summary::of(&logs).map(|_| ()));
        prop_assert_eq!(read.is_ok(), guess.unread.is_none(), "{:?} {:?}\n{}", read, guess, text);
        // Where there is anything that could be observed, and no action is empty, something is found.
        let has = |names: &[&str]| columns.iter().any(|(name, _)| names.contains(name));
        let times = ["step", "index", "t", "time", "Day", "visit", "date", "when"];
        if has(&["mood", "level", "speed", "state", "response"]) && !has(&times) {
            prop_assert!(guess.unread.is_none(), "{:?}\n{}", guess, text);
        }
    }
}

#[test]
fn hashes_of_episodes_are_those_of_a_pass_of_its_own() {
    let table = table(&walks(|x| (x / 100).to_string()), r#"{"episode": "id", "observation": "value"}"#);
    let logs = table.logs();
    let small = LearnParams { rank: 3, test_dim: 16, history_dim: 16, ..LearnParams::default() };
    let select = SelectParams { effort: Effort::Quick, ..SelectParams::default() };
    let expected = logs.digest().unwrap();
    for select in [None, Some(select)] {
        let recipe = Recipe { learn: small.clone(), select, ..Recipe::default() };
        assert_eq!(recipe.fit(&logs).unwrap().model.origin().digest.as_ref(), &expected);
    }
}
