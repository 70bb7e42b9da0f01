//! The effective settings for display: secrets hidden, with the source of every non-default value.

use crate::settings::{LoadedSettings, SettingKind, registry};
use crate::store;
use serde_json::{Map, Value, json};

/// Renders TOML.
pub(super) fn toml(loaded: &LoadedSettings) -> String {
    let tree = serde_json::to_value(&loaded.settings).unwrap_or_default();
    let mut text = "# Effective settings. Non-default values name their source.\n".to_owned();
    let mut current = "";
    for spec in registry::all() {
        let section = registry::section(spec.key);
        if section != current {
            text.push_str(&format!("\n[{section}]\n"));
            current = section;
        }
        let name = spec.key.rsplit('.').next().unwrap_or_default();
        let from = loaded.origins.get(spec.key);
        let from = from.map_or(String::new(), |origin| format!("  # {origin}"));
        match redacted(spec, &tree) {
            Value::Null => text.push_str(&format!("# {name} is not set\n")),
            value => text.push_str(&format!("{name} = {}{from}\n", written(&value))),
        }
    }
    text
}

/// Renders JSON.
pub(super) fn json(loaded: &LoadedSettings) -> Value {
    let tree = serde_json::to_value(&loaded.settings).unwrap_or_default();
    let mut settings = Map::new();
    for spec in registry::all() {
        let value = redacted(spec, &tree);
        match spec.key.split_once('.') {
            Some((section, name)) => {
                let section = settings.entry(section).or_insert_with(|| json!({}));
                section[name] = value;
            }
            None => drop(settings.insert(spec.key.to_owned(), value)),
        }
    }
    let from = loaded
        .origins
        .iter()
        .map(|(key, origin)| (key.clone(), origin.to_string().into()));
    json!({ "settings": settings, "from": from.collect::<Map<_, _>>() })
}

/// The value with secrets hidden.
fn redacted(spec: &registry::SettingSpec, tree: &Value) -> Value {
    let pointer = format!("/{}", spec.key.replace('.', "/"));
    let value = tree.pointer(&pointer).cloned().unwrap_or_default();
    match (spec.kind, value.as_str()) {
        (SettingKind::Secret(_), Some(url)) if spec.key == "store.url" => {
            store::redacted_url(url).into()
        }
        (SettingKind::Secret(_), Some(_)) => "***".into(),
        _ => value,
    }
}

/// A value in TOML syntax.
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
