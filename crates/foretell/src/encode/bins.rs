//! How a column is to be divided, as a user writes it: `auto`, `4`, `uniform:5`, `kmeans:8`,
//! `category`, `category:20`, `cuts:0/2.5/10`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the values of a column become cells.
///
/// ```
/// use foretell::encode::Bins;
///
/// assert_eq!("4".parse(), Ok(Bins::Quantiles(4)));
/// assert_eq!("kmeans:8".parse(), Ok(Bins::KMeans(8)));
/// assert_eq!("cuts:0/2.5".parse::<Bins>().unwrap().to_string(), "cuts:0/2.5");
/// assert!("many".parse::<Bins>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Bins {
    /// As many cells with equally many values as held-out prediction of the next value supports.
    Auto,
    /// Cells with equally many values.
    Quantiles(usize),
    /// Cells of the same width.
    Uniform(usize),
    /// Cells around the centres of k-means.
    KMeans(usize),
    /// Each value is a name. With a number, that many of the most frequent are kept, and otherwise
    /// those that are not rare; the rest are `other`.
    Category(Option<usize>),
    /// Cells between given numbers.
    Cuts(Vec<f64>),
}

/// More cells than this are names that hardly repeat.
const MOST_CELLS: usize = 1000;

impl FromStr for Bins {
    type Err = String;

    fn from_str(text: &str) -> Result<Bins, String> {
        let (kind, argument) = text.split_once(':').map_or((text, None), |(kind, argument)| (kind, Some(argument)));
        let number = |argument: Option<&str>| match argument.map(str::parse) {
            Some(Ok(n)) if (1..=MOST_CELLS).contains(&n) => Ok(n),
            _ => Err(format!("{text:?}: {kind} needs a number of cells between 1 and {MOST_CELLS}, such as {kind}:4")),
        };
        match (kind, argument) {
            ("auto", None) => Ok(Bins::Auto),
            ("quantile" | "quantiles", _) => number(argument).map(Bins::Quantiles),
            ("uniform", _) => number(argument).map(Bins::Uniform),
            ("kmeans", _) => number(argument).map(Bins::KMeans),
            ("category", None) => Ok(Bins::Category(None)),
            ("category", _) => number(argument).map(|n| Bins::Category(Some(n))),
            ("cuts", Some(list)) => cuts(list).ok_or_else(|| {
                format!("{text:?}: cuts are finite numbers in ascending order with / between them, such as cuts:0/2.5/10")
            }),
            (digits, None) if digits.parse::<usize>().is_ok() => number(Some(digits)).map(Bins::Quantiles),
            _ => Err(format!(
                "{text:?} is no way to make bins; write a number, auto, quantile:N, uniform:N, kmeans:N, category, category:N or cuts:X/Y/…"
            )),
        }
    }
}

fn cuts(list: &str) -> Option<Bins> {
    let cuts: Vec<f64> = list.split('/').map(|cut| cut.trim().parse().ok()).collect::<Option<_>>()?;
    let ascending = cuts.iter().all(|x| x.is_finite()) && cuts.windows(2).all(|pair| pair[0] < pair[1]);
    (ascending && cuts.len() < MOST_CELLS).then_some(Bins::Cuts(cuts))
}

impl fmt::Display for Bins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bins::Auto => f.write_str("auto"),
            Bins::Quantiles(n) => write!(f, "quantile:{n}"),
            Bins::Uniform(n) => write!(f, "uniform:{n}"),
            Bins::KMeans(n) => write!(f, "kmeans:{n}"),
            Bins::Category(None) => f.write_str("category"),
            Bins::Category(Some(n)) => write!(f, "category:{n}"),
            Bins::Cuts(cuts) => {
                let cuts: Vec<String> = cuts.iter().map(ToString::to_string).collect();
                write!(f, "cuts:{}", cuts.join("/"))
            }
        }
    }
}

impl TryFrom<String> for Bins {
    type Error = String;

    fn try_from(text: String) -> Result<Bins, String> {
        text.parse()
    }
}

impl From<Bins> for String {
    fn from(bins: Bins) -> String {
        bins.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let all = [
            Bins::Auto,
            Bins::Quantiles(4),
            Bins::Uniform(1),
            Bins::KMeans(8),
            Bins::Category(None),
            Bins::Category(Some(20)),
            Bins::Cuts(vec![-1.5, 0.0, 1e6]),
        ];
        for bins in all {
            assert_eq!(bins.to_string().parse(), Ok(bins));
        }
    }

    #[test]
    fn what_makes_no_bins_is_refused_with_a_remedy() {
        for text in ["", "0", "-3", "4.5", "kmeans", "kmeans:0", "uniform:x", "auto:3", "cuts:", "cuts:2/1", "cuts:nan", "5000"] {
            let said = text.parse::<Bins>().unwrap_err();
            assert!(said.contains("such as") || said.contains("write a number"), "{text}: {said}");
        }
    }
}
