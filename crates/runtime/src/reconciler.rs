//! Finds executions that ended, from the engine's list of recently closed executions. The list is only a hint: each execution in it is described
//! before it is finished.

use crate::error::{Error, Result};
use crate::execution_checker::{CheckOutcome, ExecutionChecker};
use crate::lock::{LockOptions, NamedLock};
use async_trait::async_trait;
use leasehold_core::{ExecutionId, Timestamp};
use leasehold_engine::Engine;
use leasehold_service::{Next, Service};
use leasehold_store::notification::Notification;
use leasehold_store::{EpochId, Store};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const LOCK: &str = "followEndedExecutions";
/// Pages read in one round; the full sweep finds what lies beyond.
const PAGES: usize = 200;
/// The shortest time from the end of a round to one that a notification starts; a round as long as the last is added. So reports of ended
/// executions, however many, keep the engine's list busy at most half of the time.
const WOKEN_PAUSE: Duration = Duration::from_millis(200);

/// How the reconciler reads the engine's list of closed executions.
#[derive(Clone, Debug)]
pub struct ReconcilerOptions {
    /// Time between rounds.
    pub interval: Duration,
    /// How far each round reads back before the newest end seen, since the engine lists ends a little late.
    pub overlap: Duration,
    /// How far a wide round reads back, for ends that were listed very late.
    pub wide_overlap: Duration,
    /// Time between wide rounds.
    pub wide_interval: Duration,
    /// How far the first round reads back; the full sweep finds earlier ends.
    pub catch_up: Duration,
    /// How many executions are described at once.
    pub concurrency: usize,
    /// The lock that lets one instance reconcile at a time.
    pub lock: LockOptions,
}

impl Default for ReconcilerOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            overlap: Duration::from_secs(2),
            wide_overlap: Duration::from_secs(120),
            wide_interval: Duration::from_secs(30),
            catch_up: Duration::from_secs(600),
            concurrency: 16,
            lock: LockOptions::default(),
        }
    }
}

/// Finishes executions that ended in the engine.
pub struct Reconciler {
    checker: ExecutionChecker,
    lock: NamedLock,
    options: ReconcilerOptions,
    /// The position, and the epoch of the store in which it was reached: an end that was recorded in another epoch may be lost.
    cursor: Mutex<Option<(Option<EpochId>, Cursor)>>,
}

/// The position in the engine's list.
struct Cursor {
    /// The newest end seen, by the engine's clock.
    newest: Timestamp,
    wide_at: Instant,
    /// Executions already finished, so that overlapping rounds describe nothing twice.
    done: HashMap<ExecutionId, Instant>,
    /// Ended executions that were not finished because their rows are locked. Each round tries them again; the position does not wait for them.
    busy: HashSet<ExecutionId>,
}

impl Cursor {
    /// Returns how far a round that begins now reads back. A wide round forgets old ends first: a round that fails must neither keep them, nor make the
    /// next one wide too. What it did not read is within reach of the next wide rounds.
    fn begin_round(&mut self, options: &ReconcilerOptions) -> Duration {
        if self.wide_at.elapsed() < options.wide_interval {
            return options.overlap;
        }
        self.wide_at = Instant::now();
        let keep = options.wide_overlap * 2;
        self.done.retain(|_, at| at.elapsed() < keep);
        options.wide_overlap
    }
}

impl Reconciler {
    /// Creates a reconciler that writes as `owner`.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<dyn Engine>,
        owner: &str,
        options: ReconcilerOptions,
    ) -> Self {
        Self {
            lock: NamedLock::new(store.clone(), LOCK, owner, options.lock),
            checker: ExecutionChecker {
                store,
                engine,
                owner: owner.to_owned(),
                concurrency: options.concurrency,
            },
            options,
            cursor: Mutex::new(None),
        }
    }

    /// Returns the first position: `catch_up` before the newest end in the engine, by the engine's clock.
    async fn initial_cursor(&self) -> Result<Cursor> {
        let latest = self
            .checker
            .engine
            .ended_since(Timestamp::UNIX_EPOCH, None)
            .await?;
        let newest = latest.newest.unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(Cursor {
            newest: minus(newest, self.options.catch_up),
            wide_at: Instant::now(),
            done: HashMap::new(),
            busy: HashSet::new(),
        })
    }

    /// Reads the list once from the cursor and finishes what ended.
    async fn poll(&self, cursor: &mut Cursor) -> Result<()> {
        let since = minus(cursor.newest, cursor.begin_round(&self.options));
        let mut newest = cursor.newest;
        let mut page = None;
        let locked: Vec<ExecutionId> = cursor.busy.iter().copied().collect();
        let retried = self.check(locked, &mut cursor.done).await?;
        if retried.error.is_none() {
            cursor.busy = retried.busy.into_iter().collect();
        }
        let mut engine_error = retried.error;
        for _ in 0..PAGES {
            let ended = self.checker.engine.ended_since(since, page).await?;
            newest = newest.max(ended.newest.unwrap_or(newest));
            let outcome = self.check(ended.executions, &mut cursor.done).await?;
            engine_error = outcome.error.or(engine_error);
            cursor.busy.extend(outcome.busy);
            page = ended.next;
            if page.is_none() {
                break;
            }
            // A long round extends the lock; if it was lost, its new holder reconciles.
            if self.lock.acquire_or_extend().await?.is_none() {
                return Ok(());
            }
        }
        if let Some(error) = engine_error {
            // The cursor stays, so the next round reads the same range again.
            return Err(error.into());
        }
        cursor.newest = newest;
        Ok(())
    }

    /// Checks those of the listed executions that are still RUNNING in the store.
    async fn check(
        &self,
        mut ids: Vec<ExecutionId>,
        done: &mut HashMap<ExecutionId, Instant>,
    ) -> Result<CheckOutcome> {
        ids.retain(|id| !done.contains_key(id));
        if ids.is_empty() {
            return Ok(CheckOutcome::default());
        }
        let running = self.checker.store.execution_list_running(&ids).await?;
        let now = Instant::now();
        done.extend(ids.into_iter().map(|id| (id, now)));
        for execution in &running {
            done.remove(&execution.id);
        }
        let outcome = self.checker.check(running).await?;
        done.extend(outcome.ended.iter().map(|id| (*id, now)));
        Ok(outcome)
    }
}

fn minus(from: Timestamp, by: Duration) -> Timestamp {
    from.checked_sub(by).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[async_trait]
impl Service for Reconciler {
    type Error = Error;

    fn name(&self) -> &'static str {
        "reconciler"
    }

    async fn run_once(&self) -> Result<Next> {
        let mut cursor = self.cursor.lock().await;
        if self.lock.acquire_or_extend().await?.is_none() {
            *cursor = None;
            return Ok(Next::After(self.lock.options().extend_interval()));
        }
        let epoch = self.checker.store.epoch();
        let (_, cursor) = match cursor.as_mut() {
            Some(known) if known.0 == epoch => known,
            _ => cursor.insert((epoch, self.initial_cursor().await?)),
        };
        self.poll(cursor).await?;
        Ok(Next::After(self.options.interval))
    }

    async fn woken(&self) {
        self.checker
            .store
            .notification_wait(Notification::Ended)
            .await;
    }

    fn woken_pause(&self, round: Duration) -> Duration {
        WOKEN_PAUSE + round
    }

    async fn stopped(&self) {
        self.lock.close().await;
    }
}
