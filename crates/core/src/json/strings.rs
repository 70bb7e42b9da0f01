//! The strings of a JSON text, found without parsing the text. Expects a valid document, and does not fail on others.

/// Returns the bytes of the string that the text begins with, with its quotes; all of them if it does not end.
pub fn string_length(text: &[u8]) -> usize {
    let mut length = 1;
    while let Some(rest) = text.get(length..) {
        let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
            break;
        };
        if rest[at] == b'"' {
            return length + at + 1;
        }
        // The character after a backslash is a part of the string.
        length += at + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_ends_at_the_first_quote_that_is_not_escaped() {
        let cases = [
            (r#""""#, 2),
            (r#""a" "b""#, 3),
            (r#""\"\\" "#, 6),
            (r#""a"#, 2),
            (r#""\"#, 2),
            (r#"""#, 1),
        ];
        for (text, length) in cases {
            assert_eq!(string_length(text.as_bytes()), length, "{text}");
        }
    }
}
