//! Ensembles: better predictions, and how sure they are.
//!
//! Models of all logs that differ by their projections, and so by where EM begins, err in different ways: their mean is better than
//! each. How far all of them may be off by chance they do not tell. Models of random halves of the episodes do: the variance of a mean over
//! n/2 draws without replacement from n, around the mean of all, is that of the mean of n (Politis and Romano 1994). What all of
//! them get wrong alike no spread shows; [`score`](crate::score()) measures how often the truth is covered.

use super::Model;

/// The models that predict with another, over the same alphabet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ensemble {
    /// Of all logs: predictions are the mean with these.
    pub members: Vec<Model>,
    /// Of halves of the logs, of which two in turn complete each other: they tell how sure that is.
    pub halves: Vec<Model>,
}

impl Ensemble {
    /// Whether the model is alone.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.halves.is_empty()
    }
}
