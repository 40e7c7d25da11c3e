//! Tables as people have them: other names, other orders, other shapes.

use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use foretell::log::Guess;
use foretell::{Alphabet, Error, Logs, Observation, ReadOptions, Recipe, Schema, Seed, SelectParams, Trajectory, score};

/// A table in a file, read with a schema in JSON.
struct Table {
    _folder: tempfile::TempDir,
    logs: Logs,
}

fn table(text: &str, schema: &str) -> Table {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    fs::write(&path, text).unwrap();
    let schema: Schema = serde_json::from_str(schema).unwrap();
    let logs = Logs::files([path], ReadOptions { schema: Arc::new(schema), ..ReadOptions::default() });
    Table { _folder: folder, logs }
}

impl Table {
    /// Each episode as `action:observation action:observation …`, after its name.
    fn steps(&self) -> Vec<String> {
        self.read().unwrap()
    }

    fn read(&self) -> Result<Vec<String>, Error> {
        let logs = self.logs.fitted()?;
        let mut reader = logs.open(Alphabet::default())?;
        let episodes = reader.by_ref().collect::<Result<Vec<Trajectory>, Error>>()?;
        let alphabet = reader.alphabet();
        let symbol = |o: Observation| if o.is_missing() { "?".into() } else { alphabet.symbol(o).to_string() };
        let text = |z: &Trajectory| {
            let steps: Vec<String> =
                z.steps.iter().map(|ao| format!("{}:{}", alphabet.action_name(ao.action), symbol(ao.observation))).collect();
            let name = z.about.name.as_deref().map(|name| format!("[{name}] ")).unwrap_or_default();
            format!("{name}{}", steps.join(" "))
        };
        Ok(episodes.iter().map(text).collect())
    }

    fn error(&self) -> String {
        self.read().unwrap_err().to_string().replace(&self._folder.path().display().to_string(), "")
    }

    fn guess(&self) -> Guess {
        self.logs.guess().unwrap().unwrap()
    }
}

const STUDENTS: &str = "user_id,order,skill,correct\nann,1,add,1\nann,2,sub,0\nbob,1,add,0\nbob,2,add,1\nbob,3,sub,1\n";

#[test]
fn columns_are_read_as_the_schema_says() {
    let students = table(STUDENTS, r#"{"episode": "user_id", "action": "skill", "observation": "correct"}"#);
    assert_eq!(students.steps(), ["[ann] add:1 sub:0", "[bob] add:0 add:1 sub:1"]);
    let several = table(STUDENTS, r#"{"episode": "user_id", "action": ["skill", "order"], "observation": "correct"}"#);
    assert_eq!(several.steps()[0], "[ann] skill=add|order=1:1 skill=sub|order=2:0");
    let none = table(STUDENTS, r#"{"episode": ["user_id", "skill"], "action": "none", "observation": "correct", "sort": "row"}"#);
    assert_eq!(none.steps(), ["[ann|add] none:1", "[ann|sub] none:0", "[bob|add] none:0 none:1", "[bob|sub] none:1"]);
}

#[test]
fn interleaved_and_unordered_rows_are_sorted() {
    let visits =
        "who,when,action,observation\na,2024-03-01,x,3\nb,2023-01-01,x,1\na,2024-01-05,x,1\na,2024-01-31,y,2\nb,2022-01-01,y,0\n";
    let sorted = table(visits, r#"{"episode": "who", "sort": "when"}"#);
    assert_eq!(sorted.steps(), ["[a] x:1 y:2 x:3", "[b] y:0 x:1"]);
    let collected = table(visits, r#"{"episode": "who", "sort": "row"}"#);
    assert_eq!(collected.steps(), ["[a] x:3 x:1 y:2", "[b] x:1 y:0"]);
    let said = table(visits, r#"{"episode": "who"}"#).error();
    assert!(said.contains("line 4") && said.contains("\"a\" comes back") && said.contains("`sort`"), "{said}");
    let said = table(visits, r#"{"episode": "who", "sort": "wen"}"#).error();
    assert!(said.contains("no column \"wen\" to sort by"), "{said}");
    // numbers are sorted as numbers, and gaps between them do not matter
    let numbers = table("ep,day,a,o\n1,10,x,b\n1,9,x,a\n1,100,x,c\n", r#"{"sort": "day"}"#);
    assert_eq!(numbers.steps(), ["[1] x:a x:b x:c"]);
}

#[test]
fn observations_from_before_the_action_are_shifted() {
    let text = "episode,obs,action,reward,terminated\n1,a,L,1,false\n1,b,R,2,true\n2,c,L,3,false\n";
    let shifted = table(text, r#"{"shift_observation": true}"#);
    // what followed the last action is known only where the episode ended
    assert_eq!(shifted.steps(), ["[1] reset:a L:b R:end [end]", "[2] reset:c L:?"]);
    let mut reader = shifted.logs.open(Alphabet::default()).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().rewards, [None, Some(1.0), Some(2.0)]);
    // in RLDS the last row has no action
    let rlds = "is_first,is_last,is_terminal,observation,action\n1,0,0,a,L\n0,1,1,b,L\n1,0,0,c,R\n0,1,0,d,R\n";
    assert_eq!(table(rlds, r#"{"shift_observation": true}"#).steps(), ["reset:a L:b [end]", "reset:c R:d"]);
}

#[test]
fn wide_tables_are_unfolded() {
    let careers = "id,sex,Jul.93,Aug.93,Sep.93\n7,f,school,job,job\n8,m,job,,school\n9,m,job,,\n";
    let unfolded = table(careers, r#"{"episode": "id", "action": "none", "wide": "Jul.93..Sep.93"}"#);
    assert_eq!(unfolded.steps(), ["[7] none:school none:job none:job", "[8] none:job none:? none:school", "[9] none:job"]);
    let by_pattern = table(careers, r#"{"action": "sex", "wide": ["*.93"]}"#);
    assert_eq!(by_pattern.steps()[0], "[1] f:school f:job f:job");
    let said = table(careers, r#"{"action": "none", "wide": "m_*"}"#).error();
    assert!(said.contains("0 column(s) match m_*"), "{said}");
}

#[test]
fn elapsed_times_are_part_of_the_action() {
    let visits = "ptnum,years,state\n1,0,1\n1,0.1,1\n1,2.5,2\n2,0,1\n2,0.9,3\n";
    let read = |more: &str| {
        table(visits, &format!(r#"{{"episode": "ptnum", "action": "none", "observation": "state", "elapsed": "years"{more}}}"#))
    };
    let cut = read(r#", "elapsed_bins": ["3m", "1y"]"#);
    assert_eq!(cut.steps(), ["[1] elapsed=first:1 elapsed=..3m:1 elapsed=1y..:2", "[2] elapsed=first:1 elapsed=3m..1y:3"]);
    assert_eq!(read("").steps()[0], "[1] elapsed=first:1 elapsed=..0.5:1 elapsed=2..:2");
    let said = read(r#", "elapsed_bins": ["1y", "3m"]"#).error();
    assert!(said.contains("1y,3m are not ascending"), "{said}");
}

#[test]
fn missing_values_are_missing() {
    let text = "episode,action,observation,reward\n1,x,a,NA\n1,x,NA,2\n1,x,,1\n1,x,?,1\n1,x,none,\n";
    let plain = table(text, "{}");
    assert_eq!(plain.steps(), ["[1] x:a x:? x:? x:? x:none"]);
    assert_eq!(
        plain.logs.open(Alphabet::default()).unwrap().next().unwrap().unwrap().rewards,
        [None, Some(2.0), Some(1.0), Some(1.0), None]
    );
    let other = table(text, r#"{"missing": ["none"]}"#);
    assert!(other.error().contains("line 2: reward \"NA\" is not a number"), "{}", other.error());
    let said = table("action,observation\nNA,a\n", "{}").error();
    assert!(said.contains("line 2") && said.contains("\"NA\" is a missing action"), "{said}");
    let parts = table("a,obs_mood,obs_sleep\nx,low,NA\nx,low,2\nx,NA,NA\n", "{}");
    assert_eq!(parts.steps(), ["x:? x:mood=low|sleep=2 x:?"]);
    let z = parts.logs.open(Alphabet::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(z.about.partial, [(0, "mood=low|sleep=?".into())]);
}

#[test]
fn measurements_are_divided_into_cells() {
    let rows: String = (0..60).map(|i| format!("{},x,{},{}\n", i / 30, f64::from(i % 30) + 0.25, i % 2)).collect();
    let text = format!("episode,action,speed,flag\n{rows}");
    let read = |bins: &str| table(&text, &format!(r#"{{"observation": ["speed", "flag"]{bins}}}"#));
    assert!(read(r#", "bins": {"speed": "2"}"#).steps()[0].starts_with("[0] x:speed=..15|flag=0 x:speed=..15|flag=1"));
    assert!(
        read(r#", "bins": {"speed": "cuts:1/2"}"#).steps()[0]
            .starts_with("[0] x:speed=..1|flag=0 x:speed=1..2|flag=1 x:speed=2..|flag=0")
    );
    // what is measured is divided without being asked
    let automatic = read("");
    assert!(automatic.steps()[0].contains("speed=.."), "{:?}", automatic.steps());
    let together = read(r#", "bins": {"speed+flag": "kmeans:3"}"#);
    assert!(together.steps()[0].starts_with("[0] x:speed+flag=~"), "{:?}", together.steps());
    let said = read(r#", "bins": {"sped": "4"}"#).error();
    assert!(said.contains("no column \"sped\" to make bins of"), "{said}");
    let names = table("a,o\nx,am\nx,am\nx,am\nx,am\nx,am\nx,pm\n", r#"{"bins": {"o": "category"}}"#);
    assert_eq!(names.steps(), ["x:o=am x:o=am x:o=am x:o=am x:o=am x:o=other"]);
    let said = table("a,o\nx,1.5\nx,am\n", r#"{"bins": {"o": "2"}}"#).error();
    assert!(said.contains("line 3: o \"am\" is not a number, though the column is measured"), "{said}");
}

#[test]
fn a_guess_has_reasons_and_is_not_forced() {
    let students = table(STUDENTS, "{}").guess();
    let role = |name: &str| students.roles.iter().find(|role| role.role == name).unwrap();
    assert_eq!(role("episode").columns, ["user_id"]);
    assert_eq!(role("episode").reason, "\"user_id\" has 2 values in blocks");
    assert_eq!((role("action").columns.join(" "), role("observation").columns.join(" ")), ("skill".into(), "correct".into()));
    // interleaved users with a time stamp
    let log = "user,timestamp,action,observation\na,5,x,1\nb,6,x,1\na,7,x,0\nb,9,x,1\na,9,x,0\n";
    let (understood, guess) = table(log, "{}").logs.understood().unwrap();
    assert_eq!(understood.schema().sort.as_deref().unwrap(), ["timestamp"]);
    assert_eq!(guess.unwrap().sentences().len(), 2);
    // the usual names are left alone
    let usual = table("episode_id,step,action,observation\n1,0,x,y\n", "{}");
    assert!(usual.logs.understood().unwrap().1.is_none());
    // a time that does not count steps, in a column that could
    let time = table("ep,time,a,o\n1,0.5,x,1\n1,0.9,x,2\n1,0.7,x,3\n", "{}");
    let (understood, _) = time.logs.understood().unwrap();
    let mut reader = understood.open(Alphabet::default()).unwrap();
    let z = reader.next().unwrap().unwrap();
    assert_eq!(z.steps.iter().map(|ao| reader.alphabet().symbol(ao.observation).name.clone()).collect::<String>(), "132");
    // columns that could be several things are not taken without asking
    let unclear = table("when,mood,level,dose\n1,a,1,x\n2,b,2,y\n", "{}");
    let said = unclear.logs.understood().unwrap_err().to_string();
    assert!(said.contains("no column for the observation"), "{said}");
    assert_eq!(unclear.guess().schema.observation.unwrap(), ["mood", "level"]);
}

#[test]
fn probabilities_of_another_action_than_the_one_taken_are_noticed() {
    // Action 1 with probability p, which changes from row to row.
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut of_one, mut of_taken, mut nonsense) = (String::new(), String::new(), String::new());
    for i in 0..4000 {
        let p = [0.2, 0.5, 0.7][i % 3];
        let action = u8::from(draw() < p);
        of_one.push_str(&format!("{},{action},x,{p}\n", i / 20));
        of_taken.push_str(&format!("{},{action},x,{}\n", i / 20, if action == 1 { p } else { 1.0 - p }));
        nonsense.push_str(&format!("{},{action},x,0.2\n", i / 20));
    }
    let findings = |rows: &str| {
        let logs = table(&format!("episode,action,observation,prob\n{rows}"), "{}");
        foretell::Summary::of(&logs.logs).unwrap().findings.join("\n")
    };
    assert!(findings(&of_one).contains("probability of the action \"1\" in every row"), "{}", findings(&of_one));
    assert!(!findings(&of_taken).contains("action_prob"), "{}", findings(&of_taken));
    assert!(findings(&nonsense).contains("not the probability of the action taken"), "{}", findings(&nonsense));
}

#[test]
fn copies_of_episodes_and_columns_with_too_many_values_are_noticed() {
    let findings = |seen: fn(usize) -> usize| {
        let episode = |id: usize| (0..16).map(move |t| format!("{id},x,{}\n", seen(t))).collect::<String>();
        let twice = table(&format!("episode,action,observation\n{}{}", episode(1), episode(2)), "{}");
        foretell::Summary::of(&twice.logs).unwrap().findings.join("\n")
    };
    let copied = "exact copies among the episodes with 10 or more changes: 1";
    assert!(findings(|t| t * t % 7).contains(copied), "{}", findings(|t| t * t % 7));
    // What changes slowly is often the same by chance.
    assert!(!findings(|t| t / 4).contains("copies"), "{}", findings(|t| t / 4));
    let rows: String = (0..40).map(|i| format!("x,{},{i}\n", i % 2)).collect();
    let wide = table(&format!("action,obs_side,obs_serial\n{rows}"), "{}");
    let said = foretell::Summary::of(&wide.logs).unwrap().findings.join("\n");
    assert!(said.contains("divide column serial into fewer bins, it has 40 values"), "{said}");
}

/// A table of 3000 rows of a system with three states that are seen, in which `go` leads on and
/// `stay` stays, nine times in ten.
fn ring(choose: impl Fn(usize, f64) -> bool, before: bool) -> String {
    let mut rng = Seed(5).rng();
    let mut text = String::from("episode,action,observation\n");
    let mut s = 0;
    for i in 0..3000 {
        let seen = s;
        let go = choose(s, rng.uniform());
        s = if go == (rng.uniform() < 0.9) { (s + 1) % 3 } else { s };
        let shown = if before { seen } else { s };
        text.push_str(&format!("{},{},{shown}\n", i / 100, if go { "go" } else { "stay" }));
    }
    text
}

#[test]
fn observations_from_before_their_actions_are_noticed() {
    let note = |text: &str, schema: &str| {
        let summary = foretell::Summary::of(&table(text, schema).logs).unwrap();
        summary.findings.iter().any(|finding| finding.contains("seems to hold what was seen before its action"))
    };
    let random = |_: usize, u: f64| u < 0.5;
    let on_sight = |s: usize, u: f64| u < [0.9, 0.5, 0.2][s];
    assert!(note(&ring(random, true), "{}"));
    assert!(note(&ring(on_sight, true), "{}"));
    // read as it is meant
    assert!(!note(&ring(random, false), "{}"));
    assert!(!note(&ring(on_sight, false), "{}"));
    assert!(!note(&ring(on_sight, true), r#"{"shift_observation": true}"#));
    // actions without effect, and chosen at random, say nothing
    let idle: String = ring(random, true).lines().map(|line| line.replace("go", "stay")).collect::<Vec<_>>().join("\n");
    assert!(!note(&idle, "{}"));
    let tiger = foretell::domains::get("tiger").unwrap();
    let episodes = foretell::domains::sample(&tiger, 500, 20, Seed(1)).collect();
    let timing = Logs::memory(tiger.alphabet().clone(), episodes).timing().unwrap().unwrap();
    assert!(!timing.seems_before_action(), "hidden states, uniformly random actions: {timing:?}");
    // Which rock was checked before says what a check will show.
    let rocks = foretell::domains::get("rocksample").unwrap();
    let episodes = foretell::domains::sample(&rocks, 400, 30, Seed(5)).collect();
    let timing = Logs::memory(rocks.alphabet().clone(), episodes).timing().unwrap().unwrap();
    assert!(timing.next_row.deviations > 5.0 && !timing.seems_before_action(), "{timing:?}");
}

/// Tosses of a coin, of which every other one was not seen.
#[test]
fn observations_that_are_missing_do_not_count_as_steps() {
    let mut rng = Seed(4).rng();
    let mut text = String::from("episode,action,observation\n");
    for episode in 0..200 {
        for t in 0..20 {
            let side = if rng.uniform() < 0.5 { "heads" } else { "tails" };
            writeln!(text, "{episode},toss,{}", if t % 2 == 0 { side } else { "" }).unwrap();
        }
    }
    let logs = &table(&text, "{}").logs;
    let fitted = Recipe { select: Some(SelectParams::default()), ..Recipe::default() }.fit(logs).unwrap();
    let nats = fitted.selection.unwrap().nats.unwrap();
    // The held-out loss of two learned parameters is far below this.
    const LOSS: f64 = 0.01;
    assert!((nats + 2f64.ln()).abs() < LOSS, "{nats}");
    let scored = score(&fitted.model, logs, None).unwrap();
    let uniform = scored.comparisons.iter().find(|other| other.name == "uniform").unwrap();
    assert_eq!((scored.steps, scored.missing), (2000, 2000));
    // Uniform, but for the share of symbols that were not seen.
    assert!((scored.per_step - uniform.difference + 2f64.ln()).abs() < LOSS, "{} {uniform:?}", scored.per_step);
}
