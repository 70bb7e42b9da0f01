//! A job source that loses or delays renewals and results, some beyond the caller's timeout. Asserts nothing.

use crate::work_for;
use async_trait::async_trait;
use leasehold_core::JsonText;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed, JobsRenewed};
use leasehold_worker::{JobSource, SourceError, SourceResult};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

pub(crate) struct FlakySource {
    real: Arc<dyn JobSource>,
    lease: Duration,
}

impl FlakySource {
    /// Delays calls by up to 1.2 leases, so that late calls race with the lease's expiry.
    pub(crate) fn before(real: Arc<dyn JobSource>, lease: Duration) -> Self {
        Self { real, lease }
    }

    /// Returns the delay of the next call in `percent` of the cases.
    fn delay(&self, percent: u32) -> Option<Duration> {
        (fastrand::u32(..100) < percent).then(|| self.lease.mul_f64(fastrand::f64() * 1.2))
    }
}

fn lost(operation: &'static str) -> SourceError {
    SourceError::unavailable(format!("{operation}: injected"))
}

#[async_trait]
impl JobSource for FlakySource {
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed> {
        self.real.claim(claim).await
    }

    async fn renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> SourceResult<JobsRenewed> {
        if fastrand::u32(..100) < 75 {
            return Err(lost("job_renew"));
        }
        let Some(delay) = self.delay(60) else {
            return self.real.renew(worker, claims, lease).await;
        };
        let (real, worker, claims) = (self.real.clone(), worker.to_owned(), claims.to_vec());
        // In its own task, so that the call arrives even if the worker stops waiting.
        let late = tokio::spawn(async move {
            work_for(delay).await;
            real.renew(&worker, &claims, lease).await
        });
        late.await.map_err(|_| lost("job_renew"))?
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinished>> {
        if let Some(delay) = self.delay(10) {
            work_for(delay).await;
        }
        self.real.finish(worker, finishes).await
    }

    async fn progress(
        &self,
        worker: &str,
        claim: JobRef,
        progress: &JsonText,
    ) -> SourceResult<bool> {
        self.real.progress(worker, claim, progress).await
    }

    async fn arm_notification(&self) -> SourceResult<bool> {
        self.real.arm_notification().await
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.real.subscribe()
    }
}
