//! A source of jobs whose renewals and ends get lost or come late, some after their sender has given them up. Judges nothing.

use crate::take;
use async_trait::async_trait;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{JobId, JsonText};
use leasehold_worker::{JobSource, SourceError, SourceResult};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

pub(crate) struct Unsteady {
    real: Arc<dyn JobSource>,
    lease: Duration,
}

impl Unsteady {
    /// Delays are up to a lease and a little more, so that what is late races the lease's end.
    pub(crate) fn before(real: Arc<dyn JobSource>, lease: Duration) -> Self {
        Self { real, lease }
    }

    /// How long the next call is on its way, in so many of a hundred cases; most are at once.
    fn delay(&self, of_hundred: u32) -> Option<Duration> {
        (fastrand::u32(..100) < of_hundred).then(|| self.lease.mul_f64(fastrand::f64() * 1.2))
    }
}

fn lost(operation: &'static str) -> SourceError {
    SourceError::unavailable(format!("{operation}: injected"))
}

#[async_trait]
impl JobSource for Unsteady {
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed> {
        self.real.claim(claim).await
    }

    async fn renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> SourceResult<Vec<JobId>> {
        if fastrand::u32(..100) < 75 {
            return Err(lost("job_renew"));
        }
        let Some(delay) = self.delay(60) else {
            return self.real.renew(worker, claims, lease).await;
        };
        let (real, worker, claims) = (self.real.clone(), worker.to_owned(), claims.to_vec());
        // On its own, so that it arrives also if the worker does not wait for it.
        let late = tokio::spawn(async move {
            take(delay).await;
            real.renew(&worker, &claims, lease).await
        });
        late.await.map_err(|_| lost("job_renew"))?
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinished>> {
        if let Some(delay) = self.delay(10) {
            take(delay).await;
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

    async fn arm(&self) -> SourceResult<bool> {
        self.real.arm().await
    }

    fn bell(&self) -> watch::Receiver<u64> {
        self.real.bell()
    }
}
