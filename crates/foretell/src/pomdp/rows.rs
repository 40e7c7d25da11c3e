//! Sparse rows of probabilities, for iteration, lookup and sampling.

use crate::rng::Rng;

/// A sparse row: columns and their probabilities.
pub type Row = Vec<(usize, f64)>;

/// The sparse row of a dense one.
pub fn sparse(dense: &[f64]) -> Row {
    dense.iter().copied().enumerate().filter(|&(_, p)| p != 0.0).collect()
}

/// Many rows, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows {
    /// Where each row ends.
    ends: Vec<usize>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    column: u32,
    probability: f64,
    /// Sum of the probabilities up to and including this one.
    cumulative: f64,
}

impl Rows {
    /// Adds a row of positive probabilities, sorted by column.
    pub fn push(&mut self, row: impl IntoIterator<Item = (usize, f64)>) {
        let mut cumulative = 0.0;
        self.entries.extend(row.into_iter().map(|(column, probability)| {
            cumulative += probability;
            Entry { column: column as u32, probability, cumulative }
        }));
        self.ends.push(self.entries.len());
    }

    /// The entries of the `i`-th row.
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        self.entries(i).iter().map(|e| (e.column as usize, e.probability))
    }

    /// One entry of the `i`-th row.
    pub fn probability(&self, i: usize, column: usize) -> f64 {
        let entries = self.entries(i);
        entries.binary_search_by_key(&column, |e| e.column as usize).map_or(0.0, |k| entries[k].probability)
    }

    /// A column drawn from the `i`-th row; `None` if the row is empty.
    pub fn sample(&self, i: usize, rng: &mut Rng) -> Option<usize> {
        let entries = self.entries(i);
        let last = entries.last()?;
        if entries.len() == 1 {
            return Some(last.column as usize); // certain: uses no random number
        }
        let u = rng.uniform() * last.cumulative;
        let k = entries.partition_point(|e| e.cumulative <= u);
        Some(entries.get(k).unwrap_or(last).column as usize)
    }

    fn entries(&self, i: usize) -> &[Entry] {
        let begin = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.entries[begin..self.ends[i]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn draws_follow_the_row() {
        let mut rows = Rows::default();
        rows.push([(0, 1.0)]);
        rows.push([(2, 0.25), (5, 0.75)]);
        rows.push([]);
        let mut rng = Seed(3).rng();
        let hits = (0..40_000).filter(|_| rows.sample(1, &mut rng) == Some(2)).count() as f64;
        assert!((hits - 10_000.0).abs() < 4.0 * 86.6, "{hits}"); // 4 standard deviations of a binomial(40 000, 1/4)
        assert_eq!((rows.sample(0, &mut rng), rows.sample(2, &mut rng)), (Some(0), None));
        assert_eq!((rows.probability(1, 5), rows.probability(1, 4)), (0.75, 0.0));
        assert_eq!(rows.row(1).collect::<Row>(), [(2, 0.25), (5, 0.75)]);
    }
}
