//! Threads for schema work, shared fairly by workspace. Knows nothing of schemas: it runs closures that end by themselves.

use leasehold_core::WorkspaceId;
use leasehold_core::limits::{
    VALIDATION_MAX_THREADS, VALIDATION_MAX_WAITING, VALIDATION_STACK_BYTES,
};
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// A pool of threads. They start with the first work and end with the pool.
#[derive(Debug)]
pub(super) struct SchemaPool(Arc<Shared>);

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PoolError {
    /// No thread was free until the deadline, or too much work waits already.
    Overloaded,
    /// The work panicked.
    Crashed,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    threads: usize,
}

#[derive(Debug, Default)]
struct State {
    threads: usize,
    idle: usize,
    waiting: VecDeque<Work>,
    /// How much of each workspace runs now.
    running: HashMap<WorkspaceId, usize>,
    next_id: u64,
    is_closed: bool,
}

struct Work {
    id: u64,
    workspace: WorkspaceId,
    run: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Default for SchemaPool {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::new(cores.clamp(2, VALIDATION_MAX_THREADS))
    }
}

impl Drop for SchemaPool {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

/// Removes work that still waits when its caller stops waiting for it.
struct Withdraw<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.shared.withdraw(self.id);
    }
}

impl SchemaPool {
    fn new(threads: usize) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            threads,
        }))
    }

    /// Runs work on a thread and returns its result. Waits for a thread until the deadline; work that has begun runs to its end.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        workspace: WorkspaceId,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let (sender, mut receiver) = oneshot::channel();
        let run = Box::new(move || {
            // Without a receiver the caller has gone.
            let _ = sender.send(work());
        });
        let id = self.submit(workspace, run)?;
        let _withdraw = Withdraw {
            shared: &self.0,
            id,
        };
        let done = match tokio::time::timeout_at(deadline.into(), &mut receiver).await {
            Ok(done) => done,
            Err(_) if self.0.withdraw(id) => return Err(PoolError::Overloaded),
            Err(_) => receiver.await,
        };
        done.map_err(|_| PoolError::Crashed)
    }

    fn submit(
        &self,
        workspace: WorkspaceId,
        run: Box<dyn FnOnce() + Send>,
    ) -> Result<u64, PoolError> {
        let mut state = self.0.lock();
        let of_workspace = state
            .waiting
            .iter()
            .filter(|work| work.workspace == workspace);
        if state.waiting.len() >= VALIDATION_MAX_WAITING
            || of_workspace.count() >= three_quarters(VALIDATION_MAX_WAITING)
        {
            return Err(PoolError::Overloaded);
        }
        if state.idle <= state.waiting.len() && state.threads < self.0.threads {
            match self.start_thread() {
                Ok(()) => state.threads += 1,
                Err(error) => {
                    tracing::error!(%error, "failed to start a thread for schema validation");
                    if state.threads == 0 {
                        return Err(PoolError::Overloaded);
                    }
                }
            }
        }
        let id = state.next_id;
        state.next_id += 1;
        state.waiting.push_back(Work { id, workspace, run });
        drop(state);
        self.0.changed.notify_one();
        Ok(id)
    }

    fn start_thread(&self) -> std::io::Result<()> {
        let shared = Arc::clone(&self.0);
        std::thread::Builder::new()
            .name("schema".to_owned())
            .stack_size(VALIDATION_STACK_BYTES)
            .spawn(move || shared.work())
            .map(drop)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes work that waits; returns false if it does not wait any more.
    fn withdraw(&self, id: u64) -> bool {
        let mut state = self.lock();
        let position = state.waiting.iter().position(|work| work.id == id);
        position.and_then(|at| state.waiting.remove(at)).is_some()
    }

    /// The loop of a thread.
    fn work(&self) {
        let mut state = self.lock();
        while !state.is_closed {
            let Some(work) = state.take_next(self.threads) else {
                state.idle += 1;
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            *state.running.entry(work.workspace).or_default() += 1;
            drop(state);
            let outcome = catch_unwind(AssertUnwindSafe(work.run));
            if outcome.is_err() {
                tracing::error!(workspace = %work.workspace, "schema validation crashed");
            }
            state = self.lock();
            if let Some(running) = state.running.get_mut(&work.workspace) {
                *running -= 1;
                if *running == 0 {
                    state.running.remove(&work.workspace);
                }
            }
        }
    }
}

impl State {
    /// Takes the oldest work of the workspace that runs least. One workspace never runs on all threads.
    fn take_next(&mut self, threads: usize) -> Option<Work> {
        let most = three_quarters(threads);
        let running = |work: &Work| self.running.get(&work.workspace).copied().unwrap_or(0);
        let waiting = self.waiting.iter().enumerate();
        let next = waiting
            .map(|(at, work)| (running(work), at))
            .filter(|(running, _)| *running < most)
            .min();
        next.and_then(|(_, at)| self.waiting.remove(at))
    }
}

/// What one workspace may use of something shared.
fn three_quarters(of: usize) -> usize {
    (of * 3 / 4).max(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_store::fresh_id;
    use leasehold_testkit::eventually;
    use std::sync::mpsc;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    fn later() -> Instant {
        Instant::now() + LONG
    }

    /// Starts work that blocks until the returned sender is dropped.
    fn block(pool: &Arc<SchemaPool>, workspace: WorkspaceId) -> mpsc::Sender<()> {
        let (sender, receiver) = mpsc::channel::<()>();
        let pool = Arc::clone(pool);
        let work = move || receiver.recv().is_err();
        tokio::spawn(async move { pool.run(workspace, later(), work).await });
        sender
    }

    async fn wait_until(pool: &SchemaPool, holds: impl Fn(&State) -> bool) {
        assert!(eventually(LONG, async || holds(&pool.0.lock())).await);
    }

    #[tokio::test]
    async fn one_workspace_leaves_a_thread_to_the_others() {
        let pool = Arc::new(SchemaPool::new(4));
        let busy = fresh_id();
        let blocked: Vec<_> = (0..6).map(|_| block(&pool, busy)).collect();
        wait_until(&pool, |state| {
            state.running.get(&busy) == Some(&3) && state.waiting.len() == 3
        })
        .await;
        assert_eq!(pool.run(fresh_id(), later(), || 7).await, Ok(7));
        drop(blocked);
        assert_eq!(pool.run(busy, later(), || 8).await, Ok(8));
    }

    #[tokio::test]
    async fn work_without_a_thread_is_refused_at_its_deadline() {
        let pool = Arc::new(SchemaPool::new(2));
        let busy = fresh_id();
        let blocked = block(&pool, busy);
        wait_until(&pool, |state| state.running.len() == 1).await;
        let soon = Instant::now() + Duration::from_millis(10);
        let refused = pool.run(busy, soon, || panic!("must not run")).await;
        assert_eq!(refused, Err::<(), _>(PoolError::Overloaded));
        assert!(pool.0.lock().waiting.is_empty());
        drop(blocked);
        assert_eq!(pool.run(busy, later(), || 1).await, Ok(1));
    }

    #[tokio::test]
    async fn work_of_a_caller_that_has_gone_is_removed() {
        let pool = Arc::new(SchemaPool::new(2));
        let busy = fresh_id();
        let _blocked = block(&pool, busy);
        wait_until(&pool, |state| state.running.len() == 1).await;
        let waiting = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(busy, later(), || panic!("must not run")).await }
        });
        wait_until(&pool, |state| state.waiting.len() == 1).await;
        waiting.abort();
        wait_until(&pool, |state| state.waiting.is_empty()).await;
    }

    #[tokio::test]
    async fn waiting_work_is_bounded_for_each_workspace_and_for_all() {
        let pool = Arc::new(SchemaPool::new(2));
        let (busy, other) = (fresh_id(), fresh_id());
        let mut blocked = vec![block(&pool, busy)];
        wait_until(&pool, |state| state.running.len() == 1).await;
        let share = three_quarters(VALIDATION_MAX_WAITING);
        blocked.extend((0..share).map(|_| block(&pool, busy)));
        wait_until(&pool, |state| state.waiting.len() == share).await;
        assert_eq!(
            pool.run(busy, later(), || 1).await,
            Err(PoolError::Overloaded)
        );
        blocked.push(block(&pool, other));
        wait_until(&pool, |state| state.running.len() == 2).await;
        let rest = VALIDATION_MAX_WAITING - share;
        blocked.extend((0..rest).map(|_| block(&pool, other)));
        wait_until(&pool, |state| state.waiting.len() == VALIDATION_MAX_WAITING).await;
        let refused = pool.run(fresh_id(), later(), || 1).await;
        assert_eq!(refused, Err(PoolError::Overloaded));
    }

    #[tokio::test]
    async fn panicking_work_leaves_the_pool_usable() {
        let pool = SchemaPool::new(2);
        for _ in 0..5 {
            let crashed = pool.run(fresh_id(), later(), || panic!("on purpose")).await;
            assert_eq!(crashed, Err::<(), _>(PoolError::Crashed));
        }
        assert_eq!(pool.run(fresh_id(), later(), || 1).await, Ok(1));
    }
}
