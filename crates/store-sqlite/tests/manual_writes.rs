//! Manual writes to the database: constraints reject invalid ones, and triggers maintain derived columns.
#![allow(clippy::unwrap_used)]

use leasehold_core::{ExecutionEnd, ExecutionId, FailureReason, RequestId, RequestStatus};
use leasehold_store::SchemaStore;
use leasehold_store::request::{
    Claimed, ClaimedRequest, ExecutionOrigin, Orphaned, RedriveMany, Rejected, ReleaseKind,
    RequestFilter,
};
use leasehold_store::{Clock, Page};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
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
const FALSE_READY_SET: &str = include_str!("sql/false_ready_set.sql");
const REQUEST_SET_STATUS: &str = include_str!("sql/request_set_status.sql");
const REQUEST_BREAK: &str = include_str!("sql/request_break.sql");
const REQUEST_SET_PARAMS: &str = include_str!("sql/request_set_params.sql");
const REQUEST_SET_REASON: &str = include_str!("sql/request_set_reason.sql");
const VERSION_DELETE: &str = include_str!("sql/version_delete.sql");
const BEGIN: &str = include_str!("../sql/transaction/begin.sql");
const ROLLBACK: &str = include_str!("../sql/transaction/rollback.sql");
const DRIFT: &str = include_str!("sql/drift.sql");

/// A store and a second connection to its file, like the `sqlite3` shell.
struct TestEnv {
    f: Fixture,
    client: Connection,
}

impl TestEnv {
    async fn new() -> Self {
        let clock = clock();
        let dir = leasehold_testkit::temp_dir();
        let file = dir.path().join("leasehold.db");
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            ..SqliteOptions::default()
        };
        let store = SqliteStore::open(&file, &options).unwrap();
        store.schema_migrate().await.unwrap();
        let client = Connection::open(&file).unwrap();
        client.pragma_update(None, "foreign_keys", true).unwrap();
        Self {
            f: Fixture::new(Arc::new(store), clock).guarded(dir),
            client,
        }
    }

    fn write(&self, sql: &str, params: impl Params) -> usize {
        self.client.execute(sql, params).unwrap()
    }

    fn assert_rejected(&self, by: &str, sql: &str, params: impl Params) {
        let error = self.client.execute(sql, params).unwrap_err();
        assert!(error.to_string().ends_with(by), "{by}: {error}");
    }

    fn assert_no_drift(&self) {
        let mut statement = self.client.prepare(DRIFT).unwrap();
        let drift: Vec<String> = statement
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(drift, [""; 0]);
    }

    async fn in_use(&self, workspace: &TestWorkspace) -> u32 {
        self.f.slots(workspace.workspace).await.in_use
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
async fn execution_over_the_limit_is_rejected_on_insert_and_update() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(2).await;
    let requests = env.f.enqueue(&t, 4).await;
    assert_eq!(env.f.claim(10).await.requests.len(), 2);
    env.assert_rejected("workspace_limit", EXECUTION_INSERT, [bytes(requests[2])]);
    assert_eq!(env.write(EXECUTION_END, [bytes(t.workspace)]), 2);
    env.assert_no_drift();
    assert_eq!(env.write(EXECUTION_INSERT, [bytes(requests[2])]), 1);
    env.assert_no_drift();
    env.assert_rejected("workspace_limit", EXECUTION_RUN_AGAIN, [bytes(t.workspace)]);
    assert_eq!(env.in_use(&t).await, 1);
    env.write(LIMIT_SET, params![bytes(t.workspace), 3]);
    assert_eq!(env.write(EXECUTION_RUN_AGAIN, [bytes(t.workspace)]), 2);
    assert_eq!(env.in_use(&t).await, 3);
    env.assert_no_drift();
}

#[tokio::test]
async fn slot_numbers_cannot_be_changed_to_exceed_the_limit() {
    let env = TestEnv::new().await;
    let (t, other) = (env.f.workspace(2).await, env.f.workspace(1).await);
    let requests = env.f.enqueue(&t, 3).await;
    env.f.claim(10).await;
    let workspace = bytes(t.workspace);
    env.assert_rejected("execution_slot", EXECUTION_FORGET_SLOT, [workspace]);
    env.assert_rejected(
        "workflow_execution.workspace_id, workflow_execution.slot",
        EXECUTION_SHARE_SLOT,
        [workspace],
    );
    env.assert_rejected(
        "execution_slot",
        EXECUTION_INSERT_SLOT,
        [bytes(requests[2])],
    );
    let ids = [workspace, bytes(other.workspace)];
    env.assert_rejected("execution_identity", EXECUTION_MOVE, ids);
    let ids = [bytes(requests[2]), bytes(other.workspace)];
    env.assert_rejected("execution_request", EXECUTION_INSERT_FOREIGN, ids);
    env.assert_no_drift();
}

#[tokio::test]
async fn lowered_limit_admits_nothing_until_fewer_run() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(20).await;
    env.f.enqueue(&t, 30).await;
    let running = executions(&env.f.claim(20).await);
    for (slot, execution) in running.iter().enumerate() {
        if ![0, 3, 7, 12, 15].contains(&slot) {
            env.finish(*execution).await;
        }
    }
    env.write(LIMIT_SET, params![bytes(t.workspace), 5]);
    env.assert_no_drift();
    assert_eq!(env.f.claim(10).await.requests, []);
    env.finish(running[12]).await;
    assert_eq!(env.f.claim(10).await.requests.len(), 1);
    assert_eq!(env.in_use(&t).await, 5);
    env.write(LIMIT_SET, params![bytes(t.workspace), 0]);
    assert_eq!(env.f.claim(10).await.requests, []);
    env.assert_no_drift();
}

#[tokio::test]
async fn turn_row_wrongly_marked_ready_admits_nothing() {
    let env = TestEnv::new().await;
    let (t, idle, other) = (
        env.f.workspace(1).await,
        env.f.workspace(1).await,
        env.f.workspace(1).await,
    );
    env.f.enqueue(&t, 2).await;
    assert_eq!(env.f.claim(10).await.requests.len(), 1);
    env.write(FALSE_READY_SET, [bytes(t.workspace)]);
    env.write(FALSE_READY_SET, [bytes(idle.workspace)]);
    let requests = env.f.enqueue(&other, 1).await;
    let claimed = env.f.claim(10).await;
    assert_eq!(claimed.requests.len(), 1);
    assert_eq!(claimed.requests[0].id, requests[0]);
    assert_eq!(env.in_use(&t).await, 1);
}

/// Creates a request in a status through the store's operations.
async fn request_in_status(env: &TestEnv, t: &TestWorkspace, to: RequestStatus) -> RequestId {
    let id = env.f.enqueue(t, 1).await[0];
    if to == RequestStatus::Pending {
        return id;
    }
    if to == RequestStatus::Failed {
        env.f.cancel(t.workspace, id).await;
        return id;
    }
    let claimed: ClaimedRequest = env.f.claim_one().await;
    assert_eq!(claimed.id, id);
    if to != RequestStatus::Claimed {
        env.f.dispatch(&claimed).await;
    }
    if to == RequestStatus::Completed {
        env.finish(claimed.execution).await;
    }
    id
}

#[tokio::test]
async fn database_accepts_exactly_the_core_transitions() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(100).await;
    for from in RequestStatus::ALL {
        let id = request_in_status(&env, &t, from).await;
        for to in RequestStatus::ALL.into_iter().filter(|to| *to != from) {
            for reason in FailureReason::ALL {
                env.client.execute_batch(BEGIN).unwrap();
                let row = params![bytes(id), to.as_str(), reason.as_str()];
                let outcome = env.client.execute(REQUEST_SET_STATUS, row);
                env.client.execute_batch(ROLLBACK).unwrap();
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
            env.assert_rejected("request_claim_fields", REQUEST_BREAK, [bytes(id)]);
            env.f.cancel(t.workspace, id).await;
        }
    }
    env.assert_no_drift();
}

#[tokio::test]
async fn missing_execution_is_replaced_when_a_slot_is_free() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(1).await;
    let kept = env.f.enqueue_unknown(&t).await;
    env.write(EXECUTION_DELETE, [bytes(kept.execution)]);
    env.assert_no_drift();
    env.f.set_paused(t.workspace, true).await;
    let claimed = env.f.claim(10).await;
    let orphaned = Orphaned {
        request: kept.id,
        workspace: t.workspace,
        execution: kept.execution,
    };
    assert_eq!(
        (claimed.requests, claimed.orphaned),
        (vec![], vec![orphaned])
    );
    env.f.set_paused(t.workspace, false).await;
    let again = env.f.claim_one().await;
    assert_eq!(
        (again.id, again.origin),
        (kept.id, ExecutionOrigin::Replaced)
    );
    assert_ne!(again.execution, kept.execution);
    assert_eq!(env.in_use(&t).await, 1);
    env.assert_no_drift();
}

fn rejected(request: RequestId, workspace: &TestWorkspace, reason: FailureReason) -> Rejected {
    Rejected {
        request,
        workspace: workspace.workspace,
        reason,
    }
}

#[tokio::test]
async fn request_with_deleted_version_fails_without_a_slot() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(1).await;
    let requests = env.f.enqueue(&t, 1).await;
    env.write(VERSION_DELETE, [bytes(t.version)]);
    let claimed = env.f.claim(10).await;
    let reason = FailureReason::VersionNotFound;
    assert_eq!(claimed.rejected, [rejected(requests[0], &t, reason)]);
    assert_eq!(env.in_use(&t).await, 0);
    env.assert_no_drift();
}

#[tokio::test]
async fn unknown_failure_reason_does_not_hide_the_request() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(1).await;
    let id = env.f.enqueue(&t, 1).await[0];
    env.f.cancel(t.workspace, id).await;
    env.write(
        REQUEST_SET_REASON,
        params![bytes(id), "reason_of_a_newer_version"],
    );
    let request = env.f.request(t.workspace, id).await;
    assert_eq!(
        (request.status, request.failure_reason),
        (
            RequestStatus::Failed.into(),
            Some("reason_of_a_newer_version".parse().unwrap())
        )
    );
    for wrong in [Some("Not a name"), Some(""), None] {
        let row = params![bytes(id), wrong];
        env.assert_rejected("request_failure_reason", REQUEST_SET_REASON, row);
    }
}

/// JSON that SQLite accepts and serde_json cannot read: nested too deeply, a number too large.
fn unreadable() -> [String; 2] {
    [
        format!("{}{}", "[".repeat(500), "]".repeat(500)),
        "1e999".to_owned(),
    ]
}

#[tokio::test]
async fn unreadable_params_are_claimed_as_such() {
    for text in unreadable() {
        let env = TestEnv::new().await;
        let t = env.f.workspace(5).await;
        let requests = env.f.enqueue(&t, 3).await;
        env.write(REQUEST_SET_PARAMS, params![bytes(requests[1]), text]);
        let claimed = env.f.claim(10).await;
        let found = claimed
            .requests
            .iter()
            .map(|r| (r.id, r.unreadable.is_some()));
        let expected = [
            (requests[0], false),
            (requests[1], true),
            (requests[2], false),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!((claimed.rejected, claimed.more), (vec![], false));
        assert_eq!(env.in_use(&t).await, 3);
        let request = env.f.request(t.workspace, requests[1]).await;
        assert_eq!(request.params.as_str(), "\"(these params cannot be read)\"");
        let filter = RequestFilter::default();
        let list = env.f.store.request_list(&filter, Page::first(10));
        assert_eq!(list.await.unwrap().len(), 3);
        env.assert_no_drift();
    }
}

#[tokio::test]
async fn unreadable_params_of_a_kept_execution_keep_the_slot() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(1).await;
    let kept = env.f.enqueue_unknown(&t).await;
    env.write(REQUEST_SET_PARAMS, params![bytes(kept.id), unreadable()[0]]);
    env.f.enqueue(&t, 1).await;
    let claimed = env.f.claim(10).await;
    assert_eq!(claimed.requests.len(), 1);
    assert_eq!(claimed.requests[0].execution, kept.execution);
    assert!(claimed.requests[0].unreadable.is_some());
    assert_eq!(env.in_use(&t).await, 1);
    env.assert_no_drift();
}

#[tokio::test]
async fn counts_lines_and_slots_stay_consistent_under_random_operations() {
    let env = TestEnv::new().await;
    let mut workspaces = Vec::new();
    for limit in [0, 1, 3, 8] {
        workspaces.push(env.f.workspace(limit).await);
    }
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut held: Vec<ClaimedRequest> = Vec::new();
    for _ in 0..300 {
        let t = &workspaces[usize::try_from(random(4)).unwrap()];
        match random(7) {
            0 | 1 => drop(env.f.enqueue(t, 3).await),
            2 | 3 => held.extend(env.f.claim(3).await.requests),
            4 => {
                let limit = i64::try_from(random(9)).unwrap();
                env.write(LIMIT_SET, params![bytes(t.workspace), limit]);
            }
            _ if held.is_empty() => {}
            5 => {
                let taken = held.swap_remove(0);
                let kinds = [ReleaseKind::Unknown, ReleaseKind::NotStarted];
                let kind = kinds[usize::try_from(random(2)).unwrap()];
                env.f.release(&taken, kind, random(2)).await;
            }
            _ => {
                let last = held.len() - 1;
                let taken = held.swap_remove(last / 2);
                env.finish(taken.execution).await;
            }
        }
        env.f.advance(1);
        env.assert_no_drift();
    }
}

/// A bulk redrive that is filtered by reason or definition may visit every failed request of the workspace. It used to do that on the writer.
#[tokio::test]
async fn bulk_redrive_that_finds_nothing_does_not_wait_for_the_writer() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(1).await;
    let failed = env.f.enqueue_failed(&t).await.id;
    let mut redrive = RedriveMany {
        workspace: t.workspace,
        reason: Some(FailureReason::TimedOut),
        definition: None,
        limit: 10,
        max_bytes: u64::MAX,
        by: "boss".into(),
    };
    env.client.execute_batch(BEGIN).unwrap();
    let redriven = env.f.store.request_redrive_many(&redrive).await;
    assert_eq!(redriven.unwrap(), []);
    env.client.execute_batch(ROLLBACK).unwrap();
    redrive.reason = None;
    let redriven = env.f.store.request_redrive_many(&redrive).await;
    assert_eq!(redriven.unwrap()[0].0, failed);
}
