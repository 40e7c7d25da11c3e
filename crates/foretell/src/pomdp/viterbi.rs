//! The most probable sequence of states (Viterbi 1967).

use super::Pomdp;
use crate::data::{About, ActionObservation, Observation};

impl Pomdp {
    /// The most probable states after each step of an episode, given all of it. Observations that
    /// are missing, or that no state can emit, tell nothing. Where only some parts of one are known
    /// ([`About::partial`]), it is any of those that agree with them.
    ///
    /// s_1..n = argmax Π T(s_t | a_t, s_{t−1})·O(o_t | a_t, s_t), in O(n · entries of T).
    pub fn most_probable_states(&self, steps: &[ActionObservation], about: &About) -> Vec<usize> {
        let states = self.states().len();
        let mut best = vec![f64::NEG_INFINITY; states];
        self.start().for_each(|(s, p)| best[s] = p.ln());
        let mut from: Vec<Vec<u32>> = Vec::with_capacity(steps.len());
        for (t, &ao) in steps.iter().enumerate() {
            let agreeing = about.partial_at(t).map(|pattern| self.alphabet().agreeing(pattern));
            let (mut next, mut origin) = (vec![f64::NEG_INFINITY; states], vec![0u32; states]);
            for (s, &value) in best.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                for (to, p) in self.transitions(ao.action, s).filter(|(_, p)| *p > 0.0) {
                    if value + p.ln() > next[to] {
                        (next[to], origin[to]) = (value + p.ln(), s as u32);
                    }
                }
            }
            let emission = |s: usize, o: Observation| self.emissions.probability(self.index(ao.action, s), o.index());
            let emitted = |s: usize| match &agreeing {
                Some(agreeing) => agreeing.iter().map(|&o| emission(s, o)).sum::<f64>().ln(),
                None if ao.observation.is_missing() => 0.0,
                None => emission(s, ao.observation).ln(),
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
            let found = pomdp.most_probable_states(&steps, &About::default());
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

    #[test]
    fn parts_of_an_observation_tell_what_agrees_with_them() {
        // Two states that stay; each shows its own colour with either side.
        let text = "discount: 0.9\nvalues: reward\nstates: red green\nactions: look\n\
            observations: colour=red|side=l colour=red|side=r colour=green|side=l colour=green|side=r\n\
            start: 0.6 0.4\nT: look\nidentity\nO: look\n0.4 0.5 0.05 0.05\n0.05 0.05 0.5 0.4\n";
        let pomdp = Pomdp::parse(text, "colours").unwrap();
        let steps = [ActionObservation { action: crate::data::Action(0), observation: Observation::MISSING }; 2];
        let about = |pattern: &str| About { partial: vec![(1, pattern.into())], ..About::default() };
        let names =
            |about: &About| pomdp.most_probable_states(&steps, about).iter().map(|&s| &pomdp.states()[s][..]).collect::<Vec<_>>();
        assert_eq!(names(&About::default()), ["red"; 2], "the start tells");
        assert_eq!(names(&about("colour=green|side=?")), ["green"; 2]);
        assert_eq!(names(&about("colour=?|side=l")), ["red"; 2]);
    }
}
