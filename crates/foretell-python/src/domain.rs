//! Systems to act in.

use std::sync::{Arc, Mutex, PoisonError};

use foretell::{Action, Environment, Outcome, Rng, Seed, domains};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use self_cell::self_cell;

use crate::error::raised;
use crate::logs::observation_at;
use crate::names::shown;

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

    /// How many states the exact model has, where there is one.
    #[getter]
    fn states(&self) -> Option<usize> {
        self.domain.pomdp().map(|pomdp| pomdp.states().len())
    }

    /// The exact model in Cassandra's format, where there is one.
    fn pomdp(&self) -> Option<String> {
        self.domain.pomdp().map(|pomdp| pomdp.to_cassandra())
    }

    /// An observation in words.
    fn describe(&self, o: usize) -> PyResult<String> {
        Ok(self.domain.describe(observation_at(self.domain.alphabet(), o)?))
    }

    /// The system itself, at work.
    fn environment(&self, seed: u64) -> Simulator {
        let world = World::new(self.domain.clone(), |domain| domain.environment());
        let mut simulator = Simulator { world: Mutex::new(world), rng: Seed(seed).rng() };
        simulator.reset(None);
        simulator
    }
}

type Boxed<'a> = Box<dyn Environment + Send + 'a>;

self_cell! {
    struct World {
        owner: Arc<foretell::Domain>,
        #[covariant]
        dependent: Boxed,
    }
}

/// A domain at work.
#[pyclass(module = "foretell", name = "Simulator")]
pub struct Simulator {
    /// Python's objects go from thread to thread.
    world: Mutex<World>,
    rng: Rng,
}

#[pymethods]
impl Simulator {
    /// Begins an episode; with a seed, always the same one.
    #[pyo3(signature = (seed = None))]
    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.rng = Seed(seed).rng();
        }
        let Simulator { world, rng } = self;
        let world = world.get_mut().unwrap_or_else(PoisonError::into_inner);
        world.with_dependent_mut(|_, world| world.reset(rng));
    }

    /// Takes an action, by number; returns the number of the observation and the reward.
    fn step(&mut self, a: u32) -> PyResult<(u32, f64)> {
        let Simulator { world, rng } = self;
        let world = world.get_mut().unwrap_or_else(PoisonError::into_inner);
        let actions = world.borrow_owner().alphabet().actions().len();
        if a as usize >= actions {
            return Err(PyIndexError::new_err(format!("there is no action {a}: they are numbered from 0 to {}", actions - 1)));
        }
        let Outcome { observation, reward } = world.with_dependent_mut(|_, world| world.step(Action(a), rng));
        Ok((observation.0, reward))
    }

    /// The hidden state, drawn.
    fn picture(&mut self) -> String {
        self.world.get_mut().unwrap_or_else(PoisonError::into_inner).borrow_dependent().picture()
    }
}

/// Names of the built-in domains, and the steps after which their episodes are cut.
#[pyfunction]
pub fn domain_horizons() -> Vec<(String, usize)> {
    domains::all().into_iter().map(|domain| (domain.name, domain.horizon)).collect()
}

/// Names of the built-in domains.
#[pyfunction]
pub fn domain_names() -> Vec<String> {
    domains::all().into_iter().map(|domain| domain.name).collect()
}
