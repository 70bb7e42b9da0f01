//! A process is paused between claim and start, and continues after others have taken over.

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

/// The transitions to start requests that a process made. Excludes completions, which any reconciler may write.
async fn transitions_of(
    process: &Process,
    workspace: &OrderWorkspace,
    ids: &[RequestId],
) -> Vec<RequestStatus> {
    let mut steps = Vec::new();
    for id in ids {
        let timeline = workspace.timeline(*id).await.into_iter();
        steps.extend(
            timeline
                .filter(|event| is_of(process, &event.by))
                .map(|event| event.to.known().unwrap())
                .filter(|to| *to != RequestStatus::Completed),
        );
    }
    steps
}

#[tokio::test(flavor = "multi_thread")]
async fn process_paused_between_claim_and_start_writes_nothing() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let proxy = FaultProxy::to(namespace.address()).await;
    let mut paused = Program::new(database.url(), &proxy.address(), &namespace.name)
        .quick()
        .patient()
        .set("log.level", program::VERBOSE)
        .start();
    program::wait_for_lines(&paused, program::LOCK_ACQUIRED, 1).await;
    program::wait_for_lines(&paused, program::CONNECTED, 1).await;
    let mut other = Program::new(database.url(), namespace.address(), &namespace.name)
        .quick()
        .start();

    proxy.hold_requests();
    let workspace = OrderWorkspace::new(database::store(database.url()), LIMIT).await;
    let all = workspace
        .enqueue_many(REQUESTS, &json!({"do": "nap", "seconds": 0.2}))
        .await;
    workspace
        .until("claimed", |counts| counts.claimed == u64::from(LIMIT))
        .await;
    program::wait_for_lines(&paused, "Dispatching queue item", LIMIT as usize).await;
    proxy.wait_for_held_requests(1).await;
    paused.stop();
    let claimed = [RequestStatus::Claimed; LIMIT as usize];
    assert_eq!(transitions_of(&paused, &workspace, &all).await, claimed);
    let cancelled = all[0];
    assert!(matches!(
        workspace.cancel(cancelled).await,
        Cancelled::Requested(_)
    ));

    // The cancelled request frees a slot.
    workspace
        .until("resolved by the other", |counts| {
            counts.failed == 1 && counts.dispatched == u64::from(LIMIT)
        })
        .await;
    proxy.pass();
    paused.cont();
    program::wait_for_lines(&paused, "claim lost", LIMIT as usize - 1).await;
    let _worker = namespace.worker();
    workspace
        .until("all ended", |counts| {
            counts.completed == REQUESTS as u64 - 1
        })
        .await;

    assert_eq!(transitions_of(&paused, &workspace, &all).await, claimed);
    let ended = workspace.get(cancelled).await;
    assert_eq!(ended.status, RequestStatus::Failed);
    assert_eq!(ended.failure_reason, Some(FailureReason::Cancelled.into()));
    let requests = workspace.all().await;
    assert!(
        requests
            .iter()
            .all(|request| request.dispatch_failures == 0)
    );
    let runs = namespace.closed_runs(REQUESTS).await;
    temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
    let open = temporal::max_open(&runs, workspace.workspace);
    assert!(open <= LIMIT as usize, "{open} were open at once: {runs:?}");
    assert_eq!(workspace.slots().await.in_use, 0);
    program::stop(&mut paused);
    program::stop(&mut other);
}
