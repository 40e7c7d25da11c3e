//! Which columns name the episodes: by words in their names, or because their values have one row for
//! each time.

use super::guesser::Guesser;
use super::schema::Role;

/// Rows that share a time are expected to share a value at least so often if a column does not name
/// episodes; if it does, they share one at most in this part of these cases.
const LEAST_COINCIDENCES: f64 = 20.0;
const MOST_SHARED: f64 = 0.02;
/// Episodes that begin anew with the time, at least.
const LEAST_RESTARTS: usize = 3;

impl Guesser<'_> {
    /// The finest column that names several rows each; a coarser one is the group.
    pub fn guess_episode(&mut self) {
        if self.schema.episode.is_some() || self.has(Role::Episode) {
            return;
        }
        let mut named: Vec<usize> = self.named(Role::Episode).into_iter().filter(|&column| self.may_name_rows(column)).collect();
        // Of `user_id` and `item_id`, the second names an action.
        if named.iter().any(|&column| !self.speaks_for(column, Role::Action)) {
            named.retain(|&column| !self.speaks_for(column, Role::Action));
        }
        named.sort_by_key(|&column| std::cmp::Reverse(self.profile.columns[column].different()));
        let marks_ends = [Role::Terminated, Role::Truncated, Role::First, Role::Last].iter().any(|&role| self.has(role));
        if marks_ends && named.first().is_none_or(|&column| !self.changes_inside(column)) {
            return;
        }
        let Some(&finest) = named.first() else { return self.guess_entity() };
        let of = &self.profile.columns[finest];
        let (different, runs) = (of.different(), of.runs);
        let name = self.profile.names[finest].clone();
        if let Some(with) = self.completes(finest) {
            let other = self.profile.names[with].clone();
            let reason = format!("values of {name:?} come back at the same time, but not for the same {other:?}");
            return self.add(Role::Episode, &[with, finest], reason, true);
        }
        let how = if runs == different { "in blocks" } else { "interleaved" };
        let ends = if marks_ends { ", which also change where no end is marked" } else { "" };
        self.doubt_names_that_come_back(finest);
        self.add(Role::Episode, &[finest], format!("{name:?} has {different} values {how}{ends}"), true);
        let coarser = named.into_iter().skip(1).find(|&column| self.profile.is_nested(finest, column));
        if let (Some(column), true) = (coarser, self.schema.group.is_none()) {
            let name = self.profile.names[column].clone();
            self.add(Role::Group, &[column], format!("each value of {name:?} has several episodes"), false);
        }
    }

    /// Whether values of a column could name episodes: some have several rows each, and they are not
    /// measured. Values of which most are different must at least be in blocks.
    fn may_name_rows(&self, column: usize) -> bool {
        let of = &self.profile.columns[column];
        let (different, rows) = (of.different(), self.profile.rows);
        let repeats = 2 * different <= rows || of.runs == different && different < rows;
        different >= 2 && repeats && of.kinds.fractions == 0 && of.kinds.missing == 0
    }

    /// Whether a column changes where no flag says that an episode ends or begins.
    fn changes_inside(&self, column: usize) -> bool {
        let flags = |roles: &[Role]| -> Vec<usize> { roles.iter().filter_map(|&role| self.column_of(role)).collect() };
        let ends = flags(&[Role::Terminated, Role::Truncated, Role::Last]);
        let begins = flags(&[Role::First]);
        let is_set = |row: usize, columns: &[usize]| columns.iter().any(|&column| self.profile.flag(row, column) == Some(true));
        (1..self.profile.rows).any(|row| {
            self.profile.cell(row, column) != self.profile.cell(row - 1, column)
                && !is_set(row - 1, &ends)
                && !is_set(row, &begins)
        })
    }

    /// Columns that could be a time, by a word in their names or because they hold dates. What counts
    /// the rows of the file is none.
    pub(super) fn times(&self) -> Vec<usize> {
        let is_time = |&column: &usize| {
            let of = &self.profile.columns[column];
            let speaks = self.speaks_for(column, Role::Sort) || self.column_of(Role::Step) == Some(column);
            let is_free = !self.taken[column] || self.column_of(Role::Step) == Some(column);
            let is_known = of.kinds.missing == 0 && (of.dates.is_some() || of.kinds.numbers == of.kinds.present);
            is_free && is_known && of.different() > 1 && (speaks || of.dates.is_some()) && !self.profile.counts_rows(column)
        };
        (0..self.profile.names.len()).filter(is_time).collect()
    }

    /// A column whose values have one row for each time, or with whose values a time begins anew.
    fn guess_entity(&mut self) {
        let times = self.times();
        if times.iter().any(|&time| self.profile.is_key(&[time]) && self.falls(&[time]) == 0) {
            return; // a single series
        }
        let Some((column, reason)) = self.entity_of(&times).or_else(|| self.entity_in_blocks(&times)) else { return };
        self.doubt_names_that_come_back(column);
        self.add(Role::Episode, &[column], reason, true);
    }

    /// Names whose rows follow each other only within a coarser time, such as storms of a year.
    fn doubt_names_that_come_back(&mut self, id: usize) {
        let times = self.times();
        let is_coarse = |time: &&usize| {
            let names = [**time, id];
            self.profile.are_in_blocks(&names) && 2 * self.profile.runs(&names) <= self.profile.rows
        };
        if self.profile.are_in_blocks(&[id]) {
            return;
        }
        if let Some(&time) = times.iter().find(is_coarse) {
            let (id, time) = (&self.profile.names[id], &self.profile.names[time]);
            self.doubts.push(format!(
                "values of {id:?} come back after others: if each run of rows is an episode of its own, say so (`episode` {time},{id})"
            ));
        }
    }

    fn may_name_entities(&self, column: usize, times: &[usize]) -> bool {
        !self.taken[column] && !times.contains(&column) && self.may_name_rows(column)
    }

    /// The column with the fewest values of which each has one row for each time, though times come
    /// again: a panel.
    fn entity_of(&self, times: &[usize]) -> Option<(usize, String)> {
        let mut clocks: Vec<Vec<usize>> = times.iter().map(|&time| vec![time]).collect();
        // such as year, month and day
        clocks.extend((times.len() > 1).then(|| times.to_vec()));
        if clocks.iter().any(|clock| self.profile.is_key(clock)) {
            return None; // a single series
        }
        let clocks: Vec<(&[usize], f64)> = clocks.iter().map(|clock| (&clock[..], self.profile.pairs(clock))).collect();
        let all = (self.profile.rows * self.profile.rows.saturating_sub(1)) as f64 / 2.0;
        let mut best: Option<(usize, &[usize])> = None;
        for column in (0..self.profile.names.len()).filter(|&column| self.may_name_entities(column, times)) {
            let different = |column: usize| self.profile.columns[column].different();
            if best.is_some_and(|(best, _)| different(best) <= different(column)) {
                continue;
            }
            let own = self.profile.pairs(&[column]);
            // If the value were drawn at random for each row, so many pairs of rows with the same
            // time would share it.
            let names_rows = |(clock, pairs): &&(&[usize], f64)| {
                let expected = pairs * own / all.max(1.0);
                expected >= LEAST_COINCIDENCES && self.profile.pairs(&[clock, &[column][..]].concat()) <= MOST_SHARED * expected
            };
            best = clocks.iter().find(names_rows).map(|(clock, _)| (column, *clock)).or(best);
        }
        best.map(|(column, clock)| {
            let clock: Vec<String> = clock.iter().map(|&time| format!("{:?}", self.profile.names[time])).collect();
            let (name, different) = (&self.profile.names[column], self.profile.columns[column].different());
            (column, format!("each of the {different} values of {name:?} has one row for each {}", clock.join(", ")))
        })
    }

    /// A column in blocks, with each of which a time begins anew; without a name for it, what counts
    /// 1, 2, 3, … is a time.
    fn entity_in_blocks(&self, times: &[usize]) -> Option<(usize, String)> {
        let is_in_blocks = |&column: &usize| {
            let of = &self.profile.columns[column];
            self.may_name_entities(column, times) && of.runs == of.different() && 2 * of.runs <= self.profile.rows
        };
        let counters = (0..self.profile.names.len()).filter(|&column| {
            let of = &self.profile.columns[column].kinds;
            !self.taken[column] && of.numbers == of.present && of.missing == 0 && of.fractions == 0
        });
        let counters: Vec<usize> = counters.filter(|column| !times.contains(column)).collect();
        let restarts = |column: usize, time: usize, by_name: bool| {
            let (mut restarts, mut blocks) = (0, 0);
            for row in 1..self.profile.rows {
                let (Some(before), Some(now)) = (self.profile.time(row - 1, time), self.profile.time(row, time)) else {
                    return false;
                };
                if self.profile.cell(row - 1, column) != self.profile.cell(row, column) {
                    blocks += 1;
                    restarts += usize::from(now < before);
                } else if now < before || !by_name && now != before + 1.0 {
                    return false;
                }
            }
            let enough = if by_name { 2 * restarts >= blocks } else { restarts == blocks };
            restarts >= LEAST_RESTARTS && enough
        };
        let clocks = times.iter().map(|&time| (time, true)).chain(counters.iter().map(|&time| (time, false)));
        for (time, by_name) in clocks {
            let found = (0..self.profile.names.len()).filter(is_in_blocks);
            let found = found.filter(|&column| column != time).find(|&column| restarts(column, time, by_name));
            if let Some(column) = found {
                let (name, time) = (&self.profile.names[column], &self.profile.names[time]);
                return Some((column, format!("{time:?} begins anew with each value of {name:?}")));
            }
        }
        None
    }

    /// A column that tells apart episodes with the same name, of which a time shows that they are
    /// several.
    fn completes(&self, id: usize) -> Option<usize> {
        let changes = |&time: &usize| {
            let steps = self.profile.steps(&[id]);
            steps.iter().any(|&(a, b)| self.profile.cell(a, time) != self.profile.cell(b, time))
        };
        let times: Vec<usize> = self.times().into_iter().filter(changes).collect();
        if times.is_empty() || times.iter().any(|&time| self.profile.is_key(&[id, time])) {
            return None;
        }
        let tells_apart = |&column: &usize| {
            let is_free = !self.taken[column] && column != id && !times.contains(&column) && self.may_name_rows(column);
            is_free
                && self.profile.are_in_blocks(&[column, id])
                && 2 * self.profile.runs(&[column, id]) <= self.profile.rows
                && times.iter().any(|&time| self.profile.is_key(&[column, id, time]))
        };
        (0..self.profile.names.len()).find(tells_apart)
    }
}
