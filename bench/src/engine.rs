//! An instant engine and a task that finishes its executions: stand-ins for the engine and the reconciler, to measure the rest.

use async_trait::async_trait;
use leasehold_core::graph::NodeRun;
use leasehold_core::{ExecutionEnd, ExecutionId, JsonText, Timestamp, VersionBody, WorkspaceId};
use leasehold_engine::{Description, EndedPage, Engine, Result, Start, StartOutcome, StopAck};
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

/// Maximum number of executions finished in one call.
const BATCH: usize = 500;

/// When an execution will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ScheduledEnd {
    at: Instant,
    execution: ExecutionId,
    workspace: WorkspaceId,
}

/// Accepts every start instantly; executions run forever or end after their workspace's duration.
pub(crate) struct InstantEngine {
    ends: Option<mpsc::UnboundedSender<ScheduledEnd>>,
    work: HashMap<WorkspaceId, Duration>,
}

impl InstantEngine {
    /// Returns an engine whose executions never end.
    pub(crate) fn endless() -> Self {
        Self {
            ends: None,
            work: HashMap::new(),
        }
    }
}

#[async_trait]
impl Engine for InstantEngine {
    fn name(&self) -> &'static str {
        "instant"
    }

    async fn start(&self, start: &Start) -> StartOutcome {
        if let Some(ends) = &self.ends {
            let work = self.work.get(&start.workspace).copied();
            // The finisher is gone when the measurement is over.
            let _ = ends.send(ScheduledEnd {
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

    async fn cancel(&self, _execution: ExecutionId, _reason: &str) -> Result<StopAck> {
        Ok(StopAck::Acknowledged)
    }

    async fn terminate(&self, _execution: ExecutionId, _reason: &str) -> Result<StopAck> {
        Ok(StopAck::Acknowledged)
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

/// Finishes executions when they are due, all due ones in one call, as the reconciler does.
pub(crate) struct Finisher {
    progress: Arc<Progress>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Progress {
    finished: AtomicU64,
    by_workspace: Mutex<HashMap<WorkspaceId, u64>>,
    changed: Notify,
}

impl Finisher {
    /// Returns an engine whose executions take their workspace's duration (default: none), and the finisher that ends them.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        work: HashMap<WorkspaceId, Duration>,
    ) -> (InstantEngine, Self) {
        let (ends, inbox) = mpsc::unbounded_channel();
        let progress = Arc::new(Progress::default());
        let task = tokio::spawn(run_finisher(store, inbox, progress.clone()));
        let engine = InstantEngine {
            ends: Some(ends),
            work,
        };
        (engine, Self { progress, task })
    }

    /// Returns the number of finished executions.
    pub(crate) fn finished(&self) -> u64 {
        self.progress.finished.load(Ordering::Relaxed)
    }

    /// Returns the number of finished executions of a workspace.
    pub(crate) fn finished_of(&self, workspace: WorkspaceId) -> u64 {
        let counts = self.progress.by_workspace.lock();
        let counts = counts.unwrap_or_else(PoisonError::into_inner);
        counts.get(&workspace).copied().unwrap_or_default()
    }

    /// Waits until the condition holds; checks it after every batch of finished executions.
    pub(crate) async fn wait_until(&self, condition: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.progress.changed.notified();
            if condition(self) {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Finisher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run_finisher(
    store: Arc<dyn Store>,
    mut inbox: mpsc::UnboundedReceiver<ScheduledEnd>,
    progress: Arc<Progress>,
) {
    let mut waiting: BinaryHeap<Reverse<ScheduledEnd>> = BinaryHeap::new();
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
            eprintln!("failed to finish executions; retrying: {error}");
            waiting.extend(due.into_iter().map(Reverse));
        }
    }
}

async fn finish(
    store: &dyn Store,
    due: &[ScheduledEnd],
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
    progress.changed.notify_waiters();
    Ok(())
}
