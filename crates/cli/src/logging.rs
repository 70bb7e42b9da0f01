//! Logs: to standard error, as text for people or as JSON for machines.

use crate::settings::LogFormat;
use anyhow::{Context, Result, bail};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// What speaks to PostgreSQL logs every statement with its parameters, which are other people's data, and a line for each
/// connection that a restart has cost. A filter that names one of these gets it all the same.
const QUIET: [(&str, &str); 2] = [("tokio_postgres", "warn"), ("deadpool.postgres", "error")];

/// Starts logging into a file, for what draws on the terminal; once a process.
pub(crate) fn start_in(file: std::fs::File, level: &str) -> Result<()> {
    let builder = tracing_subscriber::fmt().with_env_filter(filter(level)?);
    builder.with_writer(file).with_ansi(false).init();
    Ok(())
}

/// Starts logging; once a process.
pub(crate) fn start(level: &str, format: LogFormat) -> Result<()> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(level)?)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => builder.with_target(false).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}

/// The filter that a level or a filter's text stands for.
pub(crate) fn filter(level: &str) -> Result<EnvFilter> {
    let wrong = || {
        format!("log.level: `{level}` is no level (error, warn, info, debug, trace) and no filter")
    };
    for part in level.split(',').map(str::trim) {
        // The filter would take such a word for the name of something to log, and log nothing else.
        let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part));
        if !is_level && !part.contains(['=', '[']) {
            bail!(wrong());
        }
    }
    let mut text = level.to_owned();
    for (name, its_level) in QUIET {
        if !level.contains(name) {
            text.push_str(&format!(",{name}={its_level}"));
        }
    }
    EnvFilter::builder().parse(text).with_context(wrong)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::filter;

    #[test]
    fn levels_and_filters_are_taken_and_other_words_are_not() {
        for level in ["info", "TRACE", "off", "warn,leasehold_runtime=debug"] {
            filter(level).unwrap();
        }
        for level in ["loud", "", "info,loud", "leasehold_runtime=loud"] {
            let error = filter(level).unwrap_err().to_string();
            assert!(error.contains(&format!("`{level}`")), "{error}");
        }
    }

    #[test]
    fn statements_and_their_parameters_are_logged_only_if_asked_for_by_name() {
        let quiet = filter("trace").unwrap().to_string();
        assert!(quiet.contains("tokio_postgres=warn"), "{quiet}");
        assert!(quiet.contains("deadpool.postgres=error"), "{quiet}");
        let asked = filter("info,tokio_postgres=debug").unwrap().to_string();
        assert!(asked.contains("tokio_postgres=debug"), "{asked}");
    }
}
