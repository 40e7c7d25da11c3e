//! The state of a model in an episode: as a value that the model updates, and together with its
//! model.

use std::ops::Deref;

use super::ensemble::Others;
use super::linear::LinearState;
use super::mixture::Blend;
use super::recurrent::RecurrentState;
use super::{latent, ngram};
use crate::data::{Action, ActionObservation, Observation};
use crate::model::mixture::{MemberKind, Part};
use crate::model::ngram::Past;
use crate::model::predictor::{Model, Predictor};
use crate::pomdp::BeliefState;
use crate::rng::Rng;
use crate::system::{Filter, Predict, Track};

/// The state of a model after a history. It borrows nothing: every call takes the model, which must
/// be the one it was made for.
#[derive(Clone, Debug)]
pub struct State {
    kind: Kind,
    /// The states of the other members of a mixture.
    blend: Option<Box<Blend>>,
    /// The states of the other models of an ensemble.
    others: Option<Box<Others>>,
    /// The context that the n-gram needs.
    past: Past,
    /// The last prediction, and scratch space for that of the n-gram.
    probabilities: Vec<f64>,
    smoothed: Vec<f64>,
    ended: bool,
}

/// The state of a single predictor.
#[derive(Clone, Debug)]
enum Kind {
    /// The n-gram needs nothing but the past.
    NGram,
    Linear(LinearState),
    Latent(BeliefState),
    Recurrent(Box<RecurrentState>),
}

/// Panics: a state was used with another model than its own.
fn other_model() -> ! {
    panic!("the state belongs to another model")
}

impl State {
    /// At the start of an episode.
    pub fn new(model: &Model) -> State {
        let symbols = model.alphabet().observations().len();
        let kind = match model.predictor().core() {
            Predictor::NGram => Kind::NGram,
            Predictor::Linear(linear) => Kind::Linear(LinearState::new(linear)),
            Predictor::Latent(latent) => Kind::Latent(BeliefState::new(&latent.pomdp)),
            Predictor::Recurrent(net) => Kind::Recurrent(Box::new(RecurrentState::new(net, model.frequencies()))),
            Predictor::Mixture(..) | Predictor::Ensemble(_) => unreachable!("these are not members of another"),
        };
        State {
            kind,
            blend: model.mixture().map(|mixture| Box::new(Blend::new(model, mixture))),
            others: model.ensemble().map(|ensemble| Box::new(Others::new(ensemble, symbols))),
            past: Past::new(model.ngram().length()),
            probabilities: vec![0.0; symbols],
            smoothed: vec![0.0; symbols],
            ended: false,
        }
    }

    /// Back to the start of an episode.
    pub fn reset(&mut self, model: &Model) {
        match (&mut self.kind, model.predictor().core()) {
            (Kind::NGram, Predictor::NGram) => {}
            (Kind::Linear(state), Predictor::Linear(linear)) => state.reset(linear),
            (Kind::Latent(belief), Predictor::Latent(latent)) => belief.reset(&latent.pomdp),
            (Kind::Recurrent(state), Predictor::Recurrent(net)) => state.reset(net, model.frequencies()),
            _ => other_model(),
        }
        if let (Some(blend), Some(mixture)) = (&mut self.blend, model.mixture()) {
            blend.reset(model, mixture);
        }
        self.each_other(model, State::reset);
        self.past.reset();
        self.ended = false;
    }

    /// P(o ‖ a) for every observation seen in training; their sum with [`PredictiveState::unseen`]
    /// is 1.
    pub fn predict(&mut self, model: &Model, a: Action) -> &[f64] {
        self.predict_each(model, |state, model| state.predict_mixed(model, a))
    }

    /// The last prediction.
    pub fn prediction(&self) -> &[f64] {
        &self.probabilities
    }

    /// Updates the state by a step. A step that ends the episode leaves the state as it is, and
    /// [`Predict::probability`] is 0 until the next reset.
    pub fn observe(&mut self, model: &Model, ao: ActionObservation) {
        self.each_other(model, |other, model| other.observe(model, ao));
        self.ended |= model.alphabet().observations().get(ao.observation.index()).is_some_and(|o| o.terminal);
        if self.ended {
            return;
        }
        let known = model.knows(ao.action);
        let is_new = ao.observation.index() >= self.probabilities.len();
        if is_new || (!known && (matches!(self.kind, Kind::Latent(_) | Kind::Recurrent(_)) || self.blend.is_some())) {
            return self.miss(model, ao.action);
        }
        if model.mixture().is_some_and(|mixture| mixture.memory > 0.0) {
            self.predict_members(model, ao.action);
        }
        if let (Some(blend), Some(mixture)) = (&mut self.blend, model.mixture()) {
            if mixture.memory > 0.0 {
                blend.weigh(mixture, self.probabilities.len(), ao);
            }
            blend.observe(model, mixture, ao);
        }
        self.past.push_if(known, &model.frequencies().fingerprints, ao);
        match (&mut self.kind, model.predictor().core()) {
            (Kind::NGram, Predictor::NGram) => {}
            (Kind::Linear(state), Predictor::Linear(linear)) => state.observe(linear, model.frequencies(), ao),
            (Kind::Latent(belief), Predictor::Latent(latent)) => {
                belief.update(&latent.pomdp, ao);
            }
            (Kind::Recurrent(state), Predictor::Recurrent(net)) => state.observe(net, model.frequencies(), ao),
            _ => other_model(),
        }
    }

    /// Updates the state by an action whose observation is missing. The episode continues.
    pub fn observe_missing(&mut self, model: &Model, a: Action) {
        self.each_other(model, |other, model| other.miss(model, a));
        self.miss(model, a);
    }

    /// Updates the state by an action whose observation is one of `among`, in ascending order: those
    /// that agree with the parts of it that are known. The episode continues.
    ///
    /// Latent states are conditioned on the set exactly, a linear state is updated by the sum of
    /// operators, and a network reads the expectation over the set. An n-gram takes the context as
    /// unknown.
    pub fn observe_among(&mut self, model: &Model, a: Action, among: &[Observation]) {
        let symbols = self.probabilities.len();
        if !model.knows(a) || among.is_empty() || among.iter().any(|o| o.index() >= symbols) {
            return self.observe_missing(model, a);
        }
        self.each_other(model, |other, model| other.observe_among(model, a, among));
        if model.mixture().is_some_and(|mixture| mixture.memory > 0.0) {
            self.predict_members(model, a);
        }
        if let (Some(blend), Some(mixture)) = (&mut self.blend, model.mixture()) {
            if mixture.memory > 0.0 {
                blend.weigh_among(mixture, symbols, among);
            }
            blend.observe_among(model, mixture, a, among);
        }
        self.past.push_gap();
        match (&mut self.kind, model.predictor().core()) {
            (Kind::NGram, Predictor::NGram) => {}
            (Kind::Linear(state), Predictor::Linear(linear)) => state.observe_among(linear, model.frequencies(), a, among),
            (Kind::Latent(belief), Predictor::Latent(latent)) => {
                belief.update_among(&latent.pomdp, a, among);
            }
            (Kind::Recurrent(state), Predictor::Recurrent(net)) => state.observe_among(net, model.frequencies(), a, among),
            _ => other_model(),
        }
    }

    /// The state as numbers: the predictive state, the belief over latent states, or the units of a
    /// recurrent network. Empty for an n-gram.
    pub fn as_slice(&self) -> &[f64] {
        match &self.kind {
            Kind::NGram => &[],
            Kind::Linear(state) => &state.c,
            Kind::Latent(belief) => belief.state(),
            Kind::Recurrent(state) => &state.seen_by_planners,
        }
    }

    fn lost(&self) -> u64 {
        match &self.kind {
            Kind::NGram | Kind::Recurrent(_) => 0,
            Kind::Linear(state) => state.lost,
            Kind::Latent(belief) => belief.lost(),
        }
    }

    fn each_other(&mut self, model: &Model, f: impl FnMut(&mut State, &Model)) {
        if let (Some(others), Some(ensemble)) = (&mut self.others, model.ensemble()) {
            others.each(ensemble, f);
        }
    }

    /// Predicts with every model of an ensemble, and combines the predictions.
    fn predict_each(&mut self, model: &Model, mut predict: impl FnMut(&mut State, &Model)) -> &[f64] {
        predict(self, model);
        if let (Some(others), Some(ensemble)) = (&mut self.others, model.ensemble()) {
            others.each(ensemble, predict);
            others.combine(ensemble, 1.0 - model.frequencies().unseen, &mut self.probabilities);
        }
        &self.probabilities
    }

    /// Predicts with all members of a mixture, and with the n-gram.
    fn predict_mixed(&mut self, model: &Model, a: Action) {
        match model.mixture() {
            Some(_) => self.predict_blend(model, a, |_| true),
            None => predict_kind(&mut self.kind, model, &self.past, a, &mut self.probabilities),
        }
        ngram::mix(model, &self.past, a, &mut self.probabilities, &mut self.smoothed);
    }

    /// Predicts without the n-gram, unless there is nothing else.
    fn predict_alone(&mut self, model: &Model, a: Action) {
        match model.mixture() {
            Some(_) => self.predict_blend(model, a, |part| part.kind() != MemberKind::NGram),
            None => predict_kind(&mut self.kind, model, &self.past, a, &mut self.probabilities),
        }
    }

    /// Predicts with the members of a mixture for which `counts` is true.
    fn predict_blend(&mut self, model: &Model, a: Action, counts: impl Fn(&Part) -> bool) {
        self.predict_members(model, a);
        if let (Some(blend), Some(mixture)) = (&self.blend, model.mixture()) {
            blend.combine(mixture, counts, &mut self.probabilities);
        }
    }

    fn predict_members(&mut self, model: &Model, a: Action) {
        let State { kind, blend, past, .. } = self;
        if let (Some(blend), Some(mixture)) = (blend, model.mixture()) {
            blend.predict(model, mixture, past, a, |p| predict_kind(kind, model, past, a, p));
        }
    }

    fn miss(&mut self, model: &Model, a: Action) {
        self.past.push_gap();
        if let (Some(blend), Some(mixture)) = (&mut self.blend, model.mixture()) {
            blend.miss(model, mixture, a);
        }
        match (&mut self.kind, model.predictor().core()) {
            (Kind::NGram, Predictor::NGram) => {}
            (Kind::Linear(state), Predictor::Linear(linear)) => state.miss(linear, model.frequencies(), a),
            (Kind::Latent(belief), Predictor::Latent(latent)) => latent::miss(belief, &latent.pomdp, model.frequencies(), a),
            (Kind::Recurrent(state), Predictor::Recurrent(net)) => state.miss(net, model.frequencies(), Some(a)),
            _ => other_model(),
        }
    }

    /// Updates the state by steps of the logging policy.
    fn miss_steps(&mut self, model: &Model, steps: usize) {
        if let (Some(blend), Some(mixture)) = (&mut self.blend, model.mixture()) {
            blend.miss_steps(model, mixture, steps);
        }
        match (&mut self.kind, model.predictor().core()) {
            (Kind::NGram, Predictor::NGram) => (0..steps).for_each(|_| self.past.push_gap()),
            (Kind::Linear(state), Predictor::Linear(linear)) => state.miss_steps(linear, steps),
            (Kind::Latent(belief), Predictor::Latent(latent)) => {
                let shares = &model.frequencies().action_shares;
                (0..steps).for_each(|_| belief.update_unknown(&latent.pomdp, shares));
            }
            (Kind::Recurrent(state), Predictor::Recurrent(net)) => {
                (0..steps).for_each(|_| state.miss(net, model.frequencies(), None));
            }
            _ => other_model(),
        }
    }
}

/// P(o ‖ a) of a single predictor.
fn predict_kind(kind: &mut Kind, model: &Model, past: &Past, a: Action, p: &mut [f64]) {
    let frequencies = model.frequencies();
    let seen = 1.0 - frequencies.unseen;
    match (kind, model.predictor().core()) {
        (Kind::NGram, Predictor::NGram) => ngram::predict(model, past, a, p),
        (Kind::Linear(state), Predictor::Linear(linear)) => state.predict(linear, a, model.params().floor, seen, p),
        (Kind::Latent(belief), Predictor::Latent(latent)) => latent::predict(belief, &latent.pomdp, frequencies, a, seen, p),
        (Kind::Recurrent(state), Predictor::Recurrent(net)) => state.predict(net, frequencies, a, seen, p),
        _ => other_model(),
    }
}

/// A [`State`] together with its model, borrowed or shared (`&Model`, `Arc<Model>`).
///
/// If a linear model gives an observation almost no probability (or none), the next state C_ao c /
/// c_∞ᵀC_ao c is not defined: the filter is lost. It then continues from the mean state after that
/// pair, and increments [`lost`](Self::lost).
#[derive(Clone, Debug)]
pub struct PredictiveState<M> {
    model: M,
    state: State,
}

impl<M: Deref<Target = Model> + Clone> PredictiveState<M> {
    /// The state at the start of an episode.
    pub fn new(model: M) -> Self {
        PredictiveState { state: State::new(&model), model }
    }

    /// Its model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// How often the filter was lost since it was made; of an ensemble that of its first model.
    pub fn lost(&self) -> u64 {
        self.state.lost()
    }

    /// P(o ‖ a) for every observation seen in training; their sum with [`unseen`](Self::unseen) is
    /// 1.
    pub fn predict(&mut self, a: Action) -> &[f64] {
        self.state.predict(&self.model, a)
    }

    /// The last prediction.
    pub fn prediction(&self) -> &[f64] {
        self.state.prediction()
    }

    /// Uncertainty of the last prediction: for each observation the root mean square difference
    /// between it and the models of halves of the logs. Empty for a model that is not an ensemble.
    pub fn spread(&self) -> &[f64] {
        self.state.others.as_ref().map_or(&[], |others| &others.spread)
    }

    /// Probability that the next observation is one that was not seen in training.
    pub fn unseen(&self) -> f64 {
        self.model.frequencies().unseen
    }

    /// Updates the state by an action whose observation is missing: c ↦ Σ_o C_ao c, normalised. The
    /// episode continues.
    pub fn observe_missing(&mut self, a: Action) {
        self.state.observe_missing(&self.model, a);
    }

    /// Updates the state by an action whose observation is one of `among`, in ascending order, and
    /// returns the probability of that, Σ_o P(o ‖ a).
    pub fn update_among(&mut self, a: Action, among: &[Observation]) -> f64 {
        let p = self.predict(a);
        let given = among.iter().filter_map(|o| p.get(o.index())).sum();
        self.state.observe_among(&self.model, a, among);
        given
    }

    /// P(o_1 … o_n ‖ a_1 … a_n) from here on, by the chain rule over [`predict`](Self::predict): a
    /// proper distribution.
    pub fn probability_of(&self, test: &[ActionObservation]) -> f64 {
        let mut filter = self.clone();
        test.iter().map(|&ao| filter.update(ao)).product()
    }

    /// P(o at each step of the plan | history ‖ actions), given that the episode lasts that long.
    /// The observations before that step are unknown.
    ///
    /// The n-gram contributes only to the first step, because its context is unknown afterwards.
    pub fn forecast(&self, plan: &[Action]) -> Vec<Vec<f64>> {
        self.forecast_with_spread(plan).into_iter().map(|(probabilities, _)| probabilities).collect()
    }

    /// [`forecast`](Self::forecast) and the [`spread`](Self::spread) of each step.
    pub fn forecast_with_spread(&self, plan: &[Action]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let mut filter = self.clone();
        let mut forecast = Vec::with_capacity(plan.len());
        for (i, &a) in plan.iter().enumerate() {
            if i > 0 {
                filter.observe_missing(plan[i - 1]);
                filter.state.predict_each(&self.model, |state, model| state.predict_alone(model, a));
            } else {
                filter.predict(a);
            }
            forecast.push((filter.prediction().to_vec(), filter.spread().to_vec()));
        }
        forecast
    }

    /// P(o_{t+n} | history ‖ a_{t+n}) where the logging policy takes the steps before: c_∞ᵀ C_ao
    /// C_⋆^{n−1} c [H14 §2.3]. Of an ensemble by its first model alone.
    pub fn forecast_under_logging_policy(&self, n: usize, a: Action) -> Vec<f64> {
        let mut state = self.state.clone();
        state.miss_steps(&self.model, n.saturating_sub(1));
        state.predict_alone(&self.model, a);
        state.probabilities
    }

    /// Draws the observations that follow a plan; it stops early if one ends the episode.
    pub fn sample(&self, plan: &[Action], rng: &mut Rng) -> Vec<Observation> {
        let mut filter = self.clone();
        let mut drawn = Vec::with_capacity(plan.len());
        for &action in plan {
            let Some(o) = rng.weighted(filter.predict(action)) else { break };
            let observation = Observation(o as u32);
            drawn.push(observation);
            if self.model.alphabet().is_terminal(observation) {
                break;
            }
            filter.observe(ActionObservation { action, observation });
        }
        drawn
    }
}

impl<M: Deref<Target = Model>> Track for PredictiveState<M> {
    fn reset(&mut self) {
        self.state.reset(&self.model);
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.state.observe(&self.model, ao);
    }

    fn observe_partial(&mut self, a: Action, pattern: &str) {
        let among = self.model.alphabet().agreeing(pattern);
        self.state.observe_among(&self.model, a, &among);
    }
}

impl<M: Deref<Target = Model>> Filter for PredictiveState<M> {
    fn state(&self) -> &[f64] {
        self.state.as_slice()
    }
}

impl<M: Deref<Target = Model>> Predict for PredictiveState<M> {
    fn probabilities(&mut self, a: Action) -> &[f64] {
        self.state.predict(&self.model, a)
    }

    /// 0 once the episode has ended.
    fn probability(&mut self, ao: ActionObservation) -> f64 {
        if self.state.ended {
            return 0.0;
        }
        if ao.observation.is_missing() {
            return 1.0;
        }
        let unseen = self.model.frequencies().unseen;
        self.state.predict(&self.model, ao.action).get(ao.observation.index()).copied().unwrap_or(unseen)
    }
}
