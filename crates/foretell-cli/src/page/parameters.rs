//! Parameters with their meaning, from the help of the command line.

use serde::Serialize;
use serde_json::Value;

use crate::cmd::fields;

/// Parameters that belong together.
#[derive(Debug, Serialize)]
pub struct Group {
    pub title: String,
    pub list: Vec<Parameter>,
}

/// A parameter.
#[derive(Debug, Serialize)]
pub struct Parameter {
    /// The flag that sets it.
    pub flag: String,
    pub value: String,
    pub meaning: String,
}

/// The parameters of a verb of the command line, in the order of its help.
pub fn group(title: &str, verb: &str, params: &impl Serialize) -> Group {
    let (command, values) = (crate::command(), fields(params));
    let arguments = command.find_subcommand(verb).into_iter().flat_map(|verb| verb.get_arguments());
    let parameter = |argument: &clap::Arg| {
        let value = values.get(argument.get_id().as_str())?;
        Some(Parameter {
            flag: format!("--{}", argument.get_long()?),
            value: value.as_str().map_or_else(|| plain(value), str::to_string),
            meaning: argument.get_help().map(ToString::to_string).unwrap_or_default(),
        })
    };
    Group { title: title.into(), list: arguments.filter_map(parameter).collect() }
}

fn plain(value: &Value) -> String {
    value.to_string().replace('"', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell::{AgentParams, LearnParams, PlanParams};

    #[test]
    fn every_parameter_has_its_flag_and_meaning() {
        let params = LearnParams { rank: 17, ..LearnParams::default() };
        let learning = group("Learning", "learn", &params);
        assert_eq!(learning.list.len(), fields(&params).len());
        let rank = learning.list.iter().find(|p| p.flag == "--rank").unwrap();
        assert!(rank.value == "17" && rank.meaning.contains("dimension of the predictive state"), "{rank:?}");
        assert_eq!(group("", "plan", &PlanParams::default()).list.len(), fields(&PlanParams::default()).len());
        assert_eq!(group("", "agent", &AgentParams::default()).list.len(), fields(&AgentParams::default()).len());
    }
}
