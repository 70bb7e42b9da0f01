//! The user's choices: sort order, filter and scroll position. Pure: keys in, choices out.

use super::model::TopModel;
use leasehold_client::api::overview::QueueUse;
use leasehold_client::api::workspace::WorkspaceState;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Reverse;

/// Maximum length of a filter.
const FILTER_MAX_CHARS: usize = 200;
const PAGE: usize = 10;

/// The user's choices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) sort: Sort,
    pub(crate) focus: Focus,
    pub(crate) filter: String,
    /// Whether the filter is being typed.
    pub(crate) typing: bool,
    pub(crate) frozen: bool,
    pub(crate) help: bool,
    first_workspace: usize,
    first_queue: usize,
}

/// The sort order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Running,
    Waiting,
    Name,
}

/// Which table scrolls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Focus {
    #[default]
    Workspaces,
    Queues,
}

/// The action that a key requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewAction {
    Continue,
    Quit,
    /// Ctrl-Z.
    Suspend,
}

impl Sort {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Name => "name",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Running => Self::Waiting,
            Self::Waiting => Self::Name,
            Self::Name => Self::Running,
        }
    }
}

impl View {
    /// Everything, sorted by name.
    pub(crate) fn by_name() -> Self {
        Self {
            sort: Sort::Name,
            ..Self::default()
        }
    }

    /// Handles a key.
    pub(crate) fn press(&mut self, key: KeyEvent, model: &TopModel) -> ViewAction {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => ViewAction::Quit,
                KeyCode::Char('z') => ViewAction::Suspend,
                _ => ViewAction::Continue,
            };
        }
        if self.typing {
            self.edit_filter(key.code);
        } else if self.help {
            // Any key closes the help.
            self.help = false;
        } else if self.command(key.code) == ViewAction::Quit {
            return ViewAction::Quit;
        }
        self.clamp_scroll(model);
        ViewAction::Continue
    }

    fn edit_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(typed) if self.filter.chars().count() < FILTER_MAX_CHARS => {
                self.filter.push(typed);
            }
            _ => {}
        }
    }

    fn command(&mut self, key: KeyCode) -> ViewAction {
        match key {
            KeyCode::Char('q') => return ViewAction::Quit,
            KeyCode::Esc if self.filter.is_empty() => return ViewAction::Quit,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('p') => self.frozen = !self.frozen,
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                self.first_workspace = 0;
            }
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('?') => self.help = true,
            KeyCode::Tab => {
                self.focus = match self.focus {
                    Focus::Workspaces => Focus::Queues,
                    Focus::Queues => Focus::Workspaces,
                };
            }
            KeyCode::Char('j') | KeyCode::Down => self.scroll(1, true),
            KeyCode::Char('k') | KeyCode::Up => self.scroll(1, false),
            KeyCode::PageDown => self.scroll(PAGE, true),
            KeyCode::PageUp => self.scroll(PAGE, false),
            KeyCode::Char('g') | KeyCode::Home => self.scroll(usize::MAX, false),
            KeyCode::Char('G') | KeyCode::End => self.scroll(usize::MAX, true),
            _ => {}
        }
        ViewAction::Continue
    }

    fn scroll(&mut self, rows: usize, down: bool) {
        let first = match self.focus {
            Focus::Workspaces => &mut self.first_workspace,
            Focus::Queues => &mut self.first_queue,
        };
        *first = if down {
            first.saturating_add(rows)
        } else {
            first.saturating_sub(rows)
        };
    }

    /// Limits the scroll position to the last row.
    pub(crate) fn clamp_scroll(&mut self, model: &TopModel) {
        let workspaces = self.workspaces(model).len();
        let queues = self.queues(model).len();
        self.first_workspace = self.first_workspace.min(workspaces.saturating_sub(1));
        self.first_queue = self.first_queue.min(queues.saturating_sub(1));
    }

    /// The first visible row, so that the last page is full.
    pub(crate) fn first(&self, focus: Focus, rows: usize, page_size: usize) -> usize {
        let first = match focus {
            Focus::Workspaces => self.first_workspace,
            Focus::Queues => self.first_queue,
        };
        first.min(rows.saturating_sub(page_size))
    }

    /// The filtered workspaces in order.
    pub(crate) fn workspaces<'a>(&self, model: &'a TopModel) -> Vec<&'a WorkspaceState> {
        let all = model.overview.iter().flat_map(|overview| &overview.busiest);
        let mut some: Vec<_> = all
            .filter(|state| self.matches_filter(&state.workspace.name))
            .collect();
        let name = |state: &&WorkspaceState| state.workspace.name.clone();
        match self.sort {
            Sort::Running => some.sort_by_key(|state| {
                (
                    Reverse(state.slots.in_use),
                    Reverse(state.requests.pending),
                    name(state),
                )
            }),
            Sort::Waiting => {
                some.sort_by_key(|state| (Reverse(state.requests.pending), name(state)))
            }
            Sort::Name => some.sort_by_key(name),
        }
        some
    }

    /// The filtered queues in order.
    pub(crate) fn queues<'a>(&self, model: &'a TopModel) -> Vec<&'a QueueUse> {
        let all = model.overview.iter().flat_map(|overview| &overview.queues);
        let mut some: Vec<_> = all
            .filter(|queue| self.matches_filter(&queue.name))
            .collect();
        let name = |queue: &&QueueUse| queue.name.clone();
        match self.sort {
            Sort::Running => some
                .sort_by_key(|queue| (Reverse(queue.running), Reverse(queue.waiting), name(queue))),
            Sort::Waiting => some.sort_by_key(|queue| (Reverse(queue.waiting), name(queue))),
            Sort::Name => some.sort_by_key(name),
        }
        some
    }

    fn matches_filter(&self, name: &str) -> bool {
        let wanted = self.filter.trim();
        wanted.is_empty() || name.to_lowercase().contains(&wanted.to_lowercase())
    }
}
