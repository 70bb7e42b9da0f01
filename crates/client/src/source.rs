//! The jobs of a server over HTTP as a source for workers. Knows no handler.
//!
//! A worker looks with short claims while there is work. When it has nothing to do it arms: then one long poll a queue waits at the server, and a look meanwhile
//! costs nothing, since the server would have answered. What a long poll brings is laid down here, the bell rings, and the worker's next look takes it. An idle
//! worker so makes one call a queue every half minute, and begins a new job as soon as one over a connection that waits can.
//!
//! A worker that stops drops its end of the bell. A long poll that waits then is broken off, by which the server knows that nobody wants its jobs; what was laid
//! down and not taken is given back.

use crate::client::Client;
use crate::error::{ClientError, Result};
use crate::shapes;
use async_trait::async_trait;
use leasehold_api::Code;
use leasehold_api::job::{Claim, FinishMany, Progress, Renew};
use leasehold_core::duration::millis;
use leasehold_core::job::{
    ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, JobRef, JobsClaimed,
};
use leasehold_core::limits::HTTP_CLAIM_MAX_JOBS;
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, JsonText};
use leasehold_worker::{JobSource, SourceError, SourceResult};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// How long a long poll waits at the server.
const POLL_FOR: Duration = Duration::from_secs(30);
/// How long jobs that a long poll brought may lie here. A worker that is woken takes them at once; one that is busy with other queues does not.
const LIE_FOR: Duration = Duration::from_millis(500);
/// Long polls that may fail in a row.
const POLLS_THAT_FAIL: u32 = 2;
/// The waits between long polls that do not succeed.
const WAITS: Backoff = Backoff {
    base: Duration::from_millis(200),
    factor: 2.0,
    max: Duration::from_secs(5),
    jitter: 0.5,
};

/// The jobs of a server, for one worker: `Worker::of(Arc::new(HttpSource::new(client)))`.
pub struct HttpSource(Arc<Inner>);

struct Inner {
    client: Client,
    bell: watch::Sender<u64>,
    queues: Mutex<HashMap<String, Queue>>,
}

#[derive(Default)]
struct Queue {
    /// The last claim, which a long poll repeats.
    claim: Option<JobClaim>,
    poll: Option<JoinHandle<()>>,
    brought: JobsClaimed,
    /// How often long polls brought something.
    times: u64,
}

impl Queue {
    fn polls(&self) -> bool {
        self.poll.as_ref().is_some_and(|poll| !poll.is_finished())
    }
}

impl HttpSource {
    /// The jobs that this client's key opens.
    pub fn new(client: Client) -> Self {
        let (bell, _) = watch::channel(0);
        Self(Arc::new(Inner {
            client,
            bell,
            queues: Mutex::default(),
        }))
    }
}

impl Inner {
    fn queues(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a look finds without asking the server; none if the server must be asked.
    fn at_hand(&self, claim: &JobClaim) -> Option<JobsClaimed> {
        let mut queues = self.queues();
        let queue = queues.entry(claim.queue.clone()).or_default();
        queue.claim = Some(claim.clone());
        let count = queue.brought.jobs.len().min(claim.max as usize);
        if count == 0 {
            return queue.polls().then(JobsClaimed::default);
        }
        Some(JobsClaimed {
            jobs: queue.brought.jobs.drain(..count).collect(),
            at_limit: queue.brought.at_limit,
            next_due_in: None,
        })
    }

    async fn claim(&self, claim: &JobClaim, wait: Duration) -> Result<JobsClaimed> {
        let asked = Claim {
            worker: claim.worker.clone(),
            max: claim.max.min(HTTP_CLAIM_MAX_JOBS),
            lease_ms: claim.lease.map(millis),
            wait_ms: millis(wait),
        };
        let claimed = self.client.job_claim(&claim.queue, &asked).await?;
        Ok(shapes::claimed(claimed))
    }

    /// Waits until the server has jobs and lays them down; or until nobody hears the bell any more.
    async fn poll(self: Arc<Self>, claim: JobClaim) {
        let claimed = tokio::select! {
            biased;
            claimed = self.persist(&claim) => claimed,
            () = self.bell.closed() => return,
        };
        let time = {
            let mut queues = self.queues();
            let queue = queues.entry(claim.queue.clone()).or_default();
            // Before it rings: whoever is woken may want the next one at once.
            queue.poll = None;
            queue.brought = claimed;
            queue.times += 1;
            queue.times
        };
        self.bell.send_modify(|rings| *rings += 1);
        tokio::spawn(self.clone().take_up(claim, time));
    }

    /// Gives back what a long poll laid down and nobody took.
    async fn take_up(self: Arc<Self>, claim: JobClaim, time: u64) {
        // Earlier if nobody will.
        let _ = timeout(LIE_FOR, self.bell.closed()).await;
        let left = match self.queues().get_mut(&claim.queue) {
            Some(queue) if queue.times == time => std::mem::take(&mut queue.brought.jobs),
            _ => Vec::new(),
        };
        if !left.is_empty() {
            self.give_back(&claim.worker, &left).await;
        }
    }

    /// Long polls until one brings something. Empty-handed if they do not succeed: the worker's own look meets the same, and says so.
    async fn persist(&self, claim: &JobClaim) -> JobsClaimed {
        let mut failures = 0;
        while failures < POLLS_THAT_FAIL {
            let asked = Instant::now();
            match self.claim(claim, POLL_FOR).await {
                Ok(claimed) if !claimed.jobs.is_empty() => return claimed,
                Ok(_) if asked.elapsed() >= POLL_FOR / 2 => {
                    // As it should be: there was nothing for so long.
                    failures = 0;
                    continue;
                }
                Ok(_) => {
                    tracing::debug!("the server did not wait for jobs; it may be about to stop")
                }
                Err(error) => tracing::debug!(%error, "waiting for jobs did not succeed"),
            }
            failures += 1;
            sleep(WAITS.delay(failures, fastrand::f64())).await;
        }
        JobsClaimed::default()
    }

    async fn give_back(&self, worker: &str, jobs: &[ClaimedJob]) {
        let back: Vec<JobFinish> = jobs
            .iter()
            .map(|job| JobFinish {
                claim: job.claim(),
                end: JobEnd::GivenBack,
            })
            .collect();
        let (error, jobs) = match self.finish(worker, &back).await {
            Err(error) => (error.to_string(), back.len()),
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
                "claimed jobs could not be given back; their leases run out"
            );
        }
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<Vec<JobFinished>> {
        let asked = FinishMany {
            worker: worker.to_owned(),
            finishes: finishes.iter().map(shapes::finish).collect(),
        };
        let answer = self.client.job_finish(&asked).await?;
        if answer.finished.len() != finishes.len() {
            let text = "there are more or fewer answers than finishes";
            return Err(ClientError::Unexpected(text.to_owned()));
        }
        Ok(answer.finished.iter().map(shapes::finished).collect())
    }
}

#[async_trait]
impl JobSource for HttpSource {
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed> {
        if let Some(claimed) = self.0.at_hand(claim) {
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
    ) -> SourceResult<Vec<JobId>> {
        let asked = Renew {
            worker: worker.to_owned(),
            claims: claims
                .iter()
                .map(|claim| shapes::claim_ref(*claim))
                .collect(),
            lease_ms: millis(lease),
        };
        let held = self.0.client.job_renew(&asked).await;
        held.map_err(failed)
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
        let asked = Progress {
            worker: worker.to_owned(),
            id: claim.job,
            token: claim.token,
            progress: progress.clone(),
        };
        let held = self.0.client.job_progress(&asked).await;
        held.map_err(failed)
    }

    async fn arm(&self) -> SourceResult<bool> {
        for queue in self.0.queues().values_mut() {
            let idle = !queue.polls() && queue.brought.jobs.is_empty();
            if let Some(claim) = queue.claim.clone().filter(|_| idle) {
                queue.poll = Some(tokio::spawn(self.0.clone().poll(claim)));
            }
        }
        Ok(true)
    }

    fn bell(&self) -> watch::Receiver<u64> {
        self.0.bell.subscribe()
    }
}

/// What an answer that is no success means for a worker: a call that the server finds invalid stays so; everything else may pass.
fn failed(error: ClientError) -> SourceError {
    match error.code() {
        Some(Code::Invalid | Code::BodyTooLarge | Code::MalformedJson) => {
            SourceError::rejected(error)
        }
        _ => SourceError::unavailable(error),
    }
}
