//! Gathers the contents of a page with the library.

use foretell::judge::{Test, Tested};
use foretell::{Domain, Model, OffPolicy, Plan, Seed, Target, TargetPolicy, Trajectory, ValueParams, score};

use super::{Earned, Episodes, Estimates, Foresight, HeldOut, Options, Part, Subject, along, played};
use crate::cmd::agent::OWN;
use crate::game::Game;
use crate::report::plural;
use crate::run::Run;
use crate::show::Show;

/// Bootstrap samples of the logs for the interval of an estimate.
const REPLICATES: usize = 20;

impl Subject {
    /// How well its model predicts the logs.
    pub(super) fn foresight(&self, options: &Options) -> anyhow::Result<Option<Part<Foresight>>> {
        let Some(model) = self.model() else { return Ok(None) };
        let Some(logs) = &options.logs else { return Ok(Some(Part::needs_logs("Prediction quality"))) };
        let score = score(model, &logs.opened.logs, options.pomdp()).map_err(|e| logs.opened.blame(e))?;
        Ok(Some(Part::Here(Foresight::of(&score))))
    }

    /// Its returns and those of others: from the run, or from tests now.
    pub(super) fn earned(&self, options: &Options) -> anyhow::Result<Option<Part<Earned>>> {
        if let Some(run) = self.run.as_ref().filter(|_| options.domain.is_none()) {
            let story = self.own_domain().map(|domain| domain.story).unwrap_or_default();
            return Ok(Some(Part::Here(earned_in(run, story))));
        }
        let Some(plan) = &self.plan else { return Ok(None) };
        let Some(domain) = &options.domain else {
            return Ok(Some(Part::Missing("Returns: give --domain DOMAIN, if the policy was made for a domain.".into())));
        };
        let (episodes, max_steps, discount) = (options.test_episodes, domain.horizon, domain.discount);
        let test = Test { domain, episodes: episodes as usize, max_steps, discount, seed: Seed(options.seed) };
        let learned = |logs: &HeldOut| -> anyhow::Result<(Vec<Tested>, String)> {
            let episodes = logs.first_episodes(domain.alphabet().clone())?;
            let others = format!(
                "Baselines without a model were learned from the first {} of the logs.",
                plural(episodes.len() as u64, "episode")
            );
            Ok((test.baselines(&episodes, plan.params().discount)?, others))
        };
        let (mut policies, others) = match options.logs.as_ref().map(learned) {
            Some(Ok(learned)) => learned,
            Some(Err(e)) => (test.unlearned(), format!("Baselines could not be learned from the logs: {e:#}.")),
            None => {
                (test.unlearned(), "With --logs LOGS, baselines without a model are learned from them and shown as well.".into())
            }
        };
        policies.push(Tested { policy: OWN.into(), returns: test.returns(plan.policies_for(domain.alphabet())?) });
        let informed = test.informed();
        let bound = informed.as_ref().map(|(_, bound)| *bound);
        policies.extend(informed.map(|(tested, _)| tested));
        let (name, story, own) = (domain.name.clone(), domain.story.clone(), OWN.into());
        Ok(Some(Part::Here(Earned { domain: name, story, episodes, max_steps, discount, policies, others, own, bound })))
    }

    /// The return of the policy, estimated from logs, if possible.
    pub(super) fn estimates(&self, options: &Options) -> anyhow::Result<Option<Part<Estimates>>> {
        let Some(plan) = &self.plan else { return Ok(None) };
        let Some(logs) = &options.logs else { return Ok(Some(Part::needs_logs("Estimated return"))) };
        let episodes = logs.first_episodes(plan.alphabet().clone())?;
        let actions = plan.alphabet().actions().len();
        if episodes.iter().flat_map(|z| &z.steps).any(|ao| ao.action.index() >= actions) {
            let problem = "The return cannot be estimated from the logs: they have actions that the policy does not know.";
            return Ok(Some(Part::Missing(problem.into())));
        }
        let (discount, first) = (plan.params().discount, plan.first_action());
        let value = ValueParams { discount, replicates: REPLICATES, seed: Seed(options.seed), first, ..ValueParams::default() };
        let test = OffPolicy { value, rollouts: options.test_episodes as usize, ..OffPolicy::default() };
        let target = Target { policy: TargetPolicy::Plan(plan), epsilon: 0.0 };
        Ok(Some(match test.evaluate(&target, plan.alphabet(), &episodes) {
            Ok(value) => Part::Here(Estimates::of(value)),
            Err(e) => Part::Missing(format!("The return cannot be estimated from the logs: {e}.")),
        }))
    }

    /// Episodes step by step: played by the policy, or the first of the logs.
    pub(super) fn episodes(&self, options: &Options) -> anyhow::Result<Option<Part<Episodes>>> {
        let own = self.own_domain();
        if let (Some(domain), Some(plan)) = (options.domain.as_ref().or(own.as_ref()), &self.plan) {
            return Ok(Some(Part::Here(shown_in(domain, plan, options)?)));
        }
        let (plan, model) = (self.plan.as_ref(), self.model());
        let Some(alphabet) = plan.map(Plan::alphabet).or(model.map(Model::alphabet)) else {
            let how = "Episodes step by step: save the policy of the agent with `foretell agent -o POLICY --json`.";
            return Ok(Some(Part::Missing(how.into())));
        };
        let Some(logs) = &options.logs else {
            let how = if plan.is_some() { "--domain DOMAIN, or --logs LOGS" } else { "--logs LOGS" };
            return Ok(Some(Part::Missing(format!("Episodes step by step: give {how}."))));
        };
        let mut reader = logs.opened.logs.open(alphabet.clone())?;
        let first = reader.by_ref().take(options.episodes).collect::<Result<Vec<Trajectory>, _>>();
        let first = first.map_err(|e| logs.opened.blame(e))?;
        let list = first.iter().map(|z| along(z, reader.alphabet(), model, plan, options.pomdp())).collect();
        let source = format!("The first {} of the logs.", plural(first.len() as u64, "episode"));
        Ok(Some(Part::Here(Episodes { source, acted: false, actions: alphabet.actions().to_vec(), list })))
    }
}

/// The returns that a run reports.
fn earned_in(run: &Run, story: String) -> Earned {
    Earned {
        domain: run.domain.clone(),
        story,
        episodes: run.test.episodes,
        max_steps: run.test.max_steps,
        discount: run.test.discount,
        policies: run.policies.clone(),
        others: String::new(),
        own: OWN.into(),
        bound: run.discounted_bound,
    }
}

/// A policy in action, in the same episodes as in `evaluate`.
fn shown_in(domain: &Domain, plan: &Plan, options: &Options) -> anyhow::Result<Episodes> {
    let mut show = Show::new(Game::new(domain, domain.horizon, Seed(options.seed)), plan)?;
    let mut list = Vec::new();
    for episode in 0..options.episodes {
        if episode > 0 {
            show.restart();
        }
        list.push(played(&mut show));
    }
    let first = plural(options.episodes as u64, "episode");
    let source = format!("The policy acts in {}: the first {first} with seed {}.", domain.name, options.seed);
    Ok(Episodes { source, acted: true, actions: domain.alphabet().actions().to_vec(), list })
}
