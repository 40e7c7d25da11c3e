//! What an evaluation says, in sentences.

use super::behaviour::Propensities;
use super::bounds::Bounded;
use super::evaluate::LogValue;
use super::verdict::Verdict;

/// Logs with fewer rewarded steps than this give unreliable estimates.
const FEW_REWARDS: usize = 50;
/// A share of the value that deserves a sentence.
const MUCH: f64 = 0.01;

impl LogValue {
    /// The verdict in one sentence.
    pub fn verdict(&self) -> String {
        let Bounded { value, low, high, .. } = self.comparison.difference;
        let by = match (low, high) {
            (Some(low), Some(high)) => format!("{value:+.4} [{low:+.4}, {high:+.4}]"),
            _ => format!("{value:+.4}, with no interval from so few episodes"),
        };
        let (name, n) = (self.comparison.by.name(), self.episodes);
        let resting = match self.support.weighted_steps < self.max_steps && self.comparison.by.needs_q() {
            true => ", as far as Q̂ can be trusted",
            false => "",
        };
        match self.comparison.verdict {
            Verdict::Same => "The policy is what was logged.".into(),
            Verdict::Better => format!("The policy earns more than what was logged, by {by} ({name}){resting}."),
            Verdict::Worse => format!("The policy earns less than what was logged, by {by} ({name}){resting}."),
            Verdict::CannotTell if n < 2 => {
                format!("One episode cannot tell whether the policy earns more than what was logged ({by}, {name}).")
            }
            Verdict::CannotTell => {
                let more = match self.comparison.needed {
                    Some(needed) => format!("about {needed} episodes would be needed for such a difference"),
                    None => "nor can it be said how many would be needed".into(),
                };
                format!(
                    "It cannot be told from {n} episodes whether the policy earns more than what was logged: {by} ({name}); {more}."
                )
            }
        }
    }

    /// What the estimates rest on, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Propensities::Estimated { given, log_likelihood } = self.propensities {
            let each = log_likelihood.exp();
            notes.push(format!(
                "The logs lack probabilities of actions (action_prob): they were estimated given {given}, each episode's from the others \
                 (geometric mean {each:.3}). If actions depended on anything else, the weights are wrong."
            ));
        }
        if let Some(told) = self.cross_fitted {
            let what =
                if told.relearned { "model, plan and Q̂ were made" } else { "plan and Q̂ were made (the model was not)" };
            let is_known = self.learned_from.is_some_and(|known| known.is_beyond_chance());
            let was = if is_known { "was" } else { "may have been" };
            notes.push(format!(
                "The policy {was} planned on these logs, so it was not judged by them: {what} anew on all but one of {} folds, and evaluated on \
                 that one, in turn. Estimates are those of policies from fewer episodes.",
                told.folds
            ));
        }
        notes.extend(self.support_notes());
        if self.without_reward > 0 {
            notes.push(format!("{} steps have no reward and were left out.", self.without_reward));
        }
        notes
    }

    fn support_notes(&self) -> Vec<String> {
        let support = &self.support;
        let mut notes = Vec::new();
        let same = percent(support.same_action);
        if support.weighted_steps == self.max_steps {
            notes.push(format!(
                "The policy takes the logged action with probability {same} on average; at the last step the weights are worth {:.0} of {} \
                 episodes, and the largest is {} of all.",
                support.effective, self.episodes, percent(support.largest_weight)
            ));
        } else {
            let part = support.unsupported_share.map_or(String::new(), |share| format!(", {} of it", percent(share)));
            notes.push(format!(
                "The policy takes the logged action with probability {same} on average; {} of the logged steps are reached by its actions. \
                 From step {} on, the weights are worth fewer than ten episodes, or than half of them: that part of the value by fqe ({:.4}{part}) rests on Q̂ or the model \
                 alone, not on episodes that did the same; pdis and snpdis cannot see it.",
                percent(support.steps),
                support.weighted_steps + 1,
                support.unsupported_value,
            ));
        }
        notes
    }

    /// Reasons not to trust the estimates.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let (Some(known), None) = (self.learned_from, self.cross_fitted) {
            warnings.extend(known.warning());
        }
        if self.rewarded < FEW_REWARDS {
            let steps = if self.rewarded == 1 { "1 step".into() } else { format!("{} steps", self.rewarded) };
            warnings.push(format!(
                "only {steps} of these logs had a non-zero reward, so the estimates are unreliable; give more logs"
            ));
        }
        if self.agree == Some(false) {
            warnings.push(
                "the estimates disagree: fitted-Q or the model err here, or the weights say little; give more logs, or logs of a policy \
                 closer to this one"
                    .into(),
            );
        }
        let unsupported = self.support.unsupported_share.unwrap_or(1.0);
        if self.support.weighted_steps == 0 && unsupported > MUCH {
            warnings.push("no ten episodes begin as this policy would: nothing but Q̂ and the model speak for the value".into());
        }
        warnings
    }
}

/// 0.0123 as `1.2 %`.
fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
