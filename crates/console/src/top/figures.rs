//! Figures, bars and names in so many columns. Knows how wide letters are, and nothing else.

use crate::output::clean;
use ratatui::style::Style;
use ratatui::text::Span;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// What is shown for what is not known.
pub(crate) const UNKNOWN: &str = "–";

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// At most so many columns of a text, with … where something was left out.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let text = clean(text);
    if width(&text) <= columns {
        return text;
    }
    let (mut kept, mut used) = (String::new(), 0);
    for letter in Span::raw(&text).styled_graphemes(Style::new()) {
        let wide = width(letter.symbol);
        if used + wide + 1 > columns {
            break;
        }
        kept.push_str(letter.symbol);
        used += wide;
    }
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// A count with a mark every three digits; from a hundred million on in millions.
pub(crate) fn count(number: u64) -> String {
    if number >= 100_000_000 {
        return format!("{}M", grouped(number / 1_000_000));
    }
    grouped(number)
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many a second, as precise as is of use.
pub(crate) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => UNKNOWN.to_owned(),
        Some(rate) if rate < 99.95 => format!("{rate:.1}"),
        Some(rate) => count(rate.round() as u64),
    }
}

/// How much of a limit is used, as a bar. Something used shows, and only a full one is full.
pub(crate) fn bar(used: u32, limit: u32, columns: usize) -> String {
    let (used, limit) = (used as usize, limit as usize);
    let filled = match (used, limit) {
        (0, _) => 0,
        (_, 0) => columns,
        _ if used >= limit => columns,
        _ => (used * columns / limit).clamp(1, columns.saturating_sub(1)),
    };
    format!("{}{}", "█".repeat(filled), "░".repeat(columns - filled))
}

/// The last values as a row of columns of different height, the newest on the right.
pub(crate) fn sparkline(values: impl DoubleEndedIterator<Item = f64>, columns: usize) -> String {
    let mut last: Vec<f64> = values.rev().take(columns).collect();
    last.reverse();
    let highest = last.iter().copied().fold(0.0, f64::max);
    let level = |value: f64| {
        if value <= 0.0 {
            return ' ';
        }
        let level = (value / highest * LEVELS.len() as f64).ceil() as usize;
        LEVELS[level.clamp(1, LEVELS.len()) - 1]
    };
    last.into_iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_by_what_they_take_on_the_screen() {
        for (text, columns, shown) in [
            ("acme", 4, "acme"),
            ("acme-long", 5, "acme…"),
            ("株式会社", 8, "株式会社"),
            ("株式会社", 7, "株式会…"),
            ("株式会社", 6, "株式…"),
            ("a\u{1b}[2J", 9, "a\u{fffd}[2J"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
        ] {
            let cut = cut(text, columns);
            assert_eq!(cut, shown);
            assert!(width(&cut) <= columns, "{cut} is wider than {columns}");
        }
    }

    #[test]
    fn figures_are_short_and_exact_while_they_can_be() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (99_999_999, "99,999,999"),
            (1_234_567_890, "1,234M"),
            (u64::MAX, "18,446,744,073,709M"),
        ] {
            assert_eq!(count(number), shown);
        }
        for (value, shown) in [
            (None, "–"),
            (Some(0.0), "0.0"),
            (Some(99.94), "99.9"),
            (Some(99.95), "100"),
            (Some(12_345.6), "12,346"),
        ] {
            assert_eq!(rate(value), shown);
        }
    }

    #[test]
    fn a_bar_is_empty_only_when_nothing_runs_and_full_only_at_the_limit() {
        for (used, limit, shown) in [
            (0, 20, "░░░░░░░░"),
            (1, 20, "█░░░░░░░"),
            (10, 20, "████░░░░"),
            (19, 20, "███████░"),
            (20, 20, "████████"),
            (7, 5, "████████"),
            (0, 0, "░░░░░░░░"),
            (1, 0, "████████"),
        ] {
            assert_eq!(bar(used, limit, 8), shown, "{used} of {limit}");
        }
    }

    #[test]
    fn a_sparkline_is_as_high_as_its_highest() {
        let values = [0.0, 1.0, 2.0, 4.0, 8.0];
        assert_eq!(sparkline(values.into_iter(), 10), " ▁▂▄█");
        assert_eq!(sparkline(values.into_iter(), 2), "▄█");
        assert_eq!(sparkline([0.0; 3].into_iter(), 5), "   ");
    }
}
