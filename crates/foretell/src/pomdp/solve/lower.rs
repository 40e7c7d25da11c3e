//! A lower bound of the value: for each class of states the maximum of vectors, each the value of
//! some plan from every state of the class.

use super::AlphaVector;
use super::bounds::blind;
use super::system::{Point, System};
use crate::data::Action;
use crate::error::Result;

/// Vectors in a block, whose values at one state are adjacent: products of a belief with all of
/// them need no horizontal sums and use every lane of the processor.
const WIDTH: usize = 16;

pub(super) struct Lower {
    sets: Vec<VectorSet>,
    /// The values of always taking the same action, of every state.
    blind: Vec<Vec<f64>>,
}

/// The vectors over the states of one class.
struct VectorSet {
    /// At (i / WIDTH), s·WIDTH + i % WIDTH the value of vector i at the s-th state of the class.
    blocks: Vec<Vec<f64>>,
    actions: Vec<Action>,
}

impl Lower {
    /// The values of the policies that always take the same action.
    pub fn new(system: &System) -> Result<Lower> {
        let blind: Vec<Vec<f64>> = (0..system.actions).map(|a| blind(system, a)).collect::<Result<_>>()?;
        let sets = (0..system.classes.len()).map(|_| VectorSet { blocks: Vec::new(), actions: Vec::new() }).collect();
        let mut lower = Lower { sets, blind };
        for class in 0..system.classes.len() {
            let members = system.classes.members(class);
            for (a, values) in lower.blind.iter().enumerate() {
                let values: Vec<f64> = members.iter().map(|&s| values[s as usize]).collect();
                lower.sets[class].push(Action(a as u32), &values);
            }
        }
        Ok(lower)
    }

    /// How many vectors there are in all.
    pub fn len(&self) -> usize {
        self.sets.iter().map(|set| set.actions.len()).sum()
    }

    /// How many vectors there are over the states of a class.
    pub fn len_of(&self, class: usize) -> usize {
        self.sets[class].actions.len()
    }

    /// The action that a vector of a class begins with.
    pub fn action(&self, class: usize, i: usize) -> Action {
        self.sets[class].actions[i]
    }

    /// The largest of the vectors of a class from the `from`-th on at a belief, and its value.
    pub fn largest(&self, system: &System, class: usize, point: &Point, from: usize) -> (usize, f64) {
        let (set, places) = (&self.sets[class], system.classes.places(class));
        let mut best = (from, f64::NEG_INFINITY);
        for (i, block) in set.blocks.iter().enumerate().skip(from / WIDTH) {
            let mut sums = [0.0; WIDTH];
            for (s, b) in point.entries() {
                let values = &block[places[s] as usize * WIDTH..][..WIDTH];
                for lane in 0..WIDTH {
                    sums[lane] += b * values[lane];
                }
            }
            let present = i * WIDTH..((i + 1) * WIDTH).min(set.actions.len());
            for (j, value) in present.zip(sums).filter(|&(j, _)| j >= from) {
                if value > best.1 {
                    best = (j, value);
                }
            }
        }
        best
    }

    /// Adds a vector over the states of a class.
    pub fn push(&mut self, class: usize, action: Action, values: &[f64]) {
        self.sets[class].push(action, values);
    }

    /// α(s) = r(a, s) + γ Σ_s' T(s' | a, s) Σ_o O(o | a, s') α_o(s') for the states of a class,
    /// where `next[o]` is the vector α_o of the class that follows; any where o cannot follow.
    pub fn vector(&self, system: &System, class: usize, a: usize, next: &[usize]) -> Vec<f64> {
        let after = |to: usize| -> f64 {
            let class = system.classes.of_state(to);
            let (set, place) = (&self.sets[class], system.classes.places(class)[to] as usize);
            system.emissions[a].row(to).map(|(o, p)| p * set.get(next[o], place)).sum()
        };
        let mut known = vec![f64::NAN; system.states];
        let value = |&s: &u32| {
            let s = s as usize;
            let mut future = 0.0;
            for (to, p) in system.transitions[a].row(s) {
                if known[to].is_nan() {
                    known[to] = after(to);
                }
                future += p * known[to];
            }
            system.reward(a)[s] + system.discount * future
        };
        system.classes.members(class).iter().map(value).collect()
    }

    /// Removes the vectors that are not marked, class by class.
    pub fn retain(&mut self, keep: &[Vec<bool>]) {
        for (set, keep) in self.sets.iter_mut().zip(keep) {
            set.retain(keep);
        }
    }

    /// The vectors over all states. Beyond its class, where a vector is never needed while beliefs
    /// are exact, it has the value of its action forever.
    pub fn vectors(&self, system: &System) -> Vec<AlphaVector> {
        let mut all = Vec::with_capacity(self.len());
        for (class, set) in self.sets.iter().enumerate() {
            for (i, &action) in set.actions.iter().enumerate() {
                let mut values = self.blind[action.index()].clone();
                for (place, &s) in system.classes.members(class).iter().enumerate() {
                    values[s as usize] = set.get(i, place);
                }
                all.push(AlphaVector { action, values });
            }
        }
        all
    }
}

impl VectorSet {
    fn get(&self, i: usize, place: usize) -> f64 {
        self.blocks[i / WIDTH][place * WIDTH + i % WIDTH]
    }

    fn push(&mut self, action: Action, values: &[f64]) {
        let lane = self.actions.len() % WIDTH;
        if lane == 0 {
            self.blocks.push(vec![0.0; values.len() * WIDTH]);
        }
        let block = self.blocks.last_mut().expect("a block was added for the first lane");
        values.iter().enumerate().for_each(|(s, &value)| block[s * WIDTH + lane] = value);
        self.actions.push(action);
    }

    fn retain(&mut self, keep: &[bool]) {
        let states = self.blocks.first().map_or(0, |block| block.len() / WIDTH);
        let mut kept = VectorSet { blocks: Vec::new(), actions: Vec::new() };
        for i in (0..self.actions.len()).filter(|&i| keep[i]) {
            let values: Vec<f64> = (0..states).map(|s| self.get(i, s)).collect();
            kept.push(self.actions[i], &values);
        }
        *self = kept;
    }
}
