//! Claims jobs, and requeues or fails jobs whose leases expired.

use super::queue_cache;
use super::row::{self, Json};
use crate::graph::input;
use crate::pool;
use crate::row::{micros, named};
use crate::store::{Params, PostgresStore, sql};
use leasehold_core::job::{ClaimedJob, JobClaim, JobRef, JobRetry, JobsClaimed};
use leasehold_core::lease::bounded;
use leasehold_core::limits::{JOB_MAX_BATCH, SWEEP_MAX_BATCH};
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, Timestamp};
use leasehold_store::job::{ExpiredJob, JobStore};
use leasehold_store::node_payload::{self, ClaimedNodes};
use leasehold_store::{EpochId, Result};
use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::Duration;
use tokio_postgres::Row;

const CONTEXT: &str = "job_claim";
/// Expired leases that one claim handles at most.
const MAX_EXPIRED: i32 = 10_000;

pub(crate) async fn claim(store: &PostgresStore, claim: &JobClaim) -> Result<JobsClaimed> {
    // Claims of a queue run one at a time. Waiting claims must leave connections for renewals and finishes.
    let _permit = store.jobs.claims.acquire().await;
    let client = pool::take(&store.pool, CONTEXT).await?;
    let Some(queue) = queue_cache::find(store, &client, &claim.queue).await? else {
        return Ok(JobsClaimed::default());
    };
    let max = claim
        .max
        .min(u32::try_from(JOB_MAX_BATCH).unwrap_or(u32::MAX));
    let max = i32::try_from(max).unwrap_or(i32::MAX);
    let lease = claim.lease.map(|lease| micros(bounded(lease)));
    let epoch = client.epoch_id();
    let scans = scans_for_expired(store, epoch);
    let expired_from = if scans {
        begin_scan(store, epoch)
    } else {
        None
    };
    let expired_max = if scans { MAX_EXPIRED } else { 0 };
    let rows = client
        .session()
        .many(
            sql!("job/claim"),
            &[
                &store.given_now(),
                &queue,
                &claim.worker,
                &max,
                &lease,
                &expired_from,
                &expired_max,
                &claim.queue,
                &client.job_xid_offset(),
            ],
        )
        .await?;
    let Some((summary, rows)) = rows.split_first() else {
        // The queue is paused, or has another id.
        queue_cache::of(store, &client).forget(&claim.queue);
        return Ok(JobsClaimed::default());
    };
    drop(client);
    let defaults = ClaimDefaults::read(summary)?;
    let expired: i32 = summary.get("expired");
    if scans && expired < MAX_EXPIRED {
        complete_scan(store, epoch, defaults.lease_expires_at - defaults.lease);
    }
    if expired > 0 {
        tracing::warn!(jobs = expired, "leases expired; jobs requeued or failed");
        store.job_notifier.wake();
    }
    if !rows.is_empty() {
        store.job_notifier.jobs_found();
    }
    let at_limit: bool = summary.get("at_limit");
    if at_limit {
        store.job_notifier.limit_reached();
    }
    let jobs = rows.iter().map(|row| defaults.claimed(row));
    let jobs: Vec<ClaimedJob> = jobs.collect::<Result<_>>()?;
    Ok(JobsClaimed {
        jobs: with_payloads(store, &claim.worker, jobs).await?,
        at_limit,
        next_due_in: summary
            .get::<_, Option<i64>>("next_due_us")
            .map(|us| Duration::from_micros(u64::try_from(us).unwrap_or(0))),
    })
}

/// Builds the payloads of the jobs of graphs; others keep theirs. The claim took as many as it may read and build.
async fn with_payloads(
    store: &PostgresStore,
    worker: &str,
    mut jobs: Vec<ClaimedJob>,
) -> Result<Vec<ClaimedJob>> {
    let referring = node_payload::referring(&jobs);
    if referring.is_empty() {
        return Ok(jobs);
    }
    let (nodes, existing) = input::claimed_nodes(store, CONTEXT, &referring).await?;
    // The execution of a deleted job has ended since.
    let gone: HashSet<JobId> = referring.into_iter().collect();
    let gone: HashSet<JobId> = &gone - &existing.into_iter().collect();
    jobs.retain(|job| !gone.contains(&job.id));
    let markers = store.crash_markers.clone();
    let build = move |nodes: &ClaimedNodes| input::payloads(&markers, nodes);
    let failed = node_payload::fill(&mut jobs, nodes, build).await;
    if !failed.is_empty() {
        store.job_finish(worker, &failed).await?;
        store.job_notifier.wake();
    }
    Ok(jobs)
}

/// Whether this claim scans for expired leases. With a manual clock every claim does.
fn scans_for_expired(store: &PostgresStore, epoch: Option<EpochId>) -> bool {
    let scan = store.jobs.expiry_scan.of(epoch);
    let scan = scan.lock().unwrap_or_else(PoisonError::into_inner);
    store.given_now().is_some() || scan.is_due()
}

/// Starts a scan for expired leases and returns where it begins. With a manual clock it begins at the beginning.
fn begin_scan(store: &PostgresStore, epoch: Option<EpochId>) -> Option<Timestamp> {
    if store.given_now().is_some() {
        return None;
    }
    let scan = store.jobs.expiry_scan.of(epoch);
    scan.lock().unwrap_or_else(PoisonError::into_inner).begin()
}

fn complete_scan(store: &PostgresStore, epoch: Option<EpochId>, at: Timestamp) {
    let scan = store.jobs.expiry_scan.of(epoch);
    let mut scan = scan.lock().unwrap_or_else(PoisonError::into_inner);
    scan.complete(at);
}

/// The queue's settings, for jobs of a claim without their own.
struct ClaimDefaults {
    retry: JobRetry,
    timeout: Option<Duration>,
    lease: Duration,
    lease_expires_at: Timestamp,
}

impl ClaimDefaults {
    fn read(summary: &Row) -> Result<Self> {
        Ok(Self {
            retry: row::retry(summary),
            timeout: row::timeout(summary),
            lease: row::duration(summary.get("lease_us")),
            lease_expires_at: crate::row::time(summary, "lease_expires_at")?,
        })
    }

    /// Reads columns by position: a claim may return thousands of rows.
    fn claimed(&self, row: &Row) -> Result<ClaimedJob> {
        let default = &self.retry.backoff;
        Ok(ClaimedJob {
            id: JobId(row.get(0)),
            token: row.get(1),
            attempt: row::count(row.get(2)),
            priority: row.get(3),
            created_at: row
                .try_get(4)
                .map_err(|error| crate::error::unreadable("reading a time", error))?,
            kind: row.get(5),
            group: row.get(16),
            payload: row.get::<_, Json>(6).0,
            retry: JobRetry {
                max_attempts: row
                    .get::<_, Option<i32>>(7)
                    .map_or(self.retry.max_attempts, row::count),
                backoff: Backoff {
                    base: row
                        .get::<_, Option<i64>>(8)
                        .map_or(default.base, row::duration),
                    max: row
                        .get::<_, Option<i64>>(9)
                        .map_or(default.max, row::duration),
                    factor: row.get::<_, Option<f64>>(10).unwrap_or(default.factor),
                    jitter: row.get::<_, Option<f64>>(11).unwrap_or(default.jitter),
                },
            },
            timeout: row
                .get::<_, Option<i64>>(12)
                .map(row::duration)
                .or(self.timeout),
            trace_context: row.get(13),
            progress: row.get::<_, Option<Json>>(14).map(|json| json.0),
            last_error: row.get(15),
            lease: self.lease,
            lease_expires_at: self.lease_expires_at,
        })
    }
}

pub(crate) async fn requeue_expired(store: &PostgresStore, limit: u32) -> Result<Vec<ExpiredJob>> {
    let context = "job_requeue_expired";
    let limit = i32::try_from(limit.min(SWEEP_MAX_BATCH)).unwrap_or(i32::MAX);
    let client = pool::take(&store.pool, context).await?;
    let epoch = client.epoch_id();
    let params: &Params<'_> = &[
        &store.given_now(),
        &begin_scan(store, epoch),
        &limit,
        &client.job_xid_offset(),
    ];
    let rows = client
        .session()
        .many(sql!("job/requeue_expired"), params)
        .await?;
    drop(client);
    let expired: Vec<ExpiredJob> = rows
        .iter()
        .filter(|row| row.get::<_, Option<i64>>("id").is_some())
        .map(|row| {
            Ok(ExpiredJob {
                claim: JobRef {
                    job: JobId(row.get("id")),
                    token: row.get("token"),
                },
                queue: row.get("queue"),
                worker: row.get("worker"),
                status: named(row, "status")?,
            })
        })
        .collect::<Result<_>>()?;
    if let Some(row) = rows.first()
        && i32::try_from(expired.len()).unwrap_or(i32::MAX) < limit
    {
        complete_scan(store, epoch, crate::row::time(row, "now")?);
    }
    if !expired.is_empty() {
        store.job_notifier.wake();
    }
    Ok(expired)
}
