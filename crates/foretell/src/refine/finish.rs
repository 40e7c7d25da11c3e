//! From fitted parameters to a POMDP: rows, rewards, names.

use std::collections::BTreeMap;

use faer::prelude::Solve;
use faer::{Mat, Side};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::data::Data;
use super::expect::{LANES, Lane};
use super::latent::Latent;
use super::layout::START;
use crate::data::ActionObservation;
use crate::error::Result;
use crate::math::Mean;
use crate::model::Model;
use crate::pomdp::{Learned, Pomdp, RewardRule, Row};

/// Rewards of a pair (a, o′) that differ by at most this are the same: they are rounded in logs.
const SAME_REWARD: f64 = 1e-9;
/// The mean reward of an action counts as this many visits when that of a state is estimated.
const REWARD_PRIOR: f64 = 1.0;
/// Smaller differences between rewards and their expectation, as a share of the standard deviation
/// of rewards, are an effect of the prior.
const LEAST_SURPRISE: f64 = 0.05;
/// Up to this many entries rewards are regressed on beliefs. Above it they are averaged: with that
/// many states beliefs are nearly certain.
const LARGEST_REGRESSION: usize = 1 << 20;

/// A mean this many half-widths of its 95 % interval from 0 is significant: 4 standard errors.
const SURELY: f64 = 2.0;
/// Of n visits of a state, this / (n + 1) is the probability of a transition never seen in the
/// logs.
const NEVER_SEEN: f64 = 0.1;

/// Sums over steps, weighted by the probability of each state.
#[derive(Clone, Debug)]
struct Rewards {
    /// Of each (a, s): visits, those with a known reward, and rewards.
    visits: Vec<f64>,
    rewarded: Vec<f64>,
    sums: Vec<f64>,
    /// Of each (a, s, s′): Σ b(s) b(s′), where rewards are regressed.
    products: Vec<f64>,
    all: Mean,
}

impl Rewards {
    fn new(actions: usize, states: usize, are_regressed: bool) -> Rewards {
        let products = actions * states * states;
        Rewards {
            products: vec![0.0; if are_regressed && products <= LARGEST_REGRESSION { products } else { 0 }],
            visits: vec![0.0; actions * states],
            rewarded: vec![0.0; actions * states],
            sums: vec![0.0; actions * states],
            all: Mean::default(),
        }
    }

    fn add(&mut self, other: &Rewards) {
        self.visits.iter_mut().zip(&other.visits).for_each(|(x, y)| *x += y);
        self.rewarded.iter_mut().zip(&other.rewarded).for_each(|(x, y)| *x += y);
        self.sums.iter_mut().zip(&other.sums).for_each(|(x, y)| *x += y);
        self.products.iter_mut().zip(&other.products).for_each(|(x, y)| *x += y);
        self.all.merge(&other.all);
    }
}

/// The least and the largest reward of each pair (a, o′) that has one: with many actions and
/// observations most pairs have none.
struct PairRewards(BTreeMap<ActionObservation, (f64, f64)>);

impl PairRewards {
    fn of(data: &Data<'_>, symbols: usize) -> Result<PairRewards> {
        let mut pairs = BTreeMap::new();
        data.each(|_, episodes| {
            for z in episodes {
                for (ao, reward) in z.steps.iter().zip(&z.rewards) {
                    let Some(reward) = reward.filter(|_| ao.observation.index() < symbols) else { continue };
                    let pair: &mut (f64, f64) = pairs.entry(*ao).or_insert((reward, reward));
                    *pair = (pair.0.min(reward), pair.1.max(reward));
                }
            }
        })?;
        Ok(PairRewards(pairs))
    }

    /// Whether any step has a reward.
    fn are_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether action and observation determine the reward.
    fn are_determined(&self) -> bool {
        self.0.values().all(|(least, largest)| largest - least <= SAME_REWARD)
    }
}

/// The parts of a refined model.
pub(super) struct Fitted {
    pub(super) pomdp: Pomdp,
    pub(super) visits: Vec<f64>,
    pub(super) reward_sd: f64,
    pub(super) fading: f64,
    pub(super) reward_memory: f64,
}

/// The POMDP of fitted parameters. Its rewards belong to pairs of action and observation where
/// these determine them, otherwise to pairs of action and state.
pub(super) fn pomdp(model: &Model, data: &Data<'_>, latent: &Latent) -> Result<Fitted> {
    let (actions, states, symbols) = (latent.actions, latent.layout.states, latent.unigram().len());
    let pairs = PairRewards::of(data, symbols)?;
    let rewards = rewards(data, latent, pairs.are_known() && !pairs.are_determined())?;
    let terminal: Vec<bool> = ends(model, latent);
    let mut learned = Learned {
        alphabet: model.alphabet().clone(),
        states: names(model, latent),
        transitions: Vec::with_capacity(actions * states),
        emissions: Vec::with_capacity(actions * states),
        rewards: rules(&pairs, &rewards, actions, states),
        terminal,
    };
    let surprises = surprises(data, latent, &learned.rewards)?;
    let fading = surprises.fading() / rewards.all.sd().max(f64::MIN_POSITIVE);
    let reward_memory = if surprises.size() > LEAST_SURPRISE * rewards.all.sd() { surprises.memory() } else { 0.0 };
    for t in latent.t.chunks_exact(latent.columns.len()) {
        for s in 0..states {
            let row = latent.starts[s]..latent.starts[s + 1];
            let row = if learned.terminal[s] { 0..0 } else { row };
            learned
                .transitions
                .push(latent.columns[row.clone()].iter().map(|&j| j as usize).zip(t[row].iter().copied()).collect());
        }
    }
    // No transition leads to the start, so its emission is never seen: any symbol that does not end
    // the episode, if there is one.
    let going_on = model.alphabet().observations().iter().position(|o| !o.terminal);
    let emitted = |a: usize| {
        let mut rows = latent.emission_rows(a);
        rows[START] = vec![(going_on.unwrap_or(0), 1.0)];
        rows
    };
    let reward_sd = rewards.all.sd();
    let mut visits = rewards.visits;
    let elsewhere = latent.is_sparse().then(|| {
        let (emitted, more) = add_elsewhere(&mut learned, latent, &visits);
        visits = more;
        emitted
    });
    learned.emissions = (0..actions).flat_map(|a| emitted(a).into_iter().chain(elsewhere.clone())).collect();
    Ok(Fitted { pomdp: Pomdp::learned(learned)?, visits, reward_sd, fading, reward_memory })
}

/// Adds a state for transitions never seen in the logs, for which T has no entries. It emits every
/// symbol by its frequency, and leads to any state. Returns what it emits, and the visits, with none
/// for the new state.
fn add_elsewhere(learned: &mut Learned, latent: &Latent, visits: &[f64]) -> (Row, Vec<f64>) {
    let (n, actions) = (learned.states.len(), latent.actions);
    // Half a visit more, because a state seen only where logs are truncated has no visits. States
    // that end an episode have none at all, so their frequency is that of their symbols.
    let visited: Vec<f64> = (0..n).map(|s| 0.5 + (0..actions).map(|a| visits[a * n + s]).sum::<f64>()).collect();
    let all: f64 = visited.iter().sum();
    let ending = latent.emission_rows(0);
    let share = |s: usize| match learned.terminal[s] {
        true => ending[s].iter().map(|&(o, _)| latent.unigram()[o]).sum(),
        false => visited[s] / all,
    };
    let mut anywhere: Row = (1..n).map(|s| (s, share(s))).collect();
    let total: f64 = anywhere.iter().map(|(_, p)| p).sum();
    anywhere.iter_mut().for_each(|(_, p)| *p /= total);
    let going_on = |o: usize| !learned.alphabet.observations()[o].terminal;
    let mut emitted: Row = latent.unigram().iter().copied().enumerate().filter(|&(o, _)| going_on(o)).collect();
    let total: f64 = emitted.iter().map(|(_, p)| p).sum();
    emitted.iter_mut().for_each(|(_, p)| *p /= total);

    let (mut rows, mut all_visits) = (Vec::with_capacity(actions * (n + 1)), Vec::with_capacity(actions * (n + 1)));
    for (a, of_action) in learned.transitions.chunks_exact(n).enumerate() {
        for (s, row) in of_action.iter().enumerate() {
            let elsewhere = NEVER_SEEN / (visits[a * n + s] + 1.0);
            let mut row: Row = row.iter().map(|&(j, p)| (j, (1.0 - elsewhere) * p)).collect();
            if row.is_empty() && !learned.terminal[s] {
                row.push((n, 1.0));
            } else if !learned.terminal[s] {
                row.push((n, elsewhere));
            }
            rows.push(row);
        }
        rows.push(anywhere.clone());
        all_visits.extend_from_slice(&visits[a * n..(a + 1) * n]);
        all_visits.push(0.0);
    }
    learned.transitions = rows;
    learned.terminal.push(false);
    learned.states.push("elsewhere".into());
    (emitted, all_visits)
}

fn rewards(data: &Data<'_>, latent: &Latent, are_regressed: bool) -> Result<Rewards> {
    let states = latent.layout.states;
    let empty = Rewards::new(latent.actions, states, are_regressed);
    let mut lanes: Vec<(Rewards, Lane)> = (0..LANES).map(|_| (empty.clone(), latent.lane())).collect();
    data.each(|first, episodes| {
        lanes.par_iter_mut().enumerate().for_each(|(l, (sums, lane))| {
            for (_, z) in (first..).zip(episodes).filter(|(i, _)| *i % LANES as u64 == l as u64) {
                latent.track(&z.steps, lane, |t, set, belief| {
                    let a = z.steps[t].action.index();
                    set.iter().zip(belief).for_each(|(&s, p)| sums.visits[a * states + s as usize] += p);
                    let Some(reward) = z.rewards.get(t).copied().flatten() else { return };
                    sums.all.add(reward);
                    for (&s, p) in set.iter().zip(belief) {
                        let i = a * states + s as usize;
                        sums.rewarded[i] += p;
                        sums.sums[i] += p * reward;
                        if let Some(products) = sums.products.get_mut(i * states..(i + 1) * states) {
                            set.iter().zip(belief).for_each(|(&next, q)| products[next as usize] += p * q);
                        }
                    }
                });
            }
        });
    })?;
    let mut all = empty;
    lanes.iter().for_each(|(sums, _)| all.add(sums));
    Ok(all)
}

/// Differences between rewards and their expectation under the belief.
#[derive(Clone, Debug, Default)]
struct Surprises {
    /// The first time an action is taken in the most probable state, and the times after that in
    /// the same episode.
    fresh: Mean,
    again: Mean,
    /// For each episode Σ x·y, where y is such a difference and x the mean of the earlier ones with
    /// the same action.
    products: Mean,
    /// Σ x·y, Σ x², Σ y² over all
    sums: [f64; 3],
}

impl Surprises {
    fn merge(&mut self, other: &Surprises) {
        self.fresh.merge(&other.fresh);
        self.again.merge(&other.again);
        self.products.merge(&other.products);
        self.sums.iter_mut().zip(other.sums).for_each(|(x, y)| *x += y);
    }

    /// How much less an action earns when it is repeated in a state; 0 if not significant.
    fn fading(&self) -> f64 {
        let fading = self.fresh.mean() - self.again.mean();
        if fading.abs() > self.fresh.ci95() + self.again.ci95() { fading } else { 0.0 }
    }

    /// The root mean square of differences.
    fn size(&self) -> f64 {
        let square = |x: &Mean| x.mean() * x.mean() + x.sd() * x.sd();
        square(&self.fresh).max(square(&self.again)).sqrt()
    }

    /// The correlation of differences with earlier ones; 0 if not significant.
    fn memory(&self) -> f64 {
        let [xy, xx, yy] = self.sums;
        let is_sure = self.products.mean().abs() > SURELY * self.products.ci95();
        if is_sure { xy / (xx * yy).sqrt() } else { 0.0 }
    }
}

/// Differences between rewards and their expectation, where observations do not determine rewards.
fn surprises(data: &Data<'_>, latent: &Latent, rules: &[RewardRule]) -> Result<Surprises> {
    if rules.iter().any(|rule| rule.from.is_none()) || rules.is_empty() {
        return Ok(Surprises::default());
    }
    let states = latent.layout.states;
    let rewards: Vec<f64> = rules.iter().map(|rule| rule.reward).collect();
    let mut lanes: Vec<(Surprises, Lane)> = (0..LANES).map(|_| (Surprises::default(), latent.lane())).collect();
    data.each(|first, episodes| {
        lanes.par_iter_mut().enumerate().for_each(|(l, (sums, lane))| {
            let mut done: FxHashSet<(usize, u32)> = FxHashSet::default();
            for (_, z) in (first..).zip(episodes).filter(|(i, _)| *i % LANES as u64 == l as u64) {
                done.clear();
                // For each action how often it was taken, and the sum of its differences.
                let mut before = vec![(0.0, 0.0); latent.actions];
                let mut product = 0.0;
                latent.track(&z.steps, lane, |t, set, belief| {
                    let a = z.steps[t].action.index();
                    let promised: f64 = set.iter().zip(belief).map(|(&s, p)| p * rewards[a * states + s as usize]).sum();
                    let likeliest = set.iter().zip(belief).max_by(|x, y| x.1.total_cmp(y.1)).map_or(0, |(&s, _)| s);
                    let off = z.rewards.get(t).copied().flatten().unwrap_or(promised) - promised;
                    if done.insert((a, likeliest)) {
                        sums.fresh.add(off)
                    } else {
                        sums.again.add(off)
                    }
                    let (n, sum) = &mut before[a];
                    if *n > 0.0 {
                        let mean = *sum / *n;
                        product += mean * off;
                        sums.sums.iter_mut().zip([mean * off, mean * mean, off * off]).for_each(|(sum, x)| *sum += x);
                    }
                    (*n, *sum) = (*n + 1.0, *sum + off);
                });
                sums.products.add(product);
            }
        });
    })?;
    let mut all = Surprises::default();
    lanes.iter().for_each(|(sums, _)| all.merge(sums));
    Ok(all)
}

fn rules(pairs: &PairRewards, rewards: &Rewards, actions: usize, states: usize) -> Vec<RewardRule> {
    let mut rules = Vec::new();
    if !pairs.are_known() {
        return rules;
    }
    if pairs.are_determined() {
        let named = pairs.0.iter().filter(|(_, (reward, _))| *reward != 0.0);
        return named.map(|(ao, &(reward, _))| of_pair(ao.action.index(), ao.observation.index(), reward)).collect();
    }
    for a in 0..actions {
        let of_action = a * states..(a + 1) * states;
        let (visits, sums) = (&rewards.rewarded[of_action.clone()], &rewards.sums[of_action]);
        let mean = sums.iter().sum::<f64>() / visits.iter().sum::<f64>().max(1.0);
        let products = rewards.products.get(a * states * states..(a + 1) * states * states);
        let regressed = products.and_then(|products| regressed(products, visits, sums, mean));
        let averaged = || visits.iter().zip(sums).map(|(n, sum)| (sum + REWARD_PRIOR * mean) / (n + REWARD_PRIOR)).collect();
        for (s, reward) in regressed.unwrap_or_else(averaged).into_iter().enumerate() {
            rules.push(RewardRule { action: Some(a), from: Some(s), reward, ..RewardRule::default() });
        }
    }
    rules
}

fn of_pair(action: usize, observation: usize, reward: f64) -> RewardRule {
    RewardRule { action: Some(action), observation: Some(observation), reward, ..RewardRule::default() }
}

/// The r(s) that minimises Σ_t (r_t − Σ_s b_t(s) r(s))² + λ Σ_s (r(s) − mean)². An expectation
/// under a belief is linear in it, so this recovers r(s), while an average weighted by beliefs
/// would blur states that beliefs do not distinguish.
fn regressed(products: &[f64], visits: &[f64], sums: &[f64], mean: f64) -> Option<Vec<f64>> {
    let n = visits.len();
    let gram = Mat::from_fn(n, n, |i, j| products[i * n + j] + if i == j { REWARD_PRIOR } else { 0.0 });
    let target = Mat::from_fn(n, 1, |i, _| sums[i] - mean * visits[i]);
    let off = gram.llt(Side::Lower).ok()?.solve(&target);
    Some((0..n).map(|i| mean + off[(i, 0)]).collect())
}

/// Which states end the episode.
fn ends(model: &Model, latent: &Latent) -> Vec<bool> {
    let mut ends = vec![false; latent.layout.states];
    for (symbol, active) in model.alphabet().observations().iter().zip(&latent.layout.active) {
        if symbol.terminal {
            active.iter().for_each(|&s| ends[s as usize] = true);
        }
    }
    ends
}

/// `start`; the observation and a number where states emit a single one; otherwise a number.
fn names(model: &Model, latent: &Latent) -> Vec<String> {
    let emitted = latent.emission_rows(0);
    let mut count = vec![0; latent.unigram().len()];
    let name = |(s, emitted): (usize, &Vec<(usize, f64)>)| match emitted[..] {
        _ if s == START => "start".to_string(),
        [(o, _)] => {
            count[o] += 1;
            format!("{}#{}", model.alphabet().observations()[o], count[o])
        }
        _ => format!("state#{s}"),
    };
    emitted.iter().enumerate().map(name).collect()
}
