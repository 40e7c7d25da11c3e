//! Progress on standard error: a bar in a terminal, otherwise a line from time to time.

use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use foretell::judge::search::{Phase, SearchProgress};
use foretell::pomdp::solve;
use foretell::refine::EmRound;
use foretell::{FitProgress, Pass, Progress, Selecting};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::checkpoint::report_resumed;
use crate::report::{complain, count, plural};

/// Time between two lines of progress; shorter work has none.
const EVERY: Duration = Duration::from_secs(30);

static QUIET: AtomicBool = AtomicBool::new(false);

/// Shows no progress from now on.
pub fn silence() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Tells something that is no result on standard error, unless progress is hidden.
pub fn note(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        complain(format!("note: {text}"));
    }
}

/// A bar, or lines.
struct Display {
    bar: ProgressBar,
    pace: Option<Pace>,
}

impl Display {
    fn new(length: Option<u64>, template: &str) -> Display {
        let is_quiet = QUIET.load(Ordering::Relaxed);
        let target = if is_quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) };
        let bar = ProgressBar::with_draw_target(length, target);
        bar.set_style(style(template));
        let pace = (!is_quiet && !stderr().is_terminal()).then(|| Pace { last: Instant::now() });
        Display { bar, pace }
    }

    /// Moves the spinner and the clock between updates.
    fn ticking(self) -> Display {
        self.bar.enable_steady_tick(Duration::from_millis(100));
        self
    }

    /// Writes a line if one is due. A closed standard error is ignored.
    fn line(&mut self, text: impl FnOnce() -> String) {
        if self.pace.as_mut().is_some_and(|pace| pace.is_due(Instant::now())) {
            let _ = writeln!(stderr(), "{}", text());
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates of this file are valid")
}

/// When the next line is due.
struct Pace {
    last: Instant,
}

impl Pace {
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now.duration_since(self.last) >= EVERY;
        if is_due {
            self.last = now;
        }
        is_due
    }
}

/// Follows the passes of learning.
pub struct LearningBar {
    display: Display,
    pass: Option<Pass>,
    since: Instant,
}

impl LearningBar {
    /// Shows nothing yet.
    pub fn new() -> LearningBar {
        LearningBar { display: Display::new(None, "{spinner}").ticking(), pass: None, since: Instant::now() }
    }

    /// Shows the progress of learning.
    pub fn tell(&mut self, progress: Progress) {
        let bar = &self.display.bar;
        if self.pass != Some(progress.pass) {
            // The first pass began with the bar.
            if self.pass.replace(progress.pass).is_some() {
                self.since = Instant::now();
            }
            bar.reset();
            bar.set_style(style(match progress.total {
                Some(_) => "{prefix:9} {bar:30} {human_pos}/{human_len} steps, {msg}, {eta} left",
                None => "{prefix:9} {spinner} {human_pos} steps, {msg}",
            }));
            bar.set_prefix(name(progress.pass));
        }
        if let Some(total) = progress.total {
            bar.set_length(total);
        }
        bar.set_position(progress.steps);
        let elapsed = self.since.elapsed();
        bar.set_message(episodes(&progress, elapsed));
        self.display.line(|| learning(&progress, elapsed));
    }

    /// Removes the bar, as dropping it does.
    pub fn finish(self) {}
}

fn name(pass: Pass) -> &'static str {
    match pass {
        Pass::Survey => "reading",
        Pass::Moments => "moments",
        Pass::Operators => "operators",
    }
}

/// A pass in one line, after some time.
fn learning(progress: &Progress, elapsed: Duration) -> String {
    let (name, episodes) = (name(progress.pass), episodes(progress, elapsed));
    match progress.total {
        None => format!("{name}: {}, {episodes}", plural(progress.steps, "step")),
        Some(total) => {
            let (steps, left) = (count(progress.steps), left(progress.steps, total, elapsed));
            format!("{name}: {steps} of {}, {episodes}, {left} left", plural(total, "step"))
        }
    }
}

fn episodes(progress: &Progress, elapsed: Duration) -> String {
    let rate = progress.episodes as f64 / elapsed.as_secs_f64().max(1e-3);
    format!("{}, {} episodes/s", plural(progress.episodes, "episode"), count(rate.round() as u64))
}

/// Remaining time at the same speed.
fn left(done: u64, total: u64, elapsed: Duration) -> String {
    let rest = total.saturating_sub(done) as f64 / done.max(1) as f64;
    let seconds = (elapsed.as_secs_f64() * rest).round() as u64;
    match seconds {
        0..90 => format!("{seconds} s"),
        90..5400 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", (seconds + 30) / 3600, (seconds + 30) % 3600 / 60),
    }
}

/// Counts rounds.
pub struct RoundsBar {
    display: Display,
    what: &'static str,
    rounds: u64,
    since: Instant,
}

impl RoundsBar {
    /// A bar for a number of rounds.
    pub fn new(what: &'static str, rounds: u64) -> RoundsBar {
        let display = Display::new(Some(rounds), "{prefix:9} {bar:30} {pos}/{len} rounds, {eta} left");
        display.bar.set_prefix(what);
        RoundsBar { display, what, rounds, since: Instant::now() }
    }

    /// Shows the number of completed rounds.
    pub fn tell(&mut self, done: u64) {
        self.display.bar.set_position(done);
        let (what, rounds, elapsed) = (self.what, self.rounds, self.since.elapsed());
        let line = || format!("{what}: {} of {}, {} left", count(done), plural(rounds, "round"), left(done, rounds, elapsed));
        self.display.line(line);
    }

    /// Removes the bar, as dropping it does.
    pub fn finish(self) {}
}

/// Shows the log-likelihood of the latest round of refinement.
pub struct RefiningBar(Display);

impl RefiningBar {
    /// Shows nothing yet.
    pub fn new() -> RefiningBar {
        RefiningBar(Display::new(None, "refining  {spinner} {msg}").ticking())
    }

    /// Shows the latest round.
    pub fn tell(&mut self, round: &EmRound) {
        let what = if round.trial { "trying" } else { "fitting" };
        let nats = round.held_out.unwrap_or(round.training);
        let text = format!("{what} {} states, round {}: {nats:.4} nats per step", round.candidate.states, round.round);
        self.0.bar.set_message(text.clone());
        self.0.line(|| format!("refining: {text}"));
    }

    /// Removes the line, as dropping it does.
    pub fn finish(self) {}
}

/// Follows a recipe: the passes of learning, the rounds of refinement, the models of an ensemble.
pub struct FittingBar {
    /// The folder of the checkpoint.
    folder: Option<PathBuf>,
    stage: StageBar,
}

enum StageBar {
    Selecting(Display),
    Learning(LearningBar),
    Refining(RefiningBar),
    Ensemble(RoundsBar),
}

impl FittingBar {
    /// Shows nothing yet; the folder is that of the checkpoint.
    pub fn new(folder: Option<PathBuf>) -> FittingBar {
        FittingBar { folder, stage: StageBar::Learning(LearningBar::new()) }
    }

    /// Shows the progress of fitting.
    pub fn tell(&mut self, progress: FitProgress) {
        match (progress, &mut self.stage) {
            (FitProgress::Learning(progress), StageBar::Learning(bar)) => bar.tell(progress),
            (FitProgress::Refining(round), StageBar::Refining(bar)) => bar.tell(&round),
            (FitProgress::Selecting(stage), StageBar::Selecting(bar)) => bar.bar.set_message(in_words(stage)),
            (FitProgress::Ensemble(done, _), StageBar::Ensemble(bar)) => bar.tell(done as u64),
            (FitProgress::Resumed(done), _) => {
                let done = format!("{} of EM done", plural(done as u64, "round"));
                self.folder.iter().for_each(|folder| report_resumed(folder, &done));
            }
            _ => {
                self.stage = match progress {
                    FitProgress::Selecting(_) => StageBar::Selecting(Display::new(None, "select    {spinner} {msg}").ticking()),
                    FitProgress::Learning(_) => StageBar::Learning(LearningBar::new()),
                    FitProgress::Refining(_) | FitProgress::Resumed(_) => StageBar::Refining(RefiningBar::new()),
                    FitProgress::Ensemble(_, of) => StageBar::Ensemble(RoundsBar::new("ensemble", of as u64)),
                };
                self.tell(progress);
            }
        }
    }

    /// Removes the bar, as dropping it does.
    pub fn finish(self) {}
}

/// A stage of the selection of predictors.
fn in_words(stage: Selecting) -> &'static str {
    match stage {
        Selecting::Linear => "n-grams and linear models",
        Selecting::Latent => "latent states",
        Selecting::Recurrent => "recurrent networks",
        Selecting::Weights => "weights",
        Selecting::Columns => "the same without some columns",
        Selecting::Rewards => "the same with rewards observed",
        Selecting::Last => "the best on all logs",
    }
}

/// Shows the progress of a search.
pub struct SearchBar(Display);

impl SearchBar {
    /// Shows nothing yet.
    pub fn new() -> SearchBar {
        SearchBar(Display::new(None, "search    {spinner} {msg}").ticking())
    }

    /// Shows the progress.
    pub fn tell(&mut self, progress: SearchProgress) {
        let phase = match progress.phase {
            Phase::Coarse => "coarse search",
            Phase::Combined => "combinations of the best",
            Phase::Finer => "refinement around the best",
            Phase::Final => "the best on all folds",
        };
        let SearchProgress { done, of, gain, .. } = progress;
        let text = format!("{phase}: {done} of {of} configurations, best gain so far {gain:.4} nats per step");
        self.0.bar.set_message(text.clone());
        self.0.line(|| format!("search: {text}"));
    }

    /// Removes the line, as dropping it does.
    pub fn finish(self) {}
}

/// Shows the bounds of a planner.
pub struct SolvingBar {
    display: Display,
    since: Instant,
    limit: Duration,
}

impl SolvingBar {
    /// The planner stops at the limit.
    pub fn new(limit: Duration) -> SolvingBar {
        SolvingBar { display: Display::new(None, "solving   {spinner} {msg}").ticking(), since: Instant::now(), limit }
    }

    /// Shows the latest round.
    pub fn tell(&mut self, number: usize, round: &solve::Round) {
        let solve::Round { lower, upper, .. } = round;
        let (now, limit) = (self.since.elapsed().as_secs(), self.limit.as_secs_f64().ceil());
        let text = format!("round {}: {lower:.4} to {upper:.4}, {now} of at most {limit:.0} s", count(number as u64));
        self.display.bar.set_message(text.clone());
        self.display.line(|| format!("solving: {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_far_apart() {
        let start = Instant::now();
        let mut pace = Pace { last: start };
        let due: Vec<u64> = (0..120).filter(|&s| pace.is_due(start + Duration::from_secs(s))).collect();
        assert_eq!(due, [30, 60, 90]);
    }

    #[test]
    fn a_line_shows_steps_done_speed_and_time_left() {
        let minute = Duration::from_secs(60);
        let progress = Progress { pass: Pass::Moments, episodes: 300_000, steps: 12_000_000, total: Some(60_000_000) };
        let plain = |progress| learning(&progress, minute).replace('\u{2009}', " ");
        let expected = "moments: 12 000 000 of 60 000 000 steps, 300 000 episodes, 5 000 episodes/s, 4 min left";
        assert_eq!(plain(progress), expected);
        let progress = Progress { pass: Pass::Survey, total: None, ..progress };
        assert_eq!(plain(progress), "reading: 12 000 000 steps, 300 000 episodes, 5 000 episodes/s");
    }

    #[test]
    fn the_time_left_has_a_fitting_unit() {
        let second = Duration::from_secs(1);
        assert_eq!(left(1, 90, second), "89 s");
        assert_eq!(left(1, 100, second), "2 min");
        assert_eq!(left(1, 7261, second), "2 h 1 min");
        assert_eq!(left(0, 10, second), "10 s");
        assert_eq!(left(11, 10, second), "0 s");
    }
}
