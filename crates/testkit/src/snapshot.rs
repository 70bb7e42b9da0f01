//! Snapshot files: the expected output of a program, stored beside its tests.

use std::path::Path;

/// Writes snapshot files instead of comparing with them.
const BLESS: &str = "LEASEHOLD_BLESS";

/// Asserts that the snapshot file contains this text. With `LEASEHOLD_BLESS` set, writes the file instead.
///
/// # Panics
/// If the file has another text, or cannot be read or written.
pub fn assert_snapshot_file(file: &Path, actual: &str) {
    if std::env::var_os(BLESS).is_some() {
        if let Some(directory) = file.parent() {
            let created = std::fs::create_dir_all(directory);
            created.unwrap_or_else(|error| {
                panic!("failed to create {}: {error}", directory.display())
            });
        }
        let written = std::fs::write(file, actual);
        return written
            .unwrap_or_else(|error| panic!("failed to write {}: {error}", file.display()));
    }
    let expected = std::fs::read_to_string(file);
    let expected = expected.unwrap_or_else(|error| {
        panic!(
            "failed to read {}: {error}; set {BLESS}=1 to write it",
            file.display()
        )
    });
    if expected != actual {
        let (line, was, is) = difference(&expected, actual);
        let file = file.display();
        panic!(
            "{file} differs from the output; set {BLESS}=1 to accept the output\nline {line} expected: {was}\nline {line} actual:   {is}\n--- actual output\n{actual}"
        );
    }
}

/// Returns the number of the first line that differs, and the line in both texts.
fn difference<'a>(expected: &'a str, actual: &'a str) -> (usize, &'a str, &'a str) {
    let (mut was, mut is) = (expected.lines(), actual.lines());
    let mut line = 0;
    loop {
        line += 1;
        match (was.next(), is.next()) {
            (Some(was), Some(is)) if was == is => {}
            (None, None) => return (line, "", "same lines, different line endings"),
            (was, is) => return (line, was.unwrap_or("(nothing)"), is.unwrap_or("(nothing)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn first_differing_line_is_reported() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), (2, "b", "c"));
        assert_eq!(difference("a\n", "a\nc\n"), (2, "(nothing)", "c"));
        assert_eq!(difference("a", "a\n").0, 2);
    }
}
