//! The URL of an `http` node: replaces placeholders by percent-encoded values, and stops at the first one that exceeds the limit.

use super::input::{InputProblem, InputSource, NodeSources};
use super::lookup::FoundValue;
use crate::limits::URL_MAX_CHARS;
use serde_json::Value;
use std::fmt::Write;

/// Bytes that one character of a JSON string takes at most: `\u0000`.
const ESCAPE_BYTES: usize = 6;

pub(super) enum UrlPart<'a> {
    Text(&'a str),
    Pointer(&'a str),
}

/// Splits a URL template; an unclosed brace is text.
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

/// Replaces the placeholders of a URL by percent-encoded values.
pub(super) fn url(template: &str, sources: &NodeSources<'_>) -> Result<String, InputProblem> {
    let mut url = String::with_capacity(template.len());
    for part in url_parts(template) {
        match part {
            UrlPart::Text(text) => url.push_str(text),
            UrlPart::Pointer(pointer) => {
                let InputSource::Value(found) = sources.at(pointer)? else {
                    return Err(InputProblem::NotPlain(pointer.to_owned()));
                };
                let text = plain(pointer, found)?;
                if text.bytes().all(|byte| byte == b'.') {
                    return Err(InputProblem::NoSegment(pointer.to_owned()));
                }
                if url.len() + encoded_len(&text) > URL_MAX_CHARS {
                    return Err(InputProblem::UrlTooLong(pointer.to_owned()));
                }
                encode(&mut url, &text);
            }
        }
    }
    match url.len() > URL_MAX_CHARS {
        true => Err(InputProblem::UrlTooLong(template.to_owned())),
        false => Ok(url),
    }
}

/// Returns the text of a string, a number or a boolean. Refuses one that cannot fit into a URL before it is copied.
fn plain(pointer: &str, found: FoundValue<'_>) -> Result<String, InputProblem> {
    let too_long = found.text.len() > URL_MAX_CHARS * ESCAPE_BYTES + 2;
    match found.text.bytes().next() {
        Some(b'{' | b'[' | b'n') | None => Err(InputProblem::NotPlain(pointer.to_owned())),
        Some(_) if too_long => Err(InputProblem::UrlTooLong(pointer.to_owned())),
        Some(_) => match serde_json::from_str(found.text) {
            Ok(Value::String(text)) => Ok(text),
            Ok(plain) => Ok(plain.to_string()),
            Err(_) => Err(InputProblem::NotJson),
        },
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn encoded_len(text: &str) -> usize {
    let len = |byte| if is_unreserved(byte) { 1 } else { 3 };
    text.bytes().map(len).sum()
}

fn encode(url: &mut String, text: &str) {
    for byte in text.bytes() {
        if is_unreserved(byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}
