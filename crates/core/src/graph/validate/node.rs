//! What can be wrong with one node: its texts, its numbers, its headers, its URL, and what it points at.

use super::super::input::{FROM, UrlPart, pointer, sends, url_parts};
use super::super::{GraphProblem, Node, NodeKind, NodeRetry};
use crate::limits::{
    DELAY_MAX_MS, EXECUTION_TIMEOUT_MAX_DAYS, HEADER_MAX_CHARS, JSON_MAX_DEPTH, MAX_ATTEMPTS_MAX,
    NODE_ID_MAX_CHARS, NODE_INPUT_MAX_BYTES, NODE_MAX_HEADERS, QUEUE_NAME_MAX_CHARS, URL_MAX_CHARS,
};
use crate::{json, queue, text};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
/// Headers that belong to whoever makes the call.
const OWN_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "idempotency-key",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const TIMEOUT_MAX: Duration = Duration::from_secs(EXECUTION_TIMEOUT_MAX_DAYS as u64 * 86_400);
/// A call holds one of the places that all calls share.
const CALL_TIMEOUT_MAX: Duration = Duration::from_secs(600);
const FACTOR_MAX: f64 = 1_000.0;

type Checked = Result<(), GraphProblem>;

/// What can be seen of a node alone.
pub(super) fn check(index: usize, node: &Node) -> Checked {
    let text = |field: &'static str, value: &str, max: usize| {
        text::check(value, max).map_err(|problem| GraphProblem::BadText {
            index,
            field,
            problem,
        })
    };
    let bad = |field: &str, problem: String| GraphProblem::BadNode {
        index,
        field: field.to_owned(),
        problem,
    };
    text("id", &node.id, NODE_ID_MAX_CHARS)?;
    match &node.kind {
        NodeKind::Task { queue, kind } => {
            queue::check_open(queue).map_err(|problem| GraphProblem::BadText {
                index,
                field: "queue",
                problem,
            })?;
            if let Some(kind) = kind {
                text("kind", kind, QUEUE_NAME_MAX_CHARS)?;
            }
        }
        NodeKind::Http {
            method,
            url,
            headers,
        } => {
            if !METHODS.contains(&method.as_str()) {
                return Err(bad(
                    "method",
                    format!("must be one of {}", METHODS.join(", ")),
                ));
            }
            text("url", url, URL_MAX_CHARS)?;
            check_url(url).map_err(|problem| bad("url", problem.to_owned()))?;
            check_headers(headers).map_err(|(field, problem)| bad(&field, problem))?;
            if node.input.is_some() && !sends(method) {
                return Err(bad(
                    "input",
                    format!("is what is sent, and {method} sends nothing"),
                ));
            }
        }
        NodeKind::Delay { milliseconds } if *milliseconds > DELAY_MAX_MS => {
            return Err(bad(
                "milliseconds",
                format!("must be at most {DELAY_MAX_MS}"),
            ));
        }
        NodeKind::Delay { .. } => {}
    }
    check_timeout(node).map_err(|problem| bad("timeout_ms", problem))?;
    if let Some(input) = &node.input {
        json::check(input, NODE_INPUT_MAX_BYTES)
            .map_err(|problem| bad("input", problem.to_string()))?;
    }
    let retry = node.retry.unwrap_or_default();
    check_retry(&retry).map_err(|(field, problem)| bad(&format!("retry/{field}"), problem))
}

fn check_timeout(node: &Node) -> Result<(), String> {
    let longest = match node.kind {
        NodeKind::Http { .. } => CALL_TIMEOUT_MAX,
        NodeKind::Task { .. } | NodeKind::Delay { .. } => TIMEOUT_MAX,
    };
    match node.timeout {
        Some(timeout) if timeout.is_zero() || timeout > longest => {
            Err(format!("must be between 1 and {}", longest.as_millis()))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_retry(retry: &NodeRetry) -> Result<(), (&'static str, String)> {
    let longest = DELAY_MAX_MS;
    if retry
        .max_attempts
        .is_some_and(|max| !(1..=MAX_ATTEMPTS_MAX).contains(&max))
    {
        return Err((
            "max_attempts",
            format!("must be between 1 and {MAX_ATTEMPTS_MAX}"),
        ));
    }
    for (field, wait) in [("base_ms", retry.base_ms), ("max_ms", retry.max_ms)] {
        if wait.is_some_and(|wait| wait > longest) {
            return Err((field, format!("must be at most {longest}")));
        }
    }
    let ranges = [
        ("factor", retry.factor, 1.0, FACTOR_MAX),
        ("jitter", retry.jitter, 0.0, 1.0),
    ];
    for (field, given, min, max) in ranges {
        if given.is_some_and(|given| !(min..=max).contains(&given)) {
            return Err((field, format!("must be between {min} and {max}")));
        }
    }
    Ok(())
}

/// The host is fixed: nothing that is passed in chooses who is called.
fn check_url(url: &str) -> Result<(), &'static str> {
    let lower = url.to_ascii_lowercase();
    let rest = lower
        .strip_prefix("http://")
        .or_else(|| lower.strip_prefix("https://"));
    let rest = rest.ok_or("must begin with http:// or https://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let host = &rest[..end];
    if host.is_empty() {
        return Err("names no host");
    }
    if host.contains('@') {
        return Err("must not hold a user or a password; send a header instead");
    }
    if host.contains(['{', '}']) {
        return Err("must not have a placeholder before its path");
    }
    if url.contains(char::is_whitespace) {
        return Err("must not contain spaces");
    }
    let braces = url_parts(url).iter().any(|part| match part {
        UrlPart::Text(text) => text.contains(['{', '}']),
        UrlPart::Pointer(pointer) => pointer.contains('{'),
    });
    if braces {
        return Err("has a brace without its other one");
    }
    Ok(())
}

fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), (String, String)> {
    if headers.len() > NODE_MAX_HEADERS {
        return Err((
            "headers".to_owned(),
            format!("may be at most {NODE_MAX_HEADERS}"),
        ));
    }
    for (name, value) in headers {
        let place = || format!("headers/{}", escaped(name));
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || name.len() > NODE_ID_MAX_CHARS || !name.bytes().all(token) {
            return Err((place(), "is no name of a header".to_owned()));
        }
        if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err((place(), "is set by whoever makes the call".to_owned()));
        }
        let shown = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        if value.len() > HEADER_MAX_CHARS || !value.bytes().all(shown) {
            let problem = format!("must be at most {HEADER_MAX_CHARS} visible ASCII characters");
            return Err((place(), problem));
        }
    }
    Ok(())
}

/// What the node's input and URL point at is params, or the output of a node right before it.
pub(super) fn check_pointers(index: usize, node: &Node, before: &HashSet<&str>) -> Checked {
    let mut found = Vec::new();
    if let Some(input) = &node.input {
        collect(input, "input".to_owned(), &mut found);
    }
    if let NodeKind::Http { url, .. } = &node.kind {
        let pointers = url_parts(url).into_iter().filter_map(|part| match part {
            UrlPart::Pointer(pointer) => Some(("url".to_owned(), Some(pointer.to_owned()))),
            UrlPart::Text(_) => None,
        });
        found.extend(pointers);
    }
    for (field, pointer) in found {
        check_pointer(pointer.as_deref(), before).map_err(|problem| GraphProblem::BadNode {
            index,
            field,
            problem,
        })?;
    }
    Ok(())
}

fn check_pointer(pointer: Option<&str>, before: &HashSet<&str>) -> Result<(), String> {
    let pointer = pointer.ok_or("must be a text that points at something")?;
    let mut parts = pointer.split('/');
    let (root, first, node) = (parts.next(), parts.next(), parts.next());
    match (root, first, node) {
        (Some(""), Some("params"), _) | (Some(""), Some("nodes"), None) => Ok(()),
        (Some(""), Some("nodes"), Some(id)) => {
            let id = id.replace("~1", "/").replace("~0", "~");
            if before.contains(id.as_str()) {
                Ok(())
            } else {
                Err(format!(
                    "points at the node `{id}`, from which no edge leads here"
                ))
            }
        }
        _ => Err(format!(
            "points at `{pointer}`: it must begin with /params or /nodes/"
        )),
    }
}

/// Every pointer in a template with its place; none where it is no text.
fn collect(template: &Value, place: String, found: &mut Vec<(String, Option<String>)>) {
    debug_assert!(
        place.matches('/').count() <= JSON_MAX_DEPTH + 1,
        "its shape was checked"
    );
    match template {
        Value::Object(fields) => {
            if let Some(target) = pointer(fields) {
                found.push((
                    format!("{place}/{FROM}"),
                    target.as_str().map(str::to_owned),
                ));
                return;
            }
            for (name, value) in fields {
                collect(value, format!("{place}/{}", escaped(name)), found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, format!("{place}/{at}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A name as a JSON pointer writes it.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::super::super::{Edge, Graph};
    use serde_json::{Value, json};

    /// What is wrong with a graph of `first` → `node`, if anything, and where.
    fn problem(node: Value) -> Option<(String, String)> {
        let first = json!({"id": "first", "type": "delay", "milliseconds": 1});
        let graph = Graph {
            nodes: vec![
                serde_json::from_value(first).unwrap(),
                serde_json::from_value(node).unwrap(),
            ],
            edges: vec![Edge {
                from: "first".into(),
                to: "n".into(),
            }],
        };
        graph
            .validate()
            .err()
            .map(|problem| (problem.pointer(), problem.to_string()))
    }

    fn task(more: Value) -> Value {
        let mut node = json!({"id": "n", "type": "task", "queue": "q"});
        node.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        node
    }

    fn http(more: Value) -> Value {
        let mut node =
            json!({"id": "n", "type": "http", "method": "POST", "url": "https://example.com/x"});
        node.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        node
    }

    #[test]
    fn what_is_right_passes() {
        let right = [
            task(
                json!({"kind": "k", "timeout_ms": 1, "retry": {"max_attempts": 1, "factor": 1.0, "jitter": 0.0}}),
            ),
            task(
                json!({"input": {"a": [{"$from": "/params"}, {"$from": "/nodes/first/x/0"}, {"$from": "/nodes"}]}}),
            ),
            http(
                json!({"url": "HTTP://example.com?x={/params/a~1b}&y={/nodes/first}", "headers": {"X-Key": "a b"}}),
            ),
            json!({"id": "n", "type": "delay", "milliseconds": 0}),
        ];
        for node in right {
            assert_eq!(problem(node.clone()), None, "{node}");
        }
    }

    fn each_is_named<const N: usize>(cases: [(Value, &str, &str); N]) {
        for (node, field, said) in cases {
            let (pointer, text) = problem(node.clone()).unwrap_or_else(|| panic!("{node} passed"));
            assert_eq!(pointer, format!("/nodes/1/{field}"), "{node}");
            assert_eq!(text, format!("nodes[1].{field} {said}"), "{node}");
        }
    }

    #[test]
    fn each_way_a_task_can_be_wrong_names_its_place() {
        each_is_named([
            (
                task(json!({"queue": "leasehold:http"})),
                "queue",
                "must not begin with `leasehold:`: such queues are Leasehold's own",
            ),
            (task(json!({"kind": ""})), "kind", "must not be empty"),
            (
                task(json!({"timeout_ms": 0})),
                "timeout_ms",
                "must be between 1 and 31622400000",
            ),
            (
                task(json!({"retry": {"max_attempts": 0}})),
                "retry/max_attempts",
                "must be between 1 and 32767",
            ),
            (
                task(json!({"retry": {"factor": 0.5}})),
                "retry/factor",
                "must be between 1 and 1000",
            ),
            (
                task(json!({"retry": {"jitter": 2}})),
                "retry/jitter",
                "must be between 0 and 1",
            ),
            (
                task(json!({"retry": {"base_ms": 1e18 as u64}})),
                "retry/base_ms",
                "must be at most 31622400000",
            ),
            (
                task(json!({"input": {"a": {"$from": 5}}})),
                "input/a/$from",
                "must be a text that points at something",
            ),
            (
                task(json!({"input": [{"$from": "params"}]})),
                "input/0/$from",
                "points at `params`: it must begin with /params or /nodes/",
            ),
            (
                task(json!({"input": {"a/b": {"$from": "/nodes/other"}}})),
                "input/a~1b/$from",
                "points at the node `other`, from which no edge leads here",
            ),
        ]);
    }

    #[test]
    fn each_way_a_call_or_a_pause_can_be_wrong_names_its_place() {
        each_is_named([
            (
                http(json!({"method": "TRACE"})),
                "method",
                "must be one of GET, HEAD, POST, PUT, PATCH, DELETE",
            ),
            (
                http(json!({"method": "GET", "input": 1})),
                "input",
                "is what is sent, and GET sends nothing",
            ),
            (
                http(json!({"timeout_ms": 600_001})),
                "timeout_ms",
                "must be between 1 and 600000",
            ),
            (
                http(json!({"url": "ftp://example.com"})),
                "url",
                "must begin with http:// or https://",
            ),
            (http(json!({"url": "https:///x"})), "url", "names no host"),
            (
                http(json!({"url": "https://a:b@example.com"})),
                "url",
                "must not hold a user or a password; send a header instead",
            ),
            (
                http(json!({"url": "https://{/params/host}/x"})),
                "url",
                "must not have a placeholder before its path",
            ),
            (
                http(json!({"url": "https://example.com/{/params/x"})),
                "url",
                "has a brace without its other one",
            ),
            (
                http(json!({"url": "https://example.com/a b"})),
                "url",
                "must not contain spaces",
            ),
            (
                http(json!({"url": "https://example.com/{/nodes/x}"})),
                "url",
                "points at the node `x`, from which no edge leads here",
            ),
            (
                http(json!({"headers": {"a b": "x"}})),
                "headers/a b",
                "is no name of a header",
            ),
            (
                http(json!({"headers": {"Host": "x"}})),
                "headers/Host",
                "is set by whoever makes the call",
            ),
            (
                http(json!({"headers": {"a": "x\r\ny"}})),
                "headers/a",
                "must be at most 8192 visible ASCII characters",
            ),
            (
                json!({"id": "n", "type": "delay", "milliseconds": u64::MAX}),
                "milliseconds",
                "must be at most 31622400000",
            ),
        ]);
    }
}
