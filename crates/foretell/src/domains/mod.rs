//! Domains for learning and testing, by name or from a file.
//!
//! Built in are the mazes of [`grid`], the arcade games of [`pocman`], the [management of migratory
//! birds](migration), and classics of the field: `tiger`, the two-door problem, and `float-reset`,
//! whose episodes never end, the [T-maze](t_maze) and [RockSample](rock_sample). Where a domain has
//! parameters, they follow its name: `t-maze:length=20`, `rocksample:size=5,rocks=3,seed=1`. Files
//! in Cassandra's `.POMDP` format and maps of mazes are domains too.

mod settings;
pub mod grid;
pub mod migration;
pub mod pocman;
pub mod rock_sample;
pub mod t_maze;

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::data::{Alphabet, Observation, Trajectory};
use crate::error::{Error, Result};
use crate::pomdp::{Pomdp, PomdpEnvironment};
use crate::rng::Seed;
use crate::system::{Environment, Policy, Uniform, rollout};
use grid::{Grid, MazeEnvironment};
use pocman::{PocMan, PocManEnvironment};
use settings::Settings;

/// Steps after which episodes of a file's domain are truncated: at a discount of 0.95 all but half
/// a percent of the value is in the first hundred.
const FILE_HORIZON: usize = 100;

/// Episodes sampled at a time: enough to keep all threads busy, few enough to hold in memory.
const CHUNK: usize = 4096;

const FLOAT_RESET: &str = include_str!("float-reset.POMDP");
const TIGER: &str = include_str!("tiger.POMDP");

/// The names of the built-in domains.
const BUILT_IN: [&str; 11] = [
    "gridworld",
    "colored-gridworld",
    "pocman",
    "s-pocman",
    "amm-cpsr",
    "amm-plover",
    "amm-108",
    "tiger",
    "float-reset",
    "t-maze",
    "rocksample",
];

/// Rewards whose discount is below this are negligible.
const NEGLIGIBLE: f64 = 1e-4;

/// An environment with its name, description, horizon and discount.
#[derive(Clone, Debug)]
pub struct Domain {
    /// As given to [`get`].
    pub name: String,
    /// A description in one line.
    pub story: String,
    /// Steps after which an episode is truncated.
    pub horizon: usize,
    /// γ
    pub discount: f64,
    world: World,
}

/// The kinds of domains.
#[derive(Clone, Debug)]
enum World {
    Finite(Arc<Pomdp>),
    Maze(Arc<Grid>, Arc<Pomdp>),
    PocMan(Arc<PocMan>),
}

impl Domain {
    /// The exact model, where the domain is a finite POMDP.
    pub fn pomdp(&self) -> Option<&Pomdp> {
        match &self.world {
            World::Finite(pomdp) | World::Maze(_, pomdp) => Some(pomdp),
            World::PocMan(_) => None,
        }
    }

    /// Steps after which discounted rewards are negligible; the horizon if the discount is 1.
    pub fn steps_that_count(&self, discount: f64) -> usize {
        if discount < 1.0 { (NEGLIGIBLE.ln() / discount.ln()).ceil().max(1.0) as usize } else { self.horizon }
    }

    /// The environment.
    pub fn environment(&self) -> Box<dyn Environment + Send> {
        match &self.world {
            World::Finite(pomdp) => Box::new(PomdpEnvironment::new(pomdp.clone())),
            World::Maze(grid, pomdp) => Box::new(MazeEnvironment::new(grid.clone(), pomdp.clone())),
            World::PocMan(game) => Box::new(PocManEnvironment::new(game.clone())),
        }
    }

    /// Its actions and observations.
    pub fn alphabet(&self) -> &Alphabet {
        match &self.world {
            World::Finite(pomdp) | World::Maze(_, pomdp) => pomdp.alphabet(),
            World::PocMan(game) => game.alphabet(),
        }
    }

    /// An observation in words; its name, if the domain has no description.
    pub fn describe(&self, o: Observation) -> String {
        let name = &self.alphabet().symbol(o).name;
        match &self.world {
            World::Finite(_) => format!("{}.", name.replace('=', " ").replace('/', ", ")),
            World::Maze(..) => grid::describe(name),
            World::PocMan(_) => pocman::describe(name).unwrap_or_else(|| format!("{name}.")),
        }
    }

    /// What an observation shows of the surroundings, drawn like [`Environment::picture`].
    pub fn sketch(&self, o: Observation) -> Option<String> {
        let name = &self.alphabet().symbol(o).name;
        match &self.world {
            World::Finite(_) => None,
            World::Maze(..) => Some(grid::sketch(name)),
            World::PocMan(_) => pocman::sketch(name),
        }
    }

    fn finite(name: &str, story: &str, horizon: usize, pomdp: Pomdp) -> Domain {
        Domain::new(name, story, horizon, pomdp.discount(), World::Finite(Arc::new(pomdp)))
    }

    fn maze(name: &str, story: &str, horizon: usize, grid: Grid) -> Domain {
        let pomdp = grid.pomdp();
        Domain::new(name, story, horizon, pomdp.discount(), World::Maze(Arc::new(grid), Arc::new(pomdp)))
    }

    fn new(name: &str, story: &str, horizon: usize, discount: f64, world: World) -> Domain {
        Domain { name: name.to_string(), story: story.to_string(), horizon, discount, world }
    }

    fn arcade(name: &str, story: &str, game: PocMan) -> Domain {
        Domain::new(name, story, pocman::HORIZON, pocman::DISCOUNT, World::PocMan(Arc::new(game)))
    }
}

/// Every built-in domain, with its default parameters.
pub fn all() -> Vec<Domain> {
    let default = |name: &&str| named(name).expect("every name in BUILT_IN has its domain").expect("defaults are valid");
    BUILT_IN.iter().map(default).collect()
}

/// A domain by its name, `NAME` or `NAME:key=value,key=value`; otherwise the `.POMDP` file or the
/// map ([`Grid::read`]) at that path.
///
/// ```
/// let domain = foretell::domains::get("colored-gridworld")?;
/// assert_eq!((domain.horizon, domain.discount), (13, 0.99));
/// let maze = foretell::domains::get("t-maze:length=20")?;
/// assert_eq!(maze.horizon, 200);
/// # Ok::<(), foretell::Error>(())
/// ```
pub fn get(name_or_path: &str) -> Result<Domain> {
    let path = Path::new(name_or_path);
    match named(name_or_path) {
        Some(Err(_)) if path.is_file() => {} // tiger:2.POMDP may be a file
        Some(domain) => return domain,
        None => {}
    }
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pomdp")) {
        let pomdp = Pomdp::read(path)?;
        return Ok(Domain::finite(name_or_path, "a model in Cassandra's format", FILE_HORIZON, pomdp));
    }
    if path.is_file() {
        return Ok(Domain::maze(name_or_path, "a maze from a map", FILE_HORIZON, Grid::read(path)?));
    }
    let problem = format!("neither a built-in domain ({}) nor a .POMDP file nor a map", BUILT_IN.join(", "));
    Err(Error::parameter("domain", name_or_path, problem))
}

/// Episodes of a uniformly random policy, see [`sample_with`].
pub fn sample(domain: &Domain, episodes: usize, max_steps: usize, seed: Seed) -> impl Iterator<Item = Trajectory> {
    let uniform = Uniform { actions: domain.alphabet().actions().len() };
    sample_with(domain, move || uniform, episodes, max_steps, seed)
}

/// Episodes of a policy; `policy` makes one for each thread. The `i`-th depends on the seed and on
/// `i` only, whatever the number of threads.
pub fn sample_with<'a, P: Policy + 'a>(
    domain: &'a Domain,
    policy: impl Fn() -> P + Send + Sync + 'a,
    episodes: usize,
    max_steps: usize,
    seed: Seed,
) -> impl Iterator<Item = Trajectory> + 'a {
    (0..episodes).step_by(CHUNK).flat_map(move |first| {
        let chunk: Vec<Trajectory> = (first..episodes.min(first + CHUNK))
            .into_par_iter()
            .map_init(
                || (domain.environment(), policy()),
                |(env, policy), i| rollout(env.as_mut(), policy, max_steps, &mut episode_seed(seed, i as u64).rng()),
            )
            .collect();
        chunk
    })
}

/// The seed of the `i`-th episode that [`sample_with`] draws, to replay it step by step.
pub fn episode_seed(seed: Seed, i: u64) -> Seed {
    seed.stream("sample").index(i)
}

/// The built-in domain of that name and parameters; `None` if there is none.
fn named(name: &str) -> Option<Result<Domain>> {
    let (base, settings) = Settings::split(name);
    Some(match base {
        "amm-plover" | "amm-cpsr" | "amm-108" => migration::domain(base, settings),
        "rocksample" => rock_sample::domain(settings),
        "t-maze" => t_maze::domain(settings),
        _ => {
            let domain = built_in(base)?;
            settings.finish().map(|()| domain)
        }
    })
}

/// The domains without parameters.
fn built_in(name: &str) -> Option<Domain> {
    let colored = || Grid::parse(grid::COLORED_GRIDWORLD, "colored-gridworld").expect("the built-in map is valid");
    Some(match name {
        "gridworld" => {
            let story = "a maze of 47 cells with slippery moves; what is seen are the walls around";
            Domain::maze(name, story, grid::HORIZON, colored().without_colours())
        }
        "colored-gridworld" => {
            let story = "a maze of 47 cells where some walls are red, some blue, and some cannot be seen";
            Domain::maze(name, story, grid::HORIZON, colored())
        }
        "float-reset" => {
            let story = "a walk on a line that is seen only on returning home";
            let pomdp = Pomdp::parse(FLOAT_RESET, "float-reset.POMDP").expect("the built-in model is valid");
            Domain::finite(name, story, FILE_HORIZON, pomdp)
        }
        "tiger" => {
            let story = "two doors, a tiger behind one: listen again, or open?";
            let pomdp = Pomdp::parse(TIGER, "tiger.POMDP").expect("the built-in model is valid");
            Domain::finite(name, story, FILE_HORIZON, pomdp)
        }
        "pocman" => {
            let story = "the arcade classic in the dark: smell the food, peer down the corridors, do not get caught";
            Domain::arcade(name, story, PocMan::plentiful())
        }
        "s-pocman" => {
            let story = "PocMan with a cold: seven morsels in all the maze, no smell, no sight of food";
            Domain::arcade(name, story, PocMan::sparse())
        }
        _ => return None,
    })
}
