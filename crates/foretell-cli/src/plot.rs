//! Plots of scores, returns and searches.

use std::collections::BTreeMap;

use clap::ValueEnum;
use foretell::judge::Tested;
use foretell::judge::search::{Candidate, Found, Phase};
use foretell::{HorizonScore, Projection, Score};
use foretell_plots::{Axis, Bar, Bars, Chart, Figure, Line, Look, Mark, Point};

/// 97.5 % quantile of the normal distribution.
const Z95: f64 = 1.96;

/// Log-likelihood by horizon of the model, the truth and the n-grams.
pub fn likelihood(score: &Score) -> Figure {
    let line = |name: &str, scores: &[HorizonScore], look| {
        let point = |h: &HorizonScore| Point { x: h.horizon as f64, y: h.log_likelihood, half: h.ci95.unwrap_or(0.0) };
        Line { name: name.into(), points: scores.iter().map(point).collect(), look }
    };
    let mut lines = vec![line("model", &score.horizons, Look::Line)];
    lines.extend(score.truth.iter().map(|truth| line("truth", truth, Look::Dashed)));
    // Uniform and action-only predictions are so much worse that they would flatten the other
    // lines.
    let compared = score.baselines.iter().filter(|(name, _)| !["uniform", "ngram-0"].contains(&name.as_str()));
    lines.extend(compared.map(|(name, scores)| line(name, scores, Look::Line)));
    Figure::from(Chart {
        title: "Log-likelihood of held-out logs by horizon".into(),
        x: Axis::new("horizon n (steps)"),
        y: Axis::new("mean ln P(o_1..n || a_1..n), nats"),
        lines,
        marks: vec![],
    })
}

/// Returns of policies as bars with intervals, and the upper bound.
pub fn returns(title: &str, policies: &[Tested], bound: Option<f64>) -> Figure {
    let bar = |tested: &Tested| Bar {
        name: tested.policy.clone(),
        value: tested.returns.discounted_return,
        half: tested.returns.discounted_ci95.unwrap_or(0.0),
        is_own: tested.policy == crate::cmd::agent::OWN,
    };
    Figure::from(Bars {
        title: title.into(),
        axis: Axis::new("discounted return, with 95 % intervals"),
        bars: policies.iter().map(bar).collect(),
        mark: bound.map(|at| Mark { at, name: "upper bound".into() }),
    })
}

/// Held-out likelihood by dimension and by rank, a line for each projection: the best candidate for
/// each value.
pub fn search(found: &Found) -> Vec<Figure> {
    let title = "Held-out likelihood on part of the logs".to_string();
    let y = || Axis::new("gain over the base, nats per step");
    let screened = || found.tried.iter().filter(|tried| tried.phase != Phase::Final);
    let dim = |tried: &Candidate| tried.params.test_dim;
    let is_compressed = |tried: &&Candidate| tried.params.test_projection != Projection::Identity;
    let by_dim = best_lines(screened().filter(is_compressed), dim);
    let by_rank = best_lines(screened(), |tried| tried.params.rank);
    let mark = |at: usize| vec![Mark { at: at as f64, name: "chosen".into() }];
    let chosen = &found.chosen.params;
    let dims = if chosen.test_projection == Projection::Identity { vec![] } else { mark(chosen.test_dim) };
    vec![
        Figure::from(Chart { title: title.clone(), x: Axis::log("dimension of tests"), y: y(), lines: by_dim, marks: dims }),
        Figure::from(Chart { title, x: Axis::log("rank"), y: y(), lines: by_rank, marks: mark(chosen.rank) }),
    ]
}

/// The best candidate for each value, a line for each projection.
fn best_lines<'t>(tried: impl Iterator<Item = &'t Candidate>, of: impl Fn(&Candidate) -> usize) -> Vec<Line> {
    let mut best: BTreeMap<String, BTreeMap<usize, &Candidate>> = BTreeMap::new();
    for tried in tried {
        let name = tried.params.test_projection.to_possible_value().map_or(String::new(), |value| value.get_name().to_string());
        let known = best.entry(name).or_default().entry(of(tried)).or_insert(tried);
        if tried.gain > known.gain {
            *known = tried;
        }
    }
    let point = |(x, tried): (usize, &Candidate)| Point { x: x as f64, y: tried.gain, half: Z95 * tried.error };
    let line = |(name, points): (String, BTreeMap<usize, &Candidate>)| {
        let look = if points.len() > 1 { Look::Line } else { Look::Dots };
        Line { name, points: points.into_iter().map(point).collect(), look }
    };
    best.into_iter().map(line).collect()
}
