//! Limits under races: forty workers in four processes, leases that run out, renewals that come late, and limits that change meanwhile. Every commit is
//! checked, not samples.

use crate::child::Child;
use crate::job_database::{JobDatabase, QUEUE, enqueue};
use crate::orders::{Behaviour, Done, Orders};
use crate::{alone, history::Summary};
use leasehold_core::job::JobRetry;
use leasehold_store::queue::QueueChange;
use std::time::Duration;

const PROCESSES: usize = 4;
const WORKERS_EACH: usize = 10;
const LEASE: Duration = Duration::from_millis(300);
const SWEEP: Duration = Duration::from_millis(100);
/// The limits in force one after the other, each until so many more jobs are completed as it lets through in about the same time.
const LIMITS: [u32; 9] = [7, 3, 12, 7, 1, 9, 2, 15, 7];
const JOBS_EACH: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn no_commit_of_a_claim_leaves_more_running_than_the_queues_limit() {
    let _alone = alone().await;
    let ground = JobDatabase::new().await;
    let queues = [QUEUE];
    limit(&ground, QUEUE, LIMITS[0]).await;
    let processes = storm(&ground, &queues, async |next| {
        limit(&ground, QUEUE, next).await;
    });
    let summary = all_is_well(&ground, processes.await).await;
    assert_met(&summary, &LIMITS);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_commit_of_a_claim_leaves_more_running_than_the_limit_of_all_queues() {
    let _alone = alone().await;
    let ground = JobDatabase::new().await;
    let queues = ["emails", "reports"];
    // One queue has a limit of its own as well, which is met while that of all is high.
    limit(&ground, "emails", 5).await;
    let set = async |limit| ground.store.job_limit_set(Some(limit)).await.unwrap();
    set(LIMITS[0]).await;
    let processes = storm(&ground, &queues, set).await;
    let summary = all_is_well(&ground, processes).await;
    assert_met(&summary, &[&LIMITS[..], &[5]].concat());
}

/// Runs the processes until all jobs are completed, and sets the next limit whenever a part of them is.
async fn storm(ground: &JobDatabase, queues: &[&str], set: impl AsyncFn(u32)) -> Vec<Child> {
    for queue in queues {
        keep_trying(ground, queue).await;
        enqueue(&*ground.store, queue, jobs() / queues.len()).await;
    }
    let processes: Vec<Child> = (0..PROCESSES)
        .map(|number| Child::start(&orders(ground, queues, number)))
        .collect();
    let mut completed = 0;
    for limits in LIMITS.windows(2) {
        completed += jobs_under(limits[0]);
        ground.until_completed(queues, completed).await;
        set(limits[1]).await;
    }
    ground.until_completed(queues, jobs()).await;
    processes
}

/// A few more for low limits: what ran under the one before is still to end.
fn jobs_under(limit: u32) -> usize {
    (limit as usize + 3) * JOBS_EACH
}

fn jobs() -> usize {
    LIMITS.into_iter().map(jobs_under).sum()
}

fn orders(ground: &JobDatabase, queues: &[&str], number: usize) -> Orders {
    Orders {
        queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
        workers: WORKERS_EACH,
        concurrency: 3,
        sweep: SWEEP,
        quiet: true,
        ..ground.orders(&format!("p{number}"), LEASE, Behaviour::Chance)
    }
}

/// Every job has ended well and nothing is left; chance had its way with the leases, and still every commit kept the limits.
async fn all_is_well(ground: &JobDatabase, processes: Vec<Child>) -> Summary {
    let mut done = Done::default();
    for process in processes {
        let more = process.end();
        done.completed += more.completed;
        done.lost += more.lost;
        assert_eq!(more.failed, 0);
        assert!(more.completed > 0, "a process had no part in it: {more:?}");
    }
    assert_eq!(ground.left().await, [0; 4]);
    // A worker whose end came too late may not know that it was written down.
    assert!(done.completed <= jobs() as u64, "{done:?}");
    assert!(done.lost >= 30, "hardly any lease was lost: {done:?}");
    let summary = ground.history().await.check();
    assert!(summary.over_a_lowered > 0, "{summary:?}");
    summary
}

/// Each of these limits was met by some commits, and all together by many.
fn assert_met(summary: &Summary, limits: &[u32]) {
    for limit in limits {
        let full = summary.full.get(&(*limit as usize)).copied();
        assert!(full.unwrap_or(0) >= 5, "{limit} in {summary:?}");
    }
    let full: usize = summary.full.values().sum();
    assert!(full >= 300, "limits were hardly met: {summary:?}");
}

async fn limit(ground: &JobDatabase, queue: &str, limit: u32) {
    let change = QueueChange {
        limit: Some(Some(limit)),
        ..QueueChange::default()
    };
    ground.store.queue_update(queue, &change).await.unwrap();
}

/// Leases that run out count as attempts; no job shall be given up for them.
async fn keep_trying(ground: &JobDatabase, queue: &str) {
    let retry = JobRetry {
        max_attempts: 1_000,
        ..JobRetry::default()
    };
    let change = QueueChange {
        retry: Some(retry),
        ..QueueChange::default()
    };
    ground.store.queue_update(queue, &change).await.unwrap();
}
