//! Evaluates a compiled schema against a value: counts every step, bounds its depth, and stops at the first mismatch.

mod applicators;
mod array;
mod assertions;
mod marks;
mod object;
mod report;

use crate::error::{Mismatch, ValidationError};
use crate::meter::{Meter, ValidationLimit, ValidationLimits};
use crate::program::{Keyword, Node, NodeId, PatternId, Program, Unevaluated};
use leasehold_core::limits::VALIDATION_MAX_DEPTH;
use marks::Marks;
use report::Location;
use serde_json::Value;

/// Validates a value.
pub(crate) fn evaluate(
    program: &Program,
    value: &Value,
    limits: ValidationLimits,
) -> Result<(), ValidationError> {
    let mut evaluator = Evaluator {
        program,
        meter: Meter::new(limits),
        depth: 0,
        quiet: 0,
        entered: Vec::new(),
        mismatch: None,
    };
    if evaluator.node(NodeId::new(0), value, &Location::ROOT, None)? {
        return Ok(());
    }
    let mismatch = evaluator.mismatch.unwrap_or_else(|| Mismatch {
        path: String::new(),
        keyword: "",
        message: "does not match the schema".to_owned(),
    });
    Err(mismatch.into())
}

/// Whether a value matches, or the limit that stopped the validation.
type Verdict = Result<bool, ValidationLimit>;

/// The state of one validation.
struct Evaluator<'p> {
    program: &'p Program,
    meter: Meter,
    /// How deep subschemas apply within each other.
    depth: usize,
    /// Above 0 while a mismatch is not an error, such as in `anyOf`.
    quiet: usize,
    /// The resources that were entered, outermost first, if the schema has dynamic references.
    entered: Vec<u32>,
    mismatch: Option<Mismatch>,
}

impl<'p> Evaluator<'p> {
    /// Evaluates a subschema. `marks` collects what it evaluates of the value, if a schema around it needs to know.
    fn node(
        &mut self,
        id: NodeId,
        value: &Value,
        at: &Location<'_>,
        marks: Option<&mut Marks>,
    ) -> Verdict {
        self.meter.step(1)?;
        if self.depth == VALIDATION_MAX_DEPTH {
            return Err(ValidationLimit::Depth);
        }
        self.depth += 1;
        let node = &self.program.nodes[id.index()];
        let has_entered = self.enter(node);
        let verdict = match &node.unevaluated {
            None => self.keywords(node, value, at, marks),
            Some(rules) => self.with_unevaluated(node, rules, value, at, marks),
        };
        if has_entered {
            self.entered.pop();
        }
        self.depth -= 1;
        verdict
    }

    fn enter(&mut self, node: &Node) -> bool {
        if self.program.dynamic_anchors.is_empty() || self.entered.last() == Some(&node.resource) {
            return false;
        }
        self.entered.push(node.resource);
        true
    }

    fn keywords(
        &mut self,
        node: &'p Node,
        value: &Value,
        at: &Location<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Verdict {
        for keyword in &node.keywords {
            self.meter.step(1)?;
            if !self.keyword(keyword, value, at, marks.as_deref_mut())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn keyword(
        &mut self,
        keyword: &'p Keyword,
        value: &Value,
        at: &Location<'_>,
        marks: Option<&mut Marks>,
    ) -> Verdict {
        match keyword {
            Keyword::Object(rules) => self.object(rules, value, at, marks),
            Keyword::PropertyNames(schema) => self.property_names(*schema, value, at),
            Keyword::Array(rules) => self.array(rules, value, at, marks),
            Keyword::Contains(rules) => self.contains(rules, value, at, marks),
            Keyword::AllOf(list) => self.all_of(list, value, at, marks),
            Keyword::AnyOf(list) => self.any_of(list, value, at, marks),
            Keyword::OneOf(list) => self.one_of(list, value, at, marks),
            Keyword::Not(schema) => self.not(*schema, value, at),
            Keyword::If(rules) => self.conditional(rules, value, at, marks),
            Keyword::DependentSchemas(list) => self.dependent_schemas(list, value, at, marks),
            Keyword::Ref(target) => self.node(*target, value, at, marks),
            Keyword::DynamicRef(reference) => {
                let target = self.dynamic_target(reference)?;
                self.node(target, value, at, marks)
            }
            assertion => self.assertion(assertion, value, at),
        }
    }

    /// Evaluates a subschema whose mismatch is not an error.
    fn test(&mut self, id: NodeId, value: &Value, marks: Option<&mut Marks>) -> Verdict {
        self.quiet += 1;
        let verdict = self.node(id, value, &Location::ROOT, marks);
        self.quiet -= 1;
        verdict
    }

    /// Evaluates all keywords, then `unevaluatedProperties` or `unevaluatedItems` with what is left.
    fn with_unevaluated(
        &mut self,
        node: &'p Node,
        rules: &Unevaluated,
        value: &Value,
        at: &Location<'_>,
        outer: Option<&mut Marks>,
    ) -> Verdict {
        let mut marks = Marks::default();
        if !self.keywords(node, value, at, Some(&mut marks))? {
            return Ok(false);
        }
        let matches = match value {
            Value::Object(fields) => match rules.properties {
                Some(schema) => self.unevaluated_properties(schema, fields, at, &mut marks)?,
                None => true,
            },
            Value::Array(items) => match rules.items {
                Some(schema) => self.unevaluated_items(schema, items, at, &mut marks)?,
                None => true,
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        };
        if matches && let Some(outer) = outer {
            self.meter.step(outer.merge(&marks))?;
        }
        Ok(matches)
    }

    /// Whether a text matches a pattern.
    fn matches(&mut self, pattern: PatternId, text: &str) -> Verdict {
        let pattern = &self.program.patterns[pattern.0 as usize];
        self.meter.step(pattern.steps(text.len()))?;
        Ok(pattern.is_match(text))
    }
}
