//! Filters: what is believed after a history, updated step by step.

use super::Model;
use super::ngram::{NGram, Past};
use crate::data::{Action, ActionObservation, Fingerprints, Observation};
use crate::math::{dot, multiply};
use crate::pomdp::Belief;
use crate::rng::Rng;

/// Tracks the state of a system through actions and observations.
pub trait Filter {
    /// Back to the start of an episode.
    fn reset(&mut self);
    /// Takes one step into account and returns the probability P(o ‖ a) it had given to that observation.
    fn update(&mut self, ao: ActionObservation) -> f64;
    /// Takes one step into account, without asking how probable it was.
    fn observe(&mut self, ao: ActionObservation) {
        self.update(ao);
    }
    /// The state, as numbers.
    fn state(&self) -> &[f64];
}

impl<F: Filter + ?Sized> Filter for Box<F> {
    fn reset(&mut self) {
        (**self).reset();
    }

    fn update(&mut self, ao: ActionObservation) -> f64 {
        (**self).update(ao)
    }

    fn observe(&mut self, ao: ActionObservation) {
        (**self).observe(ao);
    }

    fn state(&self) -> &[f64] {
        (**self).state()
    }
}

/// An observation given less than 1 % of what the action's frequency allows loses the filter (see DEVIATIONS.md).
const LOST: f64 = 1e-2;
/// How many observations the mixture is worth, beside counts of the whole history, where the n-gram has half the weight.
const PRIOR_STRENGTH: f64 = 5.0;
/// States are kept within these bounds: beyond them the linear model has left all that it was fitted on.
const STATE_BOUND: f64 = 1e6;

/// The predictive state c_t of a [`Model`], with the context its n-gram needs.
///
/// Of a model that was refined to a POMDP it is the belief over latent states instead, and what is said of c below is true of it.
///
/// Where the model gives an observation almost no probability (or none), the state after it cannot be had by
/// C_ao c / c_∞ᵀC_ao c: the filter is lost. It then takes the mean state after that pair and counts in [`lost`](Self::lost).
#[derive(Clone, Debug)]
pub struct PredictiveState<'m> {
    model: &'m Model,
    /// c_t
    c: Vec<f64>,
    /// Where the model was refined.
    belief: Option<Belief<'m>>,
    past: Past,
    probabilities: Vec<f64>,
    smoothed: Vec<f64>,
    ended: bool,
    lost: u64,
    /// Those of an ensemble: the other members, with which predictions are averaged, and the models of halves of the logs.
    members: Vec<PredictiveState<'m>>,
    halves: Vec<PredictiveState<'m>>,
    /// How far the halves are from what was predicted last; empty without them.
    spread: Vec<f64>,
}

impl<'m> PredictiveState<'m> {
    /// The state at the start of an episode.
    pub fn new(model: &'m Model) -> Self {
        let states = |models: &'m [Model]| -> Vec<_> { models.iter().map(PredictiveState::new).collect() };
        let (members, halves) = (states(&model.ensemble().members), states(&model.ensemble().halves));
        let spread = vec![0.0; if halves.is_empty() { 0 } else { model.alphabet().observations().len() }];
        let belief = model.refined().map(|refined| Belief::new(&refined.pomdp));
        PredictiveState { belief, members, halves, spread, ..PredictiveState::linear(model) }
    }

    /// That of the linear model, refined or not.
    pub(crate) fn linear(model: &'m Model) -> Self {
        let symbols = model.alphabet().observations().len();
        PredictiveState {
            model,
            c: model.initial().to_vec(),
            belief: None,
            past: Past::new(model.ngram.length()),
            probabilities: vec![0.0; symbols],
            smoothed: vec![0.0; symbols],
            ended: false,
            lost: 0,
            members: Vec::new(),
            halves: Vec::new(),
            spread: Vec::new(),
        }
    }

    /// The same state, where the same model stands elsewhere: a copy that outlives what this one borrows from.
    ///
    /// # Panics
    ///
    /// If it is another model, which was refined where this one was not, or the other way round.
    pub fn borrowed_from<'n>(&self, model: &'n Model) -> PredictiveState<'n> {
        let all = |states: &[PredictiveState<'_>], models: &'n [Model]| -> Vec<_> {
            states.iter().zip(models).map(|(state, model)| state.borrowed_from(model)).collect()
        };
        let pomdp = || &model.refined().expect("the model is the same, and was refined").pomdp;
        PredictiveState {
            model,
            c: self.c.clone(),
            belief: self.belief.as_ref().map(|belief| belief.borrowed_from(pomdp())),
            past: self.past.clone(),
            probabilities: self.probabilities.clone(),
            smoothed: self.smoothed.clone(),
            ended: self.ended,
            lost: self.lost,
            members: all(&self.members, &model.ensemble().members),
            halves: all(&self.halves, &model.ensemble().halves),
            spread: self.spread.clone(),
        }
    }

    /// How often the filter got lost since it was made.
    pub fn lost(&self) -> u64 {
        self.lost + self.belief.as_ref().map_or(0, Belief::lost)
    }

    /// P(o ‖ a) for every observation met in training; with [`unseen`](Self::unseen) they sum to 1.
    pub fn predict(&mut self, a: Action) -> &[f64] {
        self.predict_mixed(a);
        self.others().for_each(|other| other.predict_mixed(a));
        self.consult_others();
        &self.probabilities
    }

    /// What was predicted last.
    pub(crate) fn prediction(&self) -> &[f64] {
        &self.probabilities
    }

    /// How sure the last prediction is: for each observation the root mean square of how far the models of halves of the logs are
    /// from it. Empty for a model that is no ensemble.
    pub fn spread(&self) -> &[f64] {
        &self.spread
    }

    /// The states of the other models of an ensemble.
    fn others(&mut self) -> impl Iterator<Item = &mut PredictiveState<'m>> {
        self.members.iter_mut().chain(&mut self.halves)
    }

    /// From what each model has predicted alone to the mean of the members, and to the spread of the halves around it.
    fn consult_others(&mut self) {
        let seen = 1.0 - self.model.derived.unseen;
        let of = |other: &PredictiveState<'_>, o: usize| other.probabilities[o] * seen / (1.0 - other.unseen());
        if !self.members.is_empty() {
            for (o, p) in self.probabilities.iter_mut().enumerate() {
                let sum: f64 = self.members.iter().map(|member| of(member, o)).sum();
                *p = (*p + sum) / (self.members.len() + 1) as f64;
            }
        }
        for (o, (p, spread)) in self.probabilities.iter().zip(&mut self.spread).enumerate() {
            let squares: f64 = self.halves.iter().map(|half| (of(half, o) - p).powi(2)).sum();
            *spread = (squares / self.halves.len() as f64).sqrt();
        }
    }

    /// The model with its n-gram.
    fn predict_mixed(&mut self, a: Action) {
        self.predict_alone(a);
        let (model, mix) = (self.model, self.model.params.mix);
        if mix > 0.0 {
            ngram_probabilities(model, &self.past, a, &mut self.smoothed);
            self.probabilities.iter_mut().zip(&self.smoothed).for_each(|(p, q)| *p += mix * (q - *p));
            if model.knows(a) {
                let strength = PRIOR_STRENGTH * (1.0 - mix) / mix;
                model.ngram.weigh_whole_history(&model.derived.fingerprints, &self.past, a, strength, &mut self.probabilities);
            }
        }
    }

    /// Probability that the next observation is one never met in training.
    pub fn unseen(&self) -> f64 {
        self.model.derived.unseen
    }

    /// Without the n-gram: max(c_∞ᵀC_ao c, 0), normalised, floored, normalised; or what the belief says.
    fn predict_alone(&mut self, a: Action) {
        let model = self.model;
        let p = &mut self.probabilities;
        p.fill(0.0);
        let known = self.model.knows(a);
        if let Some(belief) = &mut self.belief {
            if known {
                belief.add_probabilities(a, 1.0, p);
            } else {
                let shares = (0..).map(Action).zip(&model.derived.action_shares);
                shares.for_each(|(a, &share)| belief.add_probabilities(a, share, p));
            }
            p.iter_mut().for_each(|p| *p *= 1.0 - model.derived.unseen);
            return;
        }
        let slots = if known { model.slots(a) } else { 0..model.pairs.len() };
        for slot in slots {
            p[model.pairs[slot].observation.0 as usize] += dot(model.readout_at(slot), &self.c);
        }
        let seen = 1.0 - model.derived.unseen;
        let positive: f64 = p.iter().filter(|p| **p > 0.0).sum();
        let floor = model.params.floor;
        if positive > 0.0 {
            p.iter_mut().for_each(|p| *p = (*p / positive).max(floor));
        } else if known {
            let symbols = p.len();
            p.copy_from_slice(&model.derived.unigram[a.0 as usize * symbols..(a.0 as usize + 1) * symbols]);
        } else {
            p.fill(1.0);
        }
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p *= seen / total);
    }

    /// The probability that was given to `o`, from what [`predict`](Self::predict) left behind.
    fn given_to(&self, o: Observation) -> f64 {
        self.probabilities.get(o.0 as usize).copied().unwrap_or(self.model.derived.unseen)
    }

    /// Takes an action into account whose observation is missing: c ↦ Σ_o C_ao c, normalised. The episode goes on.
    pub fn update_missing(&mut self, a: Action) {
        self.others().for_each(|other| other.update_missing(a));
        self.miss(a);
    }

    fn miss(&mut self, a: Action) {
        self.past.push_gap();
        let known = self.model.knows(a);
        if let Some(belief) = &mut self.belief {
            if known {
                belief.update_missing(a)
            } else {
                belief.update_unknown(&self.model.derived.action_shares)
            }
            return;
        }
        let slots = if known { self.model.slots(a) } else { 0..self.model.pairs.len() };
        let mut sum = vec![0.0; self.c.len()];
        for slot in slots {
            sum.iter_mut().zip(multiply(self.model.operator_at(slot), &self.c)).for_each(|(s, x)| *s += x);
        }
        self.settle(sum, LOST * self.share(a), None);
    }

    /// Takes a step into account. After one that ends the episode nothing has a probability, until the next reset.
    pub fn observe(&mut self, ao: ActionObservation) {
        self.others().for_each(|other| other.observe(ao));
        self.ended |= self.model.alphabet().observations().get(ao.observation.0 as usize).is_some_and(|o| o.terminal);
        if self.ended {
            return;
        }
        let known = self.model.knows(ao.action);
        if ao.observation.0 as usize >= self.probabilities.len() || (self.belief.is_some() && !known) {
            self.miss(ao.action);
            return;
        }
        if known {
            self.past.push(&self.model.derived.fingerprints, ao);
        } else {
            self.past.push_gap();
        }
        if let Some(belief) = &mut self.belief {
            belief.update(ao);
            return;
        }
        let next = self.model.operator(ao).map_or_else(|| vec![0.0; self.c.len()], |operator| multiply(operator, &self.c));
        self.settle(next, LOST * self.share(ao.action), Some(ao));
    }

    fn share(&self, a: Action) -> f64 {
        self.model.derived.action_shares.get(a.0 as usize).copied().unwrap_or(1.0)
    }

    /// c ↦ next / c_∞ᵀnext, or a mean state if that cannot be.
    fn settle(&mut self, next: Vec<f64>, least: f64, ao: Option<ActionObservation>) {
        let total = dot(&self.model.normalizer, &next);
        if total > least && next.iter().all(|x| (x / total).abs() < STATE_BOUND) {
            self.c = next.iter().map(|x| x / total).collect();
            return;
        }
        self.lost += 1;
        if let Some(mean) = ao.and_then(|ao| self.model.mean_state(ao)) {
            self.c = mean;
        }
    }

    /// P(o_1 … o_n ‖ a_1 … a_n) from here on, by the chain rule over [`predict`](Self::predict): a proper distribution.
    pub fn probability(&self, test: &[ActionObservation]) -> f64 {
        let mut filter = self.clone();
        test.iter().map(|&ao| filter.update(ao)).product()
    }

    /// P(o at each step of the plan | history ‖ actions), if the episode gets there: observations on the way are not seen.
    ///
    /// The n-gram, whose context is then unknown, has a say in the first step only.
    pub fn forecast(&self, plan: &[Action]) -> Vec<Vec<f64>> {
        self.forecast_with_spread(plan).into_iter().map(|(probabilities, _)| probabilities).collect()
    }

    /// [`forecast`](Self::forecast) and the [`spread`](Self::spread) of each step.
    pub fn forecast_with_spread(&self, plan: &[Action]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let mut filter = self.clone();
        let mut forecast = Vec::with_capacity(plan.len());
        for (i, &a) in plan.iter().enumerate() {
            if i > 0 {
                filter.update_missing(plan[i - 1]);
                filter.predict_alone(a);
                filter.others().for_each(|other| other.predict_alone(a));
                filter.consult_others();
            } else {
                filter.predict(a);
            }
            forecast.push((filter.probabilities.clone(), filter.spread.clone()));
        }
        forecast
    }

    /// P(o_{t+n} | history ‖ a_{t+n}) with the steps before left to the logging policy: c_∞ᵀ C_ao C_⋆^{n−1} c [H14 §2.3].
    pub fn forecast_under_logging_policy(&self, n: usize, a: Action) -> Vec<f64> {
        let mut filter = self.clone();
        if let Some(belief) = &mut filter.belief {
            (1..n).for_each(|_| belief.update_unknown(&self.model.derived.action_shares));
        } else {
            let c_star = self.model.step_operator();
            (1..n).for_each(|_| filter.settle(multiply(&c_star, &filter.c), LOST, None));
        }
        filter.predict_alone(a);
        filter.probabilities
    }

    /// Draws the observations that answer a plan; it stops early where one ends the episode.
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

impl Filter for PredictiveState<'_> {
    fn reset(&mut self) {
        self.c.copy_from_slice(self.model.initial());
        self.belief.iter_mut().for_each(Belief::reset);
        self.others().for_each(Filter::reset);
        self.past.reset();
        self.ended = false;
    }

    fn update(&mut self, ao: ActionObservation) -> f64 {
        if self.ended {
            return 0.0;
        }
        self.predict(ao.action);
        let p = self.given_to(ao.observation);
        PredictiveState::observe(self, ao);
        p
    }

    fn observe(&mut self, ao: ActionObservation) {
        PredictiveState::observe(self, ao);
    }

    fn state(&self) -> &[f64] {
        self.belief.as_ref().map_or(&self.c, Belief::state)
    }
}

/// What the n-gram of a model says of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    /// P(o | a, past); `None` for an observation never met in training.
    probability: Option<f64>,
    /// How often the observation, and any, followed the whole history, if that was counted.
    whole: Option<[f64; 2]>,
}

impl Given {
    /// For each step of an episode; `fingerprints` and `unseen` are those of the alphabet and the logs that the n-gram is of.
    pub(crate) fn of(ngram: &NGram, fingerprints: &Fingerprints, unseen: f64, steps: &[ActionObservation]) -> Vec<Given> {
        let mut past = Past::new(ngram.length());
        let (actions, symbols) = fingerprints.sizes();
        let given = steps.iter().map(|&ao| {
            let (seen, known) = ((ao.observation.0 as usize) < symbols, (ao.action.0 as usize) < actions);
            let uniform = 1.0 / symbols as f64;
            let (p, whole) = if seen && known { ngram.of_one(fingerprints, &past, ao, uniform) } else { (uniform, None) };
            if seen && known {
                past.push(fingerprints, ao)
            } else {
                past.push_gap()
            }
            Given { probability: seen.then_some(p * (1.0 - unseen)), whole }
        });
        given.collect()
    }

    /// What a model that gives the step the probability `p` alone gives it with the n-gram of weight `mix`.
    pub(crate) fn mixed(&self, p: f64, mix: f64, unseen: f64) -> f64 {
        let Some(given) = self.probability.filter(|_| mix > 0.0) else { return p };
        let p = p + mix * (given - p);
        let Some([count, all]) = self.whole else { return p };
        let strength = PRIOR_STRENGTH * (1.0 - mix) / mix;
        (count * (1.0 - unseen) + strength * p) / (all + strength)
    }
}

/// P(o | a, past) of the n-gram for every observation met in training.
fn ngram_probabilities(model: &Model, past: &Past, a: Action, p: &mut [f64]) {
    p.fill(1.0 / p.len() as f64);
    if model.knows(a) {
        model.ngram.smooth(&model.derived.fingerprints, past, a, p);
    }
    p.iter_mut().for_each(|p| *p *= 1.0 - model.derived.unseen);
}

/// The back-off n-gram of a model as a filter: a baseline trained on the same logs.
#[derive(Clone, Debug)]
pub struct NGramFilter<'m> {
    model: &'m Model,
    past: Past,
    probabilities: Vec<f64>,
}

impl<'m> NGramFilter<'m> {
    /// Contexts of up to `length` pairs.
    pub fn new(model: &'m Model, length: usize) -> Self {
        let symbols = model.alphabet().observations().len();
        NGramFilter { model, past: Past::new(length.min(model.ngram.length())), probabilities: vec![0.0; symbols] }
    }
}

impl Filter for NGramFilter<'_> {
    fn reset(&mut self) {
        self.past.reset();
    }

    fn update(&mut self, ao: ActionObservation) -> f64 {
        ngram_probabilities(self.model, &self.past, ao.action, &mut self.probabilities);
        let p = self.probabilities.get(ao.observation.0 as usize).copied();
        if p.is_some() && self.model.knows(ao.action) {
            self.past.push(&self.model.derived.fingerprints, ao);
        } else {
            self.past.push_gap();
        }
        p.unwrap_or(self.model.derived.unseen)
    }

    fn state(&self) -> &[f64] {
        &[]
    }
}

/// All observations met in training alike: the baseline of knowing nothing.
#[derive(Clone, Debug)]
pub struct UniformFilter {
    symbols: usize,
    unseen: f64,
}

impl UniformFilter {
    /// Over the observations of a model's training logs.
    pub fn of(model: &Model) -> Self {
        UniformFilter { symbols: model.alphabet().observations().len(), unseen: model.derived.unseen }
    }
}

impl Filter for UniformFilter {
    fn reset(&mut self) {}

    fn update(&mut self, ao: ActionObservation) -> f64 {
        if (ao.observation.0 as usize) < self.symbols { (1.0 - self.unseen) / self.symbols as f64 } else { self.unseen }
    }

    fn state(&self) -> &[f64] {
        &[]
    }
}

impl Filter for Belief<'_> {
    fn reset(&mut self) {
        Belief::reset(self);
    }

    fn update(&mut self, ao: ActionObservation) -> f64 {
        Belief::update(self, ao)
    }

    fn state(&self) -> &[f64] {
        Belief::state(self)
    }
}
