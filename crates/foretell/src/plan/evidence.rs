//! What logs say about the value of policies, as plain numbers.

use std::fmt;

use serde::Serialize;

/// The value of a policy as estimated from logs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The policy in words.
    pub name: String,
    /// The expected discounted return; −∞ if it takes actions that the logs do not contain.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

impl Judged {
    /// Its value minus a standard error.
    pub fn lower(&self) -> f64 {
        self.value - self.error
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value.is_finite() {
            true => write!(f, "{:.4} ± {:.4}", self.value, self.error),
            false => f.write_str("unknown, because it takes actions that half of these logs lack"),
        }
    }
}

/// The policies that were compared on logs, and the one that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The candidates with their cross-fitted values. The first is what the comparison of predictions
    /// suggests.
    pub candidates: Vec<Judged>,
    /// Which of them was chosen.
    pub chosen: usize,
    /// The policy that wrote the logs.
    pub logged: Judged,
    /// The best of the policies that always take the same action.
    pub constant: Option<Judged>,
    /// Whether the plan is that policy, along these logs.
    pub is_constant: bool,
    /// Steps over which all of these values are: those of the longest episode.
    pub horizon: usize,
    /// γ
    pub discount: f64,
}

impl Choice {
    /// The candidate that was chosen.
    pub fn chosen(&self) -> &Judged {
        &self.candidates[self.chosen]
    }

    /// The logged policy or the best constant action, whichever is better, if the lower bound of what
    /// was chosen is not above its value: then these logs do not show that the plan is better.
    pub fn safer(&self) -> Option<&Judged> {
        let constant = self.constant.as_ref().filter(|_| !self.is_constant);
        let others = [Some(&self.logged), constant].into_iter().flatten();
        let best = others.max_by(|x, y| x.value.total_cmp(&y.value))?;
        (self.chosen().lower() <= best.value).then_some(best)
    }

    /// What to be warned of, if something else is safer.
    pub fn warning(&self) -> Option<String> {
        let safer = self.safer()?;
        Some(format!(
            "these logs do not show that this policy is better than {}, whose value is {safer}; prefer that, or collect more episodes",
            safer.name
        ))
    }
}

/// Which candidate to choose: the first, unless the best is better than it by more than the standard
/// error of either.
pub(super) fn chosen(candidates: &[Judged]) -> usize {
    let best = (0..candidates.len()).max_by(|&i, &j| candidates[i].value.total_cmp(&candidates[j].value).then(j.cmp(&i)));
    let Some(best) = best.filter(|&best| candidates[best].value.is_finite()) else { return 0 };
    let margin = candidates[best].error.max(candidates[0].error);
    if candidates[best].value - margin > candidates[0].value { best } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(value: f64, error: f64) -> Judged {
        Judged { name: String::new(), value, error }
    }

    #[test]
    fn the_first_stays_unless_another_is_better_beyond_noise() {
        assert_eq!(chosen(&[judged(1.0, 0.1), judged(1.05, 0.01)]), 0);
        assert_eq!(chosen(&[judged(1.0, 0.01), judged(1.05, 0.1)]), 0);
        assert_eq!(chosen(&[judged(1.0, 0.1), judged(1.2, 0.1), judged(1.2, 0.1)]), 1);
        let never = judged(f64::NEG_INFINITY, 0.0);
        assert_eq!(chosen(&[never.clone(), judged(-3.0, 0.1)]), 1);
        assert_eq!(chosen(&[never.clone(), never]), 0);
    }

    #[test]
    fn a_plan_that_is_not_better_beyond_noise_names_what_is_safer() {
        let choice = |value, constant: Option<f64>| Choice {
            candidates: vec![judged(value, 0.2)],
            chosen: 0,
            logged: judged(1.0, 0.01),
            constant: constant.map(|value| judged(value, 0.01)),
            is_constant: false,
            horizon: 10,
            discount: 1.0,
        };
        assert_eq!(choice(1.3, None).safer(), None);
        assert_eq!(choice(1.1, None).safer().map(|x| x.value), Some(1.0));
        assert_eq!(choice(1.3, Some(1.25)).safer().map(|x| x.value), Some(1.25));
        assert_eq!(choice(1.1, Some(0.5)).safer().map(|x| x.value), Some(1.0));
        // It is no safer to do the same.
        assert_eq!(Choice { is_constant: true, ..choice(1.3, Some(1.25)) }.safer(), None);
    }
}
