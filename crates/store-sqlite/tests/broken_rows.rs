//! Rows that somebody broke by hand concern their own request, execution or job: sweeps, claims and reads of the others go on.
#![allow(clippy::unwrap_used)]

use leasehold_core::job::{JobFinished, RetryMode};
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::{JobFilter, JobStart, NewJob};
use leasehold_store::prune::Prune;
use leasehold_store::request::{Idempotency, NewRequest, RedriveMany};
use leasehold_store::{Clock, ManualClock, Page, SchemaStore};
use leasehold_store_conformance::broken_execution::BrokenExecutions;
use leasehold_store_conformance::factory::{LEASE, OWNER, new_request, ok};
use leasehold_store_conformance::job_factory::{
    QUEUE, WORKER, completed, failed, finish_each, job_ids, job_refs, new_job,
};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::TempDir;
use rusqlite::{Connection, Params};
use std::sync::Arc;
use std::time::Duration;

const VERSION_DELETE: &str = include_str!("sql/version_delete.sql");
const GRAPH_LENGTHEN: &str = include_str!("sql/graph_lengthen.sql");
const LEASE_BREAK: &str = include_str!("sql/job_lease_break.sql");
const JOB_BREAK: &str = include_str!("sql/job_break.sql");
const JOB_DELETE: &str = include_str!("sql/job_delete.sql");
const EXECUTION_FORGET: &str = include_str!("sql/request_forget_execution.sql");
const REQUEST_BREAK_PARAMS: &str = include_str!("sql/request_break_params.sql");
const CANCEL_WITHOUT_EXECUTION: &str = include_str!("sql/request_cancel_without_execution.sql");
const QUEUE_DELETE: &str = include_str!("sql/queue_delete.sql");

/// A store and a second connection to its file, like the `sqlite3` shell, which checks neither foreign keys nor these constraints.
struct TestEnv {
    f: Fixture,
    client: Connection,
    dir: Arc<TempDir>,
}

fn open(dir: &TempDir, clock: &ManualClock) -> SqliteStore {
    let options = SqliteOptions {
        clock: Clock::Manual(clock.clone()),
        ..SqliteOptions::default()
    };
    SqliteStore::open(dir.path().join("leasehold.db"), &options).unwrap()
}

impl TestEnv {
    async fn new() -> Self {
        let (dir, clock) = (Arc::new(leasehold_testkit::temp_dir()), clock());
        let store = open(&dir, &clock);
        store.schema_migrate().await.unwrap();
        let client = Connection::open(dir.path().join("leasehold.db")).unwrap();
        client
            .pragma_update(None, "ignore_check_constraints", true)
            .unwrap();
        Self {
            f: Fixture::new(Arc::new(store), clock).guarded(Arc::clone(&dir)),
            client,
            dir,
        }
    }

    /// Opens the file again, which empties the cache of versions.
    fn reopened(self) -> Self {
        let Self { f, client, dir } = self;
        let clock = f.clock.clone();
        drop(f);
        let store = open(&dir, &clock);
        Self {
            f: Fixture::new(Arc::new(store), clock).guarded(Arc::clone(&dir)),
            client,
            dir,
        }
    }

    fn write(&self, sql: &str, params: impl Params) -> usize {
        self.client.execute(sql, params).unwrap()
    }

    async fn jobs_of(&self, status: JobStatus) -> Vec<JobId> {
        let filter = JobFilter {
            queue: Some(QUEUE.to_owned()),
            status: Some(status),
        };
        let jobs = ok(self.f.store.job_list(&filter, Page::first(100)).await);
        jobs.iter().map(|job| job.id).collect()
    }
}

fn bytes(id: impl Into<uuid::Uuid>) -> [u8; 16] {
    id.into().into_bytes()
}

#[tokio::test]
async fn broken_execution_does_not_keep_others_from_timing_out() {
    let env = TestEnv::new().await;
    let all = BrokenExecutions::start(&env.f).await;
    assert_eq!(env.write(VERSION_DELETE, [bytes(all.without_version)]), 1);
    for graph in &all.unreadable {
        assert_eq!(env.write(GRAPH_LENGTHEN, [bytes(graph.execution)]), 1);
    }
    let env = env.reopened();
    all.check(&env.f).await;
}

#[tokio::test]
async fn corrupt_page_of_leases_does_not_stop_expiry_claims_and_reads_of_others() {
    let env = TestEnv::new().await;
    let f = &env.f;
    f.enqueue_jobs(6).await;
    let (lone, pair) = (f.claim_job().await, f.claim_jobs(2).await);
    assert_eq!(env.write(LEASE_BREAK, []), 1);
    assert_eq!(env.jobs_of(JobStatus::Running).await.len(), 2);
    assert_eq!(f.job(pair[0].id).await.status, JobStatus::Running);
    // Its jobs are lost, those of other pages of the worker are not.
    let all = [lone.clone(), pair[0].clone(), pair[1].clone()];
    assert_eq!(f.renew_jobs(WORKER, &job_refs(&all)).await, job_ids(&pair));
    let ends = finish_each(&all[..2], &completed());
    let finished = ok(f.store.job_finish(WORKER, &ends).await);
    let (done, lost) = (JobFinished::Completed, JobFinished::LeaseLost);
    assert_eq!(finished.jobs, [lost, done]);
    f.advance(2 * LEASE.as_secs());
    let expired = f.requeue_expired_jobs().await;
    assert_eq!(expired.len(), 1);
    assert_eq!(expired[0].claim.job, pair[1].id);
    let again = f.claim_jobs(10).await;
    assert_eq!(again.len(), 4);
    f.advance(2 * LEASE.as_secs());
    // More than this many broken pages would hide the others, if they counted.
    assert_eq!(ok(f.store.job_requeue_expired(1).await).len(), 1);
    assert_eq!(f.claim_jobs(10).await.len(), 4);
}

#[tokio::test]
async fn unreadable_job_fails_and_does_not_stop_its_queue() {
    let env = TestEnv::new().await;
    let f = &env.f;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(5)),
        ..new_job()
    };
    let waiting = f.enqueue_new_jobs(&vec![later; 3]).await;
    let fresh = f.enqueue_jobs(3).await;
    f.advance(10);
    for job in [waiting[0], fresh[0], fresh[1]] {
        assert_eq!(env.write(JOB_BREAK, [job.0]), 1);
    }
    assert_eq!(job_ids(&f.claim_jobs(2).await), waiting[1..]);
    assert_eq!(job_ids(&f.claim_jobs(10).await), fresh[2..]);
    assert_eq!(f.claim_jobs(10).await, []);
    let counts = ok(f.store.queue_counts(QUEUE).await);
    assert_eq!((counts.ready, counts.running, counts.failed), (0, 3, 3));
}

#[tokio::test]
async fn result_that_cannot_be_written_does_not_stop_those_of_others() {
    let env = TestEnv::new().await;
    let f = &env.f;
    let other = NewJob {
        queue: "gone".to_owned(),
        ..new_job()
    };
    f.enqueue_jobs(2).await;
    f.enqueue_new_jobs(&[other]).await;
    let mut jobs = f.claim_jobs(2).await;
    jobs.extend(f.claim_jobs_from("gone", 1).await.jobs);
    assert_eq!(env.write(QUEUE_DELETE, ["gone"]), 1);
    let ends = finish_each(&jobs, &completed());
    let finished = ok(f.store.job_finish(WORKER, &ends).await);
    let (done, unwritten) = (JobFinished::Completed, JobFinished::NotWritten);
    assert_eq!(finished.jobs, [done, done, unwritten]);
    assert!(finished.failure.unwrap().contains("job_finish"));
}

#[tokio::test]
async fn broken_claim_does_not_stop_the_recovery_of_others() {
    let env = TestEnv::new().await;
    let f = &env.f;
    let (one, other) = (f.workspace(3).await, f.workspace(3).await);
    f.enqueue(&one, 2).await;
    f.enqueue(&other, 2).await;
    let claimed = f.claim(10).await.requests;
    assert_eq!(claimed.len(), 4);
    let broken: Vec<_> = claimed
        .iter()
        .filter(|claimed| claimed.workspace == one.workspace)
        .collect();
    for claimed in broken {
        assert_eq!(env.write(EXECUTION_FORGET, [bytes(claimed.id)]), 1);
    }
    f.advance(10 * LEASE.as_secs());
    let mut recovered = Vec::new();
    for _ in 0..2 {
        recovered.extend(ok(f.store.request_recover(OWNER, 1).await));
    }
    assert_eq!(recovered.len(), 2);
    assert!(recovered.iter().all(|one| one.workspace == other.workspace));
    assert_eq!(ok(f.store.request_recover(OWNER, 10).await), []);
}

#[tokio::test]
async fn broken_cancel_request_does_not_stop_the_cancels_of_others() {
    let env = TestEnv::new().await;
    let f = &env.f;
    let t = f.workspace(3).await;
    f.enqueue(&t, 2).await;
    for claimed in f.claim(10).await.requests {
        f.dispatch(&claimed).await;
        f.cancel(t.workspace, claimed.id).await;
    }
    assert_eq!(ok(f.store.request_cancel_list(10).await).len(), 2);
    assert_eq!(env.write(CANCEL_WITHOUT_EXECUTION, []), 1);
    assert_eq!(ok(f.store.request_cancel_list(1).await).len(), 1);
}

/// The copy of a broken request violates a constraint.
#[tokio::test]
async fn request_that_cannot_be_redriven_does_not_stop_the_redrive_of_others() {
    let env = TestEnv::new().await;
    let f = &env.f;
    let t = f.workspace(3).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(f.enqueue_failed(&t).await.id);
    }
    for broken in [ids[0], ids[2]] {
        assert_eq!(env.write(REQUEST_BREAK_PARAMS, [bytes(broken)]), 1);
    }
    let mut many = RedriveMany {
        workspace: t.workspace,
        reason: None,
        definition: None,
        limit: 1,
        max_bytes: u64::MAX,
        by: OWNER.to_owned(),
    };
    for expected in [ids[1], ids[3]] {
        let redriven = ok(f.store.request_redrive_many(&many).await);
        assert_eq!(redriven[0].0, expected);
        many.limit = 10;
    }
    assert_eq!(ok(f.store.request_redrive_many(&many).await), []);
}

#[tokio::test]
async fn request_that_cannot_be_pruned_does_not_stop_the_pruning_of_others() {
    let env = TestEnv::new().await;
    let f = &env.f;
    let t = f.workspace(3).await;
    let with_key = |key: &str| NewRequest {
        idempotency: Some(Idempotency {
            key: key.to_owned(),
            window: Some(Duration::from_secs(3_600)),
        }),
        ..new_request(&t)
    };
    let new = ["a", "b", "c"].map(with_key).to_vec();
    let ids = f.enqueue_all(&t, new).await;
    for id in &ids {
        f.cancel(t.workspace, *id).await;
        f.advance(1);
    }
    assert_eq!(env.write(REQUEST_BREAK_PARAMS, [bytes(ids[0])]), 1);
    f.advance(60);
    let prune = Prune {
        completed_before: None,
        failed_before: Some(f.now()),
        limit: 2,
    };
    assert_eq!(ok(f.store.prune(&prune).await).requests, 2);
    assert_eq!(ok(f.store.prune(&prune).await).requests, 0);
}

/// PostgreSQL has the same cases in `orphans.rs`.
#[tokio::test]
async fn waiting_row_without_a_job_is_deleted_by_a_claim() {
    let env = TestEnv::new().await;
    let f = &env.f;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(5)),
        ..new_job()
    };
    let waiting = f.enqueue_new_jobs(&vec![later; 10]).await;
    for deleted in &waiting[..7] {
        env.write(JOB_DELETE, [deleted.0]);
    }
    let fresh = f.enqueue_jobs(2).await;
    f.advance(10);
    // More orphans than the claim takes: they do not use up its number.
    assert_eq!(job_ids(&f.claim_jobs(3).await), waiting[7..]);
    assert_eq!(job_ids(&f.claim_jobs(10).await), fresh);
    let counts = ok(f.store.queue_counts(QUEUE).await);
    assert_eq!((counts.ready, counts.scheduled, counts.running), (0, 0, 5));
}

#[tokio::test]
async fn leased_job_that_was_deleted_ends_and_expires_without_an_error() {
    let env = TestEnv::new().await;
    let f = &env.f;
    let all = f.enqueue_jobs(4).await;
    let claimed = f.claim_jobs(4).await;
    for deleted in &all[..3] {
        env.write(JOB_DELETE, [deleted.0]);
    }
    let mut ends = finish_each(&claimed[..1], &completed());
    ends.extend(finish_each(&claimed[1..2], &failed(RetryMode::Policy)));
    let finished = ok(f.store.job_finish(WORKER, &ends).await);
    assert_eq!(finished.jobs.len(), 2);
    assert!(!finished.jobs.contains(&JobFinished::NotWritten));
    f.advance(2 * LEASE.as_secs());
    let expired = f.requeue_expired_jobs().await;
    let expired: Vec<JobId> = expired.iter().map(|job| job.claim.job).collect();
    assert_eq!(expired, [all[3]]);
    assert_eq!(job_ids(&f.claim_jobs(10).await), [all[3]]);
}
