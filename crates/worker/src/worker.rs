//! Starts a worker's tasks and drains them on shutdown, so that no job is lost and few run twice.

use crate::builder::WorkerBuilder;
use crate::shared::Shared;
use crate::source::JobSource;
use crate::stats::Stats;
use crate::{claimer, finisher, heartbeat};
use futures::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Limit on writing the last results to a store that may not answer.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// Time beyond the cancel grace period for the runners to exit.
const CANCEL_MARGIN: Duration = Duration::from_millis(500);

/// Claims jobs from queues and runs their handlers. The crate's documentation has an example.
pub struct Worker {
    shared: Arc<Shared>,
}

/// A worker that runs in the background. Dropping the handle stops the worker without waiting for it.
#[must_use = "a handle that is dropped stops its worker"]
pub struct WorkerHandle {
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: Option<JoinHandle<Stats>>,
}

impl Worker {
    /// Returns a builder of a worker for the jobs of a source.
    pub fn builder(source: Arc<dyn JobSource>) -> WorkerBuilder {
        WorkerBuilder::new(source)
    }

    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the worker's name.
    pub fn name(&self) -> &str {
        &self.shared.options.name
    }

    /// Runs until `stop` returns, then drains: the worker stops claiming, returns prefetched jobs at once, lets running handlers finish until the
    /// drain timeout, and then cancels them. A job whose handler stops is returned to the queue. That does not count as an attempt, but the
    /// handler may have had effects, as after a crash. A handler that does not stop keeps its lease until it expires.
    ///
    /// Dropping the future stops the worker at once; its leases expire.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Stats {
        let shared = self.shared;
        tracing::info!(worker = %shared.options.name, queues = ?shared.options.queues, concurrency = shared.options.concurrency, "worker started");
        let (panicked, mut panics) = mpsc::unbounded_channel();
        let claimer = guarded(claimer::run(shared.clone()), &panicked);
        let finisher = guarded(finisher::run(shared.clone()), &panicked);
        let heartbeat = guarded(heartbeat::run(shared.clone()), &panicked);
        let tasks = [&claimer, &finisher, &heartbeat].map(JoinHandle::abort_handle);
        let _abort = AbortOnDrop {
            shared: shared.clone(),
            tasks,
        };
        let panic = tokio::select! {
            () = stop => None,
            panic = panics.recv() => panic,
        };
        drain(&shared, claimer).await;
        if let Some(panic) = panic {
            // A bug in the worker: panic rather than keep a process that runs no jobs.
            std::panic::resume_unwind(panic);
        }
        let stats = shared.state.stats();
        tracing::info!(worker = %shared.options.name, ?stats, "worker stopped");
        stats
    }

    /// Starts the worker in the background.
    pub fn start(self) -> WorkerHandle {
        let stop = CancellationToken::new();
        let shared = self.shared.clone();
        let task = tokio::spawn(self.run(stop.clone().cancelled_owned()));
        WorkerHandle {
            shared,
            stop,
            task: Some(task),
        }
    }
}

impl WorkerHandle {
    /// Returns the worker's name.
    pub fn name(&self) -> &str {
        &self.shared.options.name
    }

    /// Returns the worker's counters so far.
    pub fn stats(&self) -> Stats {
        self.shared.state.stats()
    }

    /// Drains the worker as [`Worker::run`] describes, and returns its counters.
    pub async fn stop(mut self) -> Stats {
        self.stop.cancel();
        match self.task.take() {
            Some(task) => match task.await {
                Ok(stats) => stats,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => self.stats(),
            },
            None => self.stats(),
        }
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Aborts the worker's tasks and handlers when [`Worker::run`] ends, panics or is dropped.
struct AbortOnDrop {
    shared: Arc<Shared>,
    tasks: [AbortHandle; 3],
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
        self.shared.state.stop();
        for task in &self.tasks {
            task.abort();
        }
        for job in self.shared.state.leases() {
            job.mark_lost();
        }
    }
}

/// Spawns a task and sends its panic to `panicked`.
fn guarded(
    task: impl Future<Output = ()> + Send + 'static,
    panicked: &mpsc::UnboundedSender<Box<dyn Any + Send>>,
) -> JoinHandle<()> {
    let panicked = panicked.clone();
    tokio::spawn(async move {
        if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
            let _ = panicked.send(panic);
        }
    })
}

async fn drain(shared: &Shared, claimer: JoinHandle<()>) {
    let deadline = Instant::now() + shared.options.drain_timeout;
    shared.stopping.cancel();
    shared.state.stop();
    tracing::info!(worker = %shared.options.name, running = shared.state.running(), "worker draining");
    // The jobs of a claim under way must be returned. A claim that hangs does not block the shutdown.
    let claimer_ends = deadline.max(Instant::now() + FLUSH_TIMEOUT);
    let (_, ()) = tokio::join!(
        timeout_at(claimer_ends, claimer),
        wait_for_runners(shared, deadline)
    );
    if shared.state.running() > 0 {
        for job in shared.state.leases() {
            job.stop();
        }
        wait_for_runners(
            shared,
            Instant::now() + shared.options.cancel_grace + CANCEL_MARGIN,
        )
        .await;
    }
    let abandoned = shared.state.running() as u64;
    if abandoned > 0 {
        tracing::warn!(worker = %shared.options.name, abandoned, "handlers did not stop in time; their leases will expire");
    }
    let flush = timeout(FLUSH_TIMEOUT, async {
        while shared.state.unwritten() > 0 {
            shared.state.idle.notified().await;
        }
    });
    let _ = flush.await;
    let unwritten = shared.state.unwritten() as u64;
    if unwritten > 0 {
        tracing::warn!(worker = %shared.options.name, unwritten, "failed to write job results before the shutdown; their leases will expire");
    }
    shared.state.count(|stats| {
        stats.abandoned = abandoned;
        stats.unwritten = unwritten;
    });
}

/// Waits until no handler runs, or until the deadline.
async fn wait_for_runners(shared: &Shared, deadline: Instant) {
    let none = async {
        while shared.state.running() > 0 {
            shared.state.idle.notified().await;
        }
    };
    let _ = timeout_at(deadline, none).await;
}
