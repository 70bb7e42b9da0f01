//! Implements the worker's job source with a store, for workers in the same process. Knows no worker.

use async_trait::async_trait;
use leasehold_core::JsonText;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed, JobsRenewed};
use leasehold_store::{Error, Store};
use leasehold_worker::{JobSource, SourceError, SourceResult};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A job source that claims directly from a store.
pub struct StoreSource(Arc<dyn Store>);

impl StoreSource {
    /// Creates a source of this store's jobs.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

#[async_trait]
impl JobSource for StoreSource {
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed> {
        self.0.job_claim(claim).await.map_err(source_error)
    }

    async fn renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> SourceResult<JobsRenewed> {
        self.0
            .job_renew(worker, claims, lease)
            .await
            .map_err(source_error)
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinished>> {
        let finished = self.0.job_finish(worker, finishes).await;
        Ok(finished.map_err(source_error)?.jobs)
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
            .map_err(source_error)
    }

    async fn arm_notification(&self) -> SourceResult<bool> {
        self.0.job_notification_arm().await.map_err(source_error)
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe_jobs()
    }
}

/// Converts a store error: a worker retries only the retryable ones.
fn source_error(error: Error) -> SourceError {
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
    fn only_retryable_store_errors_are_retryable_for_a_worker() {
        let text = "gone".to_owned();
        for (kind, retryable) in [
            (ErrorKind::Unavailable(text.clone()), true),
            (ErrorKind::Contended(text.clone()), true),
            (ErrorKind::Value(text.clone()), false),
            (ErrorKind::Broken(text), false),
        ] {
            let error = Error::new("job_finish", kind);
            let text = error.to_string();
            let error = source_error(error);
            assert_eq!(error.is_retryable(), retryable, "{text}");
            assert_eq!(error.to_string(), text);
        }
    }
}
