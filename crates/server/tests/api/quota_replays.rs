//! Replays while a quota is full: a call that repeats held idempotency or deduplication keys needs no room.

use crate::quota::{order_of, server_with_quotas};
use leasehold_core::key::KeyScope;
use leasehold_core::limits::REQUEST_OVERHEAD_BYTES;
use leasehold_server::ServerOptions;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestServer};
use serde_json::{Value, json};

fn keyed(workspace: &KeyedWorkspace, key: &str) -> Value {
    let mut order = order_of(workspace, 10_000);
    order["idempotency_key"] = json!(key);
    order
}

/// Fills a quota with two keyed requests, then repeats them alone and in batches. A replay used to be refused with 429.
async fn replays_return_the_first_requests(
    kind: BackendKind,
    quotas: (Option<u64>, Option<u64>),
    refusal: &str,
) {
    let (server, workspace) = server_with_quotas(kind, quotas.0, quotas.1).await;
    let (path, batch) = (
        workspace.path("/requests"),
        workspace.path("/requests/batch"),
    );
    let post = async |path: &str, body: Value| server.post(path, &workspace.key, body).await;
    let mut ids = Vec::new();
    for key in ["a", "b"] {
        let enqueued = post(&path, keyed(&workspace, key)).await.expect(201);
        ids.push(enqueued["id"].clone());
    }
    for (key, id) in ["a", "b"].into_iter().zip(&ids) {
        let replay = post(&path, keyed(&workspace, key)).await.expect(200);
        assert_eq!(&replay["id"], id);
    }
    let of = |keys: &[&str]| -> Value {
        let requests: Vec<Value> = keys.iter().map(|key| keyed(&workspace, key)).collect();
        json!({ "requests": requests })
    };
    let replay = post(&batch, of(&["b", "a", "b"])).await.expect(200);
    let replayed: Vec<&Value> = (0..3).map(|at| &replay["requests"][at]["id"]).collect();
    assert_eq!(replayed, [&ids[1], &ids[0], &ids[1]]);
    // Only the new requests of a batch need room.
    for refused in [of(&["a", "c"]), of(&["c"])] {
        post(&batch, refused).await.expect_problem(refusal, "");
    }
    let without_key = order_of(&workspace, 10_000);
    let answer = post(&path, without_key).await;
    answer.expect_problem(refusal, "");
    let mut other_params = order_of(&workspace, 10_001);
    other_params["idempotency_key"] = json!("a");
    let conflict = post(&path, other_params).await;
    conflict.expect_problem("idempotency_conflict", "");
    let listed = server.get(&path, &workspace.key).await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
}

/// A batch of replays and of new requests that fit is enqueued, however much it would be without its replays.
async fn replays_of_a_batch_need_no_room(kind: BackendKind) {
    let (server, workspace) = server_with_quotas(kind, Some(4), None).await;
    let batch = workspace.path("/requests/batch");
    let of = |keys: &[&str]| -> Value {
        let requests: Vec<Value> = keys.iter().map(|key| keyed(&workspace, key)).collect();
        json!({ "requests": requests })
    };
    let post = async |body: Value| server.post(&batch, &workspace.key, body).await;
    let first = post(of(&["a", "b"])).await.expect(200);
    let mixed = post(of(&["c", "a", "b", "c", "d"])).await.expect(200);
    let at = |answer: &Value, at: usize| answer["requests"][at].clone();
    assert_eq!(at(&mixed, 1)["id"], at(&first, 0)["id"]);
    assert_eq!(at(&mixed, 2)["id"], at(&first, 1)["id"]);
    assert_eq!(at(&mixed, 3)["id"], at(&mixed, 0)["id"]);
    let inserted: Vec<bool> = (0..5)
        .map(|position| at(&mixed, position)["inserted"].as_bool().unwrap())
        .collect();
    assert_eq!(inserted, [true, false, false, false, true]);
    post(of(&["e", "a"]))
        .await
        .expect_problem("backlog_full", "");
}

/// The problem of a request names its position in the whole call.
async fn refused_new_request_is_named_by_its_position(kind: BackendKind) {
    let (server, workspace) = server_with_quotas(kind, Some(2), None).await;
    let schema = json!({ "type": "string" });
    let version = json!({ "body": { "binding": { "workflow_type": "T", "task_queue": "q" } },
        "params_schema": schema });
    let versions = workspace.path(&format!("/definitions/{}/versions", workspace.definition));
    let published = server.post(&versions, &workspace.key, version).await;
    published.expect(201);
    let batch = workspace.path("/requests/batch");
    let post = async |body: Value| server.post(&batch, &workspace.key, body).await;
    let first = json!({ "requests": [keyed(&workspace, "a")] });
    post(first).await.expect(200);
    let mut wrong = keyed(&workspace, "b");
    wrong["params"] = json!(7);
    let replay = || keyed(&workspace, "a");
    let call = json!({ "requests": [replay(), replay(), wrong] });
    let problem = post(call).await;
    problem.expect_problem("invalid", "/requests/2/params");
}

/// A replay of jobs with held deduplication keys used to be refused with 429.
async fn replays_return_the_first_jobs(kind: BackendKind) {
    let options = ServerOptions {
        key_max_open_bytes: 10_000,
        ..ServerOptions::default()
    };
    let server = TestServer::on_with_options(kind, options).await;
    let scope = KeyScope::Worker {
        queues: vec!["mail".to_owned()],
    };
    let key = server.key(scope).await;
    let job =
        |name: &str| json!({ "kind": "send", "payload": "x".repeat(2_000), "dedup_key": name });
    let of = |names: &[&str]| -> Value {
        let jobs: Vec<Value> = names.iter().map(|name| job(name)).collect();
        json!({ "jobs": jobs })
    };
    let (one, batch) = ("/v1/queues/mail/jobs", "/v1/queues/mail/jobs/batch");
    let post = async |path: &str, body: Value| server.post(path, &key, body).await;
    let first = post(batch, of(&["a", "b", "c"])).await.expect(201);
    let id = |answer: &Value, at: usize| answer["jobs"][at]["id"].clone();
    post(one, job("e"))
        .await
        .expect_problem("quota_exceeded", "");
    let replay = post(one, job("b")).await.expect(200);
    assert_eq!(replay["id"], id(&first, 1));
    let replay = post(batch, of(&["c", "a", "c", "b"])).await.expect(201);
    let ids: Vec<Value> = (0..4).map(|at| id(&replay, at)).collect();
    let expected = [2, 0, 2, 1].map(|at| id(&first, at));
    assert_eq!(ids, expected);
    let refused = post(batch, of(&["a", "e"])).await;
    refused.expect_problem("quota_exceeded", "");
    let mixed =
        json!({ "jobs": [job("a"), { "kind": "send", "dedup_key": "f" }, job("b"), job("c")] });
    let mixed = post(batch, mixed).await.expect(201);
    assert_eq!(id(&mixed, 0), id(&first, 0));
    assert_eq!(id(&mixed, 3), id(&first, 2));
}

const BYTES: u64 = 2 * (10_000 + REQUEST_OVERHEAD_BYTES);

#[tokio::test]
async fn replays_return_the_first_requests_while_the_backlog_is_full_on_sqlite() {
    replays_return_the_first_requests(BackendKind::Sqlite, (Some(2), None), "backlog_full").await;
}

#[tokio::test]
async fn replays_return_the_first_requests_while_the_backlog_is_full_on_postgres() {
    replays_return_the_first_requests(BackendKind::Postgres, (Some(2), None), "backlog_full").await;
}

#[tokio::test]
async fn replays_return_the_first_requests_while_the_open_bytes_are_used_up_on_sqlite() {
    let quotas = (None, Some(BYTES));
    replays_return_the_first_requests(BackendKind::Sqlite, quotas, "quota_exceeded").await;
}

#[tokio::test]
async fn replays_return_the_first_requests_while_the_open_bytes_are_used_up_on_postgres() {
    let quotas = (None, Some(BYTES));
    replays_return_the_first_requests(BackendKind::Postgres, quotas, "quota_exceeded").await;
}

#[tokio::test]
async fn replays_of_a_batch_need_no_room_on_sqlite() {
    replays_of_a_batch_need_no_room(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn replays_of_a_batch_need_no_room_on_postgres() {
    replays_of_a_batch_need_no_room(BackendKind::Postgres).await;
}

#[tokio::test]
async fn refused_new_request_beside_replays_is_named_by_its_position() {
    refused_new_request_is_named_by_its_position(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn replays_return_the_first_jobs_while_the_quota_of_the_key_is_full_on_sqlite() {
    replays_return_the_first_jobs(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn replays_return_the_first_jobs_while_the_quota_of_the_key_is_full_on_postgres() {
    replays_return_the_first_jobs(BackendKind::Postgres).await;
}
