//! The states of the members of a mixture, and their weights as the episode goes on.

use super::latent;
use super::linear::LinearState;
use super::ngram;
use super::recurrent::RecurrentState;
use crate::data::{Action, ActionObservation, Observation};
use crate::model::linear::Linear;
use crate::model::mixture::{Member, Mixture, Part};
use crate::model::ngram::Past;
use crate::model::predictor::Model;
use crate::model::recurrent::Recurrent;
use crate::pomdp::{BeliefState, Pomdp};

/// A probability below this counts as this much evidence against a member, which can then still
/// recover.
const LEAST_PROBABILITY: f64 = 1e-12;

/// The states of the members that are not the mixture's own predictor, and what the episode says
/// about all of them.
#[derive(Clone, Debug)]
pub(super) struct Blend {
    /// Of the linear member, where the mixture's own predictor is a POMDP.
    linear: Option<LinearState>,
    /// Of the other POMDPs.
    beliefs: Vec<BeliefState>,
    /// Of the recurrent networks.
    recurrent: Vec<RecurrentState>,
    /// Σ λ^{t−i} ln P_k(o_i ‖ a_i) of each member, up to a constant.
    evidence: Vec<f64>,
    /// The last prediction of each member, one after the other, and for which action.
    predictions: Vec<f64>,
    action: Option<Action>,
}

impl Blend {
    /// At the start of an episode.
    pub(super) fn new(model: &Model, mixture: &Mixture) -> Blend {
        let (symbols, members) = (model.alphabet().observations().len(), mixture.members.len());
        let is_apart = model.latent().is_some() && mixture.members.iter().any(|member| member.part == Part::Linear);
        let others = mixture.members.iter().filter_map(|member| match &member.part {
            Part::Other(_, pomdp) => Some(BeliefState::new(pomdp)),
            _ => None,
        });
        let recurrent = networks(mixture).map(|net| RecurrentState::new(net, model.frequencies())).collect();
        Blend {
            recurrent,
            linear: model.linear().filter(|_| is_apart).map(LinearState::new),
            beliefs: others.collect(),
            evidence: vec![0.0; members],
            predictions: vec![0.0; symbols * members],
            action: None,
        }
    }

    pub(super) fn reset(&mut self, model: &Model, mixture: &Mixture) {
        self.each_state(model, mixture, |state| match state {
            MemberState::Linear(state, linear) => state.reset(linear),
            MemberState::Pomdp(belief, pomdp) => belief.reset(pomdp),
            MemberState::Recurrent(state, net) => state.reset(net, model.frequencies()),
        });
        self.evidence.fill(0.0);
        self.action = None;
    }

    /// Fills in the prediction of each member; `own` predicts with the mixture's own predictor.
    pub(super) fn predict(&mut self, model: &Model, mixture: &Mixture, past: &Past, a: Action, own: impl FnOnce(&mut [f64])) {
        if self.action == Some(a) {
            return;
        }
        let symbols = model.alphabet().observations().len();
        let (frequencies, seen) = (model.frequencies(), 1.0 - model.frequencies().unseen);
        let (mut own, mut beliefs, mut recurrent) = (Some(own), self.beliefs.iter_mut(), self.recurrent.iter_mut());
        for (member, p) in mixture.members.iter().zip(self.predictions.chunks_exact_mut(symbols)) {
            match (&member.part, &self.linear, model.linear()) {
                (Part::NGram(length), ..) => ngram::predict_up_to(model, past, *length, a, p),
                (Part::Linear, Some(state), Some(linear)) => state.predict(linear, a, model.params().floor, seen, p),
                (Part::Linear | Part::Latent, ..) => {
                    let own = own.take().expect("at most one member is the mixture's own predictor");
                    own(p);
                }
                (Part::Other(_, pomdp), ..) => {
                    let belief = beliefs.next().expect("there is a belief for each");
                    latent::predict(belief, pomdp, frequencies, a, seen, p);
                }
                (Part::Recurrent(net), ..) => {
                    let state = recurrent.next().expect("there is a state for each");
                    state.predict(net, frequencies, a, seen, p);
                }
            }
        }
        self.action = Some(a);
    }

    /// P(o ‖ a) = Σ_k w_k P_k(o ‖ a) of the last prediction, over the members for which `counts`
    /// is true; over all if there is none.
    pub(super) fn combine(&self, mixture: &Mixture, counts: impl Fn(&Part) -> bool, p: &mut [f64]) {
        let some = mixture.members.iter().any(|member| counts(&member.part));
        let weights = self.weights(mixture, |part| !some || counts(part));
        p.fill(0.0);
        for (weight, of_member) in weights.into_iter().zip(self.predictions.chunks_exact(p.len())) {
            p.iter_mut().zip(of_member).for_each(|(p, q)| *p += weight * q);
        }
    }

    /// The weights now, of the members for which `counts` is true.
    fn weights(&self, mixture: &Mixture, counts: impl Fn(&Part) -> bool) -> Vec<f64> {
        let members = || mixture.members.iter().zip(&self.evidence);
        let counted = members().filter(|(member, _)| counts(&member.part));
        let most = counted.map(|(_, evidence)| *evidence).fold(f64::NEG_INFINITY, f64::max);
        let weight = |(member, evidence): (&Member, &f64)| match counts(&member.part) {
            true => member.weight * (evidence - most).exp(),
            false => 0.0,
        };
        let mut weights: Vec<f64> = members().map(weight).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        weights
    }

    /// Takes the observation of the action predicted last into account in the weights.
    pub(super) fn weigh(&mut self, mixture: &Mixture, symbols: usize, ao: ActionObservation) {
        self.weigh_among(mixture, symbols, &[ao.observation]);
    }

    /// The same where the observation is one of `among`.
    pub(super) fn weigh_among(&mut self, mixture: &Mixture, symbols: usize, among: &[Observation]) {
        let probability = |p: &[f64]| among.iter().map(|o| p[o.index()]).sum::<f64>();
        let of_member = self.predictions.chunks_exact(symbols).map(probability);
        for (evidence, p) in self.evidence.iter_mut().zip(of_member) {
            *evidence = mixture.memory * (*evidence + p.max(LEAST_PROBABILITY).ln());
        }
    }

    /// Updates the states of the members apart from the mixture's own predictor.
    pub(super) fn observe(&mut self, model: &Model, mixture: &Mixture, ao: ActionObservation) {
        self.action = None;
        self.each_state(model, mixture, |state| match state {
            MemberState::Linear(state, linear) => state.observe(linear, model.frequencies(), ao),
            MemberState::Pomdp(belief, pomdp) => {
                belief.update(pomdp, ao);
            }
            MemberState::Recurrent(state, net) => state.observe(net, model.frequencies(), ao),
        });
    }

    /// The same for an action whose observation is one of `among`.
    pub(super) fn observe_among(&mut self, model: &Model, mixture: &Mixture, a: Action, among: &[Observation]) {
        self.action = None;
        self.each_state(model, mixture, |state| match state {
            MemberState::Linear(state, linear) => state.observe_among(linear, model.frequencies(), a, among),
            MemberState::Pomdp(belief, pomdp) => {
                belief.update_among(pomdp, a, among);
            }
            MemberState::Recurrent(state, net) => state.observe_among(net, model.frequencies(), a, among),
        });
    }

    /// The same for an action whose observation is missing.
    pub(super) fn miss(&mut self, model: &Model, mixture: &Mixture, a: Action) {
        self.action = None;
        self.each_state(model, mixture, |state| match state {
            MemberState::Linear(state, linear) => state.miss(linear, model.frequencies(), a),
            MemberState::Pomdp(belief, pomdp) => latent::miss(belief, pomdp, model.frequencies(), a),
            MemberState::Recurrent(state, net) => state.miss(net, model.frequencies(), Some(a)),
        });
    }

    /// The same for steps of the logging policy.
    pub(super) fn miss_steps(&mut self, model: &Model, mixture: &Mixture, steps: usize) {
        self.action = None;
        let shares = &model.frequencies().action_shares;
        self.each_state(model, mixture, |state| match state {
            MemberState::Linear(state, linear) => state.miss_steps(linear, steps),
            MemberState::Pomdp(belief, pomdp) => (0..steps).for_each(|_| belief.update_unknown(pomdp, shares)),
            MemberState::Recurrent(state, net) => (0..steps).for_each(|_| state.miss(net, model.frequencies(), None)),
        });
    }

    fn each_state(&mut self, model: &Model, mixture: &Mixture, mut f: impl FnMut(MemberState<'_>)) {
        if let (Some(state), Some(linear)) = (&mut self.linear, model.linear()) {
            f(MemberState::Linear(state, linear));
        }
        let pomdps = mixture.members.iter().filter_map(|member| match &member.part {
            Part::Other(_, pomdp) => Some(pomdp),
            _ => None,
        });
        self.beliefs.iter_mut().zip(pomdps).for_each(|(belief, pomdp)| f(MemberState::Pomdp(belief, pomdp)));
        self.recurrent.iter_mut().zip(networks(mixture)).for_each(|(state, net)| f(MemberState::Recurrent(state, net)));
    }
}

/// The recurrent networks of a mixture.
fn networks(mixture: &Mixture) -> impl Iterator<Item = &Recurrent> {
    mixture.members.iter().filter_map(|member| match &member.part {
        Part::Recurrent(net) => Some(&**net),
        _ => None,
    })
}

/// The state of a member, and what updates it.
enum MemberState<'a> {
    Linear(&'a mut LinearState, &'a Linear),
    Pomdp(&'a mut BeliefState, &'a Pomdp),
    Recurrent(&'a mut RecurrentState, &'a Recurrent),
}
