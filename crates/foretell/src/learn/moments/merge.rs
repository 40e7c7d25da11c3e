//! Merges the moments of two logs.

use super::{Moments, OperatorStore};
use crate::data::{EMPTY, Translation, Vocabulary};
use crate::error::{Error, Result};
use crate::model::{LearnParams, Weighting};

impl Moments {
    /// Adds the moments of other logs, which come after those seen so far. Both must be exact and
    /// have the same parameters.
    pub fn merge(&mut self, mut other: Moments) -> Result<()> {
        if let Some(field) = differing(&self.params, &other.params) {
            let problem = format!("the models were learned with other parameters: {field}");
            return Err(Error::data(problem, "learn them with the same parameters and seed"));
        }
        if !(self.is_exact() && other.is_exact()) {
            return Err(Error::data(
                "only exact moments can be merged",
                "learn with `keep_moments` exact, or update one model with the logs of the other",
            ));
        }
        // An error leaves these moments unchanged.
        let mut survey = self.survey.clone();
        let translation = survey.merge(&other.survey);
        let now = survey.alphabet.actions().len();
        [&*self, &other].into_iter().try_for_each(|moments| moments.refuse_actions(now))?;
        let rule = if self.boundary.is_full { self.rule } else { survey.rule(&self.params) };
        if other.boundary.is_full && other.rule != rule {
            return Err(Error::data(
                "the longest truncated episodes of the two logs differ, and the episodes that this affects were too many to keep",
                "learn from all logs together",
            ));
        }
        self.survey = survey;
        self.begin();
        other.adopt(rule);

        let sides =
            [(&mut self.features.tests, &other.features.tests), (&mut self.features.histories, &other.features.histories)];
        let [tests, histories] = sides.map(|(ours, theirs)| Rows {
            words: merge_words(&mut ours.vocabulary, &theirs.vocabulary, &translation),
            specials: ours.specials as u32,
        });
        self.sums.merge(&other.sums, |t| tests.renamed(t), |h| histories.renamed(h));
        let pairs = self.survey.pairs();
        if let (OperatorStore::PerPair(ours), OperatorStore::PerPair(theirs)) = (&mut self.kept, &other.kept) {
            ours.reserve(&self.features, &pairs);
            for (&ao, &slot) in &theirs.slots {
                let (ours, theirs) = (&mut ours.sums[ours.slots[&translation.known_pair(ao)]], &theirs.sums[slot]);
                ours.weight += theirs.weight;
                ours.entries.merge(&theirs.entries, |t, h| (tests.renamed(t), histories.renamed(h)));
            }
        }
        for mut z in other.boundary.episodes.iter() {
            let steps: Vec<_> = z.steps.iter().map(|&ao| translation.known_pair(ao)).collect();
            z.steps = &steps;
            self.boundary.episodes.push_episode(z);
        }
        self.boundary.is_full |= other.boundary.is_full;
        self.boundary.trim();
        Ok(())
    }

    /// An error if there are more actions now than before.
    fn refuse_actions(&self, now: usize) -> Result<()> {
        self.params.refuse_new_actions(self.alphabet().actions().len(), now)
    }
}

impl LearnParams {
    /// Ratios are relative to a uniformly random policy, so the number of actions must not change.
    pub(crate) fn refuse_new_actions(&self, before: usize, now: usize) -> Result<()> {
        if self.weighting == Weighting::None || before == now {
            return Ok(());
        }
        Err(Error::data(
            format!("the number of actions changed from {before} to {now}, which changes how all steps are weighted"),
            "learn from all logs together",
        ))
    }
}

/// Maps the coordinates of one side to those after merging.
struct Rows {
    /// The new node of each node, for the identity projection.
    words: Vec<u32>,
    specials: u32,
}

impl Rows {
    fn renamed(&self, row: u32) -> u32 {
        // Node n has row specials + n − 1.
        match self.words.get((row + 1).saturating_sub(self.specials) as usize) {
            Some(word) if row >= self.specials => word + self.specials - 1,
            _ => row,
        }
    }
}

/// Adds the sequences of another vocabulary; returns the node of each in ours. The root stays.
fn merge_words(ours: &mut Vocabulary, theirs: &Vocabulary, translation: &Translation) -> Vec<u32> {
    let mut nodes = vec![EMPTY as u32];
    for (parent, ao) in theirs.nodes() {
        let parent = u64::from(nodes[parent as usize]);
        nodes.push(ours.intern(parent, translation.known_pair(ao)) as u32);
    }
    nodes
}

/// The first parameter that differs, with both values.
fn differing(ours: &LearnParams, theirs: &LearnParams) -> Option<String> {
    let json = |params| serde_json::to_value(params).expect("parameters are plain data");
    let (ours, theirs) = (json(ours), json(theirs));
    let different = ours.as_object()?.iter().find(|(name, value)| theirs.get(name.as_str()) != Some(value))?;
    Some(format!("{} is {} in one and {} in the other", different.0, different.1, theirs[different.0]))
}
