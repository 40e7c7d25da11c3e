//! Ensembles: better predictions, and how sure they are.
//!
//! Models of all logs that differ by their projections, and so by where EM begins, err in different ways: their mean is better than
//! each. How far all of them may be off by chance they do not tell. Models of random halves of the episodes do: the variance of a mean over
//! n/2 draws without replacement from n, around the mean of all, is that of the mean of n (Politis and Romano 1994). What all of
//! them get wrong alike no spread shows; [`score`](crate::score()) measures how often the truth is covered.

use crate::error::{Error, Result};
use crate::learn::learn_over;
use crate::log::Logs;
use crate::model::{Ensemble, LearnParams, Model};
use crate::refine::{RefineParams, refine};
use crate::rng::Seed;
use crate::store::Checkpoint;

/// Most models of a kind.
const MOST: usize = 100;

/// Makes a model one of `n` of all logs, which should be those it was learned from, and adds as many of halves, all refined if it
/// is; `progress` hears of every one.
pub fn ensemble(model: &Model, logs: &Logs, n: usize, progress: &mut dyn FnMut(usize)) -> Result<Model> {
    ensemble_with(model, logs, n, None, progress)
}

/// [`ensemble`], leaving every model that is done in a checkpoint.
pub fn ensemble_with(
    model: &Model,
    logs: &Logs,
    n: usize,
    mut checkpoint: Option<&mut Checkpoint>,
    progress: &mut dyn FnMut(usize),
) -> Result<Model> {
    if !(2..=MOST).contains(&n) {
        return Err(Error::parameter("ensemble", n, format!("must be between 2 and {MOST}")));
    }
    let seed = Seed(model.params.seed).stream("ensemble");
    let mut done = 0;
    let mut another = |logs: &Logs, seed: Seed| {
        done += 1;
        let part = format!("ensemble-{done}");
        if let Some(checkpoint) = &checkpoint
            && let Some(bytes) = checkpoint.load(&part)?
        {
            progress(done);
            return Model::from_bytes(&bytes, &checkpoint.path(&part).display().to_string());
        }
        let params = LearnParams { seed: seed.0, ..model.params.clone() };
        let mut other = learn_over(model.alphabet(), logs, &params)?;
        if other.alphabet() != model.alphabet() {
            return Err(Error::data("the logs have symbols that the model never met", "give the logs it was learned from"));
        }
        if model.refined().is_some() {
            // Each finds its own kind of states: that which was best for one may not suit where EM begins for another.
            other = refine(&other, logs, &RefineParams::default())?;
        }
        if let Some(checkpoint) = &mut checkpoint {
            checkpoint.save(&part, &other.to_bytes())?;
        }
        progress(done);
        Ok(other)
    };
    let (all, halves) = (seed.stream("members"), seed.stream("halves"));
    let members = (1..n as u64).map(|i| another(logs, all.index(i))).collect::<Result<_>>()?;
    let half = |i: u64| logs.half(halves.index(i / 2), i % 2 == 1);
    let halves = (0..n as u64).map(|i| another(&half(i), halves.stream("seeds").index(i))).collect::<Result<_>>()?;
    let mut whole = model.clone();
    whole.ensemble = Ensemble { members, halves };
    Ok(whole)
}
