//! Planning from logs: fitted-Q on the states of a filter, and the plan it leads to as a policy.

mod file;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::{Action, ActionObservation, Alphabet, Observation, Trajectory};
use crate::error::{Error, Result};
use crate::experience::{States, Steps};
use crate::filter::{Filter, PredictiveState};
use crate::fitted_q::{Approximator, FittedQ, Round};
use crate::memory::{LastObservations, WithLast};
use crate::model::Model;
use crate::params::parameters;
use crate::policy::{Policy, best};
use crate::rng::{Rng, Seed};
use crate::tree_q::{Ensembles, Structure, TreeFit, TreeQ};
use crate::trees::{Targets, TreeParams};
use crate::window::{Recent, WindowFit, WindowMemory, WindowQ};

/// Most observations in a state: more would only dilute what a split of a tree can find.
const MOST_LAST: usize = 100;

/// What a policy knows of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum StateKind {
    /// The predictive state of the model, as in the paper
    Predictive,
    /// The predictive state and the last observation beside it
    Memory,
    /// The last observations alone, `last` of them; the model is not asked
    Last,
}

parameters! {
    /// What the planner needs to know; [`PlanParams::default`] plans best, [`PlanParams::paper`] is the recipe printed.
    PlanParams,
    /// Changes to a preset: one optional value for each field of [`PlanParams`].
    PlanOverrides, "Planning",
    /// What the policy knows of the past
    state: StateKind,
    /// Observations in the state, where it is made of the last ones
    last: usize,
    /// Latest steps in a table whose Q is averaged with that of the trees; 0 for none
    window: usize,
    /// Rounds of fitted-Q
    rounds: usize,
    /// Discount γ
    discount: f64,
    /// Trees in a forest
    trees: usize,
    /// Rows below which a node of a tree is a leaf
    min_split: usize,
    /// When the structure of the trees is chosen
    structure: Structure,
    /// How actions enter Q
    ensembles: Ensembles,
    /// Seed of the trees
    seed: u64,
}

impl Default for PlanParams {
    fn default() -> Self {
        PlanParams {
            state: StateKind::Memory,
            last: 2,
            window: 2,
            rounds: 100, // [H14 §6.4]
            discount: 0.99,
            trees: 25, // [H14 §6.4]
            min_split: 10,
            structure: Structure::Frozen,
            ensembles: Ensembles::PerAction,
            seed: 0,
        }
    }
}

impl PlanParams {
    /// The recipe as printed [H14 §6.4]: 25 trees for each action, on the predictive state, refitted in each of 100 rounds.
    pub fn paper() -> Self {
        PlanParams { state: StateKind::Predictive, window: 0, structure: Structure::Refitted, ..PlanParams::default() }
    }

    /// Checks every value once, at the door.
    pub fn validate(&self) -> Result<()> {
        for (name, value) in [("last", self.last), ("rounds", self.rounds)] {
            if value == 0 {
                return Err(Error::parameter(name, value, "must be at least 1"));
            }
        }
        for (name, value) in [("last", self.last), ("window", self.window)] {
            if value > MOST_LAST {
                return Err(Error::parameter(name, value, format!("must be at most {MOST_LAST}")));
            }
        }
        if !(0.0..=1.0).contains(&self.discount) {
            return Err(Error::parameter("discount", self.discount, "must be between 0 and 1"));
        }
        self.tree_params().validate()
    }

    pub(crate) fn tree_params(&self) -> TreeParams {
        TreeParams { trees: self.trees, candidates: None, min_split: self.min_split }
    }
}

/// A policy found by planning, with all it needs: the model that keeps its state, and Q̂.
#[derive(Clone, Debug)]
pub struct Plan {
    params: PlanParams,
    alphabet: Alphabet,
    /// Where the state is that of a model.
    model: Option<Model>,
    trees: TreeQ,
    window: Option<WindowQ>,
}

/// Q̂ being fitted: that of the trees, or its mean with that of a table. Trees generalise and blur; a table does neither. What
/// either gets wrong by chance the other halves, which counts where the best of several actions is taken.
struct PlanFit {
    trees: TreeFit,
    window: Option<WindowFit>,
}

impl Approximator for PlanFit {
    fn fit(&mut self, targets: Targets<'_>) {
        self.trees.fit(targets);
        if let Some(window) = &mut self.window {
            window.fit(targets);
        }
    }

    fn q(&self, a: Action, out: &mut [f64]) {
        self.trees.q(a, out);
        if let Some(window) = &self.window {
            let mut table = vec![0.0; out.len()];
            window.q(a, &mut table);
            out.iter_mut().zip(table).for_each(|(q, other)| *q = 0.5 * (*q + other));
        }
    }
}

/// Plans with a model on logged episodes over the model's alphabet; `progress` hears of every round.
///
/// The logs need not be those the model was learned from.
pub fn plan(model: &Model, episodes: &[Trajectory], params: &PlanParams, progress: &mut dyn FnMut(Round)) -> Result<Plan> {
    params.validate()?;
    let alphabet = model.alphabet();
    let steps = Steps::of(alphabet, episodes)?;
    let states = States::track(episodes, || filter(params, alphabet, Some(model)));
    let seed = Seed(params.seed).stream("plan");
    let trees = TreeFit::new(&steps, &states, params.structure, params.ensembles, &params.tree_params(), seed)?;
    let window = (params.window > 0).then(|| WindowFit::new(Recent::Pairs(params.window), &steps, episodes));
    let mut fitted = FittedQ::new(&steps, PlanFit { trees, window }, params.discount);
    fitted.by_ref().take(params.rounds).for_each(progress);
    let PlanFit { trees, window } = fitted.into_inner();
    let model = (params.state != StateKind::Last).then(|| model.clone());
    let (trees, window) = (trees.to_q(), window.map(WindowFit::into_q));
    Ok(Plan { params: params.clone(), alphabet: alphabet.clone(), model, trees, window })
}

/// The filter of a policy, at the start of an episode.
fn filter<'m>(params: &PlanParams, alphabet: &Alphabet, model: Option<&'m Model>) -> Box<dyn Filter + Send + 'm> {
    let predictive = || PredictiveState::new(model.expect("plans on a predictive state have a model"));
    match params.state {
        StateKind::Predictive => Box::new(predictive()),
        StateKind::Memory => Box::new(WithLast::new(predictive(), alphabet)),
        StateKind::Last => Box::new(LastObservations::new(alphabet, params.last)),
    }
}

impl Plan {
    /// How it was made.
    pub fn params(&self) -> &PlanParams {
        &self.params
    }

    /// Its actions, and the observations it knows.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The model that keeps the state, if it has one.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// The states it goes through along episodes over its alphabet.
    pub fn states(&self, episodes: &[Trajectory]) -> States {
        States::track(episodes, || self.filter())
    }

    /// The action it takes in each of these states.
    pub fn actions(&self, episodes: &[Trajectory]) -> Vec<Action> {
        let actions = |z: &Trajectory| {
            let mut policy = self.policy();
            let mut actions = vec![policy.best()];
            for &ao in &z.steps {
                policy.observe(ao);
                actions.push(policy.best());
            }
            actions
        };
        episodes.par_iter().flat_map_iter(actions).collect()
    }

    fn filter(&self) -> Box<dyn Filter + Send + '_> {
        filter(&self.params, &self.alphabet, self.model.as_ref())
    }

    /// The policy that takes the best action.
    pub fn policy(&self) -> Greedy<'_> {
        Greedy { trees: &self.trees, filter: self.filter(), window: self.window.as_ref().map(WindowQ::memory) }
    }

    /// Makes such policies for a system that has another alphabet, where symbols of the same name are the same.
    pub fn policies_for<'p>(
        &'p self,
        alphabet: &Alphabet,
    ) -> Result<impl Fn() -> Translated<Greedy<'p>> + Send + Sync + use<'p>> {
        let translation = Translation::new(&self.alphabet, alphabet)?;
        Ok(move || Translated { inner: self.policy(), translation: translation.clone() })
    }
}

/// A policy that acts in a system with another alphabet.
pub struct Translated<P> {
    inner: P,
    translation: Translation,
}

/// Between the alphabet of a policy and that of a system.
#[derive(Clone)]
struct Translation {
    /// Their action for each of ours.
    actions: Vec<Action>,
    /// Our action for each of theirs, if we have it.
    own_actions: Vec<Option<Action>>,
    /// Our observation for each of theirs; unknown ones are beyond our alphabet.
    observations: Vec<Observation>,
}

impl Translation {
    fn new(own: &Alphabet, theirs: &Alphabet) -> Result<Translation> {
        let unknown = Observation(own.observations().len() as u32);
        let action = |name: &String| {
            theirs.action(name).ok_or_else(|| {
                let problem =
                    format!("the policy may take the action {name:?}, which is not among {}", theirs.actions().join(", "));
                Error::data(problem, "use it in the system it was made for")
            })
        };
        Ok(Translation {
            actions: own.actions().iter().map(action).collect::<Result<_>>()?,
            own_actions: theirs.actions().iter().map(|name| own.action(name)).collect(),
            observations: theirs.observations().iter().map(|o| own.same_observation(o).unwrap_or(unknown)).collect(),
        })
    }
}

impl<P> Translated<P> {
    /// The policy that is translated.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Its own action for one of the system's, if it has it.
    pub fn own_action(&self, a: Action) -> Option<Action> {
        self.translation.own_actions[a.0 as usize]
    }

    /// Its own observation for one of the system's; beyond its alphabet, if it does not know it.
    pub fn own_observation(&self, o: Observation) -> Observation {
        self.translation.observations[o.0 as usize]
    }
}

impl<P: Policy> Policy for Translated<P> {
    fn reset(&mut self) {
        self.inner.reset();
    }

    fn act(&mut self, rng: &mut Rng) -> Action {
        self.translation.actions[self.inner.act(rng).0 as usize]
    }

    fn probability(&self, a: Action) -> Option<f64> {
        self.own_action(a).map_or(Some(0.0), |a| self.inner.probability(a))
    }

    fn observe(&mut self, ao: ActionObservation) {
        let Some(action) = self.own_action(ao.action) else { return };
        let observation = self.own_observation(ao.observation);
        self.inner.observe(ActionObservation { action, observation });
    }
}

/// Takes the action with the largest Q̂.
pub struct Greedy<'p> {
    trees: &'p TreeQ,
    filter: Box<dyn Filter + Send + 'p>,
    window: Option<WindowMemory<'p>>,
}

impl Greedy<'_> {
    /// Where it stands.
    pub fn state(&self) -> &[f64] {
        self.filter.state()
    }

    /// Q̂(s, a) of every action, where it stands.
    pub fn values(&self) -> Vec<f64> {
        let mut values = self.trees.values(self.filter.state());
        if let Some(window) = &self.window {
            values.iter_mut().zip(window.values()).for_each(|(q, other)| *q = 0.5 * (*q + other));
        }
        values
    }

    /// The action with the largest Q̂(s, a), the first of equals.
    pub fn best(&self) -> Action {
        best(self.values()).0
    }
}

impl Policy for Greedy<'_> {
    fn reset(&mut self) {
        self.filter.reset();
        if let Some(window) = &mut self.window {
            window.reset();
        }
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        self.best()
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.filter.observe(ao);
        if let Some(window) = &mut self.window {
            window.observe(ao);
        }
    }
}
