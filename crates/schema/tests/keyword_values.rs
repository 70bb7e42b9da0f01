//! Tests that a schema is checked as its meta-schema would, and that a refusal names the place and the rule.

use crate::support::*;
use leasehold_schema::SchemaProblem;
use serde_json::{Value, json};

#[test]
fn values_of_keywords_are_checked() {
    let cases = [
        ("type", json!("no such type"), "/type"),
        ("type", json!([]), "/type"),
        ("type", json!(["null", "null"]), "/type"),
        ("type", json!([{}]), "/type"),
        ("enum", json!(1), "/enum"),
        ("multipleOf", json!(0), "/multipleOf"),
        ("multipleOf", json!("1"), "/multipleOf"),
        ("minimum", json!("1"), "/minimum"),
        ("exclusiveMaximum", json!(true), "/exclusiveMaximum"),
        ("maxLength", json!(-1), "/maxLength"),
        ("minLength", json!(1.5), "/minLength"),
        ("maxItems", json!("1"), "/maxItems"),
        ("minContains", json!(-1), "/minContains"),
        ("uniqueItems", json!(1), "/uniqueItems"),
        ("required", json!("a"), "/required"),
        ("required", json!(["a", "a"]), "/required"),
        ("required", json!([1]), "/required"),
        ("dependentRequired", json!({"a": "b"}), "/dependentRequired"),
        ("dependentRequired", json!([]), "/dependentRequired"),
        ("dependencies", json!({"a": ["b", "b"]}), "/dependencies"),
        ("dependencies", json!({"a": 1}), "/dependencies/a"),
        ("properties", json!([]), "/properties"),
        ("properties", json!({"a": 1}), "/properties/a"),
        ("patternProperties", json!({"(": {}}), "/patternProperties"),
        ("pattern", json!("["), "/pattern"),
        ("pattern", json!(1), "/pattern"),
        ("allOf", json!([]), "/allOf"),
        ("allOf", json!({}), "/allOf"),
        ("anyOf", json!([1]), "/anyOf/0"),
        ("not", json!(1), "/not"),
        ("items", json!([{}]), "/items"),
        ("prefixItems", json!({}), "/prefixItems"),
        ("if", json!("x"), "/if"),
        ("$defs", json!({"a/b": 1}), "/$defs/a~1b"),
        ("$ref", json!(1), "/$ref"),
        ("$id", json!("http://x/#frag"), "/$id"),
        ("$anchor", json!("#x"), "/$anchor"),
        ("$dynamicAnchor", json!(1), "/$dynamicAnchor"),
        ("$schema", json!("http://example.com/own"), "/$schema"),
        ("$schema", json!(1), "/$schema"),
        ("title", json!(1), "/title"),
        ("format", json!(1), "/format"),
        ("deprecated", json!("yes"), "/deprecated"),
        ("examples", json!({}), "/examples"),
        ("$vocabulary", json!({"x": 1}), "/$vocabulary"),
    ];
    for (keyword, value, path) in cases {
        let error = refusal(&json!({ keyword: value }));
        assert_eq!(error.path, path, "{keyword}: {error}");
        let nested = refusal(&json!({"properties": {"x": {"items": { keyword: value }}}}));
        assert_eq!(
            nested.path,
            format!("/properties/x/items{path}"),
            "{nested}"
        );
    }
}

#[test]
fn refusal_says_the_rule() {
    let cases = [
        (
            json!({"minLength": -1}),
            "at /minLength: `minLength` must be a non-negative integer",
        ),
        (
            json!({"properties": {"a": 5}}),
            "at /properties/a: a schema must be an object or a boolean",
        ),
        (json!([]), "a schema must be an object or a boolean"),
        (
            json!({"allOf": []}),
            "at /allOf: `allOf` must be a non-empty array of schemas",
        ),
        (
            json!({"$ref": "#/x"}),
            "at /$ref: \"#/x\" is not in this document; references must stay in the document",
        ),
    ];
    for (document, expected) in cases {
        assert_eq!(refusal(&document).to_string(), expected);
    }
}

#[test]
fn drafts_have_their_own_rules() {
    let refused: [(&str, Value); 9] = [
        (DRAFT_4, json!({"exclusiveMinimum": 1})),
        (DRAFT_4, json!({"exclusiveMinimum": true})),
        (DRAFT_4, json!({"required": []})),
        (DRAFT_4, json!({"minLength": 1.0})),
        (DRAFT_4, json!({"properties": {"a": true}})),
        (DRAFT_4, json!({"id": 1})),
        (DRAFT_6, json!({"exclusiveMinimum": true})),
        (DRAFT_2019, json!({"$recursiveAnchor": 1})),
        (DRAFT_2019, json!({"$recursiveRef": "#a"})),
    ];
    for (draft, document) in refused {
        let error = refusal(&in_draft(draft, document.clone()));
        let is_rule = matches!(
            error.problem,
            SchemaProblem::Keyword { .. } | SchemaProblem::NotASchema { .. }
        );
        assert!(is_rule, "{document}: {error}");
    }
    let accepted: [(&str, Value); 8] = [
        (
            DRAFT_4,
            json!({"additionalProperties": false, "items": [{}], "additionalItems": true}),
        ),
        (
            DRAFT_4,
            json!({"contains": 1, "const": 1, "$id": 1, "if": 1, "$anchor": 1}),
        ),
        (
            DRAFT_6,
            json!({"minLength": 1.0, "required": [], "id": 1, "if": 1}),
        ),
        (
            DRAFT_7,
            json!({"minContains": -1, "$defs": 1, "$anchor": 1, "prefixItems": 1}),
        ),
        (DRAFT_7, json!({"$id": "#name", "items": [true, false]})),
        (DRAFT_2019, json!({"prefixItems": 1, "$dynamicRef": 1})),
        (
            DRAFT_2020,
            json!({"additionalItems": 1, "$recursiveAnchor": true}),
        ),
        (
            DRAFT_2020,
            json!({"$id": "http://x/#", "$comment": "c", "readOnly": true}),
        ),
    ];
    for (draft, document) in accepted {
        compile(&in_draft(draft, document));
    }
}
