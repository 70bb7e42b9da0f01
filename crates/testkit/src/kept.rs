//! Texts that are kept beside the tests: what a program printed once and must print again.

use std::path::Path;

/// Rewrites what is kept instead of comparing with it.
const BLESS: &str = "LEASEHOLD_BLESS";

/// Asserts that the file holds this text. With `LEASEHOLD_BLESS` set the file is written instead.
///
/// # Panics
/// If the file holds another text, or cannot be read or written.
pub fn assert_kept(file: &Path, seen: &str) {
    if std::env::var_os(BLESS).is_some() {
        if let Some(folder) = file.parent() {
            let made = std::fs::create_dir_all(folder);
            made.unwrap_or_else(|error| panic!("{} cannot be made: {error}", folder.display()));
        }
        let written = std::fs::write(file, seen);
        return written
            .unwrap_or_else(|error| panic!("{} cannot be written: {error}", file.display()));
    }
    let kept = std::fs::read_to_string(file);
    let kept = kept.unwrap_or_else(|error| {
        panic!(
            "{} cannot be read: {error}; {BLESS}=1 writes it",
            file.display()
        )
    });
    if kept != seen {
        let (line, was, is) = difference(&kept, seen);
        let file = file.display();
        panic!(
            "{file} is not what was seen; {BLESS}=1 keeps what was seen\nline {line} was: {was}\nline {line} is:  {is}\n--- seen\n{seen}"
        );
    }
}

/// The first line that differs, in both.
fn difference<'a>(kept: &'a str, seen: &'a str) -> (usize, &'a str, &'a str) {
    let (mut was, mut is) = (kept.lines(), seen.lines());
    let mut line = 0;
    loop {
        line += 1;
        match (was.next(), is.next()) {
            (Some(was), Some(is)) if was == is => {}
            (None, None) => return (line, "", "the same, but for how lines end"),
            (was, is) => return (line, was.unwrap_or("(nothing)"), is.unwrap_or("(nothing)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), (2, "b", "c"));
        assert_eq!(difference("a\n", "a\nc\n"), (2, "(nothing)", "c"));
        assert_eq!(difference("a", "a\n").0, 2);
    }
}
