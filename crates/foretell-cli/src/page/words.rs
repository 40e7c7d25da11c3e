//! Text of the page: description, warnings and provenance.

use std::path::Path;

use foretell::judge::Comparison;
use foretell::plan::{Planner, Regressor, StateKind};
use foretell::{Model, Plan, Stamp};

use super::{Data, Earned, Estimates, Foresight, Options, Subject};
use crate::report::{count, plural};

impl Subject {
    /// The description.
    pub(super) fn about(&self) -> Vec<String> {
        let mut about = Vec::new();
        if let Some(run) = &self.run {
            let episodes = run.rounds.last().map_or(0, |round| round.episodes as u64);
            about.push(format!(
                "An agent that started without data in {}: {} of sampling, learning and planning, {} in total.",
                run.domain,
                plural(run.rounds.len() as u64, "round"),
                plural(episodes, "episode"),
            ));
        }
        if let Some(plan) = &self.plan {
            let actions = plural(plan.alphabet().actions().len() as u64, "action");
            about.push(format!("A policy: it chooses among {actions}. {}", decides(plan)));
        }
        if let Some(model) = self.model() {
            let its = if self.plan.is_some() { "Its model predicts" } else { "A predictive model: it predicts" };
            let (alphabet, (episodes, _)) = (model.alphabet(), model.trained_on());
            about.push(format!(
                "{its} the probability of each of {} after any of {}, given the episode so far. It was learned from {}, \
                 without knowledge of the system.",
                plural(alphabet.observations().len() as u64, "observation"),
                plural(alphabet.actions().len() as u64, "action"),
                plural(episodes, "logged episode"),
            ));
            let others = model.ensemble().map_or(0, |ensemble| ensemble.members.len()) as u64;
            if others > 0 {
                about.push(format!("It is an ensemble: predictions are averages over {}.", plural(others + 1, "model")));
            }
        }
        about
    }

    /// Problems that readers should know first.
    pub(super) fn warnings(
        &self,
        earned: Option<&Earned>,
        estimates: Option<&Estimates>,
        foresight: Option<&Foresight>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let known =
            estimates.and_then(|estimates| estimates.value.learned_from.filter(|_| estimates.value.cross_fitted.is_none()));
        let known = known.or_else(|| foresight.and_then(|foresight| foresight.learned_from));
        warnings.extend(known.and_then(|known| known.warning()).map(|warning| format!("{warning}.")));
        if let Some(better) = earned.and_then(Earned::better) {
            warnings.push(format!("A simpler policy earned more than this one: {}.", better.policy));
        }
        if estimates.is_some_and(|estimates| estimates.value.agree == Some(false)) {
            warnings.push("Estimates of the return of the policy from logs disagree: fitted-Q or the model err.".into());
        }
        if let Some(Comparison { name, difference, ci95: Some(ci95), .. }) = foresight.and_then(|f| f.better.as_ref()) {
            let by = format!("{:.4} ± {ci95:.4} nats per step", -difference);
            warnings.push(format!("A baseline predicts better than the model: {name}, by {by}."));
        }
        if let Some(foresight) = foresight.filter(|foresight| foresight.unseen > 0) {
            let steps = plural(foresight.unseen, "step");
            warnings.push(format!("{steps} of the logs had an action or observation that was not seen in training."));
        }
        if self.model().and_then(Model::latent).is_some_and(|refined| refined.forgets_rewards()) {
            warnings.push("Rewards depend on more than the hidden states, so plans by fitted-Q are more reliable here.".into());
        }
        warnings
    }

    /// Provenance of the subject and of all inputs.
    pub(super) fn provenance(&self, options: &Options, data: Option<&Data>) -> Vec<(String, String)> {
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
                say("refined to", format!("a POMDP with {}", plural(refined.pomdp.states().len() as u64, "state")));
            }
        }
        if let Some(plan) = &self.plan {
            say("planned with", format!("seed {}, discount {}", plan.params().seed, plan.params().discount));
        }
        for log in data.into_iter().flat_map(|data| &data.files) {
            say("held-out logs", format!("{}, {} bytes (digest {})", log.name, count(log.bytes), log.digest));
        }
        if let Some(truth) = &options.truth {
            say("exact model", truth.name.clone());
        }
        if let Some(domain) = &options.domain {
            let tests = plural(options.test_episodes, "test episode");
            say("acts in", format!("{}, seed {}, {tests}", domain.name, options.seed));
        }
        say("this page", format!("foretell {}", env!("CARGO_PKG_VERSION")));
        rows
    }
}

/// A file as the user named it; only the last part of an absolute path, since pages are shared.
pub(super) fn shown(name: &str) -> String {
    let path = Path::new(name);
    let last = path.file_name().filter(|_| path.is_absolute());
    last.map_or_else(|| name.to_string(), |last| last.to_string_lossy().into_owned())
}

/// How the policy chooses actions.
fn decides(plan: &Plan) -> String {
    let params = plan.params();
    let inputs = match params.state {
        StateKind::Predictive => "the predictive state of its model".into(),
        StateKind::Memory => "the predictive state of its model and the last observation".into(),
        StateKind::Last => format!("the last {} only", plural(params.last as u64, "observation")),
    };
    let steps = plural(params.window as u64, "step");
    let method = match (params.planner, params.regressor) {
        (Planner::Qmdp, _) => "QMDP in the POMDP of its refined model".into(),
        (Planner::FastInformed, _) => "the fast informed bound in the POMDP of its refined model".into(),
        (Planner::PointBased, _) => "point-based value iteration in the POMDP of its refined model".into(),
        (_, Regressor::Table) => format!("fitted-Q with a table over the last {steps} and the time step"),
        (_, Regressor::Changes) => {
            let changes = plural(params.window as u64 + 1, "observation");
            format!("fitted-Q with a table over the last {changes} that differed from the one before")
        }
        (_, Regressor::Mean) => format!("fitted-Q with the mean of trees over {inputs} and of a table over the last {steps}"),
        (_, Regressor::Trees | Regressor::Auto) => format!("fitted-Q with trees over {inputs}"),
    };
    format!("It was planned by {method}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_contain_no_absolute_paths() {
        assert_eq!(shown("runs/model.safetensors"), "runs/model.safetensors");
        assert_eq!(shown("/runs/model.safetensors"), "model.safetensors");
        assert_eq!(shown("standard input"), "standard input");
    }
}
