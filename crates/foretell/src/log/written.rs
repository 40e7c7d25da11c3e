//! Symbols as users write them: by their names, or by the values that a table holds.

use super::dialect::plain_number;
use super::elapsed;
use super::schema::{ELAPSED, Schema};
use super::symbols::{Cells, UNKNOWN_PART};
use crate::data::{Action, Alphabet, SEPARATOR};

impl Schema {
    /// The name of an observation that is given by the values of its columns: `speed=12.5|flag=1` in
    /// any order, or `12.5|1` in the order of the names. Measurements become cells, and columns that
    /// are left out or missing become `?`. Columns that are divided together have their numbers with
    /// `/` between them. What is a name already, or cannot be read, is unchanged.
    pub fn observation_name(&self, alphabet: &Alphabet, text: &str) -> String {
        let names = || alphabet.observations().iter().map(|symbol| symbol.name.as_str());
        let is_known = |name: &str| alphabet.observation(name).or(alphabet.terminal_observation(name)).is_some();
        match [text, plain(text)].into_iter().find(|name| is_known(name)) {
            Some(known) => known.to_string(),
            None => self.name_of(text, names()).unwrap_or_else(|| text.to_string()),
        }
    }

    /// The action that is given by its name, or by the values of its columns as in
    /// [`observation_name`](Self::observation_name).
    pub fn action_of(&self, alphabet: &Alphabet, text: &str) -> Option<Action> {
        let names = || alphabet.actions().iter().map(String::as_str);
        let known = alphabet.action(text).or_else(|| alphabet.action(plain(text)));
        known.or_else(|| alphabet.action(&self.name_of(text, names())?))
    }

    /// The name with the labels of those that are known; `None` if these have none, or the text does
    /// not fit them.
    fn name_of<'a>(&self, text: &str, mut known: impl Iterator<Item = &'a str>) -> Option<String> {
        let labels = known.find_map(labels)?;
        let parts: Vec<&str> = text.split(SEPARATOR).map(str::trim).collect();
        let labelled = |part: &&str| part.split_once('=').is_some_and(|(label, _)| labels.contains(&label));
        let value = |i: usize| match parts.iter().any(labelled) {
            true => Some(parts.iter().find_map(|part| part.split_once('=').filter(|(label, _)| *label == labels[i]))?.1),
            false => parts.get(i).copied(),
        };
        let fits = if parts.iter().any(labelled) { parts.iter().all(labelled) } else { parts.len() == labels.len() };
        let part = |(i, label): (usize, &&str)| {
            let value = value(i).map_or(Some(UNKNOWN_PART.to_string()), |value| self.cell_of(label, value))?;
            Some(format!("{label}={value}"))
        };
        let names: Option<Vec<String>> = labels.iter().enumerate().map(part).collect();
        names.filter(|_| fits).map(|names| names.join(&SEPARATOR.to_string()))
    }

    /// The cell of a value of a column.
    fn cell_of(&self, column: &str, value: &str) -> Option<String> {
        if self.is_missing(value.as_bytes()) || value == UNKNOWN_PART {
            return Some(UNKNOWN_PART.to_string());
        }
        let cells = match self.encoders.get(column) {
            Some(encoder) => Some(Cells::new(encoder.clone())),
            None if column == ELAPSED => elapsed::cells(self),
            None => None,
        };
        let Some(Cells { encoder, labels }) = cells else { return Some(plain(value).to_string()) };
        if labels.iter().any(|label| label == value) || column == ELAPSED && value == elapsed::FIRST {
            return Some(value.to_string());
        }
        let number = |text: &str| match column == ELAPSED {
            true => elapsed::duration(self, text),
            false => text.trim().parse::<f64>().ok(),
        };
        let cell = match encoder.is_numeric() {
            true => {
                let numbers = value.split('/').map(number).collect::<Option<Vec<f64>>>()?;
                (numbers.len() == column.split('+').count()).then(|| encoder.cell_of_numbers(&numbers)).flatten()
            }
            false => encoder.cell_of_name(value),
        };
        cell.map(|cell| labels[cell].clone())
    }
}

/// A number as logs have it: `1.0` is `1`.
fn plain(text: &str) -> &str {
    &text[..plain_number(text.as_bytes()).len()]
}

/// The labels of a name such as `speed=1..2|flag=1`; `None` if a part has none.
fn labels(name: &str) -> Option<Vec<&str>> {
    name.split(SEPARATOR).map(|part| part.split_once('=').map(|(label, _)| label)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Encoder;

    fn cuts(cuts: &[f64]) -> Encoder {
        Encoder::Cuts { cuts: cuts.to_vec(), low: 0.0, high: 9.0 }
    }

    fn observations(names: &[&str]) -> Alphabet {
        let mut alphabet = Alphabet::default();
        names.iter().for_each(|name| {
            alphabet.intern_observation(name);
        });
        alphabet
    }

    #[test]
    fn measurements_have_the_names_of_their_cells() {
        let schema = Schema {
            encoders: [
                ("speed".to_string(), cuts(&[1.0, 2.5])),
                ("x+y".to_string(), Encoder::Centres { scales: vec![1.0, 1.0], centres: vec![vec![0.0, 0.0], vec![5.0, 5.0]] }),
            ]
            .into(),
            ..Schema::default()
        };
        let one = observations(&["end", "speed=..1"]);
        for (text, name) in [("1.5", "speed=1..2.5"), ("speed=0", "speed=..1"), ("2.5..", "speed=2.5.."), ("NA", "speed=?")] {
            assert_eq!(schema.observation_name(&one, text), name);
        }
        let two = observations(&["flag=x|speed=..1"]);
        for text in ["x|7", "flag=x|speed=7", "speed=7|flag=x", "x | 7.0"] {
            assert_eq!(schema.observation_name(&two, text), "flag=x|speed=2.5..");
        }
        assert_eq!(schema.observation_name(&two, "speed=7"), "flag=?|speed=2.5..");
        assert_eq!(schema.observation_name(&observations(&["x+y=a"]), "4/6"), "x+y=~5/5");
        for text in ["fast", "7", "x|fast", "x|7|1", "speed=7|colour=x", "nan/2"] {
            assert_eq!(schema.observation_name(&two, text), text, "what cannot be read is unchanged");
        }
        assert_eq!(Schema::default().observation_name(&observations(&["up"]), "1.5"), "1.5");
    }

    #[test]
    fn elapsed_times_are_durations_in_the_unit_of_their_column() {
        let schema =
            Schema { elapsed: Some(vec!["years".into()]), elapsed_bins: vec!["3m".into(), "1y".into()], ..Schema::default() };
        let mut alphabet = Alphabet::default();
        let known = ["elapsed=first", "elapsed=..3m", "elapsed=3m..1y", "elapsed=1y.."].map(|name| alphabet.intern_action(name));
        for (text, i) in [("elapsed=first", 0), ("first", 0), ("0.1", 1), ("elapsed=0.5", 2), ("100d", 2), ("2y", 3), ("1y..", 3)]
        {
            assert_eq!(schema.action_of(&alphabet, text), Some(known[i]), "{text}");
        }
        assert_eq!(schema.action_of(&alphabet, "soon"), None);
    }
}
