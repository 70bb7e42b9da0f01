//! Groups of jobs: who takes turns, in which order, and how many jobs of a group run.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{WORKER, completed, failed, finish_each, new_job};
use leasehold_core::job::{ClaimedJob, RetryMode};
use leasehold_store::job::{JobCancelled, JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use std::time::Duration;

/// A job of a group; `-` is none.
fn job_of(group: &str) -> NewJob {
    NewJob {
        group: (group != "-").then(|| group.to_owned()),
        ..new_job()
    }
}

/// Enqueues a job of each of these groups, in one call.
async fn enqueue(f: &Fixture, groups: &str) {
    let jobs: Vec<NewJob> = groups.split(' ').map(job_of).collect();
    f.enqueue_new_jobs(&jobs).await;
}

/// Claims jobs and returns their groups.
async fn claim(f: &Fixture, max: u32) -> String {
    groups_of(&f.claim_jobs(max).await)
}

fn groups_of(jobs: &[ClaimedJob]) -> String {
    let groups = jobs.iter().map(|job| job.group.as_deref().unwrap_or("-"));
    groups.collect::<Vec<_>>().join(" ")
}

async fn set_group_limit(f: &Fixture, limit: Option<u32>) {
    let change = QueueChange {
        group_limit: Some(limit),
        ..QueueChange::default()
    };
    f.set_queue(change).await;
}

/// Groups take turns one job each.
pub async fn groups_take_turns_one_job_each(f: Fixture) {
    enqueue(&f, "a a a a b c c").await;
    assert_eq!(claim(&f, 4).await, "a b c a");
    assert_eq!(claim(&f, 10).await, "c a a");
}

/// Turns go on in the next claim.
pub async fn turns_go_on_in_the_next_claim(f: Fixture) {
    enqueue(&f, "a a a b b b").await;
    for expected in ["a", "b", "a", "b", "a", "b", ""] {
        assert_eq!(claim(&f, 1).await, expected);
    }
}

/// Newcomer does not wait behind the backlog of another.
pub async fn newcomer_does_not_wait_behind_the_backlog_of_another(f: Fixture) {
    f.enqueue_new_jobs(&vec![job_of("a"); 1_000]).await;
    assert_eq!(claim(&f, 3).await, "a a a");
    enqueue(&f, "b").await;
    assert_eq!(claim(&f, 2).await, "a b");
}

/// Returning group joins at the end of the round.
pub async fn returning_group_joins_at_the_end_of_the_round(f: Fixture) {
    enqueue(&f, "a b b c c").await;
    assert_eq!(claim(&f, 1).await, "a");
    enqueue(&f, "a").await;
    assert_eq!(claim(&f, 4).await, "b c a b");
}

/// Priority orders jobs within a group only.
pub async fn priority_orders_jobs_within_a_group_only(f: Fixture) {
    enqueue(&f, "a a").await;
    let urgent = NewJob {
        priority: 1_000,
        ..job_of("b")
    };
    let urgent_of_a = NewJob {
        priority: 5,
        ..job_of("a")
    };
    f.enqueue_new_jobs(&[urgent, urgent_of_a]).await;
    let jobs = f.claim_jobs(4).await;
    assert_eq!(groups_of(&jobs), "a b a a");
    let priorities: Vec<i16> = jobs.iter().map(|job| job.priority).collect();
    assert_eq!(priorities, [5, 1_000, 0, 0]);
}

/// Jobs without a group share one.
pub async fn jobs_without_a_group_share_one(f: Fixture) {
    enqueue(&f, "- - - -").await;
    enqueue(&f, "a a b").await;
    assert_eq!(claim(&f, 5).await, "a b - a -");
    enqueue(&f, "a").await;
    assert_eq!(claim(&f, 5).await, "- a -");
    assert_eq!(f.job_counts().await.running, 8);
}

/// Group limit bounds what runs of each group.
pub async fn group_limit_bounds_what_runs_of_each_group(f: Fixture) {
    set_group_limit(&f, Some(2)).await;
    enqueue(&f, "a a a a b - - -").await;
    let jobs = f.claim_jobs(100).await;
    assert_eq!(groups_of(&jobs), "a b - a -");
    assert_eq!(claim(&f, 100).await, "");
    f.finish_jobs(WORKER, &finish_each(&jobs[..3], &completed()))
        .await;
    assert_eq!(claim(&f, 100).await, "a -");
}

/// Changed group limit applies to what runs.
pub async fn changed_group_limit_applies_to_what_runs(f: Fixture) {
    enqueue(&f, "a a a a b b").await;
    assert_eq!(claim(&f, 3).await, "a b a");
    set_group_limit(&f, Some(2)).await;
    assert_eq!(claim(&f, 100).await, "b");
    set_group_limit(&f, Some(3)).await;
    assert_eq!(claim(&f, 100).await, "a");
    set_group_limit(&f, Some(0)).await;
    enqueue(&f, "c").await;
    assert_eq!(claim(&f, 100).await, "");
    set_group_limit(&f, None).await;
    assert_eq!(claim(&f, 100).await, "a c");
}

/// Capacity of an expired lease returns to its group.
pub async fn capacity_of_an_expired_lease_returns_to_its_group(f: Fixture) {
    set_group_limit(&f, Some(1)).await;
    enqueue(&f, "a a").await;
    assert_eq!(claim(&f, 5).await, "a");
    assert_eq!(claim(&f, 5).await, "");
    f.advance(31);
    let jobs = f.claim_jobs(5).await;
    assert_eq!(groups_of(&jobs), "a");
    assert_eq!(jobs[0].attempt, 2);
}

/// Retried and scheduled jobs take the turns of their group.
pub async fn retried_and_scheduled_jobs_take_the_turns_of_their_group(f: Fixture) {
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(10)),
        ..job_of("c")
    };
    f.enqueue_new_jobs(&[later]).await;
    enqueue(&f, "a b b b").await;
    let first = f.claim_job().await;
    f.finish_job(&first, failed(RetryMode::After(Duration::from_secs(5))))
        .await;
    assert_eq!(claim(&f, 1).await, "b");
    f.advance(10);
    assert_eq!(claim(&f, 4).await, "b a c b");
}

/// Group whose jobs were cancelled is passed over.
pub async fn group_whose_jobs_were_cancelled_is_passed_over(f: Fixture) {
    let cancelled = f.enqueue_job(job_of("a")).await;
    enqueue(&f, "b b").await;
    assert_eq!(
        ok(f.store.job_cancel(cancelled).await),
        JobCancelled::Cancelled
    );
    assert_eq!(claim(&f, 1).await, "b");
    enqueue(&f, "a").await;
    assert_eq!(claim(&f, 5).await, "b a");
}

/// Limit of the queue ends a claim in turn.
pub async fn limit_of_the_queue_ends_a_claim_in_turn(f: Fixture) {
    enqueue(&f, "a a b b c c").await;
    f.set_queue_limit(Some(4)).await;
    let claimed = f.claim_outcome(100).await;
    assert_eq!(groups_of(&claimed.jobs), "a b c a");
    assert!(claimed.at_limit);
    f.set_queue_limit(None).await;
    assert_eq!(claim(&f, 100).await, "b c");
}
