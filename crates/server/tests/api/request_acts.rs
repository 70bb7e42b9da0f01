//! What is done to requests: cancelled, redriven one by one and in bulk.

use axum::http::Method;
use leasehold_core::ExecutionEnd;
use leasehold_store::fresh_id;
use leasehold_testbed::{KeyedWorkspace, TestResponse, TestServer};
use serde_json::{Value, json};
use std::fmt::Display;
use uuid::Uuid;

async fn act(
    ground: &TestServer,
    site: &KeyedWorkspace,
    id: impl Display,
    act: &str,
    body: Value,
) -> TestResponse {
    let path = site.path(&format!("/requests/{id}/{act}"));
    ground.post(&path, &site.key, body).await
}

async fn shown(ground: &TestServer, site: &KeyedWorkspace, id: impl Display) -> Value {
    let path = site.path(&format!("/requests/{id}"));
    ground.get(&path, &site.key).await.expect(200)
}

#[tokio::test]
async fn what_waits_is_cancelled_at_once_and_only_once() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let id = ground.enqueue(&site).await;
    let cancelled = act(&ground, &site, &id, "cancel", Value::Null)
        .await
        .expect(200);
    assert_eq!(cancelled, json!({"state": "cancelled"}));
    let request = shown(&ground, &site, &id).await;
    assert_eq!(request["status"], "FAILED");
    assert_eq!(request["failure_reason"], "cancelled");
    let again = act(&ground, &site, &id, "cancel", json!({})).await;
    again.refused("already_finished", "");
    let path = site.path(&format!("/requests/{id}/timeline"));
    let timeline = ground.get(&path, &site.key).await.expect(200);
    let by = timeline["events"][1]["by"].as_str().unwrap();
    assert!(by.starts_with("test ("), "{by}");
}

#[tokio::test]
async fn what_runs_keeps_the_wish_to_be_cancelled() {
    let ground = TestServer::new().await;
    let site = ground.workspace(9).await;
    for (claimed, body) in [
        (ground.claimed(&site).await, Value::Null),
        (ground.running(&site).await, json!({"force": true})),
        (ground.running(&site).await, json!({"force": false})),
    ] {
        let forced = body["force"] == true;
        let answer = act(&ground, &site, claimed.id, "cancel", body)
            .await
            .expect(202);
        let expected = json!({"state": "cancelling", "execution": claimed.execution});
        assert_eq!(answer, expected);
        let request = shown(&ground, &site, claimed.id).await;
        assert!(request["cancel_requested_at"].is_string());
        let wishes = ground.store.request_cancel_list(9).await.unwrap();
        let wish = wishes.iter().find(|wish| wish.request == claimed.id);
        if request["status"] == "DISPATCHED" {
            assert_eq!(wish.map(|wish| wish.force), Some(forced));
        }
    }
}

#[tokio::test]
async fn the_body_of_a_cancellation_may_be_absent_but_not_wrong() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let id = ground.enqueue(&site).await;
    let path = site.path(&format!("/requests/{id}/cancel"));
    act(&ground, &site, &id, "cancel", json!({"force": 1}))
        .await
        .refused("invalid", "/force");
    act(&ground, &site, &id, "cancel", json!({"now": true}))
        .await
        .refused("invalid", "/now");
    let broken = ground.call_raw(Method::POST, &path, &site.key, "{").await;
    broken.refused("malformed_json", "");
    let empty = ground.call_raw(Method::POST, &path, &site.key, "").await;
    empty.refused("malformed_json", "");
    let typed = [("content-type", "text/plain")];
    let answer = ground
        .call_with(Method::POST, &path, &site.key, &typed, Value::Null)
        .await;
    answer.refused("unsupported_media_type", "");
    assert_eq!(shown(&ground, &site, &id).await["status"], "PENDING");
    let null = ground
        .call_raw(Method::POST, &path, &site.key, "null")
        .await;
    null.expect(200);
    let stranger: Uuid = fresh_id();
    act(&ground, &site, stranger, "cancel", Value::Null)
        .await
        .refused("not_found", "");
}

#[tokio::test]
async fn a_failed_request_is_redriven_once_at_a_time() {
    let ground = TestServer::new().await;
    let site = ground.workspace(9).await;
    let failed = ground.ended(&site, ExecutionEnd::Failed).await;
    let answer = act(&ground, &site, failed.id, "redrive", Value::Null).await;
    let location = answer.header("location").to_owned();
    let redriven = answer.expect(201);
    assert_eq!(redriven["failed"], failed.id.to_string());
    let request = ground.get(&location, &site.key).await.expect(200);
    assert_eq!(request["id"], redriven["request"]);
    assert_eq!(request["redrive_of"], failed.id.to_string());
    assert_eq!(request["status"], "PENDING");
    let again = act(&ground, &site, failed.id, "redrive", Value::Null).await;
    let again = again.refused("already_redriven", "");
    assert_eq!(again["held_by"], redriven["request"]);
    let waits = redriven["request"].as_str().unwrap();
    act(&ground, &site, waits, "redrive", Value::Null)
        .await
        .refused("not_failed", "");
    let stranger: Uuid = fresh_id();
    act(&ground, &site, stranger, "redrive", Value::Null)
        .await
        .refused("not_found", "");
}

#[tokio::test]
async fn what_could_only_fail_again_is_not_redriven() {
    let ground = TestServer::new().await;
    let site = ground.workspace(9).await;
    let failed = ground.ended(&site, ExecutionEnd::Failed).await;
    let definition = site.path(&format!("/definitions/{}", site.definition));
    ground
        .call(Method::DELETE, &definition, &site.key, Value::Null)
        .await
        .expect(204);
    let answer = act(&ground, &site, failed.id, "redrive", Value::Null).await;
    let refused = answer.refused("not_found", "");
    assert!(refused["detail"].as_str().unwrap().contains("deleted"));
}

#[tokio::test]
async fn dead_letters_are_redriven_in_bulk_oldest_first() {
    let ground = TestServer::new().await;
    let site = ground.workspace(9).await;
    let mut failed = Vec::new();
    for end in [
        ExecutionEnd::Failed,
        ExecutionEnd::TimedOut,
        ExecutionEnd::Failed,
    ] {
        failed.push(ground.ended(&site, end).await.id.to_string());
    }
    let path = site.path("/dead-letters/redrive");
    let redrive = async |body| {
        let answer = ground.post(&path, &site.key, body).await.expect(200);
        let pairs = answer["redriven"].as_array().unwrap().clone();
        let failed = pairs
            .iter()
            .map(|p| p["failed"].as_str().unwrap().to_owned());
        failed.collect::<Vec<String>>()
    };
    assert_eq!(redrive(json!({"reason": "timed_out"})).await, failed[1..2]);
    assert_eq!(redrive(json!({"limit": 1})).await, failed[..1]);
    assert_eq!(redrive(Value::Null).await, failed[2..]);
    assert_eq!(redrive(json!({})).await, [""; 0]);
    for (body, at) in [
        (json!({"limit": 0}), "/limit"),
        (json!({"limit": 10_001}), "/limit"),
        (json!({"reason": "bad luck"}), "/reason"),
        (json!({"which": "all"}), "/which"),
    ] {
        ground
            .post(&path, &site.key, body)
            .await
            .refused("invalid", at);
    }
    let nowhere = format!("/v1/workspaces/{}/dead-letters/redrive", Uuid::nil());
    ground
        .post(&nowhere, &ground.admin, json!({}))
        .await
        .refused("not_found", "");
}
