//! Keeps all leases alive, each beat one statement for all of the same length, and stops the handlers of those that are lost. Reads the monotonic clock only.

use crate::held::Held;
use crate::shared::Shared;
use leasehold_core::JobId;
use leasehold_core::job::JobRef;
use leasehold_core::lease::{DEFAULT_LEASE, heartbeat_every};
use leasehold_core::limits::JOB_MAX_BATCH;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut lease = shared.options.lease.unwrap_or(DEFAULT_LEASE);
    let mut last = Instant::now();
    loop {
        let next = last + heartbeat_every(lease);
        tokio::select! {
            () = sleep_until(next) => {}
            () = shared.shorter_lease.notified() => {
                lease = shortest(&shared.desk.leases()).map_or(lease, |shortest| shortest.min(lease));
                continue;
            }
        }
        last = Instant::now();
        beat(&shared, heartbeat_every(lease)).await;
    }
}

fn shortest(leases: &[Arc<Held>]) -> Option<Duration> {
    leases.iter().map(|held| held.job.lease).min()
}

/// Renews all leases. One that must have run out meanwhile is lost, whatever comes of the statement.
async fn beat(shared: &Shared, at_most: Duration) {
    let renewals = renew_all(shared, at_most);
    tokio::pin!(renewals);
    loop {
        expire(shared);
        let leases = shared.desk.leases();
        let running = leases.iter().filter(|held| !held.is_done());
        let ends = running.map(|held| held.until()).min();
        // Those that are claimed meanwhile end no sooner than a beat from now.
        let look_again = Instant::now() + at_most;
        tokio::select! {
            () = &mut renewals => return,
            () = sleep_until(ends.map_or(look_again, |ends| ends.min(look_again))) => {}
        }
    }
}

/// Loses every lease that must have run out by now.
fn expire(shared: &Shared) {
    let now = Instant::now();
    for held in shared.desk.leases() {
        if !held.holds(now) {
            shared.lose(&held, "it could not be renewed in time");
        }
    }
}

async fn renew_all(shared: &Shared, at_most: Duration) {
    let mut by_lease: BTreeMap<Duration, Vec<Arc<Held>>> = BTreeMap::new();
    for held in shared.desk.leases() {
        by_lease.entry(held.job.lease).or_default().push(held);
    }
    for (lease, leases) in by_lease {
        for some in leases.chunks(JOB_MAX_BATCH) {
            renew(shared, some, lease, at_most).await;
        }
    }
}

/// Renews, and tries again until it worked or the next beat is due.
async fn renew(shared: &Shared, leases: &[Arc<Held>], lease: Duration, at_most: Duration) {
    let next_beat = Instant::now() + at_most;
    let mut failures = 0u32;
    while Instant::now() < next_beat {
        let asked = Instant::now();
        let claims: Vec<JobRef> = leases
            .iter()
            .filter(|held| held.holds(asked))
            .map(|held| held.claim())
            .collect();
        if claims.is_empty() {
            return;
        }
        let renewal = shared.source.renew(&shared.options.name, &claims, lease);
        match timeout(at_most, renewal).await {
            Ok(Ok(renewed)) => return take_note(shared, leases, &claims, &renewed, asked),
            Ok(Err(error)) => {
                tracing::warn!(%error, leases = claims.len(), "leases could not be renewed; trying again");
            }
            Err(_) => tracing::warn!(
                leases = claims.len(),
                "the store did not answer a renewal in time; trying again"
            ),
        }
        failures += 1;
        // Several tries fit before the leases end.
        let wait = (lease / 30 * failures).min(Duration::from_secs(1));
        sleep_until(Instant::now() + wait).await;
    }
}

fn take_note(
    shared: &Shared,
    leases: &[Arc<Held>],
    claims: &[JobRef],
    renewed: &[JobId],
    asked: Instant,
) {
    let renewed: HashSet<JobId> = renewed.iter().copied().collect();
    // A job that this very worker lost and claimed again is held by the higher token only.
    let mut highest: HashMap<JobId, i64> = HashMap::with_capacity(claims.len());
    for claim in claims {
        let token = highest.entry(claim.job).or_insert(claim.token);
        *token = claim.token.max(*token);
    }
    let claims: HashSet<JobRef> = claims.iter().copied().collect();
    for held in leases.iter().filter(|held| claims.contains(&held.claim())) {
        let is_last = highest.get(&held.job.id) == Some(&held.job.token);
        if is_last && renewed.contains(&held.job.id) {
            held.renewed(asked);
        } else {
            // Unless its end was written down meanwhile.
            shared.lose(held, "the store says so");
        }
    }
}
