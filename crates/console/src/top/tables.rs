//! The two tables: workspaces with their slots, queues with their jobs. Each says what to do where there is nothing to show.

use super::figures::{bar, count, cut, rate};
use super::look::Look;
use super::model::Model;
use super::table::{Column, Table};
use super::view::{Focus, View};
use leasehold_client::api::overview::QueueUse;
use leasehold_client::api::workspace::WorkspaceState;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const BAR: usize = 8;

/// Where a table goes.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) columns: usize,
    pub(crate) lines: usize,
    pub(crate) look: Look,
    /// Whether one of two tables scrolls, and it is told which.
    pub(crate) scrolls: bool,
}

/// How many lines the table of workspaces would like.
pub(crate) fn workspace_lines(model: &Model, view: &View) -> usize {
    let rows = view.workspaces(model).len();
    let notes = usize::from(others(model).is_some()) + usize::from(hint(model).is_some());
    1 + rows.max(1) + notes
}

/// How many lines the table of queues would like.
pub(crate) fn queue_lines(model: &Model, view: &View) -> usize {
    1 + view.queues(model).len().max(1)
}

/// The workspaces.
pub(crate) fn workspaces(model: &Model, view: &View, room: Room) -> Vec<Line<'static>> {
    let states = view.workspaces(model);
    if states.is_empty() {
        return nothing("WORKSPACE", no_workspace(model, view), room);
    }
    let table = Table {
        title: "WORKSPACE",
        names: names(states.iter().map(|state| &state.workspace.name)),
        columns: workspace_columns(model, &states, room.look),
    };
    let notes = [others(model), hint(model)].into_iter().flatten().collect();
    filled(table, view, Focus::Workspaces, room, notes)
}

/// The queues.
pub(crate) fn queues(model: &Model, view: &View, room: Room) -> Vec<Line<'static>> {
    let queues = view.queues(model);
    if queues.is_empty() {
        return nothing("QUEUE", no_queue(model, view), room);
    }
    let table = Table {
        title: "QUEUE",
        names: names(queues.iter().map(|queue| &queue.name)),
        columns: queue_columns(&queues, room.look),
    };
    filled(table, view, Focus::Queues, room, Vec::new())
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.map(|name| cut(name, 60)).collect()
}

fn workspace_columns(model: &Model, states: &[&WorkspaceState], look: Look) -> Vec<Column> {
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
            return Span::styled("paused", look.warn());
        }
        Span::raw(rate(rates.map(|rates| rates.admitted)))
    });
    let done = rates.iter().map(|rates| rates.map(|rates| rates.completed));
    let failed = rates.iter().map(|rates| rates.map(|rates| rates.failed));
    vec![
        each("PLAN", 1, &|state| {
            Span::styled(state.workspace.plan.as_str(), look.quiet())
        }),
        each("", 3, &|state| {
            let slots = state.slots;
            Span::styled(bar(slots.in_use, slots.limit, BAR), fullness(state, look))
        }),
        each("SLOTS", 7, &|state| {
            let slots = state.slots;
            let text = format!("{}/{}", slots.in_use, slots.limit);
            Span::styled(text, fullness(state, look))
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
            cells: failed.map(|failed| failures(failed, look)).collect(),
        },
    ]
}

/// Full is worth a look; more than full is what a lowered limit leaves behind.
fn fullness(state: &WorkspaceState, look: Look) -> Style {
    let slots = state.slots;
    if slots.in_use > slots.limit {
        look.bad()
    } else if slots.in_use == slots.limit && slots.limit > 0 {
        look.warn()
    } else {
        look.busy()
    }
}

fn failures(failed: Option<f64>, look: Look) -> Span<'static> {
    let style = match failed {
        Some(failed) if failed > 0.0 => look.bad(),
        _ => look.plain(),
    };
    Span::styled(rate(failed), style)
}

fn queue_columns(queues: &[&QueueUse], look: Look) -> Vec<Column> {
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
            (true, _) => Span::styled("paused", look.warn()),
            (false, Some(limit)) => Span::raw(count(limit.into())),
            (false, None) => Span::styled("none", look.quiet()),
        }),
    ]
}

/// A table in its room; what is beyond it is counted in the last line.
fn filled(
    table: Table,
    view: &View,
    focus: Focus,
    room: Room,
    notes: Vec<String>,
) -> Vec<Line<'static>> {
    let rows = table.names.len();
    let all_fit = 1 + rows + notes.len() <= room.lines;
    let space = if all_fit {
        rows
    } else {
        room.lines.saturating_sub(2)
    };
    let first = view.first(focus, rows, space);
    let focused = !room.scrolls || view.focus == focus;
    let mut lines = table.lines(room.columns, room.look, focused, first, space);
    let quiet = |text: &str| Line::styled(cut(text, room.columns), room.look.quiet());
    if all_fit {
        lines.extend(notes.iter().map(|note| quiet(note)));
    } else {
        let place = format!("{}–{} of {rows}", first + 1, first + space);
        let note = notes.first().map(|note| format!("; {note}"));
        lines.push(quiet(&format!("{place}{}", note.unwrap_or_default())));
    }
    lines.truncate(room.lines);
    lines
}

fn nothing(title: &'static str, text: String, room: Room) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled(title, room.look.quiet())];
    lines.push(Line::raw(cut(&text, room.columns)));
    lines.truncate(room.lines);
    lines
}

fn no_workspace(model: &Model, view: &View) -> String {
    let none = model
        .overview
        .as_ref()
        .is_none_or(|all| all.workspaces == 0);
    if none || view.filter.is_empty() {
        return "no workspace yet: leasehold workspace create NAME".to_owned();
    }
    format!("no workspace has `{}` in its name", view.filter)
}

fn no_queue(model: &Model, view: &View) -> String {
    let none = model
        .overview
        .as_ref()
        .is_none_or(|all| all.queues.is_empty());
    if none {
        return "no queue yet: it comes with its first job".to_owned();
    }
    format!("no queue has `{}` in its name", view.filter)
}

/// That there are more workspaces than the server tells of.
fn others(model: &Model) -> Option<String> {
    let overview = model.overview.as_ref()?;
    let shown = overview.busiest.len() as u64;
    (overview.workspaces > shown).then(|| {
        let all = count(overview.workspaces);
        format!("the {} busiest of {all} workspaces", count(shown))
    })
}

/// What to do with a server that nobody has asked for anything.
fn hint(model: &Model) -> Option<String> {
    let requests = model.overview.as_ref()?.requests;
    let asked = requests.pending + requests.claimed + requests.dispatched;
    let ended = requests.completed + requests.failed;
    let text = "no request yet: leasehold definition publish, then leasehold request enqueue";
    (asked + ended == 0).then(|| text.to_owned())
}
