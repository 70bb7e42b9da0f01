//! The lines above the tables: which server, how it and its engine are, and the figures of all workspaces.

use super::figures::{count, cut, rate, sparkline, width};
use super::look::Look;
use super::model::{Away, Model};
use super::view::View;
use crate::shown::{clock, length};
use leasehold_client::api::instance::Instance;
use leasehold_client::api::overview::{EngineHealth, EngineState};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::collections::BTreeSet;

const GAP: usize = 3;
/// A shorter sparkline says nothing.
const SPARKLINE_MIN: usize = 8;

/// All of them, in so many columns.
pub(crate) fn lines(model: &Model, view: &View, look: Look, columns: usize) -> Vec<Line<'static>> {
    let mut lines = vec![
        title(model, view, look, columns),
        state(model, look, columns),
    ];
    lines.push(Line::default());
    lines.extend(figures(model, look, columns));
    lines
}

fn title(model: &Model, view: &View, look: Look, columns: usize) -> Line<'static> {
    let at = model.overview.as_ref().map(|overview| clock(overview.at));
    let at = at.map(|at| format!("{at} UTC")).unwrap_or_default();
    let frozen = if view.frozen { "frozen  " } else { "" };
    let room = columns.saturating_sub(width(&at) + frozen.len() + 2);
    let name = cut("Leasehold", room);
    let server = cut(&model.server, room.saturating_sub(width(&name) + 2));
    let left = vec![
        Span::styled(name, look.strong()),
        Span::raw("  "),
        Span::raw(server),
    ];
    let right = vec![
        Span::styled(frozen, look.warn()),
        Span::styled(at, look.quiet()),
    ];
    apart(left, right, columns)
}

/// How the server is, else how its engine is.
fn state(model: &Model, look: Look, columns: usize) -> Line<'static> {
    if let Some(away) = &model.away {
        return Line::styled(cut(&absence(away), columns), look.loud());
    }
    let Some(overview) = &model.overview else {
        return Line::default();
    };
    let (words, style) = engine(&overview.engine, look);
    let about = instances(&model.instances);
    let room = columns.saturating_sub(width(&about) + 2);
    if room < width(&words) {
        // How the engine is matters more than how many there are.
        return Line::styled(cut(&words, columns), style);
    }
    let left = vec![Span::styled(words, style)];
    apart(left, vec![Span::styled(about, look.quiet())], columns)
}

fn absence(away: &Away) -> String {
    let millis = away.tried.duration_since(away.since).as_millis();
    let seconds = u64::try_from(millis / 1_000).unwrap_or_default();
    let for_long = if seconds > 0 {
        format!(" for {},", length(seconds * 1_000))
    } else {
        String::new()
    };
    let since = clock(away.since);
    format!(
        "no answer{for_long} since {since} UTC; trying again ({})",
        away.why
    )
}

fn engine(engine: &EngineState, look: Look) -> (String, Style) {
    let name = &engine.name;
    match engine.state {
        EngineHealth::Well => (format!("engine {name}: well"), look.good()),
        EngineHealth::Down => {
            let why = engine.error.as_deref().unwrap_or("it does not answer");
            let text = format!("engine {name}: down, nothing is admitted until it is back ({why})");
            (text, look.loud())
        }
        EngineHealth::NotDispatchedHere => {
            let text = format!("engine {name}: this instance starts nothing, another may");
            (text, look.warn())
        }
        EngineHealth::None => ("no engine: nothing is started".to_owned(), look.warn()),
    }
}

fn instances(instances: &[Instance]) -> String {
    let versions: BTreeSet<&str> = instances.iter().map(|one| one.version.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let number = instances.len();
    match number {
        0 => String::new(),
        1 => format!("1 instance, {}", versions.join(", ")),
        _ => format!("{number} instances, {}", versions.join(", ")),
    }
}

fn figures(model: &Model, look: Look, columns: usize) -> Vec<Line<'static>> {
    let Some(overview) = &model.overview else {
        return Vec::new();
    };
    let requests = overview.requests;
    let failed = if requests.failed > 0 {
        look.bad()
    } else {
        look.strong()
    };
    let counts = [
        ("waiting", count(requests.pending), look.strong()),
        ("starting", count(requests.claimed), look.strong()),
        ("running", count(requests.dispatched), look.busy()),
        ("completed", count(requests.completed), look.good()),
        ("failed", count(requests.failed), failed),
    ];
    let mut lines = flow(counts, look, columns);
    let rates = model.rates();
    let each = |part: fn(&super::Rates) -> f64| match &rates {
        Some(rates) => format!("{}/s", rate(Some(part(rates)))),
        None => rate(None),
    };
    let rates = [
        ("starts", each(|rates| rates.admitted), look.plain()),
        ("completed", each(|rates| rates.completed), look.plain()),
        ("failed", each(|rates| rates.failed), look.plain()),
    ];
    lines.extend(flow(rates, look, columns));
    if let Some(last) = lines.last_mut() {
        let room = columns.saturating_sub(last.width() + GAP);
        if room >= SPARKLINE_MIN {
            let line = sparkline(model.completions(), room.min(60));
            last.push_span(Span::raw(" ".repeat(GAP)));
            last.push_span(Span::styled(line, look.good()));
        }
    }
    lines
}

/// Words with figures, as many in a line as fit.
fn flow<const N: usize>(
    items: [(&'static str, String, Style); N],
    look: Look,
    columns: usize,
) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (word, figure, style) in items {
        let wide = width(word) + 1 + width(&figure);
        match lines.last_mut() {
            Some(line) if line.width() + GAP + wide <= columns => {
                line.push_span(Span::raw(" ".repeat(GAP)));
            }
            _ => lines.push(Line::default()),
        }
        if let Some(line) = lines.last_mut() {
            line.push_span(Span::styled(word, look.quiet()));
            line.push_span(Span::raw(" "));
            line.push_span(Span::styled(figure, style));
        }
    }
    lines
}

/// Something on the left, something on the right.
fn apart(left: Vec<Span<'static>>, right: Vec<Span<'static>>, columns: usize) -> Line<'static> {
    let taken: usize = left.iter().chain(&right).map(Span::width).sum();
    let mut spans = left;
    spans.push(Span::raw(" ".repeat(columns.saturating_sub(taken))));
    spans.extend(right);
    Line::from(spans)
}
