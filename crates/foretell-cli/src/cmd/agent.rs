//! `foretell agent`

use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::time::Instant;

use foretell::judge::{Test, Tested};
use foretell::store::digest;
use foretell::{
    Agent, AgentOverrides, AgentParams, Error, LearnOverrides, LearnParams, Plan, PlanParams, Seed, SelectParams, agent, domains,
};
use serde_json::json;

use crate::checkpoint::{self, CheckpointArgs, report_resumed};
use crate::run::{self, PolicyFile, Run, TestOf};
use crate::{output, plot, report};

/// The name of our own policy in the table.
pub const OWN: &str = "foretell";

/// Run the whole loop in a domain: sample episodes, learn a model, plan, and compare with baselines
#[derive(clap::Args)]
pub struct Args {
    /// A built-in domain (see `foretell domains`), a .POMDP file or the map of a maze
    #[arg(value_name = "DOMAIN", default_value = "colored-gridworld")]
    domain: String,
    /// Parameters to start from
    #[arg(long, value_enum, default_value_t = super::Preset::Default)]
    preset: super::Preset,
    #[command(flatten)]
    overrides: AgentOverrides,
    /// File of a policy that samples episodes instead of --sampling; each of its actions is random
    /// with probability --epsilon
    #[arg(long, value_name = "POLICY")]
    sampling_policy: Option<PathBuf>,
    /// Whether rewards are part of observations [default: if observations and rewards are then
    /// predicted better]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    observe_reward: Option<bool>,
    /// Penalty on untried actions, in standard deviations of the reward, as in `foretell plan`
    #[arg(long, default_value_t = 0.0, value_name = "K")]
    pessimism: f64,
    /// Discount of planning [default: the domain's, at most 0.99]
    #[arg(long, value_name = "G")]
    discount: Option<f64>,
    /// Number of test episodes for each policy
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    test_episodes: u64,
    /// Seed of the whole run
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write the policy to
    #[arg(short, long, value_name = "POLICY")]
    output: Option<PathBuf>,
    /// Plot the returns of the policies to this file, .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    checkpoint: CheckpointArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let domain = domains::get(&args.domain)?;
    args.plot.as_deref().map_or(Ok(()), foretell_plots::check_name)?;
    let inputs: Vec<PathBuf> = args.sampling_policy.iter().cloned().chain([PathBuf::from(&args.domain)]).collect();
    output::check(args.output.iter().chain(&args.plot), &inputs)?;
    let guide = args.sampling_policy.as_ref().map(crate::input::policy).transpose()?;
    let started = Instant::now();
    let (learning, planning) = match args.preset {
        super::Preset::Default => (agent::learning(), PlanParams::default()),
        super::Preset::Paper => (LearnParams::paper(), PlanParams::paper()),
    };
    let discount = args.discount.unwrap_or(agent::planning_discount(domain.discount));
    let learning = LearnParams { seed: args.seed, observe_reward: args.observe_reward == Some(true), ..learning };
    let fixed = LearnOverrides { observe_reward: args.observe_reward, ..LearnOverrides::default() };
    let select = SelectParams { fixed, ..SelectParams::default() };
    let planning = PlanParams { seed: args.seed, discount, pessimism: args.pessimism, ..planning };
    let params = args.overrides.apply(match args.preset {
        super::Preset::Default => AgentParams::default(),
        super::Preset::Paper => AgentParams::paper(),
    });
    let sampling = if guide.is_some() { params.sampling.guided() } else { params.sampling };
    let params = AgentParams { sampling, ..params };
    let rounds = params.agent_rounds;
    let mut checkpoint = args.checkpoint.open(|| {
        let file = Path::new(&args.domain).is_file().then(|| fs::read(&args.domain).map_err(Error::io("read", &args.domain)));
        Ok(json!({
            "verb": "agent", "domain": args.domain, "file": file.transpose()?.map(|bytes| digest(&bytes)), "parameters": params,
            "learning": learning, "select": select, "planning": planning, "seed": args.seed,
            "sampling policy": guide.as_ref().map(|guide| digest(&guide.to_bytes())),
        }))
    })?;
    let resumed =
        checkpoint.as_ref().filter(|checkpoint| checkpoint.goes_on()).map(|checkpoint| checkpoint.folder().to_path_buf());
    let mut agent = Agent::new(&domain, params.clone(), learning.clone(), planning, Seed(args.seed))?.selecting(select);
    if let Some(guide) = guide {
        agent = agent.guided_by(guide);
    }
    if let Some(checkpoint) = &mut checkpoint {
        agent = agent.checkpointed(checkpoint)?;
    }
    if let Some(folder) = resumed {
        report_resumed(&folder, &format!("{} of {rounds} rounds done", agent.rounds()));
    }
    if !args.json {
        report::say(format!("{}: {}", domain.name, domain.story))?;
    }
    for round in agent.by_ref() {
        let round = round?;
        if stderr().is_terminal() {
            let value = round.fitted.map_or(f64::NAN, |fitted| fitted.start_value);
            let episodes = report::plural(round.episodes as u64, "episode");
            report::complain(format!("round {} of {rounds}: {episodes} sampled, estimated value {value:.3}", round.number));
        }
    }
    let plan = agent.plan().expect("an agent has at least one round");
    if let Some(path) = &args.output {
        plan.save(path)?;
    }
    let seed = Seed(args.seed).stream("test");
    let test = Test {
        domain: &domain,
        episodes: args.test_episodes as usize,
        max_steps: domain.horizon,
        discount: domain.discount,
        seed,
    };
    let mut policies = test.baselines(agent.episodes(), discount)?;
    policies.push(Tested { policy: OWN.into(), returns: test.returns(plan.policies_for(domain.alphabet())?) });
    let informed = test.informed();
    let discounted_bound = informed.as_ref().map(|(_, bound)| *bound);
    policies.extend(informed.map(|(qmdp, _)| qmdp));
    let report = Run {
        version: env!("CARGO_PKG_VERSION").into(),
        domain: args.domain.clone(),
        seed: args.seed,
        seconds: started.elapsed().as_secs_f64(),
        rounds: run::rounds(&params, &agent, domain.discount),
        sampling: params,
        learning,
        planning: plan.params().clone(),
        test: TestOf { episodes: args.test_episodes, max_steps: domain.horizon, discount: domain.discount },
        tried: agent.tried(),
        policies,
        discounted_bound,
        policy: args.output.as_ref().map(|path| policy_file(path, plan)),
    };
    if let Some(path) = &args.plot {
        let title = format!("Returns of policies in {}", domain.name);
        output::plot(&[plot::returns(&title, &report.policies, report.discounted_bound)], path)?;
    }
    if args.json { report::json(&report) } else { show(&report, &args) }?;
    checkpoint::finish(checkpoint)
}

fn policy_file(path: &Path, plan: &Plan) -> PolicyFile {
    PolicyFile { file: path.display().to_string(), digest: digest(&plan.to_bytes()) }
}

fn show(report: &Run, args: &Args) -> anyhow::Result<()> {
    let rows = report.policies.iter().map(|Tested { policy, returns: r }| {
        let numbers = [Some(r.mean_return), r.ci95, Some(r.discounted_return), r.discounted_ci95];
        let mut row = vec![policy.clone()];
        row.extend(numbers.map(|x| x.map_or("–".into(), |x| format!("{x:.3}"))));
        row.extend([format!("{:.1}", r.mean_length), report::percent(r.terminated)]);
        row
    });
    report::say("")?;
    report::say(report::table(&["policy", "return", "±", "discounted", "±", "steps", "ended"], rows))?;
    if let Some(kept) = report.tried.first() {
        report::say(format!(
            "\nKept is a plan of round {}, which earned {:.3} ± {:.3} (discounted) in {} that it sampled itself.",
            kept.round,
            kept.value,
            kept.ci95,
            report::plural(kept.episodes as u64, "episode")
        ))?;
    }
    if let Some(bound) = report.discounted_bound {
        report::say(format!("\nNo policy can earn more than {bound:.3} (discounted), even one that sees the state."))?;
    }
    let earned = |t: &Tested| t.returns.discounted_return;
    if let Some(own) = report.policies.iter().position(|t| t.policy == OWN) {
        let better = report.policies[..own].iter().max_by(|a, b| earned(a).total_cmp(&earned(b)));
        if let Some(better) = better.filter(|t| earned(t) > earned(&report.policies[own])) {
            report::say(format!(
                "\"{}\" earned more than {OWN} here: use it, or try other --episodes, --agent-rounds or --seed.",
                better.policy
            ))?;
        }
    }
    let tests = report::plural(args.test_episodes, "episode");
    report::say(format!(
        "± is half the width of a 95 % interval over {tests}, for this --seed only. Total time {:.1} s.",
        report.seconds
    ))?;
    for (what, path) in [("policy", &args.output), ("plot", &args.plot)] {
        if let Some(path) = path {
            report::say(format!("{what} in {}", path.display()))?;
        }
    }
    Ok(())
}
