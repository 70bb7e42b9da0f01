//! What people write: lengths of time, moments, JSON on the command line and in files. What is wrong is named with where it was written.

use crate::exit::Failure;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use leasehold_core::{ExecutionStatus, FailureReason, JobStatus, Plan, RequestStatus, Timestamp};
use serde::de::DeserializeOwned;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// A length of time as people write it.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    parsed
        .and_then(|span| Duration::try_from(span).ok())
        .ok_or_else(|| "write a length of time as 5s, 250ms, 10m or 1h".to_owned())
}

/// A moment as people write it.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .map_err(|_| "write a moment as 2026-11-16T09:00:00Z".to_owned())
}

/// One of a few words, in any case.
fn words<T, W>(words: W, written: fn(&str) -> String) -> impl TypedValueParser<Value = T>
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
    words(Plan::ALL.map(Plan::as_str), upper)
}

/// What a plan is, with the number of each.
pub(crate) fn plan_help() -> String {
    let limits = Plan::ALL.map(|plan| plan.max_concurrent_executions().to_string());
    let limits = match limits.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    };
    format!("What it pays for: how many executions may run at once ({limits})")
}

pub(crate) fn request_status() -> impl TypedValueParser<Value = RequestStatus> {
    words(RequestStatus::ALL.map(RequestStatus::as_str), upper)
}

pub(crate) fn execution_status() -> impl TypedValueParser<Value = ExecutionStatus> {
    words(ExecutionStatus::ALL.map(ExecutionStatus::as_str), upper)
}

pub(crate) fn job_status() -> impl TypedValueParser<Value = JobStatus> {
    words(JobStatus::ALL.map(JobStatus::as_str), same)
}

pub(crate) fn reason() -> impl TypedValueParser<Value = FailureReason> {
    words(FailureReason::ALL.map(FailureReason::as_str), same)
}

/// The text of a file, or of standard input if it is `-`.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    let read = if is_stdin(file) {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|error| Failure::usage(format!("{} cannot be read: {error}", named(file))))
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// How messages name a file.
pub(crate) fn named(file: &Path) -> String {
    if is_stdin(file) {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

/// What JSON says; `place` is where it was written.
pub(crate) fn json<T: DeserializeOwned>(text: &str, place: &str) -> Result<T, Failure> {
    if let Some(number) = number_too_large(text) {
        let message = format!(
            "{place} has a number that cannot be kept exactly, {number}; write it as a text"
        );
        return Err(Failure::usage(message));
    }
    let mut from = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut from);
    parsed
        .map_err(|error| {
            let path = error.path().to_string();
            let inner = error.into_inner();
            let what = if inner.is_data() {
                "not as it should be"
            } else {
                "no JSON"
            };
            let at = if path == "." || inner.is_syntax() || inner.is_eof() {
                String::new()
            } else {
                format!("{path}: ")
            };
            Failure::usage(format!("{place} is {what}: {at}{inner}"))
        })
        .and_then(|value| {
            // What follows a document is a slip too.
            from.end()
                .map(|()| value)
                .map_err(|error| Failure::usage(format!("{place} is no JSON: {error}")))
        })
}

/// A whole number with more digits than are kept, outside of texts.
fn number_too_large(json: &str) -> Option<&str> {
    let mut outside = json.split('"').step_by(2);
    if json.contains('\\') {
        // A quote inside a text is no boundary: such texts are judged by the server.
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

/// A document that is given on the command line, or in a file, or not at all.
pub(crate) fn document<T: DeserializeOwned>(
    flag: &str,
    given: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<T>, Failure> {
    match (given, file) {
        (Some(text), _) => json(text, &format!("--{flag}")).map(Some),
        (None, Some(file)) => json(&text(file)?, &named(file)).map(Some),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::number_too_large;

    #[test]
    fn whole_numbers_that_would_change_are_found() {
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
