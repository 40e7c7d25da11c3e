//! A progress bar on standard error, where that is a terminal.

use std::time::Duration;

use foretell::refine::EmRound;
use foretell::{Pass, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that follows the passes of learning.
pub struct LearningBar {
    bar: ProgressBar,
    pass: Option<Pass>,
}

impl LearningBar {
    /// Hidden where standard error is not a terminal.
    pub fn new() -> LearningBar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        bar.enable_steady_tick(Duration::from_millis(100));
        LearningBar { bar, pass: None }
    }

    /// Shows how far learning is.
    pub fn tell(&mut self, progress: Progress) {
        if self.pass != Some(progress.pass) {
            self.pass = Some(progress.pass);
            self.bar.reset();
            let what = match progress.pass {
                Pass::Survey => "reading",
                Pass::Moments => "moments",
                Pass::Operators => "operators",
            };
            let template = match progress.total {
                Some(_) => "{msg:9} {bar:30} {human_pos}/{human_len} steps, {per_sec}, {eta} left",
                None => "{msg:9} {spinner} {human_pos} steps, {per_sec}",
            };
            self.bar.set_style(ProgressStyle::with_template(template).expect("the templates above are valid"));
            self.bar.set_message(what);
        }
        if let Some(total) = progress.total {
            self.bar.set_length(total);
        }
        self.bar.set_position(progress.steps);
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// A bar that counts rounds.
pub struct RoundsBar(ProgressBar);

impl RoundsBar {
    /// Hidden where standard error is not a terminal.
    pub fn new(rounds: u64) -> RoundsBar {
        let bar = ProgressBar::with_draw_target(Some(rounds), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("planning  {bar:30} {pos}/{len} rounds, {eta} left");
        bar.set_style(style.expect("the template above is valid"));
        RoundsBar(bar)
    }

    /// Shows how many rounds are done.
    pub fn tell(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}

/// A line that shows how well the latest round of refinement foretells.
pub struct RefiningBar(ProgressBar);

impl RefiningBar {
    /// Hidden where standard error is not a terminal.
    pub fn new() -> RefiningBar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(ProgressStyle::with_template("refining  {spinner} {msg}").expect("the template above is valid"));
        bar.enable_steady_tick(Duration::from_millis(100));
        RefiningBar(bar)
    }

    /// Shows the latest round.
    pub fn tell(&self, round: &EmRound) {
        let what = if round.trial { "trying" } else { "fitting" };
        let nats = round.held_out.unwrap_or(round.training);
        self.0.set_message(format!("{what} {} states, round {}: {nats:.4} nats per step", round.candidate.states, round.round));
    }

    /// Takes the line away.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}
