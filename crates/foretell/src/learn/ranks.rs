//! Models of several ranks from one decomposition: moments and bases are shared, and the rest is
//! small.

use faer::Mat;
use rayon::prelude::*;

use super::assemble::Parts;
use super::bases::{Nested, column, first_row};
use super::features::{Features, NULL_TEST};
use super::moments::{check_size, no_room, wanted};
use super::operators::{Operator, Operators};
use super::source::empty_batch;
use super::sums::{Accumulator, Matrices};
use super::survey::Survey;
use crate::data::{ActionObservation, Alphabet, CutRule, Episodes, Trajectory};
use crate::error::{Error, Result};
use crate::model::{LearnParams, Model, NGram, Origin};

/// The data for the models of all ranks.
pub(crate) struct RankedModels {
    nested: Nested,
    /// Ûᵀ Σ̂_TH e
    initial: Mat<f64>,
    /// V̂ᵀ Σ̂_H
    histories: Mat<f64>,
    /// In the bases Û and V̂.
    operators: Vec<Operator>,
    scale: f64,
}

impl RankedModels {
    /// For ranks up to that of `params`, from the sums over the batches and the pairs seen in them.
    pub(crate) fn new<'b>(
        features: &mut Features,
        sums: Accumulator,
        (params, rule): (&LearnParams, CutRule),
        pairs: &[ActionObservation],
        batches: impl Iterator<Item = &'b Episodes>,
    ) -> Result<RankedModels> {
        check_size(features, sums.wanted)?;
        let start = features.start_coordinate();
        let weight = sums.entry(NULL_TEST, start);
        if weight <= 0.0 {
            return Err(no_room(rule));
        }
        let scale = 1.0 / weight;
        let moments: Matrices = sums.matrices(features, scale);
        drop(sums);
        let nested = Nested::new(&moments, params)?;
        let initial = nested.u.transpose() * column(&moments.joint, start);
        let histories = nested.v.transpose() * first_row(&moments.joint);
        drop(moments);
        let mut operators = Operators::new(features, &nested.u, &nested.v, pairs);
        for episodes in batches {
            let batch = features.batch(episodes, rule);
            operators.add(features, &batch);
        }
        Ok(RankedModels { nested, initial, histories, operators: operators.finish(), scale })
    }

    /// The largest rank: all above it give the same model.
    pub(crate) fn most(&self) -> usize {
        self.nested.u.ncols()
    }

    /// The model of rank d, whose origin has the pairs that this was made with.
    pub(crate) fn model(&self, d: usize, alphabet: Alphabet, mut origin: Origin, ngram: NGram) -> Result<Model> {
        let p = self.nested.regression(d)?;
        let k = p.nrows();
        let through = |x: &[f64]| -> Vec<f64> { (0..d).map(|j| (0..k).map(|i| p[(i, j)] * x[i]).sum()).collect() };
        let operator = |wide: &Operator| Operator {
            matrix: wide.matrix.submatrix(0, 0, d, k) * &p,
            state: wide.state[..d].to_vec(),
            readout: through(&wide.readout),
            weight: wide.weight,
        };
        origin.params.rank = d;
        let parts = Parts {
            alphabet,
            origin,
            ngram,
            initial: self.initial.col_as_slice(0)[..d].to_vec(),
            normalizer: through(self.histories.col_as_slice(0)),
            operators: self.operators.par_iter().map(operator).collect(),
            scale: self.scale,
            spectrum: self.nested.spectrum.clone(),
        };
        parts.assemble()
    }
}

/// Counts of episodes, and linear models of several ranks of them.
pub(crate) struct LearnedRanks {
    survey: Survey,
    origin: Origin,
    ngram: NGram,
    /// `None` if no linear model is wanted, an error if none can be learned from these episodes.
    ranked: Option<Result<RankedModels>>,
}

/// Whether linear models are learned, or episodes are only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learn {
    Counts,
    Linear,
}

impl LearnedRanks {
    /// Counts the episodes, whose symbols are in `alphabet`, and learns linear models of all ranks up
    /// to that of `params`.
    pub(crate) fn of(alphabet: &Alphabet, episodes: &[Trajectory], params: &LearnParams, learn: Learn) -> Result<LearnedRanks> {
        let mut batches: Vec<Episodes> = Vec::new();
        for z in episodes {
            if batches.last().is_none_or(Episodes::is_full) {
                batches.push(empty_batch(params.weighting));
            }
            batches.last_mut().expect("there is one now").push(z, 1.0)?;
        }
        let mut survey = Survey::new(alphabet.clone(), params.ngram_length);
        batches.iter().for_each(|batch| survey.add(alphabet, batch));
        if survey.steps == 0 {
            return Err(Error::NoSteps);
        }
        let (origin, ngram, rule) = (survey.origin(params), survey.counter.finish(), survey.rule(params));
        let ranked = (learn == Learn::Linear).then(|| {
            let mut features = Features::new(params, alphabet);
            let mut sums = Accumulator::new(&features, wanted(params));
            for episodes in &batches {
                let batch = features.batch(episodes, rule);
                features.learn_words(&batch, false);
                sums.add(&features, &batch);
            }
            RankedModels::new(&mut features, sums, (params, rule), &origin.pairs, batches.iter())
        });
        Ok(LearnedRanks { survey, origin, ngram, ranked })
    }

    /// The linear model of a rank, or of the largest possible one if that is lower; `None` if there
    /// is none.
    pub(crate) fn linear(&self, rank: usize) -> Option<Model> {
        let ranked = self.ranked.as_ref()?.as_ref().ok()?;
        let (alphabet, origin, ngram) = (self.survey.alphabet.clone(), self.origin.clone(), self.ngram.clone());
        ranked.model(rank.min(ranked.most()), alphabet, origin, ngram).ok()
    }

    /// The largest rank; 0 if there is no linear model.
    pub(crate) fn most(&self) -> usize {
        self.ranked.iter().flatten().map(RankedModels::most).next().unwrap_or(0)
    }

    /// Why there is no linear model.
    pub(crate) fn problem(&self) -> Option<&Error> {
        self.ranked.as_ref()?.as_ref().err()
    }

    /// The n-gram alone.
    pub(crate) fn ngram(&self) -> Model {
        Model::ngram_alone(self.survey.alphabet.clone(), self.origin.clone(), self.ngram.clone())
    }
}
