//! A domain of one's own: implement `Environment`, test that it conforms, sample it, learn a model and score it.
//!
//! ```text
//! cargo run --release -p foretell --example own_domain
//! ```

use foretell::testing::assert_conforms;
use foretell::{Action, Alphabet, Environment, Logs, Observation, Outcome, Recipe, RefineParams, Rng, Seed, Uniform};
use foretell::{rollout, score};

/// A machine that wears out unseen: the more it is worn, the more often an inspection says so, until it breaks.
struct Machine {
    alphabet: Alphabet,
    /// From 0, as new, to 4.
    wear: u32,
}

impl Environment for Machine {
    fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    fn reset(&mut self, _: &mut Rng) {
        self.wear = 0;
    }

    fn step(&mut self, action: Action, rng: &mut Rng) -> Outcome {
        let [done, fine, worn, broken] = [0, 1, 2, 3].map(Observation);
        let (observation, reward, wear) = match self.alphabet.action_name(action) {
            "repair" => (done, -2.0, 0),
            "inspect" if rng.uniform() < f64::from(self.wear) / 4.0 => (worn, 0.0, self.wear),
            "inspect" => (fine, 0.0, self.wear),
            _ if self.wear == 4 && rng.uniform() < 0.2 => (broken, -10.0, 4),
            _ => (done, 1.0, (self.wear + 1).min(4)),
        };
        self.wear = wear;
        Outcome { observation, reward }
    }
}

fn main() -> foretell::Result<()> {
    let mut alphabet = Alphabet::default();
    for name in ["run", "inspect", "repair"] {
        alphabet.intern_action(name);
    }
    for name in ["done", "fine", "worn"] {
        alphabet.intern_observation(name);
    }
    alphabet.intern_terminal_observation("broken");
    let mut machine = Machine { alphabet: alphabet.clone(), wear: 0 };
    assert_conforms(&mut machine, 20);

    let mut episode = |seed: Seed| rollout(&mut machine, &mut Uniform { actions: 3 }, 20, &mut seed.rng());
    let mut logs = |seed: Seed| Logs::memory(alphabet.clone(), (0..1000).map(|i| episode(seed.index(i))).collect());
    let (training, held_out) = (logs(Seed(1)), logs(Seed(2)));
    let recipe = Recipe { refine: Some(RefineParams::default()), ..Recipe::default() };
    let score = score(&recipe.fit(&training)?.model, &held_out, None)?;

    println!("held-out log-likelihood of the first 10 observations, nats");
    println!("    model     {:.3}", score.horizons[9].log_likelihood);
    for (name, horizons) in &score.baselines {
        println!("    {name:<9} {:.3}", horizons[9].log_likelihood);
    }
    Ok(())
}
