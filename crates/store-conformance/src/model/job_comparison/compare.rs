//! Compares all jobs and queues of store and model.

use super::{JobComparison, QUEUES};
use crate::factory::ok;
use crate::job_invariants;
use crate::model::comparison::{Mismatch, same};
use leasehold_core::graph::NodeReference;
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::Page;
use leasehold_store::job::{Job, JobFilter};
use serde_json::Value;

impl JobComparison {
    /// Compares, after each operation, every job, count, queue and the global limit.
    pub(super) async fn compare(&self) -> Result<(), Mismatch> {
        let all = JobFilter::default();
        let real = self.real.all_jobs(&all, 1_000).await;
        let model = self.model.all_jobs(&all, 1_000).await;
        same("the ids of all jobs", &ids(&real), &ids(&model))?;
        for (real, model) in real.into_iter().zip(model) {
            let (real, model) = determined(real, model);
            same("jobs", &real, &model)?;
        }
        for queue in QUEUES {
            let real = ok(self.real.store.queue_counts(queue).await);
            let model = ok(self.model.store.queue_counts(queue).await);
            same("counts", &real, &model)?;
        }
        let queues = (
            ok(self.real.store.queue_list(&Page::first(10)).await),
            ok(self.model.store.queue_list(&Page::first(10)).await),
        );
        same("queues", &queues.0, &queues.1)?;
        let limits = (
            ok(self.real.store.job_limit().await),
            ok(self.model.store.job_limit().await),
        );
        same("global limits", &limits.0, &limits.1)
    }

    /// Checks the store's invariants at the end, and that `job_get` and the list return the same.
    pub(in crate::model) async fn compare_all(&self) -> Result<(), Mismatch> {
        for job in job_invariants::check(&self.real).await {
            let single = ok(self.real.store.job_get(job.id).await);
            same("job_get and job_list", &single, &Some(job))?;
        }
        for status in JobStatus::ALL {
            for queue in QUEUES {
                let filter = JobFilter {
                    queue: Some(queue.into()),
                    status: Some(status),
                };
                let real = self.real.all_jobs(&filter, 3).await;
                let model = self.model.all_jobs(&filter, 3).await;
                same("filtered jobs", &ids(&real), &ids(&model))?;
            }
        }
        Ok(())
    }
}

fn ids(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

/// Removes what a store may choose: the due time of a job that is not queued, an expired key, and whether the payload of a node's job is shown
/// as a reference.
pub(in crate::model) fn determined(mut real: Job, mut model: Job) -> (Job, Job) {
    let is_reference = NodeReference::read(&real.payload).is_some();
    if model.execution.is_some() && (is_reference || is_same_json(&real.payload, &model.payload)) {
        real.payload.clone_from(&model.payload);
    }
    if model.status != JobStatus::Queued {
        real.run_at = model.run_at;
    }
    if model.dedup_key.is_none() {
        model.dedup_key.clone_from(&real.dedup_key);
    }
    (real, model)
}

/// Whether two texts are equal as JSON.
pub(in crate::model) fn is_same_json(one: &JsonText, other: &JsonText) -> bool {
    let read = |text: &JsonText| text.read::<Value>().ok();
    read(one) == read(other)
}
