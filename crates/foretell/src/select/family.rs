//! The family of predictors and the logs to select from: which of them count, and the mixture of
//! those.

use rayon::prelude::*;

use super::columns::{SpareColumns, candidates};
use super::parts::{Fold, Piece, Sample, folds, pieces};
use super::rewards::{Common, RewardChoice, compare, gain};
use super::stack::{Stack, stack};
use super::trial::{OfNetwork, Setting, Slot, Trial, same_without_reward};
use super::{SelectParams, Selecting, Selection, Tried};
use crate::data::{Alphabet, Digest, Trajectory};
use crate::error::Result;
use crate::log::Logs;
use crate::model::{Latent, LearnParams, Member, Mixture, Model, Part, Predictor, Recurrent, StateLayout};
use crate::recurrent::{Budget, FittedNetwork};
use crate::refine::{Data, FittedStates, RefineParams};
use crate::rng::Seed;

/// Most steps in memory for the selection.
const MOST_STEPS: u64 = 1 << 18;
/// The first of this many parts is held out where logs are large.
const PARTS: usize = 10;
/// Each of this many parts is held out in turn where logs are small.
const FOLDS: usize = 5;
/// Logs with fewer steps are small, by effort.
const SMALL: [usize; 3] = [10_000, 10_000, 200_000];
/// A network that is trained again, because there were several folds, has this many times less work.
const SMALL_LOGS: f64 = 4.0;
/// Most symbols with which it is worth trying to observe rewards: with more, models are slow, and
/// hardly any symbol is seen often enough.
const MOST_SYMBOLS: usize = 300;

/// A family of predictors and the logs to select from.
pub(crate) struct Family {
    setting: Setting,
    sample: Sample,
    pieces: Vec<Piece>,
    piece_length: Option<usize>,
}

/// What was selected.
pub(crate) struct Finalists {
    /// The evidence.
    pub(crate) selection: Selection,
    slots: Vec<Slot>,
    stack: Stack,
    /// Nats per held-out step of each member.
    nats: Vec<f64>,
    /// The POMDPs of the only fold, from which EM continues.
    states: Option<Vec<FittedStates>>,
    /// The layout of the states of all folds.
    layout: Option<StateLayout>,
    /// The POMDP that began with clusters of a network's states, if there is one.
    of_network: Option<OfNetwork>,
    /// The networks of the only fold, from which training continues.
    networks: Vec<FittedNetwork>,
    /// The hidden units of the networks of all folds.
    hidden: Vec<usize>,
    training: Vec<Trajectory>,
}

impl Family {
    /// Reads the logs, or a sample of large ones, over an alphabet that may already have symbols.
    pub(crate) fn read(
        logs: &Logs,
        alphabet: &Alphabet,
        params: &LearnParams,
        refine: &RefineParams,
        select: &SelectParams,
    ) -> Result<Family> {
        let sample = Sample::read(logs, alphabet.clone(), MOST_STEPS)?;
        let piece_length = sample.piece_length();
        let pieces = pieces(&sample.episodes, piece_length);
        Ok(Family { setting: Setting::new(params, refine, select), sample, pieces, piece_length })
    }

    /// The logs to learn from, if they are not the given ones: few long episodes in pieces.
    pub(crate) fn logs_in_pieces(&self) -> Option<Logs> {
        self.piece_length.filter(|_| self.sample.every == 1)?;
        Some(Logs::memory(self.sample.alphabet.clone(), self.pieces.iter().map(|piece| piece.z.clone()).collect()))
    }

    /// The parameters of its linear models.
    pub(crate) fn params(&self) -> &LearnParams {
        &self.setting.params
    }

    /// The alphabet of the logs.
    pub(crate) fn alphabet(&self) -> &Alphabet {
        &self.sample.alphabet
    }

    /// Hashes of all episodes of the logs.
    pub(crate) fn digest(&self) -> &Digest {
        &self.sample.digest
    }

    /// Number of episodes of the logs, where all are in memory.
    pub(crate) fn episodes(&self) -> u64 {
        self.sample.episodes.len() as u64
    }

    /// Whether it is worth trying to observe rewards: they are not determined by action and
    /// observation, there are few of them, POMDPs are fitted, and nobody said whether to.
    fn may_observe_rewards(&self) -> bool {
        let Setting { params, select, .. } = &self.setting;
        let is_open = select.fixed.observe_reward.is_none() && !params.observe_reward && self.setting.fits_states();
        let (vary, symbols) = self.sample.rewards.observable();
        is_open && vary && symbols.is_some_and(|symbols| symbols <= MOST_SYMBOLS)
    }

    /// Fits the family on folds, and weighs its members; `progress` is called before each stage. If
    /// rewards may tell more than observations, the same is done with rewards observed, and the
    /// better of the two is returned.
    pub(crate) fn select(self, logs: &Logs, progress: &mut dyn FnMut(Selecting)) -> Result<(Family, Finalists)> {
        let folds = self.folds();
        let trial = self.trial(&self.sample.alphabet, &folds, progress)?;
        let spare = self.spare_columns(&trial, progress)?;
        let Some(before) = common_of(&trial, None).filter(|_| self.may_observe_rewards()) else {
            let finalists = self.weigh(trial, progress)?.sparing(spare);
            return Ok((self, finalists));
        };
        progress(Selecting::Rewards);
        let Setting { params, refine, select } = &self.setting;
        let params = LearnParams { observe_reward: true, ..params.clone() };
        let observing = Family::read(logs, &Alphabet::observing_rewards(), &params, refine, select)?;
        let folds = observing.folds();
        let other = observing.trial(&observing.sample.alphabet, &folds, &mut |_| {})?;
        let same = same_without_reward(&observing.sample.alphabet);
        let choice = common_of(&other, Some(&same)).map(|after| compare(&trial.evidence, &before, &after));
        if choice.as_ref().is_some_and(|choice| choice.observed) {
            let finalists = observing.weigh(other, progress)?.chosen_by(choice).sparing(spare);
            return Ok((observing, finalists));
        }
        let finalists = self.weigh(trial, progress)?.chosen_by(choice).sparing(spare);
        Ok((self, finalists))
    }

    /// The same without another try.
    pub(crate) fn finalists(&self) -> Result<Finalists> {
        let folds = self.folds();
        self.weigh(self.trial(&self.sample.alphabet, &folds, &mut |_| {})?, &mut |_| {})
    }

    /// The parts of the logs that are held out in turn, with the rest of the logs.
    fn folds(&self) -> Vec<Fold> {
        let Setting { params, select, .. } = &self.setting;
        let is_small = self.sample.steps() < SMALL[select.effort as usize];
        let (parts, held) = if is_small { (FOLDS, FOLDS) } else { (PARTS, 1) };
        let parts = parts.min(self.pieces.len().max(1));
        let folds = folds(&self.pieces, parts, held.min(parts), Seed(params.seed).stream("select/folds"));
        folds.into_iter().filter(|fold| !fold.training.is_empty() && !fold.held_out.is_empty()).collect()
    }

    /// The family but for its networks, which are only worth their time where it is decided what is
    /// observed.
    fn trial<'f>(&'f self, alphabet: &Alphabet, folds: &'f [Fold], progress: &mut dyn FnMut(Selecting)) -> Result<Trial<'f>> {
        progress(Selecting::Linear);
        let mut trial = Trial::new(&self.setting, alphabet, folds)?;
        if self.setting.fits_states() {
            progress(Selecting::Latent);
            trial.add_states()?;
        }
        Ok(trial)
    }

    /// The columns of observations that help to predict neither the others nor rewards, if any.
    fn spare_columns(&self, trial: &Trial<'_>, progress: &mut dyn FnMut(Selecting)) -> Result<Option<SpareColumns>> {
        let alphabet = &self.sample.alphabet;
        let is_asked = self.setting.select.only.is_none() && self.setting.fits_states() && !alphabet.observes_rewards();
        if !is_asked {
            return Ok(None);
        }
        let Some(reduced) = candidates(trial, alphabet)? else { return Ok(None) };
        progress(Selecting::Columns);
        let folds = reduced.folds(trial.folds);
        let without = self.trial(&reduced.alphabet, &folds, &mut |_| {})?;
        let pair = common_of(trial, Some(&reduced.same)).zip(common_of(&without, None));
        let compared = pair.map(|(with, without)| gain(&trial.evidence, &without, &with));
        Ok(compared.filter(|(gain, error)| *gain > -error).map(|(gain, error)| reduced.spare(alphabet, gain, finite(error))))
    }

    /// Adds networks, and weighs all members.
    fn weigh(&self, mut trial: Trial<'_>, progress: &mut dyn FnMut(Selecting)) -> Result<Finalists> {
        if self.setting.fits_networks() {
            progress(Selecting::Recurrent);
            trial.add_networks();
            if self.setting.fits_states() {
                trial.add_states_of_network()?;
            }
        }
        trial.keep_only_wanted()?;
        progress(Selecting::Weights);
        let stack = stack_of(&trial);
        let nats = trial.evidence.nats();
        let selection = self.report(&trial, &stack)?;
        let training = trial.folds.first().map(|fold| fold.training.clone()).unwrap_or_default();
        let (slots, layout, hidden) = (trial.slots.clone(), trial.layout, trial.hidden());
        let of_network = trial.of_network.clone();
        let (states, networks) = trial.into_fits().unwrap_or_default();
        Ok(Finalists { selection, slots, stack, nats, states, layout, of_network, networks, hidden, training })
    }

    fn report(&self, trial: &Trial<'_>, stack: &Stack) -> Result<Selection> {
        let evidence = &trial.evidence;
        let steps = evidence.steps();
        let tried = |(k, &slot): (usize, &Slot)| {
            let scores = evidence.scores(&evidence.logs[k]);
            let (behind, error) = evidence.difference(&stack.scores, &scores);
            let nats = scores.iter().sum::<f64>() / steps.max(1) as f64;
            let (nats, behind) = if steps > 0 { (Some(nats), Some(behind)) } else { (None, None) };
            Tried { kind: slot.kind(), size: trial.size(slot), nats, behind, error: finite(error), weight: stack.weights[k] }
        };
        let (nats, error) = evidence.difference(&stack.scores, &vec![0.0; stack.scores.len()]);
        let weighted = trial.slots.iter().copied().zip(&stack.weights);
        let largest = weighted.max_by(|x, y| x.1.total_cmp(y.1)).map(|(slot, _)| slot);
        Ok(Selection {
            effort: self.setting.select.effort,
            nats: (steps > 0).then_some(nats),
            error: finite(error),
            tried: trial.slots.iter().enumerate().map(tried).collect(),
            memory: stack.memory,
            rank: trial.rank,
            rewards: None,
            columns: None,
            doubling: largest.map_or(Ok(None), |slot| trial.doubling(slot))?,
            problem: trial.problem(),
            folds: trial.folds.len(),
            parts: evidence.parts.len(),
            steps,
            unseen: trial.unseen(),
            piece_length: self.piece_length,
            every: self.sample.every,
        })
    }

    /// The mixture, given the linear model (or the n-gram) of all logs.
    pub(crate) fn finish(&self, finalists: &Finalists, model: Model, logs: &Logs) -> Result<Model> {
        let Finalists { slots, stack, .. } = finalists;
        let leader = finalists.leader();
        let mut states = match leader {
            Some(_) => self.final_states(finalists, &model, logs)?,
            None => Vec::new(),
        };
        let weighted = slots.iter().copied().zip(stack.weights.iter().copied()).filter(|(_, weight)| *weight > 0.0);
        let own = leader.and_then(|i| states.get_mut(i)).and_then(Option::take);
        let mut members = Vec::new();
        for (slot, weight) in weighted {
            let part = match slot {
                Slot::NGram(length) => Part::NGram(length),
                Slot::Linear => Part::Linear,
                Slot::Latent(i) if leader == Some(i) && own.is_some() => Part::Latent,
                Slot::Latent(i) => match states.get_mut(i).and_then(Option::take) {
                    Some(latent) => Part::Other(latent.candidate, Box::new(latent.pomdp)),
                    None => continue,
                },
                Slot::Recurrent(i) => match self.final_network(finalists, i, &model)? {
                    Some(net) => Part::Recurrent(Box::new(net)),
                    None => continue,
                },
            };
            members.push(Member { weight, part });
        }
        Ok(mixed(model, own, members, stack.memory))
    }

    /// The n-th network on all episodes in memory.
    fn final_network(&self, finalists: &Finalists, n: usize, model: &Model) -> Result<Option<Recurrent>> {
        let episodes = self.pieces.iter().map(|piece| piece.z.clone()).collect();
        let logs = Logs::memory(self.sample.alphabet.clone(), episodes);
        let episodes = logs.open(model.alphabet().clone())?.collect::<Result<Vec<_>>>()?;
        match finalists.networks.get(n) {
            Some(network) if self.sample.alphabet == *model.alphabet() => Ok(Some(network.extended(&episodes))),
            _ => {
                let budget = Budget { work: self.setting.network_work() / SMALL_LOGS, rival: None };
                let network = self.setting.network(model.alphabet(), &episodes, finalists.hidden[n], budget);
                Ok(network.map(|network| network.net))
            }
        }
    }

    /// The POMDPs on all logs; those that are not in the mixture are `None`.
    fn final_states(&self, finalists: &Finalists, model: &Model, logs: &Logs) -> Result<Vec<Option<Latent>>> {
        let Finalists { slots, stack, .. } = finalists;
        let is_used = |i: usize| weight(slots, stack, i) > 0.0 || finalists.leader() == Some(i);
        let (states, data) = match &finalists.states {
            Some(states) => {
                let data = Data::new(logs, model.alphabet())?;
                let training = Logs::memory(self.sample.alphabet.clone(), finalists.training.clone());
                let before = Data::new(&training, model.alphabet())?;
                let extended = |(i, states): (usize, &FittedStates)| {
                    if is_used(i) { states.extended(model.alphabet(), &before, &data) } else { Ok(states.clone()) }
                };
                (states.par_iter().enumerate().map(extended).collect::<Result<Vec<_>>>()?, data)
            }
            None => {
                let (mut states, data) = self.setting.states(model, logs, finalists.layout)?;
                if let Some(of) = finalists.of_network.as_ref().filter(|of| is_used(of.latent)) {
                    states.truncate(of.latent);
                    // Where there are fewer others, it takes the place of one of those.
                    if let Some(net) = self.final_network(finalists, of.network, model)? {
                        states.extend(self.setting.states_of_network(model, &net, logs, &of.candidates)?.0);
                    }
                }
                (states, data)
            }
        };
        let latent = |(i, states): (usize, &FittedStates)| is_used(i).then(|| states.model(model, &data)).transpose();
        states.par_iter().enumerate().map(latent).collect()
    }
}

impl Finalists {
    /// The POMDP that planners use.
    fn leader(&self) -> Option<usize> {
        leader(&self.slots, &self.stack, &self.nats)
    }

    /// Says which columns can be spared.
    fn sparing(mut self, columns: Option<SpareColumns>) -> Finalists {
        self.selection.columns = columns;
        self
    }

    /// Says how it was chosen whether rewards are observed.
    fn chosen_by(mut self, choice: Option<RewardChoice>) -> Finalists {
        self.selection.rewards = choice;
        self
    }
}

/// The weights of the members so far.
fn stack_of(trial: &Trial<'_>) -> Stack {
    if trial.evidence.parts.is_empty() { alone(trial.slots.len()) } else { stack(&trial.evidence) }
}

/// What can be compared with a family that observes more or less: observations up to those that are
/// the `same`, and rewards; `None` if there are no POMDPs.
fn common_of(trial: &Trial<'_>, same: Option<&[Vec<usize>]>) -> Option<Common> {
    if !trial.slots.iter().any(|slot| matches!(slot, Slot::Latent(_))) {
        return None;
    }
    let stack = stack_of(trial);
    let nats = trial.evidence.nats();
    Some(trial.common(&stack, leader(&trial.slots, &stack, &nats)?, same))
}

fn finite(error: f64) -> Option<f64> {
    error.is_finite().then_some(error)
}

/// The weight of the n-th POMDP.
fn weight(slots: &[Slot], stack: &Stack, n: usize) -> f64 {
    let at = slots.iter().position(|slot| *slot == Slot::Latent(n));
    at.map_or(0.0, |k| stack.weights[k])
}

/// The POMDP that planners use: that with the largest weight, and of those without weight that which
/// predicts best. It is kept even if it has none, because a predictor may be worse and still be better
/// to plan with.
fn leader(slots: &[Slot], stack: &Stack, nats: &[f64]) -> Option<usize> {
    let number = |slot: &Slot| if let Slot::Latent(n) = slot { Some(*n) } else { None };
    let latent = slots.iter().zip(stack.weights.iter().zip(nats)).filter_map(|(slot, of)| Some((number(slot)?, of)));
    // Of equals the first.
    let better = |x: &(&f64, &f64), y: &(&f64, &f64)| x.0.total_cmp(y.0).then(x.1.total_cmp(y.1)).is_gt();
    latent.reduce(|best, next| if better(&next.1, &best.1) { next } else { best }).map(|(n, _)| n)
}

/// The first member alone, where nothing can be held out.
fn alone(members: usize) -> Stack {
    Stack { weights: (0..members).map(|k| if k == 0 { 1.0 } else { 0.0 }).collect(), memory: 0.0, scores: Vec::new() }
}

/// A mixture of these members, or the only one of them.
fn mixed(model: Model, latent: Option<Latent>, mut members: Vec<Member>, memory: f64) -> Model {
    let own = match latent {
        Some(latent) => Predictor::Latent(Box::new(latent)),
        None => model.predictor().clone(),
    };
    let total: f64 = members.iter().map(|member| member.weight).sum();
    members.iter_mut().for_each(|member| member.weight /= total);
    let is_own = |part: &Part| match (part, &own) {
        (Part::Latent, _) | (Part::Linear, Predictor::Linear(_)) => true,
        (Part::NGram(length), Predictor::NGram) => *length == model.ngram().length(),
        _ => false,
    };
    if let ([Member { part: Part::Recurrent(net), .. }], Predictor::NGram) = (&members[..], &own) {
        return model.with_predictor(Predictor::Recurrent(net.clone()));
    }
    match &members[..] {
        [] => model.with_predictor(own),
        [only] if is_own(&only.part) => model.with_predictor(own),
        _ => model.with_predictor(Predictor::Mixture(Box::new(own), Mixture { members, memory })),
    }
}
