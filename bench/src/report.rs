//! Results, printed as JSON lines or as tables. Independent of what was measured.

use serde_json::{Map, Value, json};
use std::io::IsTerminal;

/// Output format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON lines, one for each metric.
    Json,
    /// Tables with headings.
    Table,
}

impl Format {
    /// Chooses tables on a terminal and JSON otherwise, unless a flag overrides it.
    pub(crate) fn chosen(json: bool, table: bool) -> Self {
        if json || !(table || std::io::stdout().is_terminal()) {
            Self::Json
        } else {
            Self::Table
        }
    }
}

/// One named number of a result.
#[derive(Clone, Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: String,
}

/// One result: fields that identify the case, and its metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct BenchResult {
    fields: Map<String, Value>,
    metrics: Vec<Metric>,
}

impl BenchResult {
    /// Adds a field that identifies the case.
    pub(crate) fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a metric.
    pub(crate) fn metric(mut self, name: &'static str, value: f64, unit: &str) -> Self {
        let unit = unit.to_owned();
        self.metrics.push(Metric { name, value, unit });
        self
    }

    /// Adds a metric if it has a value.
    pub(crate) fn optional_metric(
        self,
        name: &'static str,
        value: Option<f64>,
        unit: &str,
    ) -> Self {
        match value {
            Some(value) => self.metric(name, value, unit),
            None => self,
        }
    }

    /// Returns the metrics.
    pub(crate) fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Returns one JSON line for each metric, each with all fields.
    pub(crate) fn lines(&self, bench: &str) -> Vec<String> {
        self.metrics
            .iter()
            .map(|metric| {
                let mut line = Map::new();
                line.insert("bench".to_owned(), json!(bench));
                line.extend(self.fields.clone());
                line.insert("metric".to_owned(), json!(metric.name));
                line.insert("value".to_owned(), json!(rounded(metric.value)));
                line.insert("unit".to_owned(), json!(metric.unit));
                Value::Object(line).to_string()
            })
            .collect()
    }
}

/// Rounds to about four significant digits.
fn rounded(value: f64) -> f64 {
    if value >= 1_000.0 {
        value.round()
    } else if value.abs() < 1.0 {
        (value * 10_000.0).round() / 10_000.0
    } else {
        (value * 100.0).round() / 100.0
    }
}

/// Returns the median; 0 for an empty list.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Returns the given percentile; 0 for an empty list.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * share).ceil() as usize;
    let index = index.clamp(1, values.len().max(1)) - 1;
    values.get(index).copied().unwrap_or_default()
}

/// Formats an integer with thousands separators.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (value, text) in [
            (0.4, "0"),
            (999.0, "999"),
            (1_000.0, "1,000"),
            (1_234_567.8, "1,234,568"),
            (-12_345.0, "-12,345"),
        ] {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn medians_and_percentiles_are_elements_of_the_input() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(percentile(&hundred, 0.5), 50.0);
        assert_eq!(percentile(&hundred, 0.99), 99.0);
        assert_eq!(percentile(&hundred, 1.0), 100.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
    }

    #[test]
    fn line_has_all_fields_and_one_metric() {
        let result = BenchResult::default()
            .field("store", "sqlite")
            .field("pending", 1_000)
            .metric("rate", 12_345.678, "requests/s")
            .metric("buffers", 33.333, "buffers/request");
        let lines: Vec<Value> = result
            .lines("claim")
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            lines,
            [
                json!({"bench": "claim", "store": "sqlite", "pending": 1000, "metric": "rate", "value": 12346.0, "unit": "requests/s"}),
                json!({"bench": "claim", "store": "sqlite", "pending": 1000, "metric": "buffers", "value": 33.33, "unit": "buffers/request"}),
            ]
        );
    }
}
