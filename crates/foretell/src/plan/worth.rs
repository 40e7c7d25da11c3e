//! The value of a policy on logs that it was not planned on: fitted-Q evaluation, made doubly robust
//! for as long as enough episodes agree with the policy.
//!
//! V̂_k(s) is the value of k steps by fitted-Q evaluation with the same kind of estimate that the
//! policy has. The residuals r_t + γ V̂_{H−t−1}(s_{t+1}) − V̂_{H−t}(s_t) of steps whose episodes have
//! taken the policy's actions up to t, weighted by Π 1 / π_logs(a | h) and normalised over episodes,
//! correct it (weighted doubly robust; Jiang and Li 2016; Thomas and Brunskill 2016). Later
//! corrections, to which hardly any episode contributes, are left out: they would add variance only.
//!
//! Where the estimate is a table of recent steps, what it does not see makes its values wrong, mostly too
//! high for the policy that is best by it. So where there is a POMDP, the value by trees over its beliefs
//! is taken if it is lower.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::experience::{States, Steps};
use super::fitted_q::FittedQ;
use super::params::{PlanParams, Regressor, StateKind};
use super::planner::{Plan, approximator, filter};
use super::q::QFit;
use crate::data::{Action, Alphabet, End, Groups, Observation, Trajectory};
use crate::error::Result;
use crate::math::Mean;
use crate::model::Model;

/// Corrections end where fewer episodes than this agree with the policy, by effective sample size.
const FEWEST_AGREEING: f64 = 20.0;
/// Estimated probabilities of actions after an observation have the share of the action as prior,
/// which counts as this many steps.
const PRIOR: f64 = 10.0;

/// A value and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Worth {
    pub(super) value: f64,
    pub(super) error: f64,
}

impl Worth {
    const NEVER: Worth = Worth { value: f64::NEG_INFINITY, error: 0.0 };

    fn lower(self, other: Worth) -> Worth {
        if other.value < self.value { other } else { self }
    }

    /// The mean of estimates from disjoint logs.
    pub(super) fn mean(of: &[Worth]) -> Worth {
        let n = of.len() as f64;
        let squares: f64 = of.iter().map(|worth| worth.error * worth.error).sum();
        Worth { value: of.iter().map(|worth| worth.value).sum::<f64>() / n, error: squares.sqrt() / n }
    }
}

/// Held-out episodes, and what is asked of them.
pub(super) struct HeldOut<'e> {
    alphabet: &'e Alphabet,
    episodes: &'e [Trajectory],
    steps: Steps,
    /// Stands for rewards that are unknown.
    mean_reward: f64,
    /// Steps over which values are.
    horizon: usize,
    discount: f64,
    /// π(a | h) of the logged actions, known or estimated.
    propensities: Vec<f64>,
    /// Trees over the beliefs of the model, which all policies have in common; `None` without a POMDP.
    common: Option<Common>,
}

/// An estimate of Q on the beliefs of a model.
struct Common {
    model: Arc<Model>,
    fit: Option<QFit>,
}

impl<'e> HeldOut<'e> {
    pub(super) fn new(alphabet: &'e Alphabet, episodes: &'e [Trajectory], horizon: usize, discount: f64) -> Result<HeldOut<'e>> {
        let steps = Steps::of(alphabet, episodes)?;
        let propensities = propensities(episodes, steps.actions());
        let mean_reward = steps.list().iter().map(|step| step.reward).collect::<Mean>().mean();
        Ok(HeldOut { alphabet, episodes, steps, mean_reward, horizon, discount, propensities, common: None })
    }

    /// With trees over the beliefs of a model.
    pub(super) fn on_states_of(mut self, model: Model, params: &PlanParams) -> Result<HeldOut<'e>> {
        let params = PlanParams { regressor: Regressor::Trees, state: StateKind::Memory, ..params.clone() };
        let model = Arc::new(model);
        let states = States::track(self.episodes, || filter(&params, self.alphabet, Some(&model)));
        let fit = approximator(&params, self.alphabet, &self.steps, Some(&states), self.episodes)?;
        self.common = Some(Common { model, fit: Some(fit) });
        Ok(self)
    }

    /// The value of a plan that was not made from these episodes.
    pub(super) fn worth(&mut self, plan: &Plan) -> Result<Worth> {
        let actions = plan.actions(self.episodes);
        let in_common = self.in_common(&actions);
        // Vectors are no estimate of Q that could be fitted: trees over the same beliefs stand in.
        let on_same =
            || plan.q.table().is_none() && self.common.as_ref().is_some_and(|common| plan.model() == Some(&*common.model));
        if let Some(worth) = in_common.filter(|_| plan.q.vectors().is_some() || on_same()) {
            return Ok(worth);
        }
        let params = plan.params();
        let track = || States::track(self.episodes, || filter(params, plan.alphabet(), plan.model.as_ref()));
        let states = params.regressor.has_trees().then(track);
        let fit = approximator(params, self.alphabet, &self.steps, states.as_ref(), self.episodes)?;
        let own = self.following(fit, &actions).0;
        Ok(in_common.map_or(own, |worth| own.lower(worth)))
    }

    /// The value of always taking one action, after a first one if that is given.
    pub(super) fn worth_of_constant(&mut self, a: Action, first: Option<Action>, params: &PlanParams) -> Result<Worth> {
        let own = self.worth_by_table(a, first, params)?;
        let in_common = self.in_common(&self.constant(a, first));
        Ok(in_common.map_or(own, |worth| own.lower(worth)))
    }

    /// The same by a table alone.
    pub(super) fn worth_by_table(&self, a: Action, first: Option<Action>, params: &PlanParams) -> Result<Worth> {
        let params = PlanParams { regressor: Regressor::Table, ..params.clone() };
        let fit = approximator(&params, self.alphabet, &self.steps, None, self.episodes)?;
        Ok(self.following(fit, &self.constant(a, first)).0)
    }

    fn constant(&self, a: Action, first: Option<Action>) -> Vec<Action> {
        let mut actions = vec![a; self.steps.rows()];
        first.iter().for_each(|&first| self.steps.starts().iter().for_each(|&row| actions[row] = first));
        actions
    }

    /// The value of taking these actions by trees over the beliefs of the model.
    fn in_common(&mut self, actions: &[Action]) -> Option<Worth> {
        let fit = self.common.as_mut()?.fit.take()?;
        let (worth, fit) = self.following(fit, actions);
        self.common.as_mut()?.fit = Some(fit);
        Some(worth)
    }

    /// The return of the policy that wrote them.
    pub(super) fn worth_of_logs(&self) -> Worth {
        let (value, error) = self.sampled(&self.returns());
        Worth { value, error }
    }

    /// The mean of numbers of the episodes, and its standard error.
    fn sampled(&self, numbers: &[f64]) -> (f64, f64) {
        let of: Mean = Groups::of(self.episodes).sums(numbers).into_iter().collect();
        (of.mean(), of.sd() / of.count().max(1.0).sqrt())
    }

    /// The returns of the episodes over the horizon. What a truncated one would have earned later is
    /// the mean of those that went on, or had terminated.
    fn returns(&self) -> Vec<f64> {
        let reward = |z: &Trajectory, t: usize| match z.rewards.get(t) {
            Some(reward) => Some(reward.unwrap_or(self.mean_reward)),
            None => (z.end == End::Terminated).then_some(0.0),
        };
        let at = |t: usize| self.episodes.iter().filter_map(|z| reward(z, t)).collect::<Mean>().mean();
        let means: Vec<f64> = (0..self.horizon).map(at).collect();
        let earned = |z: &Trajectory| {
            let later = |after: f64, (t, mean): (usize, &f64)| reward(z, t).unwrap_or(*mean) + self.discount * after;
            means.iter().enumerate().rev().fold(0.0, later)
        };
        self.episodes.iter().map(earned).collect()
    }

    /// The value of taking these actions in the state of each row, and the estimate again.
    fn following(&self, fit: QFit, actions: &[Action]) -> (Worth, QFit) {
        let list = self.steps.list();
        let mut taken = vec![false; self.steps.actions()];
        list.iter().for_each(|step| taken[step.action.index()] = true);
        if !actions.iter().all(|a| taken[a.index()]) {
            return (Worth::NEVER, fit);
        }
        let logged = |(z, &start): (&'e Trajectory, &usize)| z.steps.iter().zip(start..).map(|(ao, row)| (ao.action, row));
        let all = self.episodes.iter().zip(self.steps.starts()).flat_map(logged);
        let agrees: Vec<bool> = all.map(|(action, row)| actions[row] == action).collect();
        let ratios = self.ratios(&agrees);
        // V̂_H, V̂_{H−1}, … as far as corrections go.
        let mut fitted = FittedQ::new(&self.steps, fit, self.discount).following(actions);
        let mut values: VecDeque<Vec<f64>> = [vec![0.0; self.steps.rows()]].into();
        for _ in 0..self.horizon {
            fitted.next();
            values.push_front(fitted.values().to_vec());
            values.truncate(ratios.len() + 1);
        }
        (self.corrected(&values, &ratios, &agrees), fitted.into_inner())
    }

    /// For t = 0, 1, …: Π_{u ≤ t} 1 / π(a_u | h_u) of the episodes that agree up to t, normalised to
    /// sum 1; as long as enough of them do. Episodes that have ended count with the product at their
    /// end.
    fn ratios(&self, agrees: &[bool]) -> Vec<Vec<f64>> {
        let mut ratios = vec![1.0; self.episodes.len()];
        let mut all = Vec::new();
        for t in 0..self.horizon {
            let mut first = 0;
            for (ratio, z) in ratios.iter_mut().zip(self.episodes) {
                if t < z.steps.len() {
                    *ratio *= if agrees[first + t] { 1.0 / self.propensities[first + t] } else { 0.0 };
                }
                first += z.steps.len();
            }
            let (sum, squares) = ratios.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
            if sum * sum < FEWEST_AGREEING * squares || sum == 0.0 {
                break;
            }
            all.push(ratios.iter().map(|w| w / sum).collect());
        }
        all
    }

    /// The mean of V̂_H over starts, with the residuals of the steps that agree.
    fn corrected(&self, values: &VecDeque<Vec<f64>>, ratios: &[Vec<f64>], agrees: &[bool]) -> Worth {
        let n = self.episodes.len() as f64;
        let mut rewarded = vec![None; self.steps.rows()];
        self.steps.list().iter().for_each(|step| rewarded[step.row] = Some(step));
        let mut worth = Vec::with_capacity(self.episodes.len());
        for (i, &start) in self.steps.starts().iter().enumerate() {
            let mut own = values[0][start];
            let mut weight = n;
            for (t, w) in ratios.iter().enumerate().take(self.episodes[i].steps.len()) {
                // Without a reward there is no residual.
                if let Some(step) = rewarded[start + t].filter(|_| w[i] > 0.0) {
                    let after = match values.get(t + 1) {
                        Some(values) if !step.terminal => values[step.row + 1],
                        _ => 0.0,
                    };
                    own += weight * w[i] * (step.reward + self.discount * after - values[t][step.row]);
                }
                weight *= self.discount;
            }
            worth.push(own);
        }
        // The estimate as if only the share of the steps that agree had been logged.
        let share = agrees.iter().filter(|agrees| **agrees).count() as f64 / agrees.len() as f64;
        let (_, of_returns) = self.sampled(&self.returns());
        let (value, error) = self.sampled(&worth);
        Worth { value, error: error.hypot(of_returns / share.max(1.0 / n).sqrt()) }
    }
}

/// π(a | h) of each logged step: as logged, or else the share of the action among steps after the same
/// observation.
fn propensities(episodes: &[Trajectory], actions: usize) -> Vec<f64> {
    let last = |z: &Trajectory, t: usize| t.checked_sub(1).map(|before| z.steps[before].observation);
    let mut counts: FxHashMap<Option<Observation>, Vec<f64>> = FxHashMap::default();
    let mut shares = vec![1.0; actions];
    for z in episodes {
        for (t, ao) in z.steps.iter().enumerate() {
            counts.entry(last(z, t)).or_insert_with(|| vec![0.0; actions])[ao.action.index()] += 1.0;
            shares[ao.action.index()] += 1.0;
        }
    }
    let all: f64 = shares.iter().sum();
    let estimated = |z: &Trajectory, t: usize| {
        let (of, a) = (&counts[&last(z, t)], z.steps[t].action.index());
        (of[a] + PRIOR * shares[a] / all) / (of.iter().sum::<f64>() + PRIOR)
    };
    let of = |z: &Trajectory| -> Vec<f64> {
        (0..z.steps.len()).map(|t| z.action_probabilities.get(t).copied().unwrap_or_else(|| estimated(z, t))).collect()
    };
    episodes.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ActionObservation;
    use crate::plan::fitted_q::Approximator;
    use crate::plan::window::{Recent, WindowFit};
    use crate::rng::Seed;

    /// A sign, then two more steps: the reward of the last step is 1 if its action is that of the sign.
    fn episodes(n: usize, logged: bool) -> (Alphabet, Vec<Trajectory>) {
        let mut alphabet = Alphabet::default();
        ["l", "r"].iter().for_each(|name| {
            alphabet.intern_action(name);
        });
        ["left", "right", "on"].iter().for_each(|name| {
            alphabet.intern_observation(name);
        });
        let mut rng = Seed(3).rng();
        let mut episode = || {
            let sign = rng.below(2) as u32;
            // r is taken three times in four.
            let mut act = || u32::from(rng.uniform() < 0.75);
            let actions = [act(), act(), act()];
            let seen = [sign, 2, 2];
            let probability = |a: &u32| if *a == 1 { 0.75 } else { 0.25 };
            Trajectory {
                steps: actions.iter().zip(seen).map(|(&a, o)| ActionObservation::new(a, o)).collect(),
                rewards: [0.0, 0.0, f64::from(u8::from(actions[2] == sign))].map(Some).to_vec(),
                action_probabilities: if logged { actions.iter().map(probability).collect() } else { vec![] },
                end: End::Truncated,
                about: Default::default(),
            }
        };
        (alphabet, (0..n).map(|_| episode()).collect())
    }

    /// Follows the sign at the last step, and otherwise takes r.
    fn by_the_sign(episodes: &[Trajectory]) -> Vec<Action> {
        let of = |z: &Trajectory| [Action(1), Action(1), Action(z.steps[0].observation.0), Action(1)];
        episodes.iter().flat_map(of).collect()
    }

    #[test]
    fn corrections_recover_what_the_estimate_of_q_cannot_see() {
        for logged in [true, false] {
            let (alphabet, episodes) = episodes(4000, logged);
            let held = HeldOut::new(&alphabet, &episodes, 3, 1.0).unwrap();
            let table = |pairs| QFit::Table(WindowFit::new(Recent::Pairs(pairs), &held.steps, &episodes));
            // Two pairs contain the sign; one does not, so that its value is that of not knowing it.
            for pairs in [1, 2] {
                let worth = held.following(table(pairs), &by_the_sign(&episodes)).0;
                assert!((worth.value - 1.0).abs() < 0.05 && worth.error < 0.05, "{pairs} {logged} {worth:?}");
                let constant = held.following(table(pairs), &vec![Action(1); held.steps.rows()]).0;
                assert!((constant.value - 0.5).abs() < 0.05, "{pairs} {logged} {constant:?}");
            }
        }
    }

    #[test]
    fn without_enough_agreement_it_is_fitted_q_evaluation() {
        let (alphabet, episodes) = episodes(30, true);
        let held = HeldOut::new(&alphabet, &episodes, 3, 1.0).unwrap();
        let never = vec![Action(0); held.steps.rows()];
        let fit = || QFit::Table(WindowFit::new(Recent::Pairs(2), &held.steps, &episodes));
        let agrees: Vec<bool> = held.steps.list().iter().map(|step| step.action == Action(0)).collect();
        assert!(held.ratios(&agrees).is_empty());
        let mut fitted = FittedQ::new(&held.steps, fit(), 1.0).following(&never);
        let expected = fitted.by_ref().take(3).last().unwrap().start_value;
        assert!((held.following(fit(), &never).0.value - expected).abs() < 1e-12);
        let mut q = vec![0.0; held.steps.rows()];
        fitted.into_inner().q(Action(0), &mut q);
        assert!(q.iter().all(|q| q.is_finite()));
    }

    #[test]
    fn actions_that_were_never_taken_have_no_value() {
        let (mut alphabet, episodes) = episodes(30, true);
        alphabet.intern_action("never");
        let held = HeldOut::new(&alphabet, &episodes, 3, 1.0).unwrap();
        let fit = QFit::Table(WindowFit::new(Recent::Pairs(1), &held.steps, &episodes));
        assert_eq!(held.following(fit, &vec![Action(2); held.steps.rows()]).0, Worth::NEVER);
    }
}
