//! The pages of `docs/errors/`, one for every problem code, compiled into the program and served at `/errors`.

use leasehold_api::Code;
use std::fmt::Write;
use std::sync::LazyLock;

macro_rules! pages {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $title:literal;)*) => {
        /// Returns the page of a code.
        pub(crate) const fn page(code: Code) -> &'static str {
            match code {
                $(Code::$name => include_str!(concat!("../../../docs/errors/", $text, ".md")),)*
            }
        }
    };
}

leasehold_api::problem_codes!(pages);

/// Returns the list of all codes, one per line.
pub(crate) fn list() -> &'static str {
    static LIST: LazyLock<String> = LazyLock::new(|| {
        let mut list = String::from("All problem codes; /errors/{code} explains each.\n\n");
        for code in Code::ALL {
            // Writing to a String cannot fail.
            let _ = writeln!(
                list,
                "{} {}: {}",
                code.status(),
                code.as_str(),
                code.title()
            );
        }
        list
    });
    &LIST
}

/// Returns the page of the code with this name.
pub(crate) fn find(name: &str) -> Option<&'static str> {
    let code = Code::ALL.iter().find(|code| code.as_str() == name)?;
    Some(page(*code))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_a_page_with_title_status_and_example() {
        for code in Code::ALL {
            let (text, name) = (page(*code), code.as_str());
            assert!(text.starts_with(&format!("# {name}\n")), "{name}");
            let status = format!("`{}`, \"{}\"", code.status(), code.title());
            assert!(text.contains(&status), "{name} does not say {status}");
            for part in ["## When", "## What to do", "## Example"] {
                assert!(text.contains(part), "{name} has no {part:?}");
            }
            let example = text.split("```json\n").nth(1).unwrap();
            let example = example.split("```").next().unwrap();
            let problem: leasehold_api::Problem = serde_json::from_str(example).unwrap();
            let expected = leasehold_api::Problem::new(*code, problem.detail.clone());
            assert_eq!((problem.code, problem.status), (*code, code.status()));
            assert_eq!(
                (problem.kind, problem.title),
                (expected.kind, expected.title)
            );
        }
    }

    #[test]
    fn every_page_has_a_code() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
        let mut pages = BTreeSet::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            pages.insert(name.trim_end_matches(".md").to_owned());
        }
        assert!(pages.remove("README"));
        let codes: BTreeSet<String> = Code::ALL
            .iter()
            .map(|code| code.as_str().to_owned())
            .collect();
        assert_eq!(pages, codes);
        assert!(codes.iter().all(|code| list().contains(code)));
    }
}
