//! Learning in progress, and how it is saved in a checkpoint.

use serde::{Deserialize, Serialize};

use super::Pass;
use super::moments::{self, Adjustment, Moments};
use super::operators::Operator;
use super::source::{SeenSoFar, empty_batch};
use crate::data::CutRule;
use crate::error::Result;
use crate::log::Position;
use crate::store::tensors::{self, Array, Arrays, Kind};
use crate::store::{AGAIN, Checkpoint};

const LEARNING: Kind = Kind { name: "learning", again: AGAIN };
/// The name of this part of a checkpoint.
const PART: &str = "learn";

/// The sums so far and the position in the passes.
pub(super) struct Work {
    pub(super) moments: Moments,
    /// Number of actions before the new logs.
    pub(super) actions: usize,
    pub(super) pass: Pass,
    /// The position in the current pass.
    pub(super) position: Position,
    pub(super) episodes: u64,
    pub(super) steps: u64,
    /// Steps in the logs.
    pub(super) total: u64,
    /// The position from which the moments of pairs were no longer summed, because they did not fit
    /// into memory.
    pub(super) full_at: Option<Position>,
    /// Cuts of earlier logs that the new ones change.
    pub(super) adjustment: Option<Adjustment>,
    /// The sums of the last pass, during that pass.
    pub(super) operators: Option<Vec<Operator>>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    actions: usize,
    pass: Pass,
    position: Position,
    episodes: u64,
    steps: u64,
    total: u64,
    full_at: Option<Position>,
    /// The previous rule, if there is an adjustment.
    adjusts: Option<(usize, Option<usize>)>,
    /// Number and sizes of operators.
    operators: Option<[usize; 3]>,
}

impl Work {
    pub(super) fn new(moments: Moments) -> Work {
        Work {
            actions: moments.alphabet().actions().len(),
            moments,
            pass: Pass::Survey,
            position: Position::default(),
            episodes: 0,
            steps: 0,
            total: 0,
            full_at: None,
            adjustment: None,
            operators: None,
        }
    }

    pub(super) fn begin_pass(&mut self, pass: Pass) {
        (self.pass, self.position, self.episodes, self.steps) = (pass, Position::default(), 0, 0);
    }

    pub(super) fn after(&mut self, episodes: usize, steps: usize, seen: &SeenSoFar<'_>) {
        self.position = seen.position;
        self.episodes += episodes as u64;
        self.steps += steps as u64;
    }

    pub(super) fn save(&self, checkpoint: &mut Checkpoint) -> Result<()> {
        let size = |operators: &Vec<Operator>| {
            let first = operators.first().map_or((0, 0), |o| (o.matrix.nrows(), o.matrix.ncols()));
            [operators.len(), first.0, first.1]
        };
        let header = Header {
            actions: self.actions,
            pass: self.pass,
            position: self.position,
            episodes: self.episodes,
            steps: self.steps,
            total: self.total,
            full_at: self.full_at,
            adjusts: self.adjustment.as_ref().map(|adjustment| (adjustment.old.room, adjustment.old.limit)),
            operators: self.operators.as_ref().map(size),
        };
        let mut arrays = vec![Array::bytes("moments", self.moments.to_bytes())];
        if let Some(operators) = &self.operators {
            moments::write_operators(&mut arrays, operators);
        }
        if let Some(adjustment) = &self.adjustment {
            moments::write_episodes(&mut arrays, "adjustment", &adjustment.episodes);
        }
        checkpoint.save(PART, &tensors::to_bytes(LEARNING, header, &arrays))
    }

    /// The saved work, if there is any.
    pub(super) fn load(checkpoint: &Checkpoint) -> Result<Option<Work>> {
        let Some(bytes) = checkpoint.load(PART)? else { return Ok(None) };
        let file = checkpoint.path(PART).display().to_string();
        let (header, arrays): (Header, _) = Arrays::open(LEARNING, &bytes, &file)?;
        let moments = Moments::from_bytes(arrays.bytes("moments")?, &file)?;
        let operators = header.operators.map(|[n, rows, columns]| moments::read_operators(&arrays, n, rows, columns));
        let adjustment = header.adjusts.map(|(room, limit)| {
            let mut episodes = empty_batch(moments.params().weighting);
            moments::read_episodes(&arrays, "adjustment", moments.alphabet(), &mut episodes)?;
            Ok(Adjustment { episodes, old: CutRule { room, limit } })
        });
        Ok(Some(Work {
            operators: operators.transpose()?,
            adjustment: adjustment.transpose()?,
            moments,
            actions: header.actions,
            pass: header.pass,
            position: header.position,
            episodes: header.episodes,
            steps: header.steps,
            total: header.total,
            full_at: header.full_at,
        }))
    }
}
