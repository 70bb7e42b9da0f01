//! Reads settings from a TOML file, each with its line. Knows the sections, not the settings.

use super::source::{Origin, RawSetting, RawValue, SettingProblem};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Reads a file. If it cannot be parsed, returns no settings and one problem per invalid line.
pub(super) fn read(file: &Path, problems: &mut Vec<SettingProblem>) -> Vec<RawSetting> {
    match std::fs::read(file) {
        Ok(bytes) => parse(&bytes, file, problems),
        Err(error) => {
            let message = format!("cannot read the configuration file: {error}");
            let whole = Origin::File {
                file: file.to_owned(),
                line: None,
            };
            problems.push(SettingProblem::new(whole, "", message));
            Vec::new()
        }
    }
}

/// Parses the content of a file.
pub(super) fn parse(
    bytes: &[u8],
    file: &Path,
    problems: &mut Vec<SettingProblem>,
) -> Vec<RawSetting> {
    let at = |line| Origin::File {
        file: file.to_owned(),
        line,
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = line(bytes, error.valid_up_to());
            let message = "must be UTF-8 text";
            problems.push(SettingProblem::new(at(Some(line)), "", message));
            return Vec::new();
        }
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let wrong = errors.iter().map(|error| {
            let at_byte = error.span().map_or(0, |span| span.start);
            (line(bytes, at_byte), error.message())
        });
        let mut last = 0;
        for (line, message) in wrong {
            // Reports only the first error of a line.
            if line != last {
                let message = format!("invalid TOML: {message}");
                problems.push(SettingProblem::new(at(Some(line)), "", message));
            }
            last = line;
        }
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut reader = TableReader {
        bytes,
        found: &mut found,
    };
    reader.table("", table.get_ref());
    found.sort_by_key(|(line, ..)| *line);
    let settings = found.into_iter().map(|(line, key, raw)| RawSetting {
        key,
        raw,
        origin: at(Some(line)),
    });
    settings.collect()
}

struct TableReader<'a> {
    bytes: &'a [u8],
    found: &'a mut Vec<(usize, String, RawValue)>,
}

impl TableReader<'_> {
    fn table(&mut self, above: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let line = line(self.bytes, name.span().start);
            let key = match above {
                "" => name.get_ref().to_string(),
                above => format!("{above}.{}", name.get_ref()),
            };
            match value.get_ref() {
                // An unknown section is one problem, not one per setting in it.
                DeValue::Table(inner) if super::registry::is_section(&key) => {
                    self.table(&key, inner)
                }
                other => self.found.push((line, key, raw(other))),
            }
        }
    }
}

fn raw(value: &DeValue<'_>) -> RawValue {
    match value {
        DeValue::String(text) => RawValue::Text(text.to_string()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map_or(RawValue::Other("a number out of range"), RawValue::Integer),
        DeValue::Float(_) => RawValue::Other("a fraction"),
        DeValue::Boolean(yes) => RawValue::Bool(*yes),
        DeValue::Datetime(_) => RawValue::Other("a date or time"),
        DeValue::Array(list) => RawValue::List(list.iter().map(|one| raw(one.get_ref())).collect()),
        DeValue::Table(_) => RawValue::Other("a section"),
    }
}

/// The line of a byte offset, from 1.
fn line(bytes: &[u8], at: usize) -> usize {
    let before = bytes.get(..at).unwrap_or(bytes);
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
