//! A diagnosis in words: what each part means, whether it is good, what to do; symbols second.

use std::cmp::Ordering;

use foretell::History;
use foretell::judge::diagnose::{ActionCoverage, Coverage, Diagnosis, MatrixSparsity, Spectrum, StepScore};

use crate::report::{count, percent, plural, table};

/// Episodes from which on a step is judged.
pub const ENOUGH: u64 = 30;
/// Rows of a table of actions.
const SHOWN: usize = 15;
/// An effective share of steps from which on actions count as taken alike.
const ALIKE: f64 = 0.8;
/// A share of steps below which it hardly matters what was never tried there.
const SELDOM: f64 = 0.01;
/// Shares of entries up to which a matrix is sparse, and up to which hardly.
const SPARSE: [f64; 2] = [0.01, 0.1];
/// Nats by which steps may be foretold worse than by an n-gram before we call it that.
const SAME: f64 = 0.01;

/// All of it.
pub fn of(found: &Diagnosis) -> String {
    let p = &found.params;
    let pasts = match p.history {
        History::Prefix => "all steps before".to_string(),
        History::Suffix => format!("the last {}", up_to(p.history_length)),
    };
    let (episodes, steps) = (plural(found.episodes, "episode"), plural(found.steps, "step"));
    let about = format!("{episodes}, {steps}; a past is {pasts}, a future the next {}", up_to(p.max_test_length));
    let blocks = [
        about,
        coverage(&found.coverage),
        sparsity(found),
        projection(found),
        spectrum(&found.spectrum, p.rank),
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
        (0, 0) => "Every action was tried after every observation, 5 times and more: nothing is missing.".to_string(),
        (0, _) => format!(
            "Every action was tried after every observation, but in {rarely} of {combinations} cases fewer than 5 times: of these little is known."
        ),
        _ => {
            let weight = match steps_missing < SELDOM {
                true => format!("That is seldom, in {} of the steps.", percent(steps_missing)),
                false => format!(
                    "That is so in {} of the steps: a plan that relies on it guesses. Logs in which these actions are taken would help.",
                    percent(steps_missing)
                ),
            };
            format!(
                "{} of {} combinations of last observation and action were never tried, {} fewer than 5 times.\n  \
                 What was never tried cannot be learned. {weight}",
                count(never),
                count(combinations),
                count(rarely)
            )
        }
    };
    let effective = c.propensities.map_or(c.effective, |p| p.effective);
    let how = if effective >= ALIKE { "about evenly" } else { "unevenly" };
    let source = if c.propensities.is_some() {
        "by their probabilities in the logs"
    } else {
        "by how often they were taken after each observation"
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
        "what was tried\n  {verdict}\n  Actions were taken {how}: the logs are worth {} of as many steps with all actions taken alike, {source}.\n{}",
        percent(effective),
        table(&["action", "steps", "share", "least", "after"], rows)
    );
    if actions.len() > SHOWN {
        text += &format!("\n  … and {} more (all with --json)", actions.len() - SHOWN);
    }
    let pair = c.by_pair;
    text + &format!(
        "\n  (least: its smallest share after any observation of {} steps and more. By last action and observation, {} of {} combinations were never tried.)",
        Coverage::OFTEN,
        count(pair.never),
        count(pair.combinations)
    )
}

fn sparsity(found: &Diagnosis) -> String {
    let s = &found.sparsity;
    let about = if s.exact { "" } else { "about " };
    let verdict = match s.joint.share {
        share if share <= SPARSE[0] => "That is sparse: compression can keep nearly everything.",
        share if share <= SPARSE[1] => "That is fairly sparse: compression loses something.",
        _ => "That is not sparse: there is little for compression to gain.",
    };
    let row = |name: &str, m: &MatrixSparsity| {
        vec![name.into(), count(m.columns), format!("{:.1}", m.mean), count(m.largest), small_percent(m.share)]
    };
    let rows = [row("P_T,H: pasts", &s.joint), row("P_T,ao,H: pasts and next steps", &s.with_next)];
    let sampled = |m: &MatrixSparsity| format!("{} of {about}{}", count(m.counted), count(m.nonzero_columns));
    let note = match s.exact {
        true => String::new(),
        false => format!(
            "\n  (Too many to hold: counted are {} columns that are not empty, and {}, a fair sample; the largest of all may have more.)",
            sampled(&s.joint),
            sampled(&s.with_next)
        ),
    };
    format!(
        "how few futures follow a past\n  Of {about}{} futures (tests, |T|) met, {:.1} were ever seen after the same past, on average, and {} at most. {verdict}\n{}\n  \
         (mean and most: futures after a past that has any; share: of all entries, the average column sparsity){note}",
        count(s.tests),
        s.joint.mean,
        count(s.joint.largest),
        table(&["matrix", "columns", "mean", "most (k)", "share"], rows),
    )
}

/// Also of shares far below one in ten thousand.
fn small_percent(share: f64) -> String {
    if share == 0.0 || share >= 1e-4 { percent(share) } else { format!("{:.1e} %", 100.0 * share) }
}

fn projection(found: &Diagnosis) -> String {
    let (size, s) = (&found.projection, &found.sparsity);
    let verdict = match size.used {
        None => "These parameters do not compress.".to_string(),
        Some(used) if used as u64 >= s.tests => {
            format!("These parameters have {}, no fewer than there are futures: hardly anything is lost.", count(used as u64))
        }
        Some(used) if used as f64 >= size.safe => format!("These parameters have {}: enough for every past.", count(used as u64)),
        Some(used) if used as f64 >= size.typical => {
            format!("These parameters have {}: enough for most pasts, not for those with the most futures.", count(used as u64))
        }
        Some(used) => {
            format!("These parameters have {used}, few: try --test-dim and --history-dim of {:.0} and more.", size.typical)
        }
    };
    let by_rank =
        size.by_rank.map_or(String::new(), |by_rank| format!(", or {} with the suggested rank for |Q|", whole(by_rank)));
    format!(
        "how large projections should be\n  Of the order of {} dimensions for a typical past, {} for the worst, by a theory whose constant is unknown. {verdict}\n  \
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

fn spectrum(s: &Spectrum, used: usize) -> String {
    let title = "what rank the logs support";
    let Some(rank) = s.rank else {
        return format!("{title}\n  A single episode does not tell signal from chance: give more episodes.");
    };
    let directions = if rank == 1 { "direction stands".into() } else { format!("{rank} directions stand") };
    let advice = match used.cmp(&rank) {
        _ if rank == 1 => "The past tells nothing about the future that could not be chance: a model can only foretell frequencies. More episodes may show more.".to_string(),
        // Held-out likelihood on ColoredGridWorld: best at rank 40 where 11 (2000 episodes) and 24 (10 000) are proven; without a ridge
        // best at 9 of 3, 5, 9, 20, 40, where 7 are proven.
        Ordering::Less | Ordering::Equal if s.whitened => format!(
            "Rank {used}, as given, is no more than that: try --rank {rank} and more, and compare them by `score` on other logs. (The ridge \
             of\n  two-stage regression tames what chance adds, so that more than what is proven may predict better.)"
        ),
        Ordering::Less => format!("Rank {used}, as given, leaves some of them out: try --rank {rank}."),
        Ordering::Equal => format!("Rank {used}, as given, is just that."),
        Ordering::Greater if s.whitened => format!(
            "Rank {used}, as given, is more than these logs prove. That need not be wrong: two-stage regression has a ridge that tames what \
             chance adds,\n  and in a maze predicted best with two to four times as many. Compare --rank {rank} and {used} by `score` on other logs."
        ),
        Ordering::Greater => format!(
            "Rank {used}, as given, is more than these logs prove, and without a ridge chance comes in with each of them: try --rank {rank}."
        ),
    };
    let rows = s.floor.iter().map(|floor| {
        let value = s.values[floor.direction - 1];
        let verdict = if floor.direction <= rank { "signal" } else { "may be chance" };
        vec![floor.direction.to_string(), format!("{value:.4}"), format!("{:.4}", floor.value), verdict.into()]
    });
    let what = if s.whitened { "canonical correlations, of whitened moments" } else { "singular values of Σ_TH" };
    let one = if rank == 1 { "1 " } else { "" };
    format!(
        "{title}\n  {one}{directions} out of the noise: suggested rank {rank}. {advice}\n{}\n  \
         (values: {what}; chance: 99 % of what differences of random halves of the episodes have outside the directions before)",
        table(&["direction", "value", "chance", ""], rows)
    )
}

fn decay(found: &Diagnosis) -> String {
    let (d, t) = (&found.decay, &found.terms);
    let [most, nearly, all] = [0.1, 0.01, 0.001].map(|share| d.directions(share) as u64);
    let verdict = match nearly {
        _ if nearly <= found.params.rank as u64 => {
            "That is fast: the theory's error for what is left out is small at the given rank."
        }
        _ => "That is slow: at the given rank more than 1 % of the variation is left out.",
    };
    let rows = d.left_out.iter().map(|l| vec![l.m.to_string(), format!("{:.3e}", l.nu), small_percent(l.share)]);
    format!(
        "how fast eigenvalues fall\n  90 % of the variation of the moments is in {}, 99 % in {nearly}, 99.9 % in {all}. {verdict}\n{}\n  \
         (The first is the mean. Theorem 1 at δ = 0.05, m = {}: w² = {:.3e}, x² = {:.3e}, b² = {:.3e}, σ²_η = {:.3e}; Theorem 2: σ²_∞ = {:.3e}.\n  \
         Of ε, which bounds the error given these, the theory says only that there is one.)",
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

/// Horizons worth a row: the first, ever fewer, and the last.
fn shown(last: usize) -> impl Fn(usize) -> bool {
    move |n| [2, 3, 5, 10, 20, 50, 75].contains(&n) || n == last || n.is_multiple_of(100)
}

/// 10^x, in plain digits where they are few; beyond all floating-point numbers as a power.
fn power(log10: f64) -> String {
    match log10 {
        x if (-2.0..4.0).contains(&x) => format!("{:.3}", 10f64.powf(x)),
        x if x.abs() < 300.0 => format!("{:.0e}", 10f64.powf(x)),
        x => format!("1e{x:.0}"),
    }
}

fn propagation(found: &Diagnosis) -> String {
    let (n, horizons) = (&found.norms, &found.propagation);
    let title = "how much errors could grow, by the theory";
    let Some(last) = horizons.iter().rev().find(|h| h.log10_vacuous_from.is_some()) else {
        return format!("{title}\n  Episodes of a single step have no errors that could add up.");
    };
    let (factor, vacuous) = (last.log10_factor.unwrap_or_default(), last.log10_vacuous_from.unwrap_or_default());
    let stretch = match n.largest > 1.0 {
        true => format!(
            "One step can make an error {:.2} times as large (action {}, observation {}); so can {} of {} pairs make errors larger.",
            n.largest, n.action, n.observation, n.above_one, n.operators
        ),
        false => format!("No step makes errors larger: at most {:.2} times their size.", n.largest),
    };
    // What chance alone puts into a probability that so many steps tell.
    let chance = -0.5 * (found.steps as f64).log10();
    let verdict = match vacuous < chance {
        true => format!("Chance alone makes larger ones in {}, so the bound says nothing here.", plural(found.steps, "step")),
        false => "Whether models are that good, the theory does not tell.".into(),
    };
    let rows = horizons.iter().filter(|h| shown(last.horizon)(h.horizon)).map(|h| {
        let cell = |x: Option<f64>| x.map_or("–".into(), power);
        vec![h.horizon.to_string(), cell(h.log10_scale), cell(h.log10_factor), cell(h.log10_vacuous_from)]
    });
    let radius = match n.radius {
        r if r > 1.0 + 1e-3 => format!(
            "Foretelling without looking grows {r:.3}-fold with every step, in any coordinates: far ahead it is not to be trusted."
        ),
        r => format!("Foretelling without looking does not grow ({r:.3}-fold with every step, in any coordinates): good."),
    };
    format!(
        "{title}\n  {stretch}\n  Over {} the error of one step could be multiplied by {}, and probabilities of so many steps are about {}:\n  \
         to say anything, the bound needs errors of one step below {}. {verdict}\n  {radius}\n{}\n  \
         (Theorem 3: ‖c_∞‖ Σ s_t c^(n−t−1) with c = max ‖C_ao‖ = {:.3}, median {:.3}, ‖c_∞‖ = {:.3}, s_n the size of the state of n steps beside\n  \
         that of the start; norms in the coordinates of the model, which others would change; the last number is of C_⋆ = Σ C_ao)",
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
    let title = "how much errors do grow";
    let judged: Vec<&StepScore> = steps.iter().filter(|step| step.episodes >= ENOUGH).collect();
    let (Some(first), Some(last)) = (judged.first(), judged.last()) else {
        return format!(
            "{title}\n  Too few episodes to tell: half of them are learned from, and the other half must reach {ENOUGH}."
        );
    };
    let ngram = match ngram_length {
        0 => "what the action alone tells".to_string(),
        1 => "an n-gram of the last step".to_string(),
        n => format!("an n-gram of the last {n} steps"),
    };
    // The mean over the last third, or the last step.
    let late = &judged[judged.len() - judged.len().div_ceil(3)..];
    let ahead = late.iter().map(|s| s.model - s.ngram).sum::<f64>() / late.len() as f64;
    let verdict = match ahead {
        x if x > SAME => {
            format!("They do not add up: late steps are still foretold {x:.3} nats better than by {ngram}, which forgets.")
        }
        x if x >= -SAME => {
            format!(
                "Late steps are foretold as well as by {ngram}, which forgets: what the model remembers is worth little there."
            )
        }
        x => format!(
            "They add up, or the model is poor: late steps are foretold {:.3} nats worse than by {ngram}, which forgets. Lower --rank, \
             --refine, or more episodes may help.",
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
        "{title}\n  {verdict} The model lost its way at {} of the steps.\n{}\n  \
         (mean ln P(o ‖ a) of each step alone, nats, by a model of one half of the episodes, on the other half)",
        percent(lost),
        table(&["step", "episodes", "model", "best n-gram", "lost"], rows)
    )
}
