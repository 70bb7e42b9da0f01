//! The services for jobs: the job sweeper requeues jobs of dead workers, the pruner deletes old finished rows.

use crate::dispatch_env::DispatchEnv;
use crate::fixtures::{NEVER, round};
use crate::logs;
use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, RetryMode};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_runtime::{JobSweeper, JobSweeperOptions, Pruner, PrunerOptions};
use leasehold_service::{Next, Service};
use leasehold_store::job::{Job, NewJob};
use leasehold_store::lock::LockRequest;
use leasehold_testbed::BackendKind;
use std::time::Duration;
use tracing::Level;

scenarios! {
    both: job_of_a_dead_worker_is_requeued_and_logged, valid_leases_are_not_requeued,
        job_fails_when_its_last_lease_expires, instance_requeues_jobs_of_dead_workers,
        finished_rows_are_pruned_by_the_clock_of_the_store, only_one_instance_prunes,
        pruner_pauses_between_batches;
}

const LEASE: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl DispatchEnv {
    fn job_sweeper(&self) -> JobSweeper {
        JobSweeper::new(self.store.clone(), JobSweeperOptions::default())
    }

    /// Creates a pruner; a new one for each use, since its lock does not follow the manual clock.
    fn pruner(&self) -> Pruner {
        Pruner::new(self.store.clone(), "pruner", PrunerOptions::default())
    }

    async fn job(&self, id: JobId) -> Option<Job> {
        self.store.job_get(id).await.unwrap()
    }

    async fn claimed_job(&self, max_attempts: Option<u32>) -> ClaimedJob {
        let mut new = NewJob::new("emails", "send", JsonText::default());
        new.max_attempts = max_attempts;
        self.store.job_enqueue(&[new]).await.unwrap();
        let claim = JobClaim {
            queue: "emails".to_owned(),
            worker: "doomed".to_owned(),
            max: 1,
            lease: Some(LEASE),
        };
        self.store.job_claim(&claim).await.unwrap().jobs.remove(0)
    }

    async fn ended_job(&self, end: JobEnd) -> JobId {
        let job = self.claimed_job(None).await;
        let claim = job.claim();
        let finish = JobFinish { claim, end };
        let ended = self.store.job_finish("doomed", &[finish]).await.unwrap();
        assert_ne!(ended.jobs, [JobFinished::LeaseLost]);
        job.id
    }
}

async fn job_of_a_dead_worker_is_requeued_and_logged(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let job = env.claimed_job(None).await;
    env.advance(LEASE);
    assert_eq!(env.job_sweeper().run_once().await.unwrap(), Next::Now);
    let found = env.job(job.id).await.unwrap();
    assert_eq!(found.status, JobStatus::Queued);
    let id = format!("job={}", job.id);
    logs::assert_once(
        Level::WARN,
        &[&id, "queue=emails", "worker=doomed", "requeued"],
    );
    // It is requeued only once.
    assert!(matches!(
        env.job_sweeper().run_once().await.unwrap(),
        Next::After(_)
    ));
}

async fn valid_leases_are_not_requeued(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let job = env.claimed_job(None).await;
    env.advance(LEASE - Duration::from_millis(1));
    round(&env.job_sweeper()).await;
    let found = env.job(job.id).await.unwrap();
    assert_eq!(found.status, JobStatus::Running);
}

async fn job_fails_when_its_last_lease_expires(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let job = env.claimed_job(Some(1)).await;
    env.advance(LEASE);
    round(&env.job_sweeper()).await;
    let found = env.job(job.id).await.unwrap();
    assert_eq!(found.status, JobStatus::Failed);
    assert!(found.last_error.unwrap().contains("doomed"));
    logs::assert_once(Level::WARN, &["used up"]);
}

async fn instance_requeues_jobs_of_dead_workers(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let job = env.claimed_job(None).await;
    env.advance(LEASE);
    let runtime = env.runtime(|options| {
        options.job_sweeper.interval = Duration::from_millis(50);
        options.pruner.interval = NEVER;
    });
    crate::dispatch_env::until("the job is queued again", async || {
        env.job(job.id).await.unwrap().status == JobStatus::Queued
    })
    .await;
    runtime.stop().await;
}

async fn finished_rows_are_pruned_by_the_clock_of_the_store(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let request = env.enqueue_one(&workspace).await;
    env.cancel(&workspace, request, false).await;
    let completed = env.ended_job(JobEnd::Completed { result: None }).await;
    let error = "no".to_owned();
    let retry_mode = RetryMode::Never;
    let failed = env.ended_job(JobEnd::Failed { error, retry_mode }).await;
    let open = env.claimed_job(None).await.id;
    let gone = async |id| env.job(id).await.is_none();

    env.advance(7 * DAY - Duration::from_secs(60));
    round(&env.pruner()).await;
    assert!(!gone(completed).await);

    env.advance(Duration::from_secs(120));
    round(&env.pruner()).await;
    assert!(gone(completed).await);
    assert!(!gone(failed).await);

    env.advance(23 * DAY);
    let found = env.store.request_get(workspace.workspace, request).await;
    assert!(found.unwrap().is_some());
    round(&env.pruner()).await;
    assert!(gone(failed).await);
    let found = env.store.request_get(workspace.workspace, request).await;
    assert!(found.unwrap().is_none());
    assert!(!gone(open).await);
}

async fn pruner_pauses_between_batches(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let completed = env.ended_job(JobEnd::Completed { result: None }).await;
    env.advance(8 * DAY);
    let pruner = env.pruner();
    let Next::After(pause) = pruner.run_once().await.unwrap() else {
        panic!("the next batch follows at once");
    };
    assert!(env.job(completed).await.is_none());
    assert!(!pause.is_zero() && pause < PrunerOptions::default().interval);
    // Nothing is left.
    let idle = Next::After(PrunerOptions::default().interval);
    assert_eq!(pruner.run_once().await.unwrap(), idle);
}

async fn only_one_instance_prunes(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let completed = env.ended_job(JobEnd::Completed { result: None }).await;
    env.advance(8 * DAY);
    let lock = LockRequest {
        name: "pruneFinished".to_owned(),
        owner: "another".to_owned(),
        at_most_for: DAY,
    };
    env.store.lock_acquire(&lock).await.unwrap();
    round(&env.pruner()).await;
    assert!(env.job(completed).await.is_some());
    env.advance(DAY);
    round(&env.pruner()).await;
    assert!(env.job(completed).await.is_none());
}
