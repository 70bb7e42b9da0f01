//! URI templates (RFC 6570).

/// Literals and expressions in braces.
pub(super) fn is_uri_template(text: &str) -> bool {
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let Some(expression) = rest[open..].strip_prefix('{') else {
            return false;
        };
        let Some((expression, after)) = expression.split_once('}') else {
            return false;
        };
        if !is_literal(&rest[..open]) || !is_expression(expression) {
            return false;
        }
        rest = after;
    }
    is_literal(rest)
}

fn is_literal(text: &str) -> bool {
    let is_allowed = |c: char| !c.is_ascii_control() && !" \"<>\\^`|".contains(c);
    text.chars().all(is_allowed) && has_valid_percents(text)
}

fn is_expression(text: &str) -> bool {
    let variables = text
        .strip_prefix(['+', '#', '.', '/', ';', '?', '&', '=', ',', '!', '@', '|'])
        .unwrap_or(text);
    variables.split(',').all(is_variable)
}

/// A name, and `*` or `:` with a length of up to four digits.
fn is_variable(text: &str) -> bool {
    let name = match text.split_once(':') {
        Some((name, length)) => {
            let is_length = (1..=4).contains(&length.len())
                && !length.starts_with('0')
                && length.bytes().all(|b| b.is_ascii_digit());
            if !is_length {
                return false;
            }
            name
        }
        None => text.strip_suffix('*').unwrap_or(text),
    };
    let is_name_char = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'%');
    name.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(is_name_char))
        && has_valid_percents(name)
}

/// Every `%` is followed by two hexadecimal digits.
pub(super) fn has_valid_percents(text: &str) -> bool {
    let is_escape = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    text.split('%').skip(1).all(is_escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_closed_expressions() {
        for text in [
            "",
            "http://example.com/dictionary/{term:1}/{term}",
            "/{a,b*}{?c.d}{/%41}",
            "é'",
            "dictionary/{+path:9999}",
        ] {
            assert!(is_uri_template(text), "{text}");
        }
        for text in [
            "/{term",
            "/term}",
            "{}",
            "{a b}",
            "{a:0}",
            "{a:12345}",
            "{a,}",
            "{.}",
            "a b",
            "%4",
            "{%4}",
            "{a..b}",
            "{{a}}",
            "a|b",
            "{a:}",
        ] {
            assert!(!is_uri_template(text), "{text}");
        }
    }
}
