//! Tests of schemas that were written to hurt: each is refused at once with the limit and the place, or validation stops.

use crate::support::*;
use leasehold_core::limits::{
    JSON_MAX_DEPTH, SCHEMA_MAX_PATTERNS, SCHEMA_MAX_REF_DEPTH, SCHEMA_MAX_SUBSCHEMAS,
    VALIDATION_MAX_DEPTH, VALIDATION_STACK_BYTES,
};
use leasehold_schema::{
    PatternProblem, Schema, SchemaLimit, SchemaProblem, ValidationError, ValidationLimit,
    ValidationLimits,
};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// A schema of definitions `d0`, `d1`, … that starts at the first.
fn chain(length: usize, link: impl Fn(String) -> Value, last: Value) -> Value {
    let mut definitions = Map::new();
    for level in 0..length {
        definitions.insert(format!("d{level}"), link(format!("#/$defs/d{}", level + 1)));
    }
    definitions.insert(format!("d{length}"), last);
    json!({"$defs": definitions, "$ref": "#/$defs/d0"})
}

fn doubling(levels: usize, last: Value) -> Value {
    chain(
        levels,
        |next| json!({"allOf": [{"$ref": next}, {"$ref": next}]}),
        last,
    )
}

fn limit_of(document: &Value) -> SchemaLimit {
    match refusal(document).problem {
        SchemaProblem::Limit(limit) => limit,
        other => panic!("{other}"),
    }
}

fn stopped_by(schema: &Schema, value: &Value, limits: ValidationLimits) -> ValidationLimit {
    match schema.validate(value, limits) {
        Err(ValidationError::LimitExceeded(limit)) => limit,
        other => panic!("{other:?}"),
    }
}

/// Runs a test on a thread with the stack of the threads that validate.
fn on_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(VALIDATION_STACK_BYTES);
    thread.spawn(test).unwrap().join().unwrap();
}

#[test]
fn doubling_references_are_refused_when_they_are_published() {
    for levels in [17, 24, 40] {
        let document = doubling(levels, json!({"type": "string"}));
        assert_eq!(
            limit_of(&document),
            SchemaLimit::Expanded,
            "{levels} levels"
        );
    }
    let error = refusal(&doubling(40, json!({}))).to_string();
    assert!(
        error.starts_with("at /$defs/d2") && error.contains("100000"),
        "{error}"
    );
}

#[test]
fn doubling_references_within_the_limit_validate_in_time() {
    let schema = compile(&doubling(12, json!({"type": "string"})));
    assert!(is_valid(&schema, &json!("x")));
    assert!(!is_valid(&schema, &json!(1)));
}

#[test]
fn properties_that_double_at_each_level_are_refused_too() {
    let link = |next: String| {
        let property = json!({"properties": {"a": {"$ref": next}}});
        json!({"allOf": [property.clone(), property]})
    };
    assert_eq!(limit_of(&chain(40, link, json!({}))), SchemaLimit::Expanded);
    let shared = |next: String| json!({"properties": {"a": {"$ref": next}, "b": {"$ref": next}}});
    compile(&chain(60, shared, json!({})));
}

#[test]
fn recursive_doubling_stops_at_its_steps() {
    let property = json!({"properties": {"a": {"$ref": "#"}}});
    let schema = compile(&json!({"allOf": [property.clone(), property]}));
    let deep = (0..40).fold(json!({}), |inner, _| json!({"a": inner}));
    let limit = stopped_by(&schema, &deep, LIMITS);
    assert_eq!(limit, ValidationLimit::Steps(LIMITS.steps));
    assert!(limit.to_string().contains("10000000 steps"));
    let soon = ValidationLimits {
        steps: u64::MAX,
        deadline: Some(Instant::now() + Duration::from_millis(20)),
    };
    assert_eq!(stopped_by(&schema, &deep, soon), ValidationLimit::Deadline);
}

#[test]
fn long_chains_of_references_are_refused() {
    on_small_stack(|| {
        let link = |next: String| json!({"$ref": next, "unevaluatedProperties": false});
        for length in [SCHEMA_MAX_REF_DEPTH, 1_131] {
            let document = chain(length, link, json!({}));
            assert_eq!(limit_of(&document), SchemaLimit::RefDepth);
        }
        let schema = compile(&chain(SCHEMA_MAX_REF_DEPTH - 2, link, json!({})));
        assert!(is_valid(&schema, &json!({})));
        assert!(!is_valid(&schema, &json!({"a": 1})));
    });
}

#[test]
fn loops_that_stay_at_one_value_are_refused() {
    let cases = [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"anyOf": [{"not": {"$ref": "#"}}]}),
        json!({"if": true, "then": {"allOf": [{"$ref": "#"}]}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        in_draft(DRAFT_2019, json!({"allOf": [{"$recursiveRef": "#"}]})),
    ];
    for document in cases {
        let error = refusal(&document);
        assert_eq!(error.problem, SchemaProblem::Loop, "{document}: {error}");
    }
    let tree = json!({"properties": {"left": {"$ref": "#"}}, "items": {"anyOf": [{"$ref": "#"}]}});
    assert!(is_valid(
        &compile(&tree),
        &json!({"left": {"left": [[{}]]}})
    ));
}

#[test]
fn dynamic_loops_stop_at_the_depth_limit_on_a_small_stack() {
    on_small_stack(|| {
        let schema = compile(&json!({"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]}));
        let limit = stopped_by(&schema, &json!(1), LIMITS);
        assert_eq!(limit, ValidationLimit::Depth);
    });
}

#[test]
fn deepest_validation_fits_a_small_stack() {
    on_small_stack(|| {
        let kinds = [
            json!({"anyOf": [{"oneOf": [{"if": {"$ref": "#/$defs/next"}, "then": true}]}]}),
            json!({"allOf": [{"not": {"not": {"$ref": "#/$defs/next"}}}], "unevaluatedItems": true}),
            json!({"dependentSchemas": {"a": {"$ref": "#/$defs/next"}}, "unevaluatedProperties": true}),
        ];
        for mut schema in kinds {
            schema["$defs"] = json!({"next": {
                "items": {"$ref": "#"},
                "contains": {"$ref": "#"},
                "patternProperties": {"^a": {"$ref": "#"}},
                "unevaluatedProperties": {"$ref": "#"},
            }});
            let schema = compile(&schema);
            let array = (0..VALIDATION_MAX_DEPTH).fold(json!([]), |inner, _| json!([inner]));
            let object = (0..VALIDATION_MAX_DEPTH).fold(json!({}), |inner, _| json!({"a": inner}));
            let verdicts = [array, object].map(|value| {
                let stopped = schema.validate(&value, LIMITS);
                // Dropping a value of this depth recurses too.
                std::mem::forget(value);
                stopped
            });
            let depth = Err(ValidationError::LimitExceeded(ValidationLimit::Depth));
            assert!(verdicts.contains(&depth), "{verdicts:?}");
        }
    });
}

#[test]
fn documents_are_bounded_in_depth_and_number() {
    on_small_stack(|| {
        let deep = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"not": inner}));
        compile(&deep(JSON_MAX_DEPTH - 1));
        assert_eq!(limit_of(&deep(JSON_MAX_DEPTH)), SchemaLimit::Depth);
        let wide = |width: usize| json!({"anyOf": vec![json!({}); width]});
        compile(&wide(SCHEMA_MAX_SUBSCHEMAS - 1));
        assert_eq!(
            limit_of(&wide(SCHEMA_MAX_SUBSCHEMAS)),
            SchemaLimit::Subschemas
        );
    });
}

#[test]
fn long_identifiers_are_refused() {
    let long = "x".repeat(2_000);
    assert_eq!(
        limit_of(&json!({"$ref": format!("#{long}")})),
        SchemaLimit::Uri
    );
    let inherited = json!({"$id": format!("http://{long}/")});
    assert_eq!(limit_of(&inherited), SchemaLimit::Uri);
    assert_eq!(refusal(&inherited).path, "/$id");
}

#[test]
fn large_patterns_are_refused_one_by_one_and_together() {
    let many = |count: usize, pattern: &dyn Fn(usize) -> String| {
        let patterns: Map<_, _> = (0..count).map(|n| (pattern(n), json!({}))).collect();
        json!({"patternProperties": patterns})
    };
    let letters = many(60, &|n| format!(r"^\p{{L}}{{60}}{n}$"));
    let problem = refusal(&letters).problem;
    let too_large = PatternProblem::ProgramTooLarge;
    assert!(
        matches!(&problem, SchemaProblem::Pattern { problem, .. } if *problem == too_large),
        "{problem}"
    );
    assert!(problem.to_string().contains("262144 bytes"), "{problem}");
    let together = many(60, &|n| format!(r"^\p{{L}}+{n}\p{{L}}\p{{Lu}}\p{{Ll}}$"));
    assert_eq!(limit_of(&together), SchemaLimit::Programs);
    let small = |n: usize| format!("^a{n}$");
    compile(&many(SCHEMA_MAX_PATTERNS, &small));
    assert_eq!(
        limit_of(&many(SCHEMA_MAX_PATTERNS + 1, &small)),
        SchemaLimit::Patterns
    );
    let same = json!({"allOf": vec![json!({"pattern": "^x$"}); SCHEMA_MAX_PATTERNS * 2]});
    compile(&same);
}

#[test]
fn patterns_that_need_backtracking_are_refused_by_name() {
    for (pattern, text) in [
        (r"^(a+)\1+$", "back-references"),
        ("^(?=a)a$", "look-around"),
    ] {
        let error = refusal(&json!({"properties": {"x": {"pattern": pattern}}}));
        assert_eq!(error.path, "/properties/x/pattern");
        assert!(error.to_string().contains(text), "{error}");
    }
    // Takes exponential time with backtracking.
    let schema = compile(&json!({"pattern": "^(a+)+$"}));
    assert!(!is_valid(
        &schema,
        &json!(format!("{}b", "a".repeat(10_000)))
    ));
}

#[test]
fn matching_a_large_pattern_counts_steps_before_it_starts() {
    let schema = compile(&json!({"pattern": "^(a?){900}$"}));
    let text = json!("a".repeat(256 * 1024));
    assert_eq!(
        stopped_by(&schema, &text, LIMITS),
        ValidationLimit::Steps(LIMITS.steps)
    );
    assert!(is_valid(&schema, &json!("a".repeat(800))));
}

#[test]
fn comparisons_of_large_values_count_steps() {
    let large: Value = (0..20_000).map(|n| json!(n)).collect();
    let branches: Vec<Value> = (0..600)
        .map(|n| json!({"items": {"enum": [[n]]}}))
        .collect();
    let schema = compile(&json!({"anyOf": branches}));
    let value = json!(vec![large.clone(); 2]);
    assert_eq!(
        stopped_by(&schema, &value, LIMITS),
        ValidationLimit::Steps(LIMITS.steps)
    );
    let unique = compile(&json!({"uniqueItems": true}));
    assert!(is_valid(&unique, &large));
}
