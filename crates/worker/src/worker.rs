//! A worker's life: its tasks are started together, and stopped so that nothing is lost and little is done twice.

use crate::builder::WorkerBuilder;
use crate::shared::Shared;
use crate::source::JobSource;
use crate::stats::Stats;
use crate::{claimer, finisher, heart};
use futures::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// For writing down the last ends to a store that may not answer.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Beyond the grace of a cancelled handler: for its runner to notice.
const NOTICE: Duration = Duration::from_millis(500);

/// Claims jobs from queues and runs their handlers. See the crate for an example.
pub struct Worker {
    shared: Arc<Shared>,
}

/// A worker that runs beside its owner. Dropped, it stops by itself, unwatched.
#[must_use = "a handle that is dropped stops its worker"]
pub struct WorkerHandle {
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: Option<JoinHandle<Stats>>,
}

impl Worker {
    /// A worker for the jobs of a source.
    pub fn of(source: Arc<dyn JobSource>) -> WorkerBuilder {
        WorkerBuilder::new(source)
    }

    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The worker's name.
    pub fn name(&self) -> &str {
        &self.shared.options.name
    }

    /// Works until `stop` returns, then drains: nothing more is claimed, what was not started is given back at once, handlers that run may finish until the
    /// drain timeout and are cancelled then. A cancelled one that stops is given back, which is no attempt, though it may have begun to
    /// have effects, as after any crash. One that does not stop keeps its lease until that runs out.
    ///
    /// Dropped before its end it stops at once, and leases run out by themselves.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Stats {
        let shared = self.shared;
        tracing::info!(worker = %shared.options.name, queues = ?shared.options.queues, concurrency = shared.options.concurrency, "worker is running");
        let (panicked, mut panics) = mpsc::unbounded_channel();
        let claimer = guarded(claimer::run(shared.clone()), &panicked);
        let finisher = guarded(finisher::run(shared.clone()), &panicked);
        let heart = guarded(heart::run(shared.clone()), &panicked);
        let ends = [&claimer, &finisher, &heart].map(JoinHandle::abort_handle);
        let _end = End {
            shared: shared.clone(),
            ends,
        };
        let broken = tokio::select! {
            () = stop => None,
            panic = panics.recv() => panic,
        };
        drain(&shared, claimer).await;
        if let Some(panic) = broken {
            // A fault of the worker's own: better loud than a process that works no more.
            std::panic::resume_unwind(panic);
        }
        let stats = shared.desk.stats();
        tracing::info!(worker = %shared.options.name, ?stats, "worker has stopped");
        stats
    }

    /// Starts it beside the caller.
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
    /// The worker's name.
    pub fn name(&self) -> &str {
        &self.shared.options.name
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.shared.desk.stats()
    }

    /// Stops it as [`Worker::run`] says, and tells what it has done.
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

/// However the worker's life ends, its tasks and handlers do not outlive it.
struct End {
    shared: Arc<Shared>,
    ends: [AbortHandle; 3],
}

impl Drop for End {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
        self.shared.desk.stop();
        for end in &self.ends {
            end.abort();
        }
        for held in self.shared.desk.leases() {
            held.lose();
        }
    }
}

/// Starts a task whose panic is told.
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
    shared.desk.stop();
    tracing::info!(worker = %shared.options.name, running = shared.desk.running(), "worker stops: no more is claimed, what runs may finish");
    // A claim under way brings jobs that must be given back. It ends after this; one that hangs does not keep us.
    let claimer_ends = deadline.max(Instant::now() + LAST_WORDS);
    let (_, ()) = tokio::join!(
        timeout_at(claimer_ends, claimer),
        no_runners(shared, deadline)
    );
    if shared.desk.running() > 0 {
        for held in shared.desk.leases() {
            held.stop();
        }
        no_runners(
            shared,
            Instant::now() + shared.options.cancel_grace + NOTICE,
        )
        .await;
    }
    let abandoned = shared.desk.running() as u64;
    if abandoned > 0 {
        tracing::warn!(worker = %shared.options.name, abandoned, "handlers do not stop; their leases run out by themselves");
    }
    let written = timeout(LAST_WORDS, async {
        while shared.desk.unwritten() > 0 {
            shared.desk.quiet.notified().await;
        }
    });
    let _ = written.await;
    let unwritten = shared.desk.unwritten() as u64;
    if unwritten > 0 {
        tracing::warn!(worker = %shared.options.name, unwritten, "ends could not be written down; their leases run out by themselves");
    }
    shared.desk.count(|stats| {
        stats.abandoned = abandoned;
        stats.unwritten = unwritten;
    });
}

/// Waits until no handler runs, or the deadline.
async fn no_runners(shared: &Shared, deadline: Instant) {
    let none = async {
        while shared.desk.running() > 0 {
            shared.desk.quiet.notified().await;
        }
    };
    let _ = timeout_at(deadline, none).await;
}
