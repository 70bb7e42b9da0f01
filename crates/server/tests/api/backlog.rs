//! The backlog limit of a workspace.

use leasehold_server::ServerOptions;
use leasehold_testbed::{KeyedWorkspace, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::time::Duration;

async fn server_with_backlog(backlog_max: u64) -> (TestServer, KeyedWorkspace) {
    let options = ServerOptions {
        backlog_max,
        ..ServerOptions::default()
    };
    let server = TestServer::with_options(options).await;
    let workspace = server.workspace(100).await;
    (server, workspace)
}

async fn pending(server: &TestServer, workspace: &KeyedWorkspace) -> u64 {
    server
        .store
        .request_counts(workspace.workspace)
        .await
        .unwrap()
        .pending
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
    let room = eventually(Duration::from_secs(10), || async {
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
    let failed = server
        .enqueue_ended(&workspace, leasehold_core::ExecutionEnd::Failed)
        .await;
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
