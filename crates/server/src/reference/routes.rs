//! Writes the routes of the reference, grouped by tag. Knows the shape of an OpenAPI document.

use super::schema::{cell, type_name};
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

/// Writes a section for every tag.
pub(super) fn write(document: &Value, page: &mut String) {
    let routes = routes(document);
    let mut tags: Vec<&str> = routes.iter().map(tag).collect();
    tags.sort_by_key(tag_order);
    tags.dedup();
    for tag_name in tags {
        line(page, &format!("\n## {}\n", capitalised(tag_name)));
        for route in routes.iter().filter(|route| tag(route) == tag_name) {
            write_route(route, page);
        }
    }
}

/// Sorts known tags first, the others by name.
fn tag_order<'a>(tag: &&'a str) -> (usize, &'a str) {
    const ORDER: [&str; 13] = [
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
        "audit",
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
    line(page, &format!("**Access:** {}\n", access(route)));
    write_parameters(route.operation, page);
    let body = &route.operation["requestBody"];
    if let Some(schema) = schema_of(body) {
        let required = body["required"].as_bool() == Some(true);
        let optional = if required { "" } else { ", optional" };
        line(
            page,
            &format!("**Body:** {}{optional}\n", type_name(schema)),
        );
    }
    write_responses(route.operation, page);
}

fn access(route: &Route<'_>) -> &'static str {
    match route.access {
        Some(Access::Open) => "no key required",
        Some(Access::AnyKey) => "any key except a metrics key",
        Some(Access::Admin) => "administrator key",
        Some(Access::Workspace) => "key of the workspace, administrator key",
        Some(Access::Queue) => "worker key for the queue, administrator key",
        Some(Access::Jobs) => "worker key, administrator key",
        Some(Access::Audit) => "workspace key for the entries of its workspace, administrator key",
        Some(Access::Metrics) => "metrics key, administrator key",
        None => "none",
    }
}

/// Writes the query parameters and headers. Path parameters are left out.
fn write_parameters(operation: &Value, page: &mut String) {
    let all = operation["parameters"].as_array();
    let listed: Vec<&Value> = all
        .into_iter()
        .flatten()
        .filter(|parameter| parameter["in"] != "path")
        .collect();
    if listed.is_empty() {
        return;
    }
    line(page, "| parameter | in | type | |\n|---|---|---|---|");
    for parameter in listed {
        let [name, location, text] =
            ["name", "in", "description"].map(|part| parameter[part].as_str().unwrap_or_default());
        let kind = type_name(&parameter["schema"]);
        line(
            page,
            &format!(
                "| `{name}` | {location} | {} | {} |",
                cell(&kind),
                cell(text)
            ),
        );
    }
    line(page, "");
}

fn write_responses(operation: &Value, page: &mut String) {
    let empty = Map::new();
    let responses = operation["responses"].as_object().unwrap_or(&empty);
    let (successes, errors): (Vec<_>, Vec<_>) = responses
        .iter()
        .partition(|(status, _)| status.starts_with('2'));
    let mut texts = Vec::new();
    for (status, response) in successes {
        let mut text = format!("`{status}`");
        if let Some(schema) = schema_of(response) {
            let _ = write!(text, " {}", type_name(schema));
        }
        let description = response["description"].as_str().unwrap_or_default().trim();
        if !description.is_empty() {
            let _ = write!(text, " ({})", description.trim_end_matches('.'));
        }
        texts.push(text);
    }
    line(page, &format!("**Responses:** {}\n", texts.join("; ")));
    let problems: Vec<String> = errors.into_iter().filter_map(problem).collect();
    if !problems.is_empty() {
        line(page, &format!("**Problems:** {}\n", problems.join("; ")));
    }
}

/// Returns the link to a problem specific to the route; those of every call are left out.
fn problem((status, response): (&String, &Value)) -> Option<String> {
    match status.as_str() {
        "404" => Some("[not_found](../errors/not_found.md)".to_owned()),
        "409" => match response["description"].as_str()? {
            codes if codes.contains(',') => {
                Some("a conflict, status [409](../errors/README.md)".to_owned())
            }
            code => Some(format!("[{code}](../errors/{code}.md)")),
        },
        _ => None,
    }
}

/// Returns the schema of a body or a response, of any media type.
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
