//! Models, and their states during an episode.

use std::path::PathBuf;
use std::sync::Arc;

use foretell::model::{Linear, Member, MemberKind, Mixture, Part};
use foretell::{
    Action, ActionObservation, Filter as _, Moments, Pomdp, PomdpEnvironment, Predict as _, PredictiveState, Seed, Track as _,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Serialize;

use crate::convert::dict;
use crate::domain::Simulator;
use crate::error::{raised, warn};
use crate::names::{Names, action, observation, only_reward, partly_known, shown};
use crate::tables::tables;
use crate::task;

/// The name of bytes in memory in errors.
const BYTES: &str = "these bytes";

/// A learned model.
#[pyclass(frozen, module = "foretell", name = "Model")]
pub struct Model {
    pub model: Arc<foretell::Model>,
    pub moments: Option<Arc<Moments>>,
}

impl From<foretell::Model> for Model {
    fn from(model: foretell::Model) -> Model {
        Model { model: Arc::new(model), moments: None }
    }
}

/// A predictor of a model, in words.
#[derive(Serialize)]
struct Named {
    kind: MemberKind,
    size: String,
    weight: f64,
}

impl Model {
    pub fn linear(&self) -> PyResult<&Linear> {
        let what = if self.model.recurrent().is_some() { "a recurrent network" } else { "an n-gram" };
        let no_linear = || format!("the model is {what}, and has no linear part; learn one with only=\"linear\"");
        self.model.linear().ok_or_else(|| PyValueError::new_err(no_linear()))
    }

    /// The predictor of a model that is not a mixture.
    fn own(&self) -> Part {
        match (self.model.latent(), self.model.linear(), self.model.recurrent()) {
            (Some(_), ..) => Part::Latent,
            (None, Some(_), _) => Part::Linear,
            (None, None, Some(net)) => Part::Recurrent(Box::new(net.clone())),
            (None, None, None) => Part::NGram(self.model.ngram().length()),
        }
    }

    fn size(&self, part: &Part) -> String {
        let states = |pomdp: &Pomdp| format!("{} states", pomdp.states().len());
        match part {
            Part::NGram(1) => "up to 1 step".into(),
            Part::NGram(length) => format!("up to {length} steps"),
            Part::Linear => format!("rank {}", self.model.linear().map_or(0, Linear::rank)),
            Part::Latent => self.model.latent().map_or_else(String::new, |latent| states(&latent.pomdp)),
            Part::Other(_, pomdp) => states(pomdp),
            Part::Recurrent(net) => format!("{} units", net.hidden()),
        }
    }
}

#[pymethods]
impl Model {
    /// Reads a model, with its moments, if any.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Model> {
        let model = Arc::new(foretell::Model::load(&path).map_err(raised)?);
        let moments = Moments::load_kept(&path).map_err(raised)?;
        warn(model.origin().note.as_deref())?;
        Ok(Model { model, moments: moments.map(Arc::new) })
    }

    /// Writes the model, with its moments, if any.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        match &self.moments {
            Some(moments) => self.model.save_with_moments(moments, path),
            None => self.model.save(path),
        }
        .map_err(raised)
    }

    /// The bytes that `save` writes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = match &self.moments {
            Some(moments) => self.model.to_bytes_with_moments(moments),
            None => self.model.to_bytes(),
        };
        PyBytes::new(py, &bytes)
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Model> {
        let model = Arc::new(foretell::Model::from_bytes(bytes, BYTES).map_err(raised)?);
        let moments = Moments::kept_in(bytes, BYTES).map_err(raised)?;
        warn(model.origin().note.as_deref())?;
        Ok(Model { model, moments: moments.map(Arc::new) })
    }

    #[getter]
    fn actions(&self) -> Vec<String> {
        self.model.alphabet().actions().to_vec()
    }

    #[getter]
    fn observations(&self) -> Vec<String> {
        shown(self.model.alphabet())
    }

    /// The same without the rewards that may be part of them.
    #[getter]
    fn observations_without_rewards(&self) -> Vec<String> {
        self.model.alphabet().without_rewards().iter().map(ToString::to_string).collect()
    }

    /// For each observation whether it ends the episode.
    #[getter]
    fn terminal(&self) -> Vec<bool> {
        self.model.alphabet().observations().iter().map(|symbol| symbol.terminal).collect()
    }

    #[getter]
    fn observes_rewards(&self) -> bool {
        self.model.alphabet().observes_rewards()
    }

    #[getter]
    fn rank(&self) -> PyResult<usize> {
        Ok(self.linear()?.rank())
    }

    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, self.model.params())
    }

    #[getter]
    fn spectrum<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_slice(py, self.linear()?.spectrum()))
    }

    /// Numbers of episodes and steps that it was learned from, and of bad episodes that were
    /// skipped.
    #[getter]
    fn trained_on(&self) -> (u64, u64, u64) {
        let origin = self.model.origin();
        (origin.episodes, origin.steps, origin.skipped)
    }

    /// "exact" or "compressed", if it keeps moments.
    #[getter]
    fn moments(&self) -> Option<&'static str> {
        self.moments.as_ref().map(|moments| if moments.is_exact() { "exact" } else { "compressed" })
    }

    /// Number of averaged models; 1 if it is not an ensemble.
    #[getter]
    fn averaged(&self) -> usize {
        1 + self.model.ensemble().map_or(0, |ensemble| ensemble.members.len())
    }

    /// The predictors and their weights at the start of an episode; for an ensemble those of its
    /// first model.
    #[getter]
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let alone = [Member { weight: 1.0, part: self.own() }];
        let members = self.model.mixture().map_or(&alone[..], |mixture| mixture.members());
        let mix = self.model.params().mix;
        let named = |weight, part: &Part| Named { kind: part.kind(), size: self.size(part), weight };
        let mut all: Vec<Named> = members.iter().map(|member| named((1.0 - mix) * member.weight, &member.part)).collect();
        let ngram = named(mix, &Part::NGram(self.model.ngram().length()));
        match all.iter_mut().find(|member| member.kind == ngram.kind && member.size == ngram.size) {
            Some(same) => same.weight += mix,
            None => all.push(ngram),
        }
        all.retain(|member| member.weight > 0.0);
        dict(py, &all)
    }

    /// λ, how long the weights of a mixture remember what happened in the episode: 0 if they are
    /// constant.
    #[getter]
    fn memory(&self) -> f64 {
        self.model.mixture().map_or(0.0, Mixture::memory)
    }

    /// Whether it has a linear part: not if it is an n-gram.
    #[getter]
    fn has_linear(&self) -> bool {
        self.model.linear().is_some()
    }

    /// Number of states of its POMDP, if it has one.
    #[getter]
    fn states(&self) -> Option<usize> {
        self.model.latent().map(|latent| latent.pomdp.states().len())
    }

    /// Whether the POMDP has rewards.
    #[getter]
    fn has_rewards(&self) -> bool {
        self.model.latent().is_some_and(|latent| latent.pomdp.has_rewards())
    }

    /// Whether rewards carry information about the state that observations lack.
    #[getter]
    fn wants_rewards_observed(&self) -> bool {
        self.model.latent().is_some_and(|latent| latent.wants_rewards_observed())
    }

    /// The POMDP in Cassandra's format.
    fn pomdp(&self) -> Option<String> {
        self.model.latent().map(|latent| latent.pomdp.to_cassandra())
    }

    /// The POMDP as arrays, if it was refined.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.model.latent().map(|latent| tables(py, &latent.pomdp)).transpose()
    }

    /// The linear model only.
    #[pyo3(name = "linear")]
    fn without_refinement(&self) -> PyResult<Model> {
        self.linear()?;
        let model = Arc::new((*self.model).clone().without_ensemble().without_mixture().without_refinement());
        Ok(Model { model, moments: self.moments.clone() })
    }

    /// The model with another weight of the n-gram.
    fn with_mix(&self, mix: f64) -> PyResult<Model> {
        let model = Arc::new((*self.model).clone().with_mix(mix).map_err(raised)?);
        Ok(Model { model, moments: self.moments.clone() })
    }

    /// How measurements were mapped to its symbols.
    #[getter]
    fn encoding(&self) -> Option<&str> {
        self.model.origin().encoding.as_deref()
    }

    fn with_encoding(&self, encoding: Option<String>) -> Model {
        Model { model: Arc::new((*self.model).clone().with_encoding(encoding)), moments: self.moments.clone() }
    }

    /// A simulation of the POMDP of a refined model.
    fn environment(&self, seed: u64) -> PyResult<Simulator> {
        match self.model.latent() {
            Some(latent) => Ok(Simulator::new(Box::new(PomdpEnvironment::new(Arc::new(latent.pomdp.clone()))), seed)),
            None => Err(PyValueError::new_err("the model has no latent states; learn it with refine=True or only=\"latent\"")),
        }
    }

    /// c₁
    #[getter]
    fn initial<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_slice(py, self.linear()?.initial()))
    }

    /// c_∞
    #[getter]
    fn normalizer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_slice(py, self.linear()?.normalizer()))
    }

    /// C_ao, if the pair was seen in training.
    #[pyo3(signature = (a, o, *, terminated = false, reward = None))]
    fn operator<'py>(
        &self,
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        o: &Bound<'py, PyAny>,
        terminated: bool,
        reward: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let ao = pair(&self.model, a, o, terminated, reward)?;
        let linear = self.linear()?;
        let n = linear.rank();
        linear.operator(ao).map(|values| PyArray1::from_slice(py, values).reshape([n, n])).transpose()
    }

    /// The state at the start of an episode.
    fn filter(&self) -> Filter {
        Filter { state: PredictiveState::new(self.model.clone()) }
    }
}

/// A step of an episode. Where rewards are part of observations and none is given, it is the only one
/// that was seen with the action and the observation.
fn pair(
    model: &foretell::Model,
    a: &Bound<'_, PyAny>,
    o: &Bound<'_, PyAny>,
    terminated: bool,
    reward: Option<f64>,
) -> PyResult<ActionObservation> {
    let action = action(Names::of(model), a)?;
    let reward = match reward {
        None if model.alphabet().observes_rewards() => only_reward(model, action, o, terminated)?,
        given => given,
    };
    Ok(ActionObservation { action, observation: observation(Names::of(model), o, terminated, reward)? })
}

/// An action, the observation that followed, and the reward where it is part of observations.
type Rewarded<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Option<f64>);

/// Number of sampled or forecast steps up to which the GIL is kept: some milliseconds.
const FEW_STEPS: u64 = 10_000;

/// The state of a model during an episode.
#[pyclass(module = "foretell", name = "Filter", skip_from_py_object)]
#[derive(Clone)]
pub struct Filter {
    state: PredictiveState<Arc<foretell::Model>>,
}

impl Filter {
    fn pairs(&self, test: Vec<Rewarded<'_>>) -> PyResult<Vec<ActionObservation>> {
        test.iter().map(|(a, o, reward)| pair(self.state.model(), a, o, false, *reward)).collect()
    }

    fn plan(&self, actions: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Action>> {
        let names = Names::of(self.state.model());
        actions.iter().map(|a| action(names, a)).collect()
    }
}

#[pymethods]
impl Filter {
    /// An independent copy of the state.
    fn copy(&self) -> Filter {
        self.clone()
    }

    /// Starts an episode.
    fn reset(&mut self) {
        self.state.reset();
    }

    /// Updates the state with a step; returns the predicted probability of the observation.
    #[pyo3(signature = (a, o, *, terminated = false, reward = None))]
    fn update(&mut self, a: &Bound<'_, PyAny>, o: &Bound<'_, PyAny>, terminated: bool, reward: Option<f64>) -> PyResult<f64> {
        let model = self.state.model();
        let done = action(Names::of(model), a)?;
        if let Some(name) = partly_known(Names::of(model), o, terminated, reward)?
            && only_reward(model, done, o, terminated)?.is_none()
        {
            let agreeing = model.alphabet().agreeing(&name);
            let p = self.state.predict(done);
            let p = agreeing.iter().map(|o| p[o.index()]).sum();
            self.state.observe_partial(done, &name);
            return Ok(p);
        }
        let ao = pair(model, a, o, terminated, reward)?;
        Ok(self.state.update(ao))
    }

    /// Updates the state with an action whose observation is missing.
    fn update_missing(&mut self, a: &Bound<'_, PyAny>) -> PyResult<()> {
        let a = action(Names::of(self.state.model()), a)?;
        self.state.observe_missing(a);
        Ok(())
    }

    /// The probability of every observation after an action, in the order of the model's.
    fn predict<'py>(&mut self, py: Python<'py>, a: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let a = action(Names::of(self.state.model()), a)?;
        Ok(PyArray1::from_slice(py, self.state.predict(a)))
    }

    /// Deviation of the models of halves of the logs from the last prediction; empty without an
    /// ensemble.
    #[getter]
    fn spread<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.state.spread())
    }

    /// Probability of observations that were not seen in training.
    #[getter]
    fn unseen(&self) -> f64 {
        self.state.unseen()
    }

    /// How often the model assigned probability zero to an observation.
    #[getter]
    fn lost(&self) -> u64 {
        self.state.lost()
    }

    /// The predictive state, or the belief of a refined model.
    #[getter]
    fn state_vector<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.state.state())
    }

    /// The probability that these pairs come next, given their actions.
    fn probability(&self, test: Vec<Rewarded<'_>>) -> PyResult<f64> {
        Ok(self.state.probability_of(&self.pairs(test)?))
    }

    /// One row for each action of a sequence: the probabilities of the observations after it.
    fn forecast<'py>(&self, py: Python<'py>, actions: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let plan = self.plan(actions)?;
        let rows = if plan.len() as u64 <= FEW_STEPS {
            self.state.forecast(&plan)
        } else {
            let filter = self.copy();
            task::run(py, None, move |_| Ok(filter.state.forecast(&plan)))?
        };
        PyArray2::from_vec2(py, &rows).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// `n` sampled sequences of observations, by index, that may follow the actions.
    fn sample(&self, py: Python<'_>, actions: Vec<Bound<'_, PyAny>>, n: u64, seed: u64) -> PyResult<Vec<Vec<u32>>> {
        let (plan, seed) = (self.plan(actions)?, Seed(seed).stream("predict"));
        let steps = n.saturating_mul(plan.len() as u64);
        let drawn = move |filter: &Filter, i| -> Vec<u32> {
            filter.state.sample(&plan, &mut seed.index(i).rng()).into_iter().map(|o| o.0).collect()
        };
        if steps <= FEW_STEPS {
            return Ok((0..n).map(|i| drawn(self, i)).collect());
        }
        let filter = self.copy();
        task::run(py, None, move |task| {
            let sampled_one = |i| {
                task.tell("drawing", i, Some(n));
                drawn(&filter, i)
            };
            Ok((0..n).map(sampled_one).collect())
        })
    }
}
