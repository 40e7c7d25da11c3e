//! What a model predicts and believes along logs, step by step, and how well it predicts an event.

use serde::Serialize;

use crate::data::{ActionObservation, Alphabet, Observation, Trajectory};
use crate::error::{Error, Result};
use crate::log::Logs;
use crate::model::{Model, PredictiveState};
use crate::system::Track;

/// A step of logs, with what the model predicted before it.
#[derive(Clone, Copy, Debug)]
pub struct FollowedStep<'a> {
    /// The episode, counted from 0.
    pub episode: u64,
    /// Its name in the logs.
    pub name: Option<&'a str>,
    /// The step, counted from 0.
    pub step: usize,
    /// The step itself; its observation may be missing.
    pub ao: ActionObservation,
    /// P(o ‖ a) of every observation seen in training.
    pub probabilities: &'a [f64],
    /// Probability that the observation is one that was not seen in training.
    pub unseen: f64,
    /// Where only some parts of the observation are missing, the observations that agree with the
    /// rest.
    pub agreeing: &'a [Observation],
}

impl FollowedStep<'_> {
    /// The probability of what was observed; `None` if it is missing. If parts of it are, that is the
    /// sum over the observations that agree with the rest.
    pub fn probability(&self) -> Option<f64> {
        if !self.agreeing.is_empty() {
            return Some(self.agreeing.iter().map(|o| self.probabilities[o.index()]).sum());
        }
        let known = self.probabilities.get(self.ao.observation.index()).copied();
        (!self.ao.observation.is_missing()).then(|| known.unwrap_or(self.unseen))
    }

    /// The entropy of the prediction, in nats.
    pub fn entropy(&self) -> f64 {
        let all = self.probabilities.iter().chain([&self.unseen]);
        -all.filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>()
    }
}

/// Calls `see` with every step of the logs, in order. The alphabet is that of the model, followed
/// by names that are new in the logs.
pub fn follow(model: &Model, logs: &Logs, mut see: impl FnMut(&Alphabet, FollowedStep<'_>) -> Result<()>) -> Result<()> {
    let mut reader = logs.open(model.alphabet().clone())?;
    let mut state = PredictiveState::new(model);
    let mut episode = 0;
    while let Some(z) = reader.next().transpose()? {
        state.reset();
        follow_episode(&mut state, &z, episode, |step| see(reader.alphabet(), step))?;
        episode += 1;
    }
    if episode == 0 { Err(Error::NoSteps) } else { Ok(()) }
}

fn follow_episode(
    state: &mut PredictiveState<&Model>,
    z: &Trajectory,
    episode: u64,
    mut see: impl FnMut(FollowedStep<'_>) -> Result<()>,
) -> Result<()> {
    let (unseen, name) = (state.unseen(), z.about.name.as_deref());
    for (step, &ao) in z.steps.iter().enumerate() {
        let partial = z.about.partial_at(step);
        let agreeing = partial.map_or(Vec::new(), |pattern| state.model().alphabet().agreeing(pattern));
        let probabilities = state.predict(ao.action);
        see(FollowedStep { episode, name, step, ao, probabilities, unseen, agreeing: &agreeing })?;
        match partial {
            Some(_) => {
                state.update_among(ao.action, &agreeing);
            }
            None => state.observe(ao),
        }
    }
    Ok(())
}

/// How well a model predicts whether an event happens in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventScore {
    /// The event, as it was asked for.
    pub event: String,
    /// Steps whose observation is known.
    pub steps: u64,
    /// Share of them with the event.
    pub rate: f64,
    /// Probability that a step with the event had a higher predicted probability than one without
    /// it; ties count half. `None` if it always or never happened.
    pub auc: Option<f64>,
    /// Share of the steps where the more probable of the two happened.
    pub accuracy: f64,
    /// Mean squared difference between prediction and event.
    pub brier: f64,
}

/// The observations that an event stands for: the symbol of that name, those with that part
/// (`correct=1`), or, in logs whose observation is the one column `correct`, the symbol `1`.
pub fn observations_of(model: &Model, event: &str) -> Result<Vec<Observation>> {
    let alphabet = model.alphabet();
    let of_column = |name: &str| match (model.origin().schema.observation.as_deref(), event.split_once('=')) {
        (Some([column]), Some((asked, value))) => column == asked && name == value,
        _ => false,
    };
    let is_meant = |name: &str| name == event || name.split('|').any(|part| part == event) || of_column(name);
    let meant = (0..).map(Observation).zip(alphabet.observations());
    let meant: Vec<Observation> = meant.filter(|(_, symbol)| is_meant(&symbol.name)).map(|(o, _)| o).collect();
    match meant.is_empty() {
        true => Err(Error::unknown("observation", event, alphabet.observations().iter().map(|symbol| symbol.name.as_str()))),
        false => Ok(meant),
    }
}

/// Scores an event, whose probabilities and outcomes are given.
pub fn score_event(event: &str, predicted: &[(f64, bool)]) -> EventScore {
    let n = predicted.len() as f64;
    let happened = predicted.iter().filter(|(_, happened)| *happened).count() as f64;
    let right = predicted.iter().filter(|(p, happened)| (*p > 0.5) == *happened).count() as f64;
    let square = |(p, happened): &(f64, bool)| (p - f64::from(u8::from(*happened))).powi(2);
    let mut sorted = predicted.to_vec();
    sorted.sort_by(|x, y| x.0.total_cmp(&y.0));
    // The sum of ranks of steps with the event, where equal predictions share their mean rank.
    let (mut ranks, mut before) = (0.0, 0.0);
    for equal in sorted.chunk_by(|x, y| x.0 == y.0) {
        let rank = before + 0.5 * (equal.len() as f64 + 1.0);
        ranks += rank * equal.iter().filter(|(_, happened)| *happened).count() as f64;
        before += equal.len() as f64;
    }
    let others = n - happened;
    let auc = (happened > 0.0 && others > 0.0).then(|| (ranks - 0.5 * happened * (happened + 1.0)) / (happened * others));
    EventScore {
        event: event.into(),
        steps: predicted.len() as u64,
        rate: happened / n.max(1.0),
        auc,
        accuracy: right / n.max(1.0),
        brier: predicted.iter().map(square).sum::<f64>() / n.max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_the_share_of_pairs_in_order() {
        let predicted = [(0.1, false), (0.4, true), (0.4, false), (0.8, true), (0.8, true), (0.9, false), (0.2, false)];
        let score = score_event("x", &predicted);
        let mut pairs = Vec::new();
        for (p, _) in predicted.iter().filter(|(_, happened)| *happened) {
            for (q, _) in predicted.iter().filter(|(_, happened)| !happened) {
                pairs.push(if p > q {
                    1.0
                } else if p == q {
                    0.5
                } else {
                    0.0
                });
            }
        }
        let mean = pairs.iter().sum::<f64>() / pairs.len() as f64;
        assert!((score.auc.unwrap() - mean).abs() < 1e-12, "{score:?}");
        assert_eq!((score.steps, score.accuracy), (7, 5.0 / 7.0));
        assert_eq!(score_event("x", &[(0.3, true)]).auc, None);
    }
}
