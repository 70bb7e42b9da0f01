//! The rules of the meta-schemas on the values of keywords that hold no subschemas.

use crate::dialect::Dialect;
use crate::number::Number;
use crate::program::Types;
use serde_json::{Map, Value};
use std::collections::HashSet;

const A_STRING: &str = "a string";
const A_BOOLEAN: &str = "a boolean";
const A_NUMBER: &str = "a number";
const A_COUNT: &str = "a non-negative integer";
const AN_ANCHOR: &str =
    "a name of letters, digits, `-`, `_`, `.` and `:` that starts with a letter or `_`";

/// Returns the rule that the value of a keyword breaks.
pub(super) fn broken(
    dialect: Dialect,
    keyword: &str,
    value: &Value,
    fields: &Map<String, Value>,
) -> Option<&'static str> {
    let (since, is_valid, rule): (_, _, &'static str) = match keyword {
        "$comment" => (Dialect::Draft7, value.is_string(), A_STRING),
        "title" | "description" | "format" | "pattern" => {
            (Dialect::Draft4, value.is_string(), A_STRING)
        }
        "contentEncoding" | "contentMediaType" => (Dialect::Draft6, value.is_string(), A_STRING),
        "readOnly" | "writeOnly" => (Dialect::Draft7, value.is_boolean(), A_BOOLEAN),
        "deprecated" => (Dialect::Draft2019, value.is_boolean(), A_BOOLEAN),
        "uniqueItems" => (Dialect::Draft4, value.is_boolean(), A_BOOLEAN),
        "examples" => (Dialect::Draft6, value.is_array(), "an array"),
        "enum" => (Dialect::Draft4, value.is_array(), "an array"),
        "maximum" | "minimum" => (Dialect::Draft4, value.is_number(), A_NUMBER),
        "exclusiveMaximum" => return exclusive(dialect, value, fields.contains_key("maximum")),
        "exclusiveMinimum" => return exclusive(dialect, value, fields.contains_key("minimum")),
        "multipleOf" => {
            let is_positive = |n| Number::from(n).is_positive();
            let is_valid = value.as_number().is_some_and(is_positive);
            (Dialect::Draft4, is_valid, "a number greater than 0")
        }
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" => {
            (Dialect::Draft4, is_count(dialect, value), A_COUNT)
        }
        "maxContains" | "minContains" => (Dialect::Draft2019, is_count(dialect, value), A_COUNT),
        "type" => (
            Dialect::Draft4,
            types(dialect, value).is_some(),
            "null, boolean, integer, number, string, array or object, or an array of different ones",
        ),
        "required" => return names(dialect, value),
        "dependentRequired" if dialect >= Dialect::Draft2019 => {
            let lists = value.as_object().map(|fields| fields.values());
            return match lists {
                None => Some("an object whose values are arrays of property names"),
                Some(mut lists) => lists.find_map(|list| names(dialect, list)),
            };
        }
        "dependencies" => {
            let lists = value.as_object().into_iter().flat_map(Map::values);
            let mut lists = lists.filter(|list| list.is_array());
            return lists.find_map(|list| names(dialect, list));
        }
        _ => return identifiers(dialect, keyword, value),
    };
    (since <= dialect && !is_valid).then_some(rule)
}

fn exclusive(dialect: Dialect, value: &Value, has_bound: bool) -> Option<&'static str> {
    match dialect {
        Dialect::Draft4 if !value.is_boolean() => Some(A_BOOLEAN),
        Dialect::Draft4 if !has_bound => Some("beside `maximum` or `minimum`"),
        Dialect::Draft4 => None,
        _ => (!value.is_number()).then_some(A_NUMBER),
    }
}

/// An array of different names; in draft 4 not an empty one.
fn names(dialect: Dialect, value: &Value) -> Option<&'static str> {
    const RULE: &str = "an array of different property names";
    let Some(items) = value.as_array() else {
        return Some(RULE);
    };
    if items.is_empty() && dialect == Dialect::Draft4 {
        return Some("a non-empty array of different property names");
    }
    let mut seen = HashSet::new();
    let all_different = items
        .iter()
        .all(|item| item.as_str().is_some_and(|name| seen.insert(name)));
    (!all_different).then_some(RULE)
}

/// The rules on keywords that identify and refer.
fn identifiers(dialect: Dialect, keyword: &str, value: &Value) -> Option<&'static str> {
    let text = value.as_str();
    match keyword {
        "$ref" => text.is_none().then_some("a string: a URI reference"),
        "$id" | "id" if keyword != dialect.id_keyword() => None,
        "$id" | "id" => {
            let has_fragment = |id: &str| id.split_once('#').is_some_and(|(_, f)| !f.is_empty());
            match text {
                None => Some("a string: a URI reference"),
                Some(id) if !dialect.is_legacy() && has_fragment(id) => {
                    Some("a URI reference without a fragment; name a part of a schema by `$anchor`")
                }
                Some(_) => None,
            }
        }
        "$anchor" if dialect >= Dialect::Draft2019 => {
            (!text.is_some_and(is_anchor)).then_some(AN_ANCHOR)
        }
        "$dynamicAnchor" if dialect == Dialect::Draft2020 => {
            (!text.is_some_and(is_anchor)).then_some(AN_ANCHOR)
        }
        "$dynamicRef" if dialect == Dialect::Draft2020 => {
            text.is_none().then_some("a string: a URI reference")
        }
        "$recursiveRef" if dialect == Dialect::Draft2019 => {
            (text != Some("#")).then_some("the string \"#\"")
        }
        "$recursiveAnchor" if dialect == Dialect::Draft2019 => {
            (!value.is_boolean()).then_some(A_BOOLEAN)
        }
        "$vocabulary" if dialect >= Dialect::Draft2019 => {
            let is_valid = value
                .as_object()
                .is_some_and(|all| all.values().all(Value::is_boolean));
            (!is_valid).then_some("an object whose values are booleans")
        }
        _ => None,
    }
}

fn is_anchor(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
}

fn is_count(dialect: Dialect, value: &Value) -> bool {
    match value.as_number() {
        Some(number) if dialect == Dialect::Draft4 => number.is_u64(),
        Some(number) => {
            let number = Number::from(number);
            number.is_integer() && number.compare(Number::Integer(0)).is_ge()
        }
        None => false,
    }
}

/// Reads a type, or an array of different types.
pub(super) fn types(dialect: Dialect, value: &Value) -> Option<Types> {
    let mut types = Types {
        is_strict: dialect == Dialect::Draft4,
        ..Types::default()
    };
    match value {
        Value::String(name) => types.insert(name).then_some(types),
        Value::Array(names) if !names.is_empty() => {
            for name in names {
                let before = types.bits;
                if !types.insert(name.as_str()?) || types.bits == before {
                    return None;
                }
            }
            Some(types)
        }
        _ => None,
    }
}
