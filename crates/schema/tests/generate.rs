//! Generates schemas from a grammar, and values that are likely to match or nearly match them.

use crate::support::{DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020, DRAFTS};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// Names of properties. Few, so that schemas and values meet.
const NAMES: [&str; 4] = ["a", "b", "ab", "c"];

fn name() -> impl Strategy<Value = String> {
    select(&NAMES[..]).prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3_i64..6).prop_map(Value::from),
        select(&[0.5, 1.0, 1.5, 2.0, -2.5, 0.1][..]).prop_map(Value::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    select(
        &[
            "",
            "a",
            "ab",
            "ba",
            "1",
            "12",
            "é",
            "💩",
            "2024-02-29",
            "b c",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_map(Value::from),
    ]
}

/// A value of few levels.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A schema document with its `$schema`.
pub(crate) fn document() -> impl Strategy<Value = Value> {
    select(&DRAFTS[..]).prop_flat_map(|draft| {
        let part = || subschema(draft);
        (part(), part(), part()).prop_map(move |(mut root, first, second)| {
            if root.is_boolean() {
                root = json!({"allOf": [root]});
            }
            let definitions = json!({"x": first, "y": second});
            let keyword = if draft >= DRAFT_2019 && draft.starts_with("https") {
                "$defs"
            } else {
                "definitions"
            };
            root[keyword] = definitions;
            root["$schema"] = json!(draft);
            root
        })
    })
}

/// An object of keywords of a draft; references lead to two definitions below properties or items only, so that few loop.
fn subschema(draft: &'static str) -> BoxedStrategy<Value> {
    let leaf = prop::collection::vec(assertion(draft), 0..3).prop_map(keywords);
    let leaf = match draft {
        DRAFT_4 => leaf.boxed(),
        _ => prop_oneof![8 => leaf, 1 => any::<bool>().prop_map(Value::from)].boxed(),
    };
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let some = prop::collection::vec(
            prop_oneof![2 => assertion(draft), 3 => applicator(draft, inner.boxed())],
            1..4,
        );
        some.prop_map(keywords)
    })
    .boxed()
}

fn keywords(list: Vec<Vec<(String, Value)>>) -> Value {
    Value::Object(list.into_iter().flatten().collect())
}

fn one(keyword: &str, value: impl Into<Value>) -> Vec<(String, Value)> {
    vec![(keyword.to_owned(), value.into())]
}

fn assertion(draft: &'static str) -> BoxedStrategy<Vec<(String, Value)>> {
    let types = &[
        "null", "boolean", "integer", "number", "string", "array", "object",
    ][..];
    let count_keywords = &[
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ][..];
    let patterns = &["^a", "b$", "^[a-c]+$", r"\d", "a|1", r"^\w*$", "^.{1,2}$"][..];
    let names = || prop::collection::btree_set(name(), 1..3);
    let mut choices = vec![
        select(types).prop_map(|name| one("type", name)).boxed(),
        prop::sample::subsequence(types.to_vec(), 1..4)
            .prop_map(|names| one("type", names))
            .boxed(),
        prop::collection::vec(value(), 1..4)
            .prop_map(|values| one("enum", values))
            .boxed(),
        select(&[1.0, 2.0, 0.5, 0.1, 3.0][..])
            .prop_map(|divisor| one("multipleOf", divisor))
            .boxed(),
        (select(count_keywords), 0_u64..4)
            .prop_map(|(keyword, count)| one(keyword, count))
            .boxed(),
        names()
            .prop_map(|names| one("required", names.into_iter().collect::<Vec<_>>()))
            .boxed(),
        select(patterns)
            .prop_map(|pattern| one("pattern", pattern))
            .boxed(),
        any::<bool>()
            .prop_map(|unique| one("uniqueItems", unique))
            .boxed(),
        select(&["date", "email", "ipv4", "uri", "regex", "unknown"][..])
            .prop_map(|format| one("format", format))
            .boxed(),
        (name(), names())
            .prop_map(|(name, names)| {
                let names: Vec<_> = names.into_iter().collect();
                one("dependencies", json!({ name: names }))
            })
            .boxed(),
        bound(draft),
    ];
    if draft != DRAFT_4 {
        choices.push(value().prop_map(|value| one("const", value)).boxed());
    }
    if matches!(draft, DRAFT_2019 | DRAFT_2020) {
        let dependent = (name(), names()).prop_map(|(name, names)| {
            let names: Vec<_> = names.into_iter().collect();
            one("dependentRequired", json!({ name: names }))
        });
        choices.push(dependent.boxed());
    }
    proptest::strategy::Union::new(choices).boxed()
}

fn bound(draft: &'static str) -> BoxedStrategy<Vec<(String, Value)>> {
    let sides = select(
        &[
            ("minimum", "exclusiveMinimum"),
            ("maximum", "exclusiveMaximum"),
        ][..],
    );
    (sides, number(), any::<bool>())
        .prop_map(move |((inclusive, exclusive), limit, is_exclusive)| {
            if draft == DRAFT_4 {
                let mut both = one(inclusive, limit);
                both.extend(one(exclusive, is_exclusive));
                both
            } else {
                one(if is_exclusive { exclusive } else { inclusive }, limit)
            }
        })
        .boxed()
}

fn applicator(
    draft: &'static str,
    inner: BoxedStrategy<Value>,
) -> BoxedStrategy<Vec<(String, Value)>> {
    let inner = || inner.clone();
    let list = || prop::collection::vec(inner(), 1..4);
    let named = || {
        prop::collection::btree_map(name(), inner(), 1..4)
            .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>())
    };
    let patterns = &["^a", "b$", "c|d"][..];
    let mut choices = vec![
        (select(&["allOf", "anyOf", "oneOf"][..]), list())
            .prop_map(|(keyword, list)| one(keyword, list))
            .boxed(),
        inner().prop_map(|schema| one("not", schema)).boxed(),
        named().prop_map(|fields| one("properties", fields)).boxed(),
        (select(patterns), inner())
            .prop_map(|(pattern, schema)| one("patternProperties", json!({ pattern: schema })))
            .boxed(),
        additional(inner())
            .prop_map(|schema| one("additionalProperties", schema))
            .boxed(),
        inner().prop_map(|schema| one("items", schema)).boxed(),
        (name(), inner())
            .prop_map(|(name, schema)| one("dependencies", json!({ name: schema })))
            .boxed(),
        reference(draft),
    ];
    if draft == DRAFT_2020 {
        choices.push(list().prop_map(|list| one("prefixItems", list)).boxed());
    } else {
        let tuple = (list(), additional(inner())).prop_map(|(list, rest)| {
            let mut tuple = one("items", list);
            tuple.extend(one("additionalItems", rest));
            tuple
        });
        choices.push(tuple.boxed());
    }
    if draft != DRAFT_4 {
        choices.push(inner().prop_map(|schema| one("contains", schema)).boxed());
        choices.push(
            inner()
                .prop_map(|schema| one("propertyNames", schema))
                .boxed(),
        );
    }
    if !matches!(draft, DRAFT_4 | DRAFT_6) {
        let conditional = (inner(), inner(), inner()).prop_map(|(condition, then, otherwise)| {
            [
                one("if", condition),
                one("then", then),
                one("else", otherwise),
            ]
            .concat()
        });
        choices.push(conditional.boxed());
    }
    if matches!(draft, DRAFT_2019 | DRAFT_2020) {
        choices.extend(recent_applicators(inner()));
    }
    proptest::strategy::Union::new(choices).boxed()
}

/// The applicators that the drafts since 2019-09 have.
fn recent_applicators(inner: BoxedStrategy<Value>) -> Vec<BoxedStrategy<Vec<(String, Value)>>> {
    let inner = || inner.clone();
    let dependent = (name(), inner())
        .prop_map(|(name, schema)| one("dependentSchemas", json!({ name: schema })));
    let keywords = &["unevaluatedProperties", "unevaluatedItems"][..];
    let unevaluated =
        (select(keywords), additional(inner())).prop_map(|(keyword, schema)| one(keyword, schema));
    let contains = (inner(), 0_u64..3, 0_u64..4).prop_map(|(schema, min, max)| {
        [
            one("contains", schema),
            one("minContains", min),
            one("maxContains", max),
        ]
        .concat()
    });
    vec![dependent.boxed(), unevaluated.boxed(), contains.boxed()]
}

/// A schema, or `false`, which is what people write there.
fn additional(inner: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![Just(json!(false)), inner].boxed()
}

/// A reference to a definition or to the root.
fn reference(draft: &'static str) -> BoxedStrategy<Vec<(String, Value)>> {
    let keyword = if matches!(draft, DRAFT_4 | DRAFT_6 | DRAFT_7) {
        "definitions"
    } else {
        "$defs"
    };
    let targets = vec![
        "#".to_owned(),
        format!("#/{keyword}/x"),
        format!("#/{keyword}/y"),
    ];
    (
        select(targets),
        select(&["properties", "items", "here"][..]),
        name(),
    )
        .prop_map(|(target, place, name)| {
            let reference = json!({"$ref": target});
            match place {
                "properties" => one("properties", json!({ name: reference })),
                "items" => one("items", reference),
                _ => one("$ref", reference["$ref"].clone()),
            }
        })
        .boxed()
}
