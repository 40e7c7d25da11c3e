//! A diagnosis as text: what each part means, whether it is good, and what to do; symbols come
//! second.

use std::cmp::Ordering;

use foretell::History;
use foretell::judge::diagnose::{
    ActionCoverage, Coverage, Diagnosis, MatrixSparsity, Memory, MemoryVerdict, Spectrum, StepScore,
};

use crate::report::{count, percent, plural, table};

/// Steps that fewer episodes reach are not reported.
pub const ENOUGH: u64 = 30;
/// Rows of a table of actions.
const SHOWN: usize = 15;
/// Effective sample size, as a fraction of the steps, above which actions count as about uniformly
/// random.
const NEARLY_UNIFORM: f64 = 0.8;
/// Fraction of steps below which untried actions hardly matter.
const SELDOM: f64 = 0.01;
/// Fractions of non-zero entries up to which a matrix is sparse, and up to which it is fairly
/// sparse.
const SPARSE: [f64; 2] = [0.01, 0.1];
/// Smaller differences to the n-gram, in nats, count as equal.
const SAME: f64 = 0.01;

/// The whole text.
pub fn of(found: &Diagnosis) -> String {
    let p = &found.params;
    let pasts = match p.history {
        History::Prefix => "all earlier steps".to_string(),
        History::Suffix => format!("the last {}", up_to(p.history_length)),
    };
    let (episodes, steps) = (plural(found.episodes, "episode"), plural(found.steps, "step"));
    let about = format!("{episodes}, {steps}; a history is {pasts}, a test the next {}", up_to(p.max_test_length));
    let blocks = [
        about,
        coverage(&found.coverage),
        memory(found.memory.as_ref()),
        sparsity(found),
        projection(found),
        spectrum(found),
        by_step(&found.by_step, found.ngram_length),
        decay(found),
        propagation(found),
    ];
    blocks.join("\n\n")
}

fn up_to(steps: usize) -> String {
    if steps == 1 { "step".into() } else { format!("1 to {steps} steps") }
}

fn coverage(c: &Coverage) -> String {
    let ActionCoverage { combinations, never, rarely, steps_missing, .. } = c.by_observation;
    let verdict = match (never, rarely) {
        (0, 0) => "Every action was tried at least 5 times after every observation: nothing is missing.".to_string(),
        (0, _) => format!(
            "Every action was tried after every observation, but fewer than 5 times in {rarely} of {combinations} cases: little is known about these."
        ),
        _ => {
            let weight = match steps_missing < SELDOM {
                true => format!("This concerns only {} of the steps.", percent(steps_missing)),
                false => format!(
                    "This concerns {} of the steps: a plan that relies on them is a guess. Add logs in which these actions are taken.",
                    percent(steps_missing)
                ),
            };
            format!(
                "{} of {} combinations of last observation and action were never tried, {} fewer than 5 times.\n  \
                 Their outcomes cannot be learned. {weight}",
                count(never),
                count(combinations),
                count(rarely)
            )
        }
    };
    let effective = c.propensities.map_or(c.effective, |p| p.effective);
    let how = if effective >= NEARLY_UNIFORM { "about uniformly random" } else { "not uniformly random" };
    let source = if c.propensities.is_some() {
        "by the action probabilities in the logs"
    } else {
        "by the frequencies of actions after each observation"
    };
    let steps: u64 = c.actions.iter().map(|a| a.count).sum();
    let mut actions: Vec<_> = c.actions.iter().collect();
    actions.sort_by_key(|a| std::cmp::Reverse(a.count));
    let rows = actions.iter().take(SHOWN).map(|a| {
        let least = c.least.iter().find(|least| least.action == a.name);
        let place = least.map_or("–".into(), |l| l.after.clone().unwrap_or("(start)".into()));
        let there = least.map_or("–".into(), |l| percent(l.count as f64 / l.of as f64));
        vec![a.name.clone(), count(a.count), percent(a.count as f64 / steps as f64), there, place]
    });
    let mut text = format!(
        "coverage of actions\n  {verdict}\n  Actions were {how}: the effective sample size for uniformly random actions is {} of the steps, {source}.\n{}",
        percent(effective),
        table(&["action", "steps", "share", "least", "after"], rows)
    );
    if actions.len() > SHOWN {
        text += &format!("\n  … and {} more (all with --json)", actions.len() - SHOWN);
    }
    let pair = c.by_pair;
    text + &format!(
        "\n  (least: smallest share after any observation with at least {} steps. {} of {} combinations of last action, last observation and action were never tried.)",
        Coverage::OFTEN,
        count(pair.never),
        count(pair.combinations)
    )
}

fn sparsity(found: &Diagnosis) -> String {
    let s = &found.sparsity;
    let about = if s.exact { "" } else { "about " };
    let verdict = match s.joint.share {
        share if share <= SPARSE[0] => "This is sparse: compression loses almost nothing.",
        share if share <= SPARSE[1] => "This is fairly sparse: compression loses some information.",
        _ => "This is not sparse: compression has little benefit.",
    };
    let row = |name: &str, m: &MatrixSparsity| {
        vec![name.into(), count(m.columns), format!("{:.1}", m.mean), count(m.largest), small_percent(m.share)]
    };
    let rows = [row("P_T,H: histories", &s.joint), row("P_T,ao,H: histories and next steps", &s.with_next)];
    let sampled = |m: &MatrixSparsity| format!("{} of {about}{}", count(m.counted), count(m.nonzero_columns));
    let note = match s.exact {
        true => String::new(),
        false => format!(
            "\n  (Estimated from a random sample of {} and {} non-empty columns, since there are too many to hold in memory; the true maximum may be larger.)",
            sampled(&s.joint),
            sampled(&s.with_next)
        ),
    };
    format!(
        "sparsity\n  Of {about}{} tests (|T|) in the logs, {:.1} follow the same history on average, and {} at most. {verdict}\n{}\n  \
         (mean and most: tests after a history that has any; share: fraction of all entries that are not zero, the average column sparsity){note}",
        count(s.tests),
        s.joint.mean,
        count(s.joint.largest),
        table(&["matrix", "columns", "mean", "most (k)", "share"], rows),
    )
}

/// A percentage; in scientific notation if it is below 0.01 %.
fn small_percent(share: f64) -> String {
    if share == 0.0 || share >= 1e-4 { percent(share) } else { format!("{:.1e} %", 100.0 * share) }
}

fn projection(found: &Diagnosis) -> String {
    let (size, s) = (&found.projection, &found.sparsity);
    let verdict = match size.used {
        None => "These parameters do not compress.".to_string(),
        Some(used) if used as u64 >= s.tests => {
            format!("These parameters have {}, at least as many as there are tests: almost nothing is lost.", count(used as u64))
        }
        Some(used) if used as f64 >= size.safe => {
            format!("These parameters have {}: enough for every history.", count(used as u64))
        }
        Some(used) if used as f64 >= size.typical => {
            format!("These parameters have {}: enough for most histories, not for those with the most tests.", count(used as u64))
        }
        Some(used) => {
            format!("These parameters have only {used}: try --test-dim and --history-dim of {:.0} or more.", size.typical)
        }
    };
    let by_rank =
        size.by_rank.map_or(String::new(), |by_rank| format!(", or {} with the suggested rank for |Q|", whole(by_rank)));
    format!(
        "projection size\n  The theory suggests about {} dimensions for a typical history and {} for the worst, up to an unknown constant. {verdict}\n  \
         (k ln |T| with mean k = {:.1} and largest k = {}, |T| = {}{by_rank}; the theory has O(k ln |Q|) with an unknown core set Q)",
        whole(size.typical),
        whole(size.safe),
        s.mean(),
        count(s.k()),
        count(s.tests),
    )
}

fn whole(x: f64) -> String {
    count(x.round() as u64)
}

/// Whether past steps help to predict.
fn memory(memory: Option<&Memory>) -> String {
    let title = "memory";
    let Some(m) = memory else {
        return format!(
            "{title}\n  Too few steps to tell whether past steps help to predict: at least 30 episodes, or about 200 steps, are needed."
        );
    };
    let gain = format!("{:+.3} ± {:.3} nats per step", m.gain, m.half_width);
    let verdict = match m.verdict {
        MemoryVerdict::Helps => format!("Past steps help to predict: {gain}."),
        MemoryVerdict::NoEvidence => format!("No evidence that past steps help to predict: {gain}."),
        MemoryVerdict::Unclear => {
            format!(
                "It cannot be told whether past steps help to predict: {gain}. The interval includes zero and gains that matter. Add logs."
            )
        }
    };
    let ngram = if m.length == 1 { "the last step".into() } else { format!("the last {} steps", m.length) };
    let parts = match m.blocks {
        true => format!("{} of the episodes", plural(m.parts as u64, "block")),
        false => plural(m.parts as u64, "episode"),
    };
    format!(
        "{title}\n  {verdict}\n  (gain in held-out ln P(o ‖ a) of an n-gram of {ngram} over the action alone, with its 95 % interval over {parts}, {};\n  \
         five-fold cross-validation)",
        plural(m.steps as u64, "step")
    )
}

/// What is said where the spectrum supports no rank.
fn no_rank(found: &Diagnosis) -> String {
    let reason = match found.spectrum.floor.first() {
        None => "Too few steps to estimate the noise in the spectrum.".to_string(),
        Some(floor) if found.spectrum.whitened => format!(
            "No direction but the mean is above the noise: with so few steps for this many dimensions, noise alone can give correlations of {:.2}.",
            floor.value
        ),
        Some(_) => "No direction but the mean is above the noise.".to_string(),
    };
    let helps = found.memory.is_some_and(|m| m.verdict == MemoryVerdict::Helps);
    let evidence = if helps { " But past steps help to predict (see memory), which takes a rank above 1." } else { "" };
    format!(
        "{reason}{evidence}\n  The spectrum suggests no rank. Compare several --rank by `score` on other logs, use smaller --test-dim and --history-dim, or add logs."
    )
}

/// What it means that no direction but the mean is above the noise.
fn rank_one(found: &Diagnosis) -> String {
    let strength = match found.spectrum.floor.first() {
        Some(floor) if found.spectrum.whitened => format!(" (correlations below {:.2} would not be found)", floor.value),
        _ => String::new(),
    };
    let held_out = match found.memory.map(|m| m.verdict) {
        Some(MemoryVerdict::NoEvidence) => "Nor do past steps help to predict held-out ones (see memory)",
        _ => "This does not show that there is none",
    };
    format!(
        "That is the mean: no dependence of the future on the past was found{strength}. {held_out}. More logs may reveal more."
    )
}

fn spectrum(found: &Diagnosis) -> String {
    let title = "supported rank";
    let (s, used) = (&found.spectrum, found.params.rank);
    let Some(rank) = s.rank else { return format!("{title}\n  {}{}", no_rank(found), floors(s, 1)) };
    let directions = if rank == 1 { "1 direction is".into() } else { format!("{rank} directions are") };
    let advice = match used.cmp(&rank) {
        _ if rank == 1 => rank_one(found),
        // Held-out likelihood on ColoredGridWorld: best at rank 40 where 11 (2000 episodes) and 24
        // (10 000) are significant; without a ridge best at 9 of 3, 5, 9, 20, 40, where 7 are
        // significant.
        Ordering::Less | Ordering::Equal if s.whitened => format!(
            "The given rank {used} is not higher: try --rank {rank} and higher, and compare them by `score` on other logs. (The ridge of\n  \
             two-stage regression suppresses noise, so more directions than are significant may predict better.)"
        ),
        Ordering::Less => format!("The given rank {used} drops some of them: try --rank {rank}."),
        Ordering::Equal => format!("The given rank {used} is the same."),
        Ordering::Greater if s.whitened => format!(
            "The given rank {used} exceeds what is significant. This may still be right: the ridge of two-stage regression suppresses \
             noise,\n  and in a maze two to four times as many directions predicted best. Compare --rank {rank} and {used} by `score` on other logs."
        ),
        Ordering::Greater => format!(
            "The given rank {used} exceeds what is significant, and without a ridge every further direction adds noise: try --rank {rank}."
        ),
    };
    let doubt = match found.memory.map(|m| m.verdict) {
        Some(MemoryVerdict::NoEvidence) if rank > 1 => {
            "\n  Yet n-grams of past steps gain nothing (see memory): the dependence is weak, needs a longer memory, or is due to chance."
        }
        _ => "",
    };
    format!("{title}\n  {directions} significantly above noise: suggested rank {rank}. {advice}{doubt}{}", floors(s, rank))
}

/// The table of singular values and their noise, on lines of its own; nothing if there is none.
fn floors(s: &Spectrum, rank: usize) -> String {
    if s.floor.is_empty() {
        return String::new();
    }
    let rows = s.floor.iter().map(|floor| {
        let value = s.values[floor.direction - 1];
        let verdict = if floor.direction <= rank { "signal" } else { "may be noise" };
        vec![floor.direction.to_string(), format!("{value:.4}"), format!("{:.4}", floor.value), verdict.into()]
    });
    let what = if s.whitened { "canonical correlations of whitened moments" } else { "singular values of Σ_TH" };
    format!(
        "\n{}\n  (direction 1 is the mean; value: {what}; noise: 99 % quantile outside the earlier directions, for direction 2 with futures\n  \
         shuffled among pasts, beyond it the larger of this and of differences between random halves of the logs)",
        table(&["direction", "value", "noise", ""], rows)
    )
}

fn decay(found: &Diagnosis) -> String {
    let (d, t) = (&found.decay, &found.terms);
    let [most, nearly, all] = [0.1, 0.01, 0.001].map(|share| d.directions(share) as u64);
    let verdict = match nearly {
        _ if nearly <= found.params.rank as u64 => {
            "The decay is fast: the error term of the theory for later directions is small at the given rank."
        }
        _ => "The decay is slow: the given rank leaves out more than 1 % of the variation.",
    };
    let rows = d.left_out.iter().map(|l| vec![l.m.to_string(), format!("{:.3e}", l.nu), small_percent(l.share)]);
    format!(
        "decay of eigenvalues\n  90 % of the variation of the moments is in {}, 99 % in {nearly}, 99.9 % in {all}. {verdict}\n{}\n  \
         (The first direction is the mean. Theorem 1 at δ = 0.05, m = {}: w² = {:.3e}, x² = {:.3e}, b² = {:.3e}, σ²_η = {:.3e}; Theorem 2: σ²_∞ = {:.3e}.\n  \
         The theory bounds the error by an ε that depends on these, but gives no value for it.)",
        plural(most, "direction"),
        table(&["m", "ν left out", "share"], rows),
        t.m,
        t.w2,
        t.x2,
        t.b2,
        t.noise,
        t.normalizer_noise,
    )
}

/// Horizons that get a row: the first ones, then fewer and fewer, and the last.
fn shown(last: usize) -> impl Fn(usize) -> bool {
    move |n| [2, 3, 5, 10, 20, 50, 75].contains(&n) || n == last || n.is_multiple_of(100)
}

/// 10^x: in plain digits if they are few, as a power of ten beyond the range of floating-point
/// numbers.
fn power(log10: f64) -> String {
    match log10 {
        x if (-2.0..4.0).contains(&x) => format!("{:.3}", 10f64.powf(x)),
        x if x.abs() < 300.0 => format!("{:.0e}", 10f64.powf(x)),
        x => format!("1e{x:.0}"),
    }
}

fn propagation(found: &Diagnosis) -> String {
    let (n, horizons) = (&found.norms, &found.propagation);
    let title = "possible error growth, by the theory";
    let Some(last) = horizons.iter().rev().find(|h| h.log10_vacuous_from.is_some()) else {
        return format!("{title}\n  Episodes of a single step cannot accumulate errors.");
    };
    let (factor, vacuous) = (last.log10_factor.unwrap_or_default(), last.log10_vacuous_from.unwrap_or_default());
    let stretch = match n.largest > 1.0 {
        true => format!(
            "One step can multiply an error by {:.2} (action {}, observation {}); {} of {} pairs can increase errors.",
            n.largest, n.action, n.observation, n.above_one, n.operators
        ),
        false => format!("No step increases errors: they shrink to at most {:.2} of their size.", n.largest),
    };
    // The sampling error of a probability that is estimated from this many steps.
    let chance = -0.5 * (found.steps as f64).log10();
    let verdict = match vacuous < chance {
        true => format!("Sampling error alone is larger with {}, so the bound is vacuous here.", plural(found.steps, "step")),
        false => "The theory does not say whether models are that accurate.".into(),
    };
    let rows = horizons.iter().filter(|h| shown(last.horizon)(h.horizon)).map(|h| {
        let cell = |x: Option<f64>| x.map_or("–".into(), power);
        vec![h.horizon.to_string(), cell(h.log10_scale), cell(h.log10_factor), cell(h.log10_vacuous_from)]
    });
    let radius = match n.radius {
        r if r > 1.0 + 1e-3 => format!(
            "Forecasts without observations grow {r:.3}-fold per step, in any coordinates: long forecasts are not reliable."
        ),
        r => format!("Forecasts without observations do not grow ({r:.3}-fold per step, in any coordinates), as they should."),
    };
    format!(
        "{title}\n  {stretch}\n  Over {} the error of one step could be multiplied by {}. Probabilities over that many steps are about {},\n  \
         so the bound is informative only if the error of one step is below {}. {verdict}\n  {radius}\n{}\n  \
         (Theorem 3: ‖c_∞‖ Σ s_t c^(n−t−1) with c = max ‖C_ao‖ = {:.3}, median {:.3}, ‖c_∞‖ = {:.3}, s_n the size of the state after n steps\n  \
         relative to the start. Norms depend on the coordinates of the model. The growth of forecasts is the spectral radius of C_⋆ = Σ C_ao.)",
        plural(last.horizon as u64, "step"),
        power(factor),
        power(factor + vacuous),
        power(vacuous),
        table(&["steps n", "s_n", "factor of ε", "needs ε below"], rows),
        n.largest,
        n.median,
        n.normalizer,
    )
}

fn by_step(steps: &[StepScore], ngram_length: usize) -> String {
    let title = "observed error growth";
    let judged: Vec<&StepScore> = steps.iter().filter(|step| step.episodes >= ENOUGH).collect();
    let (Some(first), Some(last)) = (judged.first(), judged.last()) else {
        return format!(
            "{title}\n  Too few episodes: one half is used for training, and the other half needs at least {ENOUGH}."
        );
    };
    let ngram = match ngram_length {
        0 => "the action alone".to_string(),
        1 => "an n-gram of the last step".to_string(),
        n => format!("an n-gram of the last {n} steps"),
    };
    // The mean over the last third, or the last step.
    let late = &judged[judged.len() - judged.len().div_ceil(3)..];
    let ahead = late.iter().map(|s| s.model - s.ngram).sum::<f64>() / late.len() as f64;
    let verdict = match ahead {
        x if x > SAME => {
            format!("Errors do not accumulate: late steps are still predicted {x:.3} nats better than by {ngram}.")
        }
        x if x >= -SAME => {
            format!("Late steps are predicted as well as by {ngram}: the longer memory of the model has little value there.")
        }
        x => format!(
            "Errors accumulate, or the model is poor: late steps are predicted {:.3} nats worse than by {ngram}. Try a lower --rank, \
             refinement (`foretell learn --refine`), or more episodes.",
            -x
        ),
    };
    let lost =
        judged.iter().map(|s| s.lost * s.episodes as f64).sum::<f64>() / judged.iter().map(|s| s.episodes as f64).sum::<f64>();
    let is_shown = |n: usize| n == first.step || shown(last.step)(n);
    let rows = judged.iter().filter(|s| is_shown(s.step)).map(|s| {
        vec![s.step.to_string(), count(s.episodes), format!("{:.3}", s.model), format!("{:.3}", s.ngram), percent(s.lost)]
    });
    format!(
        "{title}\n  {verdict} The filter was lost at {} of the steps.\n{}\n  \
         (mean ln P(o ‖ a) of each single step, nats; the model is learned from one half of the episodes and tested on the other)",
        percent(lost),
        table(&["step", "episodes", "model", "best n-gram", "lost"], rows)
    )
}
