//! Why a request is not running now: every reason as a caller sees it.

use axum::http::Method;
use leasehold_core::ExecutionEnd;
use leasehold_core::why::EngineFacts;
use leasehold_store::fresh_id;
use leasehold_store::request::ReleaseKind;
use leasehold_testbed::{KeyedWorkspace, Pollers, TestServer};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

async fn why(ground: &TestServer, site: &KeyedWorkspace, request: impl std::fmt::Display) -> Value {
    let path = site.path(&format!("/requests/{request}/why"));
    ground.get(&path, &site.key).await.expect(200)
}

async fn pause(ground: &TestServer, site: &KeyedWorkspace) {
    let change = json!({"paused": true});
    let path = site.path("");
    ground
        .call(Method::PATCH, &path, &ground.admin, change)
        .await
        .expect(200);
}

#[tokio::test]
async fn at_capacity_names_the_executions_that_hold_the_slots() {
    let ground = TestServer::new().await;
    let site = ground.workspace(2).await;
    let elsewhere = ground.workspace(9).await;
    ground.running(&elsewhere).await;
    let (first, second) = (ground.running(&site).await, ground.claimed(&site).await);
    let waits = [ground.enqueue(&site).await, ground.enqueue(&site).await];
    let holders = json!([first.execution, second.execution]);
    let reason = json!({"code": "at_capacity", "limit": 2, "in_use": 2, "executions": holders});
    let next = why(&ground, &site, &waits[0]).await;
    assert_eq!(next["reason"], reason);
    assert_eq!(next["also"], json!([]));
    assert_eq!(
        (&next["ahead"], &next["more_ahead"]),
        (&json!(0), &json!(false))
    );
    let expected = format!(
        "It waits for a slot: 2 of 2 are taken, by {}, {}.",
        first.execution, second.execution
    );
    assert_eq!(next["explanation"], expected);
    assert_eq!(next.get("estimated_start"), None, "nothing has ended yet");
    let after = why(&ground, &site, &waits[1]).await;
    assert_eq!(after["reason"], reason);
    assert_eq!(after["also"], json!([{"code": "in_line"}]));
    assert_eq!(after["ahead"], 1);
}

#[tokio::test]
async fn at_capacity_is_estimated_by_how_long_executions_took() {
    let ground = TestServer::with_manual_clock().await;
    let site = ground.workspace(1).await;
    let clock = ground.backend.clock.clone().unwrap();
    for seconds in [60, 120] {
        let running = ground.running(&site).await;
        clock.advance(Duration::from_secs(seconds));
        ground
            .finish(running.execution, ExecutionEnd::Completed)
            .await;
    }
    let failed = ground.running(&site).await;
    clock.advance(Duration::from_secs(1));
    ground.finish(failed.execution, ExecutionEnd::Failed).await;
    ground.running(&site).await;
    ground.enqueue(&site).await;
    let waits = ground.enqueue(&site).await;
    let expected = clock.now() + Duration::from_secs(2 * 90);
    let why = why(&ground, &site, waits).await;
    assert_eq!(why["estimated_start"], expected.to_string());
}

#[tokio::test]
async fn a_paused_workspace_holds_and_whatever_else_holds_is_told_too() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let waits = ground.enqueue(&site).await;
    pause(&ground, &site).await;
    let shown = why(&ground, &site, &waits).await;
    assert_eq!(shown["reason"], json!({"code": "paused"}));
    assert_eq!(shown["also"], json!([]));
    ground.engine.set_facts(EngineFacts::Missing);
    let shown = why(&ground, &site, &waits).await;
    assert_eq!(shown["also"], json!([{"code": "no_engine"}]));
}

#[tokio::test]
async fn a_request_for_later_is_not_due_and_one_that_was_tried_backs_off() {
    let ground = TestServer::with_manual_clock().await;
    let site = ground.workspace(1).await;
    let clock = ground.backend.clock.clone().unwrap();
    let later = clock.now() + Duration::from_secs(3600);
    let waits = ground.enqueue_as(&site, json!({"run_at": later})).await;
    let shown = why(&ground, &site, &waits).await;
    assert_eq!(shown["reason"], json!({"code": "not_due", "until": later}));
    assert_eq!(shown["estimated_start"], later.to_string());
    assert_eq!(shown.get("ahead"), None, "it is in no line yet");
    let tried = ground.claimed(&site).await;
    ground
        .release(&tried, ReleaseKind::Refused { max_attempts: 3 }, 30)
        .await;
    let shown = why(&ground, &site, tried.id).await;
    let until = clock.now() + Duration::from_secs(30);
    let error = "the engine said no";
    let reason = json!({"code": "backing_off", "until": until, "error": error});
    assert_eq!(shown["reason"], reason);
    clock.advance(Duration::from_secs(30));
    let shown = why(&ground, &site, tried.id).await;
    assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
}

#[tokio::test]
async fn an_engine_that_is_down_or_missing_holds_what_waits() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let waits = ground.enqueue(&site).await;
    let down = EngineFacts::Down {
        error: "connection refused".to_owned(),
    };
    ground.engine.set_facts(down);
    let shown = why(&ground, &site, &waits).await;
    let reason = json!({"code": "engine_down", "error": "connection refused"});
    assert_eq!(shown["reason"], reason);
    assert_eq!(
        shown["explanation"],
        "The engine is down: connection refused"
    );
    ground.engine.set_facts(EngineFacts::Missing);
    let shown = why(&ground, &site, &waits).await;
    assert_eq!(shown["reason"], json!({"code": "no_engine"}));
    ground.engine.set_facts(EngineFacts::NotDispatchedHere);
    let shown = why(&ground, &site, &waits).await;
    assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
}

#[tokio::test]
async fn what_runs_without_anybody_asking_for_its_work_has_no_pollers() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let running = ground.running(&site).await;
    for (pollers, code) in [
        (Pollers::Known(Some(0)), "no_pollers"),
        (Pollers::Known(Some(2)), "running"),
        (Pollers::Known(None), "running"),
        (Pollers::Broken, "running"),
        (Pollers::Silent, "running"),
    ] {
        ground.engine.set_pollers(pollers);
        let shown = why(&ground, &site, running.id).await;
        assert_eq!(shown["reason"], json!({"code": code}), "{pollers:?}");
        assert_eq!(shown.get("estimated_start"), None);
    }
}

#[tokio::test]
async fn where_there_is_room_one_is_next_and_the_others_are_in_line() {
    let ground = TestServer::new().await;
    let site = ground.workspace(5).await;
    let mut waits = Vec::new();
    for _ in 0..3 {
        waits.push(ground.enqueue(&site).await);
    }
    let first = ground.enqueue_as(&site, json!({"priority": 9})).await;
    let shown = why(&ground, &site, first).await;
    assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
    assert_eq!(shown["ahead"], 0);
    assert!(shown["estimated_start"].is_string());
    let shown = why(&ground, &site, &waits[2]).await;
    assert_eq!(shown["reason"], json!({"code": "in_line"}));
    assert_eq!(shown["ahead"], 3);
    assert_eq!(
        shown["explanation"],
        "3 requests of its workspace go first."
    );
}

#[tokio::test]
async fn beyond_a_thousand_the_line_is_not_counted() {
    let ground = TestServer::new().await;
    let site = ground.workspace(0).await;
    let one = json!({"definition": site.definition});
    let many = json!({"requests": vec![one; 1_002]});
    let batch = site.path("/requests/batch");
    let made = ground.post(&batch, &site.key, many).await.expect(200);
    let id = |n: usize| made["requests"][n]["id"].as_str().unwrap().to_owned();
    let shown = why(&ground, &site, id(1_000)).await;
    assert_eq!(
        (&shown["ahead"], &shown["more_ahead"]),
        (&json!(1_000), &json!(false))
    );
    let shown = why(&ground, &site, id(1_001)).await;
    assert_eq!(
        (&shown["ahead"], &shown["more_ahead"]),
        (&json!(1_000), &json!(true))
    );
    assert_eq!(shown.get("estimated_start"), None);
}

#[tokio::test]
async fn every_other_place_has_its_reason() {
    let ground = TestServer::new().await;
    let site = ground.workspace(9).await;
    let claimed = ground.claimed(&site).await;
    let shown = why(&ground, &site, claimed.id).await;
    assert_eq!(shown["reason"], json!({"code": "starting"}));
    let cancel = site.path(&format!("/requests/{}/cancel", claimed.id));
    ground
        .post(&cancel, &site.key, Value::Null)
        .await
        .expect(202);
    let shown = why(&ground, &site, claimed.id).await;
    assert_eq!(shown["reason"], json!({"code": "cancelling"}));
    let ended = ground.ended(&site, ExecutionEnd::Completed).await;
    let shown = why(&ground, &site, ended.id).await;
    assert_eq!(shown["reason"], json!({"code": "finished"}));
    let waits = ground.enqueue(&site).await;
    let path = site.path("");
    ground
        .call(Method::DELETE, &path, &ground.admin, Value::Null)
        .await
        .expect(204);
    let shown = why(&ground, &site, waits).await;
    assert_eq!(shown["reason"], json!({"code": "workspace_gone"}));
    let stranger: Uuid = fresh_id();
    let nothing = site.path(&format!("/requests/{stranger}/why"));
    ground
        .get(&nothing, &site.key)
        .await
        .refused("not_found", "");
}

#[tokio::test]
async fn a_request_whose_start_is_unknown_needs_no_second_slot() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let unknown = ground.claimed(&site).await;
    ground.release(&unknown, ReleaseKind::Unknown, 0).await;
    let waits = ground.enqueue(&site).await;
    let shown = why(&ground, &site, unknown.id).await;
    assert_eq!(shown["reason"], json!({"code": "next_in_line"}));
    let shown = why(&ground, &site, waits).await;
    assert_eq!(shown["reason"]["code"], "at_capacity");
}
