//! Simulated systems to act in.

use std::sync::{Arc, Mutex, PoisonError};

use foretell::{Action, Environment, Outcome, Rng, Seed, domains};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raised;
use crate::names::shown;
use crate::tables::tables;

/// A domain: a built-in system, a `.POMDP` file or the map of a maze.
#[pyclass(frozen, module = "foretell", name = "Domain")]
pub struct Domain {
    pub domain: Arc<foretell::Domain>,
}

#[pymethods]
impl Domain {
    #[new]
    fn new(name: &str) -> PyResult<Domain> {
        Ok(Domain { domain: Arc::new(domains::get(name).map_err(raised)?) })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.domain.name
    }

    #[getter]
    fn story(&self) -> &str {
        &self.domain.story
    }

    #[getter]
    fn horizon(&self) -> usize {
        self.domain.horizon
    }

    #[getter]
    fn discount(&self) -> f64 {
        self.domain.discount
    }

    #[getter]
    fn actions(&self) -> Vec<String> {
        self.domain.alphabet().actions().to_vec()
    }

    #[getter]
    fn observations(&self) -> Vec<String> {
        shown(self.domain.alphabet())
    }

    #[getter]
    fn terminal(&self) -> Vec<bool> {
        self.domain.alphabet().observations().iter().map(|symbol| symbol.terminal).collect()
    }

    /// Number of states of the exact model, if there is one.
    #[getter]
    fn states(&self) -> Option<usize> {
        self.domain.pomdp().map(|pomdp| pomdp.states().len())
    }

    /// The exact model in Cassandra's format, if there is one.
    fn pomdp(&self) -> Option<String> {
        self.domain.pomdp().map(|pomdp| pomdp.to_cassandra())
    }

    /// The exact model as arrays, if there is one.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.domain.pomdp().map(|pomdp| tables(py, pomdp)).transpose()
    }

    /// A simulation of the system.
    fn environment(&self, seed: u64) -> Simulator {
        Simulator::new(self.domain.environment(), seed)
    }
}

/// A running system.
#[pyclass(module = "foretell", name = "Simulator")]
pub struct Simulator {
    /// Behind a mutex, since Python may use an object from any thread.
    world: Mutex<Box<dyn Environment + Send>>,
    rng: Rng,
}

impl Simulator {
    /// At the start of an episode.
    pub fn new(world: Box<dyn Environment + Send>, seed: u64) -> Simulator {
        let mut simulator = Simulator { world: Mutex::new(world), rng: Seed(seed).rng() };
        simulator.reset(None);
        simulator
    }

    fn with<R>(&mut self, what: impl FnOnce(&mut dyn Environment, &mut Rng) -> R) -> R {
        let Simulator { world, rng } = self;
        what(world.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut(), rng)
    }
}

#[pymethods]
impl Simulator {
    /// Starts an episode; with a seed, always the same one.
    #[pyo3(signature = (seed = None))]
    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.rng = Seed(seed).rng();
        }
        self.with(|world, rng| world.reset(rng));
    }

    /// Takes an action, given by index; returns the index of the observation and the reward.
    fn step(&mut self, a: u32) -> PyResult<(u32, f64)> {
        self.with(|world, rng| {
            let actions = world.alphabet().actions().len();
            if a as usize >= actions {
                let problem = format!("action {a} does not exist; actions are numbered from 0 to {}", actions - 1);
                return Err(PyIndexError::new_err(problem));
            }
            let Outcome { observation, reward } = world.step(Action(a), rng);
            Ok((observation.0, reward))
        })
    }

    /// The hidden state, drawn.
    fn picture(&mut self) -> String {
        self.with(|world, _| world.picture())
    }
}

/// The built-in domains: their names, and the steps after which their episodes are truncated.
#[pyfunction]
pub fn built_in() -> Vec<(String, usize)> {
    domains::all().into_iter().map(|domain| (domain.name, domain.horizon)).collect()
}
