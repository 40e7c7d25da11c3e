//! Rewards R(a, s, s', o) as rules, of which the last that matches applies.

use rustc_hash::FxHashMap;

/// A reward for all (a, s, s', o) that match; `None` matches everything. A later rule overrides an
/// earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardRule {
    /// a
    pub action: Option<usize>,
    /// s
    pub from: Option<usize>,
    /// s'
    pub to: Option<usize>,
    /// o, as an index of [`PomdpTables::observations`](super::PomdpTables::observations).
    pub observation: Option<usize>,
    /// R(a, s, s', o)
    pub reward: f64,
}

/// Stands in a key for an argument that a shape leaves open.
const ANY: u32 = u32::MAX;

/// The arguments a, s, s', o.
type Key = [u32; 4];

/// Rules grouped by which arguments they name: a lookup tries each shape once, and the latest rule
/// applies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rewards {
    shapes: Vec<Shape>,
}

#[derive(Clone, Debug, PartialEq)]
struct Shape {
    /// Which of a, s, s', o the rules of this shape name.
    names: [bool; 4],
    /// For each key, the last rule's place in the order of the rules, and its reward.
    rules: FxHashMap<Key, (u32, f64)>,
}

impl Rewards {
    pub fn new(rules: &[RewardRule]) -> Rewards {
        let mut shapes: Vec<Shape> = Vec::new();
        for (order, rule) in (0u32..).zip(rules) {
            let arguments = [rule.action, rule.from, rule.to, rule.observation];
            let names = arguments.map(|x| x.is_some());
            let key = arguments.map(|x| x.map_or(ANY, |i| i as u32));
            let i = shapes.iter().position(|shape| shape.names == names).unwrap_or_else(|| {
                shapes.push(Shape { names, rules: FxHashMap::default() });
                shapes.len() - 1
            });
            shapes[i].rules.insert(key, (order, rule.reward));
        }
        Rewards { shapes }
    }

    /// R(a, s, s', o); 0 where no rule matches.
    pub fn get(&self, a: usize, s: usize, to: usize, o: usize) -> f64 {
        let key = [a, s, to, o].map(|i| i as u32);
        let rule_of = |shape: &Shape| {
            let key: Key = std::array::from_fn(|i| if shape.names[i] { key[i] } else { ANY });
            shape.rules.get(&key).copied()
        };
        self.shapes.iter().filter_map(rule_of).max_by_key(|&(order, _)| order).map_or(0.0, |(_, reward)| reward)
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// The rules that apply, in their order.
    pub fn rules(&self) -> Vec<RewardRule> {
        let all = self.shapes.iter().flat_map(|shape| &shape.rules);
        let mut rules: Vec<(u32, RewardRule)> = all
            .map(|(key, &(order, reward))| {
                let [action, from, to, observation] = key.map(|i| (i != ANY).then_some(i as usize));
                (order, RewardRule { action, from, to, observation, reward })
            })
            .collect();
        rules.sort_unstable_by_key(|&(order, _)| order);
        rules.into_iter().map(|(_, rule)| rule).collect()
    }

    /// Whether some rule names s'.
    pub fn depend_on_next_state(&self) -> bool {
        self.shapes.iter().any(|shape| shape.names[2])
    }

    /// Whether some rule names o.
    pub fn depend_on_observation(&self) -> bool {
        self.shapes.iter().any(|shape| shape.names[3])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn argument() -> impl Strategy<Value = Option<usize>> {
        prop::option::of(0..3usize)
    }

    proptest! {
        #[test]
        fn the_last_rule_that_matches_applies(
            rules in prop::collection::vec((argument(), argument(), argument(), argument()), 0..12),
            x in prop::array::uniform4(0..3usize),
        ) {
            let rules: Vec<RewardRule> = (1..)
                .zip(rules)
                .map(|(i, (action, from, to, observation))| RewardRule { action, from, to, observation, reward: f64::from(i) })
                .collect();
            let fits = |rule: &&RewardRule| {
                [rule.action, rule.from, rule.to, rule.observation].iter().zip(x).all(|(named, x)| named.is_none_or(|n| n == x))
            };
            let expected = rules.iter().rev().find(fits).map_or(0.0, |rule| rule.reward);
            prop_assert_eq!(Rewards::new(&rules).get(x[0], x[1], x[2], x[3]), expected);
        }
    }
}
