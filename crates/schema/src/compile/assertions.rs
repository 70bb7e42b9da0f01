//! Compiles the keywords that look at one value only: types, bounds, sizes, names, patterns and formats.

use super::{Compiler, Keywords, rules, too_deep};
use crate::content::Content;
use crate::dialect::Dialect;
use crate::equality::ValueSet;
use crate::error::SchemaError;
use crate::format::Format;
use crate::number::Number;
use crate::program::{Bound, Keyword, Size, SizeOf};
use serde_json::{Map, Value};

/// The keywords on sizes: what they measure, and whether they bound it above.
const SIZES: [(&str, SizeOf, bool); 6] = [
    ("minLength", SizeOf::String, false),
    ("maxLength", SizeOf::String, true),
    ("minItems", SizeOf::Array, false),
    ("maxItems", SizeOf::Array, true),
    ("minProperties", SizeOf::Object, false),
    ("maxProperties", SizeOf::Object, true),
];

impl<'a> Compiler<'a> {
    /// Appends the assertions of a subschema, cheap ones first. [`rules`] has checked their values.
    pub(super) fn assertions(
        &mut self,
        keywords: &mut Keywords<'a>,
        dialect: Dialect,
    ) -> Result<(), SchemaError> {
        let (fields, out) = (keywords.fields, &mut keywords.out);
        if let Some(types) = fields
            .get("type")
            .and_then(|value| rules::types(dialect, value))
        {
            out.push(Keyword::Type(types));
        }
        if let Some(value) = fields.get("const").filter(|_| dialect > Dialect::Draft4) {
            out.push(Keyword::Const(Box::new(value.clone())));
        }
        if let Some(values) = fields.get("enum").and_then(Value::as_array) {
            let set = ValueSet::new(values).map_err(|limit| {
                let problem = too_deep(limit);
                self.document.error_at(keywords.node, "enum", problem)
            })?;
            out.push(Keyword::Enum(Box::new(set)));
        }
        bounds(fields, dialect, out);
        if let Some(divisor) = number(fields, "multipleOf") {
            out.push(Keyword::MultipleOf(divisor));
        }
        for (keyword, of, is_upper) in SIZES {
            if let Some(limit) = fields.get(keyword).and_then(count) {
                out.push(Keyword::Size(Size {
                    of,
                    limit,
                    is_upper,
                }));
            }
        }
        if let Some(list) = fields.get("required") {
            out.push(Keyword::Required(names(list)));
        }
        dependent_required(fields, dialect, out);
        if let Some(name) = fields.get("format").and_then(Value::as_str)
            && let Some(format) = Format::from_name(name, dialect)
        {
            out.push(Keyword::Format(format));
        }
        let content = matches!(dialect, Dialect::Draft6 | Dialect::Draft7).then(|| {
            Content::new(
                fields.get("contentEncoding"),
                fields.get("contentMediaType"),
            )
        });
        out.extend(content.flatten().map(Keyword::Content));
        if let Some(source) = fields.get("pattern").and_then(Value::as_str) {
            let pattern = self.pattern(keywords.node, "pattern", source)?;
            keywords.out.push(Keyword::Pattern(pattern));
        }
        if fields.get("uniqueItems") == Some(&Value::Bool(true)) {
            keywords.out.push(Keyword::UniqueItems);
        }
        Ok(())
    }
}

fn bounds(fields: &Map<String, Value>, dialect: Dialect, out: &mut Vec<Keyword>) {
    let rows = [
        ("minimum", "exclusiveMinimum", false),
        ("maximum", "exclusiveMaximum", true),
    ];
    for (inclusive, exclusive, is_upper) in rows {
        let mut push = |keyword: &'static str, is_exclusive: bool| {
            if let Some(limit) = number(fields, keyword) {
                out.push(Keyword::Bound(Box::new(Bound {
                    keyword,
                    limit,
                    is_upper,
                    is_exclusive,
                })));
            }
        };
        if dialect == Dialect::Draft4 {
            push(inclusive, fields.get(exclusive) == Some(&Value::Bool(true)));
        } else {
            push(inclusive, false);
            push(exclusive, true);
        }
    }
}

/// Names that other names require: `dependentRequired`, and `dependencies` with arrays.
fn dependent_required(fields: &Map<String, Value>, dialect: Dialect, out: &mut Vec<Keyword>) {
    let mut keywords = vec!["dependencies"];
    if dialect >= Dialect::Draft2019 {
        keywords.push("dependentRequired");
    }
    for keyword in keywords {
        let lists = fields.get(keyword).and_then(Value::as_object);
        let lists: Box<[_]> = lists
            .into_iter()
            .flatten()
            .filter(|(_, list)| list.is_array())
            .map(|(name, list)| (name.as_str().into(), names(list)))
            .collect();
        if !lists.is_empty() {
            out.push(Keyword::DependentRequired(lists));
        }
    }
}

fn names(list: &Value) -> Box<[Box<str>]> {
    let names = list.as_array().into_iter().flatten();
    names.filter_map(Value::as_str).map(Box::from).collect()
}

fn number(fields: &Map<String, Value>, keyword: &str) -> Option<Number> {
    fields.get(keyword)?.as_number().map(Number::from)
}

/// Reads a non-negative integer; one that is too large for 64 bits bounds nothing less.
pub(super) fn count(value: &Value) -> Option<u64> {
    match Number::from(value.as_number()?) {
        Number::Integer(integer) => Some(u64::try_from(integer).unwrap_or(u64::MAX)),
        Number::Float(_) => Some(u64::MAX),
    }
}
