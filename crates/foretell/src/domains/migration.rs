//! Adaptive management of migratory birds: which stopover to protect, while the sea level is not
//! observed.
//!
//! Each year a manager protects one of the wetlands on the flyway of the Lesser Sand Plover, or
//! none. A wetland that is not protected enough is lost when the sea rises, and fewer birds get
//! through. Birds and protection are seen, the sea level is not.
//!
//! # `amm-plover`: the model of the public data set
//!
//! * **States** are four variables, named like `pop=35k|node2=low|node3=med|rise=100cm`: the
//!   population at the breeding node, 20, 25, 30 or 35 thousand; the protection of node 2 and of
//!   node 3, `low`, `med` or `high`; the rise of the sea, 0, 100 or 200 cm. 4 · 3 · 3 · 3 = 108.
//! * **Actions** `nothing`, `protect-2`, `protect-3`. Protection succeeds with probability 0.99.
//! * **Observations**: all but the sea, exactly, after the transition; 36.
//! * **Population**: the flyway has a *capacity* for birds, given the sea level and the protection
//!   w that is reached this year (one level up where the action succeeds): 35k without rise; at 100
//!   cm 35k if node 2 has `med` or `high`, else 30k; at 200 cm 35k if both have `high`, else 20k.
//!   The lesser of population and capacity then changes by a stochastic Gompertz model, a table of
//!   4 × 4.
//! * **Protection** decays by one level with probability 0.075 a year. The data set's tables for a
//!   node that is acted on follow from this: a failed action (0.01) is no action; success raises
//!   `low` to `med`, keeps `high`, and raises `med` to `high`, which may then decay. Its draw of
//!   success is independent of that for the capacity.
//! * **Sea**: from 0 to 100 cm and from 100 to 200 cm with probability 0.05 a year, never back.
//! * **Reward** of a year: 10 for every thousand birds, less the cost of the action: 57.7, 88.1, 0
//!   to protect node 2 when it is `low`, `med`, `high`; 47.8, 143.8, 0 for node 3. `costs=false`
//!   omits the costs. Discount 0.95.
//! * **Start**: 35k birds, no protection, each sea level with probability 1/3. Episodes never end;
//!   they are truncated at 50 years.
//!
//! # `amm-cpsr`: the same, from few birds
//!
//! The start is 20k birds, no protection and no rise, the discount 0.99, as \[H14\] says of its
//! experiment. Most likely this is what they ran, with the four variables read as a population and
//! three nodes; see DEVIATIONS.md.
//!
//! # `amm-108`: what \[H14\] describes
//!
//! As `amm-cpsr`, except:
//!
//! * **Three nodes** A, B, C and no fourth variable that is seen: 4 · 3³ = 108 observations, and
//!   324 states with the sea. A and B are nodes 2 and 3. There are no data for a third node: at 200
//!   cm it must have `high`, too.
//! * **Actions** `protect-A`, `protect-B`, `protect-C`; one of them must be chosen.
//! * **Extinction**: a population of 20k with a capacity of 20k at 200 cm perishes that year with
//!   probability 0.02 (`extinction=0.02`), which ends the episode with the observation `extinct`.
//!   The paper says that birds may perish but not when; this figure puts the gain of the best
//!   policy over a random one near the gains it reports (3.7 % with and 4.6 % without discount;
//!   here at most 4.2 % and 4.7 %).
//! * **Reward** without costs. `costs=true` charges them, for C those of A.
//!
//! # Sources
//!
//! S. Nicol, O. Buffet, T. Iwamura, I. Chadès, "Adaptive Management of Migratory Birds Under Sea
//! Level Rise", IJCAI (2013), and its public data set, whose rules are above (its file of
//! transitions has them printed to six digits; its observations are given for the first 36 states
//! only and are taken to be the same at every sea level). \[H14\]: W. Hamilton, M. Milani Fard, J.
//! Pineau, "Efficient Learning and Planning with Compressed Predictive States", JMLR 15 (2014).

use super::Domain;
use super::settings::Settings;
use crate::data::SEPARATOR;
use crate::error::{Error, Result};
use crate::pomdp::{Pomdp, PomdpTables, RewardRule, Row};

const HORIZON: usize = 50; // [H14]
const PLOVER_DISCOUNT: f64 = 0.95; // the data set
const CPSR_DISCOUNT: f64 = 0.99; // [H14]

/// Thousands of birds; the data set.
const POPULATION: [f64; 4] = [20.0, 25.0, 30.0, 35.0];
const REWARD_PER_THOUSAND: f64 = 10.0; // the data set
const LEVELS: [&str; 3] = ["low", "med", "high"];
const MED: usize = 1;
const HIGH: usize = 2;
/// Centimetres; the data set.
const SEA_RISE: [u32; 3] = [0, 100, 200];

/// P(x' | x) of the population, the stochastic Gompertz model; the data set.
const GOMPERTZ: [[f64; 4]; 4] =
    [[0.723, 0.202, 0.058, 0.017], [0.309, 0.345, 0.215, 0.131], [0.116, 0.261, 0.281, 0.342], [0.022, 0.112, 0.220, 0.646]];
/// P(v' | v) of the protection of a node when nothing is done for it; the data set.
const DECAY: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.075, 0.925, 0.0], [0.0, 0.075, 0.925]];
/// P(v' | v) of the protection of the node that is acted on; the data set.
const ACTED_ON: [[f64; 3]; 3] = [[0.01, 0.99, 0.0], [0.00075, 0.0835, 0.91575], [0.0, 0.00075, 0.99925]];
/// P(m' | m) of the sea level; the data set.
const SEA: [[f64; 3]; 3] = [[0.95, 0.05, 0.0], [0.0, 0.95, 0.05], [0.0, 0.0, 1.0]];
/// The probability that an action raises the protection in time for the birds of the year; the data
/// set.
const SUCCESS: f64 = 0.99;

/// Our choice: see `amm-108` above.
const DEFAULT_EXTINCTION: f64 = 0.02;
const PROBABILITY: &str = "a probability from 0 to 1";

const EXTINCT: &str = "extinct";

/// Which flyway, and from which start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flyway {
    /// `amm-plover`
    Plover,
    /// `amm-cpsr`
    Cpsr,
    /// `amm-108`
    ThreeNodes {
        /// The probability per year that the smallest population perishes when that is the capacity
        /// at 200 cm.
        extinction: f64,
    },
}

/// The management of a flyway.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Migration {
    /// Which flyway, and from which start.
    pub flyway: Flyway,
    /// Whether protection has a cost.
    pub costs: bool,
}

/// A wetland that can be protected.
#[derive(Clone, Copy)]
struct Node {
    name: &'static str,
    /// What it costs to protect it, by the level it has.
    costs: [f64; 3],
}

const NODE_2: Node = Node { name: "2", costs: [57.7, 88.1, 0.0] }; // the data set
const NODE_3: Node = Node { name: "3", costs: [47.8, 143.8, 0.0] }; // the data set
const TWO_NODES: [Node; 2] = [NODE_2, NODE_3];
const THREE_NODES: [Node; 3] = [Node { name: "A", ..NODE_2 }, Node { name: "B", ..NODE_3 }, Node { name: "C", ..NODE_2 }];

/// A state with birds. Its index is x + 4 v₁ + 12 v₂ + … + 4 · 3ⁿ m; the state without birds comes
/// after all of them.
struct State {
    /// x, an index of the populations.
    population: usize,
    /// v₁ … v_n, the level of every node.
    protection: Vec<usize>,
    /// m, an index of the sea levels.
    sea: usize,
}

impl Migration {
    /// The model.
    ///
    /// # Errors
    /// `extinction` is not a probability.
    pub fn pomdp(&self) -> Result<Pomdp> {
        if !(0.0..=1.0).contains(&self.extinction()) {
            return Err(Error::parameter("extinction", self.extinction(), format!("must be {PROBABILITY}")));
        }
        let (live, actions) = (self.live_states(), self.actions());
        let views = live / SEA_RISE.len();
        let extinct = self.has_extinction().then(|| EXTINCT.to_string());
        let states = live + extinct.iter().count();
        let view = |s| if s < live { s % views } else { views };
        let emissions: Vec<Row> = (0..states).map(|s| vec![(view(s), 1.0)]).collect();
        Pomdp::new(PomdpTables {
            discount: Some(if self.flyway == Flyway::Plover { PLOVER_DISCOUNT } else { CPSR_DISCOUNT }),
            states: (0..live).map(|s| self.name(s)).chain(extinct.clone()).collect(),
            actions: actions.iter().map(|&protect| self.action_name(protect)).collect(),
            observations: (0..views).map(|o| self.view_name(o)).chain(extinct).collect(),
            terminal: (0..states).map(|s| s >= live).collect(),
            start: self.start(),
            transitions: actions.iter().map(|&protect| (0..states).map(|s| self.transitions(s, protect)).collect()).collect(),
            emissions: vec![emissions; actions.len()],
            rewards: self.rewards(&actions),
        })
    }

    fn nodes(&self) -> &'static [Node] {
        match self.flyway {
            Flyway::Plover | Flyway::Cpsr => &TWO_NODES,
            Flyway::ThreeNodes { .. } => &THREE_NODES,
        }
    }

    /// For each action the node that it protects.
    fn actions(&self) -> Vec<Option<usize>> {
        let nothing = (!self.has_extinction()).then_some(None);
        nothing.into_iter().chain((0..self.nodes().len()).map(Some)).collect()
    }

    /// Whether there is a state without birds.
    fn has_extinction(&self) -> bool {
        matches!(self.flyway, Flyway::ThreeNodes { .. })
    }

    fn extinction(&self) -> f64 {
        match self.flyway {
            Flyway::Plover | Flyway::Cpsr => 0.0,
            Flyway::ThreeNodes { extinction } => extinction,
        }
    }

    fn start(&self) -> Row {
        match self.flyway {
            Flyway::Plover => {
                let most = POPULATION.len() - 1;
                let seas = SEA_RISE.len();
                (0..seas).map(|m| (most + m * self.sea_stride(), 1.0 / seas as f64)).collect()
            }
            Flyway::Cpsr | Flyway::ThreeNodes { .. } => vec![(0, 1.0)],
        }
    }

    /// T(· | a, s) where a protects that node: the variables change independently of each other.
    fn transitions(&self, s: usize, protect: Option<usize>) -> Row {
        let live = self.live_states();
        if s >= live {
            return Row::new();
        }
        let state = self.state(s);
        let (population, perish) = self.population(&state, protect);
        let mut row = times(&[(0, 1.0)], 1, &population);
        for (i, &v) in state.protection.iter().enumerate() {
            let table = if protect == Some(i) { &ACTED_ON } else { &DECAY };
            row = times(&row, stride(i), &table[v]);
        }
        row = times(&row, self.sea_stride(), &SEA[state.sea]);
        if perish > 0.0 {
            row.push((live, perish));
        }
        row
    }

    /// For each x' the probability that it is the next population, and the probability that the
    /// birds perish.
    fn population(&self, state: &State, protect: Option<usize>) -> ([f64; 4], f64) {
        let mut raised = state.protection.clone();
        if let Some(i) = protect {
            raised[i] = HIGH.min(raised[i] + 1);
        }
        let (mut next, mut perish) = ([0.0; 4], 0.0);
        for (protection, p) in [(&raised, SUCCESS), (&state.protection, 1.0 - SUCCESS)] {
            let capacity = capacity(state.sea, protection);
            let at_the_brink = SEA_RISE[state.sea] == 200 && state.population == 0 && capacity == 0;
            let dies = if at_the_brink { self.extinction() } else { 0.0 };
            perish += p * dies;
            for (to, q) in next.iter_mut().zip(GOMPERTZ[state.population.min(capacity)]) {
                *to += p * (1.0 - dies) * q;
            }
        }
        (next, perish)
    }

    /// R(a, s), of the state before the transition.
    fn rewards(&self, actions: &[Option<usize>]) -> Vec<RewardRule> {
        let mut rules = Vec::new();
        for s in 0..self.live_states() {
            let state = self.state(s);
            for (a, protect) in actions.iter().enumerate() {
                let cost = protect.filter(|_| self.costs).map_or(0.0, |i| self.nodes()[i].costs[state.protection[i]]);
                let reward = REWARD_PER_THOUSAND * POPULATION[state.population] - cost;
                rules.push(RewardRule { action: Some(a), from: Some(s), reward, ..RewardRule::default() });
            }
        }
        rules
    }

    fn live_states(&self) -> usize {
        self.sea_stride() * SEA_RISE.len()
    }

    /// The increment of a state's index per sea level.
    fn sea_stride(&self) -> usize {
        stride(self.nodes().len())
    }

    fn state(&self, s: usize) -> State {
        State {
            population: s % POPULATION.len(),
            protection: (0..self.nodes().len()).map(|i| s / stride(i) % LEVELS.len()).collect(),
            sea: s / self.sea_stride(),
        }
    }

    fn action_name(&self, protect: Option<usize>) -> String {
        protect.map_or("nothing".to_string(), |i| format!("protect-{}", self.nodes()[i].name))
    }

    /// The observation of a state: all but the sea level.
    fn view_name(&self, s: usize) -> String {
        let state = self.state(s);
        let mut name = format!("pop={}k", POPULATION[state.population]);
        for (node, &v) in self.nodes().iter().zip(&state.protection) {
            name += &format!("{SEPARATOR}node{}={}", node.name, LEVELS[v]);
        }
        name
    }

    fn name(&self, s: usize) -> String {
        format!("{}{SEPARATOR}rise={}cm", self.view_name(s), SEA_RISE[self.state(s).sea])
    }
}

/// The increment of a state's index per level of node `i`.
fn stride(i: usize) -> usize {
    POPULATION.len() * LEVELS.len().pow(i as u32)
}

/// The largest population that the flyway supports.
fn capacity(sea: usize, protection: &[usize]) -> usize {
    match SEA_RISE[sea] {
        100 if protection[0] < MED => 2,
        200 if protection.iter().any(|&v| v < HIGH) => 0,
        _ => POPULATION.len() - 1,
    }
}

/// The product of a row and the distribution of one more variable, with which the index of a state
/// grows by `stride`.
fn times(row: &[(usize, f64)], stride: usize, variable: &[f64]) -> Row {
    let possible = || variable.iter().enumerate().filter(|(_, q)| **q > 0.0);
    row.iter().flat_map(|&(s, p)| possible().map(move |(x, q)| (s + stride * x, p * q))).collect()
}

/// `amm-plover`, `amm-cpsr` and `amm-108`, with `costs` and, for the last, `extinction`.
pub(super) fn domain(base: &str, mut settings: Settings<'_>) -> Result<Domain> {
    let name = settings.name();
    let costs = settings.take("costs", base != "amm-108", "true or false")?;
    let (flyway, story) = match base {
        "amm-plover" => {
            (Flyway::Plover, format!("which stopover of a flyway to protect, while the sea rises unseen (costs={costs})"))
        }
        "amm-cpsr" => (Flyway::Cpsr, format!("shorebirds and a rising sea, from few birds and no protection (costs={costs})")),
        _ => {
            let extinction = settings.take("extinction", DEFAULT_EXTINCTION, PROBABILITY)?;
            let story = format!("three stopovers, and birds that may perish (costs={costs}, extinction={extinction})");
            (Flyway::ThreeNodes { extinction }, story)
        }
    };
    settings.finish()?;
    Ok(Domain::finite(name, &story, HORIZON, Migration { flyway, costs }.pomdp()?))
}
