//! One file for each subcommand: its arguments, and its calls of the library.

use std::path::PathBuf;

use foretell::{LearnOverrides, LearnParams, Projection};
use serde::Serialize;
use serde_json::{Map, Value};

pub mod act;
pub mod agent;
pub mod diagnose;
pub mod domains;
pub mod evaluate;
pub mod export;
pub mod inspect;
pub mod learn;
pub mod merge;
pub mod plan;
pub mod play;
pub mod predict;
pub mod refine;
pub mod report;
pub mod sample;
pub mod score;
pub mod search;
pub mod solve;
pub mod split;
pub mod states;
pub mod update;
pub mod watch;

/// Sets of parameters.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Preset {
    /// Works best
    Default,
    /// As published by Hamilton et al. 2014
    Paper,
}

impl Preset {
    /// Its parameters of learning.
    pub fn learning(self) -> LearnParams {
        match self {
            Preset::Default => LearnParams::default(),
            Preset::Paper => LearnParams::paper(),
        }
    }
}

/// How to learn.
#[derive(clap::Args)]
pub struct RecipeArgs {
    /// Parameters to start from
    #[arg(long, value_enum, default_value_t = Preset::Default)]
    preset: Preset,
    /// TOML file of parameters, such as `foretell search` writes; it overrides the preset, and
    /// flags override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Projection of both tests and histories
    #[arg(long, value_enum)]
    projection: Option<Projection>,
    #[command(flatten)]
    overrides: LearnOverrides,
}

impl RecipeArgs {
    /// The file of parameters.
    pub fn files(&self) -> Vec<PathBuf> {
        self.config.iter().cloned().collect()
    }

    /// The preset with all overrides.
    pub fn params(&self) -> anyhow::Result<LearnParams> {
        let mut params = self.preset.learning();
        if let Some(path) = &self.config {
            params = crate::config::read(path)?.apply(params);
        }
        if let Some(projection) = self.projection {
            params.test_projection = projection;
            params.history_projection = projection;
        }
        Ok(self.overrides.apply(params))
    }

    /// The parameters that were given, in the file or as flags; `None` if they describe one linear
    /// model completely: the paper's, or one with a weight of the n-gram. The weight in the file
    /// suits a linear model alone, so it does not count.
    pub fn fixed(&self) -> anyhow::Result<Option<LearnOverrides>> {
        let file = self.config.as_deref().map(crate::config::read).transpose()?.unwrap_or_default();
        let rank = self.overrides.rank.or(file.rank);
        let observe_reward = self.overrides.observe_reward.or(file.observe_reward);
        let is_complete = matches!(self.preset, Preset::Paper) || self.overrides.mix.is_some();
        Ok((!is_complete).then(|| LearnOverrides { rank, observe_reward, ..LearnOverrides::default() }))
    }

    /// The same for a model that will be refined. The n-gram weight of the file suits a linear
    /// model, so it is dropped unless it is given as a flag.
    pub fn params_to_refine(&self) -> anyhow::Result<LearnParams> {
        Ok(LearnParams { mix: self.overrides.mix.unwrap_or(0.0), ..self.params()? })
    }
}

/// Adds each parameter's default to the help of its flag, and passes negative numbers on to its own
/// check.
pub fn with_defaults<P: Serialize>(command: clap::Command, default: &P, paper: &P) -> clap::Command {
    let (default, paper) = (fields(default), fields(paper));
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    default.into_iter().fold(command, |command, (name, value)| {
        let value =
            if value == paper[&name] { plain(&value) } else { format!("{}; paper: {}", plain(&value), plain(&paper[&name])) };
        command.mut_arg(name, |arg| {
            let help = format!("{} [default: {value}]", arg.get_help().cloned().unwrap_or_default());
            arg.help(help).allow_negative_numbers(true)
        })
    })
}

/// Adds a note to the help of some parameters.
pub fn with_note(command: clap::Command, names: &[&'static str], note: &str) -> clap::Command {
    names.iter().fold(command, |command, name| {
        command.mut_arg(name, |arg| {
            let help = format!("{} {note}", arg.get_help().cloned().unwrap_or_default());
            arg.help(help)
        })
    })
}

/// Parameters by name.
pub fn fields(params: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(params) {
        Ok(Value::Object(fields)) => fields,
        _ => unreachable!("parameters are plain structs"),
    }
}
