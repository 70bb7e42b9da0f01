//! Evaluates the keywords that apply subschemas to the same value.

use super::marks::Marks;
use super::report::Location;
use super::{Evaluator, Verdict};
use crate::meter::ValidationLimit;
use crate::program::{Conditional, DynamicRef, NodeId};
use serde_json::Value;

impl<'p> Evaluator<'p> {
    pub(super) fn all_of(
        &mut self,
        list: &[NodeId],
        value: &Value,
        at: &Location<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Verdict {
        for schema in list {
            if !self.node(*schema, value, at, marks.as_deref_mut())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn any_of(
        &mut self,
        list: &[NodeId],
        value: &Value,
        at: &Location<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Verdict {
        let mut any = false;
        for schema in list {
            // All that match evaluate the value; without marks one is enough.
            any |= self.branch(*schema, value, marks.as_deref_mut())?;
            if any && marks.is_none() {
                break;
            }
        }
        self.require(any, at, "anyOf", || {
            format!(
                "must match at least one of the {} schemas in `anyOf`",
                list.len()
            )
        })
    }

    pub(super) fn one_of(
        &mut self,
        list: &[NodeId],
        value: &Value,
        at: &Location<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Verdict {
        let mut found = None;
        for (index, schema) in list.iter().enumerate() {
            if !self.branch(*schema, value, marks.as_deref_mut())? {
                continue;
            }
            if let Some(first) = found.replace(index) {
                return self.mismatch(at, "oneOf", || {
                    format!("must match only one schema in `oneOf`, matches {first} and {index}")
                });
            }
        }
        self.require(found.is_some(), at, "oneOf", || {
            format!("must match one of the {} schemas in `oneOf`", list.len())
        })
    }

    /// Evaluates one of several subschemas; marks count only if it matches.
    fn branch(&mut self, schema: NodeId, value: &Value, marks: Option<&mut Marks>) -> Verdict {
        let Some(marks) = marks else {
            return self.test(schema, value, None);
        };
        let mut own = Marks::default();
        let matches = self.test(schema, value, Some(&mut own))?;
        if matches {
            self.meter.step(marks.merge(&own))?;
        }
        Ok(matches)
    }

    pub(super) fn not(&mut self, schema: NodeId, value: &Value, at: &Location<'_>) -> Verdict {
        let matches = self.test(schema, value, None)?;
        self.require(!matches, at, "not", || {
            "must not match the schema in `not`".to_owned()
        })
    }

    pub(super) fn conditional(
        &mut self,
        rules: &Conditional,
        value: &Value,
        at: &Location<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Verdict {
        let branch = if self.branch(rules.condition, value, marks.as_deref_mut())? {
            rules.then
        } else {
            rules.otherwise
        };
        match branch {
            Some(schema) => self.node(schema, value, at, marks),
            None => Ok(true),
        }
    }

    pub(super) fn dependent_schemas(
        &mut self,
        list: &[(Box<str>, NodeId)],
        value: &Value,
        at: &Location<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Verdict {
        let Value::Object(fields) = value else {
            return Ok(true);
        };
        for (name, schema) in list {
            self.meter.step(1)?;
            if fields.contains_key(&**name)
                && !self.node(*schema, value, at, marks.as_deref_mut())?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The target of a dynamic reference: the outermost entered resource that has the name.
    pub(super) fn dynamic_target(
        &mut self,
        reference: &DynamicRef,
    ) -> Result<NodeId, ValidationLimit> {
        self.meter.step(self.entered.len() as u64)?;
        let anchors = &self.program.dynamic_anchors;
        let target = self
            .entered
            .iter()
            .find_map(|resource| anchors.get(&(*resource, reference.name)));
        Ok(target.copied().unwrap_or(reference.default))
    }
}
