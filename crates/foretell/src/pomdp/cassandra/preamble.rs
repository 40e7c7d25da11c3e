//! The head of a `.POMDP` text: discount, values, names, start.

use rustc_hash::{FxHashMap, FxHashSet};

use super::tokens::{Heading, Token, Tokens, number};
use crate::error::{Error, Result};
use crate::pomdp::{Row, sparse};

/// The largest number of states, actions or observations, so that a typing error cannot exhaust
/// memory.
const MAX_NAMES: usize = 100_000;

const HEADINGS: &str = "discount, values, states, actions, observations, start, T, O, R";

/// Everything that comes before the first T, O or R.
pub(super) struct Preamble {
    pub discount: Option<f64>,
    /// −1 where values are costs.
    pub sign: f64,
    pub states: Names,
    pub actions: Names,
    pub observations: Names,
    pub start: Row,
    pub start_line: Option<u64>,
}

/// The declared states, actions or observations.
pub(super) struct Names {
    /// `state`, `action` or `observation`.
    pub kind: &'static str,
    pub names: Vec<String>,
    ids: FxHashMap<String, usize>,
}

/// The declarations read so far.
#[derive(Default)]
struct Declarations<'a> {
    discount: Option<f64>,
    sign: Option<f64>,
    states: Option<Names>,
    actions: Option<Names>,
    observations: Option<Names>,
    start: Option<(Heading<'a>, Vec<&'a str>)>,
}

impl Preamble {
    /// Reads up to the first T, O or R.
    pub fn read(tokens: &mut Tokens<'_>) -> Result<Preamble> {
        let mut declarations = Declarations::default();
        let mut seen = FxHashSet::default();
        while tokens.peek().is_some() {
            let Some(heading) = tokens.peek_heading() else {
                let problem = format!("expected a heading, found {}", tokens.found());
                return Err(tokens.error(problem, format!("headings are {HEADINGS}, each with a colon")));
            };
            if matches!(heading.word, "T" | "O" | "R") {
                break;
            }
            tokens.skip(heading);
            let subject = heading.word.split(' ').next().unwrap_or_default();
            if !seen.insert(subject) {
                return Err(tokens.error_at(heading.line, format!("{subject} is given twice"), "keep one of the two"));
            }
            declarations.declare(heading, tokens)?;
        }
        declarations.finish(tokens)
    }
}

impl<'a> Declarations<'a> {
    fn declare(&mut self, heading: Heading<'a>, tokens: &mut Tokens<'a>) -> Result<()> {
        match heading.word {
            "discount" => {
                let remedy = "give a number from 0 to 1, such as discount: 0.95";
                let error = tokens.error(format!("discount {} is not a number from 0 to 1", tokens.found()), remedy);
                self.discount = Some(tokens.number().filter(|x| (0.0..=1.0).contains(x)).ok_or(error)?);
            }
            "values" => {
                let error =
                    tokens.error(format!("values {} are unknown", tokens.found()), "write values: reward or values: cost");
                self.sign = match tokens.next() {
                    Some(Token::Word("reward")) => Some(1.0),
                    Some(Token::Word("cost")) => Some(-1.0),
                    _ => return Err(error),
                };
            }
            "states" => self.states = Some(Names::read("state", heading, tokens)?),
            "actions" => self.actions = Some(Names::read("action", heading, tokens)?),
            "observations" => self.observations = Some(Names::read("observation", heading, tokens)?),
            "start" | "start include" | "start exclude" => self.start = Some((heading, tokens.words())),
            unknown => {
                let problem = format!("heading {unknown:?} is unknown");
                return Err(tokens.error_at(heading.line, problem, format!("headings are {HEADINGS}")));
            }
        }
        Ok(())
    }

    fn finish(self, tokens: &Tokens<'_>) -> Result<Preamble> {
        let missing = |what: &str, remedy: &str| tokens.error(format!("{what} are not declared before this line"), remedy);
        let states = self.states.ok_or_else(|| missing("states", "add states: with their number or names"))?;
        let actions = self.actions.ok_or_else(|| missing("actions", "add actions: with their number or names"))?;
        let observations = self.observations.ok_or_else(|| {
            missing("observations", "add observations: with their number or names; a file without them is an MDP, not a POMDP")
        })?;
        let start = match &self.start {
            None => uniform(states.names.len()),
            Some((heading, words)) => start_row(*heading, words, &states, tokens)?,
        };
        Ok(Preamble {
            discount: self.discount,
            sign: self.sign.unwrap_or(1.0),
            states,
            actions,
            observations,
            start,
            start_line: self.start.map(|(heading, _)| heading.line),
        })
    }
}

impl Names {
    /// Reads a count, for the names 0, 1, …, or a list of names.
    fn read(kind: &'static str, heading: Heading<'_>, tokens: &mut Tokens<'_>) -> Result<Names> {
        let words = tokens.words();
        let error = |problem, remedy: &str| Err(tokens.error_at(heading.line, problem, remedy));
        let names: Vec<String> = match words[..] {
            [] => return error(format!("no {kind} is declared"), "give their number, or their names separated by spaces"),
            [word] if number(word).is_some() => match word.parse() {
                Ok(n @ 1..=MAX_NAMES) => (0..n).map(|i| i.to_string()).collect(),
                _ => return error(format!("number of {kind}s {word}"), &format!("give a whole number from 1 to {MAX_NAMES}")),
            },
            _ => words.iter().map(|word| word.to_string()).collect(),
        };
        if names.len() > MAX_NAMES {
            return error(format!("{} {kind}s are declared", names.len()), &format!("this reader takes at most {MAX_NAMES}"));
        }
        let mut ids = FxHashMap::default();
        for (i, name) in names.iter().enumerate() {
            if number(name).is_some() && *name != i.to_string() {
                return error(format!("{kind} {name:?} has a number for a name"), "begin names with a letter");
            }
            if ids.insert(name.clone(), i).is_some() {
                return error(format!("{kind} {name:?} is declared twice"), "give every one its own name");
            }
        }
        Ok(Names { kind, names, ids })
    }

    /// The index for a name or a number.
    pub fn find(&self, word: &str) -> Option<usize> {
        self.ids.get(word).copied().or_else(|| word.parse().ok().filter(|&i| i < self.names.len()))
    }

    /// The error that the word is not declared.
    pub fn unknown(&self, word: &str, line: u64, tokens: &Tokens<'_>) -> Error {
        let n = self.names.len();
        let known = match n {
            ..=8 => self.names.join(", "),
            _ => format!("{}, {}, … {} ({n} in all)", self.names[0], self.names[1], self.names[n - 1]),
        };
        let remedy = format!("use a declared name or an index from 0 to {}; declared: {known}", n - 1);
        tokens.error_at(line, format!("{} {word:?} is not declared", self.kind), remedy)
    }
}

/// Every column with the same probability.
pub(super) fn uniform(n: usize) -> Row {
    (0..n).map(|i| (i, 1.0 / n as f64)).collect()
}

fn start_row(heading: Heading<'_>, words: &[&str], states: &Names, tokens: &Tokens<'_>) -> Result<Row> {
    let find = |word: &&str| states.find(word).ok_or_else(|| states.unknown(word, heading.line, tokens));
    if heading.word != "start" {
        let mut listed = vec![false; states.names.len()];
        for word in words {
            listed[find(word)?] = true;
        }
        let kept: Vec<usize> = (0..listed.len()).filter(|&s| listed[s] == (heading.word == "start include")).collect();
        if kept.is_empty() {
            let problem = format!("{} leaves no state to start in", heading.word);
            return Err(tokens.error_at(heading.line, problem, "list the states after the colon"));
        }
        return Ok(kept.iter().map(|&s| (s, 1.0 / kept.len() as f64)).collect());
    }
    match *words {
        ["uniform"] => Ok(uniform(states.names.len())),
        // One state with probability 1, not the state 1.
        [word] if states.names.len() == 1 && number(word) == Some(1.0) => Ok(vec![(0, 1.0)]),
        [word] => Ok(vec![(find(&word)?, 1.0)]),
        _ => start_vector(heading, words, states, tokens),
    }
}

fn start_vector(heading: Heading<'_>, words: &[&str], states: &Names, tokens: &Tokens<'_>) -> Result<Row> {
    let remedy = "give one probability per state, one state, uniform, or use start include:";
    let error = |problem| tokens.error_at(heading.line, problem, remedy);
    if words.len() != states.names.len() {
        return Err(error(format!("start has {} values for {} states", words.len(), states.names.len())));
    }
    let probability = |word: &&str| number(word).ok_or_else(|| error(format!("start probability {word:?} is not a number")));
    let dense: Vec<f64> = words.iter().map(probability).collect::<Result<_>>()?;
    Ok(sparse(&dense))
}
