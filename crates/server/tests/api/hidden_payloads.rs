//! A key from which payloads are hidden sees none of them on any route.

use crate::bad_input::valid_bodies;
use crate::fixtures::{AccessFixture, CallerKind};
use axum::body::Body;
use leasehold_core::graph::{NodeRun, NodeState};
use leasehold_core::job::{JobClaim, JobEnd, JobFinish, JobRef, RetryMode};
use leasehold_core::{ExecutionEnd, JsonText};
use leasehold_server::routes;
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::job::NewJob;
use serde_json::json;
use std::time::Duration;

/// A text in every payload and every error.
const MARK: &str = "hush-5d21";

fn marked() -> JsonText {
    JsonText::trusted(format!("{{\"m\":\"{MARK}\"}}"))
}

/// Puts the text into params, payload, progress, result, output and errors of the fixture's objects.
async fn mark_everything(fixture: &AccessFixture) -> i64 {
    let server = &fixture.server;
    let workspace = fixture.id("workspace");
    let request = json!({ "definition": fixture.id("definition"), "params": { "m": MARK } });
    let path = format!("/v1/workspaces/{workspace}/requests");
    server.post(&path, &server.admin, request).await.expect(201);
    let finish = ExecutionFinish {
        execution: fixture.id("execution").parse().unwrap(),
        end: ExecutionEnd::Failed,
        error: Some(MARK.to_owned()),
    };
    let store = &server.store;
    store.execution_finish("test", &[finish]).await.unwrap();
    let done = NodeRun {
        state: NodeState::Failed,
        output: Some(marked()),
        error: Some(MARK.to_owned()),
        ..NodeRun::waiting("a")
    };
    server.engine.set_nodes(Ok(Some(vec![done])));
    let job = NewJob::new("mine", "kind", marked());
    let job = store.job_enqueue(&[job]).await.unwrap()[0].id;
    let claim = JobClaim {
        queue: "mine".to_owned(),
        worker: "w".to_owned(),
        max: 10,
        lease: Some(Duration::from_secs(60)),
    };
    let claimed = store.job_claim(&claim).await.unwrap().jobs;
    let claimed = claimed.iter().find(|claimed| claimed.id == job).unwrap();
    let lease = JobRef {
        job,
        token: claimed.token,
    };
    assert!(store.job_progress("w", lease, &marked()).await.unwrap());
    let failed = JobFinish {
        claim: lease,
        end: JobEnd::Failed {
            error: MARK.to_owned(),
            retry_mode: RetryMode::Never,
        },
    };
    store.job_finish("w", &[failed]).await.unwrap();
    job.0
}

#[tokio::test]
async fn hidden_payloads_are_on_no_route() {
    let fixture = AccessFixture::new().await;
    let job = mark_everything(&fixture).await;
    let mut shown = 0;
    for (method, path) in routes() {
        // A stream does not end, and events have no payload.
        if method != "GET" {
            continue;
        }
        let path = path.replace("{job}", &job.to_string());
        let json = "application/json";
        for (hidden, full) in [
            (CallerKind::HiddenAdmin, CallerKind::Admin),
            (CallerKind::HiddenWorkspace, CallerKind::Workspace),
            (CallerKind::HiddenWorker, CallerKind::Worker),
        ] {
            let full = fixture.send("GET", &path, full, json, Body::empty()).await;
            let hidden = fixture
                .send("GET", &path, hidden, json, Body::empty())
                .await;
            assert_eq!(hidden.status, full.status, "{path}");
            assert!(!hidden.text.contains(MARK), "{path}: {}", hidden.text);
            if full.text.contains(MARK) {
                assert!(hidden.text.contains("\"payload_hidden\":true"), "{path}");
                assert!(!full.text.contains("payload_hidden"), "{path}");
                shown += 1;
            }
        }
    }
    // Requests: list, all, find, get, dead letters. Executions: list, get, find, graph, node. Jobs: list, of the queue, get.
    assert!(shown >= 15, "{shown}");
}

#[tokio::test]
async fn hidden_payloads_are_in_no_response_to_a_change() {
    let mut fixture = AccessFixture::new().await;
    let mut job = mark_everything(&fixture).await;
    for (method, path) in routes() {
        if method == "GET" {
            continue;
        }
        for hidden in [
            CallerKind::HiddenAdmin,
            CallerKind::HiddenWorkspace,
            CallerKind::HiddenWorker,
        ] {
            let bodies = valid_bodies(&fixture);
            let valid = bodies
                .iter()
                .find(|(known, of, _)| (method.as_str(), path.as_str()) == (*known, *of));
            let body = valid.map_or(json!({}), |(_, _, body)| body.clone());
            let path = path.replace("{job}", &job.to_string());
            let json = "application/json";
            let answer = fixture
                .send(method.as_str(), &path, hidden, json, body.to_string())
                .await;
            assert!(!answer.text.contains(MARK), "{path}: {}", answer.text);
            assert!(answer.status < 500, "{path}: {}", answer.text);
            // The call may have changed the fixture's objects.
            if answer.status < 300 {
                fixture = AccessFixture::new().await;
                job = mark_everything(&fixture).await;
            }
        }
    }
}

/// A graph receives params, and its `http` nodes send them anywhere.
#[tokio::test]
async fn key_without_payloads_publishes_no_version() {
    let fixture = AccessFixture::new().await;
    let path = "/v1/workspaces/{workspace}/definitions/{definition}/versions";
    let send = async |method: &str, who: CallerKind, body: serde_json::Value| {
        let json = "application/json";
        fixture
            .send(method, path, who, json, body.to_string())
            .await
    };
    let before = send("GET", CallerKind::Admin, json!({})).await;
    let node = json!({ "id": "a", "type": "http", "method": "POST", "url": "https://example.com" });
    let version = json!({ "body": { "graph": { "nodes": [node] } } });
    for who in [CallerKind::HiddenWorkspace, CallerKind::HiddenAdmin] {
        let refused = send("POST", who, version.clone()).await;
        assert_eq!(refused.status, 403, "{who:?}");
        let problem = refused.expect_problem("forbidden", "");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("payloads are hidden"), "{detail}");
    }
    let after = send("GET", CallerKind::Admin, json!({})).await;
    assert_eq!(after.text, before.text);
    let published = send("POST", CallerKind::Workspace, version).await;
    assert_eq!(published.status, 201);
}
