//! `foretell states`

use std::path::PathBuf;

use foretell::log::{CellValue, ColumnKind, Sheet};
use foretell::{Alphabet, Belief, Filter, Observation, Pomdp, Track, Trajectory};

use crate::input::LogArgs;
use crate::output;
use crate::report::{self, count, percent};

/// States whose beliefs get a column each.
const MOST_BELIEFS: usize = 100;
/// Rows of the table that is shown.
const SHOWN: usize = 20;

/// Write the hidden states along logs: the belief after each step, and the most probable sequence
#[derive(clap::Args)]
pub struct Args {
    /// A model with latent states, from `foretell learn` or `refine`
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    input: LogArgs,
    /// File to write, a row for each step; its extension sets the format: .csv, .jsonl or .parquet
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// How long the most probable sequences stay in a state.
#[derive(Clone, Copy, Default)]
struct Dwell {
    steps: u64,
    visits: u64,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    output::check([&args.output], &[args.input.files()?, vec![args.model.clone()]].concat())?;
    let model = crate::input::model(&args.model)?;
    let Some(latent) = model.latent() else {
        anyhow::bail!(
            "{} has no latent states: its predictions need none; learn with --only latent or --refine to have them",
            args.model.display()
        );
    };
    let pomdp = &latent.pomdp;
    let input = args.input.open_for(&model.origin().schema)?;
    let mut sheet = Sheet::create(&args.output, columns(pomdp))?;
    let mut reader = input.logs.open(model.alphabet().clone())?;
    let mut dwells = vec![Dwell::default(); pomdp.states().len()];
    let (mut episodes, mut steps) = (0u64, 0u64);
    while let Some(z) = reader.next().transpose().map_err(|e| input.blame(e))? {
        let path = write(&mut sheet, pomdp, reader.alphabet(), episodes, &z)?;
        for (t, &s) in path.iter().enumerate() {
            dwells[s].steps += 1;
            dwells[s].visits += u64::from(t == 0 || path[t - 1] != s);
        }
        episodes += 1;
        steps += z.steps.len() as u64;
    }
    sheet.finish()?;
    let mut order: Vec<usize> = (0..dwells.len()).filter(|&s| dwells[s].steps > 0).collect();
    order.sort_by_key(|&s| std::cmp::Reverse(dwells[s].steps));
    let rows = order.iter().take(SHOWN).map(|&s| {
        let Dwell { steps: stayed, visits } = dwells[s];
        let mean = stayed as f64 / visits as f64;
        vec![pomdp.states()[s].clone(), count(stayed), percent(stayed as f64 / steps as f64), count(visits), format!("{mean:.2}")]
    });
    report::say("most probable states")?;
    report::say(report::table(&["state", "steps", "share", "visits", "mean dwell"], rows))?;
    if order.len() > SHOWN {
        report::say(format!("  … and {} more", order.len() - SHOWN))?;
    }
    report::say(format!("{}: {} steps of {} episodes", args.output.display(), count(steps), count(episodes)))?;
    Ok(())
}

fn columns(pomdp: &Pomdp) -> Vec<(String, ColumnKind)> {
    let mut columns = vec![
        ("episode".to_string(), ColumnKind::Text),
        ("step".to_string(), ColumnKind::Integer),
        ("action".to_string(), ColumnKind::Text),
        ("observation".to_string(), ColumnKind::Text),
        ("state".to_string(), ColumnKind::Text),
        ("probability".to_string(), ColumnKind::Number),
        ("most_probable_sequence".to_string(), ColumnKind::Text),
    ];
    if pomdp.states().len() <= MOST_BELIEFS {
        columns.extend(pomdp.states().iter().map(|state| (format!("belief_{state}"), ColumnKind::Number)));
    }
    columns
}

/// Writes an episode; returns its most probable sequence of states.
fn write(sheet: &mut Sheet, pomdp: &Pomdp, alphabet: &Alphabet, number: u64, z: &Trajectory) -> anyhow::Result<Vec<usize>> {
    // What was not seen in training tells nothing.
    let symbols = pomdp.alphabet().observations().len();
    let actions = pomdp.alphabet().actions().len();
    let mut known = z.steps.clone();
    for ao in known.iter_mut().filter(|ao| ao.observation.index() >= symbols) {
        ao.observation = Observation::MISSING;
    }
    if let Some(ao) = known.iter().find(|ao| ao.action.index() >= actions) {
        anyhow::bail!(
            "the action {:?} was not seen in training; learn from logs that contain it",
            alphabet.action_name(ao.action)
        );
    }
    let path = pomdp.most_probable_states(&known, &z.about);
    let name = z.about.name.as_deref().map_or_else(|| number.to_string(), str::to_string);
    let mut belief = Belief::new(pomdp);
    for (t, &ao) in known.iter().enumerate() {
        match z.about.partial_at(t) {
            Some(pattern) => belief.observe_partial(ao.action, pattern),
            None => belief.observe(ao),
        }
        let (likeliest, p) =
            (belief.state().iter().enumerate()).fold((0, 0.0), |top, (s, &p)| if p > top.1 { (s, p) } else { top });
        let observed = z.steps[t].observation;
        let observation = if observed.is_missing() { None } else { Some(alphabet.symbol(observed).to_string()) };
        let mut cells = vec![
            CellValue::Text(&name),
            CellValue::Integer(t as i64),
            CellValue::Text(alphabet.action_name(ao.action)),
            observation.as_deref().map_or(CellValue::Missing, CellValue::Text),
            CellValue::Text(&pomdp.states()[likeliest]),
            CellValue::Number(p),
            CellValue::Text(&pomdp.states()[path[t]]),
        ];
        if pomdp.states().len() <= MOST_BELIEFS {
            cells.extend(belief.state().iter().map(|&p| CellValue::Number(p)));
        }
        sheet.row(&cells)?;
    }
    Ok(path)
}
