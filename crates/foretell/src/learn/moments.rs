//! The sufficient statistics of learning: sums over the cuts of logs. The sums of other logs can be
//! added to them.

mod file;
mod merge;

pub(crate) use file::{read_episodes, read_operators, write_episodes, write_operators};

use faer::Mat;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::assemble::Parts;
use super::bases::{self, Bases, Wide, bases};
use super::features::{Batch, Features, NULL_TEST};
use super::operators::{Operator, Operators, ScaledBases};
use super::pairs::{PerPair, array_size};
use super::source::empty_batch;
use super::sums::{Accumulator, Wanted};
use super::survey::Survey;
use crate::data::{ActionObservation, Alphabet, CutRule, End, Episodes, Propensities};
use crate::error::{Error, Result};
use crate::math::{Svd, brand};
use crate::model::{Cuts, LearnParams, Model, Regression, Weighting};
use crate::rng::Seed;

/// Largest dimension at which two-stage regression may hold a covariance of uncompressed features
/// (1 GiB each).
const LARGEST_COVARIANCE: usize = 11_585;
/// Limit, in bytes, up to which moments of pairs are held during learning even if they are not to
/// be kept.
const MOST_HELD: usize = 64 << 20;
/// Most steps of boundary episodes that are kept (32 MiB).
const MOST_BOUNDARY_STEPS: usize = 1 << 22;

/// What is kept so that other logs can be added later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    #[default]
    Nothing,
    /// The moments of every pair if they fit into memory, otherwise compressed ones.
    Fitting,
    /// The moments of every pair: it is an error if they do not fit.
    Exact,
    /// Operators in bases wider than the model's. Components outside these bases are lost.
    Compressed,
}

/// Sums over logs, from which a model is computed and to which those of other logs can be added.
///
/// Exact moments hold Σ̂_{T,ao,H} of every pair. They give the same model as learning from all logs
/// at once. Compressed moments hold operators in bases twice as wide as the model's, which each
/// update transforms into its own bases [H14 §3.2.2]. Components outside these bases are lost.
///
/// ```
/// use foretell::{Keep, LearnParams, Learner, Logs, Seed, domains, learn};
///
/// let tiger = domains::get("tiger")?;
/// let logs = |seed| Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 500, 20, Seed(seed)).collect());
/// let params = LearnParams { rank: 3, ..LearnParams::default() };
/// let learner = || Learner::new(&params).keep(Keep::Exact);
///
/// let mut moments = learner().learn(&logs(1))?.moments.expect("they are kept");
/// moments.merge(learner().learn(&logs(2))?.moments.expect("they are kept"))?;
/// assert_eq!(moments.model()?.trained_on().0, 1000);
/// # Ok::<(), foretell::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Moments {
    pub(crate) params: LearnParams,
    pub(crate) survey: Survey,
    pub(crate) features: Features,
    /// Which cuts are summed over.
    pub(crate) rule: CutRule,
    /// Sums over all logs; over new logs alone where Σ̂_TH is held as factors.
    pub(crate) sums: Accumulator,
    pub(crate) kept: OperatorStore,
    /// Compressed moments have this many times d′ directions.
    pub(crate) width: usize,
    pub(crate) boundary: BoundaryEpisodes,
}

/// What is kept in order to compute operators.
#[derive(Clone, Debug)]
pub(crate) enum OperatorStore {
    Nothing,
    PerPair(PerPair),
    Wide(Box<WideOperators>),
}

/// Operators in wide bases.
#[derive(Clone, Debug)]
pub(crate) struct WideOperators {
    pub(crate) wide: Wide,
    pub(crate) operators: FxHashMap<ActionObservation, Operator>,
    /// Σ̂_TH in these bases, where it is not held in full.
    pub(crate) factors: Option<Factors>,
}

/// Ŝ, and Σ̂_H, as sums over cuts.
#[derive(Clone, Debug)]
pub(crate) struct Factors {
    pub(crate) s: Vec<f64>,
    pub(crate) histories: Vec<f64>,
}

/// Terminated episodes whose last cuts are used or not depending on the longest truncated episode
/// (see [`CutRule`]), which other logs may change.
#[derive(Clone, Debug)]
pub(crate) struct BoundaryEpisodes {
    pub(crate) episodes: Episodes,
    /// There were too many to keep: from then on the rule does not change.
    pub(crate) is_full: bool,
}

/// Bases, and the parts of the model that do not need operators.
pub(crate) struct Solution {
    pub(crate) bases: Bases,
    initial: Mat<f64>,
    normalizer: Mat<f64>,
    /// The factor that turns sums into probabilities.
    scale: f64,
    factors: Option<Factors>,
}

impl Moments {
    /// Empty moments over an alphabet that may already have symbols.
    pub(crate) fn new(params: &LearnParams, alphabet: Alphabet) -> Moments {
        let features = Features::new(params, &alphabet);
        let survey = Survey::new(alphabet, params.ngram_length);
        Moments {
            sums: Accumulator::new(&features, wanted(params)),
            rule: survey.rule(params),
            survey,
            features,
            kept: OperatorStore::Nothing,
            width: bases::WIDTH,
            boundary: BoundaryEpisodes::new(params.weighting),
            params: params.clone(),
        }
    }

    /// The parameters of the model.
    pub fn params(&self) -> &LearnParams {
        &self.params
    }

    /// The names of actions and observations seen in training.
    pub fn alphabet(&self) -> &Alphabet {
        &self.survey.alphabet
    }

    /// Number of episodes and steps seen in training.
    pub fn trained_on(&self) -> (u64, u64) {
        (self.survey.episodes, self.survey.steps)
    }

    /// How probable the logged actions were, where all logs record it.
    pub fn propensities(&self) -> Option<Propensities> {
        self.survey.overlap.propensities(self.alphabet().actions().len())
    }

    /// Whether they hold the moments of every pair.
    pub fn is_exact(&self) -> bool {
        matches!(self.kept, OperatorStore::PerPair(_))
    }

    /// The length of truncated episodes that is used as time limit although longer ones were seen
    /// later; `None` if the longest is used.
    pub fn stale_limit(&self) -> Option<Option<usize>> {
        (self.rule != self.survey.rule(&self.params)).then_some(self.rule.limit)
    }

    /// Goes from the survey of all logs to the sums over the new ones. Alphabet, rule and features
    /// are fixed from here on. Memory is reserved for the moments of pairs if they are to be kept
    /// or are small. Returns which cuts of earlier logs change, and whether the moments of pairs
    /// fit into memory.
    pub(crate) fn freeze(&mut self, keep: Keep, memory: usize) -> Result<(Adjustment, bool)> {
        let pairs = self.survey.pairs();
        self.features.extend_to(&self.survey.alphabet);
        let features = &self.features;
        // Arrays are allocated in full, maps grow.
        let arrays = array_size(features).map(|size| size.saturating_mul(8 * pairs.len()));
        let fits = arrays.is_none_or(|bytes| bytes <= memory);
        if matches!(self.kept, OperatorStore::Nothing) {
            let is_hashed = features.tests.is_hash() && features.histories.is_hash();
            let is_small = is_hashed && arrays.is_some_and(|bytes| bytes <= MOST_HELD);
            let is_held = match keep {
                Keep::Nothing => is_small && self.sums.wanted == Wanted::Joint,
                Keep::Fitting => fits,
                Keep::Exact => true,
                Keep::Compressed => false,
            };
            if is_held {
                self.kept = OperatorStore::PerPair(PerPair::new(features));
            }
        }
        let mut has_room = true;
        if let OperatorStore::PerPair(kept) = &mut self.kept {
            match keep {
                Keep::Exact if !fits => return Err(Error::TooLarge { pairs: pairs.len(), memory }),
                Keep::Fitting | Keep::Compressed if !fits => has_room = false,
                _ => kept.reserve(&self.features, &pairs),
            }
        }
        Ok((self.begin(), has_room))
    }

    /// Whether the moments of pairs still fit into memory; an error if `keep` requires that they
    /// do.
    pub(crate) fn fits(&self, keep: Keep, memory: usize) -> Result<bool> {
        let OperatorStore::PerPair(pairs) = &self.kept else { return Ok(true) };
        match keep {
            Keep::Nothing => Ok(true),
            _ if pairs.bytes() <= memory => Ok(true),
            Keep::Exact => Err(Error::TooLarge { pairs: pairs.sums.len(), memory }),
            Keep::Fitting | Keep::Compressed => Ok(false),
        }
    }

    /// Whether they hold operators in wide bases.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self.kept, OperatorStore::Wide(_))
    }

    /// Empty operators for the sums over new logs: in the wide bases if there are any, otherwise in
    /// those of the model.
    pub(crate) fn operators(&self, solution: &Solution) -> Operators {
        let (left, right) = match &solution.bases.wide {
            Some(wide) => (&wide.tests.basis, &wide.histories.basis),
            None => (&solution.bases.u, &solution.bases.b),
        };
        Operators::new(&self.features, left, right, &self.survey.pairs())
    }

    /// Prepares for the sums over new logs, which the survey already includes: switches to the rule
    /// for all logs, and returns which cuts that changes.
    pub(crate) fn begin(&mut self) -> Adjustment {
        self.features.extend_to(&self.survey.alphabet);
        let rule = if self.boundary.is_full { self.rule } else { self.survey.rule(&self.params) };
        self.adopt(rule)
    }

    /// Switches to another rule.
    fn adopt(&mut self, rule: CutRule) -> Adjustment {
        let old = std::mem::replace(&mut self.rule, rule);
        let nothing = BoundaryEpisodes::new(self.params.weighting);
        let episodes = if old == rule { nothing.episodes } else { std::mem::replace(&mut self.boundary, nothing).episodes };
        self.boundary.keep(&episodes, rule);
        let adjustment = Adjustment { episodes, old };
        let batch = adjustment.batch(&mut self.features, rule);
        self.add_batch(&batch, true);
        adjustment
    }

    /// Adds the cuts of new episodes to the sums, and with `to_pairs` to those of pairs. With
    /// `keep_boundary`, it keeps the episodes whose cuts other logs may change.
    pub(crate) fn add(&mut self, episodes: &Episodes, to_pairs: bool, keep_boundary: bool) {
        let batch = self.features.batch(episodes, self.rule);
        self.add_batch(&batch, to_pairs);
        if self.params.cuts == Cuts::Complete && keep_boundary {
            self.boundary.keep(episodes, self.rule);
        }
    }

    fn add_batch(&mut self, batch: &Batch<'_>, to_pairs: bool) {
        self.features.learn_words(batch, matches!(self.kept, OperatorStore::PerPair(_)));
        self.sums.add(&self.features, batch);
        if let OperatorStore::PerPair(pairs) = &mut self.kept
            && to_pairs
        {
            pairs.add(&self.features, batch);
        }
    }

    /// Merges lanes, which only serve to sum in parallel.
    pub(crate) fn compacted(mut self) -> Moments {
        self.sums.compact();
        self
    }

    /// The model.
    pub fn model(&self) -> Result<Model> {
        let solution = self.solve(self.is_wide())?;
        Ok(self.assembled(&solution, None)?.0)
    }

    /// Everything except the operators; with wide bases, if they are wanted.
    pub(crate) fn solve(&self, wide: bool) -> Result<Solution> {
        check_size(&self.features, self.sums.wanted)?;
        let most = wide.then_some(self.width * self.params.rank);
        let start = self.features.start_coordinate();
        if let OperatorStore::Wide(cores) = &self.kept
            && let Some(factors) = &cores.factors
        {
            return self.solve_factored(&cores.wide, factors);
        }
        // The weight of the cuts at which the start state is read: |Z| if all episodes start in the
        // same state.
        let scale = self.scale(self.sums.entry(NULL_TEST, start))?;
        let moments = self.sums.matrices(&self.features, scale);
        let bases = bases(&moments, &self.params, most)?;
        let histories = bases::first_row(&moments.joint);
        let initial = bases.u.transpose() * bases::column(&moments.joint, start); // c₁ = Ûᵀ Σ̂_TH e = ŜV̂ᵀe
        let normalizer = bases.b.transpose() * &histories; // c_∞ᵀ = Σ̂_Hᵀ B, B = V̂Ŝ⁻¹
        let factors = (wide && moments.covariances.is_none()).then(|| Factors::of(&bases, &histories, scale));
        Ok(Solution { bases, initial, normalizer, scale, factors })
    }

    /// The same from factors of Σ̂_TH and its sums over new logs.
    fn solve_factored(&self, wide: &Wide, factors: &Factors) -> Result<Solution> {
        let new = bases::first_row(&self.sums.matrices(&self.features, 1.0).joint);
        let old = |i: usize| factors.histories.get(i).copied().unwrap_or(0.0);
        let histories = Mat::from_fn(new.nrows(), 1, |i, _| old(i) + new[(i, 0)]);
        let start = self.features.start_coordinate();
        let scale = self.scale(histories[(start, 0)])?;
        let svd = Svd {
            u: padded(&wide.tests.basis, self.features.tests.rows()),
            s: factors.s.iter().map(|s| s * scale).collect(),
            v: padded(&wide.histories.basis, self.features.histories.rows()),
        };
        let delta = self.sums.matrices(&self.features, scale).joint;
        let most = self.width * self.params.rank;
        let svd = brand::update(&svd, &delta, most, Seed(self.params.seed))?;
        let bases = Bases::of_svd(svd, &self.params, Some(most))?;
        let d = bases.u.ncols();
        // c₁ = ŜV̂ᵀe; B = V̂Ŝ⁻¹
        let initial = Mat::from_fn(d, 1, |i, _| bases.spectrum[i] * bases.spectrum[i] * bases.b[(start, i)]);
        let histories = histories * scale;
        let normalizer = bases.b.transpose() * &histories;
        let factors = Some(Factors::of(&bases, &histories, scale));
        Ok(Solution { bases, initial, normalizer, scale, factors })
    }

    /// The factor that turns sums into probabilities: 1 over the weight of the cuts at which the
    /// start state is read, |Z| if all episodes start in the same state.
    pub(crate) fn scale(&self, start_weight: f64) -> Result<f64> {
        if start_weight > 0.0 {
            return Ok(1.0 / start_weight);
        }
        Err(no_room(self.rule))
    }

    /// The model and the moments to keep. `new` are the operators of new logs, if they were summed
    /// separately.
    pub(crate) fn finish(mut self, solution: &Solution, new: Option<Vec<Operator>>) -> Result<(Model, Moments)> {
        let (model, wide) = self.assembled(solution, new)?;
        if let Some(wide) = wide {
            if wide.factors.is_some() {
                // The sums over the next logs start from zero.
                self.sums = Accumulator::new(&self.features, self.sums.wanted);
            }
            self.kept = OperatorStore::Wide(Box::new(wide));
        }
        Ok((model, self))
    }

    /// The model, and the part of compressed moments that is kept.
    fn assembled(&self, solution: &Solution, new: Option<Vec<Operator>>) -> Result<(Model, Option<WideOperators>)> {
        let Solution { bases, initial, normalizer, scale, factors } = solution;
        let pairs = self.survey.pairs();
        let (operators, cores) = match &bases.wide {
            None => (new.unwrap_or_else(|| self.of_pairs(&pairs, &bases.u, &bases.b)), None),
            Some(wide) => {
                let mut cores = self.in_bases(&pairs, wide);
                new.iter().flatten().zip(&mut cores).for_each(|(new, core)| core.merge(new));
                let (left, right) = (bases.u.transpose() * &wide.tests.dual, wide.histories.dual.transpose() * &bases.b);
                let operators = cores.iter().map(|core| core.rotated(&left, &right)).collect();
                let operators_of = pairs.iter().copied().zip(cores).collect();
                (operators, Some(WideOperators { wide: wide.clone(), operators: operators_of, factors: factors.clone() }))
            }
        };
        let survey = &self.survey;
        let parts = Parts {
            alphabet: survey.alphabet.clone(),
            origin: survey.origin(&self.params),
            ngram: survey.counter.finish(),
            initial: initial.col_as_slice(0).to_vec(),
            normalizer: normalizer.col_as_slice(0).to_vec(),
            operators,
            scale: *scale,
            spectrum: bases.spectrum.clone(),
        };
        Ok((parts.assemble()?, cores))
    }

    /// LᵀΣ̂_{T,ao,H}R from the moments kept for each pair.
    fn of_pairs(&self, pairs: &[ActionObservation], left: &Mat<f64>, right: &Mat<f64>) -> Vec<Operator> {
        let zero = Operator::zero(left.ncols(), right.ncols());
        let OperatorStore::PerPair(kept) = &self.kept else { return vec![zero; pairs.len()] };
        let bases = ScaledBases::new(&self.features, left, right);
        let of = |ao: &ActionObservation| kept.of(*ao).map_or_else(|| zero.clone(), |sums| Operator::of(sums, &bases));
        pairs.par_iter().map(of).collect()
    }

    /// The operators that are kept, in new wide bases.
    fn in_bases(&self, pairs: &[ActionObservation], wide: &Wide) -> Vec<Operator> {
        let (left, right) = (&wide.tests.basis, &wide.histories.basis);
        let OperatorStore::Wide(cores) = &self.kept else { return self.of_pairs(pairs, left, right) };
        // L′ᵀψ ≈ L′ᵀD Lᵀψ
        let left = left.transpose() * padded(&cores.wide.tests.dual, left.nrows());
        let right = padded(&cores.wide.histories.dual, right.nrows()).transpose() * right;
        let zero = Operator::zero(left.nrows(), right.ncols());
        pairs.iter().map(|ao| cores.operators.get(ao).map_or_else(|| zero.clone(), |core| core.rotated(&left, &right))).collect()
    }
}

/// Which moments the regression needs.
pub(crate) fn wanted(params: &LearnParams) -> Wanted {
    match params.regression {
        Regression::PseudoInverse => Wanted::Joint,
        Regression::TwoStage => Wanted::JointAndCovariances,
    }
}

/// An error if two-stage regression would need too much memory.
pub(crate) fn check_size(features: &Features, wanted: Wanted) -> Result<()> {
    let dim = features.tests.rows().max(features.histories.rows());
    if wanted == Wanted::JointAndCovariances && dim > LARGEST_COVARIANCE {
        return Err(Error::data(
            format!("two-stage regression on {dim} uncompressed sequences would need {} GiB", (dim * dim) >> 27),
            "use the pseudo-inverse, shorter tests and histories, or a compressing projection",
        ));
    }
    Ok(())
}

/// The error for logs in which no episode has a cut.
pub(crate) fn no_room(rule: CutRule) -> Error {
    let room = rule.room;
    Error::data(
        format!("no episode is longer than {room} steps, so none has room for a step and the longest test after it"),
        "give longer episodes or a smaller `max_test_length`",
    )
}

/// The matrix with rows of zeros appended, for sequences that were not seen when it was computed.
fn padded(matrix: &Mat<f64>, rows: usize) -> Mat<f64> {
    Mat::from_fn(rows, matrix.ncols(), |i, j| if i < matrix.nrows() { matrix[(i, j)] } else { 0.0 })
}

impl Factors {
    fn of(bases: &Bases, histories: &Mat<f64>, scale: f64) -> Factors {
        let k = bases.wide.as_ref().map_or(0, |wide| wide.tests.basis.ncols());
        Factors {
            s: bases.spectrum[..k].iter().map(|s| s / scale).collect(),
            histories: histories.col_as_slice(0).iter().map(|x| x / scale).collect(),
        }
    }
}

impl BoundaryEpisodes {
    fn new(weighting: Weighting) -> BoundaryEpisodes {
        BoundaryEpisodes { episodes: empty_batch(weighting), is_full: false }
    }

    /// Keeps the episodes that would have other cuts under a rule with another limit.
    fn keep(&mut self, episodes: &Episodes, rule: CutRule) {
        let is_boundary = |length: usize| rule.limit.is_none_or(|limit| length > limit.saturating_sub(rule.room));
        for z in episodes.iter().filter(|z| z.end == End::Terminated && is_boundary(z.steps.len()) && !self.is_full) {
            self.episodes.push_episode(z);
        }
        self.trim();
    }

    fn trim(&mut self) {
        if self.is_full || self.episodes.steps().len() > MOST_BOUNDARY_STEPS {
            self.is_full = true;
            self.episodes.clear();
        }
    }
}

/// Episodes whose cuts a new rule changes.
pub(crate) struct Adjustment {
    pub(crate) episodes: Episodes,
    pub(crate) old: CutRule,
}

impl Adjustment {
    /// The cuts that the new rule adds and, with negative weight, those that it removes.
    pub(crate) fn batch(&self, features: &mut Features, rule: CutRule) -> Batch<'_> {
        features.some_cuts(&self.episodes, |z| {
            let (before, now) = (self.old.count(z.steps.len(), z.end), rule.count(z.steps.len(), z.end));
            if before <= now { (before..now, z.weight) } else { (now..before, -z.weight) }
        })
    }
}
