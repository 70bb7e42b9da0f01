//! Everything that can be seen of jobs and queues in store and model, compared.

use super::{JobPair, QUEUES};
use crate::factory::ok;
use crate::job_invariants;
use crate::model::pair::{Disagreement, same};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::Page;
use leasehold_store::job::{Job, JobFilter};
use serde_json::Value;

impl JobPair {
    /// After each operation: every job, every count, every queue, the limit.
    pub(super) async fn compare(&self) -> Result<(), Disagreement> {
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
        same("limits of all", &limits.0, &limits.1)
    }

    /// At the end: that the store is sound by itself, and that each job is read alone as it is listed.
    pub(in crate::model) async fn compare_all(&self) -> Result<(), Disagreement> {
        for job in job_invariants::check(&self.real).await {
            let alone = ok(self.real.store.job_get(job.id).await);
            same("a job alone and in a list", &alone, &Some(job))?;
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

/// Leaves out what a store may show as it likes: when a job might have run that does not wait any more, a key that
/// does not hold any more, and how the params in a node's payload are spaced.
pub(in crate::model) fn determined(mut real: Job, mut model: Job) -> (Job, Job) {
    if model.execution.is_some() && means_the_same(&real.payload, &model.payload) {
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

/// Whether two texts are the same JSON.
pub(in crate::model) fn means_the_same(one: &JsonText, other: &JsonText) -> bool {
    let read = |text: &JsonText| text.read::<Value>().ok();
    read(one) == read(other)
}
