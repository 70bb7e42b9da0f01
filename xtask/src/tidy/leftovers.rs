//! Finds leftovers: placeholders, ignored tests, paths of one machine.

use super::finding::Finding;
use super::rust_text::{is_word, take_apart};

/// Placeholders in code; allowed in strings and comments.
const CODE: [&str; 3] = ["todo!(", "unimplemented!(", "#[ignore"];
/// Notes, forbidden everywhere. Written in two halves so that the rule does not find itself.
const NOTES: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];
const NOTED_IN: [&str; 4] = [".rs", ".sql", ".toml", ".ci/run"];
/// Directories of one machine.
const PLACES: [&str; 2] = [concat!("/wo", "rk/"), concat!("/fa", "rm/")];

pub(super) fn nothing_unfinished(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if path.ends_with(".rs") {
        let code = take_apart(text).code;
        for (line, placeholder) in occurrences(&code, &CODE, |before| !is_word(before)) {
            findings.push(Finding::new(path, line, format!("`{placeholder}` is left")));
        }
    }
    if NOTED_IN.iter().any(|end| path.ends_with(end)) {
        for (index, line) in text.lines().enumerate() {
            for word in line
                .split(|c| !is_word(c))
                .filter(|word| NOTES.contains(word))
            {
                findings.push(Finding::new(path, index + 1, format!("{word} is left")));
            }
        }
    }
    findings
}

pub(super) fn no_path_of_one_machine(path: &str, text: &str) -> Vec<Finding> {
    // After a word, a dot or a brace it is part of another path, a URL or a route.
    let begins = |before: char| !is_word(before) && !".-~}/".contains(before);
    occurrences(text, &PLACES, begins)
        .into_iter()
        .map(|(line, place)| Finding::new(path, line, format!("{place} is a path of one machine")))
        .collect()
}

/// The matches at a word boundary, by line.
fn occurrences<'a>(
    text: &str,
    wanted: &[&'a str],
    boundary: impl Fn(char) -> bool,
) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for piece in wanted {
            for (at, _) in line.match_indices(piece) {
                if line[..at].chars().next_back().is_none_or(&boundary) {
                    found.push((index + 1, *piece));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_and_note_is_found() {
        for placeholder in CODE {
            let text = format!("//! A.\n{placeholder}\n");
            let found = nothing_unfinished("crates/a/src/b.rs", &text);
            assert_eq!(found[0].line(), 2, "{placeholder}");
        }
        for note in NOTES {
            for path in [
                "crates/a/src/b.rs",
                "crates/a/sql/b.sql",
                "Cargo.toml",
                ".ci/run",
            ] {
                assert_eq!(
                    nothing_unfinished(path, &format!("x\n# {note}: y")).len(),
                    1
                );
            }
        }
    }

    #[test]
    fn words_that_only_look_alike_are_fine() {
        let text =
            "//! No todo!( here.\nlet a = \"#[ignore\"; let b = \"pg-XXXXXX\"; my_todo!(a);\n";
        assert_eq!(nothing_unfinished("crates/a/src/b.rs", text), []);
    }

    #[test]
    fn a_path_of_one_machine_is_found_in_any_file() {
        for place in PLACES {
            for text in [
                format!("{place}x"),
                format!("a\n\"{place}x\""),
                format!("cd={place}"),
            ] {
                assert_eq!(
                    no_path_of_one_machine("docs/a.md", &text).len(),
                    1,
                    "{text}"
                );
            }
            for text in [format!("https://a.b{place}x"), format!("src{place}x")] {
                assert_eq!(no_path_of_one_machine("docs/a.md", &text), [], "{text}");
            }
        }
    }
}
