//! The phases of a search, in order, within their time.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::folds::{Folds, Held};
use super::grid::is_same_shape;
use super::sweep::SweepScore;
use super::{Candidate, Found, Phase, STANDARD_ERRORS, Search, SearchProgress, SkippedCandidate};
use crate::error::{Error, Result};
use crate::model::LearnParams;
use crate::store::{AGAIN, digest};

/// Configurations scored in parallel, as far as memory allows. Fixed, so that results do not depend
/// on the number of threads.
const SIDE_BY_SIDE: usize = 4;
/// The largest memory of these together, in bytes; one is always allowed.
const MOST_MEMORY: f64 = (1u64 << 29) as f64;
/// Shares of the time by which the first three phases end.
const UNTIL: [f64; 3] = [0.45, 0.6, 0.75];
/// Configurations that are compared with the base on all folds, and ranks of each.
const FINALISTS: usize = 4;
const FINAL_RANKS: usize = 3;
/// The largest number of sequences without compression: solving is cubic in it.
const MOST_WORDS: usize = 1500;

/// A configuration to be scored, with its ranks.
type Planned = (LearnParams, Vec<usize>);

/// A search under way.
pub(super) struct Run<'a, 'f> {
    search: Search<'a>,
    folds: &'f Folds,
    lengths: Vec<usize>,
    /// Log-likelihoods of the base on the episodes held out now.
    reference: Vec<f64>,
    /// All candidates of the first three phases, and those of the last.
    screened: Vec<Candidate>,
    finals: Vec<Candidate>,
    untried: Vec<SkippedCandidate>,
    /// Work so far, in units of [`Folds::cost`].
    work: f64,
}

/// The scores of a configuration in a checkpoint.
#[derive(Serialize, Deserialize)]
struct Saved {
    tried: std::result::Result<Vec<Candidate>, String>,
    /// Of the base alone.
    reference: Vec<f64>,
}

impl<'a, 'f> Run<'a, 'f> {
    pub(super) fn new(search: Search<'a>, folds: &'f Folds) -> Run<'a, 'f> {
        let (reference, screened, finals, untried) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Run { search, folds, lengths: Vec::new(), reference, screened, finals, untried, work: 0.0 }
    }

    pub(super) fn found(mut self) -> Result<Found> {
        let (base, space) = (self.search.base.clone(), self.search.space.clone());
        self.begin(Held::Sample, &space.ranks)?;
        let coarse = space.coarse(&base).into_iter().skip(1).map(|shape| (shape, space.ranks.clone())).collect();
        self.screen(Phase::Coarse, coarse)?;
        let combined = space.combined(&self.ranked());
        self.screen(Phase::Combined, combined.into_iter().map(|shape| (shape, space.ranks.clone())).collect())?;
        let finer = space.finer(&self.ranked());
        self.screen(Phase::Finer, finer)?;
        self.last_phase()?;
        self.finish()
    }

    /// The base, with which all others are compared.
    fn begin(&mut self, held: Held, ranks: &[usize]) -> Result<()> {
        let base = self.search.base.clone();
        self.lengths = self.folds.lengths(held);
        self.reference = Vec::new();
        let mut ranks = ranks.to_vec();
        ranks.push(base.rank);
        ranks.sort_unstable();
        ranks.dedup();
        let phase = if held == Held::All { Phase::Final } else { Phase::Coarse };
        let name = name_of(phase, &base, &ranks);
        let saved = match self.load(&name)? {
            Some(saved) => saved,
            None => {
                let swept = self.folds.sweep(&base, &ranks, &self.search.space.mixes, held)?;
                let is_base = |swept: &&SweepScore| swept.rank == base.rank && swept.mix == base.mix;
                let Some(own) = swept.iter().find(is_base) else {
                    let problem = format!("no model of rank {} can be learned from parts of these logs", base.rank);
                    return Err(Error::data(problem, "give more episodes, or search around another `rank`"));
                };
                self.reference = own.log_likelihoods.clone();
                let saved = Saved { tried: Ok(self.compared(&base, phase, swept)), reference: self.reference.clone() };
                self.save(&name, &saved)?;
                saved
            }
        };
        self.reference = saved.reference;
        self.work += self.folds.cost(&base, &ranks, held);
        let tried = saved.tried.unwrap_or_default();
        if held == Held::All {
            self.finals.extend(tried)
        } else {
            self.screened.extend(tried)
        }
        Ok(())
    }

    /// Scores configurations on the sample, cheap ones first, while there is time.
    fn screen(&mut self, phase: Phase, planned: Vec<Planned>) -> Result<()> {
        let mut planned = self.possible(planned);
        let folds = self.folds;
        planned.sort_by(|x, y| folds.cost(&x.0, &x.1, Held::Sample).total_cmp(&folds.cost(&y.0, &y.1, Held::Sample)));
        let of = planned.len();
        let until = UNTIL[phase as usize];
        let mut rest = &planned[..];
        while !rest.is_empty() {
            let (mut now, after) = rest.split_at(self.fitting(rest));
            self.report(phase, of - rest.len(), of);
            let cost = |planned: &[Planned]| planned.iter().map(|(shape, ranks)| folds.cost(shape, ranks, Held::Sample)).sum();
            let mut work: f64 = cost(now);
            if !self.has_time(work, until) {
                // There may be time for one.
                (now, work) = (&now[..1], cost(&now[..1]));
                if !self.has_time(work, until) {
                    let left = rest.iter().map(|(params, _)| SkippedCandidate { params: params.clone(), why: "no time".into() });
                    self.untried.extend(left.collect::<Vec<_>>());
                    return Ok(());
                }
            }
            rest = if now.len() == 1 { &rest[1..] } else { after };
            let results = self.try_all(phase, now)?;
            for ((params, _), result) in now.iter().zip(results) {
                match result {
                    Ok(tried) => self.screened.extend(tried),
                    Err(why) => self.untried.push(SkippedCandidate { params: params.clone(), why }),
                }
            }
            self.work += work;
        }
        Ok(())
    }

    /// The configurations that the logs allow; the others are recorded as skipped.
    fn possible(&mut self, planned: Vec<Planned>) -> Vec<Planned> {
        let longest = self.folds.longest();
        let mut possible = Vec::new();
        for (params, ranks) in planned {
            let why = if params.max_test_length >= longest {
                Some(format!("the longest episode has {longest} steps, too few for tests of this length"))
            } else {
                let words = self.folds.words(&params, MOST_WORDS);
                (words > MOST_WORDS).then(|| format!("more than {MOST_WORDS} sequences, too many without compression"))
            };
            match why {
                Some(why) => self.untried.push(SkippedCandidate { params, why }),
                None => possible.push((params, ranks)),
            }
        }
        possible
    }

    /// Scores some configurations in parallel.
    fn try_all(&mut self, phase: Phase, now: &[Planned]) -> Result<Vec<std::result::Result<Vec<Candidate>, String>>> {
        let held = if phase == Phase::Final { Held::All } else { Held::Sample };
        let names: Vec<String> = now.iter().map(|(params, ranks)| name_of(phase, params, ranks)).collect();
        let kept = names.iter().map(|name| self.load(name)).collect::<Result<Vec<_>>>()?;
        let is_kept: Vec<bool> = kept.iter().map(Option::is_some).collect();
        let run = self.view();
        let new = |((params, ranks), kept): (&Planned, Option<Saved>)| match kept {
            Some(saved) => saved.tried,
            None => match run.folds.sweep(params, ranks, run.mixes, held) {
                Ok(swept) => Ok(run.compared(params, phase, swept)),
                Err(error) => Err(error.to_string()),
            },
        };
        let results: Vec<_> = now.par_iter().zip(kept).map(new).collect();
        for ((name, tried), _) in names.iter().zip(&results).zip(is_kept).filter(|(_, is_kept)| !is_kept) {
            self.save(name, &Saved { tried: tried.clone(), reference: Vec::new() })?;
        }
        Ok(results)
    }

    /// The best few on all folds.
    fn last_phase(&mut self) -> Result<()> {
        let base = self.search.base.clone();
        let ranked = self.ranked();
        let ranks_of = |run: &Self, shape: &LearnParams| {
            let mut tried: Vec<&Candidate> = run.screened.iter().filter(|tried| is_same_shape(&tried.params, shape)).collect();
            tried.sort_by(|x, y| y.nats.total_cmp(&x.nats));
            let mut ranks: Vec<usize> = Vec::new();
            for tried in tried {
                if !ranks.contains(&tried.params.rank) && ranks.len() < FINAL_RANKS {
                    ranks.push(tried.params.rank);
                }
            }
            ranks.sort_unstable();
            ranks
        };
        let others: Vec<Planned> = ranked
            .iter()
            .filter(|shape| !is_same_shape(shape, &base))
            .take(FINALISTS)
            .map(|shape| (shape.clone(), ranks_of(self, shape)))
            .collect();
        let of = others.len() + 1;
        self.report(Phase::Final, 0, of);
        let own_ranks = ranks_of(self, &base);
        self.begin(Held::All, &own_ranks)?;
        for (i, planned) in others.into_iter().enumerate() {
            self.report(Phase::Final, i + 1, of);
            let work = self.folds.cost(&planned.0, &planned.1, Held::All);
            // The best is always compared.
            if i > 0 && !self.has_time(work, 1.0) {
                self.untried.push(SkippedCandidate { params: planned.0, why: "no time to score it on all folds".into() });
                continue;
            }
            for result in self.try_all(Phase::Final, std::slice::from_ref(&planned))? {
                match result {
                    Ok(tried) => self.finals.extend(tried),
                    Err(why) => self.untried.push(SkippedCandidate { params: planned.0.clone(), why }),
                }
            }
            self.work += work;
        }
        self.report(Phase::Final, of, of);
        Ok(())
    }

    fn finish(mut self) -> Result<Found> {
        let base = self.view().base_tried();
        let order = |tried: &mut Vec<Candidate>| tried.sort_by(|x, y| y.nats.total_cmp(&x.nats));
        order(&mut self.finals);
        order(&mut self.screened);
        let best = self.finals.first().filter(|best| best.gain > STANDARD_ERRORS * best.error && best.gain > 0.0);
        let chosen = best.unwrap_or(&base).clone();
        let mut tried = self.finals;
        tried.extend(self.screened);
        let Folds { episodes, steps, skipped, is_cut, .. } = *self.folds;
        let (longest, folds, untried) = (self.folds.longest(), self.search.folds, self.untried);
        Ok(Found { chosen, base, tried, untried, episodes, steps, longest, skipped, is_cut, folds })
    }

    /// The configurations scored so far, best first, each with its best rank and mixture.
    fn ranked(&self) -> Vec<LearnParams> {
        let mut tried: Vec<&Candidate> = self.screened.iter().collect();
        tried.sort_by(|x, y| y.nats.total_cmp(&x.nats));
        let mut ranked: Vec<LearnParams> = Vec::new();
        for tried in tried {
            if !ranked.iter().any(|other| is_same_shape(other, &tried.params)) {
                ranked.push(tried.params.clone());
            }
        }
        ranked
    }

    /// How many of these fit into memory together.
    fn fitting(&self, planned: &[Planned]) -> usize {
        let mut bytes = 0.0;
        let fits = |(params, ranks): &&Planned| {
            bytes += self.folds.bytes(params, ranks);
            bytes <= MOST_MEMORY
        };
        planned.iter().take(SIDE_BY_SIDE).take_while(fits).count().max(1)
    }

    /// Whether work fits into the time until the share `until`, judged by the speed so far.
    fn has_time(&mut self, work: f64, until: f64) -> bool {
        let Some(spent) = &mut self.search.spent else { return true };
        let spent = spent();
        spent + work * spent / self.work.max(f64::MIN_POSITIVE) <= until
    }

    fn report(&mut self, phase: Phase, done: usize, of: usize) {
        let tried = if self.finals.is_empty() { &self.screened } else { &self.finals };
        let gain = tried.iter().map(|tried| tried.gain).fold(0.0, f64::max);
        if let Some(progress) = &mut self.search.progress {
            progress(SearchProgress { phase, done, of, gain });
        }
    }

    fn view(&self) -> View<'_> {
        View {
            folds: self.folds,
            base: &self.search.base,
            mixes: &self.search.space.mixes,
            lengths: &self.lengths,
            reference: &self.reference,
        }
    }

    fn compared(&self, params: &LearnParams, phase: Phase, swept: Vec<SweepScore>) -> Vec<Candidate> {
        self.view().compared(params, phase, swept)
    }

    fn load(&self, name: &str) -> Result<Option<Saved>> {
        let Some(checkpoint) = &self.search.checkpoint else { return Ok(None) };
        let Some(bytes) = checkpoint.load(name)? else { return Ok(None) };
        let damaged = |e: serde_json::Error| {
            Error::input(checkpoint.path(name).display().to_string(), None, format!("it is damaged ({e})"), AGAIN)
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    fn save(&mut self, name: &str, saved: &Saved) -> Result<()> {
        let Some(checkpoint) = &mut self.search.checkpoint else { return Ok(()) };
        checkpoint.save(name, &serde_json::to_vec(saved).expect("numbers are finite and names are text"))
    }
}

/// The name of a configuration's part of a checkpoint.
fn name_of(phase: Phase, params: &LearnParams, ranks: &[usize]) -> String {
    let json = serde_json::to_vec(&(phase == Phase::Final, LearnParams { rank: 1, mix: 0.0, ..params.clone() }, ranks));
    digest(&json.expect("parameters are plain data"))
}

/// The data for comparisons with the base.
struct View<'v> {
    folds: &'v Folds,
    base: &'v LearnParams,
    mixes: &'v [f64],
    lengths: &'v [usize],
    reference: &'v [f64],
}

impl View<'_> {
    /// For each rank, the best mixture compared with the base; for the base itself, its own.
    fn compared(&self, params: &LearnParams, phase: Phase, swept: Vec<SweepScore>) -> Vec<Candidate> {
        let tried = |swept: &SweepScore| self.tried(params, phase, swept);
        let mut all: Vec<Candidate> = Vec::new();
        for of_rank in swept.chunk_by(|x, y| x.rank == y.rank) {
            all.extend(of_rank.iter().map(tried).max_by(|x, y| x.nats.total_cmp(&y.nats)));
        }
        all
    }

    fn tried(&self, params: &LearnParams, phase: Phase, swept: &SweepScore) -> Candidate {
        let steps: usize = self.lengths.iter().sum();
        let (steps, n) = (steps as f64, self.lengths.len() as f64);
        let differences = || swept.log_likelihoods.iter().zip(self.reference).map(|(x, y)| x - y).zip(self.lengths);
        let gain = differences().map(|(difference, _)| difference).sum::<f64>() / steps;
        // The variance of a ratio, over episodes.
        let squares: f64 = differences().map(|(difference, &length)| (difference - gain * length as f64).powi(2)).sum();
        Candidate {
            params: LearnParams { rank: swept.rank, mix: swept.mix, ..params.clone() },
            phase,
            nats: swept.log_likelihoods.iter().sum::<f64>() / steps,
            gain,
            error: (squares * n / (n - 1.0).max(1.0)).sqrt() / steps,
            episodes: self.lengths.len(),
        }
    }

    /// The base, as it was last scored.
    fn base_tried(&self) -> Candidate {
        let swept = SweepScore { rank: self.base.rank, mix: self.base.mix, log_likelihoods: self.reference.to_vec() };
        self.tried(self.base, Phase::Final, &swept)
    }
}
