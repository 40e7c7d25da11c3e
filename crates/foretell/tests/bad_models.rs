//! Messages of the readers of models for bad files; and no text makes them panic.

use foretell::Pomdp;
use foretell::domains::grid::Grid;
use proptest::prelude::*;

const TIGER: &str = include_str!("../src/domains/tiger.POMDP");
const TWO_DOORS: &str = include_str!("data/two-doors.POMDP");
const MACHINE: &str = include_str!("data/machine.POMDP");
const MAZE: &str = include_str!("../src/domains/colored-gridworld.txt");

const HEAD: &str = "discount: 0.9\nvalues: reward\nstates: up down\nactions: go stay\nobservations: hot cold warm\n";
const BODY: &str = "T: * identity\nO: * uniform\n";

/// A head and a body with one change: what is wrong, and the text.
fn bad_pomdps() -> Vec<(&'static str, String)> {
    let head = |from: &str, to: &str| {
        assert!(HEAD.contains(from));
        HEAD.replace(from, to) + BODY
    };
    let body = |extra: &str| format!("{HEAD}{BODY}{extra}");
    vec![
        ("empty", String::new()),
        ("prose", "Dear reviewer,\nplease find".to_string()),
        ("unknown heading", head("discount", "gamma")),
        ("discount is a word", head("0.9", "high")),
        ("discount above 1", head("0.9", "9")),
        ("unknown values", head("values: reward", "values: profit")),
        ("no states", head("states: up down\n", "")),
        ("MDP", head("observations: hot cold warm\n", "")),
        ("states without names", head("up down", "")),
        ("states twice", head("states: up down", "states: up down\nstates: 2")),
        ("name twice", head("go stay", "go go")),
        ("number as name", head("up down", "7 8")),
        ("no action", head("go stay", "0")),
        ("absurd number of states", head("up down", "99999999999")),
        ("absurd number of rows", head("up down", "100000").replace("go stay", "100000")),
        ("absurd number of probabilities", head("up down", "100000").replace("identity", "uniform")),
        ("start names nothing", head("values", "start: left\nvalues")),
        ("start of the wrong length", head("values", "start: 0.5 0.25 0.25\nvalues")),
        ("start does not sum to 1", head("values", "start: 0.5 0.4\nvalues")),
        ("start contains a word", head("values", "start: 0.5 half\nvalues")),
        ("start excludes all", head("values", "start exclude: up down\nvalues")),
        ("head after body", body("discount: 0.95")),
        ("entry without heading", body("R: go : * : * : * 1\nE: go")),
        ("stray word", body("T: go identity uniform")),
        ("unknown action", body("T: jump identity")),
        ("unknown state", body("\nT: go : left uniform")),
        ("index out of range", body("O: go : up : 3 1.0")),
        ("missing name", body("T: go : : up 1.0")),
        ("probability above 1", body("T: go : up : down 1.5")),
        ("negative probability", body("O: go : up 0.5 -0.5 1")),
        ("probability is a word", body("T: go : up : down often")),
        ("row too short", body("O: go : up\n0.5 0.5\nO: stay uniform")),
        ("row too long", body("T: go : up\n0.5 0.25 0.25")),
        ("matrix cut off", body("T: go\n0 1\n1")),
        ("identity for observations", body("O: go identity")),
        ("row does not sum to 1", body("T: stay : down : up 0.01")),
        ("observation row never given", format!("{HEAD}T: * identity\nO: go uniform\nO: stay : up uniform")),
        ("reward without state", body("R: go 5")),
        ("reward is a word", body("R: go : * : * : * lots")),
        ("reward is not finite", body("R: go : * : * : * inf")),
        ("reward matrix too short", body("R: go : up\n1 2 3\n4 5")),
        ("reward row too long", body("R: go : up : down 1 2 3 4")),
    ]
}

fn bad_maps() -> Vec<(&'static str, String)> {
    let maze = |from: &str, to: &str| {
        assert!(MAZE.contains(from));
        MAZE.replacen(from, to, 1)
    };
    vec![
        ("empty", "\n\n".to_string()),
        ("ragged row", maze("x...x.x......x", "x...x.x.....x")),
        ("unknown character", maze("x...x.x......x", "x...x?x......x")),
        ("no start", maze("S", ".")),
        ("no goal", maze("G", ".")),
        ("open edge", maze("x...x........x", "x...x.........")),
        ("unreachable goal", "xxxxx\nxSxGx\nxxxxx\n".to_string()),
        ("too few colours", maze("\n00110101002100", "")),
        ("colours too narrow", maze("12012110001210", "1201211000121")),
        ("unknown colour", maze("12012110001210", "12012113001210")),
        ("third block", format!("{MAZE}\nnotes\n")),
        ("huge", format!("{}\n", "x".repeat(1000)).repeat(101)),
    ]
}

/// One line for every case: what is wrong, and the message.
fn messages<T>(cases: Vec<(&str, String)>, read: impl Fn(&str) -> foretell::Result<T>) -> String {
    let message = |(case, text): (&str, String)| match read(&text) {
        Ok(_) => panic!("{case} was taken"),
        Err(error) => format!("{case}\n    {error}\n"),
    };
    cases.into_iter().map(message).collect()
}

#[test]
fn every_bad_pomdp_file_is_refused_with_its_line_and_a_remedy() {
    insta::assert_snapshot!(messages(bad_pomdps(), |text| Pomdp::parse(text, "model.POMDP")));
}

#[test]
fn every_bad_map_is_refused_with_its_line_and_a_remedy() {
    insta::assert_snapshot!(messages(bad_maps(), |text| Grid::parse(text, "maze.txt")));
}

#[test]
fn the_files_are_good_before_they_are_damaged() {
    Pomdp::parse(&format!("{HEAD}{BODY}"), "model.POMDP").unwrap();
    Grid::parse(MAZE, "maze.txt").unwrap();
}

/// Reads as every kind of model; a model that is accepted must also work.
fn read_all_ways(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(pomdp) = Pomdp::parse(&text, "x") {
        pomdp.uniform_policy().nth(2);
    }
    if let Ok(grid) = Grid::parse(&text, "x") {
        grid.pomdp();
        grid.without_colours().pomdp();
    }
}

/// One change of a text.
#[derive(Clone, Debug)]
enum Mutation {
    Byte(prop::sample::Index, u8),
    Delete(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    Insert(prop::sample::Index, &'static str),
}

impl Mutation {
    fn apply(&self, text: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let n = text.len();
        let range = |at: usize, length: usize| at..n.min(at + length);
        match self {
            Mutation::Byte(at, byte) => text[at.index(n)] = *byte,
            Mutation::Delete(at, length) => drop(text.drain(range(at.index(n), *length))),
            Mutation::Repeat(at, length) => {
                let copy = text[range(at.index(n), *length)].to_vec();
                text.splice(at.index(n)..at.index(n), copy);
            }
            Mutation::Insert(at, word) => drop(text.splice(at.index(n)..at.index(n), word.bytes())),
        }
    }
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let words = vec![
        ":",
        " : ",
        "*",
        " * ",
        "#",
        "\n",
        " ",
        "-",
        "+",
        "1",
        " 0 ",
        "1e9",
        "e",
        ".",
        "999999",
        "uniform",
        "identity",
        " reset ",
        "T: ",
        "O:",
        "R: ",
        "start: ",
        "start include:",
        "start exclude: ",
        "states: ",
        "é",
        "x",
        "S",
        "G",
    ];
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
        (at(), prop::sample::select(b"xSG.:*#- \n0123459".to_vec())).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
        (at(), 1..40usize).prop_map(|(at, length)| Mutation::Delete(at, length)),
        (at(), 1..40usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        (at(), prop::sample::select(words)).prop_map(|(at, word)| Mutation::Insert(at, word)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_the_readers_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all_ways(&bytes);
    }

    #[test]
    fn no_entries_make_the_readers_panic(
        entries in prop::collection::vec("[TOR]( ?: ?([0-3*]|up|down|go|hot|cold)){1,4}( (0|1|0[.]5|-1|uniform|identity|reset)){0,7}", 0..4),
    ) {
        read_all_ways(format!("{HEAD}{BODY}{}", entries.join("\n")).as_bytes());
    }

    #[test]
    fn no_maps_make_the_readers_panic(map in "([x.SG]{4}\n){1,4}(\n([0-2]{4}\n){1,4})?") {
        read_all_ways(map.as_bytes());
    }

    #[test]
    fn no_small_changes_make_the_readers_panic(
        text in prop::sample::select(vec![TIGER, TWO_DOORS, MACHINE, MAZE]),
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        let mut bytes = text.as_bytes().to_vec();
        mutations.iter().for_each(|mutation| mutation.apply(&mut bytes));
        read_all_ways(&bytes);
    }
}
