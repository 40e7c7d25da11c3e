//! The subject of a page, and how the page is made from it.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use foretell::store::digest;
use foretell::{Domain, Error, Model, Plan, Pomdp, Schema, Stamp, domains};

use super::{HeldOut, Kind, Page, Part, Spectrum, for_model, for_policy, group};
use crate::output;
use crate::run::Run;

/// A model, a policy or a run.
pub struct Subject {
    /// As the user named it.
    pub(super) name: String,
    pub(super) digest: String,
    pub(super) stamp: Option<Stamp>,
    pub(super) model: Option<Model>,
    pub(super) plan: Option<Plan>,
    pub(super) run: Option<Run>,
}

/// Options of a page.
pub struct Options {
    /// Logs that were not used for training.
    pub logs: Option<HeldOut>,
    /// Domain whose exact model is shown for comparison.
    pub truth: Option<Domain>,
    /// Domain in which a policy acts.
    pub domain: Option<Domain>,
    /// Number of episodes shown.
    pub episodes: usize,
    /// Number of test episodes of a policy.
    pub test_episodes: u64,
    pub seed: u64,
}

impl Options {
    pub(super) fn pomdp(&self) -> Option<&Pomdp> {
        self.truth.as_ref().and_then(Domain::pomdp)
    }
}

impl Subject {
    /// Reads a file of any kind; `-` is standard input.
    pub fn read(path: &Path) -> anyhow::Result<Subject> {
        let (name, bytes) = if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
            ("standard input".into(), bytes)
        } else {
            (path.display().to_string(), fs::read(path).map_err(Error::io("read", path))?)
        };
        let stamp = Stamp::of(&bytes);
        let mut subject = Subject { digest: digest(&bytes), name, stamp, model: None, plan: None, run: None };
        match subject.stamp.as_ref().map(|stamp| stamp.kind.as_str()) {
            Some("model") => subject.model = Some(Model::from_bytes(&bytes, &subject.name)?),
            Some("policy") => subject.plan = Some(Plan::from_bytes(&bytes, &subject.name)?),
            _ => {
                let run: Run = serde_json::from_slice(&bytes).map_err(|e| not_ours(&subject.name, &bytes, &e))?;
                subject.plan = policy_of(&run, path)?;
                subject.run = Some(run);
            }
        }
        Ok(subject)
    }

    /// What the columns of the logs meant that it was learned from.
    pub fn schema(&self) -> Arc<Schema> {
        match (&self.model, &self.plan) {
            (Some(model), _) => model.origin().schema.clone(),
            (None, Some(plan)) => plan.schema().clone(),
            (None, None) => Arc::default(),
        }
    }

    /// The model that makes the predictions.
    pub(super) fn model(&self) -> Option<&Model> {
        self.model.as_ref().or_else(|| self.plan.as_ref()?.model())
    }

    pub(super) fn kind(&self) -> Kind {
        match (&self.run, &self.plan) {
            (Some(_), _) => Kind::Run,
            (None, Some(_)) => Kind::Policy,
            (None, None) => Kind::Model,
        }
    }

    /// The page about it.
    pub fn page(&self, options: &Options) -> anyhow::Result<Page> {
        if options.domain.is_some() && self.kind() == Kind::Model {
            bail!(
                "--domain: {} is a model, and only policies act in a domain; score a model with --logs LOGS and --truth DOMAIN",
                self.name
            );
        }
        let foresight = self.foresight(options)?;
        let earned = self.earned(options)?;
        let estimates = self.estimates(options)?;
        let (of_earned, of_estimates, of_foresight) = (here(&earned), here(&estimates), here(&foresight));
        let mut headlines = for_policy(of_earned, of_estimates);
        headlines.extend(self.model().into_iter().flat_map(|model| for_model(model, of_foresight)));
        let warnings = self.warnings(of_earned, of_estimates, of_foresight);
        let data = options.logs.as_ref().map(HeldOut::data).transpose()?;
        Ok(Page {
            kind: self.kind(),
            title: super::words::shown(&self.name),
            about: self.about(),
            headlines,
            warnings,
            earned,
            estimates,
            rounds: self.run.as_ref().map(|run| run.rounds.clone()).unwrap_or_default(),
            foresight,
            episodes: self.episodes(options)?,
            spectrum: self.model().map(Spectrum::of),
            provenance: self.provenance(options, data.as_ref()),
            // Logs add nothing to a run whose policy is gone.
            data: match data {
                Some(data) => Some(Part::Here(data)),
                None => self.model().map(|_| Part::needs_logs("Summary of the logs")),
            },
            parameters: self.parameters(),
        })
    }

    fn parameters(&self) -> Vec<super::Group> {
        let run = self.run.as_ref();
        let planning = self.plan.as_ref().map(Plan::params).or(run.map(|run| &run.planning));
        let learning = self.model().map(Model::params).or(run.map(|run| &run.learning));
        let groups = [
            run.map(|run| group("Sampling", "agent", &run.sampling)),
            planning.map(|params| group("Planning", "plan", params)),
            learning.map(|params| group("Learning", "learn", params)),
        ];
        groups.into_iter().flatten().collect()
    }

    /// The domain of a run, if it still exists.
    pub(super) fn own_domain(&self) -> Option<Domain> {
        domains::get(&self.run.as_ref()?.domain).ok()
    }
}

fn here<T>(part: &Option<Part<T>>) -> Option<&T> {
    part.as_ref().and_then(Part::here)
}

/// The policy that a run wrote, at its path or next to the run, if it still exists and is
/// unchanged.
fn policy_of(run: &Run, path: &Path) -> anyhow::Result<Option<Plan>> {
    let Some(policy) = &run.policy else { return Ok(None) };
    let named = PathBuf::from(&policy.file);
    let adjacent = named.file_name().map(|name| output::folder(path).join(name));
    for place in [Some(named), adjacent].into_iter().flatten() {
        if let Some(bytes) = fs::read(&place).ok().filter(|bytes| digest(bytes) == policy.digest) {
            return Ok(Some(Plan::from_bytes(&bytes, &place.display().to_string())?));
        }
    }
    Ok(None)
}

fn not_ours(name: &str, bytes: &[u8], error: &serde_json::Error) -> anyhow::Error {
    let what = match serde_json::from_slice::<serde_json::Value>(bytes) {
        Ok(value) if value.get("policies").is_some() => format!("a run of another version ({error})"),
        Ok(_) => "JSON, but not the output of `foretell agent --json`".into(),
        Err(_) => "neither a model, a policy nor a run".into(),
    };
    anyhow!(
        "{name}: {what}; give a file that `foretell learn`, `refine`, `plan` or `agent` wrote, or the output of `foretell agent --json`"
    )
}
