//! `foretell domains`

use foretell::domains;
use serde::Serialize;

use crate::report;

/// List the built-in domains, for `sample`, `agent`, `score --truth` and others
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: String,
    states: Option<usize>,
    actions: usize,
    observations: usize,
    horizon: usize,
    discount: f64,
    story: String,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let row = |d: domains::Domain| Row {
        states: d.pomdp().map(|p| p.states().len()),
        actions: d.alphabet().actions().len(),
        observations: d.alphabet().observations().len(),
        horizon: d.horizon,
        discount: d.discount,
        name: d.name,
        story: d.story,
    };
    let rows: Vec<Row> = domains::all().into_iter().map(row).collect();
    if args.json {
        return report::json(&rows);
    }
    let cells = rows.into_iter().map(|r| {
        let states = r.states.map_or("–".to_string(), |n| n.to_string());
        vec![
            r.name,
            states,
            r.actions.to_string(),
            r.observations.to_string(),
            r.horizon.to_string(),
            r.discount.to_string(),
            r.story,
        ]
    });
    report::say(report::table(&["domain", "states", "actions", "observations", "horizon", "discount", "story"], cells))?;
    report::say("\nNumbers in parentheses can be changed: t-maze:length=20, rocksample:size=5,rocks=3,seed=1.")?;
    report::say("Instead of a name you can give a path: a .POMDP file (Cassandra's format) or the map of a maze.")?;
    Ok(())
}
