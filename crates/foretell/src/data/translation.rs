//! Translation of indices between alphabets by name.

use super::symbols::{Action, ActionObservation, Alphabet, Observation};

/// The indices of the symbols of one alphabet in another.
pub(crate) struct Renaming {
    actions: Vec<Action>,
    observations: Vec<Observation>,
}

impl Renaming {
    /// Appends the names of `from` that are new to `to`.
    pub(crate) fn new(from: &Alphabet, to: &mut Alphabet) -> Renaming {
        let actions = from.actions().iter().map(|name| to.intern_action(name)).collect();
        let mut intern = |name: &str, terminal: bool| match terminal {
            true => to.intern_terminal_observation(name),
            false => to.intern_observation(name),
        };
        let observations = from.observations().iter().map(|symbol| intern(&symbol.name, symbol.terminal)).collect();
        Renaming { actions, observations }
    }

    /// Translates a pair of the first alphabet.
    pub(crate) fn pair(&self, ao: ActionObservation) -> ActionObservation {
        self.known_pair(ao).expect("the pair is one of the alphabet")
    }

    /// The same; `None` if the alphabet does not have it.
    pub(crate) fn known_pair(&self, ao: ActionObservation) -> Option<ActionObservation> {
        let action = *self.actions.get(ao.action.index())?;
        let observation = *self.observations.get(ao.observation.index())?;
        Some(ActionObservation { action, observation })
    }

    /// Translates an observation of the first alphabet.
    pub(crate) fn observation(&self, o: Observation) -> Observation {
        self.observations[o.index()]
    }
}
