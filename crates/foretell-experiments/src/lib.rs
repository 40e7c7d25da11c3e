//! What the experiments share: statistics over seeds.

use foretell::returns::Mean;

/// Numbers of several seeds.
pub struct OverSeeds {
    /// Their mean.
    pub mean: f64,
    /// Half the 95 % interval of the mean.
    pub half: f64,
    /// Their standard deviation.
    pub sd: f64,
    /// The least of them.
    pub least: f64,
    /// The largest of them.
    pub largest: f64,
}

impl FromIterator<f64> for OverSeeds {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> OverSeeds {
        let numbers: Vec<f64> = numbers.into_iter().collect();
        let mean: Mean = numbers.iter().copied().collect();
        OverSeeds {
            mean: mean.mean(),
            half: t95(numbers.len()) * mean.sd() / (numbers.len() as f64).sqrt(),
            sd: mean.sd(),
            least: numbers.iter().copied().fold(f64::INFINITY, f64::min),
            largest: numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// 97.5 % quantile of Student's t with one degree of freedom less than there are seeds.
fn t95(seeds: usize) -> f64 {
    match seeds {
        2 => 12.706,
        5 => 2.776,
        10 => 2.262,
        _ => 1.96,
    }
}
