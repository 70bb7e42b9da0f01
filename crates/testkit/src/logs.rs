//! Captures the log lines of a test. A test and all its tasks run on one thread, so each thread has its own lines.

use crate::log_events::{DocumentedEvents, LogLine};
use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::Once;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

thread_local! {
    static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Captures the log lines of this thread from now on, and discards earlier ones.
pub fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Filters by target, so that lines of libraries cost nothing.
        let ours = Targets::new().with_target("leasehold", LevelFilter::TRACE);
        tracing_subscriber::registry()
            .with(CaptureLayer.with_filter(ours))
            .init();
    });
    LINES.with_borrow_mut(Vec::clear);
}

/// Counts the lines of this level that contain all of these texts. A field is formatted as ` name=value`.
pub fn count(level: Level, texts: &[&str]) -> usize {
    LINES.with_borrow(|lines| {
        let matches = |line: &&Line| {
            line.level == level && texts.iter().all(|text| line.text().contains(text))
        };
        lines.iter().filter(matches).count()
    })
}

/// Asserts that exactly one such line was logged.
#[track_caller]
pub fn assert_once(level: Level, texts: &[&str]) {
    let found = count(level, texts);
    assert_eq!(found, 1, "{level} {texts:?} in\n{}", all());
}

/// All captured lines as one text.
pub fn all() -> String {
    LINES.with_borrow(|lines| {
        lines.iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{} {}", line.level, line.text());
            text
        })
    })
}

/// Asserts that every line at level info or above is documented, and that every documented event has the documented level and
/// fields.
#[track_caller]
pub fn assert_documented(documented: &DocumentedEvents) {
    let violations =
        LINES.with_borrow(|lines| documented.violations(lines.iter().map(Line::as_log_line)));
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Asserts that this event was logged as documented.
#[track_caller]
pub fn assert_logged(documented: &DocumentedEvents, event: &str) {
    let logged =
        LINES.with_borrow(|lines| documented.contains(lines.iter().map(Line::as_log_line), event));
    assert!(
        logged,
        "`{event}` was not logged; captured lines:\n{}",
        all()
    );
}

struct CaptureLayer;

impl<S: Subscriber> Layer<S> for CaptureLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = Line {
            level: *event.metadata().level(),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut line);
        LINES.with_borrow_mut(|lines| lines.push(line));
    }
}

struct Line {
    level: Level,
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Line {
    fn text(&self) -> String {
        let mut text = self.message.clone();
        for (name, value) in &self.fields {
            let _ = write!(text, " {name}={value}");
        }
        text
    }

    fn as_log_line(&self) -> LogLine<'_> {
        LogLine {
            level: self.level.as_str(),
            message: &self.message,
            fields: self.fields.iter().map(|(name, _)| *name).collect(),
        }
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.fields.push((field.name(), format!("{value:?}")));
        }
    }
}
