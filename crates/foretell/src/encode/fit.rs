//! Fitting cells to the values of logs.

use super::bins::Bins;
use super::encoder::Encoder;
use crate::math::cluster;
use crate::rng::Seed;

/// A name seen less often than this shares the cell of all such names: its frequency has a relative
/// error above 1/√5 = 45 %.
const RARE: u64 = 5;
/// The seed of k-means.
const SEED: Seed = Seed(0);
/// Rounds of k-means in double precision, after those on a sample in single precision.
const ROUNDS: usize = 1;
/// Cuts are rounded if that moves them by less than this share of the width of a cell.
const MOVED: f64 = 1e-4;

impl Encoder {
    /// Cells for the numbers of one column; NaN is missing. `None` if there are no numbers, or the
    /// cells do not depend on numbers alone.
    ///
    /// ```
    /// use foretell::encode::{Bins, Encoder};
    ///
    /// let cells = Encoder::fit(&Bins::Quantiles(2), &[1.0, 2.0, f64::NAN, 3.0, 100.0]).unwrap();
    /// assert_eq!([cells.label(0), cells.label(1)], ["..2.5", "2.5.."]);
    /// ```
    pub fn fit(bins: &Bins, values: &[f64]) -> Option<Encoder> {
        fit_numbers(bins, &[values])
    }

    /// At most `k` cells for the numbers of several columns by k-means, with at most that many rounds
    /// after those on a sample. `None` if no row is complete.
    pub fn fit_centres(k: usize, columns: &[&[f64]], rounds: usize, seed: Seed) -> Option<Encoder> {
        centres(k, columns, rounds, seed)
    }
}

/// Cells for the numbers of one column, or of several with k-means; NaN where one is missing.
/// `None` if there are no numbers, or the cells do not depend on numbers alone.
pub(crate) fn fit_numbers(bins: &Bins, columns: &[&[f64]]) -> Option<Encoder> {
    let mut values: Vec<f64> = columns.first()?.iter().copied().filter(|x| x.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    let cuts = match bins {
        Bins::KMeans(k) if columns.len() > 1 => return centres(*k, columns, ROUNDS, SEED),
        Bins::KMeans(k) => {
            let found = centres(*k, columns, ROUNDS, SEED)?;
            let Encoder::Centres { centres, .. } = found else { return None };
            let mut middle: Vec<f64> = centres.iter().map(|centre| centre[0]).collect();
            middle.sort_by(f64::total_cmp);
            middle.windows(2).filter_map(|pair| between(&values, 0.5 * (pair[0] + pair[1]))).collect()
        }
        Bins::Quantiles(n) => quantiles(&values, *n),
        Bins::Uniform(n) => {
            let width = (high - low) / *n as f64;
            (1..*n).map(|i| rounded(low + width * i as f64, MOVED * width)).collect()
        }
        Bins::Cuts(cuts) => cuts.clone(),
        Bins::Auto | Bins::Category(_) => return None,
    };
    let mut cuts: Vec<f64> = cuts;
    cuts.dedup();
    Some(Encoder::Cuts { cuts, low, high })
}

/// Cells for names by how often each was seen; the most frequent first, in alphabetical order where
/// they are equally frequent.
pub(crate) fn fit_names(kept: Option<usize>, counts: &std::collections::BTreeMap<String, u64>) -> Encoder {
    let mut names: Vec<(&String, u64)> = counts.iter().map(|(name, &n)| (name, n)).collect();
    names.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let is_kept = |(i, (_, n)): &(usize, &(&String, u64))| kept.map_or(*n >= RARE, |kept| *i < kept);
    Encoder::Names { names: names.iter().enumerate().filter(is_kept).map(|(_, (name, _))| (*name).clone()).collect() }
}

/// At most `n` cells with about equally many of the sorted values: equal values share a cell.
fn quantiles(values: &[f64], n: usize) -> Vec<f64> {
    let mut cuts: Vec<f64> = Vec::new();
    for i in 1..n {
        let at = (values.len() * i).div_ceil(n).min(values.len() - 1);
        if let Some(cut) = between(values, values[at]).filter(|cut| cuts.last().is_none_or(|last| last < cut)) {
            cuts.push(cut);
        }
    }
    cuts
}

/// The shortest number that divides the sorted values as a cut just before the first that is at
/// least `x` does; `None` if that is the first of all.
fn between(values: &[f64], x: f64) -> Option<f64> {
    let at = values.partition_point(|&value| value < x);
    let (below, above) = (*values.get(at.checked_sub(1)?)?, *values.get(at)?);
    let middle = 0.5 * (below + above);
    let digits = (0..17).map(|digits| format!("{middle:.digits$e}").parse::<f64>().unwrap_or(above));
    digits.into_iter().find(|cut| below < *cut && *cut <= above).or(Some(above))
}

/// A number to six significant digits, unless that moves it by more than `most`.
fn rounded(x: f64, most: f64) -> f64 {
    let short = format!("{x:.5e}").parse().unwrap_or(x);
    if (short - x).abs() <= most { short } else { x }
}

/// k-means on columns of zero mean and unit variance; centres in ascending order.
fn centres(k: usize, columns: &[&[f64]], rounds: usize, seed: Seed) -> Option<Encoder> {
    let rows = columns.iter().map(|column| column.len()).min()?;
    let known: Vec<usize> = (0..rows).filter(|&row| columns.iter().all(|column| column[row].is_finite())).collect();
    if known.is_empty() {
        return None;
    }
    let n = known.len() as f64;
    let mean = |column: &&[f64]| known.iter().map(|&row| column[row] / n).sum::<f64>();
    let means: Vec<f64> = columns.iter().map(mean).collect();
    let scale = |(column, mean): (&&[f64], &f64)| {
        let variance = known.iter().map(|&row| (column[row] - mean).powi(2)).sum::<f64>() / n;
        if variance > 0.0 && variance.is_finite() { variance.sqrt() } else { 1.0 }
    };
    let scales: Vec<f64> = columns.iter().zip(&means).map(scale).collect();
    let standard = |(i, column): (usize, &&[f64]), row: usize| (column[row] - means[i]) / scales[i];
    let points: Vec<Vec<f64>> =
        known.iter().map(|&row| columns.iter().enumerate().map(|column| standard(column, row)).collect()).collect();
    let single: Vec<f32> = points.iter().flatten().map(|&x| x as f32).collect();
    let found = cluster::centres(&single, columns.len(), k, seed);
    let mut centres: Vec<Vec<f64>> =
        found.chunks_exact(columns.len()).map(|centre| centre.iter().map(|&x| f64::from(x)).collect()).collect();
    for _ in 0..rounds {
        if !improve(&mut centres, &points) {
            break;
        }
    }
    for centre in &mut centres {
        centre.iter_mut().enumerate().for_each(|(i, x)| *x = *x * scales[i] + means[i]);
    }
    centres.sort_by(|x, y| {
        x.iter().zip(y).map(|(x, y)| x.total_cmp(y)).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    Some(Encoder::Centres { scales, centres })
}

/// Moves each centre to the mean of the points nearest to it; false if none moves.
fn improve(centres: &mut [Vec<f64>], points: &[Vec<f64>]) -> bool {
    let mut sums = vec![(vec![0.0; points.first().map_or(0, Vec::len)], 0.0); centres.len()];
    for point in points {
        let distance = |centre: &Vec<f64>| -> f64 { centre.iter().zip(point).map(|(c, x)| (c - x).powi(2)).sum() };
        let nearest =
            centres.iter().map(distance).enumerate().fold((0, f64::INFINITY), |best, x| if x.1 < best.1 { x } else { best });
        let (sum, count) = &mut sums[nearest.0];
        sum.iter_mut().zip(point).for_each(|(s, x)| *s += x);
        *count += 1.0;
    }
    let mut has_moved = false;
    for (centre, (sum, count)) in centres.iter_mut().zip(sums).filter(|(_, (_, count))| *count > 0.0) {
        for (x, s) in centre.iter_mut().zip(sum) {
            has_moved |= *x != s / count;
            *x = s / count;
        }
    }
    has_moved
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rng::Seed;

    fn cuts(bins: &Bins, values: &[f64]) -> Vec<f64> {
        match fit_numbers(bins, &[values]).unwrap() {
            Encoder::Cuts { cuts, .. } => cuts,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn quantiles_hold_equally_many_values() {
        let mut rng = Seed(1).rng();
        let values: Vec<f64> = (0..1000).map(|_| rng.uniform().powi(3)).collect();
        let encoder = fit_numbers(&Bins::Quantiles(4), &[&values]).unwrap();
        let mut counts = [0; 4];
        values.iter().for_each(|&x| counts[encoder.cell_of_numbers(&[x]).unwrap()] += 1);
        assert_eq!(counts, [250; 4]);
    }

    #[test]
    fn cuts_have_few_digits_and_equal_values_share_a_cell() {
        assert_eq!(cuts(&Bins::Quantiles(2), &[1.0, 2.0, 3.0, 100.0]), [2.5]);
        assert_eq!(cuts(&Bins::Quantiles(4), &[0.0, 0.0, 0.0, 0.0, 0.0, 7.0]), [4.0]);
        assert_eq!(cuts(&Bins::Quantiles(3), &[5.0; 9]), [0.0; 0]);
        assert_eq!(cuts(&Bins::Uniform(4), &[0.0, 1.0]), [0.25, 0.5, 0.75]);
        assert_eq!(cuts(&Bins::Cuts(vec![3.0]), &[0.0, f64::NAN]), [3.0]);
        assert_eq!(fit_numbers(&Bins::Quantiles(3), &[&[f64::NAN]]), None);
    }

    #[test]
    fn means_of_separated_numbers_are_separated() {
        let values: Vec<f64> = (0..300).map(|i| f64::from(i % 3) * 10.0 + f64::from(i) / 300.0).collect();
        let cuts = cuts(&Bins::KMeans(3), &values);
        assert!(cuts.len() == 2 && (1.0..=10.0).contains(&cuts[0]) && (11.0..=20.0).contains(&cuts[1]), "{cuts:?}");
        let two = fit_numbers(&Bins::KMeans(3), &[&values, &values]).unwrap();
        assert_eq!((two.cells(), two.cell_of_numbers(&[10.5, 10.5])), (3, Some(1)));
    }

    #[test]
    fn frequent_names_are_kept() {
        let counts: BTreeMap<String, u64> = [("b", 9), ("a", 9), ("c", 4), ("d", 30)].map(|(k, n)| (k.to_string(), n)).into();
        let names = |kept| match fit_names(kept, &counts) {
            Encoder::Names { names } => names.join(" "),
            other => panic!("{other:?}"),
        };
        assert_eq!(names(None), "d a b");
        assert_eq!(names(Some(2)), "d a");
    }
}
