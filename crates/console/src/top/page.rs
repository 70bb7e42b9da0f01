//! The whole picture: the head, the tables, the keys. Knows how much room each gets, and nothing of what they say.

use super::figures::{cut, width};
use super::look::Look;
use super::model::Model;
use super::tables::{self, Room};
use super::view::{Focus, View};
use super::{head, help};
use ratatui::Frame;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// From here on the tables stand side by side.
const WIDE: usize = 130;
const BETWEEN: usize = 4;

/// Draws it on a terminal.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model, view: &View, look: Look) {
    let area = frame.area();
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    let mut lines = head::lines(model, view, look, columns);
    lines.push(Line::default());
    let left = rows.saturating_sub(lines.len() + 1);
    let room = Room {
        columns,
        lines: left,
        look,
        scrolls: true,
    };
    lines.extend(body(model, view, room));
    // The keys are in the last line, whatever else there is room for.
    lines.truncate(rows.saturating_sub(1));
    lines.resize(rows.saturating_sub(1), Line::default());
    lines.push(keys(view, look, columns));
    frame.render_widget(Paragraph::new(lines), area);
    if view.help {
        help::draw(frame, look);
    }
}

/// The picture with every row, as long as that is.
pub(crate) fn whole(model: &Model, view: &View, look: Look, columns: usize) -> Vec<Line<'static>> {
    let mut lines = head::lines(model, view, look, columns);
    lines.push(Line::default());
    let rows = tables::workspace_lines(model, view) + 1 + tables::queue_lines(model, view);
    let room = Room {
        columns,
        lines: rows,
        look,
        scrolls: false,
    };
    lines.extend(body(model, view, room));
    lines
}

fn body(model: &Model, view: &View, room: Room) -> Vec<Line<'static>> {
    if room.columns >= WIDE {
        return beside(model, view, room);
    }
    let (workspaces, queues) = shares(
        tables::workspace_lines(model, view),
        tables::queue_lines(model, view),
        room.lines.saturating_sub(1),
    );
    let part = |lines| Room { lines, ..room };
    let mut lines = tables::workspaces(model, view, part(workspaces));
    lines.push(Line::default());
    lines.extend(tables::queues(model, view, part(queues)));
    lines
}

/// What each of two gets of what there is: what it likes, else at least a third for the second.
fn shares(first: usize, second: usize, all: usize) -> (usize, usize) {
    if first + second <= all {
        return (first, second);
    }
    let second = second.min((all / 3).max(all.saturating_sub(first)));
    (all - second, second)
}

fn beside(model: &Model, view: &View, room: Room) -> Vec<Line<'static>> {
    let right = room.columns / 3;
    let left = room.columns - right - BETWEEN;
    let part = |columns| Room { columns, ..room };
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

fn keys(view: &View, look: Look, columns: usize) -> Line<'static> {
    if view.typing {
        let text = format!("/{}▏", view.filter);
        let hint = "  Enter keeps it, Esc clears it";
        let hint = if width(&text) + width(hint) <= columns {
            hint
        } else {
            ""
        };
        return Line::from(vec![
            Span::styled(cut(&text, columns), look.strong()),
            Span::styled(hint, look.quiet()),
        ]);
    }
    let freeze = if view.frozen { "go on" } else { "freeze" };
    let other = match view.focus {
        Focus::Workspaces => "queues",
        Focus::Queues => "workspaces",
    };
    let filter = match view.filter.as_str() {
        "" => "filter".to_owned(),
        set => format!("filter: {}", cut(set, 20)),
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
        line.push_span(Span::styled(key, look.strong()));
        line.push_span(Span::styled(format!(" {word}"), look.quiet()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tables_share_what_room_there_is() {
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
