//! Ensembles: better predictions, and how uncertain they are.
//!
//! Models of all logs that differ by their projections, and so by where EM begins, make different errors: their mean is better than
//! each. How far all of them may be off by chance they do not say. Models of random halves of the episodes do: the variance of a mean
//! over n/2 draws without replacement from n, around the mean of all, is that of the mean of n (Politis and Romano 1994). Errors that
//! all of them share are not part of any spread; [`score`](crate::score()) measures how often the truth is covered.

use super::Model;
use super::predictor::Predictor;

/// Models over the same alphabet that predict together.
#[derive(Clone, Debug, PartialEq)]
pub struct Ensemble {
    /// What the model would predict by alone: the first of those of all logs.
    pub(crate) own: Box<Predictor>,
    /// The others of all logs: predictions are the mean of all of these.
    pub members: Vec<Model>,
    /// Models of halves of the logs, of which two in turn complete each other: their spread is the uncertainty.
    pub halves: Vec<Model>,
}
