//! One cell of a table, and what it can be read as.

use std::fmt;

pub(super) use crate::data::SEPARATOR;
use crate::limits::{self, NAME};

/// What is wrong with a row, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Problem {
    pub problem: String,
    pub remedy: String,
}

impl Problem {
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { problem: problem.into(), remedy: remedy.into() }
    }

    /// The problem of a cell becomes the problem of a column.
    pub fn of(self, column: &str) -> Problem {
        Problem { problem: format!("{column} {}", self.problem), ..self }
    }
}

/// A cell as its file holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    /// The row has no such cell.
    Absent,
    /// Nothing, or null.
    Empty,
    /// Not yet known to be UTF-8.
    Text(&'a [u8]),
    /// The elements of an array, joined. It can be a name, but not a number.
    List(&'a [u8]),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// Something no column may hold, such as "is an object".
    Other(&'static str),
}

const SAFE_DIGITS: usize = 18; // 18 digits cannot overflow

// The usual cases are inlined: passing a cell through memory costs more than reading it.
impl<'a> Cell<'a> {
    /// Appends the name of an action or observation.
    pub fn push_name(self, name: &mut String) -> Result<(), Problem> {
        use fmt::Write;
        match self {
            Cell::Text(b"") | Cell::Absent | Cell::Empty => return Err(nameless()),
            Cell::Text(bytes) | Cell::List(bytes) if bytes.len() > NAME => return Err(too_long(bytes.len())),
            Cell::Text(bytes) | Cell::List(bytes) => name.push_str(std::str::from_utf8(bytes).map_err(|_| not_utf8(bytes))?),
            Cell::Int(n) => write!(name, "{n}").expect("a string takes any text"),
            // + 0.0, so that -0.0 is called 0
            Cell::Float(x) if x.is_finite() && x.fract() == 0.0 => write!(name, "{}", x + 0.0).expect("a string takes any text"),
            Cell::Float(x) => {
                return Err(Problem::new(
                    format!("{x} is not a whole number"),
                    "divide the column into bins (`bins`): symbols are names or integers",
                ));
            }
            Cell::Bool(flag) => name.push_str(if flag { "true" } else { "false" }),
            Cell::Other(what) => return Err(Problem::new(what, "give it as a string or an integer, discretised if necessary")),
        }
        Ok(())
    }

    /// The name of an action or observation, built in `scratch` where the file does not contain it
    /// as text.
    pub fn name<'s>(self, scratch: &'s mut String) -> Result<&'s str, Problem>
    where
        'a: 's,
    {
        match self {
            Cell::Text(bytes) if !bytes.is_empty() && bytes.len() <= NAME => {
                std::str::from_utf8(bytes).map_err(|_| not_utf8(bytes))
            }
            _ => {
                scratch.clear();
                self.push_name(scratch)?;
                Ok(scratch)
            }
        }
    }

    /// A reward; `None` where there is none.
    #[inline(always)]
    pub fn reward(self) -> Result<Option<f64>, Problem> {
        match self {
            Cell::Absent | Cell::Empty => Ok(None),
            Cell::Float(r) if r.abs() <= limits::REWARD => Ok(Some(r)),
            _ => self.unusual_reward(),
        }
    }

    #[inline(never)]
    fn unusual_reward(self) -> Result<Option<f64>, Problem> {
        const REMEDY: &str = "leave the cell empty for a missing reward, or say what stands for one (`missing`)";
        match self.number() {
            Some(r) if r.abs() <= limits::REWARD => Ok(Some(r)),
            Some(r) if r.is_finite() => {
                let problem = format!("{r:e} is beyond ±{:e}, where sums of rewards overflow", limits::REWARD);
                Err(Problem::new(problem, "give rewards in another unit"))
            }
            Some(r) => Err(Problem::new(format!("{r} is not finite"), REMEDY)),
            None => Err(Problem::new(format!("{self} is not a number"), REMEDY)),
        }
    }

    /// A flag; false where the row has none.
    #[inline(always)]
    pub fn flag(self) -> Result<bool, Problem> {
        match self {
            Cell::Absent | Cell::Text(b"false" | b"False" | b"0") => Ok(false),
            Cell::Text(b"true" | b"True" | b"1") => Ok(true),
            Cell::Bool(flag) => Ok(flag),
            _ => self.unusual_flag(),
        }
    }

    #[inline(never)]
    fn unusual_flag(self) -> Result<bool, Problem> {
        let flag = match self {
            Cell::Int(0) | Cell::Float(0.0) => Some(false),
            Cell::Int(1) | Cell::Float(1.0) => Some(true),
            Cell::Text(text) => match text.trim_ascii().to_ascii_lowercase().as_slice() {
                b"false" | b"0" | b"0.0" => Some(false),
                b"true" | b"1" | b"1.0" => Some(true),
                _ => None,
            },
            _ => None,
        };
        flag.ok_or_else(|| Problem::new(format!("{self} is neither true nor false"), "write true, false, 1, 0, yes or no"))
    }

    /// A flag where no name can stand, so that `no` and `F` are no actions.
    #[inline(always)]
    pub fn mark(self) -> Result<bool, Problem> {
        match self.flag() {
            Err(problem) => self.word().ok_or(problem),
            flag => flag,
        }
    }

    #[inline(never)]
    fn word(self) -> Option<bool> {
        let Cell::Text(text) = self else { return None };
        match text.trim_ascii().to_ascii_lowercase().as_slice() {
            b"f" | b"no" | b"n" => Some(false),
            b"t" | b"yes" | b"y" => Some(true),
            _ => None,
        }
    }

    /// The number of a step.
    #[inline(always)]
    pub fn step(self) -> Result<i64, Problem> {
        match self {
            Cell::Int(n) => Ok(n),
            Cell::Text(text @ [_, ..]) if text.len() <= SAFE_DIGITS && text.iter().all(u8::is_ascii_digit) => {
                Ok(text.iter().fold(0, |n, digit| 10 * n + i64::from(digit - b'0')))
            }
            _ => self.unusual_step(),
        }
    }

    #[inline(never)]
    fn unusual_step(self) -> Result<i64, Problem> {
        let step = match self {
            // the float is whole and small enough to be exact, so the cast is too
            Cell::Float(x) if x.fract() == 0.0 && x.abs() < 2f64.powi(53) => Some(x as i64),
            Cell::Text(text) => std::str::from_utf8(text.trim_ascii()).ok().and_then(|text| text.parse().ok()),
            _ => None,
        };
        step.ok_or_else(|| {
            Problem::new(format!("{self} is not an integer"), "number the steps of an episode 0, 1, 2, … or leave the column out")
        })
    }

    /// A measurement, which is to be divided into cells.
    pub fn measurement(self) -> Result<f64, Problem> {
        match self.number() {
            Some(x) if x.is_finite() => Ok(x),
            _ => Err(Problem::new(
                format!("{self} is not a number, though the column is measured"),
                "correct it, say that it stands for a missing value (`missing`), or make bins of names (`bins` with category)",
            )),
        }
    }

    /// The probability of an action.
    pub fn probability(self) -> Result<f64, Problem> {
        match self.number() {
            Some(p) if (limits::PROBABILITY..=1.0).contains(&p) => Ok(p),
            Some(p) if p > 0.0 && p <= 1.0 => Err(too_improbable(p)),
            _ => Err(Problem::new(
                format!("{self} is not in (0, 1]"),
                "give the probability with which the action was chosen, or leave the column out",
            )),
        }
    }

    /// The probability of an action, given as its natural logarithm.
    pub fn log_probability(self) -> Result<f64, Problem> {
        match self.number() {
            Some(l) if l <= 0.0 && l.exp() >= limits::PROBABILITY => Ok(l.exp()),
            Some(l) if l <= 0.0 && l.is_finite() => Err(too_improbable(l.exp())),
            _ => Err(Problem::new(
                format!("{self} is not the logarithm of a probability in (0, 1]"),
                "give the natural logarithm of the probability with which the action was chosen, or leave the column out",
            )),
        }
    }

    /// A number of any kind.
    pub fn number(self) -> Option<f64> {
        match self {
            Cell::Int(n) => Some(n as f64),
            Cell::Float(x) => Some(x),
            Cell::Text(text) => std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok(),
            _ => None,
        }
    }
}

/// The value of a flag as logs write it: `1`, `true`, `0`, `False`; `None` for another text.
pub fn flag(text: &str) -> Option<bool> {
    Cell::Text(text.as_bytes()).flag().ok()
}

/// The value as a message shows it, shortened.
impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 40;
        match self {
            Cell::Absent | Cell::Empty => f.write_str("(empty)"),
            Cell::Text(b"") => f.write_str("(empty)"),
            Cell::List(_) => f.write_str("(an array)"),
            Cell::Text(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                match text.char_indices().nth(SHOWN) {
                    Some((end, _)) => write!(f, "{:?}…", &text[..end]),
                    None => write!(f, "{text:?}"),
                }
            }
            Cell::Int(n) => write!(f, "{n}"),
            Cell::Float(x) => write!(f, "{x}"),
            Cell::Bool(flag) => write!(f, "{flag}"),
            Cell::Other(what) => write!(f, "(which {what})"),
        }
    }
}

fn too_long(bytes: usize) -> Problem {
    let problem = format!("is a name of {bytes} bytes, and names can have {NAME}");
    Problem::new(problem, "give it a shorter name, or divide it into columns")
}

fn too_improbable(p: f64) -> Problem {
    let problem = format!("{p:e} is below {:e}, where the weights of importance sampling overflow", limits::PROBABILITY);
    Problem::new(problem, "check it: an action that was taken cannot have been so improbable; or leave the column out")
}

fn nameless() -> Problem {
    Problem::new("is empty", "give it a name, or drop the row")
}

fn not_utf8(bytes: &[u8]) -> Problem {
    Problem::new(format!("{} is not valid UTF-8", Cell::Text(bytes)), "save the file with UTF-8 encoding")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(cell: Cell<'_>) -> Result<String, Problem> {
        cell.name(&mut String::new()).map(String::from)
    }

    #[test]
    fn a_name_is_a_string_or_a_whole_number() {
        assert_eq!(name(Cell::Text(b" wall")).unwrap(), " wall");
        assert_eq!(name(Cell::Int(-3)).unwrap(), "-3");
        assert_eq!(name(Cell::Float(3.0)).unwrap(), "3");
        assert_eq!(name(Cell::Float(-0.0)).unwrap(), "0");
        assert_eq!(name(Cell::Bool(true)).unwrap(), "true");
        assert_eq!(name(Cell::List(b"0|1")).unwrap(), "0|1");
        for bad in [Cell::Float(0.5), Cell::Float(f64::NAN), Cell::Empty, Cell::Absent, Cell::Text(b""), Cell::Text(b"\xff")] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_reward_is_a_finite_number_or_missing() {
        assert_eq!(Cell::Text(b"-1e3").reward(), Ok(Some(-1000.0)));
        assert_eq!(Cell::Empty.reward(), Ok(None));
        assert_eq!(Cell::Absent.reward(), Ok(None));
        for bad in [
            Cell::Text(b"n/a"),
            Cell::Text(b"nan"),
            Cell::Text(b"inf"),
            Cell::Float(f64::NAN),
            Cell::Bool(true),
            Cell::List(b"1"),
        ] {
            assert!(bad.reward().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_flag_is_written_in_many_ways() {
        for yes in [&b"true"[..], b"TRUE", b"True", b"1", b"1.0", b" true "] {
            assert_eq!(Cell::Text(yes).flag(), Ok(true));
        }
        for no in [&b"false"[..], b"FALSE", b"False", b"0", b"0.0"] {
            assert_eq!(Cell::Text(no).flag(), Ok(false));
        }
        assert_eq!(["T", "yes", "Y", "1"].map(|yes| Cell::Text(yes.as_bytes()).mark()), [Ok(true), Ok(true), Ok(true), Ok(true)]);
        assert_eq!(
            ["F", "No", "n", "0"].map(|no| Cell::Text(no.as_bytes()).mark()),
            [Ok(false), Ok(false), Ok(false), Ok(false)]
        );
        assert!(Cell::Text(b"maybe").mark().is_err());
        for bad in [Cell::Text(b"yes"), Cell::Text(b"N"), Cell::Text(b""), Cell::Empty, Cell::Int(2), Cell::Float(0.5)] {
            assert!(bad.flag().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_step_is_an_integer() {
        for (text, step) in
            [("0", 0), ("007", 7), ("-3", -3), ("+4", 4), (" 5 ", 5), ("123456789012345678", 123_456_789_012_345_678)]
        {
            assert_eq!(Cell::Text(text.as_bytes()).step(), Ok(step));
        }
        assert_eq!(Cell::Text(b"9223372036854775807").step(), Ok(i64::MAX));
        assert_eq!(Cell::Float(3.0).step(), Ok(3));
        for bad in [Cell::Text(b""), Cell::Text(b"9223372036854775808"), Cell::Text(b"1.0"), Cell::Float(0.5), Cell::Empty] {
            assert!(bad.step().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_probability_is_above_zero_and_at_most_one() {
        assert_eq!(Cell::Text(b"1").probability(), Ok(1.0));
        assert_eq!(Cell::Float(0.0).log_probability(), Ok(1.0));
        assert!((Cell::Float(-1.0).log_probability().unwrap() - (-1f64).exp()).abs() < f64::EPSILON);
        for bad in [Cell::Int(0), Cell::Float(1.01), Cell::Float(f64::NAN), Cell::Empty, Cell::Absent] {
            assert!(bad.probability().is_err(), "{bad:?}");
        }
        for bad in [Cell::Float(0.1), Cell::Float(-800.0), Cell::Float(f64::NEG_INFINITY), Cell::Empty] {
            assert!(bad.log_probability().is_err(), "{bad:?}");
        }
    }
}
