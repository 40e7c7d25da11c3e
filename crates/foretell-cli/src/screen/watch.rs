//! The screen on which a person watches a policy act.

use std::io;
use std::time::{Duration, Instant};

use foretell::Observation;
use ratatui::Frame;
use ratatui::crossterm::event::{self, KeyCode, KeyEvent};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Wrap};

use super::{
    FRAME, FRAME_ROWS, Then, block, draw_hidden, first_shown, heading, mood, on_terminal, picture, pressed, quits, standing,
};
use crate::game::reward;
use crate::report;
use crate::show::{Show, Thought};

/// Columns of the side with the agent's information: preferred and minimum.
const MIND: u16 = 60;
const FEWEST_MIND: u16 = 28;
/// Minimum columns of the other side, so that bars are distinguishable.
const WORLD: u16 = 34;
/// Screens with more rows than this have a heading.
const FEW_ROWS: u16 = 24;
/// Rows of the observation, and minimum rows of the predictions, with their frames.
const SEEN: u16 = 8;
const FEWEST_EXPECTED: u16 = 5;
/// Maximum number of predicted observations.
const MOST_EXPECTED: usize = 10;
/// Maximum columns of the name of an action.
const LONGEST_NAME: usize = 16;
/// Columns of a value.
const VALUE: usize = 9;
/// Steps per second.
const SPEEDS: [f64; 7] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
const FIRST_SPEED: usize = 2;
/// Observations with a smaller predicted probability are shown in red.
const SURPRISE: f64 = 0.05;

/// What is on the screen.
struct Screen<'a> {
    show: Show<'a>,
    paused: bool,
    /// Index of [`SPEEDS`].
    speed: usize,
}

/// Shows a policy until the user quits.
pub fn watch(show: Show<'_>) -> io::Result<()> {
    let mut screen = Screen::new(show);
    on_terminal(|terminal| {
        let mut stepped = Instant::now();
        loop {
            terminal.draw(|frame| screen.draw(frame))?;
            let wait = screen.interval().map(|interval| interval.saturating_sub(stepped.elapsed()));
            let due = match wait {
                Some(wait) => !event::poll(wait)?,
                None => false,
            };
            if due {
                screen.show.step();
                stepped = Instant::now();
            } else if let Some(key) = pressed(event::read()?) {
                let before = screen.moment();
                if screen.press(key) == Then::Quit {
                    return Ok(());
                }
                // A step that a key caused is shown as long as any other.
                if screen.moment() != before {
                    stepped = Instant::now();
                }
            }
        }
    })
}

impl<'a> Screen<'a> {
    fn new(show: Show<'a>) -> Screen<'a> {
        Screen { show, paused: false, speed: FIRST_SPEED }
    }

    /// The time between steps, if it is not paused.
    fn interval(&self) -> Option<Duration> {
        let goes_on = !self.paused && self.show.game.over().is_none();
        goes_on.then(|| Duration::from_secs_f64(1.0 / SPEEDS[self.speed]))
    }

    /// The episode and step shown, and whether it is paused.
    fn moment(&self) -> (u64, usize, bool) {
        (self.show.game.episode, self.show.game.steps.len(), self.paused)
    }

    fn press(&mut self, key: KeyEvent) -> Then {
        match key.code {
            _ if quits(key) => return Then::Quit,
            KeyCode::Char('q') => return Then::Quit,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Right | KeyCode::Char('n') => {
                self.paused = true;
                self.show.step();
            }
            KeyCode::Char('+' | '=') => self.speed = (self.speed + 1).min(SPEEDS.len() - 1),
            KeyCode::Char('-') => self.speed = self.speed.saturating_sub(1),
            KeyCode::Enter => self.show.restart(),
            _ => {}
        }
        Then::Continue
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let title = u16::from(frame.area().height > FEW_ROWS);
        let parts = [Constraint::Length(title), Constraint::Min(0), Constraint::Length(1)];
        let [title, body, footer] = Layout::vertical(parts).areas(frame.area());
        frame.render_widget(heading(self.show.game.domain), title);
        let hidden = self.show.game.picture();
        let map = picture(&hidden);
        let world = (map.width() as u16 + FRAME).max(WORLD);
        let mind = body.width.saturating_sub(world).clamp(FEWEST_MIND, MIND);
        let [left, right] = Layout::horizontal([Constraint::Length(mind), Constraint::Min(0)]).areas(body);
        // The values are below the map, or beside it if there is no room.
        let values = self.show.thought().values.len() as u16 + FRAME_ROWS;
        let below = right.height >= map.height() as u16 + FRAME_ROWS + values;
        let [in_left, in_right] = if below { [0, values] } else { [values, 0] };
        let parts =
            [Constraint::Length(SEEN), Constraint::Min(FEWEST_EXPECTED), Constraint::Length(in_left), Constraint::Length(4)];
        let [seen, expected, left_values, score] = Layout::vertical(parts).areas(left);
        let [world, right_values] = Layout::vertical([Constraint::Min(0), Constraint::Length(in_right)]).areas(right);
        self.draw_seen(frame, seen);
        self.draw_expected(frame, expected);
        self.draw_values(frame, if below { right_values } else { left_values });
        frame.render_widget(Paragraph::new(standing(&self.show.game)).block(block(&self.show.game.domain.name)), score);
        draw_hidden(frame, world, &hidden);
        frame.render_widget(self.footer(), footer);
    }

    fn draw_seen(&self, frame: &mut Frame<'_>, area: Rect) {
        let game = &self.show.game;
        let after = game.steps.last().map(|(a, outcome)| {
            format!("observation after {}, reward {}", game.domain.alphabet().action_name(*a), reward(outcome.reward))
        });
        let title = after.unwrap_or_else(|| "observation".to_string());
        let around = block(&title).title_bottom(self.surprise());
        let inside = around.inner(area);
        frame.render_widget(around, area);
        let last = game.steps.last().map(|(_, outcome)| outcome.observation);
        let sketch = last.and_then(|o| game.domain.sketch(o)).map_or(Text::default(), |sketch| picture(&sketch));
        let gap = if sketch.width() > 0 { 2 } else { 0 };
        let parts = [Constraint::Length(sketch.width() as u16 + gap), Constraint::Min(0)];
        let [left, right] = Layout::horizontal(parts).areas(inside);
        frame.render_widget(sketch, left);
        let words = game.words().unwrap_or_else(|| "Nothing yet: the first observation follows the first action.".to_string());
        frame.render_widget(Paragraph::new(words).wrap(Wrap { trim: false }), right);
    }

    /// The predicted probability of the observation.
    fn surprise(&self) -> Line<'static> {
        let Some(seen) = self.show.seen() else { return Line::default() };
        if !self.show.knows(seen.own) {
            return Line::from(" not seen in training ").bold().fg(Color::Red);
        }
        let Some(p) = seen.given else { return Line::default() };
        let color = if p < SURPRISE { Color::Red } else { Color::Green };
        Line::from(vec![" predicted probability ".into(), format!("{} ", report::percent(p)).bold().fg(color)])
    }

    fn draw_expected(&self, frame: &mut Frame<'_>, area: Rect) {
        let show = &self.show;
        let Thought { action, expected, .. } = show.thought();
        let over = show.game.over().is_some();
        let name = show.game.domain.alphabet().action_name(*action);
        let title = if over { format!("it predicted after {name}") } else { format!("it predicts after {name}") };
        let text = match expected {
            Some(p) => {
                let (rows, width) = (area.height.saturating_sub(FRAME_ROWS), area.width.saturating_sub(FRAME));
                let seen = show.seen().filter(|_| over).map(|seen| seen.own.index());
                let line = |(o, p)| {
                    let line = self.expectation(Observation(o as u32), p, width as usize);
                    if seen == Some(o) { line.bold().fg(Color::Green) } else { line }
                };
                Paragraph::new(report::ranked(p).into_iter().take(MOST_EXPECTED.min(rows as usize)).map(line).collect::<Vec<_>>())
            }
            None => Paragraph::new("No prediction: this policy uses only its last observations, and has no model.")
                .wrap(Wrap { trim: false }),
        };
        frame.render_widget(text.block(block(&title)), area);
    }

    /// An observation, its probability, and its description if it fits.
    fn expectation(&self, own: Observation, p: f64, width: usize) -> Line<'static> {
        let (domain, symbol) = (self.show.game.domain, self.show.plan.alphabet().symbol(own));
        let name = format!("{:>7}  {symbol}", report::percent(p));
        let words = domain.alphabet().same_observation(symbol).map(|o| format!("  {}", domain.describe(o)));
        let adds = |words: &String| words.trim() != format!("{}.", symbol.name);
        let fits = |words: &String| name.chars().count() + words.chars().count() <= width;
        let words = words.filter(|words| adds(words) && fits(words)).unwrap_or_default();
        Line::from(vec![name.into(), words.dim()])
    }

    fn draw_values(&self, frame: &mut Frame<'_>, area: Rect) {
        let Thought { action, values, .. } = self.show.thought();
        let width = area.width.saturating_sub(FRAME) as usize;
        let lines: Vec<Line<'_>> = (0..values.len()).map(|a| self.value(a, width)).collect();
        let down = first_shown(action.0 as u16, values.len() as u16, area.height.saturating_sub(FRAME_ROWS));
        frame.render_widget(Paragraph::new(lines).scroll((down, 0)).block(block("action values")), area);
    }

    /// An action, its value, and a bar from the worst action to the best.
    fn value(&self, a: usize, width: usize) -> Line<'static> {
        let names = self.show.game.domain.alphabet().actions();
        let Thought { action, values, .. } = self.show.thought();
        let known = || values.iter().flatten().copied();
        let (worst, best) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
        let share = |q: f64| if best > worst { (q - worst) / (best - worst) } else { 1.0 };
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(LONGEST_NAME);
        let name: String = names[a].chars().take(longest).collect();
        let number = values[a].map_or("–".to_string(), |q| format!("{q:.3}").replace('-', "−"));
        let text = format!("{name:longest$} {number:>VALUE$} ");
        let chosen = action.index() == a;
        let room = width.saturating_sub(text.chars().count() + 2);
        let style = if chosen { Style::new().fg(Color::Green).bold() } else { Style::new().fg(Color::Blue) };
        let drawn = Span::styled(values[a].map_or(String::new(), |q| bar(share(q), room)), style);
        let mark = if chosen { "▶ " } else { "  " };
        Line::from(vec![mark.bold().fg(Color::Green), if chosen { text.bold() } else { text.into() }, drawn])
    }

    fn footer(&self) -> Line<'static> {
        if let Some(verdict) = self.show.game.verdict() {
            return Line::from(vec![verdict.bold().fg(mood(&self.show.game)), " Enter next · Esc quit".dim()]);
        }
        let speed = || format!("▶ {} steps/s", SPEEDS[self.speed]);
        let (state, space) = if self.paused { ("‖ paused".to_string(), "resume") } else { (speed(), "pause") };
        let keys = format!(" · Space {space} · → step · + − speed · Enter next episode · Esc quit");
        Line::from(vec![state.bold(), keys.dim()])
    }
}

/// A bar over a fraction of the width, in eighths of a column, at least one eighth long.
fn bar(share: f64, width: usize) -> String {
    let eighths = ((share * width as f64 * 8.0).round() as usize).clamp(1, (8 * width).max(1));
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Game;
    use crate::show::testing::small_plan;
    use foretell::domains::{self, Domain};
    use foretell::plan::StateKind;
    use foretell::{Plan, Seed};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::KeyModifiers;

    fn screen<'a>(domain: &'a Domain, plan: &'a Plan) -> Screen<'a> {
        Screen::new(Show::new(Game::new(domain, domain.horizon, Seed(3)), plan).unwrap())
    }

    fn press(screen: &mut Screen<'_>, codes: &[KeyCode]) {
        for &code in codes {
            assert_eq!(screen.press(KeyEvent::from(code)), Then::Continue);
        }
    }

    fn drawn(screen: &Screen<'_>, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_shows_map_senses_expectations_and_values() {
        let maze = domains::get("colored-gridworld").unwrap();
        let plan = small_plan(&maze, StateKind::Memory);
        let mut screen = screen(&maze, &plan);
        press(&mut screen, &[KeyCode::Char('n'), KeyCode::Right]);
        insta::assert_snapshot!(drawn(&screen, 96, 32));
    }

    #[test]
    fn everything_fits_a_small_terminal_beside_a_high_map() {
        let pocman = domains::get("pocman").unwrap();
        let plan = small_plan(&pocman, StateKind::Memory);
        let mut screen = screen(&pocman, &plan);
        press(&mut screen, &[KeyCode::Right; 3]);
        insta::assert_snapshot!(drawn(&screen, 80, 24));
    }

    #[test]
    fn an_episode_that_is_over_shows_what_was_expected_of_its_last_step() {
        let tiger = domains::get("tiger").unwrap();
        let plan = small_plan(&tiger, StateKind::Predictive);
        let mut screen = screen(&tiger, &plan);
        press(&mut screen, &[KeyCode::Right; 103]);
        assert_eq!((screen.show.game.steps.len(), screen.interval()), (100, None));
        insta::assert_snapshot!(drawn(&screen, 80, 24));
        press(&mut screen, &[KeyCode::Enter]);
        assert_eq!((screen.show.game.episode, screen.show.game.steps.len(), screen.show.seen()), (2, 0, None));
        assert!(drawn(&screen, 80, 24).contains("Nothing yet"));
    }

    #[test]
    fn a_policy_without_a_model_expects_nothing_and_says_so() {
        let maze = domains::get("colored-gridworld").unwrap();
        let plan = small_plan(&maze, StateKind::Last);
        let mut screen = screen(&maze, &plan);
        press(&mut screen, &[KeyCode::Right]);
        let shown = drawn(&screen, 96, 32);
        assert!(shown.contains("No prediction: this policy") && !shown.contains("predicted probability"), "{shown}");
    }

    #[test]
    fn observations_not_seen_in_training_are_marked() {
        let (maze, plain) = (domains::get("colored-gridworld").unwrap(), domains::get("gridworld").unwrap());
        let plan = small_plan(&plain, StateKind::Memory);
        let mut screen = screen(&maze, &plan);
        let new = (0..maze.horizon).any(|_| {
            press(&mut screen, &[KeyCode::Right]);
            drawn(&screen, 96, 32).contains("not seen in training")
        });
        assert!(new);
    }

    #[test]
    fn any_size_of_terminal_will_do() {
        let pocman = domains::get("pocman").unwrap();
        let plan = small_plan(&pocman, StateKind::Memory);
        let mut screen = screen(&pocman, &plan);
        press(&mut screen, &[KeyCode::Right]);
        for (width, height) in [(1, 1), (5, 40), (30, 3), (79, 23), (200, 80)] {
            drawn(&screen, width, height);
        }
    }

    #[test]
    fn keys_pause_step_change_the_speed_and_quit() {
        let tiger = domains::get("tiger").unwrap();
        let plan = small_plan(&tiger, StateKind::Last);
        let mut screen = screen(&tiger, &plan);
        assert_eq!(screen.interval(), Some(Duration::from_millis(500)));
        press(&mut screen, &[KeyCode::Char('+'), KeyCode::Char('=')]);
        assert_eq!(screen.interval(), Some(Duration::from_millis(125)));
        press(&mut screen, &[KeyCode::Char('-'); 20]);
        assert_eq!(screen.interval(), Some(Duration::from_secs(2)));
        press(&mut screen, &[KeyCode::Char('+'); 20]);
        assert_eq!(screen.interval(), Some(Duration::from_secs_f64(1.0 / 32.0)));
        press(&mut screen, &[KeyCode::Char(' ')]);
        assert_eq!((screen.interval(), screen.show.game.steps.len()), (None, 0));
        press(&mut screen, &[KeyCode::Char(' '), KeyCode::Char('n'), KeyCode::Char('x')]);
        assert_eq!((screen.interval(), screen.show.game.steps.len()), (None, 1), "a single step pauses");
        for key in [KeyEvent::from(KeyCode::Esc), KeyEvent::from(KeyCode::Char('q'))] {
            assert_eq!(screen.press(key), Then::Quit);
        }
        assert_eq!(screen.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Then::Quit);
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!([bar(0.0, 4), bar(0.5, 4), bar(0.40625, 4), bar(1.0, 4)], ["▏", "██", "█▋", "████"]);
        assert_eq!((bar(f64::NAN, 4), bar(2.0, 2), bar(0.0, 0)), ("▏".into(), "██".into(), "▏".into()));
    }
}
