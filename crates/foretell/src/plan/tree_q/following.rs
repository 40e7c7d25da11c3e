//! Fitted-Q evaluation of a policy for many weightings of the same steps, several at once.
//!
//! Each weighting gives exactly the same numbers as [`FittedQ`](crate::plan::fitted_q::FittedQ).
//! But a leaf is looked up once for all of them, and the trees of an action are evaluated only
//! where the policy may take it.

use rayon::prelude::*;

use super::{Frozen, Member, TreeFit};
use crate::data::Action;
use crate::plan::choices::Choices;
use crate::plan::experience::{Step, Steps};
use crate::trees::{Leaves, Trees};

/// Weightings that are processed together: their numbers fill a cache line.
pub(crate) const LANES: usize = 8;
/// One number for each weighting.
pub(crate) type Lanes = [f64; LANES];
/// Rows that one task takes through all trees: their sums stay in the first-level cache.
const BLOCK: usize = 256;

/// A policy to evaluate, and trees of frozen structure for each of its actions.
pub(crate) struct Following<'f> {
    steps: &'f Steps,
    discount: f64,
    parts: Vec<Part<'f>>,
    /// The number of steps before each row in its episode, and before each step.
    times: Vec<usize>,
}

/// The trees of one action.
struct Part<'f> {
    trees: &'f Trees,
    /// The steps that took it, and their leaves.
    steps: &'f [usize],
    train: &'f Leaves,
    /// The states in which the policy may take it, with its probability, and their leaves.
    rows: Vec<(usize, f64)>,
    asked: Leaves,
}

/// Q̂ and V̂ along the logs over what is left of a horizon at each step.
pub(crate) struct AtOwnTime {
    /// V̂ of each row, with the steps that are left there.
    pub(crate) v: Vec<Lanes>,
    /// Q̂ of each logged step, with the steps that are left before it.
    pub(crate) q: Vec<Lanes>,
}

impl<'f> Following<'f> {
    /// `policy` are the probabilities of actions in each state; all that may be taken must occur
    /// among the steps.
    ///
    /// # Panics
    /// If the structure is not frozen, or if there is one forest for all actions.
    pub(crate) fn new(fit: &'f TreeFit, steps: &'f Steps, policy: &Choices, discount: f64) -> Following<'f> {
        assert_eq!(fit.members.len(), steps.actions(), "trees for each action");
        assert_eq!(policy.rows(), steps.rows(), "probabilities for each row");
        let members = (0..).map(Action).zip(&fit.members);
        let members = members.filter_map(|(a, member)| member.as_ref().map(|member| (a, member)));
        let ends = steps.starts().iter().skip(1).copied().chain([steps.rows()]);
        let times = steps.starts().iter().zip(ends).flat_map(|(&start, end)| 0..end - start).collect();
        Following { steps, discount, parts: members.map(|(a, member)| Part::new(member, a, policy)).collect(), times }
    }

    /// Q̂ and V̂ of the steps that are left of the horizon, for each of the weightings of the steps;
    /// `see` gets V̂ of all rows for one step ahead, two, and so on.
    pub(crate) fn over(&self, weights: impl Fn(usize) -> Lanes, horizon: usize, mut see: impl FnMut(&[Lanes])) -> AtOwnTime {
        let weighted: Vec<Weighted<'_>> = self.parts.iter().map(|part| Weighted::new(part, &weights)).collect();
        let mut values = vec![[0.0; LANES]; self.steps.rows()];
        let mut own = AtOwnTime { v: values.clone(), q: vec![[0.0; LANES]; self.steps.list().len()] };
        for round in 1..=horizon {
            let before = std::mem::replace(&mut values, vec![[0.0; LANES]; self.steps.rows()]);
            for part in &weighted {
                let means = part.fit(|i| self.target(&self.steps.list()[i], &before));
                part.add_values(&means, &mut values);
                part.set_q(&means, |i| self.times[self.steps.list()[i].row] + round == horizon, &mut own.q);
            }
            let mine = own.v.iter_mut().zip(&values).zip(&self.times).filter(|(_, time)| **time + round == horizon);
            mine.for_each(|((own, value), _)| *own = *value);
            see(&values);
        }
        own
    }

    /// r + γ Σ_a π(a | s') Q̂(s', a)
    fn target(&self, step: &Step, values: &[Lanes]) -> Lanes {
        let future = if step.terminal { [0.0; LANES] } else { values[step.row + 1] };
        future.map(|future| step.reward + self.discount * future)
    }
}

impl<'f> Part<'f> {
    fn new(member: &'f Member, a: Action, policy: &Choices) -> Part<'f> {
        let Frozen { trees, train, asked } = member.frozen.as_ref().expect("the structure is frozen");
        let probabilities = (0..policy.rows()).map(|row| (row, policy.of(row)[a.index()]));
        let rows: Vec<(usize, f64)> = probabilities.filter(|(_, p)| *p > 0.0).collect();
        let places: Vec<_> = rows.iter().map(|&(row, _)| (0, row)).collect();
        Part { trees, steps: &member.steps, train, asked: Leaves::select(asked, trees.len(), &places), rows }
    }

    /// Sums over the rows in each leaf of a tree.
    fn sums(&self, tree: usize, of_step: &[Lanes]) -> Vec<Lanes> {
        let leaves = self.trees.leaves_of(tree);
        let mut sums = vec![[0.0; LANES]; leaves.len()];
        for (&leaf, x) in self.train.of_tree(tree).iter().zip(of_step) {
            add(&mut sums[leaf as usize - leaves.start], x);
        }
        sums
    }
}

/// The trees of one action, and the weights of its steps.
struct Weighted<'p> {
    part: &'p Part<'p>,
    weights: Vec<Lanes>,
    /// The sums of weights in each leaf of all trees, and over all leaves of each tree.
    totals: Vec<Lanes>,
    all: Vec<Lanes>,
}

impl<'p> Weighted<'p> {
    fn new(part: &'p Part<'p>, weights: impl Fn(usize) -> Lanes) -> Weighted<'p> {
        let mut weights: Vec<Lanes> = part.steps.iter().map(|&i| weights(i)).collect();
        for lane in 0..LANES {
            // If all weights are zero, all steps have the same weight.
            if weights.iter().all(|weights| weights[lane] == 0.0) {
                weights.iter_mut().for_each(|weights| weights[lane] = 1.0);
            }
        }
        let by_tree: Vec<Vec<Lanes>> = (0..part.trees.len()).into_par_iter().map(|tree| part.sums(tree, &weights)).collect();
        let all = by_tree.iter().map(|totals| sum(totals)).collect();
        Weighted { part, weights, totals: by_tree.concat(), all }
    }

    /// Fits the trees: the mean in each leaf.
    fn fit(&self, target: impl Fn(usize) -> Lanes + Sync) -> Vec<Lanes> {
        let weighted = |(&i, weights): (&usize, &Lanes)| {
            let y = target(i);
            std::array::from_fn(|lane| weights[lane] * y[lane])
        };
        let products: Vec<Lanes> = self.part.steps.par_iter().zip(&self.weights).map(weighted).collect();
        (0..self.part.trees.len()).into_par_iter().flat_map_iter(|tree| self.means(tree, &products)).collect()
    }

    /// Adds π(a | s) Q̂(s, a) to the values of the states in which the policy may take the action.
    fn add_values(&self, means: &[Lanes], values: &mut [Lanes]) {
        let Part { trees, rows, asked, .. } = self.part;
        let mut sums = vec![[0.0; LANES]; rows.len()];
        sums.par_chunks_mut(BLOCK).enumerate().for_each(|(block, sums)| {
            for tree in 0..trees.len() {
                let leaves = &asked.of_tree(tree)[block * BLOCK..];
                sums.iter_mut().zip(leaves).for_each(|(sum, &leaf)| add(sum, &means[leaf as usize]));
            }
            sums.iter_mut().flatten().for_each(|sum| *sum /= trees.len() as f64);
        });
        for (&(row, p), q) in rows.iter().zip(&sums) {
            values[row].iter_mut().zip(q).for_each(|(value, q)| *value += p * q);
        }
    }

    /// Sets Q̂ of those of its logged steps that are asked for.
    fn set_q(&self, means: &[Lanes], is_asked: impl Fn(usize) -> bool, q: &mut [Lanes]) {
        let Part { trees, steps, train, .. } = self.part;
        for (place, &i) in steps.iter().enumerate().filter(|(_, i)| is_asked(**i)) {
            let mut sum = [0.0; LANES];
            (0..trees.len()).for_each(|tree| add(&mut sum, &means[train.of_tree(tree)[place] as usize]));
            q[i] = sum.map(|sum| sum / trees.len() as f64);
        }
    }

    /// The weighted mean in each leaf of a tree; where all weights are zero, that of the whole
    /// tree.
    fn means(&self, tree: usize, products: &[Lanes]) -> Vec<Lanes> {
        let mut sums = self.part.sums(tree, products);
        let (sum, all) = (sum(&sums), self.all[tree]);
        for (mean, total) in sums.iter_mut().zip(&self.totals[self.part.trees.leaves_of(tree)]) {
            for lane in 0..LANES {
                mean[lane] = if total[lane] > 0.0 { mean[lane] / total[lane] } else { sum[lane] / all[lane] };
            }
        }
        sums
    }
}

#[inline(always)]
fn add(sum: &mut Lanes, x: &Lanes) {
    sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
}

fn sum(of: &[Lanes]) -> Lanes {
    let mut sum = [0.0; LANES];
    of.iter().for_each(|x| add(&mut sum, x));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domains;
    use crate::plan::experience::States;
    use crate::plan::fitted_q::FittedQ;
    use crate::plan::memory::LastObservations;
    use crate::plan::tree_q::{Ensembles, Structure};
    use crate::rng::Seed;
    use crate::trees::TreeParams;

    #[test]
    fn each_lane_is_fitted_q_with_its_weights() {
        const ROUNDS: usize = 9;
        let maze = domains::get("colored-gridworld").unwrap();
        let episodes: Vec<_> = domains::sample(&maze, 60, 13, Seed(1)).collect();
        let steps = Steps::of(maze.alphabet(), &episodes).unwrap();
        let states = States::track(&episodes, || LastObservations::new(maze.alphabet(), 2));
        let params = TreeParams { trees: 3, ..TreeParams::default() };
        let mut fit = TreeFit::new(&steps, &states, Structure::Frozen, Ensembles::PerAction, &params, Seed(2)).unwrap();
        let actions: Vec<Action> = (0..steps.rows()).map(|row| Action(row as u32 % 7 % 4)).collect();
        // In lane 0 all weights are the same; in lane 7 no step with the first action counts.
        let weight = |i: usize, lane: usize| match lane {
            7 if steps.list()[i].action == Action(0) => 0.0,
            _ => (i % (lane + 1)) as f64 + if lane == 0 { 1.0 } else { 0.0 },
        };
        let weights = |i| std::array::from_fn(|lane| weight(i, lane));
        let policy = Choices::given(&steps, &actions);
        let mut values = Vec::new();
        Following::new(&fit, &steps, &policy, 0.9).over(weights, ROUNDS, |last| values = last.to_vec());
        for lane in 0..LANES {
            let weights: Vec<f64> = (0..steps.list().len()).map(|i| weight(i, lane)).collect();
            let mut fitted = FittedQ::new(&steps, &mut fit, 0.9).following(&actions).weighted(&weights);
            fitted.by_ref().take(ROUNDS).last();
            let same = values.iter().zip(fitted.values()).all(|(x, y)| x[lane].to_bits() == y.to_bits());
            assert!(same, "lane {lane}");
        }
    }
}
