//! Renders styled lines as text, with escape codes if colours are on.

use super::theme::Theme;
use anstyle::{AnsiColor, Effects};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

/// Renders the lines without trailing spaces.
pub(crate) fn to_text(lines: &[Line<'_>], theme: Theme) -> String {
    let lines = lines.iter().map(|line| {
        let plain = line.to_string();
        if !theme.colors {
            return plain.trim_end().to_owned();
        }
        let spans = line.spans.iter().filter(|span| !span.content.is_empty());
        let painted: String = spans
            .map(|span| painted(&span.content, line.style.patch(span.style)))
            .collect();
        painted.trim_end().to_owned()
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

fn painted(text: &str, style: Style) -> String {
    let mut codes = anstyle::Style::new().fg_color(style.fg.and_then(color).map(Into::into));
    for (modifier, effect) in [
        (Modifier::BOLD, Effects::BOLD),
        (Modifier::REVERSED, Effects::INVERT),
    ] {
        if style.add_modifier.contains(modifier) {
            codes = codes.effects(codes.get_effects() | effect);
        }
    }
    format!("{codes}{text}{codes:#}")
}

/// Maps the colours of [`Theme`] to ANSI.
fn color(color: Color) -> Option<AnsiColor> {
    match color {
        Color::Green => Some(AnsiColor::Green),
        Color::Cyan => Some(AnsiColor::Cyan),
        Color::Yellow => Some(AnsiColor::Yellow),
        Color::Red => Some(AnsiColor::Red),
        Color::DarkGray => Some(AnsiColor::BrightBlack),
        _ => None,
    }
}
