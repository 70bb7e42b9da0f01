//! JSON pointers (RFC 6901) and relative JSON pointers.

/// Empty, or tokens that each start with `/` and escape `~`.
pub(super) fn is_json_pointer(text: &str) -> bool {
    if !text.is_empty() && !text.starts_with('/') {
        return false;
    }
    let escapes_are_valid = |part: &str| part.starts_with(['0', '1']);
    text.split('~').skip(1).all(escapes_are_valid)
}

/// A number of levels, then `#` or a JSON pointer.
pub(super) fn is_relative_json_pointer(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    let is_number = !digits.is_empty() && (digits == "0" || !digits.starts_with('0'));
    is_number && (rest == "#" || is_json_pointer(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_start_with_a_slash_and_escape_tildes() {
        for text in ["", "/", "/foo/0", "/a~1b/m~0n", "//", "/é /\""] {
            assert!(is_json_pointer(text), "{text}");
        }
        for text in ["foo", "#/a", "/~", "/~2", "/a~/b", "0"] {
            assert!(!is_json_pointer(text), "{text}");
        }
    }

    #[test]
    fn relative_pointers_start_with_a_number() {
        for text in ["1", "0/foo/bar", "2/0/baz", "0#", "120/foo"] {
            assert!(is_relative_json_pointer(text), "{text}");
        }
        for text in ["", "/foo", "-1/a", "+1/a", "0##", "01/a", "01#", "1a", "٣"] {
            assert!(!is_relative_json_pointer(text), "{text}");
        }
    }
}
