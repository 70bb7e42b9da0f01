//! `contentEncoding` and `contentMediaType`, which drafts 6 and 7 assert for base64 and JSON.

use serde_json::Value;
use serde_json::value::RawValue;

/// What the content of a string must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) is_base64: bool,
    pub(crate) is_json: bool,
}

impl Content {
    /// Reads both keywords. Other encodings and media types assert nothing.
    pub(crate) fn new(encoding: Option<&Value>, media_type: Option<&Value>) -> Option<Self> {
        let is_json = media_type.is_some_and(|name| name == "application/json");
        let is_base64 = encoding.is_some_and(|name| name == "base64");
        // The content of an unknown encoding cannot be read.
        let is_readable = encoding.is_none() || is_base64;
        let content = Self {
            is_base64,
            is_json: is_json && is_readable,
        };
        (content.is_base64 || content.is_json).then_some(content)
    }

    /// The keyword that a text violates.
    pub(crate) fn violated(self, text: &str) -> Option<&'static str> {
        let is_json = |text: &str| serde_json::from_str::<&RawValue>(text).is_ok();
        if !self.is_base64 {
            return (!is_json(text)).then_some("contentMediaType");
        }
        match decode_base64(text) {
            None => Some("contentEncoding"),
            Some(_) if !self.is_json => None,
            Some(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) if is_json(text) => None,
                _ => Some("contentMediaType"),
            },
        }
    }
}

/// Decodes padded base64 (RFC 4648, section 4).
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (index, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|b| **b == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 < groups.len()) {
            return None;
        }
        let mut bits = 0_u32;
        for byte in &group[..4 - padding] {
            bits = bits << 6 | sextet(*byte)?;
        }
        bits <<= 6 * padding;
        let decoded = bits.to_be_bytes();
        let (kept, dropped) = decoded[1..].split_at(3 - padding);
        // Bits that the padding drops must be zero.
        if dropped.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn base64_is_decoded_strictly() {
        assert_eq!(decode_base64("").as_deref(), Some(&b""[..]));
        assert_eq!(decode_base64("Zm9vYmE=").as_deref(), Some(&b"fooba"[..]));
        assert_eq!(decode_base64("Zm9vYg==").as_deref(), Some(&b"foob"[..]));
        for text in [
            "Zg", "Zg=", "Zh==", "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm-v", "=Zm9",
        ] {
            assert_eq!(decode_base64(text), None, "{text}");
        }
    }

    #[test]
    fn encoding_and_media_type_are_checked_together() {
        let content = |encoding: Value, media_type: Value| {
            let some = |value: &Value| (!value.is_null()).then_some(value.clone());
            Content::new(some(&encoding).as_ref(), some(&media_type).as_ref())
        };
        let both = content(json!("base64"), json!("application/json")).unwrap();
        assert_eq!(both.violated("eyJmb28iOiAiYmFyIn0="), None);
        assert_eq!(both.violated("ezp9Cg=="), Some("contentMediaType"));
        assert_eq!(both.violated("{}"), Some("contentEncoding"));
        let json = content(json!(null), json!("application/json")).unwrap();
        assert_eq!(json.violated("{\"a\": 1}"), None);
        assert_eq!(json.violated("{:}"), Some("contentMediaType"));
        assert_eq!(content(json!("gzip"), json!("application/json")), None);
        assert_eq!(content(json!(null), json!("text/html")), None);
    }
}
