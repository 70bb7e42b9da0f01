//! Owners and sharing of queues: what each kind of key can publish, see and change.

use axum::http::Method;
use leasehold_core::key::KeyScope;
use leasehold_core::limits::QUEUES_OWNED_MAX;
use leasehold_store::fresh_id;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestResponse, TestServer};
use serde_json::{Value, json};
use uuid::Uuid;

fn tasks(queues: &[&str]) -> Value {
    let node =
        |(n, queue): (usize, &&str)| json!({"id": n.to_string(), "type": "task", "queue": queue});
    let nodes: Vec<Value> = queues.iter().enumerate().map(node).collect();
    json!({"body": {"graph": {"nodes": nodes}}})
}

async fn publish(
    server: &TestServer,
    workspace: &KeyedWorkspace,
    key: &str,
    queues: &[&str],
) -> TestResponse {
    let versions = format!("/definitions/{}/versions", workspace.definition);
    let path = workspace.path(&versions);
    server.post(&path, key, tasks(queues)).await
}

async fn share(server: &TestServer, queue: &str, with: Value) -> TestResponse {
    let path = format!("/v1/queues/{queue}/sharing");
    let body = json!({"shared_with": with});
    server.call(Method::PUT, &path, &server.admin, body).await
}

async fn queue(server: &TestServer, name: &str, key: &str) -> Value {
    let path = format!("/v1/queues/{name}");
    server.get(&path, key).await.expect(200)
}

async fn name_of(server: &TestServer, workspace: &KeyedWorkspace) -> String {
    let found = server.store.workspace_get(workspace.workspace).await;
    found.unwrap().unwrap().name
}

#[tokio::test]
async fn foreign_queue_is_refused_like_a_reserved_name() {
    for kind in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = TestServer::on(kind).await;
        let (owner, other) = (server.workspace(1).await, server.workspace(1).await);
        publish(&server, &owner, &owner.key, &["payments"])
            .await
            .expect(201);
        let installation = "/v1/queues/installation/jobs";
        let job = json!({"kind": "k"});
        server
            .post(installation, &server.admin, job)
            .await
            .expect(201);
        let mut texts = Vec::new();
        for name in ["payments", "installation", "leasehold:http", "leasehold:x"] {
            let refused = publish(&server, &other, &other.key, &["own", name]).await;
            let problem = refused.expect_problem("invalid", "/body/graph/nodes/1/queue");
            texts.push(problem["detail"].as_str().unwrap().to_owned());
        }
        texts.dedup();
        assert_eq!(texts.len(), 1, "{texts:?}");
        server
            .get("/v1/queues/own", &server.admin)
            .await
            .expect_problem("not_found", "");
    }
}

#[tokio::test]
async fn administrators_key_shares_queues_of_the_installation_at_publish() {
    let server = TestServer::new().await;
    let (one, two) = (server.workspace(1).await, server.workspace(1).await);
    let mut names = vec![name_of(&server, &one).await, name_of(&server, &two).await];
    for workspace in [&one, &two] {
        publish(&server, workspace, &server.admin, &["common"])
            .await
            .expect(201);
        publish(&server, workspace, &workspace.key, &["common"])
            .await
            .expect(201);
    }
    names.sort_unstable();
    let shown = queue(&server, "common", &server.admin).await;
    assert_eq!(shown["owner"], Value::Null);
    assert_eq!(shown["shared_with"], json!(names));
    publish(&server, &one, &one.key, &["private"])
        .await
        .expect(201);
    publish(&server, &two, &server.admin, &["private"])
        .await
        .expect_problem("invalid", "/body/graph/nodes/0/queue");
}

#[tokio::test]
async fn administrators_see_and_change_ownership_and_workers_do_not_see_it() {
    let server = TestServer::new().await;
    let own = server.workspace(1).await;
    let name = name_of(&server, &own).await;
    publish(&server, &own, &own.key, &["mine"])
        .await
        .expect(201);
    let shown = queue(&server, "mine", &server.admin).await;
    assert_eq!(shown["owner"], json!(name));
    assert_eq!(shown["shared_with"], json!([]));
    for with in [json!("all"), json!([name]), json!([])] {
        let changed = share(&server, "mine", with.clone()).await.expect(200);
        assert_eq!(
            (&changed["owner"], &changed["shared_with"]),
            (&json!(name), &with)
        );
        assert_eq!(queue(&server, "mine", &server.admin).await, changed);
        let list = server.get("/v1/queues", &server.admin).await.expect(200);
        assert_eq!(list["items"][0], changed);
    }
    let patched = json!({"limit": 3});
    let patched = server.call(Method::PATCH, "/v1/queues/mine", &server.admin, patched);
    assert_eq!(patched.await.expect(200)["owner"], json!(name));
    let worker = KeyScope::Worker {
        queues: vec!["mine".to_owned()],
    };
    let seen = queue(&server, "mine", &server.key(worker).await).await;
    assert!(seen.get("owner").is_none() && seen.get("shared_with").is_none());
}

#[tokio::test]
async fn invalid_sharing_names_its_field_and_changes_nothing() {
    let server = TestServer::new().await;
    let many: Vec<String> = (0..1_001).map(|n| n.to_string()).collect();
    for (with, path) in [
        (json!("none"), "/shared_with"),
        (json!([1]), "/shared_with"),
        (json!([""]), "/shared_with/0"),
        (json!(many), "/shared_with"),
    ] {
        let refused = share(&server, "new", with).await;
        refused.expect_problem("invalid", path);
    }
    let unknown = share(&server, "new", json!(["nobody"])).await;
    let problem = unknown.expect_problem("not_found", "");
    assert_eq!(problem["detail"], "workspace `nobody` not found");
    let reserved = share(&server, "leasehold:http", json!("all")).await;
    reserved.expect_problem("invalid_parameter", "queue");
    server
        .get("/v1/queues/new", &server.admin)
        .await
        .expect_problem("not_found", "");
}

#[tokio::test]
async fn workspace_over_its_limit_of_queues_is_refused_with_the_place() {
    let server = TestServer::new().await;
    let own = server.workspace(1).await;
    let names: Vec<String> = (0..=QUEUES_OWNED_MAX).map(|n| format!("q{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let path = format!("/body/graph/nodes/{QUEUES_OWNED_MAX}/queue");
    let refused = publish(&server, &own, &own.key, &names).await;
    let problem = refused.expect_problem("invalid", &path);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("100 queues"), "{detail}");
    publish(&server, &own, &own.key, &names[..QUEUES_OWNED_MAX])
        .await
        .expect(201);
}

#[tokio::test]
async fn job_of_a_graph_needs_a_queue_that_its_workspace_may_use() {
    for kind in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = TestServer::on(kind).await;
        let (own, other) = (server.workspace(1).await, server.workspace(1).await);
        publish(&server, &own, &own.key, &["mine"])
            .await
            .expect(201);
        let worker = KeyScope::Worker {
            queues: vec!["mine".to_owned()],
        };
        let worker = server.key(worker).await;
        let job = |workspace: Uuid| json!({"kind": "k", "workspace_id": workspace});
        let jobs = "/v1/queues/mine/jobs";
        let own_job = job(own.workspace.0);
        server
            .post(jobs, &worker, own_job.clone())
            .await
            .expect(201);
        for workspace in [other.workspace.0, fresh_id()] {
            let refused = server.post(jobs, &worker, job(workspace)).await;
            let problem = refused.expect_problem("queue_not_shared", "");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("`mine`"), "{detail}");
            let batch = json!({"jobs": [own_job, job(workspace)]});
            let refused = server.post("/v1/queues/mine/jobs/batch", &worker, batch);
            refused.await.expect_problem("queue_not_shared", "");
        }
        let listed = server.get(jobs, &worker).await.expect(200);
        assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn workspace_keys_have_no_access_to_queues_and_jobs() {
    let server = TestServer::new().await;
    let own = server.workspace(1).await;
    publish(&server, &own, &own.key, &["mine"])
        .await
        .expect(201);
    for path in [
        "/v1/queues",
        "/v1/queues/mine",
        "/v1/queues/mine/jobs",
        "/v1/queues/mine/counts",
        "/v1/jobs",
    ] {
        let refused = server.get(path, &own.key).await;
        refused.expect_problem("forbidden", "");
    }
    let job = server.post("/v1/queues/mine/jobs", &own.key, json!({"kind": "k"}));
    job.await.expect_problem("forbidden", "");
}
