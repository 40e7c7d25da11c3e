//! Plans as safetensors files: forests as arrays, the model as a file within the file.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::params::{PlanParams, Planner, Regressor, StateKind, recent};
use super::planner::Plan;
use super::q::Q;
use super::tree_q::{Ensembles, TreeQ};
use super::window::{Recent, WindowArrays, WindowQ};
use crate::data::{Action, Alphabet};
use crate::error::{Error, Result};
use crate::log::Schema;
use crate::model::{Model, digest_arrays, read_digest};
use crate::pomdp::solve::AlphaVector;
use crate::store;
use crate::store::tensors::{self, Array, Arrays, Kind};
use crate::system::Filter;
use crate::trees::{Forest, ForestArrays};

const POLICY: Kind = Kind { name: "policy", again: "plan again" };

/// The header.
#[derive(Serialize, Deserialize)]
struct Header {
    params: PlanParams,
    alphabet: Alphabet,
    trees: Option<Trees>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    #[serde(default, skip_serializing_if = "Schema::is_empty")]
    schema: Schema,
}

/// The part of the header about trees.
#[derive(Serialize, Deserialize)]
struct Trees {
    /// Whether each action was taken in the logs.
    taken: Vec<bool>,
    /// Width of the rows of each forest; `None` for an action without a forest.
    widths: Vec<Option<usize>>,
}

impl Plan {
    /// Writes the plan to a file, atomically.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        store::write(path, &self.to_bytes())
    }

    /// Reads a plan written by [`Plan::save`].
    pub fn load(path: impl AsRef<Path>) -> Result<Plan> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Plan::from_bytes(&bytes, &path.display().to_string())
    }

    /// The plan as the bytes of a safetensors file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut arrays = Vec::new();
        let trees = self.q.trees().map(|trees| write_trees(trees, &mut arrays));
        if let Some(table) = self.q.table() {
            let WindowArrays { shorter, tokens, q } = table.to_arrays();
            arrays.push(Array::u32s("table_shorter", &[shorter.len()], &shorter));
            arrays.push(Array::u32s("table_tokens", &[shorter.len(), 2], &tokens));
            arrays.push(Array::f64s("table_q", &[shorter.len(), self.alphabet.actions().len()], &q));
        }
        if let Some((first, vectors)) = self.q.vectors().and_then(|vectors| Some((vectors.first()?, vectors))) {
            let actions: Vec<u32> = vectors.iter().map(|v| v.action.0).collect();
            let values: Vec<f64> = vectors.iter().flat_map(|v| v.values.iter().copied()).collect();
            arrays.push(Array::u32s("vector_actions", &[actions.len()], &actions));
            arrays.push(Array::f64s("vectors", &[actions.len(), first.values.len()], &values));
        }
        arrays.extend(digest_arrays(&self.digest));
        if let Some(model) = &self.model {
            arrays.push(Array::bytes("model", model.to_bytes()));
        }
        let header = Header {
            params: self.params.clone(),
            alphabet: self.alphabet.clone(),
            trees,
            encoding: self.encoding.clone(),
            schema: (*self.schema).clone(),
        };
        tensors::to_bytes(POLICY, header, &arrays)
    }

    /// Reads a plan from the bytes of a safetensors file; `file` is named in errors.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Plan> {
        let (header, arrays): (Header, _) = Arrays::open(POLICY, bytes, file)?;
        let Header { params, alphabet, trees, encoding, schema } = header;
        params.validate().map_err(|e| arrays.damaged(&e.to_string()))?;
        let model = match params.state {
            StateKind::Last => None,
            StateKind::Predictive | StateKind::Memory => Some(Arc::new(Model::from_bytes(arrays.bytes("model")?, file)?)),
        };
        let mismatch = || arrays.damaged("its parts do not match its actions and states");
        let read_table = || read_table(&arrays, recent(params.regressor, params.window), &alphabet);
        let trees = trees.map(|trees| read_trees(&arrays, params.ensembles, trees)).transpose()?;
        let q = match (params.planner, params.regressor, trees) {
            (Planner::FittedQ, Regressor::Trees, Some(trees)) => Q::Trees(trees),
            (Planner::FittedQ, Regressor::Table | Regressor::Changes, None) => Q::Table(read_table()?),
            (Planner::FittedQ, Regressor::Mean, Some(trees)) => Q::Mean(trees, read_table()?),
            (Planner::Qmdp | Planner::FastInformed | Planner::PointBased, _, None) => Q::Vectors(read_vectors(&arrays)?),
            _ => return Err(mismatch()),
        };
        let digest = Arc::new(read_digest(&arrays)?);
        let (schema, q) = (Arc::new(schema), Arc::new(q));
        let note = arrays.note();
        let plan = Plan { params, alphabet, model, encoding, schema, digest, q, stopped: None, choice: None, note };
        if plan.is_whole() { Ok(plan) } else { Err(mismatch()) }
    }

    fn is_whole(&self) -> bool {
        let actions = self.alphabet.actions().len();
        let model_fits = self.model().is_none_or(|model| *model.alphabet() == self.alphabet);
        let trees_fit = |trees: &TreeQ| {
            let forests = if self.params.ensembles == Ensembles::Joint { 1 } else { actions };
            trees.taken.len() == actions
                && trees.forests.len() == forests
                && trees.forests.iter().flatten().all(|forest| forest.trees().width() == self.width())
                && trees.forests.iter().flatten().all(|forest| forest.trees().len() == self.params.trees)
        };
        let q_fits = match &*self.q {
            Q::Trees(trees) | Q::Mean(trees, _) => trees_fit(trees),
            Q::Table(_) => true,
            Q::Vectors(vectors) => {
                let states = self.filter().state().len();
                let fits = |v: &AlphaVector| v.action.index() < actions && v.values.len() == states;
                self.model().is_some_and(|model| model.latent().is_some()) && vectors.iter().all(fits)
            }
        };
        actions > 0 && model_fits && q_fits
    }

    /// Width of the rows of its forests.
    fn width(&self) -> usize {
        let state = self.filter().state().len();
        state + if self.params.ensembles == Ensembles::Joint { self.alphabet.actions().len() } else { 0 }
    }
}

fn write_trees(trees: &TreeQ, arrays: &mut Vec<Array>) -> Trees {
    for (i, forest) in trees.forests.iter().enumerate() {
        let Some(forest) = forest else { continue };
        let ForestArrays { roots, features, thresholds, children, values, .. } = forest.to_arrays();
        arrays.push(Array::u32s(format!("forest{i}_roots"), &[roots.len()], &roots));
        arrays.push(Array::u32s(format!("forest{i}_features"), &[features.len()], &features));
        arrays.push(Array::f32s(format!("forest{i}_thresholds"), &thresholds));
        arrays.push(Array::u32s(format!("forest{i}_children"), &[children.len()], &children));
        arrays.push(Array::f64s(format!("forest{i}_values"), &[values.len()], &values));
    }
    let width = |forest: &Option<Forest>| forest.as_ref().map(|forest| forest.trees().width());
    Trees { taken: trees.taken.clone(), widths: trees.forests.iter().map(width).collect() }
}

fn read_trees(arrays: &Arrays<'_>, ensembles: Ensembles, trees: Trees) -> Result<TreeQ> {
    let forest = |(i, width): (usize, &Option<usize>)| width.map(|width| read_forest(arrays, i, width)).transpose();
    let forests = trees.widths.iter().enumerate().map(forest).collect::<Result<Vec<_>>>()?;
    Ok(TreeQ { ensembles, forests, taken: trees.taken })
}

fn read_vectors(arrays: &Arrays<'_>) -> Result<Vec<AlphaVector>> {
    let (actions, values) = (arrays.u32s("vector_actions")?, arrays.f64s("vectors")?);
    let states = values.len() / actions.len().max(1);
    let values = arrays.sized("vectors", values, states * actions.len())?;
    if states == 0 || !values.iter().all(|x| x.is_finite()) {
        return Err(arrays.damaged("its vectors are empty or not finite"));
    }
    let all = actions.iter().zip(values.chunks_exact(states));
    Ok(all.map(|(&a, values)| AlphaVector { action: Action(a), values: values.to_vec() }).collect())
}

fn read_table(arrays: &Arrays<'_>, recent: Recent, alphabet: &Alphabet) -> Result<WindowQ> {
    let (shorter, tokens, q) = (arrays.u32s("table_shorter")?, arrays.u32s("table_tokens")?, arrays.any_f64s("table_q")?);
    WindowQ::from_arrays(recent, alphabet, WindowArrays { shorter, tokens, q })
        .ok_or_else(|| arrays.damaged("its table is inconsistent"))
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
