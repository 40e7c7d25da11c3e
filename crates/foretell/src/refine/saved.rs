//! A refinement between two rounds, as a part of a checkpoint: the values that EM has changed. The
//! rest is recomputed from model and logs.

use serde::{Deserialize, Serialize};

use super::latent::Latent;
use super::refinement::{EmRound, Fit, Refinement};
use crate::error::Result;
use crate::model::Candidate;
use crate::rng::Seed;
use crate::stop::StopReason;
use crate::store::AGAIN;
use crate::store::tensors::{self, Array, Arrays, Kind};

const REFINEMENT: Kind = Kind { name: "checkpoint of a refinement", again: AGAIN };

/// The header. Floating-point numbers are in arrays, which can hold infinities.
#[derive(Serialize, Deserialize)]
struct Header {
    waiting: Vec<Candidate>,
    every: u64,
    tried: Vec<Candidate>,
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
        let judged: Vec<f64> = self.tried.iter().map(|(_, judged)| *judged).collect();
        let numbers = |round: &EmRound| [round.training, round.penalised, round.held_out.unwrap_or(0.0)];
        let trace: Vec<f64> = self.trace.iter().flat_map(numbers).collect();
        let mut arrays =
            vec![Array::f64s("tried", &[judged.len()], &judged), Array::f64s("trace", &[self.trace.len(), 3], &trace)];
        let header = Header {
            waiting: self.waiting.clone(),
            every: self.every,
            tried: self.tried.iter().map(|(candidate, _)| *candidate).collect(),
            leader: self.leader.as_ref().map(|fit| fit.write("leader", &mut arrays)),
            fit: self.fit.as_ref().map(|fit| fit.write("fit", &mut arrays)),
            trace: self.trace.iter().map(RoundHeader::of).collect(),
        };
        tensors::to_bytes(REFINEMENT, header, &arrays)
    }

    /// Restores the saved state; `file` is named in errors.
    pub(super) fn restore(&mut self, bytes: &[u8], file: &str) -> Result<()> {
        let (header, arrays): (Header, _) = Arrays::open(REFINEMENT, bytes, file)?;
        let tried = arrays.sized("tried", arrays.f64s("tried")?, header.tried.len())?;
        let trace = arrays.sized("trace", arrays.f64s("trace")?, 3 * header.trace.len())?;
        let seed = Seed(self.model.params().seed);
        let read =
            |name: &str, fit: FitHeader| fit.read(name, &arrays, self.first_look.latent(&self.model, fit.candidate, seed)?);
        self.leader = header.leader.map(|fit| read("leader", fit)).transpose()?;
        self.fit = header.fit.map(|fit| read("fit", fit)).transpose()?;
        self.tried = header.tried.into_iter().zip(tried).collect();
        self.trace = header.trace.iter().zip(trace.chunks_exact(3)).map(|(round, numbers)| round.with(numbers)).collect();
        (self.waiting, self.every) = (header.waiting, header.every);
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
        arrays.push(Array::f64s(format!("{name}_judged"), &[2], &[self.judged, self.gained.0]));
        self.latent.write(&format!("{name}_latent"), arrays);
        self.best.write(&format!("{name}_best"), arrays);
        FitHeader {
            candidate: self.candidate,
            trial: self.trial,
            round: self.round,
            gained: self.gained.1,
            stopped: self.stopped,
        }
    }
}

impl FitHeader {
    /// `first` is the first estimate of its candidate.
    fn read(&self, name: &str, arrays: &Arrays<'_>, first: Latent) -> Result<Fit> {
        let judged = format!("{name}_judged");
        let judged = arrays.sized(&judged, arrays.f64s(&judged)?, 2)?;
        Ok(Fit {
            candidate: self.candidate,
            latent: first.clone().read(&format!("{name}_latent"), arrays)?,
            trial: self.trial,
            round: self.round,
            best: first.read(&format!("{name}_best"), arrays)?,
            judged: judged[0],
            gained: (judged[1], self.gained),
            stopped: self.stopped,
        })
    }
}

impl Latent {
    fn write(&self, name: &str, arrays: &mut Vec<Array>) {
        let emissions = self.emissions.concat();
        for (of, values) in [("t", &self.t), ("e", &emissions), ("switches", &self.switches)] {
            arrays.push(Array::f64s(format!("{name}_{of}"), &[values.len()], values));
        }
    }

    /// The same states with the saved parameters.
    fn read(mut self, name: &str, arrays: &Arrays<'_>) -> Result<Latent> {
        let sized = |of: &str, size: usize| {
            let name = format!("{name}_{of}");
            arrays.sized(&name, arrays.f64s(&name)?, size)
        };
        self.t = sized("t", self.t.len())?;
        self.switches = sized("switches", self.switches.len())?;
        let emissions = sized("e", self.emissions.iter().map(Vec::len).sum())?;
        let mut rest = emissions.as_slice();
        for e in &mut self.emissions {
            let (mine, others) = rest.split_at(e.len());
            e.copy_from_slice(mine);
            rest = others;
        }
        self.pack();
        Ok(self)
    }
}
