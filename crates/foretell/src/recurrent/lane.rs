//! Episodes side by side: the rows that one lane of a batch computes, step by step.

use crate::data::ActionObservation;

/// The input of the first step of an episode, in place of an observation. An observation that is
/// missing is larger than all symbols, too: it adds nothing to the input, and is not predicted.
pub(super) const START: u32 = u32::MAX - 1;

/// A window of several episodes, longest first. At each step there is a row for each episode that
/// is still going on.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// Where the rows of each step begin, and their total number.
    pub(super) begins: Vec<usize>,
    pub(super) actions: Vec<u32>,
    /// The observation before each row, or `START`.
    pub(super) inputs: Vec<u32>,
    /// The observation of each row, to be predicted.
    pub(super) targets: Vec<u32>,
}

impl Lane {
    /// The steps `from..to` of episodes, which must be sorted by length, the longest first.
    pub(super) fn fill(&mut self, episodes: &[&[ActionObservation]], from: usize, to: usize) {
        let Lane { begins, actions, inputs, targets } = self;
        [actions, inputs, targets].into_iter().for_each(Vec::clear);
        begins.clear();
        begins.push(0);
        for t in from..to {
            let going_on = episodes.iter().take_while(|z| z.len() > t);
            for z in going_on {
                self.actions.push(z[t].action.0);
                self.inputs.push(if t == 0 { START } else { z[t - 1].observation.0 });
                self.targets.push(z[t].observation.0);
            }
            if self.targets.len() == self.begins[self.begins.len() - 1] {
                break;
            }
            self.begins.push(self.targets.len());
        }
    }

    /// Number of steps.
    pub(super) fn steps(&self) -> usize {
        self.begins.len() - 1
    }

    /// Number of rows of all steps.
    pub(super) fn rows(&self) -> usize {
        self.targets.len()
    }

    /// Number of rows of a step.
    pub(super) fn width(&self, t: usize) -> usize {
        self.begins[t + 1] - self.begins[t]
    }
}
