//! Tests of references: pointers, identifiers, anchors, and those that are resolved during validation.

use crate::support::*;
use leasehold_schema::SchemaProblem;
use serde_json::json;

#[test]
fn references_follow_json_pointers() {
    let schema = json!({
        "$defs": {"a~b/c%d": {"type": "integer"}, "list": [{"type": "string"}], "": {"type": "null"}},
        "properties": {
            "tilde": {"$ref": "#/$defs/a~0b~1c%25d"},
            "root": {"$ref": "#"},
            "item": {"$ref": "#/properties/tuple/prefixItems/1"},
            "tuple": {"prefixItems": [{}, {"type": "boolean"}]},
            "empty": {"$ref": "#/$defs/"}
        }
    });
    let valid = json!([{"tilde": 1, "root": {"tilde": 2}, "item": true, "empty": null}]);
    let invalid = json!([{"tilde": "x"}, {"root": {"root": {"item": 1}}}, {"empty": 1}]);
    assert!(matches!(
        refusal(&schema).problem,
        SchemaProblem::NotASchema { .. }
    ));
    let mut schema = schema;
    schema["$defs"]["list"] = json!({});
    assert_accepts(&schema, valid, invalid);
}

#[test]
fn references_may_lead_into_unknown_keywords() {
    let schema = json!({
        "components": {"deep": [{"type": "integer", "items": {"$ref": "#/components/deep/0"}}]},
        "properties": {"a": {"$ref": "#/components/deep/0"}}
    });
    assert_accepts(&schema, json!([{"a": 1}]), json!([{"a": "x"}]));
    let not_a_schema = json!({"x": 5, "$ref": "#/x"});
    assert_eq!(refusal(&not_a_schema).path, "/x");
}

#[test]
fn siblings_of_references_count_since_draft_2019_09() {
    let schema = json!({"definitions": {"a": {"minimum": 2}}, "properties": {"x": {"$ref": "#/definitions/a", "maximum": 4}}});
    for draft in [DRAFT_4, DRAFT_6, DRAFT_7] {
        assert_accepts(
            &in_draft(draft, schema.clone()),
            json!([{"x": 3}, {"x": 9}]),
            json!([{"x": 1}]),
        );
    }
    for draft in [DRAFT_2019, DRAFT_2020] {
        assert_accepts(
            &in_draft(draft, schema.clone()),
            json!([{"x": 3}]),
            json!([{"x": 9}, {"x": 1}]),
        );
    }
}

#[test]
fn identifiers_change_the_base() {
    let schema = json!({
        "$id": "http://example.com/root.json",
        "$defs": {
            "A": {"$id": "nested/a.json", "$defs": {"b": {"$id": "b.json", "type": "integer"}}, "items": {"$ref": "b.json"}},
            "urn": {"$id": "urn:uuid:1", "$defs": {"x": {"type": "null"}}, "properties": {"y": {"$ref": "#/$defs/x"}}}
        },
        "properties": {
            "a": {"$ref": "nested/a.json"},
            "b": {"$ref": "/nested/b.json"},
            "c": {"$ref": "http://example.com/nested/../nested/b.json#"},
            "d": {"$ref": "urn:uuid:1"},
            "e": {"$ref": "urn:uuid:1#/$defs/x"}
        }
    });
    assert_accepts(
        &schema,
        json!([{"a": [1], "b": 1, "c": 1, "d": {"y": null}, "e": null}]),
        json!([{"a": ["x"]}, {"b": "x"}, {"c": "x"}, {"d": {"y": 1}}, {"e": 1}]),
    );
}

#[test]
fn anchors_name_schemas_in_each_draft() {
    let modern = json!({"$defs": {"a": {"$anchor": "foo", "type": "integer"}}, "$ref": "#foo"});
    for draft in [DRAFT_2019, DRAFT_2020] {
        assert_accepts(&in_draft(draft, modern.clone()), json!([1]), json!(["x"]));
    }
    for (draft, id) in [(DRAFT_4, "id"), (DRAFT_6, "$id"), (DRAFT_7, "$id")] {
        let plain = json!({"definitions": {"a": {id: "#foo", "type": "integer"}}, "allOf": [{"$ref": "#foo"}]});
        assert_accepts(&in_draft(draft, plain), json!([1]), json!(["x"]));
        let absolute = json!({"definitions": {"a": {id: "http://x/y#foo", "type": "integer"}}, "allOf": [{"$ref": "http://x/y#foo"}]});
        assert_accepts(&in_draft(draft, absolute), json!([1]), json!(["x"]));
        // Some generators write pointers here; they name nothing.
        let pointer = json!({"properties": {"a": {id: "#/properties/a", "type": "integer"}}});
        assert_accepts(
            &in_draft(draft, pointer),
            json!([{"a": 1}]),
            json!([{"a": "x"}]),
        );
    }
    let shadowed = json!({"$defs": {"a": {"$id": "x", "$anchor": "foo"}}, "$ref": "#foo"});
    assert!(matches!(
        refusal(&shadowed).problem,
        SchemaProblem::Unresolved { .. }
    ));
}

#[test]
fn dynamic_references_find_the_outermost_anchor() {
    let tree = json!({
        "$id": "https://example.com/strict-tree",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": false,
        "$defs": {"tree": {
            "$id": "tree",
            "$dynamicAnchor": "node",
            "properties": {"data": true, "children": {"items": {"$dynamicRef": "#node"}}}
        }}
    });
    assert_accepts(
        &tree,
        json!([{"data": 1, "children": [{"data": 2, "children": []}]}]),
        json!([{"daat": 1}, {"children": [{"daat": 1}]}, {"children": [{"children": [{"x": 1}]}]}]),
    );
    let plain = json!({"$defs": {"a": {"$anchor": "x", "type": "integer"}}, "$dynamicRef": "#x"});
    assert_accepts(&plain, json!([1]), json!(["x"]));
}

#[test]
fn recursive_references_find_the_outermost_recursive_resource() {
    let tree = |recursive: bool| {
        json!({
            "$schema": DRAFT_2019,
            "$id": "https://example.com/strict-tree",
            "$recursiveAnchor": recursive,
            "$ref": "tree",
            "unevaluatedProperties": false,
            "$defs": {"tree": {
                "$id": "tree",
                "$recursiveAnchor": true,
                "properties": {"data": true, "children": {"items": {"$recursiveRef": "#"}}}
            }}
        })
    };
    assert_accepts(
        &tree(true),
        json!([{"children": [{"data": 1}]}]),
        json!([{"children": [{"daat": 1}]}]),
    );
    assert_accepts(
        &tree(false),
        json!([{"children": [{"daat": 1}]}]),
        json!([{"daat": 1}]),
    );
}

#[test]
fn embedded_schemas_may_have_another_draft() {
    let schema = json!({
        "$defs": {"old": {"$id": "old", "$schema": DRAFT_7, "definitions": {"x": true}, "$ref": "#/definitions/x", "type": "null"}},
        "properties": {"a": {"$ref": "old"}}
    });
    // Beside a `$ref` draft 7 ignores the identifier too.
    assert!(matches!(
        refusal(&schema).problem,
        SchemaProblem::Unresolved { .. }
    ));
    let schema = json!({
        "$defs": {"old": {"$id": "old", "$schema": DRAFT_7, "items": [{"type": "null"}], "format": "date"}},
        "properties": {"a": {"$ref": "old"}}
    });
    assert_accepts(
        &schema,
        json!([{"a": [null, 1]}, {"a": "2024-01-01"}]),
        json!([{"a": [1]}, {"a": "x"}]),
    );
}

#[test]
fn references_must_stay_in_the_document() {
    let cases = [
        json!({"$ref": "http://127.0.0.1:9/schema.json"}),
        json!({"$ref": "#/$defs/none"}),
        json!({"$ref": "#none"}),
        json!({"$ref": "#/a%zz"}),
        json!({"$ref": "other.json#/a"}),
        json!({"$ref": "http://json-schema.org/draft-07/schema#"}),
        json!({"$dynamicRef": "#none"}),
        json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
    ];
    for document in cases {
        let error = refusal(&document);
        assert!(
            matches!(error.problem, SchemaProblem::Unresolved { .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains("stay in the document") && error.path.contains("Ref")
                || error.path.ends_with("$ref"),
            "{error}"
        );
    }
}

#[test]
fn identifiers_must_be_different() {
    let cases = [
        json!({"$defs": {"a": {"$id": "http://x/"}, "b": {"$id": "http://x/"}}}),
        json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}),
        json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$dynamicAnchor": "x"}}}),
    ];
    for document in cases {
        assert!(
            matches!(refusal(&document).problem, SchemaProblem::Duplicate(_)),
            "{document}"
        );
    }
    compile(&json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$id": "other", "$anchor": "x"}}}));
}
