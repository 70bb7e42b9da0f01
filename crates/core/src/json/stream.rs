//! Checks of JSON texts as a stream of values: the parser reads every value, and none is kept.

use super::strings::string_length;
use super::{JsonProblem, JsonProblemKind};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Checks that a text is JSON that a parser can read, nests at most `max_depth` levels and has no NUL characters.
pub(super) fn check(text: &str, max_depth: usize) -> Result<(), JsonProblem> {
    let mut found = Found::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let walk = Walk {
        found: &mut found,
        levels: max_depth,
    };
    let read = walk.deserialize(&mut reader).and_then(|()| reader.end());
    match (read, found.kind) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(kind)) => {
            found.tokens.reverse();
            let path = found.tokens.concat();
            Err(JsonProblem { path, kind })
        }
        (Err(error), None) => {
            let text = error.to_string();
            let kind = if text.starts_with("recursion limit") {
                JsonProblemKind::TooDeep
            } else {
                JsonProblemKind::Malformed(text)
            };
            let path = String::new();
            Err(JsonProblem { path, kind })
        }
    }
}

/// Returns whether a parser can read the text: it is not nested too deep for it, and no number is out of range.
pub fn is_readable(text: &str) -> bool {
    let mut found = Found {
        allows_nul: true,
        ..Found::default()
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let walk = Walk {
        found: &mut found,
        levels: usize::MAX,
    };
    walk.deserialize(&mut reader)
        .and_then(|()| reader.end())
        .is_ok()
}

/// Returns the text without white space between its tokens; none if there is none.
pub fn strip_whitespace(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut stripped, mut copied, mut position) = (Vec::new(), 0, 0);
    while position < bytes.len() {
        match bytes[position] {
            b'"' => position += string_length(&bytes[position..]),
            b' ' | b'\t' | b'\n' | b'\r' => {
                stripped.extend_from_slice(&bytes[copied..position]);
                position += 1;
                copied = position;
            }
            _ => position += 1,
        }
    }
    if copied == 0 {
        return None;
    }
    stripped.extend_from_slice(&bytes[copied..]);
    // Only ASCII bytes were removed.
    String::from_utf8(stripped).ok()
}

/// The first problem, and the way to it.
#[derive(Default)]
struct Found {
    kind: Option<JsonProblemKind>,
    /// The tokens of the path, innermost first, each with its slash.
    tokens: Vec<String>,
    allows_nul: bool,
}

/// Reads a value and all values in it.
struct Walk<'a> {
    found: &'a mut Found,
    /// Levels that the value may have.
    levels: usize,
}

impl Walk<'_> {
    fn fail<T, E: Error>(self, kind: JsonProblemKind) -> Result<T, E> {
        self.found.kind = Some(kind);
        Err(E::custom("see the problem"))
    }

    /// Returns the walk of a value inside of an array or an object.
    fn inner(&mut self) -> Walk<'_> {
        Walk {
            found: self.found,
            levels: self.levels - 1,
        }
    }

    /// Adds a token to the path if a problem was found in the value.
    fn add_token(&mut self, token: impl FnOnce() -> String) {
        if self.found.kind.is_some() {
            self.found.tokens.push(token());
        }
    }

    fn has_nul(&self, text: &str) -> bool {
        !self.found.allows_nul && text.contains('\0')
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if self.levels == 0 {
            return self.fail(JsonProblemKind::TooDeep);
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if self.has_nul(text) {
            return self.fail(JsonProblemKind::Nul);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        loop {
            match items.next_element_seed(self.inner()) {
                Ok(Some(())) => index += 1,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.add_token(|| format!("/{index}"));
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key_seed(Key)? {
            if self.has_nul(&key) {
                return self.fail(JsonProblemKind::Nul);
            }
            if let Err(error) = fields.next_value_seed(self.inner()) {
                self.add_token(|| format!("/{}", key.replace('~', "~0").replace('/', "~1")));
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Reads a key; copies it only if it has escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{check_text, check_written_out, parse};
    use crate::limits::{JSON_MAX_DEPTH, JSON_MAX_FRACTION_DIGITS};
    use proptest::prelude::*;

    /// The parser and the stream must agree, except on the size.
    fn compare(text: &str) {
        let parsed = parse(text.as_bytes(), usize::MAX).map(drop);
        assert_eq!(check_text(text, usize::MAX), parsed, "{text}");
    }

    #[test]
    fn stream_and_parser_find_the_same_problems() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let scalar = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        let texts = [
            nested(JSON_MAX_DEPTH),
            nested(JSON_MAX_DEPTH + 1),
            scalar(JSON_MAX_DEPTH - 1),
            scalar(JSON_MAX_DEPTH),
            r#"{"a/b~":[0,"x\u0000"]}"#.to_owned(),
            r#"{"\u0000":1}"#.to_owned(),
            r#"["\ud800"]"#.to_owned(),
            "[1e400]".to_owned(),
            "[123456789012345678901234567890]".to_owned(),
            "{} {}".to_owned(),
            "{".to_owned(),
            String::new(),
            r#"{"a":1,"a":[true,null,-2.5]}"#.to_owned(),
        ];
        for text in texts {
            compare(&text);
        }
    }

    #[test]
    fn size_counts_numbers_written_out() {
        assert!(check_written_out("[ 1e3, 1 ]", 8).is_ok());
        let found = check_written_out("[1e300]", 100).unwrap_err();
        assert_eq!(
            found.to_string(),
            "must have at most 100 bytes as JSON, has 303"
        );
        let long = format!("[1e-{}]", JSON_MAX_FRACTION_DIGITS + 1);
        let found = check_written_out(&long, usize::MAX).unwrap_err();
        assert_eq!(found.kind, JsonProblemKind::LongFraction);
    }

    #[test]
    fn white_space_is_stripped_outside_of_strings() {
        assert_eq!(strip_whitespace(r#"{"a":[1,"b c"]}"#), None);
        let stripped = strip_whitespace(" { \"a b\\\"\" :\t[ 1 ,\n\"ü \" ] } ");
        assert_eq!(stripped.as_deref(), Some(r#"{"a b\"":[1,"ü "]}"#));
    }

    proptest! {
        #[test]
        fn stream_and_parser_agree_on_any_text(text: String) {
            compare(&text);
        }

        #[test]
        fn stripping_keeps_the_document(text in r#"[\[\]{}:,"a1 \n\\]{0,12}"#) {
            let stripped = strip_whitespace(&text).unwrap_or_else(|| text.clone());
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
            if let Some(document) = read(&text) {
                prop_assert_eq!(read(&stripped), Some(document));
            }
        }
    }
}
