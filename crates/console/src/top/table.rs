//! Rows under headings in so many columns: what does not fit is left out, the least important first. Knows no noun.

use super::figures::{cut, width};
use super::look::Look;
use ratatui::text::{Line, Span};

const GAP: usize = 2;
/// A name is not cut shorter than this while something else can be left out.
const NAME_MIN: usize = 12;

/// Names with figures beside them.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) names: Vec<String>,
    pub(crate) columns: Vec<Column>,
}

/// One figure of every row.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) cells: Vec<Span<'static>>,
    /// The lowest is left out first.
    pub(crate) rank: u8,
    /// Words begin on the left, figures end on the right.
    pub(crate) words: bool,
}

impl Column {
    fn width(&self) -> usize {
        let widest = self.cells.iter().map(Span::width).max();
        widest.unwrap_or(0).max(width(self.title))
    }

    /// What stands in so many columns, with the gap before it.
    fn aligned(&self, span: Span<'static>, columns: usize) -> [Span<'static>; 3] {
        let rest = columns.saturating_sub(span.width());
        let (before, after) = if self.words { (0, rest) } else { (rest, 0) };
        let space = |columns| Span::raw(" ".repeat(columns));
        [space(GAP + before), span, space(after)]
    }
}

impl Table {
    /// The heading, and so many rows from the first on.
    pub(crate) fn lines(
        mut self,
        columns: usize,
        look: Look,
        focused: bool,
        first: usize,
        rows: usize,
    ) -> Vec<Line<'static>> {
        let longest = self.names.iter().map(|name| width(name)).max();
        let longest = longest.unwrap_or(0).max(width(self.title));
        let mut taken = self.fit(columns, longest.min(NAME_MIN));
        taken = taken.min(columns);
        let name_columns = longest.min(columns - taken);
        let style = if focused { look.strong() } else { look.quiet() };
        let widths: Vec<usize> = self.columns.iter().map(Column::width).collect();
        let mut heading = vec![left(&cut(self.title, name_columns), name_columns, look)];
        for (column, width) in self.columns.iter().zip(&widths) {
            heading.extend(column.aligned(Span::raw(column.title), *width));
        }
        let mut lines = vec![Line::from(heading).style(style)];
        for (row, name) in self.names.iter().enumerate().skip(first).take(rows) {
            let mut spans = vec![left(&cut(name, name_columns), name_columns, look)];
            for (column, width) in self.columns.iter().zip(&widths) {
                spans.extend(column.aligned(column.cells[row].clone(), *width));
            }
            lines.push(Line::from(spans));
        }
        lines
    }

    /// Leaves out what does not fit beside a name, and says how much the rest takes.
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

fn left(text: &str, columns: usize, look: Look) -> Span<'static> {
    let rest = columns.saturating_sub(width(text));
    Span::styled(format!("{text}{}", " ".repeat(rest)), look.plain())
}
