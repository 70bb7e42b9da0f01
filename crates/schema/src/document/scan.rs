//! Finds every subschema of a document, without recursion, and refuses keywords whose subschemas have another shape.

use super::{Document, Step, Subschema, address};
use crate::dialect::{Children, Dialect};
use crate::error::{SchemaError, SchemaLimit, SchemaProblem};
use crate::program::NodeId;
use leasehold_core::limits::{JSON_MAX_DEPTH, SCHEMA_MAX_SUBSCHEMAS};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The base URI of a document without `$id`.
const DEFAULT_BASE: &str = "schema:///";

/// A subschema that was found and not looked at yet.
pub(super) struct Found<'a> {
    pub(super) value: &'a Value,
    pub(super) dialect: Dialect,
    pub(super) resource: usize,
    pub(super) parent: Option<NodeId>,
    pub(super) step: Step<'a>,
    pub(super) boolean_allowed: bool,
    /// Whether identifiers in it count: not in keywords that hold no subschemas.
    pub(super) identified: bool,
}

impl<'a> Document<'a> {
    /// Finds all subschemas of a document.
    pub(crate) fn scan(value: &'a Value) -> Result<Self, SchemaError> {
        check_depth(value)?;
        let mut document = Self {
            subschemas: Vec::new(),
            resources: Vec::new(),
            by_uri: HashMap::new(),
            by_address: HashMap::new(),
        };
        document.add(Found {
            value,
            dialect: Dialect::Draft2020,
            resource: 0,
            parent: None,
            step: Step::Pointer("".into()),
            boolean_allowed: true,
            identified: true,
        })?;
        Ok(document)
    }

    /// Adds a subschema and all that it contains; returns its number.
    pub(super) fn add(&mut self, first: Found<'a>) -> Result<NodeId, SchemaError> {
        let added = NodeId::new(self.subschemas.len());
        let mut found = vec![first];
        while let Some(next) = found.pop() {
            let node = NodeId::new(self.subschemas.len());
            let (identified, boolean_allowed) = (next.identified, next.boolean_allowed);
            self.by_address.insert(address(next.value), node);
            self.subschemas.push(Subschema {
                value: next.value,
                dialect: next.dialect,
                resource: next.resource,
                parent: next.parent,
                step: next.step,
            });
            if self.subschemas.len() > SCHEMA_MAX_SUBSCHEMAS {
                return Err(self.error(NodeId::new(0), SchemaLimit::Subschemas));
            }
            if node.index() == 0 {
                self.open_resource(node, DEFAULT_BASE.to_owned());
            }
            match next.value {
                Value::Bool(_) if boolean_allowed => {}
                Value::Object(fields) => {
                    self.read_dialect(node, fields)?;
                    if identified {
                        self.identify(node, fields)?;
                    }
                    self.find_children(node, fields, identified, &mut found)?;
                }
                _ => return Err(self.error(node, SchemaProblem::NotASchema { boolean_allowed })),
            }
        }
        Ok(added)
    }

    fn find_children(
        &self,
        node: NodeId,
        fields: &'a Map<String, Value>,
        identified: bool,
        found: &mut Vec<Found<'a>>,
    ) -> Result<(), SchemaError> {
        let dialect = self.subschema(node).dialect;
        for (keyword, value) in fields {
            let Some(children) = dialect.children(keyword) else {
                continue;
            };
            let Some(list) = list_children(children, keyword, value) else {
                let keyword_name = keyword.clone();
                let problem = SchemaProblem::Keyword {
                    keyword: keyword_name,
                    rule: rule(children, dialect),
                };
                return Err(self.error_at(node, keyword, problem));
            };
            let boolean = dialect > Dialect::Draft4 || children == Children::OneOrBoolean;
            found.extend(list.into_iter().map(|(step, value)| Found {
                value,
                dialect,
                resource: self.subschema(node).resource,
                parent: Some(node),
                step,
                boolean_allowed: boolean,
                identified,
            }));
        }
        Ok(())
    }
}

/// Returns the subschemas in the value of a keyword, or `None` if the value has another shape.
fn list_children<'a>(
    children: Children,
    keyword: &'a str,
    value: &'a Value,
) -> Option<Vec<(Step<'a>, &'a Value)>> {
    let named = |keep: fn(&Value) -> bool| {
        let fields = value.as_object()?.iter();
        let fields = fields.filter(|(_, value)| keep(value));
        Some(
            fields
                .map(|(name, value)| (Step::Name(keyword, name), value))
                .collect(),
        )
    };
    match (children, value) {
        (Children::Many, Value::Array(items)) | (Children::OneOrMany, Value::Array(items)) => {
            let items = items.iter().enumerate();
            let list: Vec<_> = items
                .map(|(index, value)| (Step::Index(keyword, index), value))
                .collect();
            (!list.is_empty()).then_some(list)
        }
        (Children::Many, _) => None,
        (Children::One | Children::OneOrBoolean | Children::OneOrMany, _) => {
            Some(vec![(Step::Keyword(keyword), value)])
        }
        (Children::Named, _) => named(|_| true),
        (Children::NamedOrNames, _) => named(|value| !value.is_array()),
    }
}

fn rule(children: Children, dialect: Dialect) -> &'static str {
    match children {
        Children::One if dialect == Dialect::Draft4 => "a schema (an object)",
        Children::One | Children::OneOrBoolean => "a schema (an object or a boolean)",
        Children::OneOrMany => "a schema or a non-empty array of schemas",
        Children::Many => "a non-empty array of schemas",
        Children::Named => "an object whose values are schemas",
        Children::NamedOrNames => "an object whose values are schemas or arrays of property names",
    }
}

/// Refuses a document that nests too deep. Recurses no deeper than the limit.
fn check_depth(value: &Value) -> Result<(), SchemaError> {
    fn fits(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
            Value::Object(fields) => left > 0 && fields.values().all(|item| fits(item, left - 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
    if fits(value, JSON_MAX_DEPTH) {
        return Ok(());
    }
    Err(SchemaError {
        path: String::new(),
        problem: SchemaLimit::Depth.into(),
    })
}
