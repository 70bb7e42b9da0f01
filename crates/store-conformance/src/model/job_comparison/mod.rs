//! Compares a store with the model on jobs: applies each operation to both, then compares everything. Where a store may
//! choose (ids, tokens, which expired leases it takes back), the model adopts its choice.

mod compare;
mod op;
mod store_choices;

pub(super) use compare::{determined, is_same_json};
pub(super) use op::job_op;

use super::Model;
use super::comparison::{Mismatch, answer, same};
use crate::Fixture;
use leasehold_core::job::{JobClaim, JobEnd, JobFinish, JobRef, JobRetry, RetryMode};
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::job::{Dedup, JobPrune, JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use leasehold_store::{Result as StoreResult, Store};
use op::{ClaimFault, End, JobOp, JobPick, Start};
use serde_json::json;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

const QUEUES: [&str; 2] = ["mail", "other"];

/// A backoff without jitter, which has its own case.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_secs(2),
    factor: 2.0,
    max: Duration::from_secs(20),
    jitter: 0.0,
};

fn seconds(n: u8) -> Duration {
    Duration::from_secs(u64::from(n))
}

fn queue(n: u8) -> &'static str {
    QUEUES[usize::from(n) % QUEUES.len()]
}

/// A store, its model and the clock they share.
pub(super) struct JobComparison {
    real: Fixture,
    model: Fixture,
    inner: Arc<Model>,
}

impl JobComparison {
    /// Creates one queue in both; the first use creates the other.
    pub(super) async fn new(real: Fixture) -> Result<Self, Mismatch> {
        let inner = Arc::new(Model::new(real.clock.clone()));
        let model = Fixture::new(inner.clone(), real.clock.clone());
        let comparison = Self { real, model, inner };
        let change = QueueChange {
            retry: Some(JobRetry {
                max_attempts: 3,
                backoff: BACKOFF,
            }),
            ..QueueChange::default()
        };
        comparison.set_queue(QUEUES[0], change).await?;
        Ok(comparison)
    }

    /// Applies `op` to both and compares them.
    pub(super) async fn step(&mut self, op: &JobOp) -> Result<(), Mismatch> {
        self.apply(op).await?;
        self.compare().await
    }

    /// Makes the same call on both and compares the results.
    async fn both<T: PartialEq + Debug>(
        &self,
        what: &str,
        call: impl AsyncFn(&dyn Store) -> StoreResult<T>,
    ) -> Result<T, Mismatch> {
        let real = answer(what, call(&*self.real.store).await)?;
        let model = answer(what, call(&*self.inner).await)?;
        same(what, &real, &model)?;
        Ok(real)
    }

    async fn apply(&self, op: &JobOp) -> Result<(), Mismatch> {
        match op {
            JobOp::Enqueue { .. } => self.enqueue(&self.new_jobs(op)).await,
            JobOp::Claim {
                queue: from,
                worker,
                max,
                lease,
            } => {
                let claim = JobClaim {
                    queue: queue(*from).into(),
                    worker: format!("worker-{worker}"),
                    max: *max,
                    lease: lease.map(seconds),
                };
                self.claim(&claim).await
            }
            JobOp::Renew { picks, lease } => self.renew(picks, seconds(*lease)).await,
            JobOp::Finish { picks } => self.finish(picks).await,
            JobOp::Progress { pick } => self.progress(*pick).await,
            JobOp::Sweep { limit } => self.sweep(*limit).await,
            JobOp::Cancel { job } => self.cancel(*job).await,
            JobOp::SetQueue { .. } | JobOp::SetLimit { .. } => self.set(op).await,
            JobOp::Advance { seconds } => {
                self.real.advance(u64::from(*seconds));
                Ok(())
            }
            JobOp::Prune { completed, failed } => {
                let before = |age: u8| self.real.now() - seconds(age);
                let prune = JobPrune {
                    completed_before: completed.map(before),
                    failed_before: failed.map(before),
                    limit: 1_000,
                };
                let call = async |store: &dyn Store| store.job_prune(&prune).await;
                self.both("job_prune", call).await.map(drop)
            }
        }
    }

    fn new_jobs(&self, op: &JobOp) -> Vec<NewJob> {
        let JobOp::Enqueue {
            queue: to,
            n,
            group,
            priority,
            start,
            key,
            window,
            max_attempts,
        } = *op
        else {
            return Vec::new();
        };
        let start = match start {
            Start::Now => JobStart::Now,
            Start::In(wait) => JobStart::In(seconds(wait)),
            Start::Ago(ago) => JobStart::At(self.real.now() - seconds(ago)),
        };
        let new = (0..n).map(|i| NewJob {
            group: group.map(|group| format!("group-{}", (group + i) % 4)),
            priority,
            start,
            max_attempts,
            backoff: Some(BACKOFF),
            dedup: key.map(|key| Dedup {
                key: format!("key-{}", (key + i) % 3),
                window: window.map(seconds),
            }),
            ..NewJob::new(queue(to), "send", JsonText::from(&json!({"n": i})))
        });
        new.collect()
    }

    async fn set(&self, op: &JobOp) -> Result<(), Mismatch> {
        match *op {
            JobOp::SetQueue {
                queue: which,
                limit,
                group_limit,
                paused,
                keep,
                max_attempts,
            } => {
                let change = QueueChange {
                    limit,
                    group_limit,
                    paused,
                    keep_completed: keep,
                    lease: None,
                    retry: max_attempts.map(|max_attempts| JobRetry {
                        max_attempts,
                        backoff: BACKOFF,
                    }),
                    timeout: None,
                };
                self.set_queue(queue(which), change).await
            }
            JobOp::SetLimit { limit } => {
                let set = async |store: &dyn Store| {
                    store
                        .job_limit_set(limit, &leasehold_store::Actor::Local)
                        .await
                };
                self.both("job_limit_set", set).await
            }
            _ => Ok(()),
        }
    }

    async fn set_queue(&self, name: &str, change: QueueChange) -> Result<(), Mismatch> {
        let update = async |store: &dyn Store| {
            store
                .queue_update(name, &change, &leasehold_store::Actor::Local)
                .await
        };
        self.both("queue_update", update).await.map(drop)
    }

    async fn renew(&self, picks: &[JobPick], lease: Duration) -> Result<(), Mismatch> {
        let claims: Vec<_> = picks.iter().filter_map(|p| self.claim_of(*p)).collect();
        let Some((worker, _)) = claims.first().cloned() else {
            return Ok(());
        };
        let mut claims: Vec<JobRef> = claims.into_iter().map(|(_, claim)| claim).collect();
        claims.sort_unstable();
        claims.dedup();
        let renew = async |store: &dyn Store| {
            let mut held = store.job_renew(&worker, &claims, lease).await?.renewed;
            held.sort_unstable();
            Ok(held)
        };
        self.both("job_renew", renew).await.map(drop)
    }

    async fn finish(&self, picks: &[(JobPick, End)]) -> Result<(), Mismatch> {
        let mut worker = None;
        let mut finishes = Vec::new();
        for (pick, end) in picks {
            let Some((by, claim)) = self.claim_of(*pick) else {
                continue;
            };
            worker.get_or_insert(by);
            let end = job_end(*end);
            finishes.push(JobFinish { claim, end });
        }
        let Some(worker) = worker else { return Ok(()) };
        let finish = async |store: &dyn Store| store.job_finish(&worker, &finishes).await;
        self.both("job_finish", finish).await.map(drop)
    }

    async fn progress(&self, pick: JobPick) -> Result<(), Mismatch> {
        let Some((worker, claim)) = self.claim_of(pick) else {
            return Ok(());
        };
        let progress = JsonText::from(&json!({"done": pick.n}));
        let report = async |store: &dyn Store| store.job_progress(&worker, claim, &progress).await;
        self.both("job_progress", report).await.map(drop)
    }

    async fn cancel(&self, n: u8) -> Result<(), Mismatch> {
        let ids: Vec<JobId> = self
            .inner
            .jobs(|jobs, _| jobs.rows.keys().copied().collect());
        let id = ids.get(usize::from(n) % ids.len().max(1));
        let id = id.copied().unwrap_or(JobId(1_000_000));
        let cancel = async |store: &dyn Store| store.job_cancel(id).await;
        self.both("job_cancel", cancel).await.map(drop)
    }

    /// The claim of an operation, and the worker that uses it.
    fn claim_of(&self, pick: JobPick) -> Option<(String, JobRef)> {
        self.inner.jobs(|jobs, _| {
            let fits = |status| pick.fault == ClaimFault::AnyStatus || status == JobStatus::Running;
            let rows: Vec<_> = jobs.rows.iter().filter(|(_, r)| fits(r.status)).collect();
            let (id, row) = rows.get(usize::from(pick.n) % rows.len().max(1))?;
            let worker = match (pick.fault, &row.lease) {
                (ClaimFault::WrongWorker, _) | (_, None) => "stranger".to_owned(),
                (_, Some(lease)) => lease.worker.clone(),
            };
            let claim = JobRef {
                job: **id,
                token: row.token - i64::from(pick.fault == ClaimFault::OldToken),
            };
            Some((worker, claim))
        })
    }
}

fn job_end(end: End) -> JobEnd {
    let failed = |retry_mode| JobEnd::Failed {
        error: "it broke".into(),
        retry_mode,
    };
    match end {
        End::Completed(result) => JobEnd::Completed {
            result: result.then(|| JsonText::from(&json!({"sent": true}))),
        },
        End::Again => failed(RetryMode::Policy),
        End::AgainAfter(wait) => failed(RetryMode::After(seconds(wait))),
        End::Never => failed(RetryMode::Never),
        End::Snoozed(wait) => JobEnd::Snoozed(seconds(wait)),
        End::GivenBack => JobEnd::Returned,
    }
}
