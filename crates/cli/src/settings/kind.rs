//! The kinds of settings: allowed values and parsing. Messages never contain a secret.

use super::HumanDuration;
use super::source::RawValue;
use leasehold_core::limits::NODE_ID_MAX_CHARS;
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_outbound::TargetRule;
use serde_json::Value;
use std::time::Duration;

/// Returns the rule that the text violates, without the text itself.
type TextCheck = fn(&str) -> Result<(), String>;

/// The kind of a setting.
#[derive(Clone, Copy)]
pub(crate) enum SettingKind {
    /// An integer.
    Integer { min: u64, max: u64 },
    /// A duration.
    Duration { min: Duration, max: Duration },
    /// True or false.
    Bool,
    /// One of several words.
    OneOf(&'static [&'static str]),
    /// Targets of `http` nodes: a list, or a comma-separated string, as in a variable.
    Targets,
    /// A string.
    Text(TextCheck),
    /// The path of a file or directory.
    File,
    /// A string that must not be shown.
    Secret(TextCheck),
}

impl SettingKind {
    /// Parses a value, or returns the violated rule.
    pub(crate) fn read(self, raw: &RawValue) -> Result<Value, String> {
        match self {
            Self::Integer { min, max } => integer(raw, min, max),
            Self::Duration { min, max } => duration(raw, min, max),
            Self::Bool => boolean(raw),
            Self::OneOf(words) => one_of(raw, words),
            Self::Targets => targets(raw),
            Self::Text(check) => {
                let text =
                    text(raw).ok_or_else(|| format!("must be a string, is {}", describe(raw)))?;
                let refused = |must: String| format!("{must}, is {}", describe(raw));
                check(text).map_err(refused).map(|()| text.into())
            }
            Self::File => match text(raw) {
                Some(text) if !text.trim().is_empty() => Ok(text.into()),
                _ => Err(format!("must be the path of a file, is {}", describe(raw))),
            },
            Self::Secret(check) => {
                let text = text(raw).ok_or("must be a string")?;
                check(text).map(|()| text.into())
            }
        }
    }
}

fn text(raw: &RawValue) -> Option<&str> {
    match raw {
        RawValue::Untyped(text) | RawValue::Text(text) => Some(text),
        RawValue::Integer(_) | RawValue::Bool(_) | RawValue::List(_) | RawValue::Other(_) => None,
    }
}

/// Describes the raw value in a few words.
fn describe(raw: &RawValue) -> String {
    match raw {
        RawValue::Untyped(text) | RawValue::Text(text) if text.is_empty() => "empty".to_owned(),
        RawValue::Untyped(text) | RawValue::Text(text) => {
            let long = text.chars().nth(80).is_some();
            let end = if long { "…" } else { "" };
            let begin: String = text.chars().take(80).collect();
            format!("`{}{end}`", begin.escape_debug())
        }
        RawValue::Integer(number) => number.to_string(),
        RawValue::Bool(yes) => yes.to_string(),
        RawValue::List(_) => "a list".to_owned(),
        RawValue::Other(what) => (*what).to_owned(),
    }
}

fn integer(raw: &RawValue, min: u64, max: u64) -> Result<Value, String> {
    let number = match raw {
        RawValue::Integer(number) => *number,
        RawValue::Untyped(text) => match text.trim().parse() {
            Ok(number) => number,
            Err(_) => return Err(not_an_integer(raw, min, max)),
        },
        _ => return Err(not_an_integer(raw, min, max)),
    };
    match u64::try_from(number) {
        Ok(number) if (min..=max).contains(&number) => Ok(number.into()),
        _ => Err(format!("must be from {min} to {max}, is {number}")),
    }
}

fn not_an_integer(raw: &RawValue, min: u64, max: u64) -> String {
    let actual = describe(raw);
    format!("must be an integer from {min} to {max}, is {actual}")
}

fn duration(raw: &RawValue, min: Duration, max: Duration) -> Result<Value, String> {
    let given = text(raw).and_then(|text| text.trim().parse::<HumanDuration>().ok());
    match given {
        Some(HumanDuration(time)) if (min..=max).contains(&time) => {
            Ok(HumanDuration(time).to_string().into())
        }
        Some(time) => Err(format!(
            "must be from {} to {}, is {time}",
            HumanDuration(min),
            HumanDuration(max)
        )),
        None => Err(format!(
            "must be a duration such as \"5s\", \"250ms\" or \"2m\", is {}",
            describe(raw)
        )),
    }
}

fn boolean(raw: &RawValue) -> Result<Value, String> {
    let wrong = || format!("must be true or false, is {}", describe(raw));
    match raw {
        RawValue::Bool(yes) => Ok((*yes).into()),
        RawValue::Untyped(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true.into()),
            "false" | "no" | "off" | "0" => Ok(false.into()),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

fn one_of(raw: &RawValue, words: &[&str]) -> Result<Value, String> {
    match text(raw) {
        Some(text) if words.contains(&text) => Ok(text.into()),
        _ => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let words = words.join(" or ");
            Err(format!("must be {words}, is {}", describe(raw)))
        }
    }
}

fn targets(raw: &RawValue) -> Result<Value, String> {
    let wrong = |raw: &RawValue| {
        let what = "must be a list of addresses, networks such as 10.0.0.0/8 and names";
        format!("{what}, is {}", describe(raw))
    };
    let entries: Vec<&str> = match raw {
        RawValue::Untyped(all) | RawValue::Text(all) => {
            let entries = all.split(',').map(str::trim);
            entries.filter(|entry| !entry.is_empty()).collect()
        }
        RawValue::List(list) => {
            let entries = list.iter().map(|one| match one {
                RawValue::Text(text) => Ok(text.as_str()),
                other => Err(format!("{} in the list", wrong(other))),
            });
            entries.collect::<Result<_, _>>()?
        }
        other => return Err(wrong(other)),
    };
    for entry in &entries {
        let read = entry.parse::<TargetRule>();
        read.map_err(|error| error.to_string())?;
    }
    Ok(entries.into())
}

/// Checks `host:port`.
pub(super) fn listen(text: &str) -> Result<(), String> {
    let parts = text.rsplit_once(':');
    match parts.map(|(host, port)| (host.is_empty(), port.parse::<u16>())) {
        Some((false, Ok(_))) => Ok(()),
        _ => Err("must be host:port, such as 127.0.0.1:7777".to_owned()),
    }
}

/// Checks the URL of a store. The message contains no password.
pub(super) fn store(text: &str) -> Result<(), String> {
    let postgres = ["postgres://", "postgresql://"];
    if postgres.iter().any(|scheme| text.starts_with(scheme)) {
        return tls_mode(text);
    }
    match text
        .strip_prefix("sqlite:")
        .map(|rest| rest.trim_start_matches("//"))
    {
        Some(file) if !file.is_empty() => Ok(()),
        _ => Err(format!(
            "must be `sqlite:FILE` or `postgres://user:password@host/database`, is {}",
            crate::store::redacted_url(text)
        )),
    }
}

/// Checks `sslmode`.
fn tls_mode(url: &str) -> Result<(), String> {
    const MODES: [&str; 6] = [
        "disable",
        "allow",
        "prefer",
        "require",
        "verify-ca",
        "verify-full",
    ];
    let options = url.rsplit_once('?').map_or("", |(_, options)| options);
    let mode = options
        .split('&')
        .find_map(|option| option.strip_prefix("sslmode="));
    match mode {
        Some(mode) if !MODES.contains(&mode) => {
            let modes = MODES.join(", ");
            Err(format!("sslmode must be one of {modes}"))
        }
        _ => Ok(()),
    }
}

/// Rejects credentials in URLs that are shown in logs.
fn without_password(text: &str) -> Result<(), String> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match host.contains('@') {
        true => Err("must not contain a user or password".to_owned()),
        false => Ok(()),
    }
}

pub(super) fn temporal(text: &str) -> Result<(), String> {
    without_password(text)?;
    let options = TemporalOptions {
        address: text.to_owned(),
        ..TemporalOptions::default()
    };
    match TemporalEngine::new(options) {
        Ok(_) => Ok(()),
        Err(_) => Err("must be host:port, or a URL with http:// or https://".to_owned()),
    }
}

pub(super) fn server(text: &str) -> Result<(), String> {
    without_password(text)?;
    let rest = ["http://", "https://"].map(|scheme| text.strip_prefix(scheme));
    match rest.into_iter().flatten().next() {
        Some(host) if !host.is_empty() => Ok(()),
        _ => Err("must be a URL such as http://127.0.0.1:7777".to_owned()),
    }
}

/// Checks the URL of an OTLP (gRPC) collector.
pub(super) fn collector(text: &str) -> Result<(), String> {
    without_password(text)?;
    let rest = ["http://", "https://"].map(|scheme| text.strip_prefix(scheme));
    match rest.into_iter().flatten().next() {
        Some(host) if !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(())
        }
        _ => Err("must be a URL such as http://127.0.0.1:4317".to_owned()),
    }
}

/// Checks a name in Temporal.
pub(super) fn short(text: &str) -> Result<(), String> {
    leasehold_core::text::check(text, NODE_ID_MAX_CHARS).map_err(|problem| problem.to_string())
}

/// Checks a header value.
pub(super) fn visible(text: &str) -> Result<(), String> {
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    if visible && !text.is_empty() {
        return Ok(());
    }
    Err("must be one or more visible ASCII characters".to_owned())
}

pub(super) fn key(text: &str) -> Result<(), String> {
    match leasehold_core::key::Secret::parse(text.trim()) {
        Some(_) => Ok(()),
        None => Err(
            "must be a Leasehold API key: it starts with lh_worker_ or lh_admin_ and must be copied completely"
                .to_owned(),
        ),
    }
}

pub(super) fn level(text: &str) -> Result<(), String> {
    match leasehold_process::logging::filter(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(
            "must be error, warn, info, debug or trace, or a filter such as info,leasehold_runtime=debug"
                .to_owned(),
        ),
    }
}
