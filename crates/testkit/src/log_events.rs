//! The tables of a page that say which events are logged, at which level and with which fields; and whether lines keep to them. Knows no program.

use std::collections::BTreeSet;

/// What the page says.
#[derive(Debug)]
pub struct Documented(Vec<Row>);

#[derive(Debug)]
struct Row {
    event: String,
    level: String,
    fields: BTreeSet<String>,
    /// Those that are not always there.
    at_times: BTreeSet<String>,
}

/// A line that was logged.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its level, in capitals.
    pub level: &'a str,
    /// Its text.
    pub message: &'a str,
    /// The names of its fields.
    pub fields: BTreeSet<&'a str>,
}

impl Documented {
    /// Reads every table row of the form ``| `event` | LEVEL | `field`, `field`, (`at_times`) | … |``. Each `…` in an event stands for what differs from line to line.
    #[must_use]
    pub fn read(page: &str) -> Self {
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
                at_times: BTreeSet::new(),
            };
            for field in fields.split(", ") {
                let name = field.trim_matches(['(', ')', '`']).to_owned();
                if field.starts_with('(') {
                    row.at_times.insert(name);
                } else if !name.is_empty() {
                    row.fields.insert(name);
                }
            }
            Some(row)
        });
        Self(rows.collect())
    }

    /// The events, in the page's order.
    #[must_use]
    pub fn events(&self) -> Vec<&str> {
        self.0.iter().map(|row| row.event.as_str()).collect()
    }

    /// What is wrong with lines: an event of level info or above that is not documented, another level, other fields.
    pub fn wrong<'a>(&self, lines: impl Iterator<Item = Seen<'a>>) -> Vec<String> {
        lines.filter_map(|seen| self.wrong_with(&seen)).collect()
    }

    /// Whether one of the lines is this event.
    pub fn has<'a>(&self, mut lines: impl Iterator<Item = Seen<'a>>, event: &str) -> bool {
        let row = self.0.iter().find(|row| row.event == event);
        row.is_some_and(|row| lines.any(|seen| row.is(&seen)))
    }

    fn wrong_with(&self, seen: &Seen<'_>) -> Option<String> {
        let fitting: Vec<&Row> = self.0.iter().filter(|row| row.says(seen.message)).collect();
        if fitting.is_empty() {
            return ["ERROR", "WARN", "INFO"]
                .contains(&seen.level)
                .then(|| format!("not documented: {seen:?}"));
        }
        let right = fitting.iter().any(|row| row.is(seen));
        (!right).then(|| format!("documented otherwise: {seen:?}, not {fitting:?}"))
    }
}

impl Row {
    fn is(&self, seen: &Seen<'_>) -> bool {
        let fields: BTreeSet<String> = seen
            .fields
            .iter()
            .map(|name| (*name).to_owned())
            .filter(|name| !self.at_times.contains(name))
            .collect();
        self.says(seen.message) && self.level == seen.level && self.fields == fields
    }

    fn says(&self, message: &str) -> bool {
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

    fn seen<'a>(level: &'a str, message: &'a str, fields: &[&'a str]) -> Seen<'a> {
        Seen {
            level,
            message,
            fields: fields.iter().copied().collect(),
        }
    }

    #[test]
    fn a_line_keeps_to_the_page_in_text_level_and_fields() {
        let page = Documented::read(PAGE);
        assert_eq!(page.events(), ["Took … things", "over", "… can … again"]);
        let right = [
            seen("WARN", "Took 3 things", &["count"]),
            seen("WARN", "Took 3 things", &["count", "trace_id"]),
            seen("INFO", "over", &[]),
            seen("INFO", "worker can claim jobs again", &[]),
            seen("DEBUG", "whatever", &["it"]),
        ];
        assert_eq!(page.wrong(right.into_iter()), [""; 0]);
        let wrong = [
            seen("INFO", "Took 3 things", &["count"]),
            seen("WARN", "Took 3 things", &[]),
            seen("WARN", "Took 3 things", &["count", "error"]),
            seen("DEBUG", "over", &[]),
            seen("INFO", "whatever", &[]),
            seen("INFO", "worker claims jobs again", &[]),
        ];
        assert_eq!(page.wrong(wrong.into_iter()).len(), 6);
    }

    #[test]
    fn an_event_is_there_only_as_it_is_documented() {
        let page = Documented::read(PAGE);
        let event = "Took … things";
        let right = seen("WARN", "Took 3 things", &["count"]);
        assert!(page.has([right].into_iter(), event));
        let wrong = seen("WARN", "Took 3 things", &["number"]);
        assert!(!page.has([wrong].into_iter(), event));
    }
}
