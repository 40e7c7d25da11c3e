//! How many cells the logs support: as many as improve the prediction of the next value on episodes
//! that were not counted.

use rustc_hash::FxHashMap;

use super::bins::Bins;
use super::encoder::Encoder;
use super::fit::fit_numbers;
use crate::math::Mean;

/// Rows that are used at most: more hardly change the choice.
pub(crate) const MOST_ROWS: usize = 1 << 16;
/// Numbers of cells that are tried.
const TRIED: [usize; 9] = [2, 3, 4, 5, 6, 8, 10, 14, 20];
/// Parts of the series, each of which is predicted from the counts of the others.
const FOLDS: usize = 5;
/// Combinations of cells of several columns that are divided automatically: at least so many, and
/// otherwise one for that many rows.
const LEAST_SYMBOLS: f64 = 12.0;
const ROWS_PER_SYMBOL: f64 = 30.0;
/// Blocks over which the error of a difference is estimated.
const BLOCKS: usize = 50;

/// A column as a sequence of numbers in the order of the logs; NaN where one is missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    pub(crate) values: Vec<f64>,
    /// The action of each row, as any number that is the same for the same action.
    pub(crate) actions: Vec<u64>,
    /// Where episodes begin.
    pub(crate) starts: Vec<usize>,
}

/// What is gained by predicting a column in that many cells from its last value and the action.
pub(crate) struct Gain {
    pub(crate) encoder: Encoder,
    /// Nats per row over the frequencies of the cells alone, for each block of rows.
    blocks: Vec<f64>,
}

impl Gain {
    pub(crate) fn total(&self) -> f64 {
        self.blocks.iter().sum()
    }
}

/// The gains for different numbers of cells. Numbers that give the same cells as fewer are left
/// out.
///
/// With cells b of a quantity x, ln P(b′ | b, a) − ln P(b′) is the log-likelihood ratio of the
/// density that is constant relative to the marginal one inside each cell. So gains of different
/// divisions of one column can be compared, which likelihoods of cells cannot.
pub(crate) fn gains(series: &Series) -> Vec<Gain> {
    let mut gains: Vec<Gain> = Vec::new();
    for &cells in &TRIED {
        let Some(encoder) = fit_numbers(&Bins::Quantiles(cells), &[&series.values]) else { continue };
        if gains.last().is_none_or(|last| last.encoder.cells() < encoder.cells()) {
            let cells: Vec<Option<usize>> = series.values.iter().map(|&x| encoder.cell_of_numbers(&[x])).collect();
            let blocks = held_out_gain(series, &cells, encoder.cells());
            gains.push(Gain { encoder, blocks });
        }
    }
    gains
}

/// The fewest cells that are not worse than the best number by more than one standard error.
pub(crate) fn choose(gains: &[Gain]) -> Option<usize> {
    let best = (0..gains.len()).fold(None, |best: Option<usize>, i| match best {
        Some(best) if gains[best].total() >= gains[i].total() => Some(best),
        _ => Some(i),
    })?;
    (0..=best).find(|&i| {
        let (mean, error) = difference(&gains[best].blocks, &gains[i].blocks);
        mean <= error
    })
}

/// The mean difference between two gains of a block, and its standard error.
fn difference(one: &[f64], other: &[f64]) -> (f64, f64) {
    let all: Mean = one.iter().zip(other).map(|(x, y)| x - y).collect();
    (all.mean(), all.sd() / all.count().sqrt())
}

/// What whole numbers are, by what predicts held-out rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WholeNumbers {
    /// The next number is near the last one: their order says more than each of them does.
    Ordered,
    /// Each number is a name: what follows depends on which it is, not on its size.
    Names,
    /// Neither says anything about the next number.
    Unclear,
}

/// Whether whole numbers are ordered or names. Either must predict better than chance, and order
/// better than names, by two standard errors.
pub(crate) fn whole_numbers(series: &Series) -> WholeNumbers {
    let mut places: FxHashMap<u64, usize> = FxHashMap::default();
    let mut place = |x: f64| {
        let next = places.len();
        *places.entry(x.to_bits()).or_insert(next)
    };
    let cells: Vec<Option<usize>> = series.values.iter().map(|&x| x.is_finite().then(|| place(x))).collect();
    let by_name = held_out_gain(series, &cells, places.len());
    let gains = gains(series);
    let Some(by_order) = choose(&gains).map(|i| &gains[i].blocks) else { return WholeNumbers::Unclear };
    let is_more = |one: &[f64], other: &[f64]| {
        let (mean, error) = difference(one, other);
        mean > 2.0 * error
    };
    let nothing = vec![0.0; by_order.len()];
    match (is_more(by_order, &nothing) && is_more(by_order, &by_name), is_more(&by_name, &nothing)) {
        (true, _) => WholeNumbers::Ordered,
        (false, true) => WholeNumbers::Names,
        (false, false) => WholeNumbers::Unclear,
    }
}

/// Cells for several columns at once. Each gets as many as predict its next value best, but all
/// combinations of cells are at most as many as `rows` support: cells go where they gain most.
pub(crate) fn fit_automatically(columns: &[&Series], rows: f64) -> Vec<Option<Encoder>> {
    let gains: Vec<Vec<Gain>> = columns.iter().map(|series| gains(series)).collect();
    let wanted: Vec<Option<usize>> = gains.iter().map(|gains| choose(gains)).collect();
    let most = (rows / ROWS_PER_SYMBOL).max(LEAST_SYMBOLS).ln();
    let mut taken: Vec<usize> = vec![0; columns.len()];
    let cells = |column: usize, i: usize| (gains[column][i].encoder.cells() as f64).ln();
    loop {
        let used: f64 = (0..columns.len()).filter(|&c| wanted[c].is_some()).map(|c| cells(c, taken[c])).sum();
        let step = |c: usize| {
            let next = taken[c] + 1;
            let more = cells(c, next) - cells(c, next - 1);
            let gain = gains[c][next].total() - gains[c][next - 1].total();
            (wanted[c].is_some_and(|wanted| next <= wanted) && used + more <= most).then(|| (c, gain / more))
        };
        let is_open = |c: &usize| wanted[*c].is_some_and(|wanted| taken[*c] < wanted);
        let steps = (0..columns.len()).filter(is_open).filter_map(step);
        let best = steps
            .fold(None, |best: Option<(usize, f64)>, next| if best.is_some_and(|b| b.1 >= next.1) { best } else { Some(next) });
        match best {
            Some((column, _)) => taken[column] += 1,
            None => break,
        }
    }
    let encoder = |(c, mut gains): (usize, Vec<Gain>)| (!gains.is_empty()).then(|| gains.swap_remove(taken[c]).encoder);
    gains.into_iter().enumerate().map(encoder).collect()
}

/// For each block of rows: Σ ln P(b′ | b, a) − ln P(b′), with counts of the other folds.
fn held_out_gain(series: &Series, cells: &[Option<usize>], count: usize) -> Vec<f64> {
    let mut is_start = vec![false; cells.len() + 1];
    series.starts.iter().for_each(|&row| is_start[row] = true);
    let pairs: Vec<(usize, (u64, usize, usize))> = (1..cells.len())
        .filter(|&row| !is_start[row])
        .filter_map(|row| Some((row, (series.actions.get(row).copied().unwrap_or(0), cells[row - 1]?, cells[row]?))))
        .collect();
    let per_fold = pairs.len().div_ceil(FOLDS).max(1);
    let per_block = pairs.len().div_ceil(BLOCKS).max(1);
    let mut blocks = vec![0.0; BLOCKS];
    for fold in 0..FOLDS {
        let held_out = fold * per_fold..((fold + 1) * per_fold).min(pairs.len());
        let mut counts = Counts::new(count);
        pairs.iter().enumerate().filter(|(i, _)| !held_out.contains(i)).for_each(|(_, (_, pair))| counts.add(*pair));
        for i in held_out {
            blocks[i / per_block] += counts.gain(pairs[i].1);
        }
    }
    blocks
}

/// Counts of cells: alone, after a cell, and after an action and a cell.
struct Counts {
    alone: Vec<f64>,
    all: f64,
    after: Vec<Followers>,
    after_action: FxHashMap<(u64, usize), Followers>,
    cells: usize,
}

#[derive(Clone, Default)]
struct Followers {
    counts: FxHashMap<usize, f64>,
    all: f64,
}

impl Followers {
    fn add(&mut self, cell: usize) {
        *self.counts.entry(cell).or_insert(0.0) += 1.0;
        self.all += 1.0;
    }

    /// Witten–Bell: the counts, and `prior` with the weight of the number of distinct followers.
    fn smooth(&self, cell: usize, prior: f64) -> f64 {
        let types = self.counts.len() as f64;
        match self.all > 0.0 {
            true => (self.counts.get(&cell).copied().unwrap_or(0.0) + types * prior) / (self.all + types),
            false => prior,
        }
    }
}

impl Counts {
    fn new(cells: usize) -> Counts {
        Counts {
            alone: vec![0.0; cells],
            all: 0.0,
            after: vec![Followers::default(); cells],
            after_action: FxHashMap::default(),
            cells,
        }
    }

    fn add(&mut self, (action, before, cell): (u64, usize, usize)) {
        self.alone[cell] += 1.0;
        self.all += 1.0;
        self.after[before].add(cell);
        self.after_action.entry((action, before)).or_default().add(cell);
    }

    fn gain(&self, (action, before, cell): (u64, usize, usize)) -> f64 {
        let alone = (self.alone[cell] + 0.5) / (self.all + 0.5 * self.cells as f64);
        let after = self.after[before].smooth(cell, alone);
        let p = self.after_action.get(&(action, before)).map_or(after, |followers| followers.smooth(cell, after));
        p.ln() - alone.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    fn series(n: usize, next: impl FnMut(f64) -> f64) -> Series {
        let mut next = next;
        let mut values = vec![0.0];
        while values.len() < n {
            values.push(next(values[values.len() - 1]));
        }
        Series { values, actions: Vec::new(), starts: vec![0] }
    }

    fn chosen(series: &Series) -> usize {
        let gains = gains(series);
        gains[choose(&gains).unwrap()].encoder.cells()
    }

    #[test]
    fn noise_gets_the_fewest_cells_and_a_smooth_walk_many() {
        let mut rng = Seed(1).rng();
        let noise = series(4000, |_| rng.uniform());
        assert_eq!(chosen(&noise), TRIED[0]);
        let mut rng = Seed(2).rng();
        let smooth = series(4000, |x| 0.95 * x + 0.1 * (rng.uniform() - 0.5));
        assert!(chosen(&smooth) >= 6, "{}", chosen(&smooth));
    }

    #[test]
    fn few_rows_support_fewer_cells_than_many() {
        let walk = |n: usize| {
            let mut rng = Seed(3).rng();
            series(n, |x| 0.9 * x + rng.uniform() - 0.5)
        };
        assert!(chosen(&walk(80)) < chosen(&walk(20_000)), "{} {}", chosen(&walk(80)), chosen(&walk(20_000)));
    }

    #[test]
    fn two_levels_need_no_more_than_two_cells() {
        let mut rng = Seed(4).rng();
        // A level that stays with probability 0.9, measured with noise that does not persist.
        let mut level = 0.0;
        let values = (0..6000).map(|_| {
            if rng.uniform() < 0.1 {
                level = 10.0 - level;
            }
            level + rng.uniform()
        });
        let levels = Series { values: values.collect(), actions: Vec::new(), starts: vec![0] };
        assert_eq!(chosen(&levels), 2);
    }

    #[test]
    fn whole_numbers_are_ordered_if_the_next_is_near_and_names_if_it_depends_on_which_it_is() {
        type Next = Box<dyn FnMut(f64, &mut crate::rng::Rng) -> f64>;
        let of = |n: usize, mut next: Next| {
            let mut rng = Seed(5).rng();
            whole_numbers(&series(n, |x| next(x, &mut rng)))
        };
        // A random walk over about a thousand numbers.
        let walk = |x: f64, rng: &mut crate::rng::Rng| (0.97 * x + 120.0 * (rng.uniform() - 0.5)).round();
        assert_eq!(of(3000, Box::new(walk)), WholeNumbers::Ordered);
        // Forty pages, each of which links to two others anywhere.
        let links = |x: f64, rng: &mut crate::rng::Rng| ((x * 17.0 + 5.0 + 23.0 * rng.below(2) as f64) % 41.0).floor();
        assert_eq!(of(3000, Box::new(links)), WholeNumbers::Names);
        let noise = |_: f64, rng: &mut crate::rng::Rng| rng.below(500) as f64;
        assert_eq!(of(3000, Box::new(noise)), WholeNumbers::Unclear);
    }

    #[test]
    fn several_columns_share_what_the_rows_support() {
        let walk = |seed: u64| {
            let mut rng = Seed(seed).rng();
            let mut x = 0.0;
            let values = (0..3000).map(|_| {
                x = 0.95 * x + 0.1 * (rng.uniform() - 0.5);
                x
            });
            Series { values: values.collect(), actions: Vec::new(), starts: vec![0] }
        };
        let walks = [walk(1), walk(2), walk(3)];
        let all: Vec<&Series> = walks.iter().collect();
        let symbols =
            |rows: f64| -> usize { fit_automatically(&all, rows).iter().map(|e| e.as_ref().unwrap().cells()).product() };
        assert!(symbols(3000.0) <= 100 && symbols(3000.0) > 12, "{}", symbols(3000.0));
        assert!(symbols(f64::INFINITY) > 200, "{}", symbols(f64::INFINITY));
    }
}
