//! Which actions were taken where: what no log contains cannot be learned.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::data::{Action, ActionObservation, Alphabet, Episodes, Observation, Propensities};
use crate::log::{ActionCount, RareSymbols};

/// Which actions were taken in which contexts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// The actions and how often they were taken.
    pub actions: Vec<ActionCount>,
    /// With the last observation (or the start of an episode) as context.
    pub by_observation: ActionCoverage,
    /// With the last action and observation as context.
    pub by_pair: ActionCoverage,
    /// For each action, the context of at least [`Coverage::OFTEN`] steps where it was taken least,
    /// rarest first.
    pub least: Vec<LeastTakenAction>,
    /// Effective sample size (Kish 1965) as a share of the steps, if steps were weighted as under a
    /// uniformly random policy after every observation; from the frequencies of actions in the
    /// logs.
    pub effective: f64,
    /// The same and more from the probabilities of actions, if the logs contain them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propensities: Option<Propensities>,
}

impl Coverage {
    /// The number of steps from which a context is frequent.
    pub const OFTEN: u64 = 100;
}

/// How many combinations of contexts and actions occur.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ActionCoverage {
    /// Contexts observed.
    pub contexts: u64,
    /// Combinations of a context and an action.
    pub combinations: u64,
    /// Combinations that never occur.
    pub never: u64,
    /// Combinations that occur, but fewer than [`RareSymbols::BELOW`] times.
    pub rarely: u64,
    /// Share of the steps in contexts where some action was never taken.
    pub steps_missing: f64,
}

/// The context where an action was taken least.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeastTakenAction {
    /// The action.
    pub action: String,
    /// The last observation; `None` at the start of an episode.
    pub after: Option<String>,
    /// How often it was taken there.
    pub count: u64,
    /// Steps there.
    pub of: u64,
}

type Counts<C> = FxHashMap<C, Vec<u64>>;

/// Running counts.
#[derive(Default)]
pub(super) struct Counter {
    /// By the last observation.
    by_observation: Counts<Option<Observation>>,
    by_pair: Counts<Option<ActionObservation>>,
}

fn add<C: std::hash::Hash + Eq>(counts: &mut Counts<C>, context: C, action: Action) {
    let counts = counts.entry(context).or_default();
    let a = action.index();
    if counts.len() <= a {
        counts.resize(a + 1, 0);
    }
    counts[a] += 1;
}

impl Counter {
    pub(super) fn add(&mut self, episodes: &Episodes) {
        for z in episodes.iter() {
            let mut last: Option<ActionObservation> = None;
            for &step in z.steps {
                add(&mut self.by_observation, last.map(|ao| ao.observation), step.action);
                add(&mut self.by_pair, last, step.action);
                last = Some(step);
            }
        }
    }

    pub(super) fn finish(mut self, alphabet: &Alphabet, propensities: Option<Propensities>) -> Coverage {
        let n = alphabet.actions().len();
        self.by_observation.values_mut().chain(self.by_pair.values_mut()).for_each(|counts| counts.resize(n, 0));
        let total = |a: usize| self.by_observation.values().map(|counts| counts[a]).sum();
        let count = |(a, name): (usize, &String)| ActionCount { name: name.clone(), count: total(a) };
        Coverage {
            actions: alphabet.actions().iter().enumerate().map(count).collect(),
            by_observation: tried(self.by_observation.values(), n),
            by_pair: tried(self.by_pair.values(), n),
            least: least(&self.by_observation, alphabet),
            effective: effective(self.by_observation.values()),
            propensities,
        }
    }
}

fn tried<'a>(contexts: impl Iterator<Item = &'a Vec<u64>>, actions: usize) -> ActionCoverage {
    let mut tried = ActionCoverage { contexts: 0, combinations: 0, never: 0, rarely: 0, steps_missing: 0.0 };
    let (mut steps, mut missing) = (0, 0);
    for counts in contexts {
        let (here, never): (u64, usize) = (counts.iter().sum(), counts.iter().filter(|&&n| n == 0).count());
        tried.contexts += 1;
        tried.combinations += actions as u64;
        tried.never += never as u64;
        tried.rarely += counts.iter().filter(|&&n| n > 0 && n < RareSymbols::BELOW).count() as u64;
        steps += here;
        missing += if never > 0 { here } else { 0 };
    }
    tried.steps_missing = missing as f64 / steps.max(1) as f64;
    tried
}

/// For each action, the frequent context where it has the smallest share.
fn least(contexts: &Counts<Option<Observation>>, alphabet: &Alphabet) -> Vec<LeastTakenAction> {
    let mut often: Vec<_> = contexts
        .iter()
        .map(|(context, counts)| (context, counts, counts.iter().sum::<u64>()))
        .filter(|c| c.2 >= Coverage::OFTEN)
        .collect();
    often.sort_by_key(|(context, ..)| **context);
    let share = |count: u64, of: u64| count as f64 / of as f64;
    let of_action = |(a, action): (usize, &String)| {
        let (context, counts, of) = often.iter().min_by(|x, y| share(x.1[a], x.2).total_cmp(&share(y.1[a], y.2)))?;
        let after = context.map(|o| alphabet.symbol(o).to_string());
        Some(LeastTakenAction { action: action.clone(), after, count: counts[a], of: *of })
    };
    let mut least: Vec<LeastTakenAction> = alphabet.actions().iter().enumerate().filter_map(of_action).collect();
    least.sort_by(|x, y| share(x.count, x.of).total_cmp(&share(y.count, y.of)));
    least
}

/// (Σ 1/π)² / (n Σ 1/π²) over steps, with π the share of the action in its context.
fn effective<'a>(contexts: impl Iterator<Item = &'a Vec<u64>>) -> f64 {
    // Integer sums, so that the order of contexts does not matter.
    let (mut steps, mut inverses, mut squares) = (0u64, 0u64, Vec::new());
    for counts in contexts {
        let here: u64 = counts.iter().sum();
        for &count in counts.iter().filter(|&&n| n > 0) {
            steps += count;
            inverses += here;
            squares.push((here as f64).powi(2) / count as f64);
        }
    }
    squares.sort_by(f64::total_cmp);
    (inverses as f64).powi(2) / (steps as f64 * squares.iter().sum::<f64>())
}
