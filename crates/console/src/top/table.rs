//! A table for a given width: drops the least important columns that do not fit. Knows no resource type.

use super::figures::{truncate, width};
use super::theme::Theme;
use ratatui::text::{Line, Span};

const GAP: usize = 2;
/// Names are not truncated below this width while a column can be dropped.
const NAME_MIN: usize = 12;

/// Names with figures beside them.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) names: Vec<String>,
    pub(crate) columns: Vec<Column>,
}

/// One column of figures.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) cells: Vec<Span<'static>>,
    /// The column with the lowest rank is dropped first.
    pub(crate) rank: u8,
    /// Left-aligned; figures are right-aligned.
    pub(crate) words: bool,
}

impl Column {
    fn width(&self) -> usize {
        let widest = self.cells.iter().map(Span::width).max();
        widest.unwrap_or(0).max(width(self.title))
    }

    /// Pads a cell to `columns`, with the gap before it.
    fn aligned(&self, span: Span<'static>, columns: usize) -> [Span<'static>; 3] {
        let rest = columns.saturating_sub(span.width());
        let (before, after) = if self.words { (0, rest) } else { (rest, 0) };
        let space = |columns| Span::raw(" ".repeat(columns));
        [space(GAP + before), span, space(after)]
    }
}

impl Table {
    /// The heading and `rows` rows starting at `first`.
    pub(crate) fn lines(
        mut self,
        columns: usize,
        theme: Theme,
        focused: bool,
        first: usize,
        rows: usize,
    ) -> Vec<Line<'static>> {
        let longest = self.names.iter().map(|name| width(name)).max();
        let longest = longest.unwrap_or(0).max(width(self.title));
        let mut taken = self.fit(columns, longest.min(NAME_MIN));
        taken = taken.min(columns);
        let name_columns = longest.min(columns - taken);
        let style = if focused { theme.bold() } else { theme.dim() };
        let widths: Vec<usize> = self.columns.iter().map(Column::width).collect();
        let mut heading = vec![left(
            &truncate(self.title, name_columns),
            name_columns,
            theme,
        )];
        for (column, width) in self.columns.iter().zip(&widths) {
            heading.extend(column.aligned(Span::raw(column.title), *width));
        }
        let mut lines = vec![Line::from(heading).style(style)];
        for (row, name) in self.names.iter().enumerate().skip(first).take(rows) {
            let mut spans = vec![left(&truncate(name, name_columns), name_columns, theme)];
            for (column, width) in self.columns.iter().zip(&widths) {
                spans.extend(column.aligned(column.cells[row].clone(), *width));
            }
            lines.push(Line::from(spans));
        }
        lines
    }

    /// Drops columns that do not fit beside a name; returns the width of the rest.
    fn fit(&mut self, columns: usize, name: usize) -> usize {
        loop {
            let taken = self.columns.iter().map(|column| column.width() + GAP);
            let taken: usize = taken.sum();
            if name + taken <= columns || self.columns.is_empty() {
                return taken;
            }
            let ranks = self.columns.iter().map(|column| column.rank);
            let lowest = ranks.min().unwrap_or_default();
            self.columns.retain(|column| column.rank != lowest);
        }
    }
}

fn left(text: &str, columns: usize, theme: Theme) -> Span<'static> {
    let rest = columns.saturating_sub(width(text));
    Span::styled(format!("{text}{}", " ".repeat(rest)), theme.plain())
}
