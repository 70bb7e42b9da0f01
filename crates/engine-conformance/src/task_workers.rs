//! Workers for `task` nodes, with kinds of tasks whose results can be predicted. Knows no engine.

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

/// The error of a failing task.
pub(crate) const TASK_ERROR: &str = "told to fail";

/// The payload of a `task` node's job.
#[derive(Deserialize)]
struct Task {
    node_id: String,
    input: JsonText,
}

/// Workers in this process for every kind of task:
///
/// - `echo` returns its input, `add` the sum of the numbers in its input, `nothing` null
/// - `fail` fails permanently; `flaky` fails `times` times, as its input says, then returns its attempt
/// - `hang` never ends; `hold` ends after [`release_held`](Self::release_held)
/// - `trace` returns the trace context of its job
#[must_use = "dropped workers stop"]
pub struct TaskWorkers {
    handle: WorkerHandle,
    record: Arc<TaskRecord>,
}

#[derive(Default)]
struct TaskRecord {
    /// Started attempts, by node.
    attempts: Mutex<HashMap<String, u32>>,
    hold: Latch,
}

/// Blocks until it is opened.
struct Latch(Semaphore);

impl Default for Latch {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl TaskWorkers {
    /// Starts workers for the fixture's queue.
    pub fn start(fixture: &EngineFixture) -> Self {
        let record = Arc::new(TaskRecord::default());
        let mut builder = Worker::builder(Arc::new(StoreSource::new(fixture.store.clone())))
            .queue(&fixture.queue)
            .lease(Duration::from_secs(30))
            // A claim takes back the jobs of a dead worker.
            .poll_interval(Duration::from_millis(200))
            .drain_timeout(Duration::ZERO)
            .cancel_grace(Duration::ZERO);
        for kind in [
            "echo", "add", "nothing", "fail", "flaky", "hang", "hold", "trace",
        ] {
            let record = record.clone();
            builder = builder.handler(kind, move |task: Task, job: JobContext| {
                work(record.clone(), task, job)
            });
        }
        let worker = builder.build().expect("the workers can be built");
        Self {
            handle: worker.start(),
            record,
        }
    }

    /// How many attempts of this node a worker has started.
    pub fn attempts(&self, node: &str) -> u32 {
        self.record.attempts().get(node).copied().unwrap_or(0)
    }

    /// Waits until a worker has started this node.
    pub async fn wait_started(&self, node: &str, timeout: Duration) {
        let started = eventually(timeout, async || self.attempts(node) > 0);
        assert!(started.await, "no worker started {node}");
    }

    /// Lets every `hold` task end, current and future ones.
    pub fn release_held(&self) {
        self.record.hold.0.close();
    }

    /// Stops the workers; their running jobs return to the queue.
    pub async fn stop(self) {
        self.handle.stop().await;
    }
}

impl TaskRecord {
    fn attempts(&self) -> std::sync::MutexGuard<'_, HashMap<String, u32>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn work(record: Arc<TaskRecord>, task: Task, job: JobContext) -> Result<Value, JobError> {
    *record.attempts().entry(task.node_id.clone()).or_default() += 1;
    match job.kind() {
        "hang" => std::future::pending().await,
        "trace" => Ok(json!(job.trace_context())),
        "hold" => {
            // The semaphore has no permits; closing it ends the wait.
            let _ = record.hold.0.acquire().await;
            Ok(json!("let go"))
        }
        kind => result(kind, &task.input.read()?, job.attempt()),
    }
}

/// The result of a kind of task at an attempt.
pub(crate) fn result(kind: &str, input: &Value, attempt: u32) -> Result<Value, JobError> {
    match kind {
        "echo" => Ok(input.clone()),
        "add" => Ok(json!(sum(input))),
        "nothing" => Ok(Value::Null),
        "flaky" if u64::from(attempt) > times(input) => Ok(json!({"attempt": attempt})),
        "flaky" => Err(JobError::new(format!("attempt {attempt} fails"))),
        _ => Err(JobError::permanent(TASK_ERROR)),
    }
}

/// How many attempts of a `flaky` task fail.
pub(crate) fn times(input: &Value) -> u64 {
    input["times"].as_u64().unwrap_or(0)
}

/// The sum of all numbers, nested ones included.
fn sum(value: &Value) -> i64 {
    match value {
        Value::Number(number) => number.as_i64().unwrap_or(0),
        Value::Array(items) => items.iter().map(sum).sum(),
        Value::Object(fields) => fields.values().map(sum).sum(),
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}
