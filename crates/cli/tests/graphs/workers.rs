//! Workers over HTTP that run the tasks; some die while they hold jobs. Knows no server process.

use crate::TIMEOUT;
use crate::flow::QUEUE;
use leasehold_client::{Client, HttpSource};
use leasehold_testkit::eventually;
use leasehold_worker::{JobContext, JobError, Worker};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const WORKERS: usize = 2;
/// Short, because the jobs of a killed worker wait for its end. On a busy machine the lease of a living worker may expire too: its task is repeated,
/// which the tests allow any number of times.
const LEASE: Duration = Duration::from_secs(5);

/// Two workers; the test replaces one now and then.
pub(crate) struct WorkerPool {
    url: String,
    key: String,
    stop: CancellationToken,
    done: Arc<AtomicUsize>,
    working: VecDeque<JoinHandle<()>>,
}

#[derive(Deserialize)]
struct Task {
    node_id: String,
    input: Value,
}

impl WorkerPool {
    pub(crate) fn new(url: String, key: &str) -> Self {
        let mut pool = Self {
            url,
            key: key.to_owned(),
            stop: CancellationToken::new(),
            done: Arc::default(),
            working: VecDeque::new(),
        };
        for _ in 0..WORKERS {
            pool.spawn_worker();
        }
        pool
    }

    fn spawn_worker(&mut self) {
        let client = Client::new(&self.url, &self.key).unwrap();
        let done = self.done.clone();
        let worker = Worker::builder(Arc::new(HttpSource::new(client)))
            .queue(QUEUE)
            .lease(LEASE)
            .handler("work", move |task: Task, job: JobContext| {
                work(done.clone(), task, job)
            })
            .build()
            .unwrap();
        let stop = self.stop.clone();
        self.working.push_back(tokio::spawn(async move {
            worker.run(stop.cancelled_owned()).await;
        }));
    }

    /// Aborts a worker and starts another; the jobs return when their leases expire.
    pub(crate) fn kill_one(&mut self) {
        self.working.pop_front().unwrap().abort();
        self.spawn_worker();
    }

    /// Number of executed tasks, including repetitions.
    pub(crate) fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    /// Waits until `count` tasks are done.
    pub(crate) async fn until_done(&self, count: usize) {
        let reached = eventually(TIMEOUT, async || self.done() >= count);
        assert!(reached.await, "{} of {count} tasks are done", self.done());
    }

    /// Stops all workers gracefully.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        for worker in self.working.drain(..) {
            worker.await.unwrap();
        }
    }
}

async fn work(done: Arc<AtomicUsize>, task: Task, _: JobContext) -> Result<Value, JobError> {
    done.fetch_add(1, Ordering::SeqCst);
    Ok(json!({"node": task.node_id, "input": task.input}))
}
