//! Hostile schemas: of each shape that costs much, one that is just accepted or one that is refused. Knows no graph.

use super::bodies;
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Returns a schema. Two of three are within the limits.
pub(super) fn schema(rng: &mut Rng) -> Value {
    let is_valid = rng.u8(0..3) > 0;
    shape(rng, is_valid, 0)
}

/// Params of the type that a schema may ask for, as text.
pub(super) fn params(rng: &mut Rng) -> String {
    match rng.u8(0..8) {
        0 => "null".to_owned(),
        1 => "{}".to_owned(),
        2 => format!("\"{}\"", "a".repeat(rng.usize(0..2_000))),
        3 => rng.u32(0..5_000).to_string(),
        4 => bodies::deep(rng, 60).to_string(),
        _ => bodies::params(rng),
    }
}

fn shape(rng: &mut Rng, is_valid: bool, depth: usize) -> Value {
    match rng.u8(0..10) {
        0 => doubling(rng, is_valid),
        1 => chain(rng, is_valid),
        2 if is_valid => json!({"properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}}),
        2 => json!({"properties": {"a": {"$ref": "#"}}, "allOf": [{"$ref": "#"}]}),
        3 => patterns(rng, is_valid),
        4 => nested(rng, is_valid, "properties"),
        5 => nested(rng, is_valid, "items"),
        6 => json!({"enum": (0..rng.usize(1..5_000)).collect::<Vec<_>>()}),
        7 if is_valid => {
            json!({"not": {"const": bodies::deep(rng, 50)}, "multipleOf": 1e-300, "maxLength": 1e300})
        }
        7 => json!({"const": bodies::deep(rng, 70), "uniqueItems": "yes"}),
        8 if is_valid => json!({"uniqueItems": true, "minProperties": 0, "format": "idn-hostname"}),
        8 => json!({"type": "object", "minProperties": -1, "required": "a", "pattern": 7}),
        _ => combination(rng, is_valid, depth),
    }
}

/// Each level refers twice to the next.
fn doubling(rng: &mut Rng, is_valid: bool) -> Value {
    let most = if is_valid { 12 } else { 80 };
    let (levels, word) = (rng.usize(2..most), applicator(rng));
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({word: [next, next]}));
    }
    defs.insert(format!("l{levels}"), json!({"type": ["null", "object"]}));
    json!({"$ref": "#/$defs/l0", "$defs": defs})
}

/// A chain of references that each collect what was evaluated.
fn chain(rng: &mut Rng, is_valid: bool) -> Value {
    let links = rng.usize(2..if is_valid { 90 } else { 900 });
    let end = links + if is_valid { 1 } else { rng.usize(0..2) };
    let mut defs = Map::new();
    for link in 0..links {
        let next = format!("#/$defs/l{}", (link + 1) % end);
        let each = json!({"$ref": next, "unevaluatedProperties": rng.bool()});
        defs.insert(format!("l{link}"), each);
    }
    defs.insert(format!("l{links}"), json!({"properties": {"a": true}}));
    json!({"$ref": "#/$defs/l0", "$defs": defs})
}

fn patterns(rng: &mut Rng, is_valid: bool) -> Value {
    let linear = [
        "(a+)+$",
        "^(a|aa)*b",
        "^[^x]{1,99}$",
        "\\p{Lu}\\w*",
        "(x?){50}",
    ];
    let refused = [
        "^\\p{L}{60}$",
        "(?=x)y",
        "(.)\\1",
        "(((((x{9}){9}){9}){9}){9})",
        "[\\u{0}-\\u{10ffff}]{500}",
        "(",
    ];
    let pattern = |rng: &mut Rng| match is_valid {
        true => linear[rng.usize(0..linear.len())].to_owned(),
        false => refused[rng.usize(0..refused.len())].repeat(rng.usize(1..8)),
    };
    let each = (0..rng.usize(1..80)).map(|at| (pattern(rng) + &at.to_string(), json!({})));
    let each: Map<String, Value> = each.collect();
    json!({"patternProperties": each, "pattern": pattern(rng)})
}

fn nested(rng: &mut Rng, is_valid: bool, word: &str) -> Value {
    let mut schema = json!({"type": "string"});
    for _ in 0..rng.usize(1..if is_valid { 25 } else { 100 }) {
        let inner = match word {
            "properties" => json!({"a": schema}),
            _ => schema,
        };
        schema = json!({word: inner});
    }
    schema
}

fn applicator(rng: &mut Rng) -> &'static str {
    ["allOf", "anyOf", "oneOf", "prefixItems"][rng.usize(0..4)]
}

fn combination(rng: &mut Rng, is_valid: bool, depth: usize) -> Value {
    if depth > 2 {
        return json!(rng.bool());
    }
    let word = applicator(rng);
    // References lead to the root of the document, so a part of one must not have its own.
    let mut part = || match rng.u8(0..3) {
        0 => combination(rng, is_valid, depth + 1),
        1 => nested(rng, is_valid, "items"),
        _ => patterns(rng, is_valid),
    };
    let parts = [part(), part()];
    json!({word: parts, "not": part(), "if": part(), "then": part()})
}
