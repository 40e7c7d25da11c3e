//! Scores and returns as pictures.

use foretell::baselines::Tested;
use foretell::{HorizonScore, Score};
use foretell_plots::{Axis, Bar, Bars, Chart, Figure, Line, Look, Mark, Point};

/// Log-likelihood by horizon of the model, the truth and the n-grams.
pub fn likelihood(score: &Score) -> Figure {
    let line = |name: &str, scores: &[HorizonScore], look| {
        let point = |h: &HorizonScore| Point { x: h.horizon as f64, y: h.log_likelihood, half: h.ci95 };
        Line { name: name.into(), points: scores.iter().map(point).collect(), look }
    };
    let mut lines = vec![line("model", &score.horizons, Look::Line)];
    lines.extend(score.truth.iter().map(|truth| line("truth", truth, Look::Dashed)));
    // Uniform and the bare action are so far below that the rest would be squeezed flat.
    let beside = score.baselines.iter().filter(|(name, _)| !["uniform", "ngram-0"].contains(&name.as_str()));
    lines.extend(beside.map(|(name, scores)| line(name, scores, Look::Line)));
    Figure::from(Chart {
        title: "Log-likelihood of held-out logs by horizon".into(),
        x: Axis::new("horizon n (steps)"),
        y: Axis::new("mean ln P(o_1..n || a_1..n), nats"),
        lines,
        marks: vec![],
    })
}

/// What policies earn, as bars with intervals, and the most that anyone could earn.
pub fn returns(title: &str, policies: &[Tested], bound: Option<f64>) -> Figure {
    let bar = |tested: &Tested| Bar {
        name: tested.policy.clone(),
        value: tested.returns.discounted_return,
        half: tested.returns.discounted_ci95,
        is_own: tested.policy == crate::cmd::agent::OWN,
    };
    Figure::from(Bars {
        title: title.into(),
        axis: Axis::new("discounted return, with 95 % intervals"),
        bars: policies.iter().map(bar).collect(),
        mark: bound.map(|at| Mark { at, name: "most that could be earned".into() }),
    })
}
