//! The input of a node: params and all predecessor outputs, or what its `input` template and its URL select.

use super::node::{Node, NodeKind};
use crate::limits::{JSON_MAX_DEPTH, NODE_INPUT_MAX_BYTES, STEP_MAX_BYTES};
use crate::{JsonText, json};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::rc::Rc;
use thiserror::Error;

/// The key of a reference in a template.
pub(super) const FROM: &str = "$from";

/// Why the input of a node cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputProblem {
    /// A pointer leads to nothing.
    #[error("cannot build the node's input: {0} does not exist")]
    Missing(String),
    /// An array, an object or null cannot be part of a URL.
    #[error("cannot build the node's url: {0} must be a string, a number or a boolean")]
    NotPlain(String),
    /// An empty text, `.` or `..` would change which resource the URL names.
    #[error("cannot build the node's url: {0} must not be empty or consist of dots")]
    NoSegment(String),
    /// Larger than an input may be.
    #[error(
        "the node's input has {0} bytes of JSON, the maximum is {NODE_INPUT_MAX_BYTES}; select less with `input`"
    )]
    TooLarge(usize),
    /// The inputs of the nodes that start together are too large.
    #[error(
        "the inputs of the nodes that start together exceed {STEP_MAX_BYTES} bytes of JSON; select less with `input`"
    )]
    TooMuchAtOnce,
    /// Nested deeper than a job's payload may be.
    #[error("the node's input is nested too deep; select less with `input`")]
    TooDeep,
    /// The stored text is not JSON.
    #[error("the node's input is not valid JSON")]
    NotJson,
}

/// What inputs are built from.
pub(super) struct Sources<'a> {
    pub(super) documents: &'a ParsedDocuments,
    pub(super) params: &'a JsonText,
    /// The outputs of the predecessors by id; none is null.
    pub(super) nodes: Vec<(&'a str, Option<&'a JsonText>)>,
}

/// Builds the input of a node.
pub(super) fn input(node: &Node, sources: &Sources<'_>) -> Result<JsonText, InputProblem> {
    let text = match &node.input {
        None => {
            let outputs = sources.nodes.iter().filter_map(|(_, output)| *output);
            let bytes: usize = outputs.map(|output| output.as_str().len()).sum();
            let bytes = bytes + sources.params.as_str().len();
            if bytes > NODE_INPUT_MAX_BYTES {
                return Err(InputProblem::TooLarge(bytes));
            }
            JsonText::of(&DefaultInput(sources))
        }
        Some(template) => JsonText::of(&fill(template, sources, &mut 0)?),
    };
    let text = text.map_err(|_| InputProblem::NotJson)?;
    match text.as_str().len() {
        bytes if bytes > NODE_INPUT_MAX_BYTES => Err(InputProblem::TooLarge(bytes)),
        // The innermost values and the enclosing payload add a level each.
        _ if json::depth(text.as_str()) + 2 > JSON_MAX_DEPTH => Err(InputProblem::TooDeep),
        _ => Ok(text),
    }
}

/// Replaces the placeholders of a URL by percent-encoded values.
pub(super) fn url(template: &str, sources: &Sources<'_>) -> Result<String, InputProblem> {
    if !template.contains('{') {
        return Ok(template.to_owned());
    }
    let mut url = String::with_capacity(template.len());
    for part in url_parts(template) {
        match part {
            UrlPart::Text(text) => url.push_str(text),
            UrlPart::Pointer(pointer) => {
                let text = match sources.at(pointer)? {
                    Value::String(text) => text,
                    plain @ (Value::Number(_) | Value::Bool(_)) => plain.to_string(),
                    Value::Null | Value::Array(_) | Value::Object(_) => {
                        return Err(InputProblem::NotPlain(pointer.to_owned()));
                    }
                };
                if text.bytes().all(|byte| byte == b'.') {
                    return Err(InputProblem::NoSegment(pointer.to_owned()));
                }
                encode(&mut url, &text);
            }
        }
    }
    Ok(url)
}

pub(super) enum UrlPart<'a> {
    Text(&'a str),
    Pointer(&'a str),
}

/// Splits a URL template; an unclosed brace is text.
pub(super) fn url_parts(template: &str) -> Vec<UrlPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((text, behind)) = rest.split_once('{') {
        let Some((pointer, next)) = behind.split_once('}') else {
            break;
        };
        parts.push(UrlPart::Text(text));
        parts.push(UrlPart::Pointer(pointer));
        rest = next;
    }
    parts.push(UrlPart::Text(rest));
    parts
}

fn encode(url: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

/// Returns the pointer of an object that is a reference.
pub(super) fn pointer(fields: &Map<String, Value>) -> Option<&Value> {
    fields.get(FROM).filter(|_| fields.len() == 1)
}

/// Replaces the references of a template. `bytes` counts what was inserted so far, because a template can repeat a reference.
fn fill(template: &Value, sources: &Sources<'_>, bytes: &mut usize) -> Result<Value, InputProblem> {
    match template {
        Value::Object(fields) => {
            if let Some(Value::String(pointer)) = pointer(fields) {
                let found = sources.at(pointer)?;
                *bytes += size(&found);
                if *bytes > NODE_INPUT_MAX_BYTES {
                    return Err(InputProblem::TooLarge(*bytes));
                }
                return Ok(found);
            }
            let mut object = Map::with_capacity(fields.len());
            for (name, value) in fields {
                object.insert(name.clone(), fill(value, sources, bytes)?);
            }
            Ok(Value::Object(object))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| fill(item, sources, bytes));
            items.collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(template.clone()),
    }
}

/// Estimates the bytes of a value as JSON; never too high.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| name.len() + 3 + size(value));
            2 + fields.sum::<usize>()
        }
    }
}

/// Params and outputs, each parsed once for all nodes that start together.
#[derive(Default)]
pub(super) struct ParsedDocuments {
    params: OnceCell<Option<Value>>,
    outputs: RefCell<HashMap<String, Rc<Value>>>,
}

impl ParsedDocuments {
    fn params(&self, text: &JsonText) -> Result<&Value, InputProblem> {
        let read = self.params.get_or_init(|| text.read().ok());
        read.as_ref().ok_or(InputProblem::NotJson)
    }

    fn output(&self, id: &str, text: Option<&JsonText>) -> Result<Rc<Value>, InputProblem> {
        if let Some(known) = self.outputs.borrow().get(id) {
            return Ok(Rc::clone(known));
        }
        let read = text.map_or(Ok(Value::Null), JsonText::read);
        let read = Rc::new(read.map_err(|_| InputProblem::NotJson)?);
        self.outputs
            .borrow_mut()
            .insert(id.to_owned(), Rc::clone(&read));
        Ok(read)
    }
}

/// The target of a pointer.
enum Target<'a> {
    Params(&'a str),
    Nodes,
    Node { id: String, rest: &'a str },
}

fn target(pointer: &str) -> Option<Target<'_>> {
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

/// The predecessors whose outputs a node's input uses.
pub(super) enum ReferencedOutputs {
    All,
    Only(HashSet<String>),
}

impl ReferencedOutputs {
    pub(super) fn of(node: &Node) -> Self {
        let mut pointers = Vec::new();
        if let NodeKind::Http { url, .. } = &node.kind {
            pointers.extend(url_parts(url).into_iter().filter_map(|part| match part {
                UrlPart::Pointer(pointer) => Some(pointer),
                UrlPart::Text(_) => None,
            }));
        }
        match &node.input {
            None if node.kind.has_default_input() => return Self::All,
            Some(template) => collect(template, &mut pointers),
            None => {}
        }
        let mut ids = HashSet::new();
        for pointer in pointers {
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

/// Returns whether a call with this method has a body.
pub(super) fn has_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
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

impl Sources<'_> {
    /// Resolves a pointer.
    fn at(&self, pointer: &str) -> Result<Value, InputProblem> {
        let missing = || InputProblem::Missing(pointer.to_owned());
        match target(pointer).ok_or_else(missing)? {
            Target::Params(rest) => {
                let params = self.documents.params(self.params)?;
                params.pointer(rest).cloned().ok_or_else(missing)
            }
            Target::Nodes => {
                let mut all = Map::new();
                for (id, output) in &self.nodes {
                    let output = self.documents.output(id, *output)?;
                    all.insert((*id).to_owned(), Value::clone(&output));
                }
                Ok(Value::Object(all))
            }
            Target::Node { id, rest } => {
                let known = self.nodes.iter().find(|(known, _)| *known == id);
                let (_, output) = known.ok_or_else(missing)?;
                let output = self.documents.output(&id, *output)?;
                output.pointer(rest).cloned().ok_or_else(missing)
            }
        }
    }
}

/// The input of a node without a template: params and outputs, verbatim.
struct DefaultInput<'a>(&'a Sources<'a>);

impl Serialize for DefaultInput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            params: &'a JsonText,
            nodes: Outputs<'a>,
        }
        let document = Document {
            params: self.0.params,
            nodes: Outputs(&self.0.nodes),
        };
        document.serialize(serializer)
    }
}

struct Outputs<'a>(&'a [(&'a str, Option<&'a JsonText>)]);

impl Serialize for Outputs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests;
