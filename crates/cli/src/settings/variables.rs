//! Settings from variables: `LEASEHOLD__DISPATCH__BATCH_SIZE` is `dispatch.batch_size`. Does not know which settings there are.

use super::source::{Given, Origin, Problem, Raw};
use std::ffi::OsString;

const PREFIX: &str = "LEASEHOLD__";

/// What the variables set. They are taken as they are written: `007` stays a text where a text is wanted.
pub(super) fn read(
    variables: impl Iterator<Item = (OsString, OsString)>,
    problems: &mut Vec<Problem>,
) -> Vec<Given> {
    let mut all = Vec::new();
    for (name, value) in variables {
        let Some((name, key)) = name.to_str().and_then(|name| Some((name, key(name)?))) else {
            continue;
        };
        let origin = Origin::Variable(name.to_owned());
        match value.into_string() {
            Ok(text) => all.push(Given {
                key,
                raw: Raw::Word(text),
                origin,
            }),
            Err(_) => problems.push(Problem::new(
                origin,
                &key,
                "must be text in UTF-8, is something else",
            )),
        }
    }
    // The environment has no order of its own; what goes before what must not change from start to start.
    all.sort_by_key(|given| given.origin.to_string());
    all
}

/// The setting that a variable of this name is for.
pub(super) fn key(name: &str) -> Option<String> {
    let (prefix, rest) = name.split_at_checked(PREFIX.len())?;
    prefix
        .eq_ignore_ascii_case(PREFIX)
        .then(|| rest.to_lowercase().replace("__", "."))
}
