//! Documents of the reference, and JSON Schema in words that fit into a table.

use serde_json::{Map, Value};
use std::fmt::Write;

/// The prefix of schemas that are a page of something.
const PAGE_OF: &str = "Page_";

/// Documents whose values another page lists, and the sentence that leads there.
const LISTED_ELSEWHERE: [(&str, &str); 1] = [(
    "Code",
    "One of the codes of [problems](../errors/README.md).",
)];

/// Writes a section for every document.
pub(super) fn write_documents(document: &Value, page: &mut String) {
    page.push_str(
        "\n## Documents\n\nFields marked with * are always there. Fields that a body does not know are refused; answers may gain fields.\n\n\
         A **page of** something is `{\"items\": […], \"next\": …}`: hand `next` back as `after` until a page has none.\n",
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
            let (kind, text) = (cell(&of_type(field)), cell(&description(field)));
            let _ = writeln!(page, "| `{name}`{star} | {kind} | {text} |");
        }
    } else if schema["type"].is_string() || schema["enum"].is_array() {
        let _ = write!(page, "\n{}\n", of_type(schema));
    }
}

/// How a choice is told from the others, and what else it has.
fn variant(choice: &Value) -> (String, String) {
    let Some(fields) = choice["properties"].as_object() else {
        return (of_type(choice), String::new());
    };
    let (mut which, mut with) = (Vec::new(), Vec::new());
    for (name, field) in fields {
        match field["enum"].as_array().map(Vec::as_slice) {
            Some([only]) => which.push(format!("`\"{name}\": {only}`")),
            _ => with.push(said(name, field)),
        }
    }
    if which.is_empty() {
        std::mem::swap(&mut which, &mut with);
    }
    (which.join(", "), with.join("<br>"))
}

fn said(name: &str, field: &Value) -> String {
    let text = description(field);
    let kind = format!("`{name}` ({})", of_type(field));
    if text.is_empty() {
        return kind;
    }
    format!("{kind}: {}", text.trim_end_matches('.'))
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema["required"].as_array();
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// What is said of a field; where it may be null it is said of the part that is not.
fn description(field: &Value) -> String {
    let own = field["description"].as_str();
    let of_part = || {
        let parts = field["oneOf"].as_array()?;
        parts.iter().find_map(|part| part["description"].as_str())
    };
    own.or_else(of_part).unwrap_or_default().trim().to_owned()
}

/// A type in words.
pub(super) fn of_type(schema: &Value) -> String {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return linked(name);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let said: Vec<String> = choices.iter().map(of_type).collect();
        return said.join(" or ");
    }
    if let Some(values) = schema["enum"].as_array() {
        let said: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        return said.join(", ");
    }
    match &schema["type"] {
        Value::String(kind) => named(kind, schema),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            let said: Vec<String> = kinds.map(|kind| named(kind, schema)).collect();
            said.join(" or ")
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
        "boolean" => "true or false".to_owned(),
        "integer" => format!("whole number{}", range(schema)),
        "number" => format!("number{}", range(schema)),
        "array" => format!("list of {}", of_type(&schema["items"])) + &most(schema, "maxItems", ""),
        "string" => match schema["format"].as_str() {
            Some("uuid") => "id".to_owned(),
            Some("date-time") => "time".to_owned(),
            _ => "text".to_owned() + &most(schema, "maxLength", " characters"),
        },
        _ => "object".to_owned(),
    }
}

fn range(schema: &Value) -> String {
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(least), Value::Number(most)) => format!(", {least} to {most}"),
        (Value::Null, Value::Number(most)) => format!(", at most {most}"),
        _ => String::new(),
    }
}

fn most(schema: &Value, bound: &str, of: &str) -> String {
    match &schema[bound] {
        Value::Number(most) => format!(", at most {most}{of}"),
        _ => String::new(),
    }
}

/// A text as it may stand in a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}
