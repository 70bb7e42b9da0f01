//! Compares logged lines with the event tables of a documentation page: event, level and fields. Knows no program.

use std::collections::BTreeSet;

/// The events of a documentation page.
#[derive(Debug)]
pub struct DocumentedEvents(Vec<Row>);

#[derive(Debug)]
struct Row {
    event: String,
    level: String,
    fields: BTreeSet<String>,
    /// Fields that a line may have.
    optional: BTreeSet<String>,
}

/// A logged line.
#[derive(Debug)]
pub struct LogLine<'a> {
    /// The level, in capitals.
    pub level: &'a str,
    /// The message.
    pub message: &'a str,
    /// The names of the fields.
    pub fields: BTreeSet<&'a str>,
}

impl DocumentedEvents {
    /// Parses every table row of the form ``| `event` | LEVEL | `field`, `field`, (`optional`) | … |``. A `…` in an event matches any text.
    #[must_use]
    pub fn parse(page: &str) -> Self {
        let rows = page.lines().filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, event, level, fields, ..] = cells[..] else {
                return None;
            };
            let event = event.strip_prefix('`')?.strip_suffix('`')?;
            if !["ERROR", "WARN", "INFO", "DEBUG"].contains(&level) {
                return None;
            }
            let mut row = Row {
                event: event.to_owned(),
                level: level.to_owned(),
                fields: BTreeSet::new(),
                optional: BTreeSet::new(),
            };
            for field in fields.split(", ") {
                let name = field.trim_matches(['(', ')', '`']).to_owned();
                if field.starts_with('(') {
                    row.optional.insert(name);
                } else if !name.is_empty() {
                    row.fields.insert(name);
                }
            }
            Some(row)
        });
        Self(rows.collect())
    }

    /// The events, in the order of the page.
    #[must_use]
    pub fn events(&self) -> Vec<&str> {
        self.0.iter().map(|row| row.event.as_str()).collect()
    }

    /// Returns the lines that differ from the page: undocumented at level info or above, another level, other fields.
    pub fn violations<'a>(&self, lines: impl Iterator<Item = LogLine<'a>>) -> Vec<String> {
        lines.filter_map(|line| self.violation(&line)).collect()
    }

    /// Whether one of the lines is this event, as documented.
    pub fn contains<'a>(&self, mut lines: impl Iterator<Item = LogLine<'a>>, event: &str) -> bool {
        let row = self.0.iter().find(|row| row.event == event);
        row.is_some_and(|row| lines.any(|line| row.matches(&line)))
    }

    fn violation(&self, line: &LogLine<'_>) -> Option<String> {
        let all = self.0.iter();
        let candidates: Vec<&Row> = all
            .filter(|row| row.matches_message(line.message))
            .collect();
        if candidates.is_empty() {
            return ["ERROR", "WARN", "INFO"]
                .contains(&line.level)
                .then(|| format!("not documented: {line:?}"));
        }
        let documented = candidates.iter().any(|row| row.matches(line));
        (!documented)
            .then(|| format!("documented differently: logged {line:?}, documented {candidates:?}"))
    }
}

impl Row {
    fn matches(&self, line: &LogLine<'_>) -> bool {
        let fields: BTreeSet<String> = line
            .fields
            .iter()
            .map(|name| (*name).to_owned())
            .filter(|name| !self.optional.contains(name))
            .collect();
        self.matches_message(line.message) && self.level == line.level && self.fields == fields
    }

    fn matches_message(&self, message: &str) -> bool {
        let mut parts = self.event.split('…');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = message.strip_prefix(first) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            return rest.is_empty();
        };
        for part in parts {
            let Some((_, after)) = rest.split_once(part) else {
                return false;
            };
            rest = after;
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
| event | level | fields | when |
|---|---|---|---|
| `Took … things` | WARN | `count`, (`trace_id`) | now and then |
| `over` | INFO | | at the end |
| `… can … again` | INFO | | it is over |
";

    fn line<'a>(level: &'a str, message: &'a str, fields: &[&'a str]) -> LogLine<'a> {
        LogLine {
            level,
            message,
            fields: fields.iter().copied().collect(),
        }
    }

    #[test]
    fn lines_must_match_the_page_in_message_level_and_fields() {
        let page = DocumentedEvents::parse(PAGE);
        assert_eq!(page.events(), ["Took … things", "over", "… can … again"]);
        let valid = [
            line("WARN", "Took 3 things", &["count"]),
            line("WARN", "Took 3 things", &["count", "trace_id"]),
            line("INFO", "over", &[]),
            line("INFO", "worker can claim jobs again", &[]),
            line("DEBUG", "whatever", &["it"]),
        ];
        assert_eq!(page.violations(valid.into_iter()), [""; 0]);
        let invalid = [
            line("INFO", "Took 3 things", &["count"]),
            line("WARN", "Took 3 things", &[]),
            line("WARN", "Took 3 things", &["count", "error"]),
            line("DEBUG", "over", &[]),
            line("INFO", "whatever", &[]),
            line("INFO", "worker claims jobs again", &[]),
        ];
        assert_eq!(page.violations(invalid.into_iter()).len(), 6);
    }

    #[test]
    fn contains_only_events_as_documented() {
        let page = DocumentedEvents::parse(PAGE);
        let event = "Took … things";
        let valid = line("WARN", "Took 3 things", &["count"]);
        assert!(page.contains([valid].into_iter(), event));
        let invalid = line("WARN", "Took 3 things", &["number"]);
        assert!(!page.contains([invalid].into_iter(), event));
    }
}
