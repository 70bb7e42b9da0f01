//! The document of a schema: every subschema with its dialect and its base URI, and what references can name. Evaluates nothing.

mod identify;
mod scan;

use crate::dialect::Dialect;
use crate::error::{SchemaError, SchemaLimit, SchemaProblem};
use crate::program::NodeId;
use crate::text::{push_index, push_token, quote};
use crate::uri;
use leasehold_core::limits::SCHEMA_MAX_URI_BYTES;
use scan::Found;
use serde_json::Value;
use std::collections::HashMap;

/// A schema document. Subschemas are numbered; the root is the first.
pub(crate) struct Document<'a> {
    pub(crate) subschemas: Vec<Subschema<'a>>,
    pub(crate) resources: Vec<Resource<'a>>,
    by_uri: HashMap<String, usize>,
    by_address: HashMap<usize, NodeId>,
}

/// A schema or a part of one.
pub(crate) struct Subschema<'a> {
    pub(crate) value: &'a Value,
    pub(crate) dialect: Dialect,
    /// The schema resource that it belongs to.
    pub(crate) resource: usize,
    parent: Option<NodeId>,
    step: Step<'a>,
}

/// The way from a parent to a subschema.
#[derive(Clone)]
enum Step<'a> {
    Keyword(&'a str),
    Name(&'a str, &'a str),
    Index(&'a str, usize),
    /// The JSON pointer of a reference into a keyword that holds no subschemas.
    Pointer(Box<str>),
}

/// A schema with an identifier of its own, or the whole document.
pub(crate) struct Resource<'a> {
    uri: String,
    root: NodeId,
    anchors: HashMap<&'a str, NodeId>,
    pub(crate) dynamic_anchors: HashMap<&'a str, NodeId>,
    /// `$recursiveAnchor` of draft 2019-09.
    pub(crate) is_recursive: bool,
}

impl<'a> Document<'a> {
    /// Returns the number of the subschema with this value.
    pub(crate) fn node(&self, value: &Value) -> Option<NodeId> {
        self.by_address.get(&address(value)).copied()
    }

    pub(crate) fn subschema(&self, node: NodeId) -> &Subschema<'a> {
        &self.subschemas[node.index()]
    }

    /// Returns the root of a resource.
    pub(crate) fn root_of(&self, resource: usize) -> NodeId {
        self.resources[resource].root
    }

    /// Returns the JSON pointer of a subschema.
    pub(crate) fn path(&self, node: NodeId) -> String {
        let mut steps = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at {
            let subschema = self.subschema(node);
            steps.push(&subschema.step);
            at = subschema.parent;
        }
        let mut path = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Keyword(keyword) => push_token(&mut path, keyword),
                Step::Name(keyword, name) => {
                    push_token(&mut path, keyword);
                    push_token(&mut path, name);
                }
                Step::Index(keyword, index) => {
                    push_token(&mut path, keyword);
                    push_index(&mut path, *index);
                }
                Step::Pointer(pointer) => path.push_str(pointer),
            }
        }
        path
    }

    /// An error at a subschema.
    pub(crate) fn error(&self, node: NodeId, problem: impl Into<SchemaProblem>) -> SchemaError {
        SchemaError {
            path: self.path(node),
            problem: problem.into(),
        }
    }

    /// An error at a keyword of a subschema.
    pub(crate) fn error_at(
        &self,
        node: NodeId,
        keyword: &str,
        problem: impl Into<SchemaProblem>,
    ) -> SchemaError {
        let mut path = self.path(node);
        push_token(&mut path, keyword);
        SchemaError {
            path,
            problem: problem.into(),
        }
    }

    /// Returns the subschema that a reference from `node` names. A JSON pointer may lead into a keyword that holds no
    /// subschemas; what it names is then added to the document.
    pub(crate) fn resolve(
        &mut self,
        node: NodeId,
        keyword: &str,
        reference: &str,
    ) -> Result<NodeId, SchemaError> {
        if reference.len() > SCHEMA_MAX_URI_BYTES {
            return Err(self.error_at(node, keyword, SchemaLimit::Uri));
        }
        let (resource, fragment) = match self.resource_and_fragment(node, reference) {
            Some(found) => found,
            None => return Err(self.unresolved(node, keyword, reference)),
        };
        let found = match fragment.strip_prefix('/') {
            Some(pointer) => self.follow(resource, pointer)?,
            None if fragment.is_empty() => Some(self.root_of(resource)),
            None => self.resources[resource]
                .anchors
                .get(fragment.as_str())
                .copied(),
        };
        found.ok_or_else(|| self.unresolved(node, keyword, reference))
    }

    /// Splits a reference into the resource that it names and its decoded fragment.
    pub(crate) fn resource_and_fragment(
        &self,
        node: NodeId,
        reference: &str,
    ) -> Option<(usize, String)> {
        let base = &self.resources[self.subschema(node).resource];
        let uri = uri::resolve(&base.uri, reference);
        let resource = *self.by_uri.get(&uri)?;
        let fragment = uri::split(reference).fragment.unwrap_or("");
        Some((resource, uri::percent_decode(fragment)?))
    }

    fn unresolved(&self, node: NodeId, keyword: &str, reference: &str) -> SchemaError {
        let reference = quote(reference);
        self.error_at(node, keyword, SchemaProblem::Unresolved { reference })
    }

    /// Follows a JSON pointer from the root of a resource.
    fn follow(&mut self, resource: usize, pointer: &str) -> Result<Option<NodeId>, SchemaError> {
        let mut at = self.root_of(resource);
        let mut value = self.subschema(at).value;
        let mut beyond = String::new();
        for token in pointer.split('/') {
            let token = token.replace("~1", "/").replace("~0", "~");
            let next = match value {
                Value::Object(fields) => fields.get(&token),
                Value::Array(items) => token.parse::<usize>().ok().and_then(|i| items.get(i)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            };
            let Some(next) = next else {
                return Ok(None);
            };
            value = next;
            push_token(&mut beyond, &token);
            if let Some(node) = self.node(value) {
                at = node;
                beyond.clear();
            }
        }
        if beyond.is_empty() {
            return Ok(Some(at));
        }
        let (dialect, resource) = (self.subschema(at).dialect, self.subschema(at).resource);
        let added = self.add(Found {
            value,
            dialect,
            resource,
            parent: Some(at),
            step: Step::Pointer(beyond.into()),
            boolean_allowed: dialect > Dialect::Draft4,
            identified: false,
        })?;
        Ok(Some(added))
    }
}

/// A value's address identifies it while the document is borrowed.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
