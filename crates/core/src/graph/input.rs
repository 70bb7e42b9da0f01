//! What a node is given: everything before it, or what its `input` and its URL choose of that.

use super::node::Node;
use crate::limits::{JSON_MAX_DEPTH, NODE_INPUT_MAX_BYTES};
use crate::{JsonText, json};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt::Write;
use thiserror::Error;

/// The key that stands for something else.
pub(super) const FROM: &str = "$from";

/// Why a node cannot be given its input.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputProblem {
    /// What it points at is not there.
    #[error("its input needs {0}, which is not there")]
    Missing(String),
    /// A list, an object or null cannot stand in a URL.
    #[error("its url needs {0} to be a string, a number or a boolean")]
    NotPlain(String),
    /// An empty text, `.` or `..` would change which resource the URL names.
    #[error("its url needs {0} to be more than dots")]
    NoSegment(String),
    /// More than a node may be given.
    #[error(
        "its input has {0} bytes of JSON, more than {NODE_INPUT_MAX_BYTES}; `input` can choose less"
    )]
    TooLarge(usize),
    /// Nested deeper than a job's payload may be.
    #[error("its input is nested too deep; `input` can choose less")]
    TooDeep,
    /// What was kept is no JSON.
    #[error("its input is no JSON")]
    NotJson,
}

/// Where inputs come from.
pub(super) struct Sources<'a> {
    pub(super) params: &'a JsonText,
    /// The outputs of the nodes before it by their ids, null where there is none.
    pub(super) nodes: Vec<(&'a str, Option<&'a JsonText>)>,
}

/// The input of a node.
pub(super) fn input(node: &Node, sources: &Sources<'_>) -> Result<JsonText, InputProblem> {
    let text = match &node.input {
        None => JsonText::of(&Everything(sources)),
        Some(template) => JsonText::of(&filled(template, &sources.document()?)?),
    };
    let text = text.map_err(|_| InputProblem::NotJson)?;
    match text.as_str().len() {
        bytes if bytes > NODE_INPUT_MAX_BYTES => Err(InputProblem::TooLarge(bytes)),
        // What is in the innermost list and the payload around it are a level each.
        _ if json::depth(text.as_str()) + 2 > JSON_MAX_DEPTH => Err(InputProblem::TooDeep),
        _ => Ok(text),
    }
}

/// A URL with what its placeholders point at, percent-encoded.
pub(super) fn url(template: &str, sources: &Sources<'_>) -> Result<String, InputProblem> {
    if !template.contains('{') {
        return Ok(template.to_owned());
    }
    let document = sources.document()?;
    let mut url = String::with_capacity(template.len());
    for part in url_parts(template) {
        match part {
            UrlPart::Text(text) => url.push_str(text),
            UrlPart::Pointer(pointer) => {
                let missing = || InputProblem::Missing(pointer.to_owned());
                let text = match document.pointer(pointer).ok_or_else(missing)? {
                    Value::String(text) => text.clone(),
                    plain @ (Value::Number(_) | Value::Bool(_)) => plain.to_string(),
                    Value::Null | Value::Array(_) | Value::Object(_) => {
                        return Err(InputProblem::NotPlain(pointer.to_owned()));
                    }
                };
                if text.bytes().all(|byte| byte == b'.') {
                    return Err(InputProblem::NoSegment(pointer.to_owned()));
                }
                encode(&mut url, &text);
            }
        }
    }
    Ok(url)
}

pub(super) enum UrlPart<'a> {
    Text(&'a str),
    Pointer(&'a str),
}

/// A brace that is not closed is text.
pub(super) fn url_parts(template: &str) -> Vec<UrlPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((text, behind)) = rest.split_once('{') {
        let Some((pointer, next)) = behind.split_once('}') else {
            break;
        };
        parts.push(UrlPart::Text(text));
        parts.push(UrlPart::Pointer(pointer));
        rest = next;
    }
    parts.push(UrlPart::Text(rest));
    parts
}

fn encode(url: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

/// The pointer that an object of this kind stands for.
pub(super) fn pointer(fields: &Map<String, Value>) -> Option<&Value> {
    fields.get(FROM).filter(|_| fields.len() == 1)
}

fn filled(template: &Value, document: &Value) -> Result<Value, InputProblem> {
    match template {
        Value::Object(fields) => {
            if let Some(Value::String(pointer)) = pointer(fields) {
                let found = document.pointer(pointer).cloned();
                return found.ok_or_else(|| InputProblem::Missing(pointer.clone()));
            }
            let filled =
                |(name, value): (&String, &Value)| Ok((name.clone(), filled(value, document)?));
            fields
                .iter()
                .map(filled)
                .collect::<Result<_, _>>()
                .map(Value::Object)
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| filled(item, document));
            items.collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(template.clone()),
    }
}

impl Sources<'_> {
    fn document(&self) -> Result<Value, InputProblem> {
        JsonText::of(&Everything(self))
            .and_then(|text| text.read())
            .map_err(|_| InputProblem::NotJson)
    }
}

/// What a node is given if it does not choose, its parts as they came.
struct Everything<'a>(&'a Sources<'a>);

impl Serialize for Everything<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            params: &'a JsonText,
            nodes: Outputs<'a>,
        }
        let document = Document {
            params: self.0.params,
            nodes: Outputs(&self.0.nodes),
        };
        document.serialize(serializer)
    }
}

struct Outputs<'a>(&'a [(&'a str, Option<&'a JsonText>)]);

impl Serialize for Outputs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::super::NodeKind;
    use super::*;
    use serde_json::json;

    fn fill(template: Value) -> Result<Value, InputProblem> {
        let mut node = Node::new("n", NodeKind::Delay { milliseconds: 0 });
        node.input = Some(template);
        let params = JsonText::parse(r#"{"id": 7, "a/b": [1, {"c": "x"}]}"#).unwrap();
        let output = JsonText::parse(r#"{"sum": 1.50}"#).unwrap();
        let sources = Sources {
            params: &params,
            nodes: vec![("one", Some(&output)), ("two", None)],
        };
        Ok(input(&node, &sources)?.read().unwrap())
    }

    #[test]
    fn a_pointer_stands_for_what_is_there_at_any_depth() {
        let cases = [
            (json!({"$from": "/params/id"}), json!(7)),
            (
                json!([{"$from": "/params/a~1b/1/c"}, "plain"]),
                json!(["x", "plain"]),
            ),
            (
                json!({"deep": {"er": {"$from": "/nodes/one/sum"}}}),
                json!({"deep": {"er": 1.5}}),
            ),
            (json!({"$from": "/nodes/two"}), json!(null)),
            (
                json!({"$from": "/params/id", "and": 1}),
                json!({"$from": "/params/id", "and": 1}),
            ),
        ];
        for (template, expected) in cases {
            assert_eq!(fill(template), Ok(expected));
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let missing = fill(json!({"a": {"$from": "/params/nothing"}})).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "its input needs /params/nothing, which is not there"
        );
    }

    #[test]
    fn outputs_are_carried_as_they_came() {
        let node = Node::new("n", NodeKind::Delay { milliseconds: 0 });
        let params = JsonText::parse(r#"{"b" : 1.0}"#).unwrap();
        let sources = Sources {
            params: &params,
            nodes: vec![("one", Some(&params)), ("two", None)],
        };
        let text = input(&node, &sources).unwrap();
        assert_eq!(
            text.as_str(),
            r#"{"params":{"b" : 1.0},"nodes":{"one":{"b" : 1.0},"two":null}}"#
        );
    }

    #[test]
    fn too_much_is_refused() {
        let node = Node::new("n", NodeKind::Delay { milliseconds: 0 });
        let params = JsonText::of(&"x".repeat(NODE_INPUT_MAX_BYTES)).unwrap();
        let sources = Sources {
            params: &params,
            nodes: Vec::new(),
        };
        assert!(matches!(
            input(&node, &sources),
            Err(InputProblem::TooLarge(_))
        ));
    }

    #[test]
    fn what_no_payload_can_hold_is_refused() {
        let node = Node::new("n", NodeKind::Delay { milliseconds: 0 });
        let nested = |levels: usize| {
            let text = "[".repeat(levels) + &"]".repeat(levels);
            let params = JsonText::parse(&text).unwrap();
            let sources = Sources {
                params: &params,
                nodes: Vec::new(),
            };
            input(&node, &sources).map(|_| ())
        };
        assert_eq!(nested(JSON_MAX_DEPTH - 3), Ok(()));
        assert_eq!(nested(JSON_MAX_DEPTH - 2), Err(InputProblem::TooDeep));
    }

    #[test]
    fn a_url_takes_plain_values_only_and_no_value_leaves_its_segment() {
        let params =
            JsonText::parse(r#"{"id": "a b/../c?d#e", "n": 5, "no": [1], "up": "..", "none": ""}"#)
                .unwrap();
        let sources = Sources {
            params: &params,
            nodes: Vec::new(),
        };
        let filled = |template: &str| url(template, &sources);
        assert_eq!(
            filled("http://h/{/params/id}/x?n={/params/n}").unwrap(),
            "http://h/a%20b%2F..%2Fc%3Fd%23e/x?n=5"
        );
        assert_eq!(
            filled("http://h/{/params/no}"),
            Err(InputProblem::NotPlain("/params/no".into()))
        );
        assert_eq!(
            filled("http://h/{/params/up}/x"),
            Err(InputProblem::NoSegment("/params/up".into()))
        );
        assert_eq!(
            filled("http://h/{/params/none}"),
            Err(InputProblem::NoSegment("/params/none".into()))
        );
        assert_eq!(
            filled("http://h/{/params/gone}"),
            Err(InputProblem::Missing("/params/gone".into()))
        );
    }
}
