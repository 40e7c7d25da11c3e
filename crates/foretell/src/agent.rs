//! Algorithm 2 of the paper: sample, learn, plan, and again with what was planned.

use serde::{Deserialize, Serialize};

use crate::data::Trajectory;
use crate::domains::{self, Domain};
use crate::error::{Error, Result};
use crate::fitted_q::Round;
use crate::learn::learn;
use crate::log::Logs;
use crate::params::{LearnParams, parameters};
use crate::plan::{Plan, PlanParams, plan};
use crate::policy::{Exploring, Uniform};
use crate::refine::{RefineParams, refine};
use crate::rng::Seed;

/// Who acts while episodes are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Sampling {
    /// Every action alike, in all rounds
    Uniform,
    /// Every action alike in the first round; then the plan so far, but every action alike with probability ε
    EpsilonGreedy,
}

parameters! {
    /// What the agent needs to know.
    AgentParams,
    /// Changes to the defaults: one optional value for each field of [`AgentParams`].
    AgentOverrides, "Agent",
    /// N, rounds of sampling, learning and planning
    agent_rounds: usize,
    /// Episodes sampled in all, shared out among the rounds
    episodes: usize,
    /// Who acts while episodes are sampled
    sampling: Sampling,
    /// ε, the share of actions taken at random once there is a plan
    epsilon: f64,
    /// Whether models are refined into POMDPs before planning
    refine: bool,
}

impl Default for AgentParams {
    fn default() -> Self {
        AgentParams { agent_rounds: 5, episodes: 10_000, sampling: Sampling::EpsilonGreedy, epsilon: 0.3, refine: true }
    }
}

impl AgentParams {
    /// Checks every value once, at the door.
    pub fn validate(&self) -> Result<()> {
        if self.agent_rounds == 0 {
            return Err(Error::parameter("agent_rounds", self.agent_rounds, "must be at least 1"));
        }
        if self.episodes < self.agent_rounds {
            return Err(Error::parameter(
                "episodes",
                self.episodes,
                format!("must be at least {}, one a round", self.agent_rounds),
            ));
        }
        if !(0.0..=1.0).contains(&self.epsilon) {
            return Err(Error::parameter("epsilon", self.epsilon, "must be between 0 and 1"));
        }
        Ok(())
    }
}

/// An agent in a domain: each item of the iterator is a round.
pub struct Agent<'d> {
    domain: &'d Domain,
    params: AgentParams,
    learning: LearnParams,
    planning: PlanParams,
    seed: Seed,
    round: usize,
    episodes: Vec<Trajectory>,
    plan: Option<Plan>,
    /// Who acts instead of what [`AgentParams::sampling`] says.
    guide: Option<Plan>,
}

/// What a round of the agent did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentRound {
    /// From 1.
    pub number: usize,
    /// Episodes sampled so far.
    pub episodes: usize,
    /// The last round of fitted-Q.
    pub fitted: Option<Round>,
}

impl<'d> Agent<'d> {
    /// Before the first round. Models and plans come from all episodes sampled so far.
    pub fn new(
        domain: &'d Domain,
        params: AgentParams,
        learning: LearnParams,
        planning: PlanParams,
        seed: Seed,
    ) -> Result<Agent<'d>> {
        params.validate()?;
        learning.validate()?;
        planning.validate()?;
        Ok(Agent { domain, params, learning, planning, seed, round: 0, episodes: Vec::new(), plan: None, guide: None })
    }

    /// Lets a given policy act while episodes are sampled, in all rounds, but every action alike with probability ε.
    pub fn guided_by(self, policy: Plan) -> Agent<'d> {
        Agent { guide: Some(policy), ..self }
    }

    /// All episodes sampled so far, over the domain's alphabet.
    pub fn episodes(&self) -> &[Trajectory] {
        &self.episodes
    }

    /// The plan of the last round.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    fn sample(&mut self) -> Result<()> {
        let AgentParams { agent_rounds, episodes, sampling, epsilon, .. } = self.params;
        // Rounds get equal shares, the first what is left over.
        let share = episodes / agent_rounds + if self.round == 0 { episodes % agent_rounds } else { 0 };
        let seed = self.seed.stream("agent").index(self.round as u64);
        let (domain, actions) = (self.domain, self.domain.alphabet().actions().len());
        let current = self.plan.as_ref().filter(|_| sampling == Sampling::EpsilonGreedy);
        match self.guide.as_ref().or(current) {
            Some(plan) => {
                let greedy = plan.policies_for(domain.alphabet())?;
                let policy = || Exploring::new(greedy(), epsilon, actions);
                self.episodes.extend(domains::sample_with(domain, policy, share, domain.horizon, seed));
            }
            None => self.episodes.extend(domains::sample_with(domain, || Uniform { actions }, share, domain.horizon, seed)),
        }
        Ok(())
    }

    fn step(&mut self) -> Result<AgentRound> {
        self.sample()?;
        let logs = Logs::memory(self.domain.alphabet().clone(), self.episodes.clone());
        let mut model = learn(&logs, &self.learning)?;
        if self.params.refine {
            model = refine(&model, &logs, &RefineParams::default())?;
        }
        let episodes = logs.open(model.alphabet().clone())?.collect::<Result<Vec<_>>>()?;
        let mut fitted = None;
        self.plan = Some(plan(&model, &episodes, &self.planning, &mut |round| fitted = Some(round))?);
        self.round += 1;
        Ok(AgentRound { number: self.round, episodes: self.episodes.len(), fitted })
    }
}

impl Iterator for Agent<'_> {
    type Item = Result<AgentRound>;

    fn next(&mut self) -> Option<Result<AgentRound>> {
        (self.round < self.params.agent_rounds).then(|| self.step())
    }
}
