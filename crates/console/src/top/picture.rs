//! Styled lines as text: with escape codes if there are colours, else letters only.

use super::look::Look;
use anstyle::{AnsiColor, Effects};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

/// The lines, without what nobody sees at their ends.
pub(crate) fn text(lines: &[Line<'_>], look: Look) -> String {
    let lines = lines.iter().map(|line| {
        let plain = line.to_string();
        if !look.colors {
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

/// The colours that looks have.
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
