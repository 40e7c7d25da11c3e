//! Which columns are a time, and whether rows must be sorted by it.

use std::cmp::Ordering;

use super::guesser::{Guesser, without_columns};
use super::names::words;
use super::schema::{ROW, Role};

/// Share of consecutive rows that must be in order for a column to be a time.
const IN_ORDER: f64 = 0.99;

/// How the rows of episodes stand to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// It is the same in all rows of an episode.
    Constant,
    /// Rows are not in its order, and some of an episode have the same time.
    Unclear,
    /// Rows are not in its order; no two of an episode have the same time.
    Shuffled,
    /// Nearly all rows are in its order.
    Nearly,
    /// All rows are in its order, some with the time of the one before.
    NeverDown,
    /// It goes up with every row.
    Up,
}

impl Guesser<'_> {
    /// Whether rows must be sorted, and by what.
    pub fn guess_order(&mut self) {
        if let Some(step) = self.column_of(Role::Step).filter(|_| self.schema.step.is_none()) {
            let steps = self.steps();
            let goes_up = |&(a, b): &(usize, usize)| {
                self.profile.time(a, step).zip(self.profile.time(b, step)).is_some_and(|(x, y)| y == x + 1.0)
            };
            let name = self.profile.names[step].clone();
            let (of, is_called_step) = (&self.profile.columns[step].kinds, words(&name).contains(&"step".to_string()));
            let is_no_count = is_called_step && (of.fractions > 0 || of.numbers < of.present);
            if is_no_count {
                self.no_step(step, format!("{name:?} holds no counts of steps"));
                self.taken[step] = false;
            } else if name.eq_ignore_ascii_case("step") || steps.iter().all(goes_up) || self.schema.arranges() {
                return;
            }
        }
        if self.schema.sort.is_none() {
            self.guess_sort();
        }
    }

    /// Says that no column counts steps.
    fn no_step(&mut self, step: usize, reason: String) {
        self.roles.retain(|guessed| guessed.role != Role::Step.name());
        self.schema.step = Some(Vec::new());
        self.taken[step] = true;
        self.say_none(Role::Step, reason);
    }

    fn guess_sort(&mut self) {
        let episode = self.columns_of(Role::Episode);
        let marks_ends = [Role::Terminated, Role::Truncated, Role::First, Role::Last].iter().any(|&role| self.has(role));
        if episode.is_empty() && marks_ends {
            return; // times begin anew where flags say so
        }
        let is_interleaved = !episode.is_empty() && !self.profile.are_in_blocks(&episode);
        let times = self.times();
        let mut clocks: Vec<Vec<usize>> = times.iter().map(|&time| vec![time]).collect();
        clocks.extend((times.len() > 1).then(|| times.clone()));
        let mut best: Option<(Order, &Vec<usize>)> = None;
        for clock in &clocks {
            let order = self.order_of(clock, &episode);
            if best.is_none_or(|(before, _)| before < order) {
                best = Some((order, clock));
            }
        }
        let name = |clock: &[usize]| {
            clock.iter().map(|&time| format!("{:?}", self.profile.names[time])).collect::<Vec<_>>().join(" and ")
        };
        let is_sorted = |order: Order| order >= Order::NeverDown;
        let together = clocks.last().filter(|clock| clock.len() > 1 && episode.is_empty());
        if let (Some((Order::NeverDown, first)), Some(all)) = (best, together)
            && self.order_of(all, &episode) < Order::Nearly
        {
            self.doubts.push(format!(
                "{} never goes down, but {} together do {} times: if rows of several episodes follow each other or are mixed, say \
                 which columns name them (`episode`)",
                name(first),
                name(all),
                self.falls(all)
            ));
        }
        let step = self.column_of(Role::Step).filter(|_| self.schema.step.is_none());
        match best {
            // Without episodes, times that come again are those of several of them.
            Some((order, clock)) if episode.is_empty() && !is_sorted(order) && !self.profile.is_key(clock) => {
                let falls = self.falls(clock);
                self.doubts.push(format!(
                    "{} goes down {falls} times, so the rows of several episodes may follow each other or be mixed: say which \
                     columns name them (`episode`)",
                    name(clock)
                ));
            }
            Some((order, clock))
                if is_interleaved && order > Order::Constant
                    || order == Order::Nearly
                    || order == Order::Shuffled && (episode.is_empty() || self.is_surely_time(clock)) =>
            {
                let (clock, said) = (clock.clone(), name(clock));
                if let Some(step) = step {
                    self.no_step(step, format!("{:?} does not count steps", self.profile.names[step]));
                }
                let reason =
                    format!("rows are not in order; {said} {}", if clock.len() == 1 { "is a time" } else { "are a time" });
                self.time = Some(clock[0]);
                self.add(Role::Sort, &clock, reason, true);
            }
            _ if is_interleaved => {
                self.schema.sort = Some(vec![ROW.into()]);
                let reason = "rows of different episodes are interleaved: those of each keep their order".into();
                self.roles.push(super::guesser::GuessedRole { columns: vec![ROW.into()], ..without_columns(Role::Sort, reason) });
            }
            // Rows are in order already: the column is a time, and no part of what is observed.
            Some((order, clock)) if is_sorted(order) => {
                let clock = clock.clone();
                if let Some(step) = step {
                    let reason = format!("{:?} does not count steps; rows are in its order", self.profile.names[step]);
                    self.no_step(step, reason);
                }
                clock.iter().for_each(|&time| self.taken[time] = true);
                self.time = Some(clock[0]);
            }
            _ => {}
        }
    }

    /// How the rows of episodes stand to a time, which several columns may make together.
    fn order_of(&self, clock: &[usize], episode: &[usize]) -> Order {
        let steps = self.profile.steps(episode);
        let orders: Vec<Ordering> = steps.iter().map(|&(a, b)| self.compare(a, b, clock)).collect();
        let ordered = orders.iter().filter(|order| order.is_le()).count();
        match () {
            () if orders.iter().all(|order| order.is_eq()) => Order::Constant,
            () if orders.iter().all(|order| order.is_lt()) => Order::Up,
            () if ordered == orders.len() => Order::NeverDown,
            () if ordered as f64 >= IN_ORDER * orders.len() as f64 => Order::Nearly,
            () if self.profile.is_key(&[episode, clock].concat()) => Order::Shuffled,
            () => Order::Unclear,
        }
    }

    /// Whether a column that is not in order, such as an index of items, must yet be a time: it is
    /// called time, holds dates, goes down in all episodes, or is several columns such as year and month.
    fn is_surely_time(&self, clock: &[usize]) -> bool {
        let goes_down = || self.steps().iter().all(|&(a, b)| self.compare(a, b, clock).is_gt());
        let is_called_time = self.column_of(Role::Step) == Some(clock[0]);
        is_called_time || clock.len() > 1 || clock.iter().any(|&time| self.profile.columns[time].dates.is_some()) || goes_down()
    }

    /// How many rows of the file come before the row above them.
    pub(super) fn falls(&self, clock: &[usize]) -> usize {
        (1..self.profile.rows).filter(|&row| self.compare(row - 1, row, clock).is_gt()).count()
    }

    fn compare(&self, a: usize, b: usize, clock: &[usize]) -> Ordering {
        let time = |row: usize, column: usize| self.profile.time(row, column).unwrap_or(f64::NAN);
        let each = clock.iter().map(|&column| time(a, column).total_cmp(&time(b, column)));
        each.fold(Ordering::Equal, Ordering::then)
    }
}
