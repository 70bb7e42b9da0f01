//! The quotas of a workspace: pending requests and open bytes.

use futures::future::join_all;
use leasehold_core::ExecutionEnd;
use leasehold_core::limits::REQUEST_OVERHEAD_BYTES;
use leasehold_store::workspace::WorkspaceChange;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestResponse, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::time::Duration;

/// A server with a workspace of this many PENDING requests and open bytes.
pub(crate) async fn server_with_quotas(
    kind: BackendKind,
    max_pending: Option<u64>,
    max_open_bytes: Option<u64>,
) -> (TestServer, KeyedWorkspace) {
    let server = TestServer::on(kind).await;
    let workspace = server.workspace(100).await;
    let change = WorkspaceChange {
        max_pending_override: Some(max_pending),
        max_open_bytes_override: Some(max_open_bytes),
        ..WorkspaceChange::default()
    };
    workspace.update(&*server.store, &change).await;
    (server, workspace)
}

/// Checks that a call is refused, and not asked to be repeated.
pub(crate) fn expect_no_retry(answer: TestResponse, code: &str) -> Value {
    assert!(!answer.headers.contains_key("retry-after"));
    let problem = answer.expect_problem(code, "");
    assert_eq!(problem.get("retry_after"), None);
    problem
}

async fn server_with_backlog(max_pending: u64) -> (TestServer, KeyedWorkspace) {
    server_with_quotas(BackendKind::Sqlite, Some(max_pending), None).await
}

async fn pending(server: &TestServer, workspace: &KeyedWorkspace) -> u64 {
    server
        .store
        .request_counts(workspace.workspace)
        .await
        .unwrap()
        .pending
}

async fn open_bytes(server: &TestServer, workspace: &KeyedWorkspace) -> u64 {
    let quota = server.store.workspace_quota(workspace.workspace).await;
    quota.unwrap().unwrap().used.bytes
}

/// A body that enqueues params of `bytes` bytes.
pub(crate) fn order_of(workspace: &KeyedWorkspace, bytes: usize) -> Value {
    let mut order = workspace.order();
    order["params"] = json!("x".repeat(bytes - 2));
    order
}

#[tokio::test]
async fn full_backlog_rejects_enqueue_with_retry_after() {
    let (server, workspace) = server_with_backlog(3).await;
    let path = workspace.path("/requests");
    for _ in 0..3 {
        server.enqueue(&workspace).await;
    }
    let full = server.post(&path, &workspace.key, workspace.order()).await;
    assert_eq!(full.status, 429);
    assert_eq!(full.header("retry-after"), "5");
    assert_eq!(full.expect_problem("backlog_full", "")["retry_after"], 5);
    assert_eq!(pending(&server, &workspace).await, 3);
    let other = server.workspace(1).await;
    server.enqueue(&other).await;
}

#[tokio::test]
async fn batch_over_the_backlog_is_rejected_completely() {
    let (server, workspace) = server_with_backlog(3).await;
    let path = workspace.path("/requests/batch");
    let batch = |n: usize| json!({"requests": vec![workspace.order(); n]});
    server
        .post(&path, &workspace.key, batch(4))
        .await
        .expect_problem("backlog_full", "");
    server
        .post(&path, &workspace.key, batch(2))
        .await
        .expect(200);
    server
        .post(&path, &workspace.key, batch(2))
        .await
        .expect_problem("backlog_full", "");
    assert_eq!(pending(&server, &workspace).await, 2);
}

#[tokio::test]
async fn admitted_requests_make_room_in_the_backlog() {
    let (server, workspace) = server_with_backlog(2).await;
    let path = workspace.path("/requests");
    server.enqueue(&workspace).await;
    server.enqueue(&workspace).await;
    server
        .post(&path, &workspace.key, workspace.order())
        .await
        .expect_problem("backlog_full", "");
    server.claim(1).await;
    let room = eventually(Duration::from_secs(60), || async {
        server
            .post(&path, &workspace.key, workspace.order())
            .await
            .status
            == 201
    });
    assert!(room.await);
    assert_eq!(pending(&server, &workspace).await, 2);
}

#[tokio::test]
async fn repeated_calls_with_one_idempotency_key_do_not_fill_the_backlog() {
    let (server, workspace) = server_with_backlog(2).await;
    let path = workspace.path("/requests");
    let mut keyed = workspace.order();
    keyed["idempotency_key"] = json!("k");
    for _ in 0..5 {
        let answer = server.post(&path, &workspace.key, keyed.clone()).await;
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
    }
    server.enqueue(&workspace).await;
    assert_eq!(pending(&server, &workspace).await, 2);
}

#[tokio::test]
async fn redrive_is_rejected_while_the_backlog_is_full() {
    let (server, workspace) = server_with_backlog(1).await;
    let failed = server.enqueue_ended(&workspace, ExecutionEnd::Failed).await;
    server.enqueue(&workspace).await;
    let one = workspace.path(&format!("/requests/{}/redrive", failed.id));
    server
        .post(&one, &workspace.key, Value::Null)
        .await
        .expect_problem("backlog_full", "");
    let all = workspace.path("/dead-letters/redrive");
    server
        .post(&all, &workspace.key, Value::Null)
        .await
        .expect_problem("backlog_full", "");
}

/// A bulk redrive used to count as one request, so it passed the limit.
async fn bulk_redrive_stays_within_the_quotas(kind: BackendKind) {
    let (server, workspace) = server_with_quotas(kind, Some(3), None).await;
    for _ in 0..5 {
        server.enqueue_ended(&workspace, ExecutionEnd::Failed).await;
    }
    let all = workspace.path("/dead-letters/redrive");
    let redriven = server.post(&all, &workspace.key, Value::Null).await;
    let redriven = redriven.expect(200);
    assert_eq!(redriven["redriven"].as_array().unwrap().len(), 3);
    assert_eq!(pending(&server, &workspace).await, 3);
    server
        .post(&all, &workspace.key, Value::Null)
        .await
        .expect_problem("backlog_full", "");
    assert_eq!(pending(&server, &workspace).await, 3);
}

/// A redrive used to count a kilobyte whatever its params, until the next figure of the workspace.
#[tokio::test]
async fn redrives_of_large_requests_stay_within_the_quotas() {
    let one = 100_000 + REQUEST_OVERHEAD_BYTES;
    let (server, workspace) = server_with_quotas(BackendKind::Sqlite, None, Some(3 * one)).await;
    let path = workspace.path("/requests");
    let mut failed = Vec::new();
    for _ in 0..5 {
        let order = order_of(&workspace, 100_000);
        let enqueued = eventually(Duration::from_secs(60), || async {
            let answer = server.post(&path, &workspace.key, order.clone()).await;
            answer.status == 201
        });
        assert!(enqueued.await);
        let claimed = server.claim(1).await.remove(0);
        server.finish(claimed.execution, ExecutionEnd::Failed).await;
        failed.push(claimed.id);
    }
    // Concurrently: each is admitted with the bytes of its params.
    let redrive = async |id| {
        let path = workspace.path(&format!("/requests/{id}/redrive"));
        let answer = server.post(&path, &workspace.key, Value::Null).await;
        if answer.status == 201 {
            return None;
        }
        answer.expect_problem("quota_exceeded", "");
        Some(id)
    };
    let refused = join_all(failed.into_iter().map(redrive)).await;
    let refused: Vec<_> = refused.into_iter().flatten().collect();
    let Some((fitting, full)) = refused.split_last_chunk::<2>() else {
        panic!("more than three were redriven");
    };
    // A figure of the time before the requests failed refused these.
    for id in fitting {
        let redriven = eventually(Duration::from_secs(60), || async {
            redrive(*id).await.is_none()
        });
        assert!(redriven.await);
    }
    assert_eq!(open_bytes(&server, &workspace).await, 3 * one);
    for id in full {
        assert!(redrive(*id).await.is_some());
    }
}

#[tokio::test]
async fn bulk_redrive_stays_within_the_quotas_on_sqlite() {
    bulk_redrive_stays_within_the_quotas(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn bulk_redrive_stays_within_the_quotas_on_postgres() {
    bulk_redrive_stays_within_the_quotas(BackendKind::Postgres).await;
}

/// Requests are limited by their bytes until they end; the other tenant does not notice.
async fn open_bytes_are_limited(kind: BackendKind) {
    let one = 100_000 + REQUEST_OVERHEAD_BYTES;
    let (server, workspace) = server_with_quotas(kind, None, Some(3 * one)).await;
    let path = workspace.path("/requests");
    let order = || order_of(&workspace, 100_000);
    for _ in 0..3 {
        let answer = server.post(&path, &workspace.key, order()).await;
        answer.expect(201);
    }
    let full = server.post(&path, &workspace.key, order()).await;
    assert_eq!(full.status, 429);
    assert_eq!(full.header("retry-after"), "5");
    let problem = full.expect_problem("quota_exceeded", "");
    let detail = problem["detail"].as_str().unwrap();
    let limit = 3 * one;
    let figures =
        format!("have {limit} bytes, {one} more would exceed its max_open_bytes of {limit}");
    assert!(detail.contains(&figures), "{detail}");
    let batch = json!({"requests": [order_of(&workspace, 100), order()]});
    server
        .post(&workspace.path("/requests/batch"), &workspace.key, batch)
        .await
        .expect_problem("quota_exceeded", "");
    assert_eq!(open_bytes(&server, &workspace).await, limit);
    let state = server.get(&workspace.path(""), &workspace.key).await;
    let state = state.expect(200);
    assert_eq!(state["open_bytes"], limit);
    assert_eq!(state["workspace"]["max_open_bytes"], limit);
    let other = server.workspace(1).await;
    let (theirs, order_of_theirs) = (other.path("/requests"), order_of(&other, 100_000));
    let answer = server.post(&theirs, &other.key, order_of_theirs).await;
    answer.expect(201);
    let claimed = server.claim(2).await;
    let own = claimed.iter().find(|c| c.workspace == workspace.workspace);
    let execution = own.unwrap().execution;
    server.finish(execution, ExecutionEnd::Completed).await;
    let room = eventually(Duration::from_secs(60), || async {
        server.post(&path, &workspace.key, order()).await.status == 201
    });
    assert!(room.await, "the ended request released its bytes");
}

#[tokio::test]
async fn open_bytes_are_limited_on_sqlite() {
    open_bytes_are_limited(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn open_bytes_are_limited_on_postgres() {
    open_bytes_are_limited(BackendKind::Postgres).await;
}

/// Calls that run at once exceed the limit by no more than what was in flight before the first answer of the store.
#[tokio::test]
async fn concurrent_calls_exceed_the_quota_by_what_is_in_flight() {
    let one = 10_000 + REQUEST_OVERHEAD_BYTES;
    let (server, workspace) = server_with_quotas(BackendKind::Postgres, None, Some(10 * one)).await;
    let path = workspace.path("/requests");
    let at_once = 8;
    let mut enqueued = 0;
    for _ in 0..10 {
        let call = |_| server.post(&path, &workspace.key, order_of(&workspace, 10_000));
        let answers = futures::future::join_all((0..at_once).map(call)).await;
        enqueued += answers.iter().filter(|answer| answer.status == 201).count();
    }
    assert!((10..=10 + at_once).contains(&enqueued), "{enqueued}");
    let bytes = open_bytes(&server, &workspace).await;
    assert_eq!(bytes, enqueued as u64 * one);
}

#[tokio::test]
async fn administrator_changes_the_quotas_and_others_do_not() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let path = workspace.path("");
    let patch = async |key: &str, body: Value| {
        let method = axum::http::Method::PATCH;
        server.call(method, &path, key, body).await
    };
    let admin = &server.admin;
    let changed = patch(admin, json!({"max_pending": 7, "max_open_bytes": 4096})).await;
    let changed = changed.expect(200);
    assert_eq!(changed["max_pending"], 7);
    assert_eq!(changed["max_open_bytes"], 4096);
    let restored = patch(admin, json!({"max_pending": null, "max_open_bytes": null})).await;
    assert_eq!(restored.expect(200)["max_pending"], 1_000_000);
    patch(admin, json!({"max_pending": 1_000_000_001_u64}))
        .await
        .expect_problem("invalid", "/max_pending");
    patch(admin, json!({"max_open_bytes": u64::MAX}))
        .await
        .expect_problem("invalid", "/max_open_bytes");
    let denied = patch(&workspace.key, json!({"max_pending": 9})).await;
    assert_eq!(denied.status, 403);
}

/// Definitions and versions stay in the store for good, so they count towards the quota too.
#[tokio::test]
async fn definitions_and_versions_over_the_quota_are_refused() {
    let server = TestServer::new().await;
    let own = server.workspace(1).await;
    let change = WorkspaceChange {
        max_open_bytes_override: Some(Some(4_096)),
        ..WorkspaceChange::default()
    };
    own.update(&*server.store, &change).await;
    let node = json!({ "id": "a", "type": "delay", "milliseconds": 1 });
    let version = json!({ "body": { "graph": { "nodes": [node] } } });
    let versions = own.path(&format!("/definitions/{}/versions", own.definition));
    let mut refused = None;
    for _ in 0..4 {
        let answer = server.post(&versions, &own.key, version.clone()).await;
        refused = (answer.status != 201).then_some(answer);
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.unwrap();
    let problem = expect_no_retry(refused, "quota_exceeded");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("max_open_bytes"), "{detail}");
    let definitions = own.path("/definitions");
    for name in ["a", "b"] {
        let answer = server.post(&definitions, &own.key, json!({ "name": name }));
        let answer = answer.await;
        if answer.status != 201 {
            expect_no_retry(answer, "quota_exceeded");
            return;
        }
    }
    panic!("a definition over the quota was created");
}

/// Such a call used to be answered with `Retry-After`, and clients repeated it.
#[tokio::test]
async fn call_that_never_fits_is_not_asked_to_be_repeated() {
    let limits = (Some(2), Some(10_000));
    let (server, workspace) = server_with_quotas(BackendKind::Sqlite, limits.0, limits.1).await;
    let batch = json!({"requests": vec![workspace.order(); 3]});
    let path = workspace.path("/requests/batch");
    let many = server.post(&path, &workspace.key, batch).await;
    let problem = expect_no_retry(many, "backlog_full");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("waiting does not help"), "{detail}");
    let order = order_of(&workspace, 10_000);
    let path = workspace.path("/requests");
    let large = server.post(&path, &workspace.key, order).await;
    expect_no_retry(large, "quota_exceeded");
}
