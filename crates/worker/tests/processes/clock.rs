//! Workers whose clock is off by two hours, either way, behave like others: only the database's clock counts.

use crate::child::Child;
use crate::job_database::{JobDatabase, QUEUE};
use crate::protocol::{Behaviour, Instructions, WorkTotals};
use crate::{quiet_machine, takeover};
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::{JobStart, NewJob};
use std::time::Duration;

const AHEAD: &str = "+2h";
const BEHIND: &str = "-2h";
const TWO_HOURS: i64 = 2 * 60 * 60;

/// Outlasts the pauses of a process on a busy machine.
const LEASE: Duration = Duration::from_secs(9);
/// The delay of a retry and of a scheduled job.
const WAIT: Duration = Duration::from_secs(1);
/// Tolerance for a slow machine; far below two hours.
const LATE: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn clock_two_hours_ahead_keeps_leases_and_retry_delays() {
    let _quiet = quiet_machine().await;
    check_leases_and_retry_delays(AHEAD, TWO_HOURS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_two_hours_behind_keeps_leases_and_retry_delays() {
    let _quiet = quiet_machine().await;
    check_leases_and_retry_delays(BEHIND, -TWO_HOURS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_two_hours_ahead_takes_over_on_time() {
    let _quiet = quiet_machine().await;
    takeover::killed(Some(AHEAD)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_two_hours_behind_takes_over_on_time() {
    let _quiet = quiet_machine().await;
    takeover::killed(Some(BEHIND)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_worker_two_hours_ahead_cannot_write() {
    let _quiet = quiet_machine().await;
    takeover::suspended(Some(AHEAD)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_worker_two_hours_behind_cannot_write() {
    let _quiet = quiet_machine().await;
    takeover::suspended(Some(BEHIND)).await;
}

async fn check_leases_and_retry_delays(clock: &str, off: i64) {
    let database = JobDatabase::async_commit().await;
    let worker = Child::start_with_clock(
        &database.config("wrong-clock", LEASE, Behaviour::FromPayload),
        Some(clock),
    );
    let wrong = worker.clock - database.now().await.as_second();
    assert!(
        (wrong - off).abs() < 60,
        "the worker's clock is off by {wrong} s"
    );

    let long = enqueue(&database, |instructions, _| instructions.takes = LEASE * 2).await;
    let failing = enqueue(&database, |instructions, _| instructions.fails_once = true).await;
    let hanging = enqueue(&database, |instructions, job| {
        instructions.hangs_once = true;
        job.timeout = Some(LEASE / 2);
    })
    .await;
    let scheduled = enqueue(&database, |_, job| job.start = JobStart::In(WAIT)).await;
    database.until_completed(&[QUEUE], 4).await;

    let history = database.history().await;
    let [claim] = &history.claims_of(long)[..] else {
        panic!("the lease of {long} was lost");
    };
    assert!(history.lease_end(claim).1 >= 2, "the lease was not renewed");
    database.assert_completed_by(long, claim, 1).await;

    // First claim, half a lease if the handler hangs, the retry delay, second claim.
    for (job, at_least) in [(failing, WAIT), (hanging, LEASE / 2 + WAIT)] {
        let [first, second] = &history.claims_of(job)[..] else {
            panic!("{job} was not claimed twice");
        };
        let between = Duration::try_from(second.at.duration_since(first.at)).unwrap();
        let right = at_least <= between && between < at_least + LATE;
        assert!(right, "{job} retried after {between:?}");
        database.assert_completed_by(job, second, 2).await;
    }
    let [claim] = &history.claims_of(scheduled)[..] else {
        panic!("{scheduled} was not claimed once");
    };
    let created_at = database.job(scheduled).await.created_at;
    let waited = Duration::try_from(claim.at.duration_since(created_at)).unwrap();
    assert!(WAIT <= waited && waited < WAIT + LATE, "{waited:?}");

    assert_eq!(database.leftover_rows().await, [0; 4]);
    let expected = WorkTotals {
        claimed: 6,
        completed: 4,
        retried: 2,
        timed_out: 1,
        ..WorkTotals::default()
    };
    assert_eq!(worker.terminate(), expected);
}

/// Enqueues a job with instructions in its payload.
async fn enqueue(
    database: &JobDatabase,
    change: impl FnOnce(&mut Instructions, &mut NewJob),
) -> JobId {
    let mut instructions = Instructions::default();
    let mut job = NewJob::new(QUEUE, "work", JsonText::default());
    job.backoff = Some(Backoff {
        base: WAIT,
        jitter: 0.0,
        ..Backoff::default()
    });
    change(&mut instructions, &mut job);
    job.payload = JsonText::of(&instructions).unwrap();
    database.store.job_enqueue(&[job]).await.unwrap()[0].id
}
