//! Batch learning [H14 §3.2.1]: logs → moments → bases → operators → model.
//!
//! There is one learner with two presets. It makes up to three streaming passes: a survey
//! (alphabet, counts, n-gram), the moments, and the operators, unless the moments of each pair are
//! kept. Memory grows with d_T·d_H, with d′² for each pair seen, and with the n-gram, but not with
//! the number of episodes.

use serde::{Deserialize, Serialize};

use super::bases::{MOST_WIDTH, WIDTH};
use super::moments::{Keep, Moments, Solution};
use super::operators::{Operator, Operators};
use super::source::{self, Source, batches};
use super::work::Work;
use crate::data::{Alphabet, Digest, Propensities, Trajectory};
use crate::error::{Error, Result};
use crate::log::{Logs, Position};
use crate::model::{LearnParams, Model};
use crate::store::Checkpoint;

/// The passes over the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pass {
    /// Alphabet, counts, n-gram.
    Survey,
    /// Σ̂_TH, its covariances, and the moments of each pair where they are held.
    Moments,
    /// C_ao.
    Operators,
}

/// Progress of learning.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The current pass.
    pub pass: Pass,
    /// Episodes read in this pass.
    pub episodes: u64,
    /// Steps read in this pass.
    pub steps: u64,
    /// Steps in all logs, once the survey has counted them.
    pub total: Option<u64>,
}

/// Learns a predictive model from logs.
///
/// ```
/// use foretell::{LearnParams, Logs, Seed, domains, learn};
///
/// let tiger = domains::get("tiger")?;
/// let episodes = domains::sample(&tiger, 500, 20, Seed(1)).collect();
/// let logs = Logs::memory(tiger.alphabet().clone(), episodes);
/// let model = learn(&logs, &LearnParams { rank: 3, ..LearnParams::default() })?;
/// assert_eq!(model.alphabet().actions().len(), 3);
/// # Ok::<(), foretell::Error>(())
/// ```
pub fn learn(logs: &Logs, params: &LearnParams) -> Result<Model> {
    learn_with_progress(logs, params, &mut |_| {})
}

/// [`learn`] that calls `progress` after every batch.
pub fn learn_with_progress(logs: &Logs, params: &LearnParams, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Model> {
    Ok(Learner::new(params).progress(progress).learn(logs)?.model)
}

/// [`learn`] over an alphabet that contains all symbols of the logs, and perhaps others.
pub(crate) fn learn_over(alphabet: &Alphabet, logs: &Logs, params: &LearnParams) -> Result<Model> {
    Ok(Learner::new(params).begin(Source::Logs(logs), alphabet.clone())?.model)
}

/// The n-gram of logs, over an alphabet that contains all their symbols, and perhaps others.
pub(crate) fn count_over(alphabet: &Alphabet, logs: &Logs, params: &LearnParams) -> Result<Learned> {
    let mut moments = Moments::new(params, alphabet.clone());
    let source = Source::Logs(logs);
    let (alphabet, skipped) = source.each_batch(alphabet.clone(), Position::default(), params.weighting, |seen, batch| {
        moments.survey.add(seen.alphabet, batch);
        Ok(())
    })?;
    let survey = &mut moments.survey;
    if survey.steps == 0 {
        return Err(Error::NoSteps);
    }
    (survey.alphabet, survey.skipped) = (alphabet, skipped);
    let model = Model::ngram_alone(survey.alphabet.clone(), survey.origin(params), survey.counter.finish());
    let propensities = moments.propensities();
    Ok(Learned { model, moments: None, operators: OperatorsFrom::Moments, propensities, digest: None })
}

/// Learns from weighted episodes: each counts as often as its weight says. Weights may be
/// importance weights or exact probabilities.
///
/// Weights enter the moments and operators; the n-gram and the counts of symbols count each episode
/// once.
pub fn learn_weighted(alphabet: &Alphabet, episodes: &[(Trajectory, f64)], params: &LearnParams) -> Result<Model> {
    let batches = batches(episodes, params.weighting)?;
    Ok(Learner::new(params).begin(Source::Held(alphabet, &batches), Alphabet::default())?.model)
}

/// Default limit, in bytes, for the moments of pairs.
pub(crate) const MEMORY: usize = 2 << 30;

/// How operators were computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorsFrom {
    /// From the moments of every pair, summed in the same pass as the others.
    Moments,
    /// In another pass over the logs.
    SecondPass,
}

/// The result of learning.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The model.
    pub model: Model,
    /// The moments to which other logs can be added, if they were to be kept.
    pub moments: Option<Moments>,
    /// How operators were computed.
    pub operators: OperatorsFrom,
    /// How probable the logged actions were, where all logs record it.
    pub propensities: Option<Propensities>,
    /// Hashes of the episodes of the logs; `None` if not all of them were read at once.
    pub digest: Option<Digest>,
}

/// Learning with options: kept moments, a memory limit, progress, a checkpoint. [`learn`] is the
/// short form.
pub struct Learner<'a> {
    params: LearnParams,
    keep: Keep,
    memory: usize,
    width: usize,
    progress: Option<&'a mut (dyn FnMut(Progress) + Send)>,
    checkpoint: Option<&'a mut Checkpoint>,
}

impl<'a> Learner<'a> {
    /// A learner that keeps only the model.
    pub fn new(params: &LearnParams) -> Learner<'a> {
        Learner { params: params.clone(), keep: Keep::Nothing, memory: MEMORY, width: WIDTH, progress: None, checkpoint: None }
    }

    /// Also keeps moments.
    pub fn keep(self, keep: Keep) -> Learner<'a> {
        Learner { keep, ..self }
    }

    /// Limits the bytes that the moments of pairs may take (default 2 GiB).
    pub fn memory(self, memory: usize) -> Learner<'a> {
        Learner { memory, ..self }
    }

    /// Where moments are compressed, keeps this many times d′ directions (at least 1, default 2).
    /// Updates use the same width.
    pub fn width(self, width: usize) -> Learner<'a> {
        Learner { width: width.clamp(1, MOST_WIDTH), ..self }
    }

    /// Calls `progress` after every batch.
    pub fn progress(self, progress: &'a mut (dyn FnMut(Progress) + Send)) -> Learner<'a> {
        Learner { progress: Some(progress), ..self }
    }

    /// Saves the work to a checkpoint, and resumes from it.
    pub fn checkpoint(self, checkpoint: &'a mut Checkpoint) -> Learner<'a> {
        Learner { checkpoint: Some(checkpoint), ..self }
    }

    /// Learns from logs.
    pub fn learn(self, logs: &Logs) -> Result<Learned> {
        let alphabet = first_alphabet(&self.params);
        self.begin(Source::Logs(logs), alphabet)
    }

    /// Adds logs to those that `moments` were computed from, with the same parameters.
    pub fn update(self, moments: Moments, logs: &Logs) -> Result<Learned> {
        let keep = if self.keep == Keep::Nothing { Keep::Fitting } else { self.keep };
        Learner { keep, params: moments.params().clone(), ..self }.resume(Work::new(moments), Source::Logs(logs))
    }

    fn begin(self, source: Source<'_>, alphabet: Alphabet) -> Result<Learned> {
        self.params.validate()?;
        let work = Work::new(Moments { width: self.width, ..Moments::new(&self.params, alphabet) });
        self.resume(work, source)
    }

    fn resume(mut self, mut work: Work, source: Source<'_>) -> Result<Learned> {
        if let Some(checkpoint) = &self.checkpoint
            && let Some(begun) = Work::load(checkpoint)?
        {
            work = begun;
        }
        let mut kept = source::BatchCache::new();
        if work.pass != Pass::Survey || work.steps > 0 {
            kept.forget();
        }
        let mut digest =
            (work.pass == Pass::Survey && work.steps == 0 && matches!(source, Source::Logs(_))).then(Digest::default);
        if work.pass == Pass::Survey {
            self.survey(&mut work, source, &mut kept, digest.as_mut())?;
        }
        let alphabet = work.moments.alphabet().clone();
        let source = kept.all().map_or(source, |batches| Source::Held(&alphabet, batches));
        if work.pass == Pass::Moments {
            self.moments(&mut work, source)?;
        }
        let has_pairs = work.moments.is_exact() && work.full_at.is_none();
        let solution = work.moments.solve(!has_pairs && (self.keep != Keep::Nothing || work.moments.is_wide()))?;
        let (operators, new) = match has_pairs {
            true => (OperatorsFrom::Moments, self.save(&work).map(|()| None)?),
            false => (OperatorsFrom::SecondPass, Some(self.operators(&mut work, source, &solution)?)),
        };
        let (model, moments) = work.moments.finish(&solution, new)?;
        let propensities = moments.propensities();
        let moments = (self.keep != Keep::Nothing).then(|| moments.compacted());
        Ok(Learned { model, moments, operators, propensities, digest })
    }

    fn survey(
        &mut self,
        work: &mut Work,
        source: Source<'_>,
        kept: &mut source::BatchCache,
        digest: Option<&mut Digest>,
    ) -> Result<()> {
        let alphabet = work.moments.alphabet().clone();
        let weighting = self.params.weighting;
        let (alphabet, skipped) = source.each_batch_hashed(alphabet, work.position, weighting, digest, |seen, batch| {
            kept.add(batch, seen.position);
            work.moments.survey.add(seen.alphabet, batch);
            work.after(batch.len(), batch.steps().len(), &seen);
            self.after_batch(work, None)
        })?;
        if work.steps == 0 {
            return Err(Error::NoSteps);
        }
        refuse_no_rewards(&alphabet)?;
        let survey = &mut work.moments.survey;
        (survey.alphabet, survey.skipped) = (alphabet, survey.skipped + skipped);
        if work.actions > 0 {
            self.params.refuse_new_actions(work.actions, work.moments.alphabet().actions().len())?;
        }
        work.total = work.steps;
        work.begin_pass(Pass::Moments);
        let (adjustment, fits) = work.moments.freeze(self.keep, self.memory)?;
        work.adjustment = Some(adjustment);
        work.full_at = (!fits).then_some(work.position);
        Ok(())
    }

    fn moments(&mut self, work: &mut Work, source: Source<'_>) -> Result<()> {
        let alphabet = work.moments.alphabet().clone();
        source.each_batch(alphabet, work.position, self.params.weighting, |seen, batch| {
            work.moments.add(batch, work.full_at.is_none(), self.keep != Keep::Nothing);
            work.after(batch.len(), batch.steps().len(), &seen);
            // Once the moments of pairs no longer fit into memory, they are no longer summed.
            if work.full_at.is_none() && !work.moments.fits(self.keep, self.memory)? {
                work.full_at = Some(work.position);
            }
            self.after_batch(work, Some(work.total))
        })?;
        work.begin_pass(Pass::Operators);
        if let Some(position) = work.full_at {
            work.position = position;
        }
        Ok(())
    }

    fn operators(&mut self, work: &mut Work, source: Source<'_>, solution: &Solution) -> Result<Vec<Operator>> {
        let rule = work.moments.rule;
        let mut operators = work.moments.operators(solution);
        if let Some(sums) = work.operators.take() {
            operators.sums = sums;
        } else if let Some(adjustment) = work.adjustment.as_ref().filter(|_| work.moments.is_wide()) {
            // The moments of pairs already include these.
            let batch = adjustment.batch(&mut work.moments.features, rule);
            operators.add(&work.moments.features, &batch);
        }
        let alphabet = work.moments.alphabet().clone();
        source.each_batch(alphabet, work.position, self.params.weighting, |seen, batch| {
            let cuts = work.moments.features.batch(batch, rule);
            operators.add(&work.moments.features, &cuts);
            work.after(batch.len(), batch.steps().len(), &seen);
            lending_sums(work, &mut operators, |work| self.after_batch(work, Some(work.total)))
        })?;
        lending_sums(work, &mut operators, |work| self.save(work))?;
        Ok(operators.finish())
    }

    /// Reports progress, and saves the work if a checkpoint is due.
    fn after_batch(&mut self, work: &Work, total: Option<u64>) -> Result<()> {
        if let Some(progress) = &mut self.progress {
            progress(Progress { pass: work.pass, episodes: work.episodes, steps: work.steps, total });
        }
        if let Some(checkpoint) = &mut self.checkpoint
            && checkpoint.is_due()
        {
            work.save(checkpoint)?;
        }
        Ok(())
    }

    /// Saves the work at the end of a pass: the next stage may take long.
    fn save(&mut self, work: &Work) -> Result<()> {
        self.checkpoint.as_mut().map_or(Ok(()), |checkpoint| work.save(checkpoint))
    }
}

/// The alphabet to start reading with.
pub(crate) fn first_alphabet(params: &LearnParams) -> Alphabet {
    if params.observe_reward { Alphabet::observing_rewards() } else { Alphabet::default() }
}

/// An error if rewards are to be observed and the logs have none.
pub(crate) fn refuse_no_rewards(alphabet: &Alphabet) -> Result<()> {
    let symbols = alphabet.observations();
    if alphabet.observes_rewards() && symbols.iter().all(|symbol| symbol.split_reward().is_none()) {
        return Err(Error::NoRewards { purpose: "to observe", remedy: "leave `observe_reward` out" });
    }
    Ok(())
}

/// Moves the sums of the last pass into the work while it is saved.
fn lending_sums(work: &mut Work, operators: &mut Operators, save: impl FnOnce(&Work) -> Result<()>) -> Result<()> {
    work.operators = Some(std::mem::take(&mut operators.sums));
    let saved = save(work);
    operators.sums = work.operators.take().expect("just put there");
    saved
}
