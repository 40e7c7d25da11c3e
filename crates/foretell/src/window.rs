//! Tables over the recent past, with back-off to a shorter one: the memoryless controller, and a control that every
//! planner should be compared with.
//!
//! Q(w, a) for a window w of the past is the mean target of the steps before which it was met and in which a was taken, with Q
//! of the window that is one step shorter as prior: (Σ y + m Q(shorter, a)) / (n + m).

use rustc_hash::FxHashMap;

use crate::data::{Action, ActionObservation, Trajectory};
use crate::experience::Steps;
use crate::fitted_q::Approximator;
use crate::policy::{Policy, best};
use crate::rng::Rng;
use crate::trees::Targets;

/// m: how many steps the value of the shorter window is worth.
const PRIOR: f64 = 1.0;

/// Which part of the past windows tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recent {
    /// The last observation: memoryless.
    Observation,
    /// Up to so many of the last action–observation pairs.
    Pairs(usize),
}

impl Recent {
    fn length(self) -> usize {
        match self {
            Recent::Observation => 1,
            Recent::Pairs(length) => length,
        }
    }

    /// The tokens of the longest window of a past, the latest first.
    fn tokens(self, past: &[ActionObservation]) -> impl Iterator<Item = Token> {
        past.iter().rev().map(move |&ao| self.token(ao)).chain([Token::Start]).take(self.length())
    }

    fn token(self, ao: ActionObservation) -> Token {
        match self {
            Recent::Observation => Token::Observation(ao.observation.0),
            Recent::Pairs(_) => Token::Pair(ao),
        }
    }
}

/// What a window is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Token {
    /// The episode begins here.
    Start,
    Observation(u32),
    Pair(ActionObservation),
}

/// The windows met, as a tree: a window is a child of the one that lacks its oldest step. The root is empty.
#[derive(Clone, Debug)]
struct Windows {
    recent: Recent,
    children: FxHashMap<(u32, Token), u32>,
    /// The shorter window of each; those of the root are the root.
    shorter: Vec<u32>,
}

impl Windows {
    fn new(recent: Recent) -> Windows {
        Windows { recent, children: FxHashMap::default(), shorter: vec![0] }
    }

    /// The longest window of a past, added if it is new.
    fn intern(&mut self, past: &[ActionObservation]) -> u32 {
        let mut window = 0;
        for token in self.recent.tokens(past) {
            let next = self.shorter.len() as u32;
            let longer = *self.children.entry((window, token)).or_insert(next);
            if longer == next {
                self.shorter.push(window);
            }
            window = longer;
        }
        window
    }

    /// The longest window of a past that was met.
    fn find(&self, past: &[ActionObservation]) -> u32 {
        let mut window = 0;
        for token in self.recent.tokens(past) {
            match self.children.get(&(window, token)) {
                Some(&longer) => window = longer,
                None => break,
            }
        }
        window
    }
}

/// Q̂ in a table over windows of the past.
#[derive(Clone, Debug)]
pub struct WindowQ {
    windows: Windows,
    actions: usize,
    /// The window of each row.
    of_row: Vec<u32>,
    /// Row and action of each step.
    steps: Vec<(usize, usize)>,
    /// Q(w, a), by windows; −∞ for an action that was never taken.
    q: Vec<f64>,
}

impl WindowQ {
    /// Zero everywhere, for the steps of these episodes.
    pub fn new(recent: Recent, steps: &Steps, episodes: &[Trajectory]) -> WindowQ {
        let mut windows = Windows::new(recent);
        let mut of_row = Vec::with_capacity(steps.rows());
        for z in episodes {
            of_row.extend((0..=z.steps.len()).map(|t| windows.intern(&z.steps[..t])));
        }
        let q = vec![0.0; windows.shorter.len() * steps.actions()];
        let list = steps.list().iter().map(|step| (step.row, step.action.0 as usize)).collect();
        WindowQ { windows, actions: steps.actions(), of_row, steps: list, q }
    }

    /// The best action after a window.
    fn best(&self, window: u32) -> Action {
        best(self.q[window as usize * self.actions..][..self.actions].iter().copied()).0
    }

    /// The policy that takes the best action.
    pub fn policy(&self) -> WindowPolicy<'_> {
        WindowPolicy { q: self, past: Vec::new() }
    }
}

impl Approximator for WindowQ {
    fn fit(&mut self, targets: Targets<'_>) {
        let mut sums = vec![(0.0, 0.0); self.q.len()];
        for (i, (&(row, action), target)) in self.steps.iter().zip(targets.y).enumerate() {
            let weight = targets.weights.map_or(1.0, |weights| weights[i]);
            let mut window = self.of_row[row] as usize;
            loop {
                let (sum, count) = &mut sums[window * self.actions + action];
                *sum += weight * target;
                *count += weight;
                if window == 0 {
                    break;
                }
                window = self.windows.shorter[window] as usize;
            }
        }
        for (i, (sum, count)) in sums.into_iter().enumerate() {
            let (window, action) = (i / self.actions, i % self.actions);
            // A shorter window comes before its longer ones.
            self.q[i] = match (window, count > 0.0) {
                (0, true) => sum / count,
                (0, false) => f64::NEG_INFINITY,
                (_, false) => self.q[self.windows.shorter[window] as usize * self.actions + action],
                _ => (sum + PRIOR * self.q[self.windows.shorter[window] as usize * self.actions + action]) / (count + PRIOR),
            };
        }
    }

    fn q(&self, a: Action, out: &mut [f64]) {
        let q = |window: u32| self.q[window as usize * self.actions + a.0 as usize];
        out.iter_mut().zip(&self.of_row).for_each(|(value, &window)| *value = q(window));
    }
}

/// Greedy on a [`WindowQ`].
#[derive(Clone, Debug)]
pub struct WindowPolicy<'q> {
    q: &'q WindowQ,
    past: Vec<ActionObservation>,
}

impl Policy for WindowPolicy<'_> {
    fn reset(&mut self) {
        self.past.clear();
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        self.q.best(self.q.windows.find(&self.past))
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.past.push(ao);
    }
}
