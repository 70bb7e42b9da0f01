//! The layout of the screen: header, tables and key bar.

use super::figures::{truncate, width};
use super::model::TopModel;
use super::tables::{self, TableArea};
use super::theme::Theme;
use super::view::{Focus, View};
use super::{head, help};
use ratatui::Frame;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// From this width on the tables are side by side.
const WIDE: usize = 130;
const BETWEEN: usize = 4;

/// Draws the screen.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &TopModel, view: &View, theme: Theme) {
    let screen = frame.area();
    let (columns, rows) = (usize::from(screen.width), usize::from(screen.height));
    let mut lines = head::lines(model, view, theme, columns);
    lines.push(Line::default());
    let left = rows.saturating_sub(lines.len() + 1);
    let area = TableArea {
        columns,
        lines: left,
        theme,
        scrolls: true,
    };
    lines.extend(body(model, view, area));
    // The key bar is always the last line.
    lines.truncate(rows.saturating_sub(1));
    lines.resize(rows.saturating_sub(1), Line::default());
    lines.push(keys(view, theme, columns));
    frame.render_widget(Paragraph::new(lines), screen);
    if view.help {
        help::draw(frame, theme);
    }
}

/// All lines with every table row, without a height limit.
pub(crate) fn whole(
    model: &TopModel,
    view: &View,
    theme: Theme,
    columns: usize,
) -> Vec<Line<'static>> {
    let mut lines = head::lines(model, view, theme, columns);
    lines.push(Line::default());
    let rows = tables::workspace_lines(model, view) + 1 + tables::queue_lines(model, view);
    let area = TableArea {
        columns,
        lines: rows,
        theme,
        scrolls: false,
    };
    lines.extend(body(model, view, area));
    lines
}

fn body(model: &TopModel, view: &View, area: TableArea) -> Vec<Line<'static>> {
    if area.columns >= WIDE {
        return beside(model, view, area);
    }
    let (workspaces, queues) = shares(
        tables::workspace_lines(model, view),
        tables::queue_lines(model, view),
        area.lines.saturating_sub(1),
    );
    let part = |lines| TableArea { lines, ..area };
    let mut lines = tables::workspaces(model, view, part(workspaces));
    lines.push(Line::default());
    lines.extend(tables::queues(model, view, part(queues)));
    lines
}

/// Splits the available lines between two tables; the second gets at least a third if both do not fit.
fn shares(first: usize, second: usize, all: usize) -> (usize, usize) {
    if first + second <= all {
        return (first, second);
    }
    let second = second.min((all / 3).max(all.saturating_sub(first)));
    (all - second, second)
}

fn beside(model: &TopModel, view: &View, area: TableArea) -> Vec<Line<'static>> {
    let right = area.columns / 3;
    let left = area.columns - right - BETWEEN;
    let part = |columns| TableArea { columns, ..area };
    let workspaces = tables::workspaces(model, view, part(left));
    let mut queues = tables::queues(model, view, part(right)).into_iter();
    let rows = workspaces.len().max(queues.len());
    let mut workspaces = workspaces.into_iter();
    let mut lines = Vec::new();
    for _ in 0..rows {
        let one = workspaces.next().unwrap_or_default();
        let rest = (left + BETWEEN).saturating_sub(one.width());
        let mut spans = styled(one);
        spans.push(Span::raw(" ".repeat(rest)));
        spans.extend(styled(queues.next().unwrap_or_default()));
        lines.push(Line::from(spans));
    }
    lines
}

/// A line's spans with the line's own style in each.
fn styled(line: Line<'static>) -> Vec<Span<'static>> {
    let style = line.style;
    let spans = line.spans.into_iter();
    spans
        .map(|span| Span::styled(span.content, style.patch(span.style)))
        .collect()
}

fn keys(view: &View, theme: Theme, columns: usize) -> Line<'static> {
    if view.typing {
        let text = format!("/{}▏", view.filter);
        let hint = "  Enter applies, Esc clears";
        let hint = if width(&text) + width(hint) <= columns {
            hint
        } else {
            ""
        };
        return Line::from(vec![
            Span::styled(truncate(&text, columns), theme.bold()),
            Span::styled(hint, theme.dim()),
        ]);
    }
    let freeze = if view.frozen { "resume" } else { "freeze" };
    let other = match view.focus {
        Focus::Workspaces => "queues",
        Focus::Queues => "workspaces",
    };
    let filter = match view.filter.as_str() {
        "" => "filter".to_owned(),
        set => format!("filter: {}", truncate(set, 20)),
    };
    let items = [
        ("q", "quit".to_owned()),
        ("?", "help".to_owned()),
        ("p", freeze.to_owned()),
        ("s", format!("sort: {}", view.sort.word())),
        ("/", filter),
        ("Tab", format!("to {other}")),
    ];
    let mut line = Line::default();
    for (key, word) in items {
        let gap = if line.spans.is_empty() { "" } else { "   " };
        if line.width() + gap.len() + width(key) + 1 + width(&word) > columns {
            break;
        }
        line.push_span(Span::raw(gap));
        line.push_span(Span::styled(key, theme.bold()));
        line.push_span(Span::styled(format!(" {word}"), theme.dim()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_share_the_available_lines() {
        for (first, second, all, shared) in [
            (5, 4, 20, (5, 4)),
            (50, 4, 20, (16, 4)),
            (50, 50, 21, (14, 7)),
            (3, 50, 21, (3, 18)),
            (50, 50, 0, (0, 0)),
            (50, 50, 1, (1, 0)),
        ] {
            assert_eq!(shares(first, second, all), shared);
        }
    }
}
