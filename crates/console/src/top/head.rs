//! The header of the screen: server, engine state, and totals of all workspaces.

use super::figures::{count, rate, sparkline, truncate, width};
use super::model::{ServerOutage, TopModel};
use super::theme::Theme;
use super::view::View;
use crate::display::{duration, time_of_day};
use leasehold_client::api::instance::Instance;
use leasehold_client::api::overview::{EngineHealth, EngineState};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::collections::BTreeSet;

const GAP: usize = 3;
/// Minimum width of the sparkline.
const SPARKLINE_MIN: usize = 8;

/// The header lines.
pub(crate) fn lines(
    model: &TopModel,
    view: &View,
    theme: Theme,
    columns: usize,
) -> Vec<Line<'static>> {
    let mut lines = vec![
        title(model, view, theme, columns),
        state(model, theme, columns),
    ];
    lines.push(Line::default());
    lines.extend(figures(model, theme, columns));
    lines
}

fn title(model: &TopModel, view: &View, theme: Theme, columns: usize) -> Line<'static> {
    let at = model
        .overview
        .as_ref()
        .map(|overview| time_of_day(overview.at));
    let at = at.map(|at| format!("{at} UTC")).unwrap_or_default();
    let frozen = if view.frozen { "frozen  " } else { "" };
    let available = columns.saturating_sub(width(&at) + frozen.len() + 2);
    let name = truncate("Leasehold", available);
    let server = truncate(&model.server, available.saturating_sub(width(&name) + 2));
    let left = vec![
        Span::styled(name, theme.bold()),
        Span::raw("  "),
        Span::raw(server),
    ];
    let right = vec![
        Span::styled(frozen, theme.warn()),
        Span::styled(at, theme.dim()),
    ];
    justify(left, right, columns)
}

/// The outage of the server, else the state of the engine.
fn state(model: &TopModel, theme: Theme, columns: usize) -> Line<'static> {
    if let Some(outage) = &model.outage {
        return Line::styled(truncate(&outage_line(outage), columns), theme.alert());
    }
    let Some(overview) = &model.overview else {
        return Line::default();
    };
    let (words, style) = engine(&overview.engine, theme);
    let about = instances(&model.instances);
    let available = columns.saturating_sub(width(&about) + 2);
    if available < width(&words) {
        // The engine state takes precedence over the instances.
        return Line::styled(truncate(&words, columns), style);
    }
    let left = vec![Span::styled(words, style)];
    justify(left, vec![Span::styled(about, theme.dim())], columns)
}

fn outage_line(outage: &ServerOutage) -> String {
    let millis = outage.tried.duration_since(outage.since).as_millis();
    let seconds = u64::try_from(millis / 1_000).unwrap_or_default();
    let for_long = if seconds > 0 {
        format!(" for {},", duration(seconds * 1_000))
    } else {
        String::new()
    };
    let since = time_of_day(outage.since);
    format!(
        "server unreachable{for_long} since {since} UTC; retrying ({})",
        outage.why
    )
}

fn engine(engine: &EngineState, theme: Theme) -> (String, Style) {
    let name = &engine.name;
    match engine.state {
        EngineHealth::Well => (format!("engine {name}: up"), theme.good()),
        EngineHealth::Down => {
            let why = engine.error.as_deref().unwrap_or("no response");
            let text = format!("engine {name}: down, dispatch paused until it recovers ({why})");
            (text, theme.alert())
        }
        EngineHealth::NotDispatchedHere => {
            let text = format!("engine {name}: dispatch disabled on this instance");
            (text, theme.warn())
        }
        EngineHealth::None => ("no engine: dispatch disabled".to_owned(), theme.warn()),
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

fn figures(model: &TopModel, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let Some(overview) = &model.overview else {
        return Vec::new();
    };
    let requests = overview.requests;
    let failed = if requests.failed > 0 {
        theme.bad()
    } else {
        theme.bold()
    };
    let counts = [
        ("waiting", count(requests.pending), theme.bold()),
        ("starting", count(requests.claimed), theme.bold()),
        ("running", count(requests.dispatched), theme.busy()),
        ("completed", count(requests.completed), theme.good()),
        ("failed", count(requests.failed), failed),
    ];
    let mut lines = flow(counts, theme, columns);
    let rates = model.rates();
    let each = |part: fn(&super::Rates) -> f64| match &rates {
        Some(rates) => format!("{}/s", rate(Some(part(rates)))),
        None => rate(None),
    };
    let rates = [
        ("starts", each(|rates| rates.admitted), theme.plain()),
        ("completed", each(|rates| rates.completed), theme.plain()),
        ("failed", each(|rates| rates.failed), theme.plain()),
    ];
    lines.extend(flow(rates, theme, columns));
    if let Some(last) = lines.last_mut() {
        let available = columns.saturating_sub(last.width() + GAP);
        if available >= SPARKLINE_MIN {
            let line = sparkline(model.completions(), available.min(60));
            last.push_span(Span::raw(" ".repeat(GAP)));
            last.push_span(Span::styled(line, theme.good()));
        }
    }
    lines
}

/// Lays out labels with figures, as many per line as fit.
fn flow<const N: usize>(
    items: [(&'static str, String, Style); N],
    theme: Theme,
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
            line.push_span(Span::styled(word, theme.dim()));
            line.push_span(Span::raw(" "));
            line.push_span(Span::styled(figure, style));
        }
    }
    lines
}

/// Aligns `left` to the left and `right` to the right edge.
fn justify(left: Vec<Span<'static>>, right: Vec<Span<'static>>, columns: usize) -> Line<'static> {
    let taken: usize = left.iter().chain(&right).map(Span::width).sum();
    let mut spans = left;
    spans.push(Span::raw(" ".repeat(columns.saturating_sub(taken))));
    spans.extend(right);
    Line::from(spans)
}
