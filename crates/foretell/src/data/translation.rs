//! From the symbols of one alphabet to those of another, by name.

use super::symbols::{Action, ActionObservation, Alphabet, Observation};

/// What the symbols of one alphabet are in another; `None` where it does not have them.
#[derive(Clone, Debug)]
pub(crate) struct Translation {
    actions: Vec<Option<Action>>,
    observations: Vec<Option<Observation>>,
}

impl Translation {
    /// Between two alphabets as they are.
    pub(crate) fn between(from: &Alphabet, to: &Alphabet) -> Translation {
        Translation {
            actions: from.actions().iter().map(|name| to.action(name)).collect(),
            observations: from.observations().iter().map(|symbol| to.same_observation(symbol)).collect(),
        }
    }

    /// Adds the names of `from` that are new behind those of `to`: every symbol has a translation.
    pub(crate) fn adding(from: &Alphabet, to: &mut Alphabet) -> Translation {
        from.actions().iter().for_each(|name| {
            to.intern_action(name);
        });
        from.observations().iter().for_each(|symbol| {
            to.intern(&symbol.name, symbol.terminal);
        });
        Translation::between(from, to)
    }

    /// An action in the other alphabet.
    pub(crate) fn action(&self, a: Action) -> Option<Action> {
        self.actions.get(a.index()).copied().flatten()
    }

    /// An observation in the other alphabet.
    pub(crate) fn observation(&self, o: Observation) -> Option<Observation> {
        if o.is_missing() {
            return Some(o);
        }
        self.observations.get(o.index()).copied().flatten()
    }

    /// A pair in the other alphabet, if it has both symbols.
    pub(crate) fn pair(&self, ao: ActionObservation) -> Option<ActionObservation> {
        Some(ActionObservation { action: self.action(ao.action)?, observation: self.observation(ao.observation)? })
    }

    /// A pair that the other alphabet has.
    pub(crate) fn known_pair(&self, ao: ActionObservation) -> ActionObservation {
        self.pair(ao).expect("both alphabets have the pair")
    }
}
