//! Tests of the keywords that look at one value only, and of the texts of their mismatches.

use crate::support::*;
use serde_json::{Value, json};

#[test]
fn types_are_checked() {
    assert_accepts(
        &json!({"type": "integer"}),
        json!([1, 1.0, -5, 1e30]),
        json!([1.5, "1", null, true, [], {}]),
    );
    assert_accepts(
        &json!({"type": "number"}),
        json!([1, 1.5]),
        json!(["1", null]),
    );
    assert_accepts(
        &json!({"type": ["string", "null"]}),
        json!(["", null]),
        json!([0, false, [], {}]),
    );
    assert_accepts(
        &json!({"type": ["object", "array", "boolean"]}),
        json!([{}, [], true]),
        json!([1, "", null]),
    );
    let strict = in_draft(DRAFT_4, json!({"type": "integer"}));
    assert_accepts(&strict, json!([1, -1]), json!([1.0, 1.5]));
}

#[test]
fn constants_and_enumerations_compare_by_value() {
    assert_accepts(
        &json!({"const": {"a": [1]}}),
        json!([{"a": [1.0]}]),
        json!([{"a": [true]}, {}, null]),
    );
    assert_accepts(
        &json!({"enum": [1, "a", null, [false]]}),
        json!([1.0, "a", null, [false]]),
        json!([true, "A", [0], {}]),
    );
    assert_accepts(&json!({"enum": []}), json!([]), json!([null, 1]));
    let ignored = in_draft(DRAFT_4, json!({"const": 1}));
    assert_accepts(&ignored, json!([1, 2]), json!([]));
}

#[test]
fn numbers_are_bounded() {
    assert_accepts(
        &json!({"minimum": 1.1, "maximum": 3}),
        json!([1.1, 2, 3.0, "x"]),
        json!([1, 3.01]),
    );
    assert_accepts(
        &json!({"exclusiveMinimum": 1, "exclusiveMaximum": 3}),
        json!([1.5, 2]),
        json!([1, 1.0, 3]),
    );
    assert_accepts(
        &json!({"multipleOf": 0.01}),
        json!([0, 4.02, 19.99, "x"]),
        json!([0.001, 19.995]),
    );
    assert_accepts(
        &json!({"minimum": 9007199254740993_i64}),
        json!([9007199254740993_i64]),
        json!([9007199254740992_i64]),
    );
    let exclusive = in_draft(
        DRAFT_4,
        json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 3, "exclusiveMaximum": false}),
    );
    assert_accepts(&exclusive, json!([2, 3]), json!([1, 4]));
}

#[test]
fn sizes_are_bounded() {
    assert_accepts(
        &json!({"minLength": 2, "maxLength": 3.0}),
        json!(["ab", "💩💩", 1]),
        json!(["a", "💩", "abcd"]),
    );
    assert_accepts(
        &json!({"minItems": 1, "maxItems": 2}),
        json!([[1], [1, 2], "x"]),
        json!([[], [1, 2, 3]]),
    );
    assert_accepts(
        &json!({"minProperties": 1, "maxProperties": 2}),
        json!([{"a": 1}, []]),
        json!([{}, {"a": 1, "b": 2, "c": 3}]),
    );
    assert_accepts(&json!({"maxLength": 1e300}), json!(["a"]), json!([]));
}

#[test]
fn names_are_required() {
    assert_accepts(
        &json!({"required": ["a", "__proto__"]}),
        json!([{"a": 1, "__proto__": 2}, []]),
        json!([{"a": 1}, {}]),
    );
    assert_accepts(
        &json!({"dependentRequired": {"a": ["b"]}}),
        json!([{}, {"b": 1}, {"a": 1, "b": 2}]),
        json!([{"a": 1}]),
    );
    for draft in DRAFTS {
        let schema = in_draft(
            draft,
            json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
        );
        assert_accepts(
            &schema,
            json!([{}, {"a": 1, "b": 2}, {"c": 1, "d": 2}]),
            json!([{"a": 1}, {"c": 1}]),
        );
    }
}

#[test]
fn items_are_unique_by_value() {
    let valid = json!([[1, true, "1"], [[1], [2]], [{"a": 1}, {"a": 2}], "x", []]);
    let invalid =
        json!([[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], [[1], [1]], [null, 1, null]]);
    assert_accepts(&json!({"uniqueItems": true}), valid, invalid);
    assert_accepts(&json!({"uniqueItems": false}), json!([[1, 1]]), json!([]));
}

#[test]
fn patterns_match_anywhere() {
    assert_accepts(&json!({"pattern": "a+"}), json!(["xaay", 1]), json!(["xy"]));
    assert_accepts(
        &json!({"pattern": r"^\d{3}$"}),
        json!(["123"]),
        json!(["1234", "১২৩"]),
    );
}

#[test]
fn formats_are_asserted_up_to_draft_7_only() {
    for draft in [DRAFT_4, DRAFT_6, DRAFT_7] {
        let schema = in_draft(draft, json!({"format": "date"}));
        assert_accepts(&schema, json!(["2024-02-29", 1]), json!(["2023-02-29"]));
        assert_accepts(
            &in_draft(draft, json!({"format": "uuid"})),
            json!(["x"]),
            json!([]),
        );
    }
    for draft in [DRAFT_2019, DRAFT_2020] {
        assert_accepts(
            &in_draft(draft, json!({"format": "date"})),
            json!(["2023-02-29"]),
            json!([]),
        );
    }
}

#[test]
fn content_is_asserted_in_drafts_6_and_7_only() {
    let content = json!({"contentEncoding": "base64", "contentMediaType": "application/json"});
    for draft in [DRAFT_6, DRAFT_7] {
        assert_accepts(
            &in_draft(draft, content.clone()),
            json!(["e30=", 1]),
            json!(["{}", "ezp9Cg=="]),
        );
    }
    for draft in [DRAFT_4, DRAFT_2019, DRAFT_2020] {
        assert_accepts(&in_draft(draft, content.clone()), json!(["{}"]), json!([]));
    }
}

#[test]
fn mismatch_names_place_keyword_and_rule() {
    let order = json!({
        "type": "object",
        "required": ["order"],
        "additionalProperties": false,
        "properties": {"order": {"properties": {"id": {"type": "integer"}, "a/b~": {"items": {"minimum": 3}}}}}
    });
    let cases = [
        (
            json!({"order": {"id": "one"}}),
            "/order/id",
            "type",
            "must be of type integer, not string",
        ),
        (
            json!({"order": {"a/b~": [3, 2.5]}}),
            "/order/a~1b~0/1",
            "minimum",
            "must be at least 3, not 2.5",
        ),
        (json!({}), "", "required", "property \"order\" is required"),
        (
            json!({"order": 1, "x": 2}),
            "",
            "additionalProperties",
            "property \"x\" is not allowed",
        ),
        (json!([]), "", "type", "must be of type object, not array"),
    ];
    for (value, path, keyword, message) in cases {
        let found = mismatch(&order, &value);
        assert_eq!(
            (found.path.as_str(), found.keyword, found.message.as_str()),
            (path, keyword, message),
            "{value}"
        );
    }
}

#[test]
fn texts_of_mismatches_say_what_is_expected() {
    let cases = [
        (json!({"const": 2}), json!(5), "must be 2"),
        (
            json!({"enum": [1, "a"]}),
            json!(5),
            "must be one of 1, \"a\"",
        ),
        (
            json!({"enum": [1, 2, 3, 4, 5, 6, 7]}),
            json!(0),
            "must be one of 1, 2, 3, 4, 5 or 2 more values",
        ),
        (
            json!({"exclusiveMaximum": 3.5}),
            json!(4),
            "must be less than 3.5, not 4",
        ),
        (
            json!({"multipleOf": 2}),
            json!(7),
            "must be a multiple of 2, not 7",
        ),
        (
            json!({"minLength": 2}),
            json!("é"),
            "must have at least 2 characters, has 1",
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            "must have at most 1 items, has 2",
        ),
        (
            json!({"pattern": "^a$"}),
            json!("b"),
            "must match the pattern ^a$",
        ),
        (
            json!({"uniqueItems": true}),
            json!([3, 1, 1]),
            "items must be different; items 1 and 2 are equal",
        ),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(mismatch(&schema, &value).message, expected);
    }
}

#[test]
fn texts_of_mismatches_with_subschemas_say_what_is_expected() {
    let cases = [
        (
            json!({"type": ["integer", "null"]}),
            json!("x"),
            "must be of type null or integer, not string",
        ),
        (json!(false), json!(1), "no value is allowed here"),
        (
            json!({"not": {}}),
            json!(1),
            "must not match the schema in `not`",
        ),
        (
            json!({"anyOf": [false, false]}),
            json!(1),
            "must match at least one of the 2 schemas in `anyOf`",
        ),
        (
            json!({"oneOf": [true, false, {}]}),
            json!(1),
            "must match only one schema in `oneOf`, matches 0 and 2",
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            "property name \"ab\" must have at most 1 characters, has 2",
        ),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(mismatch(&schema, &value).message, expected);
    }
}

#[test]
fn mismatch_repeats_no_large_value() {
    let long = "x".repeat(100_000);
    let cases = [
        (json!({"const": long}), json!(1)),
        (json!({"enum": [long, [long]]}), json!(1)),
        (json!({"required": [long]}), json!({})),
        (
            json!({"additionalProperties": false}),
            json!({ long.as_str(): 1 }),
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({ long.as_str(): 1 }),
        ),
        (
            json!({"additionalProperties": {"type": "null"}}),
            json!({ long.as_str(): 1 }),
        ),
        (json!({"type": "null"}), json!(long)),
    ];
    for (schema, value) in cases {
        let found = mismatch(&schema, &value);
        assert!(
            found.message.len() < 200 && found.path.len() < 1_100,
            "{found}"
        );
    }
    let unknown: Value = json!({"$schema": long});
    assert!(refusal(&unknown).to_string().len() < 300);
}
