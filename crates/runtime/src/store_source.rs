//! A store as a source of jobs, for workers in the same process as the store's client. Knows no worker.

use async_trait::async_trait;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{JobId, JsonText};
use leasehold_store::{Error, Store};
use leasehold_worker::{JobSource, SourceError, SourceResult};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A store as a source of jobs.
pub struct StoreSource(Arc<dyn Store>);

impl StoreSource {
    /// The jobs of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

#[async_trait]
impl JobSource for StoreSource {
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed> {
        self.0.job_claim(claim).await.map_err(failed)
    }

    async fn renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> SourceResult<Vec<JobId>> {
        self.0
            .job_renew(worker, claims, lease)
            .await
            .map_err(failed)
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinished>> {
        let finished = self.0.job_finish(worker, finishes).await;
        Ok(finished.map_err(failed)?.jobs)
    }

    async fn progress(
        &self,
        worker: &str,
        claim: JobRef,
        progress: &JsonText,
    ) -> SourceResult<bool> {
        self.0
            .job_progress(worker, claim, progress)
            .await
            .map_err(failed)
    }

    async fn arm(&self) -> SourceResult<bool> {
        self.0.job_arm().await.map_err(failed)
    }

    fn bell(&self) -> watch::Receiver<u64> {
        self.0.job_bell()
    }
}

/// What the store's error means for a worker.
fn failed(error: Error) -> SourceError {
    if error.is_retryable() {
        SourceError::unavailable(error)
    } else {
        SourceError::rejected(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_store::ErrorKind;

    #[test]
    fn a_worker_repeats_what_the_store_may_do_later_and_nothing_else() {
        let text = "gone".to_owned();
        for (kind, retryable) in [
            (ErrorKind::Unavailable(text.clone()), true),
            (ErrorKind::Contended(text.clone()), true),
            (ErrorKind::Value(text.clone()), false),
            (ErrorKind::Broken(text), false),
        ] {
            let error = Error::new("job_finish", kind);
            let said = error.to_string();
            let error = failed(error);
            assert_eq!(error.is_retryable(), retryable, "{said}");
            assert_eq!(error.to_string(), said);
        }
    }
}
