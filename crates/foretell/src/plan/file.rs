//! Plans as safetensors files: the forests as arrays, the model as a file within the file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Plan, PlanParams, StateKind};
use crate::data::Alphabet;
use crate::error::{Error, Result};
use crate::filter::{Filter, PredictiveState};
use crate::memory::{LastObservations, WithLast};
use crate::model::Model;
use crate::tensors::{self, Array, Arrays, Kind};
use crate::tree_q::{Ensembles, TreeQ};
use crate::trees::{Forest, ForestArrays};
use crate::window::{WindowArrays, WindowQ};

const POLICY: Kind = Kind { name: "policy", again: "plan again", verb: "plan" };

/// What the header says.
#[derive(Serialize, Deserialize)]
struct Header {
    params: PlanParams,
    alphabet: Alphabet,
    /// Whether each action was taken in the logs.
    taken: Vec<bool>,
    /// Width of the rows of each forest; none where there is no forest.
    widths: Vec<Option<usize>>,
}

impl Plan {
    /// Writes the plan to a file, which appears whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        tensors::save(path.as_ref(), &self.to_bytes())
    }

    /// Reads a plan that [`Plan::save`] wrote.
    pub fn load(path: impl AsRef<Path>) -> Result<Plan> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Plan::from_bytes(&bytes, &path.display().to_string())
    }

    /// The plan as the bytes of a safetensors file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut arrays = Vec::new();
        let mut widths = Vec::new();
        for (i, forest) in self.trees.forests.iter().enumerate() {
            widths.push(forest.as_ref().map(|forest| forest.trees().width()));
            let Some(forest) = forest else { continue };
            let ForestArrays { roots, features, thresholds, children, values, .. } = forest.to_arrays();
            arrays.push(Array::u32s(format!("forest{i}_roots"), &[roots.len()], &roots));
            arrays.push(Array::u32s(format!("forest{i}_features"), &[features.len()], &features));
            arrays.push(Array::f32s(format!("forest{i}_thresholds"), &thresholds));
            arrays.push(Array::u32s(format!("forest{i}_children"), &[children.len()], &children));
            arrays.push(Array::f64s(format!("forest{i}_values"), &[values.len()], &values));
        }
        if let Some(window) = &self.window {
            let WindowArrays { shorter, steps, q } = window.to_arrays();
            arrays.push(Array::u32s("window_shorter", &[shorter.len()], &shorter));
            arrays.push(Array::u32s("window_steps", &[shorter.len(), 2], &steps));
            arrays.push(Array::f64s("window_q", &[shorter.len(), self.trees.taken.len()], &q));
        }
        if let Some(model) = &self.model {
            arrays.push(Array::bytes("model", model.to_bytes()));
        }
        let (params, alphabet) = (self.params.clone(), self.alphabet.clone());
        tensors::to_bytes(POLICY, Header { params, alphabet, taken: self.trees.taken.clone(), widths }, &arrays)
    }

    /// Reads a plan from the bytes of a safetensors file; `file` is named in errors.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Plan> {
        let (header, arrays): (Header, _) = Arrays::open(POLICY, bytes, file)?;
        let Header { params, alphabet, taken, widths } = header;
        params.validate().map_err(|e| arrays.damaged(&e.to_string()))?;
        let forest = |(i, width): (usize, &Option<usize>)| width.map(|width| read_forest(&arrays, i, width)).transpose();
        let forests = widths.iter().enumerate().map(forest).collect::<Result<Vec<_>>>()?;
        let model = match params.state {
            StateKind::Last => None,
            StateKind::Predictive | StateKind::Memory => Some(Model::from_bytes(&arrays.bytes("model")?, file)?),
        };
        let expected = if params.ensembles == Ensembles::Joint { 1 } else { taken.len() };
        let window = (params.window > 0).then(|| read_window(&arrays, params.window, taken.len())).transpose()?;
        let trees = TreeQ { ensembles: params.ensembles, forests, taken };
        let plan = Plan { params, alphabet, model, trees, window };
        let actions = plan.alphabet.actions().len();
        let whole = actions > 0
            && plan.trees.taken.len() == actions
            && plan.trees.forests.len() == expected
            && plan.model.as_ref().is_none_or(|model| *model.alphabet() == plan.alphabet)
            && widths.iter().flatten().all(|&width| width == plan.width());
        if whole { Ok(plan) } else { Err(arrays.damaged("its forests do not match its actions and states")) }
    }

    /// Width of the rows of its forests.
    fn width(&self) -> usize {
        let state = match (&self.model, self.params.state) {
            (Some(model), StateKind::Predictive) => model.rank(),
            (Some(model), _) => WithLast::new(PredictiveState::new(model), &self.alphabet).state().len(),
            (None, _) => LastObservations::new(&self.alphabet, self.params.last).state().len(),
        };
        state + if self.params.ensembles == Ensembles::Joint { self.alphabet.actions().len() } else { 0 }
    }
}

fn read_window(arrays: &Arrays<'_>, pairs: usize, actions: usize) -> Result<WindowQ> {
    let parts = WindowArrays {
        shorter: arrays.u32s("window_shorter")?,
        steps: arrays.u32s("window_steps")?,
        q: arrays.f64s("window_q")?,
    };
    WindowQ::from_arrays(pairs, actions, parts).ok_or_else(|| arrays.damaged("its windows contradict each other"))
}

fn read_forest(arrays: &Arrays<'_>, i: usize, width: usize) -> Result<Forest> {
    Forest::from_arrays(ForestArrays {
        width,
        roots: arrays.u32s(&format!("forest{i}_roots"))?,
        features: arrays.u32s(&format!("forest{i}_features"))?,
        thresholds: arrays.f32s(&format!("forest{i}_thresholds"))?,
        children: arrays.u32s(&format!("forest{i}_children"))?,
        values: arrays.f64s(&format!("forest{i}_values"))?,
    })
    .map_err(|e| arrays.damaged(&e.to_string()))
}
