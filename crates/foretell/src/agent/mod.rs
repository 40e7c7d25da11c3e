//! Algorithm 2 of the paper: sample, learn and plan, then repeat with the plan as the sampling
//! policy. By default it samples with several policies: plans of different kinds, whose returns show
//! which of them is good, and one that seeks what was rarely tried.

mod contest;
mod saved;

use serde::{Deserialize, Serialize};

use crate::data::Trajectory;
use crate::domains::{self, Domain};
use crate::error::{Error, Result};
use crate::log::Logs;
use crate::model::{LearnParams, Model};
use crate::parameters;
use crate::plan::{Plan, PlanParams, Round, contenders, plan, seeking};
use crate::recipe::Recipe;
use crate::rng::Seed;
use crate::select::SelectParams;
use crate::store::Checkpoint;
use crate::system::{Exploring, Policy, Uniform};
pub use contest::Tried;
use contest::{Contest, Lot};

/// Dimension of the state of an agent's models if they are linear. It is smaller than what is best
/// for predictions, because it plans better.
const RANK: usize = 20;
/// Largest discount used for planning, whatever the domain's.
const LARGEST_DISCOUNT: f64 = 0.99;
/// The episodes sampled after a share x of the rounds are x^GROWTH of all: early rounds are small.
const GROWTH: f64 = 1.5;
/// The bonus of an action that was never tried, in units of the range of rewards.
const BONUS: f64 = 0.3;

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
    /// Uniformly random actions in the first round; then whole episodes of the latest plans, of a
    /// policy that seeks what was rarely tried, and of the best plan so far with random actions. The
    /// plan that earns most is kept
    Committed,
}

impl Sampling {
    /// The same where a given policy samples: plans do not compete then.
    pub fn guided(self) -> Sampling {
        if self == Sampling::Committed { Sampling::EpsilonGreedy } else { self }
    }
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
        AgentParams { agent_rounds: 6, episodes: 10_000, sampling: Sampling::Committed, epsilon: 0.3, refine: true }
    }
}

impl AgentParams {
    /// Algorithm 2 as printed, with linear models: all rounds after the first sample with the latest
    /// plan and random actions.
    pub fn paper() -> Self {
        AgentParams { agent_rounds: 5, sampling: Sampling::EpsilonGreedy, refine: false, ..AgentParams::default() }
    }

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
    /// the first round. With [`Sampling::Committed`] rounds grow, and what [`AgentParams::kept`] is
    /// left for the end.
    pub fn share(&self, round: usize) -> usize {
        let (n, rounds) = (self.episodes, self.agent_rounds);
        match self.sampling {
            Sampling::Uniform | Sampling::EpsilonGreedy => n / rounds + if round == 0 { n % rounds } else { 0 },
            Sampling::Committed => {
                // At least one episode a round.
                let spread = (n - self.kept() - rounds) as f64;
                let until = |round: usize| (spread * (round as f64 / rounds as f64).powf(GROWTH)).round() as usize + round;
                until(round + 1) - until(round)
            }
        }
    }

    /// Number of episodes at the end in which the best plans are compared.
    pub fn kept(&self) -> usize {
        match self.sampling {
            Sampling::Uniform | Sampling::EpsilonGreedy => 0,
            Sampling::Committed if self.agent_rounds == 1 => 0,
            Sampling::Committed => (self.episodes / 10).max((self.episodes / 4).min(100)).min(self.episodes - self.agent_rounds),
        }
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
    /// The plans that compete, with [`Sampling::Committed`].
    contest: Contest,
    /// The policy that seeks what was rarely tried.
    seeking: Option<Plan>,
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
            contest: Contest::default(),
            seeking: None,
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
        let params = AgentParams { sampling: self.params.sampling.guided(), ..self.params };
        Agent { guide: Some(policy), params, ..self }
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

    /// The plan of the last round; with [`Sampling::Committed`] the one that has earned most, once all
    /// rounds are done.
    pub fn plan(&self) -> Option<&Plan> {
        let best = if self.round == self.params.agent_rounds { self.contest.best() } else { None };
        best.map(|best| &best.plan).or(self.plan.as_ref())
    }

    /// What the plans that still compete have earned in the episodes they sampled, the kept one first;
    /// empty unless [`Sampling::Committed`].
    pub fn tried(&self) -> Vec<Tried> {
        self.contest.tried()
    }

    /// Whether plans compete in the episodes that the agent samples.
    fn is_committed(&self) -> bool {
        self.params.sampling == Sampling::Committed
    }

    fn sample(&mut self) -> Result<()> {
        let share = self.params.share(self.round);
        let seed = self.seed.stream("agent").index(self.round as u64);
        if self.is_committed() && self.round > 0 {
            let lots = self.contest.lots(share, self.round, self.seeking.is_some());
            return self.sample_lots(&lots, seed);
        }
        let current = self.plan.as_ref().filter(|_| self.params.sampling != Sampling::Uniform);
        let sampled = self.episodes_of(self.guide.as_ref().or(current), self.params.epsilon, share, seed)?;
        self.episodes.extend(sampled);
        Ok(())
    }

    /// Episodes of a plan with a random action with probability ε; of random actions without a plan.
    fn episodes_of(&self, plan: Option<&Plan>, epsilon: f64, count: usize, seed: Seed) -> Result<Vec<Trajectory>> {
        let (domain, actions) = (self.domain, self.domain.alphabet().actions().len());
        let Some(plan) = plan else {
            return Ok(domains::sample_with(domain, || Uniform { actions }, count, domain.horizon, seed).collect());
        };
        let greedy = plan.policies_for(domain.alphabet())?;
        let policy = || -> Box<dyn Policy> {
            if epsilon > 0.0 { Box::new(Exploring::new(greedy(), epsilon, actions)) } else { Box::new(greedy()) }
        };
        Ok(domains::sample_with(domain, policy, count, domain.horizon, seed).collect())
    }

    /// Samples lots of episodes, each by one policy. Those of plans that compete count for them.
    fn sample_lots(&mut self, lots: &[(Lot, usize)], seed: Seed) -> Result<()> {
        for (i, &(lot, count)) in lots.iter().enumerate() {
            let (plan, epsilon) = match lot {
                Lot::Contender(i) => (self.contest.plan(i), 0.0),
                Lot::Seeking => (self.seeking.as_ref(), 0.0),
                // Where nothing was earned or lost yet, no plan knows what to do.
                Lot::Random if range_of_rewards(&self.episodes) == 0.0 => (None, 0.0),
                Lot::Random => (self.contest.best().map(|best| &best.plan).or(self.plan.as_ref()), self.params.epsilon),
            };
            let sampled = self.episodes_of(plan, epsilon, count, seed.index(i as u64))?;
            if let Lot::Contender(i) = lot {
                self.contest.count(i, &sampled, self.domain.discount);
            }
            self.episodes.extend(sampled);
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
        // Planning from it failed before, if there is none.
        let gone = || Error::data("the agent has stopped at an error", "begin again");
        let model = self.model.take().ok_or_else(gone)?;
        let (mut fitted, logs) = (None, self.logs());
        let mut report = |round| fitted = Some(round);
        if self.is_committed() {
            let plans = contenders(&model, &logs.episodes_for(model.alphabet(), "model")?, &self.planning, &mut report)?;
            // Where nothing was earned or lost yet, the unknown is sought for its own sake.
            let range = Some(range_of_rewards(&self.episodes)).filter(|range| *range > 0.0).unwrap_or(1.0);
            self.seeking = seeking(&model, &self.planning, BONUS * range)?;
            self.plan = plans.first().cloned();
            self.contest.enter(plans, self.round + 1);
            if self.round + 1 == self.params.agent_rounds {
                self.compare_at_the_end()?;
            }
        } else {
            self.plan = Some(plan(&model, &logs, &self.planning, &mut report)?);
        }
        self.promised.push(fitted.map(|round| round.start_value).filter(|value| value.is_finite()));
        self.round += 1;
        self.reach(Stage::Begun)?;
        Ok(AgentRound { number: self.round, episodes: self.episodes.len(), fitted })
    }

    /// Tests the plans that are left, in the episodes kept for that: all of them in the first half,
    /// and the best two in the second.
    fn compare_at_the_end(&mut self) -> Result<()> {
        let (all, seed) = (self.params.kept(), self.seed.stream("agent").stream("end"));
        let lots = self.contest.all(all / 2);
        self.sample_lots(&lots, seed.index(0))?;
        let lots = self.contest.two_best(all - all / 2);
        self.sample_lots(&lots, seed.index(1))
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

/// The largest reward minus the smallest.
fn range_of_rewards(episodes: &[Trajectory]) -> f64 {
    let rewards = || episodes.iter().flat_map(|z| z.rewards.iter().flatten().copied());
    let range = rewards().fold(f64::NEG_INFINITY, f64::max) - rewards().fold(f64::INFINITY, f64::min);
    if range.is_finite() { range.max(0.0) } else { 0.0 }
}
