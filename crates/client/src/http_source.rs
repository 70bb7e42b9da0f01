//! A job source over HTTP, for workers without a database connection. Knows no handler.
//!
//! While there are jobs, the worker polls with short claims. When its queues are empty it arms a notification: one long poll per queue then waits at the
//! server. Polls of the worker meanwhile make no call, because the server would have answered the long poll. The jobs of a long poll are buffered here, the
//! worker is notified, and its next poll takes them. So an idle worker makes one call per queue every 30 s, and a new job starts without a poll delay.
//!
//! A worker that stops drops its notification receiver. That cancels a waiting long poll, so the server claims no job for it; buffered jobs are returned.

use crate::client::Client;
use crate::convert;
use crate::error::{ClientError, Result};
use async_trait::async_trait;
use leasehold_api::Code;
use leasehold_api::job::{ClaimOptions, ClaimedJobs, FinishBatch, LeaseRenewal, ProgressReport};
use leasehold_core::JsonText;
use leasehold_core::duration::millis;
use leasehold_core::job::{
    ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, JobRef, JobsClaimed, JobsRenewed,
};
use leasehold_core::limits::HTTP_CLAIM_MAX_JOBS;
use leasehold_core::retry::Backoff;
use leasehold_worker::{JobSource, SourceError, SourceResult};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// How long a long poll waits at the server.
const LONG_POLL: Duration = Duration::from_secs(30);
/// How long jobs of a long poll stay buffered. A notified worker takes them at once, unless it is busy with other queues.
const BUFFER_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of failed long polls in a row.
const MAX_FAILED_POLLS: u32 = 2;
/// The backoff between failed long polls.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(200),
    factor: 2.0,
    max: Duration::from_secs(5),
    jitter: 0.5,
};

/// A server as the job source of one worker: `Worker::builder(Arc::new(HttpSource::new(client)))`.
pub struct HttpSource(Arc<Inner>);

struct Inner {
    client: Client,
    notify: watch::Sender<u64>,
    queues: Mutex<HashMap<String, Queue>>,
}

#[derive(Default)]
struct Queue {
    /// The last claim, which a long poll repeats.
    claim: Option<JobClaim>,
    poll: Option<JoinHandle<()>>,
    buffered: Answer,
    /// Number of long polls that returned jobs; identifies the buffered batch.
    batch: u64,
}

/// The answer to a claim.
#[derive(Default)]
struct Answer {
    claimed: JobsClaimed,
    /// The leases began no earlier than this. None without an answer.
    leased_from: Option<Instant>,
}

impl Answer {
    /// Converts the answer to a claim that was sent at `sent`. The server claimed no earlier than `waited_ms` later.
    fn new(sent: Instant, claimed: ClaimedJobs) -> Self {
        let waited = Duration::from_millis(claimed.waited_ms);
        Self {
            leased_from: sent.checked_add(waited),
            claimed: convert::claimed(claimed),
        }
    }

    /// Takes up to `max` jobs. The age of their leases counts from when the claim was sent, not from now: the process may have been suspended since.
    fn take(&mut self, max: usize) -> JobsClaimed {
        let count = self.claimed.jobs.len().min(max);
        JobsClaimed {
            jobs: self.claimed.jobs.drain(..count).collect(),
            at_limit: self.claimed.at_limit,
            next_due_in: None,
            lease_age: self
                .leased_from
                .map_or(Duration::ZERO, |from| from.elapsed()),
        }
    }
}

impl Queue {
    fn is_polling(&self) -> bool {
        self.poll.as_ref().is_some_and(|poll| !poll.is_finished())
    }
}

impl HttpSource {
    /// Creates a source for the queues that the client's key has access to.
    pub fn new(client: Client) -> Self {
        let (notify, _) = watch::channel(0);
        Self(Arc::new(Inner {
            client,
            notify,
            queues: Mutex::default(),
        }))
    }
}

impl Inner {
    fn queues(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a claim from the buffer, or with no jobs while a long poll waits. Returns `None` if the server must be called.
    fn claim_buffered(&self, claim: &JobClaim) -> Option<JobsClaimed> {
        let mut queues = self.queues();
        let queue = queues.entry(claim.queue.clone()).or_default();
        queue.claim = Some(claim.clone());
        if queue.buffered.claimed.jobs.is_empty() || claim.max == 0 {
            return queue.is_polling().then(JobsClaimed::default);
        }
        Some(queue.buffered.take(claim.max as usize))
    }

    async fn claim(&self, claim: &JobClaim, wait: Duration) -> Result<Answer> {
        let options = ClaimOptions {
            worker: claim.worker.clone(),
            max: claim.max.min(HTTP_CLAIM_MAX_JOBS),
            lease_ms: claim.lease.map(millis),
            wait_ms: millis(wait),
        };
        // Read before the claim is sent: the leases begin later than this.
        let sent = Instant::now();
        let claimed = self.client.job_claim(&claim.queue, &options).await?;
        Ok(Answer::new(sent, claimed))
    }

    /// Long-polls until the server has jobs, buffers them and notifies the worker. Ends early if the worker has stopped.
    async fn poll(self: Arc<Self>, claim: JobClaim) {
        let claimed = tokio::select! {
            biased;
            claimed = self.long_poll(&claim) => claimed,
            () = self.notify.closed() => return,
        };
        let batch = {
            let mut queues = self.queues();
            let queue = queues.entry(claim.queue.clone()).or_default();
            // Before the notification: the worker may arm the next one at once.
            queue.poll = None;
            queue.buffered = claimed;
            queue.batch += 1;
            queue.batch
        };
        self.notify.send_modify(|count| *count += 1);
        tokio::spawn(self.clone().return_unclaimed(claim, batch));
    }

    /// Returns the buffered jobs that the worker has not taken within [`BUFFER_TIMEOUT`].
    async fn return_unclaimed(self: Arc<Self>, claim: JobClaim, batch: u64) {
        // At once if the worker has stopped.
        let _ = timeout(BUFFER_TIMEOUT, self.notify.closed()).await;
        let left = match self.queues().get_mut(&claim.queue) {
            Some(queue) if queue.batch == batch => std::mem::take(&mut queue.buffered.claimed.jobs),
            _ => Vec::new(),
        };
        if !left.is_empty() {
            self.return_jobs(&claim.worker, &left).await;
        }
    }

    /// Repeats the long poll until it returns jobs. Returns none after repeated failures: the worker's next claim fails too and logs the error.
    async fn long_poll(&self, claim: &JobClaim) -> Answer {
        let mut failures = 0;
        while failures < MAX_FAILED_POLLS {
            let started = Instant::now();
            match self.claim(claim, LONG_POLL).await {
                Ok(answer) if !answer.claimed.jobs.is_empty() => return answer,
                Ok(_) if started.elapsed() >= LONG_POLL / 2 => {
                    // The long poll ended without a job, as expected.
                    failures = 0;
                    continue;
                }
                Ok(_) => {
                    tracing::debug!("long poll returned early; the server may be stopping")
                }
                Err(error) => tracing::debug!(%error, "long poll failed"),
            }
            failures += 1;
            sleep(BACKOFF.delay(failures, fastrand::f64())).await;
        }
        Answer::default()
    }

    async fn return_jobs(&self, worker: &str, jobs: &[ClaimedJob]) {
        let returns: Vec<JobFinish> = jobs
            .iter()
            .map(|job| JobFinish {
                claim: job.claim(),
                end: JobEnd::Returned,
            })
            .collect();
        let (error, jobs) = match self.finish(worker, &returns).await {
            Err(error) => (error.to_string(), returns.len()),
            Ok(answers) => {
                let unwritten = |answer: &&JobFinished| **answer == JobFinished::NotWritten;
                let jobs = answers.iter().filter(unwritten).count();
                ("the server did not write them".to_owned(), jobs)
            }
        };
        if jobs > 0 {
            tracing::warn!(
                error,
                jobs,
                "failed to return claimed jobs; their leases will expire"
            );
        }
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<Vec<JobFinished>> {
        let batch = FinishBatch {
            worker: worker.to_owned(),
            finishes: finishes.iter().map(convert::finish).collect(),
        };
        let answer = self.client.job_finish(&batch).await?;
        if answer.finished.len() != finishes.len() {
            let text = "the number of answers differs from the number of finishes";
            return Err(ClientError::Unexpected(text.to_owned()));
        }
        Ok(answer.finished.iter().map(convert::finished).collect())
    }
}

#[async_trait]
impl JobSource for HttpSource {
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed> {
        if let Some(claimed) = self.0.claim_buffered(claim) {
            return Ok(claimed);
        }
        let answer = self.0.claim(claim, Duration::ZERO).await;
        answer.map(|answer| answer.claimed).map_err(failed)
    }

    async fn renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> SourceResult<JobsRenewed> {
        let renewal = LeaseRenewal {
            worker: worker.to_owned(),
            claims: claims
                .iter()
                .map(|claim| convert::claim_ref(*claim))
                .collect(),
            lease_ms: millis(lease),
        };
        let leases = self.0.client.job_renew(&renewal).await.map_err(failed)?;
        Ok(JobsRenewed {
            renewed: leases.held,
            busy: leases.busy,
        })
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinished>> {
        let finished = self.0.finish(worker, finishes).await;
        finished.map_err(failed)
    }

    async fn progress(
        &self,
        worker: &str,
        claim: JobRef,
        progress: &JsonText,
    ) -> SourceResult<bool> {
        let report = ProgressReport {
            worker: worker.to_owned(),
            id: claim.job,
            token: claim.token,
            progress: progress.clone(),
        };
        let held = self.0.client.job_progress(&report).await;
        held.map_err(failed)
    }

    async fn arm_notification(&self) -> SourceResult<bool> {
        for queue in self.0.queues().values_mut() {
            let idle = !queue.is_polling() && queue.buffered.claimed.jobs.is_empty();
            if let Some(claim) = queue.claim.clone().filter(|_| idle) {
                queue.poll = Some(tokio::spawn(self.0.clone().poll(claim)));
            }
        }
        Ok(true)
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.notify.subscribe()
    }
}

/// Converts an error for the worker: a call that the server finds invalid is rejected, all other errors are retryable.
fn failed(error: ClientError) -> SourceError {
    match error.code() {
        Some(Code::Invalid | Code::BodyTooLarge | Code::MalformedJson) => {
            SourceError::rejected(error)
        }
        _ => SourceError::unavailable(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_api::job::ClaimedJob as ApiJob;
    use leasehold_api::queue::Backoff as ApiBackoff;

    const QUEUE: &str = "emails";

    fn job(id: i64) -> ApiJob {
        ApiJob {
            id: leasehold_core::JobId(id),
            token: 1,
            kind: "send".to_owned(),
            payload: JsonText::default(),
            priority: 0,
            attempt: 1,
            max_attempts: 1,
            backoff: ApiBackoff {
                base_ms: 1,
                factor: 1.0,
                max_ms: 1,
                jitter: 0.0,
            },
            timeout_ms: None,
            progress: None,
            last_error: None,
            trace_context: None,
            created_at: "2026-03-01T12:00:00Z".parse().unwrap(),
            lease_ms: 30_000,
            lease_expires_at: "2026-03-01T12:00:30Z".parse().unwrap(),
        }
    }

    #[tokio::test]
    async fn buffered_job_is_as_old_as_its_poll() {
        let source = HttpSource::new(Client::new("http://127.0.0.1:1", "key").unwrap());
        let sent = Instant::now().checked_sub(Duration::from_secs(50)).unwrap();
        let answer = ClaimedJobs {
            jobs: vec![job(1), job(2)],
            at_limit: false,
            next_due_in_ms: None,
            waited_ms: 29_000,
        };
        let queue = Queue {
            buffered: Answer::new(sent, answer),
            ..Queue::default()
        };
        source.0.queues().insert(QUEUE.to_owned(), queue);
        let claim = JobClaim {
            queue: QUEUE.to_owned(),
            worker: "w".to_owned(),
            max: 1,
            lease: None,
        };
        for id in [1, 2] {
            let waited = Duration::from_secs(29);
            let least = sent.elapsed().checked_sub(waited).unwrap();
            let claimed = source.claim(&claim).await.unwrap();
            let most = sent.elapsed().checked_sub(waited).unwrap();
            assert_eq!(claimed.jobs[0].id, leasehold_core::JobId(id));
            let age = claimed.lease_age;
            assert!((least..=most).contains(&age), "{age:?}");
        }
    }
}
