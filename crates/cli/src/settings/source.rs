//! Where a setting comes from, and what is wrong with one. Knows no setting by name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// What was written for a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    /// As a variable or a flag has it: it becomes what the setting wants.
    Word(String),
    /// A text in quotes.
    Text(String),
    /// A whole number.
    Whole(i128),
    /// True or false.
    YesNo(bool),
    /// A list.
    List(Vec<Raw>),
    /// What no setting is, in words.
    Other(&'static str),
}

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In a file; lines count from 1, and none is the file as a whole.
    File { file: PathBuf, line: Option<usize> },
    /// In a variable of this name.
    Variable(String),
    /// In this flag.
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

/// A setting as somebody wrote it.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) key: String,
    pub(crate) raw: Raw,
    pub(crate) origin: Origin,
}

/// Where each setting that is not left at its default comes from.
pub(crate) type Origins = BTreeMap<String, Origin>;

/// What is wrong with a setting, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// None if it is a matter of defaults.
    pub(crate) origin: Option<Origin>,
    /// Empty if it is no setting's.
    pub(crate) key: String,
    /// What is allowed, and what is there instead.
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(origin: Origin, key: &str, message: impl Into<String>) -> Self {
        Self {
            origin: Some(origin),
            key: key.to_owned(),
            message: message.into(),
        }
    }

    /// Of a setting that others have a part in: it is where the first of them was written that was.
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

    /// For programs.
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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A variable and a flag name their setting, unless the problem is another's.
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

/// Everything that is wrong; at least one thing.
#[derive(Clone, Debug)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl fmt::Display for Problems {
    /// One line: the first, and how to see the others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.0.first() else {
            return f.write_str("the settings are wrong");
        };
        write!(f, "{first}")?;
        let more = self.0.len() - 1;
        if more > 0 {
            let file = self.0.iter().find_map(|problem| match &problem.origin {
                Some(Origin::File { file, .. }) => Some(format!(" {}", file.display())),
                _ => None,
            });
            let file = file.unwrap_or_default();
            let are = if more == 1 { "is" } else { "are" };
            write!(
                f,
                " ({more} more {are} wrong: `leasehold config check{file}` lists all)"
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
