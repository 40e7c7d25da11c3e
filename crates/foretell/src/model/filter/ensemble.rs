//! The states of the models of an ensemble, side by side.

use super::state::State;
use crate::model::predictor::{Ensemble, Model};

/// The states of the other members, whose predictions are averaged, and of the models of halves of
/// the logs.
#[derive(Clone, Debug)]
pub(super) struct Others {
    members: Vec<State>,
    halves: Vec<State>,
    /// Root mean square distance of the halves from the last prediction, for each observation.
    pub(super) spread: Vec<f64>,
}

impl Others {
    pub(super) fn new(ensemble: &Ensemble, symbols: usize) -> Others {
        let states = |models: &[Model]| models.iter().map(State::new).collect();
        let spread = vec![0.0; if ensemble.halves.is_empty() { 0 } else { symbols }];
        Others { members: states(&ensemble.members), halves: states(&ensemble.halves), spread }
    }

    pub(super) fn each(&mut self, ensemble: &Ensemble, mut f: impl FnMut(&mut State, &Model)) {
        self.members.iter_mut().zip(&ensemble.members).for_each(|(state, model)| f(state, model));
        self.halves.iter_mut().zip(&ensemble.halves).for_each(|(state, model)| f(state, model));
    }

    /// Computes the mean prediction of the members, and the spread of the halves around it, from
    /// the prediction of each model.
    pub(super) fn combine(&mut self, ensemble: &Ensemble, seen: f64, p: &mut [f64]) {
        let of = |(state, model): (&State, &Model), o: usize| state.prediction()[o] * seen / (1.0 - model.frequencies().unseen);
        let Others { members, halves, spread } = self;
        if !members.is_empty() {
            for (o, p) in p.iter_mut().enumerate() {
                let sum: f64 = members.iter().zip(&ensemble.members).map(|member| of(member, o)).sum();
                *p = (*p + sum) / (members.len() + 1) as f64;
            }
        }
        for (o, (p, spread)) in p.iter().zip(spread).enumerate() {
            let squares: f64 = halves.iter().zip(&ensemble.halves).map(|half| (of(half, o) - p).powi(2)).sum();
            *spread = (squares / halves.len() as f64).sqrt();
        }
    }
}
