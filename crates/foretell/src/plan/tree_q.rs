//! Q̂ as Extra-Trees, as in the paper's planner.

mod following;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::experience::{States, Steps};
use super::fitted_q::Approximator;
use crate::data::Action;
use crate::error::Result;
use crate::rng::Seed;
use crate::trees::{Forest, Inputs, Leaves, Rows, Targets, TreeParams, Trees};

pub(crate) use following::{AtOwnTime, Following, LANES, Lanes};

/// When the structure of the trees is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Structure {
    /// Once, independently of the targets (K = 1); a round only averages them in the leaves
    Frozen,
    /// Anew in every round, as in the paper
    Refitted,
}

/// How actions enter Q̂.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Ensembles {
    /// A forest for each action, as in the paper
    PerAction,
    /// One forest, with the action among its inputs
    Joint,
}

/// Q̂ of states and actions.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeQ {
    pub(crate) ensembles: Ensembles,
    /// One for each action that was taken in the logs, or a single one.
    pub(crate) forests: Vec<Option<Forest>>,
    /// Whether each action was taken in the logs; nothing is known of the others.
    pub(crate) taken: Vec<bool>,
}

impl TreeQ {
    /// Q̂(s, a); −∞ for an action that was never taken.
    pub fn value(&self, state: &[f64], a: Action) -> f64 {
        let a = a.index();
        let value = match self.ensembles {
            _ if !self.taken[a] => None,
            Ensembles::PerAction => self.forests[a].as_ref().map(|forest| forest.predict(state)),
            Ensembles::Joint => {
                let row = with_action(state, a, self.taken.len());
                self.forests[0].as_ref().map(|forest| forest.predict(&row))
            }
        };
        value.unwrap_or(f64::NEG_INFINITY)
    }

    /// Q̂(s, a) for every action.
    pub fn values(&self, state: &[f64]) -> Vec<f64> {
        (0..self.taken.len() as u32).map(|a| self.value(state, Action(a))).collect()
    }
}

fn with_action(state: &[f64], a: usize, actions: usize) -> Vec<f64> {
    let indicator = (0..actions).map(|b| if a == b { 1.0 } else { 0.0 });
    state.iter().copied().chain(indicator).collect()
}

/// Trees while they are being fitted to the targets of given steps.
pub struct TreeFit {
    params: TreeParams,
    ensembles: Ensembles,
    seed: Seed,
    round: u64,
    members: Vec<Option<Member>>,
    taken: Vec<bool>,
}

/// One forest with its training inputs and the inputs it is evaluated on.
struct Member {
    /// The steps it learns from, and their states.
    steps: Vec<usize>,
    train: Inputs,
    /// All states; for a joint forest once for each action.
    asked: Vec<Arc<Inputs>>,
    frozen: Option<Frozen>,
    forest: Option<Forest>,
}

/// A fixed structure, and the leaves of all rows in it.
struct Frozen {
    trees: Arc<Trees>,
    train: Leaves,
    asked: Vec<Leaves>,
}

impl TreeFit {
    /// Trees for these steps and the states of a filter along them.
    pub fn new(
        steps: &Steps,
        states: &States,
        structure: Structure,
        ensembles: Ensembles,
        params: &TreeParams,
        seed: Seed,
    ) -> Result<TreeFit> {
        let mut taken = vec![false; steps.actions()];
        steps.list().iter().for_each(|step| taken[step.action.index()] = true);
        let members = match ensembles {
            Ensembles::PerAction => Member::per_action(steps, states)?,
            Ensembles::Joint => vec![Some(Member::joint(steps, states)?)],
        };
        let mut fit = TreeFit { params: params.clone(), ensembles, seed, round: 0, members, taken };
        if structure == Structure::Frozen {
            fit.freeze(steps)?;
        }
        Ok(fit)
    }

    fn freeze(&mut self, steps: &Steps) -> Result<()> {
        // The index of a step's state among the evaluation inputs, where its leaves are computed
        // anyway.
        let place = |&i: &usize| match (self.ensembles, steps.list()[i]) {
            (Ensembles::PerAction, step) => (0, step.row),
            (Ensembles::Joint, step) => (step.action.index(), step.row),
        };
        for (i, member) in (0..).zip(&mut self.members) {
            let Some(member) = member else { continue };
            let trees = Trees::grow(&member.train, &self.params, self.seed.index(i))?;
            let asked: Vec<Leaves> = member.asked.iter().map(|rows| trees.leaves(rows)).collect();
            let train = Leaves::select(&asked, trees.len(), &member.steps.iter().map(place).collect::<Vec<_>>());
            member.frozen = Some(Frozen { trees, train, asked });
        }
        Ok(())
    }

    /// Q̂ as fitted last.
    pub fn to_q(&self) -> TreeQ {
        let forests = self.members.iter().map(|member| member.as_ref()?.forest.clone()).collect();
        TreeQ { ensembles: self.ensembles, forests, taken: self.taken.clone() }
    }
}

fn inputs(rows: impl Iterator<Item = Vec<f64>>) -> Result<Inputs> {
    let (mut values, mut width) = (Vec::new(), 1);
    for row in rows {
        width = row.len();
        values.extend(row);
    }
    Inputs::new(Rows::new(&values, width)?)
}

impl Member {
    /// A forest for each action that was taken.
    fn per_action(steps: &Steps, states: &States) -> Result<Vec<Option<Member>>> {
        let mut by_action = vec![Vec::new(); steps.actions()];
        steps.list().iter().enumerate().for_each(|(i, step)| by_action[step.action.index()].push(i));
        let asked = Arc::new(Inputs::new(Rows::new(states.values(), states.width())?)?);
        let member = |mine: Vec<usize>| {
            let train = inputs(mine.iter().map(|&i| states.row(steps.list()[i].row).to_vec()))?;
            Ok(Member { steps: mine, train, asked: vec![asked.clone()], frozen: None, forest: None })
        };
        by_action.into_iter().map(|mine| if mine.is_empty() { Ok(None) } else { member(mine).map(Some) }).collect()
    }

    /// One forest for all actions.
    fn joint(steps: &Steps, states: &States) -> Result<Member> {
        let actions = steps.actions();
        let train = steps.list().iter().map(|step| with_action(states.row(step.row), step.action.index(), actions));
        let all = |a| inputs((0..steps.rows()).map(|row| with_action(states.row(row), a, actions))).map(Arc::new);
        let asked = (0..actions).map(all).collect::<Result<_>>()?;
        Ok(Member { steps: (0..steps.list().len()).collect(), train: inputs(train)?, asked, frozen: None, forest: None })
    }

    fn fit(&mut self, targets: Targets<'_>, params: &TreeParams, seed: Seed) {
        let mine = |values: &[f64]| -> Vec<f64> { self.steps.iter().map(|&i| values[i]).collect() };
        let (y, weights) = (mine(targets.y), targets.weights.map(mine));
        // If all weights are zero, all steps have the same weight.
        let weights = weights.filter(|weights| weights.iter().any(|w| *w > 0.0));
        let targets = Targets { y: &y, weights: weights.as_deref() };
        let forest = match &self.frozen {
            Some(frozen) => Forest::from_leaves(frozen.trees.clone(), &frozen.train, targets),
            None => Forest::fit(&self.train, targets, params, seed),
        };
        self.forest = Some(forest.expect("rewards are bounded, checked in Steps::of"));
    }

    /// Q̂ of all rows, for the i-th evaluation input.
    fn predictions(&self, i: usize) -> Option<Vec<f64>> {
        let forest = self.forest.as_ref()?;
        Some(match &self.frozen {
            Some(frozen) => forest.predict_leaves(&frozen.asked[i]),
            None => forest.predict_all(&self.asked[i]),
        })
    }
}

impl Approximator for TreeFit {
    fn fit(&mut self, targets: Targets<'_>) {
        let seed = self.seed.stream("round").index(self.round);
        for (i, member) in (0..).zip(&mut self.members) {
            if let Some(member) = member {
                member.fit(targets, &self.params, seed.index(i));
            }
        }
        self.round += 1;
    }

    fn q(&self, a: Action, out: &mut [f64]) {
        let a = a.index();
        let (member, asked) = match self.ensembles {
            Ensembles::PerAction => (&self.members[a], 0),
            Ensembles::Joint => (&self.members[0], a),
        };
        match member.as_ref().filter(|_| self.taken[a]).and_then(|member| member.predictions(asked)) {
            Some(predictions) => out.copy_from_slice(&predictions),
            None => out.fill(f64::NEG_INFINITY),
        }
    }
}
