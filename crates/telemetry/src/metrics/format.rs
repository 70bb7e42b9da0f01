//! The two text formats of metrics and the content negotiation between them. Knows no metric.

use super::Metrics;
use prometheus_client::encoding::text::encode;
use std::fmt::Write;

/// The text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpositionFormat {
    /// OpenMetrics 1.0, with exemplars and an end marker.
    OpenMetrics,
    /// Prometheus' text format 0.0.4, which every scraper reads.
    Prometheus,
}

impl ExpositionFormat {
    /// Chooses the format for these `Accept` headers: OpenMetrics if it is listed with at least the quality of plain text.
    pub fn negotiate<'a>(accepts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut open, mut plain) = (0.0, 0.0);
        for one in accepts.into_iter().flat_map(|header| header.split(',')) {
            let mut parts = one.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            let quality = quality.map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
            match name.as_str() {
                "application/openmetrics-text" => open = f64::max(open, quality),
                "text/plain" => plain = f64::max(plain, quality),
                _ => {}
            }
        }
        match open > 0.0 && open >= plain {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// Returns the `Content-Type` of the response.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

impl Metrics {
    /// Renders all metrics as text.
    ///
    /// # Errors
    /// If a metric cannot be encoded.
    pub fn render(&self, format: ExpositionFormat) -> Result<String, std::fmt::Error> {
        self.refresh_lock_gauges();
        let mut text = String::new();
        encode(&mut text, &self.catalog.registry)?;
        match format {
            ExpositionFormat::OpenMetrics => Ok(text),
            ExpositionFormat::Prometheus => plain(&text),
        }
    }
}

/// Converts OpenMetrics to Prometheus' text format: HELP and TYPE name counters with `_total`, exemplars are removed, and some
/// types have other names.
fn plain(open: &str) -> Result<String, std::fmt::Error> {
    let mut text = String::with_capacity(open.len() + open.len() / 16);
    let mut help = None;
    for line in open.lines() {
        match line.split_once(' ') {
            Some(("#", rest)) => match rest.split_once(' ') {
                Some(("HELP", described)) => help = described.split_once(' '),
                Some(("TYPE", typed)) => {
                    let (name, kind) = typed.split_once(' ').unwrap_or((typed, "unknown"));
                    let (ending, kind) = match kind {
                        "counter" => ("_total", kind),
                        "info" => ("_info", "gauge"),
                        "unknown" => ("", "untyped"),
                        other => ("", other),
                    };
                    if let Some((_, description)) = help.take() {
                        writeln!(text, "# HELP {name}{ending} {description}")?;
                    }
                    writeln!(text, "# TYPE {name}{ending} {kind}")?;
                }
                // Units are part of the names, and this format has no end marker.
                _ => {}
            },
            _ => writeln!(text, "{}", without_exemplar(line))?,
        }
    }
    Ok(text)
}

/// Removes the exemplar from a sample line. A label value may contain any character.
fn without_exemplar(sample: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in sample.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'#' if !quoted => return sample[..at].trim_end(),
            _ => {}
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn accept_header_selects_the_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
            text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let older = "text/plain;version=0.0.4;q=1,*/*;q=0.1";
        let cases: [(&[&str], ExpositionFormat); 10] = [
            (&[prometheus], ExpositionFormat::OpenMetrics),
            (&[older], ExpositionFormat::Prometheus),
            (&[], ExpositionFormat::Prometheus),
            (&[""], ExpositionFormat::Prometheus),
            (&["*/*"], ExpositionFormat::Prometheus),
            (
                &["text/html, application/json"],
                ExpositionFormat::Prometheus,
            ),
            (
                &["Application/OpenMetrics-Text"],
                ExpositionFormat::OpenMetrics,
            ),
            (
                &["text/plain", "application/openmetrics-text; version=1.0.0"],
                ExpositionFormat::OpenMetrics,
            ),
            (
                &["application/openmetrics-text;q=0.2,text/plain"],
                ExpositionFormat::Prometheus,
            ),
            (
                &["application/openmetrics-text;q=0"],
                ExpositionFormat::Prometheus,
            ),
        ];
        for (accepts, expected) in cases {
            assert_eq!(
                ExpositionFormat::negotiate(accepts.iter().copied()),
                expected,
                "{accepts:?}"
            );
        }
    }

    #[test]
    fn openmetrics_lines_are_converted() {
        let cases = [
            (
                "# HELP a Calls.\n# TYPE a counter\na_total{b=\"c\"} 1\n# EOF\n",
                "# HELP a_total Calls.\n# TYPE a_total counter\na_total{b=\"c\"} 1\n",
            ),
            (
                "# HELP a FloatGauge.\n# TYPE a gauge\na 1.0\n",
                "# HELP a FloatGauge.\n# TYPE a gauge\na 1.0\n",
            ),
            (
                "# HELP a Rises.\n# TYPE a unknown\na 1\n",
                "# HELP a Rises.\n# TYPE a untyped\na 1\n",
            ),
            (
                "# HELP a Version.\n# TYPE a info\na_info{v=\"1\"} 1\n",
                "# HELP a_info Version.\n# TYPE a_info gauge\na_info{v=\"1\"} 1\n",
            ),
            (
                "# TYPE a histogram\n# UNIT a seconds\na_bucket{le=\"1.0\"} 2 # {trace_id=\"ab\"} 0.5 1.0\na_sum 1.0\na_count 2\n",
                "# TYPE a histogram\na_bucket{le=\"1.0\"} 2\na_sum 1.0\na_count 2\n",
            ),
            ("", ""),
        ];
        for (open, expected) in cases {
            assert_eq!(plain(open).unwrap(), expected, "{open}");
        }
    }

    #[test]
    fn label_value_that_looks_like_an_exemplar_is_kept() {
        let line = r##"a{b="x # {c=\"d\"} \\",e="#"} 1"##;
        assert_eq!(without_exemplar(line), line);
        let long = format!(r#"{line} # {{trace_id="ab"}} 1"#);
        assert_eq!(without_exemplar(&long), line);
    }
}
