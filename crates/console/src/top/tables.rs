//! The two tables: workspaces with their slots, queues with their jobs. An empty table shows a hint.

use super::figures::{bar, count, rate, truncate};
use super::model::TopModel;
use super::table::{Column, Table};
use super::theme::Theme;
use super::view::{Focus, View};
use leasehold_client::api::overview::QueueUse;
use leasehold_client::api::workspace::WorkspaceState;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const BAR: usize = 8;

/// The area of a table.
#[derive(Clone, Copy)]
pub(crate) struct TableArea {
    pub(crate) columns: usize,
    pub(crate) lines: usize,
    pub(crate) theme: Theme,
    /// Whether the tables scroll and the focused one is highlighted.
    pub(crate) scrolls: bool,
}

/// Preferred height of the workspace table.
pub(crate) fn workspace_lines(model: &TopModel, view: &View) -> usize {
    let rows = view.workspaces(model).len();
    let notes = usize::from(others(model).is_some()) + usize::from(hint(model).is_some());
    1 + rows.max(1) + notes
}

/// Preferred height of the queue table.
pub(crate) fn queue_lines(model: &TopModel, view: &View) -> usize {
    1 + view.queues(model).len().max(1)
}

/// The workspace table.
pub(crate) fn workspaces(model: &TopModel, view: &View, area: TableArea) -> Vec<Line<'static>> {
    let states = view.workspaces(model);
    if states.is_empty() {
        return empty("WORKSPACE", no_workspace(model, view), area);
    }
    let table = Table {
        title: "WORKSPACE",
        names: names(states.iter().map(|state| &state.workspace.name)),
        columns: workspace_columns(model, &states, area.theme),
    };
    let notes = [others(model), hint(model)].into_iter().flatten().collect();
    filled(table, view, Focus::Workspaces, area, notes)
}

/// The queue table.
pub(crate) fn queues(model: &TopModel, view: &View, area: TableArea) -> Vec<Line<'static>> {
    let queues = view.queues(model);
    if queues.is_empty() {
        return empty("QUEUE", no_queue(model, view), area);
    }
    let table = Table {
        title: "QUEUE",
        names: names(queues.iter().map(|queue| &queue.name)),
        columns: queue_columns(&queues, area.theme),
    };
    filled(table, view, Focus::Queues, area, Vec::new())
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.map(|name| truncate(name, 60)).collect()
}

fn workspace_columns(model: &TopModel, states: &[&WorkspaceState], theme: Theme) -> Vec<Column> {
    let rates: Vec<_> = states
        .iter()
        .map(|state| model.rates_of(state.workspace.id))
        .collect();
    let each = |title, rank, cell: &dyn Fn(&WorkspaceState) -> Span<'static>| Column {
        title,
        rank,
        words: title == "PLAN",
        cells: states.iter().map(|state| cell(state)).collect(),
    };
    let starts = states.iter().zip(&rates).map(|(state, rates)| {
        if state.workspace.paused {
            return Span::styled("paused", theme.warn());
        }
        Span::raw(rate(rates.map(|rates| rates.admitted)))
    });
    let done = rates.iter().map(|rates| rates.map(|rates| rates.completed));
    let failed = rates.iter().map(|rates| rates.map(|rates| rates.failed));
    vec![
        each("PLAN", 1, &|state| {
            Span::styled(state.workspace.plan.as_str(), theme.dim())
        }),
        each("", 3, &|state| {
            let slots = state.slots;
            Span::styled(bar(slots.in_use, slots.limit, BAR), fullness(state, theme))
        }),
        each("SLOTS", 7, &|state| {
            let slots = state.slots;
            let text = format!("{}/{}", slots.in_use, slots.limit);
            Span::styled(text, fullness(state, theme))
        }),
        each("WAITING", 6, &|state| {
            Span::raw(count(state.requests.pending))
        }),
        Column {
            title: "STARTS/S",
            rank: 5,
            words: false,
            cells: starts.collect(),
        },
        Column {
            title: "DONE/S",
            rank: 4,
            words: false,
            cells: done.map(|done| Span::raw(rate(done))).collect(),
        },
        Column {
            title: "FAILED/S",
            rank: 2,
            words: false,
            cells: failed.map(|failed| failures(failed, theme)).collect(),
        },
    ]
}

/// Highlights full workspaces, and those above a lowered limit.
fn fullness(state: &WorkspaceState, theme: Theme) -> Style {
    let slots = state.slots;
    if slots.in_use > slots.limit {
        theme.bad()
    } else if slots.in_use == slots.limit && slots.limit > 0 {
        theme.warn()
    } else {
        theme.busy()
    }
}

fn failures(failed: Option<f64>, theme: Theme) -> Span<'static> {
    let style = match failed {
        Some(failed) if failed > 0.0 => theme.bad(),
        _ => theme.plain(),
    };
    Span::styled(rate(failed), style)
}

fn queue_columns(queues: &[&QueueUse], theme: Theme) -> Vec<Column> {
    let each = |title, rank, cell: &dyn Fn(&QueueUse) -> Span<'static>| Column {
        title,
        rank,
        words: false,
        cells: queues.iter().map(|queue| cell(queue)).collect(),
    };
    vec![
        each("RUNNING", 3, &|queue| Span::raw(count(queue.running))),
        each("WAITING", 2, &|queue| {
            let more = if queue.more_waiting { "+" } else { "" };
            Span::raw(format!("{}{more}", count(queue.waiting)))
        }),
        each("LIMIT", 1, &|queue| match (queue.paused, queue.limit) {
            (true, _) => Span::styled("paused", theme.warn()),
            (false, Some(limit)) => Span::raw(count(limit.into())),
            (false, None) => Span::styled("none", theme.dim()),
        }),
    ]
}

/// Fits a table into its area; counts the hidden rows in the last line.
fn filled(
    table: Table,
    view: &View,
    focus: Focus,
    area: TableArea,
    notes: Vec<String>,
) -> Vec<Line<'static>> {
    let rows = table.names.len();
    let all_fit = 1 + rows + notes.len() <= area.lines;
    let space = if all_fit {
        rows
    } else {
        area.lines.saturating_sub(2)
    };
    let first = view.first(focus, rows, space);
    let focused = !area.scrolls || view.focus == focus;
    let mut lines = table.lines(area.columns, area.theme, focused, first, space);
    let dim = |text: &str| Line::styled(truncate(text, area.columns), area.theme.dim());
    if all_fit {
        lines.extend(notes.iter().map(|note| dim(note)));
    } else {
        let position = format!("{}–{} of {rows}", first + 1, first + space);
        let note = notes.first().map(|note| format!("; {note}"));
        lines.push(dim(&format!("{position}{}", note.unwrap_or_default())));
    }
    lines.truncate(area.lines);
    lines
}

fn empty(title: &'static str, text: String, area: TableArea) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled(title, area.theme.dim())];
    lines.push(Line::raw(truncate(&text, area.columns)));
    lines.truncate(area.lines);
    lines
}

fn no_workspace(model: &TopModel, view: &View) -> String {
    let none = model
        .overview
        .as_ref()
        .is_none_or(|all| all.workspaces == 0);
    if none || view.filter.is_empty() {
        return "no workspaces; create one: leasehold workspace create NAME".to_owned();
    }
    format!("no workspace name contains `{}`", view.filter)
}

fn no_queue(model: &TopModel, view: &View) -> String {
    let none = model
        .overview
        .as_ref()
        .is_none_or(|all| all.queues.is_empty());
    if none {
        return "no queues; the first job creates one".to_owned();
    }
    format!("no queue name contains `{}`", view.filter)
}

/// Note that the server lists only the busiest workspaces.
fn others(model: &TopModel) -> Option<String> {
    let overview = model.overview.as_ref()?;
    let shown = overview.busiest.len() as u64;
    (overview.workspaces > shown).then(|| {
        let all = count(overview.workspaces);
        format!("the {} busiest of {all} workspaces", count(shown))
    })
}

/// Hint for a server without any request.
fn hint(model: &TopModel) -> Option<String> {
    let requests = model.overview.as_ref()?.requests;
    let open = requests.pending + requests.claimed + requests.dispatched;
    let finished = requests.completed + requests.failed;
    let text = "no requests; run leasehold definition publish, then leasehold request enqueue";
    (open + finished == 0).then(|| text.to_owned())
}
