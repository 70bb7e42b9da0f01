//! The tests that the threat model names exist, and every attack has one.

use std::collections::{BTreeMap, HashSet};

use super::finding::Finding;

const PAGE: &str = "docs/operations/threat-model.md";
/// The header of a table of attacks.
const HEADER: &str = "| setting or constant | test |";

/// Finds rows without a test, and tests that no file has.
pub(super) fn names_existing_tests(texts: &BTreeMap<String, Option<String>>) -> Vec<Finding> {
    let Some(Some(page)) = texts.get(PAGE) else {
        return Vec::new();
    };
    let sources = texts.iter().filter(|(path, _)| path.ends_with(".rs"));
    let functions: HashSet<&str> = sources
        .filter_map(|(_, text)| text.as_deref())
        .flat_map(functions)
        .collect();
    let mut findings = Vec::new();
    let mut in_table = false;
    for (line, row) in page.lines().enumerate() {
        in_table = row.ends_with(HEADER) || (in_table && row.starts_with('|'));
        if !in_table || row.ends_with(HEADER) || row.starts_with("|---") {
            continue;
        }
        let mut found = |message: String| findings.push(Finding::new(PAGE, line + 1, message));
        let cell = row.trim_end_matches('|').rsplit(" | ").next();
        // Every second part is between two backticks.
        let names: Vec<&str> = cell
            .unwrap_or_default()
            .split('`')
            .skip(1)
            .step_by(2)
            .collect();
        if names.is_empty() {
            found("this attack has no test".to_owned());
        }
        for name in names {
            if !functions.contains(name) {
                found(format!("no function is called `{name}`"));
            }
        }
    }
    findings
}

/// The names of the functions in a source.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (end > 0).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(row: &str) -> Vec<String> {
        let page =
            format!("| attack | setting or constant | test |\n|---|---|---|\n{row}\n\n| a | b |\n");
        let texts = [(PAGE, page.as_str()), ("a.rs", "async fn known() {}")];
        let texts = texts.map(|(path, text)| (path.to_owned(), Some(text.to_owned())));
        let found = names_existing_tests(&BTreeMap::from(texts));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_must_name_existing_tests() {
        assert_eq!(findings("| x | `y` | `known` |"), [""; 0]);
        let unknown = findings("| x | `y` | `known`, `unknown` |");
        assert_eq!(
            unknown,
            [format!("{PAGE}:3: no function is called `unknown`")]
        );
        let missing = findings("| x | `y` | none |");
        assert_eq!(missing, [format!("{PAGE}:3: this attack has no test")]);
    }
}
