//! What was selected, in words.

use foretell::model::MemberKind;
use foretell::select::{Doubling, RewardChoice, SpareColumns, Tried};
use foretell::{Effort, Model, Selection};

use crate::report::{self, percent, plural};

/// A share of held-out steps with unseen symbols that is worth a note.
const MUCH_UNSEEN: f64 = 0.05;

/// The table of what was tried, what was chosen and why.
pub fn say(selection: &Selection) -> anyhow::Result<()> {
    let Some(nats) = selection.nats else {
        return Ok(report::say("  held out   nothing: the logs are too few, so the simplest n-gram was taken")?);
    };
    report::say(format!("  held out   {}", held_out(selection)))?;
    // Without the sign of a number that is rounded to zero.
    let number = |x: Option<f64>| x.map_or("–".into(), |x| format!("{:.4}", if x.abs() < 5e-5 { 0.0 } else { x }));
    let row = |tried: &Tried| {
        let weight = if tried.weight > 0.0 { format!("{:.2}", tried.weight) } else { "–".into() };
        let numbers = [number(tried.nats), number(tried.behind), number(tried.error), weight];
        [name(tried.kind).to_string(), tried.size.clone()].into_iter().chain(numbers).collect()
    };
    report::say(report::table(
        &["predictor", "size", "nats per step", "behind the choice", "± s.e.", "weight"],
        shown(selection).into_iter().map(row),
    ))?;
    if let Some(problem) = selection.problem.as_ref().filter(|_| selection.rank.is_none()) {
        report::say(format!("  not tried  linear and latent predictors: {}", report::with_flags(problem)))?;
    }
    report::say(format!("  chosen     {}", chosen(selection, nats)))?;
    if let Some(trust) = trust(selection) {
        report::say(format!("  trust      {trust}"))?;
    }
    if let Some(choice) = &selection.rewards {
        report::say(format!("  rewards    {}", rewards(choice)))?;
    }
    if let Some(spare) = &selection.columns {
        report::say(format!("  columns    {}", columns(spare)))?;
    }
    if let Some(doubling) = &selection.doubling {
        report::say(format!("  more logs  {}", doubled(doubling)))?;
    }
    if let Some(more) = more(selection) {
        report::say(format!("  more work  {more}"))?;
    }
    Ok(())
}

/// The parts that were held out.
fn held_out(selection: &Selection) -> String {
    let parts = plural(selection.parts as u64, if selection.piece_length.is_some() { "piece" } else { "episode" });
    let length = selection
        .piece_length
        .map_or(String::new(), |length| format!(" of about {}, cut from few long episodes", plural(length as u64, "step")));
    let times = if selection.folds > 1 { format!(", in {} turns", selection.folds) } else { String::new() };
    let unseen = match selection.unseen {
        share if share > MUCH_UNSEEN => {
            format!("; {} of these steps have a symbol that is not in the other parts: group or discretise them", percent(share))
        }
        _ => String::new(),
    };
    let share = if selection.every > 1 { format!("; one of {} episodes was used", selection.every) } else { String::new() };
    format!("{parts}{length}, {}{times}{share}", plural(selection.steps as u64, "step")) + &unseen
}

/// Everything that has a weight, and the best of each kind.
fn shown(selection: &Selection) -> Vec<&Tried> {
    let best = |kind| selection.tried.iter().filter(|tried| tried.kind == kind).max_by(|x, y| by_nats(x, y));
    selection.tried.iter().filter(|tried| tried.weight > 0.0 || best(tried.kind) == Some(tried)).collect()
}

/// The order of log-likelihoods; of equals, the simpler comes last.
fn by_nats(x: &Tried, y: &Tried) -> std::cmp::Ordering {
    x.nats.partial_cmp(&y.nats).unwrap_or(std::cmp::Ordering::Equal).then(std::cmp::Ordering::Greater)
}

/// The choice and the reason for it in one sentence.
fn chosen(selection: &Selection, nats: f64) -> String {
    let plus_minus = |error: Option<f64>| error.map_or(String::new(), |error| format!(" ± {error:.4}"));
    let members: Vec<&Tried> = selection.tried.iter().filter(|tried| tried.weight > 0.0).collect();
    let (what, rivals): (String, Vec<&Tried>) = match &members[..] {
        [only] => {
            let others = selection.tried.iter().filter(|tried| tried.kind != only.kind);
            (format!("{} alone ({})", name(only.kind), only.size), others.collect())
        }
        _ => ("the mixture".into(), selection.tried.iter().collect()),
    };
    let reason = rivals.into_iter().max_by(|x, y| by_nats(x, y)).map_or(String::new(), |next| {
        let other = format!("{} ({})", name(next.kind), next.size);
        let behind = next.behind.unwrap_or_default();
        match next.error {
            Some(error) if behind <= error => format!("; {other} is as good within one standard error, but not simpler"),
            error => format!("; the best other, {other}, is {behind:.4}{} behind", plus_minus(error)),
        }
    });
    let adapts = if selection.memory > 0.0 { ", with weights that follow the episode" } else { "" };
    format!("{what}{adapts}: {nats:.4}{} nats per held-out step{reason}", plus_minus(selection.error))
}

/// The size of the n-gram that forgets the past.
const WITHOUT_PAST: &str = "up to 0 steps";
/// Standard errors that count as more than noise.
const CLEAR: f64 = 2.0;

/// In plain words, whether the past helps to predict at all, and whether more than counts of the last
/// few steps do.
fn trust(selection: &Selection) -> Option<String> {
    let ngrams = || selection.tried.iter().filter(|tried| tried.kind == MemberKind::NGram);
    let known = |tried: &Tried| Some((tried.behind?, tried.error?));
    let (gain, error) = known(ngrams().find(|tried| tried.size == WITHOUT_PAST)?)?;
    let steps = plural(selection.steps as u64, "held-out step");
    if gain <= CLEAR * error {
        return Some(format!(
            "on {steps} it is not better beyond noise ({gain:.4} ± {error:.4} nats per step) than frequencies that forget the past; \
             the past may not matter, or these logs are too few to show how"
        ));
    }
    let past = format!(
        "the past helps: on {steps} what came had {:.2} times the probability that it has without the past ({gain:.4} ± {error:.4} \
         nats per step)",
        gain.exp()
    );
    let best = ngrams().max_by(|x, y| by_nats(x, y))?;
    let (gain, error) = known(best)?;
    Some(match gain > CLEAR * error {
        true => format!("{past}; counts of the last few steps are {gain:.4} ± {error:.4} behind"),
        false => format!("{past}; counts of the last few steps do as well within noise"),
    })
}

/// Whether rewards are part of observations, and why.
fn rewards(choice: &RewardChoice) -> String {
    let error = choice.error.map_or(String::new(), |error| format!(" ± {error:.4}"));
    let [without, with] = choice.reward_errors;
    let evidence = format!(
        "{:+.4}{error} nats per held-out step for observations and rewards together, of which {:+.4} for observations; the error \
         of expected rewards is {without:.3} without and {with:.3} with them (root mean square)",
        choice.gain, choice.observation_gain
    );
    match choice.observed {
        true if choice.tell_of_states => format!(
            "observed, because states predict them better than actions alone do: {evidence}; --observe-reward=false leaves them \
             out of observations"
        ),
        true => format!("observed: {evidence}; --observe-reward=false leaves them out of observations"),
        false => format!("not observed: observing them gains {evidence}"),
    }
}

/// Columns that can be spared, and how to leave them out.
fn columns(spare: &SpareColumns) -> String {
    let SpareColumns { names, others, observations: [with, without], gain, error } = spare;
    let (verb, them) = if names.len() == 1 { ("helps", "it") } else { ("help", "them") };
    let error = error.map_or(String::new(), |error| format!(" ± {error:.4}"));
    format!(
        "{} {verb} to predict neither other columns nor rewards ({gain:+.4}{error} nats per held-out step without {them}); if you do \
         not want {them} predicted, --observation {} leaves {without} instead of {with} observations",
        names.join(", "),
        others.join(",")
    )
}

/// What more logs may be worth.
fn doubled(doubling: &Doubling) -> String {
    let Doubling { kind, gain, error } = *doubling;
    let advice =
        if gain > error { "twice as many may gain about half of that again" } else { "more of the same would hardly help" };
    format!("all of them instead of half gained {gain:.4} ± {error:.4} nats per step ({}); {advice}", name(kind))
}

/// What else could be tried, if it could help.
fn more(selection: &Selection) -> Option<&'static str> {
    let tried = |kind| selection.tried.iter().any(|tried| tried.kind == kind);
    match selection.effort {
        Effort::Quick if tried(MemberKind::Linear) && tried(MemberKind::NGram) => {
            Some("--effort normal also fits latent states and recurrent networks")
        }
        Effort::Normal if tried(MemberKind::Latent) => Some(
            "--effort thorough fits more latent states and larger networks, for longer, and tells what more logs may be worth",
        ),
        _ => None,
    }
}

/// The states that planners use, where predictions do not use them.
pub fn planning(model: &Model, selection: &Selection) -> Option<String> {
    let latent = model.latent()?;
    let weight: f64 = selection.tried.iter().filter(|tried| tried.kind == MemberKind::Latent).map(|tried| tried.weight).sum();
    let states = plural(latent.pomdp.states().len() as u64, "state");
    (weight == 0.0).then(|| format!("`plan` and `export` use a POMDP of {states}, which has no weight in predictions"))
}

fn name(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::NGram => "n-gram",
        MemberKind::Linear => "linear",
        MemberKind::Latent => "latent",
        MemberKind::Recurrent => "recurrent",
    }
}
