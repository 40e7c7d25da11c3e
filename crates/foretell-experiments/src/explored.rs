//! Logs of an exploring memoryless policy [H14 §6.3].

use foretell::plan::{FittedQ, Recent, Steps, WindowFit, WindowQ};
use foretell::system::Exploring;
use foretell::{Domain, Logs, Seed, Trajectory, domains};

/// Rounds of fitted-Q.
const ROUNDS: usize = 100;

/// A memoryless policy that takes a uniformly random action with probability ε. With ε = 1 nothing
/// is learned.
pub struct Explorer<'d> {
    domain: &'d Domain,
    max_steps: usize,
    epsilon: f64,
    memoryless: Option<WindowQ>,
}

impl<'d> Explorer<'d> {
    /// Learned by fitted-Q on the last observation, from a number of random episodes.
    pub fn learn(
        domain: &'d Domain,
        max_steps: usize,
        epsilon: f64,
        episodes: usize,
        seed: Seed,
    ) -> anyhow::Result<Explorer<'d>> {
        let memoryless = (epsilon < 1.0).then(|| -> foretell::Result<WindowQ> {
            let random: Vec<Trajectory> = domains::sample(domain, episodes, max_steps, seed).collect();
            let steps = Steps::of(domain.alphabet(), &random)?;
            let mut fitted = FittedQ::new(&steps, WindowFit::new(Recent::Observation, &steps, &random), domain.discount);
            fitted.by_ref().take(ROUNDS).last();
            Ok(fitted.into_inner().into_q())
        });
        Ok(Explorer { domain, max_steps, epsilon, memoryless: memoryless.transpose()? })
    }

    /// Logs of this policy.
    pub fn logs(&self, episodes: usize, seed: Seed) -> Logs {
        let actions = self.domain.alphabet().actions().len();
        let sampled = match &self.memoryless {
            None => domains::sample(self.domain, episodes, self.max_steps, seed).collect(),
            Some(q) => {
                let policy = || Exploring::new(q.policy(), self.epsilon, actions);
                domains::sample_with(self.domain, policy, episodes, self.max_steps, seed).collect()
            }
        };
        Logs::memory(self.domain.alphabet().clone(), sampled)
    }
}
