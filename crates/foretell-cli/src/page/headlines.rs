//! The most important numbers, with explanations.

use foretell::Model;
use serde::Serialize;

use super::{Earned, Estimates, Foresight, Last};
use crate::report::{count, percent, plural};

/// A number, what it is, and what to compare it with.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Headline {
    pub value: String,
    pub label: String,
    pub note: String,
}

/// Numbers about a model and its predictions.
pub fn for_model(model: &Model, foresight: Option<&Foresight>) -> Vec<Headline> {
    let mut all = Vec::new();
    if let Some(foresight) = foresight {
        if let Some(Last { model, truth, best_ngram }) = foresight.last() {
            let mut compared: Vec<String> = Vec::new();
            compared.extend(best_ngram.map(|(_, value)| format!("best n-gram {}", number(value, 2))));
            compared.extend(truth.map(|value| format!("exact model {}", number(value, 2))));
            all.push(Headline {
                value: format!("{} nats", number(model.log_likelihood, 2)),
                label: format!("mean log-likelihood of {} of held-out logs", plural(model.horizon as u64, "step")),
                note: format!("{}; closer to 0 is better", compared.join(", ")),
            });
        }
        all.push(Headline {
            value: percent(foresight.per_step.exp()),
            label: "predicted probability of the next observation".into(),
            note: format!("geometric mean over {}", plural(foresight.steps, "step")),
        });
    }
    let (episodes, steps) = model.trained_on();
    all.push(match model.latent() {
        Some(refined) => Headline {
            value: plural(refined.pomdp.states().len() as u64, "hidden state"),
            label: "explain the observations".into(),
            note: "learned from the logs".into(),
        },
        None => Headline {
            value: plural(model.linear().map_or(0, |linear| linear.rank()) as u64, "number"),
            label: "summarise the past".into(),
            note: "its predictive state".into(),
        },
    });
    all.push(Headline {
        value: plural(episodes, "episode"),
        label: "were used for training".into(),
        note: plural(steps, "step"),
    });
    all
}

/// Numbers about a policy: its return in a domain, or estimated from logs.
pub fn for_policy(earned: Option<&Earned>, estimates: Option<&Estimates>) -> Vec<Headline> {
    if let Some((earned, own)) = earned.and_then(|e| Some((e, e.policies.iter().find(|t| t.policy == e.own)?))) {
        let named = |name: &str| {
            let tested = earned.policies.iter().find(|t| t.policy.starts_with(name))?;
            Some(format!("{} {}", tested.policy, number(tested.returns.mean_return, 3)))
        };
        let compared: Vec<String> = ["random", "QMDP"].into_iter().filter_map(named).collect();
        return vec![
            Headline {
                value: with_half(own.returns.mean_return, own.returns.ci95),
                label: format!("mean return of an episode in {}", earned.domain),
                note: compared.join("; "),
            },
            Headline {
                value: format!("{:.1} steps", own.returns.mean_length),
                label: "mean length of an episode".into(),
                note: format!(
                    "{} terminate, the others are truncated after {}",
                    percent(own.returns.terminated),
                    earned.max_steps
                ),
            },
        ];
    }
    let estimate = |e: &Estimates| {
        let found = e.value.deciding()?.bounded;
        let ends = found.low.zip(found.high);
        let interval = ends.map_or(String::new(), |(low, high)| format!(" [{}, {}]", number(low, 3), number(high, 3)));
        Some(Headline {
            value: format!("{}{interval}", number(found.value, 3)),
            label: format!("return over {}, estimated from logs", plural(e.value.max_steps as u64, "step")),
            note: format!(
                "discounted; {} was logged in {} episodes",
                number(e.value.logged.value, 3),
                count(e.value.episodes as u64)
            ),
        })
    };
    estimates.and_then(estimate).into_iter().collect()
}

/// A number and half its interval, where there is one.
fn with_half(x: f64, half: Option<f64>) -> String {
    half.map_or_else(|| number(x, 3), |half| format!("{} ± {}", number(x, 3), number(half, 3)))
}

/// −1.50 rather than -1.50.
fn number(x: f64, digits: usize) -> String {
    let text = format!("{x:.digits$}");
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').into()
    } else {
        text.replace('-', "−")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_minus_and_zero_has_none() {
        assert_eq!([number(-1.5, 2), number(-0.001, 2), number(0.25, 1)], ["−1.50", "0.00", "0.2"]);
    }
}
