//! `foretell merge`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use foretell::data::Digest;
use foretell::{Learned, Moments, OperatorsFrom, Schema};
use serde_json::json;

use super::learn;
use crate::input::refuse_twice;
use crate::{output, report};

/// Merge models of different logs, learned with --keep-moments, into the model of all these logs
#[derive(clap::Args)]
pub struct Args {
    /// Models with exact moments, learned with the same parameters and seed
    #[arg(value_name = "MODELS", required = true, num_args = 2..)]
    models: Vec<PathBuf>,
    /// File to write the merged model to; may be one of them
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    /// Merge models even if they were learned from the same episodes, which then count twice
    #[arg(long)]
    again: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    output::check([&args.output], &[])?;
    refuse_twice(&args.models)?;
    let _lock = output::lock(&args.output)?;
    let started = Instant::now();
    let mut moments: Option<Moments> = None;
    let mut schema: Option<Arc<Schema>> = None;
    let mut digest = Digest::default();
    let mut lost = Vec::new();
    for path in &args.models {
        let model = crate::input::model(path)?;
        let own = model.origin().schema.clone();
        if schema.get_or_insert_with(|| own.clone()) != &own {
            anyhow::bail!(
                "{} was learned from tables that were read in another way; learn all models with the same flags for columns, and \
                 give measured ones explicit cuts (--bins COLUMN=cuts:…)",
                path.display()
            );
        }
        let episodes = model.origin().digest.clone();
        if model.latent().is_some() || model.mixture().is_some() || model.ensemble().is_some() {
            lost.push(model);
        }
        let next = Moments::load(path)?;
        if !next.is_exact() {
            anyhow::bail!(
                "{} has compressed moments, which cannot be merged; learn the model with --keep-moments=exact",
                path.display()
            );
        }
        match &mut moments {
            None => moments = Some(next),
            Some(moments) => moments.merge(next).with_context(|| format!("cannot add {}", path.display()))?,
        }
        match args.again {
            true => digest.merge(&episodes.without(&digest)),
            false => {
                digest.refuse_again(&episodes).with_context(|| format!("cannot add {}", path.display()))?;
                digest.merge(&episodes);
            }
        }
    }
    let moments = moments.context("no models were given")?;
    let model = moments.model()?.with_schema(schema.unwrap_or_default()).with_digest(digest);
    let propensities = moments.propensities();
    let learned = Learned { model, moments: Some(moments), operators: OperatorsFrom::Moments, propensities, digest: None };
    learn::save(&learned.model, learned.moments.as_ref(), &args.output)?;
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        let mut report = learn::describe(&learned.model, &learned, seconds);
        report["model"] = json!(args.output);
        report["merged"] = json!(args.models);
        return report::json(&report);
    }
    learn::say(&learned.model, &learned, seconds)?;
    super::update::report_dropped(&lost)?;
    report::say(format!("  model      {}", args.output.display()))?;
    Ok(())
}
