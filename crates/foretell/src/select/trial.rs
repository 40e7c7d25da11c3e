//! The family of predictors fitted on folds, and what held-out steps say about them.

use rayon::prelude::*;

use super::evidence::{Evidence, Fitted, Known, Target, expected_rewards, log_probabilities, mean_rewards};
use super::parts::Fold;
use super::rewards::Common;
use super::stack::Stack;
use super::{Doubling, Effort, SelectParams};
use crate::data::{Alphabet, ObservationSymbol, Trajectory};
use crate::error::{Error, Result};
use crate::learn::{Learn, LearnedRanks};
use crate::log::Logs;
use crate::model::{Candidate, LearnParams, MemberKind, Model, Recurrent, StateLayout};
use crate::pomdp::Pomdp;
use crate::recurrent::{Budget, FittedNetwork, pass_work};
use crate::refine::{Data, FittedStates, RefineParams, Refinement};
use crate::rng::Seed;

/// Ranks of linear models to try.
const RANKS: [usize; 7] = [2, 4, 8, 16, 24, 40, 64];
/// A lower rank is preferred unless a higher one predicts better by more than this, nats per step.
const NEGLIGIBLE: f64 = 1e-3;
/// No higher rank is tried once this many in a row were no better.
const WORSE: usize = 2;
/// Most POMDPs besides the best in the mixture, by effort.
const OTHERS: [usize; 3] = [4, 4, 8];
/// POMDPs are fitted again from other clusters as long as all fits together have at most this many
/// steps, by effort. Where logs are large, the mean of several is hardly better than the best.
const RESTARTED_STEPS: [u64; 3] = [1 << 17, 1 << 17, 1 << 19];
/// POMDPs that begin with clusters of a network's states are tried unless the best POMDP so far is
/// ahead of the network by more than this, nats per step: clusters of states that predict worse gained
/// nothing.
const NEAR: f64 = 0.02;
/// The numbers of such clusters, relative to the states of the best POMDP.
const CLUSTERS: [usize; 3] = [1, 2, 4];
/// Rounds of EM with all training episodes, after held-out ones have decided.
const LAST_ROUNDS: usize = 3;
/// Limit for the work of each fit by EM, in transitions that are visited, by effort: about 10 s and a
/// minute on two cores.
const WORK: [u64; 3] = [1 << 34, 1 << 34, 1 << 36];
/// Limit for the work of all restarts.
const RESTARTED_WORK: [u64; 3] = [1 << 32, 1 << 32, 1 << 36];

/// Numbers of hidden units of recurrent networks, by effort. The second is tried first, or the first
/// if the second takes too much work. If work is left for it, so is the third.
const HIDDEN: [[usize; 3]; 3] = [[32, 64, 64], [32, 64, 128], [64, 128, 256]];
/// Most multiply-adds of the training of networks, by effort: about 20 of them take a nanosecond.
const NETWORK_WORK: [f64; 3] = [1e11, 5e11, 4e12];
/// Where logs are small, the work of all folds together is this many times less.
const SMALL_SHARE: f64 = 2.0;
/// Where logs are small, a network that is behind by more nats per step than this is given up. In
/// 3000 steps of PocMan one that was 0.08 behind gained much in the mixture, and in other systems
/// those that were 0.16 to 0.6 behind gained nothing.
const HOPELESS: f64 = 0.1;
/// A network is tried if the work suffices for this many passes over the episodes.
const PASSES: f64 = 20.0;

/// A predictor of the family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slot {
    /// With contexts of up to this many pairs.
    NGram(usize),
    Linear,
    /// The n-th best POMDP.
    Latent(usize),
    /// The n-th network.
    Recurrent(usize),
}

impl Slot {
    pub(super) fn kind(self) -> MemberKind {
        match self {
            Slot::NGram(_) => MemberKind::NGram,
            Slot::Linear => MemberKind::Linear,
            Slot::Latent(_) => MemberKind::Latent,
            Slot::Recurrent(_) => MemberKind::Recurrent,
        }
    }
}

/// How the family is fitted.
pub(super) struct Setting {
    pub(super) params: LearnParams,
    pub(super) refine: RefineParams,
    pub(super) select: SelectParams,
}

impl Setting {
    pub(super) fn new(params: &LearnParams, refine: &RefineParams, select: &SelectParams) -> Setting {
        Setting { params: LearnParams { mix: 0.0, ..params.clone() }, refine: refine.clone(), select: select.clone() }
    }

    /// The ranks to try, ascending.
    fn ranks(&self) -> Vec<usize> {
        match self.select.fixed.rank {
            Some(rank) => vec![rank],
            None => RANKS.to_vec(),
        }
    }

    /// Whether POMDPs are fitted.
    pub(super) fn fits_states(&self) -> bool {
        match self.select.only {
            Some(only) => only == MemberKind::Latent,
            None => self.select.effort != Effort::Quick,
        }
    }

    /// Whether recurrent networks are trained.
    pub(super) fn fits_networks(&self) -> bool {
        match self.select.only {
            Some(only) => only == MemberKind::Recurrent,
            None => self.select.effort != Effort::Quick && !self.select.for_planning,
        }
    }

    /// The network of a size on some episodes.
    pub(super) fn network(
        &self,
        alphabet: &Alphabet,
        episodes: &[Trajectory],
        hidden: usize,
        budget: Budget,
    ) -> Option<FittedNetwork> {
        FittedNetwork::of(alphabet, episodes, hidden, budget, Seed(self.params.seed).stream("select/recurrent"))
    }

    /// Most multiply-adds of the training of networks.
    pub(super) fn network_work(&self) -> f64 {
        NETWORK_WORK[self.select.effort as usize]
    }

    /// POMDPs that are fitted to logs, best first, and the logs; with the given layout, or
    /// the best.
    pub(super) fn states<'l>(
        &self,
        linear: &Model,
        logs: &'l Logs,
        layout: Option<StateLayout>,
    ) -> Result<(Vec<FittedStates>, Data<'l>)> {
        let refine = RefineParams { layout: layout.unwrap_or(self.refine.layout), ..self.refine.clone() };
        self.with_restarts(self.refined(linear, logs, &refine)?, layout)
    }

    /// The best POMDP of each layout.
    fn refined<'l>(&self, linear: &Model, logs: &'l Logs, refine: &RefineParams) -> Result<Refinement<'l>> {
        let most_work = WORK[self.select.effort as usize];
        let mut refinement = Refinement::new(linear, logs, refine)?.keeping_rivals().limited_to(most_work);
        refinement.by_ref().collect::<Result<Vec<_>>>()?;
        Ok(refinement)
    }

    /// The best POMDP that begins with clusters of a network's states, and the logs.
    pub(super) fn states_of_network<'l>(
        &self,
        linear: &Model,
        net: &Recurrent,
        logs: &'l Logs,
        candidates: &[Candidate],
    ) -> Result<(Option<FittedStates>, Data<'l>)> {
        let most_work = RESTARTED_WORK[self.select.effort as usize];
        let mut refinement = Refinement::of_network(linear, net, logs, candidates)?.limited_to(most_work);
        refinement.by_ref().collect::<Result<Vec<_>>>()?;
        let (states, data) = refinement.into_fits(0);
        let mut best = states.into_iter().next();
        best.iter_mut().try_for_each(|states| states.continue_on(&data, LAST_ROUNDS))?;
        Ok((best, data))
    }

    /// POMDPs of the given layout, or of all, and others from other starts.
    fn with_restarts<'l>(
        &self,
        mut refinement: Refinement<'l>,
        layout: Option<StateLayout>,
    ) -> Result<(Vec<FittedStates>, Data<'l>)> {
        let effort = self.select.effort as usize;
        let by_steps = (RESTARTED_STEPS[effort] / refinement.steps()).saturating_sub(1);
        refinement.restart(layout, by_steps.min(OTHERS[effort] as u64), RESTARTED_WORK[effort]);
        refinement.by_ref().collect::<Result<Vec<_>>>()?;
        let (mut states, data) = refinement.into_fits(OTHERS[effort]);
        states.par_iter_mut().map(|states| states.continue_on(&data, LAST_ROUNDS)).collect::<Result<Vec<()>>>()?;
        Ok((states, data))
    }
}

/// The predictors of one fold.
struct FoldFits {
    learned: LearnedRanks,
    /// The linear model of the rank that was chosen, or the n-gram alone.
    model: Model,
    /// POMDPs, best first.
    states: Vec<FittedStates>,
    pomdps: Vec<Pomdp>,
    networks: Vec<FittedNetwork>,
}

/// The family on all folds.
pub(super) struct Trial<'f> {
    setting: &'f Setting,
    pub(super) folds: &'f [Fold],
    fits: Vec<FoldFits>,
    pub(super) slots: Vec<Slot>,
    pub(super) evidence: Evidence,
    /// The rank of the linear model; `None` if there is none.
    pub(super) rank: Option<usize>,
    /// The layout of the states of all POMDPs; `None` if each fit chooses its own.
    pub(super) layout: Option<StateLayout>,
    /// The POMDP that began with clusters of a network's states, if there is one.
    pub(super) of_network: Option<OfNetwork>,
}

/// A POMDP that begins with clusters of a network's states.
#[derive(Clone)]
pub(super) struct OfNetwork {
    /// Its number among the POMDPs.
    pub(super) latent: usize,
    /// The number of the network.
    pub(super) network: usize,
    /// The kinds of states, and their numbers, of which the best was taken.
    pub(super) candidates: Vec<Candidate>,
}

impl<'f> Trial<'f> {
    /// N-grams, and linear models of the rank that predicts best.
    pub(super) fn new(setting: &'f Setting, alphabet: &Alphabet, folds: &'f [Fold]) -> Result<Trial<'f>> {
        let learn = match setting.select.only {
            Some(MemberKind::NGram | MemberKind::Recurrent) => Learn::Counts,
            _ => Learn::Linear,
        };
        let mut trial = Trial::without_members(setting, alphabet, folds, learn)?;
        trial.ngrams().for_each(|slot| trial.add(slot));
        trial.add_linear();
        Ok(trial)
    }

    /// N-grams of other episodes.
    pub(super) fn counted<'g>(&self, alphabet: &Alphabet, folds: &'g [Fold]) -> Result<Trial<'g>>
    where
        'f: 'g,
    {
        Trial::without_members(self.setting, alphabet, folds, Learn::Counts)
    }

    /// What n-grams, and perhaps linear models, are made of.
    fn without_members(setting: &'f Setting, alphabet: &Alphabet, folds: &'f [Fold], learn: Learn) -> Result<Trial<'f>> {
        let rank = *setting.ranks().last().expect("there is a rank");
        let params = LearnParams { rank, ..setting.params.clone() };
        let fit = |fold: &Fold| -> Result<FoldFits> {
            let learned = LearnedRanks::of(alphabet, &fold.training, &params, learn)?;
            Ok(FoldFits { model: learned.ngram(), learned, states: Vec::new(), pomdps: Vec::new(), networks: Vec::new() })
        };
        let fits = folds.par_iter().map(fit).collect::<Result<Vec<_>>>()?;
        let evidence = Evidence::of_parts(folds.iter().flat_map(|fold| &fold.held_out));
        Ok(Trial { setting, folds, fits, slots: Vec::new(), evidence, rank: None, layout: None, of_network: None })
    }

    /// The n-grams.
    pub(super) fn ngrams(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..=self.setting.params.ngram_length).map(Slot::NGram)
    }

    fn add(&mut self, slot: Slot) {
        let logs = self.log_probabilities(slot, Target::Symbol);
        self.evidence.logs.push(logs);
        self.slots.push(slot);
    }

    /// The logarithm of the probability that a predictor gives to each held-out step.
    pub(super) fn log_probabilities(&self, slot: Slot, target: Target<'_>) -> Vec<f64> {
        let of_fold = |(fits, fold): (&FoldFits, &Fold)| {
            let fitted = match slot {
                Slot::NGram(length) => Fitted::NGram(length),
                Slot::Linear => Fitted::Linear,
                Slot::Latent(i) => Fitted::Pomdp(&fits.pomdps[i]),
                Slot::Recurrent(i) => Fitted::Recurrent(&fits.networks[i].net),
            };
            log_probabilities(&fits.model, fitted, &fold.held_out, target)
        };
        self.fits.iter().zip(self.folds).flat_map(of_fold).collect()
    }

    /// Adds the linear model of the rank that predicts best.
    fn add_linear(&mut self) {
        let Some(largest) = self.fits.iter().map(|fits| fits.learned.most()).min() else { return };
        let mut ranks = self.setting.ranks();
        // Ranks above the largest give the same model.
        let first_above = ranks.iter().position(|&rank| rank >= largest).map_or(ranks.len(), |i| i + 1);
        ranks.truncate(first_above);
        let (mut best, mut worse): (Option<(usize, Vec<f64>)>, _) = (None, 0);
        for rank in ranks {
            let models: Option<Vec<Model>> = self.fits.iter().map(|fits| fits.learned.linear(rank)).collect();
            let Some(models) = models else { continue };
            let of_fold =
                |(model, fold): (&Model, &Fold)| log_probabilities(model, Fitted::Linear, &fold.held_out, Target::Symbol);
            let logs: Vec<f64> = models.iter().zip(self.folds).flat_map(of_fold).collect();
            let scores = |logs: &[f64]| self.evidence.scores(logs);
            let is_better =
                |before: &(usize, Vec<f64>)| self.evidence.difference(&scores(&logs), &scores(&before.1)).0 > NEGLIGIBLE;
            worse += 1;
            if best.as_ref().is_none_or(is_better) {
                self.fits.iter_mut().zip(models).for_each(|(fits, model)| fits.model = model);
                (best, worse) = (Some((rank, logs)), 0);
            }
            if worse == WORSE {
                break;
            }
        }
        let Some((rank, logs)) = best else { return };
        self.rank = Some(rank);
        self.evidence.logs.push(logs);
        self.slots.push(Slot::Linear);
    }

    /// Adds POMDPs fitted by EM: as many as every fold has.
    pub(super) fn add_states(&mut self) -> Result<()> {
        if self.rank.is_none() {
            return Ok(());
        }
        let setting = self.setting;
        let logs = |(fold, fits): (&Fold, &FoldFits)| Logs::memory(fits.model.alphabet().clone(), fold.training.clone());
        let logs: Vec<Logs> = self.folds.iter().zip(&self.fits).map(logs).collect();
        let refined = |(logs, fits): (_, &FoldFits)| setting.refined(&fits.model, logs, &setting.refine);
        let refined: Vec<Refinement<'_>> = logs.par_iter().zip(&self.fits).map(refined).collect::<Result<_>>()?;
        self.layout = if self.folds.len() > 1 { best_layout(&refined) } else { None };
        let layout = self.layout;
        let fit = |(refined, fits): (Refinement<'_>, &mut FoldFits)| -> Result<()> {
            let (states, data) = setting.with_restarts(refined, layout)?;
            let pomdp = |states: &FittedStates| Ok(states.model(&fits.model, &data)?.pomdp);
            fits.pomdps = states.par_iter().map(pomdp).collect::<Result<_>>()?;
            fits.states = states;
            Ok(())
        };
        refined.into_par_iter().zip(&mut self.fits).map(fit).collect::<Result<Vec<()>>>()?;
        let common = self.fits.iter().map(|fits| fits.states.len()).min().unwrap_or(0);
        (0..common).for_each(|i| self.add(Slot::Latent(i)));
        Ok(())
    }

    /// Adds recurrent networks, if every fold has enough episodes: one, and where logs are not small,
    /// a larger one if there is work left for it.
    pub(super) fn add_networks(&mut self) {
        let Some((fold, fits)) = self.folds.first().zip(self.fits.first()) else { return };
        let steps: usize = fold.training.iter().map(|z| z.steps.len()).sum();
        let [small, middle, large] = HIDDEN[self.setting.select.effort as usize];
        let folds = self.folds.len() as f64;
        let work = self.setting.network_work() / if folds > 1.0 { SMALL_SHARE * folds } else { 1.0 };
        let needed = [middle, large].map(|hidden| PASSES * pass_work(fits.model.alphabet(), hidden, steps));
        let first = if needed[0] <= work { middle } else { small };
        self.add_network(first, work);
        let spent = self.fits.first().and_then(|fits| fits.networks.first()).map_or(work, |network| network.work);
        if self.folds.len() == 1 && large > first && needed[1] <= work - spent {
            self.add_network(large, work - spent);
        }
    }

    /// Adds a network of a size. The first fold decides whether the others are worth their time.
    fn add_network(&mut self, hidden: usize, work: f64) {
        let (setting, budget) = (self.setting, Budget { work, rival: self.best() });
        let fit = |(fold, fits): (&Fold, &FoldFits)| setting.network(fits.model.alphabet(), &fold.training, hidden, budget);
        let Some(first) = self.folds.first().zip(self.fits.first()).and_then(fit) else { return };
        if self.folds.len() > 1 && self.is_hopeless(&first) {
            return;
        }
        let others = self.folds[1..].par_iter().zip(&self.fits[1..]).map(fit).collect::<Option<Vec<_>>>();
        let Some(others) = others else { return };
        let networks = std::iter::once(first).chain(others);
        self.fits.iter_mut().zip(networks).for_each(|(fits, network)| fits.networks.push(network));
        self.add(Slot::Recurrent(self.fits[0].networks.len() - 1));
    }

    /// Adds a POMDP that begins with clusters of the states of the best network, where that predicts
    /// about as well as the best POMDP, or better: EM finds a long memory from there that it does not
    /// find otherwise.
    pub(super) fn add_states_of_network(&mut self) -> Result<()> {
        let nats = self.evidence.nats();
        let best = |kind: MemberKind| {
            let of_kind = self.slots.iter().copied().zip(nats.iter().copied()).filter(|(slot, _)| slot.kind() == kind);
            // Of equals the first.
            of_kind.reduce(|best, next| if next.1 > best.1 { next } else { best })
        };
        let (Some((Slot::Recurrent(network), by_network)), Some((_, by_states))) =
            (best(MemberKind::Recurrent), best(MemberKind::Latent))
        else {
            return Ok(());
        };
        if by_network < by_states - NEAR {
            return Ok(());
        }
        let candidates = self.fits.first().map_or(Vec::new(), |fits| clusters(&fits.states));
        let fit = |(fold, fits): (&Fold, &FoldFits)| -> Result<Option<(FittedStates, Pomdp)>> {
            let logs = Logs::memory(fits.model.alphabet().clone(), fold.training.clone());
            let net = &fits.networks[network].net;
            let (states, data) = self.setting.states_of_network(&fits.model, net, &logs, &candidates)?;
            states.map(|states| Ok((states.clone(), states.model(&fits.model, &data)?.pomdp))).transpose()
        };
        let found = self.folds.par_iter().zip(&self.fits).map(fit).collect::<Result<Option<Vec<_>>>>()?;
        let Some(found) = found else { return Ok(()) };
        let common = self.slots.iter().filter(|slot| slot.kind() == MemberKind::Latent).count();
        for (fits, (states, pomdp)) in self.fits.iter_mut().zip(found) {
            fits.states.truncate(common);
            fits.states.push(states);
            fits.pomdps.truncate(common);
            fits.pomdps.push(pomdp);
        }
        self.of_network = Some(OfNetwork { latent: common, network, candidates });
        self.add(Slot::Latent(common));
        Ok(())
    }

    /// Whether the network of the first fold predicts its held-out steps so much worse than the best
    /// predictor does that a mixture would not gain by it.
    fn is_hopeless(&self, network: &FittedNetwork) -> bool {
        let (fold, fits) = (&self.folds[0], &self.fits[0]);
        let logs = log_probabilities(&fits.model, Fitted::Recurrent(&network.net), &fold.held_out, Target::Symbol);
        let evidence = Evidence::of_parts(fold.held_out.iter());
        let sum = |logs: &[f64]| evidence.scores(logs).iter().sum::<f64>();
        let best = self.evidence.logs.iter().map(|all| sum(&all[..logs.len()])).max_by(f64::total_cmp);
        self.setting.select.only.is_none() && best.is_some_and(|best| sum(&logs) < best - HOPELESS * evidence.steps() as f64)
    }

    /// Nats per held-out step of the best predictor so far, where it has to be beaten.
    fn best(&self) -> Option<f64> {
        self.evidence.nats().into_iter().max_by(f64::total_cmp).filter(|_| self.setting.select.only.is_none())
    }

    /// Drops the members of other kinds, if only one is wanted.
    pub(super) fn keep_only_wanted(&mut self) -> Result<()> {
        let Some(only) = self.setting.select.only else { return Ok(()) };
        let all = std::mem::take(&mut self.slots).into_iter().zip(std::mem::take(&mut self.evidence.logs));
        (self.slots, self.evidence.logs) = all.filter(|(slot, _)| slot.kind() == only).unzip();
        if self.slots.is_empty() {
            let problem = "these logs are too few, or their episodes too short, to learn a predictor of the wanted kind";
            return Err(Error::data(problem, "leave out `only`, or give more and longer episodes"));
        }
        Ok(())
    }

    /// What a mixture and its POMDP `leader` say about observations, up to those that are the `same`,
    /// and about rewards.
    pub(super) fn common(&self, stack: &Stack, leader: usize, same: Option<&[Vec<usize>]>) -> Common {
        let observations = match same {
            Some(same) => {
                let weighted = self.slots.iter().zip(&stack.weights).filter(|(_, weight)| **weight > 0.0);
                let logs: Vec<_> = weighted.map(|(slot, _)| self.log_probabilities(*slot, Target::Class(same))).collect();
                stack.scores_of(&self.evidence, &logs)
            }
            None => stack.scores.clone(),
        };
        let by_states = |(fits, fold): (&FoldFits, &Fold)| expected_rewards(&fits.pomdps[leader], &fold.held_out);
        let by_states: Vec<f64> = self.fits.iter().zip(self.folds).flat_map(by_states).collect();
        let by_actions: Vec<f64> = self.folds.iter().flat_map(mean_rewards).collect();
        let rewards: Vec<&[Option<f64>]> = self.folds.iter().flat_map(|fold| &fold.held_out).map(|z| &z.rewards[..]).collect();
        Common::new(&self.evidence, observations, [&by_states, &by_actions], &rewards)
    }

    /// How much better a predictor is than if it had been fitted to half of the logs: the gain in
    /// nats per step and its standard error, on the first fold. `None` where half is too little.
    pub(super) fn doubling(&self, slot: Slot) -> Result<Option<Doubling>> {
        let is_latent = matches!(slot, Slot::Latent(_));
        let effort = self.setting.select.effort;
        // EM ends elsewhere from every start, so it takes the same search again.
        if effort == Effort::Quick || slot.kind() == MemberKind::Recurrent || is_latent && effort != Effort::Thorough {
            return Ok(None);
        }
        let (Some(fold), Some(fits)) = (self.folds.first(), self.fits.first()) else { return Ok(None) };
        let half: Vec<Trajectory> = fold.training.iter().step_by(2).cloned().collect();
        let alphabet = fits.model.alphabet();
        let params = LearnParams { rank: self.rank.unwrap_or(1), ..self.setting.params.clone() };
        let learn = if matches!(slot, Slot::NGram(_)) { Learn::Counts } else { Learn::Linear };
        let learned = LearnedRanks::of(alphabet, &half, &params, learn)?;
        let score = |model: &Model, fitted| log_probabilities(model, fitted, &fold.held_out, Target::Symbol);
        let of_half = match (slot, learned.linear(params.rank)) {
            (Slot::NGram(length), _) => score(&learned.ngram(), Fitted::NGram(length)),
            (_, None) => return Ok(None),
            (Slot::Linear | Slot::Recurrent(_), Some(linear)) => score(&linear, Fitted::Linear),
            (Slot::Latent(_), Some(linear)) => {
                let logs = Logs::memory(alphabet.clone(), half);
                let (states, data) = self.setting.states(&linear, &logs, self.layout)?;
                let Some(best) = states.first() else { return Ok(None) };
                score(&linear, Fitted::Pomdp(&best.model(&linear, &data)?.pomdp))
            }
        };
        let at = self.slots.iter().position(|other| *other == slot).expect("it is one of them");
        let evidence = Evidence::of_parts(fold.held_out.iter());
        let of_all = &self.evidence.logs[at][..of_half.len()];
        let (gain, error) = evidence.difference(&evidence.scores(of_all), &evidence.scores(&of_half));
        Ok(error.is_finite().then_some(Doubling { kind: slot.kind(), gain, error }))
    }

    /// Its size in words.
    pub(super) fn size(&self, slot: Slot) -> String {
        match slot {
            Slot::NGram(1) => "up to 1 step".into(),
            Slot::NGram(length) => format!("up to {length} steps"),
            Slot::Linear => format!("rank {}", self.rank.unwrap_or_default()),
            Slot::Latent(i) => range(self.fits.iter().map(|fits| fits.states[i].size()).collect()),
            Slot::Recurrent(i) => format!("{} units", self.hidden()[i]),
        }
    }

    /// The share of held-out steps that count and whose symbols were not seen in training.
    pub(super) fn unseen(&self) -> f64 {
        let of_fold = |(fits, fold): (&FoldFits, &Fold)| {
            let known = Known::of(&fits.model);
            let counted = fold.held_out.iter().flat_map(|z| &z.steps[z.from..]);
            counted.filter(|ao| !ao.observation.is_missing() && !known.knows(**ao)).count()
        };
        let unseen: usize = self.fits.iter().zip(self.folds).map(of_fold).sum();
        unseen as f64 / self.evidence.steps().max(1) as f64
    }

    /// Why there is no linear model.
    pub(super) fn problem(&self) -> Option<String> {
        self.fits.iter().find_map(|fits| fits.learned.problem()).map(ToString::to_string)
    }

    /// Hidden units of the networks.
    pub(super) fn hidden(&self) -> Vec<usize> {
        let networks = self.fits.first().map_or(&[][..], |fits| &fits.networks);
        networks.iter().map(|network| network.net.hidden()).collect()
    }

    /// The POMDPs and the networks of the only fold, if there is one.
    pub(super) fn into_fits(mut self) -> Option<(Option<Vec<FittedStates>>, Vec<FittedNetwork>)> {
        let only = self.fits.pop().filter(|_| self.fits.is_empty())?;
        Some((Some(only.states).filter(|states| !states.is_empty()), only.networks))
    }
}

/// The kind of states of the best POMDP that can have any number of them, and several numbers.
fn clusters(states: &[FittedStates]) -> Vec<Candidate> {
    let any =
        |states: &&FittedStates| matches!(states.candidate.layout, StateLayout::Owned | StateLayout::Free | StateLayout::Sensing);
    let Some(best) = states.first() else { return Vec::new() };
    let (layout, least) = match states.iter().find(any) {
        Some(states) => (states.candidate.layout, states.candidate.states),
        None => (StateLayout::Owned, best.candidate.states),
    };
    CLUSTERS.iter().map(|times| Candidate { layout, states: times * least }).collect()
}

/// The layout that predicts best on average over the folds. A single small fold hardly shows which
/// is better.
fn best_layout(folds: &[Refinement<'_>]) -> Option<StateLayout> {
    let judged: Vec<Vec<(StateLayout, f64)>> = folds.iter().map(Refinement::judged).collect();
    let of = |layout, fold: &[(StateLayout, f64)]| fold.iter().find(|(other, _)| *other == layout).map(|(_, x)| *x);
    let sum = |layout| judged.iter().map(|fold| of(layout, fold)).sum::<Option<f64>>().map(|sum| (layout, sum));
    let sums = judged.iter().flatten().filter_map(|&(layout, _)| sum(layout));
    // Of equals the first.
    sums.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(layout, _)| layout)
}

/// For each symbol those that differ from it by their reward only, including itself.
pub(super) fn same_without_reward(alphabet: &Alphabet) -> Vec<Vec<usize>> {
    let plain = alphabet.without_rewards();
    let same = |one: &ObservationSymbol| (0..plain.len()).filter(|&other| plain[other] == *one).collect();
    plain.iter().map(same).collect()
}

/// `62 states`, or `58 to 62 states` where folds differ.
fn range(mut sizes: Vec<usize>) -> String {
    sizes.sort_unstable();
    match (sizes.first(), sizes.last()) {
        (Some(least), Some(most)) if least == most => format!("{least} states"),
        (Some(least), Some(most)) => format!("{least} to {most} states"),
        _ => "no states".into(),
    }
}
