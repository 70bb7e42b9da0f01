//! Parses input: durations, timestamps, and JSON from flags and files. Errors name the flag or the file.

use crate::exit::Failure;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use leasehold_core::{ExecutionStatus, FailureReason, JobStatus, Plan, RequestStatus, Timestamp};
use serde::de::DeserializeOwned;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// Parses a duration such as `5s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    parsed
        .and_then(|span| Duration::try_from(span).ok())
        .ok_or_else(|| "expected a duration such as 5s, 250ms, 10m or 1h".to_owned())
}

/// Parses the lifetime of a key, such as `30d`: a duration, or a number of days.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    let days = text.trim().strip_suffix('d').map(str::trim);
    let days = days.and_then(|days| days.parse::<u32>().ok());
    match days {
        Some(days) => Ok(Duration::from_secs(u64::from(days) * 86_400)),
        None => {
            duration(text).map_err(|_| "expected a duration such as 30d, 12h or 10m".to_owned())
        }
    }
}

/// Parses an RFC 3339 timestamp.
pub(crate) fn timestamp(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .map_err(|_| "expected a timestamp such as 2026-11-16T09:00:00Z".to_owned())
}

/// Parses one of `words`, case-insensitively.
fn one_of<T, W>(words: W, written: fn(&str) -> String) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: std::error::Error + Send + Sync + 'static,
    W: IntoIterator<Item = &'static str>,
{
    PossibleValuesParser::new(words.into_iter().map(PossibleValue::new))
        .try_map(move |word| written(&word).parse::<T>())
}

fn upper(word: &str) -> String {
    word.to_ascii_uppercase()
}

fn same(word: &str) -> String {
    word.to_ascii_lowercase()
}

pub(crate) fn plan() -> impl TypedValueParser<Value = Plan> {
    one_of(Plan::ALL.map(Plan::as_str), upper)
}

/// Help text of `--plan` with the limit of each plan.
pub(crate) fn plan_help() -> String {
    let limits = Plan::ALL.map(|plan| plan.max_concurrent_executions().to_string());
    let limits = match limits.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    };
    format!("Plan: sets the limit of concurrent executions ({limits})")
}

pub(crate) fn request_status() -> impl TypedValueParser<Value = RequestStatus> {
    one_of(RequestStatus::ALL.map(RequestStatus::as_str), upper)
}

pub(crate) fn execution_status() -> impl TypedValueParser<Value = ExecutionStatus> {
    one_of(ExecutionStatus::ALL.map(ExecutionStatus::as_str), upper)
}

pub(crate) fn job_status() -> impl TypedValueParser<Value = JobStatus> {
    one_of(JobStatus::ALL.map(JobStatus::as_str), same)
}

pub(crate) fn reason() -> impl TypedValueParser<Value = FailureReason> {
    one_of(FailureReason::ALL.map(FailureReason::as_str), same)
}

/// Reads a file, or standard input for `-`.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    let read = if is_stdin(file) {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", display_name(file))))
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// The name of a file in messages.
pub(crate) fn display_name(file: &Path) -> String {
    if is_stdin(file) {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

/// Parses JSON; `source` names the flag or file in errors.
pub(crate) fn json<T: DeserializeOwned>(text: &str, source: &str) -> Result<T, Failure> {
    if let Some(number) = number_too_large(text) {
        let message = format!(
            "invalid JSON in {source}: number {number} is out of range; write it as a string"
        );
        return Err(Failure::usage(message));
    }
    let mut from = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut from);
    parsed
        .map_err(|error| {
            let path = error.path().to_string();
            let inner = error.into_inner();
            let what = if inner.is_data() { "value" } else { "JSON" };
            let at = if path == "." || inner.is_syntax() || inner.is_eof() {
                String::new()
            } else {
                format!("{path}: ")
            };
            Failure::usage(format!("invalid {what} in {source}: {at}{inner}"))
        })
        .and_then(|value| {
            // Rejects trailing characters.
            from.end()
                .map(|()| value)
                .map_err(|error| Failure::usage(format!("invalid JSON in {source}: {error}")))
        })
}

/// Finds an integer outside of strings that fits neither `i64` nor `u64`.
fn number_too_large(json: &str) -> Option<&str> {
    let mut outside = json.split('"').step_by(2);
    if json.contains('\\') {
        // An escaped quote is no string boundary; the server checks such documents.
        return None;
    }
    outside.find_map(|part| {
        let words = part.split(|one: char| !(one.is_ascii_alphanumeric() || "+-.".contains(one)));
        words.into_iter().find(|word| {
            let digits = word.strip_prefix('-').unwrap_or(word);
            let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            whole && word.parse::<i64>().is_err() && word.parse::<u64>().is_err()
        })
    })
}

/// Parses a document from a flag or a file, if either is given.
pub(crate) fn document<T: DeserializeOwned>(
    flag: &str,
    given: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<T>, Failure> {
    match (given, file) {
        (Some(text), _) => json(text, &format!("--{flag}")).map(Some),
        (None, Some(file)) => json(&text(file)?, &display_name(file)).map(Some),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::number_too_large;

    #[test]
    fn finds_integers_that_would_lose_precision() {
        for (json, found) in [
            (
                "{\"a\": 12345678901234567890123}",
                Some("12345678901234567890123"),
            ),
            (
                "[18446744073709551615, -9223372036854775808, 1.5e300]",
                None,
            ),
            ("[-9223372036854775809]", Some("-9223372036854775809")),
            ("\"12345678901234567890123\"", None),
        ] {
            assert_eq!(number_too_large(json), found, "{json}");
        }
    }
}
