//! A recurrent predictive state: a gated recurrent unit whose state predicts the next observation,
//! part by part.
//!
//! The state h and the last observation o, with parts o_1 … o_F, become after action a
//!
//! ```text
//! x  = E_a + Σ_f E_{f,o_f} + b                    (E_start instead of the sum at the start)
//! z, g = σ(x_z + U_z h), σ(x_g + U_g h)
//! h' = (1 − z) h + z tanh(x_n + g ⊙ U_n h)
//! ```
//!
//! and the next observation has P(o ‖ a) = Π_f softmax(W_f [h', relu(V h' + c + Σ_{e<f} C_{e,o_e})] +
//! d_f)(o_f), where each softmax is over the values that lead to a symbol of the alphabet given the
//! parts before. So the probabilities of all symbols sum to 1.
//!
//! The gates are those of Cho et al. (2014); the parts are predicted in turn as by Larochelle and
//! Murray (2011).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::{Action, Alphabet, Factors, Observation};
use crate::error::Result;
use crate::math::single::{add, add_scaled, dot16, exp, sigmoid, tanh, vectorised};
use crate::store::tensors::{Array, Arrays};

/// Largest number of hidden units.
pub(crate) const MOST_HIDDEN: usize = 1024;

/// The sizes of a network, which fix where its weights are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) actions: usize,
    /// The values of all parts of observations together.
    pub(crate) values: usize,
    pub(crate) hidden: usize,
}

/// Where the weights of a network are, in the order in which they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// E_a, actions × 3 hidden.
    pub(crate) action: Range<usize>,
    /// E_{f,v} and E_start, (values + 1) × 3 hidden.
    pub(crate) value: Range<usize>,
    /// U, hidden × 3 hidden.
    pub(crate) recurrence: Range<usize>,
    /// b, 3 hidden.
    pub(crate) gates: Range<usize>,
    /// V, hidden × hidden.
    pub(crate) inner: Range<usize>,
    /// c, hidden.
    pub(crate) inner_bias: Range<usize>,
    /// C_{f,v}, values × hidden.
    pub(crate) revealed: Range<usize>,
    /// W, values × 2 hidden.
    pub(crate) out: Range<usize>,
    /// d, values.
    pub(crate) out_bias: Range<usize>,
}

impl Shape {
    pub(crate) fn blocks(self) -> Blocks {
        let Shape { actions, values, hidden: h } = self;
        let mut at = 0;
        let mut next = |size: usize| {
            at += size;
            at - size..at
        };
        Blocks {
            action: next(actions * 3 * h),
            value: next((values + 1) * 3 * h),
            recurrence: next(h * 3 * h),
            gates: next(3 * h),
            inner: next(h * h),
            inner_bias: next(h),
            revealed: next(values * h),
            out: next(values * 2 * h),
            out_bias: next(values),
        }
    }

    /// The number of weights.
    pub(crate) fn weights(self) -> usize {
        self.blocks().out_bias.end
    }
}

/// In place of a choice: the parts before leave only one value.
pub(crate) const FORCED: u32 = u32::MAX;

/// The symbols of an alphabet as a tree of choices, one level for each factor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choices {
    factors: usize,
    /// Where the values of each factor begin, and their total number.
    pub(crate) first: Vec<usize>,
    /// For each symbol the value of each factor, counted over all factors.
    values: Vec<u32>,
    /// For each symbol the choice at each factor: `FORCED` if there is only one value.
    nodes: Vec<u32>,
    /// The values of all choices, each from `start[i]` to `start[i + 1]`.
    start: Vec<u32>,
    options: Vec<u32>,
    /// The symbols in the order of their values.
    order: Vec<u32>,
    terminal: Vec<bool>,
}

impl Choices {
    pub(crate) fn new(alphabet: &Alphabet, factors: &Factors) -> Choices {
        let sizes = factors.sizes();
        let first: Vec<usize> = std::iter::once(0)
            .chain(sizes.iter().scan(0, |sum, n| {
                *sum += n;
                Some(*sum)
            }))
            .collect();
        let symbols = alphabet.observations().len();
        let of = |o: usize| factors.values(Observation(o as u32));
        let values = (0..symbols).flat_map(|o| of(o).iter().zip(&first).map(|(v, first)| v + *first as u32)).collect();
        let mut order: Vec<u32> = (0..symbols as u32).collect();
        order.sort_by(|&x, &y| of(x as usize).cmp(of(y as usize)));
        let mut choices = Choices {
            factors: sizes.len(),
            first,
            values,
            nodes: vec![FORCED; symbols * sizes.len()],
            start: vec![0],
            options: Vec::new(),
            order,
            terminal: alphabet.observations().iter().map(|o| o.terminal).collect(),
        };
        choices.divide(0..symbols, 0);
        choices
    }

    /// Makes the choices among symbols, in their order, whose values agree before `factor`.
    fn divide(&mut self, range: Range<usize>, factor: usize) {
        if factor == self.factors || range.len() <= 1 {
            return;
        }
        let groups = self.groups(range.clone(), factor);
        if groups.len() > 1 {
            let node = self.start.len() as u32 - 1;
            for i in range {
                let o = self.order[i] as usize;
                self.nodes[o * self.factors + factor] = node;
            }
            self.options.extend(groups.iter().map(|(value, _)| *value));
            self.start.push(self.options.len() as u32);
        }
        for (_, group) in groups {
            self.divide(group, factor + 1);
        }
    }

    /// Symbols in their order by their value of a factor.
    fn groups(&self, range: Range<usize>, factor: usize) -> Vec<(u32, Range<usize>)> {
        let mut groups: Vec<(u32, Range<usize>)> = Vec::new();
        for i in range {
            let value = self.values[self.order[i] as usize * self.factors + factor];
            match groups.last_mut() {
                Some((last, range)) if *last == value => range.end = i + 1,
                _ => groups.push((value, i..i + 1)),
            }
        }
        groups
    }

    pub(crate) fn factors(&self) -> usize {
        self.factors
    }

    pub(crate) fn symbols(&self) -> usize {
        self.order.len()
    }

    /// The number of values of all factors.
    pub(crate) fn total(&self) -> usize {
        self.first[self.factors]
    }

    /// The value of each factor of a symbol; none if it is missing.
    #[inline]
    pub(crate) fn values(&self, symbol: usize) -> &[u32] {
        if self.knows(symbol) { &self.values[symbol * self.factors..][..self.factors] } else { &[] }
    }

    /// Whether it is a symbol of the alphabet, and not a missing observation.
    #[inline]
    pub(crate) fn knows(&self, symbol: usize) -> bool {
        symbol < self.order.len()
    }

    /// The choice at each factor of a symbol.
    #[inline]
    pub(crate) fn nodes(&self, symbol: usize) -> &[u32] {
        &self.nodes[symbol * self.factors..][..self.factors]
    }

    /// The values of a choice.
    #[inline]
    pub(crate) fn options(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.options[self.start[node] as usize..self.start[node + 1] as usize]
    }
}

/// A recurrent network that predicts observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurrent {
    pub(crate) shape: Shape,
    pub(crate) weights: Vec<f32>,
    pub(crate) choices: Choices,
    blocks: Blocks,
}

/// The part of a header about a network.
#[derive(Serialize, Deserialize)]
pub(super) struct NetworkHeader {
    hidden: usize,
    /// Whether observations are predicted by their parts.
    by_parts: bool,
}

/// Space for a prediction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    /// U h, 3 hidden.
    products: Vec<f32>,
    /// V h + c and what earlier parts add, for each depth of the tree.
    inner: Vec<f32>,
    logits: Vec<f32>,
}

impl Recurrent {
    pub(crate) fn new(shape: Shape, weights: Vec<f32>, choices: Choices) -> Recurrent {
        debug_assert_eq!((shape.weights(), shape.values), (weights.len(), choices.total()));
        Recurrent { blocks: shape.blocks(), shape, weights, choices }
    }

    pub(super) fn header(&self) -> NetworkHeader {
        NetworkHeader { hidden: self.shape.hidden, by_parts: self.factors() > 1 }
    }

    /// Its weights.
    pub(super) fn array(&self, name: &str) -> Array {
        Array::f32s(name, &self.weights)
    }

    /// Reads a network whose weights have the given name.
    pub(super) fn read(name: &str, header: NetworkHeader, alphabet: &Alphabet, arrays: &Arrays<'_>) -> Result<Recurrent> {
        let NetworkHeader { hidden, by_parts } = header;
        let factors = if by_parts { Factors::of(alphabet) } else { Factors::whole(alphabet.observations().len()) };
        let choices = Choices::new(alphabet, &factors);
        let shape = Shape { actions: alphabet.actions().len(), values: choices.total(), hidden };
        if !(1..=MOST_HIDDEN).contains(&hidden) {
            return Err(arrays.damaged(&format!("its network has {hidden} units")));
        }
        let weights = arrays.sized(name, arrays.f32s(name)?, shape.weights())?;
        Ok(Recurrent::new(shape, weights, choices))
    }

    /// Number of hidden units.
    pub fn hidden(&self) -> usize {
        self.shape.hidden
    }

    /// Number of parts of an observation, with the end of the episode as one of them; 1 if
    /// observations are predicted as a whole.
    pub fn factors(&self) -> usize {
        self.choices.factors
    }

    pub(crate) fn block(&self, range: &Range<usize>) -> &[f32] {
        &self.weights[range.clone()]
    }

    /// What the start of an episode adds to the input.
    pub(crate) fn start_input(&self) -> &[f32] {
        self.value_row(self.shape.values)
    }

    fn value_row(&self, value: usize) -> &[f32] {
        let n = 3 * self.shape.hidden;
        &self.block(&self.blocks.value)[value * n..][..n]
    }

    /// Adds what an observation adds to the input, times `weight`.
    pub(crate) fn add_observation(&self, o: Observation, weight: f32, input: &mut [f32]) {
        for &value in self.choices.values(o.index()) {
            add_scaled(input, weight, self.value_row(value as usize));
        }
    }

    /// Whether an observation ends the episode.
    pub(crate) fn is_terminal(&self, o: usize) -> bool {
        self.choices.terminal[o]
    }

    /// Adds what an action adds to the input, times `weight`.
    pub(crate) fn add_action(&self, a: Action, weight: f32, input: &mut [f32]) {
        let n = 3 * self.shape.hidden;
        add_scaled(input, weight, &self.block(&self.blocks.action)[a.index() * n..][..n]);
    }

    /// h ↦ h'; the input is without b.
    pub(crate) fn step(&self, input: &[f32], h: &mut [f32], scratch: &mut Scratch) {
        let n = self.shape.hidden;
        let (recurrence, bias) = (self.block(&self.blocks.recurrence), self.block(&self.blocks.gates));
        scratch.products.clear();
        scratch.products.resize(3 * n, 0.0);
        let products = &mut scratch.products[..];
        vectorised(
            #[inline(always)]
            || {
                for (row, &h) in recurrence.chunks_exact(3 * n).zip(&*h) {
                    add_scaled(products, h, row);
                }
                let x = |i: usize| input[i] + bias[i];
                for i in 0..n {
                    let z = sigmoid(x(i) + products[i]);
                    let g = sigmoid(x(n + i) + products[n + i]);
                    let c = tanh(x(2 * n + i) + g * products[2 * n + i]);
                    h[i] = (1.0 - z) * h[i] + z * c;
                }
            },
        );
    }

    /// P(o) of all symbols after the state h'. Their sum is 1.
    pub(crate) fn probabilities(&self, h: &[f32], scratch: &mut Scratch, p: &mut [f64]) {
        self.start_inner(h, scratch);
        self.descend(h, scratch, 0..self.choices.symbols(), 0, 1.0, p);
    }

    /// The probabilities of symbols, in their order, whose values agree before `factor`.
    fn descend(&self, h: &[f32], scratch: &mut Scratch, range: Range<usize>, factor: usize, total: f64, p: &mut [f64]) {
        let first = self.choices.order[range.start] as usize;
        if range.len() == 1 || factor == self.choices.factors {
            p[first] = total;
            return;
        }
        let node = self.choices.nodes(first)[factor];
        let mut chances = Vec::new();
        if node != FORCED {
            self.softmax(h, scratch, factor, node);
            chances.extend(scratch.logits.iter().map(|&p| f64::from(p)));
            let sum: f64 = chances.iter().sum();
            chances.iter_mut().for_each(|p| *p /= sum);
        }
        for (i, (value, group)) in self.choices.groups(range, factor).into_iter().enumerate() {
            if group.len() > 1 {
                self.reveal(scratch, factor, value);
            }
            self.descend(h, scratch, group, factor + 1, total * chances.get(i).unwrap_or(&1.0), p);
        }
    }

    /// ln P(o) of one symbol after the state h'.
    pub(crate) fn log_probability(&self, h: &[f32], scratch: &mut Scratch, o: Observation) -> f64 {
        self.start_inner(h, scratch);
        let (values, nodes) = (self.choices.values(o.index()), self.choices.nodes(o.index()));
        let last = nodes.iter().rposition(|&node| node != FORCED).map_or(0, |last| last + 1);
        let mut sum = 0.0;
        for factor in 0..last {
            if nodes[factor] != FORCED {
                self.softmax(h, scratch, factor, nodes[factor]);
                let total: f64 = scratch.logits.iter().map(|&p| f64::from(p)).sum();
                let at = self.choices.options(nodes[factor]).iter().position(|v| *v == values[factor]);
                sum += (f64::from(scratch.logits[at.expect("its value is an option")]) / total).ln();
            }
            if factor + 1 < last {
                self.reveal(scratch, factor, values[factor]);
            }
        }
        sum
    }

    /// V h + c.
    fn start_inner(&self, h: &[f32], scratch: &mut Scratch) {
        let n = self.shape.hidden;
        scratch.inner.clear();
        scratch.inner.extend_from_slice(self.block(&self.blocks.inner_bias));
        scratch.inner.resize(n * (self.choices.factors + 1), 0.0);
        let (inner, weights) = (&mut scratch.inner[..n], self.block(&self.blocks.inner));
        vectorised(
            #[inline(always)]
            || weights.chunks_exact(n).zip(h).for_each(|(row, &h)| add_scaled(inner, h, row)),
        );
    }

    /// The units of the next depth, once the value of a factor is known.
    fn reveal(&self, scratch: &mut Scratch, factor: usize, value: u32) {
        let n = self.shape.hidden;
        let (before, after) = scratch.inner.split_at_mut((factor + 1) * n);
        after[..n].copy_from_slice(&before[factor * n..]);
        add(&mut after[..n], &self.block(&self.blocks.revealed)[value as usize * n..][..n]);
    }

    /// Fills in what is proportional to the probabilities of the options of a choice: the largest
    /// is 1.
    fn softmax(&self, h: &[f32], scratch: &mut Scratch, factor: usize, node: u32) {
        let n = self.shape.hidden;
        let Scratch { inner, logits, products } = scratch;
        let (out, bias) = (self.block(&self.blocks.out), self.block(&self.blocks.out_bias));
        products.clear();
        products.extend(inner[factor * n..][..n].iter().map(|x| x.max(0.0)));
        logits.clear();
        vectorised(
            #[inline(always)]
            || {
                for &value in self.choices.options(node) {
                    let row = &out[value as usize * 2 * n..][..2 * n];
                    logits.push(bias[value as usize] + dot16(&row[..n], h) + dot16(&row[n..], products));
                }
                let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                logits.iter_mut().for_each(|x| *x = exp(*x - most));
            },
        );
    }
}
