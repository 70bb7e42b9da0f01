//! A process that is stopped between claim and start, and continued when others have done its work.

use crate::database;
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program, is_of};
use crate::temporal::{self, Namespace};
use leasehold_core::{FailureReason, RequestId, RequestStatus};
use leasehold_store::request::Cancelled;
use leasehold_testkit::{FaultProxy, Process};
use serde_json::json;

const LIMIT: u32 = 3;
const REQUESTS: usize = 6;

/// The steps of requests that a process made for their start. Following their ends is another matter: whoever has that lock does it.
async fn steps_of(
    process: &Process,
    site: &OrderWorkspace,
    ids: &[RequestId],
) -> Vec<RequestStatus> {
    let mut steps = Vec::new();
    for id in ids {
        let timeline = site.timeline(*id).await.into_iter();
        steps.extend(
            timeline
                .filter(|event| is_of(process, &event.by))
                .map(|event| event.to)
                .filter(|to| *to != RequestStatus::Completed),
        );
    }
    steps
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_stopped_between_claim_and_start_writes_nothing_when_it_continues() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let proxy = FaultProxy::to(namespace.address()).await;
    let mut paused = Program::new(database.url(), &proxy.address(), &namespace.name)
        .quick()
        .set("log.level", program::TELLING)
        .start();
    program::said(&paused, program::WORKS, 1).await;
    program::said(&paused, program::CONNECTED, 1).await;
    let mut other = Program::new(database.url(), namespace.address(), &namespace.name)
        .quick()
        .start();

    proxy.hold_requests();
    let site = OrderWorkspace::new(database::store(database.url()), LIMIT).await;
    let all = site
        .enqueue_many(REQUESTS, &json!({"do": "nap", "seconds": 0.2}))
        .await;
    site.until("claimed", |counts| counts.claimed == u64::from(LIMIT))
        .await;
    program::said(&paused, "Dispatching queue item", LIMIT as usize).await;
    proxy.held_requests(1).await;
    paused.stop();
    let claimed = [RequestStatus::Claimed; LIMIT as usize];
    assert_eq!(steps_of(&paused, &site, &all).await, claimed);
    let cancelled = all[0];
    assert!(matches!(site.cancel(cancelled).await, Cancelled::Wished(_)));

    // The one that was cancelled makes room for one more.
    site.until("resolved by the other", |counts| {
        counts.failed == 1 && counts.dispatched == u64::from(LIMIT)
    })
    .await;
    proxy.pass();
    paused.cont();
    program::said(&paused, "claim lost", LIMIT as usize - 1).await;
    let _worker = namespace.worker();
    site.until("all ended", |counts| {
        counts.completed == REQUESTS as u64 - 1
    })
    .await;

    assert_eq!(steps_of(&paused, &site, &all).await, claimed);
    let ended = site.get(cancelled).await;
    assert_eq!(ended.status, RequestStatus::Failed);
    assert_eq!(ended.failure_reason, Some(FailureReason::Cancelled));
    let requests = site.all().await;
    assert!(
        requests
            .iter()
            .all(|request| request.dispatch_failures == 0)
    );
    let runs = namespace.closed_runs(REQUESTS).await;
    temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
    let open = temporal::most_open(&runs, site.workspace);
    assert!(open <= LIMIT as usize, "{open} were open at once: {runs:?}");
    assert_eq!(site.slots().await.in_use, 0);
    program::stop(&mut paused);
    program::stop(&mut other);
}
