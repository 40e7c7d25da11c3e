//! Sparse rows of probabilities, for iteration, lookup and sampling.

use crate::math::SparseRows;
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
    rows: SparseRows,
    /// For each entry the sum of the probabilities of its row up to and with it.
    cumulative: Vec<f64>,
}

impl Rows {
    /// Adds a row of positive probabilities, sorted by column.
    pub fn push(&mut self, row: impl IntoIterator<Item = (usize, f64)>) {
        let (mut sum, cumulative) = (0.0, &mut self.cumulative);
        self.rows.push(row.into_iter().inspect(|(_, probability)| {
            sum += probability;
            cumulative.push(sum);
        }));
    }

    /// The entries of the `i`-th row.
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        self.rows.row(i)
    }

    /// One entry of the `i`-th row.
    pub fn probability(&self, i: usize, column: usize) -> f64 {
        let (columns, probabilities) = self.rows.slices(i);
        columns.binary_search_by_key(&column, |&c| c as usize).map_or(0.0, |k| probabilities[k])
    }

    /// A column drawn from the `i`-th row; `None` if the row is empty.
    pub fn sample(&self, i: usize, rng: &mut Rng) -> Option<usize> {
        let ((columns, _), cumulative) = (self.rows.slices(i), &self.cumulative[self.rows.range(i)]);
        let last = *columns.last()?;
        if columns.len() == 1 {
            return Some(last as usize); // certain: spends no random number
        }
        let u = rng.uniform() * cumulative[cumulative.len() - 1];
        let k = cumulative.partition_point(|sum| *sum <= u);
        Some(*columns.get(k).unwrap_or(&last) as usize)
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
