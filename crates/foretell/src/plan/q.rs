//! The forms of Q̂.

use super::fitted_q::Approximator;
use super::tree_q::{TreeFit, TreeQ};
use super::window::{RecentPast, WindowFit, WindowQ};
use crate::data::Action;
use crate::math::dot;
use crate::pomdp::Pomdp;
use crate::pomdp::solve::AlphaVector;
use crate::trees::Targets;

/// Q̂ of a policy.
#[derive(Clone, Debug)]
pub(super) enum Q {
    /// Trees over the states of a filter.
    Trees(TreeQ),
    /// A table over the last steps.
    Table(WindowQ),
    /// The mean of both. Trees generalise and blur; a table does neither. The mean halves the
    /// random errors of each, which matters where the maximum over actions is taken.
    Mean(TreeQ, WindowQ),
    /// Vectors over the states of a POMDP.
    Vectors(Vec<AlphaVector>),
}

impl Q {
    pub(super) fn trees(&self) -> Option<&TreeQ> {
        match self {
            Q::Trees(trees) | Q::Mean(trees, _) => Some(trees),
            Q::Table(_) | Q::Vectors(_) => None,
        }
    }

    pub(super) fn table(&self) -> Option<&WindowQ> {
        match self {
            Q::Table(table) | Q::Mean(_, table) => Some(table),
            Q::Trees(_) | Q::Vectors(_) => None,
        }
    }

    pub(super) fn vectors(&self) -> Option<&[AlphaVector]> {
        match self {
            Q::Vectors(vectors) => Some(vectors),
            Q::Trees(_) | Q::Table(_) | Q::Mean(..) => None,
        }
    }

    /// Q̂(s, a) of every action; −∞ for an action that no vector begins with.
    pub(super) fn values(&self, state: &[f64], past: &RecentPast, actions: usize) -> Vec<f64> {
        match self {
            Q::Trees(trees) => trees.values(state),
            Q::Table(table) => table.values(past).to_vec(),
            Q::Mean(trees, table) => {
                let mut values = trees.values(state);
                average(&mut values, table.values(past));
                values
            }
            Q::Vectors(vectors) => {
                let mut values = vec![f64::NEG_INFINITY; actions];
                for AlphaVector { action, values: vector } in vectors {
                    let value = &mut values[action.index()];
                    *value = value.max(dot(vector, state));
                }
                values
            }
        }
    }
}

impl Q {
    /// Σ_s b(s) R(s, a) + γ Σ_o max_α αᵀb'_o, where b'_o is the belief after o times P(o ‖ a): the
    /// value of one action, and of the vectors afterwards. −∞ if there are no vectors.
    pub(super) fn looking_ahead(&self, pomdp: &Pomdp, discount: f64, belief: &[f64], a: Action) -> f64 {
        let Some(vectors) = self.vectors() else { return f64::NEG_INFINITY };
        let symbols = pomdp.alphabet().observations().len();
        let (mut next, mut earned) = (vec![0.0; belief.len()], 0.0);
        for (s, b) in belief.iter().enumerate().filter(|(_, b)| **b > 0.0) {
            earned += b * pomdp.expected_reward(a, s);
            pomdp.transitions(a, s).for_each(|(to, p)| next[to] += b * p);
        }
        let mut after = vec![vec![0.0; belief.len()]; symbols];
        for (s, p) in next.iter().enumerate().filter(|(s, p)| **p > 0.0 && !pomdp.is_terminal(*s)) {
            pomdp.emissions(a, s).for_each(|(o, q)| after[o.index()][s] += p * q);
        }
        let best = |b: &Vec<f64>| vectors.iter().map(|v| dot(&v.values, b)).fold(f64::NEG_INFINITY, f64::max);
        earned + discount * after.iter().filter(|b| b.iter().any(|x| *x > 0.0)).map(best).sum::<f64>()
    }
}

/// [`Q`] while it is being fitted.
pub(super) enum QFit {
    Trees(TreeFit),
    Table(WindowFit),
    Mean(TreeFit, WindowFit),
}

impl QFit {
    pub(super) fn into_q(self) -> Q {
        match self {
            QFit::Trees(trees) => Q::Trees(trees.to_q()),
            QFit::Table(table) => Q::Table(table.into_q()),
            QFit::Mean(trees, table) => Q::Mean(trees.to_q(), table.into_q()),
        }
    }
}

impl Approximator for QFit {
    fn fit(&mut self, targets: Targets<'_>) {
        match self {
            QFit::Trees(trees) => trees.fit(targets),
            QFit::Table(table) => table.fit(targets),
            QFit::Mean(trees, table) => {
                trees.fit(targets);
                table.fit(targets);
            }
        }
    }

    fn q(&self, a: Action, out: &mut [f64]) {
        match self {
            QFit::Trees(trees) => trees.q(a, out),
            QFit::Table(table) => table.q(a, out),
            QFit::Mean(trees, table) => {
                table.q(a, out);
                let mut other = vec![0.0; out.len()];
                trees.q(a, &mut other);
                average(out, &other);
            }
        }
    }
}

/// The mean of two estimates.
fn average(values: &mut [f64], other: &[f64]) {
    values.iter_mut().zip(other).for_each(|(x, y)| *x = 0.5 * (*x + y));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ActionObservation, Observation};
    use crate::domains;
    use crate::pomdp::BeliefState;

    #[test]
    fn looking_ahead_is_one_step_of_the_bellman_equation() {
        const ROUNDING: f64 = 1e-12;
        let tiger = domains::get("tiger").unwrap();
        let pomdp = tiger.pomdp().unwrap();
        let vector = |action, values: [f64; 2]| AlphaVector { action: Action(action), values: values.to_vec() };
        let vectors = vec![vector(0, [3.0, -1.0]), vector(1, [0.5, 2.0])];
        let q = Q::Vectors(vectors.clone());
        let mut belief = BeliefState::new(pomdp);
        belief.update(pomdp, ActionObservation::new(0, 0));
        for a in (0..3).map(Action) {
            let earned: f64 = belief.state().iter().enumerate().map(|(s, b)| b * pomdp.expected_reward(a, s)).sum();
            let after = |o: u32| {
                let mut next = belief.clone();
                let p = next.update(pomdp, ActionObservation { action: a, observation: Observation(o) });
                p * vectors.iter().map(|v| dot(&v.values, next.state())).fold(f64::NEG_INFINITY, f64::max)
            };
            let expected = earned + 0.9 * (after(0) + after(1));
            let found = q.looking_ahead(pomdp, 0.9, belief.state(), a);
            assert!((found - expected).abs() < ROUNDING * expected.abs(), "{a:?}: {found}, {expected}");
        }
    }
}
