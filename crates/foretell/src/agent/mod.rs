//! Algorithm 2 of the paper: sample, learn and plan, then repeat with the plan as the sampling
//! policy.

mod saved;

use serde::{Deserialize, Serialize};

use crate::data::Trajectory;
use crate::domains::{self, Domain};
use crate::error::{Error, Result};
use crate::log::Logs;
use crate::model::{LearnParams, Model};
use crate::parameters;
use crate::plan::{Plan, PlanParams, Round, plan};
use crate::recipe::Recipe;
use crate::rng::Seed;
use crate::select::SelectParams;
use crate::store::Checkpoint;
use crate::system::{Exploring, Uniform};

/// Dimension of the state of an agent's models if they are linear. It is smaller than what is best
/// for predictions, because it plans better.
const RANK: usize = 20;
/// Largest discount used for planning, whatever the domain's.
const LARGEST_DISCOUNT: f64 = 0.99;

/// The default parameters of an agent's models.
pub fn learning() -> LearnParams {
    LearnParams { rank: RANK, ..LearnParams::default() }
}

/// The discount of planning, given that of returns.
pub fn planning_discount(discount: f64) -> f64 {
    discount.min(LARGEST_DISCOUNT)
}

/// Which policy acts while episodes are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Sampling {
    /// Uniformly random actions in all rounds
    Uniform,
    /// Uniformly random actions in the first round; then the latest plan, with a uniformly random
    /// action with probability ε
    EpsilonGreedy,
}

parameters! {
    /// Parameters of the agent.
    AgentParams,
    /// Changes to the defaults: one optional value for each field of [`AgentParams`].
    AgentOverrides, "Agent",
    /// N, rounds of sampling, learning and planning
    agent_rounds: usize,
    /// Total number of episodes to sample, divided among the rounds
    episodes: usize,
    /// Which policy acts while episodes are sampled
    sampling: Sampling,
    /// ε, the probability of a random action once there is a plan
    epsilon: f64,
    /// Whether predictors are selected as in learning from logs, with POMDPs among them; otherwise
    /// models are linear
    refine: bool,
}

impl Default for AgentParams {
    fn default() -> Self {
        AgentParams { agent_rounds: 5, episodes: 10_000, sampling: Sampling::EpsilonGreedy, epsilon: 0.3, refine: true }
    }
}

impl AgentParams {
    /// Checks every value.
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

    /// Number of episodes that a round, counted from 0, samples: equal shares, and the remainder in
    /// the first round.
    pub fn share(&self, round: usize) -> usize {
        self.episodes / self.agent_rounds + if round == 0 { self.episodes % self.agent_rounds } else { 0 }
    }
}

/// An agent in a domain: each item of the iterator is a round.
pub struct Agent<'d> {
    domain: &'d Domain,
    params: AgentParams,
    learning: LearnParams,
    select: SelectParams,
    planning: PlanParams,
    seed: Seed,
    /// Rounds done, and the stage of the next one.
    round: usize,
    stage: Stage,
    episodes: Vec<Trajectory>,
    /// The value of each round's plan by its own estimate.
    promised: Vec<Option<f64>>,
    /// Those of this round, once there are any.
    model: Option<Model>,
    plan: Option<Plan>,
    checkpoint: Option<&'d mut Checkpoint>,
    /// The policy that samples in place of [`AgentParams::sampling`].
    guide: Option<Plan>,
}

/// The stage of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Stage {
    Begun,
    Sampled,
    Fitted,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentRound {
    /// Its number, from 1.
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
        Ok(Agent {
            domain,
            params,
            learning,
            select: SelectParams::default(),
            planning,
            seed,
            round: 0,
            stage: Stage::Begun,
            episodes: Vec::new(),
            promised: Vec::new(),
            model: None,
            plan: None,
            checkpoint: None,
            guide: None,
        })
    }

    /// Selects predictors in this way.
    pub fn selecting(self, select: SelectParams) -> Agent<'d> {
        Agent { select, ..self }
    }

    /// Resumes from a checkpoint, and saves to it after sampling, learning and planning.
    pub fn checkpointed(mut self, checkpoint: &'d mut Checkpoint) -> Result<Agent<'d>> {
        if let Some(bytes) = checkpoint.load(saved::PART)? {
            self.restore(&bytes, &checkpoint.path(saved::PART).display().to_string())?;
        }
        self.checkpoint = Some(checkpoint);
        Ok(self)
    }

    /// Samples episodes with a given policy in all rounds, with a uniformly random action with
    /// probability ε.
    pub fn guided_by(self, policy: Plan) -> Agent<'d> {
        Agent { guide: Some(policy), ..self }
    }

    /// All episodes sampled so far, over the domain's alphabet.
    pub fn episodes(&self) -> &[Trajectory] {
        &self.episodes
    }

    /// Rounds done so far.
    pub fn rounds(&self) -> usize {
        self.round
    }

    /// The value at the start of the plan of each round so far, by its own estimate.
    pub fn promised(&self) -> &[Option<f64>] {
        &self.promised
    }

    /// The plan of the last round.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    fn sample(&mut self) -> Result<()> {
        let AgentParams { sampling, epsilon, .. } = self.params;
        let share = self.params.share(self.round);
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

    /// Runs the next stage; a round is done once there is a plan.
    fn advance(&mut self) -> Result<Option<AgentRound>> {
        match self.stage {
            Stage::Begun => {
                self.sample()?;
                self.reach(Stage::Sampled)?;
            }
            Stage::Sampled => self.fit()?,
            Stage::Fitted => return self.make_plan().map(Some),
        }
        Ok(None)
    }

    fn logs(&self) -> Logs {
        Logs::memory(self.domain.alphabet().clone(), self.episodes.clone())
    }

    fn fit(&mut self) -> Result<()> {
        let select = self.params.refine.then(|| SelectParams { for_planning: true, ..self.select.clone() });
        let recipe = Recipe { learn: self.learning.clone(), select, ..Recipe::default() };
        self.model = Some(recipe.fit(&self.logs())?.model);
        self.reach(Stage::Fitted)
    }

    fn make_plan(&mut self) -> Result<AgentRound> {
        let model = self.model.as_ref().expect("a model was learned");
        let mut fitted = None;
        self.plan = Some(plan(model, &self.logs(), &self.planning, &mut |round| fitted = Some(round))?);
        self.promised.push(fitted.map(|round| round.start_value).filter(|value| value.is_finite()));
        self.model = None;
        self.round += 1;
        self.reach(Stage::Begun)?;
        Ok(AgentRound { number: self.round, episodes: self.episodes.len(), fitted })
    }

    /// Saves the agent after every stage, because each takes long.
    fn reach(&mut self, stage: Stage) -> Result<()> {
        self.stage = stage;
        let bytes = self.checkpoint.is_some().then(|| self.to_bytes());
        self.checkpoint.iter_mut().zip(bytes).try_for_each(|(checkpoint, bytes)| checkpoint.save(saved::PART, &bytes))
    }
}

impl Iterator for Agent<'_> {
    type Item = Result<AgentRound>;

    fn next(&mut self) -> Option<Result<AgentRound>> {
        if self.round == self.params.agent_rounds {
            return None;
        }
        loop {
            if let Some(round) = self.advance().transpose() {
                return Some(round);
            }
        }
    }
}
