//! Texts of errors: JSON pointers, and values shortened so that an error never repeats a large one.

use serde_json::Value;
use std::fmt::Write as _;

/// Characters of a value that an error repeats.
const VALUE_MAX_CHARS: usize = 60;
/// Bytes of a JSON pointer that an error repeats.
const POINTER_MAX_BYTES: usize = 1_000;

/// Shortens a text.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(VALUE_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Quotes a text, shortened.
pub(crate) fn quote(text: &str) -> String {
    let short = shorten(text);
    Value::String(short).to_string()
}

/// Returns the JSON of a value if it is short, without writing a large one.
pub(crate) fn short_json(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.len() > VALUE_MAX_CHARS => None,
        Value::Array(items) if !items.is_empty() => None,
        Value::Object(fields) if !fields.is_empty() => None,
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => Some(value.to_string()),
    }
}

/// Appends one token to a JSON pointer. A pointer that has become too long ends with `…` and stays as it is.
pub(crate) fn push_token(pointer: &mut String, token: &str) {
    if pointer.ends_with('…') {
        return;
    }
    pointer.push('/');
    for c in token.chars() {
        if pointer.len() > POINTER_MAX_BYTES {
            pointer.push('…');
            return;
        }
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Appends the index of an array to a JSON pointer.
pub(crate) fn push_index(pointer: &mut String, index: usize) {
    if !pointer.ends_with('…') {
        // Writing to a String cannot fail.
        let _ = write!(pointer, "/{index}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn large_values_are_not_repeated() {
        let long = "x".repeat(10_000);
        assert!(shorten(&long).len() < 100);
        assert!(quote(&long).len() < 100);
        assert_eq!(short_json(&json!(long)), None);
        assert_eq!(short_json(&json!([1])), None);
        assert_eq!(short_json(&json!({})), Some("{}".to_owned()));
        assert_eq!(short_json(&json!("é")), Some("\"é\"".to_owned()));
    }

    #[test]
    fn pointer_is_escaped_and_bounded() {
        let mut pointer = String::new();
        push_token(&mut pointer, "a/b~c");
        push_index(&mut pointer, 3);
        assert_eq!(pointer, "/a~1b~0c/3");
        push_token(&mut pointer, &"k".repeat(10_000));
        push_token(&mut pointer, "after");
        push_index(&mut pointer, 1);
        assert!(pointer.len() < 1_100 && pointer.ends_with('…'));
    }
}
