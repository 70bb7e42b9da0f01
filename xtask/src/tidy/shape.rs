//! The shape of a Rust file: its length and its first line.

use super::finding::Finding;

const MOST_LINES: usize = 500;

pub(super) fn not_too_long(path: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().count();
    if !path.ends_with(".rs") || lines <= MOST_LINES {
        return Vec::new();
    }
    let message = format!("{lines} lines; the limit is {MOST_LINES}: split the file by topic");
    vec![Finding::new(path, MOST_LINES + 1, message)]
}

pub(super) fn opens_with_its_purpose(path: &str, text: &str) -> Vec<Finding> {
    if !path.ends_with(".rs") || text.starts_with("//! ") {
        return Vec::new();
    }
    vec![Finding::new(
        path,
        1,
        "does not start with a `//!` sentence: its purpose and what it must not know",
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stops_at_500_lines() {
        assert_eq!(not_too_long("crates/a/src/b.rs", &"\n".repeat(500)), []);
        let found = not_too_long("crates/a/src/b.rs", &"\n".repeat(501));
        assert_eq!(found[0].line(), 501);
        assert_eq!(not_too_long("crates/a/schema.sql", &"\n".repeat(501)), []);
    }

    #[test]
    fn file_without_purpose_is_found() {
        for text in ["", "use std::io;\n", "\n//! Late.\n", "//!\n"] {
            assert_eq!(
                opens_with_its_purpose("bench/src/b.rs", text).len(),
                1,
                "{text:?}"
            );
        }
        assert_eq!(
            opens_with_its_purpose("bench/src/b.rs", "//! Measures.\n"),
            []
        );
    }
}
