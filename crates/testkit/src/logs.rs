//! What was logged during a scenario. A scenario and all it spawns run on one thread, so each thread keeps its own.

use crate::log_events::{Documented, Seen};
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

/// Keeps what this thread logs from now on, and forgets what it logged before.
pub fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Filtered here, so that the libraries' own lines cost nothing.
        let ours = Targets::new().with_target("leasehold", LevelFilter::TRACE);
        tracing_subscriber::registry()
            .with(Keeper.with_filter(ours))
            .init();
    });
    LINES.with_borrow_mut(Vec::clear);
}

/// How many lines of this level hold all of these texts. A field is written as ` name=value`.
pub fn count(level: Level, texts: &[&str]) -> usize {
    LINES.with_borrow(|lines| {
        let fits = |line: &&Line| {
            line.level == level && texts.iter().all(|text| line.text().contains(text))
        };
        lines.iter().filter(fits).count()
    })
}

/// Asserts that exactly one such line was logged.
#[track_caller]
pub fn assert_once(level: Level, texts: &[&str]) {
    let seen = count(level, texts);
    assert_eq!(seen, 1, "{level} {texts:?} in\n{}", all());
}

/// Everything that was logged.
pub fn all() -> String {
    LINES.with_borrow(|lines| {
        lines.iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{} {}", line.level, line.text());
            text
        })
    })
}

/// Asserts that whatever was logged at level info or above stands in the documentation with that level and those fields, and that
/// whatever stands there keeps to it at every level.
#[track_caller]
pub fn assert_documented(documented: &Documented) {
    let wrong = LINES.with_borrow(|lines| documented.wrong(lines.iter().map(Line::seen)));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Asserts that this event of the documentation was logged, as it stands there.
#[track_caller]
pub fn assert_seen(documented: &Documented, event: &str) {
    let seen = LINES.with_borrow(|lines| documented.has(lines.iter().map(Line::seen), event));
    assert!(seen, "`{event}` is not in\n{}", all());
}

struct Keeper;

impl<S: Subscriber> Layer<S> for Keeper {
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

    fn seen(&self) -> Seen<'_> {
        Seen {
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
