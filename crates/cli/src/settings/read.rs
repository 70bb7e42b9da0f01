//! How settings are read: defaults, then a file, then variables, then flags. Finds everything that is wrong, not only the first.

use super::known;
use super::source::{Given, Origin, Origins, Problem, Problems, Raw};
use super::{Settings, file, variables};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

/// A flag, the setting that it sets, and what it sets it to.
pub(crate) type Flag = (&'static str, &'static str, Option<String>);

/// Settings, and where they come from.
pub(crate) struct Read {
    pub(crate) settings: Settings,
    pub(crate) origins: Origins,
}

impl Settings {
    /// Defaults, then the file, then the variables of this process, then what the flags set.
    pub(crate) fn read(file: Option<&Path>, flags: &[Flag]) -> Result<Read, Problems> {
        Self::merge(file, std::env::vars_os(), flags)
    }

    pub(super) fn merge(
        file: Option<&Path>,
        variables: impl Iterator<Item = (OsString, OsString)>,
        flags: &[Flag],
    ) -> Result<Read, Problems> {
        let mut problems = Vec::new();
        let mut given = Vec::new();
        if let Some(file) = file {
            given.extend(file::read(file, &mut problems));
        }
        given.extend(variables::read(variables, &mut problems));
        given.extend(flags.iter().filter_map(|(flag, key, value)| {
            Some(Given {
                key: (*key).to_owned(),
                raw: Raw::Word(value.clone()?),
                origin: Origin::Flag(flag),
            })
        }));
        let (tree, origins) = gather(given, &mut problems);
        // Together they make sense only if each does alone.
        if problems.is_empty() {
            match serde_json::from_value::<Self>(tree) {
                Ok(settings) => {
                    problems.extend(settings.check(&origins));
                    if problems.is_empty() {
                        return Ok(Read { settings, origins });
                    }
                }
                Err(error) => problems.push(Problem {
                    origin: None,
                    key: String::new(),
                    message: error.to_string(),
                }),
            }
        }
        Err(Problems(problems))
    }
}

/// The settings as a tree, with where those that were given come from.
fn gather(given: Vec<Given>, problems: &mut Vec<Problem>) -> (Value, Origins) {
    let mut tree = serde_json::to_value(Settings::default()).unwrap_or_default();
    let mut origins = Origins::new();
    for Given { key, raw, origin } in given {
        let read = match known::find(&key) {
            Some(known) => known.kind.read(&raw),
            None => Err(known::unknown(&key)),
        };
        match read {
            Ok(value) => {
                if let Some(place) = tree.pointer_mut(&format!("/{}", key.replace('.', "/"))) {
                    *place = value;
                }
                origins.insert(key, origin);
            }
            Err(message) => problems.push(Problem::new(origin, &key, message)),
        }
    }
    (tree, origins)
}
