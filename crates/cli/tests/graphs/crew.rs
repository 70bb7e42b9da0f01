//! Workers over HTTP that do the tasks, some of which die with jobs in their hands. Knows no server's process.

use crate::PATIENCE;
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
const LEASE: Duration = Duration::from_secs(2);

/// Two workers, one of which is replaced now and then.
pub(crate) struct Crew {
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

impl Crew {
    pub(crate) fn new(url: String, key: &str) -> Self {
        let mut crew = Self {
            url,
            key: key.to_owned(),
            stop: CancellationToken::new(),
            done: Arc::default(),
            working: VecDeque::new(),
        };
        for _ in 0..WORKERS {
            crew.hire();
        }
        crew
    }

    fn hire(&mut self) {
        let client = Client::new(&self.url, &self.key).unwrap();
        let done = self.done.clone();
        let worker = Worker::of(Arc::new(HttpSource::new(client)))
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

    /// One is gone without a word; what it had comes back when its leases have run out.
    pub(crate) fn one_dies(&mut self) {
        self.working.pop_front().unwrap().abort();
        self.hire();
    }

    /// How many tasks have been done, some of them more than once.
    pub(crate) fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    /// Waits until so many tasks have been done.
    pub(crate) async fn until_done(&self, count: usize) {
        let seen = eventually(PATIENCE, async || self.done() >= count);
        assert!(seen.await, "{} of {count} tasks are done", self.done());
    }

    /// All leave in order.
    pub(crate) async fn leave(&mut self) {
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
