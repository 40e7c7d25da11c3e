//! Predictions step by step, and scores of events.

use std::path::Path;

use foretell::judge::{EventScore, FollowedStep, follow, observations_of, score_event};
use foretell::log::{CellValue, ColumnKind, Sheet};
use foretell::{Logs, Model, Observation};

use crate::report;

/// Observations whose probabilities get a column each.
const MOST_SYMBOLS: usize = 300;

/// Writes a row for each step: what was predicted, and what came.
pub fn write(model: &Model, logs: &Logs, path: &Path) -> anyhow::Result<()> {
    let symbols = model.alphabet().observations();
    let with_all = symbols.len() <= MOST_SYMBOLS;
    let mut columns = vec![
        ("episode".to_string(), ColumnKind::Text),
        ("step".to_string(), ColumnKind::Integer),
        ("action".to_string(), ColumnKind::Text),
        ("observation".to_string(), ColumnKind::Text),
        ("probability".to_string(), ColumnKind::Number),
        ("entropy".to_string(), ColumnKind::Number),
    ];
    if with_all {
        columns.extend(symbols.iter().map(|symbol| (format!("p_{symbol}"), ColumnKind::Number)));
    }
    let mut sheet = Sheet::create(path, columns)?;
    follow(model, logs, |alphabet, step| {
        let number = step.episode.to_string();
        let observed = step.ao.observation;
        let observation = (!observed.is_missing()).then(|| alphabet.symbol(observed).to_string());
        let mut cells = vec![
            CellValue::Text(step.name.unwrap_or(&number)),
            CellValue::Integer(step.step as i64),
            CellValue::Text(alphabet.action_name(step.ao.action)),
            observation.as_deref().map_or(CellValue::Missing, CellValue::Text),
            step.probability().map_or(CellValue::Missing, CellValue::Number),
            CellValue::Number(step.entropy()),
        ];
        if with_all {
            cells.extend(step.probabilities.iter().map(|&p| CellValue::Number(p)));
        }
        sheet.row(&cells)
    })?;
    sheet.finish()?;
    Ok(())
}

/// How well each event is predicted.
pub fn events(model: &Model, logs: &Logs, events: &[String]) -> anyhow::Result<Vec<EventScore>> {
    let score = |event: &String| {
        let meant = observations_of(model, event)?;
        let mut predicted = Vec::new();
        follow(model, logs, |_, step| {
            predicted.extend(outcome(&meant, step));
            Ok(())
        })?;
        Ok(score_event(event, &predicted))
    };
    events.iter().map(score).collect()
}

/// The predicted probability of the event in a step, and whether it happened.
fn outcome(meant: &[Observation], step: FollowedStep<'_>) -> Option<(f64, bool)> {
    let p = meant.iter().map(|o| step.probabilities[o.index()]).sum();
    (!step.ao.observation.is_missing()).then(|| (p, meant.contains(&step.ao.observation)))
}

/// The scores as a table.
pub fn print(scores: &[EventScore]) -> anyhow::Result<()> {
    let row = |s: &EventScore| {
        let auc = s.auc.map_or("–".into(), |auc| format!("{auc:.3}"));
        vec![s.event.clone(), report::percent(s.rate), auc, format!("{:.3}", s.accuracy), format!("{:.4}", s.brier)]
    };
    report::say("\nevents: how often, area under the ROC curve, accuracy, Brier score")?;
    report::say(report::table(&["event", "rate", "AUC", "accuracy", "Brier"], scores.iter().map(row)))?;
    Ok(())
}
