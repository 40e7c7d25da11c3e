//! The steps of learning in order: a linear model, its refinement, an ensemble. They are composed
//! only here.

use crate::data::Alphabet;
use crate::error::{Error, Result};
use crate::learn::{Keep, Learned, Learner, MEMORY, Progress, count_over, first_alphabet, learn_over, refuse_no_rewards};
use crate::log::Logs;
use crate::model::{Ensemble, LearnParams, Model, Predictor};
use crate::refine::{EmRound, RefineParams, Refinement, refine};
use crate::rng::Seed;
use crate::select::{Family, SelectParams, Selecting, Selection};
use crate::stop::StopReason;
use crate::store::Checkpoint;

/// Most models of a kind in an ensemble.
const MOST_MODELS: usize = 100;

/// How a model is made from logs.
///
/// ```
/// use foretell::{LearnParams, Logs, Recipe, RefineParams, Seed, domains};
///
/// let tiger = domains::get("tiger")?;
/// let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 200, 20, Seed(1)).collect());
/// let learn = LearnParams { rank: 4, ..LearnParams::default() };
/// let recipe = Recipe { learn, refine: Some(RefineParams::default()), ..Recipe::default() };
/// let model = recipe.fit(&logs)?.model;
/// assert!(model.latent().is_some());
/// # Ok::<(), foretell::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// How the linear model is learned.
    pub learn: LearnParams,
    /// How it is refined into a POMDP; `None` for no refinement.
    pub refine: Option<RefineParams>,
    /// How predictors are selected by held-out evidence; `None` for the linear model, or its
    /// refinement, as it is. Otherwise `refine` has the parameters of POMDPs among them.
    pub select: Option<SelectParams>,
    /// Number of models of all logs that are averaged, with as many of halves for the uncertainty;
    /// `None` for a single model.
    pub ensemble: Option<usize>,
    /// What is kept so that other logs can be added later.
    pub keep: Keep,
    /// Limit, in bytes, for the moments of pairs.
    pub memory: usize,
}

impl Default for Recipe {
    /// A single linear model.
    fn default() -> Recipe {
        Recipe { learn: LearnParams::default(), refine: None, select: None, ensemble: None, keep: Keep::Nothing, memory: MEMORY }
    }
}

/// Progress of fitting.
#[derive(Clone, Copy, Debug)]
pub enum FitProgress {
    /// A stage of the selection of predictors begins.
    Selecting(Selecting),
    /// A batch of the linear model is done.
    Learning(Progress),
    /// Refinement resumes from a checkpoint, after this many rounds of EM.
    Resumed(usize),
    /// A round of EM is done.
    Refining(EmRound),
    /// Number of other models of an ensemble that are done, and their total.
    Ensemble(usize, usize),
}

/// The result of a recipe.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The model.
    pub model: Model,
    /// The result of learning the linear model.
    pub learned: Learned,
    /// The rounds of its refinement.
    pub rounds: Vec<EmRound>,
    /// Why refinement stopped, if there was any.
    pub stopped: Option<StopReason>,
    /// The evidence by which predictors were selected.
    pub selection: Option<Selection>,
}

/// A recipe in progress, with options for progress and checkpoints. [`Recipe::fit`] is the short
/// form.
pub struct Fitting<'a> {
    recipe: &'a Recipe,
    progress: Option<&'a mut (dyn FnMut(FitProgress) + Send)>,
    checkpoint: Option<&'a mut Checkpoint>,
}

impl Recipe {
    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        self.learn.validate()?;
        self.refine.as_ref().map_or(Ok(()), RefineParams::validate)?;
        match self.ensemble {
            Some(n) if !(2..=MOST_MODELS).contains(&n) => {
                Err(Error::parameter("ensemble", n, format!("must be between 2 and {MOST_MODELS}")))
            }
            _ => Ok(()),
        }
    }

    /// Makes the model.
    pub fn fit(&self, logs: &Logs) -> Result<Fitted> {
        self.fitting().run(logs)
    }

    /// The same with options for progress and checkpoints.
    pub fn fitting(&self) -> Fitting<'_> {
        Fitting { recipe: self, progress: None, checkpoint: None }
    }
}

impl<'a> Fitting<'a> {
    /// Calls `progress` after each part of the work.
    pub fn progress(self, progress: &'a mut (dyn FnMut(FitProgress) + Send)) -> Fitting<'a> {
        Fitting { progress: Some(progress), ..self }
    }

    /// Saves the work to a checkpoint, and resumes from it.
    pub fn checkpoint(self, checkpoint: &'a mut Checkpoint) -> Fitting<'a> {
        Fitting { checkpoint: Some(checkpoint), ..self }
    }

    /// Makes the model.
    pub fn run(mut self, logs: &Logs) -> Result<Fitted> {
        self.recipe.validate()?;
        if let Some(select) = &self.recipe.select {
            return self.select(logs, select);
        }
        let learned = self.learn(logs, &self.recipe.learn)?;
        let (model, rounds, stopped) = match &self.recipe.refine {
            Some(params) => self.refine(&learned.model, logs, params)?,
            None => (learned.model.clone(), Vec::new(), None),
        };
        let model = match self.recipe.ensemble {
            Some(n) => self.ensemble(model, logs, n)?,
            None => model,
        };
        let digest = learned.digest.clone().map_or_else(|| logs.digest(), Ok)?;
        let model = model.with_schema(logs.schema().clone()).with_digest(digest);
        Ok(Fitted { model, learned, rounds, stopped, selection: None })
    }

    /// The mixture of predictors that predicts held-out steps best.
    fn select(&mut self, logs: &Logs, select: &SelectParams) -> Result<Fitted> {
        let Recipe { learn, refine, .. } = self.recipe;
        let refine = refine.clone().unwrap_or_default();
        let family = Family::read(logs, &first_alphabet(learn), learn, &refine, select)?;
        refuse_no_rewards(family.alphabet())?;
        let mut report = |stage| self.progress.iter_mut().for_each(|report| report(FitProgress::Selecting(stage)));
        let (family, finalists) = family.select(logs, &mut report)?;
        report(Selecting::Last);
        let selection = finalists.selection.clone();
        let pieces = family.logs_in_pieces();
        let in_pieces = pieces.as_ref().unwrap_or(logs);
        let mut learned = match selection.rank {
            Some(rank) => self.learn(in_pieces, &LearnParams { rank, ..family.params().clone() })?,
            None => count_over(&first_alphabet(family.params()), in_pieces, family.params())?,
        };
        if pieces.is_some() {
            learned.model = learned.model.of_episodes(family.episodes());
        }
        let model = family.finish(&finalists, learned.model.clone(), in_pieces)?;
        let model = match self.recipe.ensemble {
            Some(n) => self.ensemble(model, in_pieces, n)?,
            None => model,
        };
        let model = model.with_schema(logs.schema().clone()).with_digest(family.digest().clone());
        Ok(Fitted { model, learned, rounds: Vec::new(), stopped: None, selection: Some(selection) })
    }

    fn report(&mut self, progress: FitProgress) {
        self.progress.iter_mut().for_each(|report| report(progress));
    }

    fn learn(&mut self, logs: &Logs, learn: &LearnParams) -> Result<Learned> {
        let Recipe { keep, memory, .. } = self.recipe;
        let mut report = |progress| self.progress.iter_mut().for_each(|report| report(FitProgress::Learning(progress)));
        let mut learner = Learner::new(learn).keep(*keep).memory(*memory).progress(&mut report);
        if let Some(checkpoint) = &mut self.checkpoint {
            learner = learner.checkpoint(checkpoint);
        }
        learner.learn(logs)
    }

    fn refine(&mut self, model: &Model, logs: &Logs, params: &RefineParams) -> Result<(Model, Vec<EmRound>, Option<StopReason>)> {
        let mut refinement = Refinement::new(model, logs, params)?;
        if let Some(checkpoint) = &mut self.checkpoint {
            refinement = refinement.checkpointed(checkpoint)?;
        }
        let mut report = |progress| self.progress.iter_mut().for_each(|report| report(progress));
        if !refinement.trace().is_empty() {
            report(FitProgress::Resumed(refinement.trace().len()));
        }
        for round in refinement.by_ref() {
            report(FitProgress::Refining(round?));
        }
        let (rounds, stopped) = (refinement.trace().to_vec(), refinement.stopped());
        Ok((refinement.finish()?, rounds, stopped))
    }

    /// An ensemble whose first model is `model`: `n` models of all logs, and as many of halves.
    fn ensemble(&mut self, model: Model, logs: &Logs, n: usize) -> Result<Model> {
        let seed = Seed(model.params().seed).stream("ensemble");
        let (all, halves) = (seed.stream("members"), seed.stream("halves"));
        let mut done = 0;
        let mut another = |logs: &Logs, seed: Seed| {
            done += 1;
            let other = self.member(&format!("ensemble-{done}"), &model, logs, seed);
            self.report(FitProgress::Ensemble(done, 2 * n - 1));
            other
        };
        let members = (1..n as u64).map(|i| another(logs, all.index(i))).collect::<Result<_>>()?;
        let half = |i: u64| logs.half(halves.index(i / 2), i % 2 == 1);
        let halves = (0..n as u64).map(|i| another(&half(i), halves.stream("seeds").index(i))).collect::<Result<_>>()?;
        let own = Box::new(model.predictor().clone());
        Ok(model.with_predictor(Predictor::Ensemble(Ensemble { own, members, halves })))
    }

    /// A model by the same recipe with another seed, over the same alphabet.
    fn member(&mut self, part: &str, first: &Model, logs: &Logs, seed: Seed) -> Result<Model> {
        if let Some(checkpoint) = &self.checkpoint
            && let Some(bytes) = checkpoint.load(part)?
        {
            return Model::from_bytes(&bytes, &checkpoint.path(part).display().to_string());
        }
        let params = LearnParams { seed: seed.0, ..first.params().clone() };
        let other = self.another(first.alphabet(), logs, &params).map_err(|error| match error {
            Error::NoSteps => Error::data("a random half of the logs has no episodes", "give more of them, or no `ensemble`"),
            other => other,
        })?;
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.save(part, &other.to_bytes())?;
        }
        Ok(other)
    }

    /// A model by the same recipe. Each model chooses its own kind of states: the best kind for one
    /// may not suit the starting point of EM for another.
    fn another(&self, alphabet: &Alphabet, logs: &Logs, params: &LearnParams) -> Result<Model> {
        match (&self.recipe.select, &self.recipe.refine) {
            (Some(select), given) => {
                let family = Family::read(logs, alphabet, params, &given.clone().unwrap_or_default(), select)?;
                let finalists = family.finalists()?;
                let pieces = family.logs_in_pieces();
                let logs = pieces.as_ref().unwrap_or(logs);
                let model = match finalists.selection.rank {
                    Some(rank) => learn_over(alphabet, logs, &LearnParams { rank, ..params.clone() })?,
                    None => count_over(alphabet, logs, params)?.model,
                };
                family.finish(&finalists, model, logs)
            }
            (None, Some(given)) => refine(&learn_over(alphabet, logs, params)?, logs, given),
            (None, None) => learn_over(alphabet, logs, params),
        }
    }
}
