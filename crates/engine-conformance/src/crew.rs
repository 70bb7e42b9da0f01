//! Workers of `task` nodes: known kinds of work whose results can be foretold. Knows no engine.

use crate::fixture::EngineFixture;
use leasehold_core::JsonText;
use leasehold_runtime::StoreSource;
use leasehold_testkit::eventually;
use leasehold_worker::{JobContext, JobError, Worker, WorkerHandle};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// What a failing task says.
pub(crate) const TOLD_TO_FAIL: &str = "told to fail";

/// What a worker finds in the job of a `task` node.
#[derive(Deserialize)]
struct Task {
    node_id: String,
    input: JsonText,
}

/// Workers in this process that do every kind of task:
///
/// - `echo`: comes to its input; `add`: to the sum of the numbers in its input; `nothing`: to nothing
/// - `fail`: fails for good; `flaky`: fails as often as its input's `times` says, then comes to its attempt
/// - `hang`: never ends; `hold`: ends when the case lets it
/// - `trace`: comes to the trace that its job is part of
#[must_use = "workers that are dropped stop"]
pub struct Crew {
    handle: WorkerHandle,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Attempts begun, by node.
    begun: Mutex<HashMap<String, u32>>,
    held: Held,
}

/// Lets nothing pass until it is opened.
struct Held(Semaphore);

impl Default for Held {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Crew {
    /// Workers for the fixture's queue.
    pub fn at_work(fixture: &EngineFixture) -> Self {
        let seen = Arc::new(Seen::default());
        let mut builder = Worker::of(Arc::new(StoreSource::new(fixture.store.clone())))
            .queue(&fixture.queue)
            .lease(Duration::from_secs(10))
            // A claim takes back what a dead worker had.
            .poll_interval(Duration::from_millis(200))
            .drain_timeout(Duration::ZERO)
            .cancel_grace(Duration::ZERO);
        for kind in [
            "echo", "add", "nothing", "fail", "flaky", "hang", "hold", "trace",
        ] {
            let seen = seen.clone();
            builder = builder.handler(kind, move |task: Task, job: JobContext| {
                work(seen.clone(), task, job)
            });
        }
        let worker = builder.build().expect("the crew can be built");
        Self {
            handle: worker.start(),
            seen,
        }
    }

    /// How often somebody began to work on that node.
    pub fn begun(&self, node: &str) -> u32 {
        self.seen.begun().get(node).copied().unwrap_or(0)
    }

    /// Waits until somebody began to work on that node.
    pub async fn until_begun(&self, node: &str, patience: Duration) {
        let begun = eventually(patience, async || self.begun(node) > 0);
        assert!(begun.await, "nobody began to work on {node}");
    }

    /// Lets every `hold` end, now and later.
    pub fn let_go(&self) {
        self.seen.held.0.close();
    }

    /// Stops it; what it works on comes back to its queue.
    pub async fn leave(self) {
        self.handle.stop().await;
    }
}

impl Seen {
    fn begun(&self) -> std::sync::MutexGuard<'_, HashMap<String, u32>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn work(seen: Arc<Seen>, task: Task, job: JobContext) -> Result<Value, JobError> {
    *seen.begun().entry(task.node_id.clone()).or_default() += 1;
    match job.kind() {
        "hang" => std::future::pending().await,
        "trace" => Ok(json!(job.trace_context())),
        "hold" => {
            // Closed is open: nobody is ever given a permit.
            let _ = seen.held.0.acquire().await;
            Ok(json!("let go"))
        }
        kind => result(kind, &task.input.read()?, job.attempt()),
    }
}

/// What a kind of task comes to at an attempt.
pub(crate) fn result(kind: &str, input: &Value, attempt: u32) -> Result<Value, JobError> {
    match kind {
        "echo" => Ok(input.clone()),
        "add" => Ok(json!(sum(input))),
        "nothing" => Ok(Value::Null),
        "flaky" if u64::from(attempt) > times(input) => Ok(json!({"attempt": attempt})),
        "flaky" => Err(JobError::new(format!("attempt {attempt} fails"))),
        _ => Err(JobError::permanent(TOLD_TO_FAIL)),
    }
}

/// How often a `flaky` task fails.
pub(crate) fn times(input: &Value) -> u64 {
    input["times"].as_u64().unwrap_or(0)
}

/// The sum of all numbers, however deep.
fn sum(value: &Value) -> i64 {
    match value {
        Value::Number(number) => number.as_i64().unwrap_or(0),
        Value::Array(items) => items.iter().map(sum).sum(),
        Value::Object(fields) => fields.values().map(sum).sum(),
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}
