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
    let tests: HashSet<&str> = sources
        .filter_map(|(path, text)| Some((path, text.as_deref()?)))
        .flat_map(|(path, text)| tests(path, text))
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
            if !tests.contains(name) {
                found(format!("no test is called `{name}`"));
            }
        }
    }
    findings
}

/// The names of the tests in a source: functions with `#[test]` or `#[tokio::test…]`, and the cases of a conformance suite, which becomes a test for
/// each function that takes a fixture.
fn tests<'a>(path: &str, text: &'a str) -> impl Iterator<Item = &'a str> {
    let has_cases = path.contains("-conformance/src/");
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let start = line.trim_start();
        if start.starts_with("#[test]") || start.starts_with("#[tokio::test") {
            is_test = true;
            return None;
        }
        // Between the attribute and its function are only other attributes.
        let (_, rest) = line.split_once("fn ")?;
        let is_case = has_cases && line.starts_with("pub async fn ") && line.contains(": Fixture");
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (std::mem::take(&mut is_test) || is_case).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn helper() {}\n#[tokio::test(flavor = \"multi_thread\")]\n#[cfg(unix)]\nasync fn known() {}\nfn other() {}\n\
        /// A test.\n    #[test]\n    fn also() {}\n";

    const CASES: &str = "fn fixture() {}\npub async fn case(f: Fixture) {}\n";

    fn findings(row: &str) -> Vec<String> {
        let page =
            format!("| attack | setting or constant | test |\n|---|---|---|\n{row}\n\n| a | b |\n");
        let texts = [
            (PAGE, page.as_str()),
            ("a.rs", SOURCE),
            ("a-conformance/src/b.rs", CASES),
        ];
        let texts = texts.map(|(path, text)| (path.to_owned(), Some(text.to_owned())));
        let found = names_existing_tests(&BTreeMap::from(texts));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_must_name_existing_tests() {
        assert_eq!(findings("| x | `y` | `known`, `also`, `case` |"), [""; 0]);
        for name in ["helper", "other", "fixture"] {
            let no_test = findings(&format!("| x | `y` | `{name}` |"));
            assert_eq!(no_test, [format!("{PAGE}:3: no test is called `{name}`")]);
        }
        let unknown = findings("| x | `y` | `known`, `unknown` |");
        assert_eq!(unknown, [format!("{PAGE}:3: no test is called `unknown`")]);
        let missing = findings("| x | `y` | none |");
        assert_eq!(missing, [format!("{PAGE}:3: this attack has no test")]);
    }
}
