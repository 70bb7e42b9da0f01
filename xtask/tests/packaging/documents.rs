//! YAML as JSON values.

use leasehold_testkit::yaml_as_json;
use serde_json::Value;

/// Every document of a text.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let json = yaml_as_json(text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    serde_json::from_slice(&json).unwrap()
}

/// The strings of a list; empty if it is no list.
pub(crate) fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|entry| entry.as_str().unwrap()).collect()
}

/// The keys of an object; empty if it is no object.
pub(crate) fn names(object: &Value) -> Vec<&str> {
    let members = object.as_object().into_iter().flatten();
    members.map(|(name, _)| name.as_str()).collect()
}
