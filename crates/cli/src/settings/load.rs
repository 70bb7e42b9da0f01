//! Loads settings from defaults, file, environment and flags. Collects all problems, not only the first.

use super::registry;
use super::source::{Origin, Origins, RawSetting, RawValue, SettingProblem, SettingProblems};
use super::{Settings, file, variables};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

/// Flag name, key, and value.
pub(crate) type Flag = (&'static str, &'static str, Option<String>);

/// Settings and their sources.
pub(crate) struct LoadedSettings {
    pub(crate) settings: Settings,
    pub(crate) origins: Origins,
}

impl Settings {
    /// Loads the settings of this process; later sources override earlier ones.
    pub(crate) fn load(
        file: Option<&Path>,
        flags: &[Flag],
    ) -> Result<LoadedSettings, SettingProblems> {
        Self::merge(file, std::env::vars_os(), flags)
    }

    pub(super) fn merge(
        file: Option<&Path>,
        variables: impl Iterator<Item = (OsString, OsString)>,
        flags: &[Flag],
    ) -> Result<LoadedSettings, SettingProblems> {
        let mut problems = Vec::new();
        let mut given = Vec::new();
        if let Some(file) = file {
            given.extend(file::read(file, &mut problems));
        }
        given.extend(variables::read(variables, &mut problems));
        given.extend(flags.iter().filter_map(|(flag, key, value)| {
            Some(RawSetting {
                key: (*key).to_owned(),
                raw: RawValue::Untyped(value.clone()?),
                origin: Origin::Flag(flag),
            })
        }));
        let (tree, origins) = apply(given, &mut problems);
        // Checks combinations only if each setting is valid alone.
        if problems.is_empty() {
            match serde_json::from_value::<Self>(tree) {
                Ok(settings) => {
                    problems.extend(settings.check(&origins));
                    if problems.is_empty() {
                        return Ok(LoadedSettings { settings, origins });
                    }
                }
                Err(error) => problems.push(SettingProblem {
                    origin: None,
                    key: String::new(),
                    message: error.to_string(),
                }),
            }
        }
        Err(SettingProblems(problems))
    }
}

/// Applies the raw settings to the defaults; returns the tree and the sources.
pub(super) fn apply(
    given: Vec<RawSetting>,
    problems: &mut Vec<SettingProblem>,
) -> (Value, Origins) {
    let mut tree = serde_json::to_value(Settings::default()).unwrap_or_default();
    let mut origins = Origins::new();
    for RawSetting { key, raw, origin } in given {
        let read = match registry::find(&key) {
            Some(spec) => spec.kind.read(&raw),
            None => Err(registry::unknown(&key)),
        };
        match read {
            Ok(value) => {
                if let Some(slot) = tree.pointer_mut(&format!("/{}", key.replace('.', "/"))) {
                    *slot = value;
                }
                origins.insert(key, origin);
            }
            Err(message) => problems.push(SettingProblem::new(origin, &key, message)),
        }
    }
    (tree, origins)
}
