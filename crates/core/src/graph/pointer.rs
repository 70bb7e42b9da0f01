//! Pointers of templates: which document a pointer leads into, and which outputs a node refers to.

use super::node::{Node, NodeKind};
use super::url::{UrlPart, url_parts};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The key of a reference in a template.
pub(super) const FROM: &str = "$from";

/// The target of a pointer.
pub(super) enum Target<'a> {
    /// A place in the params.
    Params(&'a str),
    /// The outputs of all predecessors.
    Nodes,
    /// A place in the output of a predecessor.
    Node {
        /// The id of the predecessor.
        id: String,
        /// The place.
        rest: &'a str,
    },
}

pub(super) fn target(pointer: &str) -> Option<Target<'_>> {
    let below = pointer.strip_prefix('/')?;
    let (first, rest) = split(below);
    match first {
        "params" => Some(Target::Params(rest)),
        "nodes" if rest.is_empty() => Some(Target::Nodes),
        "nodes" => {
            let (id, rest) = split(&rest[1..]);
            let id = id.replace("~1", "/").replace("~0", "~");
            Some(Target::Node { id, rest })
        }
        _ => None,
    }
}

/// Splits off the first part of a path; the rest keeps its slash.
fn split(path: &str) -> (&str, &str) {
    path.split_at(path.find('/').unwrap_or(path.len()))
}

/// Returns the pointer of an object that is a reference.
pub(super) fn pointer(fields: &Map<String, Value>) -> Option<&Value> {
    fields.get(FROM).filter(|_| fields.len() == 1)
}

/// Returns the pointers of a node's input and URL.
pub(super) fn pointers(node: &Node) -> Vec<&str> {
    let mut found = Vec::new();
    if let NodeKind::Http { url, .. } = &node.kind {
        found.extend(url_parts(url).into_iter().filter_map(|part| match part {
            UrlPart::Pointer(pointer) => Some(pointer),
            UrlPart::Text(_) => None,
        }));
    }
    if let Some(template) = &node.input {
        collect(template, &mut found);
    }
    found
}

fn collect<'a>(template: &'a Value, pointers: &mut Vec<&'a str>) {
    match template {
        Value::Object(fields) => match pointer(fields) {
            Some(target) => pointers.extend(target.as_str()),
            None => fields.values().for_each(|value| collect(value, pointers)),
        },
        Value::Array(items) => items.iter().for_each(|item| collect(item, pointers)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The predecessors whose outputs a node's input uses.
pub(super) enum ReferencedOutputs {
    All,
    Only(HashSet<String>),
}

impl ReferencedOutputs {
    pub(super) fn of(node: &Node) -> Self {
        if node.input.is_none() && node.kind.has_default_input() {
            return Self::All;
        }
        let mut ids = HashSet::new();
        for pointer in pointers(node) {
            match target(pointer) {
                Some(Target::Nodes) => return Self::All,
                Some(Target::Node { id, .. }) => ids.extend([id]),
                Some(Target::Params(_)) | None => {}
            }
        }
        Self::Only(ids)
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.contains(id),
        }
    }
}
