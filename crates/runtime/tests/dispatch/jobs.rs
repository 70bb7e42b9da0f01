//! What looks after jobs: those of dead workers are taken back, ends that are old enough are pruned.

use crate::cast::{NEVER, round};
use crate::dispatch_env::DispatchEnv;
use crate::logs;
use leasehold_core::job::{Again, ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_runtime::{JobSweeper, JobSweeperOptions, Pruner, PrunerOptions};
use leasehold_service::{Next, Service};
use leasehold_store::job::{Job, NewJob};
use leasehold_store::lock::LockRequest;
use leasehold_testbed::BackendKind;
use std::time::Duration;
use tracing::Level;

scenarios! {
    both: the_job_of_a_dead_worker_is_queued_again_and_that_is_said, living_leases_are_left_alone,
        a_job_whose_attempts_are_used_up_fails_with_its_worker, an_instance_takes_jobs_of_dead_workers_back,
        ends_go_when_they_are_old_enough_by_the_clock_of_the_store, only_one_instance_prunes;
}

const LEASE: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl DispatchEnv {
    fn job_sweeper(&self) -> JobSweeper {
        JobSweeper::new(self.store.clone(), JobSweeperOptions::default())
    }

    /// A new one for each use: a process does not see its own clock jump.
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

async fn the_job_of_a_dead_worker_is_queued_again_and_that_is_said(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let job = scene.claimed_job(None).await;
    scene.advance(LEASE);
    assert_eq!(scene.job_sweeper().run_once().await.unwrap(), Next::Again);
    let found = scene.job(job.id).await.unwrap();
    assert_eq!(found.status, JobStatus::Queued);
    let id = format!("job={}", job.id);
    logs::assert_once(
        Level::WARN,
        &[&id, "queue=emails", "worker=doomed", "queued again"],
    );
    // It is done only once.
    assert!(matches!(
        scene.job_sweeper().run_once().await.unwrap(),
        Next::After(_)
    ));
}

async fn living_leases_are_left_alone(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let job = scene.claimed_job(None).await;
    scene.advance(LEASE - Duration::from_millis(1));
    round(&scene.job_sweeper()).await;
    let found = scene.job(job.id).await.unwrap();
    assert_eq!(found.status, JobStatus::Running);
}

async fn a_job_whose_attempts_are_used_up_fails_with_its_worker(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let job = scene.claimed_job(Some(1)).await;
    scene.advance(LEASE);
    round(&scene.job_sweeper()).await;
    let found = scene.job(job.id).await.unwrap();
    assert_eq!(found.status, JobStatus::Failed);
    assert!(found.last_error.unwrap().contains("doomed"));
    logs::assert_once(Level::WARN, &["used up"]);
}

async fn an_instance_takes_jobs_of_dead_workers_back(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let job = scene.claimed_job(None).await;
    scene.advance(LEASE);
    let runtime = scene.runtime(|options| {
        options.job_sweeper.interval = Duration::from_millis(50);
        options.pruner.interval = NEVER;
    });
    crate::dispatch_env::until("the job is queued again", async || {
        scene.job(job.id).await.unwrap().status == JobStatus::Queued
    })
    .await;
    runtime.stop().await;
}

async fn ends_go_when_they_are_old_enough_by_the_clock_of_the_store(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let request = scene.enqueue_one(&site).await;
    scene.cancel(&site, request, false).await;
    let completed = scene.ended_job(JobEnd::Completed { result: None }).await;
    let error = "no".to_owned();
    let again = Again::Never;
    let failed = scene.ended_job(JobEnd::Failed { error, again }).await;
    let open = scene.claimed_job(None).await.id;
    let gone = async |id| scene.job(id).await.is_none();

    scene.advance(7 * DAY - Duration::from_secs(60));
    round(&scene.pruner()).await;
    assert!(!gone(completed).await);

    scene.advance(Duration::from_secs(120));
    round(&scene.pruner()).await;
    assert!(gone(completed).await);
    assert!(!gone(failed).await);

    scene.advance(23 * DAY);
    let found = scene.store.request_get(site.workspace, request).await;
    assert!(found.unwrap().is_some());
    round(&scene.pruner()).await;
    assert!(gone(failed).await);
    let found = scene.store.request_get(site.workspace, request).await;
    assert!(found.unwrap().is_none());
    assert!(!gone(open).await);
}

async fn only_one_instance_prunes(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let completed = scene.ended_job(JobEnd::Completed { result: None }).await;
    scene.advance(8 * DAY);
    let lock = LockRequest {
        name: "pruneFinished".to_owned(),
        owner: "another".to_owned(),
        at_most_for: DAY,
    };
    scene.store.lock_acquire(&lock).await.unwrap();
    round(&scene.pruner()).await;
    assert!(scene.job(completed).await.is_some());
    scene.advance(DAY);
    round(&scene.pruner()).await;
    assert!(scene.job(completed).await.is_none());
}
