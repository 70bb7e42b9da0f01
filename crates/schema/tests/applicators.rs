//! Tests of the keywords that apply subschemas.

use crate::support::*;
use serde_json::json;

#[test]
fn properties_patterns_and_the_rest_are_told_apart() {
    let schema = json!({
        "properties": {"foo": {"type": "array", "maxItems": 3}, "bar": true},
        "patternProperties": {"f.o": {"minItems": 2}, "^v": {}},
        "additionalProperties": {"type": "integer"}
    });
    assert_accepts(
        &schema,
        json!([{"foo": [1, 2]}, {"bar": "x", "v1": "x"}, {"fxo": [1, 2]}, {"other": 3}, {}, 7]),
        json!([{"foo": []}, {"foo": [1, 2, 3, 4]}, {"fxo": []}, {"other": "x"}]),
    );
    assert_accepts(
        &json!({"properties": {"a": false}}),
        json!([{}, {"b": 1}]),
        json!([{"a": 1}]),
    );
    assert_accepts(
        &json!({"propertyNames": {"pattern": "^a"}}),
        json!([{"ab": 1}, {}, []]),
        json!([{"ab": 1, "b": 2}]),
    );
}

#[test]
fn items_have_a_prefix_and_a_rest() {
    let tuple = json!({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "null"}});
    assert_accepts(
        &tuple,
        json!([[], ["a"], ["a", 1, null, null], {}]),
        json!([[1], ["a", "b"], ["a", 1, 2]]),
    );
    assert_accepts(
        &json!({"prefixItems": [{}], "items": false}),
        json!([[], [1]]),
        json!([[1, 2]]),
    );
    for draft in [DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019] {
        let tuple = json!({"items": [{"type": "string"}], "additionalItems": {"type": "null"}});
        assert_accepts(
            &in_draft(draft, tuple),
            json!([[], ["a", null]]),
            json!([[1], ["a", 1]]),
        );
        let closed = json!({"items": [{}, {}], "additionalItems": false});
        assert_accepts(
            &in_draft(draft, closed),
            json!([[1, 2]]),
            json!([[1, 2, 3]]),
        );
        let list = json!({"items": {"type": "null"}, "additionalItems": false});
        assert_accepts(
            &in_draft(draft, list),
            json!([[], [null, null]]),
            json!([[1]]),
        );
    }
}

#[test]
fn contains_counts_matches() {
    assert_accepts(
        &json!({"contains": {"minimum": 5}}),
        json!([[1, 5], {}]),
        json!([[], [1, 2]]),
    );
    let bounded = json!({"contains": {"const": 1}, "minContains": 2, "maxContains": 3});
    assert_accepts(
        &bounded,
        json!([[1, 1], [1, 2, 1, 1]]),
        json!([[1], [1, 1, 1, 1], []]),
    );
    assert_accepts(
        &json!({"contains": {"const": 1}, "minContains": 0}),
        json!([[], [2]]),
        json!([]),
    );
    assert_accepts(
        &json!({"contains": {"const": 1}, "minContains": 0, "maxContains": 1}),
        json!([[], [1]]),
        json!([[1, 1]]),
    );
    assert_accepts(&json!({"minContains": 5}), json!([[]]), json!([]));
    let older = in_draft(DRAFT_7, json!({"contains": {"const": 1}, "minContains": 2}));
    assert_accepts(&older, json!([[1]]), json!([[2]]));
}

#[test]
fn schemas_are_combined() {
    assert_accepts(
        &json!({"allOf": [{"minimum": 1}, {"maximum": 3}]}),
        json!([2]),
        json!([0, 4]),
    );
    assert_accepts(
        &json!({"anyOf": [{"maximum": 1}, {"minimum": 3}]}),
        json!([0, 4]),
        json!([2]),
    );
    assert_accepts(
        &json!({"oneOf": [{"maximum": 3}, {"minimum": 2}]}),
        json!([1, 4]),
        json!([2, 3]),
    );
    assert_accepts(
        &json!({"not": {"type": "integer"}}),
        json!(["x"]),
        json!([1]),
    );
    let conditional =
        json!({"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"multipleOf": 2}});
    assert_accepts(&conditional, json!([20, 4]), json!([15, 3]));
    assert_accepts(&json!({"if": false, "then": false}), json!([1]), json!([]));
    assert_accepts(
        &json!({"then": false, "else": false}),
        json!([1]),
        json!([]),
    );
    let dependent = json!({"dependentSchemas": {"a": {"required": ["b"]}, "c": false}});
    assert_accepts(
        &dependent,
        json!([{}, {"a": 1, "b": 2}, 1]),
        json!([{"a": 1}, {"c": 1}]),
    );
    let older = in_draft(DRAFT_6, json!({"if": true, "then": false}));
    assert_accepts(&older, json!([1]), json!([]));
}

#[test]
fn boolean_schemas_accept_all_or_nothing() {
    assert_accepts(&json!(true), json!([1, null, {}]), json!([]));
    assert_accepts(&json!(false), json!([]), json!([1, null, {}]));
    assert_accepts(&json!({}), json!([1, null, {}]), json!([]));
}

#[test]
fn unknown_keywords_are_ignored() {
    assert_accepts(
        &json!({"colour": {"type": 5}, "x": {"$ref": "#/nowhere"}}),
        json!([1]),
        json!([]),
    );
}
