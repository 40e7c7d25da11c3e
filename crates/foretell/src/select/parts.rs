//! Which steps are held out: whole episodes where there are many, pieces of long ones where there
//! are few.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::data::{About, ActionObservation, Alphabet, Digest, End, EpisodeKeys, Trajectory};
use crate::error::{Error, Result};
use crate::log::{Logs, MOST_REWARDS};
use crate::rng::Seed;

/// Episodes count as few if they are worth fewer than this many of the same length.
const FEW: f64 = 20.0;
/// Few long episodes are cut into about this many pieces.
const PIECES: usize = 50;
/// The shortest piece, in steps.
const SHORTEST_PIECE: usize = 20;
/// Steps of training pieces that are left out next to a held-out piece, because they depend on it.
const GAP: usize = 5;
/// Steps before a held-out piece that states are computed from.
const CONTEXT: usize = 100;

/// Episodes in memory: all of the logs, or an evenly spaced sample of large ones.
pub(super) struct Sample {
    pub(super) alphabet: Alphabet,
    pub(super) episodes: Vec<Trajectory>,
    /// One of this many episodes of the logs is here.
    pub(super) every: u64,
    pub(super) rewards: RewardValues,
    /// Hashes of all episodes of the logs.
    pub(super) digest: Digest,
}

/// The rewards of logs: how many there are, and whether action and observation determine them.
#[derive(Clone, Debug, Default)]
pub(super) struct RewardValues {
    of_pair: FxHashMap<ActionObservation, u64>,
    values: FxHashSet<u64>,
    /// Distinct observations with their rewards.
    symbols: FxHashSet<(u32, u64)>,
    vary: bool,
}

impl RewardValues {
    fn add(&mut self, z: &Trajectory) {
        for (ao, reward) in z.steps.iter().zip(&z.rewards) {
            let Some(bits) = reward.map(|reward| (reward + 0.0).to_bits()) else { continue };
            if self.values.len() <= MOST_REWARDS {
                self.values.insert(bits);
                self.symbols.insert((ao.observation.0, bits));
            }
            self.vary |= *self.of_pair.entry(*ao).or_insert(bits) != bits;
        }
    }

    /// Whether rewards say anything that action and observation do not, and how many symbols there
    /// are if they are part of observations: `None` if they are too many for that.
    pub(super) fn observable(&self) -> (bool, Option<usize>) {
        (self.vary, (self.values.len() <= MOST_REWARDS).then_some(self.symbols.len()))
    }
}

impl Sample {
    /// Reads logs, and keeps at most about `most` steps: whenever there are more, every other
    /// episode is dropped.
    pub(super) fn read(logs: &Logs, first: Alphabet, most: u64) -> Result<Sample> {
        let mut reader = logs.open(first)?;
        let (mut episodes, mut every, mut steps): (Vec<Trajectory>, u64, u64) = (Vec::new(), 1, 0);
        let mut rewards = RewardValues::default();
        let (mut digest, mut keys) = (Digest::default(), EpisodeKeys::default());
        for i in 0u64.. {
            let Some(z) = reader.next().transpose()? else { break };
            rewards.add(&z);
            digest.add(keys.key(reader.alphabet(), &z), 1);
            if !i.is_multiple_of(every) {
                continue;
            }
            steps += z.steps.len() as u64;
            episodes.push(z);
            if steps > most && episodes.len() > 1 {
                let mut kept = 0;
                episodes.retain(|_| {
                    kept += 1;
                    kept % 2 == 1
                });
                every *= 2;
                steps = episodes.iter().map(|z| z.steps.len() as u64).sum();
            }
        }
        if steps == 0 {
            return Err(Error::NoSteps);
        }
        Ok(Sample { alphabet: reader.into_alphabet(), episodes, every, rewards, digest })
    }

    pub(super) fn steps(&self) -> usize {
        self.episodes.iter().map(|z| z.steps.len()).sum()
    }

    /// The length of pieces that episodes are cut into, if they are few and long.
    pub(super) fn piece_length(&self) -> Option<usize> {
        let lengths = || self.episodes.iter().map(|z| z.steps.len() as f64);
        let (sum, squares): (f64, f64) = (lengths().sum(), lengths().map(|n| n * n).sum());
        let length = (self.steps() / PIECES).max(SHORTEST_PIECE);
        let longest = self.episodes.iter().map(|z| z.steps.len()).max().unwrap_or(0);
        (sum * sum < FEW * squares.max(1.0) && longest >= 2 * length).then_some(length)
    }
}

/// An episode, or a piece of one, with the steps of the same episode before it.
pub(super) struct Piece {
    pub(super) z: Trajectory,
    before: Vec<ActionObservation>,
    /// What is known of those and its own steps.
    about: About,
    /// Whether the next piece continues the same episode.
    continues: bool,
}

/// Cuts episodes into pieces of about the given length.
pub(super) fn pieces(episodes: &[Trajectory], length: Option<usize>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for z in episodes {
        let n = length.map_or(1, |length| (z.steps.len() / length).max(1));
        let bound = |i: usize| i * z.steps.len() / n;
        for i in 0..n {
            let (from, to) = (bound(i), bound(i + 1));
            pieces.push(Piece {
                z: part_of(z, from, to),
                before: z.steps[from.saturating_sub(CONTEXT)..from].to_vec(),
                about: z.about.part(from.saturating_sub(CONTEXT), to),
                continues: i + 1 < n,
            });
        }
    }
    pieces
}

/// The steps `from..to` of an episode. It ends like the episode if it contains its last step.
fn part_of(z: &Trajectory, from: usize, to: usize) -> Trajectory {
    Trajectory {
        steps: z.steps[from..to].to_vec(),
        rewards: z.rewards.get(from..to).unwrap_or_default().to_vec(),
        action_probabilities: z.action_probabilities.get(from..to).unwrap_or_default().to_vec(),
        end: if to == z.steps.len() { z.end } else { End::Truncated },
        about: z.about.part(from, to),
    }
}

/// Episodes to learn from, and those to predict.
pub(super) struct Fold {
    pub(super) training: Vec<Trajectory>,
    pub(super) held_out: Vec<HeldOut>,
}

/// Steps to predict, after steps that only update the state.
#[derive(Clone)]
pub(super) struct HeldOut {
    pub(super) steps: Vec<ActionObservation>,
    /// What is known of them.
    pub(super) about: About,
    /// The rewards of the steps that count.
    pub(super) rewards: Vec<Option<f64>>,
    /// The first step that counts.
    pub(super) from: usize,
}

/// Divides pieces into `parts`, of which the first `folds` are held out in turn. Whole episodes are
/// assigned at random, pieces of few long ones in order, so that parts are spread over the time.
pub(super) fn folds(pieces: &[Piece], parts: usize, folds: usize, seed: Seed) -> Vec<Fold> {
    let part_of = assignment(pieces, parts, seed);
    let fold = |held: usize| {
        let is_held = |i: usize| part_of[i] == held;
        let mut fold = Fold { training: Vec::new(), held_out: Vec::new() };
        for (i, piece) in pieces.iter().enumerate() {
            if is_held(i) {
                let steps: Vec<_> = piece.before.iter().chain(&piece.z.steps).copied().collect();
                let rewards = piece.z.rewards.clone();
                fold.held_out.push(HeldOut { steps, about: piece.about.clone(), rewards, from: piece.before.len() });
                continue;
            }
            let n = piece.z.steps.len();
            let from = if i > 0 && pieces[i - 1].continues && is_held(i - 1) { GAP.min(n) } else { 0 };
            let to = if piece.continues && is_held(i + 1) { n.saturating_sub(GAP) } else { n };
            if from < to {
                fold.training.push(self::part_of(&piece.z, from, to));
            }
        }
        fold
    };
    (0..folds).map(fold).collect()
}

/// The part of each piece.
fn assignment(pieces: &[Piece], parts: usize, seed: Seed) -> Vec<usize> {
    if pieces.iter().any(|piece| piece.continues) {
        return (0..pieces.len()).map(|i| i % parts).collect();
    }
    let units = units(pieces, parts);
    let count = units.iter().max().map_or(0, |last| last + 1);
    let mut assigned = Vec::with_capacity(count);
    for round in 0..count.div_ceil(parts) {
        let mut rng = seed.index(round as u64).rng();
        let mut order: Vec<usize> = (0..parts).collect();
        (1..parts).for_each(|i| order.swap(i, rng.below(i + 1)));
        assigned.extend(order);
    }
    units.into_iter().map(|unit| assigned[unit]).collect()
}

/// What is assigned as a whole: each episode, or all episodes of a group if there are at least as
/// many groups as parts.
fn units(pieces: &[Piece], parts: usize) -> Vec<usize> {
    let mut groups: FxHashMap<&str, usize> = FxHashMap::default();
    let mut count = 0;
    let mut units = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let unit = match &piece.z.about.group {
            Some(group) => *groups.entry(group).or_insert(count),
            None => count,
        };
        count = count.max(unit + 1);
        units.push(unit);
    }
    if count < parts { (0..pieces.len()).collect() } else { units }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(length: usize, first: u32) -> Trajectory {
        let steps: Vec<_> = (0..length as u32).map(|t| ActionObservation::new(0, first + t)).collect();
        Trajectory {
            rewards: vec![None; steps.len()],
            steps,
            action_probabilities: vec![],
            end: End::Terminated,
            about: Default::default(),
        }
    }

    fn all_of(episodes: &[Trajectory]) -> Sample {
        let rewards = RewardValues::default();
        Sample { alphabet: Alphabet::default(), episodes: episodes.to_vec(), every: 1, rewards, digest: Digest::default() }
    }

    fn symbols(steps: &[ActionObservation]) -> Vec<u32> {
        steps.iter().map(|ao| ao.observation.0).collect()
    }

    #[test]
    fn every_step_of_one_long_episode_is_held_out_once_and_never_learned_from_next_to_it() {
        let episodes = [episode(1003, 0)];
        let sample = all_of(&episodes);
        let pieces = pieces(&episodes, sample.piece_length());
        assert_eq!(pieces.len(), 50);
        let all = folds(&pieces, 5, 5, Seed(1));
        let mut held: Vec<u32> = Vec::new();
        for fold in &all {
            let own: Vec<u32> = fold.held_out.iter().flat_map(|z| symbols(&z.steps[z.from..])).collect();
            for z in &fold.training {
                for o in symbols(&z.steps) {
                    assert!(own.iter().all(|&held| held.abs_diff(o) > GAP as u32), "{o} is within the gap");
                }
            }
            assert!(fold.held_out.iter().all(|z| z.steps.windows(2).all(|w| w[1].observation.0 == w[0].observation.0 + 1)));
            held.extend(own);
        }
        held.sort_unstable();
        assert_eq!(held, (0..1003).collect::<Vec<_>>());
        assert_eq!(all[0].training.iter().filter(|z| z.end == End::Terminated).count(), 1, "only the last piece ends");
    }

    #[test]
    fn many_episodes_stay_whole_and_few_short_ones_too() {
        let many: Vec<_> = (0..60).map(|i| episode(30, 30 * i)).collect();
        let sample = all_of(&many);
        assert_eq!(sample.piece_length(), None);
        let all = folds(&pieces(&many, None), 10, 1, Seed(1));
        assert_eq!((all.len(), all[0].training.len(), all[0].held_out.len()), (1, 54, 6));
        let few = all_of(&[episode(30, 0), episode(12, 30)]);
        assert_eq!(few.piece_length(), None, "pieces would be too short");
    }

    #[test]
    fn large_logs_are_thinned_evenly() {
        let truncated = |i| Trajectory { end: End::Truncated, ..episode(10, i) };
        let episodes: Vec<_> = (0..1000).map(truncated).collect();
        let mut alphabet = Alphabet::default();
        alphabet.intern_action("a");
        (0..1010).for_each(|i| {
            alphabet.intern_observation(&i.to_string());
        });
        let logs = Logs::memory(alphabet.clone(), episodes);
        let sample = Sample::read(&logs, alphabet, 3000).unwrap();
        assert_eq!(sample.every, 4);
        let firsts: Vec<u32> = sample.episodes.iter().map(|z| z.steps[0].observation.0).collect();
        assert_eq!(firsts, (0..1000).step_by(4).collect::<Vec<_>>());
    }
}
