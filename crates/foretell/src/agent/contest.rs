//! Plans that compete: each samples episodes of its own, whose returns are honest evidence of its
//! value. The best is kept.

use serde::{Deserialize, Serialize};

use crate::data::Trajectory;
use crate::math::Mean;
use crate::plan::Plan;

/// Most plans of earlier rounds that go on competing.
const MOST_KEPT: usize = 3;
/// Of the episodes of a round, one in this many is sampled by the plans that compete.
const TESTED: usize = 3;

/// A plan and what it has earned.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) plan: Plan,
    /// The round that made it, from 1.
    pub(super) round: usize,
    /// The discounted returns of its own episodes.
    pub(super) returns: Vec<f64>,
}

/// What a plan has earned in the episodes it sampled itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The round that made it, from 1.
    pub round: usize,
    /// Its episodes.
    pub episodes: usize,
    /// Their mean discounted return.
    pub value: f64,
    /// Half the width of its 95 % interval.
    pub ci95: f64,
}

/// Which policy samples a lot of episodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lot {
    /// One of the plans that compete.
    Contender(usize),
    /// The one that seeks what was rarely tried.
    Seeking,
    /// The best plan so far, with random actions.
    Random,
}

/// The plans that compete, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Contest {
    pub(super) all: Vec<Contender>,
}

impl Contender {
    fn mean(&self) -> Mean {
        self.returns.iter().copied().collect()
    }

    /// The mean return plus `errors` standard errors; with fewer than two episodes ±∞.
    fn bound(&self, errors: f64) -> f64 {
        let (mean, n) = (self.mean(), self.returns.len() as f64);
        if n < 2.0 { errors * f64::INFINITY } else { mean.mean() + errors * mean.sd() / n.sqrt() }
    }
}

impl Contest {
    /// New plans enter; of the earlier ones the best stays, and those that may be better.
    pub(super) fn enter(&mut self, plans: Vec<Plan>, round: usize) {
        let mut kept: Vec<usize> = self.order(-1.0).into_iter().take(1).collect();
        let others = self.order(1.0).into_iter().filter(|i| !kept.contains(i)).take(MOST_KEPT - 1).collect::<Vec<_>>();
        kept.extend(others);
        kept.sort_unstable();
        self.all = kept.into_iter().map(|i| self.all[i].clone()).collect();
        self.all.extend(plans.into_iter().map(|plan| Contender { plan, round, returns: Vec::new() }));
    }

    /// All plans by their mean return plus `errors` standard errors, the largest first; a later one
    /// first in a tie.
    fn order(&self, errors: f64) -> Vec<usize> {
        let bounds: Vec<f64> = self.all.iter().map(|contender| contender.bound(errors)).collect();
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by(|&i, &j| bounds[j].total_cmp(&bounds[i]).then(self.all[j].round.cmp(&self.all[i].round)));
        order
    }

    /// The best plan so far, by the lower bound; `None` until one has sampled at least two episodes.
    pub(super) fn best(&self) -> Option<&Contender> {
        self.order(-1.0).first().map(|&i| &self.all[i]).filter(|best| best.returns.len() > 1)
    }

    /// Of the plans `among` which the one with the largest upper bound is, other than the best.
    fn most_promising(&self, among: impl Fn(&Contender) -> bool) -> Option<usize> {
        let best = self.order(-1.0).first().copied();
        self.order(1.0).into_iter().find(|&i| Some(i) != best && among(&self.all[i]))
    }

    pub(super) fn plan(&self, i: usize) -> Option<&Plan> {
        self.all.get(i).map(|contender| &contender.plan)
    }

    /// Who samples the episodes of a round: a part the plans of the round before and the most promising
    /// one of earlier rounds, half of the rest the policy that seeks what was rarely tried, if there is
    /// one, and the others the best plan with random actions.
    pub(super) fn lots(&self, share: usize, round: usize, has_seeking: bool) -> Vec<(Lot, usize)> {
        let latest = (0..self.all.len()).filter(|&i| self.all[i].round == round);
        let among: Vec<usize> = latest.chain(self.most_promising(|contender| contender.round < round)).collect();
        let tested = divided(share / TESTED, &among);
        let rest = share - tested.iter().map(|(_, n)| n).sum::<usize>();
        let seeking = if has_seeking { rest / 2 } else { 0 };
        tested.into_iter().chain([(Lot::Seeking, seeking), (Lot::Random, rest - seeking)]).filter(|(_, n)| *n > 0).collect()
    }

    /// `share` episodes divided among all plans.
    pub(super) fn all(&self, share: usize) -> Vec<(Lot, usize)> {
        divided(share, &(0..self.all.len()).rev().collect::<Vec<_>>())
    }

    /// `share` episodes divided among the best plan and the most promising other one.
    pub(super) fn two_best(&self, share: usize) -> Vec<(Lot, usize)> {
        let best = self.order(-1.0).into_iter().take(1);
        divided(share, &best.chain(self.most_promising(|_| true)).collect::<Vec<_>>())
    }

    /// Counts the episodes of a plan.
    pub(super) fn count(&mut self, i: usize, episodes: &[Trajectory], discount: f64) {
        let earned = |z: &Trajectory| z.rewards.iter().rev().fold(0.0, |after, r| r.unwrap_or(0.0) + discount * after);
        self.all[i].returns.extend(episodes.iter().map(earned));
    }

    /// What the plans have earned, the best first.
    pub(super) fn tried(&self) -> Vec<Tried> {
        let of = |i: usize| {
            let Contender { round, returns, .. } = &self.all[i];
            let mean = self.all[i].mean();
            Tried { round: *round, episodes: returns.len(), value: mean.mean(), ci95: mean.ci95() }
        };
        self.order(-1.0).into_iter().map(of).collect()
    }
}

/// `share` divided evenly, the first ones taking the remainder.
fn divided(share: usize, among: &[usize]) -> Vec<(Lot, usize)> {
    let n = among.len().max(1);
    let part = |place: usize| share / n + usize::from(place < share % n);
    among.iter().enumerate().map(|(place, &i)| (Lot::Contender(i), part(place))).filter(|(_, n)| *n > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::End;
    use crate::plan::{PlanParams, plan};
    use crate::{LearnParams, Logs, Seed, domains, learn};

    fn a_plan() -> Plan {
        let tiger = domains::get("tiger").unwrap();
        let logs = Logs::memory(tiger.alphabet().clone(), domains::sample(&tiger, 30, 10, Seed(1)).collect());
        let model = learn(&logs, &LearnParams { rank: 2, test_dim: 32, history_dim: 32, ..LearnParams::default() }).unwrap();
        plan(&model, &logs, &PlanParams { rounds: 2, trees: 2, ..PlanParams::default() }, &mut |_| {}).unwrap()
    }

    fn earning(rewards: &[f64]) -> Vec<Trajectory> {
        let z = |&reward: &f64| Trajectory {
            steps: vec![crate::ActionObservation::new(0, 0)],
            rewards: vec![Some(reward)],
            action_probabilities: vec![],
            end: End::Truncated,
            about: Default::default(),
        };
        rewards.iter().map(z).collect()
    }

    #[test]
    fn the_best_plan_is_never_dropped() {
        let (plan, mut contest) = (a_plan(), Contest::default());
        contest.enter(vec![plan.clone()], 1);
        assert!(contest.best().is_none(), "nothing is known of it");
        contest.count(0, &earning(&[5.0, 5.1, 4.9]), 1.0);
        for round in 2..9 {
            contest.enter(vec![plan.clone(), plan.clone(), plan.clone()], round);
            let latest = contest.all.len() - 3;
            // The third earns more on average, but nothing is certain of it.
            contest.count(latest, &earning(&[1.0, 1.1]), 1.0);
            contest.count(latest + 1, &earning(&[9.0]), 1.0);
            contest.count(latest + 2, &earning(&[20.0, -5.0]), 1.0);
            assert_eq!((contest.best().unwrap().round, contest.all.len() <= MOST_KEPT + 3), (1, true));
        }
        let tried = contest.tried();
        assert_eq!((tried[0].round, tried[0].episodes, tried[0].value), (1, 3, 5.0));
    }

    #[test]
    fn lots_are_all_of_a_share() {
        let (plan, mut contest) = (a_plan(), Contest::default());
        contest.enter(vec![plan.clone(), plan.clone(), plan.clone()], 1);
        for share in 0..50 {
            for lots in [contest.lots(share, 1, true), contest.lots(share, 1, false), contest.all(share), contest.two_best(share)]
            {
                assert_eq!(lots.iter().map(|(_, n)| n).sum::<usize>(), share);
            }
        }
        assert_eq!(
            contest.lots(12, 1, true),
            [(Lot::Contender(0), 2), (Lot::Contender(1), 1), (Lot::Contender(2), 1), (Lot::Seeking, 4), (Lot::Random, 4)]
        );
    }
}
