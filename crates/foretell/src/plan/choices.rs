//! The probabilities of a policy's actions in the states of logged episodes.

use super::experience::Steps;
use crate::data::Action;

/// π(a | h) in the state of each row of [`Steps`].
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    actions: usize,
    values: Vec<f64>,
}

impl Choices {
    /// The given probabilities, those of each row one after the other.
    ///
    /// # Panics
    /// If there is not one for each action of each row.
    pub fn new(steps: &Steps, values: Vec<f64>) -> Choices {
        assert_eq!(values.len(), steps.rows() * steps.actions(), "a probability for each action of each row");
        Choices { actions: steps.actions(), values }
    }

    /// One action in the state of each row; where it could not be taken, each of those that could.
    pub fn given(steps: &Steps, chosen: &[Action]) -> Choices {
        let mut choices = Choices::uniform(steps);
        for (row, &a) in chosen.iter().enumerate().filter(|&(row, &a)| steps.allows(row, a)) {
            let of = choices.of_mut(row);
            of.fill(0.0);
            of[a.index()] = 1.0;
        }
        choices
    }

    /// Every action that could be taken, with the same probability.
    pub fn uniform(steps: &Steps) -> Choices {
        let actions = steps.actions();
        let mut values = Vec::with_capacity(steps.rows() * actions);
        for row in 0..steps.rows() {
            let allowed = |a: usize| steps.allows(row, Action(a as u32));
            let count = (0..actions).filter(|&a| allowed(a)).count();
            let share =
                |a: usize| if count == 0 || allowed(a) { 1.0 / if count == 0 { actions } else { count } as f64 } else { 0.0 };
            values.extend((0..actions).map(share));
        }
        Choices { actions, values }
    }

    /// The same, but with probability ε every action that could be taken is as probable.
    pub fn exploring(mut self, steps: &Steps, epsilon: f64) -> Choices {
        if epsilon > 0.0 {
            let uniform = Choices::uniform(steps);
            self.values.iter_mut().zip(uniform.values).for_each(|(p, u)| *p = (1.0 - epsilon) * *p + epsilon * u);
        }
        self
    }

    /// π(a | h) of every action in the state of a row.
    pub fn of(&self, row: usize) -> &[f64] {
        &self.values[row * self.actions..][..self.actions]
    }

    fn of_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.actions..][..self.actions]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.actions.max(1)
    }
}
