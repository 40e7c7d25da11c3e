//! Search for the parameters that predict best: the paper's practical advice [H14 §7.1.1], several
//! phases of grid search that begin with exponentially separated values, by the likelihood of
//! held-out episodes.
//!
//! Candidates share what they can: episodes, alphabets and n-grams are read and counted once; the
//! moments of one configuration serve all ranks and all weights of the n-gram, and each part of the
//! logs is summed once for all folds. Many candidates are compared on one fold, the few best and
//! the base on all. All comparisons with the base are on the same episodes.

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
pub use sweep::SweepScore;
pub use value::{CandidateValue, Evaluation, Values, most_valuable};

/// The default number of folds.
pub const FOLDS: usize = 5;
/// The base is chosen unless another is better by this many standard errors of the difference: the
/// best of many is partly chance.
pub const STANDARD_ERRORS: f64 = 2.0;

/// The phases of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Exponentially spaced values.
    Coarse,
    /// The best lengths with the best projections and dimensions.
    Combined,
    /// Values around the best.
    Finer,
    /// The best few and the base, on all folds.
    Final,
}

/// A candidate and its held-out log-likelihood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its parameters, with the weight of the n-gram that was best.
    pub params: LearnParams,
    /// The phase in which it was scored. The last phase scores on all folds, the others on a sample
    /// of the first.
    pub phase: Phase,
    /// Mean log-likelihood of a held-out step.
    pub nats: f64,
    /// Its difference to that of the base on the same episodes.
    pub gain: f64,
    /// Standard error of the gain.
    pub error: f64,
    /// Episodes held out.
    pub episodes: usize,
}

/// A configuration that was not scored, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkippedCandidate {
    /// Its parameters; the rank is irrelevant.
    pub params: LearnParams,
    /// The reason.
    pub why: String,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The choice: the best, or the base if none is significantly better.
    pub chosen: Candidate,
    /// The parameters that the search began with.
    pub base: Candidate,
    /// All candidates, each with its best weight of the n-gram; those of the last phase first, and
    /// the best of each phase first.
    pub tried: Vec<Candidate>,
    /// Configurations that were not scored.
    pub untried: Vec<SkippedCandidate>,
    /// Number of episodes used.
    pub episodes: u64,
    /// Number of steps used.
    pub steps: u64,
    /// The length of the longest episode.
    pub longest: usize,
    /// Bad episodes that were dropped.
    pub skipped: u64,
    /// Whether the logs contain more than was used.
    pub is_cut: bool,
    /// Parts of the logs, each held out in turn.
    pub folds: usize,
}

/// The progress of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchProgress {
    /// The phase under way.
    pub phase: Phase,
    /// Configurations done in it.
    pub done: usize,
    /// Configurations in it.
    pub of: usize,
    /// The largest gain over the base so far, nats per step.
    pub gain: f64,
}

/// A search for good parameters.
///
/// ```
/// use foretell::judge::search::{Search, Space};
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

    /// Divides the logs into that many folds; the default is [`FOLDS`].
    pub fn folds(self, folds: usize) -> Search<'a> {
        Search { folds, ..self }
    }

    /// Limits the time: `spent` returns the share of it that has passed. Candidates are scored in
    /// order of their cost, so that the most expensive ones are omitted. The result then depends on
    /// the clock.
    pub fn budget(self, spent: &'a mut (dyn FnMut() -> f64 + Send)) -> Search<'a> {
        Search { spent: Some(spent), ..self }
    }

    /// Reports progress after every few configurations.
    pub fn progress(self, progress: &'a mut (dyn FnMut(SearchProgress) + Send)) -> Search<'a> {
        Search { progress: Some(progress), ..self }
    }

    /// Saves scores in a checkpoint, and does not repeat those saved there.
    pub fn checkpoint(self, checkpoint: &'a mut Checkpoint) -> Search<'a> {
        Search { checkpoint: Some(checkpoint), ..self }
    }

    /// Runs the search on these logs.
    pub fn run(self, logs: &Logs) -> Result<Found> {
        self.base.validate()?;
        let folds = Folds::read(logs, &self.base, self.folds)?;
        run::Run::new(self, &folds).found()
    }
}
