//! What every code of a problem means: the pages of `docs/errors/`, part of the program so that each server explains itself.

use leasehold_api::Code;
use std::fmt::Write;
use std::sync::LazyLock;

macro_rules! pages {
    ($($name:ident = $file:literal,)*) => {
        /// The page of a code.
        pub(crate) const fn page(code: Code) -> &'static str {
            match code {
                $(Code::$name => include_str!(concat!("../../../docs/errors/", $file, ".md")),)*
            }
        }
    };
}

pages! {
    MalformedJson = "malformed_json",
    InvalidParameter = "invalid_parameter",
    Unauthenticated = "unauthenticated",
    Forbidden = "forbidden",
    NotFound = "not_found",
    MethodNotAllowed = "method_not_allowed",
    BodyTooSlow = "body_too_slow",
    NameTaken = "name_taken",
    IdempotencyConflict = "idempotency_conflict",
    NotPublished = "not_published",
    NotFailed = "not_failed",
    AlreadyRedriven = "already_redriven",
    AlreadyFinished = "already_finished",
    JobRunning = "job_running",
    JobOfGraph = "job_of_graph",
    BodyTooLarge = "body_too_large",
    UnsupportedMediaType = "unsupported_media_type",
    Invalid = "invalid",
    RateLimited = "rate_limited",
    BacklogFull = "backlog_full",
    TooManyStreams = "too_many_streams",
    Internal = "internal",
    StoreUnavailable = "store_unavailable",
    EngineUnavailable = "engine_unavailable",
    Overloaded = "overloaded",
    DeadlineExceeded = "deadline_exceeded",
}

/// Every code on a line of its own.
pub(crate) fn list() -> &'static str {
    static LIST: LazyLock<String> = LazyLock::new(|| {
        let mut list = String::from("Every code of a problem; /errors/{code} explains each.\n\n");
        for code in Code::ALL {
            // Writing to a text cannot fail.
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

/// The page of the code with this name.
pub(crate) fn find(name: &str) -> Option<&'static str> {
    let code = Code::ALL.iter().find(|code| code.as_str() == name)?;
    Some(page(*code))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_code_has_a_page_that_is_its_own_and_shows_an_example_of_it() {
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
    fn every_page_has_a_code_and_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let mut pages = BTreeSet::new();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            pages.insert(name.trim_end_matches(".md").to_owned());
        }
        assert!(pages.remove("README"));
        let codes: BTreeSet<String> = Code::ALL
            .iter()
            .map(|code| code.as_str().to_owned())
            .collect();
        assert_eq!(pages, codes);
        for code in codes {
            assert!(
                readme.contains(&format!("[{code}]({code}.md)")),
                "{code} is not in the list"
            );
            assert!(list().contains(&code));
        }
    }
}
