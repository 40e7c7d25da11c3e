//! Sparsity of the observable matrices, and the cost of uncompressed models [H14 §4.2, §6.3].
//!
//! `sparsity FOLDER [--quick]` writes `sparsity.csv`, `sparsity.md` and `sparsity.json` (what was
//! run) into FOLDER: for each domain the numbers of tests and histories in random logs, the
//! fraction of non-zero entries of P_{T,H} and P_{T,ao,H}, the memory of dense matrices, and the
//! time to learn an uncompressed model from sparse ones.

use std::fmt::Write as _;
use std::time::Instant;

use foretell::judge::diagnose::{Sparsity, diagnose};
use foretell::{LearnParams, Logs, Projection, Seed, domains, learn};
use foretell_experiments::Arguments;
use serde_json::json;

const EPISODES: usize = 10_000;
const SEED: u64 = 121;
/// Domains, the longest tests and d′, as in the paper where it gives them.
const SETTINGS: [(&str, usize, usize); 5] =
    [("colored-gridworld", 7, 5), ("amm-cpsr", 4, 10), ("s-pocman", 4, 25), ("pocman", 1, 25), ("pocman", 4, 25)];
/// Memory of the paper's machine, in GiB.
const PAPER_MEMORY: f64 = 8.0;

/// Results for a domain.
struct Row {
    domain: &'static str,
    max_test_length: usize,
    steps: u64,
    sparsity: Sparsity,
    /// Seconds to learn an uncompressed model, or why that failed.
    tpsr: Result<f64, String>,
}

impl Row {
    /// GiB that P_{T,H} takes as a dense matrix of doubles.
    fn dense(&self) -> f64 {
        8.0 * self.sparsity.tests as f64 * self.sparsity.histories as f64 / f64::from(1 << 30)
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let episodes = EPISODES / if arguments.quick { 20 } else { 1 };
    let started = Instant::now();
    let rows = SETTINGS.into_iter().map(|(domain, length, rank)| run(domain, length, rank, episodes));
    let rows = rows.collect::<anyhow::Result<Vec<Row>>>()?;
    let manifest = json!({
        "settings": SETTINGS, "episodes": episodes, "seed": SEED, "paper": LearnParams::paper(), "version": env!("CARGO_PKG_VERSION"),
        "seconds": started.elapsed().as_secs_f64().round(),
    });
    Ok(foretell_experiments::write(&arguments.folder, "sparsity", &csv(&rows)?, &table(&rows, episodes)?, &manifest)?)
}

fn run(name: &'static str, max_test_length: usize, rank: usize, episodes: usize) -> anyhow::Result<Row> {
    let domain = domains::get(name)?;
    let sampled = domains::sample(&domain, episodes, domain.horizon, Seed(SEED)).collect();
    let logs = Logs::memory(domain.alphabet().clone(), sampled);
    let params = LearnParams { max_test_length, rank, seed: SEED, ..LearnParams::paper() };
    let found = diagnose(&logs, &params, &mut |_| {})?;
    let identity = Projection::Identity;
    let started = Instant::now();
    let tpsr = learn(&logs, &LearnParams { test_projection: identity, history_projection: identity, ..params });
    let tpsr = tpsr.map(|_| started.elapsed().as_secs_f64()).map_err(|e| e.to_string());
    eprintln!("{name} done");
    Ok(Row { domain: name, max_test_length, steps: found.steps, sparsity: found.sparsity, tpsr })
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::from(
        "domain,max_test_length,steps,tests,histories,pairs,mean_nonzeros,largest_nonzeros,share,share_with_next,dense_gib,tpsr_seconds\n",
    );
    for row in rows {
        let Sparsity { tests, histories, pairs, joint, with_next, .. } = &row.sparsity;
        write!(text, "{},{},{},{tests},{histories},{pairs},", row.domain, row.max_test_length, row.steps)?;
        let seconds = row.tpsr.as_ref().map_or(String::new(), |s| format!("{s:.2}"));
        writeln!(
            text,
            "{:.2},{},{:.3e},{:.3e},{:.3},{seconds}",
            joint.mean,
            joint.largest,
            joint.share,
            with_next.share,
            row.dense()
        )?;
    }
    Ok(text)
}

fn table(rows: &[Row], episodes: usize) -> anyhow::Result<String> {
    let mut text = format!(
        "Random logs of {episodes} episodes, prefix histories. Percentages are fractions of non-zero entries; GiB is the size of a dense \
         P_TH of doubles (the paper's machine had {PAPER_MEMORY}); TPSR is the time to learn an uncompressed model from sparse matrices.\n\n"
    );
    writeln!(
        text,
        "| domain | longest test | tests | histories | tests per history, mean / maximum | P_TH | P_T,ao,H | dense GiB | TPSR, s |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|")?;
    for row in rows {
        let Sparsity { tests, histories, joint, with_next, exact, .. } = &row.sparsity;
        let about = if *exact { "" } else { "about " };
        write!(text, "| {} | {} | {about}{tests} | {about}{histories} |", row.domain, row.max_test_length)?;
        let tpsr = row.tpsr.as_ref().map_or_else(Clone::clone, |s| format!("{s:.1}"));
        let percent = |share: f64| match 100.0 * share {
            small if small < 1e-4 => format!("{small:.1e} %"),
            share => format!("{share:.4} %"),
        };
        writeln!(
            text,
            " {:.1} / {} | {} | {} | {:.1} | {tpsr} |",
            joint.mean,
            joint.largest,
            percent(joint.share),
            percent(with_next.share),
            row.dense()
        )?;
    }
    writeln!(
        text,
        "\nThe paper: 0.018 % at most, on average over the columns of all matrices, in PocMan; it does not say with which tests."
    )?;
    Ok(text)
}
