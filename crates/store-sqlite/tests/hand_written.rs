//! What the database refuses, and keeps true, when someone writes to it by hand.
#![allow(clippy::unwrap_used)]

use leasehold_core::{ExecutionEnd, ExecutionId, FailureReason, RequestId, RequestStatus};
use leasehold_store::SchemaStore;
use leasehold_store::request::{
    Claimed, ClaimedRequest, ExecutionOrigin, Orphaned, Rejected, ReleaseKind, RequestFilter,
};
use leasehold_store::{Clock, Page};
use leasehold_store_conformance::{Fixture, OWNER, TestWorkspace, USER, clock};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, Params, params};
use std::sync::Arc;

const EXECUTION_INSERT: &str = include_str!("sql/execution_insert.sql");
const EXECUTION_INSERT_SLOT: &str = include_str!("sql/execution_insert_slot.sql");
const EXECUTION_INSERT_FOREIGN: &str = include_str!("sql/execution_insert_foreign.sql");
const EXECUTION_RUN_AGAIN: &str = include_str!("sql/execution_run_again.sql");
const EXECUTION_END: &str = include_str!("sql/execution_end.sql");
const EXECUTION_DELETE: &str = include_str!("sql/execution_delete.sql");
const EXECUTION_FORGET_SLOT: &str = include_str!("sql/execution_forget_slot.sql");
const EXECUTION_SHARE_SLOT: &str = include_str!("sql/execution_share_slot.sql");
const EXECUTION_MOVE: &str = include_str!("sql/execution_move.sql");
const LIMIT_SET: &str = include_str!("sql/limit_set.sql");
const ROOM_CLAIM: &str = include_str!("sql/room_claim.sql");
const REQUEST_SET_STATUS: &str = include_str!("sql/request_set_status.sql");
const REQUEST_BREAK: &str = include_str!("sql/request_break.sql");
const REQUEST_SET_PARAMS: &str = include_str!("sql/request_set_params.sql");
const REQUEST_SET_REASON: &str = include_str!("sql/request_set_reason.sql");
const VERSION_DELETE: &str = include_str!("sql/version_delete.sql");
const BEGIN: &str = include_str!("../sql/transaction/begin.sql");
const ROLLBACK: &str = include_str!("../sql/transaction/rollback.sql");
const DRIFT: &str = include_str!("sql/drift.sql");

/// A store and a second connection to its file, as a person with a shell would have.
struct Room {
    f: Fixture,
    hand: Connection,
}

impl Room {
    async fn new() -> Self {
        let clock = clock();
        let folder = leasehold_testkit::temp_dir();
        let file = folder.path().join("leasehold.db");
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            ..SqliteOptions::default()
        };
        let store = SqliteStore::open(&file, &options).unwrap();
        store.schema_migrate().await.unwrap();
        let hand = Connection::open(&file).unwrap();
        hand.pragma_update(None, "foreign_keys", true).unwrap();
        Self {
            f: Fixture::new(Arc::new(store), clock).guarded(folder),
            hand,
        }
    }

    fn write(&self, sql: &str, params: impl Params) -> usize {
        self.hand.execute(sql, params).unwrap()
    }

    fn assert_refused(&self, by: &str, sql: &str, params: impl Params) {
        let error = self.hand.execute(sql, params).unwrap_err();
        assert!(error.to_string().ends_with(by), "{by}: {error}");
    }

    fn assert_no_drift(&self) {
        let mut statement = self.hand.prepare(DRIFT).unwrap();
        let drift: Vec<String> = statement
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(drift, [""; 0]);
    }

    async fn in_use(&self, site: &TestWorkspace) -> u32 {
        self.f.slots(site.workspace).await.in_use
    }

    async fn finish(&self, execution: ExecutionId) {
        self.f.finish(execution, ExecutionEnd::Completed).await;
    }
}

fn bytes(id: impl Into<uuid::Uuid>) -> [u8; 16] {
    id.into().into_bytes()
}

fn executions(claimed: &Claimed) -> Vec<ExecutionId> {
    claimed.requests.iter().map(|r| r.execution).collect()
}

#[tokio::test]
async fn a_slot_too_many_is_refused_whether_inserted_or_updated() {
    let room = Room::new().await;
    let t = room.f.site(2).await;
    let asked = room.f.enqueue(&t, 4).await;
    assert_eq!(room.f.claim(10).await.requests.len(), 2);
    room.assert_refused("workspace_limit", EXECUTION_INSERT, [bytes(asked[2])]);
    assert_eq!(room.write(EXECUTION_END, [bytes(t.workspace)]), 2);
    room.assert_no_drift();
    assert_eq!(room.write(EXECUTION_INSERT, [bytes(asked[2])]), 1);
    room.assert_no_drift();
    room.assert_refused("workspace_limit", EXECUTION_RUN_AGAIN, [bytes(t.workspace)]);
    assert_eq!(room.in_use(&t).await, 1);
    room.write(LIMIT_SET, params![bytes(t.workspace), 3]);
    assert_eq!(room.write(EXECUTION_RUN_AGAIN, [bytes(t.workspace)]), 2);
    assert_eq!(room.in_use(&t).await, 3);
    room.assert_no_drift();
}

#[tokio::test]
async fn slot_numbers_cannot_be_bent_to_make_more_fit() {
    let room = Room::new().await;
    let (t, other) = (room.f.site(2).await, room.f.site(1).await);
    let asked = room.f.enqueue(&t, 3).await;
    room.f.claim(10).await;
    let workspace = bytes(t.workspace);
    room.assert_refused("execution_slot", EXECUTION_FORGET_SLOT, [workspace]);
    room.assert_refused(
        "workflow_execution.workspace_id, workflow_execution.slot",
        EXECUTION_SHARE_SLOT,
        [workspace],
    );
    room.assert_refused("execution_slot", EXECUTION_INSERT_SLOT, [bytes(asked[2])]);
    let ids = [workspace, bytes(other.workspace)];
    room.assert_refused("execution_identity", EXECUTION_MOVE, ids);
    let ids = [bytes(asked[2]), bytes(other.workspace)];
    room.assert_refused("execution_request", EXECUTION_INSERT_FOREIGN, ids);
    room.assert_no_drift();
}

#[tokio::test]
async fn a_lowered_limit_admits_nothing_until_fewer_run() {
    let room = Room::new().await;
    let t = room.f.site(20).await;
    room.f.enqueue(&t, 30).await;
    let running = executions(&room.f.claim(20).await);
    for (slot, execution) in running.iter().enumerate() {
        if ![0, 3, 7, 12, 15].contains(&slot) {
            room.finish(*execution).await;
        }
    }
    room.write(LIMIT_SET, params![bytes(t.workspace), 5]);
    room.assert_no_drift();
    assert_eq!(room.f.claim(10).await.requests, []);
    room.finish(running[12]).await;
    assert_eq!(room.f.claim(10).await.requests.len(), 1);
    assert_eq!(room.in_use(&t).await, 5);
    room.write(LIMIT_SET, params![bytes(t.workspace), 0]);
    assert_eq!(room.f.claim(10).await.requests, []);
    room.assert_no_drift();
}

#[tokio::test]
async fn a_turn_row_that_says_too_much_costs_a_look_and_nothing_else() {
    let room = Room::new().await;
    let (t, idle, other) = (
        room.f.site(1).await,
        room.f.site(1).await,
        room.f.site(1).await,
    );
    room.f.enqueue(&t, 2).await;
    assert_eq!(room.f.claim(10).await.requests.len(), 1);
    room.write(ROOM_CLAIM, [bytes(t.workspace)]);
    room.write(ROOM_CLAIM, [bytes(idle.workspace)]);
    let asked = room.f.enqueue(&other, 1).await;
    let claimed = room.f.claim(10).await;
    assert_eq!(claimed.requests.len(), 1);
    assert_eq!(claimed.requests[0].id, asked[0]);
    assert_eq!(room.in_use(&t).await, 1);
}

/// Brings a new request to a status by the store's own operations.
async fn bring(room: &Room, t: &TestWorkspace, to: RequestStatus) -> RequestId {
    let id = room.f.enqueue(t, 1).await[0];
    if to == RequestStatus::Pending {
        return id;
    }
    if to == RequestStatus::Failed {
        room.f.cancel(t.workspace, id).await;
        return id;
    }
    let claimed: ClaimedRequest = room.f.claim_one().await;
    assert_eq!(claimed.id, id);
    if to != RequestStatus::Claimed {
        room.f.dispatch(&claimed).await;
    }
    if to == RequestStatus::Completed {
        room.finish(claimed.execution).await;
    }
    id
}

#[tokio::test]
async fn exactly_the_transitions_of_the_core_are_accepted() {
    let room = Room::new().await;
    let t = room.f.site(100).await;
    for from in RequestStatus::ALL {
        let id = bring(&room, &t, from).await;
        for to in RequestStatus::ALL.into_iter().filter(|to| *to != from) {
            for reason in FailureReason::ALL {
                room.hand.execute_batch(BEGIN).unwrap();
                let row = params![bytes(id), to.as_str(), reason.as_str()];
                let outcome = room.hand.execute(REQUEST_SET_STATUS, row);
                room.hand.execute_batch(ROLLBACK).unwrap();
                let before_admission = matches!(
                    reason,
                    FailureReason::Cancelled
                        | FailureReason::WorkspaceNotFound
                        | FailureReason::DefinitionNotFound
                        | FailureReason::VersionNotFound
                );
                let failed_early = (from, to) == (RequestStatus::Pending, RequestStatus::Failed);
                let allowed = from.may_become(to) && (!failed_early || before_admission);
                match outcome {
                    Ok(_) => assert!(allowed, "{from} → {to} ({reason}) was accepted"),
                    Err(error) => {
                        assert!(!allowed, "{from} → {to} ({reason}): {error}");
                        assert!(error.to_string().ends_with("request_transition"), "{error}");
                    }
                }
            }
        }
        if from == RequestStatus::Pending {
            room.assert_refused("request_claim_fields", REQUEST_BREAK, [bytes(id)]);
            room.f.cancel(t.workspace, id).await;
        }
    }
    room.assert_no_drift();
}

#[tokio::test]
async fn an_execution_that_vanished_is_replaced_when_there_is_room() {
    let room = Room::new().await;
    let t = room.f.site(1).await;
    let kept = room.f.kept(&t).await;
    room.write(EXECUTION_DELETE, [bytes(kept.execution)]);
    room.assert_no_drift();
    room.f.set_paused(t.workspace, true).await;
    let claimed = room.f.claim(10).await;
    let orphaned = Orphaned {
        request: kept.id,
        workspace: t.workspace,
        execution: kept.execution,
    };
    assert_eq!(
        (claimed.requests, claimed.orphaned),
        (vec![], vec![orphaned])
    );
    room.f.set_paused(t.workspace, false).await;
    let again = room.f.claim_one().await;
    assert_eq!(
        (again.id, again.origin),
        (kept.id, ExecutionOrigin::Replaced)
    );
    assert_ne!(again.execution, kept.execution);
    assert_eq!(room.in_use(&t).await, 1);
    room.assert_no_drift();
}

fn rejected(request: RequestId, site: &TestWorkspace, reason: FailureReason) -> Rejected {
    Rejected {
        request,
        workspace: site.workspace,
        reason,
    }
}

#[tokio::test]
async fn a_request_whose_version_vanished_fails_without_a_slot() {
    let room = Room::new().await;
    let t = room.f.site(1).await;
    let asked = room.f.enqueue(&t, 1).await;
    room.write(VERSION_DELETE, [bytes(t.version)]);
    let claimed = room.f.claim(10).await;
    let reason = FailureReason::VersionNotFound;
    assert_eq!(claimed.rejected, [rejected(asked[0], &t, reason)]);
    assert_eq!(room.in_use(&t).await, 0);
    room.assert_no_drift();
}

#[tokio::test]
async fn a_reason_of_a_newer_program_hides_no_request() {
    let room = Room::new().await;
    let t = room.f.site(1).await;
    let id = room.f.enqueue(&t, 1).await[0];
    room.f.cancel(t.workspace, id).await;
    room.write(
        REQUEST_SET_REASON,
        params![bytes(id), "known_to_a_newer_program"],
    );
    let request = room.f.request(t.workspace, id).await;
    assert_eq!(
        (request.status, request.failure_reason),
        (RequestStatus::Failed, None)
    );
    for wrong in [Some("Not a name"), Some(""), None] {
        let row = params![bytes(id), wrong];
        room.assert_refused("request_failure_reason", REQUEST_SET_REASON, row);
    }
}

/// What SQLite takes for JSON and this program cannot read: nested too deep, a number too large.
fn unreadable() -> [String; 2] {
    [
        format!("{}{}", "[".repeat(500), "]".repeat(500)),
        "1e999".to_owned(),
    ]
}

#[tokio::test]
async fn params_that_cannot_be_read_end_their_request_and_no_other() {
    use RequestStatus::{Claimed, Failed, Pending};
    for text in unreadable() {
        let room = Room::new().await;
        let t = room.f.site(5).await;
        let asked = room.f.enqueue(&t, 3).await;
        room.write(REQUEST_SET_PARAMS, params![bytes(asked[1]), text]);
        let claimed = room.f.claim(10).await;
        let ids: Vec<RequestId> = claimed.requests.iter().map(|r| r.id).collect();
        assert_eq!(ids, [asked[0], asked[2]]);
        let reason = FailureReason::DispatchExhausted;
        assert_eq!(claimed.rejected, [rejected(asked[1], &t, reason)]);
        assert!(!claimed.more);
        assert_eq!(room.in_use(&t).await, 2);
        room.f
            .assert_timeline(
                t.workspace,
                asked[1],
                &[
                    (None, Pending, USER, None),
                    (Some(Pending), Claimed, OWNER, None),
                    (Some(Claimed), Failed, OWNER, Some("dispatch_exhausted")),
                ],
            )
            .await;
        let request = room.f.request(t.workspace, asked[1]).await;
        assert_eq!(request.params, "(these params cannot be read)");
        assert_eq!(request.failure_reason, Some(reason));
        assert!(request.last_error.unwrap().contains("cannot be read"));
        let filter = RequestFilter::default();
        let list = room.f.store.request_list(&filter, Page::first(10));
        assert_eq!(list.await.unwrap().len(), 3);
        room.assert_no_drift();
    }
}

#[tokio::test]
async fn params_that_became_unreadable_in_a_retry_free_the_slot_too() {
    let room = Room::new().await;
    let t = room.f.site(1).await;
    let kept = room.f.kept(&t).await;
    room.write(REQUEST_SET_PARAMS, params![bytes(kept.id), unreadable()[0]]);
    let next = room.f.enqueue(&t, 1).await;
    let claimed = room.f.claim(10).await;
    let reason = FailureReason::DispatchExhausted;
    assert_eq!(claimed.rejected, [rejected(kept.id, &t, reason)]);
    assert_eq!(claimed.requests[0].id, next[0]);
    assert_eq!(room.in_use(&t).await, 1);
    room.assert_no_drift();
}

#[tokio::test]
async fn counts_lines_and_slots_are_true_after_any_mixture_of_operations() {
    let room = Room::new().await;
    let mut sites = Vec::new();
    for limit in [0, 1, 3, 8] {
        sites.push(room.f.site(limit).await);
    }
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut held: Vec<ClaimedRequest> = Vec::new();
    for _ in 0..300 {
        let t = &sites[usize::try_from(random(4)).unwrap()];
        match random(7) {
            0 | 1 => drop(room.f.enqueue(t, 3).await),
            2 | 3 => held.extend(room.f.claim(3).await.requests),
            4 => {
                let limit = i64::try_from(random(9)).unwrap();
                room.write(LIMIT_SET, params![bytes(t.workspace), limit]);
            }
            _ if held.is_empty() => {}
            5 => {
                let taken = held.swap_remove(0);
                let kinds = [ReleaseKind::Unknown, ReleaseKind::NotStarted];
                let kind = kinds[usize::try_from(random(2)).unwrap()];
                room.f.release(&taken, kind, random(2)).await;
            }
            _ => {
                let last = held.len() - 1;
                let taken = held.swap_remove(last / 2);
                room.finish(taken.execution).await;
            }
        }
        room.f.advance(1);
        room.assert_no_drift();
    }
}
