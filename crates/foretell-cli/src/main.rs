//! `foretell`: learn a predictive model from logs, score it, ask it.
//!
//! Verbs are the flow. Standard output is data, standard error is progress and messages; exit 0, 1 (failed) or 2 (usage).

mod checkpoint;
mod cmd;
mod config;
mod game;
mod input;
mod output;
mod page;
mod plot;
mod progress;
mod report;
mod run;
mod screen;
mod show;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use foretell::{AgentParams, LearnParams, PlanParams, RefineParams};

/// Learn a predictive model of a partially observable system from logged episodes, score it and ask it.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Threads to use; results do not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Show no progress
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Verb {
    Inspect(cmd::inspect::Args),
    Diagnose(cmd::diagnose::Args),
    Learn(cmd::learn::Args),
    Update(cmd::update::Args),
    Merge(cmd::merge::Args),
    Refine(cmd::refine::Args),
    Score(cmd::score::Args),
    Search(cmd::search::Args),
    Predict(cmd::predict::Args),
    Sample(cmd::sample::Args),
    Domains(cmd::domains::Args),
    Play(cmd::play::Args),
    Plan(cmd::plan::Args),
    Evaluate(cmd::evaluate::Args),
    Watch(cmd::watch::Args),
    Act(cmd::act::Args),
    Agent(cmd::agent::Args),
    Solve(cmd::solve::Args),
    Export(cmd::export::Args),
    Report(cmd::report::Args),
}

/// The command line, with the defaults of all parameters written into its help.
fn command() -> clap::Command {
    let (agent, refinement) = (AgentParams::default(), RefineParams::default());
    Cli::command()
        .mut_subcommand("diagnose", |verb| cmd::with_defaults(verb, &LearnParams::default(), &LearnParams::paper()))
        .mut_subcommand("learn", |verb| cmd::with_defaults(verb, &LearnParams::default(), &LearnParams::paper()))
        .mut_subcommand("learn", |verb| cmd::with_defaults(verb, &refinement, &refinement))
        .mut_subcommand("search", |verb| cmd::with_defaults(verb, &LearnParams::default(), &LearnParams::paper()))
        .mut_subcommand("search", cmd::search::with_searched)
        .mut_subcommand("refine", |verb| cmd::with_defaults(verb, &refinement, &refinement))
        .mut_subcommand("plan", |verb| cmd::with_defaults(verb, &PlanParams::default(), &PlanParams::paper()))
        .mut_subcommand("agent", |verb| cmd::with_defaults(verb, &agent, &agent))
        .mut_subcommand("agent", |verb| verb.mut_arg("agent_rounds", |rounds| rounds.visible_alias("rounds")))
}

fn run(cli: Cli) -> anyhow::Result<()> {
    if cli.quiet {
        progress::silence();
    }
    let threads = cli.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.install(|| match cli.verb {
        Verb::Inspect(args) => cmd::inspect::run(args),
        Verb::Diagnose(args) => cmd::diagnose::run(args),
        Verb::Learn(args) => cmd::learn::run(args),
        Verb::Update(args) => cmd::update::run(args),
        Verb::Merge(args) => cmd::merge::run(args),
        Verb::Refine(args) => cmd::refine::run(args),
        Verb::Score(args) => cmd::score::run(args),
        Verb::Search(args) => cmd::search::run(args),
        Verb::Predict(args) => cmd::predict::run(args),
        Verb::Sample(args) => cmd::sample::run(args),
        Verb::Domains(args) => cmd::domains::run(args),
        Verb::Play(args) => cmd::play::run(args),
        Verb::Plan(args) => cmd::plan::run(args),
        Verb::Evaluate(args) => cmd::evaluate::run(args),
        Verb::Watch(args) => cmd::watch::run(args),
        Verb::Act(args) => cmd::act::run(args),
        Verb::Agent(args) => cmd::agent::run(args),
        Verb::Solve(args) => cmd::solve::run(args),
        Verb::Export(args) => cmd::export::run(args),
        Verb::Report(args) => cmd::report::run(args),
    })
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    match run(Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit())) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has had enough, as `head` does.
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {}", message(&e));
            ExitCode::FAILURE
        }
    }
}

/// The error and what led to it, with the library's parameters as flags. A cause that stands at the end of the message before it is
/// not said twice.
fn message(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(|cause| match cause.downcast_ref::<foretell::Error>() {
            Some(foretell::Error::Parameter { name, value, problem }) => format!("{} {value}: {problem}", report::flag(name)),
            Some(error) => report::with_flags(&error.to_string()),
            None => cause.to_string(),
        })
        .reduce(|said, cause| if said.ends_with(&cause) { said } else { format!("{said}: {cause}") })
        .unwrap_or_default()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|e| e.downcast_ref::<std::io::Error>());
    io.into_iter().any(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_cause_is_said_once() {
        let gone = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let said = foretell::Error::io("read", "walks.csv")(gone());
        assert_eq!(message(&said.into()), "cannot read walks.csv: entity not found");
        assert_eq!(message(&anyhow::Error::from(gone()).context("no logs")), "no logs: entity not found");
    }

    #[test]
    fn parameters_are_named_as_flags() {
        let too_large = foretell::Error::TooLarge { pairs: 3, memory: 2_000_000 };
        assert!(message(&too_large.into()).ends_with("raise --memory, or let them be compressed (--keep-moments compressed)"));
        let parameter = foretell::Error::parameter("test_dim", 0, "must be at least 1");
        assert_eq!(message(&parameter.into()), "--test-dim 0: must be at least 1");
        // What is no parameter stays as it is.
        assert_eq!(report::with_flags("a `b c` and ` d"), "a `b c` and ` d");
    }
}
