//! One configuration, all ranks: moments and their decomposition are shared, and the rest is small.

use rayon::prelude::*;

use super::folds::{Folds, Held, HeldOut};
use crate::data::CutRule;
use crate::error::Result;
use crate::learn::{Accumulator, Features, RankedModels, rule, wanted};
use crate::model::{Counter, LearnParams, Model, NGram, Origin, PredictiveState};
use crate::system::{Predict, Track};

/// Episodes scored as one task.
const CHUNK: usize = 16;

/// The scores of a configuration with one rank and one weight of the n-gram.
#[derive(Clone, Debug)]
pub struct SweepScore {
    /// d′
    pub rank: usize,
    /// Weight of the n-gram.
    pub mix: f64,
    /// One for each held-out episode, in the order of [`Folds::lengths`], nats.
    pub log_likelihoods: Vec<f64>,
}

impl Folds {
    /// Learns with each of `ranks`, and scores each with every one of `mixes`, on the held-out
    /// episodes. Ranks without a model are omitted; it is an error if there is none at all.
    pub fn sweep(&self, params: &LearnParams, ranks: &[usize], mixes: &[f64], held: Held) -> Result<Vec<SweepScore>> {
        let largest = ranks.iter().copied().max().unwrap_or(params.rank);
        let params = LearnParams { rank: largest, mix: 0.0, ..params.clone() };
        params.validate()?;
        let scored = self.scored(held);
        let mut features = Features::new(&params, &self.alphabet);
        let sums = self.sums(&mut features, &params, &scored);
        let of_fold = |(fold, episodes): &(usize, Vec<&HeldOut>)| {
            let rule = self.rule(*fold, &params);
            let learner = FoldLearner { folds: self, fold: *fold, params: &params, rule };
            learner.scores(features.clone(), sums.training(*fold, rule), ranks, mixes, episodes)
        };
        let of_folds = scored.par_iter().map(of_fold).collect::<Result<Vec<_>>>()?;
        let mut swept = Vec::new();
        let mut failure = None;
        let mut of_folds: Vec<_> = of_folds.into_iter().map(Vec::into_iter).collect();
        for &rank in ranks {
            let of_rank = of_folds.iter_mut().map(|fold| fold.next().expect("one for each rank"));
            match of_rank.collect::<Result<Vec<_>>>() {
                Err(error) => failure = Some(error),
                Ok(of_rank) => swept.extend(mixes.iter().enumerate().map(|(i, &mix)| {
                    let log_likelihoods = of_rank.iter().flat_map(|fold| fold[i].iter().copied()).collect();
                    SweepScore { rank, mix, log_likelihoods }
                })),
            }
        }
        match failure {
            Some(error) if swept.is_empty() => Err(error),
            _ => Ok(swept),
        }
    }

    fn rule(&self, fold: usize, params: &LearnParams) -> CutRule {
        rule(params, self.folds[fold].longest_truncated)
    }

    /// The sums over each part that is learned from. They are additive, so each part is summed once
    /// for all folds; but if the longest truncated episode is in one part only, that part's fold
    /// has its own rule, and the others are summed again for it.
    fn sums(&self, features: &mut Features, params: &LearnParams, scored: &[(usize, Vec<&HeldOut>)]) -> TrainingSums {
        let mut sum = |parts: &[usize], rule: CutRule| {
            let mut sums = Accumulator::new(features, wanted(params));
            for episodes in parts.iter().flat_map(|&part| &self.parts[part]) {
                let batch = features.batch(episodes, rule);
                features.learn_words(&batch, false);
                sums.add(features, &batch);
            }
            sums.in_one_lane()
        };
        if let [(fold, _)] = scored {
            let training: Vec<usize> = self.training(*fold).collect();
            return TrainingSums::Together(sum(&training, self.rule(*fold, params)));
        }
        let mut by_rule: Vec<(CutRule, Vec<Accumulator>)> = Vec::new();
        for (fold, _) in scored {
            let rule = self.rule(*fold, params);
            if by_rule.iter().all(|(other, _)| *other != rule) {
                by_rule.push((rule, (0..self.parts.len()).map(|part| sum(&[part], rule)).collect()));
            }
        }
        TrainingSums::ByPart(by_rule)
    }
}

/// Sums over parts.
enum TrainingSums {
    /// Over all training parts.
    Together(Accumulator),
    /// Over each part, by the rule for cuts.
    ByPart(Vec<(CutRule, Vec<Accumulator>)>),
}

impl TrainingSums {
    /// Over the training parts of one fold.
    fn training(&self, fold: usize, rule: CutRule) -> Accumulator {
        let by_rule = match self {
            TrainingSums::Together(sums) => return sums.clone(),
            TrainingSums::ByPart(by_rule) => by_rule,
        };
        let (_, parts) = by_rule.iter().find(|(other, _)| *other == rule).expect("there are sums for the rule of each fold");
        let mut training = parts.iter().enumerate().filter(|(part, _)| *part != fold).map(|(_, sums)| sums);
        let mut sums = training.next().expect("there are at least two parts").clone();
        training.for_each(|part| sums.merge(part, |t| t, |h| h));
        sums
    }
}

/// For each weight of the n-gram, the log-likelihood of each episode.
type Scores = Vec<Vec<f64>>;

/// Learns from all parts but one.
struct FoldLearner<'a> {
    folds: &'a Folds,
    fold: usize,
    params: &'a LearnParams,
    rule: CutRule,
}

impl FoldLearner<'_> {
    /// For each rank and weight of the n-gram, the log-likelihood of each episode.
    fn scores(
        &self,
        mut features: Features,
        sums: Accumulator,
        ranks: &[usize],
        mixes: &[f64],
        episodes: &[&HeldOut],
    ) -> Result<Vec<Result<Scores>>> {
        let ranked = self.ranked(&mut features, sums)?;
        let fold = &self.folds.folds[self.fold];
        let mut last: Option<(usize, Scores)> = None;
        let of_rank = ranks.iter().map(|&rank| {
            // All ranks above that of the moments give the same model.
            let d = rank.min(ranked.most());
            if let Some((_, scores)) = last.as_ref().filter(|(before, _)| *before == d) {
                return Ok(scores.clone());
            }
            let scores = score(&self.model(&ranked, d)?, fold.unseen, mixes, episodes);
            last = Some((d, scores.clone()));
            Ok(scores)
        });
        Ok(of_rank.collect())
    }

    /// The data that all ranks share.
    fn ranked(&self, features: &mut Features, sums: Accumulator) -> Result<RankedModels> {
        let batches = self.folds.training(self.fold).flat_map(|part| &self.folds.parts[part]);
        RankedModels::new(features, sums, (self.params, self.rule), &self.folds.folds[self.fold].pairs, batches)
    }

    /// The model of rank d, without an n-gram.
    fn model(&self, ranked: &RankedModels, d: usize) -> Result<Model> {
        let fold = &self.folds.folds[self.fold];
        let origin = Origin {
            params: self.params.clone(),
            episodes: fold.trained_on.0,
            steps: fold.trained_on.1,
            skipped: 0,
            pairs: fold.own_pairs.clone(),
            pair_counts: fold.pair_counts.clone(),
            encoding: None,
            schema: Default::default(),
            digest: Default::default(),
            note: None,
        };
        ranked.model(d, fold.alphabet.clone(), origin, no_ngram())
    }
}

/// The predictions of the n-gram are computed once for all candidates.
fn no_ngram() -> NGram {
    Counter::new(0).finish()
}

/// For each weight of the n-gram, the log-likelihood of each episode.
fn score(model: &Model, unseen: f64, mixes: &[f64], episodes: &[&HeldOut]) -> Scores {
    let of_episode = |filter: &mut PredictiveState<&Model>, z: &HeldOut| {
        filter.reset();
        let mut sums = vec![0.0; mixes.len()];
        for (&ao, given) in z.steps.iter().zip(&z.given) {
            let p = filter.update(ao);
            for (sum, &mix) in sums.iter_mut().zip(mixes) {
                // As in `evaluate`: a probability of 0 costs 708 nats.
                *sum += given.mixed(p, mix, unseen).max(f64::MIN_POSITIVE).ln();
            }
        }
        sums
    };
    let of_chunk = |chunk: &[&HeldOut]| {
        let mut filter = PredictiveState::new(model);
        chunk.iter().map(|z| of_episode(&mut filter, z)).collect::<Vec<Vec<f64>>>()
    };
    let by_episode: Vec<Vec<f64>> = episodes.par_chunks(CHUNK).flat_map_iter(of_chunk).collect();
    (0..mixes.len()).map(|i| by_episode.iter().map(|sums| sums[i]).collect()).collect()
}
