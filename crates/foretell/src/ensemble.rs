//! Ensembles: how sure predictions are.
//!
//! A model of a random half of the episodes differs from that of all about as much as that one differs from the truth by chance: the
//! variance of a mean over n/2 draws without replacement from n, around the mean of all, is that of the mean of n. So the spread
//! of several such models, each with projections of its own, tells how sure a prediction is (Politis and Romano 1994). What all of them
//! get wrong alike it does not show; [`score`](crate::score()) measures how often the truth is covered.

use crate::error::{Error, Result};
use crate::learn::learn_over;
use crate::log::Logs;
use crate::model::Model;
use crate::params::LearnParams;
use crate::refine::{RefineParams, StateCount, refine};
use crate::rng::Seed;

/// Most members.
const MOST: usize = 100;

/// The model with so many members, each learned from a half of its logs, refined if it is; `progress` hears of every one.
///
/// Two in turn have halves that complete each other. Predictions stay those of the model itself, which has seen all: the mean with
/// its members is no better (see DEVIATIONS.md).
pub fn ensemble(model: &Model, logs: &Logs, members: usize, progress: &mut dyn FnMut(usize)) -> Result<Model> {
    if !(2..=MOST).contains(&members) {
        return Err(Error::parameter("ensemble", members, format!("must be between 2 and {MOST}")));
    }
    let seed = Seed(model.params.seed).stream("ensemble");
    let mut whole = model.clone().without_members();
    for i in 0..members as u64 {
        let half = logs.half(seed.index(i / 2), i % 2 == 1);
        let params = LearnParams { seed: seed.stream("member").index(i).0, ..model.params.clone() };
        let mut member = learn_over(model.alphabet(), &half, &params)?;
        if *member.alphabet() != *model.alphabet() {
            return Err(Error::data("the logs have symbols that the model never met", "give the logs it was learned from"));
        }
        if let Some(refined) = model.refined() {
            let (layout, states) = (refined.candidate.layout, StateCount::About(refined.candidate.states));
            member = refine(&member, &half, &RefineParams { layout, states, ..RefineParams::default() })?;
        }
        whole.members.push(member);
        progress(i as usize + 1);
    }
    Ok(whole)
}
