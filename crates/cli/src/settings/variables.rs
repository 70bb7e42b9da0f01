//! Reads settings from environment variables: `LEASEHOLD__DISPATCH__BATCH_SIZE` is `dispatch.batch_size`. Knows no setting by name.

use super::source::{Origin, RawSetting, RawValue, SettingProblem};
use std::ffi::OsString;

const PREFIX: &str = "LEASEHOLD__";

/// Reads the variables. Values stay untyped: `007` is a string where the setting is a string.
pub(super) fn read(
    variables: impl Iterator<Item = (OsString, OsString)>,
    problems: &mut Vec<SettingProblem>,
) -> Vec<RawSetting> {
    let mut all = Vec::new();
    for (name, value) in variables {
        let Some((name, key)) = name.to_str().and_then(|name| Some((name, key(name)?))) else {
            continue;
        };
        let origin = Origin::Variable(name.to_owned());
        match value.into_string() {
            Ok(text) => all.push(RawSetting {
                key,
                raw: RawValue::Untyped(text),
                origin,
            }),
            Err(_) => problems.push(SettingProblem::new(origin, &key, "must be UTF-8 text")),
        }
    }
    // Sorted, because the order of the environment is not stable.
    all.sort_by_key(|setting| setting.origin.to_string());
    all
}

/// The key of a variable.
pub(super) fn key(name: &str) -> Option<String> {
    let (prefix, rest) = name.split_at_checked(PREFIX.len())?;
    prefix
        .eq_ignore_ascii_case(PREFIX)
        .then(|| rest.to_lowercase().replace("__", "."))
}
