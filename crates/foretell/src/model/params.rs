//! Parameters of learning: declared once, with their meaning, their presets and their checks.

use serde::{Deserialize, Serialize};

use super::projection::Projection;
use crate::error::{Error, Result};
use crate::parameters;

/// Which parts of the past are histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum History {
    /// The whole past, ao_1 … ao_t [H14 §3.2.1, k = 0].
    Prefix,
    /// The last pairs, at most `history_length` of them (Wolfe et al. 2005): every step of an
    /// episode is used for training.
    Suffix,
}

/// What is known about the initial state of episodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Start {
    /// All episodes start from the same distribution: c₁ is the state after the null history.
    Fixed,
    /// Episodes start at arbitrary points: c_* is the mean state over all histories.
    Mixed,
}

/// How operators are regressed on the compressed moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Regression {
    /// The pseudo-inverse V̂Ŝ⁻¹ of the thin SVD of Σ̂_TH [H14 §3.2.1].
    PseudoInverse,
    /// Compressed canonical correlations, then two-stage least squares with a ridge.
    TwoStage,
}

/// At which steps an episode is cut into a history and a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Cuts {
    /// Where the longest test still fits, so that all sums estimate the same quantities.
    Complete,
    /// At every step, as in the paper: late histories have only short tests.
    Ragged,
}

/// How to correct for the behaviour policy that chose the logged actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Weighting {
    /// No correction: the state is that of the system under the behaviour policy.
    #[default]
    None,
    /// Weight the next step by 1/(|A|·π(a|h)), but not the steps of tests. Outcomes of rare actions
    /// then count as much as those of frequent ones. The state is still that under the behaviour
    /// policy, so the rank must be large enough for it. Needs action probabilities in the logs.
    Next,
    /// Weight the next step and the steps of tests by 1/(|A|·π(a|h)), as if actions had been
    /// uniformly random. The state is then that of the system alone. The variance grows with the
    /// length of tests. Needs action probabilities in the logs.
    Propensity,
}

/// Largest projection dimension: a covariance then takes 2 GiB.
const LARGEST_DIM: usize = 1 << 14;
/// Longest tests and histories, in steps: no log shows more than a few steps of memory at once, and
/// time grows with their length.
const LONGEST: usize = 10_000;
/// Longest context of an n-gram, in steps: the counts of all lengths together must have places below
/// 2³².
pub(crate) const MOST_NGRAM: usize = 1000;

parameters! {
    /// Parameters of learning. [`LearnParams::default`] predicts best; [`LearnParams::paper`] is
    /// the published recipe.
    LearnParams,
    /// Changes to a preset: one optional value for each field of [`LearnParams`].
    LearnOverrides, "Learning",
    /// Projection of tests
    test_projection: Projection,
    /// Projection of histories
    history_projection: Projection,
    /// d_T, rows of Φ_T, plus one for the null test (ignored by identity)
    test_dim: usize,
    /// d_H, rows of Φ_H, plus one each for the start and the null history (ignored by identity)
    history_dim: usize,
    /// Longest test, in steps
    max_test_length: usize,
    /// Which parts of the past are histories
    history: History,
    /// Longest suffix history, in steps (ignored for prefix histories)
    history_length: usize,
    /// At which steps an episode is cut into a history and a test
    cuts: Cuts,
    /// What is known about the initial state of episodes
    start: Start,
    /// d′, dimension of the predictive state
    rank: usize,
    /// Singular values below this fraction of the largest are dropped
    tolerance: f64,
    /// How operators are regressed
    regression: Regression,
    /// Ridge of the whitening, in units of the mean eigenvalue (two-stage only)
    whitening_ridge: f64,
    /// Ridge of the second stage, in units of the mean eigenvalue (two-stage only)
    ridge: f64,
    /// Smallest probability of an observation seen in training, before normalisation
    floor: f64,
    /// Longest context of the back-off n-gram that is counted alongside the model, in steps
    ngram_length: usize,
    /// Weight of the n-gram in predictions, between 0 and 1
    mix: f64,
    /// Whether rewards are part of observations, for rewards that carry information of their own
    #[serde(default)]
    observe_reward: bool = "true",
    /// How to correct for the behaviour policy that chose the logged actions
    #[serde(default)]
    weighting: Weighting,
    /// Seed of the projections
    seed: u64,
}

impl Default for LearnParams {
    /// Suffix histories, signed hashing, compressed CCA and two-stage regression. The ingredients
    /// are the paper's; the predictions are far better.
    fn default() -> Self {
        LearnParams {
            test_projection: Projection::SignedHash,
            history_projection: Projection::SignedHash,
            test_dim: 1024,
            history_dim: 1024,
            max_test_length: 2,
            history: History::Suffix,
            history_length: 3,
            cuts: Cuts::Complete,
            start: Start::Fixed,
            rank: 40,
            tolerance: 1e-6, // [H14 §6.3]
            regression: Regression::TwoStage,
            whitening_ridge: 0.03,
            ridge: 0.01,
            floor: 1e-4,
            ngram_length: 3,
            mix: 0.0,
            observe_reward: false,
            weighting: Weighting::None,
            seed: 0,
        }
    }
}

impl LearnParams {
    /// The published recipe [H14 §3.2.1, §6.3]: prefix histories, all tests up to length 7, thin
    /// SVD, pseudo-inverse, d′ = 5.
    pub fn paper() -> Self {
        LearnParams {
            test_projection: Projection::Spherical,
            history_projection: Projection::Spherical,
            test_dim: 75,
            history_dim: 75,
            max_test_length: 7,
            history: History::Prefix,
            rank: 5,
            regression: Regression::PseudoInverse,
            ..LearnParams::default()
        }
    }

    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        let positive =
            |name, value: usize| if value == 0 { Err(Error::parameter(name, value, "must be at least 1")) } else { Ok(()) };
        positive("test_dim", self.test_dim)?;
        positive("history_dim", self.history_dim)?;
        for (name, dim) in [("test_dim", self.test_dim), ("history_dim", self.history_dim)] {
            if dim > LARGEST_DIM {
                return Err(Error::parameter(name, dim, format!("must be at most {LARGEST_DIM}: moments are square in it")));
            }
        }
        positive("max_test_length", self.max_test_length)?;
        positive("rank", self.rank)?;
        let lengths = [("max_test_length", self.max_test_length, LONGEST), ("history_length", self.history_length, LONGEST)];
        for (name, length, most) in lengths.into_iter().chain([("ngram_length", self.ngram_length, MOST_NGRAM)]) {
            if length > most {
                return Err(Error::parameter(name, length, format!("must be at most {most}")));
            }
        }
        if self.rank > 2 * LARGEST_DIM {
            return Err(Error::parameter("rank", self.rank, format!("must be at most {}", 2 * LARGEST_DIM)));
        }
        if self.history == History::Suffix {
            positive("history_length", self.history_length)?;
        }
        let share = |name, value: f64, below: f64| {
            let fits = (0.0..below).contains(&value);
            if fits { Ok(()) } else { Err(Error::parameter(name, value, format!("must be at least 0 and below {below}"))) }
        };
        share("tolerance", self.tolerance, 1.0)?;
        share("whitening_ridge", self.whitening_ridge, f64::INFINITY)?;
        share("ridge", self.ridge, f64::INFINITY)?;
        share("floor", self.floor, 0.1)?;
        if !(0.0..=1.0).contains(&self.mix) {
            return Err(Error::parameter("mix", self.mix, "must be between 0 and 1"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_overrides_apply() {
        LearnParams::default().validate().unwrap();
        LearnParams::paper().validate().unwrap();
        let overrides = LearnOverrides { rank: Some(7), ..Default::default() };
        assert_eq!(overrides.apply(LearnParams::paper()), LearnParams { rank: 7, ..LearnParams::paper() });
    }

    #[test]
    fn impossible_values_are_named() {
        let message = |params: LearnParams| params.validate().unwrap_err().to_string();
        assert_eq!(message(LearnParams { rank: 0, ..Default::default() }), "rank = 0: must be at least 1");
        assert_eq!(message(LearnParams { mix: 1.5, ..Default::default() }), "mix = 1.5: must be between 0 and 1");
        assert_eq!(
            message(LearnParams { floor: f64::NAN, ..Default::default() }),
            "floor = NaN: must be at least 0 and below 0.1"
        );
    }

    #[test]
    fn unknown_fields_are_refused() {
        let error = serde_json::from_str::<LearnOverrides>(r#"{"rnak": 5}"#).unwrap_err().to_string();
        assert!(error.contains("rnak"), "{error}");
    }
}
