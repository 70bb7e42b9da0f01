//! Styles by meaning. Without colours, bold and reversed text remain.

use ratatui::style::{Color, Modifier, Style};

/// The styles of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) colors: bool,
}

impl Theme {
    pub(crate) const fn new(colors: bool) -> Self {
        Self { colors }
    }

    pub(crate) const fn plain(self) -> Style {
        Style::new()
    }

    pub(crate) fn good(self) -> Style {
        self.colored(Color::Green, Modifier::empty())
    }

    pub(crate) fn busy(self) -> Style {
        self.colored(Color::Cyan, Modifier::empty())
    }

    pub(crate) fn warn(self) -> Style {
        self.colored(Color::Yellow, Modifier::BOLD)
    }

    pub(crate) fn bad(self) -> Style {
        self.colored(Color::Red, Modifier::BOLD)
    }

    /// Secondary information.
    pub(crate) fn dim(self) -> Style {
        self.colored(Color::DarkGray, Modifier::empty())
    }

    pub(crate) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Outages.
    pub(crate) fn alert(self) -> Style {
        let style = self.colored(Color::Red, Modifier::BOLD);
        style.add_modifier(Modifier::REVERSED)
    }

    fn colored(self, color: Color, instead: Modifier) -> Style {
        if self.colors {
            Style::new().fg(color)
        } else {
            Style::new().add_modifier(instead)
        }
    }
}
