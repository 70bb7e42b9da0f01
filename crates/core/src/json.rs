//! Validation of JSON before it is stored: bounded size and depth, no NUL, no integers beyond 64 bits.
//! Texts from callers are checked as a stream of values, so that a check takes no memory in proportion to the text.

mod digest;
mod numbers;
mod stream;
mod strings;
mod tree;

pub use digest::{DocumentDigest, digest};
pub use stream::{is_readable, strip_whitespace};
pub use strings::string_length;
pub use tree::tree_bytes;

use crate::limits::{JSON_MAX_DEPTH, JSON_MAX_FRACTION_DIGITS};
use numbers::Numbers;
use serde_json::Value;
use thiserror::Error;

/// A NUL character in JSON, unless the backslash is escaped itself.
const NUL_ESCAPE: &str = "\\u0000";

/// Why a document is rejected, and where in it (a JSON pointer, empty for the whole).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{kind}", at(.path))]
pub struct JsonProblem {
    /// JSON pointer to the offending value.
    pub path: String,
    /// The problem.
    pub kind: JsonProblemKind,
}

/// A problem of a document.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JsonProblemKind {
    /// Not JSON at all.
    #[error("not valid JSON: {0}")]
    Malformed(String),
    /// More bytes than allowed.
    #[error("must have at most {max} bytes as JSON, has {actual}")]
    TooLarge {
        /// The limit.
        max: usize,
        /// The actual size.
        actual: usize,
    },
    /// Nested deeper than allowed.
    #[error("must not nest deeper than {JSON_MAX_DEPTH} levels")]
    TooDeep,
    /// A string or a key with a NUL character.
    #[error("must not contain NUL characters")]
    Nul,
    /// An integer that parsing would round.
    #[error("integer {0} is out of the range of 64 bits")]
    HugeInteger(String),
    /// A number that PostgreSQL cannot store.
    #[error("a number must have at most {JSON_MAX_FRACTION_DIGITS} digits after the decimal point")]
    LongFraction,
}

fn at(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("at {path}: ")
    }
}

fn problem(path: &str, kind: JsonProblemKind) -> JsonProblem {
    JsonProblem {
        path: path.to_owned(),
        kind,
    }
}

/// Rejects integers that deserializing into typed fields would silently round.
pub fn scan(text: &[u8]) -> Result<(), JsonProblem> {
    match Numbers::read(text).huge_integer {
        Some(digits) => Err(problem("", JsonProblemKind::HugeInteger(digits))),
        None => Ok(()),
    }
}

/// Applies every rule of this module to a text of at most `max_bytes`, without building a tree.
pub fn check_text(text: &str, max_bytes: usize) -> Result<(), JsonProblem> {
    check_size(text.len(), max_bytes)?;
    stream::check(text, JSON_MAX_DEPTH)?;
    scan(text.as_bytes())
}

/// Applies every rule of this module to a text that PostgreSQL stores as `jsonb`, without building a tree. Its size counts
/// without white space and with numbers written out (`1e3` as `1000`), as PostgreSQL returns them.
pub fn check_written_out(text: &str, max_bytes: usize) -> Result<(), JsonProblem> {
    stream::check(text, JSON_MAX_DEPTH)?;
    let numbers = Numbers::read(text.as_bytes());
    if let Some(digits) = numbers.huge_integer {
        return Err(problem("", JsonProblemKind::HugeInteger(digits)));
    }
    if numbers.fraction_digits > JSON_MAX_FRACTION_DIGITS {
        return Err(problem("", JsonProblemKind::LongFraction));
    }
    check_size(numbers.written_out, max_bytes)
}

/// Applies the rules on depth and NUL to a text that is JSON. Reads values only if the text may break a rule.
pub fn check_text_shape(text: &str) -> Result<(), JsonProblem> {
    if depth(text) < JSON_MAX_DEPTH && !text.contains(NUL_ESCAPE) {
        return Ok(());
    }
    stream::check(text, JSON_MAX_DEPTH)
}

/// Returns whether a text that is JSON has a NUL character in a string or a key.
pub fn has_nul(text: &str) -> bool {
    text.contains(NUL_ESCAPE)
        && stream::check(text, usize::MAX)
            .is_err_and(|problem| problem.kind == JsonProblemKind::Nul)
}

/// Returns the size of a text without white space and with numbers written out (`1e3` as `1000`).
pub fn written_out_bytes(text: &[u8]) -> usize {
    Numbers::read(text).written_out
}

fn check_size(actual: usize, max: usize) -> Result<(), JsonProblem> {
    if actual > max {
        return Err(problem("", JsonProblemKind::TooLarge { max, actual }));
    }
    Ok(())
}

/// Returns the nesting depth of arrays and objects. Looks only at brackets.
pub fn depth(text: &str) -> usize {
    let (mut now, mut deepest, mut rest) = (0usize, 0, text.as_bytes());
    while let [byte, ..] = rest {
        let mut length = 1;
        match byte {
            b'"' => length = string_length(rest),
            b'[' | b'{' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        rest = &rest[length..];
    }
    deepest
}

/// Parses a document of at most `max_bytes` and applies every rule of this module.
pub fn parse(text: &[u8], max_bytes: usize) -> Result<Value, JsonProblem> {
    check_size(text.len(), max_bytes)?;
    let value: Value = serde_json::from_slice(text).map_err(|error| {
        let kind = if error.to_string().starts_with("recursion limit") {
            JsonProblemKind::TooDeep
        } else {
            JsonProblemKind::Malformed(error.to_string())
        };
        problem("", kind)
    })?;
    scan(text)?;
    check(&value, max_bytes)?;
    Ok(value)
}

/// Applies the rules on depth and NUL to a parsed document.
pub fn check_shape(value: &Value) -> Result<(), JsonProblem> {
    walk(value, &mut String::new(), 1)
}

/// Applies the rules on size, depth and NUL to a parsed document.
pub fn check(value: &Value, max_bytes: usize) -> Result<(), JsonProblem> {
    check_shape(value)?;
    check_size(value.to_string().len(), max_bytes)
}

fn walk(value: &Value, path: &mut String, depth: usize) -> Result<(), JsonProblem> {
    if depth > JSON_MAX_DEPTH {
        return Err(problem(path, JsonProblemKind::TooDeep));
    }
    match value {
        Value::String(text) if text.contains('\0') => Err(problem(path, JsonProblemKind::Nul)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                step(item, path, &index.to_string(), depth)?;
            }
            Ok(())
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                if key.contains('\0') {
                    return Err(problem(path, JsonProblemKind::Nul));
                }
                step(
                    item,
                    path,
                    &key.replace('~', "~0").replace('/', "~1"),
                    depth,
                )?;
            }
            Ok(())
        }
    }
}

fn step(value: &Value, path: &mut String, token: &str, depth: usize) -> Result<(), JsonProblem> {
    let length = path.len();
    path.push('/');
    path.push_str(token);
    walk(value, path, depth + 1)?;
    path.truncate(length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn kind(text: &str) -> JsonProblemKind {
        parse(text.as_bytes(), 10_000).unwrap_err().kind
    }

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        let cases = [
            ("1", 0),
            ("[]", 1),
            (r#"{"a": [1, {"b": 2}], "c": []}"#, 3),
            (r#"["[[[", "\\", "\"[", "{"]"#, 1),
        ];
        for (text, expected) in cases {
            assert_eq!(depth(text), expected, "{text}");
        }
    }

    #[test]
    fn valid_document_is_parsed() {
        let text = br#"{"a":[1,-2.5e3,"x\"9",18446744073709551615]}"#;
        assert_eq!(parse(text, 100).unwrap()["a"][2], "x\"9");
    }

    #[test]
    fn invalid_json_is_malformed() {
        assert!(matches!(kind("{"), JsonProblemKind::Malformed(_)));
        assert!(matches!(kind("1e400"), JsonProblemKind::Malformed(_)));
        assert!(matches!(kind(""), JsonProblemKind::Malformed(_)));
    }

    #[test]
    fn nul_is_reported_with_its_path_in_values_and_keys() {
        let found = parse(br#"{"a/b":[0,"x\u0000"]}"#, 100).unwrap_err();
        assert_eq!(
            found.to_string(),
            "at /a~1b/1: must not contain NUL characters"
        );
        assert_eq!(kind(r#"{"\u0000":1}"#), JsonProblemKind::Nul);
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(nested(JSON_MAX_DEPTH).as_bytes(), 10_000).is_ok());
        assert_eq!(kind(&nested(JSON_MAX_DEPTH + 1)), JsonProblemKind::TooDeep);
        assert_eq!(kind(&nested(4_000)), JsonProblemKind::TooDeep);
        let problem = check(&json!("xxxx"), 5).unwrap_err();
        assert_eq!(
            problem.kind,
            JsonProblemKind::TooLarge { max: 5, actual: 6 }
        );
    }

    #[test]
    fn integer_beyond_64_bits_is_rejected_rather_than_rounded() {
        let digits = "123456789012345678901234567890".to_owned();
        assert_eq!(
            kind(&format!("[{digits}]")),
            JsonProblemKind::HugeInteger(digits)
        );
        assert!(parse(br#"["123456789012345678901234567890", 1e30]"#, 100).is_ok());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = parse(&text, 1_000);
        }
    }
}
