//! Measures claims through the store's port: rate and cost. Knows no database and prints nothing.

use crate::backend::{BenchBackend, OpenStore};
use anyhow::{Result, bail, ensure};
use leasehold_core::ExecutionEnd;
use leasehold_store::Store;
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::{Claim, ClaimOutcome, Claimed, ClaimedRequest};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The claims' owner.
pub(crate) const OWNER: &str = "bench";
const LEASE: Duration = Duration::from_secs(15);
/// Consecutive empty claims, although more is pending, before a claimer stops.
const MAX_EMPTY_CLAIMS: u32 = 100;
const WARM_UPS: u32 = 2;

/// The result of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimMeasurement {
    /// Requests admitted.
    pub(crate) admitted: u32,
    /// Admissions per second.
    pub(crate) rate: f64,
    /// Cost per admitted request, in the backend's unit.
    pub(crate) cost: f64,
}

/// The load of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimLoad {
    pub(crate) claimers: u32,
    pub(crate) batch: u32,
    /// Maximum number of requests to admit.
    pub(crate) most: u32,
}

/// Measures claims under this load, after a short warm-up.
pub(crate) async fn measure(
    backend: &mut dyn BenchBackend,
    load: ClaimLoad,
) -> Result<ClaimMeasurement> {
    let open_store = backend.open(usize::try_from(load.claimers)?).await?;
    let warm = ClaimLoad {
        batch: 1,
        most: load.claimers * WARM_UPS,
        ..load
    };
    let warm_up = run_claimers(&*open_store, warm).await?;
    let begun = Instant::now();
    let admitted = run_claimers(&*open_store, load).await?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(admitted > 0, "no request could be admitted");
    Ok(ClaimMeasurement {
        admitted,
        rate: f64::from(admitted) / seconds,
        cost: open_store.close(admitted + warm_up).await?,
    })
}

/// Admits `load.most` requests without measuring; with `finishing`, finishes each batch before the next.
pub(crate) async fn admit(
    backend: &mut dyn BenchBackend,
    load: ClaimLoad,
    finishing: bool,
) -> Result<()> {
    let open_store = backend.open(1).await?;
    let store = open_store.store();
    let mut admitted = 0;
    while admitted < load.most {
        let claimed = claim(&*store, load.batch.min(load.most - admitted)).await?;
        ensure!(
            !claimed.requests.is_empty(),
            "only {admitted} requests could be admitted"
        );
        admitted += u32::try_from(claimed.requests.len())?;
        if finishing {
            let finishes: Vec<_> = claimed.requests.iter().map(completed).collect();
            store.execution_finish(OWNER, &finishes).await?;
        }
    }
    drop(store);
    open_store.close(admitted).await?;
    Ok(())
}

/// Runs all claimers until enough is admitted or nothing is left.
async fn run_claimers(open_store: &dyn OpenStore, load: ClaimLoad) -> Result<u32> {
    let begun = AtomicU32::new(0);
    let claimers = (0..load.claimers).map(|_| async {
        let store = open_store.store();
        let mut admitted = 0;
        let mut empty_claims = 0;
        while empty_claims < MAX_EMPTY_CLAIMS {
            let wanted = load
                .most
                .saturating_sub(begun.fetch_add(load.batch, Ordering::Relaxed));
            if wanted == 0 {
                break;
            }
            let claimed = claim(&*store, wanted.min(load.batch)).await?;
            open_store.claimed();
            admitted += u32::try_from(claimed.requests.len())?;
            if claimed.requests.is_empty() {
                if !claimed.more {
                    break;
                }
                empty_claims += 1;
                begun.fetch_sub(load.batch, Ordering::Relaxed);
            }
        }
        anyhow::Ok(admitted)
    });
    Ok(futures::future::try_join_all(claimers).await?.iter().sum())
}

pub(crate) async fn claim(store: &dyn Store, batch: u32) -> Result<Claimed> {
    let claim = Claim {
        owner: OWNER.to_owned(),
        batch,
        kept_max: None,
        lease: LEASE,
        lock: None,
    };
    match store.request_claim(&claim).await? {
        ClaimOutcome::Claimed(claimed) => Ok(claimed),
        ClaimOutcome::LockLost => bail!("the claim reported a lost lock, but it holds none"),
    }
}

pub(crate) fn completed(request: &ClaimedRequest) -> ExecutionFinish {
    ExecutionFinish {
        execution: request.execution,
        end: ExecutionEnd::Completed,
        error: None,
    }
}
