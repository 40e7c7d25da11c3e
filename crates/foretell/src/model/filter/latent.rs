//! The belief over the states of a POMDP that was fitted to logs.

use crate::data::Action;
use crate::model::predictor::Frequencies;
use crate::pomdp::{BeliefState, Pomdp};

/// P(o ‖ a), scaled to `seen`. For an action that was not seen in training it is the mean over
/// those that were.
pub(super) fn predict(belief: &mut BeliefState, pomdp: &Pomdp, frequencies: &Frequencies, a: Action, seen: f64, p: &mut [f64]) {
    p.fill(0.0);
    let shares = &frequencies.action_shares;
    if a.index() < shares.len() {
        belief.add_probabilities(pomdp, a, 1.0, p);
    } else {
        (0..).map(Action).zip(shares).for_each(|(a, &share)| belief.add_probabilities(pomdp, a, share, p));
    }
    p.iter_mut().for_each(|p| *p *= seen);
}

/// Updates the belief by an action whose observation is missing.
pub(super) fn miss(belief: &mut BeliefState, pomdp: &Pomdp, frequencies: &Frequencies, a: Action) {
    match a.index() < frequencies.action_shares.len() {
        true => belief.update_missing(pomdp, a),
        false => belief.update_unknown(pomdp, &frequencies.action_shares),
    }
}
