//! The most probable sequence of states (Viterbi 1967).

use super::Pomdp;
use crate::data::ActionObservation;

impl Pomdp {
    /// The most probable states after each step of an episode, given all of it. Observations that
    /// are missing, or that no state can emit, tell nothing.
    ///
    /// s_1..n = argmax Π T(s_t | a_t, s_{t−1})·O(o_t | a_t, s_t), in O(n · entries of T).
    pub fn most_probable_states(&self, steps: &[ActionObservation]) -> Vec<usize> {
        let states = self.states().len();
        let mut best = vec![f64::NEG_INFINITY; states];
        self.start().for_each(|(s, p)| best[s] = p.ln());
        let mut from: Vec<Vec<u32>> = Vec::with_capacity(steps.len());
        for &ao in steps {
            let (mut next, mut origin) = (vec![f64::NEG_INFINITY; states], vec![0u32; states]);
            for (s, &value) in best.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                for (to, p) in self.transitions(ao.action, s).filter(|(_, p)| *p > 0.0) {
                    if value + p.ln() > next[to] {
                        (next[to], origin[to]) = (value + p.ln(), s as u32);
                    }
                }
            }
            let emitted = |s: usize| match ao.observation.is_missing() {
                true => 0.0,
                false => self.emissions.probability(self.index(ao.action, s), ao.observation.index()).ln(),
            };
            let with: Vec<f64> = next.iter().enumerate().map(|(s, value)| value + emitted(s)).collect();
            best = if with.iter().any(|value| value.is_finite()) { with } else { next };
            from.push(origin);
        }
        let last = best.iter().enumerate().fold((0, f64::NEG_INFINITY), |top, (s, &x)| if x > top.1 { (s, x) } else { top }).0;
        let mut path = Vec::with_capacity(steps.len());
        let mut state = last;
        for origin in from.iter().rev() {
            path.push(state);
            state = origin[state] as usize;
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Observation;
    use crate::domains;
    use crate::rng::Seed;

    /// ln of the probability of a path with its observations.
    fn log_probability(pomdp: &Pomdp, steps: &[ActionObservation], start: usize, path: &[usize]) -> f64 {
        let mut before = start;
        let mut sum = pomdp.start().find(|(s, _)| *s == start).map_or(0.0, |(_, p)| p).ln();
        for (ao, &s) in steps.iter().zip(path) {
            sum += pomdp.transitions(ao.action, before).find(|(to, _)| *to == s).map_or(0.0, |(_, p)| p).ln();
            if !ao.observation.is_missing() {
                sum += pomdp.emissions.probability(pomdp.index(ao.action, s), ao.observation.index()).ln();
            }
            before = s;
        }
        sum
    }

    #[test]
    fn no_path_is_more_probable() {
        let tiger = domains::get("tiger").unwrap();
        let pomdp = tiger.pomdp().unwrap();
        for (i, z) in domains::sample(&tiger, 20, 6, Seed(5)).enumerate() {
            let mut steps = z.steps;
            if i % 2 == 1 {
                steps[2].observation = Observation::MISSING;
            }
            let states = pomdp.states().len();
            let found = pomdp.most_probable_states(&steps);
            let of =
                |path: &[usize]| (0..states).map(|s| log_probability(pomdp, &steps, s, path)).fold(f64::NEG_INFINITY, f64::max);
            let mut best = f64::NEG_INFINITY;
            for code in 0..states.pow(steps.len() as u32) {
                let path: Vec<usize> = (0..steps.len()).map(|t| code / states.pow(t as u32) % states).collect();
                best = best.max(of(&path));
            }
            assert!((of(&found) - best).abs() < 1e-9, "{} {best}", of(&found));
        }
    }
}
