//! Tables over the recent past, with back-off to a shorter one: the memoryless controller, and a
//! baseline that every planner should be compared with.
//!
//! Q(w, a) for a window w of the past is the mean target of the steps before which w occurred and
//! in which a was taken, with Q of the window that is one step shorter as prior: (Σ y + m
//! Q(shorter, a)) / (n + m).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::experience::Steps;
use super::fitted_q::Approximator;
use crate::data::{Action, ActionObservation, Alphabet, Observation, Trajectory};
use crate::math::argmax;
use crate::rng::Rng;
use crate::system::Policy;
use crate::trees::Targets;

/// m: the value of the shorter window counts as this many steps.
const PRIOR: f64 = 5.0;

/// Which part of the past a window contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recent {
    /// The last observation: memoryless.
    Observation,
    /// At most this many of the last action–observation pairs.
    Pairs(usize),
    /// The same, followed by the time since the start of the episode, which carries information
    /// about hidden drift.
    PairsAndTime(usize),
    /// At most this many of the last observations that differed from the one before, whatever the
    /// rewards that may be part of them: however long nothing new is seen, what was seen before is
    /// remembered.
    Changes(usize),
}

impl Recent {
    /// Number of the last steps that it depends on.
    fn length(self) -> usize {
        match self {
            Recent::Observation => 1,
            Recent::Pairs(length) | Recent::PairsAndTime(length) | Recent::Changes(length) => length,
        }
    }

    /// For each observation, the first one that is the same but for the reward that may be part of
    /// it; empty where rewards are not part of observations, or windows distinguish them.
    fn plain(self, alphabet: &Alphabet) -> Plain {
        if !matches!(self, Recent::Changes(_)) || !alphabet.observes_rewards() {
            return Plain::default();
        }
        let mut first = FxHashMap::default();
        let plain = (0..).zip(alphabet.observations()).map(|(o, symbol)| {
            let name = symbol.split_reward().map_or_else(|| symbol.clone(), |(plain, _)| plain);
            *first.entry((name.name, name.terminal)).or_insert(Observation(o))
        });
        Arc::new(plain.collect())
    }

    /// Whether a step after these becomes part of windows.
    fn keeps(self, past: &[ActionObservation], ao: ActionObservation) -> bool {
        match self {
            Recent::Observation | Recent::Pairs(_) | Recent::PairsAndTime(_) => true,
            Recent::Changes(_) => {
                !ao.observation.is_missing() && past.last().is_none_or(|last| last.observation != ao.observation)
            }
        }
    }

    /// The tokens of the longest window after `time` steps, of which `past` are the last; the
    /// latest comes first.
    fn tokens(self, past: &[ActionObservation], time: usize) -> impl Iterator<Item = Token> {
        let steps = past.iter().rev().map(move |&ao| self.token(ao)).chain([Token::Start]).take(self.length());
        steps.chain(matches!(self, Recent::PairsAndTime(_)).then(|| Token::Time(half_octave(time))))
    }

    fn token(self, ao: ActionObservation) -> Token {
        match self {
            Recent::Observation | Recent::Changes(_) => Token::Observation(ao.observation.0),
            Recent::Pairs(_) | Recent::PairsAndTime(_) => Token::Pair(ao),
        }
    }
}

/// The later two times are, the more coarsely they are distinguished: 0, 1, 2, 3, 4–5, 6–7, 8–11,
/// 12–15, 16–22, …
fn half_octave(time: usize) -> u32 {
    if time < 4 {
        return time as u32;
    }
    let octave = time.ilog2();
    2 * octave + u32::from((time as u128).pow(2) >= 1 << (2 * octave + 1))
}

/// An element of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Token {
    /// The episode begins here.
    Start,
    Observation(u32),
    Pair(ActionObservation),
    /// The half octave of the time.
    Time(u32),
}

/// Codes of tokens that are not actions.
const START: u32 = u32::MAX;
const OBSERVATION: u32 = u32::MAX - 1;
const TIME: u32 = u32::MAX - 2;

impl Token {
    /// As two numbers: those of a pair, or a code and its argument.
    fn code(self) -> [u32; 2] {
        match self {
            Token::Start => [START; 2],
            Token::Observation(o) => [OBSERVATION, o],
            Token::Pair(ao) => [ao.action.0, ao.observation.0],
            Token::Time(time) => [TIME, time],
        }
    }

    fn of([first, second]: [u32; 2]) -> Token {
        match first {
            START => Token::Start,
            OBSERVATION => Token::Observation(second),
            TIME => Token::Time(second),
            action => Token::Pair(ActionObservation::new(action, second)),
        }
    }
}

/// The observations as windows see them; empty where they are as they are.
type Plain = Arc<Vec<Observation>>;

/// The windows seen in training, as a tree: a window is a child of the one without its last token.
/// The root is empty.
#[derive(Clone, Debug)]
struct Windows {
    recent: Recent,
    plain: Plain,
    children: FxHashMap<(u32, Token), u32>,
    /// The shorter window of each; that of the root is the root.
    shorter: Vec<u32>,
}

impl Windows {
    fn new(recent: Recent, plain: Plain) -> Windows {
        Windows { recent, plain, children: FxHashMap::default(), shorter: vec![0] }
    }

    /// The longest window of a past, added if it is new.
    fn intern(&mut self, past: &[ActionObservation], time: usize) -> u32 {
        let mut window = 0;
        for token in self.recent.tokens(past, time) {
            let next = self.shorter.len() as u32;
            let longer = *self.children.entry((window, token)).or_insert(next);
            if longer == next {
                self.shorter.push(window);
            }
            window = longer;
        }
        window
    }

    /// The longest window of a past that was seen in training.
    fn find(&self, past: &[ActionObservation], time: usize) -> u32 {
        let mut window = 0;
        for token in self.recent.tokens(past, time) {
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
    /// Q(w, a), by windows; −∞ for an action that was never taken.
    q: Vec<f64>,
}

impl WindowQ {
    /// The start of an episode, as an input of this table.
    pub fn start(&self) -> RecentPast {
        RecentPast::of(self.windows.recent, self.windows.plain.clone())
    }

    /// Q̂(s, a) of every action after a past.
    pub fn values(&self, past: &RecentPast) -> &[f64] {
        let window = self.windows.find(&past.steps, past.time) as usize;
        &self.q[window * self.actions..][..self.actions]
    }

    /// The policy that takes the best action.
    pub fn policy(&self) -> WindowPolicy<'_> {
        WindowPolicy { q: self, past: self.start() }
    }

    /// The table of a policy that always takes one action.
    pub(super) fn always(a: Action, value: f64, recent: Recent, alphabet: &Alphabet) -> WindowQ {
        let mut q = vec![f64::NEG_INFINITY; alphabet.actions().len()];
        q[a.index()] = value;
        let windows = Windows { recent, plain: recent.plain(alphabet), children: Default::default(), shorter: vec![0] };
        WindowQ { windows, actions: q.len(), q }
    }

    /// The only action that has a value after any past, if there is one.
    pub(super) fn only_action(&self) -> Option<Action> {
        let has_value = |(_, q): &(usize, &f64)| q.is_finite();
        let mut taken = self.q.iter().enumerate().filter(has_value).map(|(i, _)| i % self.actions);
        let first = taken.next()?;
        taken.all(|a| a == first).then_some(Action(first as u32))
    }

    /// The table as arrays: for each window except the root its shorter one and its last token, and
    /// Q̂ of all.
    pub(crate) fn to_arrays(&self) -> WindowArrays {
        let mut tokens = vec![[0; 2]; self.windows.shorter.len()];
        self.windows.children.iter().for_each(|((_, token), &window)| tokens[window as usize] = token.code());
        WindowArrays { shorter: self.windows.shorter.clone(), tokens: tokens.concat(), q: self.q.clone() }
    }

    /// The table of [`WindowQ::to_arrays`]; `None` if the arrays contradict each other.
    pub(crate) fn from_arrays(recent: Recent, alphabet: &Alphabet, arrays: WindowArrays) -> Option<WindowQ> {
        let WindowArrays { shorter, tokens, q } = arrays;
        let actions = alphabet.actions().len();
        let sound = shorter.first() == Some(&0)
            && tokens.len() == 2 * shorter.len()
            && q.len() == actions * shorter.len()
            && q.iter().all(|q| *q < f64::INFINITY)
            && (1..).zip(&shorter[1..]).all(|(window, shorter)| *shorter < window)
            && tokens[..2] == [0; 2];
        if !sound {
            return None;
        }
        let tokens = tokens.chunks_exact(2).map(|code| Token::of([code[0], code[1]]));
        let children = (0..).zip(&shorter).zip(tokens).skip(1).map(|((window, &shorter), token)| ((shorter, token), window));
        let children: FxHashMap<_, _> = children.collect();
        if children.len() + 1 != shorter.len() {
            return None; // a window that is there twice
        }
        let windows = Windows { recent, plain: recent.plain(alphabet), children, shorter };
        Some(WindowQ { windows, actions, q })
    }
}

/// A table over windows as arrays.
pub(crate) struct WindowArrays {
    pub(crate) shorter: Vec<u32>,
    pub(crate) tokens: Vec<u32>,
    pub(crate) q: Vec<f64>,
}

/// A table while it is being fitted to the targets of given steps.
#[derive(Clone, Debug)]
pub struct WindowFit {
    table: WindowQ,
    /// The window of each row.
    of_row: Vec<u32>,
    /// Row and action of each step.
    steps: Vec<(usize, usize)>,
}

impl WindowFit {
    /// Zero everywhere, for the steps of these episodes.
    pub fn new(recent: Recent, steps: &Steps, episodes: &[Trajectory]) -> WindowFit {
        WindowFit::seeing(recent, Plain::default(), steps, episodes)
    }

    /// [`WindowFit::new`] for episodes over an alphabet in which rewards may be part of observations.
    pub(crate) fn over(alphabet: &Alphabet, recent: Recent, steps: &Steps, episodes: &[Trajectory]) -> WindowFit {
        WindowFit::seeing(recent, recent.plain(alphabet), steps, episodes)
    }

    fn seeing(recent: Recent, plain: Plain, steps: &Steps, episodes: &[Trajectory]) -> WindowFit {
        let mut windows = Windows::new(recent, plain.clone());
        let mut of_row = Vec::with_capacity(steps.rows());
        let mut past = RecentPast::of(recent, plain);
        for z in episodes {
            past.reset();
            of_row.push(windows.intern(&past.steps, past.time));
            for &ao in &z.steps {
                past.observe(ao);
                of_row.push(windows.intern(&past.steps, past.time));
            }
        }
        let q = vec![0.0; windows.shorter.len() * steps.actions()];
        let list = steps.list().iter().map(|step| (step.row, step.action.index())).collect();
        WindowFit { table: WindowQ { windows, actions: steps.actions(), q }, of_row, steps: list }
    }

    /// Q̂ as fitted last.
    pub fn into_q(self) -> WindowQ {
        self.table
    }
}

impl Approximator for WindowFit {
    fn fit(&mut self, targets: Targets<'_>) {
        let WindowQ { windows, actions, q } = &mut self.table;
        let (shorter, actions) = (&windows.shorter, *actions);
        let mut sums = vec![(0.0, 0.0); q.len()];
        for (i, (&(row, action), target)) in self.steps.iter().zip(targets.y).enumerate() {
            let weight = targets.weights.map_or(1.0, |weights| weights[i]);
            let mut window = self.of_row[row] as usize;
            loop {
                let (sum, count) = &mut sums[window * actions + action];
                *sum += weight * target;
                *count += weight;
                if window == 0 {
                    break;
                }
                window = shorter[window] as usize;
            }
        }
        for (i, (sum, count)) in sums.into_iter().enumerate() {
            let (window, action) = (i / actions, i % actions);
            // A shorter window has a smaller index than its longer ones.
            let prior = q[shorter[window] as usize * actions + action];
            q[i] = match (window, count > 0.0) {
                (0, true) => sum / count,
                (0, false) => f64::NEG_INFINITY,
                (_, false) => prior,
                _ => (sum + PRIOR * prior) / (count + PRIOR),
            };
        }
    }

    fn q(&self, a: Action, out: &mut [f64]) {
        let WindowQ { actions, q, .. } = &self.table;
        out.iter_mut().zip(&self.of_row).for_each(|(value, &window)| *value = q[window as usize * actions + a.index()]);
    }
}

/// The last steps of an episode, as far as a [`WindowQ`] depends on them, and the time since its
/// start.
#[derive(Clone, Debug, Default)]
pub struct RecentPast {
    /// `None` where nothing is remembered.
    recent: Option<Recent>,
    plain: Plain,
    steps: Vec<ActionObservation>,
    time: usize,
}

impl RecentPast {
    /// At the start of an episode.
    fn of(recent: Recent, plain: Plain) -> RecentPast {
        RecentPast { recent: Some(recent), plain, ..RecentPast::default() }
    }

    /// Starts an episode.
    pub fn reset(&mut self) {
        self.steps.clear();
        self.time = 0;
    }

    /// Takes a step into account.
    pub fn observe(&mut self, ao: ActionObservation) {
        self.time += 1;
        let observation = self.plain.get(ao.observation.index()).copied().unwrap_or(ao.observation);
        let ao = ActionObservation { observation, ..ao };
        let Some(recent) = self.recent.filter(|recent| recent.length() > 0 && recent.keeps(&self.steps, ao)) else { return };
        if self.steps.len() == recent.length() {
            self.steps.remove(0);
        }
        self.steps.push(ao);
    }
}

/// The greedy policy on a [`WindowQ`].
#[derive(Clone, Debug)]
pub struct WindowPolicy<'q> {
    q: &'q WindowQ,
    past: RecentPast,
}

impl Policy for WindowPolicy<'_> {
    fn reset(&mut self) {
        self.past.reset();
    }

    fn act(&mut self, _: &mut Rng) -> Action {
        Action(argmax(self.q.values(&self.past).iter().copied()).0 as u32)
    }

    fn probability(&self, _: Action) -> Option<f64> {
        Some(1.0)
    }

    fn observe(&mut self, ao: ActionObservation) {
        self.past.observe(ao);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_distinguished_by_half_octaves() {
        let first: Vec<usize> = (0..=12).map(|bin| (0..100).find(|&t| half_octave(t) == bin).unwrap_or(999)).collect();
        assert_eq!(first, [0, 1, 2, 3, 4, 6, 8, 12, 16, 23, 32, 46, 64]);
        assert!((1..100_000).all(|t| half_octave(t - 1) <= half_octave(t)));
    }

    #[test]
    fn changes_are_remembered_however_long_nothing_new_is_seen() {
        let mut past = RecentPast::of(Recent::Changes(2), Plain::default());
        let kept = |past: &RecentPast| past.steps.iter().map(|ao| ao.observation.0).collect::<Vec<_>>();
        past.observe(ActionObservation::new(0, 7));
        for a in 0..100 {
            past.observe(ActionObservation::new(a % 3, 5));
            assert_eq!(kept(&past), [7, 5]);
        }
        past.observe(ActionObservation { action: Action(0), observation: Observation::MISSING });
        past.observe(ActionObservation::new(1, 5));
        assert_eq!(kept(&past), [7, 5], "what is missing is no change");
        past.observe(ActionObservation::new(0, 6));
        assert_eq!((kept(&past), past.time), (vec![5, 6], 104));
    }

    #[test]
    fn rewards_are_no_changes() {
        let mut alphabet = Alphabet::observing_rewards();
        let seen = ["on(0)", "sign(0)", "on(-0.1)"].map(|name| alphabet.intern_observation(name));
        let mut past = RecentPast::of(Recent::Changes(3), Recent::Changes(3).plain(&alphabet));
        for i in [1, 0, 2, 0, 2] {
            past.observe(ActionObservation { action: Action(0), observation: seen[i] });
        }
        let kept: Vec<Observation> = past.steps.iter().map(|ao| ao.observation).collect();
        assert_eq!(kept, [seen[1], seen[0]]);
        assert!(Recent::PairsAndTime(3).plain(&alphabet).is_empty());
    }
}
