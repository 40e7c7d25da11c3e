//! The recurrence over the rows of a lane, and back through time.

use super::lane::{Lane, START};
use crate::math::single::{Factor, Into, add, multiply_into, sigmoid, tanh, vectorised};
use crate::model::{Blocks, Choices, Shape};

/// What a network is while it is trained.
#[derive(Clone, Copy)]
pub(super) struct Net<'a> {
    pub(super) shape: Shape,
    pub(super) blocks: &'a Blocks,
    pub(super) weights: &'a [f32],
    pub(super) choices: &'a Choices,
}

/// The states of a lane, and what the way back needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// z, g and the new content of each row, 3 hidden; on the way back their derivatives.
    gates: Vec<f32>,
    /// U_n h of each row.
    content: Vec<f32>,
    /// The state before each row.
    before: Vec<f32>,
    /// The state after each row.
    pub(super) states: Vec<f32>,
    /// U h of the rows of a step, 3 hidden.
    products: Vec<f32>,
    /// The derivative by the state before a step.
    carried: Vec<f32>,
}

impl Trace {
    /// Computes the states of all rows. `carried_over` are the states before the window, and become
    /// those after it.
    pub(super) fn forward(&mut self, net: Net<'_>, lane: &Lane, carried_over: &mut [f32]) {
        let n = net.shape.hidden;
        let rows = lane.rows();
        self.gates.resize(rows * 3 * n, 0.0);
        for matrix in [&mut self.content, &mut self.before, &mut self.states] {
            matrix.resize(rows * n, 0.0);
        }
        inputs(net, lane, &mut self.gates);
        let recurrence = Factor::rows(&net.weights[net.blocks.recurrence.clone()], 3 * n);
        for t in 0..lane.steps() {
            let (width, row) = (lane.width(t), lane.begins[t]);
            let before = &mut self.before[row * n..][..width * n];
            before.copy_from_slice(&carried_over[..width * n]);
            self.products.resize(width * 3 * n, 0.0);
            multiply_into(&mut self.products, 3 * n, 0, Into::Replace, Factor::rows(before, n), recurrence);
            let step = Step {
                products: &self.products,
                gates: &mut self.gates[row * 3 * n..][..width * 3 * n],
                content: &mut self.content[row * n..][..width * n],
                before,
                after: &mut self.states[row * n..][..width * n],
            };
            vectorised(
                #[inline(always)]
                || step.compute(n),
            );
            carried_over[..width * n].copy_from_slice(&self.states[row * n..][..width * n]);
        }
    }

    /// Adds the gradient, given the derivatives by the state after each row.
    pub(super) fn backward(&mut self, net: Net<'_>, lane: &Lane, derivatives: &mut [f32], gradient: &mut [f32]) {
        let n = net.shape.hidden;
        let recurrence = Factor::rows(&net.weights[net.blocks.recurrence.clone()], 3 * n);
        // The derivatives by U h differ from those by x in the part of the content.
        self.carried.clear();
        for t in (0..lane.steps()).rev() {
            let (width, row) = (lane.width(t), lane.begins[t]);
            let by_state = &mut derivatives[row * n..][..width * n];
            vectorised(
                #[inline(always)]
                || add(by_state, &self.carried),
            );
            self.products.resize(width * 3 * n, 0.0);
            self.carried.resize(width * n, 0.0);
            let step = StepBack {
                by_state,
                gates: &mut self.gates[row * 3 * n..][..width * 3 * n],
                content: &mut self.content[row * n..][..width * n],
                before: &self.before[row * n..][..width * n],
                by_products: &mut self.products,
                by_before: &mut self.carried,
            };
            vectorised(
                #[inline(always)]
                || step.compute(n),
            );
            let by_products = Factor::rows(&self.products, 3 * n);
            multiply_into(&mut self.carried, n, 0, Into::Add, by_products, recurrence.transposed());
        }
        self.add_gradient(net, lane, gradient);
    }

    /// Once `gates` and `content` are derivatives by x and by U_n h.
    fn add_gradient(&mut self, net: Net<'_>, lane: &Lane, gradient: &mut [f32]) {
        let n = net.shape.hidden;
        let before = Factor::rows(&self.before, n).transposed();
        let by_recurrence = &mut gradient[net.blocks.recurrence.clone()];
        let gates = Factor::rows(&self.gates, 3 * n).columns(0, 2 * n);
        multiply_into(by_recurrence, 3 * n, 0, Into::Add, before, gates);
        multiply_into(by_recurrence, 3 * n, 2 * n, Into::Add, before, Factor::rows(&self.content, n));
        vectorised(
            #[inline(always)]
            || {
                for (row, by_x) in self.gates.chunks_exact(3 * n).enumerate() {
                    add(&mut gradient[net.blocks.gates.clone()], by_x);
                    add(&mut gradient[net.blocks.action.start + lane.actions[row] as usize * 3 * n..][..3 * n], by_x);
                    each_input(net, lane.inputs[row], |at| add(&mut gradient[at..][..3 * n], by_x));
                }
            },
        );
    }
}

/// x of all rows.
fn inputs(net: Net<'_>, lane: &Lane, x: &mut [f32]) {
    let n = 3 * net.shape.hidden;
    let bias = &net.weights[net.blocks.gates.clone()];
    vectorised(
        #[inline(always)]
        || {
            for (row, x) in x.chunks_exact_mut(n).enumerate() {
                x.copy_from_slice(bias);
                add(x, &net.weights[net.blocks.action.start + lane.actions[row] as usize * n..][..n]);
                each_input(net, lane.inputs[row], |at| add(x, &net.weights[at..][..n]));
            }
        },
    );
}

/// Calls `f` with the place of what each part of the last observation adds to x.
#[inline(always)]
fn each_input(net: Net<'_>, input: u32, mut f: impl FnMut(usize)) {
    let n = 3 * net.shape.hidden;
    let start = net.blocks.value.start;
    match input {
        START => f(start + net.shape.values * n),
        symbol => net.choices.values(symbol as usize).iter().for_each(|&value| f(start + value as usize * n)),
    }
}

/// The rows of one step.
struct Step<'a> {
    products: &'a [f32],
    /// x, which becomes z, g and the new content.
    gates: &'a mut [f32],
    content: &'a mut [f32],
    before: &'a [f32],
    after: &'a mut [f32],
}

impl Step<'_> {
    #[inline(always)]
    fn compute(self, n: usize) {
        let rows = self.products.chunks_exact(3 * n).zip(self.gates.chunks_exact_mut(3 * n));
        let states = self.before.chunks_exact(n).zip(self.after.chunks_exact_mut(n)).zip(self.content.chunks_exact_mut(n));
        for ((products, gates), ((before, after), content)) in rows.zip(states) {
            let (update, rest) = gates.split_at_mut(n);
            let (reset, new) = rest.split_at_mut(n);
            let (for_update, for_rest) = products.split_at(n);
            let (for_reset, for_new) = for_rest.split_at(n);
            content.copy_from_slice(for_new);
            for (z, u) in update.iter_mut().zip(for_update) {
                *z = sigmoid(*z + u);
            }
            for (g, u) in reset.iter_mut().zip(for_reset) {
                *g = sigmoid(*g + u);
            }
            for ((c, u), g) in new.iter_mut().zip(for_new).zip(&*reset) {
                *c = tanh(*c + g * u);
            }
            for (((after, before), z), c) in after.iter_mut().zip(before).zip(&*update).zip(&*new) {
                *after = (1.0 - z) * before + z * c;
            }
        }
    }
}

/// The rows of one step on the way back.
struct StepBack<'a> {
    by_state: &'a [f32],
    /// z, g and the new content, which become derivatives by x.
    gates: &'a mut [f32],
    /// U_n h, which becomes the derivative by it.
    content: &'a mut [f32],
    before: &'a [f32],
    by_products: &'a mut [f32],
    by_before: &'a mut [f32],
}

impl StepBack<'_> {
    #[inline(always)]
    fn compute(self, n: usize) {
        let rows = self.gates.chunks_exact_mut(3 * n).zip(self.by_products.chunks_exact_mut(3 * n));
        let states = self.by_state.chunks_exact(n).zip(self.before.chunks_exact(n));
        let out = self.content.chunks_exact_mut(n).zip(self.by_before.chunks_exact_mut(n));
        for (((gates, by_products), (by_state, before)), (content, by_before)) in rows.zip(states).zip(out) {
            let (update, rest) = gates.split_at_mut(n);
            let (reset, new) = rest.split_at_mut(n);
            for i in 0..n {
                let (z, g, c, d) = (update[i], reset[i], new[i], by_state[i]);
                let by_new = d * z * (1.0 - c * c);
                by_before[i] = d * (1.0 - z);
                update[i] = d * (c - before[i]) * z * (1.0 - z);
                reset[i] = by_new * content[i] * g * (1.0 - g);
                new[i] = by_new;
                content[i] = by_new * g;
            }
            by_products[..2 * n].copy_from_slice(&gates[..2 * n]);
            by_products[2 * n..].copy_from_slice(content);
        }
    }
}
