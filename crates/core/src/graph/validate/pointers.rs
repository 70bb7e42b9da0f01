//! Validation of the pointers of a node: their number, their length, and that they lead to params and to direct predecessors.

use super::super::pointer::{FROM, pointer};
use super::super::url::{UrlPart, url_parts};
use super::super::{GraphProblem, Node, NodeKind};
use super::node::Checked;
use crate::limits::{
    GRAPH_MAX_POINTER_PARTS, JSON_MAX_DEPTH, NODE_MAX_POINTERS, POINTER_MAX_CHARS,
    POINTER_MAX_PARTS,
};
use serde_json::Value;
use std::collections::HashSet;

/// A pointer and its field; none where it is not a string.
type FieldPointer<'a> = (String, Option<&'a str>);

/// Checks that the node's input and URL refer only to params and to outputs of direct predecessors. Adds the parts of its pointers to those of the graph.
pub(super) fn check(
    index: usize,
    node: &Node,
    before: &HashSet<&str>,
    parts: &mut usize,
) -> Checked {
    let mut found = Vec::new();
    if let Some(input) = &node.input {
        collect(input, &mut "input".to_owned(), 1, &mut found);
    }
    if let NodeKind::Http { url, .. } = &node.kind {
        let pointers = url_parts(url).into_iter().filter_map(|part| match part {
            UrlPart::Pointer(pointer) => Some(("url".to_owned(), Some(pointer))),
            UrlPart::Text(_) => None,
        });
        found.extend(pointers);
    }
    for (number, (field, pointer)) in found.into_iter().enumerate() {
        *parts += pointer.map_or(0, |pointer| pointer.matches('/').count());
        let checked = match number < NODE_MAX_POINTERS {
            true if *parts > GRAPH_MAX_POINTER_PARTS => Err(format!(
                "is too much for the graph: its pointers may have at most {GRAPH_MAX_POINTER_PARTS} parts together"
            )),
            true => check_pointer(pointer, before),
            false => Err(format!(
                "is one pointer too many: `input` and `url` of a node may have at most {NODE_MAX_POINTERS} together"
            )),
        };
        checked.map_err(|problem| GraphProblem::BadNode {
            index,
            field,
            problem,
        })?;
    }
    Ok(())
}

fn check_pointer(pointer: Option<&str>, before: &HashSet<&str>) -> Result<(), String> {
    let pointer = pointer.ok_or("must be a string: a JSON pointer")?;
    if pointer.chars().count() > POINTER_MAX_CHARS {
        return Err(format!(
            "must be a pointer of at most {POINTER_MAX_CHARS} characters"
        ));
    }
    if pointer.split('/').count() > POINTER_MAX_PARTS + 1 {
        return Err(format!(
            "must be a pointer of at most {POINTER_MAX_PARTS} parts"
        ));
    }
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
                    "refers to node `{id}`, which has no edge to this node"
                ))
            }
        }
        _ => Err(format!(
            "must start with /params or /nodes/, not `{pointer}`"
        )),
    }
}

/// Collects the pointers of a template with their paths, up to one more than a node may have.
fn collect<'a>(
    template: &'a Value,
    path: &mut String,
    level: usize,
    found: &mut Vec<FieldPointer<'a>>,
) {
    debug_assert!(level <= JSON_MAX_DEPTH + 1, "the nesting depth was checked");
    if found.len() > NODE_MAX_POINTERS {
        return;
    }
    let end = path.len();
    match template {
        Value::Object(fields) => {
            if let Some(target) = pointer(fields) {
                found.push((format!("{path}/{FROM}"), target.as_str()));
                return;
            }
            for (name, value) in fields {
                path.push('/');
                path.push_str(&escaped(name));
                collect(value, path, level + 1, found);
                path.truncate(end);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                path.push('/');
                path.push_str(&at.to_string());
                collect(item, path, level + 1, found);
                path.truncate(end);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Escapes a name for a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::super::super::{Edge, Graph};
    use super::*;
    use serde_json::json;

    fn problem(node: Value) -> Option<(String, String)> {
        let first = json!({"id": "first", "type": "delay", "milliseconds": 1});
        let graph = Graph {
            nodes: [first, node]
                .map(|node| serde_json::from_value(node).unwrap())
                .into(),
            edges: vec![Edge {
                from: "first".into(),
                to: "n".into(),
            }],
        };
        let problem = graph.validate().err();
        problem.map(|problem| (problem.pointer(), problem.to_string()))
    }

    fn task(input: Value) -> Option<(String, String)> {
        problem(json!({"id": "n", "type": "task", "queue": "q", "input": input}))
    }

    fn call(url: &str) -> Option<(String, String)> {
        problem(json!({"id": "n", "type": "http", "url": url}))
    }

    #[test]
    fn parts_of_all_pointers_of_a_graph_are_bounded() {
        // 34 nodes with 200 pointers of 65 parts took 140 MB at each start.
        let node = |number: usize| {
            let pointers = (0..NODE_MAX_POINTERS)
                .map(|at| json!({"$from": format!("/params/{number}-{at}{}", "/x".repeat(48))}));
            let input: Value = pointers.collect();
            json!({"id": format!("n{number}"), "type": "task", "queue": "q", "input": input})
        };
        let graph = |nodes: usize| Graph {
            nodes: (0..nodes)
                .map(|number| serde_json::from_value(node(number)).unwrap())
                .collect(),
            edges: Vec::new(),
        };
        assert_eq!(GRAPH_MAX_POINTER_PARTS, 2 * NODE_MAX_POINTERS * 50);
        assert_eq!(graph(2).validate().err(), None);
        let problem = graph(3).validate().err().unwrap();
        assert_eq!(problem.pointer(), "/nodes/2/input/0/$from");
        let text = problem.to_string();
        assert!(text.contains("at most 20000 parts together"), "{text}");
    }

    #[test]
    fn number_of_pointers_is_bounded() {
        let inputs = |n: usize| Value::Array(vec![json!({"$from": "/params"}); n]);
        assert_eq!(task(inputs(NODE_MAX_POINTERS)), None);
        let (path, text) = task(inputs(NODE_MAX_POINTERS + 1)).unwrap();
        assert_eq!(path, "/nodes/1/input/200/$from");
        assert!(
            text.ends_with(
                "is one pointer too many: `input` and `url` of a node may have at most 200 together"
            ),
            "{text}"
        );
        let urls = |n: usize| "https://example.com/".to_owned() + &"{/params}".repeat(n);
        assert_eq!(call(&urls(NODE_MAX_POINTERS)), None);
        let (path, _) = call(&urls(NODE_MAX_POINTERS + 1)).unwrap();
        assert_eq!(path, "/nodes/1/url");
    }

    #[test]
    fn length_and_depth_of_a_pointer_are_bounded() {
        let pointer = |pointer: String| task(json!({"a": {"$from": pointer}}));
        let chars = |n: usize| pointer("/params/".to_owned() + &"x".repeat(n - 8));
        assert_eq!(chars(POINTER_MAX_CHARS), None);
        let (path, text) = chars(POINTER_MAX_CHARS + 1).unwrap();
        assert_eq!(path, "/nodes/1/input/a/$from");
        assert!(text.ends_with("must be a pointer of at most 1024 characters"));
        let parts = |n: usize| pointer("/params".to_owned() + &"/0".repeat(n - 1));
        assert_eq!(parts(POINTER_MAX_PARTS), None);
        let (_, text) = parts(POINTER_MAX_PARTS + 1).unwrap();
        assert!(text.ends_with("must be a pointer of at most 66 parts"));
    }

    /// Each pointer's path once took a copy of the name: 24 GB for this template.
    #[test]
    fn long_name_around_many_pointers_is_refused_at_the_limit() {
        let pointers = Value::Array(vec![json!({"$from": "/params"}); 6_000]);
        let input = json!({"x".repeat(100_000): pointers});
        let (path, _) = task(input).unwrap();
        assert!(path.ends_with("/200/$from"));
    }
}
