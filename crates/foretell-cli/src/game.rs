//! A person or program acting in a domain: the state of the game, without any input or output.

use foretell::domains::{self, Domain};
use foretell::{Action, Environment, Outcome, Rng, Seed};

/// A domain being played, one episode after the other.
pub struct Game<'a> {
    pub domain: &'a Domain,
    env: Box<dyn Environment + Send + 'a>,
    seed: Seed,
    rng: Rng,
    max_steps: usize,
    /// Counts from 1.
    pub episode: u64,
    /// The steps of this episode.
    pub steps: Vec<(Action, Outcome)>,
    /// Largest total reward of the episodes before this one.
    best: Option<f64>,
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// By itself.
    Ended,
    /// At the step limit.
    OutOfTime,
}

impl<'a> Game<'a> {
    /// Before the first step of the first episode. The episodes are the same as in `evaluate` with
    /// the same seed.
    pub fn new(domain: &'a Domain, max_steps: usize, seed: Seed) -> Game<'a> {
        let (env, rng) = (domain.environment(), seed.rng());
        let mut game = Game { domain, env, seed, rng, max_steps, episode: 0, steps: Vec::new(), best: None };
        game.restart();
        game
    }

    /// Leaves this episode and begins the next.
    pub fn restart(&mut self) {
        self.best = self.best();
        self.rng = domains::episode_seed(self.seed, self.episode).rng();
        self.episode += 1;
        self.steps.clear();
        self.env.reset(&mut self.rng);
    }

    /// Takes an action, in a new episode if this one is over.
    pub fn act(&mut self, a: Action) -> Outcome {
        if self.over().is_some() {
            self.restart();
        }
        let outcome = self.env.step(a, &mut self.rng);
        self.steps.push((a, outcome));
        outcome
    }

    pub fn over(&self) -> Option<Over> {
        let (_, last) = self.steps.last()?;
        if self.domain.alphabet().is_terminal(last.observation) {
            Some(Over::Ended)
        } else {
            (self.steps.len() >= self.max_steps).then_some(Over::OutOfTime)
        }
    }

    /// Steps after which an episode is truncated.
    pub fn max_steps(&self) -> usize {
        self.max_steps
    }

    /// The sum of the rewards of this episode.
    pub fn total(&self) -> f64 {
        self.steps.iter().map(|(_, outcome)| outcome.reward).sum()
    }

    /// Largest total reward of the episodes that are over.
    pub fn best(&self) -> Option<f64> {
        let this = self.over().map(|_| self.total());
        this.into_iter().chain(self.best).reduce(f64::max)
    }

    /// The hidden state, drawn or named.
    pub fn picture(&self) -> String {
        self.env.picture()
    }

    /// The last observation in words.
    pub fn words(&self) -> Option<String> {
        self.steps.last().map(|(_, outcome)| self.domain.describe(outcome.observation))
    }

    /// How the episode went, once it is over.
    pub fn verdict(&self) -> Option<String> {
        let how = match self.over()? {
            Over::Ended => "The episode has ended",
            Over::OutOfTime => "Step limit reached",
        };
        let steps = crate::report::plural(self.steps.len() as u64, "step");
        Some(format!("{how} after {steps}: total reward {}.", reward(self.total())))
    }

    /// The action of that name, ignoring case.
    pub fn named(&self, name: &str) -> Option<Action> {
        let names = self.domain.alphabet().actions();
        names.iter().position(|own| own.to_lowercase() == name.to_lowercase()).map(|i| Action(i as u32))
    }

    /// The action of that name, or the only one whose name starts with it, ignoring case.
    pub fn action(&self, text: &str) -> Option<Action> {
        let (names, text) = (self.domain.alphabet().actions(), text.to_lowercase());
        let mut begun = (0..names.len()).filter(|&i| !text.is_empty() && names[i].to_lowercase().starts_with(&text));
        let only = begun.next().filter(|_| begun.next().is_none());
        self.named(&text).or(only.map(|i| Action(i as u32)))
    }
}

/// −1 rather than -1, and no more digits than there are.
pub fn reward(x: f64) -> String {
    let rounded = (x * 1000.0).round() / 1000.0 + 0.0; // not −0
    format!("{rounded}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_is_cut_at_its_limit_and_the_next_action_begins_another() {
        let tiger = domains::get("tiger").unwrap();
        let mut game = Game::new(&tiger, 2, Seed(1));
        let listen = game.action("listen").unwrap();
        game.act(listen);
        assert_eq!(game.over(), None);
        game.act(listen);
        assert_eq!((game.over(), game.total(), game.best()), (Some(Over::OutOfTime), -2.0, Some(-2.0)));
        assert_eq!(game.verdict().unwrap(), "Step limit reached after 2 steps: total reward −2.");
        game.act(listen);
        assert_eq!((game.episode, game.steps.len(), game.best()), (2, 1, Some(-2.0)));
    }

    #[test]
    fn actions_are_known_by_the_beginning_of_their_names() {
        let tiger = domains::get("tiger").unwrap();
        let game = Game::new(&tiger, 2, Seed(1));
        let named = |text| game.action(text).map(|a| tiger.alphabet().actions()[a.index()].as_str());
        assert_eq!((named("LIS"), named("open-left")), (Some("listen"), Some("open-left")));
        assert_eq!((named("open"), named(""), named("wait")), (None, None, None));
        assert_eq!(game.named("listen"), Some(Action(0)));
        assert_eq!((game.named("lis"), reward(-0.0)), (None, "0".to_string()));
    }
}
