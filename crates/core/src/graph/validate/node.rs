//! Validation of one node: texts, numbers, headers, URL and references.

use super::super::input::has_body;
use super::super::url::{UrlPart, url_parts};
use super::super::{GraphProblem, Node, NodeKind, NodeRetry};
use super::pointers::escaped;
use crate::limits::{
    DELAY_MAX_MS, EXECUTION_TIMEOUT_MAX_DAYS, HEADER_MAX_CHARS, MAX_ATTEMPTS_MAX,
    NODE_ID_MAX_CHARS, NODE_INPUT_MAX_BYTES, NODE_MAX_HEADERS, QUEUE_NAME_MAX_CHARS, URL_MAX_CHARS,
};
use crate::{json, queue, text};
use std::collections::BTreeMap;
use std::time::Duration;

const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
/// Headers that the HTTP client sets itself.
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
/// Bounded, because a call occupies one of the concurrent calls that all executions share.
const CALL_TIMEOUT_MAX: Duration = Duration::from_secs(600);
const FACTOR_MAX: f64 = 1_000.0;

pub(super) type Checked = Result<(), GraphProblem>;

/// Checks a node without looking at others.
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
            queue::check_user_queue(queue).map_err(|problem| GraphProblem::BadText {
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
            if node.input.is_some() && !has_body(method) {
                return Err(bad(
                    "input",
                    format!("must not be set: {method} requests have no body"),
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

/// Requires a literal host, so that params and outputs cannot choose the server.
fn check_url(url: &str) -> Result<(), &'static str> {
    let lower = url.to_ascii_lowercase();
    let rest = lower
        .strip_prefix("http://")
        .or_else(|| lower.strip_prefix("https://"));
    let rest = rest.ok_or("must start with http:// or https://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let host = &rest[..end];
    if host.is_empty() {
        return Err("must contain a host");
    }
    if host.contains('@') {
        return Err("must not contain a user or password; use a header instead");
    }
    if host.contains(['{', '}']) {
        return Err("must not contain a placeholder before the path");
    }
    if url.contains(char::is_whitespace) {
        return Err("must not contain spaces");
    }
    let braces = url_parts(url).iter().any(|part| match part {
        UrlPart::Text(text) => text.contains(['{', '}']),
        UrlPart::Pointer(pointer) => pointer.contains('{'),
    });
    if braces {
        return Err("contains an unmatched brace");
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
        let path = || format!("headers/{}", escaped(name));
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || name.len() > NODE_ID_MAX_CHARS || !name.bytes().all(token) {
            return Err((path(), "is not a valid header name".to_owned()));
        }
        if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err((path(), "must not be set: Leasehold sets it".to_owned()));
        }
        let shown = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        if value.len() > HEADER_MAX_CHARS || !value.bytes().all(shown) {
            let problem = format!("must be at most {HEADER_MAX_CHARS} visible ASCII characters");
            return Err((path(), problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::{Edge, Graph};
    use serde_json::{Value, json};

    /// Returns the pointer and the text of the first problem of a graph `first` → `node`.
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
    fn valid_nodes_pass() {
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

    fn assert_problems<const N: usize>(cases: [(Value, &str, &str); N]) {
        for (node, field, problem_text) in cases {
            let (pointer, text) = problem(node.clone()).unwrap_or_else(|| panic!("{node} passed"));
            assert_eq!(pointer, format!("/nodes/1/{field}"), "{node}");
            assert_eq!(text, format!("nodes[1].{field} {problem_text}"), "{node}");
        }
    }

    #[test]
    fn each_problem_of_a_task_names_its_field() {
        assert_problems([
            (
                task(json!({"queue": "leasehold:http"})),
                "queue",
                "is reserved; choose another name, or ask an administrator to share the queue",
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
                "must be a string: a JSON pointer",
            ),
            (
                task(json!({"input": [{"$from": "params"}]})),
                "input/0/$from",
                "must start with /params or /nodes/, not `params`",
            ),
            (
                task(json!({"input": {"a/b": {"$from": "/nodes/other"}}})),
                "input/a~1b/$from",
                "refers to node `other`, which has no edge to this node",
            ),
        ]);
    }

    #[test]
    fn each_problem_of_an_http_node_names_its_field() {
        assert_problems([
            (
                http(json!({"method": "TRACE"})),
                "method",
                "must be one of GET, HEAD, POST, PUT, PATCH, DELETE",
            ),
            (
                http(json!({"method": "GET", "input": 1})),
                "input",
                "must not be set: GET requests have no body",
            ),
            (
                http(json!({"timeout_ms": 600_001})),
                "timeout_ms",
                "must be between 1 and 600000",
            ),
            (
                http(json!({"url": "ftp://example.com"})),
                "url",
                "must start with http:// or https://",
            ),
            (
                http(json!({"url": "https:///x"})),
                "url",
                "must contain a host",
            ),
            (
                http(json!({"url": "https://a:b@example.com"})),
                "url",
                "must not contain a user or password; use a header instead",
            ),
            (
                http(json!({"url": "https://{/params/host}/x"})),
                "url",
                "must not contain a placeholder before the path",
            ),
            (
                http(json!({"url": "https://example.com/{/params/x"})),
                "url",
                "contains an unmatched brace",
            ),
            (
                http(json!({"url": "https://example.com/a b"})),
                "url",
                "must not contain spaces",
            ),
            (
                http(json!({"url": "https://example.com/{/nodes/x}"})),
                "url",
                "refers to node `x`, which has no edge to this node",
            ),
            (
                http(json!({"headers": {"a b": "x"}})),
                "headers/a b",
                "is not a valid header name",
            ),
            (
                http(json!({"headers": {"Host": "x"}})),
                "headers/Host",
                "must not be set: Leasehold sets it",
            ),
            (
                http(json!({"headers": {"a": "x\r\ny"}})),
                "headers/a",
                "must be at most 8192 visible ASCII characters",
            ),
        ]);
    }

    #[test]
    fn delay_that_is_too_long_names_its_field() {
        assert_problems([(
            json!({"id": "n", "type": "delay", "milliseconds": u64::MAX}),
            "milliseconds",
            "must be at most 31622400000",
        )]);
    }
}
