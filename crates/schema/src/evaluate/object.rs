//! Evaluates the keywords that apply subschemas to the properties of an object.

use super::marks::Marks;
use super::report::Location;
use super::{Evaluator, Verdict};
use crate::program::{NodeId, ObjectRules};
use crate::text::quote;
use serde_json::{Map, Value};

impl<'p> Evaluator<'p> {
    /// `properties`, `patternProperties` and `additionalProperties`, in one pass over the object.
    pub(super) fn object(
        &mut self,
        rules: &'p ObjectRules,
        value: &Value,
        at: &Location<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Verdict {
        let Value::Object(fields) = value else {
            return Ok(true);
        };
        for (position, (key, value)) in fields.iter().enumerate() {
            self.meter.step_bytes(key.len())?;
            match self.property(rules, key, value, at)? {
                Property::Mismatch => return Ok(false),
                Property::Unknown => {}
                Property::Evaluated => {
                    if let Some(marks) = marks.as_deref_mut() {
                        marks.insert(position);
                    }
                }
            }
        }
        Ok(true)
    }

    fn property(
        &mut self,
        rules: &'p ObjectRules,
        key: &str,
        value: &Value,
        at: &Location<'_>,
    ) -> Result<Property, crate::meter::ValidationLimit> {
        let here = at.key(key);
        let mut is_known = false;
        let named = rules
            .properties
            .binary_search_by(|(name, _)| (**name).cmp(key));
        if let Ok(index) = named {
            is_known = true;
            if !self.node(rules.properties[index].1, value, &here, None)? {
                return Ok(Property::Mismatch);
            }
        }
        for (pattern, schema) in &rules.patterns {
            if self.matches(*pattern, key)? {
                is_known = true;
                if !self.node(*schema, value, &here, None)? {
                    return Ok(Property::Mismatch);
                }
            }
        }
        if is_known {
            return Ok(Property::Evaluated);
        }
        let Some(schema) = rules.additional else {
            return Ok(Property::Unknown);
        };
        let matches = if self.program.nodes[schema.index()].is_false() {
            self.property_not_allowed(key, at, "additionalProperties")?
        } else {
            self.node(schema, value, &here, None)?
        };
        Ok(if matches {
            Property::Evaluated
        } else {
            Property::Mismatch
        })
    }

    fn property_not_allowed(
        &mut self,
        key: &str,
        at: &Location<'_>,
        keyword: &'static str,
    ) -> Verdict {
        self.mismatch(at, keyword, || {
            format!("property {} is not allowed", quote(key))
        })
    }

    pub(super) fn property_names(
        &mut self,
        schema: NodeId,
        value: &Value,
        at: &Location<'_>,
    ) -> Verdict {
        let Value::Object(fields) = value else {
            return Ok(true);
        };
        for key in fields.keys() {
            self.meter.step_bytes(key.len())?;
            let name = Value::String(key.clone());
            if !self.node(schema, &name, at, None)? {
                if self.quiet == 0
                    && let Some(mismatch) = &mut self.mismatch
                {
                    mismatch.keyword = "propertyNames";
                    mismatch.message = format!("property name {} {}", quote(key), mismatch.message);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn unevaluated_properties(
        &mut self,
        schema: NodeId,
        fields: &Map<String, Value>,
        at: &Location<'_>,
        marks: &mut Marks,
    ) -> Verdict {
        let is_false = self.program.nodes[schema.index()].is_false();
        for (position, (key, value)) in fields.iter().enumerate() {
            self.meter.step(1)?;
            if marks.contains(position) {
                continue;
            }
            let matches = if is_false {
                self.property_not_allowed(key, at, "unevaluatedProperties")?
            } else {
                self.node(schema, value, &at.key(key), None)?
            };
            if !matches {
                return Ok(false);
            }
        }
        marks.insert_all();
        Ok(true)
    }
}

/// What the keywords on properties make of one.
enum Property {
    Evaluated,
    Unknown,
    Mismatch,
}
