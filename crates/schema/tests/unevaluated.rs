//! Tests of `unevaluatedProperties` and `unevaluatedItems`.

use crate::support::*;
use serde_json::json;

#[test]
fn properties_that_no_keyword_evaluates_are_left() {
    let base = json!({
        "properties": {"a": {}},
        "patternProperties": {"^p": {}},
        "allOf": [{"properties": {"b": {}}}],
        "anyOf": [{"properties": {"c": {"const": 1}}, "required": ["c"]}, {"properties": {"d": {}}}],
        "if": {"properties": {"e": {"const": 1}}, "required": ["e"]},
        "then": {"properties": {"f": {}}},
        "else": {"properties": {"g": {}}},
        "dependentSchemas": {"h": {"properties": {"h": {}, "i": {}}}},
        "not": {"not": {"properties": {"j": {}}}},
        "$ref": "#/$defs/k",
        "$defs": {"k": {"properties": {"k": {}}}},
        "unevaluatedProperties": false
    });
    assert_accepts(
        &base,
        json!([{"a": 1, "p1": 1, "b": 1, "k": 1}, {"c": 1, "d": 1}, {"e": 1, "f": 1}, {"g": 1}, {"h": 1, "i": 1}, []]),
        json!([{"x": 1}, {"c": 2}, {"e": 1, "g": 1}, {"f": 1}, {"i": 1}, {"j": 1}]),
    );
    assert_accepts(
        &json!({"unevaluatedProperties": {"type": "null"}}),
        json!([{}, {"a": null}]),
        json!([{"a": 1}]),
    );
}

#[test]
fn nested_schemas_see_only_their_own_keywords() {
    let cousins = json!({"allOf": [{"properties": {"a": true}}, {"unevaluatedProperties": false}]});
    assert_accepts(&cousins, json!([{}]), json!([{"a": 1}]));
    let outer = json!({"properties": {"a": true}, "unevaluatedProperties": false, "allOf": [{"unevaluatedProperties": true}]});
    assert_accepts(&outer, json!([{"a": 1, "b": 1}]), json!([]));
    let inner = json!({"properties": {"a": {"unevaluatedProperties": false}}, "unevaluatedProperties": false});
    assert_accepts(
        &inner,
        json!([{"a": {}}]),
        json!([{"a": {"b": 1}}, {"b": 1}]),
    );
}

#[test]
fn items_that_no_keyword_evaluates_are_left() {
    let tuple = json!({"prefixItems": [{}], "allOf": [{"prefixItems": [{}, {}]}], "unevaluatedItems": false});
    assert_accepts(&tuple, json!([[], [1], [1, 2], {}]), json!([[1, 2, 3]]));
    assert_accepts(
        &json!({"items": {}, "unevaluatedItems": false}),
        json!([[1, 2]]),
        json!([]),
    );
    let contained = json!({"contains": {"const": 1}, "unevaluatedItems": {"const": 2}});
    assert_accepts(&contained, json!([[1, 2, 1]]), json!([[1, 3]]));
    let branches = json!({"oneOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [{"const": 2}, {}]}], "unevaluatedItems": false});
    assert_accepts(&branches, json!([[1], [2, 0]]), json!([[1, 0], [2, 0, 0]]));
}

#[test]
fn draft_2019_09_evaluates_items_in_its_own_way() {
    let tuple = json!({"items": [{}], "unevaluatedItems": false});
    assert_accepts(&in_draft(DRAFT_2019, tuple), json!([[1]]), json!([[1, 2]]));
    let rest = json!({"items": [{}], "additionalItems": true, "unevaluatedItems": false});
    assert_accepts(&in_draft(DRAFT_2019, rest), json!([[1, 2]]), json!([]));
    let contained = json!({"contains": {"const": 1}, "unevaluatedItems": false});
    assert_accepts(&in_draft(DRAFT_2019, contained), json!([{}]), json!([[1]]));
    let older = json!({"unevaluatedProperties": false, "unevaluatedItems": false});
    assert_accepts(&in_draft(DRAFT_7, older), json!([{"a": 1}, [1]]), json!([]));
}
