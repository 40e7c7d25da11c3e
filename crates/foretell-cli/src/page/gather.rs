//! What a page tells, found with the library.

use foretell::judge::{Test, Tested};
use foretell::{Domain, LogTest, Model, Plan, Seed, Trajectory, score};

use super::{Earned, Episodes, Estimates, Foresight, Heard, Part, Subject, Wishes, along, played};
use crate::cmd::agent::OWN;
use crate::game::Game;
use crate::report::plural;
use crate::run::Run;
use crate::show::Show;

/// Samples of the logs for the interval of an estimate.
const REPLICATES: usize = 20;

impl Subject {
    /// How well its model foretells the logs.
    pub(super) fn foresight(&self, wishes: &Wishes) -> anyhow::Result<Option<Part<Foresight>>> {
        let Some(model) = self.model() else { return Ok(None) };
        let Some(heard) = &wishes.logs else { return Ok(Some(Part::needs_logs("How well it foretells"))) };
        let score = score(model, &heard.opened.logs, wishes.pomdp()).map_err(|e| heard.opened.blame(e))?;
        Ok(Some(Part::Here(Foresight::of(&score))))
    }

    /// What it earns beside others: as the run has it, or tested now.
    pub(super) fn earned(&self, wishes: &Wishes) -> anyhow::Result<Option<Part<Earned>>> {
        if let Some(run) = self.run.as_ref().filter(|_| wishes.domain.is_none()) {
            let story = self.own_domain().map(|domain| domain.story).unwrap_or_default();
            return Ok(Some(Part::Here(told_by(run, story))));
        }
        let Some(plan) = &self.plan else { return Ok(None) };
        let Some(domain) = &wishes.domain else {
            return Ok(Some(Part::Missing("What it earns: give --domain DOMAIN, if it was made for one.".into())));
        };
        let (episodes, max_steps, discount) = (wishes.test_episodes, domain.horizon, domain.discount);
        let test = Test { domain, episodes: episodes as usize, max_steps, discount, seed: Seed(wishes.seed) };
        let learned = |heard: &Heard| -> anyhow::Result<(Vec<Tested>, String)> {
            let held = heard.held(domain.alphabet().clone())?;
            let others =
                format!("Those without a model learned from the first {} of the logs.", plural(held.len() as u64, "episode"));
            Ok((test.baselines(&held, plan.params().discount)?, others))
        };
        let (mut policies, others) = match wishes.logs.as_ref().map(learned) {
            Some(Ok(learned)) => learned,
            Some(Err(e)) => (test.unlearned(), format!("Others could not learn from the logs: {e:#}.")),
            None => (test.unlearned(), "With --logs LOGS there are others that learn from them without a model.".into()),
        };
        policies.push(Tested { policy: OWN.into(), returns: test.returns(plan.policies_for(domain.alphabet())?) });
        let informed = test.informed();
        let bound = informed.as_ref().map(|(_, bound)| *bound);
        policies.extend(informed.map(|(tested, _)| tested));
        let (name, story, own) = (domain.name.clone(), domain.story.clone(), OWN.into());
        Ok(Some(Part::Here(Earned { domain: name, story, episodes, max_steps, discount, policies, others, own, bound })))
    }

    /// What logs say the policy would earn, where they can.
    pub(super) fn estimates(&self, wishes: &Wishes) -> anyhow::Result<Option<Part<Estimates>>> {
        let Some(plan) = &self.plan else { return Ok(None) };
        let Some(heard) = &wishes.logs else { return Ok(Some(Part::needs_logs("What logs say it would earn"))) };
        let episodes = heard.held(plan.alphabet().clone())?;
        let actions = plan.alphabet().actions().len();
        if episodes.iter().flat_map(|z| &z.steps).any(|ao| ao.action.index() >= actions) {
            let problem = "What logs say it would earn cannot be told: they have actions that the policy does not know.";
            return Ok(Some(Part::Missing(problem.into())));
        }
        let max_steps = episodes.iter().map(|z| z.steps.len()).max().unwrap_or(0);
        let (discount, rollouts) = (plan.params().discount, wishes.test_episodes as usize);
        let test = LogTest { max_steps, discount, rollouts, replicates: REPLICATES, seed: Seed(wishes.seed), first: None };
        Ok(Some(match test.evaluate(plan, &episodes) {
            Ok(value) => Part::Here(Estimates::of(&value, episodes.len(), max_steps, discount)),
            Err(e) => Part::Missing(format!("What logs say it would earn cannot be told: {e}.")),
        }))
    }

    /// Episodes step by step: played by the policy, or the first of the logs.
    pub(super) fn episodes(&self, wishes: &Wishes) -> anyhow::Result<Option<Part<Episodes>>> {
        let own = self.own_domain();
        if let (Some(domain), Some(plan)) = (wishes.domain.as_ref().or(own.as_ref()), &self.plan) {
            return Ok(Some(Part::Here(shown_in(domain, plan, wishes)?)));
        }
        let (plan, model) = (self.plan.as_ref(), self.model());
        let Some(alphabet) = plan.map(Plan::alphabet).or(model.map(Model::alphabet)) else {
            let how = "What the agent does, step by step: let it keep its policy, with `foretell agent -o POLICY --json`.";
            return Ok(Some(Part::Missing(how.into())));
        };
        let Some(heard) = &wishes.logs else {
            let how = if plan.is_some() { "--domain DOMAIN, or --logs LOGS" } else { "--logs LOGS" };
            return Ok(Some(Part::Missing(format!("What happens, step by step: give {how}."))));
        };
        let mut reader = heard.opened.logs.open(alphabet.clone())?;
        let first = reader.by_ref().take(wishes.episodes).collect::<Result<Vec<Trajectory>, _>>();
        let first = first.map_err(|e| heard.opened.blame(e))?;
        let list = first.iter().map(|z| along(z, reader.alphabet(), model, plan, wishes.pomdp())).collect();
        let source = format!("The first {} of the logs.", plural(first.len() as u64, "episode"));
        Ok(Some(Part::Here(Episodes { source, acted: false, actions: alphabet.actions().to_vec(), list })))
    }
}

/// What a run found its policies to earn.
fn told_by(run: &Run, story: String) -> Earned {
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

/// A policy at work, in the episodes in which `evaluate` tests it.
fn shown_in(domain: &Domain, plan: &Plan, wishes: &Wishes) -> anyhow::Result<Episodes> {
    let mut show = Show::new(Game::new(domain, domain.horizon, Seed(wishes.seed)), plan)?;
    let mut list = Vec::new();
    for episode in 0..wishes.episodes {
        if episode > 0 {
            show.restart();
        }
        list.push(played(&mut show));
    }
    let first = plural(wishes.episodes as u64, "episode");
    let source = format!("The policy acts in {}: the first {first} with seed {}.", domain.name, wishes.seed);
    Ok(Episodes { source, acted: true, actions: domain.alphabet().actions().to_vec(), list })
}
