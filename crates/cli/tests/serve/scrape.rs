//! Scrapes `/metrics` as Prometheus does and compares two scrapes. Also runs promtool.

use crate::first_start::{address, key};
use crate::program::Program;
use crate::{TIMEOUT, blocking};
use leasehold_testkit::{HttpConnection, Process, check_metrics, eventually};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A process to scrape.
pub(crate) struct ScrapeTarget {
    address: SocketAddr,
    key: String,
}

/// The values of all series.
#[derive(Clone, Debug)]
pub(crate) struct Scrape(BTreeMap<String, f64>);

impl ScrapeTarget {
    pub(crate) fn new(program: &Program, process: &Process) -> Self {
        Self {
            address: address(process),
            key: key(program),
        }
    }

    /// Scrapes the process.
    pub(crate) async fn scrape(&self) -> Scrape {
        let text = self.text().await;
        blocking(|| check_metrics(&text));
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.parse().unwrap())
        });
        Scrape(series.collect())
    }

    async fn text(&self) -> String {
        let answer = self.call("GET", "/metrics", None).await;
        assert!(
            answer.1.contains("text/plain; version=0.0.4"),
            "{}",
            answer.1
        );
        answer.0
    }

    /// Scrapes in OpenMetrics format.
    pub(crate) async fn open_metrics(&self) -> String {
        let key = &self.key;
        let call = format!(
            "GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\naccept: application/openmetrics-text;version=1.0.0\r\n\r\n"
        );
        let mut connection = HttpConnection::open(self.address).await.unwrap();
        connection.send(call.as_bytes()).await.unwrap();
        let answer = connection.read_response().await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let kind = answer.header("content-type").unwrap();
        assert_eq!(
            kind,
            "application/openmetrics-text; version=1.0.0; charset=utf-8"
        );
        answer.text()
    }

    /// Calls the API and asserts success.
    pub(crate) async fn post(&self, path: &str, body: &Value) {
        self.call("POST", path, Some(body)).await;
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (String, String) {
        let body = body.map(Value::to_string);
        let body = body.as_ref().map(String::as_bytes);
        let mut connection = HttpConnection::open(self.address).await.unwrap();
        let answer = connection
            .call(method, path, &self.key, body)
            .await
            .unwrap();
        assert!(answer.status < 300, "{method} {path}: {}", answer.text());
        (answer.text(), answer.head)
    }

    /// Scrapes until the condition holds; returns that scrape. Series that are absent have no value, see [`Scrape::value`].
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Scrape) -> bool) -> Scrape {
        let last = RefCell::new(None);
        let held = eventually(TIMEOUT, async || {
            let now = self.scrape().await;
            let holds = condition(&now);
            last.replace(Some(now));
            holds
        });
        let held = held.await;
        let last = last.into_inner();
        assert!(held, "not {what}: {last:#?}");
        last.unwrap()
    }

    /// Scrapes until these metrics have changed since `before` by exactly the expected values.
    pub(crate) async fn until_moved(
        &self,
        before: &Scrape,
        metrics: &[&str],
        expected: &BTreeMap<String, f64>,
    ) -> Scrape {
        let what = format!("changed by {expected:#?}");
        self.until(&what, |now| now.since(before, metrics) == *expected)
            .await
    }
}

impl Scrape {
    /// The value of an existing series.
    pub(crate) fn of(&self, series: &str) -> f64 {
        let found = self.0.get(series);
        *found.unwrap_or_else(|| panic!("{series} is not in {self:#?}"))
    }

    /// The value of a series, or NaN if it is absent: a slow store omits its gauges from a scrape.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn has(&self, series: &str) -> bool {
        self.0.contains_key(series)
    }

    /// The changes of these metrics since `before`, without unchanged series.
    pub(crate) fn since(&self, before: &Scrape, metrics: &[&str]) -> BTreeMap<String, f64> {
        let watched = self.0.iter().filter(|(series, _)| {
            let name = series.split('{').next().unwrap();
            metrics.contains(&name)
        });
        let moved = watched.map(|(series, now)| {
            let was = before.0.get(series).copied().unwrap_or_default();
            (series.clone(), now - was)
        });
        moved.filter(|(_, by)| *by != 0.0).collect()
    }
}

/// Expected result of [`Scrape::since`].
pub(crate) fn moves<const N: usize>(moves: [(&str, f64); N]) -> BTreeMap<String, f64> {
    moves.map(|(series, by)| (series.to_owned(), by)).into()
}
