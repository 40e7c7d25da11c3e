//! `foretell`: learn a predictive model from logs, score it, predict and plan with it.
//!
//! Each step of the workflow is a subcommand. Standard output has data; standard error has progress
//! and messages. The exit code is 0, 1 (failed) or 2 (usage).

mod checkpoint;
mod cmd;
mod config;
mod game;
mod input;
mod interrupt;
mod output;
mod page;
mod plot;
mod progress;
mod report;
mod run;
mod schema;
mod screen;
mod show;

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use foretell::{AgentParams, LearnParams, PlanParams, RefineParams};

/// Learn predictive models of partially observable systems from logged episodes, and plan with
/// them.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Number of threads; results do not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(foretell::limits::THREADS)))]
    threads: Option<u16>,
    /// Show no progress
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Verb {
    Inspect(cmd::inspect::Args),
    Split(cmd::split::Args),
    Diagnose(cmd::diagnose::Args),
    Learn(cmd::learn::Args),
    Update(cmd::update::Args),
    Merge(cmd::merge::Args),
    Refine(cmd::refine::Args),
    Score(cmd::score::Args),
    Search(cmd::search::Args),
    Predict(cmd::predict::Args),
    States(cmd::states::Args),
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
        .mut_subcommand("learn", cmd::learn::with_selected)
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
        Verb::Split(args) => cmd::split::run(args),
        Verb::Diagnose(args) => cmd::diagnose::run(args),
        Verb::Learn(args) => cmd::learn::run(args),
        Verb::Update(args) => cmd::update::run(args),
        Verb::Merge(args) => cmd::merge::run(args),
        Verb::Refine(args) => cmd::refine::run(args),
        Verb::Score(args) => cmd::score::run(args),
        Verb::Search(args) => cmd::search::run(args),
        Verb::Predict(args) => cmd::predict::run(args),
        Verb::States(args) => cmd::states::run(args),
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
    let command = command();
    let matches = command.clone().get_matches();
    interrupt::watch();
    quieten_decoders();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let ran = standard_output().and_then(|()| run(cli)).and_then(|()| Ok(stdout().flush()?));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has closed the pipe, as `head` does.
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            let subcommand = matches.subcommand_name().and_then(|name| command.find_subcommand(name));
            let is_flag =
                |name: &str| subcommand.is_some_and(|verb| verb.get_arguments().any(|arg| arg.get_long() == Some(name)));
            report::complain(format!("error: {}", message(&e, &is_flag)));
            ExitCode::FAILURE
        }
    }
}

/// Damaged files are reported as errors; what made their decoders panic helps nobody.
fn quieten_decoders() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !foretell::log::is_decoding() {
            say(panic);
        }
    }));
}

/// Fails if nobody can see what is printed.
fn standard_output() -> anyhow::Result<()> {
    match closed::WAS_CLOSED.load(std::sync::atomic::Ordering::Relaxed) {
        true => Err(anyhow::anyhow!("standard output is closed; send it to a file, or to /dev/null")),
        false => Ok(()),
    }
}

/// Whether standard output was closed when the program began. Rust opens /dev/null in its place before
/// `main`, so it is found out before that.
mod closed {
    use std::sync::atomic::AtomicBool;

    pub static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

    #[cfg(target_os = "linux")]
    #[used]
    // SAFETY: the loader calls the functions in this section, and `look` needs nothing of the runtime.
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    #[cfg(target_os = "linux")]
    extern "C" fn look() {
        let exists = |path: &str| std::path::Path::new(path).exists();
        let is_open = std::fs::symlink_metadata("/proc/self/fd/1").is_ok();
        WAS_CLOSED.store(!is_open && exists("/proc/self/fd"), std::sync::atomic::Ordering::Relaxed);
    }
}

/// The error and its causes, with the library's parameters as flags of the subcommand. A cause that
/// the message before it already ends with is not repeated.
fn message(error: &anyhow::Error, is_flag: &dyn Fn(&str) -> bool) -> String {
    error
        .chain()
        .map(|cause| match cause.downcast_ref::<foretell::Error>() {
            Some(foretell::Error::Parameter { name, value, problem }) if is_flag(&name.replace('_', "-")) => {
                format!("{} {value}: {problem}", report::flag(name))
            }
            Some(foretell::Error::TooLarge { pairs, memory }) => {
                let compress = if is_flag("compress") { "--compress" } else { "--keep-moments=compressed" };
                let memory = report::count(*memory as u64);
                format!(
                    "the moments of {pairs} pairs take more than {memory} bytes; raise --memory, or compress them with {compress}"
                )
            }
            Some(error) => report::with_flags(&error.to_string()),
            None => cause.to_string(),
        })
        .reduce(|text, cause| if text.ends_with(&cause) { text } else { format!("{text}: {cause}") })
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
    fn a_cause_is_reported_once() {
        let gone = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = foretell::Error::io("read", "walks.csv")(gone());
        assert_eq!(message(&error.into(), &|_| true), "cannot read walks.csv: entity not found");
        assert_eq!(message(&anyhow::Error::from(gone()).context("no logs"), &|_| true), "no logs: entity not found");
    }

    #[test]
    fn parameters_are_named_as_flags() {
        let flags = |names: &'static [&str]| move |name: &str| names.contains(&name);
        let too_large = || foretell::Error::TooLarge { pairs: 3, memory: 999 }.into();
        let expected = "the moments of 3 pairs take more than 999 bytes; raise --memory, or compress them with ";
        assert_eq!(message(&too_large(), &flags(&["keep-moments"])), format!("{expected}--keep-moments=compressed"));
        assert_eq!(message(&too_large(), &flags(&["compress"])), format!("{expected}--compress"));
        let parameter = || foretell::Error::parameter("test_dim", 0, "must be at least 1").into();
        assert_eq!(message(&parameter(), &flags(&["test-dim"])), "--test-dim 0: must be at least 1");
        assert_eq!(message(&parameter(), &flags(&[])), "test_dim = 0: must be at least 1");
        // Text in backticks that is not a parameter stays unchanged.
        assert_eq!(report::with_flags("a `b c` and ` d"), "a `b c` and ` d");
    }
}
