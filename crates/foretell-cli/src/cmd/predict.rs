//! `foretell predict`

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use foretell::data::{ObservationSymbol, escaped};
use foretell::{Action, ActionObservation, Error, Model, Observation, PredictiveState, Seed, Track};
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::report;

/// Smaller probabilities get no row: they would be printed as zero.
const LEAST_SHOWN: f64 = 5e-5;

/// Samples beyond this say nothing that probabilities do not say better.
const MOST_SAMPLES: u64 = 10_000_000;

/// Predict the observations that follow a history, given the actions taken next
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("future").required(true).args(["actions", "test"]))]
pub struct Args {
    /// A model that `foretell learn` wrote
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Past action:observation pairs, as in "N:wall,E:open"; `?` is a missing observation. Measured or
    /// several columns are given as in the logs: 1.5, or speed=1.5|door=open
    #[arg(long, default_value = "", value_name = "PAIRS", allow_hyphen_values = true)]
    history: String,
    /// Future actions, as in "E,E"
    #[arg(long, value_name = "ACTIONS", allow_hyphen_values = true)]
    actions: Option<String>,
    /// Print the probability that these pairs come next, given their actions
    #[arg(long, value_name = "PAIRS", conflicts_with = "samples", allow_hyphen_values = true)]
    test: Option<String>,
    /// Sample N futures instead of printing probabilities
    #[arg(long, value_name = "N", requires = "actions", value_parser = clap::value_parser!(u64).range(1..=MOST_SAMPLES))]
    samples: Option<u64>,
    /// Seed of the samples
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Maximum number of observations to show for each step
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Show observations with the rewards that are part of them, if they are; otherwise those that
    /// differ by their reward only are added up
    #[arg(long)]
    with_rewards: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let model = crate::input::model(&args.model)?;
    let alphabet = model.alphabet();
    let mut state = PredictiveState::new(&model);
    for (action, seen) in pairs(&model, &args.history)? {
        match seen {
            Seen::Observation(o) if alphabet.is_terminal(o) => {
                anyhow::bail!(
                    "--history contains {:?}, which ends the episode, so nothing follows; leave out this pair and those after it",
                    alphabet.symbol(o).to_string()
                )
            }
            Seen::Observation(observation) => state.observe(ActionObservation { action, observation }),
            Seen::Parts(pattern) => state.observe_partial(action, &pattern),
            Seen::Nothing => state.observe_missing(action),
        }
    }
    if let Some(test) = &args.test {
        let pair = |(action, seen): (Action, Seen)| match seen {
            Seen::Observation(observation) => Ok(ActionObservation { action, observation }),
            _ => anyhow::bail!("--test has a missing observation (?); name the observation"),
        };
        let test = pairs(&model, test)?.into_iter().map(pair).collect::<anyhow::Result<Vec<_>>>()?;
        let p = state.probability_of(&test);
        return if args.json { report::json(&json!({ "probability": p })) } else { Ok(report::say(p.to_string())?) };
    }
    let plan = actions(&model, args.actions.as_deref().unwrap_or_default())?;
    match args.samples {
        Some(n) => draw(&model, &state, &plan, n, &args),
        None => forecast(&model, &state, &plan, &args),
    }
}

fn forecast(model: &Model, state: &PredictiveState<&Model>, plan: &[Action], args: &Args) -> anyhow::Result<()> {
    let alphabet = model.alphabet();
    let (mut rows, mut steps) = (Vec::new(), Vec::new());
    let sure = model.ensemble().is_some();
    // Spreads cannot be added up.
    let names = match args.with_rewards || sure {
        true => alphabet.observations().to_vec(),
        false => alphabet.without_rewards(),
    };
    let mut places = HashMap::new();
    let first: Vec<usize> = names.iter().enumerate().map(|(o, name)| *places.entry(name).or_insert(o)).collect();
    for (i, ((mut p, spread), &a)) in state.forecast_with_spread(plan).into_iter().zip(plan).enumerate() {
        (1..p.len()).filter(|&o| first[o] < o).for_each(|o| p[first[o]] += p[o]);
        let mut ranked = report::ranked(&p);
        ranked.retain(|&(o, _)| first[o] == o);
        let symbol = |o: usize| &names[o];
        for &(o, p) in ranked.iter().take(args.top) {
            let step = (i + 1).to_string();
            let mut row = vec![step, alphabet.action_name(a).to_string(), symbol(o).to_string(), format!("{p:.4}")];
            row.extend(sure.then(|| format!("{:.4}", spread[o])));
            rows.push(row);
        }
        if state.unseen() >= LEAST_SHOWN && ranked.len() <= args.top {
            let mut row = vec![(i + 1).to_string(), alphabet.action_name(a).to_string(), "(not seen in training)".into()];
            row.extend([format!("{:.4}", state.unseen())].into_iter().chain(sure.then(String::new)));
            rows.push(row);
        }
        let listed: Vec<_> = ranked
            .iter()
            .map(|&(o, p)| {
                let mut entry = json!({ "observation": symbol(o).name, "terminal": symbol(o).terminal, "probability": p });
                if sure {
                    entry["spread"] = json!(spread[o]);
                }
                entry
            })
            .collect();
        steps.push(json!({ "step": i + 1, "action": alphabet.action_name(a), "observations": listed, "unseen": state.unseen() }));
    }
    if args.json {
        return report::json(&steps);
    }
    let columns = ["step", "action", "observation", "probability", "spread"];
    report::say(report::table(&columns[..if sure { 5 } else { 4 }], rows))?;
    if sure {
        report::say("\nspread: root mean square deviation of the models of halves of the logs from this probability")?;
    }
    Ok(())
}

fn draw(model: &Model, state: &PredictiveState<&Model>, plan: &[Action], n: u64, args: &Args) -> anyhow::Result<()> {
    let alphabet = model.alphabet();
    let futures = (0..n)
        .map(|i| state.sample(plan, &mut Seed(args.seed).stream("predict").index(i).rng()))
        .map(|drawn| drawn.into_iter().map(|o| alphabet.symbol(o).to_string()).collect::<Vec<String>>());
    if args.json {
        return report::json(&Listed(RefCell::new(futures)));
    }
    for future in futures {
        report::say(
            (future.iter().zip(plan))
                .map(|(o, &a)| format!("{}:{}", escaped(alphabet.action_name(a)), escaped(o)))
                .collect::<Vec<_>>()
                .join(" "),
        )?;
    }
    Ok(())
}

/// What an iterator returns, as a list that is written while it is made.
struct Listed<I>(RefCell<I>);

impl<T: Serialize, I: Iterator<Item = T>> Serialize for Listed<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&mut *self.0.borrow_mut())
    }
}

/// Actions by name, or by the values of their columns, separated by commas.
fn actions(model: &Model, text: &str) -> anyhow::Result<Vec<Action>> {
    let alphabet = model.alphabet();
    let known = || alphabet.actions().iter().map(String::as_str);
    let mut actions = Vec::new();
    let mut rest = text;
    while !rest.trim().is_empty() {
        rest = literal(known(), rest, ',');
        let name = longest(known(), rest, ',').unwrap_or_else(|| first(rest, ','));
        let action = alphabet.action(name).or_else(|| model.origin().schema.action_of(alphabet, name.trim()));
        actions.push(action.ok_or_else(|| Error::unknown("action", name, known()))?);
        rest = rest[name.len()..].trim_start_matches(',');
    }
    if actions.is_empty() {
        anyhow::bail!("--actions is empty; name at least one of {}", alphabet.actions().join(", "));
    }
    Ok(actions)
}

/// Pairs action:observation, separated by commas. Names may contain commas and colons themselves:
/// the longest name that fits is taken.
///
/// Observations and actions may also be given by the values of their columns, as in the logs, and
/// parts of an observation that are missing as `?`.
fn pairs(model: &Model, text: &str) -> anyhow::Result<Vec<(Action, Seen)>> {
    let alphabet = model.alphabet();
    let known_actions = || alphabet.actions().iter().map(String::as_str);
    let symbols: Vec<String> = alphabet.observations().iter().map(ToString::to_string).collect();
    let bare = alphabet.observations().iter().map(|s| s.name.as_str());
    // Names as they are printed, where `wall [end]` differs from `wall`; the bare name also if
    // every observation of that name ends the episode.
    let names = symbols.iter().map(String::as_str).chain(bare).chain(["?"]);
    let without_reward: Vec<ObservationSymbol> = match alphabet.observes_rewards() {
        true => alphabet.observations().iter().filter_map(|o| o.split_reward()).map(|(plain, _)| plain).collect(),
        false => Vec::new(),
    };
    let plain: Vec<String> = without_reward.iter().map(ToString::to_string).collect();
    let names: Vec<&str> = names.chain(plain.iter().map(String::as_str)).collect();
    let mut pairs = Vec::new();
    let mut rest = text;
    while !rest.trim().is_empty() {
        rest = literal(known_actions(), rest, ':');
        let action = longest(known_actions(), rest, ':').unwrap_or_else(|| first(rest, ':'));
        let action = rest[action.len()..].strip_prefix(':').map(|after| (action, after));
        let of_name = |name: &str| alphabet.action(name).or_else(|| model.origin().schema.action_of(alphabet, name.trim()));
        let Some((action, after)) = action.and_then(|(name, after)| Some((of_name(name)?, after))) else {
            let pair = first(rest, ',');
            if !pair.contains(':') {
                anyhow::bail!("{pair:?} has no observation; write action:observation pairs, as in \"N:wall,E:open\"");
            }
            return Err(Error::unknown("action", first(rest, ':'), known_actions()).into());
        };
        let known = || symbols.iter().map(String::as_str);
        let after = literal(names.iter().copied(), after, ',');
        let Some(name) = longest(names.iter().copied(), after, ',') else {
            let text = first(after, ',');
            let seen = measured(model, text).ok_or_else(|| Error::unknown("observation", text, known()))?;
            pairs.push((action, seen));
            rest = after[text.len()..].trim_start_matches(',');
            continue;
        };
        let printed = symbols.iter().position(|s| s == name).map(|o| Observation(o as u32));
        let seen = match plain.iter().position(|plain| plain == name).filter(|_| printed.is_none()) {
            Some(i) => whatever_reward(model, action, &without_reward[i])?,
            None => printed.or_else(|| alphabet.terminal_observation(name)).map_or(Seen::Nothing, Seen::Observation),
        };
        pairs.push((action, seen));
        rest = after[name.len()..].trim_start_matches(',');
    }
    Ok(pairs)
}

/// What was seen in a step.
enum Seen {
    Observation(Observation),
    /// Only some parts of it, with `?` for the others.
    Parts(String),
    Nothing,
}

/// An observation that is given by its measurements, or by some of its parts.
fn measured(model: &Model, text: &str) -> Option<Seen> {
    let name = model.origin().schema.observation_name(model.alphabet(), text);
    if let Some(o) = model.alphabet().observation(&name) {
        return Some(Seen::Observation(o));
    }
    let is_known = name.split('|').any(|part| part.ends_with('?')) && !model.alphabet().agreeing(&name).is_empty();
    is_known.then_some(Seen::Parts(name))
}

/// What was seen in a model that observes rewards, where the reward is not given: the observation with
/// the only reward that it had after the action, or with any.
fn whatever_reward(model: &Model, a: Action, symbol: &ObservationSymbol) -> anyhow::Result<Seen> {
    match model.observations_whatever_reward(a, symbol)[..] {
        [only] => Ok(Seen::Observation(only)),
        [] => anyhow::bail!("{symbol} was never seen after {}", model.alphabet().action_name(a)),
        // An episode that has ended does not go on.
        [first, ..] if symbol.terminal => Ok(Seen::Observation(first)),
        _ => Ok(Seen::Parts(symbol.name.clone())),
    }
}

/// The longest of the names that the text starts with, followed by the separator or the end.
fn longest<'a>(names: impl Iterator<Item = &'a str>, text: &str, separator: char) -> Option<&'a str> {
    let fits = |name: &&str| text.strip_prefix(*name).is_some_and(|rest| rest.is_empty() || rest.starts_with(separator));
    names.filter(fits).max_by_key(|name| name.len())
}

/// The text without the blanks around a list, unless a name has them.
fn literal<'a, 't>(names: impl Iterator<Item = &'a str>, text: &'t str, separator: char) -> &'t str {
    if longest(names, text, separator).is_some() { text } else { text.trim() }
}

fn first(text: &str, separator: char) -> &str {
    text.split(separator).next().unwrap_or(text)
}
