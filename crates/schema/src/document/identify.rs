//! Reads what identifies a subschema: its dialect, its URI and its anchors.

use super::{Document, Resource};
use crate::dialect::Dialect;
use crate::error::{SchemaError, SchemaLimit, SchemaProblem};
use crate::program::NodeId;
use crate::text::quote;
use crate::uri;
use leasehold_core::limits::SCHEMA_MAX_URI_BYTES;
use serde_json::{Map, Value};
use std::collections::HashMap;

impl<'a> Document<'a> {
    pub(super) fn open_resource(&mut self, root: NodeId, uri: String) {
        let resource = self.resources.len();
        self.by_uri.insert(uri.clone(), resource);
        self.resources.push(Resource {
            uri,
            root,
            anchors: HashMap::new(),
            dynamic_anchors: HashMap::new(),
            is_recursive: false,
        });
        self.subschemas[root.index()].resource = resource;
    }

    pub(super) fn read_dialect(
        &mut self,
        node: NodeId,
        fields: &'a Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let Some(uri) = fields.get("$schema") else {
            return Ok(());
        };
        let named = uri.as_str().and_then(Dialect::from_uri);
        match named {
            Some(dialect) => {
                self.subschemas[node.index()].dialect = dialect;
                Ok(())
            }
            None => {
                let named = uri
                    .as_str()
                    .map_or_else(|| "of this type".to_owned(), quote);
                Err(self.error_at(node, "$schema", SchemaProblem::Dialect(named)))
            }
        }
    }

    /// Reads what identifies a subschema: its URI and its anchors.
    pub(super) fn identify(
        &mut self,
        node: NodeId,
        fields: &'a Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let dialect = self.subschema(node).dialect;
        let keyword = dialect.id_keyword();
        let id = fields.get(keyword).and_then(Value::as_str);
        if dialect.is_legacy() {
            if fields.contains_key("$ref") {
                return Ok(());
            }
            let Some(id) = id else { return Ok(()) };
            let (uri, fragment) = id.split_once('#').unwrap_or((id, ""));
            if !uri.is_empty() {
                self.name_resource(node, keyword, uri)?;
            }
            if !fragment.is_empty() && !fragment.starts_with('/') {
                self.name_anchor(node, keyword, fragment)?;
            }
            return Ok(());
        }
        if let Some(id) = id {
            self.name_resource(node, keyword, id.strip_suffix('#').unwrap_or(id))?;
        }
        if let Some(anchor) = fields.get("$anchor").and_then(Value::as_str) {
            self.name_anchor(node, "$anchor", anchor)?;
        }
        let resource = self.subschema(node).resource;
        if dialect == Dialect::Draft2020
            && let Some(anchor) = fields.get("$dynamicAnchor").and_then(Value::as_str)
        {
            self.name_anchor(node, "$dynamicAnchor", anchor)?;
            self.resources[resource]
                .dynamic_anchors
                .insert(anchor, node);
        }
        if dialect == Dialect::Draft2019
            && self.root_of(resource) == node
            && fields.get("$recursiveAnchor") == Some(&Value::Bool(true))
        {
            self.resources[resource].is_recursive = true;
        }
        Ok(())
    }

    fn name_resource(
        &mut self,
        node: NodeId,
        keyword: &str,
        reference: &str,
    ) -> Result<(), SchemaError> {
        let resource = self.subschema(node).resource;
        let uri = uri::resolve(&self.resources[resource].uri, reference);
        if uri.len() > SCHEMA_MAX_URI_BYTES {
            return Err(self.error_at(node, keyword, SchemaLimit::Uri));
        }
        if uri == self.resources[resource].uri {
            return Ok(());
        }
        if self.by_uri.contains_key(&uri) {
            let problem = SchemaProblem::Duplicate(quote(&uri));
            return Err(self.error_at(node, keyword, problem));
        }
        if node.index() == 0 {
            self.by_uri.clear();
            self.by_uri.insert(uri.clone(), 0);
            self.resources[0].uri = uri;
        } else {
            self.open_resource(node, uri);
        }
        Ok(())
    }

    fn name_anchor(
        &mut self,
        node: NodeId,
        keyword: &str,
        anchor: &'a str,
    ) -> Result<(), SchemaError> {
        let resource = self.subschema(node).resource;
        match self.resources[resource].anchors.insert(anchor, node) {
            Some(other) if other != node => {
                let problem = SchemaProblem::Duplicate(quote(anchor));
                Err(self.error_at(node, keyword, problem))
            }
            _ => Ok(()),
        }
    }
}
