//! The activity of the server on one line, for logs and dumb terminals.

use super::figures::{count, rate, truncate};
use super::model::TopModel;
use super::view::View;
use crate::display::time_of_day;

/// Maximum number of workspaces on the line.
const WORKSPACES: usize = 6;
const NAME_MAX: usize = 20;

pub(super) fn summary(model: &TopModel) -> String {
    if let Some(outage) = &model.outage {
        return format!(
            "server unreachable since {} UTC: {}",
            time_of_day(outage.since),
            outage.why
        );
    }
    let Some(overview) = &model.overview else {
        return String::new();
    };
    let requests = overview.requests;
    let mut text = format!(
        "{}  waiting {}  running {}  completed {}",
        time_of_day(overview.at),
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
        let name = truncate(&state.workspace.name, NAME_MAX);
        let (used, limit) = (state.slots.in_use, state.slots.limit);
        text.push_str(&format!("  {name} {used}/{limit}"));
        if state.requests.pending > 0 {
            text.push_str(&format!(" ({} waiting)", count(state.requests.pending)));
        }
    }
    text
}
