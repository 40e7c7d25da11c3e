//! Totally randomised trees (K = 1): splits do not depend on targets, so one structure serves all
//! targets.

use super::inputs::Inputs;
use super::threshold;
use super::walk::Node;
use crate::rng::Rng;

/// Rows `start..end` of the order, and the features known to be constant in them.
struct Task {
    node: usize,
    start: usize,
    end: usize,
    constants: usize,
}

/// Grows one tree. `columns` are the features of `inputs`, column after column: a split reads one
/// of them only.
pub(super) fn grow(inputs: &Inputs, columns: &[f32], min_split: usize, mut rng: Rng) -> Vec<Node> {
    let rows = inputs.len();
    let mut order: Vec<u32> = (0..rows as u32).collect();
    let mut features: Vec<usize> = (0..inputs.width()).collect();
    let (mut values, mut right) = (vec![0.0; rows], vec![0; rows]);
    let mut nodes = vec![Node::leaf(0)];
    let mut tasks = vec![Task { node: 0, start: 0, end: rows, constants: 0 }];
    while let Some(mut task) = tasks.pop() {
        let order = &mut order[task.start..task.end];
        let values = &mut values[..order.len()];
        if order.len() < min_split.max(2) {
            continue;
        }
        let Some((feature, low, high)) = draw_feature(&mut task, &mut features, columns, order, values, &mut rng) else {
            continue;
        };
        let threshold = threshold(low, high, rng.bits() as u32);
        let middle = task.start + partition(order, values, threshold, &mut right);
        let child = nodes.len();
        nodes[task.node] = Node { feature: feature as u32, threshold, child: child as u32 };
        nodes.extend([Node::leaf(child as u32), Node::leaf(child as u32 + 1)]);
        tasks.push(Task { node: child + 1, start: middle, ..task });
        tasks.push(Task { node: child, end: middle, ..task });
    }
    nodes
}

/// A feature drawn uniformly from those that are not constant in these rows, with its bounds and,
/// in `values`, its values.
///
/// A feature that is constant here is constant in all descendants:
/// `features[..constants]` are the known ones, and descendants only permute the rest.
fn draw_feature(
    task: &mut Task,
    features: &mut [usize],
    columns: &[f32],
    order: &[u32],
    values: &mut [f32],
    rng: &mut Rng,
) -> Option<(usize, f32, f32)> {
    let rows = columns.len() / features.len();
    while task.constants < features.len() {
        let drawn = task.constants + rng.below(features.len() - task.constants);
        let column = &columns[features[drawn] * rows..][..rows];
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for (value, &row) in values.iter_mut().zip(order) {
            *value = column[row as usize];
            // Inputs have no NaN, which f32::min would check for.
            low = if *value < low { *value } else { low };
            high = if *value > high { *value } else { high };
        }
        if low < high {
            return Some((features[drawn], low, high));
        }
        features.swap(drawn, task.constants);
        task.constants += 1;
    }
    None
}

/// Moves rows whose value is above the threshold behind the others; returns the number of the
/// others.
fn partition(order: &mut [u32], values: &[f32], threshold: f32, right: &mut [u32]) -> usize {
    let (mut left_len, mut right_len) = (0, 0);
    for (i, &value) in values.iter().enumerate() {
        // Both are written and one is counted: no branch to mispredict.
        let row = order[i];
        order[left_len] = row;
        right[right_len] = row;
        let above = usize::from(value > threshold);
        right_len += above;
        left_len += 1 - above;
    }
    order[left_len..].copy_from_slice(&right[..right_len]);
    left_len
}
