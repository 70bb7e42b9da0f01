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
use leasehold_api::job::{ClaimOptions, FinishBatch, LeaseRenewal, ProgressReport};
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
    buffered: JobsClaimed,
    /// Number of long polls that returned jobs; identifies the buffered batch.
    batch: u64,
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
        let count = queue.buffered.jobs.len().min(claim.max as usize);
        if count == 0 {
            return queue.is_polling().then(JobsClaimed::default);
        }
        Some(JobsClaimed {
            jobs: queue.buffered.jobs.drain(..count).collect(),
            at_limit: queue.buffered.at_limit,
            next_due_in: None,
        })
    }

    async fn claim(&self, claim: &JobClaim, wait: Duration) -> Result<JobsClaimed> {
        let options = ClaimOptions {
            worker: claim.worker.clone(),
            max: claim.max.min(HTTP_CLAIM_MAX_JOBS),
            lease_ms: claim.lease.map(millis),
            wait_ms: millis(wait),
        };
        let claimed = self.client.job_claim(&claim.queue, &options).await?;
        Ok(convert::claimed(claimed))
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
            Some(queue) if queue.batch == batch => std::mem::take(&mut queue.buffered.jobs),
            _ => Vec::new(),
        };
        if !left.is_empty() {
            self.return_jobs(&claim.worker, &left).await;
        }
    }

    /// Repeats the long poll until it returns jobs. Returns none after repeated failures: the worker's next claim fails too and logs the error.
    async fn long_poll(&self, claim: &JobClaim) -> JobsClaimed {
        let mut failures = 0;
        while failures < MAX_FAILED_POLLS {
            let started = Instant::now();
            match self.claim(claim, LONG_POLL).await {
                Ok(claimed) if !claimed.jobs.is_empty() => return claimed,
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
        JobsClaimed::default()
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
        let claimed = self.0.claim(claim, Duration::ZERO).await;
        claimed.map_err(failed)
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
            let idle = !queue.is_polling() && queue.buffered.jobs.is_empty();
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
