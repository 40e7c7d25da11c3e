//! A refinement between two rounds, as a part of a checkpoint: the values that EM has changed. The
//! rest is recomputed from model and logs.

use serde::{Deserialize, Serialize};

use super::fit::{EmRound, Fit, Growth};
use super::latent::{HardCounts, Latent};
use super::layout::{Layout, MODES};
use super::refinement::Refinement;
use crate::error::Result;
use crate::model::{Candidate, MOST_COUNT, StateLayout};
use crate::rng::Seed;
use crate::stop::StopReason;
use crate::store::AGAIN;
use crate::store::tensors::{self, Array, Arrays, Kind};

const REFINEMENT: Kind = Kind { name: "checkpoint of a refinement", again: AGAIN };

/// The header. Floating-point numbers are in arrays, which can hold infinities.
#[derive(Serialize, Deserialize)]
struct Header {
    waiting: Vec<Candidate>,
    restarts: u64,
    every: u64,
    tried: Vec<FitHeader>,
    leader: Option<FitHeader>,
    fit: Option<FitHeader>,
    trace: Vec<RoundHeader>,
}

#[derive(Serialize, Deserialize)]
struct FitHeader {
    candidate: Candidate,
    trial: bool,
    round: usize,
    /// The round of the last gain.
    gained: usize,
    /// The number of states of the best parameters.
    best_states: usize,
    /// Stage of growth, rounds of EM in it, stages without a gain.
    growth: Option<(u64, usize, usize)>,
    work: u64,
    seed: u64,
    stopped: Option<StopReason>,
}

#[derive(Serialize, Deserialize)]
struct RoundHeader {
    candidate: Candidate,
    trial: bool,
    round: usize,
    is_judged: bool,
}

impl Refinement<'_> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let numbers = |round: &EmRound| [round.training, round.penalised, round.held_out.unwrap_or(0.0)];
        let trace: Vec<f64> = self.trace.iter().flat_map(numbers).collect();
        let mut arrays = vec![Array::f64s("trace", &[self.trace.len(), 3], &trace)];
        let header = Header {
            waiting: self.waiting.clone(),
            restarts: self.restarts,
            every: self.every,
            tried: self.tried.iter().enumerate().map(|(i, fit)| fit.write(&format!("tried_{i}"), &mut arrays)).collect(),
            leader: self.leader.as_ref().map(|fit| fit.write("leader", &mut arrays)),
            fit: self.fit.as_ref().map(|fit| fit.write("fit", &mut arrays)),
            trace: self.trace.iter().map(RoundHeader::of).collect(),
        };
        tensors::to_bytes(REFINEMENT, header, &arrays)
    }

    /// Restores the saved state; `file` is named in errors.
    pub(super) fn restore(&mut self, bytes: &[u8], file: &str) -> Result<()> {
        let (header, arrays): (Header, _) = Arrays::open(REFINEMENT, bytes, file)?;
        let trace = arrays.sized("trace", arrays.any_f64s("trace")?, 3 * header.trace.len())?;
        let read = |name: &str, fit: &FitHeader| fit.read(name, &arrays, self);
        let leader = header.leader.map(|fit| read("leader", &fit)).transpose()?;
        let fit = header.fit.map(|fit| read("fit", &fit)).transpose()?;
        let tried = header.tried.iter().enumerate().map(|(i, fit)| read(&format!("tried_{i}"), fit));
        let tried = tried.collect::<Result<Vec<Fit>>>()?;
        (self.leader, self.fit, self.tried) = (leader, fit, tried);
        self.trace = header.trace.iter().zip(trace.chunks_exact(3)).map(|(round, numbers)| round.with(numbers)).collect();
        // It was judged on the share of the episodes on which candidates are compared.
        self.automaton = self.automaton.filter(|_| header.every == self.every);
        (self.waiting, self.restarts, self.every) = (header.waiting, header.restarts, header.every);
        Ok(())
    }
}

impl RoundHeader {
    fn of(round: &EmRound) -> RoundHeader {
        let EmRound { candidate, trial, round, held_out, .. } = *round;
        RoundHeader { candidate, trial, round, is_judged: held_out.is_some() }
    }

    fn with(&self, numbers: &[f64]) -> EmRound {
        let RoundHeader { candidate, trial, round, is_judged } = *self;
        EmRound {
            candidate,
            trial,
            round,
            training: numbers[0],
            penalised: numbers[1],
            held_out: is_judged.then_some(numbers[2]),
        }
    }
}

impl Fit {
    fn write(&self, name: &str, arrays: &mut Vec<Array>) -> FitHeader {
        let growth = self.growth.map_or([0.0; 4], |growth| [growth.before, growth.last_gain, growth.first, growth.latest]);
        arrays.push(Array::f64s(format!("{name}_judged"), &[6], &[&[self.judged, self.gained.0], &growth[..]].concat()));
        self.latent.write(&format!("{name}_latent"), arrays);
        self.best.write(&format!("{name}_best"), arrays);
        FitHeader {
            candidate: self.candidate,
            trial: self.trial,
            round: self.round,
            gained: self.gained.1,
            best_states: self.best_states,
            growth: self.growth.map(|growth| (growth.stage, growth.rounds, growth.failures)),
            work: self.work,
            seed: self.seed.0,
            stopped: self.stopped,
        }
    }
}

impl FitHeader {
    fn read(&self, name: &str, arrays: &Arrays<'_>, refinement: &Refinement<'_>) -> Result<Fit> {
        let (stage, rounds, failures) = self.growth.unwrap_or_default();
        let counts = [self.round as u64, stage, rounds as u64, failures as u64, self.work];
        if self.gained > self.round || counts.iter().any(|n| *n > MOST_COUNT) {
            return Err(arrays.damaged("it counts more rounds than there can have been"));
        }
        let judged = format!("{name}_judged");
        let judged = arrays.sized(&judged, arrays.any_f64s(&judged)?, 6)?;
        let latent = |of: &str| Latent::read(&format!("{name}_{of}"), arrays, self.candidate, refinement);
        Ok(Fit {
            candidate: self.candidate,
            latent: latent("latent")?,
            trial: self.trial,
            round: self.round,
            best: latent("best")?,
            best_states: self.best_states,
            judged: judged[0],
            gained: (judged[1], self.gained),
            growth: self.growth.map(|(stage, rounds, failures)| {
                let [before, last_gain, first, latest] = [judged[2], judged[3], judged[4], judged[5]];
                Growth { stage, rounds, failures, before, last_gain, first, latest }
            }),
            work: self.work,
            seed: Seed(self.seed),
            stopped: self.stopped,
        })
    }
}

impl Latent {
    fn write(&self, name: &str, arrays: &mut Vec<Array>) {
        let emissions = self.emissions.concat();
        for (of, values) in [("t", &self.t), ("e", &emissions), ("switches", &self.switches), ("prior", &self.prior)] {
            arrays.push(Array::f64s(format!("{name}_{of}"), &[values.len()], values));
        }
        // Without the sets of incomplete observations, which follow from the others.
        let is_complete = |place: &usize| self.layout.symbol_of(*place).is_some() || *place == self.layout.start();
        let active: Vec<&Vec<u32>> = (0..=self.layout.start()).filter(is_complete).map(|o| &self.layout.active[o]).collect();
        let sizes: Vec<u32> = active.iter().map(|set| set.len() as u32).collect();
        for (of, values) in [("sizes", sizes), ("active", active.into_iter().flatten().copied().collect())] {
            arrays.push(Array::u32s(format!("{name}_{of}"), &[values.len()], &values));
        }
    }

    /// The saved states and parameters.
    fn read(name: &str, arrays: &Arrays<'_>, candidate: Candidate, refinement: &Refinement<'_>) -> Result<Latent> {
        let (alphabet, look) = (refinement.model.alphabet(), &refinement.first_look);
        let sizes = format!("{name}_sizes");
        let sensors = if candidate.layout == StateLayout::Sensing { alphabet.actions().len() } else { 1 };
        let sizes = arrays.sized(&sizes, arrays.u32s(&sizes)?, sensors * alphabet.observations().len() + 1)?;
        let total = sizes.iter().map(|size| *size as usize).sum();
        let active = format!("{name}_active");
        let active = arrays.sized(&active, arrays.u32s(&active)?, total)?;
        let mut rest = active.as_slice();
        let sets = sizes.iter().map(|&size| {
            let (mine, others) = rest.split_at(size as usize);
            rest = others;
            mine.to_vec()
        });
        let layout = match candidate.layout {
            StateLayout::Modes => Some(Layout::modes(alphabet, MODES)),
            StateLayout::Owned | StateLayout::Merged | StateLayout::Auto => Layout::owned_of_sets(sets.collect()),
            StateLayout::Free | StateLayout::Sensing | StateLayout::Dense => Layout::free_of_sets(sets.collect(), sensors),
        };
        let layout = layout.ok_or_else(|| arrays.damaged("the sets of its states are not consistent"))?;
        let layout = layout.with_patterns(&look.patterns);
        let mut latent = Latent::new(layout, alphabet.actions().len(), &HardCounts::default(), &look.seen);
        let sized = |of: &str, size: usize| {
            let name = format!("{name}_{of}");
            arrays.sized(&name, arrays.f64s(&name)?, size)
        };
        latent.t = sized("t", latent.t.len())?;
        latent.prior = sized("prior", latent.prior.len())?;
        latent.switches = sized("switches", latent.switches.len())?;
        if [&latent.t, &latent.prior, &latent.switches].iter().any(|values| values.iter().any(|x| *x < 0.0)) {
            return Err(arrays.damaged("the parameters of its states are no probabilities"));
        }
        let emissions = sized("e", latent.emissions.iter().map(Vec::len).sum())?;
        let mut rest = emissions.as_slice();
        for e in &mut latent.emissions {
            let (mine, others) = rest.split_at(e.len());
            e.copy_from_slice(mine);
            rest = others;
        }
        latent.pack();
        Ok(latent)
    }
}
