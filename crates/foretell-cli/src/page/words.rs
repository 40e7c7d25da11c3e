//! What the page says in words: what something is, what to know first, where it comes from.

use std::path::Path;

use foretell::plan::{Planner, Regressor, StateKind};
use foretell::{Model, Plan, Stamp};

use super::{Data, Earned, Estimates, Foresight, Last, Subject, Wishes};
use crate::report::{count, plural};

impl Subject {
    /// What it is.
    pub(super) fn about(&self) -> Vec<String> {
        let mut about = Vec::new();
        if let Some(run) = &self.run {
            let episodes = run.rounds.last().map_or(0, |round| round.episodes as u64);
            about.push(format!(
                "An agent that began with nothing in {}: {} of sampling, learning and planning, {} in all.",
                run.domain,
                plural(run.rounds.len() as u64, "round"),
                plural(episodes, "episode"),
            ));
        }
        if let Some(plan) = &self.plan {
            let actions = plural(plan.alphabet().actions().len() as u64, "action");
            about.push(format!("A policy: it decides which of {actions} to take. {}", decides(plan)));
        }
        if let Some(model) = self.model() {
            let its = if self.plan.is_some() { "Its model tells" } else { "A predictive model: it tells" };
            let (alphabet, (episodes, _)) = (model.alphabet(), model.trained_on());
            about.push(format!(
                "{its} how likely each of {} is, if one of {} is taken, given all that happened before. It was learned from {}, \
                 without being told how the system works.",
                plural(alphabet.observations().len() as u64, "observation"),
                plural(alphabet.actions().len() as u64, "action"),
                plural(episodes, "logged episode"),
            ));
            let others = model.ensemble().map_or(0, |ensemble| ensemble.members.len()) as u64;
            if others > 0 {
                about.push(format!("It is an ensemble: predictions are means of {}.", plural(others + 1, "model")));
            }
        }
        about
    }

    /// What should be known before all else.
    pub(super) fn warnings(
        &self,
        earned: Option<&Earned>,
        estimates: Option<&Estimates>,
        foresight: Option<&Foresight>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(better) = earned.and_then(Earned::better) {
            warnings.push(format!("A simpler policy earned more than this one: {}.", better.policy));
        }
        if estimates.is_some_and(|estimates| estimates.agree == Some(false)) {
            warnings.push("The two estimates of what the policy would earn disagree, so trust neither.".into());
        }
        if let Some(Last { model, best_ngram: Some((name, best)), .. }) = foresight.and_then(Foresight::last)
            && best > model.log_likelihood
        {
            warnings.push(format!("A baseline foretells better than the model: {name}, at horizon {}.", model.horizon));
        }
        if let Some(foresight) = foresight.filter(|foresight| foresight.unseen > 0) {
            let steps = plural(foresight.unseen, "step");
            warnings.push(format!("{steps} of the logs had an action or observation never met in training."));
        }
        if self.model().and_then(Model::latent).is_some_and(|refined| refined.forgets_rewards()) {
            warnings.push("Rewards depend on what the hidden states do not know: plans by fitted-Q are safer here.".into());
        }
        warnings
    }

    /// Where everything comes from.
    pub(super) fn provenance(&self, wishes: &Wishes, data: Option<&Data>) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut say = |name: &str, value: String| rows.push((name.to_string(), value));
        say("file", format!("{} (digest {})", shown(&self.name), self.digest));
        if let Some(Stamp { kind, format_version, library_version }) = &self.stamp {
            say("written by", format!("foretell {library_version}, {kind} format {format_version}"));
        }
        if let Some(run) = &self.run {
            say("run", format!("foretell {}, seed {}, in {}, {:.1} s", run.version, run.seed, run.domain, run.seconds));
            if let Some(policy) = &run.policy {
                say("its policy", format!("{} (digest {})", shown(&policy.file), policy.digest));
            }
        }
        if let Some(model) = self.model() {
            let ((episodes, steps), seed) = (model.trained_on(), model.params().seed);
            let skipped =
                if model.origin().skipped > 0 { format!(", {} skipped", count(model.origin().skipped)) } else { String::new() };
            say("learned from", format!("{}, {}{skipped}, seed {seed}", plural(episodes, "episode"), plural(steps, "step")));
            if let Some(refined) = model.latent() {
                say("refined to", format!("a POMDP of {}", plural(refined.pomdp.states().len() as u64, "state")));
            }
        }
        if let Some(plan) = &self.plan {
            say("planned with", format!("seed {}, discount {}", plan.params().seed, plan.params().discount));
        }
        for log in data.into_iter().flat_map(|data| &data.files) {
            say("held-out logs", format!("{}, {} bytes (digest {})", log.name, count(log.bytes), log.digest));
        }
        if let Some(truth) = &wishes.truth {
            say("exact model", truth.name.clone());
        }
        if let Some(domain) = &wishes.domain {
            let tests = plural(wishes.test_episodes, "test episode");
            say("acts in", format!("{}, seed {}, {tests}", domain.name, wishes.seed));
        }
        say("this page", format!("foretell {}", env!("CARGO_PKG_VERSION")));
        rows
    }
}

/// A file as the user named it; of an absolute path the last part, since pages go to other people.
pub(super) fn shown(name: &str) -> String {
    let path = Path::new(name);
    let last = path.file_name().filter(|_| path.is_absolute());
    last.map_or_else(|| name.to_string(), |last| last.to_string_lossy().into_owned())
}

/// Who decides.
fn decides(plan: &Plan) -> String {
    let params = plan.params();
    let knows = match params.state {
        StateKind::Predictive => "what its model expects".into(),
        StateKind::Memory => "what its model expects and the last observation".into(),
        StateKind::Last => format!("the last {} alone", plural(params.last as u64, "observation")),
    };
    let steps = plural(params.window as u64, "step");
    let who = match (params.planner, params.regressor) {
        (Planner::Qmdp, _) => "QMDP in the POMDP that its model was refined to".into(),
        (Planner::FastInformed, _) => "the fast informed bound in the POMDP that its model was refined to".into(),
        (Planner::PointBased, _) => "point-based value iteration in the POMDP that its model was refined to".into(),
        (_, Regressor::Table) => format!("a table over the last {steps} and the time, by fitted-Q"),
        (_, Regressor::Mean) => format!("the mean of trees over {knows} and of a table over the last {steps}, by fitted-Q"),
        (_, Regressor::Trees | Regressor::Auto) => format!("trees over {knows}, by fitted-Q"),
    };
    format!("What decides is {who}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_tell_no_absolute_paths() {
        assert_eq!(shown("runs/model.safetensors"), "runs/model.safetensors");
        assert_eq!(shown("/runs/model.safetensors"), "model.safetensors");
        assert_eq!(shown("standard input"), "standard input");
    }
}
