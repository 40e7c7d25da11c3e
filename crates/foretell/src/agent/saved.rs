//! An agent between two stages, as a part of a checkpoint.

use serde::{Deserialize, Serialize};

use super::contest::{Contender, Contest};
use super::{Agent, Stage};
use crate::data::{ActionObservation, Alphabet, End, Observation, Trajectory};
use crate::error::Result;
use crate::model::Model;
use crate::plan::Plan;
use crate::store::AGAIN;
use crate::store::tensors::{self, Array, Arrays, Kind};

/// The name of the part.
pub(super) const PART: &str = "agent";

const AGENT: Kind = Kind { name: "checkpoint of an agent", again: AGAIN };

#[derive(Serialize, Deserialize)]
struct Header {
    round: usize,
    stage: Stage,
    has_model: bool,
    has_plan: bool,
    has_seeking: bool,
    /// The rounds that made the plans that compete, and how many episodes each has sampled.
    contest: Vec<(usize, usize)>,
    promised: Vec<Option<f64>>,
    ends: Vec<End>,
}

impl Agent<'_> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            round: self.round,
            stage: self.stage,
            has_model: self.model.is_some(),
            has_plan: self.plan.is_some(),
            has_seeking: self.seeking.is_some(),
            contest: self.contest.all.iter().map(|contender| (contender.round, contender.returns.len())).collect(),
            promised: self.promised.clone(),
            ends: self.episodes.iter().map(|z| z.end).collect(),
        };
        let mut arrays = write_episodes(&self.episodes);
        arrays.extend(self.model.iter().map(|model| Array::bytes("model", model.to_bytes())));
        arrays.extend(self.plan.iter().map(|plan| Array::bytes("plan", plan.to_bytes())));
        arrays.extend(self.seeking.iter().map(|plan| Array::bytes("seeking", plan.to_bytes())));
        for (i, Contender { plan, returns, .. }) in self.contest.all.iter().enumerate() {
            arrays.push(Array::bytes(format!("contender{i}"), plan.to_bytes()));
            arrays.push(Array::f64s(format!("returns{i}"), &[returns.len()], returns));
        }
        tensors::to_bytes(AGENT, header, &arrays)
    }

    /// Restores the saved state; `file` is named in errors.
    pub(super) fn restore(&mut self, bytes: &[u8], file: &str) -> Result<()> {
        let (header, arrays): (Header, _) = Arrays::open(AGENT, bytes, file)?;
        let (model, plan) = (|| arrays.bytes("model"), || arrays.bytes("plan"));
        self.model = header.has_model.then(|| Model::from_bytes(model()?, file)).transpose()?;
        self.plan = header.has_plan.then(|| Plan::from_bytes(plan()?, file)).transpose()?;
        let seeking = || Plan::from_bytes(arrays.bytes("seeking")?, file);
        self.seeking = header.has_seeking.then(seeking).transpose()?;
        let contender = |(i, &(round, episodes)): (usize, &(usize, usize))| -> Result<Contender> {
            let plan = Plan::from_bytes(arrays.bytes(&format!("contender{i}"))?, file)?;
            let name = format!("returns{i}");
            Ok(Contender { plan, round, returns: arrays.sized(&name, arrays.f64s(&name)?, episodes)? })
        };
        self.contest = Contest { all: header.contest.iter().enumerate().map(contender).collect::<Result<_>>()? };
        self.episodes = read_episodes(&arrays, &header.ends, self.domain.alphabet())?;
        let is_late = header.round > self.params.agent_rounds || header.promised.len() != header.round;
        if is_late || header.has_model != (header.stage == Stage::Fitted) {
            return Err(arrays.damaged("it is between other stages than it says"));
        }
        (self.round, self.stage, self.promised) = (header.round, header.stage, header.promised);
        Ok(())
    }
}

/// Episodes as concatenated arrays.
fn write_episodes(episodes: &[Trajectory]) -> Vec<Array> {
    let steps: Vec<u32> = episodes.iter().flat_map(|z| &z.steps).flat_map(|ao| [ao.action.0, ao.observation.0]).collect();
    // A missing reward is stored as NaN, which no reward is.
    let rewards: Vec<f64> = episodes.iter().flat_map(|z| &z.rewards).map(|r| r.unwrap_or(f64::NAN)).collect();
    let probabilities: Vec<f64> = episodes.iter().flat_map(|z| z.action_probabilities.iter().copied()).collect();
    let lengths: Vec<u64> =
        episodes.iter().flat_map(|z| [z.steps.len(), z.action_probabilities.len()]).map(|n| n as u64).collect();
    vec![
        Array::u32s("steps", &[steps.len() / 2, 2], &steps),
        Array::f64s("rewards", &[rewards.len()], &rewards),
        Array::f64s("probabilities", &[probabilities.len()], &probabilities),
        Array::u64s("lengths", &lengths),
    ]
}

fn read_episodes(arrays: &Arrays<'_>, ends: &[End], alphabet: &Alphabet) -> Result<Vec<Trajectory>> {
    let lengths = arrays.sized("lengths", arrays.u64s("lengths")?, 2 * ends.len())?;
    // Sums beyond any memory fit no array.
    let all = |i: usize| lengths.iter().skip(i).step_by(2).fold(0, |sum: u64, n| sum.saturating_add(*n)) as usize;
    let steps = arrays.sized("steps", arrays.rows("steps", 2)?, all(0).saturating_mul(2))?;
    let rewards = arrays.sized("rewards", arrays.any_f64s("rewards")?, all(0))?;
    let probabilities = arrays.sized("probabilities", arrays.f64s("probabilities")?, all(1))?;
    let (actions, symbols) = (alphabet.actions().len() as u32, alphabet.observations().len() as u32);
    let is_known = |step: &[u32]| step[0] < actions && (step[1] < symbols || step[1] == Observation::MISSING.0);
    if !steps.chunks_exact(2).all(is_known) || rewards.iter().any(|r| r.is_infinite()) {
        return Err(arrays.damaged("its episodes are of another system"));
    }
    let mut steps = steps.chunks_exact(2).map(|ao| ActionObservation::new(ao[0], ao[1]));
    let mut rewards = rewards.into_iter().map(|r| (!r.is_nan()).then_some(r));
    let mut probabilities = probabilities.into_iter();
    let episode = |(end, n): (&End, &[u64])| Trajectory {
        steps: steps.by_ref().take(n[0] as usize).collect(),
        rewards: rewards.by_ref().take(n[0] as usize).collect(),
        action_probabilities: probabilities.by_ref().take(n[1] as usize).collect(),
        end: *end,
        about: Default::default(),
    };
    Ok(ends.iter().zip(lengths.chunks_exact(2)).map(episode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Checkpoint;
    use crate::{AgentParams, LearnParams, PlanParams, Seed, domains};

    #[test]
    fn episodes_come_back_as_they_were() {
        let z = |rewards: &[Option<f64>], probabilities: &[f64], end| Trajectory {
            steps: (0..rewards.len() as u32).map(|i| ActionObservation::new(i, i + 1)).collect(),
            rewards: rewards.to_vec(),
            action_probabilities: probabilities.to_vec(),
            end,
            about: Default::default(),
        };
        let episodes = vec![
            z(&[Some(0.1), None], &[0.5, 1.0 / 3.0], End::Terminated),
            z(&[], &[], End::Truncated),
            z(&[Some(-0.0)], &[], End::Truncated),
        ];
        let ends: Vec<End> = episodes.iter().map(|z| z.end).collect();
        let mut alphabet = Alphabet::default();
        for name in ["0", "1", "2"] {
            alphabet.intern_action(name);
            alphabet.intern_observation(name);
        }
        let bytes = tensors::to_bytes(AGENT, (), &write_episodes(&episodes));
        let ((), arrays) = Arrays::open(AGENT, &bytes, "agent").unwrap();
        assert_eq!(read_episodes(&arrays, &ends, &alphabet).unwrap(), episodes);
        assert!(read_episodes(&arrays, &ends[1..], &alphabet).is_err());
        assert!(read_episodes(&arrays, &ends, &Alphabet::default()).is_err());
    }

    #[test]
    fn an_agent_stopped_after_every_stage_ends_with_the_same_plan() {
        let domain = domains::get("tiger").unwrap();
        let agent = || {
            let params = AgentParams { agent_rounds: 2, episodes: 60, ..AgentParams::default() };
            let learning = LearnParams { rank: 5, test_dim: 64, history_dim: 64, ..LearnParams::default() };
            Agent::new(&domain, params, learning, PlanParams { rounds: 5, ..PlanParams::default() }, Seed(3)).unwrap()
        };
        let mut whole = agent();
        let expected = whole.by_ref().collect::<Result<Vec<_>>>().unwrap();

        let folder = tempfile::tempdir().unwrap();
        let mut checkpoint = Checkpoint::open(folder.path(), &1, || true).unwrap();
        let mut rounds = Vec::new();
        // Two rounds of three stages each.
        for stage in 0..6 {
            let mut stopped = agent().checkpointed(&mut checkpoint).unwrap();
            assert_eq!(stopped.rounds(), stage / 3);
            rounds.extend(stopped.advance().unwrap());
        }
        let mut stopped = agent().checkpointed(&mut checkpoint).unwrap();
        assert!(stopped.next().is_none());
        assert_eq!(rounds, expected);
        assert_eq!(stopped.episodes(), whole.episodes());
        assert!(stopped.plan().unwrap().to_bytes() == whole.plan().unwrap().to_bytes(), "interruptions change the plan");
    }
}
