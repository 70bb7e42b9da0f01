//! Locked rows of jobs, queues and keys: what claims of a whole queue, renewals of a page, pruning and rotations do not wait for.

use super::{
    id, lock, open_fixture, open_observed, promptly, unlock, wait_for_blocked, wait_for_statement,
};
use crate::support::pace::{measured, promptly_within};
use leasehold_core::job::JobFinished;
use leasehold_core::key::{KeyRights, KeyScope};
use leasehold_store::job::{JobCancelled, JobPrune, JobStart, NewJob};
use leasehold_store::key::{KeyCreated, KeyRevoked, KeyRotated, KeyRotation, NewKey};
use leasehold_store::queue::QueueChange;
use leasehold_store::{Actor, Result, fresh_id};
use leasehold_store_conformance::Fixture;
use leasehold_store_conformance::factory::{LEASE, ok};
use leasehold_store_conformance::job_factory::{
    QUEUE, WORKER, completed, finish_each, job_refs, job_with_dedup_key, new_job, payload,
};
use std::sync::Arc;
use std::time::Duration;

/// How long a claim may take beside calls that meet a locked row: less than any wait for a row.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Claims jobs one after the other, and asserts that no claim waits.
async fn claims_do_not_wait(f: &Fixture) {
    f.enqueue_jobs(20).await;
    let mut slow = 0;
    for _ in 0..20 {
        let (_, is_prompt) = measured(AT_ONCE, f.claim_job()).await;
        slow += usize::from(!is_prompt);
    }
    // On a busy machine one or the other takes longer.
    assert!(slow < 5, "{slow} of 20 claims waited");
}

/// Repeats a call that gives up waiting for a locked row.
async fn until_unlocked<T, F: Future<Output = Result<T>>>(call: impl Fn() -> F) -> T {
    loop {
        match call().await {
            Err(error) if error.is_retryable() => {}
            answer => return ok(answer),
        }
    }
}

#[tokio::test]
async fn cancels_of_a_locked_job_do_not_delay_claims_of_its_queue() {
    for table in ["job", "job_waiting", "job_key"] {
        let (f, operator, observer) = open_observed().await;
        let new = NewJob {
            start: match table {
                "job_waiting" => JobStart::In(Duration::from_secs(3_600)),
                _ => JobStart::Now,
            },
            priority: -1,
            ..job_with_dedup_key("k", None)
        };
        let locked = f.enqueue_job(new).await;
        let condition = match table {
            "job" => format!("id = {locked}"),
            _ => format!("job_id = {locked}"),
        };
        lock(&operator, table, &condition).await;
        let cancels = (0..10).map(|_| {
            let store = Arc::clone(&f.store);
            tokio::spawn(async move { until_unlocked(|| store.job_cancel(locked)).await })
        });
        let cancels: Vec<_> = cancels.collect();
        wait_for_statement(&observer, "leasehold_job_cancel").await;
        claims_do_not_wait(&f).await;
        unlock(&operator).await;
        let mut cancelled = 0;
        for cancel in cancels {
            let outcome = cancel.await.unwrap();
            cancelled += usize::from(outcome == JobCancelled::Cancelled);
        }
        assert_eq!(cancelled, 1, "{table}");
    }
}

#[tokio::test]
async fn progress_of_a_job_with_a_locked_note_does_not_delay_others_of_its_page() {
    let (f, operator, observer) = open_observed().await;
    f.enqueue_jobs(2).await;
    let jobs = f.claim_jobs(2).await;
    assert_eq!(jobs[0].token, jobs[1].token);
    assert!(ok(f
        .store
        .job_progress(WORKER, jobs[0].claim(), &payload(1))
        .await));
    lock(&operator, "job_note", &format!("job_id = {}", jobs[0].id)).await;
    let (store, claim) = (Arc::clone(&f.store), jobs[0].claim());
    let reporting = tokio::spawn(async move {
        let progress = payload(2);
        until_unlocked(|| store.job_progress(WORKER, claim, &progress)).await
    });
    wait_for_statement(&observer, "leasehold_job_progress").await;
    let mut busy = 0;
    for _ in 0..20 {
        let claims = job_refs(&jobs[1..]);
        let renewed = ok(promptly(f.store.job_renew(WORKER, &claims, LEASE)).await);
        assert_eq!(renewed.renewed.len() + renewed.busy.len(), 1);
        busy += renewed.busy.len();
    }
    assert!(busy < 10, "{busy} of 20 renewals found the page locked");
    let other = promptly(f.finish_job(&jobs[1], completed())).await;
    assert_eq!(other, JobFinished::Completed);
    unlock(&operator).await;
    assert!(reporting.await.unwrap());
}

#[tokio::test]
async fn progress_of_a_job_waits_for_its_locked_page_without_a_connection() {
    let (f, operator, observer) = open_observed().await;
    f.enqueue_jobs(1).await;
    let job = f.claim_job().await;
    lock(&operator, "job_lease", &format!("token = {}", job.token)).await;
    let reports = (0..20).map(|n| {
        let (store, claim) = (Arc::clone(&f.store), job.claim());
        tokio::spawn(async move {
            let progress = payload(n);
            until_unlocked(|| store.job_progress(WORKER, claim, &progress)).await
        })
    });
    let reports: Vec<_> = reports.collect();
    wait_for_statement(&observer, "leasehold_job_progress").await;
    claims_do_not_wait(&f).await;
    unlock(&operator).await;
    for report in reports {
        assert!(report.await.unwrap());
    }
}

#[tokio::test]
async fn change_of_a_locked_queue_or_limit_does_not_delay_claims() {
    let (f, operator, observer) = open_observed().await;
    f.enqueue_jobs(1).await;
    f.claim_job().await;
    for table in ["queue", "job_limit"] {
        let condition = match table {
            "queue" => format!("name = '{QUEUE}'"),
            _ => "true".to_owned(),
        };
        lock(&operator, table, &condition).await;
        let store = Arc::clone(&f.store);
        let change = tokio::spawn(async move {
            if table == "queue" {
                let change = QueueChange {
                    limit: Some(Some(1_000)),
                    ..QueueChange::default()
                };
                until_unlocked(|| store.queue_update(QUEUE, &change, &Actor::Local)).await;
            } else {
                until_unlocked(|| store.job_limit_set(Some(1_000), &Actor::Local)).await;
            }
        });
        wait_for_blocked(&observer, 1).await;
        claims_do_not_wait(&f).await;
        unlock(&operator).await;
        change.await.unwrap();
    }
}

#[tokio::test]
async fn locked_job_does_not_stop_the_pruning_of_others() {
    for table in ["job", "job_end"] {
        let (f, operator) = open_fixture().await;
        let mut jobs = Vec::new();
        for _ in 0..3 {
            jobs.push(f.enqueue_completed_job().await);
        }
        jobs.push(f.enqueue_failed_job().await);
        lock(
            &operator,
            table,
            &format!("id IN ({}, {})", jobs[0], jobs[3]),
        )
        .await;
        let later = Some(f.now() + Duration::from_secs(1));
        let prune = JobPrune {
            completed_before: later,
            failed_before: later,
            limit: 2,
        };
        let pruned = ok(promptly(f.store.job_prune(&prune)).await);
        assert_eq!(pruned.jobs, 2, "{table}");
        assert_eq!(ok(promptly(f.store.job_prune(&prune)).await).jobs, 0);
        unlock(&operator).await;
        assert_eq!(ok(f.store.job_prune(&prune).await).jobs, 2, "{table}");
    }
}

/// One statement may lock the rows of a whole tenant.
#[tokio::test]
async fn many_locked_notes_do_not_delay_results_of_others() {
    let (f, operator) = open_fixture().await;
    f.enqueue_new_jobs(&vec![new_job(); 100]).await;
    let jobs = f.claim_jobs(100).await;
    for job in &jobs[..40] {
        let progress = payload(1);
        assert!(ok(f
            .store
            .job_progress(WORKER, job.claim(), &progress)
            .await));
    }
    let locked: Vec<String> = jobs[..30].iter().map(|job| job.id.to_string()).collect();
    let condition = format!("job_id IN ({})", locked.join(", "));
    lock(&operator, "job_note", &condition).await;
    let ends = finish_each(&jobs, &completed());
    let finished = ok(promptly(f.store.job_finish(WORKER, &ends)).await);
    let count = |answer| finished.jobs.iter().filter(|one| **one == answer).count();
    assert_eq!(count(JobFinished::NotWritten), 30);
    assert_eq!(count(JobFinished::Completed), 70);
    unlock(&operator).await;
    let finished = ok(f.store.job_finish(WORKER, &ends[..30]).await);
    assert!(
        finished
            .jobs
            .iter()
            .all(|one| *one == JobFinished::Completed)
    );
}

fn new_key(name: &str) -> NewKey {
    NewKey {
        id: fresh_id(),
        name: name.to_owned(),
        rights: KeyRights::full(KeyScope::Admin),
        expires_in: None,
        hash: std::array::from_fn(|_| fastrand::u8(..)),
    }
}

/// Rotations and revocations run one after the other, so that one administrator's key always remains.
#[tokio::test]
async fn locked_key_does_not_delay_rotations_and_revocations_of_others() {
    let (f, operator, observer) = open_observed().await;
    let mut keys = Vec::new();
    for name in ["first", "second", "third"] {
        match ok(f.store.key_create(&new_key(name), &Actor::Local).await) {
            KeyCreated::Created(key) => keys.push(key.id),
            KeyCreated::WorkspaceNotFound => panic!("an administrator's key has no workspace"),
        }
    }
    lock(&operator, "api_key", &id(keys[0])).await;
    let (store, locked) = (Arc::clone(&f.store), keys[0]);
    let waiting = tokio::spawn(async move {
        until_unlocked(|| store.key_revoke_unless_last(locked, &Actor::Local)).await
    });
    wait_for_blocked(&observer, 1).await;
    let rotation = KeyRotation {
        id: keys[1],
        successor: fresh_id(),
        hash: [9; 32],
        overlap: Duration::ZERO,
        expires_in: None,
    };
    let others = async {
        let rotated = ok(f.store.key_rotate(&rotation, &Actor::Local).await);
        assert!(matches!(rotated, KeyRotated::Rotated { .. }), "{rotated:?}");
        let revocation = f.store.key_revoke_unless_last(keys[2], &Actor::Local);
        let revoked = ok(revocation.await);
        assert!(matches!(revoked, KeyRevoked::Revoked(_)), "{revoked:?}");
    };
    promptly_within(Duration::from_secs(1), others).await;
    unlock(&operator).await;
    assert!(matches!(waiting.await.unwrap(), KeyRevoked::Revoked(_)));
}
