//! The explanation of every reason why a request is not running.

use axum::http::Method;
use leasehold_core::ExecutionEnd;
use leasehold_core::why::EngineFacts;
use leasehold_store::fresh_id;
use leasehold_store::request::ReleaseKind;
use leasehold_testbed::{BackendKind, KeyedWorkspace, Pollers, TestServer};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

async fn why(
    server: &TestServer,
    workspace: &KeyedWorkspace,
    request: impl std::fmt::Display,
) -> Value {
    let path = workspace.path(&format!("/requests/{request}/why"));
    server.get(&path, &workspace.key).await.expect(200)
}

async fn pause(server: &TestServer, workspace: &KeyedWorkspace) {
    let change = json!({"paused": true});
    let path = workspace.path("");
    server
        .call(Method::PATCH, &path, &server.admin, change)
        .await
        .expect(200);
}

#[tokio::test]
async fn at_capacity_names_the_executions_that_hold_the_slots() {
    let server = TestServer::new().await;
    let workspace = server.workspace(2).await;
    let elsewhere = server.workspace(9).await;
    server.enqueue_running(&elsewhere).await;
    let (first, second) = (
        server.enqueue_running(&workspace).await,
        server.enqueue_claimed(&workspace).await,
    );
    let waits = [
        server.enqueue(&workspace).await,
        server.enqueue(&workspace).await,
    ];
    let holders = json!([first.execution, second.execution]);
    let reason = json!({"code": "at_capacity", "limit": 2, "in_use": 2, "executions": holders});
    let next = why(&server, &workspace, &waits[0]).await;
    assert_eq!(next["reason"], reason);
    assert_eq!(next["also"], json!([]));
    assert_eq!(
        (&next["ahead"], &next["more_ahead"]),
        (&json!(0), &json!(false))
    );
    let expected = format!(
        "Waiting for a slot: 2 of 2 in use ({}, {}).",
        first.execution, second.execution
    );
    assert_eq!(next["explanation"], expected);
    assert_eq!(next.get("estimated_start"), None, "nothing has ended yet");
    let after = why(&server, &workspace, &waits[1]).await;
    assert_eq!(after["reason"], reason);
    assert_eq!(after["also"], json!([{"code": "in_line"}]));
    assert_eq!(after["ahead"], 1);
}

#[tokio::test]
async fn start_is_estimated_from_the_duration_of_executions() {
    let server = TestServer::with_manual_clock().await;
    let workspace = server.workspace(1).await;
    let clock = server.backend.clock.clone().unwrap();
    for seconds in [60, 120] {
        let running = server.enqueue_running(&workspace).await;
        clock.advance(Duration::from_secs(seconds));
        server
            .finish(running.execution, ExecutionEnd::Completed)
            .await;
    }
    let failed = server.enqueue_running(&workspace).await;
    clock.advance(Duration::from_secs(1));
    server.finish(failed.execution, ExecutionEnd::Failed).await;
    server.enqueue_running(&workspace).await;
    server.enqueue(&workspace).await;
    let waits = server.enqueue(&workspace).await;
    let expected = clock.now() + Duration::from_secs(2 * 90);
    let why = why(&server, &workspace, waits).await;
    assert_eq!(why["estimated_start"], expected.to_string());
}

#[tokio::test]
async fn paused_workspace_is_the_reason_and_others_are_listed() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let waits = server.enqueue(&workspace).await;
    pause(&server, &workspace).await;
    let shown = why(&server, &workspace, &waits).await;
    assert_eq!(shown["reason"], json!({"code": "paused"}));
    assert_eq!(shown["also"], json!([]));
    server.engine.set_facts(EngineFacts::Missing);
    let shown = why(&server, &workspace, &waits).await;
    assert_eq!(shown["also"], json!([{"code": "no_engine"}]));
}

#[tokio::test]
async fn scheduled_request_is_not_due_and_a_retried_one_backs_off() {
    let server = TestServer::with_manual_clock().await;
    let workspace = server.workspace(1).await;
    let clock = server.backend.clock.clone().unwrap();
    let later = clock.now() + Duration::from_secs(3600);
    let waits = server
        .enqueue_as(&workspace, json!({"run_at": later}))
        .await;
    let shown = why(&server, &workspace, &waits).await;
    assert_eq!(shown["reason"], json!({"code": "not_due", "until": later}));
    assert_eq!(shown["estimated_start"], later.to_string());
    assert_eq!(shown.get("ahead"), None, "it is in no line yet");
    let tried = server.enqueue_claimed(&workspace).await;
    server
        .release(&tried, ReleaseKind::Refused { max_attempts: 3 }, 30)
        .await;
    let shown = why(&server, &workspace, tried.id).await;
    let until = clock.now() + Duration::from_secs(30);
    let error = "rejected by the engine";
    let reason = json!({"code": "backing_off", "until": until, "error": error});
    assert_eq!(shown["reason"], reason);
    clock.advance(Duration::from_secs(30));
    let shown = why(&server, &workspace, tried.id).await;
    assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
}

#[tokio::test]
async fn engine_down_or_missing_blocks_pending_requests() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let waits = server.enqueue(&workspace).await;
    let down = EngineFacts::Down {
        error: "connection refused".to_owned(),
    };
    server.engine.set_facts(down);
    let shown = why(&server, &workspace, &waits).await;
    // The error names addresses of the installation, so tenants do not see it.
    assert_eq!(shown["reason"]["code"], "engine_down");
    assert!(!shown.to_string().contains("refused"), "{shown}");
    let path = workspace.path(&format!("/requests/{waits}/why"));
    let shown = server.get(&path, &server.admin).await.expect(200);
    let reason = json!({"code": "engine_down", "error": "connection refused"});
    assert_eq!(shown["reason"], reason);
    assert_eq!(
        shown["explanation"],
        "The engine is unavailable: connection refused"
    );
    server.engine.set_facts(EngineFacts::Missing);
    let shown = why(&server, &workspace, &waits).await;
    assert_eq!(shown["reason"], json!({"code": "no_engine"}));
    server.engine.set_facts(EngineFacts::NotDispatchedHere);
    let shown = why(&server, &workspace, &waits).await;
    assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
}

#[tokio::test]
async fn running_request_without_workers_has_no_pollers() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let running = server.enqueue_running(&workspace).await;
    for (pollers, code) in [
        (Pollers::Known(Some(0)), "no_pollers"),
        (Pollers::Known(Some(2)), "running"),
        (Pollers::Known(None), "running"),
        (Pollers::Broken, "running"),
        (Pollers::Silent, "running"),
    ] {
        server.engine.set_pollers(pollers);
        let shown = why(&server, &workspace, running.id).await;
        assert_eq!(shown["reason"], json!({"code": code}), "{pollers:?}");
        assert_eq!(shown.get("estimated_start"), None);
    }
}

#[tokio::test]
async fn with_free_slots_one_request_is_next_and_the_others_in_line() {
    let server = TestServer::new().await;
    let workspace = server.workspace(5).await;
    let mut waits = Vec::new();
    for _ in 0..3 {
        waits.push(server.enqueue(&workspace).await);
    }
    let first = server.enqueue_as(&workspace, json!({"priority": 9})).await;
    let shown = why(&server, &workspace, first).await;
    assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
    assert_eq!(shown["ahead"], 0);
    assert!(shown["estimated_start"].is_string());
    let shown = why(&server, &workspace, &waits[2]).await;
    assert_eq!(shown["reason"], json!({"code": "in_line"}));
    assert_eq!(shown["ahead"], 3);
    assert_eq!(
        shown["explanation"],
        "3 requests of this workspace are ahead of it."
    );
}

#[tokio::test]
async fn requests_ahead_are_counted_up_to_a_thousand() {
    let server = TestServer::new().await;
    let workspace = server.workspace(0).await;
    let one = json!({"definition": workspace.definition});
    let many = json!({"requests": vec![one; 1_002]});
    let batch = workspace.path("/requests/batch");
    let made = server.post(&batch, &workspace.key, many).await.expect(200);
    let id = |n: usize| made["requests"][n]["id"].as_str().unwrap().to_owned();
    let shown = why(&server, &workspace, id(1_000)).await;
    assert_eq!(
        (&shown["ahead"], &shown["more_ahead"]),
        (&json!(1_000), &json!(false))
    );
    let shown = why(&server, &workspace, id(1_001)).await;
    assert_eq!(
        (&shown["ahead"], &shown["more_ahead"]),
        (&json!(1_000), &json!(true))
    );
    assert_eq!(shown.get("estimated_start"), None);
}

#[tokio::test]
async fn every_other_status_has_its_reason() {
    let server = TestServer::new().await;
    let workspace = server.workspace(9).await;
    let claimed = server.enqueue_claimed(&workspace).await;
    let shown = why(&server, &workspace, claimed.id).await;
    assert_eq!(shown["reason"], json!({"code": "starting"}));
    let cancel = workspace.path(&format!("/requests/{}/cancel", claimed.id));
    server
        .post(&cancel, &workspace.key, Value::Null)
        .await
        .expect(202);
    let shown = why(&server, &workspace, claimed.id).await;
    assert_eq!(shown["reason"], json!({"code": "cancelling"}));
    let ended = server
        .enqueue_ended(&workspace, ExecutionEnd::Completed)
        .await;
    let shown = why(&server, &workspace, ended.id).await;
    assert_eq!(shown["reason"], json!({"code": "finished"}));
    let waits = server.enqueue(&workspace).await;
    let path = workspace.path("");
    server
        .call(Method::DELETE, &path, &server.admin, Value::Null)
        .await
        .expect(204);
    // The key of a deleted workspace opens nothing.
    let path = workspace.path(&format!("/requests/{waits}/why"));
    let shown = server.get(&path, &server.admin).await.expect(200);
    assert_eq!(shown["reason"], json!({"code": "workspace_gone"}));
    let unknown_id: Uuid = fresh_id();
    let nothing = workspace.path(&format!("/requests/{unknown_id}/why"));
    server
        .get(&nothing, &server.admin)
        .await
        .expect_problem("not_found", "");
}

#[tokio::test]
async fn unknown_start_needs_no_second_slot() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let unknown = server.enqueue_claimed(&workspace).await;
    server.release(&unknown, ReleaseKind::Unknown, 0).await;
    let waits = server.enqueue(&workspace).await;
    let shown = why(&server, &workspace, unknown.id).await;
    assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
    let shown = why(&server, &workspace, waits).await;
    assert_eq!(shown["reason"]["code"], "at_capacity");
}

async fn on_both_stores<Scenario: Future<Output = ()>>(scenario: impl Fn(TestServer) -> Scenario) {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        scenario(TestServer::on(on).await).await;
    }
}

#[tokio::test]
async fn why_of_a_kept_execution_names_no_pause() {
    on_both_stores(async |server| {
        let workspace = server.workspace(1).await;
        let kept = server.enqueue_claimed(&workspace).await;
        server.release(&kept, ReleaseKind::Unknown, 0).await;
        let fresh = server.enqueue(&workspace).await;
        pause(&server, &workspace).await;
        let shown = why(&server, &workspace, kept.id).await;
        assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
        assert_eq!(shown["also"], json!([]));
        let shown = why(&server, &workspace, fresh).await;
        assert_eq!(shown["reason"], json!({"code": "paused"}));
        let path = workspace.path("");
        server
            .call(Method::DELETE, &path, &server.admin, Value::Null)
            .await
            .expect(204);
        let path = workspace.path(&format!("/requests/{}/why", kept.id));
        let shown = server.get(&path, &server.admin).await.expect(200);
        assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
        // What it says is true: the next claim takes the request again, with its execution.
        let claimed = server.claim(9).await;
        let taken = claimed.iter().find(|claimed| claimed.id == kept.id);
        assert_eq!(taken.map(|taken| taken.execution), Some(kept.execution));
    })
    .await;
}

#[tokio::test]
async fn why_names_a_deleted_definition() {
    on_both_stores(async |server| {
        let workspace = server.workspace(1).await;
        let kept = server.enqueue_claimed(&workspace).await;
        server.release(&kept, ReleaseKind::Unknown, 0).await;
        let fresh = server.enqueue(&workspace).await;
        let path = workspace.path(&format!("/definitions/{}", workspace.definition));
        server
            .call(Method::DELETE, &path, &workspace.key, Value::Null)
            .await
            .expect(204);
        let shown = why(&server, &workspace, &fresh).await;
        assert_eq!(shown["reason"], json!({"code": "definition_gone"}));
        assert_eq!(shown["also"][0]["code"], "at_capacity");
        assert_eq!(
            shown["explanation"],
            "Its definition is deleted; the request fails when its turn comes."
        );
        assert_eq!(shown.get("estimated_start"), None);
        let shown = why(&server, &workspace, kept.id).await;
        assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
    })
    .await;
}
