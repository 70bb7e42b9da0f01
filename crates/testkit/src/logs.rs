//! What was logged during a scenario. A scenario and all it spawns run on one thread, so each thread keeps its own.

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::Once;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

thread_local! {
    static LINES: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
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
        let fits = |line: &&(Level, String)| {
            line.0 == level && texts.iter().all(|text| line.1.contains(text))
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
        lines.iter().fold(String::new(), |mut text, (level, line)| {
            let _ = writeln!(text, "{level} {line}");
            text
        })
    })
}

struct Keeper;

impl<S: Subscriber> Layer<S> for Keeper {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = *event.metadata().level();
        LINES.with_borrow_mut(|lines| lines.push((level, line.message + &line.fields)));
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.fields, " {}={value}", field.name());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            let _ = write!(self.fields, " {}={value:?}", field.name());
        }
    }
}
