//! Common parts of the terminal screens.

pub mod play;
pub mod watch;

use std::io;

use foretell::Domain;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, BorderType, Padding, Paragraph};
use ratatui::{DefaultTerminal, Frame};

use crate::game::{Game, reward};

/// Columns and rows of a block around its text.
const FRAME: u16 = 4;
const FRAME_ROWS: u16 = 2;

/// Whether to continue.
#[derive(Debug, PartialEq)]
enum Then {
    Continue,
    Quit,
}

/// Takes over the terminal, and always restores it.
fn on_terminal(show: impl FnOnce(&mut DefaultTerminal) -> io::Result<()>) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal);
    ratatui::restore();
    shown
}

/// The key that was pressed, if that is what happened.
fn pressed(event: Event) -> Option<KeyEvent> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(key),
        _ => None,
    }
}

/// Escape and Ctrl-C.
fn quits(key: KeyEvent) -> bool {
    key.code == KeyCode::Esc || key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// The name of a domain and its description.
fn heading(domain: &Domain) -> Line<'_> {
    Line::from(vec![domain.name.as_str().bold(), "  ".into(), domain.story.as_str().dim()])
}

/// Two lines with the state of the game.
fn standing(game: &Game<'_>) -> Vec<Line<'static>> {
    let best = game.best().map_or("–".to_string(), reward);
    vec![
        Line::from(format!("episode {}   step {} of {}", game.episode, game.steps.len(), game.max_steps())),
        Line::from(vec!["total ".into(), reward(game.total()).bold(), format!("   best {best}").into()]),
    ]
}

/// The colour of the verdict on a game.
fn mood(game: &Game<'_>) -> Color {
    if game.total() > 0.0 { Color::Green } else { Color::Red }
}

fn block(title: &str) -> Block<'_> {
    Block::bordered().border_type(BorderType::Rounded).padding(Padding::horizontal(1)).title(format!(" {title} "))
}

/// Draws the hidden state; of a map that is too large, the part around the agent.
fn draw_hidden(frame: &mut Frame<'_>, area: Rect, hidden: &str) {
    let text = picture(hidden);
    let size = [text.height() as u16, text.width() as u16];
    let shown = [area.height.saturating_sub(FRAME_ROWS), area.width.saturating_sub(FRAME)];
    let [row, column] = agent(hidden).unwrap_or_default();
    let (down, right) = (first_shown(row, size[0], shown[0]), first_shown(column, size[1], shown[1]));
    frame.render_widget(Paragraph::new(text).scroll((down, right)).block(block("hidden state")), area);
}

/// The row and the column, on the screen, of the agent on a map.
fn agent(map: &str) -> Option<[u16; 2]> {
    let find = |line: &str| line.chars().position(|mark| matches!(mark, 'P' | '@'));
    let found = map.lines().enumerate().find_map(|(row, line)| Some([row as u16, 2 * find(line)? as u16]));
    found.filter(|_| is_map(map))
}

/// The first of `size` rows to show where there is room for `shown`, with `here` in the middle if it can be.
fn first_shown(here: u16, size: u16, shown: u16) -> u16 {
    here.saturating_sub(shown / 2).min(size.saturating_sub(shown))
}

/// Whether the text is a map: a single line is the name of a state.
fn is_map(picture: &str) -> bool {
    picture.trim_end().contains('\n')
}

/// A picture in colours; the name of a state is left as it is.
fn picture(text: &str) -> Text<'static> {
    if !is_map(text) {
        return Text::from(text.to_string());
    }
    let line = |line: &str| Line::from(line.chars().map(cell).collect::<Vec<_>>());
    Text::from(text.lines().map(line).collect::<Vec<_>>())
}

/// A mark of a picture, two columns wide, since the cells of a terminal are twice as high as wide.
fn cell(mark: char) -> Span<'static> {
    let bright = |color| Style::new().fg(color).add_modifier(Modifier::BOLD);
    let wall = |color| ("██".to_string(), Style::new().fg(color));
    let (shown, style) = match mark {
        '#' | '0' => wall(Color::Blue),
        '1' => wall(Color::DarkGray),
        '2' => wall(Color::Red),
        '.' => (" ·".to_string(), Style::new().fg(Color::Yellow)),
        'o' => (" ●".to_string(), bright(Color::Yellow)),
        'P' | '@' => (" ☻".to_string(), bright(Color::LightYellow)),
        'A'..='D' => (
            " ᗣ".to_string(),
            bright([Color::LightRed, Color::LightMagenta, Color::LightCyan, Color::LightGreen][mark as usize - 'A' as usize]),
        ),
        'a'..='d' => (" ᗣ".to_string(), Style::new().fg(Color::Blue)),
        'X' => (" ✖".to_string(), bright(Color::LightRed)),
        other => (format!(" {other}"), bright(Color::Green)),
    };
    Span::styled(shown, style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// What is drawn on a small screen, without its frame.
    fn drawn(hidden: &str) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(12, 5)).unwrap();
        terminal.draw(|frame| draw_hidden(frame, frame.area(), hidden)).unwrap();
        let shown = terminal.backend().to_string();
        let inside = |line: &str| line.split('│').nth(1).map(|inside| inside.trim_end().to_string());
        shown.lines().filter_map(inside).collect()
    }

    #[test]
    fn of_a_large_map_the_part_around_the_agent_is_shown() {
        let map = |row: usize, column: usize| {
            let mark = |r, c| if (r, c) == (row, column) { '@' } else { ' ' };
            let line = |r| (0..9).map(|c| mark(r, c)).collect::<String>() + "#";
            (0..9).map(|r| line(r) + "\n").collect::<String>()
        };
        assert_eq!(drawn(&map(0, 0)), ["  ☻", "", ""]);
        assert_eq!(drawn(&map(4, 4)), ["", "      ☻", ""]);
        assert_eq!(drawn(&map(8, 8)), ["       ██", "       ██", "      ☻██"]);
        assert_eq!(drawn("a@P"), [" a@P", "", ""], "the name of a state is not a map");
    }
}
