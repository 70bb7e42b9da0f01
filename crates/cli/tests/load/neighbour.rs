//! A well-behaved tenant beside an attack: it lists, enqueues and runs a graph all the while, and measures each of its calls.

use crate::tenant::{Tenant, document, text};
use leasehold_testkit::HttpResponse;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::interval;

/// Between two reads of a running request.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What the tenant measured.
#[derive(Default)]
pub(crate) struct Measured {
    calls: Vec<Duration>,
    /// Graphs that ran to their end.
    pub(crate) completed: usize,
}

impl Measured {
    pub(crate) fn slowest(&self) -> Duration {
        self.calls.iter().max().copied().unwrap_or_default()
    }

    pub(crate) fn p99(&self) -> Duration {
        let mut sorted = self.calls.clone();
        sorted.sort_unstable();
        let index = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
        sorted.get(index).copied().unwrap_or_default()
    }
}

pub(crate) struct Neighbour {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Measured>,
}

impl Neighbour {
    /// Starts to call until [`Self::stop`].
    pub(crate) fn start(tenant: &Tenant, definition: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (tenant, definition) = (tenant.clone(), definition.to_owned());
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let mut measured = Measured::default();
            // At least one round, however short the attack.
            loop {
                run_graph(&tenant, &definition, &mut measured).await;
                if stopped.load(Ordering::Acquire) {
                    return measured;
                }
            }
        });
        Self { stop, task }
    }

    pub(crate) async fn stop(self) -> Measured {
        self.stop.store(true, Ordering::Release);
        self.task.await.unwrap()
    }
}

/// Enqueues a request, lists, and reads the request until it has completed.
async fn run_graph(tenant: &Tenant, definition: &str, measured: &mut Measured) {
    let enqueued = timed(measured, tenant.enqueue(definition, "{}")).await;
    assert_eq!(enqueued.status, 201, "{}", enqueued.text());
    let id = text(&document(&enqueued)["id"]);
    let mut pace = interval(POLL_INTERVAL);
    loop {
        pace.tick().await;
        let list = timed(measured, tenant.call("GET", "/requests?limit=10", None)).await;
        assert_eq!(list.status, 200, "{}", list.text());
        let tail = format!("/requests/{id}");
        let read = tenant.call("GET", &tail, None);
        let read = timed(measured, read).await;
        assert_eq!(read.status, 200, "{}", read.text());
        match document(&read)["status"].as_str() {
            Some("COMPLETED") => break,
            Some("FAILED") => panic!("the neighbour's request failed: {}", read.text()),
            _ => {}
        }
    }
    measured.completed += 1;
}

async fn timed(
    measured: &mut Measured,
    call: impl Future<Output = std::io::Result<HttpResponse>>,
) -> HttpResponse {
    let begun = Instant::now();
    let answer = call.await.unwrap();
    measured.calls.push(begun.elapsed());
    answer
}

/// A graph that takes some milliseconds.
pub(crate) fn short_graph() -> serde_json::Value {
    let delay = |id: &str| json!({ "id": id, "type": "delay", "milliseconds": 5 });
    let graph = json!({ "nodes": [delay("a"), delay("b")], "edges": [{ "from": "a", "to": "b" }] });
    json!({ "body": { "graph": graph } })
}
