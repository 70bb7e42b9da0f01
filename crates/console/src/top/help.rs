//! What the keys and the columns mean, over the picture.

use super::look::Look;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

const TEXT: &[(&str, &str)] = &[
    ("q, Esc, Ctrl-C", "quit"),
    ("p", "freeze what is shown, or go on"),
    ("s", "sort by what runs, what waits, or name"),
    ("/", "show names with these letters only"),
    ("Tab", "scroll the other table"),
    ("j k, ↓ ↑, PgDn PgUp", "scroll"),
    ("g G, Home End", "to the first row, to the last"),
    ("", ""),
    ("SLOTS", "executions that run, of how many may"),
    ("WAITING", "requests that have no slot yet"),
    ("STARTS/S", "requests admitted a second"),
    ("DONE/S, FAILED/S", "requests ended a second"),
];
const LEFT: usize = 21;

pub(super) fn draw(frame: &mut Frame<'_>, look: Look) {
    let line = |(key, meaning): &(&'static str, &'static str)| {
        let rest = " ".repeat(LEFT.saturating_sub(Span::raw(*key).width()));
        Line::from(vec![
            Span::raw(" "),
            Span::styled(*key, look.strong()),
            Span::raw(rest),
            Span::raw(*meaning),
            Span::raw(" "),
        ])
    };
    let lines: Vec<Line<'static>> = TEXT.iter().map(line).collect();
    let columns = lines.iter().map(Line::width).max().unwrap_or(0) + 2;
    let area = frame.area();
    let place = middle(area, columns, lines.len() + 2);
    let block = Block::bordered().title(" help ");
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(block), place);
}

fn middle(area: Rect, columns: usize, rows: usize) -> Rect {
    let columns = u16::try_from(columns).unwrap_or(u16::MAX).min(area.width);
    let rows = u16::try_from(rows).unwrap_or(u16::MAX).min(area.height);
    Rect {
        x: area.x + (area.width - columns) / 2,
        y: area.y + (area.height - rows) / 2,
        width: columns,
        height: rows,
    }
}
