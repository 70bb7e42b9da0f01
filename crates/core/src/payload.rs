//! Opaque JSON: kept as the original text, known to be well formed.

use crate::json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// A JSON document as text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Box<str>);

impl JsonText {
    /// Serializes a value as JSON.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self(text.into()))
    }

    /// Accepts a text that is JSON.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<serde::de::IgnoredAny>(text)?;
        Ok(Self(text.into()))
    }

    /// Accepts a text without a check; the caller guarantees that it is JSON.
    pub fn trusted(text: String) -> Self {
        Self(text.into())
    }

    /// Deserializes it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Returns whether a parser can read it: it is not nested too deep, and no number is out of range.
    pub fn is_readable(&self) -> bool {
        json::is_readable(&self.0)
    }

    /// Returns whether both are the same document; white space and the order of fields do not matter. Reads both texts as a stream, without a tree.
    pub fn is_same_document(&self, other: &Self) -> bool {
        self == other
            || self
                .digest()
                .is_some_and(|digest| other.digest() == Some(digest))
    }

    /// Returns its digest, which is the same for the same document; none if a parser cannot read it.
    pub fn digest(&self) -> Option<json::DocumentDigest> {
        json::digest(&self.0)
    }

    /// Removes the white space between its tokens.
    pub fn strip_whitespace(&mut self) {
        if let Some(stripped) = json::strip_whitespace(&self.0) {
            self.0 = stripped.into();
        }
    }

    /// Returns the document without white space, with sorted fields and with numbers that have the digits of a double; none if it cannot be parsed.
    pub fn canonical(&self) -> Option<Self> {
        self.read::<Value>().ok().map(|value| Self::from(&value))
    }

    /// Returns a SHA-256 hash that is equal for the same document; white space and the order of fields do not matter.
    pub fn document_hash(&self) -> [u8; 32] {
        let canonical = self.canonical();
        Sha256::digest(canonical.as_ref().unwrap_or(self).as_str()).into()
    }

    /// Returns the document in compact form if its text is longer than `max`: without white space, and if it is still longer, with numbers that have the
    /// digits of a double. A shorter text, or one that cannot be parsed, stays as it is. Builds a tree, which takes up to a hundred times the text, only in
    /// the second case.
    #[must_use]
    pub fn compacted_above(mut self, max: usize) -> Self {
        if self.0.len() > max {
            self.strip_whitespace();
        }
        if self.0.len() <= max {
            return self;
        }
        self.canonical().unwrap_or(self)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for JsonText {
    fn default() -> Self {
        Self("null".into())
    }
}

impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into())
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Deserializes only from JSON text; other formats lose the original text.
impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(raw.into()))
    }
}

impl std::fmt::Debug for JsonText {
    /// Shows only the size: payloads may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JsonText({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn documents_are_compared_without_white_space_and_order() {
        let one = JsonText::trusted(r#"{"a": 1, "b": [2.0]}"#.to_owned());
        let same = JsonText::trusted(r#"{"b":[2.0],"a":1}"#.to_owned());
        assert!(one.is_same_document(&same));
        assert_eq!(one.canonical(), same.canonical());
        assert!(!one.is_same_document(&JsonText::from(json!({"a": 1}))));
        let mut stripped = one.clone();
        stripped.strip_whitespace();
        assert_eq!(stripped.as_str(), r#"{"a":1,"b":[2.0]}"#);
    }

    #[test]
    fn json_text_is_kept_verbatim() {
        let text = " {\"b\": 1.0, \"a\": [1e2]}\n";
        assert_eq!(JsonText::parse(text).unwrap().as_str(), text);
        assert_eq!(JsonText::default().as_str(), "null");
    }

    #[test]
    fn text_that_is_not_json_is_rejected() {
        for text in ["", "{", "{} {}", "nul", "'a'", "{\"a\":}"] {
            assert!(JsonText::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn too_deep_or_too_large_numbers_are_not_readable() {
        let exact = JsonText::parse("[123456789012345678901234567890.50]").unwrap();
        assert!(exact.is_readable());
        assert!(!JsonText::trusted("[1e400]".to_owned()).is_readable());
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(!JsonText::trusted(deep).is_readable());
    }

    #[test]
    fn only_text_above_the_limit_is_compacted() {
        let digits = "1".to_owned() + &"0".repeat(300);
        let text = JsonText::trusted(format!("[{digits}, {digits}]"));
        assert_eq!(text.clone().compacted_above(604 + 2), text);
        let stripped = JsonText::trusted(format!("[{digits},{digits}]"));
        assert_eq!(text.clone().compacted_above(605), stripped);
        let short = JsonText::from(&json!([1e300, 1e300]));
        assert!(short.as_str().len() < 20);
        assert_eq!(text.compacted_above(600), short);
        let unreadable = JsonText::trusted("[1e400]".to_owned());
        assert_eq!(unreadable.clone().compacted_above(1), unreadable);
    }

    #[test]
    fn debug_output_hides_the_payload() {
        let secret = JsonText::of("hush").unwrap();
        assert_eq!(format!("{secret:?}"), "JsonText(6 bytes)");
    }

    #[test]
    fn embedded_json_is_written_verbatim() {
        let document = r#"{"a": [1.50, {"b" :2}], "c": null}"#;
        let fields: std::collections::BTreeMap<String, JsonText> =
            serde_json::from_str(document).unwrap();
        assert_eq!(fields["a"].as_str(), r#"[1.50, {"b" :2}]"#);
        let written = serde_json::to_string(&fields).unwrap();
        assert_eq!(written, r#"{"a":[1.50, {"b" :2}],"c":null}"#);
    }

    #[test]
    fn values_parse_back() {
        let value = json!({"to": ["a", 1, null]});
        let text = JsonText::from(&value);
        assert_eq!(text.read::<Value>().unwrap(), value);
        assert_eq!(text, JsonText::of(&value).unwrap());
        assert!(text.read::<u8>().is_err());
    }

    proptest! {
        #[test]
        fn any_text_survives_as_a_json_string(text: String) {
            let json = JsonText::of(&text).unwrap();
            prop_assert_eq!(json.read::<String>().unwrap(), text);
            prop_assert_eq!(JsonText::parse(json.as_str()).unwrap(), json);
        }

        #[test]
        fn garbage_never_panics(text: String) {
            let _ = JsonText::parse(&text);
        }
    }
}
