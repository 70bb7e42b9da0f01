//! Writes the JSON documents of the reference: JSON Schema as table cells.

use serde_json::{Map, Value};
use std::fmt::Write;

/// The prefix of the schema names of pages.
const PAGE_OF: &str = "Page_";

/// Documents whose values another page lists, with the link to it.
const LISTED_ELSEWHERE: [(&str, &str); 1] =
    [("Code", "One of the [problem codes](../errors/README.md).")];

/// Writes a section for every document.
pub(super) fn write_documents(document: &Value, page: &mut String) {
    page.push_str(
        "\n## Documents\n\nFields marked with * are always present. Unknown fields in a request body are rejected; responses may gain fields.\n\n\
         A **page of** items is `{\"items\": […], \"next\": …}`: pass `next` as `after` until a page has none.\n",
    );
    let empty = Map::new();
    let schemas = document["components"]["schemas"].as_object();
    for (name, schema) in schemas.unwrap_or(&empty) {
        if name.starts_with(PAGE_OF) {
            continue;
        }
        let _ = write!(page, "\n### {name}\n");
        if let Some(text) = schema["description"].as_str() {
            let _ = write!(page, "\n{}\n", text.trim());
        }
        match LISTED_ELSEWHERE.iter().find(|(listed, _)| listed == name) {
            Some((_, sentence)) => {
                let _ = write!(page, "\n{sentence}\n");
            }
            None => write_shape(schema, page),
        }
    }
}

fn write_shape(schema: &Value, page: &mut String) {
    if let Some(choices) = schema["oneOf"].as_array() {
        page.push_str("\n| one of | with | |\n|---|---|---|\n");
        for choice in choices {
            let (which, with) = variant(choice);
            let text = cell(&description(choice));
            let _ = writeln!(page, "| {which} | {} | {text} |", cell(&with));
        }
    } else if let Some(fields) = schema["properties"].as_object() {
        page.push_str("\n| field | type | |\n|---|---|---|\n");
        for (name, field) in fields {
            let star = if is_required(schema, name) { " *" } else { "" };
            let (kind, text) = (cell(&type_name(field)), cell(&description(field)));
            let _ = writeln!(page, "| `{name}`{star} | {kind} | {text} |");
        }
    } else if schema["type"].is_string() || schema["enum"].is_array() {
        let _ = write!(page, "\n{}\n", type_name(schema));
    }
}

/// Returns the field that identifies a variant, and its other fields.
fn variant(choice: &Value) -> (String, String) {
    let Some(fields) = choice["properties"].as_object() else {
        return (type_name(choice), String::new());
    };
    let (mut which, mut with) = (Vec::new(), Vec::new());
    for (name, field) in fields {
        match field["enum"].as_array().map(Vec::as_slice) {
            Some([only]) => which.push(format!("`\"{name}\": {only}`")),
            _ => with.push(field_text(name, field)),
        }
    }
    if which.is_empty() {
        std::mem::swap(&mut which, &mut with);
    }
    (which.join(", "), with.join("<br>"))
}

fn field_text(name: &str, field: &Value) -> String {
    let text = description(field);
    let kind = format!("`{name}` ({})", type_name(field));
    if text.is_empty() {
        return kind;
    }
    format!("{kind}: {}", text.trim_end_matches('.'))
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema["required"].as_array();
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// Returns the description of a field; for a nullable field, that of its non-null part.
fn description(field: &Value) -> String {
    let own = field["description"].as_str();
    let part_description = || {
        let parts = field["oneOf"].as_array()?;
        parts.iter().find_map(|part| part["description"].as_str())
    };
    own.or_else(part_description)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns the name of a type for a table cell.
pub(super) fn type_name(schema: &Value) -> String {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return linked(name);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let names: Vec<String> = choices.iter().map(type_name).collect();
        return names.join(" or ");
    }
    if let Some(values) = schema["enum"].as_array() {
        let names: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        return names.join(", ");
    }
    match &schema["type"] {
        Value::String(kind) => named(kind, schema),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            let names: Vec<String> = kinds.map(|kind| named(kind, schema)).collect();
            names.join(" or ")
        }
        _ => "any JSON".to_owned(),
    }
}

fn linked(name: &str) -> String {
    match name.strip_prefix(PAGE_OF) {
        Some(of) => format!("page of {}", linked(of)),
        None => format!("[{name}](#{})", name.to_lowercase()),
    }
}

fn named(kind: &str, schema: &Value) -> String {
    match kind {
        "null" => "null".to_owned(),
        "boolean" => "boolean".to_owned(),
        "integer" => format!("integer{}", range(schema)),
        "number" => format!("number{}", range(schema)),
        "array" => {
            format!("array of {}", type_name(&schema["items"])) + &maximum(schema, "maxItems", "")
        }
        "string" => match schema["format"].as_str() {
            Some("uuid") => "UUID".to_owned(),
            Some("date-time") => "timestamp".to_owned(),
            _ => "string".to_owned() + &maximum(schema, "maxLength", " characters"),
        },
        _ => "object".to_owned(),
    }
}

fn range(schema: &Value) -> String {
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(min), Value::Number(max)) => format!(", {min} to {max}"),
        (Value::Null, Value::Number(max)) => format!(", at most {max}"),
        _ => String::new(),
    }
}

fn maximum(schema: &Value, bound: &str, of: &str) -> String {
    match &schema[bound] {
        Value::Number(max) => format!(", at most {max}{of}"),
        _ => String::new(),
    }
}

/// Escapes a text for a table cell.
pub(super) fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}
