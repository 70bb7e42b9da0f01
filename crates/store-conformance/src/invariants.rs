//! Invariants of a store, checked through the trait while no operation runs.

use crate::Fixture;
use crate::drift_check;
use crate::dump::Dump;
use crate::factory::{known, ok};
use leasehold_core::{ExecutionId, ExecutionStatus, RequestId, RequestStatus, Usage};
use leasehold_store::Page;
use leasehold_store::execution::ActiveKey;
use leasehold_store::request::{Counts, Request};
use std::collections::{BTreeMap, BTreeSet};

/// Reads everything, asserts every invariant and returns the dump.
///
/// # Panics
/// When an invariant is violated.
pub async fn check(f: &Fixture) -> Dump {
    let dump = f.dump().await;
    let active = active(f).await;
    counts_equal_the_listing(&dump);
    open_bytes_equal_the_listing(f, &dump).await;
    slots_are_the_running_executions(&dump, &active);
    overview_fits(f, &dump).await;
    drift_check::none(&*f.store).await;
    for request in dump.requests.values() {
        row_makes_sense(request);
        execution_fits(request, &dump);
        timeline_fits(request, &dump);
    }
    let of_requests: BTreeSet<ExecutionId> =
        dump.requests.values().filter_map(|r| r.execution).collect();
    for (execution, request) in &active {
        assert!(
            of_requests.contains(execution),
            "{execution} runs without a request"
        );
        let status = known(&dump.requests[request].status);
        assert!(
            !status.is_finished(),
            "{execution} runs for an ended request"
        );
    }
    dump
}

async fn active(f: &Fixture) -> BTreeMap<ExecutionId, RequestId> {
    let mut all = BTreeMap::new();
    let mut page = Page::first(500);
    loop {
        let rows = ok(f.store.execution_list_active(page).await);
        let Some(last) = rows.last() else { return all };
        let key = ActiveKey {
            workspace: last.workspace,
            admission: last.admission,
        };
        page = Page::after(key, 500);
        all.extend(rows.iter().map(|e| (e.id, e.request)));
    }
}

fn counts_equal_the_listing(dump: &Dump) {
    let mut listed: BTreeMap<_, Counts> = dump
        .workspaces
        .keys()
        .map(|id| (*id, Counts::default()))
        .collect();
    for request in dump.requests.values() {
        let counts = listed.entry(request.workspace).or_default();
        *match known(&request.status) {
            RequestStatus::Pending => &mut counts.pending,
            RequestStatus::Claimed => &mut counts.claimed,
            RequestStatus::Dispatched => &mut counts.dispatched,
            RequestStatus::Completed => &mut counts.completed,
            RequestStatus::Failed => &mut counts.failed,
        } += 1;
    }
    assert_eq!(dump.counts, listed, "counts equal a full listing");
}

/// Asserts that the quotas count what is listed. Steps of graphs that write much are charged in addition; [`crate::workspace_quota`] checks them.
async fn open_bytes_equal_the_listing(f: &Fixture, dump: &Dump) {
    for id in dump.workspaces.keys() {
        let quota = ok(f.store.workspace_quota(*id).await).expect("the workspace exists");
        let own = dump.requests.values().filter(|r| r.workspace == *id);
        let open = own.filter(|request| !known(&request.status).is_finished());
        let listed = Usage {
            requests: dump.counts[id].pending,
            bytes: open.map(|request| request.bytes).sum(),
        };
        assert_eq!(quota.used, listed, "usage of {id}");
    }
}

fn slots_are_the_running_executions(dump: &Dump, active: &BTreeMap<ExecutionId, RequestId>) {
    for (workspace, slots) in &dump.slots {
        let running = active
            .values()
            .filter(|request| dump.requests[request].workspace == *workspace)
            .count();
        if let Some(slots) = slots {
            assert_eq!(slots.in_use as usize, running, "slots of {workspace}");
        }
    }
}

/// Asserts that the overview agrees with the individual reads.
async fn overview_fits(f: &Fixture, dump: &Dump) {
    let overview = ok(f.store.workspace_overview(1_000).await);
    let living = dump.workspaces.values().filter(|w| w.deleted_at.is_none());
    assert_eq!(overview.workspaces, living.count() as u64);
    assert_eq!(
        overview.busiest.len() as u64,
        overview.workspaces.min(1_000)
    );
    for shown in &overview.busiest {
        let id = shown.workspace.id;
        assert_eq!(dump.workspaces.get(&id), Some(&shown.workspace));
        assert_eq!(dump.counts[&id], shown.requests, "requests of {id}");
        assert_eq!(dump.slots[&id], Some(shown.slots), "slots of {id}");
    }
}

fn row_makes_sense(request: &Request) {
    let id = request.id;
    let claimed = request.status == RequestStatus::Claimed;
    assert_eq!(request.claimed_by.is_some(), claimed, "{id} claimed_by");
    assert_eq!(request.lease_expires_at.is_some(), claimed, "{id} lease");
    assert_eq!(
        request.finished_at.is_some(),
        known(&request.status).is_finished(),
        "{id} finished_at"
    );
    let failed = request.status == RequestStatus::Failed;
    assert_eq!(
        request.failure_reason.is_some(),
        failed,
        "{id} failure_reason"
    );
    assert!(
        request.dispatch_failures <= request.attempt_count,
        "{id} attempts"
    );
    if request.status == RequestStatus::Pending {
        assert_eq!(request.claimed_at, None, "{id} is pending");
    }
}

fn execution_fits(request: &Request, dump: &Dump) {
    let execution = dump.executions.get(&request.id);
    let running = execution.is_some_and(|e| e.status == ExecutionStatus::Running);
    match known(&request.status) {
        RequestStatus::Pending => {
            assert_eq!(request.execution.is_some(), running, "{}", request.id)
        }
        RequestStatus::Claimed | RequestStatus::Dispatched => assert!(running, "{}", request.id),
        RequestStatus::Completed => assert!(
            execution.is_some_and(|e| e.status == ExecutionStatus::Completed),
            "{}",
            request.id
        ),
        RequestStatus::Failed => assert!(!running, "{}", request.id),
    }
    if let Some(execution) = execution {
        assert_eq!(execution.request, request.id);
        assert_eq!(execution.workspace, request.workspace);
        assert_eq!(execution.version, request.version);
    }
}

fn timeline_fits(request: &Request, dump: &Dump) {
    let timeline = &dump.timelines[&request.id];
    let first = timeline.first().expect("every request has a timeline");
    assert_eq!(first.from, None);
    assert_eq!(first.to, RequestStatus::Pending);
    assert_eq!(timeline.last().map(|e| &e.to), Some(&request.status));
    // Times may be slightly out of order: an operation reads the clock before it waits for a lock.
    for pair in timeline.windows(2) {
        assert_eq!(
            pair[1].from,
            Some(pair[0].to.clone()),
            "{} has a gap in its timeline",
            request.id
        );
        assert!(
            known(&pair[0].to).may_become(known(&pair[1].to)),
            "{} has an invalid transition",
            request.id
        );
    }
}
