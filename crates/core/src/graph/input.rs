//! The input of a node: params and all predecessor outputs, or what its `input` template selects.
//!
//! The size of an input is computed before the input is built, and the computation stops at the first byte over the limit.

use super::lookup::{FoundValue, Lookup};
use super::machine::Machine;
use super::node::Node;
use super::pointer::{Target, pointer, pointers, target};
use super::work::NodeContext;
use crate::JsonText;
use crate::limits::{JSON_MAX_DEPTH, NODE_INPUT_MAX_BYTES, STEP_READ_MAX_BYTES, URL_MAX_CHARS};
use serde_json::Value;
use std::collections::HashMap;
use thiserror::Error;

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
    /// Longer than a URL may be.
    #[error("cannot build the node's url: it exceeds {URL_MAX_CHARS} characters with {0} inserted")]
    UrlTooLong(String),
    /// Larger than an input may be.
    #[error(
        "the node's input exceeds {NODE_INPUT_MAX_BYTES} bytes of JSON; select less with `input`"
    )]
    TooLarge,
    /// The documents that inputs are built from are too large.
    #[error(
        "the nodes that start together read {0} bytes of params and outputs, the maximum is {STEP_READ_MAX_BYTES}; return smaller outputs"
    )]
    TooMuchToRead(usize),
    /// The nodes that start together would write too much.
    #[error(
        "the nodes that start together write more than {0} bytes; select less with `input`, or start fewer nodes at once"
    )]
    TooMuchAtOnce(usize),
    /// Nested deeper than a job's payload may be.
    #[error("the node's input is nested too deep; select less with `input`")]
    TooDeep,
    /// The stored text is not JSON.
    #[error("the node's input is not valid JSON")]
    NotJson,
}

/// Params and outputs with the values that some nodes refer to. Each document is read once for all of them.
pub(super) struct Documents<'a> {
    params: Lookup<'a>,
    outputs: HashMap<usize, Lookup<'a>>,
}

impl<'a> Documents<'a> {
    /// Reads what the inputs of these nodes are built from.
    pub(super) fn read(
        machine: &Machine,
        nodes: &[usize],
        context: &NodeContext<'a>,
    ) -> Result<Self, InputProblem> {
        let mut documents = Self {
            params: Lookup::new(context.params.as_str()),
            outputs: HashMap::new(),
        };
        for before in machine.needs(nodes) {
            let output = context.outputs.get(&before);
            let text = output.map_or("null", JsonText::as_str);
            documents.outputs.insert(before, Lookup::new(text));
        }
        let bytes = documents.bytes();
        if bytes > STEP_READ_MAX_BYTES {
            return Err(InputProblem::TooMuchToRead(bytes));
        }
        for &at in nodes {
            documents.want(machine, at);
        }
        documents.params.scan();
        documents.outputs.values_mut().for_each(Lookup::scan);
        let are_json = documents.outputs.values().all(Lookup::is_json);
        match are_json && documents.params.is_json() {
            true => Ok(documents),
            false => Err(InputProblem::NotJson),
        }
    }

    /// Returns the bytes of all documents.
    pub(super) fn bytes(&self) -> usize {
        self.params.bytes() + self.outputs.values().map(Lookup::bytes).sum::<usize>()
    }

    /// Returns the bytes of the documents that the input of this node is built from.
    pub(super) fn bytes_of(&self, machine: &Machine, at: usize) -> usize {
        let outputs = machine.needs(&[at]).into_iter();
        let outputs = outputs.filter_map(|before| self.outputs.get(&before));
        self.params.bytes() + outputs.map(Lookup::bytes).sum::<usize>()
    }

    fn want(&mut self, machine: &Machine, at: usize) {
        let node = machine.node(at);
        if node.input.is_none() && node.kind.has_default_input() {
            self.params.want("");
            self.want_outputs(machine, at);
        }
        for pointer in pointers(node) {
            match target(pointer) {
                Some(Target::Params(rest)) => self.params.want(rest),
                Some(Target::Nodes) => self.want_outputs(machine, at),
                Some(Target::Node { id, rest }) => {
                    let output = machine.position(&id);
                    let output = output.and_then(|before| self.outputs.get_mut(&before));
                    output.into_iter().for_each(|output| output.want(rest));
                }
                None => {}
            }
        }
    }

    fn want_outputs(&mut self, machine: &Machine, at: usize) {
        for before in machine.predecessors(at) {
            let output = self.outputs.get_mut(before);
            output.into_iter().for_each(|output| output.want(""));
        }
    }
}

/// What the input of one node is built from.
pub(super) struct NodeSources<'a> {
    pub(super) machine: &'a Machine,
    pub(super) at: usize,
    pub(super) documents: &'a Documents<'a>,
}

/// The target of a pointer.
pub(super) enum InputSource<'a> {
    Value(FoundValue<'a>),
    /// The outputs of all predecessors.
    Outputs,
}

impl<'a> NodeSources<'a> {
    /// Resolves a pointer.
    pub(super) fn at(&self, pointer: &str) -> Result<InputSource<'a>, InputProblem> {
        let missing = || InputProblem::Missing(pointer.to_owned());
        let found = match target(pointer).ok_or_else(missing)? {
            Target::Params(rest) => self.documents.params.at(rest),
            Target::Nodes => return Ok(InputSource::Outputs),
            Target::Node { id, rest } => {
                let position = self.machine.position(&id);
                let is_before = |before: &usize| {
                    self.machine
                        .predecessors(self.at)
                        .binary_search(before)
                        .is_ok()
                };
                let output = position.filter(is_before);
                let output = output.and_then(|before| self.documents.outputs.get(&before));
                output.and_then(|output| output.at(rest))
            }
        };
        found.map(InputSource::Value).ok_or_else(missing)
    }

    /// Returns the bytes of the node's input without building it.
    pub(super) fn input_bytes(&self, node: &Node) -> Result<usize, InputProblem> {
        let mut size = InputSize(0);
        self.write(node, &mut size)?;
        Ok(size.0)
    }

    /// Builds the node's input.
    pub(super) fn input(&self, node: &Node) -> Result<JsonText, InputProblem> {
        let mut text = String::with_capacity(self.input_bytes(node)?);
        self.write(node, &mut text)?;
        Ok(JsonText::trusted(text))
    }

    fn write(&self, node: &Node, out: &mut impl InputWriter) -> Result<(), InputProblem> {
        match &node.input {
            Some(template) => self.fill(template, 0, out),
            None => {
                let params = self.documents.params.at("").ok_or(InputProblem::NotJson)?;
                out.push(r#"{"params":"#)?;
                insert(params, 1, out)?;
                out.push(r#","nodes":"#)?;
                self.write_outputs(1, out)?;
                out.push("}")
            }
        }
    }

    /// Writes an object of the outputs of all predecessors, verbatim.
    fn write_outputs(&self, level: usize, out: &mut impl InputWriter) -> Result<(), InputProblem> {
        check_depth(level + 1)?;
        let mut separator = "{";
        for before in self.machine.predecessors(self.at) {
            let output = self.documents.outputs.get(before);
            let output = output.and_then(|output| output.at(""));
            out.push(separator)?;
            push_text(self.machine.node(*before).id(), out)?;
            out.push(":")?;
            insert(output.ok_or(InputProblem::NotJson)?, level + 1, out)?;
            separator = ",";
        }
        out.push(if separator == "{" { "{}" } else { "}" })
    }

    /// Writes a template with its references replaced. `level` is the number of arrays and objects around it.
    fn fill(
        &self,
        template: &Value,
        level: usize,
        out: &mut impl InputWriter,
    ) -> Result<(), InputProblem> {
        match template {
            Value::Object(fields) => {
                if let Some(Value::String(pointer)) = pointer(fields) {
                    return match self.at(pointer)? {
                        InputSource::Value(found) => insert(found, level, out),
                        InputSource::Outputs => self.write_outputs(level, out),
                    };
                }
                check_depth(level + 1)?;
                out.push("{")?;
                for (number, (name, value)) in fields.iter().enumerate() {
                    out.push(if number > 0 { "," } else { "" })?;
                    push_text(name, out)?;
                    out.push(":")?;
                    self.fill(value, level + 1, out)?;
                }
                out.push("}")
            }
            Value::Array(items) => {
                check_depth(level + 1)?;
                out.push("[")?;
                for (number, item) in items.iter().enumerate() {
                    out.push(if number > 0 { "," } else { "" })?;
                    self.fill(item, level + 1, out)?;
                }
                out.push("]")
            }
            Value::String(text) => push_text(text, out),
            Value::Null | Value::Bool(_) | Value::Number(_) => out.push(&template.to_string()),
        }
    }
}

/// Receives the text of an input.
trait InputWriter {
    /// Appends; fails if the input becomes larger than it may be.
    fn push(&mut self, text: &str) -> Result<(), InputProblem>;
}

/// Counts the bytes of an input.
struct InputSize(usize);

impl InputWriter for InputSize {
    fn push(&mut self, text: &str) -> Result<(), InputProblem> {
        self.0 += text.len();
        match self.0 > NODE_INPUT_MAX_BYTES {
            true => Err(InputProblem::TooLarge),
            false => Ok(()),
        }
    }
}

impl InputWriter for String {
    fn push(&mut self, text: &str) -> Result<(), InputProblem> {
        self.push_str(text);
        Ok(())
    }
}

fn insert(
    found: FoundValue<'_>,
    level: usize,
    out: &mut impl InputWriter,
) -> Result<(), InputProblem> {
    out.push(found.text)?;
    check_depth(level + found.depth)
}

fn push_text(text: &str, out: &mut impl InputWriter) -> Result<(), InputProblem> {
    let text = serde_json::to_string(text).map_err(|_| InputProblem::NotJson)?;
    out.push(&text)
}

/// The innermost values and the enclosing payload add a level each.
fn check_depth(depth: usize) -> Result<(), InputProblem> {
    match depth + 2 > JSON_MAX_DEPTH {
        true => Err(InputProblem::TooDeep),
        false => Ok(()),
    }
}

/// Returns whether a call with this method has a body.
pub(super) fn has_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
}

#[cfg(test)]
mod tests;
