//! The settings in effect, for reading: secrets hidden, and where each comes from that is not as by default.

use crate::settings::{Kind, Read, known};
use crate::store;
use serde_json::{Map, Value, json};

/// As TOML.
pub(super) fn toml(read: &Read) -> String {
    let tree = serde_json::to_value(&read.settings).unwrap_or_default();
    let mut text =
        "# The settings in effect. What is not as by default says where it comes from.\n"
            .to_owned();
    let mut current = "";
    for known in known::all() {
        let section = known::section(known.key);
        if section != current {
            text.push_str(&format!("\n[{section}]\n"));
            current = section;
        }
        let name = known.key.rsplit('.').next().unwrap_or_default();
        let from = read.origins.get(known.key);
        let from = from.map_or(String::new(), |origin| format!("  # {origin}"));
        match shown(known, &tree) {
            Value::Null => text.push_str(&format!("# {name} is not set\n")),
            value => text.push_str(&format!("{name} = {}{from}\n", written(&value))),
        }
    }
    text
}

/// As JSON.
pub(super) fn json(read: &Read) -> Value {
    let tree = serde_json::to_value(&read.settings).unwrap_or_default();
    let mut settings = Map::new();
    for known in known::all() {
        let value = shown(known, &tree);
        match known.key.split_once('.') {
            Some((section, name)) => {
                let section = settings.entry(section).or_insert_with(|| json!({}));
                section[name] = value;
            }
            None => drop(settings.insert(known.key.to_owned(), value)),
        }
    }
    let from = read
        .origins
        .iter()
        .map(|(key, origin)| (key.clone(), origin.to_string().into()));
    json!({ "settings": settings, "from": from.collect::<Map<_, _>>() })
}

/// The value, or what may be seen of it.
fn shown(known: &known::Known, tree: &Value) -> Value {
    let place = format!("/{}", known.key.replace('.', "/"));
    let value = tree.pointer(&place).cloned().unwrap_or_default();
    match (known.kind, value.as_str()) {
        (Kind::Secret(_), Some(url)) if known.key == "store.url" => store::shown(url).into(),
        (Kind::Secret(_), Some(_)) => "***".into(),
        _ => value,
    }
}

/// A value as TOML has it.
pub(super) fn written(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(written).collect();
            format!("[{}]", list.join(", "))
        }
        Value::String(text) => toml::Value::from(text.as_str()).to_string(),
        other => other.to_string(),
    }
}
