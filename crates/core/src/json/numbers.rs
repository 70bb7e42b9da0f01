//! The number literals of a JSON text, read without parsing the text. Expects a valid document, and does not fail on others.

use super::strings::string_length;

/// What a text's number literals and its size amount to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The first integer that fits neither i64 nor u64.
    pub(super) huge_integer: Option<String>,
    /// The most digits after the decimal point that a number has when it is written out.
    pub(super) fraction_digits: usize,
    /// Bytes of the text without white space and with numbers written out.
    pub(super) written_out: usize,
}

impl Numbers {
    pub(super) fn read(text: &[u8]) -> Self {
        let mut read = Self::default();
        let mut position = 0;
        while position < text.len() {
            let length = match text[position] {
                b'"' => string_length(&text[position..]),
                b'-' | b'0'..=b'9' => {
                    let length = text[position..]
                        .iter()
                        .take_while(|b| matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                        .count();
                    read.add(&text[position..position + length]);
                    position += length;
                    continue;
                }
                b' ' | b'\t' | b'\n' | b'\r' => {
                    position += 1;
                    continue;
                }
                _ => 1,
            };
            read.written_out += length;
            position += length;
        }
        read
    }

    /// Adds a number literal.
    fn add(&mut self, token: &[u8]) {
        let token = std::str::from_utf8(token).unwrap_or_default();
        let (mantissa, exponent) = match token.find(['e', 'E']) {
            Some(at) => (&token[..at], &token[at + 1..]),
            None => (token, ""),
        };
        let fraction = mantissa.find('.').map(|at| mantissa.len() - at - 1);
        let is_integer = fraction.is_none() && exponent.is_empty();
        if is_integer
            && self.huge_integer.is_none()
            && token.parse::<i64>().is_err()
            && token.parse::<u64>().is_err()
        {
            self.huge_integer = Some(token.to_owned());
        }
        // An exponent that does not fit is out of every range.
        let size = exponent.trim_start_matches(['+', '-']);
        let size = if exponent.is_empty() {
            0
        } else {
            size.parse().unwrap_or(i32::MAX as usize)
        };
        let fraction = fraction.unwrap_or(0);
        let digits = if exponent.starts_with('-') {
            fraction.saturating_add(size)
        } else {
            fraction.saturating_sub(size)
        };
        self.fraction_digits = self.fraction_digits.max(digits);
        self.written_out = self
            .written_out
            .saturating_add(mantissa.len())
            .saturating_add(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_out() {
        let cases = [
            (r#"{"a": [1, 20] }"#, 12, 0),
            ("1e300", 301, 0),
            ("[-1.5e-10]", 16, 11),
            ("[1.25e1]", 7, 1),
            (r#"" 1e99\" 5 ""#, 12, 0),
            ("1e99999999999999999999", i32::MAX as usize + 1, 0),
        ];
        for (text, written_out, fraction_digits) in cases {
            let read = Numbers::read(text.as_bytes());
            assert_eq!(
                (read.written_out, read.fraction_digits),
                (written_out, fraction_digits),
                "{text}"
            );
        }
    }

    #[test]
    fn unterminated_text_is_no_panic() {
        for text in ["\"", "\"\\", "[\"a", "1e", "-"] {
            assert!(Numbers::read(text.as_bytes()).written_out <= text.len());
        }
    }
}
