//! An engine that answers at once, and whoever ends what it runs: a stand-in for the engine and the follower, so that the rest is measured alone.

use async_trait::async_trait;
use leasehold_core::graph::NodeRun;
use leasehold_core::{ExecutionEnd, ExecutionId, JsonText, Timestamp, VersionBody, WorkspaceId};
use leasehold_engine::{Description, EndedPage, Engine, Result, Start, StartOutcome, Told};
use leasehold_store::Store;
use leasehold_store::execution::ExecutionFinish;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::sleep_until;

/// Ends written down in one call at most.
const BATCH: usize = 500;

/// An execution that ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    at: Instant,
    execution: ExecutionId,
    workspace: WorkspaceId,
}

/// Takes every start at once and forgets it, or has it ended after its time.
pub(crate) struct AtOnce {
    ends: Option<mpsc::UnboundedSender<End>>,
    work: HashMap<WorkspaceId, Duration>,
}

impl AtOnce {
    /// What it starts runs for ever.
    pub(crate) fn endless() -> Self {
        Self {
            ends: None,
            work: HashMap::new(),
        }
    }
}

#[async_trait]
impl Engine for AtOnce {
    fn name(&self) -> &'static str {
        "at_once"
    }

    async fn start(&self, start: &Start) -> StartOutcome {
        if let Some(ends) = &self.ends {
            let work = self.work.get(&start.workspace).copied();
            // Nobody follows any more when the measurement is over.
            let _ = ends.send(End {
                at: Instant::now() + work.unwrap_or_default(),
                execution: start.execution,
                workspace: start.workspace,
            });
        }
        StartOutcome::Started
    }

    async fn output(
        &self,
        _execution: ExecutionId,
        _body: &VersionBody,
        _node: usize,
    ) -> Result<Option<JsonText>> {
        Ok(None)
    }

    async fn nodes(
        &self,
        _execution: ExecutionId,
        _body: &VersionBody,
    ) -> Result<Option<Vec<NodeRun>>> {
        Ok(None)
    }

    async fn describe(&self, _execution: ExecutionId) -> Result<Description> {
        Ok(Description::Open)
    }

    async fn cancel(&self, _execution: ExecutionId, _reason: &str) -> Result<Told> {
        Ok(Told::Told)
    }

    async fn terminate(&self, _execution: ExecutionId, _reason: &str) -> Result<Told> {
        Ok(Told::Told)
    }

    async fn ended_since(&self, _since: Timestamp, _page: Option<Vec<u8>>) -> Result<EndedPage> {
        Ok(EndedPage::default())
    }

    async fn pollers(&self, _body: &VersionBody) -> Result<Option<usize>> {
        Ok(None)
    }

    async fn health(&self) -> Result<()> {
        Ok(())
    }
}

/// Writes down ends when their time has come, all that are due in one call, as the follower does.
pub(crate) struct Finisher {
    progress: Arc<Progress>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Progress {
    finished: AtomicU64,
    by_workspace: Mutex<HashMap<WorkspaceId, u64>>,
    moved: Notify,
}

impl Finisher {
    /// An engine whose executions take as long as their workspace's work, none if not named, and whoever ends them.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        work: HashMap<WorkspaceId, Duration>,
    ) -> (AtOnce, Self) {
        let (ends, inbox) = mpsc::unbounded_channel();
        let progress = Arc::new(Progress::default());
        let task = tokio::spawn(follow(store, inbox, progress.clone()));
        let engine = AtOnce {
            ends: Some(ends),
            work,
        };
        (engine, Self { progress, task })
    }

    /// How many have ended.
    pub(crate) fn finished(&self) -> u64 {
        self.progress.finished.load(Ordering::Relaxed)
    }

    /// How many of a workspace have ended.
    pub(crate) fn finished_of(&self, workspace: WorkspaceId) -> u64 {
        let counts = self.progress.by_workspace.lock();
        let counts = counts.unwrap_or_else(PoisonError::into_inner);
        counts.get(&workspace).copied().unwrap_or_default()
    }

    /// Returns when it is so; it is asked again after every call that ended something.
    pub(crate) async fn until(&self, so: impl Fn(&Self) -> bool) {
        loop {
            let moved = self.progress.moved.notified();
            if so(self) {
                return;
            }
            moved.await;
        }
    }
}

impl Drop for Finisher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(
    store: Arc<dyn Store>,
    mut inbox: mpsc::UnboundedReceiver<End>,
    progress: Arc<Progress>,
) {
    let mut waiting: BinaryHeap<Reverse<End>> = BinaryHeap::new();
    loop {
        while let Ok(end) = inbox.try_recv() {
            waiting.push(Reverse(end));
        }
        let next = waiting.peek().map(|Reverse(end)| end.at);
        if next.is_none_or(|at| at > Instant::now()) {
            tokio::select! {
                end = inbox.recv() => match end {
                    Some(end) => waiting.push(Reverse(end)),
                    None => return,
                },
                () = sleep_until(next.unwrap_or_else(Instant::now).into()), if next.is_some() => {}
            }
            continue;
        }
        let now = Instant::now();
        let mut due = Vec::new();
        while due.len() < BATCH
            && let Some(Reverse(end)) = waiting.peek()
            && end.at <= now
        {
            due.extend(waiting.pop().map(|Reverse(end)| end));
        }
        if let Err(error) = finish(&*store, &due, &progress).await {
            eprintln!("ends were not written down: {error}");
            waiting.extend(due.into_iter().map(Reverse));
        }
    }
}

async fn finish(
    store: &dyn Store,
    due: &[End],
    progress: &Progress,
) -> leasehold_store::Result<()> {
    let ends: Vec<ExecutionFinish> = due
        .iter()
        .map(|end| ExecutionFinish {
            execution: end.execution,
            end: ExecutionEnd::Completed,
            error: None,
        })
        .collect();
    store.execution_finish("bench", &ends).await?;
    {
        let counts = progress.by_workspace.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        for end in due {
            *counts.entry(end.workspace).or_default() += 1;
        }
    }
    progress
        .finished
        .fetch_add(due.len() as u64, Ordering::Relaxed);
    progress.moved.notify_waiters();
    Ok(())
}
