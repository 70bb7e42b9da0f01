//! Evaluates the keywords that apply subschemas to the items of an array.

use super::marks::Marks;
use super::report::Location;
use super::{Evaluator, Verdict};
use crate::program::{ArrayRules, Contains, NodeId};
use serde_json::Value;

impl<'p> Evaluator<'p> {
    /// `prefixItems` and `items`, or `items` and `additionalItems`.
    pub(super) fn array(
        &mut self,
        rules: &'p ArrayRules,
        value: &Value,
        at: &Location<'_>,
        marks: Option<&mut Marks>,
    ) -> Verdict {
        let Value::Array(items) = value else {
            return Ok(true);
        };
        for (index, (item, schema)) in items.iter().zip(&rules.prefix).enumerate() {
            if !self.node(*schema, item, &at.index(index), None)? {
                return Ok(false);
            }
        }
        let prefix = rules.prefix.len();
        if let Some(schema) = rules.rest {
            if items.len() > prefix && self.program.nodes[schema.index()].is_false() {
                return self.mismatch(at, rules.rest_keyword, || {
                    format!("must have at most {prefix} items, has {}", items.len())
                });
            }
            for (index, item) in items.iter().enumerate().skip(prefix) {
                if !self.node(schema, item, &at.index(index), None)? {
                    return Ok(false);
                }
            }
        }
        if let Some(marks) = marks {
            if rules.rest.is_some() {
                marks.insert_all();
            } else {
                let evaluated = prefix.min(items.len());
                self.meter.step(evaluated as u64)?;
                (0..evaluated).for_each(|index| marks.insert(index));
            }
        }
        Ok(true)
    }

    pub(super) fn contains(
        &mut self,
        rules: &Contains,
        value: &Value,
        at: &Location<'_>,
        marks: Option<&mut Marks>,
    ) -> Verdict {
        let Value::Array(items) = value else {
            return Ok(true);
        };
        let mut marks = marks.filter(|_| rules.evaluates);
        let mut found = 0;
        for (index, item) in items.iter().enumerate() {
            if marks.is_none() && rules.max.is_none() && found >= rules.min {
                break;
            }
            if self.test(rules.schema, item, None)? {
                found += 1;
                if let Some(marks) = marks.as_deref_mut() {
                    marks.insert(index);
                }
            }
            if rules.max.is_some_and(|max| found > max) {
                break;
            }
        }
        if let Some(max) = rules.max.filter(|max| found > *max) {
            return self.mismatch(at, "maxContains", || {
                format!("must have at most {max} items that match `contains`")
            });
        }
        let (min, keyword) = match rules.min {
            1 => (1, "contains"),
            min => (min, "minContains"),
        };
        self.require(found >= min, at, keyword, || {
            format!("must have at least {min} items that match `contains`, has {found}")
        })
    }

    pub(super) fn unevaluated_items(
        &mut self,
        schema: NodeId,
        items: &[Value],
        at: &Location<'_>,
        marks: &mut Marks,
    ) -> Verdict {
        let is_false = self.program.nodes[schema.index()].is_false();
        for (index, item) in items.iter().enumerate() {
            self.meter.step(1)?;
            if marks.contains(index) {
                continue;
            }
            let matches = if is_false {
                self.mismatch(at, "unevaluatedItems", || {
                    format!("item {index} is not allowed")
                })?
            } else {
                self.node(schema, item, &at.index(index), None)?
            };
            if !matches {
                return Ok(false);
            }
        }
        marks.insert_all();
        Ok(true)
    }
}
