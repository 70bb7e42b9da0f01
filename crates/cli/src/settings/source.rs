//! Raw settings, their sources, and problems. Knows no setting by name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// An unparsed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RawValue {
    /// From a variable or a flag: parsed as the setting's kind.
    Untyped(String),
    /// A string.
    Text(String),
    /// An integer.
    Integer(i128),
    /// True or false.
    Bool(bool),
    /// A list.
    List(Vec<RawValue>),
    /// A type that no setting has, in words.
    Other(&'static str),
}

/// The source of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file and a line from 1; `None` is the whole file.
    File { file: PathBuf, line: Option<usize> },
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line: None } => write!(f, "{}", file.display()),
            Self::File {
                file,
                line: Some(line),
            } => write!(f, "{}:{line}", file.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// An unparsed setting.
#[derive(Clone, Debug)]
pub(crate) struct RawSetting {
    pub(crate) key: String,
    pub(crate) raw: RawValue,
    pub(crate) origin: Origin,
}

/// The source of every non-default setting.
pub(crate) type Origins = BTreeMap<String, Origin>;

/// A problem with a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingProblem {
    /// `None` if only defaults are involved.
    pub(crate) origin: Option<Origin>,
    /// Empty if the problem concerns no single setting.
    pub(crate) key: String,
    /// The rule and the actual value.
    pub(crate) message: String,
}

impl SettingProblem {
    pub(crate) fn new(origin: Origin, key: &str, message: impl Into<String>) -> Self {
        Self {
            origin: Some(origin),
            key: key.to_owned(),
            message: message.into(),
        }
    }

    /// A problem of related settings; the location is the first of them that was set.
    pub(crate) fn about(
        origins: &Origins,
        key: &str,
        others: &[&str],
        message: impl Into<String>,
    ) -> Self {
        let all = std::iter::once(&key).chain(others);
        Self {
            origin: all.filter_map(|key| origins.get(*key)).next().cloned(),
            key: key.to_owned(),
            message: message.into(),
        }
    }

    /// The problem as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        let (file, line, from) = match &self.origin {
            Some(Origin::File { file, line }) => (Some(file), *line, None),
            Some(other) => (None, None, Some(other.to_string())),
            None => (None, None, None),
        };
        serde_json::json!({
            "file": file.map(|file| file.display().to_string()),
            "line": line,
            "from": from,
            "key": self.key,
            "message": self.message,
        })
    }
}

impl fmt::Display for SettingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A variable or flag already names its setting, unless the problem concerns another one.
        let named = match &self.origin {
            Some(origin @ Origin::File { .. }) => {
                write!(f, "{origin}: ")?;
                false
            }
            Some(Origin::Flag(name)) => {
                write!(f, "{name}: ")?;
                true
            }
            Some(Origin::Variable(name)) => {
                write!(f, "{name}: ")?;
                super::variables::key(name).is_some_and(|key| key == self.key)
            }
            None => false,
        };
        if !named && !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// One or more problems.
#[derive(Clone, Debug)]
pub(crate) struct SettingProblems(pub(crate) Vec<SettingProblem>);

impl fmt::Display for SettingProblems {
    /// Prints the first problem and how to list the others, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.0.first() else {
            return f.write_str("invalid settings");
        };
        write!(f, "{first}")?;
        let more = self.0.len() - 1;
        if more > 0 {
            let file = self.0.iter().find_map(|problem| match &problem.origin {
                Some(Origin::File { file, .. }) => Some(format!(" {}", file.display())),
                _ => None,
            });
            let file = file.unwrap_or_default();
            let noun = if more == 1 { "problem" } else { "problems" };
            write!(
                f,
                " ({more} more {noun}; list all with `leasehold config check{file}`)"
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingProblems {}
