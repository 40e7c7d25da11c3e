//! The cells of a column that were fitted to logs.

use serde::{Deserialize, Serialize};

/// The name of the cell of all names that have none of their own.
const OTHER: &str = "other";

/// Fitted cells of one column, or of several that k-means divides together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Encoder {
    /// Intervals: x is in the cell after the last cut that is not above it.
    Cuts {
        /// Ascending.
        cuts: Vec<f64>,
        /// The smallest and the largest value that was seen.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// Names with a cell each; all others share one.
    Names {
        /// In the order of their cells.
        names: Vec<String>,
    },
    /// The nearest of several centres, after each number is divided by its scale.
    Centres {
        /// One for each column.
        scales: Vec<f64>,
        /// One row for each cell.
        centres: Vec<Vec<f64>>,
    },
}

impl Encoder {
    /// Number of cells.
    pub fn cells(&self) -> usize {
        match self {
            Encoder::Cuts { cuts, .. } => cuts.len() + 1,
            Encoder::Names { names } => names.len() + 1,
            Encoder::Centres { centres, .. } => centres.len(),
        }
    }

    /// Whether its columns are numbers.
    pub fn is_numeric(&self) -> bool {
        !matches!(self, Encoder::Names { .. })
    }

    /// The cell of numbers, one for each column; `None` if one of them is not finite.
    pub fn cell_of_numbers(&self, numbers: &[f64]) -> Option<usize> {
        if numbers.iter().any(|x| !x.is_finite()) {
            return None;
        }
        match self {
            Encoder::Cuts { cuts, .. } => Some(cuts.partition_point(|&cut| cut <= numbers[0])),
            Encoder::Centres { scales, centres } => {
                let distance = |centre: &Vec<f64>| -> f64 {
                    centre.iter().zip(numbers).zip(scales).map(|((c, x), scale)| ((c - x) / scale).powi(2)).sum()
                };
                let distances = centres.iter().map(distance).enumerate();
                distances
                    .fold(
                        None,
                        |best: Option<(usize, f64)>, (i, d)| if best.is_some_and(|(_, b)| b <= d) { best } else { Some((i, d)) },
                    )
                    .map(|(cell, _)| cell)
            }
            Encoder::Names { .. } => None,
        }
    }

    /// The cell of a name.
    pub fn cell_of_name(&self, name: &str) -> Option<usize> {
        let Encoder::Names { names } = self else { return None };
        Some(names.iter().position(|known| known == name).unwrap_or(names.len()))
    }

    /// A cell in words: `2.5..4` (from 2.5 to less than 4), `..2.5`, `4..`, a name, or `~3.1/0.2`
    /// (around these numbers).
    pub fn label(&self, cell: usize) -> String {
        match self {
            Encoder::Cuts { cuts, .. } => {
                let bound = |i: Option<usize>| i.and_then(|i| cuts.get(i)).map(ToString::to_string).unwrap_or_default();
                if cuts.is_empty() { "any".into() } else { format!("{}..{}", bound(cell.checked_sub(1)), bound(Some(cell))) }
            }
            Encoder::Names { names } => names.get(cell).cloned().unwrap_or_else(|| OTHER.into()),
            Encoder::Centres { centres, .. } => {
                let numbers: Vec<String> = centres[cell].iter().map(|&x| short(x)).collect();
                format!("~{}", numbers.join("/"))
            }
        }
    }

    /// The middle of a cell, one number for each column; `None` where cells are names.
    pub fn middle(&self, cell: usize) -> Option<Vec<f64>> {
        match self {
            Encoder::Cuts { cuts, low, high } => {
                let from = cell.checked_sub(1).and_then(|i| cuts.get(i)).map_or(*low, |&cut| cut.max(*low));
                let to = cuts.get(cell).map_or(*high, |&cut| cut.min(*high));
                Some(vec![0.5 * (from + to)])
            }
            Encoder::Names { .. } => None,
            Encoder::Centres { centres, .. } => centres.get(cell).cloned(),
        }
    }
}

/// A number with three significant digits.
fn short(x: f64) -> String {
    let rounded: f64 = format!("{x:.2e}").parse().unwrap_or(x);
    (rounded + 0.0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_the_cell_whose_label_contains_it() {
        let encoder = Encoder::Cuts { cuts: vec![2.5, 4.0], low: 0.0, high: 10.0 };
        let label = |x: f64| encoder.cell_of_numbers(&[x]).map(|cell| encoder.label(cell));
        assert_eq!(label(-7.0).unwrap(), "..2.5");
        assert_eq!(label(2.5).unwrap(), "2.5..4");
        assert_eq!(label(3.999).unwrap(), "2.5..4");
        assert_eq!(label(4.0).unwrap(), "4..");
        assert_eq!(label(f64::NAN), None);
        assert_eq!((0..3).map(|cell| encoder.middle(cell).unwrap()[0]).collect::<Vec<_>>(), [1.25, 3.25, 7.0]);
    }

    #[test]
    fn a_name_without_a_cell_is_in_the_rest() {
        let encoder = Encoder::Names { names: vec!["am".into(), "pm".into()] };
        assert_eq!(encoder.label(encoder.cell_of_name("pm").unwrap()), "pm");
        assert_eq!(encoder.label(encoder.cell_of_name("noon").unwrap()), "other");
        assert_eq!(encoder.cells(), 3);
    }

    #[test]
    fn the_nearest_centre_is_the_cell() {
        let encoder = Encoder::Centres { scales: vec![1.0, 100.0], centres: vec![vec![0.0, 0.0], vec![1.0, 1000.0]] };
        assert_eq!(encoder.cell_of_numbers(&[0.9, 100.0]), Some(0));
        assert_eq!(encoder.cell_of_numbers(&[0.1, 900.0]), Some(1));
        assert_eq!(encoder.label(1), "~1/1000");
        assert_eq!(encoder.cell_of_numbers(&[0.1, f64::INFINITY]), None);
    }

    #[test]
    fn an_encoder_survives_json() {
        let all = [
            Encoder::Cuts { cuts: vec![0.1, 0.30000000000000004], low: -1.0, high: 2.0 },
            Encoder::Names { names: vec!["a".into()] },
            Encoder::Centres { scales: vec![1.0], centres: vec![vec![2.0]] },
        ];
        for encoder in all {
            let json = serde_json::to_string(&encoder).unwrap();
            assert_eq!(serde_json::from_str::<Encoder>(&json).unwrap(), encoder);
        }
    }
}
