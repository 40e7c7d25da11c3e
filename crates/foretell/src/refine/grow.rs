//! More states where the logs show that there are more: paths of states are drawn from their
//! posterior, and the states whose visits fall into two classes are split.

use rayon::prelude::*;

use super::expect::Lane;
use super::first_look::{FirstLook, check_size};
use super::latent::{HardCounts, Latent};
use super::layout::{Layout, Ownership, START};
use super::split::{Emission, FREE_REACHES, OWNED_REACHES, Path, Split, Visit, split};
use crate::data::{ActionObservation, Alphabet};
use crate::rng::Seed;

/// Most states that are split at once, as a share of all. EM settles between two stages, so that
/// states that would be split for the same reason are not.
const MOST_SPLIT: f64 = 0.5;
/// The same where no split is significant: EM and held-out episodes tell whether it gains.
const MOST_TRIED: f64 = 0.1;

impl FirstLook {
    /// The same model with some states split, as one of `every` episodes of the sample shows;
    /// `None` if none should be.
    pub(super) fn grown(&self, latent: &Latent, alphabet: &Alphabet, every: u64, seed: Seed) -> Option<Latent> {
        let paths = self.paths(latent, every, seed.stream("paths"));
        let is_end = ends(&latent.layout, alphabet);
        let visits = visits(&paths, latent.layout.states);
        let reaches = match latent.layout.ownership {
            Ownership::Free => &FREE_REACHES[..],
            _ => &OWNED_REACHES[..],
        };
        let emission = if latent.layout.sensors == 1 { Emission::State } else { Emission::ActionAndState };
        let found: Vec<Option<Split>> = (0..latent.layout.states)
            .into_par_iter()
            .map(|s| {
                if s == START || is_end[s] {
                    None
                } else {
                    split(&visits[s], &paths, reaches, emission, seed.stream("splits").index(s as u64))
                }
            })
            .collect();
        let is_sure = |s: usize| found[s].as_ref().is_some_and(|split| split.is_sure);
        let gain = |s: usize| found[s].as_ref().map_or(0.0, |split| split.gain);
        let mut order: Vec<usize> = (0..found.len()).filter(|&s| found[s].is_some()).collect();
        let states = is_end.iter().filter(|end| !**end).count() - 1;
        let are_sure = order.iter().any(|&s| is_sure(s));
        order.retain(|&s| is_sure(s) || !are_sure);
        order.sort_by(|&x, &y| gain(y).total_cmp(&gain(x)));
        let most = states as f64 * if are_sure { MOST_SPLIT } else { MOST_TRIED };
        order.truncate((most as usize).max(1));
        order.sort_unstable();
        let paths = divided(paths, &visits, &order, &found);
        self.latent_of(latent, alphabet, states + order.len(), &order, &paths).filter(|_| !order.is_empty())
    }

    /// Paths drawn for one of `every` episodes.
    fn paths<'s>(&'s self, latent: &Latent, every: u64, seed: Seed) -> Vec<Path<'s>> {
        let taken: Vec<(usize, &[ActionObservation])> =
            self.sample.iter().map(|(steps, _)| steps.as_slice()).enumerate().step_by(every as usize).collect();
        let draw = |lane: &mut Lane, (i, steps): (usize, &'s [ActionObservation])| {
            (steps, latent.draw(steps, lane, &mut seed.index(i as u64).rng()))
        };
        taken.into_par_iter().map_init(Lane::default, draw).collect()
    }

    /// The first estimate of the parameters from paths over more states.
    fn latent_of(
        &self,
        before: &Latent,
        alphabet: &Alphabet,
        states: usize,
        split: &[usize],
        paths: &[Path<'_>],
    ) -> Option<Latent> {
        let mut hard = HardCounts::default();
        paths.iter().for_each(|(steps, states)| hard.add(&before.layout, steps, states));
        let (layout, hard) = match &before.layout.ownership {
            Ownership::Owned { owner } => {
                let mut sizes: Vec<usize> = before.layout.active[..self.seen.symbols.len()].iter().map(Vec::len).collect();
                split.iter().for_each(|&s| sizes[owner[s] as usize] += 1);
                (Layout::of_sizes(&sizes).with_patterns(&self.patterns), hard)
            }
            Ownership::Free => self.spread(alphabet, before.layout.sensors, states, hard),
            Ownership::Modes { .. } => return None,
        };
        let transitions = match layout.ownership {
            Ownership::Free => layout.states * layout.states,
            _ => layout.most_transitions(&self.seen.triples),
        };
        check_size(layout.states, before.actions, transitions).ok()?;
        Some(Latent::new(layout, before.actions, &hard, &self.seen))
    }
}

/// The states that only symbols which end the episode have.
fn ends(layout: &Layout, alphabet: &Alphabet) -> Vec<bool> {
    let mut is_end = vec![false; layout.states];
    for (symbol, active) in alphabet.observations().iter().zip(&layout.active) {
        active.iter().for_each(|&s| is_end[s as usize] |= symbol.terminal);
    }
    is_end
}

/// The visits of paths to each state.
fn visits(paths: &[Path<'_>], states: usize) -> Vec<Vec<Visit>> {
    let mut visits = vec![Vec::new(); states];
    for (episode, (_, states)) in (0..).zip(paths) {
        (0..).zip(states).for_each(|(step, &s)| visits[s as usize].push(Visit { episode, step }));
    }
    visits
}

/// The paths over the new states: each state that is split is followed by its second class.
fn divided<'s>(paths: Vec<Path<'s>>, visits: &[Vec<Visit>], order: &[usize], found: &[Option<Split>]) -> Vec<Path<'s>> {
    let mut paths = paths;
    for (_, states) in &mut paths {
        for s in states.iter_mut() {
            *s += order.partition_point(|&split| split < *s as usize) as u32;
        }
    }
    for &s in order {
        let second = found[s].as_ref().map_or(&[][..], |split| &split.second);
        for (visit, _) in visits[s].iter().zip(second).filter(|(_, second)| **second) {
            paths[visit.episode as usize].1[visit.step as usize] += 1;
        }
    }
    paths
}
