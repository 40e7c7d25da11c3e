//! `foretell plan`

use std::path::PathBuf;
use std::time::Instant;

use foretell::plan::{Choice, Planner, Regressor, Round, StateKind, Steps, are_single_steps, only_reward, plan_on};
use foretell::{Plan, PlanOverrides, PlanParams, StopReason};
use serde_json::json;

use crate::input::LogArgs;
use crate::output;
use crate::progress::{self, RoundsBar};
use crate::report::{self, plural};

/// Gap between the bounds of a plan, as a fraction of the upper bound, above which advice is given.
const FAR: f64 = 0.2;

/// Plan with a model and logs: compute a policy with a high return
#[derive(clap::Args)]
pub struct Args {
    /// A model that `foretell learn` wrote
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    input: LogArgs,
    /// File to write the policy to
    #[arg(short, long, value_name = "POLICY")]
    output: PathBuf,
    /// Parameters to start from
    #[arg(long, value_enum, default_value_t = super::Preset::Default)]
    preset: super::Preset,
    #[command(flatten)]
    overrides: PlanOverrides,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let params = args.overrides.apply(match args.preset {
        super::Preset::Default => PlanParams::default(),
        super::Preset::Paper => PlanParams::paper(),
    });
    params.validate()?;
    output::check([&args.output], &[args.input.files()?, vec![args.model.clone()]].concat())?;
    let started = Instant::now();
    let model = crate::input::model(&args.model)?;
    let input = args.input.open_for(&model.origin().schema)?;
    let episodes = input.logs.episodes_for(model.alphabet(), "model").map_err(|e| input.blame(e))?;
    if let Some(reward) = only_reward(&episodes) {
        report::complain(format!(
            "warning: every reward in the logs is {reward}, so good and bad policies cannot be distinguished; check the reward column"
        ));
    }
    let unknown = Steps::of(model.alphabet(), &episodes).map_or(0, |steps| steps.unrewarded());
    if unknown > 0 {
        progress::note(&format!(
            "{} have no reward and are left out; if an empty reward means 0, write 0",
            plural(unknown as u64, "step")
        ));
    }
    let is_bandit = are_single_steps(model.alphabet(), &episodes);
    if is_bandit {
        progress::note("every episode has one step, which is taken as its end (a bandit)");
    }
    let mut bar = RoundsBar::new("planning", params.rounds as u64);
    let mut trace: Vec<Round> = Vec::new();
    let planned = plan_on(&model, &episodes, &params, &mut |round| {
        bar.tell(round.number as u64);
        trace.push(round);
    });
    bar.finish();
    let plan = planned?;
    plan.save(&args.output)?;
    let support = plan.support(&episodes)?;
    let (steps, seconds) = (episodes.iter().map(|z| z.steps.len() as u64).sum(), started.elapsed().as_secs_f64());
    let bound = trace.last().map_or(0.0, |round| (round.start_value + round.change).abs());
    let (value, change) = trace.last().map_or((f64::NAN, f64::NAN), |round| (round.start_value, round.change));
    if args.json {
        let report = json!({
            "policy": args.output, "episodes": episodes.len(), "steps": steps, "seconds": seconds,
            "start_value": value, "change": change, "params": plan.params(), "support": support, "choice": plan.choice(),
            "trace": trace,
        });
        report::json(&report)?;
        warn(&plan);
        return Ok(());
    }
    let (all, steps) = (plural(episodes.len() as u64, "episode"), plural(steps, "step"));
    report::say(format!("planned on {all}, {steps} in {seconds:.2} s"))?;
    let value = match plan.params().planner {
        Planner::Qmdp | Planner::FastInformed => format!("at most {value:.4} at the start, in the model"),
        Planner::PointBased => format!("{value:.4} to {:.4} at the start, in the model", value + change),
        Planner::FittedQ | Planner::Auto if plan.only_action().is_some() => format!("{value:.4} at the start, by the logs"),
        Planner::FittedQ | Planner::Auto => {
            format!("{value:.4} at the start, an optimistic in-sample estimate (last change {change:.1e})")
        }
    };
    let less = if plan.params().pessimism > 0.0 { ", minus the penalty of --pessimism" } else { "" };
    let discount = plan.params().discount;
    let over = match (is_bandit, plan.choice().filter(|_| plan.only_action().is_some())) {
        (true, _) => "in the one step of an episode".to_string(),
        (false, Some(choice)) => format!("over {} at discount {discount}", plural(choice.horizon as u64, "step")),
        (false, None) => format!("over all steps to come at discount {discount}: episodes are not truncated"),
    };
    report::say(format!("  value      {value}, {over}{less}"))?;
    if plan.params().planner == Planner::PointBased && change > FAR * bound {
        let more = if plan.stopped() == Some(StopReason::Rounds) { "more --rounds, " } else { "" };
        report::say(format!(
            "             the bounds are far apart: try {more}a lower --discount, --pessimism or --planner fitted-q"
        ))?;
    }
    report::say(format!("  decides by {}", regressor(&plan)))?;
    plan.choice().map_or(Ok(()), compared)?;
    report::say(format!(
        "  support    its actions were logged {} times in similar states (median over these logs; {} times or fewer in 5 % of the states)",
        report::count(support.median.round() as u64),
        report::count(support.low.round() as u64)
    ))?;
    report::say(format!("  policy     {}", args.output.display()))?;
    warn(&plan);
    Ok(())
}

/// A warning if the logs do not show that the plan is better than what is known.
fn warn(plan: &Plan) {
    plan.choice().and_then(|choice| choice.warning()).iter().for_each(|warning| report::complain(format!("warning: {warning}")));
}

/// What the comparison on the logs says.
fn compared(choice: &Choice) -> anyhow::Result<()> {
    let (chosen, others) = (choice.chosen(), choice.candidates.len() - 1);
    let others = if others == 0 { String::new() } else { format!(", chosen among {}", plural(others as u64 + 1, "candidate")) };
    let constant = choice.constant.as_ref().map_or(String::new(), |best| format!(", {} {best}", best.name));
    report::say(format!("  by logs    {chosen}{others}; {} {}{constant}", choice.logged.name, choice.logged))?;
    report::say(format!(
        "             cross-fitted values over {} at discount {}, each with the standard error of sampling alone: errors of Q̂ may be larger",
        plural(choice.horizon as u64, "step"),
        choice.discount
    ))?;
    Ok(())
}

/// What estimates Q, as text.
fn regressor(plan: &Plan) -> String {
    let params = plan.params();
    if let Some(a) = plan.only_action() {
        return format!("nothing: it always takes {:?}", plan.alphabet().action_name(a));
    }
    match params.planner {
        Planner::FittedQ | Planner::Auto => {}
        Planner::Qmdp => return "QMDP on the belief of the refined model".into(),
        Planner::FastInformed => return "the fast informed bound on the belief of the refined model".into(),
        Planner::PointBased => return "point-based planning on the belief of the refined model".into(),
    }
    let is_recurrent = plan.model().is_some_and(|model| model.latent().is_none() && model.recurrent().is_some());
    let states = match params.state {
        StateKind::Last => "trees over the last observations",
        StateKind::Predictive | StateKind::Memory if is_recurrent => "trees over the states of the recurrent network",
        StateKind::Predictive | StateKind::Memory => "trees over the states of the model",
    };
    let last = |n: usize, what: &str| if n == 1 { format!("the last {what}") } else { format!("the last {n} {what}s") };
    let table = format!("a table over {} and the time step", last(params.window, "step"));
    match params.regressor {
        Regressor::Trees => states.to_string(),
        Regressor::Table => table,
        Regressor::Changes => {
            format!("a table over {} that differed from the one before", last(params.window + 1, "observation"))
        }
        Regressor::Mean | Regressor::Auto => format!("the mean of {states} and {table}"),
    }
}
