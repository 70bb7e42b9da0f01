//! Compiles a schema document: checks every keyword, resolves every reference to a number, and refuses what breaks a limit.

mod applicators;
mod assertions;
mod references;
mod rules;

use crate::document::Document;
use crate::error::{SchemaError, SchemaLimit, SchemaProblem};
use crate::expansion;
use crate::meter::ValidationLimit;
use crate::pattern::Pattern;
use crate::program::{DynamicName, Keyword, Node, NodeId, PatternId, Program};
use crate::text::quote;
use leasehold_core::limits::{SCHEMA_MAX_PATTERNS, SCHEMA_MAX_PROGRAM_BYTES};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// What a pattern's matching needs beside its program: threads keep their own state.
const PATTERN_STATE_FACTOR: usize = 3;

/// Compiles a document.
pub(crate) fn compile(document: &Value) -> Result<Program, SchemaError> {
    let mut compiler = Compiler {
        document: Document::scan(document)?,
        patterns: Vec::new(),
        pattern_ids: HashMap::new(),
        program_bytes: 0,
        names: HashMap::new(),
    };
    let mut nodes = Vec::new();
    // References may add subschemas to the document.
    while nodes.len() < compiler.document.subschemas.len() {
        nodes.push(compiler.node(NodeId::new(nodes.len()))?);
    }
    let program = compiler.finish(nodes);
    expansion::check(&program, &compiler.document)?;
    Ok(program)
}

/// The keywords of one subschema.
struct Keywords<'a> {
    node: NodeId,
    fields: &'a Map<String, Value>,
    out: Vec<Keyword>,
}

/// The state of a compilation.
struct Compiler<'a> {
    document: Document<'a>,
    patterns: Vec<Pattern>,
    pattern_ids: HashMap<&'a str, PatternId>,
    program_bytes: usize,
    /// The names of dynamic anchors, numbered.
    names: HashMap<&'a str, u32>,
}

impl<'a> Compiler<'a> {
    fn node(&mut self, id: NodeId) -> Result<Node, SchemaError> {
        let subschema = self.document.subschema(id);
        let (value, dialect) = (subschema.value, subschema.dialect);
        let resource = u32::try_from(subschema.resource).unwrap_or(u32::MAX);
        let Value::Object(fields) = value else {
            let never = (value == &Value::Bool(false)).then_some(Keyword::Never);
            return Ok(Node {
                keywords: never.into_iter().collect(),
                unevaluated: None,
                resource,
            });
        };
        for (keyword, value) in fields {
            if let Some(rule) = rules::broken(dialect, keyword, value, fields) {
                let keyword_name = keyword.clone();
                let problem = SchemaProblem::Keyword {
                    keyword: keyword_name,
                    rule,
                };
                return Err(self.document.error_at(id, keyword, problem));
            }
        }
        let mut keywords = Keywords {
            node: id,
            fields,
            out: Vec::new(),
        };
        self.assertions(&mut keywords, dialect)?;
        self.applicators(&mut keywords, dialect)?;
        let unevaluated = self.unevaluated(&keywords, dialect);
        if dialect.is_legacy() && fields.contains_key("$ref") {
            // Its siblings are checked, but they have no effect.
            keywords.out.clear();
        }
        self.references(&mut keywords, dialect)?;
        Ok(Node {
            keywords: keywords.out.into(),
            unevaluated,
            resource,
        })
    }

    /// The number of the subschema that is the value of a keyword. The document has found all of them.
    fn child(&self, value: &Value) -> NodeId {
        self.document.node(value).unwrap_or(NodeId::new(0))
    }

    fn optional_child(&self, value: Option<&Value>) -> Option<NodeId> {
        value.map(|value| self.child(value))
    }

    /// Compiles a pattern, once for all keywords that have it.
    fn pattern(
        &mut self,
        node: NodeId,
        keyword: &str,
        source: &'a str,
    ) -> Result<PatternId, SchemaError> {
        if let Some(id) = self.pattern_ids.get(source) {
            return Ok(*id);
        }
        if self.patterns.len() == SCHEMA_MAX_PATTERNS {
            let error = self.document.error_at(node, keyword, SchemaLimit::Patterns);
            return Err(error);
        }
        let pattern = Pattern::compile(source).map_err(|problem| {
            let pattern = quote(source);
            let problem = SchemaProblem::Pattern { pattern, problem };
            self.document.error_at(node, keyword, problem)
        })?;
        self.program_bytes += pattern.bytes;
        if self.program_bytes > SCHEMA_MAX_PROGRAM_BYTES {
            let error = self.document.error_at(node, keyword, SchemaLimit::Programs);
            return Err(error);
        }
        let id = PatternId(u32::try_from(self.patterns.len()).unwrap_or(u32::MAX));
        self.patterns.push(pattern);
        self.pattern_ids.insert(source, id);
        Ok(id)
    }

    /// The number of a dynamic anchor's name.
    fn name(&mut self, name: &'a str) -> u32 {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        *self.names.entry(name).or_insert(next)
    }

    fn finish(&mut self, nodes: Vec<Node>) -> Program {
        let mut dynamic_anchors = HashMap::new();
        for (resource, number) in self.document.resources.iter().zip(0..) {
            for (name, node) in &resource.dynamic_anchors {
                // A name that no reference looks for is not needed.
                if let Some(name) = self.names.get(name) {
                    dynamic_anchors.insert((number, DynamicName::Anchor(*name)), *node);
                }
            }
            if resource.is_recursive {
                let root = self.document.root_of(number as usize);
                dynamic_anchors.insert((number, DynamicName::Recursive), root);
            }
        }
        let keywords: usize = nodes.iter().map(|node| node.keywords.len()).sum();
        let values: usize = self.document.subschemas[0].value.to_string().len();
        let bytes = nodes.len() * size_of::<Node>()
            + keywords * 2 * size_of::<Keyword>()
            + values * 4
            + self.program_bytes * PATTERN_STATE_FACTOR
            + dynamic_anchors.len() * 32;
        Program {
            nodes,
            patterns: std::mem::take(&mut self.patterns),
            dynamic_anchors,
            bytes,
        }
    }
}

/// The limit of a validation's depth, for a value in the schema itself.
fn too_deep(_: ValidationLimit) -> SchemaProblem {
    SchemaLimit::Depth.into()
}
