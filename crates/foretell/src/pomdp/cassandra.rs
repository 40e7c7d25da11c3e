//! Cassandra's `.POMDP` format: tokens, then the head (discount, names, start), then the T, O and R
//! entries; and back.

mod entries;
mod original;
mod preamble;
mod tokens;
mod write;

use super::{Pomdp, tables};
use crate::error::{Error, Result};
use entries::Entries;
use preamble::Preamble;
use tokens::Tokens;

pub(super) use write::write;

/// [`Pomdp::parse`]
pub(super) fn parse(text: &str, file: &str) -> Result<Pomdp> {
    let mut tokens = Tokens::new(text, file);
    let head = Preamble::read(&mut tokens)?;
    let mut entries = Entries::new(head, &tokens)?;
    while let Some(heading) = tokens.peek_heading() {
        tokens.skip(heading);
        entries.read(heading, &mut tokens)?;
    }
    if tokens.peek().is_some() {
        let problem = format!("expected an entry, found {}", tokens.found());
        return Err(tokens.error(problem, "entries begin with T:, O: or R:"));
    }
    let tables = original::restored(text, entries.take_tables());
    tables::build(tables).map_err(|error| Error::input(file, entries.line(error.part), error.problem, error.remedy))
}
