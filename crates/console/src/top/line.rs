//! What goes on in one line, for logs and for terminals that cannot be drawn on.

use super::figures::{count, cut, rate};
use super::model::Model;
use super::view::View;
use crate::shown::clock;

/// More workspaces than these are not told of.
const WORKSPACES: usize = 6;
const NAME_MAX: usize = 20;

pub(super) fn of(model: &Model) -> String {
    if let Some(away) = &model.away {
        return format!("no answer since {} UTC: {}", clock(away.since), away.why);
    }
    let Some(overview) = &model.overview else {
        return String::new();
    };
    let requests = overview.requests;
    let mut text = format!(
        "{}  waiting {}  running {}  completed {}",
        clock(overview.at),
        count(requests.pending),
        count(requests.claimed + requests.dispatched),
        count(requests.completed),
    );
    if let Some(rates) = model.rates() {
        text.push_str(&format!(" ({}/s)", rate(Some(rates.completed))));
    }
    text.push_str(&format!("  failed {}", count(requests.failed)));
    let by_name = View::by_name();
    for state in by_name.workspaces(model).into_iter().take(WORKSPACES) {
        let name = cut(&state.workspace.name, NAME_MAX);
        let (used, limit) = (state.slots.in_use, state.slots.limit);
        text.push_str(&format!("  {name} {used}/{limit}"));
        if state.requests.pending > 0 {
            text.push_str(&format!(" ({} waiting)", count(state.requests.pending)));
        }
    }
    text
}
