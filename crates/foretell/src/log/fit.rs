//! Which columns are measured, and cells for them.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashSet, FxHasher};

use super::cell::Cell;
use super::columns::Columns;
use super::names::words;
use super::schema::{ELAPSED, Schema};
use super::symbols::is_missing;
use super::table::{Advance, Table};
use crate::encode::{Bins, MOST_ROWS, Series, WholeNumbers, fit_automatically, fit_names, fit_numbers, whole_numbers};
use crate::error::{Error, Result};

/// Rows by which it is decided whether a column is measured.
const SNIFFED: usize = 5000;
/// Fewer different whole numbers are names, such as counts and ratings.
const LEAST_WHOLE_NUMBERS: usize = 30;
/// With fewer rows for each value, most values are too rare to be learned about.
const FEW_ROWS: usize = 5;
/// Of names that are evenly used, half lie in half of their range.
const CONCENTRATED: f64 = 0.8;
/// Words in names of columns whose numbers are names.
const IDENTIFIERS: [&str; 9] = ["id", "ids", "code", "item", "product", "key", "zip", "page", "cluster"];
/// A column with fewer different numbers is a category, whatever they are.
const LEAST_NUMBERS: usize = 12;
/// Numbers kept of a column: quantiles of more are hardly different.
const MOST_KEPT: usize = 1 << 18;
/// Cells of elapsed times, where none are given.
const ELAPSED_CELLS: usize = 3;

/// The schema with cells for all its bins, and for measured columns that it does not mention.
/// `open` opens the i-th of the tables of the logs, if there are so many, and tells its name.
pub(super) fn fit(schema: &Arc<Schema>, open: impl Fn(usize) -> Option<Result<(String, Box<dyn Table>)>>) -> Result<Arc<Schema>> {
    let mut asked = asked(schema, open(0).transpose()?)?;
    let fits_elapsed = schema.elapsed.is_some() && schema.elapsed_bins.is_empty() && !schema.encoders.contains_key(ELAPSED);
    asked.retain(|key, _| !schema.encoders.contains_key(key));
    if asked.is_empty() && !fits_elapsed {
        return Ok(schema.clone());
    }
    let mut samples: BTreeMap<String, Sample> = asked.into_iter().map(|(key, bins)| (key, Sample::new(bins))).collect();
    let (mut elapsed, mut actions, mut rows) = (Thinned::default(), Vec::new(), 0usize);
    let mut starts = Vec::new();
    for opened in (0..).map_while(open) {
        let (file, mut table) = opened?;
        let columns = Columns::find(&file, table.columns(), schema)?;
        let mut wanted = columns.used();
        let places: Vec<Vec<usize>> = (samples.keys())
            .map(|key| key.split('+').filter_map(|name| table.columns().iter().position(|column| column == name)).collect())
            .collect();
        wanted.extend(places.iter().flatten());
        wanted.sort_unstable();
        wanted.dedup();
        table.want(&wanted)?;
        let of_action = columns.action.columns();
        let mut boundaries = Boundaries::default();
        let mut time = None;
        // Bad rows are reported by the reader.
        while let Some(is_row) = next(&mut table)? {
            if !is_row {
                continue;
            }
            if boundaries.begins(&table, &columns) {
                starts.push(rows);
                time = None;
            }
            for (sample, places) in samples.values_mut().zip(&places) {
                sample.is_action |= places.iter().any(|place| of_action.contains(place));
                sample.add(&table, places, schema, rows);
            }
            if let Some(column) = columns.elapsed.as_ref().map(|elapsed| elapsed.column)
                && let Ok(now) = table.cell(column).time()
                && let Some(before) = time.replace(now)
            {
                elapsed.add(now - before);
            }
            if rows < MOST_ROWS {
                actions.push(action_key(&table, &columns, schema));
            }
            rows += 1;
        }
    }
    starts.retain(|&row| row < MOST_ROWS);
    let mut encoders = schema.encoders.clone();
    let automatic: Vec<(&String, Series)> = (samples.iter())
        .filter(|(_, sample)| sample.bins == Bins::Auto)
        .map(|(key, sample)| {
            // An action does not follow from itself.
            let actions = if sample.is_action { Vec::new() } else { actions.clone() };
            (key, Series { values: sample.first.clone(), actions, starts: starts.clone() })
        })
        .collect();
    let series: Vec<&Series> = automatic.iter().map(|(_, series)| series).collect();
    for ((key, _), encoder) in automatic.iter().zip(fit_automatically(&series, rows as f64)) {
        encoders.insert((*key).clone(), encoder.ok_or_else(|| no_numbers(key))?);
    }
    for (key, sample) in &samples {
        let encoder = match &sample.bins {
            Bins::Auto => continue,
            Bins::Category(kept) => Some(fit_names(*kept, &sample.names)),
            bins => fit_numbers(bins, &sample.numbers.iter().map(|column| &column.values[..]).collect::<Vec<_>>()),
        };
        encoders.insert(key.clone(), encoder.ok_or_else(|| no_numbers(key))?);
    }
    if fits_elapsed {
        let cells = fit_numbers(&Bins::Quantiles(ELAPSED_CELLS), &[&elapsed.values]);
        encoders.extend(cells.map(|cells| (ELAPSED.to_string(), cells)));
    }
    Ok(Arc::new(Schema { encoders, ..(**schema).clone() }))
}

fn no_numbers(key: &str) -> Error {
    let problem = format!("column {key:?} has no numbers to make bins of");
    Error::data(problem, "check its name, or make bins of names (`bins` with category)")
}

/// Goes to the next row: whether it can be divided into cells; `None` at the end.
fn next(table: &mut Box<dyn Table>) -> Result<Option<bool>> {
    Ok(match table.advance()? {
        Advance::Row => Some(true),
        Advance::Malformed(_) => Some(false),
        Advance::End => None,
    })
}

/// How each column is to be divided: as the schema says, and automatically where it is measured and
/// the schema says nothing.
fn asked(schema: &Schema, first: Option<(String, Box<dyn Table>)>) -> Result<BTreeMap<String, Bins>> {
    let mut asked = schema.bins.clone();
    let Some((file, mut table)) = first else { return Ok(asked) };
    let columns = Columns::find(&file, table.columns(), schema)?;
    let known = |name: &String| asked.keys().chain(schema.encoders.keys()).any(|key| key.split('+').any(|of| of == name));
    let mut candidates = columns.action.columns();
    candidates.extend(columns.observation.columns());
    candidates.retain(|&column| !known(&table.columns()[column]));
    table.want(&columns.used())?;
    let of_action = columns.action.columns();
    let mut seen: Vec<Kinds> = vec![Kinds::default(); candidates.len()];
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); candidates.len()];
    let (mut boundaries, mut starts, mut actions) = (Boundaries::default(), Vec::new(), Vec::new());
    while actions.len() < SNIFFED {
        match next(&mut table)? {
            None => break,
            Some(false) => continue,
            Some(true) => {}
        }
        starts.extend(boundaries.begins(&table, &columns).then_some(actions.len()));
        for ((kinds, values), &column) in seen.iter_mut().zip(&mut values).zip(&candidates) {
            let cell = table.cell(column);
            kinds.add(cell, schema, table.is_typed());
            values.push(if is_missing(cell, schema) { f64::NAN } else { cell.number().unwrap_or(f64::NAN) });
        }
        actions.push(action_key(&table, &columns, schema));
    }
    for ((kinds, values), &column) in seen.iter().zip(values).zip(&candidates) {
        let name = &table.columns()[column];
        let is_action = of_action.contains(&column);
        let actions = if is_action { Vec::new() } else { actions.clone() };
        let series = Series { values, actions, starts: starts.clone() };
        if kinds.is_measured() || kinds.may_count() && counts(name, kinds, is_action, &series) {
            asked.insert(name.clone(), Bins::Auto);
        }
    }
    Ok(asked)
}

/// Whether whole numbers of many values are measured: their order predicts the next one, or, if
/// nothing does, most of them are too rare to be names, or they gather in a part of their range.
fn counts(name: &str, kinds: &Kinds, is_action: bool, series: &Series) -> bool {
    match whole_numbers(series) {
        WholeNumbers::Ordered => true,
        WholeNumbers::Names => false,
        WholeNumbers::Unclear => {
            let is_id = words(name).iter().any(|word| IDENTIFIERS.contains(&word.as_str()));
            let is_rare = kinds.present < FEW_ROWS * kinds.different.len();
            !is_action && !is_id && (is_rare || half_range_share(&series.values) > CONCENTRATED)
        }
    }
}

/// The largest share of the numbers within half of their range: measurements gather somewhere.
fn half_range_share(values: &[f64]) -> f64 {
    let mut values: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (values.first(), values.last()) else { return 0.0 };
    let half = 0.5 * (high - low);
    let within = |(i, x): (usize, &f64)| values.partition_point(|y| *y <= x + half) - i;
    values.iter().enumerate().map(within).max().unwrap_or(0) as f64 / values.len() as f64
}

/// Whole numbers below this are exact.
const EXACT: f64 = (1u64 << 53) as f64;

fn hash(cell: Cell<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    match cell {
        Cell::Text(text) | Cell::List(text) => text.hash(&mut hasher),
        Cell::Int(n) => n.hash(&mut hasher),
        Cell::Float(x) => x.to_bits().hash(&mut hasher),
        Cell::Bool(flag) => flag.hash(&mut hasher),
        Cell::Absent | Cell::Empty | Cell::Other(_) => {}
    }
    hasher.finish()
}

/// What the cells of a column look like.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    pub present: usize,
    pub missing: usize,
    pub numbers: usize,
    /// Numbers that are not whole.
    pub fractions: usize,
    /// Numbers with a zero before other digits, which no measurement has.
    pub padded: usize,
    pub different: FxHashSet<u64>,
}

impl Kinds {
    /// Adds a cell; in a typed table a text is no number.
    pub fn add(&mut self, cell: Cell<'_>, schema: &Schema, is_typed: bool) {
        if is_missing(cell, schema) {
            self.missing += 1;
            return;
        }
        self.present += 1;
        match cell.number().filter(|_| !is_typed || !matches!(cell, Cell::Text(_))) {
            Some(x) => {
                self.numbers += 1;
                self.fractions += usize::from(x.fract() != 0.0);
                // Ids of many digits may be one number, rounded.
                self.different.insert(if x.abs() < EXACT { x.to_bits() } else { hash(cell) });
                self.padded += usize::from(matches!(cell, Cell::Text([b'0', b'0'..=b'9', ..])));
            }
            None => {
                self.different.insert(hash(cell));
            }
        }
    }

    /// Whether nearly all are numbers, some of which are not whole, and few are the same.
    pub fn is_measured(&self) -> bool {
        10 * self.numbers >= 9 * self.present && 10 * self.fractions >= self.numbers && self.different.len() > LEAST_NUMBERS
    }
}

impl Kinds {
    /// Whether nearly all are numbers of many values, which may be measured though they are whole.
    pub fn may_count(&self) -> bool {
        10 * self.numbers >= 9 * self.present && self.padded == 0 && self.different.len() > LEAST_WHOLE_NUMBERS
    }
}

/// Numbers of a column, thinned to a bounded number at regular distances.
#[derive(Clone, Debug, Default)]
struct Thinned {
    values: Vec<f64>,
    /// One of 2^halvings is kept.
    halvings: u32,
    seen: u64,
}

impl Thinned {
    fn add(&mut self, x: f64) {
        if self.seen.is_multiple_of(1 << self.halvings) {
            self.values.push(x);
        }
        self.seen += 1;
        if self.values.len() == MOST_KEPT {
            self.values = self.values.iter().step_by(2).copied().collect();
            self.halvings += 1;
        }
    }
}

/// The values of the columns of one key.
struct Sample {
    bins: Bins,
    is_action: bool,
    numbers: Vec<Thinned>,
    /// The first rows, as they come.
    first: Vec<f64>,
    names: BTreeMap<String, u64>,
}

impl Sample {
    fn new(bins: Bins) -> Sample {
        Sample { bins, is_action: false, numbers: Vec::new(), first: Vec::new(), names: BTreeMap::new() }
    }

    fn add(&mut self, table: &dyn Table, columns: &[usize], schema: &Schema, row: usize) {
        let present = |column: usize| Some(table.cell(column)).filter(|&cell| !is_missing(cell, schema));
        if let (Bins::Category(_), Some(&column)) = (&self.bins, columns.first()) {
            let mut name = String::new();
            if present(column).is_some_and(|cell| cell.push_name(&mut name).is_ok()) {
                *self.names.entry(name).or_insert(0) += 1;
            }
            return;
        }
        let number = |column: usize| present(column).and_then(Cell::number).unwrap_or(f64::NAN);
        self.numbers.resize_with(columns.len(), Thinned::default);
        self.numbers.iter_mut().zip(columns).for_each(|(kept, &column)| kept.add(number(column)));
        if row < MOST_ROWS && self.bins == Bins::Auto {
            self.first.extend(columns.first().map(|&column| number(column)));
        }
    }
}

/// Where episodes begin, for statistics of rows that are not yet read as steps.
#[derive(Default)]
pub(super) struct Boundaries {
    id: Option<String>,
    ended: bool,
}

impl Boundaries {
    /// Whether this row begins an episode.
    pub fn begins(&mut self, table: &dyn Table, columns: &Columns) -> bool {
        let flag = |column: Option<usize>| column.is_some_and(|column| table.cell(column).mark() == Ok(true));
        let mut id = String::new();
        for &column in &columns.episode {
            id.push('|');
            // an unreadable id is reported by the reader
            let _ = table.cell(column).push_name(&mut id);
        }
        let begins = columns.rows_are_episodes
            || self.id.as_ref() != Some(&id)
            || flag(columns.first)
            || columns.episode.is_empty() && self.ended;
        self.ended = flag(columns.terminated) || flag(columns.truncated) || flag(columns.last);
        self.id = Some(id);
        begins
    }
}

/// The action of a row, as far as it is a name.
fn action_key(table: &dyn Table, columns: &Columns, schema: &Schema) -> u64 {
    let mut hasher = FxHasher::default();
    for column in columns.action.columns() {
        let cell = table.cell(column);
        let mut name = String::new();
        if !is_missing(cell, schema) && cell.push_name(&mut name).is_ok() {
            name.hash(&mut hasher);
        }
    }
    hasher.finish()
}
