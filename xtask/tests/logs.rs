//! Checks that `docs/operations/logs.md` lists exactly the events that the sources log.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use leasehold_testkit::log_events::{DocumentedEvents, LogLine};

/// Test-only crates.
const NOT_OURS: [&str; 3] = ["testkit", "store-conformance", "engine-conformance"];

struct Logged {
    file: PathBuf,
    level: String,
    message: String,
    fields: Vec<String>,
}

impl Logged {
    fn seen(&self) -> LogLine<'_> {
        LogLine {
            level: &self.level,
            message: &self.message,
            fields: self.fields.iter().map(String::as_str).collect(),
        }
    }
}

fn page() -> DocumentedEvents {
    DocumentedEvents::parse(include_str!("../../docs/operations/logs.md"))
}

#[test]
fn every_event_is_documented() {
    let page = page();
    let all = all();
    assert!(all.len() > 100, "{} events", all.len());
    let wrong: Vec<String> = all
        .iter()
        .flat_map(|logged| {
            let wrong = page.violations([logged.seen()].into_iter());
            let file = logged.file.display().to_string();
            wrong
                .into_iter()
                .map(move |wrong| format!("{file}: {wrong}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn documented_events_exist() {
    let (page, all) = (page(), all());
    for event in page.events() {
        let seen = all.iter().any(|logged| logged.message == event);
        assert!(seen, "no source logs `{event}`");
    }
}

#[test]
fn events_are_parsed_from_sources() {
    let text = r#"
        tracing::warn!(
            %error, worker, jobs = back.len(), text = format!("{error:#}, or not"),
            "given \
            back after {} s, {what}", seconds
        );
    "#;
    let read = read(Path::new("x"), text);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].level, "WARN");
    assert_eq!(read[0].message, "given back after … s, …");
    assert_eq!(read[0].fields, ["error", "worker", "jobs", "text"]);
}

/// All events of the sources, without tests.
fn all() -> Vec<Logged> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut all = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap();
        if !NOT_OURS.contains(&folder.file_name().to_str().unwrap()) {
            walk(&folder.path().join("src"), &mut all);
        }
    }
    all
}

fn walk(folder: &Path, all: &mut Vec<Logged>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, all);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let (program, _tests) = text
                .split_once("#[cfg(test)]\nmod tests {")
                .unwrap_or((&text, ""));
            all.extend(read(&path, program));
        }
    }
}

fn read(file: &Path, text: &str) -> Vec<Logged> {
    let calls = text.split("tracing::").skip(1);
    calls
        .filter_map(|call| {
            let (level, rest) = call.split_once("!(")?;
            if !["error", "warn", "info", "debug"].contains(&level) {
                return None;
            }
            let mut logged = Logged {
                file: file.to_owned(),
                level: level.to_uppercase(),
                message: String::new(),
                fields: Vec::new(),
            };
            for argument in arguments(rest) {
                if let Some(message) = argument.strip_prefix('"') {
                    logged.message = gaps(message.trim_end_matches('"'));
                    break;
                }
                let name = argument.split('=').next().unwrap();
                logged
                    .fields
                    .push(name.trim().trim_start_matches(['%', '?']).to_owned());
            }
            Some(logged)
        })
        .collect()
}

/// The arguments of a call after its opening parenthesis.
fn arguments(rest: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut escaped) = (1, false, false);
    let (mut all, mut one) = (Vec::new(), String::new());
    for char in rest.chars() {
        match char {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && char == ',' && !quoted) {
            all.push(std::mem::take(&mut one).trim().to_owned());
            if depth == 0 {
                break;
            }
        } else {
            one.push(char);
        }
    }
    all
}

/// Normalizes a message as on the page: placeholders become gaps, line breaks are joined.
fn gaps(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let mut whole = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        whole += line.trim_start();
    }
    let mut shown = String::new();
    let mut depth = 0;
    for char in whole.chars() {
        match char {
            '{' => {
                depth += 1;
                shown.push('…');
            }
            '}' => depth -= 1,
            _ if depth == 0 => shown.push(char),
            _ => {}
        }
    }
    shown
}
