//! Settings from a TOML file, each with its line. Does not know which settings there are, only which sections.

use super::source::{Given, Origin, Problem, Raw};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// What a file sets. A file that cannot be read to its end sets nothing, and each line that is in the way is a problem.
pub(super) fn read(file: &Path, problems: &mut Vec<Problem>) -> Vec<Given> {
    let at = |line| Origin::File {
        file: file.to_owned(),
        line,
    };
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("the configuration file cannot be read: {error}");
            problems.push(Problem::new(at(None), "", message));
            return Vec::new();
        }
    };
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = line(&bytes, error.valid_up_to());
            let message = "must be text in UTF-8, is something else here";
            problems.push(Problem::new(at(Some(line)), "", message));
            return Vec::new();
        }
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let wrong = errors.iter().map(|error| {
            let at_byte = error.span().map_or(0, |span| span.start);
            (line(&bytes, at_byte), error.message())
        });
        let mut last = 0;
        for (line, message) in wrong {
            // What follows on the same line follows from the first.
            if line != last {
                let message = format!("this is no TOML: {message}");
                problems.push(Problem::new(at(Some(line)), "", message));
            }
            last = line;
        }
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut reading = Reading {
        bytes: &bytes,
        found: &mut found,
    };
    reading.table("", table.get_ref());
    found.sort_by_key(|(line, ..)| *line);
    let given = found.into_iter().map(|(line, key, raw)| Given {
        key,
        raw,
        origin: at(Some(line)),
    });
    given.collect()
}

struct Reading<'a> {
    bytes: &'a [u8],
    found: &'a mut Vec<(usize, String, Raw)>,
}

impl Reading<'_> {
    fn table(&mut self, above: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let line = line(self.bytes, name.span().start);
            let key = match above {
                "" => name.get_ref().to_string(),
                above => format!("{above}.{}", name.get_ref()),
            };
            match value.get_ref() {
                // A section that does not exist is one problem, not one for each thing in it.
                DeValue::Table(inner) if super::known::is_section(&key) => self.table(&key, inner),
                other => self.found.push((line, key, raw(other))),
            }
        }
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map_or(Raw::Other("a number that is far too large"), Raw::Whole),
        DeValue::Float(_) => Raw::Other("a number with a fraction"),
        DeValue::Boolean(yes) => Raw::YesNo(*yes),
        DeValue::Datetime(_) => Raw::Other("a date or a time of day"),
        DeValue::Array(list) => Raw::List(list.iter().map(|one| raw(one.get_ref())).collect()),
        DeValue::Table(_) => Raw::Other("a section"),
    }
}

/// The line that has this byte, from 1.
fn line(bytes: &[u8], at: usize) -> usize {
    let before = bytes.get(..at).unwrap_or(bytes);
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
