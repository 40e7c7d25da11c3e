//! Returns of policies that were planned from logs [H14 §6.4].
//!
//! `planning-quality FOLDER [DOMAIN…] [--quick] [--checkpoint DIR]` writes `planning-DOMAIN.csv`
//! (every seed), `.md` (means over seeds), `.json` (what was run), `.svg` and `.png` into FOLDER,
//! for some domains or all. `--quick` uses two seeds and 1/50 of the episodes.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Instant;

use foretell::judge::{Test, Tested};
use foretell::plan::Planner;
use foretell::{
    Agent, AgentParams, Domain, LearnParams, Logs, Model, Plan, PlanParams, Projection, RefineParams, Seed, Trajectory, domains,
    learn, plan, refine, score,
};
use foretell_experiments::{Arguments, OverSeeds, Pieces, draw};
use foretell_plots::{Axis, Bar, Bars, Figure};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Number of random episodes for planning, and total number of episodes of Algorithm 2.
const EPISODES: usize = 10_000;
/// Episodes for planning in the paper, besides those for learning; baselines use both.
const PAPER_EPISODES: usize = 1000;
/// Validation episodes for choosing the dimensions of the paper's models.
const VALIDATION: usize = 1000;
/// d′ of our models.
const RANK: usize = 20;
/// Rounds of Algorithm 2.
const ROUNDS: usize = 5;
const TEST_EPISODES: usize = 5000;
const FIRST_SEED: u64 = 201;
const SEEDS: u64 = 10;
const PAPER_PROJECTIONS: [(&str, Projection); 4] = [
    ("TPSR", Projection::Identity),
    ("CPSR hashed", Projection::Hashed),
    ("CPSR Rademacher", Projection::Rademacher),
    ("CPSR spherical", Projection::Spherical),
];
/// Factor by which a quick run has fewer episodes, and its rounds of the paper's planner.
const QUICK: usize = 50;
const QUICK_ROUNDS: usize = 10;

/// A domain, and the parameters of planning in it.
struct Setting {
    domain: &'static str,
    /// Discount of planning with our recipes.
    discount: f64,
    /// Which returns are reported: discounted, undiscounted, or both.
    shown: &'static [Kind],
    /// Whether Algorithm 2 is run as well.
    chosen_data: bool,
    paper: Paper,
}

/// The paper's parameters for a domain [H14 §6.4].
struct Paper {
    rank: usize,
    /// Dimensions among which the best is chosen.
    dims: &'static [usize],
    max_test_length: usize,
    /// Discount of planning.
    discount: f64,
    /// Whether uncompressed models are included.
    tpsr: bool,
    /// Its numbers.
    says: &'static str,
}

/// How rewards are summed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Discounted,
    Plain,
}

/// The paper does not give the length of tests in these games.
const POCMANS: Paper = Paper { rank: 25, dims: &[250, 500], max_test_length: 4, discount: 0.99999, tpsr: false, says: "" };

const SETTINGS: [Setting; 4] = [
    Setting {
        domain: "colored-gridworld",
        discount: 0.99,
        shown: &[Kind::Discounted],
        chosen_data: true,
        paper: Paper {
            rank: 5,
            dims: &[25, 50, 75],
            max_test_length: 7,
            discount: 0.99,
            tpsr: true,
            says: "a figure without numbers: hashed best, TPSR second, all far above memoryless.",
        },
    },
    Setting {
        domain: "amm-cpsr",
        discount: 0.99,
        shown: &[Kind::Discounted, Kind::Plain],
        chosen_data: true,
        paper: Paper {
            rank: 10,
            dims: &[25, 50, 100],
            max_test_length: 4,
            discount: 0.99,
            tpsr: false,
            says: "the best (Rademacher) is 3.7 % above random discounted and 4.6 % undiscounted, memoryless as good as random.",
        },
    },
    Setting {
        domain: "s-pocman",
        discount: 0.95,
        shown: &[Kind::Plain],
        chosen_data: false,
        paper: Paper { says: "a figure without numbers: spherical best, Rademacher no better than memoryless.", ..POCMANS },
    },
    Setting {
        domain: "pocman",
        discount: 0.95,
        shown: &[Kind::Plain],
        chosen_data: false,
        paper: Paper {
            says: "memoryless is best, with -0.2 a step; MC-AIXI has between -1 and 1 after 50 000 steps, 1 to 1.5 after 250 000.",
            ..POCMANS
        },
    },
];

/// The return of a policy with one seed.
#[derive(Serialize, Deserialize)]
struct Row {
    domain: String,
    policy: String,
    seed: u64,
    mean_return: f64,
    ci95: f64,
    discounted_return: f64,
    discounted_ci95: f64,
    mean_length: f64,
    seconds: f64,
}

impl Row {
    fn earned(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Discounted => self.discounted_return,
            Kind::Plain => self.mean_return,
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let (quick, only) = (arguments.quick, &arguments.words);
    if let Some(unknown) = only.iter().find(|name| SETTINGS.iter().all(|setting| setting.domain != **name)) {
        anyhow::bail!("{unknown} is not known here; known: {}", SETTINGS.map(|setting| setting.domain).join(", "));
    }
    for setting in SETTINGS.iter().filter(|setting| only.is_empty() || only.iter().any(|name| name == setting.domain)) {
        let Paper { rank, dims, max_test_length, discount, .. } = setting.paper;
        let mut manifest = json!({
            "domain": setting.domain, "episodes": EPISODES, "paper_episodes": PAPER_EPISODES, "validation": VALIDATION,
            "rank": RANK, "rounds": ROUNDS, "test_episodes": TEST_EPISODES, "first_seed": FIRST_SEED,
            "seeds": if quick { 2 } else { SEEDS }, "quick": quick, "discount": setting.discount,
            "default": PlanParams::default(), "paper": PlanParams::paper(), "version": env!("CARGO_PKG_VERSION"),
            "paper's models": { "rank": rank, "dims": dims, "max_test_length": max_test_length, "discount": discount },
        });
        let domain = domains::get(setting.domain)?;
        let folder = arguments.checkpoint.as_ref().map(|folder| folder.join(setting.domain));
        let mut pieces = Pieces::open(&Arguments { checkpoint: folder, ..arguments.clone() }, &manifest)?;
        let started = Instant::now();
        let mut rows = Vec::new();
        for seed in FIRST_SEED..FIRST_SEED + if quick { 2 } else { SEEDS } {
            let run = || Run { setting, domain: &domain, seed, less: if quick { QUICK } else { 1 } }.rows();
            rows.extend(pieces.rows(&format!("seed-{seed}"), run)?);
            eprintln!("{} seed {seed} done after {:.0} s", setting.domain, started.elapsed().as_secs_f64());
        }
        manifest["seconds"] = json!(pieces.seconds());
        let name = format!("planning-{}", setting.domain);
        foretell_experiments::write(&arguments.folder, &name, &csv(&rows)?, &table(setting, &rows)?, &manifest)?;
        let figures: Vec<Figure> = setting.shown.iter().map(|&kind| bars(setting, kind, &rows).into()).collect();
        draw(&arguments.folder, &name, &figures)?;
        pieces.finish()?;
    }
    Ok(())
}

/// All policies with one seed.
struct Run<'a> {
    setting: &'a Setting,
    domain: &'a Domain,
    seed: u64,
    /// Factor by which there are fewer episodes.
    less: usize,
}

impl Run<'_> {
    fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let (setting, domain, seed) = (self.setting, self.domain, self.seed);
        let test = Test {
            domain,
            episodes: TEST_EPISODES / self.less,
            max_steps: domain.horizon,
            discount: domain.discount,
            seed: Seed(seed).stream("test"),
        };
        let mut tested: Vec<(Tested, f64)> = Vec::new();
        let mut test_plan = |name: &str, plan: &Plan, seconds: f64| -> anyhow::Result<()> {
            let returns = test.returns(plan.policies_for(domain.alphabet())?);
            tested.push((Tested { policy: name.into(), returns }, seconds));
            Ok(())
        };
        let random = self.sample(EPISODES, "agent");
        let planning = PlanParams { discount: setting.discount, seed, ..PlanParams::default() };
        let extra = self.sample(PAPER_EPISODES, "plan");
        for (name, plan, seconds) in self.of_paper(&random, &extra)? {
            test_plan(name, &plan, seconds)?;
        }
        for (name, plan, seconds) in self.of_random_logs(&random, &planning)? {
            test_plan(name, &plan, seconds)?;
        }
        if setting.chosen_data {
            for (name, plan, seconds) in self.of_chosen_data(&planning)? {
                test_plan(name, &plan, seconds)?;
            }
        }
        let both = [random, extra].concat();
        tested.extend(test.baselines(&both, setting.discount)?.into_iter().map(|tested| (tested, 0.0)));
        tested.extend(test.informed().map(|(qmdp, _)| (qmdp, 0.0)));
        let row = |(Tested { policy, returns: r }, seconds)| Row {
            domain: setting.domain.into(),
            policy,
            seed,
            mean_return: r.mean_return,
            ci95: r.ci95.unwrap_or(0.0),
            discounted_return: r.discounted_return,
            discounted_ci95: r.discounted_ci95.unwrap_or(0.0),
            mean_length: r.mean_length,
            seconds,
        };
        Ok(tested.into_iter().map(row).collect())
    }

    fn sample(&self, episodes: usize, stream: &str) -> Vec<Trajectory> {
        let seed = Seed(self.seed).stream(stream).index(0);
        domains::sample(self.domain, episodes / self.less, self.domain.horizon, seed).collect()
    }

    fn logs(&self, episodes: &[Trajectory]) -> Logs {
        Logs::memory(self.domain.alphabet().clone(), episodes.to_vec())
    }

    /// The paper's models, learned from random episodes; planning uses other episodes.
    fn of_paper(&self, random: &[Trajectory], extra: &[Trajectory]) -> anyhow::Result<Vec<(&'static str, Plan, f64)>> {
        let Paper { rank, dims, max_test_length, discount, tpsr, .. } = self.setting.paper;
        let (train, validation) = (self.logs(random), self.logs(&self.sample(VALIDATION, "validation")));
        let rounds = if self.less > 1 { QUICK_ROUNDS } else { PlanParams::paper().rounds };
        let planning = PlanParams { discount, rounds, seed: self.seed, ..PlanParams::paper() };
        let mut plans = Vec::new();
        for (name, projection) in PAPER_PROJECTIONS.into_iter().filter(|(_, p)| tpsr || *p != Projection::Identity) {
            let mut best: Option<(f64, Model, f64)> = None;
            let dims = if projection == Projection::Identity { &[1] } else { dims };
            for &dim in dims {
                let both = LearnParams { test_projection: projection, history_projection: projection, ..LearnParams::paper() };
                let sizes = LearnParams { test_dim: dim, history_dim: dim, rank, max_test_length, ..both };
                let started = Instant::now();
                let model = learn(&train, &LearnParams { seed: self.seed, ..sizes })?;
                let seconds = started.elapsed().as_secs_f64();
                let likelihood = if dims.len() > 1 { score(&model, &validation, None)?.per_step } else { 0.0 };
                if best.as_ref().is_none_or(|(most, ..)| likelihood > *most) {
                    best = Some((likelihood, model, seconds));
                }
            }
            let Some((_, model, seconds)) = best else { continue };
            let started = Instant::now();
            let plan = plan(&model, &self.logs(extra), &planning, &mut |_| {})?;
            plans.push((name, plan, seconds + started.elapsed().as_secs_f64()));
        }
        Ok(plans)
    }

    /// Our recipes, from random episodes.
    fn of_random_logs(&self, random: &[Trajectory], planning: &PlanParams) -> anyhow::Result<Vec<(&'static str, Plan, f64)>> {
        let logs = self.logs(random);
        let started = Instant::now();
        let linear = learn(&logs, &self.learning())?;
        let learned = started.elapsed().as_secs_f64();
        let refined = refine(&linear, &logs, &RefineParams::default())?;
        let refining = started.elapsed().as_secs_f64();
        let qmdp = |pessimism| PlanParams { planner: Planner::Qmdp, pessimism, ..planning.clone() };
        let methods = [
            ("foretell", &refined, planning.clone(), refining),
            ("refined, QMDP", &refined, qmdp(0.0), refining),
            ("refined, QMDP, pessimism 1", &refined, qmdp(1.0), refining),
            ("fitted-Q", &linear, planning.clone(), learned),
        ];
        let mut plans = Vec::new();
        for (name, model, params, seconds) in methods {
            let started = Instant::now();
            let plan = plan(model, &logs, &params, &mut |_| {})?;
            plans.push((name, plan, seconds + started.elapsed().as_secs_f64()));
        }
        Ok(plans)
    }

    /// Algorithm 2, which samples its own episodes.
    fn of_chosen_data(&self, planning: &PlanParams) -> anyhow::Result<Vec<(&'static str, Plan, f64)>> {
        let mut plans = Vec::new();
        for (name, refine) in [("fitted-Q, Algorithm 2", false), ("foretell, Algorithm 2", true)] {
            let params = AgentParams { agent_rounds: ROUNDS, episodes: EPISODES / self.less, refine, ..AgentParams::paper() };
            let started = Instant::now();
            let mut agent = Agent::new(self.domain, params, self.learning(), planning.clone(), Seed(self.seed))?;
            agent.by_ref().collect::<Result<Vec<_>, _>>()?;
            let plan = agent.plan().expect("an agent has at least one round").clone();
            plans.push((name, plan, started.elapsed().as_secs_f64()));
        }
        Ok(plans)
    }

    fn learning(&self) -> LearnParams {
        LearnParams { rank: RANK, seed: self.seed, ..LearnParams::default() }
    }
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from("domain,policy,seed,return,ci95,discounted_return,discounted_ci95,steps,seconds\n");
    for row in rows {
        let Row { domain, policy, seed, mean_return, ci95, discounted_return, discounted_ci95, mean_length, seconds } = row;
        write!(text, "{domain},\"{policy}\",{seed},{mean_return:.4},{ci95:.4},{discounted_return:.4},{discounted_ci95:.4},")?;
        writeln!(text, "{mean_length:.3},{seconds:.2}")?;
    }
    Ok(text)
}

/// The rows of each policy, policies in the order of the first seed.
fn by_policy(rows: &[Row]) -> Vec<(&str, Vec<&Row>)> {
    let mut seen = HashSet::new();
    let names = rows.iter().map(|row| single(&row.policy)).filter(|name| seen.insert(*name));
    names.map(|name| (name, rows.iter().filter(|row| single(&row.policy) == name).collect())).collect()
}

fn table(setting: &Setting, rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::new();
    let seeds = rows.iter().map(|row| row.seed).collect::<HashSet<_>>().len();
    for &kind in setting.shown {
        let what = if kind == Kind::Discounted { "Discounted" } else { "Undiscounted" };
        writeln!(
            text,
            "{what} return in {}: mean, standard deviation and minimum over {seeds} seeds; ± is half a 95 % interval of the mean over \
             seeds.\n",
            setting.domain
        )?;
        writeln!(
            text,
            "| policy | mean | ± | sd | minimum | over random | reward per step | seconds |\n|---|---|---|---|---|---|---|---|"
        )?;
        let policies = by_policy(rows);
        let over = |rows: &[&Row], of: &dyn Fn(&Row) -> f64| rows.iter().map(|row| of(row)).collect::<OverSeeds>();
        let random =
            policies.iter().find(|(name, _)| *name == "random").map_or(0.0, |(_, rows)| over(rows, &|r| r.earned(kind)).mean);
        for (name, rows) in policies {
            let OverSeeds { mean, half, sd, least, .. } = over(&rows, &|row| row.earned(kind));
            let seconds = over(&rows, &|row| row.seconds).mean;
            let time = if seconds > 0.0 { format!("{seconds:.1}") } else { "–".into() };
            let gain = 100.0 * (mean / random - 1.0);
            // A relative gain over a value near or below zero is meaningless.
            let gain = if random > 1.0 { format!("{gain:+.2} %") } else { "–".into() };
            let step = over(&rows, &|row| row.mean_return / row.mean_length).mean;
            let digits = if random.abs() < 1.0 { 3 } else { 1 };
            let [mean, half, sd, least] = [mean, half, sd, least].map(|x| format!("{x:.digits$}"));
            writeln!(text, "| {name} | {mean} | {half} | {sd} | {least} | {gain} | {step:.3} | {time} |")?;
        }
        writeln!(text)?;
    }
    writeln!(text, "The paper: {}", setting.paper.says)?;
    Ok(text)
}

fn bars(setting: &Setting, kind: Kind, rows: &[Row]) -> Bars {
    let bar = |(name, rows): (&str, Vec<&Row>)| {
        let earned: OverSeeds = rows.iter().map(|row| row.earned(kind)).collect();
        let is_own = ["foretell", "fitted-Q", "refined"].iter().any(|own| name.starts_with(own));
        Bar { name: name.into(), value: earned.mean, half: earned.half, is_own }
    };
    let what = if kind == Kind::Discounted { "discounted" } else { "undiscounted" };
    Bars {
        title: format!("What policies earn in {}", setting.domain),
        axis: Axis::new(format!("{what} return, with 95 % intervals over seeds")),
        // Pessimism hardly matters, and the worst single action would flatten the other bars.
        bars: by_policy(rows).into_iter().filter(|(name, _)| !name.contains("pessimism") && *name != SINGLE).map(bar).collect(),
        mark: None,
    }
}

const SINGLE: &str = "always the same action";

/// The best single action may differ between seeds; it has one row.
fn single(policy: &str) -> &str {
    if policy.starts_with("always ") { SINGLE } else { policy }
}
