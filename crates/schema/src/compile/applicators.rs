//! Compiles the keywords that apply subschemas: to properties and items, to the same value, and to what others left over.

use super::assertions::count;
use super::{Compiler, Keywords};
use crate::dialect::Dialect;
use crate::error::SchemaError;
use crate::program::{
    ArrayRules, Conditional, Contains, Keyword, NodeId, ObjectRules, Unevaluated,
};
use serde_json::{Map, Value};

impl<'a> Compiler<'a> {
    /// Appends the applicators of a subschema. The document has checked the shapes of their values.
    pub(super) fn applicators(
        &mut self,
        keywords: &mut Keywords<'a>,
        dialect: Dialect,
    ) -> Result<(), SchemaError> {
        let fields = keywords.fields;
        if let Some(rules) = self.object_rules(keywords.node, fields)? {
            keywords.out.push(Keyword::Object(Box::new(rules)));
        }
        let out = &mut keywords.out;
        let known = |keyword: &str| {
            let is_known = dialect.children(keyword).is_some();
            fields.get(keyword).filter(|_| is_known)
        };
        if let Some(names) = known("propertyNames") {
            out.push(Keyword::PropertyNames(self.child(names)));
        }
        if let Some(rules) = self.array_rules(fields, dialect) {
            out.push(Keyword::Array(Box::new(rules)));
        }
        if let Some(schema) = known("contains") {
            let bound = |keyword: &str| fields.get(keyword).and_then(count);
            let has_bounds = dialect >= Dialect::Draft2019;
            out.push(Keyword::Contains(Box::new(Contains {
                schema: self.child(schema),
                min: bound("minContains").filter(|_| has_bounds).unwrap_or(1),
                max: bound("maxContains").filter(|_| has_bounds),
                evaluates: dialect == Dialect::Draft2020,
            })));
        }
        for keyword in ["dependencies", "dependentSchemas"] {
            let schemas = known(keyword).map(|value| self.named(value));
            if let Some(schemas) = schemas.filter(|schemas| !schemas.is_empty()) {
                out.push(Keyword::DependentSchemas(schemas));
            }
        }
        if let Some(list) = fields.get("allOf") {
            out.push(Keyword::AllOf(self.list(list)));
        }
        if let Some(list) = fields.get("anyOf") {
            out.push(Keyword::AnyOf(self.list(list)));
        }
        if let Some(list) = fields.get("oneOf") {
            out.push(Keyword::OneOf(self.list(list)));
        }
        if let Some(schema) = fields.get("not") {
            out.push(Keyword::Not(self.child(schema)));
        }
        if let Some(condition) = known("if") {
            out.push(Keyword::If(Box::new(Conditional {
                condition: self.child(condition),
                then: self.optional_child(fields.get("then")),
                otherwise: self.optional_child(fields.get("else")),
            })));
        }
        Ok(())
    }

    fn list(&self, value: &Value) -> Box<[NodeId]> {
        let items = value.as_array().into_iter().flatten();
        items.map(|item| self.child(item)).collect()
    }

    /// The schemas in an object, without the arrays that `dependencies` may have too.
    fn named(&self, value: &Value) -> Box<[(Box<str>, NodeId)]> {
        let fields = value.as_object().into_iter().flatten();
        let mut named: Vec<_> = fields
            .filter(|(_, value)| !value.is_array())
            .map(|(name, value)| (Box::from(name.as_str()), self.child(value)))
            .collect();
        named.sort_unstable_by(|(a, _): &(Box<str>, _), (b, _)| a.cmp(b));
        named.into()
    }

    fn object_rules(
        &mut self,
        node: NodeId,
        fields: &'a Map<String, Value>,
    ) -> Result<Option<ObjectRules>, SchemaError> {
        let mut patterns = Vec::new();
        let sources = fields.get("patternProperties").and_then(Value::as_object);
        for (source, schema) in sources.into_iter().flatten() {
            let pattern = self.pattern(node, "patternProperties", source)?;
            patterns.push((pattern, self.child(schema)));
        }
        let properties = fields.get("properties").map(|value| self.named(value));
        let additional = self.optional_child(fields.get("additionalProperties"));
        if properties.is_none() && patterns.is_empty() && additional.is_none() {
            return Ok(None);
        }
        Ok(Some(ObjectRules {
            properties: properties.unwrap_or_default(),
            patterns: patterns.into(),
            additional,
        }))
    }

    fn array_rules(&self, fields: &Map<String, Value>, dialect: Dialect) -> Option<ArrayRules> {
        let items = fields.get("items");
        if dialect == Dialect::Draft2020 {
            let prefix = fields.get("prefixItems");
            items.or(prefix)?;
            return Some(ArrayRules {
                prefix: prefix.map(|list| self.list(list)).unwrap_or_default(),
                rest: self.optional_child(items),
                rest_keyword: "items",
            });
        }
        let items = items?;
        if items.is_array() {
            return Some(ArrayRules {
                prefix: self.list(items),
                rest: self.optional_child(fields.get("additionalItems")),
                rest_keyword: "additionalItems",
            });
        }
        Some(ArrayRules {
            prefix: Box::default(),
            rest: Some(self.child(items)),
            rest_keyword: "items",
        })
    }

    /// Compiles `unevaluatedProperties` and `unevaluatedItems`.
    pub(super) fn unevaluated(
        &self,
        keywords: &Keywords<'a>,
        dialect: Dialect,
    ) -> Option<Box<Unevaluated>> {
        if dialect < Dialect::Draft2019 {
            return None;
        }
        let properties = self.optional_child(keywords.fields.get("unevaluatedProperties"));
        let items = self.optional_child(keywords.fields.get("unevaluatedItems"));
        (properties.is_some() || items.is_some())
            .then(|| Box::new(Unevaluated { properties, items }))
    }
}
