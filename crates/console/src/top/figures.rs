//! Formats numbers, bars and names to a width in terminal columns.

use crate::output::clean;
use ratatui::style::Style;
use ratatui::text::Span;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Placeholder for an unknown value.
pub(crate) const UNKNOWN: &str = "–";

/// Width of a text in terminal columns.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Truncates a text to `columns`, ending in `…`.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
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

/// Formats a count with thousands separators; from 100 million on in millions.
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

/// Formats a rate per second.
pub(crate) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => UNKNOWN.to_owned(),
        Some(rate) if rate < 99.95 => format!("{rate:.1}"),
        Some(rate) => count(rate.round() as u64),
    }
}

/// Draws the used share of a limit as a bar: empty only at 0, full only at the limit.
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

/// Draws the last values as a sparkline, newest on the right.
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
    fn truncate_counts_terminal_columns() {
        for (text, columns, expected) in [
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
            let cut = truncate(text, columns);
            assert_eq!(cut, expected);
            assert!(width(&cut) <= columns, "{cut} is wider than {columns}");
        }
    }

    #[test]
    fn counts_and_rates_are_formatted() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (99_999_999, "99,999,999"),
            (1_234_567_890, "1,234M"),
            (u64::MAX, "18,446,744,073,709M"),
        ] {
            assert_eq!(count(number), expected);
        }
        for (value, expected) in [
            (None, "–"),
            (Some(0.0), "0.0"),
            (Some(99.94), "99.9"),
            (Some(99.95), "100"),
            (Some(12_345.6), "12,346"),
        ] {
            assert_eq!(rate(value), expected);
        }
    }

    #[test]
    fn bar_is_empty_only_at_zero_and_full_only_at_the_limit() {
        for (used, limit, expected) in [
            (0, 20, "░░░░░░░░"),
            (1, 20, "█░░░░░░░"),
            (10, 20, "████░░░░"),
            (19, 20, "███████░"),
            (20, 20, "████████"),
            (7, 5, "████████"),
            (0, 0, "░░░░░░░░"),
            (1, 0, "████████"),
        ] {
            assert_eq!(bar(used, limit, 8), expected, "{used} of {limit}");
        }
    }

    #[test]
    fn sparkline_scales_to_its_highest_value() {
        let values = [0.0, 1.0, 2.0, 4.0, 8.0];
        assert_eq!(sparkline(values.into_iter(), 10), " ▁▂▄█");
        assert_eq!(sparkline(values.into_iter(), 2), "▄█");
        assert_eq!(sparkline([0.0; 3].into_iter(), 5), "   ");
    }
}
