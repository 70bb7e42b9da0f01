//! Names and phrases that were replaced must not come back. The list is `words.txt`; the rule is pure.

use super::{Finding, line_of};

/// One retired name or phrase a line, a tab, and the word to use instead.
const WORDS: &str = include_str!("words.txt");

/// Files that must name retired words: the list itself, the table of old and new names, and the history of changes.
const EXEMPT: [&str; 3] = [
    "xtask/src/tidy/words",
    "docs/adr/0014-names.md",
    "CHANGELOG.md",
];

pub(super) fn not_retired(path: &str, text: &str) -> Vec<Finding> {
    if EXEMPT.iter().any(|exempt| path.starts_with(exempt)) || path.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (retired, instead) in retired() {
        for (at, _) in text.match_indices(retired) {
            if is_whole_word(text, at, retired.len()) {
                let message = format!("\"{retired}\" is retired; use \"{instead}\"");
                findings.push(Finding::new(path, line_of(text, at), message));
            }
        }
    }
    findings
}

fn retired() -> impl Iterator<Item = (&'static str, &'static str)> {
    WORDS.lines().filter_map(|line| line.split_once('\t'))
}

fn is_whole_word(text: &str, at: usize, length: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let before = text[..at].chars().next_back();
    let after = text[at + length..].chars().next();
    !before.is_some_and(is_word) && !after.is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retired_name_or_phrase_is_found_with_its_replacement() {
        let planted = "//! A file.\n\nstruct Ear;\n// what works on nodes has broken\n";
        let found = not_retired("crates/core/src/planted.rs", planted);
        let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(
            messages
                .iter()
                .any(|message| message.contains("NotificationHandler"))
        );
        assert!(
            messages
                .iter()
                .any(|message| message.contains("node runner crashed"))
        );
    }

    #[test]
    fn part_of_a_longer_word_is_allowed() {
        let text = "struct Earlier;\nfn linear_Ear_drum() {}\n";
        assert_eq!(not_retired("crates/core/src/a.rs", text), []);
    }

    #[test]
    fn table_of_old_and_new_names_is_exempt() {
        assert_eq!(not_retired("docs/adr/0014-names.md", "`Ear`"), []);
    }

    #[test]
    fn every_line_of_the_list_has_a_replacement() {
        for line in WORDS.lines() {
            let (retired, instead) = line.split_once('\t').unwrap_or_default();
            assert!(!retired.is_empty() && !instead.is_empty(), "{line:?}");
        }
    }
}
