//! Which states a belief can hold possible at the same time.
//!
//! Often a part of the state is observed: where a rover is, but not which rocks are good. Then the
//! states fall into classes, and every belief that can be reached lies in one of them. Vectors and
//! bounds of beliefs are needed only on the states of their class (mixed observability; Ong et al.
//! 2010). The classes follow from which probabilities are zero, so no model has to declare them.

use rustc_hash::FxHashMap;

use super::system::System;

/// A partition of the states that can be reached after the start.
///
/// If the start spans several classes, it is one more, of which no other belief is.
#[derive(Default)]
pub(super) struct Classes {
    /// The class of each state after the start, and its place in there; [`NONE`] for a state that
    /// is never reached.
    of: Vec<u32>,
    place: Vec<u32>,
    /// The states of each class, in order.
    members: Vec<Vec<u32>>,
    /// The class of the start; the places of states in it if it is one of its own.
    start: usize,
    start_place: Option<Vec<u32>>,
}

const NONE: u32 = u32::MAX;

impl Classes {
    /// The finest partition in which all successors of a class, and of the start, after an action
    /// and an observation lie in one class.
    pub fn of(system: &System) -> Classes {
        let mut sets = Sets::new(system.states);
        let mut reached = vec![false; system.states];
        let start: Vec<u32> = system.start.states.clone();
        (0..system.actions).for_each(|a| sets.join_successors(system, a, &start, |_, _| 0, &mut reached));
        loop {
            let from: Vec<u32> = (0..system.states as u32).filter(|&s| reached[s as usize]).collect();
            let joins = sets.joins;
            for a in 0..system.actions {
                sets.join_successors(system, a, &from, Sets::root, &mut reached);
            }
            if joins == sets.joins && from.len() == reached.iter().filter(|r| **r).count() {
                return Classes::new(sets, &reached, &start);
            }
        }
    }

    fn new(mut sets: Sets, reached: &[bool], start: &[u32]) -> Classes {
        let states = reached.len();
        let mut classes = Classes { of: vec![NONE; states], place: vec![NONE; states], ..Classes::default() };
        let mut of_root = vec![NONE; states];
        for s in (0..states).filter(|&s| reached[s]) {
            let class = &mut of_root[sets.root(s as u32) as usize];
            if *class == NONE {
                *class = classes.members.len() as u32;
                classes.members.push(Vec::new());
            }
            let members = &mut classes.members[*class as usize];
            (classes.of[s], classes.place[s]) = (*class, members.len() as u32);
            members.push(s as u32);
        }
        let first = start.first().map_or(NONE, |&s| classes.of[s as usize]);
        if first != NONE && start.iter().all(|&s| classes.of[s as usize] == first) {
            classes.start = first as usize;
        } else {
            classes.start = classes.members.len();
            let mut place = vec![NONE; states];
            start.iter().enumerate().for_each(|(i, &s)| place[s as usize] = i as u32);
            classes.start_place = Some(place);
            classes.members.push(start.to_vec());
        }
        classes
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The class of the start.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The class of a state that a belief after the start holds possible.
    pub fn of_state(&self, s: usize) -> usize {
        self.of[s] as usize
    }

    /// The place of each state of a class in there.
    pub fn places(&self, class: usize) -> &[u32] {
        self.start_place.as_deref().filter(|_| class == self.start).unwrap_or(&self.place)
    }

    /// The states of a class.
    pub fn members(&self, class: usize) -> &[u32] {
        &self.members[class]
    }
}

/// Disjoint sets of states.
struct Sets {
    parent: Vec<u32>,
    joins: usize,
}

impl Sets {
    fn new(states: usize) -> Sets {
        Sets { parent: (0..states as u32).collect(), joins: 0 }
    }

    /// The state that stands for the set of `s`.
    fn root(&mut self, mut s: u32) -> u32 {
        while self.parent[s as usize] != s {
            self.parent[s as usize] = self.parent[self.parent[s as usize] as usize];
            s = self.parent[s as usize];
        }
        s
    }

    fn join(&mut self, x: u32, y: u32) {
        let (x, y) = (self.root(x), self.root(y));
        if x != y {
            self.parent[x.max(y) as usize] = x.min(y);
            self.joins += 1;
        }
    }

    /// Joins what can follow states of the same `group` after `a` and the same observation.
    fn join_successors(
        &mut self,
        system: &System,
        a: usize,
        from: &[u32],
        group: impl Fn(&mut Sets, u32) -> u32,
        reached: &mut [bool],
    ) {
        let mut first = FxHashMap::<(u32, usize), u32>::default();
        for &s in from {
            let group = group(self, s);
            for (to, _) in system.transitions[a].row(s as usize) {
                for (o, _) in system.emissions[a].row(to) {
                    reached[to] = true;
                    let one = *first.entry((group, o)).or_insert(to as u32);
                    self.join(one, to as u32);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pomdp::Pomdp;

    #[test]
    fn what_is_observed_separates_states() {
        // Three cells that look alike, a goal that is seen, and a cell that is never reached.
        let maze = "discount: 0.75  values: reward  states: left middle right goal cellar  actions: west east
                    observations: nothing goal  start: 0.25 0.25 0.25 0.25 0
                    T: west : left : left 1     T: west : middle : left 1    T: west : right : goal 1
                    T: east : left : middle 1   T: east : middle : goal 1    T: east : right : right 1
                    T: * : goal 0.3 0.3 0.4 0 0 T: * : cellar : left 1
                    O: * : * : nothing 1        O: * : goal 0 1
                    R: * : * : goal : * 1";
        let system = System::new(&Pomdp::parse(maze, "maze.POMDP").unwrap(), 0.75).unwrap();
        let classes = &system.classes;
        let members: Vec<&[u32]> = (0..classes.len()).map(|class| classes.members(class)).collect();
        assert_eq!(members, [&[0, 1, 2][..], &[3], &[0, 1, 2, 3]]); // the last is the start
        assert_eq!((classes.start(), classes.of_state(3)), (2, 1));
        assert_eq!((classes.places(0)[2], classes.places(1)[3], classes.places(2)[3]), (2, 0, 3));
    }
}
