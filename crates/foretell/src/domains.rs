//! Systems to learn and to test on, by name or from a file.
//!
//! Built in are the mazes of [`grid`] and `tiger`, the two-door problem, which never ends by itself. Files in
//! Cassandra's `.POMDP` format and maps of mazes are domains too.
//!
//! Classics of the field are `float-reset`, which never ends by itself either, the [T-maze](t_maze) and
//! [RockSample](rock_sample); the [management of migratory birds](migration) comes from ecology. Where a domain has
//! parameters, they follow its name: `t-maze:length=20`, `rocksample:size=5,rocks=3,seed=1`.

pub mod grid;
pub mod migration;
pub mod rock_sample;
mod settings;
pub mod t_maze;

use std::path::Path;

use rayon::prelude::*;

use crate::data::{Alphabet, Trajectory};
use crate::env::{Environment, rollout};
use crate::error::{Error, Result};
use crate::policy::Uniform;
use crate::pomdp::Pomdp;
use crate::rng::Seed;
use grid::Grid;
use settings::Settings;

/// Steps after which episodes of a file's domain are cut: at a discount of 0.95 all but half a percent of the value is
/// in the first hundred.
const FILE_HORIZON: usize = 100;

/// Episodes sampled at a time: enough to keep all threads busy, few enough to hold in memory.
const CHUNK: usize = 4096;

const FLOAT_RESET: &str = include_str!("domains/float-reset.POMDP");
const TIGER: &str = include_str!("domains/tiger.POMDP");

/// The domains that have names.
const BUILT_IN: [&str; 9] =
    ["gridworld", "colored-gridworld", "float-reset", "t-maze", "rocksample", "amm-plover", "amm-cpsr", "amm-108", "tiger"];

/// A system, its story, and how it is usually played.
#[derive(Clone, Debug)]
pub struct Domain {
    /// As given to [`get`].
    pub name: String,
    /// What it is about, in one line.
    pub story: String,
    /// Steps after which an episode is cut.
    pub horizon: usize,
    /// γ
    pub discount: f64,
    world: World,
}

/// What a domain is made of.
#[derive(Clone, Debug)]
enum World {
    Finite(Pomdp),
}

impl Domain {
    /// The exact model, where the domain is a finite POMDP.
    pub fn pomdp(&self) -> Option<&Pomdp> {
        match &self.world {
            World::Finite(pomdp) => Some(pomdp),
        }
    }

    /// The system to act in.
    pub fn environment(&self) -> Box<dyn Environment + Send + '_> {
        match &self.world {
            World::Finite(pomdp) => Box::new(pomdp.environment()),
        }
    }

    /// Its actions and observations.
    pub fn alphabet(&self) -> &Alphabet {
        match &self.world {
            World::Finite(pomdp) => pomdp.alphabet(),
        }
    }

    fn finite(name: &str, story: &str, horizon: usize, pomdp: Pomdp) -> Domain {
        Domain {
            name: name.to_string(),
            story: story.to_string(),
            horizon,
            discount: pomdp.discount(),
            world: World::Finite(pomdp),
        }
    }
}

/// Every built-in domain, with its default parameters.
pub fn all() -> Vec<Domain> {
    let default = |name: &&str| named(name).expect("every name in BUILT_IN has its domain").expect("defaults are valid");
    BUILT_IN.iter().map(default).collect()
}

/// A domain by its name, `NAME` or `NAME:key=value,key=value`; else the `.POMDP` file, else the map ([`Grid::read`]) at that
/// path.
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
        let pomdp = Grid::read(path)?.pomdp();
        return Ok(Domain::finite(name_or_path, "a maze from a map", FILE_HORIZON, pomdp));
    }
    let problem = format!("neither a built-in domain ({}) nor a .POMDP file nor a map", BUILT_IN.join(", "));
    Err(Error::parameter("domain", name_or_path, problem))
}

/// Episodes of a uniformly random policy. The `i`-th depends on the seed and on `i` only, whatever the number of threads.
pub fn sample(domain: &Domain, episodes: usize, max_steps: usize, seed: Seed) -> impl Iterator<Item = Trajectory> {
    let seed = seed.stream("sample");
    let uniform = Uniform { actions: domain.alphabet().actions().len() };
    (0..episodes).step_by(CHUNK).flat_map(move |first| {
        let chunk: Vec<Trajectory> = (first..episodes.min(first + CHUNK))
            .into_par_iter()
            .map_init(
                || (domain.environment(), uniform),
                |(env, policy), i| rollout(env.as_mut(), policy, max_steps, &mut seed.index(i as u64).rng()),
            )
            .collect();
        chunk
    })
}

/// The built-in domain of that name and parameters; `None` if it is none of them.
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
            Domain::finite(name, story, grid::HORIZON, colored().without_colours().pomdp())
        }
        "colored-gridworld" => {
            let story = "the same maze, where some walls are red, some blue, and some cannot be seen";
            Domain::finite(name, story, grid::HORIZON, colored().pomdp())
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
        _ => return None,
    })
}
