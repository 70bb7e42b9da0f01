//! The help overlay: keys and columns.

use super::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

const TEXT: &[(&str, &str)] = &[
    ("q, Esc, Ctrl-C", "quit"),
    ("p", "freeze or resume the display"),
    ("s", "sort by running, waiting or name"),
    ("/", "filter by name"),
    ("Tab", "scroll the other table"),
    ("j k, ↓ ↑, PgDn PgUp", "scroll"),
    ("g G, Home End", "go to the first or last row"),
    ("", ""),
    ("SLOTS", "running executions / limit"),
    ("WAITING", "requests waiting for a slot"),
    ("STARTS/S", "requests admitted per second"),
    ("DONE/S, FAILED/S", "requests finished per second"),
];
const LEFT: usize = 21;

pub(super) fn draw(frame: &mut Frame<'_>, theme: Theme) {
    let line = |(key, meaning): &(&'static str, &'static str)| {
        let rest = " ".repeat(LEFT.saturating_sub(Span::raw(*key).width()));
        Line::from(vec![
            Span::raw(" "),
            Span::styled(*key, theme.bold()),
            Span::raw(rest),
            Span::raw(*meaning),
            Span::raw(" "),
        ])
    };
    let lines: Vec<Line<'static>> = TEXT.iter().map(line).collect();
    let columns = lines.iter().map(Line::width).max().unwrap_or(0) + 2;
    let area = frame.area();
    let popup = centered(area, columns, lines.len() + 2);
    let block = Block::bordered().title(" help ");
    frame.render_widget(Clear, popup);
    frame.render_widget(Paragraph::new(lines).block(block), popup);
}

fn centered(area: Rect, columns: usize, rows: usize) -> Rect {
    let columns = u16::try_from(columns).unwrap_or(u16::MAX).min(area.width);
    let rows = u16::try_from(rows).unwrap_or(u16::MAX).min(area.height);
    Rect {
        x: area.x + (area.width - columns) / 2,
        y: area.y + (area.height - rows) / 2,
        width: columns,
        height: rows,
    }
}
