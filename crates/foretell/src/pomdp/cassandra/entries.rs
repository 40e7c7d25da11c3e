//! The body of a `.POMDP` text: T, O and R entries, of which later ones override earlier ones.

use std::ops::Range;

use super::preamble::{Names, Preamble, uniform};
use super::tokens::{Heading, Token, Tokens};
use crate::error::Result;
use crate::pomdp::tables::{SUM_TOLERANCE, TablePart};
use crate::pomdp::{PomdpTables, RewardRule, Row};

/// The largest numbers of (action, state) pairs and of nonzero probabilities: 10⁷ take a quarter of
/// a gigabyte.
const MAX_ROWS: usize = 2_000_000;
const MAX_PROBABILITIES: usize = 10_000_000;

/// The tables as far as they have been read.
pub(super) struct Entries {
    head: Preamble,
    transitions: Table,
    emissions: Table,
    rewards: Vec<RewardRule>,
    /// Nonzero probabilities in both tables.
    size: usize,
}

/// T or O.
struct Table {
    /// `T` or `O`.
    name: &'static str,
    /// Row a·|S| + s.
    rows: Vec<Row>,
    /// The last line that set each row; 0 if none did.
    lines: Vec<u64>,
}

/// One name or, for `*`, all of them.
type Which = Option<usize>;

/// What an entry sets in a row: all of it, or one column.
enum Content {
    Row(Row),
    Columns(Range<usize>, f64),
}

impl Entries {
    pub fn new(head: Preamble, tokens: &Tokens<'_>) -> Result<Entries> {
        let (states, actions) = (head.states.names.len(), head.actions.names.len());
        if states * actions > MAX_ROWS {
            let problem = format!("{states} states times {actions} actions are more than {MAX_ROWS}");
            return Err(tokens.error(problem, "check their numbers; larger models are not supported"));
        }
        let table = |name| Table { name, rows: vec![Row::new(); states * actions], lines: vec![0; states * actions] };
        Ok(Entries { head, transitions: table("T"), emissions: table("O"), rewards: Vec::new(), size: 0 })
    }

    /// Reads the entry that follows its heading.
    pub fn read(&mut self, heading: Heading<'_>, tokens: &mut Tokens<'_>) -> Result<()> {
        match heading.word {
            "T" | "O" => self.read_probabilities(heading, tokens),
            "R" => self.read_reward(tokens),
            word => {
                let problem = format!("heading {word:?} comes after the first T, O or R entry");
                Err(tokens.error_at(heading.line, problem, "only T, O and R may follow; move it up if it belongs to the head"))
            }
        }
    }

    /// The line that gave the part of the tables in question.
    pub fn line(&self, part: TablePart) -> Option<u64> {
        let n = self.head.states.names.len();
        let line = match part {
            TablePart::Whole => return None,
            TablePart::Start => return self.head.start_line,
            TablePart::Transition { action, state } => self.transitions.lines[action * n + state],
            TablePart::Emission { action, state } => self.emissions.lines[action * n + state],
        };
        (line > 0).then_some(line)
    }

    /// Takes the tables; only what [`line`](Entries::line) needs remains.
    pub fn take_tables(&mut self) -> PomdpTables {
        let n = self.head.states.names.len();
        let by_action = |rows: Vec<Row>| {
            let mut rows = rows.into_iter();
            (0..self.head.actions.names.len()).map(|_| rows.by_ref().take(n).collect()).collect()
        };
        let sign = self.head.sign;
        PomdpTables {
            discount: self.head.discount,
            transitions: by_action(std::mem::take(&mut self.transitions.rows)),
            emissions: by_action(std::mem::take(&mut self.emissions.rows)),
            rewards: self.rewards.drain(..).map(|rule| RewardRule { reward: sign * rule.reward, ..rule }).collect(),
            states: self.head.states.names.clone(),
            actions: self.head.actions.names.clone(),
            observations: self.head.observations.names.clone(),
            terminal: Vec::new(),
            start: self.head.start.clone(),
        }
    }

    /// `T: a : s : s' p`, `T: a : s` and a row, `T: a` and a matrix; the same for `O`.
    fn read_probabilities(&mut self, heading: Heading<'_>, tokens: &mut Tokens<'_>) -> Result<()> {
        let a = which(&self.head.actions, tokens)?;
        if !tokens.take(Token::Colon) {
            return self.read_matrix(heading, a, tokens);
        }
        let s = which(&self.head.states, tokens)?;
        let content = if tokens.take(Token::Colon) {
            let columns = self.columns(heading);
            let column = which(columns, tokens)?;
            let p = probabilities(1, 1, "a probability", tokens)?[0].first().map_or(0.0, |&(_, p)| p);
            Content::Columns(range(column, columns.names.len()), p)
        } else {
            Content::Row(self.read_row(heading, tokens)?)
        };
        self.set(heading, a, s, &content, tokens)
    }

    /// A matrix of numbers, `uniform` or, for T, `identity`.
    fn read_matrix(&mut self, heading: Heading<'_>, a: Which, tokens: &mut Tokens<'_>) -> Result<()> {
        let (n, width) = (self.head.states.names.len(), self.columns(heading).names.len());
        if tokens.take(Token::Word("uniform")) {
            return self.set(heading, a, None, &Content::Row(uniform(width)), tokens);
        }
        let rows = if heading.word == "T" && tokens.take(Token::Word("identity")) {
            (0..n).map(|s| vec![(s, 1.0)]).collect()
        } else {
            let words = if heading.word == "T" { ", identity or uniform" } else { " or uniform" };
            probabilities(n, width, &format!("{n} × {width} probabilities{words}"), tokens)?
        };
        rows.into_iter().enumerate().try_for_each(|(s, row)| self.set(heading, a, Some(s), &Content::Row(row), tokens))
    }

    /// A row of numbers, `uniform` or, for T, `reset`.
    fn read_row(&self, heading: Heading<'_>, tokens: &mut Tokens<'_>) -> Result<Row> {
        let width = self.columns(heading).names.len();
        if tokens.take(Token::Word("uniform")) {
            return Ok(uniform(width));
        }
        if heading.word == "T" && tokens.take(Token::Word("reset")) {
            return Ok(self.head.start.clone());
        }
        let words = if heading.word == "T" { ", uniform or reset" } else { " or uniform" };
        Ok(probabilities(1, width, &format!("{width} probabilities{words}"), tokens)?.remove(0))
    }

    /// The names of the columns of T or O.
    fn columns(&self, heading: Heading<'_>) -> &Names {
        if heading.word == "T" { &self.head.states } else { &self.head.observations }
    }

    /// Writes the content into all rows that (a, s) names.
    fn set(&mut self, heading: Heading<'_>, a: Which, s: Which, content: &Content, tokens: &Tokens<'_>) -> Result<()> {
        let n = self.head.states.names.len();
        let actions = range(a, self.head.actions.names.len());
        let table = if heading.word == "T" { &mut self.transitions } else { &mut self.emissions };
        for a in actions {
            for i in range(s, n).map(|s| a * n + s) {
                let row = &mut table.rows[i];
                self.size -= row.len();
                match content {
                    Content::Row(new) => row.clone_from(new),
                    Content::Columns(columns, p) => columns.clone().for_each(|column| set_column(row, column, *p)),
                }
                self.size += row.len();
                table.lines[i] = heading.line;
                if self.size > MAX_PROBABILITIES {
                    let problem = format!("{} makes more than {MAX_PROBABILITIES} probabilities", table.name);
                    return Err(tokens.error_at(heading.line, problem, "list only those that are not 0"));
                }
            }
        }
        Ok(())
    }

    /// `R: a : s : s' : o r`, `R: a : s : s'` and a row over o, `R: a : s` and a matrix s' × o.
    fn read_reward(&mut self, tokens: &mut Tokens<'_>) -> Result<()> {
        let Preamble { states, actions, observations, .. } = &self.head;
        let (n, width) = (states.names.len(), observations.names.len());
        let action = which(actions, tokens)?;
        if !tokens.take(Token::Colon) {
            return Err(tokens.error("R names an action only", "write R: action : state, then : state : observation or a matrix"));
        }
        let from = which(states, tokens)?;
        let rule = RewardRule { action, from, ..RewardRule::default() };
        if !tokens.take(Token::Colon) {
            let forms = format!("{n} × {width} rewards");
            for to in 0..n {
                for o in 0..width {
                    let reward = value(&forms, to * width + o, tokens)?;
                    self.rewards.push(RewardRule { to: Some(to), observation: Some(o), reward, ..rule });
                }
            }
            return end_of_numbers(&forms, tokens);
        }
        let rule = RewardRule { to: which(states, tokens)?, ..rule };
        if !tokens.take(Token::Colon) {
            let forms = format!("{width} rewards");
            for o in 0..width {
                let reward = value(&forms, o, tokens)?;
                self.rewards.push(RewardRule { observation: Some(o), reward, ..rule });
            }
            return end_of_numbers(&forms, tokens);
        }
        let observation = which(observations, tokens)?;
        let reward = value("a reward", 0, tokens)?;
        self.rewards.push(RewardRule { observation, reward, ..rule });
        end_of_numbers("a reward", tokens)
    }
}

/// Takes a name, an index or a star.
fn which(names: &Names, tokens: &mut Tokens<'_>) -> Result<Which> {
    let line = tokens.line();
    match tokens.peek() {
        Some(Token::Star) => {
            tokens.next();
            Ok(None)
        }
        Some(Token::Word(word)) => {
            tokens.next();
            names.find(word).map(Some).ok_or_else(|| names.unknown(word, line, tokens))
        }
        _ => {
            let problem = format!("expected {} {}, found {}", article(names.kind), names.kind, tokens.found());
            Err(tokens.error(problem, "give a name, an index or *"))
        }
    }
}

/// Takes the numbers of a matrix of probabilities, by rows.
fn probabilities(rows: usize, width: usize, forms: &str, tokens: &mut Tokens<'_>) -> Result<Vec<Row>> {
    let mut matrix = Vec::new();
    for i in 0..rows {
        let mut row = Row::new();
        for column in 0..width {
            let line = tokens.line();
            let p = value(forms, i * width + column, tokens)?;
            if !(0.0..=1.0 + SUM_TOLERANCE).contains(&p) {
                return Err(tokens.error_at(line, format!("probability {p} is not between 0 and 1"), "check the number"));
            }
            if p > 0.0 {
                row.push((column, p));
            }
        }
        matrix.push(row);
    }
    end_of_numbers(forms, tokens)?;
    Ok(matrix)
}

/// Takes the next number of `forms`, of which `taken` have been taken.
fn value(forms: &str, taken: usize, tokens: &mut Tokens<'_>) -> Result<f64> {
    let problem = match (taken, tokens.number()) {
        (_, Some(number)) => return Ok(number),
        (0, None) => format!("expected {forms}, found {}", tokens.found()),
        (_, None) => format!("{} follows {taken} number{}", tokens.found(), if taken == 1 { "" } else { "s" }),
    };
    let remedy = if forms.starts_with("a ") { format!("give {forms} after the last name") } else { format!("give {forms}") };
    Err(tokens.error(problem, remedy))
}

/// Checks that no number is left over.
fn end_of_numbers(forms: &str, tokens: &mut Tokens<'_>) -> Result<()> {
    let (line, found) = (tokens.line(), tokens.found());
    match tokens.number() {
        None => Ok(()),
        Some(_) => Err(tokens.error_at(line, format!("number {found} is one too many"), format!("give {forms}, no more"))),
    }
}

/// Sets one entry of a row that is sorted by column.
fn set_column(row: &mut Row, column: usize, p: f64) {
    let part = row.binary_search_by_key(&column, |&(c, _)| c);
    match (part, p > 0.0) {
        (Ok(i), true) => row[i].1 = p,
        (Ok(i), false) => drop(row.remove(i)),
        (Err(i), true) => row.insert(i, (column, p)),
        (Err(_), false) => {}
    }
}

fn range(which: Which, n: usize) -> Range<usize> {
    which.map_or(0..n, |i| i..i + 1)
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'o']) { "an" } else { "a" }
}
