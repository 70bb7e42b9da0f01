//! What a node is given: everything before it, or what its `input` and its URL choose of that.

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

/// The key that stands for something else.
pub(super) const FROM: &str = "$from";

/// Why a node cannot be given its input.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputProblem {
    /// What it points at is not there.
    #[error("its input needs {0}, which is not there")]
    Missing(String),
    /// A list, an object or null cannot stand in a URL.
    #[error("its url needs {0} to be a string, a number or a boolean")]
    NotPlain(String),
    /// An empty text, `.` or `..` would change which resource the URL names.
    #[error("its url needs {0} to be more than dots")]
    NoSegment(String),
    /// More than a node may be given.
    #[error(
        "its input has {0} bytes of JSON, more than {NODE_INPUT_MAX_BYTES}; `input` can choose less"
    )]
    TooLarge(usize),
    /// All nodes that begin with it are given more than an execution may be given at once.
    #[error(
        "the nodes that begin at once are given more than {STEP_MAX_BYTES} bytes of JSON together; `input` can choose less"
    )]
    TooMuchAtOnce,
    /// Nested deeper than a job's payload may be.
    #[error("its input is nested too deep; `input` can choose less")]
    TooDeep,
    /// What was kept is no JSON.
    #[error("its input is no JSON")]
    NotJson,
}

/// Where inputs come from.
pub(super) struct Sources<'a> {
    pub(super) documents: &'a Documents,
    pub(super) params: &'a JsonText,
    /// The outputs of the nodes before it by their ids, null where there is none.
    pub(super) nodes: Vec<(&'a str, Option<&'a JsonText>)>,
}

/// The input of a node.
pub(super) fn input(node: &Node, sources: &Sources<'_>) -> Result<JsonText, InputProblem> {
    let text = match &node.input {
        None => {
            let outputs = sources.nodes.iter().filter_map(|(_, output)| *output);
            let bytes: usize = outputs.map(|output| output.as_str().len()).sum();
            let bytes = bytes + sources.params.as_str().len();
            if bytes > NODE_INPUT_MAX_BYTES {
                return Err(InputProblem::TooLarge(bytes));
            }
            JsonText::of(&Everything(sources))
        }
        Some(template) => JsonText::of(&filled(template, sources, &mut 0)?),
    };
    let text = text.map_err(|_| InputProblem::NotJson)?;
    match text.as_str().len() {
        bytes if bytes > NODE_INPUT_MAX_BYTES => Err(InputProblem::TooLarge(bytes)),
        // What is in the innermost list and the payload around it are a level each.
        _ if json::depth(text.as_str()) + 2 > JSON_MAX_DEPTH => Err(InputProblem::TooDeep),
        _ => Ok(text),
    }
}

/// A URL with what its placeholders point at, percent-encoded.
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

/// A brace that is not closed is text.
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
            // Writing to a string does not fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

/// The pointer that an object of this kind stands for.
pub(super) fn pointer(fields: &Map<String, Value>) -> Option<&Value> {
    fields.get(FROM).filter(|_| fields.len() == 1)
}

/// `bytes` is what was filled in so far: a template could name the same thing many times.
fn filled(
    template: &Value,
    sources: &Sources<'_>,
    bytes: &mut usize,
) -> Result<Value, InputProblem> {
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
                object.insert(name.clone(), filled(value, sources, bytes)?);
            }
            Ok(Value::Object(object))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| filled(item, sources, bytes));
            items.collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(template.clone()),
    }
}

/// About how many bytes of JSON a value is, never more.
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

/// What was read of params and outputs, each once for all nodes that begin together.
#[derive(Default)]
pub(super) struct Documents {
    params: OnceCell<Option<Value>>,
    outputs: RefCell<HashMap<String, Rc<Value>>>,
}

impl Documents {
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

/// Where a pointer leads.
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

/// The first part of a path, and the rest with its slash.
fn split(path: &str) -> (&str, &str) {
    path.split_at(path.find('/').unwrap_or(path.len()))
}

/// Which nodes' outputs a node is given.
pub(super) enum Reads {
    All,
    Only(HashSet<String>),
}

impl Reads {
    pub(super) fn of(node: &Node) -> Self {
        let mut pointers = Vec::new();
        if let NodeKind::Http { url, .. } = &node.kind {
            pointers.extend(url_parts(url).into_iter().filter_map(|part| match part {
                UrlPart::Pointer(pointer) => Some(pointer),
                UrlPart::Text(_) => None,
            }));
        }
        match &node.input {
            None if node.kind.takes_everything() => return Self::All,
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

    pub(super) fn node(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.contains(id),
        }
    }
}

/// Whether a call with this method has a body.
pub(super) fn sends(method: &str) -> bool {
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
    /// What is there.
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

/// What a node is given if it does not choose, its parts as they came.
struct Everything<'a>(&'a Sources<'a>);

impl Serialize for Everything<'_> {
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
