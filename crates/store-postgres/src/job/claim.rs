//! Claiming, and what happens to leases that nobody renewed.

use super::names;
use super::row::{self, Json};
use crate::row::{micros, named};
use crate::store::{PostgresStore, sql};
use leasehold_core::job::{ClaimedJob, JobClaim, JobRef, JobRetry, JobsClaimed};
use leasehold_core::lease::bounded;
use leasehold_core::limits::{JOB_MAX_BATCH, SWEEP_MAX_BATCH};
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, Timestamp};
use leasehold_store::Result;
use leasehold_store::job::ExpiredJob;
use std::sync::PoisonError;
use std::time::Duration;
use tokio_postgres::Row;

const CONTEXT: &str = "job_claim";
/// Expired leases that one claim takes back at most.
const EXPIRED_AT_ONCE: i32 = 10_000;

pub(crate) async fn claim(store: &PostgresStore, claim: &JobClaim) -> Result<JobsClaimed> {
    let Some(queue) = names::find(store, CONTEXT, &claim.queue).await? else {
        return Ok(JobsClaimed::default());
    };
    // One claim of a queue runs at a time anyway; those that wait must leave connections for whoever renews and finishes.
    let _turn = store.jobs.claims.acquire().await;
    if store.jobs.settling.is_due() {
        settle_in(store).await?;
    }
    let max = claim
        .max
        .min(u32::try_from(JOB_MAX_BATCH).unwrap_or(u32::MAX));
    let max = i32::try_from(max).unwrap_or(i32::MAX);
    let lease = claim.lease.map(|lease| micros(bounded(lease)));
    let looks = looks_for_expired(store);
    let expired_from = if looks { expired_from(store) } else { None };
    let expired_max = if looks { EXPIRED_AT_ONCE } else { 0 };
    let rows = store
        .many(
            CONTEXT,
            sql!("job/claim"),
            &[
                &store.given_now(),
                &queue,
                &claim.worker,
                &max,
                &lease,
                &expired_from,
                &expired_max,
            ],
        )
        .await?;
    let Some((about, rows)) = rows.split_first() else {
        return Ok(JobsClaimed::default());
    };
    let terms = Terms::read(about)?;
    let expired: i32 = about.get("expired");
    if looks && expired < EXPIRED_AT_ONCE {
        looked(store, terms.lease_expires_at - terms.lease);
    }
    if expired > 0 {
        tracing::warn!(
            jobs = expired,
            "leases had expired; their jobs are taken back"
        );
        store.job_wakes.ring();
    }
    if !rows.is_empty() {
        store.job_wakes.awake();
    }
    let at_limit: bool = about.get("at_limit");
    if at_limit {
        store.job_wakes.held_back();
    }
    Ok(JobsClaimed {
        jobs: rows
            .iter()
            .map(|row| terms.claimed(row))
            .collect::<Result<_>>()?,
        at_limit,
        next_due_in: about
            .get::<_, Option<i64>>("next_due_us")
            .map(|us| Duration::from_micros(u64::try_from(us).unwrap_or(0))),
    })
}

async fn settle_in(store: &PostgresStore) -> Result<()> {
    let row = store.one(CONTEXT, sql!("job/settle_in"), &[]).await?;
    if row.get("moved") {
        tracing::warn!(
            "the database's rows came from another cluster; the order of queued jobs was set right"
        );
    }
    store.jobs.settling.done();
    Ok(())
}

/// Whether this claim looks for expired leases; where a test turns the clock each does.
fn looks_for_expired(store: &PostgresStore) -> bool {
    let expiry = store
        .jobs
        .expiry
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    store.given_now().is_some() || expiry.is_due()
}

/// From where to look for expired leases; a test that turns the clock looks at all.
fn expired_from(store: &PostgresStore) -> Option<Timestamp> {
    if store.given_now().is_some() {
        return None;
    }
    let mut expiry = store
        .jobs
        .expiry
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    expiry.from()
}

fn looked(store: &PostgresStore, at: Timestamp) {
    let mut expiry = store
        .jobs
        .expiry
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    expiry.looked(at);
}

/// What holds for all jobs of a claim unless they say otherwise.
struct Terms {
    retry: JobRetry,
    timeout: Option<Duration>,
    lease: Duration,
    lease_expires_at: Timestamp,
}

impl Terms {
    fn read(about: &Row) -> Result<Self> {
        Ok(Self {
            retry: row::retry(about),
            timeout: row::timeout(about),
            lease: row::duration(about.get("lease_us")),
            lease_expires_at: crate::row::time(about, "lease_expires_at")?,
        })
    }

    /// By position: a claim may bring thousands.
    fn claimed(&self, row: &Row) -> Result<ClaimedJob> {
        let own = &self.retry.backoff;
        Ok(ClaimedJob {
            id: JobId(row.get(0)),
            token: row.get(1),
            attempt: row::count(row.get(2)),
            priority: row.get(3),
            created_at: row
                .try_get(4)
                .map_err(|error| crate::error::unreadable("reading a time", error))?,
            kind: row.get(5),
            payload: row.get::<_, Json>(6).0,
            retry: JobRetry {
                max_attempts: row
                    .get::<_, Option<i32>>(7)
                    .map_or(self.retry.max_attempts, row::count),
                backoff: Backoff {
                    base: row.get::<_, Option<i64>>(8).map_or(own.base, row::duration),
                    max: row.get::<_, Option<i64>>(9).map_or(own.max, row::duration),
                    factor: row.get::<_, Option<f64>>(10).unwrap_or(own.factor),
                    jitter: row.get::<_, Option<f64>>(11).unwrap_or(own.jitter),
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
    let rows = store
        .many(
            context,
            sql!("job/requeue_expired"),
            &[&store.given_now(), &expired_from(store), &limit],
        )
        .await?;
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
        looked(store, crate::row::time(row, "now")?);
    }
    if !expired.is_empty() {
        store.job_wakes.ring();
    }
    Ok(expired)
}
