//! Waiting for jobs: who found none stands in the line of its queue, and only the first in it watches. Knows no HTTP.
//!
//! A claim looks at once. One that found nothing and may wait joins its queue's line. The first in line arms, looks, and sleeps until the bell rings, the
//! next job becomes due, or its time is over; the others sleep behind it and cost the store nothing. Whoever leaves the front, with jobs or
//! without, lets the next one look at once. So a ring costs one look for each queue that somebody waits for, however many wait, and jobs for many are handed out
//! one claim after the other, which is how the store serves the claims of a queue anyway.

use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, JobsClaimed};
use leasehold_core::rest::{SILENCE, rest_after};
use leasehold_store::{Result, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often the first in line looks though nothing rang; only a fallback.
const LOOK_EVERY: Duration = Duration::from_secs(5);

type Front = Arc<tokio::sync::Mutex<()>>;

/// The lines of all queues that somebody waits for.
#[derive(Default)]
pub(crate) struct Lines {
    fronts: Mutex<HashMap<String, Front>>,
    /// Claims under way, and jobs on their way back.
    tasks: TaskTracker,
}

/// A place in a line.
struct Place<'a> {
    lines: &'a Lines,
    queue: &'a str,
    front: Front,
}

impl Lines {
    fn join<'a>(&'a self, queue: &'a str) -> Place<'a> {
        let front = self.lock().entry(queue.to_owned()).or_default().clone();
        Place {
            lines: self,
            queue,
            front,
        }
    }

    /// How many stand in lines.
    pub(crate) fn waiting(&self) -> usize {
        let lines = self.lock();
        lines
            .values()
            .map(|front| Arc::strong_count(front) - 1)
            .sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Front>> {
        self.fronts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every claim under way was answered or given back.
    pub(crate) async fn settled(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        // The line's own and ours: nobody else stands in it, and nobody can join meanwhile.
        if Arc::strong_count(&self.front) <= 2 {
            lines.remove(self.queue);
        }
    }
}

/// Claims, and waits so long for a job if there is none. Dropped at any moment it leaves nothing leased.
pub(crate) async fn claim(
    store: &Arc<dyn Store>,
    lines: &Lines,
    claim: JobClaim,
    wait: Duration,
    stop: &CancellationToken,
) -> Result<Hands> {
    let until = Instant::now() + wait;
    let hands = look(store, lines, &claim).await?;
    if !hands.claimed.jobs.is_empty() || wait.is_zero() {
        return Ok(hands);
    }
    let place = lines.join(&claim.queue);
    tokio::select! {
        found = watch(store, &place, &claim, until) => Ok(found?.unwrap_or(hands)),
        () = stop.cancelled() => Ok(hands),
    }
}

/// Waits for its turn and for a job. None if there was none in time.
async fn watch(
    store: &Arc<dyn Store>,
    place: &Place<'_>,
    claim: &JobClaim,
    until: Instant,
) -> Result<Option<Hands>> {
    let _first = match place.front.try_lock() {
        Ok(first) => first,
        Err(_) => {
            let Ok(first) = timeout_at(until, place.front.lock()).await else {
                return Ok(None);
            };
            // Whoever stood here before may have left some.
            let hands = look(store, place.lines, claim).await?;
            if !hands.claimed.jobs.is_empty() {
                return Ok(Some(hands));
            }
            first
        }
    };
    let mut bell = store.job_bell();
    let mut fruitless = 0u32;
    while Instant::now() < until {
        let rested = Instant::now() + rest_after(fruitless);
        sleep_until(rested.min(until)).await;
        // What rang until now is covered by the look after arming.
        bell.borrow_and_update();
        // If that fails the look does too, or finds what there is.
        let _ = store.job_arm().await;
        let hands = look(store, place.lines, claim).await?;
        if !hands.claimed.jobs.is_empty() {
            return Ok(Some(hands));
        }
        let asleep = Instant::now();
        let due = hands.claimed.next_due_in.unwrap_or(LOOK_EVERY);
        let wake = (asleep + due.min(LOOK_EVERY)).min(until);
        // A bell that nobody is left to ring leaves the looks.
        let _ = timeout_at(wake, async {
            if bell.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
        .await;
        fruitless = if asleep.elapsed() >= SILENCE {
            0
        } else {
            fruitless.saturating_add(1)
        };
    }
    Ok(None)
}

/// One claim, which is seen to its end though whoever asked may go away meanwhile.
async fn look(store: &Arc<dyn Store>, lines: &Lines, claim: &JobClaim) -> Result<Hands> {
    let (tell, told) = oneshot::channel();
    let (store, claim, tasks) = (store.clone(), claim.clone(), lines.tasks.clone());
    lines.tasks.spawn(async move {
        let claimed = store.job_claim(&claim).await;
        let hands = claimed.map(|claimed| Hands {
            claimed,
            store: store.clone(),
            worker: claim.worker,
            tasks,
        });
        // Nobody may be there to take it: then it is dropped, and given back by that.
        let _ = tell.send(hands);
    });
    told.await.unwrap_or_else(|_| {
        let kind = leasehold_store::ErrorKind::Broken("the claim broke off".to_owned());
        Err(leasehold_store::Error::new("job_claim", kind))
    })
}

/// Claimed jobs on their way to whoever asked. What is dropped on the way is given back.
pub(crate) struct Hands {
    claimed: JobsClaimed,
    store: Arc<dyn Store>,
    worker: String,
    tasks: TaskTracker,
}

impl Hands {
    /// Hands them over.
    pub(crate) fn over(mut self) -> JobsClaimed {
        std::mem::take(&mut self.claimed)
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        let jobs = std::mem::take(&mut self.claimed.jobs);
        if jobs.is_empty() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (store, worker) = (self.store.clone(), std::mem::take(&mut self.worker));
        self.tasks.spawn(async move {
            let back: Vec<JobFinish> = jobs.iter().map(given_back).collect();
            let (error, jobs) = match store.job_finish(&worker, &back).await {
                Err(error) => (error.to_string(), back.len()),
                Ok(finished) => match finished.failure {
                    None => return,
                    Some(error) => (error, unwritten(&finished.jobs)),
                },
            };
            tracing::warn!(
                error,
                worker,
                jobs,
                "jobs whose asker has gone could not be given back; their leases run out"
            );
        });
    }
}

fn unwritten(answers: &[JobFinished]) -> usize {
    let unwritten = |answer: &&JobFinished| **answer == JobFinished::NotWritten;
    answers.iter().filter(unwritten).count()
}

fn given_back(job: &ClaimedJob) -> JobFinish {
    JobFinish {
        claim: job.claim(),
        end: JobEnd::GivenBack,
    }
}
