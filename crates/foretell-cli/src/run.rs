//! The report of `foretell agent --json`, which `foretell report` reads.

use foretell::agent::Tried;
use foretell::judge::Tested;
use foretell::{Agent, AgentParams, LearnParams, PlanParams, Returns, Trajectory};
use serde::{Deserialize, Serialize};

/// A run of the agent.
#[derive(Serialize, Deserialize)]
pub struct Run {
    /// Version of the program.
    pub version: String,
    pub domain: String,
    pub seed: u64,
    pub seconds: f64,
    /// How episodes were sampled.
    pub sampling: AgentParams,
    pub learning: LearnParams,
    /// With automatic choices resolved.
    pub planning: PlanParams,
    pub rounds: Vec<Round>,
    /// What the plans that competed have earned, the kept one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    pub test: TestOf,
    pub policies: Vec<Tested>,
    /// Upper bound on the discounted return, even of a policy that sees the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discounted_bound: Option<f64>,
    /// The file of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyFile>,
}

/// How policies were tested.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TestOf {
    pub episodes: u64,
    pub max_steps: usize,
    pub discount: f64,
}

/// The file of the policy, as the user named it.
#[derive(Serialize, Deserialize)]
pub struct PolicyFile {
    pub file: String,
    pub digest: String,
}

/// A round of sampling, learning and planning.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Round {
    /// From 1.
    pub number: usize,
    /// Episodes sampled so far.
    pub episodes: usize,
    /// Returns of the episodes sampled in this round.
    pub sampled: Returns,
    /// The plan's own estimate of its value.
    pub value: Option<f64>,
}

/// The returns and estimated values of an agent's rounds.
pub fn rounds(params: &AgentParams, agent: &Agent<'_>, discount: f64) -> Vec<Round> {
    let shares = shared_out(params, agent.episodes());
    let round = |(i, (episodes, &value)): (usize, (&[Trajectory], &Option<f64>))| {
        let sampled = Returns::of(episodes.iter().cloned(), discount);
        Round { number: i + 1, episodes: (0..=i).map(|i| params.share(i)).sum(), sampled, value }
    };
    shares.into_iter().zip(agent.promised()).enumerate().map(round).collect()
}

/// The episodes of each round.
fn shared_out<'e>(params: &AgentParams, mut episodes: &'e [Trajectory]) -> Vec<&'e [Trajectory]> {
    let share = |i| {
        let (own, rest) = episodes.split_at(params.share(i).min(episodes.len()));
        episodes = rest;
        own
    };
    (0..params.agent_rounds).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell::{Seed, domains};

    #[test]
    fn rounds_share_the_episodes_out_and_the_first_has_what_is_left_over() {
        let tiger = domains::get("tiger").unwrap();
        let params = AgentParams { agent_rounds: 3, episodes: 32, ..AgentParams::paper() };
        let learning = LearnParams { test_dim: 64, history_dim: 64, rank: 4, ..LearnParams::default() };
        let planning = PlanParams { rounds: 3, trees: 2, ..PlanParams::default() };
        let mut agent = Agent::new(&tiger, params.clone(), learning, planning, Seed(1)).unwrap();
        let values: Vec<f64> = agent.by_ref().map(|round| round.unwrap().fitted.unwrap().start_value).collect();
        let reported = rounds(&params, &agent, 1.0);
        let counts: Vec<(usize, usize, u64)> = reported.iter().map(|r| (r.number, r.episodes, r.sampled.episodes)).collect();
        assert_eq!(counts, [(1, 12, 12), (2, 22, 10), (3, 32, 10)]);
        let second = Returns::of(agent.episodes()[12..22].iter().cloned(), 1.0);
        assert_eq!(reported[1].sampled, second);
        assert_eq!(reported.iter().map(|r| r.value.unwrap()).collect::<Vec<_>>(), values);
    }
}
