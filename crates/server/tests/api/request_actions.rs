//! Actions on requests: cancel, redrive one, redrive in bulk.

use axum::http::Method;
use leasehold_core::ExecutionEnd;
use leasehold_core::limits::PARAMS_MAX_BYTES;
use leasehold_store::fresh_id;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestResponse, TestServer};
use serde_json::{Value, json};
use std::fmt::Display;
use uuid::Uuid;

async fn act(
    server: &TestServer,
    workspace: &KeyedWorkspace,
    id: impl Display,
    act: &str,
    body: Value,
) -> TestResponse {
    let path = workspace.path(&format!("/requests/{id}/{act}"));
    server.post(&path, &workspace.key, body).await
}

async fn shown(server: &TestServer, workspace: &KeyedWorkspace, id: impl Display) -> Value {
    let path = workspace.path(&format!("/requests/{id}"));
    server.get(&path, &workspace.key).await.expect(200)
}

#[tokio::test]
async fn pending_request_is_cancelled_at_once_and_only_once() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let id = server.enqueue(&workspace).await;
    let cancelled = act(&server, &workspace, &id, "cancel", Value::Null)
        .await
        .expect(200);
    assert_eq!(cancelled, json!({"state": "cancelled"}));
    let request = shown(&server, &workspace, &id).await;
    assert_eq!(request["status"], "FAILED");
    assert_eq!(request["failure_reason"], "cancelled");
    let again = act(&server, &workspace, &id, "cancel", json!({})).await;
    again.expect_problem("already_finished", "");
    let path = workspace.path(&format!("/requests/{id}/timeline"));
    let timeline = server.get(&path, &workspace.key).await.expect(200);
    let by = timeline["events"][1]["by"].as_str().unwrap();
    assert!(by.starts_with("test ("), "{by}");
}

#[tokio::test]
async fn running_request_records_the_cancel_request() {
    let server = TestServer::new().await;
    let workspace = server.workspace(9).await;
    for (claimed, body) in [
        (server.enqueue_claimed(&workspace).await, Value::Null),
        (
            server.enqueue_running(&workspace).await,
            json!({"force": true}),
        ),
        (
            server.enqueue_running(&workspace).await,
            json!({"force": false}),
        ),
    ] {
        let forced = body["force"] == true;
        let answer = act(&server, &workspace, claimed.id, "cancel", body)
            .await
            .expect(202);
        let expected = json!({"state": "cancelling", "execution": claimed.execution});
        assert_eq!(answer, expected);
        let request = shown(&server, &workspace, claimed.id).await;
        assert!(request["cancel_requested_at"].is_string());
        let cancels = server.store.request_cancel_list(9).await.unwrap();
        let listed = cancels.iter().find(|cancel| cancel.request == claimed.id);
        if request["status"] == "DISPATCHED" {
            assert_eq!(listed.map(|cancel| cancel.force), Some(forced));
        }
    }
}

#[tokio::test]
async fn cancel_body_may_be_absent_but_not_invalid() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let id = server.enqueue(&workspace).await;
    let path = workspace.path(&format!("/requests/{id}/cancel"));
    act(&server, &workspace, &id, "cancel", json!({"force": 1}))
        .await
        .expect_problem("invalid", "/force");
    act(&server, &workspace, &id, "cancel", json!({"now": true}))
        .await
        .expect_problem("invalid", "/now");
    let broken = server
        .call_raw(Method::POST, &path, &workspace.key, "{")
        .await;
    broken.expect_problem("malformed_json", "");
    let empty = server
        .call_raw(Method::POST, &path, &workspace.key, "")
        .await;
    empty.expect_problem("malformed_json", "");
    let typed = [("content-type", "text/plain")];
    let answer = server
        .call_with(Method::POST, &path, &workspace.key, &typed, Value::Null)
        .await;
    answer.expect_problem("unsupported_media_type", "");
    assert_eq!(shown(&server, &workspace, &id).await["status"], "PENDING");
    let null = server
        .call_raw(Method::POST, &path, &workspace.key, "null")
        .await;
    null.expect(200);
    let unknown_id: Uuid = fresh_id();
    act(&server, &workspace, unknown_id, "cancel", Value::Null)
        .await
        .expect_problem("not_found", "");
}

#[tokio::test]
async fn failed_request_has_one_open_redrive() {
    let server = TestServer::new().await;
    let workspace = server.workspace(9).await;
    let failed = server.enqueue_ended(&workspace, ExecutionEnd::Failed).await;
    let answer = act(&server, &workspace, failed.id, "redrive", Value::Null).await;
    let location = answer.header("location").to_owned();
    let redriven = answer.expect(201);
    assert_eq!(redriven["failed"], failed.id.to_string());
    let request = server.get(&location, &workspace.key).await.expect(200);
    assert_eq!(request["id"], redriven["request"]);
    assert_eq!(request["redrive_of"], failed.id.to_string());
    assert_eq!(request["status"], "PENDING");
    let again = act(&server, &workspace, failed.id, "redrive", Value::Null).await;
    let again = again.expect_problem("already_redriven", "");
    assert_eq!(again["held_by"], redriven["request"]);
    let waits = redriven["request"].as_str().unwrap();
    act(&server, &workspace, waits, "redrive", Value::Null)
        .await
        .expect_problem("not_failed", "");
    let unknown_id: Uuid = fresh_id();
    act(&server, &workspace, unknown_id, "redrive", Value::Null)
        .await
        .expect_problem("not_found", "");
}

#[tokio::test]
async fn request_of_deleted_definition_is_not_redriven() {
    let server = TestServer::new().await;
    let workspace = server.workspace(9).await;
    let failed = server.enqueue_ended(&workspace, ExecutionEnd::Failed).await;
    let definition = workspace.path(&format!("/definitions/{}", workspace.definition));
    server
        .call(Method::DELETE, &definition, &workspace.key, Value::Null)
        .await
        .expect(204);
    let answer = act(&server, &workspace, failed.id, "redrive", Value::Null).await;
    let refused = answer.expect_problem("not_found", "");
    assert!(refused["detail"].as_str().unwrap().contains("deleted"));
}

#[tokio::test]
async fn dead_letters_are_redriven_in_bulk_oldest_first() {
    let server = TestServer::new().await;
    let workspace = server.workspace(9).await;
    let mut failed = Vec::new();
    for end in [
        ExecutionEnd::Failed,
        ExecutionEnd::TimedOut,
        ExecutionEnd::Failed,
    ] {
        failed.push(server.enqueue_ended(&workspace, end).await.id.to_string());
    }
    let path = workspace.path("/dead-letters/redrive");
    let redrive = async |body| {
        let answer = server.post(&path, &workspace.key, body).await.expect(200);
        let pairs = answer["redriven"].as_array().unwrap().clone();
        let failed = pairs
            .iter()
            .map(|p| p["failed"].as_str().unwrap().to_owned());
        failed.collect::<Vec<String>>()
    };
    let unknown_id: Uuid = fresh_id();
    assert_eq!(redrive(json!({"definition": unknown_id})).await, [""; 0]);
    let of_definition = json!({"reason": "timed_out", "definition": workspace.definition});
    assert_eq!(redrive(of_definition).await, failed[1..2]);
    assert_eq!(redrive(json!({"limit": 1})).await, failed[..1]);
    assert_eq!(redrive(Value::Null).await, failed[2..]);
    assert_eq!(redrive(json!({})).await, [""; 0]);
    for (body, at) in [
        (json!({"limit": 0}), "/limit"),
        (json!({"limit": 10_001}), "/limit"),
        (json!({"reason": "bad luck"}), "/reason"),
        (json!({"definition": "order"}), "/definition"),
        (json!({"which": "all"}), "/which"),
    ] {
        server
            .post(&path, &workspace.key, body)
            .await
            .expect_problem("invalid", at);
    }
    let nowhere = format!("/v1/workspaces/{}/dead-letters/redrive", Uuid::nil());
    server
        .post(&nowhere, &server.admin, json!({}))
        .await
        .expect_problem("not_found", "");
}

/// One call used to copy up to 10,000 requests of 256 KiB in one transaction.
async fn bulk_redrive_takes_sixteen_mebibytes_at_a_time(kind: BackendKind) {
    const REQUESTS: usize = 70;
    let server = TestServer::on(kind).await;
    let workspace = server.workspace(100).await;
    let params = json!("x".repeat(PARAMS_MAX_BYTES - 2));
    let order = json!({ "definition": workspace.definition, "params": params });
    let batch = workspace.path("/requests/batch");
    for requests in [REQUESTS / 2; 2] {
        let body = json!({ "requests": vec![order.clone(); requests] });
        server.post(&batch, &workspace.key, body).await.expect(200);
    }
    for claimed in server.claim(REQUESTS as u32).await {
        server.finish(claimed.execution, ExecutionEnd::Failed).await;
    }
    let path = workspace.path("/dead-letters/redrive");
    let mut calls = Vec::new();
    loop {
        let redriven = server.post(&path, &workspace.key, Value::Null).await;
        match redriven.expect(200)["redriven"].as_array().unwrap().len() {
            0 => break,
            redriven => calls.push(redriven),
        }
    }
    // The requests have a kilobyte each beside their params.
    assert_eq!(calls, [64, REQUESTS - 64]);
}

#[tokio::test]
async fn bulk_redrive_takes_sixteen_mebibytes_at_a_time_on_sqlite() {
    bulk_redrive_takes_sixteen_mebibytes_at_a_time(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn bulk_redrive_takes_sixteen_mebibytes_at_a_time_on_postgres() {
    bulk_redrive_takes_sixteen_mebibytes_at_a_time(BackendKind::Postgres).await;
}
