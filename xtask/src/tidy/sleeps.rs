//! No sleeps in tests: they wait on a signal, or poll with the testkit's bounded waits.

use super::finding::{Finding, line_of};
use super::functions::closing_brace;
use super::rust_text::{is_word, take_apart};

const SLEEPS: [&str; 2] = ["sleep(", "sleep_until("];
/// The only crate that may sleep.
const MAY_SLEEP: &str = "crates/testkit/src/";
/// Crates that consist of tests, though their paths do not show it.
const ALL_TESTS: [&str; 2] = ["crates/store-conformance/", "crates/engine-conformance/"];

pub(super) fn none_in_tests(path: &str, text: &str) -> Vec<Finding> {
    if !path.ends_with(".rs") || path.starts_with(MAY_SLEEP) {
        return Vec::new();
    }
    let code = take_apart(text).code;
    let regions = if is_test_file(path) {
        vec![(0, code.len())]
    } else {
        test_modules(&code)
    };
    regions
        .into_iter()
        .flat_map(|(start, end)| sleeps_between(&code, start, end))
        .map(|at| {
            let message =
                "a sleep in a test: wait on a signal, or with leasehold_testkit::eventually";
            Finding::new(path, line_of(&code, at), message)
        })
        .collect()
}

fn is_test_file(path: &str) -> bool {
    ALL_TESTS.iter().any(|start| path.starts_with(start)) || path.contains("tests")
}

/// The blocks after `#[cfg(test)]`.
fn test_modules(code: &str) -> Vec<(usize, usize)> {
    ["#[cfg(test)]", "#[cfg(all(test"]
        .into_iter()
        .flat_map(|attribute| code.match_indices(attribute))
        .filter_map(|(at, _)| {
            let open = at + code[at..].find(['{', ';'])?;
            code[open..]
                .starts_with('{')
                .then(|| (open, closing_brace(code, open)))
        })
        .collect()
}

fn sleeps_between(code: &str, start: usize, end: usize) -> Vec<usize> {
    let region = &code[start..end];
    SLEEPS
        .into_iter()
        .flat_map(|sleep| region.match_indices(sleep))
        .map(|(at, _)| start + at)
        .filter(|at| !code[..*at].ends_with(is_word) && !code[..*at].ends_with("fn "))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLEEPING: &str = "//! A.\nfn a() {\n    tokio::time::sleep(b);\n}\n";

    #[test]
    fn a_sleep_in_a_test_file_is_found() {
        for path in [
            "crates/a/tests/b.rs",
            "crates/a/src/b/tests.rs",
            "crates/store-conformance/src/b.rs",
        ] {
            assert_eq!(none_in_tests(path, SLEEPING)[0].line(), 3, "{path}");
        }
        for call in [
            "std::thread::sleep(b)",
            "thread::sleep(b)",
            "sleep_until(b)",
        ] {
            assert_eq!(none_in_tests("bench/tests/b.rs", call).len(), 1, "{call}");
        }
    }

    #[test]
    fn a_sleep_in_a_test_module_is_found() {
        let text = format!(
            "fn x() {{ sleep(1) }}\n#[cfg(test)]\nmod tests {{\n{SLEEPING}}}\nfn y() {{ sleep(2) }}\n"
        );
        let found = none_in_tests("crates/a/src/b.rs", &text);
        assert_eq!(found.iter().map(Finding::line).collect::<Vec<_>>(), [6]);
    }

    #[test]
    fn the_product_and_the_testkit_may_sleep() {
        assert_eq!(none_in_tests("crates/a/src/b.rs", SLEEPING), []);
        assert_eq!(none_in_tests("crates/testkit/src/b.rs", SLEEPING), []);
        assert_eq!(
            none_in_tests("crates/a/tests/b.rs", "no_sleep(1); // sleep(2)"),
            []
        );
    }
}
