//! A first estimate by merging histories after which the same follows, as in the inference of
//! deterministic automata (Carrasco and Oncina 1994; Lang, Pearlmutter and Price 1998). It finds
//! memory that reaches far, where states that are close to each other differ in the distant future
//! only.
//!
//! Each state owns a symbol, and is left for a next state that action and symbol determine. States
//! found so far form an automaton; at its fringe are the pairs of state, action and symbol whose
//! next state is not known yet. Their visits are followed on, as if the next state were one of those
//! found. With n the counts of symbols after a state and an action, and g those of these visits, the
//! evidence that it is the same is
//!
//! ```text
//! Σ ln P(n + g) P(∅) / (P(n) P(g)),   P(n) = ∏_o Γ(n_o + α_o) / Γ(Σ_o n_o + 1),
//! ```
//!
//! with α_o the frequency of o. If the negative terms are too large, it is another state. A state is
//! new if it is none of those found; else what is decided first is where the evidence is clearest.

use rustc_hash::{FxHashMap, FxHashSet};

use super::first_look::FirstLook;
use super::latent::HardCounts;
use super::layout::{Layout, START};
use crate::data::{ActionObservation, Alphabet};

/// Most states, and most entries of the table of next states.
const MOST_STATES: usize = 128;
const MOST_ENTRIES: usize = 1 << 22;
/// A next state with less evidence, in nats, is another one.
const OTHER: f64 = -10.0;
/// With fewer visits no state is new.
const LEAST_VISITS: usize = 20;
/// So many pairs at the fringe are compared, those with most visits first.
const FRINGE: usize = 16;
/// Most visits that are followed, and most steps of them together.
const MOST_FOLLOWED: usize = 1000;
const MOST_FOLLOWED_STEPS: usize = 20_000;
/// Few of the visits are enough to reject most states; then so many times more are followed.
const FEW: usize = 64;
const MORE: usize = 4;
/// Steps followed in all, after which the system has no automaton of this size.
const MOST_WORK: usize = 1 << 25;

/// In the table of next states: not known yet.
const UNKNOWN: u32 = u32::MAX;
/// The steps of an episode.
type Steps<'a> = &'a [ActionObservation];

/// A visit to the fringe: its episode, and the step that leads out of the automaton.
#[derive(Clone, Copy, Debug)]
struct Visit {
    episode: u32,
    step: u32,
}

impl FirstLook {
    /// States merged from the histories of the sample, and the counts of its paths; `None` if there
    /// are too many symbols or states.
    pub(super) fn merge(&self, alphabet: &Alphabet) -> Option<(Layout, HardCounts)> {
        let episodes: Vec<Steps<'_>> = self.sample.iter().map(|(steps, _)| known_steps(steps, self.seen.symbols.len())).collect();
        let merged = Merging::new(&episodes, alphabet, &self.seen.symbols)?.finish()?;
        // The states of each symbol are consecutive in a layout. The start is not among them.
        let mut sizes = vec![0; self.seen.symbols.len() + 1];
        let place: Vec<usize> = merged
            .symbols
            .iter()
            .map(|&o| {
                sizes[o as usize] += 1;
                sizes[o as usize] - 1
            })
            .collect();
        sizes.truncate(self.seen.symbols.len());
        sizes.iter_mut().for_each(|size| *size = (*size).max(1));
        let layout = Layout::of_sizes(&sizes).with_patterns(&self.patterns);
        let state = |s: u32| layout.active[merged.symbols[s as usize] as usize][place[s as usize]];
        let mut hard = HardCounts::default();
        for steps in &episodes {
            let states: Vec<u32> = merged.path(steps).into_iter().map(state).collect();
            hard.add(&layout, steps, &states);
        }
        Some((layout, hard))
    }
}

/// The steps before the first whose observation is not known.
fn known_steps(steps: Steps<'_>, symbols: usize) -> Steps<'_> {
    let known = steps.iter().position(|ao| ao.observation.index() >= symbols).unwrap_or(steps.len());
    &steps[..known]
}

/// A deterministic automaton. State 0 is the start, and its symbol is that after the last.
struct Automaton {
    actions: usize,
    of: usize,
    /// The symbol of each state.
    symbols: Vec<u32>,
    /// For each state, action and symbol the next state, and how often it followed.
    next: Vec<u32>,
    counts: Vec<u32>,
}

impl Automaton {
    fn index(&self, s: u32, ao: ActionObservation) -> usize {
        (s as usize * self.actions + ao.action.index()) * self.of + ao.observation.index()
    }

    fn add(&mut self, symbol: u32) -> u32 {
        self.symbols.push(symbol);
        self.next.resize(self.next.len() + self.actions * self.of, UNKNOWN);
        self.counts.resize(self.next.len(), 0);
        self.symbols.len() as u32 - 1
    }

    /// The states along an episode.
    fn path(&self, steps: Steps<'_>) -> Vec<u32> {
        let mut s = START as u32;
        steps
            .iter()
            .map(|&ao| {
                s = self.next[self.index(s, ao)];
                s
            })
            .collect()
    }
}

/// An automaton that grows.
struct Merging<'a> {
    episodes: &'a [Steps<'a>],
    ends: Vec<bool>,
    /// α
    prior: Vec<f64>,
    most_states: usize,
    automaton: Automaton,
    /// The visits of each pair at the fringe, by its index in the table.
    fringe: FxHashMap<usize, Vec<Visit>>,
    /// States that the next state of a pair is not.
    rejected: FxHashSet<(usize, u32)>,
    work: usize,
    scratch: Scratch,
}

/// The counts g of what is followed.
#[derive(Default)]
struct Scratch {
    counts: Vec<u32>,
    touched: Vec<usize>,
    /// By row, that is state and action: the sum of g, and the evidence so far.
    rows: Vec<(u32, f64)>,
    touched_rows: Vec<usize>,
}

/// What is decided of a pair at the fringe.
#[derive(Clone, Copy, Debug)]
enum Choice {
    New,
    /// The state that it may be, and by how much it is more probable than others.
    Merge(u32, f64),
}

impl<'a> Merging<'a> {
    fn new(episodes: &'a [Steps<'a>], alphabet: &Alphabet, seen: &[f64]) -> Option<Merging<'a>> {
        let (actions, of) = (alphabet.actions().len(), seen.len());
        let most_states = MOST_STATES.min(MOST_ENTRIES / (actions * of).max(1));
        let total: f64 = seen.iter().map(|n| n + 0.5).sum();
        let mut merging = Merging {
            episodes,
            ends: alphabet.observations().iter().map(|o| o.terminal).collect(),
            prior: seen.iter().map(|n| (n + 0.5) / total).collect(),
            most_states,
            automaton: Automaton { actions, of, symbols: Vec::new(), next: Vec::new(), counts: Vec::new() },
            fringe: FxHashMap::default(),
            rejected: FxHashSet::default(),
            work: 0,
            scratch: Scratch::default(),
        };
        merging.automaton.add(of as u32);
        (0..episodes.len() as u32).for_each(|episode| merging.walk(Visit { episode, step: 0 }, START as u32));
        // Each symbol has a state at least.
        (2 * of < most_states).then_some(merging)
    }

    /// Follows an episode through the automaton, and counts, until it leaves it.
    fn walk(&mut self, from: Visit, mut s: u32) {
        let steps = self.episodes[from.episode as usize];
        for step in from.step..steps.len() as u32 {
            let at = self.automaton.index(s, steps[step as usize]);
            self.automaton.counts[at] += 1;
            s = self.automaton.next[at];
            if s == UNKNOWN {
                self.fringe.entry(at).or_default().push(Visit { step, ..from });
                return;
            }
        }
    }

    /// Decides on the whole fringe; `None` if that takes too much work.
    fn finish(mut self) -> Option<Automaton> {
        loop {
            self.end_episodes();
            let mut pairs: Vec<_> = self.fringe.iter().map(|(at, visits)| (std::cmp::Reverse(visits.len()), *at)).collect();
            self.work += pairs.len();
            if pairs.len() > FRINGE {
                pairs.select_nth_unstable(FRINGE);
                pairs.truncate(FRINGE);
            }
            pairs.sort_unstable();
            let pairs: Vec<usize> = pairs.into_iter().map(|(_, at)| at).collect();
            let Some((at, choice)) = self.clearest(&pairs) else { return Some(self.automaton) };
            if self.work > MOST_WORK {
                return None;
            }
            let s = match choice {
                Choice::New => self.automaton.add((at % self.automaton.of) as u32),
                Choice::Merge(s, _) => s,
            };
            self.lead(at, s);
        }
    }

    /// A symbol that ends the episode has one state.
    fn end_episodes(&mut self) {
        let mut ends: Vec<usize> = self.fringe.keys().copied().filter(|at| self.ends[at % self.automaton.of]).collect();
        ends.sort_unstable();
        for at in ends {
            let symbol = (at % self.automaton.of) as u32;
            let known = self.automaton.symbols.iter().position(|o| *o == symbol);
            let s = known.map_or_else(|| self.automaton.add(symbol), |s| s as u32);
            self.lead(at, s);
        }
    }

    /// Makes `s` the next state of a pair, and follows its visits on.
    fn lead(&mut self, at: usize, s: u32) {
        self.automaton.next[at] = s;
        for visit in self.fringe.remove(&at).unwrap_or_default() {
            self.walk(Visit { step: visit.step + 1, ..visit }, s);
        }
    }

    /// The first pair that is a new state, or else the one that is most clearly an old one.
    fn clearest(&mut self, pairs: &[usize]) -> Option<(usize, Choice)> {
        let mut clearest: Option<(usize, Choice, f64)> = None;
        for &at in pairs {
            match self.choice(at) {
                Choice::New => return Some((at, Choice::New)),
                Choice::Merge(s, margin) if clearest.is_none_or(|(_, _, other)| margin > other) => {
                    clearest = Some((at, Choice::Merge(s, margin), margin));
                }
                Choice::Merge(..) => {}
            }
        }
        clearest.map(|(at, choice, _)| (at, choice))
    }

    fn choice(&mut self, at: usize) -> Choice {
        let visits = self.fringe.remove(&at).unwrap_or_default();
        let symbol = (at % self.automaton.of) as u32;
        let may_be_new = visits.len() >= LEAST_VISITS && self.automaton.symbols.len() < self.most_states;
        let states: Vec<u32> = (0u32..).zip(&self.automaton.symbols).filter(|(_, o)| **o == symbol).map(|(s, _)| s).collect();
        let (mut best, mut second, mut least_bad) = (None, 0.0, None);
        for s in states {
            if self.rejected.contains(&(at, s)) {
                continue;
            }
            let (for_it, against) = self.evidence(at, s, &visits);
            let evidence = for_it + against;
            if against < OTHER {
                if may_be_new {
                    self.rejected.insert((at, s));
                }
                if least_bad.is_none_or(|(_, other)| against > other) {
                    least_bad = Some((s, against));
                }
            } else if let Some((_, other)) = best.filter(|(_, other)| evidence <= *other) {
                second = f64::max(second, evidence.min(other));
            } else {
                second = best.map_or(0.0, |(_, other)| f64::max(0.0, other));
                best = Some((s, evidence));
            }
        }
        self.fringe.insert(at, visits);
        match (best, least_bad) {
            (Some((s, evidence)), _) => Choice::Merge(s, evidence - second),
            (None, Some((s, against))) if !may_be_new => Choice::Merge(s, against),
            _ => Choice::New,
        }
    }

    /// The evidence for and against `s` as the next state of a pair, as visits to it show.
    fn evidence(&mut self, at: usize, s: u32, visits: &[Visit]) -> (f64, f64) {
        self.automaton.next[at] = s;
        let mut most = FEW;
        let evidence = loop {
            let stride = (visits.len() / most.min(visits.len())).max(1);
            let mut steps = 0;
            for visit in visits.iter().step_by(stride) {
                steps += self.follow(*visit, s);
                if steps > MOST_FOLLOWED_STEPS {
                    break;
                }
            }
            self.work += steps;
            let evidence = self.compare();
            if evidence.1 < 2.0 * OTHER || steps > MOST_FOLLOWED_STEPS || most >= visits.len().min(MOST_FOLLOWED) {
                break evidence;
            }
            most *= MORE;
        };
        self.automaton.next[at] = UNKNOWN;
        evidence
    }

    /// Counts what follows a visit, until it leaves the automaton. Returns the number of steps.
    fn follow(&mut self, visit: Visit, mut s: u32) -> usize {
        let Scratch { counts, touched, .. } = &mut self.scratch;
        counts.resize(self.automaton.counts.len(), 0);
        let steps = &self.episodes[visit.episode as usize][visit.step as usize + 1..];
        for (i, &ao) in steps.iter().enumerate() {
            let at = self.automaton.index(s, ao);
            if counts[at] == 0 {
                touched.push(at);
            }
            counts[at] += 1;
            s = self.automaton.next[at];
            if s == UNKNOWN {
                return i + 1;
            }
        }
        steps.len()
    }

    /// The sums of the positive and of the negative terms, for the counts so far, which are cleared.
    fn compare(&mut self) -> (f64, f64) {
        let Scratch { counts, touched, rows, touched_rows } = &mut self.scratch;
        let (of, automaton) = (self.automaton.of, &self.automaton);
        rows.resize(counts.len() / of, (0, 0.0));
        for at in touched.drain(..) {
            let (n, g, prior) = (automaton.counts[at], std::mem::take(&mut counts[at]), self.prior[at % of]);
            let (sum, evidence) = &mut rows[at / of];
            if *sum == 0 {
                touched_rows.push(at / of);
            }
            *sum += g;
            *evidence += joint(n, g, prior);
        }
        let (mut for_it, mut against) = (0.0, 0.0);
        for row in touched_rows.drain(..) {
            let (g, evidence) = std::mem::take(&mut rows[row]);
            let n: u32 = automaton.counts[row * of..(row + 1) * of].iter().sum();
            let evidence = if n == 0 { 0.0 } else { evidence - joint(n, g, 1.0) };
            if evidence > 0.0 { for_it += evidence } else { against += evidence }
        }
        (for_it, against)
    }
}

/// ln Γ(n + g + α) Γ(α) / (Γ(n + α) Γ(g + α))
fn joint(n: u32, g: u32, prior: f64) -> f64 {
    if n == 0 || g == 0 {
        return 0.0;
    }
    let (n, g) = (f64::from(n), f64::from(g));
    ln_gamma(n + g + prior) + ln_gamma(prior) - ln_gamma(n + prior) - ln_gamma(g + prior)
}

/// ln Γ(x) for x > 0, by Stirling's series where it is exact to 1e-9.
fn ln_gamma(x: f64) -> f64 {
    const LEAST: f64 = 7.0;
    let (mut x, mut product) = (x, 1.0);
    while x < LEAST {
        product *= x;
        x += 1.0;
    }
    let half_ln_tau = 0.5 * std::f64::consts::TAU.ln();
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + half_ln_tau + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Alphabet;
    use crate::rng::Seed;

    #[test]
    fn the_logarithm_of_gamma_is_that_of_factorials() {
        let mut factorial = 1.0f64;
        for n in 1..20 {
            assert!((ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-8, "{n}");
            factorial *= f64::from(n);
        }
        assert!((ln_gamma(0.5) - 0.5 * std::f64::consts::PI.ln()).abs() < 1e-8);
    }

    /// A counter that action 1 raises and action 0 lowers, from 0 to `most`. Only at 0 it shows
    /// another symbol, which is one of two, drawn once in each episode.
    fn counters(most: i32, episodes: usize) -> Vec<Vec<ActionObservation>> {
        let mut rng = Seed(5).rng();
        let mut episode = || {
            let (mut n, hidden) = (0, rng.below(2) as u32);
            let first = ActionObservation::new(0, hidden);
            let rest = (0..60).map(|_| {
                let a = rng.below(2) as u32;
                n = (n + if a == 1 { 1 } else { -1 }).clamp(0, most);
                ActionObservation::new(a, if n == 0 { hidden } else { 2 })
            });
            let rest: Vec<_> = rest.collect();
            std::iter::once(first).chain(rest).collect()
        };
        (0..episodes).map(|_| episode()).collect()
    }

    fn automaton(episodes: &[Vec<ActionObservation>]) -> Automaton {
        let mut alphabet = Alphabet::default();
        for name in ["lower", "raise"] {
            alphabet.intern_action(name);
        }
        for name in ["left", "right", "up"] {
            alphabet.intern_observation(name);
        }
        let steps: Vec<Steps<'_>> = episodes.iter().map(Vec::as_slice).collect();
        let mut seen = vec![0.0; 3];
        episodes.iter().flatten().for_each(|ao| seen[ao.observation.index()] += 1.0);
        Merging::new(&steps, &alphabet, &seen).unwrap().finish().unwrap()
    }

    #[test]
    fn a_counter_is_found_with_what_was_shown_before_it_began() {
        let episodes = counters(4, 600);
        let found = automaton(&episodes);
        // The start, and 0 to 4 for each of the two symbols.
        assert_eq!(found.symbols.len(), 11);
        for steps in &episodes {
            let mut n = 0;
            for (ao, s) in steps.iter().zip(found.path(steps)).skip(1) {
                n = (n + if ao.action.index() == 1 { 1 } else { -1 }).clamp(0, 4);
                let other = found.path(&[&steps[..1], &vec![ActionObservation::new(1, 2); n as usize]].concat());
                assert_eq!(Some(&s), other.last(), "the state is that of {n} and of the first symbol");
            }
        }
    }

    #[test]
    fn independent_symbols_have_one_state_each() {
        let mut rng = Seed(2).rng();
        let mut episode = || (0..20).map(|_| ActionObservation::new(rng.below(2) as u32, rng.below(3) as u32)).collect();
        let episodes: Vec<Vec<_>> = (0..300).map(|_| episode()).collect();
        let found = automaton(&episodes);
        assert_eq!(found.symbols.len(), 4, "{:?}", found.symbols);
    }
}
