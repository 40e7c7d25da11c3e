//! `foretell report`

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use foretell::baselines::{Test, Tested};
use foretell::checkpoint::{digest, digest_of};
use foretell::log::Summary;
use foretell::plan::{Planner, Regressor, StateKind};
use foretell::{Domain, Error, Model, Plan, Pomdp, Seed, Stamp, Trajectory, domains, file, score};

use super::agent::OWN;
use crate::game::Game;
use crate::input::{LogArgs, Opened};
use crate::output;
use crate::page::{self, Data, Earned, Episodes, Estimates, Foresight, Kind, LogFile, Page, Part, Spectrum};
use crate::report::{self, count, plural};
use crate::run::Run;
use crate::show::Show;

/// Make one page about a model, a policy or a run, for a browser: what it learned, how good it is, what it does
///
/// The page is one file that needs no network. With --logs it tells how well a model foretells logs it has not seen; with --domain,
/// what a policy earns and does. What a page does not hold it says how to get.
#[derive(clap::Args)]
pub struct Args {
    /// A model of `learn` or `refine`, a policy of `plan` or `agent`, or what `agent --json` printed (`-` is standard input)
    #[arg(value_name = "MODEL|POLICY|RUN")]
    file: PathBuf,
    /// Logs that it has not seen, files, folders or quoted patterns: summed up, scored, and shown step by step
    #[arg(long, value_name = "LOGS", num_args = 1..)]
    logs: Vec<PathBuf>,
    /// The domain the logs come from: its exact model is put beside
    #[arg(long, value_name = "DOMAIN", requires = "logs")]
    truth: Option<String>,
    /// Let the policy act here: a built-in domain (see `foretell domains`), a .POMDP file or the map of a maze [default: that of
    /// the run]
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Episodes that are shown step by step
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=50))]
    episodes: u16,
    /// Episodes in which the policy is tested in the domain
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    test_episodes: u64,
    /// Seed of the episodes in the domain
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write the page to; `-` is standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "json")]
    output: Option<PathBuf>,
    /// Print what is on the page as JSON
    #[arg(long)]
    json: bool,
}

/// Episodes of logs from which policies beside are learned, and a policy's value is estimated: all are held in memory.
const HELD: usize = 10_000;
/// Samples of the logs, and rollouts, for these estimates.
const REPLICATES: usize = 20;

pub fn run(args: Args) -> anyhow::Result<()> {
    if let Some(path) = args.output.as_deref().filter(|path| !is_dash(path)) {
        output::check(path)?;
        LogArgs::of(vec![args.file.clone()]).refuse_as_output(path)?;
        LogArgs::of(args.logs.clone()).refuse_as_output(path)?;
    }
    let page = Subject::read(&args.file)?.page(&args)?;
    if args.json {
        report::json(&page)?;
    }
    let Some(path) = &args.output else { return Ok(()) };
    let html = page.html();
    if is_dash(path) {
        return Ok(io::stdout().lock().write_all(html.as_bytes())?);
    }
    file::write(path, html.as_bytes())?;
    if !args.json {
        report::say(format!("{}: {} kB, open it in a browser", path.display(), count(html.len().div_ceil(1000) as u64)))?;
        for hint in page.missing() {
            report::say(format!("  {hint}"))?;
        }
    }
    Ok(())
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What a page is about.
struct Subject {
    /// As the user named it.
    name: String,
    digest: String,
    stamp: Option<Stamp>,
    model: Option<Model>,
    plan: Option<Plan>,
    run: Option<Run>,
}

impl Subject {
    fn read(path: &Path) -> anyhow::Result<Subject> {
        let (name, bytes) = if is_dash(path) {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
            ("standard input".into(), bytes)
        } else {
            (path.display().to_string(), fs::read(path).map_err(Error::io("read", path))?)
        };
        let stamp = Stamp::of(&bytes);
        let mut subject = Subject { digest: digest(&bytes), name, stamp: None, model: None, plan: None, run: None };
        match stamp.as_ref().map(|stamp| stamp.kind.as_str()) {
            Some("model") => subject.model = Some(Model::from_bytes(&bytes, &subject.name)?),
            Some("policy") => subject.plan = Some(Plan::from_bytes(&bytes, &subject.name)?),
            _ => {
                let run: Run = serde_json::from_slice(&bytes).map_err(|e| not_ours(&subject.name, &bytes, &e))?;
                subject.plan = policy_of(&run, path)?;
                subject.run = Some(run);
            }
        }
        subject.stamp = stamp;
        Ok(subject)
    }

    /// The model that foretells.
    fn model(&self) -> Option<&Model> {
        self.model.as_ref().or_else(|| self.plan.as_ref()?.model())
    }

    fn kind(&self) -> Kind {
        match (&self.run, &self.plan) {
            (Some(_), _) => Kind::Run,
            (None, Some(_)) => Kind::Policy,
            (None, None) => Kind::Model,
        }
    }

    fn page(&self, args: &Args) -> anyhow::Result<Page> {
        if let (Some(_), Kind::Model) = (&args.domain, self.kind()) {
            bail!(
                "{} is a model, which does not act: --domain is for policies; score it with --logs LOGS, and --truth DOMAIN beside",
                self.name
            );
        }
        let domain = args.domain.as_deref().or(self.run.as_ref().map(|run| run.domain.as_str()));
        let domain = match (domain.map(domains::get), &args.domain) {
            (Some(Err(_)), None) => None, // the run was elsewhere
            (domain, _) => domain.transpose()?,
        };
        let logs = Heard::open(args)?;
        let truth = args.truth.as_deref().map(domains::get).transpose()?;
        let truth = truth.as_ref().map(|t| t.pomdp().ok_or_else(|| anyhow!("{} has no exact model", t.name))).transpose()?;
        let foresight = self.foresight(logs.as_ref(), truth)?;
        let earned = self.earned(args, domain.as_ref(), logs.as_ref())?;
        let estimates = self.estimates(args, logs.as_ref())?;
        let episodes = self.episodes(args, domain.as_ref(), logs.as_ref(), truth)?;
        let mut headlines = page::for_policy(earned.as_ref().and_then(Part::here), estimates.as_ref().and_then(Part::here));
        if let Some(model) = self.model() {
            headlines.extend(page::for_model(model, foresight.as_ref().and_then(Part::here)));
        }
        let data = logs.as_ref().map(Heard::data).transpose()?;
        Ok(Page {
            kind: self.kind(),
            title: shown(&self.name),
            about: self.about(),
            headlines,
            warnings: self.warnings(foresight.as_ref().and_then(Part::here), estimates.as_ref().and_then(Part::here)),
            earned,
            estimates,
            rounds: self.run.as_ref().map(|run| run.rounds.clone()).unwrap_or_default(),
            foresight,
            episodes,
            spectrum: self.model().map(Spectrum::of),
            provenance: self.provenance(args, data.as_ref()),
            data: Some(data.map_or_else(|| missing("What is in the logs"), Part::Here)),
            parameters: self.parameters(),
        })
    }

    /// What it is, in words.
    fn about(&self) -> Vec<String> {
        let mut about = Vec::new();
        if let Some(run) = &self.run {
            about.push(format!(
                "An agent that began with nothing in {}: {} of sampling, learning and planning, {} in all.",
                run.domain,
                plural(run.rounds.len() as u64, "round"),
                plural(run.rounds.last().map_or(0, |round| round.episodes as u64), "episode"),
            ));
        }
        if let Some(plan) = &self.plan {
            about.push(format!(
                "A policy: it decides which of {} to take. {}",
                plural(plan.alphabet().actions().len() as u64, "action"),
                decides(plan)
            ));
        }
        if let Some(model) = self.model() {
            let (episodes, _) = model.trained_on();
            let alphabet = model.alphabet();
            about.push(format!(
                "A predictive model: it tells how likely each of {} is, if one of {} is taken, given all that happened before. It was learned from {}, without being told how the system works.",
                plural(alphabet.observations().len() as u64, "observation"),
                plural(alphabet.actions().len() as u64, "action"),
                plural(episodes, "logged episode"),
            ));
            let others = model.ensemble().members.len() as u64;
            if others > 0 {
                about.push(format!("It is an ensemble: predictions are means of {}.", plural(others + 1, "model")));
            }
        }
        about
    }

    /// What should be known before all else.
    fn warnings(&self, foresight: Option<&Foresight>, estimates: Option<&Estimates>) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some((model, _, Some((name, best)))) = foresight.and_then(Foresight::last)
            && best > model.log_likelihood
        {
            warnings.push(format!("A baseline predicts better than the model: {name}, at horizon {}.", model.horizon));
        }
        if let Some(foresight) = foresight.filter(|foresight| foresight.unseen > 0) {
            warnings.push(format!(
                "{} of the logs had an action or observation never met in training.",
                plural(foresight.unseen, "step")
            ));
        }
        if estimates.is_some_and(|estimates| estimates.agree == Some(false)) {
            warnings.push("The two estimates of what the policy would earn disagree, so trust neither.".into());
        }
        if self.model().and_then(Model::refined).is_some_and(|refined| refined.forgets_rewards()) {
            warnings.push("Rewards depend on what the hidden states do not know: plans by fitted-Q are safer here.".into());
        }
        warnings
    }

    fn foresight(&self, logs: Option<&Heard>, truth: Option<&Pomdp>) -> anyhow::Result<Option<Part<Foresight>>> {
        let Some(model) = self.model() else { return Ok(None) };
        let Some(heard) = logs else { return Ok(Some(missing("How well it foretells"))) };
        let score = score(model, &heard.opened.logs, truth).map_err(|e| heard.opened.blame(e))?;
        Ok(Some(Part::Here(Foresight::of(&score))))
    }

    fn earned(&self, args: &Args, domain: Option<&Domain>, logs: Option<&Heard>) -> anyhow::Result<Option<Part<Earned>>> {
        if let Some(run) = self.run.as_ref().filter(|_| args.domain.is_none()) {
            let story = domain.map(|domain| domain.story.clone()).unwrap_or_default();
            return Ok(Some(Part::Here(Earned {
                domain: run.domain.clone(),
                story,
                episodes: run.test.episodes,
                max_steps: run.test.max_steps,
                discount: run.test.discount,
                policies: run.policies.clone(),
                own: OWN.into(),
                bound: run.discounted_bound,
            })));
        }
        let Some(plan) = &self.plan else { return Ok(None) };
        let Some(domain) = domain else {
            return Ok(Some(Part::Missing("What it earns in a domain: give --domain DOMAIN, if it was made for one.".into())));
        };
        let (episodes, max_steps, discount) = (args.test_episodes, domain.horizon, domain.discount);
        let test = Test { domain, episodes: episodes as usize, max_steps, discount, seed: Seed(args.seed) };
        // Others learn from the logs, if they have rewards.
        let learned = |heard: &Heard| -> anyhow::Result<Vec<Tested>> {
            let held = heard.held(domain.alphabet().clone())?;
            Ok(test.baselines(&held, plan.params().discount)?)
        };
        let mut policies = logs.and_then(|heard| learned(heard).ok()).unwrap_or_else(|| test.unlearned());
        policies.push(Tested { policy: OWN.into(), returns: test.returns(plan.policies_for(domain.alphabet())?) });
        let informed = test.informed();
        let bound = informed.as_ref().map(|(_, bound)| *bound);
        policies.extend(informed.map(|(tested, _)| tested));
        let (name, story, own) = (domain.name.clone(), domain.story.clone(), OWN.into());
        Ok(Some(Part::Here(Earned { domain: name, story, episodes, max_steps, discount, policies, own, bound })))
    }

    /// What logs say the policy would earn, where they can.
    fn estimates(&self, args: &Args, logs: Option<&Heard>) -> anyhow::Result<Option<Part<Estimates>>> {
        let Some(plan) = &self.plan else { return Ok(None) };
        let Some(heard) = logs else { return Ok(Some(missing("What logs say it would earn"))) };
        let episodes = heard.held(plan.alphabet().clone())?;
        let max_steps = episodes.iter().map(|z| z.steps.len()).max().unwrap_or(0);
        let discount = plan.params().discount;
        let rollouts = args.test_episodes as usize;
        let test = foretell::LogTest { max_steps, discount, rollouts, replicates: REPLICATES, seed: Seed(args.seed) };
        let known = |z: &Trajectory| z.steps.iter().all(|ao| (ao.action.0 as usize) < plan.alphabet().actions().len());
        if !episodes.iter().all(known) {
            return Ok(Some(Part::Missing(
                "What logs say it would earn: they have actions that the policy does not know.".into(),
            )));
        }
        Ok(Some(match test.evaluate(plan, &episodes) {
            Ok(value) => Part::Here(Estimates::of(&value, episodes.len(), max_steps, discount)),
            Err(e) => Part::Missing(format!("What logs say it would earn cannot be told: {e}")),
        }))
    }

    fn episodes(
        &self,
        args: &Args,
        domain: Option<&Domain>,
        logs: Option<&Heard>,
        truth: Option<&Pomdp>,
    ) -> anyhow::Result<Option<Part<Episodes>>> {
        let (plan, model) = (self.plan.as_ref(), self.model());
        let n = usize::from(args.episodes);
        if let (Some(domain), Some(plan)) = (domain, plan) {
            let mut show = Show::new(Game::new(domain, domain.horizon, Seed(args.seed)), plan)?;
            let mut list = Vec::new();
            for episode in 0..n {
                if episode > 0 {
                    show.restart();
                }
                list.push(page::played(&mut show));
            }
            let source =
                format!("The policy acts in {}: the first {} with seed {}.", domain.name, plural(n as u64, "episode"), args.seed);
            let actions = domain.alphabet().actions().to_vec();
            return Ok(Some(Part::Here(Episodes { source, acted: true, actions, list })));
        }
        let Some(alphabet) = plan.map(Plan::alphabet).or(model.map(Model::alphabet)) else {
            return Ok(self.run.as_ref().map(|_| {
                Part::Missing("What the agent does, step by step: keep its policy with `foretell agent -o POLICY --json`.".into())
            }));
        };
        let Some(heard) = logs else {
            let how = if plan.is_some() { "--domain DOMAIN, or --logs LOGS" } else { "--logs LOGS" };
            return Ok(Some(Part::Missing(format!("What happens, step by step: give {how}."))));
        };
        let mut reader = heard.opened.logs.open(alphabet.clone())?;
        let first = reader.by_ref().take(n).collect::<Result<Vec<Trajectory>, _>>().map_err(|e| heard.opened.blame(e))?;
        let list = first.iter().map(|z| page::along(z, reader.alphabet(), model, plan, truth)).collect();
        let source = format!("The first {} of the logs.", plural(first.len() as u64, "episode"));
        Ok(Some(Part::Here(Episodes { source, acted: false, actions: alphabet.actions().to_vec(), list })))
    }

    fn parameters(&self) -> Vec<page::Group> {
        let mut groups = Vec::new();
        groups.extend(self.run.as_ref().map(|run| page::group("Sampling", "agent", &run.sampling)));
        let planning = self.plan.as_ref().map(Plan::params).or(self.run.as_ref().map(|run| &run.planning));
        groups.extend(planning.map(|params| page::group("Planning", "plan", params)));
        let learning = self.model().map(Model::params).or(self.run.as_ref().map(|run| &run.learning));
        groups.extend(learning.map(|params| page::group("Learning", "learn", params)));
        groups
    }

    fn provenance(&self, args: &Args, data: Option<&Data>) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut say = |name: &str, value: String| rows.push((name.to_string(), value));
        say("file", format!("{} (digest {})", shown(&self.name), self.digest));
        if let Some(Stamp { kind, format_version, library_version }) = &self.stamp {
            say("written by", format!("foretell {library_version}, {kind} format {format_version}"));
        }
        if let Some(run) = &self.run {
            say("run", format!("foretell {}, seed {}, in {}, {:.1} s", run.version, run.seed, run.domain, run.seconds));
            if let Some(policy) = &run.policy {
                say("its policy", format!("{} (digest {})", shown(&policy.file), policy.digest));
            }
        }
        if let Some(model) = self.model() {
            let (episodes, steps) = model.trained_on();
            let skipped = if model.skipped() > 0 { format!(", {} skipped", count(model.skipped())) } else { String::new() };
            let seed = model.params().seed;
            say("learned from", format!("{}, {}{skipped}, seed {seed}", plural(episodes, "episode"), plural(steps, "step")));
            if let Some(refined) = model.refined() {
                let states = refined.pomdp.states().len() as u64;
                say("refined to", format!("a POMDP of {}", plural(states, "state")));
            }
        }
        if let Some(plan) = &self.plan {
            say("planned with", format!("seed {}", plan.params().seed));
        }
        for log in data.into_iter().flat_map(|data| &data.files) {
            say("held-out logs", format!("{}, {} bytes (digest {})", log.name, count(log.bytes), log.digest));
        }
        if let Some(truth) = &args.truth {
            say("exact model", truth.clone());
        }
        if let Some(domain) = &args.domain {
            say("acts in", format!("{domain}, seed {}, {}", args.seed, plural(args.test_episodes, "test episode")));
        }
        say("this page", format!("foretell {}", env!("CARGO_PKG_VERSION")));
        rows
    }
}

/// The policy that a run wrote, if it is still there and still the same.
fn policy_of(run: &Run, path: &Path) -> anyhow::Result<Option<Plan>> {
    let Some(policy) = &run.policy else { return Ok(None) };
    let named = PathBuf::from(&policy.file);
    let beside = named.file_name().map(|name| output::folder(path).join(name));
    for place in [Some(named), beside].into_iter().flatten() {
        if let Some(bytes) = fs::read(&place).ok().filter(|bytes| digest(bytes) == policy.digest) {
            return Ok(Some(Plan::from_bytes(&bytes, &place.display().to_string())?));
        }
    }
    Ok(None)
}

fn not_ours(name: &str, bytes: &[u8], error: &serde_json::Error) -> anyhow::Error {
    let what = match serde_json::from_slice::<serde_json::Value>(bytes) {
        Ok(value) if value.get("policies").is_some() => format!("a run of another version ({error})"),
        Ok(_) => "JSON, but not what `foretell agent --json` prints".into(),
        Err(_) => "neither a model, nor a policy, nor a run".into(),
    };
    anyhow!(
        "{name}: {what}; give a file that `foretell learn`, `refine`, `plan` or `agent` wrote with -o, or what `foretell agent --json` printed"
    )
}

/// Logs, and what they are.
struct Heard {
    opened: Opened,
}

impl Heard {
    fn open(args: &Args) -> anyhow::Result<Option<Heard>> {
        let opened = (!args.logs.is_empty()).then(|| LogArgs::of(args.logs.clone()).open()).transpose()?;
        Ok(opened.map(|opened| Heard { opened }))
    }

    /// The first episodes, over an alphabet.
    fn held(&self, alphabet: foretell::Alphabet) -> anyhow::Result<Vec<Trajectory>> {
        let episodes = self.opened.logs.open(alphabet)?.take(HELD).collect::<Result<_, _>>();
        Ok(episodes.map_err(|e| self.opened.blame(e))?)
    }

    fn data(&self) -> anyhow::Result<Data> {
        let mut summary = Summary::of(&self.opened.logs).map_err(|e| self.opened.blame(e))?;
        let named = |path: &PathBuf| shown(&self.opened.rename(&path.display().to_string()));
        for finding in &mut summary.findings {
            for path in &self.opened.paths {
                *finding = finding.replace(&path.display().to_string(), &named(path));
            }
        }
        let file = |path: &PathBuf| {
            let name = named(path);
            let file = File::open(path).map_err(Error::io("read", path))?;
            let bytes = file.metadata().map_err(Error::io("read", path))?.len();
            Ok(LogFile { name, bytes, digest: digest_of(file).map_err(Error::io("read", path))? })
        };
        let files = self.opened.paths.iter().map(file).collect::<anyhow::Result<_>>()?;
        Ok(Data::of(&summary, files))
    }
}

/// A file as the user named it; of an absolute path the last part, since pages go to other people.
fn shown(name: &str) -> String {
    let path = Path::new(name);
    let last = path.file_name().filter(|_| path.is_absolute());
    last.map_or_else(|| name.to_string(), |last| last.to_string_lossy().into_owned())
}

fn missing<T>(what: &str) -> Part<T> {
    Part::Missing(format!("{what}: give logs that it has not seen, with --logs LOGS."))
}

/// Who decides, in words.
fn decides(plan: &Plan) -> String {
    let params = plan.params();
    let knows = match params.state {
        StateKind::Predictive => "what its model expects".into(),
        StateKind::Memory => "what its model expects and the last observation".into(),
        StateKind::Last => format!("the last {} alone", plural(params.last as u64, "observation")),
    };
    let who = match (params.planner, params.regressor) {
        (Planner::Qmdp, _) => "QMDP in the POMDP that its model was refined to".into(),
        (Planner::FastInformed, _) => "the fast informed bound in the POMDP that its model was refined to".into(),
        (Planner::PointBased, _) => "point-based value iteration in the POMDP that its model was refined to".into(),
        (_, Regressor::Table) => {
            format!("a table over the last {} and the time, by fitted-Q", plural(params.window as u64, "step"))
        }
        (_, Regressor::Mean) => format!(
            "the mean of trees over {knows} and of a table over the last {}, by fitted-Q",
            plural(params.window as u64, "step")
        ),
        (_, Regressor::Trees | Regressor::Auto) => format!("trees over {knows}, by fitted-Q"),
    };
    format!("What decides is {who}.")
}
