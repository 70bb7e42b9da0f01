//! Logging to standard error, as text or JSON.

use crate::log_writer::LogWriter;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Debug, Write};
use std::io::IsTerminal;
use tracing::Subscriber;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::util::SubscriberInitExt;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Text, for terminals.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The PostgreSQL client logs every statement with its parameters, which are user data, and a line for each
/// connection that a restart breaks. A filter that names one of these targets overrides this.
const TARGET_LEVELS: [(&str, &str); 2] =
    [("tokio_postgres", "warn"), ("deadpool.postgres", "error")];

/// Starts logging to a file, for programs that draw on the terminal. Call once per process.
pub fn start_in(file: std::fs::File, level: &str) -> Result<()> {
    let writer = LogWriter::to(file).context("failed to start the log writer")?;
    install(text(filter(level)?, writer.clone(), false), writer);
    Ok(())
}

/// Starts logging to standard error. Call once per process.
pub fn start(level: &str, format: LogFormat) -> Result<()> {
    let filter = filter(level)?;
    let writer = LogWriter::to(std::io::stderr()).context("failed to start the log writer")?;
    match format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            install(text(filter, writer.clone(), colours), writer);
        }
        LogFormat::Json => install(json(filter, writer.clone()), writer),
    }
    Ok(())
}

/// Flushes the log. Call it last before the process exits.
pub fn finish() {
    LogWriter::flush();
}

/// Installs the subscriber, and a panic hook that logs panics in the same format.
fn install(subscriber: impl Subscriber + Send + Sync + 'static, writer: LogWriter) {
    subscriber.init();
    writer.install();
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string);
        let error = panic.payload_as_str().unwrap_or("no message");
        let backtrace = std::backtrace::Backtrace::capture();
        let backtrace = (backtrace.status() == std::backtrace::BacktraceStatus::Captured)
            .then(|| backtrace.to_string());
        tracing::error!(at, error, backtrace, "panic; this is a bug");
        LogWriter::flush();
    }));
}

/// Text lines: the message, then the fields.
fn text<W>(filter: EnvFilter, writer: W, colours: bool) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(colours)
        .with_target(false)
        .fmt_fields(debug_fn(field).delimited(" "))
        .finish()
}

/// JSON lines: one flat object each.
fn json<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .finish()
}

fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    if field.name() != "message" {
        if writer.has_ansi_escapes() {
            write!(
                writer,
                "\u{1b}[3m{}\u{1b}[0m\u{1b}[2m=\u{1b}[0m",
                field.name()
            )?;
        } else {
            write!(writer, "{}=", field.name())?;
        }
    }
    write!(EscapeControl(writer), "{value:?}")
}

/// Escapes control characters, so that a value cannot break the line or control the terminal.
struct EscapeControl<'a, 'w>(&'a mut Writer<'w>);

impl Write for EscapeControl<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if !text.contains(char::is_control) {
            return self.0.write_str(text);
        }
        text.chars().try_for_each(|char| {
            if char.is_control() {
                write!(self.0, "{}", char.escape_default())
            } else {
                self.0.write_char(char)
            }
        })
    }
}

/// Parses a log level or filter.
pub fn filter(level: &str) -> Result<EnvFilter> {
    let wrong = || {
        format!("invalid log.level `{level}`: must be error, warn, info, debug, trace or a filter")
    };
    for part in level.split(',').map(str::trim) {
        // EnvFilter would take such a word for a target, and log nothing else.
        let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part));
        if !is_level && !part.contains(['=', '[']) {
            bail!(wrong());
        }
    }
    let mut text = level.to_owned();
    for (name, target_level) in TARGET_LEVELS {
        if !level.contains(name) {
            text.push_str(&format!(",{name}={target_level}"));
        }
    }
    EnvFilter::builder().parse(text).with_context(wrong)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{filter, json, text};
    use serde_json::Value;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    /// Texts that a name or an error may contain.
    const ODD: [&str; 6] = [
        "two\nlines",
        "\u{1b}[31mred\u{7}",
        "\"quoted\" \\ back",
        "\u{0}nul\u{7f}",
        "ümläut 東京 \u{1f980}",
        "{\"level\":\"ERROR\"}",
    ];

    #[derive(Clone, Default)]
    struct TestOutput(Arc<Mutex<Vec<u8>>>);

    impl Write for TestOutput {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl TestOutput {
        fn lines(&self) -> Vec<String> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            text.lines().map(str::to_owned).collect()
        }
    }

    fn log_all() {
        for odd in ODD {
            tracing::warn!(quoted = odd, plain = %odd, number = 7, "message {odd}");
        }
    }

    #[test]
    fn json_events_are_flat_objects_for_any_text() {
        let output = TestOutput::default();
        let written = output.clone();
        let subscriber = json(filter("info").unwrap(), move || written.clone());
        tracing::subscriber::with_default(subscriber, || {
            let _span = tracing::info_span!("around", hidden = "yes").entered();
            log_all();
        });
        let lines = output.lines();
        assert_eq!(lines.len(), ODD.len());
        for (line, odd) in lines.iter().zip(ODD) {
            let Value::Object(object) = serde_json::from_str(line).unwrap() else {
                panic!("{line}");
            };
            let names: Vec<&str> = object.keys().map(String::as_str).collect();
            let mut expected = [
                "timestamp",
                "level",
                "message",
                "quoted",
                "plain",
                "number",
                "target",
            ];
            expected.sort_unstable();
            let mut sorted = names.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, expected, "{line}");
            assert_eq!(object["level"], "WARN");
            assert_eq!(object["message"], format!("message {odd}"));
            assert_eq!(object["quoted"], odd);
            assert_eq!(object["plain"], odd);
            assert_eq!(object["number"], 7);
        }
    }

    #[test]
    fn text_lines_contain_no_control_characters() {
        let output = TestOutput::default();
        let written = output.clone();
        let subscriber = text(filter("info").unwrap(), move || written.clone(), false);
        tracing::subscriber::with_default(subscriber, log_all);
        let lines = output.lines();
        assert_eq!(lines.len(), ODD.len(), "{lines:#?}");
        for line in &lines {
            assert!(!line.contains(char::is_control), "{line:?}");
            assert!(line.contains(" WARN message "), "{line}");
            assert!(line.ends_with(" number=7"), "{line}");
        }
        let first = r#"message two\nlines quoted="two\nlines" plain=two\nlines"#;
        assert!(lines[0].contains(first), "{}", lines[0]);
    }

    #[test]
    fn levels_and_filters_are_accepted_other_words_rejected() {
        for level in ["info", "TRACE", "off", "warn,leasehold_runtime=debug"] {
            filter(level).unwrap();
        }
        for level in ["loud", "", "info,loud", "leasehold_runtime=loud"] {
            let error = filter(level).unwrap_err().to_string();
            assert!(error.contains(&format!("`{level}`")), "{error}");
        }
    }

    #[test]
    fn sql_statements_are_logged_only_if_their_target_is_named() {
        let quiet = filter("trace").unwrap().to_string();
        assert!(quiet.contains("tokio_postgres=warn"), "{quiet}");
        assert!(quiet.contains("deadpool.postgres=error"), "{quiet}");
        let named = filter("info,tokio_postgres=debug").unwrap().to_string();
        assert!(named.contains("tokio_postgres=debug"), "{named}");
    }
}
