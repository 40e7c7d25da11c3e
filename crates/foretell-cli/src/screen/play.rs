//! The screen on which a person plays a domain.

use std::io;

use foretell::Action;
use ratatui::Frame;
use ratatui::crossterm::event::{self, KeyCode, KeyEvent};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Wrap};

use super::{FRAME, Then, block, draw_hidden, heading, mood, on_terminal, picture, pressed, quits, standing};
use crate::game::{Game, reward};

/// Columns of the side with the observation: preferred, and minimum, in which a score fits.
const PERCEPTS: u16 = 46;
const FEWEST_PERCEPTS: u16 = 28;
/// Latest steps shown.
const RECENT: usize = 6;

/// What is on the screen.
struct Screen<'a> {
    game: Game<'a>,
    reveal: bool,
}

/// Lets a person play until they quit.
pub fn play(game: Game<'_>, reveal: bool) -> io::Result<()> {
    let mut screen = Screen { game, reveal };
    on_terminal(|terminal| {
        loop {
            terminal.draw(|frame| screen.draw(frame))?;
            if pressed(event::read()?).is_some_and(|key| screen.press(key) == Then::Quit) {
                return Ok(());
            }
        }
    })
}

impl Screen<'_> {
    fn press(&mut self, key: KeyEvent) -> Then {
        match key.code {
            _ if quits(key) => return Then::Quit,
            KeyCode::Tab => self.reveal = !self.reveal,
            KeyCode::Enter => self.game.restart(),
            // Only Enter starts the next episode.
            _ if self.game.over().is_some() => {}
            code => {
                if let Some(a) = self.action(code) {
                    self.game.act(a);
                }
            }
        }
        Then::Continue
    }

    /// Arrows are the points of the compass, digits count the actions, letters begin their names.
    fn action(&self, code: KeyCode) -> Option<Action> {
        let named = |names: [&str; 2]| names.into_iter().find_map(|name| self.game.named(name));
        match code {
            KeyCode::Up => named(["N", "up"]),
            KeyCode::Right => named(["E", "right"]),
            KeyCode::Down => named(["S", "down"]),
            KeyCode::Left => named(["W", "left"]),
            KeyCode::Char(digit @ '1'..='9') => {
                let i = digit as usize - '1' as usize;
                (i < self.game.domain.alphabet().actions().len()).then_some(Action(i as u32))
            }
            KeyCode::Char(letter) => self.game.action(&letter.to_string()),
            _ => None,
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let parts = [Constraint::Length(1), Constraint::Min(8), Constraint::Length(2), Constraint::Length(1)];
        let [title, body, actions, footer] = Layout::vertical(parts).areas(frame.area());
        frame.render_widget(heading(self.game.domain), title);
        // The map has priority: text can be wrapped, a map cannot.
        let hidden = self.hidden();
        let map = hidden.as_ref().map_or(0, |text| picture(text).width() as u16 + FRAME);
        let left = PERCEPTS.min(body.width.saturating_sub(map)).max(FEWEST_PERCEPTS);
        let [left, right] = Layout::horizontal([Constraint::Length(left), Constraint::Min(0)]).areas(body);
        let [percepts, score] = Layout::vertical([Constraint::Min(5), Constraint::Length(6)]).areas(left);
        self.draw_percepts(frame, percepts);
        self.draw_score(frame, score);
        match hidden {
            Some(hidden) => draw_hidden(frame, right, &hidden),
            None => frame.render_widget(block("hidden"), right),
        }
        frame.render_widget(Paragraph::new(self.actions()).wrap(Wrap { trim: true }), actions);
        frame.render_widget(Line::from("Enter new episode · Tab hidden state · Esc quit").dim(), footer);
    }

    fn draw_percepts(&self, frame: &mut Frame<'_>, area: Rect) {
        let last = self.game.steps.last().map(|(_, outcome)| outcome.observation);
        let mut text = last.and_then(|o| self.game.domain.sketch(o)).map_or(Text::default(), |sketch| picture(&sketch));
        if !text.lines.is_empty() {
            text.push_line("");
        }
        text.push_line(
            self.game.words().unwrap_or_else(|| "Nothing yet: the first observation follows your first action.".to_string()),
        );
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).block(block("observation")), area);
    }

    fn draw_score(&self, frame: &mut Frame<'_>, area: Rect) {
        let game = &self.game;
        let names = game.domain.alphabet().actions();
        let took = |(a, outcome): &(Action, foretell::Outcome)| format!("{} {}", names[a.index()], reward(outcome.reward));
        let recent: Vec<String> = game.steps[game.steps.len().saturating_sub(RECENT)..].iter().map(took).collect();
        let mut lines = standing(game);
        match game.verdict() {
            Some(verdict) => lines.push(Line::from(format!("{verdict} Press Enter to play again.")).bold().fg(mood(game))),
            None => lines.push(Line::from(recent.join(" · ")).dim()),
        }
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block("score")), area);
    }

    /// The hidden state, if it is revealed or the episode is over.
    fn hidden(&self) -> Option<String> {
        (self.reveal || self.game.over().is_some()).then(|| self.game.picture())
    }

    fn actions(&self) -> Line<'_> {
        let mut spans: Vec<Span<'_>> = Vec::new();
        for (i, name) in self.game.domain.alphabet().actions().iter().enumerate() {
            spans.extend([format!(" {} ", i + 1).reversed(), format!(" {name}  ").into()]);
        }
        if self.action(KeyCode::Up).is_some() {
            spans.push("or the arrow keys".dim());
        }
        Line::from(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell::Seed;
    use foretell::domains::{self, Domain};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::KeyModifiers;

    fn screen(domain: &Domain) -> Screen<'_> {
        Screen { game: Game::new(domain, domain.horizon, Seed(3)), reveal: false }
    }

    fn press(screen: &mut Screen<'_>, codes: &[KeyCode]) {
        for &code in codes {
            assert_eq!(screen.press(KeyEvent::from(code)), Then::Continue);
        }
    }

    fn drawn(screen: &Screen<'_>) -> String {
        let mut terminal = Terminal::new(TestBackend::new(96, 32)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_shows_senses_map_and_score() {
        let pocman = domains::get("pocman").unwrap();
        let mut screen = screen(&pocman);
        press(&mut screen, &[KeyCode::Tab, KeyCode::Left, KeyCode::Left]);
        insta::assert_snapshot!(drawn(&screen));
    }

    #[test]
    fn what_is_hidden_is_hidden_until_asked_for_or_over() {
        let tiger = domains::get("tiger").unwrap();
        let mut screen = screen(&tiger);
        let is_shown = |screen: &Screen<'_>| drawn(screen).contains(&screen.game.picture());
        assert!(!is_shown(&screen));
        press(&mut screen, &[KeyCode::Tab]);
        assert!(is_shown(&screen));
        press(&mut screen, &[KeyCode::Tab]);
        press(&mut screen, &[KeyCode::Char('l'); 100]);
        assert!(screen.game.over().is_some() && is_shown(&screen));
    }

    #[test]
    fn keys_are_arrows_digits_and_letters_and_others_do_nothing() {
        let pocman = domains::get("pocman").unwrap();
        let mut screen = screen(&pocman);
        let keys =
            [KeyCode::Up, KeyCode::Char('2'), KeyCode::Char('w'), KeyCode::Char('S'), KeyCode::Char('x'), KeyCode::Char('9')];
        press(&mut screen, &keys);
        let actions: Vec<u32> = screen.game.steps.iter().map(|(a, _)| a.0).collect();
        assert_eq!(actions, [0, 1, 2, 3]);
        assert_eq!(screen.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Then::Quit);
        assert_eq!(screen.press(KeyEvent::from(KeyCode::Esc)), Then::Quit);
    }

    #[test]
    fn a_new_episode_begins_with_enter_only() {
        let tiger = domains::get("tiger").unwrap();
        let mut screen = screen(&tiger);
        press(&mut screen, &[KeyCode::Char('l'); 103]);
        assert_eq!((screen.game.episode, screen.game.steps.len()), (1, 100));
        press(&mut screen, &[KeyCode::Enter, KeyCode::Char('l')]);
        assert_eq!((screen.game.episode, screen.game.steps.len()), (2, 1));
    }
}
