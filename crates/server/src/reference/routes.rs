//! The routes of the reference, by what they are about. Knows the shape of an OpenAPI document.

use super::words::{cell, of_type};
use crate::access::Access;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt::Write;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

struct Route<'a> {
    method: String,
    path: &'a str,
    operation: &'a Value,
    access: Option<Access>,
}

/// Writes a section for every tag, in the order in which a reader meets them.
pub(super) fn write(document: &Value, page: &mut String) {
    let routes = routes(document);
    let mut tags: Vec<&str> = routes.iter().map(tag).collect();
    tags.sort_by_key(place);
    tags.dedup();
    for tag_name in tags {
        line(page, &format!("\n## {}\n", capitalised(tag_name)));
        for route in routes.iter().filter(|route| tag(route) == tag_name) {
            write_route(route, page);
        }
    }
}

/// Tags that are not here come last, by name.
fn place<'a>(tag: &&'a str) -> (usize, &'a str) {
    const ORDER: [&str; 12] = [
        "workspaces",
        "definitions",
        "requests",
        "executions",
        "dead letters",
        "changes",
        "queues",
        "jobs",
        "workers",
        "keys",
        "instances",
        "about",
    ];
    let at = ORDER.iter().position(|known| known == tag);
    (at.unwrap_or(ORDER.len()), tag)
}

fn routes(document: &Value) -> Vec<Route<'_>> {
    let rows = crate::routes::all();
    let access: HashMap<(String, &str), Access> = rows
        .list()
        .map(|(method, path, _, policy)| ((method.to_string(), path), policy.access))
        .collect();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                let method = method.to_uppercase();
                let access = access.get(&(method.clone(), path.as_str())).copied();
                found.push(Route {
                    method,
                    path,
                    operation,
                    access,
                });
            }
        }
    }
    found
}

fn tag<'a>(route: &Route<'a>) -> &'a str {
    route.operation["tags"][0].as_str().unwrap_or("other")
}

fn write_route(route: &Route<'_>, page: &mut String) {
    line(page, &format!("### `{} {}`\n", route.method, route.path));
    for part in ["summary", "description"] {
        if let Some(text) = route.operation[part].as_str() {
            line(page, &format!("{}\n", text.trim()));
        }
    }
    line(page, &format!("**Who:** {}\n", who(route)));
    write_parameters(route.operation, page);
    let body = &route.operation["requestBody"];
    if let Some(schema) = schema_of(body) {
        let must = body["required"].as_bool() == Some(true);
        let needed = if must { "" } else { ", if you like" };
        line(page, &format!("**Body:** {}{needed}\n", of_type(schema)));
    }
    write_answers(route.operation, page);
}

fn who(route: &Route<'_>) -> &'static str {
    match route.access {
        Some(Access::Open) => "everybody, without a key",
        Some(Access::AnyKey) => "any key",
        Some(Access::Admin) => "administrators",
        Some(Access::Workspace) => "keys of the workspace, administrators",
        Some(Access::Queue) => "workers' keys for the queue, administrators",
        Some(Access::Jobs) => "workers' keys, administrators",
        None => "nobody",
    }
}

/// What can be sent beside the body. Ids in the path speak for themselves.
fn write_parameters(operation: &Value, page: &mut String) {
    let all = operation["parameters"].as_array();
    let told: Vec<&Value> = all
        .into_iter()
        .flatten()
        .filter(|parameter| parameter["in"] != "path")
        .collect();
    if told.is_empty() {
        return;
    }
    line(page, "| parameter | in | type | |\n|---|---|---|---|");
    for parameter in told {
        let [name, place, text] =
            ["name", "in", "description"].map(|part| parameter[part].as_str().unwrap_or_default());
        let kind = of_type(&parameter["schema"]);
        line(
            page,
            &format!("| `{name}` | {place} | {} | {} |", cell(&kind), cell(text)),
        );
    }
    line(page, "");
}

fn write_answers(operation: &Value, page: &mut String) {
    let empty = Map::new();
    let answers = operation["responses"].as_object().unwrap_or(&empty);
    let (good, bad): (Vec<_>, Vec<_>) = answers
        .iter()
        .partition(|(status, _)| status.starts_with('2'));
    let mut said = Vec::new();
    for (status, answer) in good {
        let mut text = format!("`{status}`");
        if let Some(schema) = schema_of(answer) {
            let _ = write!(text, " {}", of_type(schema));
        }
        let why = answer["description"].as_str().unwrap_or_default().trim();
        if !why.is_empty() {
            let _ = write!(text, " ({})", why.trim_end_matches('.'));
        }
        said.push(text);
    }
    line(page, &format!("**Answers:** {}\n", said.join("; ")));
    let problems: Vec<String> = bad.into_iter().filter_map(problem).collect();
    if !problems.is_empty() {
        line(page, &format!("**Problems:** {}\n", problems.join("; ")));
    }
}

/// A problem that is about the route: what any call may be answered is said once, above.
fn problem((status, answer): (&String, &Value)) -> Option<String> {
    match status.as_str() {
        "404" => Some("[not_found](../errors/not_found.md)".to_owned()),
        "409" => match answer["description"].as_str()? {
            codes if codes.contains(',') => {
                Some("what is in the way, with status [409](../errors/README.md)".to_owned())
            }
            code => Some(format!("[{code}](../errors/{code}.md)")),
        },
        _ => None,
    }
}

/// The document of a body or an answer, whatever its media type.
fn schema_of(part: &Value) -> Option<&Value> {
    let content = part.get("content")?.as_object()?;
    content.values().find_map(|media| media.get("schema"))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn line(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}
