//! Long polling for jobs: claims that found no job wait per queue, and only the first waiter of a queue polls the store. How many wait at once is shared fairly
//! by workspace or key. Knows no HTTP.
//!
//! A claim tries at once. If it found nothing and may wait, it joins the waiters of its queue. The first waiter (the leader) arms the notification, tries to
//! claim, and sleeps until a notification arrives, the next job becomes due or its wait is over; the others sleep behind it and cost the store nothing. When
//! the leader leaves, with or without jobs, the next waiter becomes the leader and tries at once. A leader that finds no memory for a response leaves too,
//! and waits for it: a caller that does not read its responses delays no other. So a notification costs one claim per queue with waiters,
//! however many wait, and jobs for many waiters are claimed one claim after the other, which is how the store serves the claims of a queue anyway.

use crate::call_memory::CallMemory;
use crate::call_owner::{self, Owner};
use crate::call_task::{self, HeldCall};
use crate::large_changes::LargeChanges;
use crate::owner_pool::{OwnerPermit, OwnerPool, PoolFull};
use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, JobsClaimed};
use leasehold_core::limits::{
    CLAIM_MAX_BYTES, ERROR_MAX_CHARS, HTTP_CLAIM_MAX_JOBS, PAYLOAD_MAX_BYTES,
};
use leasehold_core::spurious_wakeup::{QUIET_PERIOD, spurious_wakeup_delay};
use leasehold_store::{Error, Result, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often the leader polls without a notification; only a fallback.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

type LeaderLock = Arc<tokio::sync::Mutex<()>>;

/// The waiting claims of all queues.
pub(crate) struct ClaimWaiters {
    /// The claims that may wait at once.
    polls: Arc<OwnerPool>,
    leaders: Mutex<HashMap<String, LeaderLock>>,
    /// The turns in which jobs are returned.
    large_changes: LargeChanges,
    /// Claims in progress, and jobs being returned.
    tasks: TaskTracker,
}

/// A claim that waits for a job of its queue.
struct Waiter<'a> {
    waiters: &'a ClaimWaiters,
    queue: &'a str,
    leader: LeaderLock,
    _poll: OwnerPermit,
}

/// Why a claim returned no guard.
#[derive(Debug)]
pub(crate) enum ClaimError {
    /// The store failed.
    Store(Error),
    /// There was no job, and too many claims wait already.
    PollsFull(PoolFull),
}

impl From<Error> for ClaimError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl ClaimWaiters {
    /// Allows up to `polls_max` claims to wait at once.
    pub(crate) fn new(polls_max: usize, large_changes: LargeChanges) -> Self {
        Self {
            polls: OwnerPool::new(polls_max),
            leaders: Mutex::default(),
            large_changes,
            tasks: TaskTracker::new(),
        }
    }

    fn join<'a>(&'a self, queue: &'a str) -> Result<Waiter<'a>, PoolFull> {
        let owner = call_owner::current().unwrap_or(Owner::Anonymous);
        let poll = self.polls.try_acquire(owner)?;
        let leader = self.lock().entry(queue.to_owned()).or_default().clone();
        Ok(Waiter {
            waiters: self,
            queue,
            leader,
            _poll: poll,
        })
    }

    /// Returns how many claims wait.
    pub(crate) fn waiting(&self) -> usize {
        let leaders = self.lock();
        leaders
            .values()
            .map(|leader| Arc::strong_count(leader) - 1)
            .sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, LeaderLock>> {
        self.leaders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every claim in progress was delivered or its jobs returned.
    pub(crate) async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut leaders = self.waiters.lock();
        // Two references, the map's and this one: no other claim waits, and none can join while the map is locked.
        if Arc::strong_count(&self.leader) <= 2 {
            leaders.remove(self.queue);
        }
    }
}

/// Claims jobs, and waits up to `wait` if there are none. Dropping the future at any point leaves no job leased.
pub(crate) async fn claim(
    store: &Arc<dyn Store>,
    waiters: &ClaimWaiters,
    claim: JobClaim,
    wait: Duration,
    stop: &CancellationToken,
) -> Result<ClaimGuard, ClaimError> {
    let until = Instant::now() + wait;
    let guard = try_claim(store, waiters, &claim).await?;
    if !guard.claimed.jobs.is_empty() || wait.is_zero() {
        return Ok(guard);
    }
    let waiter = waiters.join(&claim.queue).map_err(ClaimError::PollsFull)?;
    tokio::select! {
        found = wait_for_jobs(store, &waiter, &claim, until) => Ok(found?.unwrap_or(guard)),
        () = stop.cancelled() => Ok(guard),
    }
}

/// Waits for jobs, most of the time as the leader or to become it. Returns `None` if there were none in time.
async fn wait_for_jobs(
    store: &Arc<dyn Store>,
    waiter: &Waiter<'_>,
    claim: &JobClaim,
    until: Instant,
) -> Result<Option<ClaimGuard>> {
    loop {
        match lead(store, waiter, claim, until).await? {
            Led::Claimed(guard) => return Ok(Some(*guard)),
            Led::TimedOut => return Ok(None),
            // The caller or all callers have many responses unread. That may last, so others lead meanwhile.
            Led::NoMemory(memory) => {
                let reserved = timeout_at(until, memory.wait(max_bytes(claim))).await;
                if reserved.is_err() {
                    return Ok(None);
                }
            }
        }
    }
}

/// How a claim stopped to lead the waiters of its queue.
enum Led {
    Claimed(Box<ClaimGuard>),
    /// The wait of the claim is over.
    TimedOut,
    /// There may be jobs, but this memory has no room for a response with them.
    NoMemory(CallMemory),
}

/// Waits to become the leader, then for jobs. The leader waits for nothing else: the claims of other callers wait behind it.
async fn lead(
    store: &Arc<dyn Store>,
    waiter: &Waiter<'_>,
    claim: &JobClaim,
    until: Instant,
) -> Result<Led> {
    let memory = CallMemory::current();
    let without_memory = || {
        let memory = memory.as_ref()?;
        (!memory.try_reserve(max_bytes(claim))).then(|| Led::NoMemory(memory.clone()))
    };
    let _leader = match waiter.leader.try_lock() {
        Ok(leader) => leader,
        Err(_) => {
            let Ok(leader) = timeout_at(until, waiter.leader.lock()).await else {
                return Ok(Led::TimedOut);
            };
            if let Some(given_up) = without_memory() {
                return Ok(given_up);
            }
            // The previous leader may have left jobs.
            let guard = claim_within_memory(store, waiter.waiters, claim).await?;
            if !guard.claimed.jobs.is_empty() {
                return Ok(Led::Claimed(Box::new(guard)));
            }
            leader
        }
    };
    let mut notifications = store.subscribe_jobs();
    let mut empty_polls = 0u32;
    while Instant::now() < until {
        let not_before = Instant::now() + spurious_wakeup_delay(empty_polls);
        sleep_until(not_before.min(until)).await;
        // The claim after arming covers all earlier notifications.
        notifications.borrow_and_update();
        // If arming fails, the claim fails too or finds the jobs anyway.
        let armed = store.clone();
        let _ = call_task::run(async move { armed.job_notification_arm().await }).await;
        if let Some(given_up) = without_memory() {
            return Ok(given_up);
        }
        let guard = claim_within_memory(store, waiter.waiters, claim).await?;
        if !guard.claimed.jobs.is_empty() {
            return Ok(Led::Claimed(Box::new(guard)));
        }
        let asleep = Instant::now();
        let due = guard.claimed.next_due_in.unwrap_or(POLL_INTERVAL);
        let wake = (asleep + due.min(POLL_INTERVAL)).min(until);
        // If the sender is gone, only polling is left.
        let _ = timeout_at(wake, async {
            if notifications.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
        .await;
        empty_polls = if asleep.elapsed() >= QUIET_PERIOD {
            0
        } else {
            empty_polls.saturating_add(1)
        };
    }
    Ok(Led::TimedOut)
}

/// Claims once, after the response has memory for the jobs.
async fn try_claim(
    store: &Arc<dyn Store>,
    waiters: &ClaimWaiters,
    claim: &JobClaim,
) -> Result<ClaimGuard> {
    if let Some(memory) = CallMemory::current() {
        memory.wait(max_bytes(claim)).await;
    }
    claim_within_memory(store, waiters, claim).await
}

/// Claims once, with the memory that is reserved for the response. An empty claim releases the memory.
async fn claim_within_memory(
    store: &Arc<dyn Store>,
    waiters: &ClaimWaiters,
    claim: &JobClaim,
) -> Result<ClaimGuard> {
    let guard = run_claim(store, waiters, claim).await;
    let has_jobs = guard
        .as_ref()
        .is_ok_and(|guard| !guard.claimed.jobs.is_empty());
    if let Some(memory) = CallMemory::current().filter(|_| !has_jobs) {
        memory.release();
    }
    guard
}

/// Returns the most bytes of the jobs that a claim returns.
fn max_bytes(claim: &JobClaim) -> usize {
    const JOB_MAX_BYTES: usize = 2 * PAYLOAD_MAX_BYTES + 4 * ERROR_MAX_CHARS;
    /// A claimed job beside its payload, progress and error.
    const FIELDS_BYTES: usize = 512;
    let jobs = usize::try_from(claim.max.min(HTTP_CLAIM_MAX_JOBS)).unwrap_or(usize::MAX);
    (jobs * JOB_MAX_BYTES).min(CLAIM_MAX_BYTES) + jobs * FIELDS_BYTES
}

/// Claims once, in a task that runs to its end even if the caller disconnects, and holds what the call holds until then.
async fn run_claim(
    store: &Arc<dyn Store>,
    waiters: &ClaimWaiters,
    claim: &JobClaim,
) -> Result<ClaimGuard> {
    let (sender, receiver) = oneshot::channel();
    let (store, claim, tasks) = (store.clone(), claim.clone(), waiters.tasks.clone());
    let large_changes = waiters.large_changes.clone();
    let call = HeldCall::current();
    waiters.tasks.spawn(async move {
        // Read before the claim is sent: the leases begin later than this.
        let sent = Instant::now();
        let claimed = call.run(store.job_claim(&claim)).await;
        let guard = claimed.map(|claimed| ClaimGuard {
            call: (!claimed.jobs.is_empty()).then_some(call),
            claimed,
            sent,
            store: store.clone(),
            worker: claim.worker,
            large_changes,
            tasks,
        });
        // If the receiver is gone, dropping the guard returns the jobs.
        let _ = sender.send(guard);
    });
    receiver.await.unwrap_or_else(|_| {
        let kind = leasehold_store::ErrorKind::Broken("the claim task was aborted".to_owned());
        Err(Error::new("job_claim", kind))
    })
}

/// Claimed jobs that are not delivered yet. Dropping the guard returns them to their queue.
pub(crate) struct ClaimGuard {
    claimed: JobsClaimed,
    /// When the claim was sent to the store.
    sent: Instant,
    store: Arc<dyn Store>,
    worker: String,
    large_changes: LargeChanges,
    tasks: TaskTracker,
    /// What the call holds, unless there are no jobs.
    call: Option<HeldCall>,
}

impl ClaimGuard {
    /// When the claim was sent to the store; the leases began later.
    pub(crate) fn sent(&self) -> Instant {
        self.sent
    }

    /// Takes the jobs out of the guard; they are not returned any more.
    pub(crate) fn into_jobs(mut self) -> JobsClaimed {
        std::mem::take(&mut self.claimed)
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        let jobs = std::mem::take(&mut self.claimed.jobs);
        let Some(call) = self.call.take().filter(|_| !jobs.is_empty()) else {
            return;
        };
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (store, worker) = (self.store.clone(), std::mem::take(&mut self.worker));
        let large_changes = self.large_changes.clone();
        self.tasks.spawn(async move {
            let returns: Vec<JobFinish> = jobs.iter().map(return_job).collect();
            drop(jobs);
            let finished = call.run(async {
                let _turn = large_changes.permit(returns.len()).await;
                store.job_finish(&worker, &returns).await
            });
            let (error, jobs) = match finished.await {
                Err(error) => (error.to_string(), returns.len()),
                Ok(finished) => match finished.failure {
                    None => return,
                    Some(error) => (error, unwritten(&finished.jobs)),
                },
            };
            tracing::warn!(
                error,
                worker,
                jobs,
                "failed to return jobs of a disconnected caller; their leases will expire"
            );
        });
    }
}

fn unwritten(answers: &[JobFinished]) -> usize {
    let unwritten = |answer: &&JobFinished| **answer == JobFinished::NotWritten;
    answers.iter().filter(unwritten).count()
}

fn return_job(job: &ClaimedJob) -> JobFinish {
    JobFinish {
        claim: job.claim(),
        end: JobEnd::Returned,
    }
}
