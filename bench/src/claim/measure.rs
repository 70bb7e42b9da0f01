//! Claims through the port and counts: how many, how long, at what cost. Knows no database and prints nothing.

use crate::backend::{BenchBackend, Opened};
use anyhow::{Result, bail, ensure};
use leasehold_core::ExecutionEnd;
use leasehold_store::Store;
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::{Claim, ClaimOutcome, Claimed, ClaimedRequest};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Who claims.
pub(crate) const OWNER: &str = "bench";
const LEASE: Duration = Duration::from_secs(15);
/// Claims that find nothing, although there is more, before a claimer gives up.
const PATIENCE: u32 = 100;
const WARM_UPS: u32 = 2;

/// What a measurement found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Requests admitted while the clock ran.
    pub(crate) admitted: u32,
    /// Per second.
    pub(crate) rate: f64,
    /// Per admitted request, in the backend's unit.
    pub(crate) cost: f64,
}

/// How to claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) claimers: u32,
    pub(crate) batch: u32,
    /// Requests to admit at most.
    pub(crate) most: u32,
}

/// Claims at that pace, after a few single requests that warm the connections up.
pub(crate) async fn measure(backend: &mut dyn BenchBackend, pace: Pace) -> Result<Measured> {
    let opened = backend.open(usize::try_from(pace.claimers)?).await?;
    let warm = Pace {
        batch: 1,
        most: pace.claimers * WARM_UPS,
        ..pace
    };
    let warmed_up = together(&*opened, warm).await?;
    let begun = Instant::now();
    let admitted = together(&*opened, pace).await?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(admitted > 0, "nothing could be admitted");
    Ok(Measured {
        admitted,
        rate: f64::from(admitted) / seconds,
        cost: opened.close(admitted + warmed_up).await?,
    })
}

/// Admits so many, unmeasured, and finishes each batch before the next if so asked.
pub(crate) async fn admit(
    backend: &mut dyn BenchBackend,
    pace: Pace,
    finishing: bool,
) -> Result<()> {
    let opened = backend.open(1).await?;
    let store = opened.store();
    let mut admitted = 0;
    while admitted < pace.most {
        let claimed = claim(&*store, pace.batch.min(pace.most - admitted)).await?;
        ensure!(
            !claimed.requests.is_empty(),
            "only {admitted} could be admitted"
        );
        admitted += u32::try_from(claimed.requests.len())?;
        if finishing {
            let finishes: Vec<_> = claimed.requests.iter().map(completed).collect();
            store.execution_finish(OWNER, &finishes).await?;
        }
    }
    drop(store);
    opened.close(admitted).await?;
    Ok(())
}

/// All claimers at once, until enough is admitted or nothing is left.
async fn together(opened: &dyn Opened, pace: Pace) -> Result<u32> {
    let begun = AtomicU32::new(0);
    let claimers = (0..pace.claimers).map(|_| async {
        let store = opened.store();
        let mut admitted = 0;
        let mut in_vain = 0;
        while in_vain < PATIENCE {
            let wanted = pace
                .most
                .saturating_sub(begun.fetch_add(pace.batch, Ordering::Relaxed));
            if wanted == 0 {
                break;
            }
            let claimed = claim(&*store, wanted.min(pace.batch)).await?;
            opened.claimed();
            admitted += u32::try_from(claimed.requests.len())?;
            if claimed.requests.is_empty() {
                if !claimed.more {
                    break;
                }
                in_vain += 1;
                begun.fetch_sub(pace.batch, Ordering::Relaxed);
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
        lease: LEASE,
        lock: None,
    };
    match store.request_claim(&claim).await? {
        ClaimOutcome::Claimed(claimed) => Ok(claimed),
        ClaimOutcome::LockLost => bail!("the claim says a lock is lost that it never had"),
    }
}

pub(crate) fn completed(request: &ClaimedRequest) -> ExecutionFinish {
    ExecutionFinish {
        execution: request.execution,
        end: ExecutionEnd::Completed,
        error: None,
    }
}
