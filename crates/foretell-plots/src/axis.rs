//! Axes: scales and tick labels.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The label, with the unit.
    pub label: String,
    /// Whether the scale is logarithmic; numbers that are not positive are then left out.
    pub is_log: bool,
    /// Fixed range; by default that of the data.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis that shows all of the data.
    pub fn new(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), is_log: false, range: None }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { is_log: true, ..Axis::new(label) }
    }

    /// The position of a number; none if it cannot be drawn.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let placed = if self.is_log { value.log10() } else { value };
        placed.is_finite().then_some(placed)
    }

    /// The range, with a maximum number of ticks.
    pub(crate) fn scale(&self, low: f64, high: f64, most: usize) -> Scale {
        Scale { ticks: self.ticks(low, high, most), range: (low..high).into() }
    }

    /// Ticks at round numbers, with a maximum count.
    fn ticks(&self, low: f64, high: f64, most: usize) -> Vec<f64> {
        let within = |at: &f64| (low..=high).contains(at);
        if self.is_log {
            let mantissas: [&[f64]; 4] = [&[1.0, 2.0, 3.0, 4.0, 6.0, 8.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
            let decades = |every: usize| (low.floor() as i32..=high.ceil() as i32).filter(move |k| *k % every as i32 == 0);
            let at = |mantissas: &[f64], every: usize| -> Vec<f64> {
                let places = decades(every).flat_map(|k| mantissas.iter().map(move |m| m.log10() + f64::from(k)));
                places.filter(within).collect()
            };
            let dense = mantissas.iter().map(|mantissas| at(mantissas, 1));
            let mut all = dense.chain((2..50).map(|every| at(&[1.0], every)));
            return all.find(|ticks| ticks.len() <= most).unwrap_or_default();
        }
        let tenth = 10f64.powf(((high - low) / most as f64).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * tenth).into_iter().find(|step| (high - low) / step <= most as f64);
        let step = step.unwrap_or(10.0 * tenth);
        ((low / step).ceil() as i64..=(high / step).floor() as i64).map(|i| i as f64 * step).collect()
    }

    /// The label of a tick.
    pub(crate) fn text(&self, placed: f64) -> String {
        let value = if self.is_log { 10f64.powf(placed) } else { placed };
        let size = value.abs();
        match size {
            _ if size < 1e-12 => "0".into(),
            _ if !(1e-3..1e6).contains(&size) => format!("{value:.0e}"),
            _ => {
                // Between powers of ten the numbers of a logarithmic axis are not round.
                let most = if self.is_log { 1 } else { 2 };
                let digits = (most - size.log10().floor() as i32).clamp(0, 5) as usize;
                let text = format!("{value:.digits$}");
                if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
            }
        }
    }
}

/// An axis as it is drawn.
pub(crate) struct Scale {
    ticks: Vec<f64>,
    range: RangedCoordf64,
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(value, limit)
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        if hint.max_num_points() == 0 { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.range()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_axes_are_short() {
        let text = |x| Axis::new("").text(x);
        assert_eq!([0.0, 0.5, -7.0, 1250.0, 9734.7, 2e7].map(text), ["0", "0.5", "-7", "1250", "9735", "2e7"]);
        assert_eq!([-2.0, -1.5, 0.5, 1.5].map(|x| Axis::log("").text(x)), ["0.01", "0.032", "3.2", "32"]);
        assert_eq!(Axis::log("").place(0.0), None);
    }

    #[test]
    fn numbers_on_axes_are_round() {
        let texts = |axis: Axis, low, high, most| -> Vec<String> {
            axis.ticks(low, high, most).into_iter().map(|at| axis.text(at)).collect()
        };
        assert_eq!(texts(Axis::new(""), 0.3, 6.2, 7), ["1", "2", "3", "4", "5", "6"]);
        assert_eq!(texts(Axis::new(""), -30.0, 1.0, 8), ["-30", "-25", "-20", "-15", "-10", "-5", "0"]);
        assert_eq!(texts(Axis::log(""), 1.8, 3.1, 7), ["100", "200", "500", "1000"]);
        assert_eq!(texts(Axis::log(""), -5.0, 3.0, 5), ["1e-4", "0.01", "1", "100"]);
    }
}
