//! Compiles `$ref`, `$dynamicRef` and `$recursiveRef`.

use super::{Compiler, Keywords};
use crate::dialect::Dialect;
use crate::error::SchemaError;
use crate::program::{DynamicName, DynamicRef, Keyword, NodeId};
use serde_json::Value;

impl<'a> Compiler<'a> {
    /// Appends the references of a subschema, each to a number.
    pub(super) fn references(
        &mut self,
        keywords: &mut Keywords<'a>,
        dialect: Dialect,
    ) -> Result<(), SchemaError> {
        let reference = |keyword: &str| keywords.fields.get(keyword).and_then(Value::as_str);
        let node = keywords.node;
        if let Some(target) = reference("$ref") {
            let target = self.document.resolve(node, "$ref", target)?;
            keywords.out.push(Keyword::Ref(target));
        }
        if dialect == Dialect::Draft2020
            && let Some(target) = keywords.fields.get("$dynamicRef").and_then(Value::as_str)
        {
            let keyword = self.dynamic_ref(node, target)?;
            keywords.out.push(keyword);
        }
        if dialect == Dialect::Draft2019
            && let Some(target) = keywords.fields.get("$recursiveRef").and_then(Value::as_str)
        {
            let default = self.document.resolve(node, "$recursiveRef", target)?;
            let resource = self.document.subschema(node).resource;
            let is_dynamic = self.document.resources[resource].is_recursive;
            keywords.out.push(if is_dynamic {
                let name = DynamicName::Recursive;
                Keyword::DynamicRef(Box::new(DynamicRef { name, default }))
            } else {
                Keyword::Ref(default)
            });
        }
        Ok(())
    }

    /// A `$dynamicRef` is dynamic only if it names a `$dynamicAnchor`; otherwise it is a `$ref`.
    fn dynamic_ref(&mut self, node: NodeId, reference: &'a str) -> Result<Keyword, SchemaError> {
        let default = self.document.resolve(node, "$dynamicRef", reference)?;
        let named = self.document.resource_and_fragment(node, reference);
        let Some((resource, fragment)) = named else {
            return Ok(Keyword::Ref(default));
        };
        let anchors = &self.document.resources[resource].dynamic_anchors;
        let Some((name, _)) = anchors.get_key_value(fragment.as_str()) else {
            return Ok(Keyword::Ref(default));
        };
        let name = DynamicName::Anchor(self.name(name));
        Ok(Keyword::DynamicRef(Box::new(DynamicRef { name, default })))
    }
}
