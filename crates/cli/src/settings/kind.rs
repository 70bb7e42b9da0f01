//! The kinds of settings: what each may be, and how what was written becomes it. A secret is never part of what is said.

use super::Span;
use super::source::Raw;
use leasehold_core::limits::NODE_ID_MAX_CHARS;
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_outbound::Allow;
use serde_json::Value;
use std::time::Duration;

/// Says what is allowed instead, and nothing of the text itself.
type TextCheck = fn(&str) -> Result<(), String>;

/// What a setting may be.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A whole number.
    Count { least: u64, most: u64 },
    /// A length of time.
    Time { least: Duration, most: Duration },
    /// True or false.
    YesNo,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// What `http` nodes may call: a list, or one text with commas, as a variable has to say it.
    Allowed,
    /// A text.
    Text(TextCheck),
    /// The name of a file or a folder.
    File,
    /// A text that must not be shown.
    Secret(TextCheck),
}

impl Kind {
    /// The value, or what it must be instead.
    pub(crate) fn read(self, raw: &Raw) -> Result<Value, String> {
        match self {
            Self::Count { least, most } => count(raw, least, most),
            Self::Time { least, most } => time(raw, least, most),
            Self::YesNo => yes_no(raw),
            Self::OneOf(words) => one_of(raw, words),
            Self::Allowed => allowed(raw),
            Self::Text(check) => {
                let text = text(raw).ok_or_else(|| format!("must be a text, is {}", shown(raw)))?;
                let refused = |must: String| format!("{must}, is {}", shown(raw));
                check(text).map_err(refused).map(|()| text.into())
            }
            Self::File => match text(raw) {
                Some(text) if !text.trim().is_empty() => Ok(text.into()),
                _ => Err(format!("must be the name of a file, is {}", shown(raw))),
            },
            Self::Secret(check) => {
                let text = text(raw).ok_or("must be a text")?;
                check(text).map(|()| text.into())
            }
        }
    }
}

fn text(raw: &Raw) -> Option<&str> {
    match raw {
        Raw::Word(text) | Raw::Text(text) => Some(text),
        Raw::Whole(_) | Raw::YesNo(_) | Raw::List(_) | Raw::Other(_) => None,
    }
}

/// What was written, in one short line.
fn shown(raw: &Raw) -> String {
    match raw {
        Raw::Word(text) | Raw::Text(text) if text.is_empty() => "empty".to_owned(),
        Raw::Word(text) | Raw::Text(text) => {
            let long = text.chars().nth(80).is_some();
            let end = if long { "…" } else { "" };
            let begin: String = text.chars().take(80).collect();
            format!("`{}{end}`", begin.escape_debug())
        }
        Raw::Whole(number) => number.to_string(),
        Raw::YesNo(yes) => yes.to_string(),
        Raw::List(_) => "a list".to_owned(),
        Raw::Other(what) => (*what).to_owned(),
    }
}

fn count(raw: &Raw, least: u64, most: u64) -> Result<Value, String> {
    let number = match raw {
        Raw::Whole(number) => *number,
        Raw::Word(text) => match text.trim().parse() {
            Ok(number) => number,
            Err(_) => return Err(no_count(raw, least, most)),
        },
        _ => return Err(no_count(raw, least, most)),
    };
    match u64::try_from(number) {
        Ok(number) if (least..=most).contains(&number) => Ok(number.into()),
        _ => Err(format!("must be from {least} to {most}, is {number}")),
    }
}

fn no_count(raw: &Raw, least: u64, most: u64) -> String {
    let shown = shown(raw);
    format!("must be a whole number from {least} to {most}, is {shown}")
}

fn time(raw: &Raw, least: Duration, most: Duration) -> Result<Value, String> {
    let given = text(raw).and_then(|text| text.trim().parse::<Span>().ok());
    match given {
        Some(Span(time)) if (least..=most).contains(&time) => Ok(Span(time).to_string().into()),
        Some(time) => Err(format!(
            "must be from {} to {}, is {time}",
            Span(least),
            Span(most)
        )),
        None => Err(format!(
            "must be a length of time such as \"5s\", \"250ms\" or \"2m\", is {}",
            shown(raw)
        )),
    }
}

fn yes_no(raw: &Raw) -> Result<Value, String> {
    let wrong = || format!("must be true or false, is {}", shown(raw));
    match raw {
        Raw::YesNo(yes) => Ok((*yes).into()),
        Raw::Word(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true.into()),
            "false" | "no" | "off" | "0" => Ok(false.into()),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

fn one_of(raw: &Raw, words: &[&str]) -> Result<Value, String> {
    match text(raw) {
        Some(text) if words.contains(&text) => Ok(text.into()),
        _ => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let words = words.join(" or ");
            Err(format!("must be {words}, is {}", shown(raw)))
        }
    }
}

fn allowed(raw: &Raw) -> Result<Value, String> {
    let wrong = |raw: &Raw| {
        let what = "must be a list of addresses, networks like 10.0.0.0/8 and names";
        format!("{what}, is {}", shown(raw))
    };
    let entries: Vec<&str> = match raw {
        Raw::Word(all) | Raw::Text(all) => {
            let entries = all.split(',').map(str::trim);
            entries.filter(|entry| !entry.is_empty()).collect()
        }
        Raw::List(list) => {
            let entries = list.iter().map(|one| match one {
                Raw::Text(text) => Ok(text.as_str()),
                other => Err(format!("{} in the list", wrong(other))),
            });
            entries.collect::<Result<_, _>>()?
        }
        other => return Err(wrong(other)),
    };
    for entry in &entries {
        let read = entry.parse::<Allow>();
        read.map_err(|error| error.to_string())?;
    }
    Ok(entries.into())
}

/// `host:port`.
pub(super) fn listen(text: &str) -> Result<(), String> {
    let parts = text.rsplit_once(':');
    match parts.map(|(host, port)| (host.is_empty(), port.parse::<u16>())) {
        Some((false, Ok(_))) => Ok(()),
        _ => Err("must be an address with a port such as 127.0.0.1:7777".to_owned()),
    }
}

/// The URL of a store. Says of it what is no secret.
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
            "must be `sqlite:` and a file, or `postgres://user:password@host/database`, is {}",
            crate::store::shown(text)
        )),
    }
}

/// The one option of a PostgreSQL URL that people get wrong.
fn tls_mode(url: &str) -> Result<(), String> {
    const MODES: [&str; 5] = ["disable", "prefer", "require", "verify-ca", "verify-full"];
    let options = url.rsplit_once('?').map_or("", |(_, options)| options);
    let mode = options
        .split('&')
        .find_map(|option| option.strip_prefix("sslmode="));
    match mode {
        Some(mode) if !MODES.contains(&mode) => {
            let modes = MODES.join(", ");
            Err(format!("must have an sslmode that is one of {modes}"))
        }
        _ => Ok(()),
    }
}

/// Anybody may see these settings, so they hold no secret.
fn without_password(text: &str) -> Result<(), String> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match place.contains('@') {
        true => Err("must hold no user and no password".to_owned()),
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

/// Where a collector takes OTLP over gRPC.
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

/// A name of something in Temporal.
pub(super) fn short(text: &str) -> Result<(), String> {
    leasehold_core::text::check(text, NODE_ID_MAX_CHARS).map_err(|problem| problem.to_string())
}

/// What a header can carry.
pub(super) fn visible(text: &str) -> Result<(), String> {
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    if visible && !text.is_empty() {
        return Ok(());
    }
    Err("must consist of visible ASCII characters, and have at least one".to_owned())
}

pub(super) fn key(text: &str) -> Result<(), String> {
    match leasehold_core::key::Secret::parse(text.trim()) {
        Some(_) => Ok(()),
        None => Err(
            "must be a key of Leasehold's: it begins with lh_worker_ or lh_admin_ and is copied whole"
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
