//! Renews all leases, one statement per heartbeat for all leases of the same length, and cancels the handlers of lost leases. Reads only the monotonic clock.

use crate::leased_job::LeasedJob;
use crate::shared::Shared;
use futures::future::join_all;
use leasehold_core::JobId;
use leasehold_core::job::{JobRef, JobsRenewed};
use leasehold_core::lease::{DEFAULT_LEASE, heartbeat_interval};
use leasehold_core::limits::JOB_MAX_BATCH;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut lease = shared.options.lease.unwrap_or(DEFAULT_LEASE);
    let mut last = Instant::now();
    let mut at_once = false;
    loop {
        let next = if at_once {
            last
        } else {
            last + heartbeat_interval(lease)
        };
        tokio::select! {
            () = sleep_until(next) => {}
            () = shared.old_lease.notified() => {}
            () = shared.shorter_lease.notified() => {
                lease = shortest(&shared.state.leases()).map_or(lease, |shortest| shortest.min(lease));
                continue;
            }
        }
        last = Instant::now();
        at_once = heartbeat(&shared, heartbeat_interval(lease)).await;
    }
}

fn shortest(jobs: &[Arc<LeasedJob>]) -> Option<Duration> {
    jobs.iter().map(|job| job.claimed.lease).min()
}

/// Renews all leases. A lease that expires by the local clock meanwhile is lost, whatever the statement returns. Returns whether a claim meanwhile needs the
/// next heartbeat at once.
async fn heartbeat(shared: &Shared, interval: Duration) -> bool {
    let mut at_once = false;
    let renewals = renew_all(shared, interval);
    tokio::pin!(renewals);
    loop {
        expire(shared);
        let jobs = shared.state.leases();
        let running = jobs.iter().filter(|job| !job.is_done());
        let first_end = running.map(|job| job.lease_end()).min();
        // Leases claimed meanwhile end no sooner than one interval from now, or are notified as old.
        let next_check = Instant::now() + interval;
        tokio::select! {
            () = &mut renewals => return at_once,
            () = shared.old_lease.notified() => at_once = true,
            () = sleep_until(first_end.map_or(next_check, |end| end.min(next_check))) => {}
        }
    }
}

/// Marks every lease as lost that has expired by the local clock.
fn expire(shared: &Shared) {
    let now = Instant::now();
    for job in shared.state.leases() {
        if !job.is_leased(now) {
            shared.lose_lease(&job, "heartbeat_failed");
        }
    }
}

async fn renew_all(shared: &Shared, interval: Duration) {
    let mut by_lease: BTreeMap<Duration, Vec<Arc<LeasedJob>>> = BTreeMap::new();
    for job in shared.state.leases() {
        by_lease.entry(job.claimed.lease).or_default().push(job);
    }
    // At the same time: the retries of one batch must not delay the others.
    let batches = by_lease.iter().flat_map(|(lease, jobs)| {
        let batches = jobs.chunks(JOB_MAX_BATCH);
        batches.map(|batch| renew(shared, batch, *lease, interval))
    });
    join_all(batches).await;
}

/// Renews leases, and retries until all are renewed or the next heartbeat is due. A retry leaves out those that are renewed.
async fn renew(shared: &Shared, jobs: &[Arc<LeasedJob>], lease: Duration, interval: Duration) {
    let next_heartbeat = Instant::now() + interval;
    let mut failures = 0u32;
    let mut jobs = jobs.to_vec();
    while Instant::now() < next_heartbeat {
        let sent = Instant::now();
        let claims: Vec<JobRef> = jobs
            .iter()
            .filter(|job| job.is_leased(sent))
            .map(|job| job.claim())
            .collect();
        if claims.is_empty() {
            return;
        }
        let renewal = shared.source.renew(&shared.options.name, &claims, lease);
        match timeout(interval, renewal).await {
            Ok(Ok(answer)) => {
                apply_renewal(shared, &jobs, &claims, &answer, sent);
                if answer.busy.is_empty() {
                    return;
                }
                let busy: HashSet<JobId> = answer.busy.into_iter().collect();
                jobs.retain(|job| busy.contains(&job.claimed.id) && !job.is_done());
                tracing::debug!(
                    leases = jobs.len(),
                    "leases are locked in the store; retrying"
                );
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, leases = claims.len(), "failed to renew leases; retrying");
            }
            Err(_) => tracing::warn!(leases = claims.len(), "lease renewal timed out; retrying"),
        }
        failures += 1;
        // Leaves time for several attempts before the leases end.
        let wait = (lease / 30 * failures).min(Duration::from_secs(1));
        sleep_until(Instant::now() + wait).await;
    }
}

fn apply_renewal(
    shared: &Shared,
    jobs: &[Arc<LeasedJob>],
    claims: &[JobRef],
    answer: &JobsRenewed,
    sent: Instant,
) {
    let renewed: HashSet<JobId> = answer.renewed.iter().copied().collect();
    let busy: HashSet<JobId> = answer.busy.iter().copied().collect();
    // If this worker lost a job and claimed it again, only the higher token holds the lease.
    let mut highest: HashMap<JobId, i64> = HashMap::with_capacity(claims.len());
    for claim in claims {
        let token = highest.entry(claim.job).or_insert(claim.token);
        *token = claim.token.max(*token);
    }
    let claims: HashSet<JobRef> = claims.iter().copied().collect();
    for job in jobs.iter().filter(|job| claims.contains(&job.claim())) {
        let is_last = highest.get(&job.claimed.id) == Some(&job.claimed.token);
        if is_last && renewed.contains(&job.claimed.id) {
            job.renewed(sent);
        } else if !(is_last && busy.contains(&job.claimed.id)) {
            // No effect if the job's result was written meanwhile.
            shared.lose_lease(job, "renewal_rejected");
        }
    }
}
