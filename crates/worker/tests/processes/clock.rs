//! Workers on a machine whose clock is wrong by two hours, either way, behave as others do: only the database's clock judges.

use crate::child::Child;
use crate::job_database::{JobDatabase, QUEUE};
use crate::orders::{Behaviour, Done, Told};
use crate::{calm, takeover};
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::{JobStart, NewJob};
use std::time::Duration;

const AHEAD: &str = "+2h";
const BEHIND: &str = "-2h";
const TWO_HOURS: i64 = 2 * 60 * 60;

const LEASE: Duration = Duration::from_secs(2);
/// How long a job waits that is tried again, or for its time.
const WAIT: Duration = Duration::from_secs(1);
/// For a busy machine; two hours are far beyond it.
const LATE: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_two_hours_ahead_keeps_leases_and_times() {
    let _calm = calm().await;
    keeps_leases_and_times(AHEAD, TWO_HOURS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_two_hours_behind_keeps_leases_and_times() {
    let _calm = calm().await;
    keeps_leases_and_times(BEHIND, -TWO_HOURS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_two_hours_ahead_takes_over_neither_early_nor_late() {
    let _calm = calm().await;
    takeover::killed(Some(AHEAD)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_two_hours_behind_takes_over_neither_early_nor_late() {
    let _calm = calm().await;
    takeover::killed(Some(BEHIND)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_two_hours_ahead_that_stood_still_can_change_nothing() {
    let _calm = calm().await;
    takeover::stood_still(Some(AHEAD)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_two_hours_behind_that_stood_still_can_change_nothing() {
    let _calm = calm().await;
    takeover::stood_still(Some(BEHIND)).await;
}

async fn keeps_leases_and_times(clock: &str, off: i64) {
    let ground = JobDatabase::prompt().await;
    let worker = Child::start_with_clock(
        &ground.orders("astray", LEASE, Behaviour::AsTold),
        Some(clock),
    );
    let wrong = worker.clock - ground.now().await.as_second();
    assert!((wrong - off).abs() < 60, "its clock is off by {wrong} s");

    let long = enqueue(&ground, |told, _| told.takes = LEASE * 4).await;
    let failing = enqueue(&ground, |told, _| told.fails_once = true).await;
    let hanging = enqueue(&ground, |told, job| {
        told.hangs_once = true;
        job.timeout = Some(LEASE / 2);
    })
    .await;
    let scheduled = enqueue(&ground, |_, job| job.start = JobStart::In(WAIT)).await;
    ground.until_completed(&[QUEUE], 4).await;

    let history = ground.history().await;
    let [held] = &history.claims_of(long)[..] else {
        panic!("the lease of {long} was lost");
    };
    assert!(history.lease_end(held).1 >= 4, "it was not renewed");
    ground.assert_completed_by(long, held, 1).await;

    // A claim, half a lease where it hangs, the wait, and the next claim.
    for (job, at_least) in [(failing, WAIT), (hanging, LEASE / 2 + WAIT)] {
        let [first, second] = &history.claims_of(job)[..] else {
            panic!("{job} was not claimed twice");
        };
        let between = Duration::try_from(second.at.duration_since(first.at)).unwrap();
        let right = at_least <= between && between < at_least + LATE;
        assert!(right, "{job} again after {between:?}");
        ground.assert_completed_by(job, second, 2).await;
    }
    let [claim] = &history.claims_of(scheduled)[..] else {
        panic!("{scheduled} was not claimed once");
    };
    let created_at = ground.job(scheduled).await.created_at;
    let waited = Duration::try_from(claim.at.duration_since(created_at)).unwrap();
    assert!(WAIT <= waited && waited < WAIT + LATE, "{waited:?}");

    assert_eq!(ground.left().await, [0; 4]);
    let expected = Done {
        claimed: 6,
        completed: 4,
        retried: 2,
        timed_out: 1,
        ..Done::default()
    };
    assert_eq!(worker.end(), expected);
}

/// Enqueues a job that is told something.
async fn enqueue(ground: &JobDatabase, say: impl FnOnce(&mut Told, &mut NewJob)) -> JobId {
    let mut told = Told::default();
    let mut job = NewJob::new(QUEUE, "work", JsonText::default());
    job.backoff = Some(Backoff {
        base: WAIT,
        jitter: 0.0,
        ..Backoff::default()
    });
    say(&mut told, &mut job);
    job.payload = JsonText::of(&told).unwrap();
    ground.store.job_enqueue(&[job]).await.unwrap()[0].id
}
