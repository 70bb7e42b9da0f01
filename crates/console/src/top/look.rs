//! Styles by meaning. Without colours there are bold and reversed letters left.

use ratatui::style::{Color, Modifier, Style};

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) colors: bool,
}

impl Look {
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

    /// What is there for whoever looks for it.
    pub(crate) fn quiet(self) -> Style {
        self.colored(Color::DarkGray, Modifier::empty())
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What must not be missed.
    pub(crate) fn loud(self) -> Style {
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
