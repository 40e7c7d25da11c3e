//! Search for the parameters that predict best: the paper's practical advice [H14 §7.1.1], several phases of grid search that begin
//! with exponentially separated values, by the likelihood of held-out episodes.
//!
//! Candidates share what they can: episodes, alphabets and n-grams are read and counted once; the moments of one configuration
//! serve all ranks and all weights of the n-gram, and each part of the logs is summed once for all folds. Many candidates are
//! compared on one fold, the few best and the base on all. All comparisons with the base are on the same episodes.

mod folds;
mod grid;
mod run;
mod sweep;
#[cfg(test)]
mod tests;
mod value;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::log::Logs;
use crate::model::LearnParams;
use crate::store::Checkpoint;

pub use folds::{Folds, Held};
pub use grid::Space;
pub use sweep::Swept;
pub use value::{Judge, Valued, Values, most_valuable};

/// Parts into which logs are divided, if nothing is said.
pub const FOLDS: usize = 5;
/// The base is taken unless another is better by so many standard errors of the difference: the best of many is partly lucky.
pub const STANDARD_ERRORS: f64 = 2.0;

/// The phases of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Exponentially spaced values.
    Coarse,
    /// The best lengths with the best projections and dimensions.
    Combined,
    /// Around the best.
    Finer,
    /// The best few and the base, on all folds.
    Final,
}

/// A candidate and how well it predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Its parameters, with the weight of the n-gram that was best.
    pub params: LearnParams,
    /// When it was tried. Numbers of the last phase are of all folds, those of others of a sample of the first.
    pub phase: Phase,
    /// Mean log-likelihood of a held-out step.
    pub nats: f64,
    /// By how much that is more than the base has on the same episodes.
    pub gain: f64,
    /// Standard error of the gain.
    pub error: f64,
    /// Episodes held out.
    pub episodes: usize,
}

/// A configuration that was not tried, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Untried {
    /// Its parameters; the rank has no meaning.
    pub params: LearnParams,
    /// Why not.
    pub why: String,
}

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// What was chosen: the best, or the base where nothing is clearly better.
    pub chosen: Tried,
    /// The parameters that the search began with.
    pub base: Tried,
    /// All candidates, each with its best weight of the n-gram; those of the last phase first, and the best of each phase first.
    pub tried: Vec<Tried>,
    /// Configurations that were not tried.
    pub untried: Vec<Untried>,
    /// Episodes that were searched with.
    pub episodes: u64,
    /// Steps that were searched with.
    pub steps: u64,
    /// The length of the longest episode.
    pub longest: usize,
    /// Bad episodes that were dropped.
    pub skipped: u64,
    /// Whether the logs are longer than what was searched with.
    pub is_cut: bool,
    /// Parts of the logs, each held out in turn.
    pub folds: usize,
}

/// How far a search is.
#[derive(Clone, Copy, Debug)]
pub struct SearchProgress {
    /// The phase under way.
    pub phase: Phase,
    /// Configurations done in it.
    pub done: usize,
    /// Of how many.
    pub of: usize,
    /// The largest gain over the base so far, nats per step.
    pub gain: f64,
}

/// A search for good parameters.
///
/// ```
/// use foretell::search::{Search, Space};
/// use foretell::{LearnOverrides, LearnParams, Logs, Seed, domains, learn};
///
/// let tiger = domains::get("tiger")?;
/// let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 200, 20, Seed(1)).collect());
/// let base = LearnParams { test_dim: 32, history_dim: 32, ..LearnParams::default() };
/// let fixed = LearnOverrides { test_dim: Some(32), history_dim: Some(32), max_test_length: Some(2), ..LearnOverrides::default() };
///
/// let found = Search::new(&base, Space::around(&base, &fixed)).run(&logs)?;
/// assert!(found.chosen.gain >= 0.0);
/// let model = learn(&logs, &found.chosen.params)?;
/// # assert_eq!(model.trained_on().0, 200);
/// # Ok::<(), foretell::Error>(())
/// ```
pub struct Search<'a> {
    base: LearnParams,
    space: Space,
    folds: usize,
    spent: Option<&'a mut (dyn FnMut() -> f64 + Send)>,
    progress: Option<&'a mut (dyn FnMut(SearchProgress) + Send)>,
    checkpoint: Option<&'a mut Checkpoint>,
}

impl<'a> Search<'a> {
    /// A search that begins with the base.
    pub fn new(base: &LearnParams, space: Space) -> Search<'a> {
        Search { base: base.clone(), space, folds: FOLDS, spent: None, progress: None, checkpoint: None }
    }

    /// Divides the logs into so many parts: [`FOLDS`] if nothing is said.
    pub fn folds(self, folds: usize) -> Search<'a> {
        Search { folds, ..self }
    }

    /// Ends in time: `spent` tells which share of it is gone. Candidates are tried in the order of what they cost, so that those left out
    /// are the dearest. What is tried then depends on the clock.
    pub fn budget(self, spent: &'a mut (dyn FnMut() -> f64 + Send)) -> Search<'a> {
        Search { spent: Some(spent), ..self }
    }

    /// Tells how far the search is, after every few configurations.
    pub fn progress(self, progress: &'a mut (dyn FnMut(SearchProgress) + Send)) -> Search<'a> {
        Search { progress: Some(progress), ..self }
    }

    /// Leaves what was tried in a checkpoint, and does not try again what is there.
    pub fn checkpoint(self, checkpoint: &'a mut Checkpoint) -> Search<'a> {
        Search { checkpoint: Some(checkpoint), ..self }
    }

    /// Searches with these logs.
    pub fn run(self, logs: &Logs) -> Result<Found> {
        self.base.validate()?;
        let folds = Folds::read(logs, &self.base, self.folds)?;
        run::Run::new(self, &folds).found()
    }
}
