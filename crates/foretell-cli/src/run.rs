//! What `foretell agent` did, as its `--json` tells and `foretell report` reads.

use foretell::baselines::Tested;
use foretell::{AgentParams, LearnParams, PlanParams, Returns, Trajectory};
use serde::{Deserialize, Serialize};

/// A run of the agent.
#[derive(Serialize, Deserialize)]
pub struct Run {
    /// Of the program.
    pub version: String,
    pub domain: String,
    pub seed: u64,
    pub seconds: f64,
    /// How episodes were sampled.
    pub sampling: AgentParams,
    pub learning: LearnParams,
    /// As the logs decided what was left open.
    pub planning: PlanParams,
    pub rounds: Vec<Round>,
    pub test: TestOf,
    pub policies: Vec<Tested>,
    /// What one could earn at most who saw the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discounted_bound: Option<f64>,
    /// Where the policy is.
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
    /// What was earned while this round sampled.
    pub sampled: Returns,
    /// What its plan is worth by its own estimate; not known of rounds that a checkpoint had done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

/// What the rounds of a run sampled; `values` has what their plans promised, by number.
pub fn rounds(params: &AgentParams, episodes: &[Trajectory], discount: f64, values: &[(usize, f64)]) -> Vec<Round> {
    let mut done = 0;
    let round = |i: usize| {
        let begun = done;
        done = (done + params.share(i)).min(episodes.len());
        let value = values.iter().find(|(number, _)| *number == i + 1).map(|(_, value)| *value);
        let sampled = Returns::of(episodes[begun..done].iter().cloned(), discount);
        Round { number: i + 1, episodes: done, sampled, value }
    };
    (0..params.agent_rounds).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell::{ActionObservation, End};

    #[test]
    fn rounds_share_the_episodes_out_and_the_first_has_what_is_left_over() {
        let episode = |reward: f64| Trajectory {
            steps: vec![ActionObservation::new(0, 0)],
            rewards: vec![Some(reward)],
            action_probabilities: vec![],
            end: End::Truncated,
        };
        let episodes: Vec<Trajectory> = [2.0, 2.0, 5.0, 5.0, 5.0, 7.0, 7.0].into_iter().map(episode).collect();
        let params = AgentParams { agent_rounds: 3, episodes: 7, ..AgentParams::default() };
        let told = rounds(&params, &episodes, 1.0, &[(3, 0.5)]);
        let sampled: Vec<(usize, usize, u64, f64)> =
            told.iter().map(|r| (r.number, r.episodes, r.sampled.episodes, r.sampled.mean_return)).collect();
        assert_eq!(sampled, [(1, 3, 3, 3.0), (2, 5, 2, 5.0), (3, 7, 2, 7.0)]);
        assert_eq!(told.iter().map(|r| r.value).collect::<Vec<_>>(), [None, None, Some(0.5)]);
    }
}
