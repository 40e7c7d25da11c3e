//! How often the actions of a plan were tried in the logs.

use serde::Serialize;

use super::Plan;
use super::experience::Steps;
use super::visits::Visits;
use crate::data::Trajectory;
use crate::error::Result;
use crate::math::dot;
use crate::model::Model;
use crate::rng::Seed;

/// How often the actions that a plan takes were tried, in states similar to those of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Support {
    /// The median over states.
    pub median: f64,
    /// The 5 % quantile over states.
    pub low: f64,
}

/// The quantile of [`Support::low`].
const LOW: f64 = 0.05;

impl Plan {
    /// How often its actions in the states of logged episodes were tried in similar states.
    pub fn support(&self, episodes: &[Trajectory]) -> Result<Support> {
        let (states, actions) = (self.states(episodes), self.actions(episodes));
        let latent = self.model().and_then(Model::latent).filter(|_| self.q.vectors().is_some());
        let mut tried: Vec<f64> = match latent {
            Some(latent) => {
                let n = states.width();
                let visits = |row: usize| {
                    let a = actions[row].index();
                    dot(&latent.visits[a * n..(a + 1) * n], states.row(row))
                };
                decisions(episodes).map(visits).collect()
            }
            None => {
                let steps = Steps::of(&self.alphabet, episodes)?;
                let seed = Seed(self.params.seed).stream("plan").stream("visits");
                Visits::new(&steps, &states, seed)?.of(steps.list().iter().map(|step| actions[step.row]))
            }
        };
        tried.sort_unstable_by(f64::total_cmp);
        let last = tried.len().saturating_sub(1) as f64;
        let quantile = |share: f64| tried.get((share * last) as usize).copied().unwrap_or(0.0);
        Ok(Support { median: quantile(0.5), low: quantile(LOW) })
    }
}

/// The rows of the states in which an action was taken: all but the last of each episode.
fn decisions(episodes: &[Trajectory]) -> impl Iterator<Item = usize> {
    let mut first = 0;
    episodes.iter().flat_map(move |z| {
        let rows = first..first + z.steps.len();
        first = rows.end + 1;
        rows
    })
}
